"""BERT-GPU's claim in miniature: the same learning rate and number of steps for one rank of 100 and for four ranks of 100
(where BERT-GPU has one and four GPUs). How far apart do the two end, and does a scaled learning rate change that?

    python bench/batch.py --corpus PATH... --work FOLDER [--steps 2000] [--seeds 1,2,3] [--layers 2] [--hidden 128] [--length 64]
                          [--vocab_size 4000] [--learning_rate 1e-3] [--per_rank 100] [--ranks 4] [--max_time MINUTES]
                          [--options "--recipe fast"] [--task NAME:MEASURE=OPTIONS]... [--task_seeds 1]

A seed determines initial weights, order, masks and dropout; all runs with one seed begin with the same weights. --one_process
computes the larger batch in one process: the same curve up to rounding, which is checked over the first steps of the first
seed. Held-out text is the same for all. Results are kept: run it again to resume, also after --max_time. Prints, at each
evaluation, means and standard deviations over seeds, and the difference to the small batch with its standard error (pairs of
the same seed), for the same steps and for the same text. With --task (task_scores.py), the finished models are fine-tuned too,
and the last table has their scores, and the differences between those of the larger and the small batch, in percent of the
latter.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time

from task_scores import fine_tune, tasks

p = argparse.ArgumentParser()
p.add_argument("--corpus", nargs="+", required=True)
p.add_argument("--work", required=True)
p.add_argument("--bertc", default="build/bertc")
p.add_argument("--layers", type=int, default=2)
p.add_argument("--hidden", type=int, default=128)
p.add_argument("--vocab_size", type=int, default=4000)
p.add_argument("--length", type=int, default=64)
p.add_argument("--per_rank", type=int, default=100)
p.add_argument("--ranks", type=int, default=4)
p.add_argument("--steps", type=int, default=2000)
p.add_argument("--evaluations", type=int, default=8)
p.add_argument("--learning_rate", default="1e-3")
p.add_argument("--scales", default="none,linear,sqrt", help="of the larger batch's learning rate")
p.add_argument("--seeds", default="1,2,3")
p.add_argument("--precision", default="fp32")
p.add_argument("--one_process", action="store_true")
p.add_argument("--options", default="", help="of every run of pretrain")
p.add_argument("--task", action="append", default=[])
p.add_argument("--task_seeds", type=int, default=1, help="of fine-tuning, for each finished model")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--max_time", type=float, help="minutes, after which it stops")
a = p.parse_args()
began = time.monotonic()
small, large = a.per_rank, a.per_rank * a.ranks


def path(*parts):
    return os.path.join(a.work, *parts)


def bertc(*arguments):
    """Exit code 75: the time is up; the same command resumes."""
    left = []
    if a.max_time and arguments[0] == "pretrain":
        seconds = 60 * a.max_time - (time.monotonic() - began)
        if seconds < 10:
            sys.exit(75)
        left = ["--max_time", f"{seconds:.0f}s"]
    done = subprocess.run([a.bertc, *map(str, arguments), *left], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    if done.returncode not in (0, 75):
        sys.exit(f"bertc {' '.join(map(str, arguments))}\n{done.stderr[-3000:]}")
    if done.returncode == 75 and "--stop_at_step" not in arguments:
        sys.exit(75)


def train(name, seed, batch, *more):
    bertc("pretrain", "--quiet", "--data", path("text"), "--eval_data", path("text.held_out"), "--vocab_file", path("vocab.txt"),
          "--model", path("config.json"), "--out", path(f"{name}-{seed}"), "--num_train_steps", a.steps, "--num_warmup_steps",
          a.steps // 10, "--learning_rate", a.learning_rate, "--max_seq_length", a.length, "--eval_steps",
          a.steps // a.evaluations, "--eval_instances", 0, "--save_checkpoints_steps", 0, "--save_best", "false", "--seed", seed,
          "--precision", a.precision, "--log_steps", 10, "--threads", a.threads, *shlex.split(a.options), *batch, *more)


def rows(name, seed, key):
    """{step: values} of the lines that have the key."""
    if not os.path.exists(path(f"{name}-{seed}", "metrics.jsonl")):
        return {}
    lines = map(json.loads, open(path(f"{name}-{seed}", "metrics.jsonl")))
    return {line["step"]: line for line in lines if key in line}


def spread(values):
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}" if len(values) > 1 else f"{values[0]:.3f}"


def difference(ours, theirs):
    """The mean of the differences, and its standard error."""
    d = [x - y for x, y in zip(ours, theirs)]
    return f"{statistics.mean(d):+.3f} ({statistics.stdev(d) / len(d) ** 0.5:.3f})" if len(d) > 1 else f"{d[0]:+.3f}"


if a.steps % a.evaluations or a.evaluations % a.ranks:
    p.error("--steps must be a multiple of --evaluations, and that of --ranks")
os.makedirs(a.work, exist_ok=True)
if not os.path.exists(path("text.json")):
    bertc("vocab", "--quiet", "--corpus", *a.corpus, "--vocab_size", a.vocab_size, "--out", path("vocab.txt"))
    bertc("prepare", "--quiet", "--corpus", *a.corpus, "--vocab_file", path("vocab.txt"), "--held_out_fraction", 0.01, "--out",
          path("text"))
if not os.path.exists(path("config.json")):
    with open(path("config.json"), "w") as out:
        json.dump({"model_type": "bert", "hidden_size": a.hidden, "num_hidden_layers": a.layers, "num_attention_heads":
                   max(1, a.hidden // 64), "intermediate_size": 4 * a.hidden, "max_position_embeddings": 512}, out)
seeds = a.seeds.split(",")
ranks = ["--ranks", a.ranks, "--train_batch_size_per_gpu", small]
one = ["--train_batch_size", large]
names = {"none": f"{large}", "linear": f"{large}-linear", "sqrt": f"{large}-sqrt"}
if a.one_process:
    CHECKED = 50
    for name, batch in (("check-ranks", ranks), ("check-one", one)):
        if CHECKED not in rows(name, seeds[0], "loss"):
            train(name, seeds[0], batch, "--stop_at_step", CHECKED)
    curves = [rows(name, seeds[0], "loss") for name in ("check-ranks", "check-one")]
    if curves[0].keys() != curves[1].keys() or CHECKED not in curves[0]:
        sys.exit(75)
    far = max(abs(curves[0][s]["loss"] / curves[1][s]["loss"] - 1) for s in curves[0])
    print(f"{a.ranks} ranks of {small} beside one of {large}, {CHECKED} steps: losses within {far:.1e}", flush=True)
for seed in seeds:
    train(small, seed, ["--train_batch_size", small])
    for scale in a.scales.split(","):
        meant_for = ["--learning_rate_batch_size", small] if scale != "none" else []
        train(names[scale], seed, one if a.one_process else ranks, "--scale_learning_rate", scale, *meant_for)

print(f"{a.layers} x {a.hidden}, S={a.length}, rate {a.learning_rate}, {a.precision}, {len(seeds)} seeds, "
      f"{rows(small, seeds[0], 'eval_mlm_loss')[a.steps]['eval_predictions']:.0f} held-out predictions; differences to {small}: "
      "mean (standard error)")
print("| batch, learning rate | step | MLM loss | MLM accuracy, % | loss, same steps | accuracy, same steps | loss, same text "
      "| accuracy, same text |\n" + "|---" * 8 + "|")
every = a.steps // a.evaluations
scores = {name: [rows(name, seed, "eval_mlm_loss") for seed in seeds]
          for name in (f"{small}", *(names[scale] for scale in a.scales.split(",")))}
for name, runs in scores.items():
    for step in range(every, a.steps + 1, every):
        def of(which, at, key, scale):
            return [scale * run[at][key] for run in scores[which]]
        keys = (("eval_mlm_loss", 1), ("eval_mlm_accuracy", 100))
        cells = [spread(of(name, step, *key)) for key in keys]
        for at in (step, a.ranks * step):
            here = name != f"{small}" and at <= a.steps
            cells += [difference(of(name, step, *key), of(f"{small}", at, *key)) if here else "" for key in keys]
        print(f"| {name} | {step} | {' | '.join(cells)} |")

if a.task:
    names = [name for name, _, _ in tasks(a.task)]
    print("\n| batch, learning rate | " + " | ".join(names) + " |\n" + "|---" * (1 + len(names)) + "|")
    means = {}
    for name in scores:
        for seed in seeds:
            scored = fine_tune(a.bertc, path("tasks", f"{name}-{seed}.json"), path(f"{name}-{seed}", "final"), a.task, a.task_seeds,
                               a.threads)
            for task in names:
                means.setdefault((name, task), []).append(100 * statistics.mean(scored[task].values()))
    for name in scores:
        cells = [spread(means[name, task]) for task in names]
        if name != f"{small}":
            base = {task: statistics.mean(means[f"{small}", task]) for task in names}
            cells = [f"{cell} ({100 * (statistics.mean(means[name, task]) / base[task] - 1):+.2f} %)" for cell, task in zip(cells, names)]
        print(f"| {name} | {' | '.join(cells)} |")
