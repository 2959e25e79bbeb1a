#!/usr/bin/env python3
"""What Hugging Face's tokenizers makes of hard texts with small byte-pair vocabularies and with odd parts, for make test.

    bpe_golden.py tests/golden/bpe.json

Trains vocabularies on the sentences below. Prints the row for tests/golden/MANIFEST.

{"sentences": what the tokenizers learned from, "texts": [...],
 "tokenizers": [{"name", "json": a tokenizer.json's text, "results": [[id, begin, end, ...] for each text],
                 "pair": ids of the first two texts as a pair, "types": their types}, ...],
 "decoders": [{"json": a tokenizer.json's text, "ids": [...] lists, "texts": what they are, "skipped": without special tokens}, ...]}
Offsets are bytes.
"""
import hashlib
import json
import platform
import random
import sys

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SEED = 6
SENTENCES = """The cats and the dogs sat on the mats and didn't eat the fish; they'll eat it.
In the beginning there was nothing but water, wind and 1234 things in 2026.
Der Hund und die Katze sitzen im Garten. Où est la bibliothèque? L'été.
我们在图书馆里看书。他们在学校里学习中文。
Мы читаем книги в библиотеке. 도서관에서 책을 읽습니다.""".split("\n")
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]


def texts():
    rng = random.Random(SEED)
    made = SENTENCES[:2] + ["", " ", "  two  spaces   and\ta tab ", "it's IT'S I'LL we\u017fve 'ſ don''t", "12 1234 12345678 ½ Ⅳ²",
                            "<s>a</s> <mask>  b<mask>", "\r\n\r\n x \n\n y\n", "e\u0301 \u00e9 \u0130 ﬁ ｗ", "\u00a0a\u2003 b\u3000",
                            "a\0b \0", "👍🏽👨‍👩‍👧 a👍", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                            "don't-stop, (now)!? ...", "я читаю", "“quoted”", SENTENCES[3] * 3]
    pool = "ab the' 12s\t\n\u00a0éя中한👍<mask>.,!\u0301ſ"
    for _ in range(12):
        made.append("".join(rng.choice(pool) for _ in range(rng.randint(3, 40))))
    return made


def trained(pre_tokenizer, model=None, size=330, more=()):
    tokenizer = Tokenizer(model or models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(SENTENCES, trainers.BpeTrainer(vocab_size=size, special_tokens=[*SPECIAL, *more], show_progress=False,
                                                                 initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> $B:1 </s>:1", [("<s>", 0), ("</s>", 2)])
    return tokenizer


def forms():
    byte_level = pre_tokenizers.ByteLevel
    roberta = trained(byte_level(add_prefix_space=False))
    roberta.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    yield "roberta", roberta
    prefixed = trained(byte_level(add_prefix_space=True))
    prefixed.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=True)
    yield "prefixed", prefixed
    modern = trained(byte_level(add_prefix_space=False))
    modern.normalizer = normalizers.NFC()
    modern.add_tokens([AddedToken(" " * n, normalized=True) for n in (4, 3, 2)])
    yield "modern", modern
    cl100k = trained(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CL100K), "isolated"),
                                              byte_level(add_prefix_space=False, use_regex=False)]))
    cl100k.model.ignore_merges = True
    yield "cl100k", cl100k
    yield "digits", trained(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                     byte_level(add_prefix_space=False)]))
    fallback = trained(pre_tokenizers.Split("▁", "merged_with_next"),
                       models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True), 330,
                       ["<0x%02X>" % byte for byte in (0xF0, 0x9F, 0x91, 0x8D)])
    fallback.add_tokens([AddedToken("<0x8F>", normalized=False), AddedToken("<0xBD>", normalized=False)])  # not the model's
    fallback.normalizer = normalizers.Replace(" ", "▁")
    yield "fallback", fallback
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        split = trained(pre_tokenizers.Sequence([pre_tokenizers.Punctuation(behavior), pre_tokenizers.Whitespace()]),
                        models.BPE(unk_token="<unk>"), 300)
        split.post_processor = None
        yield behavior, split


def decoder_rows():
    entries = ["a", "##b", ".", "?n", "n't", "'", "'s", "▁a", "▁▁", "▁", "a▁b", "<0xE2>", "<0x82>", "<0xac>", "<0x4>", "<0xG0>", "Ġ", "â",
               "Ĥ", "¬", "Ġé", "a</w>", "</w>b", " ", "xx", "x y", "do not", "中", "<unk>"]
    rng = random.Random(SEED)
    d = decoders
    for decoder in (None, d.WordPiece(), d.WordPiece(prefix="a", cleanup=False), d.ByteLevel(), d.Metaspace(),
                    d.Metaspace(prepend_scheme="never"), d.BPEDecoder(), d.ByteFallback(), d.Fuse(), d.Strip("x", 1, 1),
                    d.Replace("x", "yz"), d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])):
        tokenizer = Tokenizer(models.BPE({entry: i for i, entry in enumerate(entries)}, [], unk_token="<unk>"))
        tokenizer.add_special_tokens(["<s>", "<unk>", AddedToken("a", special=True)])
        tokenizer.add_tokens([" and , more do not"])
        if decoder:
            tokenizer.decoder = decoder
        size = tokenizer.get_vocab_size()
        ids = [[]] + [[rng.randrange(size) for _ in range(rng.randint(1, 20))] for _ in range(60)]
        yield {"json": tokenizer.to_str(), "ids": ids, "texts": [tokenizer.decode(i, skip_special_tokens=False) for i in ids],
               "skipped": [tokenizer.decode(i) for i in ids]}


def in_bytes(text, offsets):
    return [len(text[:place].encode()) for place in offsets]


def main():
    made = texts()
    rows = []
    for name, tokenizer in forms():
        results = []
        for text in made:
            encoding = tokenizer.encode(text, add_special_tokens=False)
            results.append([n for i, o in zip(encoding.ids, encoding.offsets) for n in [i, *in_bytes(text, o)]])
        pair = tokenizer.encode(made[0], made[1])
        rows.append({"name": name, "json": tokenizer.to_str(), "results": results, "pair": pair.ids, "types": pair.type_ids})
    data = json.dumps({"sentences": SENTENCES, "texts": made, "tokenizers": rows, "decoders": list(decoder_rows())}, ensure_ascii=False, separators=(",", ":")).encode()
    with open(sys.argv[1], "wb") as file:
        file.write(data)
    print(f"bpe.json | dev/bpe_golden.py | Python {platform.python_version()}, tokenizers {tokenizers.__version__} | {SEED} | "
          f"{hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
