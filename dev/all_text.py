#!/usr/bin/env python3
"""Ids and offsets of every distinct line of text under a folder, beside Hugging Face's tokenizers and sentencepiece.

    all_text.py DATA WORK [--only NAME,...] [--texts KIND,...] [--lines N]

Trains vocabularies on one line in thirty, into WORK/NAME if it is not there, and reads DATA/vocab and DATA/models: WordPiece, byte-level
BPE with the settings of RoBERTa, GPT-2, ModernBERT, Llama 3 and Qwen, BPE of characters with bytes, one that bertc learned, and Unigram
as transformers converts XLM-RoBERTa's and CamemBERT's. Names that end in ".model" are the .model file alone,
without lines in which a special token is written: sentencepiece does not look for these. Further lines have every
code point alone and between letters, and random characters of 30 scripts. Prints a row for each vocabulary; fails if anything differs.
Needs Python with tokenizers, transformers, sentencepiece; the library and the program of build/.
"""
import argparse
import bz2
import glob
import gzip
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
here = os.path.dirname(os.path.abspath(__file__))
build = os.path.join(here, "..", "build")
os.environ.setdefault("BERTC_LIBRARY", os.path.join(build, "libbertc.so.0"))
sys.path.insert(0, os.path.join(here, "..", "python"))

import numpy as np  # noqa: E402 (the settings above must come first)
import sentencepiece  # noqa: E402
import transformers  # noqa: E402
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

import bertc  # noqa: E402

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
# The first code points of the letters of 30 scripts.
SCRIPTS = [0x41, 0xC0, 0x370, 0x410, 0x531, 0x5D0, 0x620, 0x710, 0x780, 0x905, 0x985, 0xA05, 0xA85, 0xB05, 0xB85, 0xC05, 0xC85, 0xD05,
           0xD85, 0xE01, 0xE81, 0xF40, 0x1000, 0x10A0, 0x1200, 0x13A0, 0x1780, 0x1820, 0x3041, 0x30A1, 0x4E00, 0xAC00]


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    return bz2.decompress(data) if data[:3] == b"BZh" else data


def lines_of(folder):
    paths = sorted(x for x in glob.glob(os.path.join(folder, "**"), recursive=True) if os.path.isfile(x) and "/models/" not in x
                   and "/goldens/" not in x and "/vocab/" not in x)
    return list(dict.fromkeys(line for x in paths for line in read(x).decode("utf-8", "replace").split("\n") if line))


def odd_lines():
    rng = random.Random(37)
    points = [chr(c) for c in range(1, 0x110000) if c != 0x0A and not 0xD800 <= c <= 0xDFFF]
    alone = ["".join(points[i:i + 1]) for i in range(len(points)) if i < 0x30000 or i % 16 == 0]
    between = ["a%sb %s" % (c, c) for c in alone]
    mixed = ["".join(rng.choice(" .,'1\u0301\u200d") if rng.random() < 0.2 else chr(first + rng.randrange(60)) for _ in range(40))
             for first in SCRIPTS for _ in range(100)]
    return alone, between, mixed


# ---- Vocabularies ----

def train_bpe(sample, pre_tokenizer, normalizer=None, processor=None, model=None, **options):
    tokenizer = Tokenizer(model or models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=20000, special_tokens=SPECIAL, show_progress=False, **options)
    tokenizer.train_from_iterator(sample, trainer)
    tokenizer.post_processor = processor or processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> $B </s>", [("<s>", 0), ("</s>", 2)])
    return tokenizer


def byte_level(sample, prefix=False, split=None, trims=True, **options):
    stage = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=split is None)
    stages = stage if split is None else pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(split), "isolated"), stage])
    return train_bpe(sample, stages, processor=processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=trims,
                                                                            add_prefix_space=prefix),
                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **options)


def modernbert(sample):
    tokenizer = byte_level(sample, normalizer=normalizers.NFC(), trims=False)
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    return tokenizer


def llama3(sample):
    tokenizer = byte_level(sample, split=LLAMA3)
    tokenizer.model.ignore_merges = True
    return tokenizer


def characters(sample):
    return train_bpe(sample, pre_tokenizers.Split("\u2581", "merged_with_next"), model=models.BPE(unk_token="<unk>", byte_fallback=True,
                     fuse_unk=True), normalizer=normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]),
                     limit_alphabet=3000)


def save(path, tokenizer):
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>",
                                         pad_token="<pad>", cls_token="<s>", sep_token="</s>", mask_token="<mask>").save_pretrained(path)


def train_unigram(sample, path, convert, **options):
    os.makedirs(path, exist_ok=True)
    model = os.path.join(path, "sentencepiece.bpe.model")
    with open(model, "wb") as out:
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sample), model_writer=out, vocab_size=16000, num_threads=1,
                                                 max_sentence_length=8000, minloglevel=2, input_sentence_size=12000, **options)
    if convert:
        convert(model).save_pretrained(path)


def make(name, sample, work):
    path = os.path.join(work, name)
    if os.path.exists(path):
        return path
    if name == "learned":
        text = os.path.join(work, "sample.txt")
        with open(text, "w", encoding="utf-8") as out:
            out.write("\n".join(sample) + "\n")
        subprocess.run([os.path.join(build, "bertc"), "vocab", "-q", "--type", "bpe", "--corpus", text, "--vocab_size", "20000",
                        "--threads", "1", "--out", path], check=True)
    elif name in BPE:
        save(path, BPE[name](sample))
    elif name in UNIGRAM:
        train_unigram(sample, path, **UNIGRAM[name])
    else:
        sys.exit(f"all_text.py: {path} is missing")
    return path


BPE = {"roberta": byte_level, "gpt2": lambda s: byte_level(s, prefix=True, trims=False), "modernbert": modernbert, "llama3": llama3,
       "qwen": lambda s: byte_level(s, split=QWEN, normalizer=normalizers.NFC()), "characters": characters,
       "nfkc": lambda s: byte_level(s, normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])),
       "digits": lambda s: train_bpe(s, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)]),
                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet())}
UNIGRAM = {"xlm-roberta": {"convert": lambda model: transformers.XLMRobertaTokenizer.from_pretrained(os.path.dirname(model))},
           "camembert": {"convert": lambda model: transformers.CamembertTokenizer.from_pretrained(os.path.dirname(model))},
           "bytes": {"convert": None, "byte_fallback": True, "character_coverage": 0.99}}
WORDPIECE = {"bert-uncased": "bert-base-uncased", "bert-cased": "bert-base-cased", "bert-chinese": "bert-base-chinese",
             "scibert": "scibert-scivocab-uncased"}


# ---- Comparison ----

def joined(rows):
    return np.fromiter(itertools.chain.from_iterable(rows), np.int64)


class HuggingFace:
    def __init__(self, backend):
        self.backend = backend
        self.backend.no_truncation()
        self.backend.no_padding()

    def encode(self, texts):
        encodings = self.backend.encode_batch(texts, add_special_tokens=False)
        counts = np.array([len(e) for e in encodings])
        return joined(e.ids for e in encodings), counts, joined(x for e in encodings for x in e.offsets).reshape(-1, 2)


class SentencePiece:
    """With the numbering of transformers: <s> <pad> </s> <unk>, and then the pieces behind <unk> <s> </s>."""

    def __init__(self, path):
        self.processor = sentencepiece.SentencePieceProcessor(model_file=path)

    def encode(self, texts):
        rows = self.processor.encode(texts, num_threads=1)
        ids = joined(rows)
        return np.where(ids == 0, 3, ids + 1), np.array([len(row) for row in rows]), None


def contenders(name, options):
    """bertc's tokenizer and theirs."""
    if name in WORDPIECE:
        path = os.path.join(options.data, "vocab", WORDPIECE[name] + ".vocab.txt")
        lowers = "uncased" in WORDPIECE[name] or "chinese" in name
        theirs = transformers.BertTokenizer(vocab=path, do_lower_case=lowers).backend_tokenizer
        return bertc.Tokenizer(path, cased=not lowers, threads=1), HuggingFace(theirs)
    if name == "minilm":
        path = os.path.join(options.data, "models", "all-minilm-l6-v2")
        return bertc.Tokenizer(path, threads=1), HuggingFace(Tokenizer.from_file(os.path.join(path, "tokenizer.json")))
    path = make(name.removesuffix(".model"), options.sample, options.work)
    if name.endswith(".model"):
        alone = os.path.join(path, "alone")
        os.makedirs(alone, exist_ok=True)
        shutil.copyfile(os.path.join(path, "sentencepiece.bpe.model"), os.path.join(alone, "sentencepiece.bpe.model"))
        with open(os.path.join(alone, "config.json"), "w") as out:
            out.write('{"model_type": "xlm-roberta"}')
        return bertc.Tokenizer(alone, threads=1), SentencePiece(os.path.join(alone, "sentencepiece.bpe.model"))
    return bertc.Tokenizer(path, threads=1), HuggingFace(Tokenizer.from_file(os.path.join(path, "tokenizer.json")))


def compare(ours, theirs, lines, batch=4000):
    tokens, differing = 0, []
    for begin in range(0, len(lines), batch):
        texts = lines[begin:begin + batch]
        ids, counts, offsets = theirs.encode(texts)
        own = ours.encode(texts, special_tokens=False, offsets=offsets is not None)
        tokens += len(ids)
        if np.array_equal(own.ids, ids) and np.array_equal(own.lengths(), counts) and (
                offsets is None or np.array_equal(own.offsets, offsets)):
            continue
        if batch > 1:
            differing += compare(ours, theirs, texts, 1)[1]
        else:
            differing.append((texts[0], own.ids.tolist(), ids.tolist(), own.offsets, offsets))
    return tokens, differing


def main():
    names = [*WORDPIECE, "minilm", *BPE, "learned", "xlm-roberta", "camembert", "xlm-roberta.model", "bytes.model"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("work")
    parser.add_argument("--only", default=",".join(names))
    parser.add_argument("--texts", default="text,code points,between letters,scripts")
    parser.add_argument("--lines", type=int, default=0, help="this many lines, evenly taken")
    options = parser.parse_args()
    lines = lines_of(options.data)
    options.sample = lines[::30]
    step = max(1, len(lines) // options.lines) if options.lines else 1
    sets = dict(zip(("text", "code points", "between letters", "scripts"), (lines[::step], *odd_lines())))
    print("%d distinct lines, %.1f MB\n\n| vocabulary | text | lines | tokens | differ | seconds |\n|---|---|---|---|---|---|" % (
        len(lines), sum(len(x.encode()) for x in lines) / 1e6), flush=True)
    failed = False
    for name in options.only.split(","):
        ours, theirs = contenders(name, options)
        for kind in options.texts.split(","):
            texts = sets[kind]
            if name.endswith(".model"):
                texts = [x for x in texts if not re.search("<(s|pad|/s|unk|mask)>", x)]
            began = time.process_time()
            tokens, differing = compare(ours, theirs, texts)
            print(f"| {name} | {kind} | {len(texts):,} | {tokens:,} | {len(differing)} | {time.process_time() - began:.0f} |", flush=True)
            failed = failed or differing
            for text, own, other, own_offsets, other_offsets in differing[:3]:
                print("#", ascii(text[:200]), len(text), own[:30], other[:30], *(x.tolist()[:12] for x in (own_offsets, other_offsets)
                                                                                    if x is not None))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
