"""One recipe in several precisions, several seeds each (initial weights, order, masks, dropout): is the difference of the
precisions within that of the seeds, and how much faster is one than the other?

    python bench/precision.py --data PREFIX [--eval_data PREFIX] --vocab_file V --work FOLDER [--model tiny] [--steps 1000] [--batch 32]
                              [--length 128] [--seeds 1,2,3] [--learning_rate 1e-3] [--threads 1]
                              [--precisions bf16,fp32] [--device cpu]

The others are compared with the last of the precisions (fp8,bf16,fp32). Runs that are already in FOLDER are not repeated.
Prints held-out losses and accuracies as mean and standard deviation over seeds at each evaluation, the mean difference between
runs with the same seed and its standard error, and the processor time of training.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys

p = argparse.ArgumentParser()
p.add_argument("--data", required=True)
p.add_argument("--eval_data", help="instead of the documents held out of --data")
p.add_argument("--vocab_file", required=True)
p.add_argument("--work", required=True)
p.add_argument("--model", default="tiny")
p.add_argument("--steps", type=int, default=1000)
p.add_argument("--batch", type=int, default=32)
p.add_argument("--length", type=int, default=128)
p.add_argument("--learning_rate", default="1e-3")
p.add_argument("--seeds", default="1,2,3")
p.add_argument("--precisions", default="bf16,fp32")
p.add_argument("--threads", default="1")
p.add_argument("--device", default="cpu")
p.add_argument("--bertc", default="build/bertc")
a = p.parse_args()
names = ("mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy")


def train(precision, seed):
    """{step: held-out metrics} and the processor seconds of a run."""
    out = os.path.join(a.work, f"{precision}-{seed}")
    record = os.path.join(a.work, f"{precision}-{seed}.seconds")
    if not os.path.exists(record):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [a.bertc, "pretrain", "--data", a.data, "--vocab_file", a.vocab_file, "--model", a.model, "--out", out,
             "--fresh", "--num_train_steps", str(a.steps), "--num_warmup_steps", str(a.steps // 10), "--learning_rate",
             a.learning_rate, "--train_batch_size", str(a.batch), "--max_seq_length", str(a.length), "--eval_steps",
             str(a.steps // 4), "--eval_instances", "0", "--save_checkpoints_steps", "0", "--device", a.device, "--precision",
             precision, "--seed", seed, "--threads", a.threads, *(["--eval_data", a.eval_data] if a.eval_data else [])], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr[-2000:])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(record, "w") as f:
            f.write(str(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    rows = [json.loads(line) for line in open(os.path.join(out, "metrics.jsonl"))]
    evaluations = {row["step"]: row for row in rows if "eval_mlm_loss" in row}
    if not evaluations:
        sys.exit(f"{out}: nothing was evaluated: give --eval_data, or shards with documents held out")
    return evaluations, float(open(record).read())


seeds = a.seeds.split(",")
os.makedirs(a.work, exist_ok=True)
runs = {(precision, seed): train(precision, seed) for seed in seeds for precision in a.precisions.split(",")}
precisions = a.precisions.split(",")
others, last = precisions[:-1], precisions[-1]
if not others or len(seeds) < 2:
    sys.exit()
print(f"{a.model}, S={a.length}, {a.batch} instances per step, {a.steps} steps, rate {a.learning_rate}, {len(seeds)} seeds")
for step in sorted(runs[last, seeds[0]][0]):
    for name in names:
        values = {precision: [runs[precision, seed][0][step][f"eval_{name}"] for seed in seeds] for precision in precisions}
        line = f"step {step:5} {name:13}"
        for precision, v in values.items():
            line += f" {precision} {statistics.mean(v):.4f} +- {statistics.stdev(v):.4f}  "
        for precision in others:
            differences = [x - y for x, y in zip(values[precision], values[last])]
            line += (f" {precision} - {last} {statistics.mean(differences):+.4f}, standard error "
                     f"{statistics.stdev(differences) / len(seeds) ** 0.5:.4f}  ")
        print(line.rstrip())
seconds = {precision: statistics.mean(runs[precision, seed][1] for seed in seeds) for precision in precisions}
print("processor seconds of a run: " + ", ".join(f"{precision} {seconds[precision]:.0f}" for precision in precisions))
