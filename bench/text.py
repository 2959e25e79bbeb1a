#!/usr/bin/env python3
"""The text side beside its peers, in alternation in one run; tables in Markdown on standard output.

    bench/text.py [--parts tokenize,vocab,instances] [--cores 1,2] [--rounds 5] [--bertc build/bertc]
                  [--set NAME VOCAB FILE...]... [--corpus FILE...] [--vocab_file VOCAB]

tokenize    `bertc tokenize` (the whole command: reading, ids, printing to /dev/null) beside Hugging Face's tokenizers
            (encode_batch_fast on lines in memory), for each --set on each number of cores; before that the ids of all
            lines of the set are compared
vocab       `bertc vocab` beside tokenizers' BertWordPieceTokenizer trainer on the files of --corpus, less every fiftieth
            document, whose tokens per word are counted with both vocabularies at several sizes
instances   `bertc instances --compat google --dupe_factor 5` on one core, and the same algorithm in Python
            (dev/google_instances.py) on a megabyte, which also compares the instances. Google's own script
            was measured at 0.23 MB/s of text, before it writes any

Contenders are bound to the cores they may use. Times are medians of the rounds, wall clock (`seconds`) and processor
time (`cpu`); ratios are medians of the ratios within a round, by wall clock, or with --clock cpu (on a machine that
others use) by processor time, which says nothing of two cores. Files may be gzip. Needs Python with tokenizers.
"""
import argparse
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "dev"))
PEER_BYTES = 6_000_000  # of the text for Hugging Face's tokenizer: it is slow, and a few megabytes are enough to measure it
OUR_BYTES = 240_000_000  # for ours: enough to make reading the vocabulary negligible
SIZES = (8000, 16000, 30522)
GOOGLE_SCRIPT = 0.23


def read(paths):
    parts = []
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        parts.append(data if data.endswith(b"\n") else data + b"\n")
    return b"\n".join(parts)


def timed(command, cores, **environment):
    """Wall-clock and processor seconds of a command bound to this many cores."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, **environment}, preexec_fn=lambda: bind(cores))
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bind(cores):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def worker(part, cores, *arguments):
    """A measurement of a peer in a process of its own: its times exclude the start of Python and reading."""
    result = subprocess.run([sys.executable, os.path.abspath(__file__), "--worker", part, *arguments], check=True,
                            stdout=subprocess.PIPE, preexec_fn=lambda: bind(cores),
                            env={**os.environ, "TOKENIZERS_PARALLELISM": "true" if cores > 1 else "false",
                                 "RAYON_NUM_THREADS": str(cores)}).stdout
    return tuple(json.loads(result.splitlines()[-1]))


def work_tokenize(vocab, path):
    from tokenizers import BertWordPieceTokenizer
    tokenizer = BertWordPieceTokenizer(vocab, lowercase=True)._tokenizer
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        lines = file.read().split("\n")
    start, cpu = time.perf_counter(), time.process_time()
    for begin in range(0, len(lines), 10_000):
        tokenizer.encode_batch_fast(lines[begin:begin + 10_000], add_special_tokens=False)
    return time.perf_counter() - start, time.process_time() - cpu


def work_vocab(path, size, out):
    from tokenizers import BertWordPieceTokenizer
    tokenizer = BertWordPieceTokenizer(lowercase=True)
    start, cpu = time.perf_counter(), time.process_time()
    tokenizer.train([path], vocab_size=int(size), min_frequency=2, show_progress=False)
    times = time.perf_counter() - start, time.process_time() - cpu
    os.makedirs(out, exist_ok=True)
    tokenizer.save_model(out)
    return times


class Table:
    def __init__(self, *heads):
        print("\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads), flush=True)

    def row(self, *cells):
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def compare(options, ours, theirs, clock):
    """Alternating rounds: the medians of (seconds, cpu) of both, and the median ratio theirs / ours of `clock`."""
    a, b = [], []
    for _ in range(options.rounds):
        a.append(ours())
        b.append(theirs())
    ratio = statistics.median(y[clock] / x[clock] for x, y in zip(a, b))
    return ([statistics.median(x) for x in zip(*times)] for times in (a, b)), ratio


def compare_ids(bertc, vocab, path, lines):
    """The lines whose ids differ from Hugging Face's, and the number of tokens."""
    from tokenizers import BertWordPieceTokenizer
    tokenizer = BertWordPieceTokenizer(vocab, lowercase=True)._tokenizer
    ids = subprocess.run([bertc, "tokenize", "-q", "--vocab_file", vocab, path], check=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout.split(b"\n")
    differing = tokens = 0
    for begin in range(0, len(lines), 10_000):
        part = lines[begin:begin + 10_000]
        for k, encoding in enumerate(tokenizer.encode_batch_fast(part, add_special_tokens=False)):
            tokens += len(encoding.ids)
            differing += encoding.ids != [int(x) for x in ids[begin + k].split()]
    return differing, tokens


def tokenize(options, folder):
    equality, rows = [], []
    for name, vocab, *files in options.set:
        data = read(files)
        path, large, small = (os.path.join(folder, x) for x in ("text", "large", "small"))
        lines = data.split(b"\n")
        step = max(1, len(data) // PEER_BYTES)
        for target, content in ((path, data), (large, data * -(-OUR_BYTES // len(data))),
                                (small, b"\n".join(lines[::step]))):
            with open(target, "wb") as file:
                file.write(content)
        differing, tokens = compare_ids(options.bertc, vocab, path,
                                        [line.decode("utf-8", "replace") for line in lines[:-1]])
        equality.append((name, len(data), len(lines) - 1, tokens, differing))
        speeds = {}
        for cores in options.cores:
            ours, theirs = (os.path.getsize(x) / 1e6 for x in (large, small))
            (a, b), ratio = compare(
                options,
                lambda: [x / ours for x in timed([options.bertc, "tokenize", "-q", "--vocab_file", vocab, "--threads",
                                                  str(cores), large], cores)],
                lambda: [x / theirs for x in worker("tokenize", cores, vocab, small)], options.clock == "cpu")
            speeds[cores] = 1 / a[0], 1 / b[0]
            rows.append((name, cores, "%.1f (%.1f)" % (1 / a[0], 1 / a[1]), "%.2f (%.2f)" % (1 / b[0], 1 / b[1]),
                         "%.1f x" % ratio, *("%.2f" % (speeds[cores][i] / speeds[options.cores[0]][i]) for i in (0, 1))))
    table = Table("text", "MB", "lines", "tokens", "lines whose ids differ")
    for name, size, lines, tokens, differing in equality:
        table.row(name, "%.1f" % (size / 1e6), f"{lines:,}", f"{tokens:,}", differing)
    table = Table("text", "cores", "bertc, MB/s (MB per second of cpu)", "Hugging Face", "ratio", "bertc to its one core",
                  "theirs")
    for row in rows:
        table.row(*row)


def hold_out(data, folder):
    """Separates every fiftieth document; a blank line ends a document."""
    train, held = (os.path.join(folder, x) for x in ("train.txt", "held.txt"))
    documents = data.split(b"\n\n")
    for path, part in ((train, [d for i, d in enumerate(documents) if i % 50]), (held, documents[::50])):
        with open(path, "wb") as file:
            file.write(b"\n\n".join(part) + b"\n")
    return train, held


def tokens_a_word(vocab, text):
    from tokenizers import BertWordPieceTokenizer
    tokenizer = BertWordPieceTokenizer(vocab, lowercase=True)._tokenizer
    tokens = words = unknown = 0
    for encoding in tokenizer.encode_batch(text.split("\n"), add_special_tokens=False):
        ids = [x for x in encoding.word_ids if x is not None]
        tokens += len(ids)
        words += len(set(ids))
        unknown += encoding.tokens.count("[UNK]")
    return tokens / words, unknown


def vocab(options, folder):
    train, held = hold_out(read(options.corpus), folder)
    with open(held, encoding="utf-8", errors="replace") as file:
        text = file.read()
    own, theirs = os.path.join(folder, "own.txt"), os.path.join(folder, "theirs")

    def ours(cores, size):
        return timed([options.bertc, "vocab", "-q", "--overwrite", "--corpus", train, "--vocab_size", str(size), "--min_frequency", "2",
                      "--threads", str(cores), "--out", own], cores)

    print("\n%.1f MB to learn from, %.1f MB held out" % (os.path.getsize(train) / 1e6, os.path.getsize(held) / 1e6))
    table = Table("entries", "cores", "bertc: seconds (cpu)", "Hugging Face: seconds (cpu)", "ratio")
    for cores in options.cores:
        (a, b), ratio = compare(options, lambda: ours(cores, SIZES[-1]),
                                lambda: worker("vocab", cores, train, str(SIZES[-1]), theirs), options.clock == "cpu")
        table.row(SIZES[-1], cores, "%.2f (%.2f)" % tuple(a), "%.2f (%.2f)" % tuple(b), "%.1f x" % ratio)
    table = Table("entries", "bertc: tokens per word", "unknown", "Hugging Face: tokens per word", "unknown")
    for size in SIZES:
        ours(options.cores[-1], size)
        worker("vocab", options.cores[-1], train, str(size), theirs)
        (a, a_unknown), (b, b_unknown) = (tokens_a_word(x, text) for x in (own, os.path.join(theirs, "vocab.txt")))
        table.row(size, "%.4f" % a, a_unknown, "%.4f" % b, b_unknown)


def instances(options, folder):
    data = read(options.corpus)[:12_000_000]
    data = data[:data.rfind(b"\n") + 1]
    large, small, out = (os.path.join(folder, x) for x in ("text.txt", "small.txt", "x.tfrecord"))
    for path, content in ((large, data), (small, data[:data.rfind(b"\n", 0, 1_000_000) + 1])):
        with open(path, "wb") as file:
            file.write(content)

    def ours(path):
        return timed([options.bertc, "instances", "-q", "--corpus", path, "--vocab_file", options.vocab_file, "--out",
                      out, "--compat", "google", "--dupe_factor", "5", "--threads", "1"], 1)

    times = [ours(large) for _ in range(options.rounds)]
    seconds, cpu = (statistics.median(x) for x in zip(*times))
    info = subprocess.run([options.bertc, "inspect", "--json", out], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout
    ours(small)
    peer = timed([sys.executable, os.path.join(here, "..", "dev", "google_instances.py"), small, options.vocab_file, out,
                  "--dupe", "5"], 1)
    rate, peer_rate = len(data) / 1e6 / (cpu if options.clock == "cpu" else seconds), os.path.getsize(small) / 1e6 / peer[1]
    count = json.loads(info).get("instances", 0)
    print("\n%.1f MB of text, five passes, length 128, one core" % (len(data) / 1e6))
    table = Table("program", "instances", "seconds (cpu)", "MB/s of text", "bertc is")
    table.row("bertc instances --compat google", f"{count:,}", "%.2f (%.2f)" % (seconds, cpu), "%.1f" % rate, "")
    table.row("the algorithm in Python, on %.1f MB: the same instances" % (os.path.getsize(small) / 1e6), "",
              "%.2f (%.2f)" % peer, "%.2f" % peer_rate, "%.0f x" % (rate / peer_rate))
    table.row("Google's script, as once measured", "", "", GOOGLE_SCRIPT, "%.0f x" % (rate / GOOGLE_SCRIPT))


def main():
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(globals()["work_" + sys.argv[2]](*sys.argv[3:])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="tokenize,vocab,instances")
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--bertc", default=os.path.join(here, "..", "build", "bertc"))
    parser.add_argument("--set", nargs="+", action="append", default=[], metavar="NAME VOCAB FILE")
    parser.add_argument("--corpus", nargs="+", default=[])
    parser.add_argument("--vocab_file")
    options = parser.parse_args()
    options.cores = [int(x) for x in options.cores.split(",")]
    parts = options.parts.split(",")
    if ("tokenize" in parts and not options.set or not options.corpus and {"vocab", "instances"} & set(parts) or
            "instances" in parts and not options.vocab_file):
        parser.error("tokenize needs --set, vocab needs --corpus, instances needs --corpus and --vocab_file")
    with open("/proc/cpuinfo") as file:
        model = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    import tokenizers
    print("%s, %d cores, load %.1f, %s; tokenizers %s; %d rounds" % (
        model, os.cpu_count(), os.getloadavg()[0], time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        tokenizers.__version__, options.rounds))
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            {"tokenize": tokenize, "vocab": vocab, "instances": instances}[part](options, folder)


if __name__ == "__main__":
    main()
