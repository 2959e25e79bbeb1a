"""Trains the same model on the same batches with bertc and with PyTorch, using optimizers written by others, and prints how far
apart losses and final weights are.

    make build/dev/dump_batches
    python dev/compare_optimizers.py --data PREFIX --vocab_file V --work FOLDER [--optimizers adamw,lamb] [--steps 100]
                                     [--batch 32] [--layers 2] [--hidden 128] [--learning_rate 1e-3] [--torch fp32,fp64]

Both begin with weights drawn by transformers. No dropout, warm-up over a tenth of the steps, linear decay, clipping to norm 1.
Key biases, whose gradient is pure rounding error, are left out of the comparison. The PyPI packages: timm, torch-optimizer,
pytorch-pretrained-bert.
"""
import argparse
import json
import os
import subprocess
import sys

import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertForPreTraining

OPTIONS = {
    "adamw": ["--optimizer", "adamw"],
    "google_adamw": ["--optimizer", "google_adamw"],
    "lamb": ["--optimizer", "lamb"],
    "nvlamb": ["--optimizer", "nvlamb"],
    "nvlamb_uncorrected": ["--optimizer", "nvlamb", "--bias_correction", "false"],
}
p = argparse.ArgumentParser()
p.add_argument("--data", required=True)
p.add_argument("--vocab_file", required=True)
p.add_argument("--work", required=True)
p.add_argument("--optimizers", default=",".join(OPTIONS))
p.add_argument("--steps", type=int, default=100)
p.add_argument("--batch", type=int, default=32)
p.add_argument("--length", type=int, default=128)
p.add_argument("--layers", type=int, default=2)
p.add_argument("--hidden", type=int, default=128)
p.add_argument("--learning_rate", default="1e-3")
p.add_argument("--torch", default="fp32,fp64")
p.add_argument("--threads", default="1")
p.add_argument("--bertc", default="build/bertc")
a = p.parse_args()
here = os.path.dirname(os.path.abspath(__file__))
warmup = str(a.steps // 10)
os.makedirs(a.work, exist_ok=True)


def path(name):
    return os.path.join(a.work, name)


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: exit status {done.returncode}\n{done.stderr[-2000:]}")


def losses(file):
    return {row["step"]: row["loss"] for row in map(json.loads, open(file)) if "loss" in row and "step" in row}


def distance(file, other):
    """|a - b| / |b| over all weights, and for the worst tensor."""
    x, y = load_file(file), load_file(other)
    square = whole = worst = 0.0
    where = ""
    for name in x:
        if name not in y or name.endswith("attention.self.key.bias"):
            continue
        d, n = float((x[name].double() - y[name].double()).norm()), float(y[name].double().norm())
        square, whole = square + d * d, whole + n * n
        if n > 0 and d / n > worst:
            worst, where = d / n, name
    return (square / whole) ** 0.5, worst, where


torch.manual_seed(1)
vocab_size = sum(1 for _ in open(a.vocab_file))
BertForPreTraining(BertConfig(
    vocab_size=vocab_size, hidden_size=a.hidden, num_hidden_layers=a.layers, num_attention_heads=max(1, a.hidden // 64),
    intermediate_size=4 * a.hidden, max_position_embeddings=a.length)).save_pretrained(path("init"))
run("build/dev/dump_batches", a.data, a.vocab_file, 12345, a.length, a.batch, 1, a.steps, path("batches.safetensors"))
print(f"{a.layers}x{a.hidden}, {vocab_size} entries, {a.batch} sequences per step, {a.steps} steps, rate {a.learning_rate}")
for optimizer in a.optimizers.split(","):
    out = path(f"bertc-{optimizer}")
    run(a.bertc, "pretrain", "--data", a.data, "--vocab_file", a.vocab_file, "--model", path("init"), "--out", out,
        "--fresh", "--num_train_steps", a.steps, "--num_warmup_steps", warmup, "--learning_rate", a.learning_rate,
        "--schedule", "linear", "--train_batch_size", a.batch, "--gradient_accumulation_steps", 1,
        "--max_seq_length", a.length, "--hidden_dropout_prob", 0, "--attention_probs_dropout_prob", 0,
        "--precision", "fp32", "--log_steps", 1, "--eval_steps", 0, "--save_checkpoints_steps", 0,
        "--eval_instances", 10, "--seed", 12345, "--threads", a.threads, *OPTIONS[optimizer])
    curves, weights = {"bertc": losses(f"{out}/metrics.jsonl")}, {"bertc": f"{out}/final/model.safetensors"}
    for precision in a.torch.split(","):
        out = path(f"torch-{optimizer}-{precision}")
        run(sys.executable, "-W", "ignore", f"{here}/train_torch.py", "--init", path("init"),
            "--batches", path("batches.safetensors"), "--steps", a.steps, "--total_steps", a.steps, "--warmup", warmup,
            "--learning_rate", a.learning_rate, "--optimizer", optimizer, "--precision", precision, "--threads",
            a.threads, "--save", out, "--save_every", a.steps + 1, "--out", f"{out}.jsonl")
        curves[f"torch {precision}"] = losses(f"{out}.jsonl")
        weights[f"torch {precision}"] = f"{out}/model.safetensors"
    first, last = curves["bertc"][1], curves["bertc"][a.steps]
    names = list(curves)
    for i, name in enumerate(names):
        for other in names[i + 1:]:
            worst, step = max((abs(curves[name][t] / curves[other][t] - 1), t) for t in curves[name])
            whole, tensor, where = distance(weights[name], weights[other])
            print(f"{optimizer}: {name} and {other}: loss {first:.4f} to {last:.4f}, largest relative difference "
                  f"{worst:.1e} (step {step}), weights {whole:.1e}, worst tensor {tensor:.1e} {where}", flush=True)
