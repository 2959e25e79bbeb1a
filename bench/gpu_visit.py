"""What a short visit to a machine with one GPU should answer, the most important first; each part has a limit of its own, and
results are written as they come. For one who works on the CUDA back end.

    gpu_visit.py [--parts products,steps,...] [--seconds 560] [--old PROGRAMS] [--new PROGRAMS] [--model large] [--tokens N]
                 [--rounds 5] [--steps 10] [--device cuda] [--corpus PATH...]

PROGRAMS are folders with bertc and bench/step; --new is BUILD (default build), --old its folder old (dev/gpu_bundle.sh packs both); if
there is none, only the new ones are measured. Parts:

    text       the kernels for layers of few rows: tests, one text of 128, 32, and 256 tokens (BERT-base) without them, with them, and as
               measured, what was chosen for which layer, and the list of kernels
    steps      whole training steps at 128 and 512 tokens and with MLPerf's lengths, bf16 and FP8, old and new programs by turns
    products   copies; each product of BERT-large, forward, dgrad and wgrad, in bf16 and FP8 (dgrad with BERTC_FAST_DGRAD=0, too): TFLOP/s
               from rest and in the second half of --hot ms
    wgmma      attention with wgmma (Hopper): tests, bits beside those of mma, then steps by turns, bf16
    ranks      two ranks that share the GPU (NCCL 2.30 or later), BERT-base in bf16, old and new programs by turns, and their bits
    gelu       steps of a model with hidden_act gelu_new
    choices    steps at 128 tokens, new programs, algorithms chosen at rest (BERTC_PRODUCT_MS=0) and under load
    update     steps of twice as many tokens
    texts      the rates of 1, 64 and 88 texts of 128 tokens, BERT-base
    attention  ncu of the attention kernels at 128 and 512 tokens and mixed lengths, with dropout and without
    pretrain   BERT-base by --recipe fast for three minutes on --corpus (bench/gpu_pretrain.py)

With OUT in the environment, everything is written there: visit.md, visit.json, ncu.csv, and dmon.txt (`nvidia-smi dmon -s pc`,
clock and power during all parts). Needs only Python's standard library. To try it without a GPU:

    make build/emulated/bertc build/emulated/bench/step build/emulated/demo/world
    EMULATED_RACES=0 python3 bench/gpu_visit.py --old build/emulated --new build/emulated --model tiny --tokens 64 --length 64
        --vocab_size 64 --rounds 2 --steps 1 --hot 0 --parts text,steps,products,ranks,gelu,choices,update,texts
"""
import argparse
import csv
import io
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = {"text": 110, "steps": 240, "products": 100, "wgmma": 100, "ranks": 100, "gelu": 60, "choices": 60, "update": 40, "texts": 30,
         "attention": 100, "pretrain": 230}
p = argparse.ArgumentParser()
p.add_argument("--parts", default=",".join(PARTS))
p.add_argument("--seconds", type=float, default=560)
p.add_argument("--old", default=os.path.join(os.environ.get("BUILD", "build"), "old"))
p.add_argument("--new", default=os.environ.get("BUILD", "build"))
p.add_argument("--model", default="large")
p.add_argument("--tokens", type=int, default=33792, help="of a step")
p.add_argument("--length", type=int, default=512, help="of the longest sequences")
p.add_argument("--precisions", default="bf16,fp8", help="of the part steps")
p.add_argument("--vocab_size", type=int, default=30522)
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--steps", type=int, default=16, help="of a turn")
p.add_argument("--hot", type=int, default=700, help="milliseconds that a product is repeated for")
p.add_argument("--device", default="cuda")
p.add_argument("--corpus", nargs="*", default=[])
a = p.parse_args()
started, part_ends = time.monotonic(), 0.0
out = os.environ.get("OUT") or tempfile.mkdtemp()
programs = {side: path for side, path in (("old", a.old), ("new", a.new)) if os.path.exists(os.path.join(path, "bertc"))}
figures, shown = [], []
# A second command chooses no algorithms again.
built = max((int(os.path.getmtime(os.path.join(path, "bertc"))) for path in programs.values()), default=0)
caches = {side: os.path.join(tempfile.gettempdir(), f"bertc-visit-{built}", side) for side in ("old", "new", "rest")}
for folder in caches.values():
    os.makedirs(folder, exist_ok=True)
LENGTHS = {"128": (a.length // 4, ""), "512": (a.length, ""), "mlperf": (a.length, "mixed")}


class Lost(Exception):
    """A figure that is missing, and why."""


def say(line=""):
    print(line, flush=True)
    shown.append(line)
    with open(os.path.join(out, "visit.md"), "w") as f:
        f.write("\n".join(shown) + "\n")


def row(*cells):
    say("| " + " | ".join(str(c) for c in cells) + " |")


def head(title, *cells):
    say(f"\n{title}\n")
    row(*cells)
    say("|" + "---|" * len(cells))


def keep(**figure):
    figures.append(figure)
    with open(os.path.join(out, "visit.json"), "w") as f:
        json.dump(figures, f, indent=1)


def left():
    return max(1.0, part_ends - time.monotonic())


def environment(side, **more):
    return dict(os.environ, BERTC_DEVICE=a.device, BERTC_CACHE=caches[side], **more)


def command(arguments, **options):
    """Standard output of a command, which is ended with everything it started when the part's time is up."""
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options)
    try:
        text, errors = process.communicate(timeout=left())
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Lost("ended: the part's time is up") from None
    if process.returncode != 0:
        raise Lost((errors.strip().splitlines() or [f"status {process.returncode}"])[-1])
    return text


def sequences(length, mixed=False, tokens=0):
    return max(1, (2 if mixed else 1) * (tokens or a.tokens) // length)


def config(size=a.model, **changes):
    """A config.json of a model of this size, with changes."""
    layers, hidden = {"large": (24, 1024), "base": (12, 768), "tiny": (2, 128)}[size]
    path = os.path.join(tempfile.mkdtemp(), "config.json")
    with open(path, "w") as f:
        json.dump({**dict(model_type="bert", vocab_size=a.vocab_size, hidden_size=hidden, num_hidden_layers=layers,
                          num_attention_heads=hidden // 64, intermediate_size=4 * hidden, hidden_act="gelu", type_vocab_size=2,
                          max_position_embeddings=512, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1,
                          initializer_range=0.02, layer_norm_eps=1e-12), **changes}, f)
    return path


def bench(model, length, count, *options, mode="training", steps=3):
    return [os.path.join(a.new, "bertc"), "bench", "-q", "--json", "--device", a.device, "--model", model, "--mode", mode,
            "--max_seq_length", str(length), "--train_batch_size", str(count), "--steps", str(steps), *options]


# --- parts ----------------------------------------------------------------------------------------------------------

def products():
    head(f"Products alone, TFLOP/s: from rest, and sustained (second half of {a.hot} ms each)", "precision", "product", "M x O x I",
         "from rest", "sustained")
    model = config(num_hidden_layers=1)
    for precision, fast in (("bf16", "1"), ("fp8", "1"), ("fp8", "0")):
        results = [json.loads(command(bench(model, LENGTHS["128"][0], sequences(LENGTHS["128"][0]), "--precision", precision, "--library",
                                            steps=1 if hot else 3),
                                      env=environment("new", BERTC_FAST_DGRAD=fast, BERTC_LIBRARY_MS=str(hot)))) for hot in (0, a.hot)]
        keep(part="products", precision=precision, fast_dgrad=fast, results=results)
        for rest, hot in zip(*(r["library"] for r in results)):
            if fast == "1" or rest["product"] == "dgrad":
                row(precision + (" exact" if fast == "0" else ""), rest["product"],
                    f"{rest['rows']} x {rest['outputs']} x {rest['inputs']}", *(f"{r['flops_per_second'] / 1e12:.4g}" for r in (rest, hot)))
        row(precision, "plain, of bench", "", *(f"{r['gemm_flops_per_second'] / 1e12:.4g}" for r in results))
        row(precision, "copies, TB/s", "", *(f"{r.get('copy_bytes_per_second', 0) / 1e12:.3g}" for r in results))


class Steps:
    """A running bench/step."""
    def __init__(self, side, folder, model, precision, length, count, mixed, **more):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([os.path.join(folder, "bench", "step"), model, precision, "4", str(count), str(length)] +
                                        ([mixed] if mixed else []), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True, start_new_session=True, env=environment(side, **more))

    def run(self, steps):
        """The seconds of each of so many steps."""
        try:
            self.process.stdin.write(f"{steps}\n")
            self.process.stdin.flush()
        except OSError:
            pass
        line = self.process.stdout.readline()
        if not line.endswith("\n"):
            self.errors.seek(0)
            raise Lost(self.errors.read().decode(errors="replace").strip().splitlines()[-1:] or "ended")
        return [float(x) for x in line.split()]

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def by_turns(what, sides, model, precision, length, mixed="", tokens=0):
    """Runs steps of several programs by turns: all are loaded at the same time, so that they meet the same chip."""
    count, running, times = sequences(length, mixed, tokens), {}, {}
    signal.setitimer(signal.ITIMER_REAL, left())
    try:
        for side, (folder, cache, more) in sides.items():
            running[side] = Steps(cache, folder, model, precision, length, count, mixed, **more)
            running[side].run(3)  # chooses the algorithms, then records graphs
        for _ in range(a.rounds):
            for side, steps in running.items():
                times.setdefault(side, []).append(statistics.mean(steps.run(a.steps)))
    except Lost as e:
        row(what, precision, f"({e})", "", "")
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for steps in running.values():
            steps.end()
    keep(part="steps", what=what, precision=precision, length=length, sequences=count, mixed=mixed, seconds=times)
    means = {side: statistics.median(t) for side, t in times.items()}
    first, last = list(means.values())[0], list(means.values())[-1]
    row(what, precision, "; ".join(f"{side} {1e3 * t:.2f} ({1e3 * min(times[side]):.2f} to {1e3 * max(times[side]):.2f})"
                                   for side, t in means.items()),
        "; ".join(f"{count / t:,.1f}" for t in means.values()), f"{first / last:.4f}")


STEP_HEAD = ("case", "precision", "ms of a step: median of the turns (least to most)", "sequences/s", "first / last")


def steps():
    head(f"Whole steps of {a.tokens} tokens, by turns of {a.steps} steps", *STEP_HEAD)
    sides, model = {side: (folder, side, {}) for side, folder in programs.items()}, config()
    for precision in a.precisions.split(","):
        for name, (length, mixed) in LENGTHS.items():
            by_turns(f"{a.model}-{name}", sides, model, precision, length, mixed)


def choices():
    head("Algorithms chosen at rest and under load; FP8's dgrad with exact and fast sums", *STEP_HEAD)
    length, model = LENGTHS["128"][0], config()
    by_turns(f"{a.model}-128", {"at rest": (a.new, "rest", {"BERTC_PRODUCT_MS": "0"}), "under load": (a.new, "new", {})}, model, "bf16",
             length)
    by_turns(f"{a.model}-128", {"exact": (a.new, "new", {"BERTC_FAST_DGRAD": "0"}), "fast": (a.new, "new", {"BERTC_FAST_DGRAD": "1"})},
             model, "fp8", length)


def gelu():
    head("erf and tanh GELU", *STEP_HEAD)
    for name in ("128", "512"):
        for side, act in (("erf", "gelu"), ("tanh", "gelu_new")):
            by_turns(f"{a.model}-{name} {side}", {"new": (a.new, "new", {})}, config(hidden_act=act), "bf16", LENGTHS[name][0])


def update():
    head("Twice the tokens of an update", *STEP_HEAD)
    for tokens in (a.tokens, 2 * a.tokens):
        by_turns(f"{tokens} tokens", {"new": (a.new, "new", {})}, config(), "bf16", LENGTHS["128"][0], tokens=tokens)


def profile(what, kernels, sections, arguments, count, **more):
    """Kernels by ncu, one row of metrics each; all of it is added to ncu.csv."""
    options = [x for s in sections for x in ("--section", s)] or ["--metrics", "gpu__time_duration.sum"]
    text = command(["ncu", "--target-processes", "all", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
                    *options, "--kernel-name-base", "demangled", "--kernel-name", f"regex:{kernels}", "--launch-count", str(count), *arguments],
                   env=environment("new", BERTC_GRAPHS="0", **more))
    lines = [line for line in text.splitlines() if line.startswith('"')]
    with open(os.path.join(out, "ncu.csv"), "a") as f:
        f.write("\n".join([f"# {what}", *lines]) + "\n")
    return list(csv.DictReader(io.StringIO("\n".join(lines))))[1:]  # without the units


SECTIONS = ["SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables", "SchedulerStats",
            "WarpStateStats", "InstructionStats", "Occupancy", "LaunchStats"]


def number(text):
    return float(text.replace(",", "")) if text else 0.0


def greatest(kernel, pattern, count):
    """The greatest metrics whose names match, which differ between versions of ncu: "alu 62.1, tensor 31.0"."""
    found = {m.group(1): number(v) for m, v in ((re.search(pattern, k), v) for k, v in kernel.items()) if m}
    return ", ".join(f"{name} {found[name]:.3g}" for name in sorted(found, key=found.get, reverse=True)[:count])


def attention():
    head("Attention by ncu (all metrics in ncu.csv)", "case", "kernel", "us", "issue slots, %", "pipes, %", "stalls, warps for each issue")
    for name, (length, mixed) in LENGTHS.items():
        for dropout in (0.1, 0):
            model = config(num_hidden_layers=1, attention_probs_dropout_prob=dropout)
            try:
                kernels = profile(f"attention {name} dropout {dropout}", "attention_.*(fwd|bwd)", SECTIONS,
                                  bench(model, length, sequences(length, mixed), *(["--mixed_lengths"] if mixed else []), "--precision",
                                        "bf16", steps=1), count=6)
            except Lost as e:
                row(name, f"({e})", "", "", "", "")
                continue
            for k in kernels:
                row(f"{name}, dropout {dropout}", k["Kernel Name"][:60], f"{number(k['gpu__time_duration.sum']) / 1e3:.1f}",
                    greatest(k, r"^smsp__(issue_active)\.avg\.pct_of_peak_sustained_active", 1),
                    greatest(k, r"_pipe_(\w+)\.\w+\.pct_of_peak_sustained_active", 8),
                    greatest(k, r"average_warps_issue_stalled_(\w+)_per_issue_active", 6))


def train(side, model, *options, **more):
    """A short training in bf16 on the demo's world: its weights, and the seconds of a step, the second half of the steps on average."""
    folder = tempfile.mkdtemp()
    command([os.path.join(a.new, "demo", "world"), "write", os.path.join(folder, "world")])
    command([os.path.join(programs[side], "bertc"), "pretrain", "-q", "--corpus", os.path.join(folder, "world", "text"), "--out",
             os.path.join(folder, "run"), "--device", a.device, "--precision", "bf16", "--model", model, "--vocab_size", "1000",
             "--log_steps", "1", "--eval_steps", "0", "--save_checkpoints_steps", "0", *options], env=environment(side, **more))
    with open(os.path.join(folder, "run", "metrics.jsonl")) as f:
        seconds = [line["seconds"] for line in map(json.loads, f) if "loss" in line]
    with open(os.path.join(folder, "run", "final", "model.safetensors"), "rb") as f:
        return f.read(), (seconds[-1] - seconds[len(seconds) // 2 - 1]) / (len(seconds) - len(seconds) // 2)


def ranks():
    head("Two ranks that share the GPU, bf16", "program", "ms of a step: median of the turns (least to most)", "bits")
    weights, times = {}, {}
    for _ in range(2):
        for side in programs:
            weights[side], seconds = train(side, "base" if a.model == "large" else a.model, "--ranks", "2", "--max_seq_length",
                                           str(LENGTHS["128"][0]), "--train_batch_size", str(sequences(LENGTHS["128"][0]) // 4),
                                           "--num_train_steps", str(2 * a.steps), CUDA_VISIBLE_DEVICES="0",
                                           NCCL_MULTI_RANK_GPU_ENABLE="1", NCCL_MAX_CTAS="4")
            times.setdefault(side, []).append(1e3 * seconds)
    keep(part="ranks", milliseconds=times)
    for side, t in times.items():
        row(side, f"{statistics.median(t):.2f} ({min(t):.2f} to {max(t):.2f})", "the same" if weights[side] == weights["new"] else "others")


def wgmma():
    test = os.path.join(a.new, "tests", "gpu", "test_operations")
    for precision in ("bf16", "f16"):
        try:
            command([test], env=environment("new", BERTC_ATTENTION="wgmma", BERTC_TEST_CASES="attention", BERTC_TEST_TYPE=precision))
            say(f"attention with wgmma, {precision}: every test passes")
        except Lost as e:
            say(f"attention with wgmma, {precision}: {e}")
    weights = [train("new", "mini", "--max_seq_length", "256", "--train_batch_size", "32", "--num_train_steps", "10",
                     BERTC_ATTENTION=kernel)[0] for kernel in ("mma", "wgmma")]
    say(f"weights after ten steps of a small model: {'the same bits' if weights[0] == weights[1] else 'other bits'}")
    head("Steps with both kinds of attention", *STEP_HEAD)
    for name, (length, mixed) in LENGTHS.items():
        by_turns(f"{a.model}-{name}", {side: (a.new, "new", {"BERTC_ATTENTION": side}) for side in ("mma", "wgmma")}, config(), "bf16",
                 length, mixed)


def passes(model, length, count, heads, turns=1, **more):
    """Seconds of a forward pass, of each turn."""
    arguments = bench(model, length, count, "--precision", "bf16", "--heads", heads, mode="inference", steps=2 * a.steps)
    return [json.loads(command(arguments, env=environment("new", **more)))["inference"]["seconds"] for _ in range(turns)]


# BERTC_FEW_ROWS: the library's products, kernels of ours, and what is chosen by measurement, layer by layer.
LAYERS = {"usual": {"BERTC_FEW_ROWS": "0"}, "few rows": {"BERTC_FEW_ROWS": "1"}, "measured": {}}


def text():
    try:
        command([os.path.join(a.new, "tests", "gpu", "test_few_rows")], env=environment("new"))
        say("layers of few rows: every test passes")
    except (Lost, OSError) as e:
        say(f"layers of few rows: {e}")
    head("One text through the encoder of BERT-base in bf16, by kernels for its layers: ms, median of the turns (least to most)", "tokens",
         *LAYERS)
    model, length = config("base" if a.model == "large" else a.model), LENGTHS["128"][0]
    for tokens in (length, length // 4, 2 * length):
        cells = []
        for layers, more in LAYERS.items():
            try:
                times = passes(model, tokens, 1, "none", 2, **more)
                keep(part="text", tokens=tokens, layers=layers, seconds=times)
                cells.append(f"{1e3 * statistics.median(times):.4f} ({1e3 * min(times):.4f} to {1e3 * max(times):.4f})")
            except Lost as e:
                cells.append(f"({e})")
        row(tokens, *cells)
    for lines in sorted(os.listdir(caches["new"])):
        with open(os.path.join(caches["new"], lines)) as f:
            chosen = [line.split() for line in f if line.startswith("few rows ")]
        say("chosen by measurement: " + ("; ".join(" ".join(c[2:c.index("=")]) + (": few rows" if int(c[c.index("=") + 1], 16) else ": usual")
                                                   for c in chosen) or "nothing"))
    for layers in ("usual", "few rows"):
        kernels = profile(f"one text, {layers}", ".", [], bench(model, length, 1, "--precision", "bf16", "--heads", "none", mode="inference",
                                                              steps=1), count=300, **LAYERS[layers])
        head(f"Kernels of the first passes with one text, {layers}", "kernel", "launches", "us, median", "us in all")
        each = {}
        for k in kernels:
            each.setdefault(k["Kernel Name"].split("(")[0][:90], []).append(number(k["gpu__time_duration.sum"]) / 1e3)
        for name, times in sorted(each.items(), key=lambda x: -sum(x[1])):
            row(name, len(times), f"{statistics.median(times):.2f}", f"{sum(times):.1f}")


def texts():
    head("Forward pass of BERT-base in bf16, with the heads and losses of pre-training or the encoder alone", "texts", "heads", "ms", "texts/s")
    model, length = config("base" if a.model == "large" else a.model), LENGTHS["128"][0]
    for count, heads in ((1, "pretraining"), (64, "none"), (88, "none")):
        seconds = passes(model, length, count, heads)[0]
        keep(part="texts", texts=count, heads=heads, seconds=seconds)
        row(count, heads, f"{1e3 * seconds:.4f}", f"{count / seconds:,.0f}")


def pretrain():
    command([sys.executable, os.path.join(HERE, "gpu_pretrain.py"), "--corpus", *a.corpus, "--seconds", "200", "--recipe", "fast",
             "--length", "128", "--batch", "512", "--work", tempfile.mkdtemp(), "--device", a.device,
             "--bertc", os.path.join(a.new, "bertc")], env=environment("new"))


def late(number, frame):
    raise Lost("ended: the part's time is up")


signal.signal(signal.SIGALRM, late)
monitor = None
try:
    with open(os.path.join(out, "dmon.txt"), "w") as f:
        monitor = subprocess.Popen(["nvidia-smi", "dmon", "-s", "pc", "-o", "T"], stdout=f, stderr=f)
    say(subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit", "--format=csv,noheader"],
                       capture_output=True, text=True, timeout=30, check=True).stdout.strip())
except (OSError, subprocess.SubprocessError):
    say("no nvidia-smi here")
try:
    for name in a.parts.split(","):
        spare = a.seconds - (time.monotonic() - started)
        if spare < 10 or (name == "pretrain" and not a.corpus):
            say(f"\n{name}: left out")
            continue
        begun = time.monotonic()
        part_ends = begun + min(PARTS[name], spare)
        try:
            globals()[name]()
        except (Lost, OSError, ValueError, KeyError, IndexError) as e:
            say(f"\n{name}: {type(e).__name__}: {e}")
        say(f"\n{name}: {time.monotonic() - begun:.0f} s; clock {time.strftime('%H:%M:%S')}")
finally:
    if monitor:
        monitor.terminate()
