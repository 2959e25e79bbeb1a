"""The speed of bertc on a GPU, compared with PyTorch: the tables of docs/results.md, as Markdown.

    gpu.py [--subset first|second|third] [--seconds 570]
           [--cases large-512,...] [--precision bf16,...] [--peer large-128,...] [--inference 128x1,...] [--graphs large-128,128x1,...]
           [--rounds N] [--split bf16,fp8] [--tokens N] [--device cuda] [--peer_device cuda] [--bertc PATH]

Each subset takes ten minutes at most: BERT-large compared with PyTorch; BERT-base, other precisions and recorded graphs;
inference. The options in the second line replace the corresponding parts of a subset; an empty one leaves that part out.

A training case is MODEL-LENGTH, or MODEL-mlperf: the lengths of Wikipedia's instances at 512 tokens, as in MLPerf's BERT (bertc
bench --mixed_lengths). Every case runs in every precision (`bertc
bench`): the rate of the whole step and, for the precisions of --split, the time of each operation beside its lower bound: its
products at the rate of plain products, or its bytes at the rate of copies, both measured at about the same time. An inference
case is LENGTHxBATCH of BERT-base in the first precision. PyTorch (bench/gpu_peer.py) runs between two runs of bertc, in the
first precision, and so does bertc without recorded graphs (BERTC_GRAPHS=0) in the cases of --graphs, of both kinds.

The most important cases come first; a part that takes too long is ended, and its row says so; when --seconds are up, the rest
is left out. Without PyTorch, a message says that there is no peer. PyTorch is imported in the background from the beginning.
Standard error of all programs is passed on. With OUT in the environment, the tables are also written to $OUT/gpu-SUBSET.md and
all figures to $OUT/gpu-SUBSET.json, from the first row on. Needs only Python's standard library.
"""
import argparse
import json
import math
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = {"base": (12, 768), "large": (24, 1024), "medium": (8, 512), "small": (4, 512), "mini": (4, 256), "tiny": (2, 128)}
TOKENS = {"base": 45056, "large": 33792}  # per step: whole waves of 132 processors with tiles of 128 x 256
VOCABULARY = 30522
HERE = os.path.dirname(os.path.abspath(__file__))

SUBSETS = {
    "first": dict(cases="large-512,large-128,large-mlperf", precision="bf16,fp8", peer="large-128,large-512", inference="",
                  graphs="", rounds=20, split="bf16,fp8"),
    "second": dict(cases="base-512,base-128,large-128", precision="bf16,fp8,fp16,tf32,fp32", peer="base-128,base-512,large-mlperf",
                   inference="", graphs="base-128,large-128", rounds=7, split="bf16"),
    "third": dict(cases="", precision="bf16", peer="", inference="128x1,128x8,128x64,384x1,384x8,384x64,512x1,512x8,512x64",
                  graphs="128x1,512x1,128x8", rounds=7, split=""),
}
p = argparse.ArgumentParser()
p.add_argument("--subset", default="first", choices=list(SUBSETS))
p.add_argument("--seconds", type=float, default=570)
p.add_argument("--cases")
p.add_argument("--precision")
p.add_argument("--peer")
p.add_argument("--inference")
p.add_argument("--graphs")
p.add_argument("--rounds", type=int)
p.add_argument("--split")
p.add_argument("--tokens", type=int, default=0)
p.add_argument("--device", default="cuda")
p.add_argument("--peer_device", default="cuda")
p.add_argument("--peer_compiled", type=int, default=1)
p.add_argument("--peer_seconds", type=float, default=5)
p.add_argument("--bertc", default=os.environ.get("BERTC") or os.path.join(os.environ.get("BUILD", "build"), "bertc"))
a = p.parse_args()
for option, value in SUBSETS[a.subset].items():
    if getattr(a, option) is None:
        setattr(a, option, value)
started = time.monotonic()
LIMIT = 60.0        # for one bertc bench
PEER_LIMIT = 150.0  # for one case of PyTorch: large models compile for a minute; also for its import when nothing is cached yet


def names(text):
    return [x for x in text.split(",") if x]


def left():
    return a.seconds - (time.monotonic() - started)


class Lost(Exception):
    """A row that is missing, and why."""


# --- what comes out -------------------------------------------------------------------------------------------------

class Table:
    def __init__(self, title, head):
        self.lines = [f"\n{title}\n", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        self.columns = len(head)
        show(self.lines)

    def row(self, *cells):
        self.lines.append("| " + " | ".join(str(c) for c in cells) + " |")
        show(self.lines[-1:])

    def lost(self, name, why):
        self.row(name, f"({why})", *[""] * (self.columns - 2))


out, shown, figures = os.environ.get("OUT"), [], []


def show(lines):
    for line in lines:
        print(line, flush=True)
        shown.append(line)
    if out:
        with open(os.path.join(out, f"gpu-{a.subset}.md"), "w") as f:
            f.write("\n".join(shown) + "\n")


def keep(**figure):
    figures.append(figure)
    if out:
        with open(os.path.join(out, f"gpu-{a.subset}.json"), "w") as f:
            json.dump(figures, f, indent=1)


def end(process):
    """Ends the process and everything it started; each such process has a session of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


# --- the work -------------------------------------------------------------------------------------------------------

def lengths_of(length, sequences, mixed):
    """The same as in run/benchmark.c."""
    lengths, share = [], 0.5
    for _ in range(sequences):
        v = share / (1 - 0.234)
        tokens = 512 if v >= 1 else 20 + 492 * (0.4 * v + 0.6 * v**4)
        lengths.append(math.ceil(tokens * length / 512) if mixed else length)
        share = math.fmod(share + 0.6180339887498949, 1)
    return lengths


def flops_of(size, lengths, training):
    """The FLOPs of the model: docs/developers/math.md."""
    layers, hidden = SIZES[size]
    total = 0
    for l in lengths:
        masked = sum(1 for i in range(l) if i % 20 in (3, 9, 16))
        total += (72 * layers * hidden**2 * l + 12 * layers * hidden * l**2 + 6 * masked * (hidden**2 + hidden * VOCABULARY) +
                  6 * (hidden**2 + 2 * hidden))
    return total if training else total / 3


class Case:
    def __init__(self, name, precision, inference=False):
        self.name, self.precision, self.training = name, precision, not inference
        if inference:
            self.size, (length, sequences) = "base" if not a.tokens else "tiny", name.split("x")
            self.length, self.sequences, self.mixed = int(length), int(sequences), False
        else:
            self.size, length = name.split("-")
            self.mixed = length == "mlperf"
            self.length = min(512, a.tokens or 512) if self.mixed else int(length)
            # Half of the positions of the mix are padding.
            self.sequences = max(1, (2 if self.mixed else 1) * (a.tokens or TOKENS.get(self.size, 8192)) // self.length)
        self.lengths = lengths_of(self.length, self.sequences, self.mixed)
        self.flops = flops_of(self.size, self.lengths, self.training)
        self.kind = "training" if self.training else "inference"

    def command(self):
        slow = self.precision in ("fp32", "tf32") and self.training
        return [a.bertc, "bench", "-q", "--json", "--device", a.device, "--precision", self.precision, "--model", self.size,
                "--max_seq_length", str(self.length), "--train_batch_size", str(self.sequences), "--mode", self.kind,
                "--steps", str(min(a.rounds, 3) if slow else a.rounds)] + (["--mixed_lengths"] if self.mixed else [])


def bertc(case, graphs=True):
    if left() < 5:
        raise Lost("left out: the time is up")
    try:
        process = subprocess.Popen(case.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   env=dict(os.environ, BERTC_GRAPHS=str(int(graphs))))
    except OSError as e:
        sys.exit(f"gpu.py: {e}; make it with make CUDA=1, or give --bertc")
    limit = min(LIMIT, left())
    late = False
    try:
        text, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        end(process)
        late, (text, errors) = True, process.communicate()
    if errors.strip():
        print(f"{case.name} {case.precision} {case.kind}:\n{errors.rstrip()}", file=sys.stderr, flush=True)
    if late:
        raise Lost(f"ended after {limit:.0f} s")
    if process.returncode != 0:
        raise Lost((errors.strip().splitlines() or [f"status {process.returncode}"])[0].removeprefix("bertc: "))
    result = json.loads(text)
    if abs(result[case.kind]["model_flops_per_second"] * result[case.kind]["seconds"] / case.flops - 1) > 1e-6:
        raise Lost("bertc and this script do not count the same work")
    keep(case=case.name, precision=case.precision, kind=case.kind, graphs=graphs, bertc=result)
    return result


class Peer:
    """A running gpu_peer.py, restarted after a case that it did not survive."""
    def __init__(self):
        self.process, self.ready, self.begun, self.text, self.missing, self.name = None, False, 0, b"", "", ""
        self.errors = tempfile.TemporaryFile()

    def begin(self):
        """Importing PyTorch takes a minute if nothing is cached, so it runs while other things are measured."""
        if self.process or self.missing:
            return
        self.ready, self.begun = False, time.monotonic()
        self.errors.truncate(0)
        self.errors.seek(0)
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "gpu_peer.py"), "--device", a.peer_device],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        start_new_session=True)

    def start(self):
        self.begin()
        try:
            self.name = self.read(max(5, PEER_LIMIT - (time.monotonic() - self.begun)))["ready"]
            self.ready = True
        except Lost:
            if self.process and self.process.poll() == 3:
                self.errors.seek(0)
                self.missing = self.errors.read().decode(errors="replace").strip().splitlines()[-1]
            self.stop()
            if self.missing:
                raise Lost("no peer here") from None
            raise

    def read(self, seconds):
        """One of its answers, which are short lines; anything else that libraries print is passed on."""
        until = time.monotonic() + seconds
        while True:
            line, newline, rest = self.text.partition(b"\n")
            if newline:
                self.text = rest
                try:
                    answer = json.loads(line)
                    if isinstance(answer, dict):
                        return answer
                except ValueError:
                    pass
                print("PyTorch:", line.decode(errors="replace"), file=sys.stderr, flush=True)
                continue
            if not select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))[0]:
                self.stop()
                raise Lost(f"PyTorch: ended after {seconds:.0f} s")
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                self.process.wait()
                raise Lost(f"PyTorch: ended with status {self.process.returncode}")
            self.text += piece

    def stop(self):
        if self.process:
            end(self.process)
            for pipe in (self.process.stdin, self.process.stdout):
                pipe.close()
        self.process, self.ready, self.text = None, False, b""

    def run(self, case):
        if self.missing:
            raise Lost("no peer here")
        if left() < 20:
            raise Lost("left out: the time is up")
        if not self.ready:
            self.start()
        layers, hidden = SIZES[case.size]
        self.process.stdin.write((json.dumps(dict(
            layers=layers, hidden=hidden, lengths=case.lengths, training=case.training, precision=case.precision,
            compiled=bool(a.peer_compiled), seconds=a.peer_seconds)) + "\n").encode())
        self.process.stdin.flush()
        try:
            answer = self.read(min(PEER_LIMIT, left()))
        except Lost:
            self.stop()
            raise
        if "error" in answer:
            raise Lost("PyTorch: " + answer["error"])
        keep(case=case.name, precision=case.precision, kind=case.kind, peer=answer, peer_name=self.name)
        return answer


# --- tables ---------------------------------------------------------------------------------------------------------

def tera(flops, seconds):
    return f"{flops / seconds / 1e12:.4g}"


def gib(n):
    return f"{n / 2**30:.1f}" if n else ""


def share(case, seconds, rate):
    return f"{100 * case.flops / seconds / rate:.0f} %" if rate else ""


def training(table, case, done):
    """A row of the table; the run is kept in `done`."""
    name = f"{case.name} {case.precision}"
    try:
        result = bertc(case)
    except Lost as e:
        table.lost(name, e)
        return
    run, rate = result["training"], result.get("gemm_flops_per_second", 0)
    done[case.name, case.precision] = result
    table.row(name, f"{case.sequences}, {result['tokens']:,}", f"{1e3 * run['seconds']:.1f}",
              f"{case.sequences / run['seconds']:,.1f}", f"{result['tokens'] / run['seconds']:,.0f}",
              tera(case.flops, run["seconds"]), share(case, run["seconds"], rate), tera(rate, 1) if rate else "",
              gib(result.get("device_memory_bytes")))


def split(name, precision, result):
    run = result["training"]
    step, rest, floors = run["seconds"], run["seconds"], 0
    table = Table(f"{name} {precision}: {1e3 * step:.2f} ms, by operation (ms of a step; products at "
                  f"{result.get('gemm_flops_per_second', 0) / 1e12:.4g} TFLOP/s, copies at "
                  f"{result.get('copy_bytes_per_second', 0) / 1e12:.3g} TB/s)",
                  ["operation", "calls", "ms", "floor", "gap", "of floor"])
    for o in sorted(run["operations"], key=lambda o: -(o["seconds"] - o.get("floor_seconds", 0))):
        seconds, floor = o["seconds"], o.get("floor_seconds", 0)
        rest -= seconds
        floors += floor
        table.row(o["operation"], o["calls"], f"{1e3 * seconds:.2f}", f"{1e3 * floor:.2f}" if floor else "",
                  f"{1e3 * (seconds - floor):.2f}", f"{100 * floor / seconds:.0f} %" if floor and seconds else "")
    table.row("(between operations; less than none: waiting for each costs)", "", f"{1e3 * rest:.2f}", "", f"{1e3 * rest:.2f}", "")
    table.row("the step", "", f"{1e3 * step:.2f}", f"{1e3 * floors:.2f}", f"{1e3 * (step - floors):.2f}",
              f"{100 * floors / step:.0f} %")


def beside(table, peer, case, before):
    """Measures PyTorch between two runs of bertc."""
    name = f"{case.name} {case.precision}"
    try:
        if before is None:
            before = bertc(case)
        theirs = peer.run(case)
        peer.stop()  # frees its memory; for the next case it is imported while bertc is measured
        peer.begin()
        ours = [r[case.kind]["seconds"] for r in (before, bertc(case))]
    except Lost as e:
        table.lost(name, e)
        return
    mine, other = statistics.mean(ours), statistics.median(theirs["seconds"])
    rate = before.get("gemm_flops_per_second", 0)
    table.row(name, case.sequences, " and ".join(f"{case.sequences / s:,.1f}" for s in ours), share(case, mine, rate),
              f"{case.sequences / other:,.1f}", share(case, other, rate), theirs["attention"], gib(theirs["memory_bytes"]),
              f"**{other / mine:.2f}**")


def inference(table, peer, case):
    try:
        result = bertc(case)
    except Lost as e:
        table.lost(case.name, e)
        return
    seconds = result["inference"]["seconds"]
    rate = result.get("gemm_flops_per_second", 0)
    try:
        other = statistics.median(peer.run(case)["seconds"])
        theirs = [f"{1e3 * other:.2f}", f"**{other / seconds:.2f}**"]
    except Lost as e:
        theirs = [f"({e})", ""]
    table.row(case.name, f"{1e3 * seconds:.2f}", f"{case.sequences / seconds:,.0f}", tera(case.flops, seconds),
              share(case, seconds, rate), *theirs)


def recorded(table, case):
    """Measures a run without graphs between two runs with them."""
    try:
        before, without, after = (bertc(case, graphs)[case.kind]["seconds"] for graphs in (True, False, True))
    except Lost as e:
        table.lost(case.name, e)
        return
    table.row(case.name, case.kind, f"{1e3 * before:.3f} and {1e3 * after:.3f}", f"{1e3 * without:.3f}",
              f"{2 * without / (before + after):.3f}")


def machine():
    try:
        asked = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit", "--format=csv,noheader"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "no nvidia-smi here"


cases, precisions = names(a.cases), names(a.precision)
peer, done = Peer(), {}
if names(a.peer) or names(a.inference):
    peer.begin()
show([f"{machine()}; {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; bertc bench, medians"])
HEAD = ["case", "sequences, tokens", "ms per step", "sequences/s", "tokens/s", "TFLOP/s", "of products", "products, TFLOP/s",
        "GPU memory, GiB"]
if cases:
    table = Table("Training steps", HEAD)
for name in cases:
    training(table, Case(name, precisions[0]), done)
if names(a.peer):
    table = Table("Training beside PyTorch, compiled; bertc before and after it",
                  ["case", "sequences", "bertc, sequences/s", "of products", "PyTorch", "of products", "its attention",
                   "GPU memory, GiB", "bertc is x as fast"])
    # The two most important cases come before the other precisions, the rest after them.
    for name in names(a.peer)[:2]:
        beside(table, peer, Case(name, precisions[0]), done.get((name, precisions[0])))
if cases and precisions[1:]:
    table = Table("Training steps, other precisions", HEAD)
    for precision in precisions[1:]:
        for name in cases:
            training(table, Case(name, precision), done)
for (name, precision), result in done.items():
    if precision in names(a.split):
        split(name, precision, result)
if names(a.inference):
    table = Table(f"BERT-base, forward and loss, {precisions[0]}, LENGTHxBATCH",
                  ["case", "ms", "sequences/s", "TFLOP/s", "of products", "PyTorch, ms", "bertc is x as fast"])
    for name in names(a.inference):
        inference(table, peer, Case(name, precisions[0], inference=True))
    peer.stop()
if names(a.graphs):
    table = Table(f"Recorded graphs, {precisions[0]}", ["case", "", "ms", "ms without", "x as fast"])
    for name in names(a.graphs):
        recorded(table, Case(name, precisions[0], inference="-" not in name))
if names(a.peer)[2:]:
    table = Table("Training beside PyTorch, the other cases",
                  ["case", "sequences", "bertc, sequences/s", "of products", "PyTorch", "of products", "its attention",
                   "GPU memory, GiB", "bertc is x as fast"])
    for name in names(a.peer)[2:]:
        beside(table, peer, Case(name, precisions[0]), done.get((name, precisions[0])))
peer.stop()
if peer.missing:
    show([f"\nNo peer here: {peer.missing}"])
elif peer.name:
    show([f"\n{peer.name}"])
show([f"\n{time.monotonic() - started:.0f} s"])
