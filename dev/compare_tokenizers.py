#!/usr/bin/env python3
"""Compares `bertc tokenize` with Hugging Face's fast BERT tokenizer, or with Google's rules.

    compare_tokenizers.py --vocab_file vocab.txt [--cased] [--strip_accents X] [--google] [--code_points] [FILE...]
        ids and byte offsets of every line of the files (gzip is unpacked), and of every code point alone ("X") and
        between letters ("aXb"); with --google ids only
    compare_tokenizers.py --folder MODEL [FILE...]
        the same against AutoTokenizer.from_pretrained(MODEL), with the vocabulary and settings of that folder
    compare_tokenizers.py --vocab_file vocab.txt --jsonl GOLDEN...
        lines of JSON with "text" and "ids" (--bracketed: with [CLS] and [SEP])
    compare_tokenizers.py --vocab_file vocab.txt --speed FILE
        megabytes a second of processor time of one thread, ours (the whole command) and theirs (encode_batch_fast on
        lines in memory) in alternation, medians of 5

Fails if anything differs.
"""
import argparse
import gzip
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import google_tokenizer  # noqa: E402 (the setting above must come first)


def read_bytes(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def lines_of(data):
    lines = data.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


class Ours:
    """bertc with a vocabulary and settings, in a folder of their own."""

    def __init__(self, options, vocab_file, config):
        self.bertc = options.bertc
        self.folder = tempfile.TemporaryDirectory()
        self.vocab_file = os.path.join(self.folder.name, "vocab.txt")
        shutil.copyfile(vocab_file, self.vocab_file)
        if config is not None:
            with open(os.path.join(self.folder.name, "tokenizer_config.json"), "w", encoding="utf-8") as file:
                json.dump(config, file)
        self.extra = ["--compat", "google"] if options.google else []

    def command(self, *more):
        return [self.bertc, "tokenize", "--vocab_file", self.vocab_file, *self.extra, *more]

    def run(self, lines, output_format):
        text = b"".join(line + b"\n" for line in lines)
        result = subprocess.run(self.command("--quiet", "--format", output_format), input=text, check=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        result = result.split(b"\n")[:-1]
        assert len(result) == len(lines), (len(result), len(lines))
        return result

    def ids(self, lines):
        return [list(map(int, line.split())) for line in self.run(lines, "ids")]

    def offsets(self, lines):
        return [[tuple(map(int, pair.split(b":"))) for pair in line.split()] for line in self.run(lines, "offsets")]


class HuggingFace:
    has_offsets = True

    def __init__(self, tokenizer):
        self.backend = tokenizer.backend_tokenizer

    @staticmethod
    def byte_offsets(text, offsets):
        if text.isascii():
            return offsets
        starts = [0]
        for x in text:
            starts.append(starts[-1] + len(x.encode()))
        return [(starts[a], starts[b]) for a, b in offsets]

    def encode(self, texts):
        for text, encoding in zip(texts, self.backend.encode_batch(texts, add_special_tokens=False)):
            yield encoding.ids, self.byte_offsets(text, encoding.offsets)


class Google:
    has_offsets = False

    def __init__(self, vocab_file, lowercase):
        with open(vocab_file, encoding="utf-8", newline="\n") as file:
            self.vocab = {line.strip(): i for i, line in enumerate(file)}
        self.lowercase = lowercase

    def encode(self, texts):
        for text in texts:
            yield [self.vocab[x] for x in google_tokenizer.tokenize(text, self.vocab, self.lowercase)], None


def compare(name, ours, theirs, lines, batch=20000):
    differing = tokens = 0
    for begin in range(0, len(lines), batch):
        part = lines[begin:begin + batch]
        texts = [line.decode("utf-8", "replace") for line in part]
        ids = ours.ids(part)
        offsets = ours.offsets(part) if theirs.has_offsets else [None] * len(part)
        for line, text, our_ids, our_offsets, (their_ids, their_offsets) in zip(part, texts, ids, offsets,
                                                                                theirs.encode(texts)):
            tokens += len(their_ids)
            # In text that had to be repaired, offsets count different bytes.
            same_bytes = theirs.has_offsets and text.encode() == line
            if our_ids != their_ids or same_bytes and our_offsets != their_offsets:
                differing += 1
                if differing <= 5:
                    print("%s: %s\n  ours   %s %s\n  theirs %s %s" % (
                        name, ascii(text[:300]), our_ids[:40], (our_offsets or [])[:40], their_ids[:40],
                        (their_offsets or [])[:40]))
    print("%-60s %9d lines %10d tokens %6d differ" % (name, len(lines), tokens, differing), flush=True)
    return differing


def code_point_lines(form):
    for c in range(0x110000):
        if c != 0x0A and not 0xD800 <= c <= 0xDFFF:
            yield (form % chr(c)).encode()


def compare_jsonl(options, ours, path):
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows = [row for row in rows if options.only in (None, row.get("vocab")) and "text_pair" not in row]
    # A line break in a text is white space like any other.
    ids = ours.ids([row["text"].replace("\n", " ").encode() for row in rows])
    differing = 0
    for row, our_ids in zip(rows, ids):
        expected = row["ids"][1:-1] if options.bracketed else row["ids"]
        if our_ids != expected:
            differing += 1
            print("%s: %s\n  ours   %s\n  golden %s" % (path, ascii(row["text"][:300]), our_ids[:40], expected[:40]))
    print("%-60s %9d lines %17s %6d differ" % (os.path.basename(path), len(rows), "", differing))
    return differing


def speed(ours, theirs, path):
    data = read_bytes(path)
    texts = [line.decode("utf-8", "replace") for line in lines_of(data)]
    small = texts[:max(1, len(texts) * 1_000_000 // len(data))]  # theirs is slow: a megabyte is enough
    small_bytes = sum(len(text.encode()) + 1 for text in small)
    our_times, their_times = [], []
    with tempfile.NamedTemporaryFile() as file:
        file.write(data * max(1, 50_000_000 // len(data)))
        file.flush()
        size = os.path.getsize(file.name)
        for _ in range(5):
            begin = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(ours.command("--threads", "1", file.name), check=True, stdout=subprocess.DEVNULL)
            end = resource.getrusage(resource.RUSAGE_CHILDREN)
            our_times.append((end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime) / size)
            begin = time.process_time()
            theirs.backend.encode_batch_fast(small, add_special_tokens=False)
            their_times.append((time.process_time() - begin) / small_bytes)
    a, b = (1e-6 / statistics.median(times) for times in (our_times, their_times))
    print("%s: ours %.1f MB/s, Hugging Face %.2f MB/s, %.0f times" % (
        os.path.basename(path), a, b, a / b))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bertc", default="build/bertc")
    parser.add_argument("--vocab_file")
    parser.add_argument("--folder")
    parser.add_argument("--cased", action="store_true")
    parser.add_argument("--strip_accents", choices=["true", "false"])
    parser.add_argument("--no_chinese", action="store_true", help="tokenize_chinese_chars false")
    parser.add_argument("--google", action="store_true")
    parser.add_argument("--code_points", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--jsonl", action="store_true")
    parser.add_argument("--bracketed", action="store_true", help="ids of --jsonl have [CLS] and [SEP] around them")
    parser.add_argument("--only", help="rows of --jsonl with this \"vocab\"")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()

    import transformers

    if options.folder:
        tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder)
        print("%s: %s, model_max_length %s" % (options.folder, type(tokenizer).__name__, tokenizer.model_max_length))
        with open(os.path.join(options.folder, "tokenizer_config.json"), encoding="utf-8") as file:
            config = json.load(file)
        vocab_file = os.path.join(options.folder, "vocab.txt")
    else:
        vocab_file = options.vocab_file
        config = {"do_lower_case": not options.cased, "tokenize_chinese_chars": not options.no_chinese,
                  "strip_accents": None if options.strip_accents is None else options.strip_accents == "true"}
        tokenizer = None
        if not options.google and not options.jsonl:
            tokenizer = transformers.BertTokenizerFast(vocab=vocab_file, **config)
    ours = Ours(options, vocab_file, config)
    theirs = Google(vocab_file, not options.cased) if options.google else tokenizer and HuggingFace(tokenizer)
    differing = 0
    if options.speed:
        for path in options.files:
            speed(ours, theirs, path)
        return
    if options.jsonl:
        sys.exit(any([compare_jsonl(options, ours, path) for path in options.files]))
    if options.code_points:
        for form in ("%s", "a%sb"):
            differing += compare("every code point as " + form % "X", ours, theirs, list(code_point_lines(form)))
    for path in options.files:
        differing += compare(os.path.basename(path), ours, theirs, lines_of(read_bytes(path)))
    sys.exit(differing != 0)


if __name__ == "__main__":
    main()
