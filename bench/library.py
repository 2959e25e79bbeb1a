#!/usr/bin/env python3
"""The Python package beside its peers, in one process, in alternation.

    bench/library.py tokenize [--cores 1,2] [--rounds 5] VOCAB[:cased] FILE...     ids and speed beside Hugging Face's tokenizers
    bench/library.py embed    FOLDER FILE...                      embeddings beside sentence-transformers, else transformers

Needs Python with bertc (or PYTHONPATH=python BERTC_LIBRARY=build/libbertc.so.0) and tokenizers, or torch, transformers and
sentence-transformers. Files are plain or gzip, one text per line; empty lines are left out. Speeds are medians over the rounds, each
contender bound to the cores it may use; the time covers what a caller in Python waits for: lists of strings in, ids as NumPy
arrays out (bertc), or Encoding objects out (tokenizers, encode_batch_fast).
"""
import argparse
import gzip
import os
import statistics
import subprocess
import sys
import time

import numpy as np


def read(paths, limit):
    lines, size = [], 0
    for path in paths:
        opened = gzip.open(path, "rt", encoding="utf-8", newline="\n") if path.endswith(".gz") else open(path, encoding="utf-8", newline="\n")
        with opened as file:
            for line in file:
                line = line.rstrip("\r\n")
                if line and size < limit:
                    lines.append(line)
                    size += len(line.encode())
    return lines, size


def make_peer(vocab, cased):
    from tokenizers import BertWordPieceTokenizer

    return BertWordPieceTokenizer(vocab, lowercase=not cased)


def tokenize_child(options):
    """One contender on the cores that it is bound to: seconds of each round."""
    import bertc

    vocab, _, cased = options.vocab.partition(":")
    texts, _ = read(options.files, options.bytes)
    if options.child == "bertc":
        run = bertc.Tokenizer(vocab, cased=bool(cased), threads=len(os.sched_getaffinity(0))).encode
    else:
        run = make_peer(vocab, bool(cased))._tokenizer.encode_batch_fast
    run(texts[:1000])
    while sys.stdin.readline():
        begin = time.perf_counter()
        run(texts)
        print(time.perf_counter() - begin, flush=True)


def compare_ids(options, texts):
    import bertc

    vocab, _, cased = options.vocab.partition(":")
    ours = bertc.Tokenizer(vocab, cased=bool(cased)).encode(texts, offsets=True)
    peer = make_peer(vocab, bool(cased))
    different = places = tokens = 0
    for first in range(0, len(texts), 10000):
        for i, theirs in enumerate(peer.encode_batch(texts[first : first + 10000]), first):
            tokens += len(theirs.ids)
            if ours[i].tolist() != theirs.ids:
                different += 1
                print("different ids:", texts[i][:200], file=sys.stderr)
            elif [tuple(place) for place in ours.offsets[ours.starts[i] : ours.starts[i + 1]].tolist()] != theirs.offsets:
                places += 1
    print(f"{len(texts):,} lines, {tokens:,} tokens: {different} lines with other ids, {places} with other offsets")


def tokenize(options):
    texts, size = read(options.files, options.bytes)
    compare_ids(options, texts)
    for cores in options.cores.split(","):
        children = {
            name: subprocess.Popen(
                ["taskset", "-c", f"0-{int(cores) - 1}", sys.executable, *sys.argv, "--child", name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "RAYON_NUM_THREADS": cores, "TOKENIZERS_PARALLELISM": "true"},
            )
            for name in ("bertc", "tokenizers")
        }
        seconds = {name: [] for name in children}
        for _ in range(options.rounds):
            for name, child in children.items():
                child.stdin.write("\n")
                child.stdin.flush()
                seconds[name].append(float(child.stdout.readline()))
        for child in children.values():
            child.communicate()
        ratios = [b / a for a, b in zip(seconds["bertc"], seconds["tokenizers"])]
        speeds = {name: size / statistics.median(values) / 1e6 for name, values in seconds.items()}
        print(
            f"{cores} core(s), {size / 1e6:.1f} MB: bertc {speeds['bertc']:.1f} MB/s, tokenizers {speeds['tokenizers']:.2f} MB/s, "
            f"{statistics.median(ratios):.1f} times (rounds {min(ratios):.1f} to {max(ratios):.1f})"
        )


def peer_embeddings(folder, texts):
    import torch

    if os.path.exists(os.path.join(folder, "modules.json")):
        from sentence_transformers import SentenceTransformer

        return "sentence-transformers", SentenceTransformer(folder, device="cpu").encode(texts, batch_size=32)
    from transformers import AutoTokenizer, BertModel

    tokenizer, model = AutoTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder).eval()
    out = []
    for first in range(0, len(texts), 32):
        batch = tokenizer(texts[first : first + 32], padding=True, truncation=True, max_length=512, return_tensors="pt")
        with torch.no_grad():
            rows = model(**batch).last_hidden_state
        mask = batch["attention_mask"][:, :, None]
        out.append(((rows * mask).sum(1) / mask.sum(1)).numpy())
    return "transformers, mean", np.concatenate(out)


def embed(options):
    import bertc

    texts, _ = read(options.files, options.bytes)
    texts = texts[: options.texts]
    name, theirs = peer_embeddings(options.vocab, texts)
    for precision in ("fp32", "bf16", "int8"):
        try:
            ours = bertc.Model(options.vocab, precision=precision).embed(texts)
        except bertc.Error as error:
            print(f"{precision}: {error}")
            continue
        cosine = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
        apart = np.linalg.norm(ours - theirs, axis=1) / np.linalg.norm(theirs, axis=1)
        print(
            f"{len(texts):,} texts, {name}, {precision}: largest difference {np.abs(ours - theirs).max():.2g}, "
            f"relative {apart.max():.2g}, least cosine {cosine.min():.7f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("tokenize", "embed"))
    parser.add_argument("vocab", metavar="VOCAB|FOLDER")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=20_000_000, help="of text at most")
    parser.add_argument("--texts", type=int, default=2000, help="to embed at most")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        tokenize_child(options)
    elif options.part == "tokenize":
        tokenize(options)
    else:
        embed(options)


if __name__ == "__main__":
    main()
