"""bertc and PyTorch + transformers on one GPU, the same work in one run, by turns.

    gpu_peer.py [--only base-128,base-512,large-128,large-512] [--inference 128x1,128x8,...] [--tokens N]
                [--precision bf16] [--modes compiled] [--rounds N] [--build build] [--json FILE]

A training case is MODEL-LENGTH, N tokens a step in sequences of that length: PyTorch's BertForPreTraining with SDPA,
autocast, dropout 0.1, fused AdamW and clipping, its head on masked rows only, compiled; bertc is `bertc bench`. An
inference case is LENGTHxBATCH: BERT-base's forward pass with its loss. Printed are medians of a step, sequences a second,
TFLOP/s of the model's own work and its share of the rate that bertc's plain products reach in the same minutes, the peak
of device memory of PyTorch, and the ratio, all of the same rounds. Needs torch and transformers.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
from transformers import BertConfig, BertForPreTraining

SIZES = {"base": (12, 768), "large": (24, 1024), "small": (4, 512), "mini": (4, 256)}
TOKENS = {"base": 45056, "large": 33792}  # whole waves of 132 processors
VOCABULARY = 30522

p = argparse.ArgumentParser()
p.add_argument("--only", default="base-128,base-512,large-128,large-512")
p.add_argument("--inference", default="")
p.add_argument("--tokens", type=int, default=0)
p.add_argument("--precision", default="bf16")
p.add_argument("--modes", default="compiled")
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--build", default="build")
p.add_argument("--json", default="")
a = p.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"


def flops(size, length, training=True):
    """Model FLOPs of a sequence: docs/math.md."""
    layers, hidden = SIZES[size]
    masked = sum(1 for i in range(length) if i % 20 in (3, 9, 16))
    total = (72 * layers * hidden**2 * length + 12 * layers * hidden * length**2 +
             6 * masked * (hidden**2 + hidden * VOCABULARY) + 6 * (hidden**2 + 2 * hidden))
    return total if training else total / 3


def batch_of(length, sequences):
    """15 % of the positions are predicted: in every row the same ones, as in bertc's."""
    g = torch.Generator().manual_seed(1)
    i = torch.arange(length) % 20
    chosen = ((i == 3) | (i == 9) | (i == 16)).expand(sequences, length)
    labels = torch.randint(0, VOCABULARY, (sequences, length), generator=g)
    b = dict(ids=torch.randint(0, VOCABULARY, (sequences, length), generator=g),
             types=(torch.arange(length) > length // 2).long().expand(sequences, length).contiguous(),
             rows=chosen.flatten().nonzero().squeeze(1), labels=labels[chosen],
             following=torch.randint(0, 2, (sequences,), generator=g))
    return {k: v.to(device) for k, v in b.items()}


class Torch:
    def __init__(self, size, length, sequences, mode, training):
        torch.manual_seed(1)
        layers, hidden = SIZES[size]
        self.model = BertForPreTraining(BertConfig(
            vocab_size=VOCABULARY, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=hidden // 64,
            intermediate_size=4 * hidden, attn_implementation="sdpa")).to(device)
        self.model.train(training)
        self.training = training
        self.batch = batch_of(length, sequences)
        if training:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, weight_decay=0.01, fused=device == "cuda")

        def loss(ids, types, rows, labels, following):
            o = self.model.bert(ids, token_type_ids=types)
            logits = self.model.cls.predictions(o.last_hidden_state.flatten(0, 1)[rows])
            nsp = self.model.cls.seq_relationship(o.pooler_output)
            ce = torch.nn.functional.cross_entropy
            return ce(logits.float(), labels) + ce(nsp.float(), following)
        self.loss = torch.compile(loss) if mode == "compiled" else loss

    def step(self):
        types = {"bf16": torch.bfloat16, "fp16": torch.float16}
        with torch.autocast(device, types.get(a.precision, torch.bfloat16), enabled=a.precision in types):
            if not self.training:
                with torch.no_grad():
                    return self.loss(**self.batch)
            value = self.loss(**self.batch)
        value.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return value

    def seconds(self, steps):
        if device == "cuda":
            torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(steps):
            self.step()
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - started) / steps


def bertc(size, length, sequences, training, rounds):
    command = [os.path.join(a.build, "bertc"), "bench", "-q", "--json", "--device", device, "--precision", a.precision,
               "--model", size, "--max_seq_length", str(length), "--train_batch_size", str(sequences),
               "--mode", "training" if training else "inference", "--steps", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"gpu_peer.py: {' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def case(name, size, length, sequences, training, mode):
    work = flops(size, length, training) * sequences
    peer = Torch(size, length, sequences, mode, training)
    for _ in range(3):
        peer.step()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    steps = max(1, min(20, int(1 / max(peer.seconds(1), 1e-4))))
    ours, theirs, kind = [], [], "training" if training else "inference"
    for _ in range(2):  # by turns: theirs, ours, theirs, ours
        theirs += [peer.seconds(steps) for _ in range(a.rounds)]
        ours.append(bertc(size, length, sequences, training, a.rounds))
    memory = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else 0
    our_time = statistics.mean(o[kind]["seconds"] for o in ours)
    their_time = statistics.median(theirs)
    rate = statistics.mean(o.get("gemm_flops_per_second", 0) for o in ours)
    del peer
    torch._dynamo.reset()
    if device == "cuda":
        torch.cuda.empty_cache()

    def share(seconds):
        return f"{100 * work / seconds / rate:.0f} %" if rate else ""
    print(f"| {name} {a.precision} | {sequences} | {sequences / our_time:,.1f} | {work / our_time / 1e12:.1f} | {share(our_time)} | "
          f"{mode} {sequences / their_time:,.1f} | {work / their_time / 1e12:.1f} | {share(their_time)} | {memory:.1f} GiB | "
          f"**{their_time / our_time:.2f}** |", flush=True)
    return dict(case=name, precision=a.precision, mode=mode, sequences=sequences, seconds=our_time, peer_seconds=their_time,
                gemm_flops_per_second=rate, model_flops=work, bertc=ours)


results = []
print(f"{torch.cuda.get_device_name() if device == 'cuda' else 'CPU'}, PyTorch {torch.__version__}\n")
print("| case | sequences | bertc seq/s | TFLOP/s | of products | PyTorch seq/s | TFLOP/s | of products | its memory | bertc is x as fast |")
print("|---|---|---|---|---|---|---|---|---|---|")
for mode in a.modes.split(","):
    for one in filter(None, a.only.split(",")):
        size, length = one.split("-")
        tokens = a.tokens or TOKENS.get(size, 8192)
        results.append(case(one, size, int(length), max(1, tokens // int(length)), True, mode))
    for one in filter(None, a.inference.split(",")):
        length, batch = one.split("x")
        results.append(case(f"base {one} inference", "base", int(length), int(batch), False, mode))
if a.json:
    with open(a.json, "w") as f:
        json.dump(results, f, indent=1)
