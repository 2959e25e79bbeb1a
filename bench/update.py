"""The update of all weights compared with PyTorch's, in alternation in one run: gradient norm, clipping and AdamW (fused) or
LAMB (timm, foreach), on the tensors of a BERT model. bertc's times include the refresh of its compute copies, which PyTorch's
bf16 autocast repeats in every forward pass.

    make build/bench/update
    python bench/update.py [--model base] [--precision bf16,fp32] [--threads 2] [--rounds 15] [--clock wall|cpu]

--clock cpu is processor time divided by the number of threads, for machines with other load. Prints medians, and the rate at
which weights, gradients and moments are read and written: 28 bytes per parameter for AdamW, 40 for LAMB, whose weights and
moments are read twice, 4 for the norm, 8 for clipping apart from the update. Needs: pip install torch transformers timm
"""
import argparse
import statistics
import subprocess
import time

import timm.optim
import torch
from transformers import BertConfig, BertForPreTraining

SIZES = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512), "medium": (8, 512), "base": (12, 768), "large": (24, 1024)}
p = argparse.ArgumentParser()
p.add_argument("--model", default="base")
p.add_argument("--precision", default="bf16,fp32")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--rounds", type=int, default=15)
p.add_argument("--clock", choices=("wall", "cpu"), default="wall")
a = p.parse_args()
torch.set_num_threads(a.threads)
layers, hidden = SIZES[a.model]
with torch.device("meta"):
    model = BertForPreTraining(BertConfig(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=hidden // 64,
                                          intermediate_size=4 * hidden))
shapes = {name: tuple(q.shape) for name, q in model.named_parameters()}
count = sum(q.numel() for q in model.parameters())


def peer(make):
    """New parameters with gradients, and the functions that update them."""
    decayed, plain = [], []
    for name, shape in shapes.items():
        q = torch.nn.Parameter(torch.randn(shape) * 0.02)
        q.grad = torch.randn(shape) * 1e-5
        (plain if name.endswith("bias") or "LayerNorm" in name else decayed).append(q)
    return decayed + plain, make([{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}])


def now():
    return time.process_time() / a.threads if a.clock == "cpu" else time.perf_counter()


def run(parameters, optimizer):
    started = now()
    if not isinstance(optimizer, timm.optim.Lamb):  # it clips by itself
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    return now() - started


peers = {"adamw": peer(lambda groups: torch.optim.AdamW(groups, lr=1e-6, eps=1e-6, fused=True)),
         "lamb": peer(lambda groups: timm.optim.Lamb(groups, lr=1e-6, foreach=True))}
ours = {precision: subprocess.Popen(
    ["build/bench/update", a.model, precision, str(a.threads)] + ["cpu"] * (a.clock == "cpu"), stdin=subprocess.PIPE,
    stdout=subprocess.PIPE, text=True) for precision in a.precision.split(",")}
times = {}
for turn in range(a.rounds + 1):
    for what, (parameters, optimizer) in peers.items():
        times.setdefault((what, "PyTorch"), []).append(run(parameters, optimizer))
    for precision, child in ours.items():
        for what in ("adamw", "lamb", "norm", "refresh"):
            child.stdin.write(f"{what} 1\n")
            child.stdin.flush()
            times.setdefault((what, precision), []).append(float(child.stdout.readline()))
print(f"{a.model}: {count / 1e6:.1f} million parameters, {a.threads} threads, medians of {a.rounds}")
middle = {key: statistics.median(values[1:]) for key, values in times.items()}  # the first one touches new memory
for what, size in (("adamw", 28), ("lamb", 40)):
    peer_seconds = middle[what, "PyTorch"]
    rate = (size + 4 + (8 if what == "adamw" else 0)) * count / peer_seconds / 1e9
    print(f"{what:5} PyTorch {1e3 * peer_seconds:7.1f} ms, {rate:.1f} GB/s of these")
    for precision in ours:
        seconds, refresh = middle[what, precision], middle["refresh", precision]
        rate = (size + 4) * count / (seconds - refresh) / 1e9
        print(f"{what:5} bertc {precision} {1e3 * seconds:7.1f} ms (norm {1e3 * middle['norm', precision]:.1f}, refresh "
              f"{1e3 * refresh:.1f}), {rate:.1f} GB/s without the refresh, PyTorch takes {peer_seconds / seconds:.2f} x")
for child in ours.values():
    child.stdin.close()
    child.wait()
