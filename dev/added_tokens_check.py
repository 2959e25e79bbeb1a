"""Compares bertc's ids with those of transformers' tokenizer where a folder has added tokens: of every kind, on texts in which they
occur in different case, with accents, side by side, and inside words.

    python dev/added_tokens_check.py --vocab VOCAB.txt [--cased] [--text FILE]... [--build build] [--rounds 20]

Needs transformers and tokenizers. Each round draws other tokens. FILE: lines into which tokens are put.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

from tokenizers import AddedToken
from transformers import BertTokenizerFast

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--vocab", required=True)
p.add_argument("--cased", action="store_true")
p.add_argument("--text", action="append", default=[])
p.add_argument("--build", default="build")
p.add_argument("--rounds", type=int, default=20)
a = p.parse_args()
WORDS = ["covid", "COVID-19", "Café", "new york", "[E1]", "[/E1]", "新冠", "ß", "naïve", "A.B", "<url>", "θ", "ΟΔΟΣ", "ab", "abc",
         "abcd", "b c", "東", "Åland", "e\u0301x", "한국", "don't", "__x__", "#tag", "@user", "é", "İst", "i",
         "the", "##ing", "ﬁ", "हिन्द"]
FILL = [" ", "  ", "", "a", "s", ".", ",", "-", "_", "\u00a0", "\t", "\u200b", "\u0301", "中", "é", "x", "ing", "1", "[MASK]",
        "[SEP]", "Σ", "Q", "\u093f", "²", "½", "₂", "\u0e33", "€", "฿", "Ⓐ", "‿"]


def tokenizer_with(rng, folder):
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    for word in rng.sample(WORDS, rng.randint(1, 12)):
        token = AddedToken(word, single_word=rng.random() < 0.2, lstrip=rng.random() < 0.2, rstrip=rng.random() < 0.2,
                           normalized=rng.random() < 0.6)
        tokenizer.add_tokens([token], special_tokens=rng.random() < 0.3)
    return tokenizer


def text_of(rng, lines, words):
    parts = []
    for _ in range(rng.randint(1, 12)):
        word = rng.choice(words)
        word = rng.choice([word, word.upper(), word.lower(), word.title()])
        parts.append(rng.choice([word, word, rng.choice(FILL), rng.choice(lines)[:60] if lines else rng.choice(FILL)]))
        parts.append(rng.choice(FILL))
    return "".join(parts).replace("\n", " ").replace("\r", " ").replace("\0", "")


def ids_of_bertc(folder, texts):
    out = subprocess.run([os.path.join(a.build, "bertc"), "tokenize", "--vocab_file", os.path.join(folder, "vocab.txt"), "--quiet"],
                         input="\n".join(texts) + "\n", stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    return [[int(x) for x in line.split()] for line in out.split("\n")[:-1]]


lines = [line.strip() for name in a.text for line in open(name, encoding="utf-8", newline="\n") if line.strip()]
compared = different = 0
for seed in range(a.rounds):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        BertTokenizerFast(a.vocab, do_lower_case=not a.cased).save_pretrained(folder)
        tokenizer = tokenizer_with(rng, folder)
        tokenizer.save_pretrained(folder)
        if not os.path.exists(os.path.join(folder, "vocab.txt")):
            with open(a.vocab, "rb") as source, open(os.path.join(folder, "vocab.txt"), "wb") as target:
                target.write(source.read())
        texts = [text_of(rng, lines, WORDS) for _ in range(500)]
        ours = ids_of_bertc(folder, texts)
        assert len(ours) == len(texts)
        for text, got in zip(texts, ours):
            want = tokenizer(text, add_special_tokens=False)["input_ids"]
            compared += 1
            if got != want:
                different += 1
                if different <= 10:
                    print(repr(text), "\n  bertc       ", got, "\n  transformers", want, "\n  added",
                          {i: repr(t) for i, t in tokenizer.added_tokens_decoder.items() if i > 103})
print(f"{compared} texts, {different} different")
sys.exit(different > 0)
