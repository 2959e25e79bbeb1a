"""The same recipe in both programs: the same text, model, initial weights, batches and recipe in bertc and in PyTorch + transformers,
with several seeds; both models are scored by `bertc evaluate` on the same held-out documents.

    same_recipe.py --corpus PATH... --out FOLDER [--layers 2 --hidden 128 --vocab_size 8192 --batch 64 --steps 1500
               --seeds 3 --precision bf16 --threads 1 --learning_rate 1e-3]

A seed determines initial weights, order, masks and dropout (whose draws differ between the two programs). PyTorch gets the
batches padded to their longest sequence and applies its head to masked rows only; bertc computes no padding. Runs of the two
alternate, so that they are timed in the same hours. Finished runs are kept: run it again to continue with the next one.
Needs: make, make build/dev/dump_batches, and a Python with torch, transformers and safetensors.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

p = argparse.ArgumentParser()
p.add_argument("--corpus", nargs="+", required=True)
p.add_argument("--out", required=True)
p.add_argument("--build", default="build")
p.add_argument("--layers", type=int, default=2)
p.add_argument("--hidden", type=int, default=128)
p.add_argument("--vocab_size", type=int, default=8192)
p.add_argument("--length", type=int, default=128)
p.add_argument("--batch", type=int, default=64)
p.add_argument("--steps", type=int, default=1500)
p.add_argument("--seeds", type=int, default=3)
p.add_argument("--precision", default="bf16")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--learning_rate", default="1e-3")
a = p.parse_args()
bertc = os.path.join(a.build, "bertc")
here = os.path.dirname(os.path.abspath(__file__))
warmup = a.steps // 10
os.makedirs(a.out, exist_ok=True)


def path(*parts):
    return os.path.join(a.out, *parts)


def run(*command, **kw):
    return subprocess.run([str(x) for x in command], check=True, **kw)


def last_line(file):
    """The last training line of a metrics file."""
    return [r for r in map(json.loads, open(file)) if "loss" in r][-1]


def initial_weights(seed):
    import torch
    from transformers import BertConfig, BertForPreTraining
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=a.vocab_size, hidden_size=a.hidden, num_hidden_layers=a.layers,
                        num_attention_heads=a.hidden // 64, intermediate_size=4 * a.hidden)
    BertForPreTraining(config).save_pretrained(path(f"init{seed}"))
    shutil.copy(path("vocab.txt"), path(f"init{seed}"))


def score(folder):
    """The held-out scores of a model folder, over all instances."""
    done = run(bertc, "evaluate", "--model", folder, "--data", path("text.held_out"), "--precision", "fp32",
               "--max_seq_length", a.length, "--eval_instances", 0, "--json", stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def train_bertc(seed):
    out = path(f"bertc{seed}")
    run(bertc, "pretrain", "--data", path("text"), "--eval_data", path("text.held_out"), "--vocab_file",
        path("vocab.txt"), "--model", path(f"init{seed}"), "--out", out, "--num_train_steps", a.steps,
        "--num_warmup_steps", warmup, "--train_batch_size", a.batch, "--gradient_accumulation_steps", 1,
        "--max_seq_length", a.length, "--learning_rate", a.learning_rate, "--seed", seed, "--precision", a.precision,
        "--threads", a.threads, "--save_checkpoints_steps", 0, "--eval_steps", 0, "--quiet")
    return os.path.join(out, "final"), last_line(os.path.join(out, "metrics.jsonl"))["seconds"]


def train_torch(seed):
    out = path(f"torch{seed}")
    run(os.path.join(a.build, "dev/dump_batches"), path("text"), path("vocab.txt"), seed, a.length, a.batch, 1,
        a.steps, path("batches.safetensors"))
    run(sys.executable, os.path.join(here, "../dev/train_torch.py"), "--init", path(f"init{seed}"), "--batches",
        path("batches.safetensors"), "--steps", a.steps, "--total_steps", a.steps, "--warmup", warmup,
        "--learning_rate", a.learning_rate, "--dropout", 0.1, "--precision", a.precision, "--threads", a.threads,
        "--seed", seed, "--save", out, "--save_every", 0, "--out", path(f"torch{seed}.jsonl"),
        stdout=subprocess.DEVNULL)
    os.remove(path("batches.safetensors"))
    shutil.copy(path("vocab.txt"), out)
    return out, last_line(path(f"torch{seed}.jsonl"))["seconds"]


if not os.path.exists(path("text.json")):
    run(bertc, "vocab", "--corpus", *a.corpus, "--vocab_size", a.vocab_size, "--out", path("vocab.txt"), "--quiet")
    run(bertc, "prepare", "--corpus", *a.corpus, "--vocab_file", path("vocab.txt"), "--held_out_fraction", 0.01,
        "--out", path("text"), "--quiet", stdout=subprocess.DEVNULL)
rows = {"bertc": [], "torch": []}
for seed in range(1, a.seeds + 1):
    for name, train in (("bertc", train_bertc), ("torch", train_torch)):
        result = path(f"{name}{seed}.json")
        if not os.path.exists(result):
            if not os.path.exists(path(f"init{seed}")):
                initial_weights(seed)
            folder, seconds = train(seed)
            scores = dict(score(folder), seconds=seconds)
            with open(result, "w") as file:
                json.dump(scores, file)
        rows[name].append(json.load(open(result)))

print(f"{a.layers}x{a.hidden}, S={a.length}, batch {a.batch}, {a.steps} steps, {a.precision}, {a.threads} threads\n")
print("| program | seed | MLM loss | MLM accuracy | NSP accuracy | seconds |\n|---|---|---|---|---|---|")
for name, scores in rows.items():
    for seed, s in enumerate(scores, 1):
        print(f"| {name} | {seed} | {s['mlm_loss']:.4f} | {100 * s['mlm_accuracy']:.2f} % "
              f"| {100 * s['nsp_accuracy']:.1f} % | {s['seconds']:.0f} |")
accuracy = {name: [100 * s["mlm_accuracy"] for s in scores] for name, scores in rows.items()}
means = {name: statistics.mean(x) for name, x in accuracy.items()}
difference = means["bertc"] - means["torch"]
if a.seeds > 1:
    error = sum(statistics.variance(x) / len(x) for x in accuracy.values()) ** 0.5
    print(f"\nMLM accuracy: bertc {means['bertc']:.2f} %, PyTorch {means['torch']:.2f} %: "
          f"difference {difference:+.2f} points, standard error of the difference {error:.2f}")
ratio = statistics.median(t["seconds"] / b["seconds"] for b, t in zip(rows["bertc"], rows["torch"]))
print(f"time: PyTorch takes {ratio:.2f} x bertc's (median of pairs)")
