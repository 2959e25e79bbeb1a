"""Quality for time: bertc's recipes and two of PyTorch's on the same text for the same time, scored on the same masks and tasks.

    quality.py --corpus PATH... --out FOLDER [--budget time|work] [--minutes 15 60] [--threads 2] [--run_threads N] [--model mini]
               [--vocab_size 16000] [--task NAME:MEASURE=OPTIONS]... [--seeds 5] [--only PATTERN]... [--list]

--budget time gives each run so many minutes of the clock, and needs a machine on which nothing else runs. --budget work gives it the
updates that --threads threads make in these minutes: before a recipe's first run, its processor seconds an update are measured on one
thread (the smallest of three measurements, kept in FOLDER/costs.json), and a minute is 60 times --threads of them. Such runs may share
their machine, at low priority and on any number of --run_threads. They assume that threads scale perfectly, count training alone
(not loading, saving or evaluating), and are scored ten times on the way, on the first 400 held-out instances.

Runs, in this order:
  every time      original, fast, run_mlm, cramming (the two last in PyTorch: quality_peer.py)
  longest time    fast in a third and in a fifth of it: what the best and the plainest PyTorch run reach should be reached by then
  shortest time   fast without each of its changes, and with more masked words
All have the same model shape, vocabulary, training text and held-out text. Scores: masked words of the held-out documents, 15 %, always the
same (made once with `bertc instances`); tasks by `bertc finetune`, mean and standard deviation over seeds, also for a model that was not
trained. OPTIONS are those of finetune: --task "sst2:eval_accuracy=--task sst-2 --data_dir glue/sst2 --num_train_epochs 3".
(Cramming's model loads in nothing but its script, and has no task scores.)

What is finished is kept in FOLDER, interrupted runs go on where they were, FOLDER/results.md is written anew after each result: run the same
command until it says that all is done. FOLDER/stop (an empty file) ends it after the run that is under way.
Needs: make, and for run_mlm and cramming a Python with torch and transformers (CPU builds); without them --only bertc.
"""
import argparse
import fnmatch
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile

from corpus import prepare
from encoders import need
from task_scores import fine_tune, read_json, spread, tasks, write_json

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--corpus", nargs="+", required=True)
p.add_argument("--out", required=True)
p.add_argument("--build", default="build")
p.add_argument("--minutes", type=float, nargs="+", default=[15, 60])
p.add_argument("--budget", choices=["time", "work"], default="time")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--run_threads", type=int, help="with --budget work: threads to run on; --threads says only what a minute is")
p.add_argument("--model", default="mini", help="tiny, mini, small")
p.add_argument("--vocab_size", type=int, default=16000)
p.add_argument("--task", action="append", default=[])
p.add_argument("--seeds", type=int, default=5, help="of fine-tuning; pre-training has one")
p.add_argument("--only", action="append", default=[], help="names of runs, with * and ?; bertc: those without PyTorch")
p.add_argument("--list", action="store_true", help="list the runs and end")
a = p.parse_args()
if a.run_threads and a.budget == "time":
    p.error("--run_threads needs --budget work")
threads = a.run_threads or a.threads
bertc = os.path.join(a.build, "bertc")
here = os.path.dirname(os.path.abspath(__file__))
SHAPES = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512)}
LAYERS, HIDDEN = SHAPES[a.model]
# Options that undo a single change of `fast`.
CHANGES = {
    "masked": "--masked_lm_prob 0.15",
    "running_text": "--next_sentence pairs",
    "full_length": "--short_seq_prob 0.1",
    "no_dropout": "--hidden_dropout_prob 0.1 --attention_probs_dropout_prob 0.1",
    "beta2": "--adam_beta2 0.999",
    "warmup": "--warmup_proportion 0.1",
    "neighbors": "--init_attention random",
}
# Techniques that others use and `fast` does not.
ADDITIONS = {
    "masked_0.3": "--masked_lm_prob 0.3",
    "masked_0.4": "--masked_lm_prob 0.4",
    "wsd": "--schedule wsd",
    "batch_32": "--train_batch_size 32",
    "batch_64": "--train_batch_size 64",
    "rate_5e-4": "--learning_rate 5e-4",
    "rate_2e-3": "--learning_rate 2e-3",
    "modernbert": "--form modernbert",
}
# Options that do not change the cost of an update: runs that differ only in these get the same number of updates.
SAME_WORK = ("--adam_beta2", "--warmup_proportion", "--init_attention", "--schedule", "--learning_rate", "--train_batch_size")


def runs():
    """All of them: (name, kind, minutes, options of bertc); kind is a recipe of bertc or of quality_peer.py."""
    out = []
    short, long = min(a.minutes), max(a.minutes)
    for minutes in sorted(a.minutes):
        for kind in ("original", "fast", "run_mlm", "cramming"):
            out.append((f"{kind}-{minutes:g}", kind, minutes, ""))
        if minutes == long:
            out += [(f"fast-{long / n:g}", "fast", long / n, "") for n in (3, 5) if long / n not in a.minutes]
        if minutes == short:
            out += [(f"fast-{short:g}-without-{name}", "fast", short, options) for name, options in CHANGES.items()]
            out += [(f"fast-{short:g}-with-{name}", "fast", short, options) for name, options in ADDITIONS.items()]
    return out


def wanted(name, kind):
    return not a.only or any(fnmatch.fnmatch(name, only) or (only == "bertc" and kind in ("original", "fast")) for only in a.only)


def path(*parts):
    return os.path.join(a.out, *parts)


def run(*command, **kw):
    return subprocess.run([str(x) for x in command], check=True, **kw)


def pretraining(folder, *options):
    """The command line of a run of bertc."""
    return [bertc, "pretrain", "--data", path("text"), "--eval_file", path("curve.tfrecord"), "--vocab_file", path("vocab.txt"),
            "--model", a.model, "--max_seq_length", 128, "--no_save_best", "--keep_checkpoints", 1, "--out", folder,
            "--no_progress", "--quiet", *options]


def processor_seconds(command):
    child = subprocess.Popen([str(x) for x in command])
    _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"quality.py: {command[0]} failed while its work was measured")
    return used.ru_utime + used.ru_stime


def kept(key, measure):
    """A measurement that is made only once."""
    costs = read_json(path("costs.json"))
    if key not in costs:
        costs[key] = measure()
        write_json(path("costs.json"), costs)
    return costs[key]


def update_cost(recipe, batch, options):
    """Processor seconds of an update of bertc: the cost of 20 more of them. Options that do not change the work of an update
    are not part of the key."""
    options = [word for option in zip(options[::2], options[1::2]) if option[0] not in SAME_WORK for word in option]
    def once():
        used = []
        for steps in (5, 25):
            with tempfile.TemporaryDirectory(dir=a.out) as folder:
                used.append(processor_seconds(pretraining(
                    folder, "--recipe", recipe, "--train_batch_size", batch, *options, "--num_train_steps", steps, "--eval_steps", 0,
                    "--save_checkpoints_steps", 0, "--threads", 1)))
        return (used[1] - used[0]) / 20
    return kept(f"{recipe} {batch} {shlex.join(options)}".strip(), lambda: min(once() for _ in range(3)))


def peer(recipe, *options):
    return [sys.executable, os.path.join(here, "quality_peer.py"), "--recipe", recipe, "--data", path("text"), "--held_out",
            path("held_out.tfrecord"), "--curve", path("curve.tfrecord"), "--vocab", path("vocab.txt"), "--layers", LAYERS, "--hidden",
            HIDDEN, *options]


def work_options(recipe, seconds, options):
    """The batch size and number of updates that use up a budget; the batch size is the one that `bertc pretrain --time` would
    choose."""
    budget, batch = seconds * a.threads, 64
    given = "--train_batch_size" in options
    while not given and batch > 16 and budget / (update_cost(recipe, 16, options) * batch / 16) < 4000:
        batch //= 2
    batch = int(options[options.index("--train_batch_size") + 1]) if given else batch
    steps = max(1, math.floor(budget / update_cost(recipe, batch, options)))
    return ["--train_batch_size", batch, "--num_train_steps", steps, "--eval_steps", max(1, steps // 10)]


def train(name, kind, minutes, options):
    """The folder of the finished model (None if bertc cannot load it) and its scores."""
    folder = path("runs", name)
    seconds = round(60 * minutes)
    if kind in ("run_mlm", "cramming"):
        if not os.path.exists(os.path.join(folder, "result.json")):
            costs = []
            if a.budget == "work":
                measure = lambda: json.loads(run(*peer(kind, "--measure"), stdout=subprocess.PIPE).stdout)
                costs = ["--costs", *(cost / a.threads for cost in kept(kind, measure))]
            run(*peer(kind, "--seconds", seconds, "--out", folder, "--threads", threads, *costs), stdout=subprocess.DEVNULL)
        scores = json.load(open(os.path.join(folder, "result.json")))
        return (os.path.join(folder, "final") if kind == "run_mlm" else None), scores
    options = shlex.split(options)
    budget = work_options(kind, seconds, options) if a.budget == "work" else ["--time", f"{seconds}s", "--eval_steps", 0]
    run(*pretraining(folder, "--recipe", kind, "--threads", threads, *options, *budget))
    final = os.path.join(folder, "final")
    done = run(bertc, "evaluate", "--model", final, "--input_file", path("held_out.tfrecord"), "--precision", "fp32", "--threads",
               threads, "--json", stdout=subprocess.PIPE)
    scores = {k: v for k, v in json.loads(done.stdout).items() if k in ("mlm_loss", "mlm_accuracy", "predictions")}
    last = [r for r in metrics(name) if "loss" in r][-1]
    return final, dict(scores, step=last["step"], tokens=last["tokens"], seconds=last["seconds"])


def metrics(name):
    file = path("runs", name, "metrics.jsonl")
    return [json.loads(line) for line in open(file)] if os.path.exists(file) else []


def curve(name):
    """Accuracy in percent on the first held-out instances, at every evaluation; one that was repeated after an interruption
    counts once."""
    return list({r["step"]: 100 * r["eval_mlm_accuracy"] for r in metrics(name) if "eval_mlm_accuracy" in r}.values())


def goal(results, reached, slow):
    """Whether one run reaches the score of another."""
    if reached not in results or not [s for s in slow if s in results]:
        return None
    best = max((s for s in slow if s in results), key=lambda s: results[s]["mlm_accuracy"])
    mine, theirs = (100 * results[r]["mlm_accuracy"] for r in (reached, best))
    return f"{reached} reaches {mine:.2f} %, {best} {theirs:.2f} %: {'reached' if mine >= theirs else 'not reached'}"


def report():
    names = [name for name, _, _ in tasks(a.task)]
    results, lines = {}, []
    head = ["run", "updates", "million tokens", "masked-word loss", "accuracy", *names]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name in ["untrained"] + [r[0] for r in runs()]:
        scores, scored = read_json(path("runs", name + ".json")), read_json(path("tasks", name + ".json"))
        if scores:
            results[name] = scores
        if not scores and not scored:
            continue
        row = [name] + ([f"{scores['step']:,}", f"{scores['tokens'] / 1e6:.1f}", f"{scores['mlm_loss']:.3f}",
                         f"{100 * scores['mlm_accuracy']:.2f} %"] if scores else [""] * 4)
        lines.append("| " + " | ".join(row + [spread(scored.get(task, {})) for task in names]) + " |")
    long = max(a.minutes)
    goals = [goal(results, f"fast-{long / 3:g}", [f"run_mlm-{long:g}", f"cramming-{long:g}"]),
             goal(results, f"fast-{long / 5:g}", [f"run_mlm-{long:g}"])]
    kind = {"time": "minutes of the clock", "work": f"minutes of {a.threads} threads' work, counted in processor time"}[a.budget]
    curves = "".join(f"- {name}: " + ", ".join(f"{accuracy:.2f}" for accuracy in curve(name)) + "\n" for name in results
                     if curve(name) and a.budget == "work")
    text = (f"{a.model} ({LAYERS} x {HIDDEN}), vocabulary {a.vocab_size}, {a.threads} threads; names contain the budget in {kind}\n\n"
            + "\n".join(lines) + "\n" + "".join(f"\n- {g}" for g in goals if g) + "\n"
            + ("\nAccuracy in per cent after each tenth of the budget, on the first 400 held-out instances:\n\n" + curves if curves else ""))
    with open(path("results.md"), "w") as file:
        file.write(text)
    return text


def main():
    if a.list:
        print("\n".join(f"{name:32} {minutes:6g} minutes" for name, kind, minutes, _ in runs() if wanted(name, kind)))
        return
    if any(kind in ("run_mlm", "cramming") and wanted(name, kind) for name, kind, _, _ in runs()):
        need("torch", "transformers")
    os.makedirs(path("runs"), exist_ok=True)
    prepare(bertc, a.corpus, a.out, a.vocab_size)
    if a.task and not os.path.exists(path("runs", "untrained", "final")):
        run(*pretraining(path("runs", "untrained"), "--num_train_steps", 1, "--learning_rate", 0, "--train_batch_size", 1,
                         "--eval_steps", 0, "--threads", threads))
    if a.task:
        fine_tune(bertc, path("tasks", "untrained.json"), path("runs", "untrained", "final"), a.task, a.seeds, threads)
    for name, kind, minutes, options in [run for run in runs() if wanted(*run[:2])]:
        if os.path.exists(path("stop")):
            print(f"stopped before {name}: remove {path('stop')} and run the same command again")
            return
        if not os.path.exists(path("runs", name + ".json")):
            model, scores = train(name, kind, minutes, options)
            write_json(path("runs", name + ".json"), scores)
            report()
        model = None if kind == "cramming" else path("runs", name, "final")
        if model and a.task:
            fine_tune(bertc, path("tasks", name + ".json"), model, a.task, a.seeds, threads)
            report()
    print(report() + "\nall is done")


main()
