"""Training steps of bertc and of PyTorch + transformers on the same shapes, side by side in one run.

    peer.py [--rounds N] [--steps K] [--precision bf16,fp32] [--modes eager,compiled] [--cases base:128:32,...]

Each round runs K steps of every contender in turn; printed are medians of a step's seconds, sequences/s, and the ratio
of bertc's rate to PyTorch's best. A case is SIZE:LENGTH:SEQUENCES (4x256 is a 4-layer, 256-wide model). PyTorch: dropout
0.1, fused AdamW, clipping, heads on all positions as BertForPreTraining has it, and on masked rows only.
Needs: pip install torch transformers; make build/bench/step
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from transformers import BertConfig, BertForPreTraining

SIZES = {"base": (12, 768), "small": (4, 512), "mini": (4, 256), "4x256": (4, 256), "large": (24, 1024)}
p = argparse.ArgumentParser()
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--steps", type=int, default=1)
p.add_argument("--precision", default="bf16,fp32")
p.add_argument("--modes", default="eager,compiled")
p.add_argument("--heads", default="all,masked")
p.add_argument("--cases", default="base:128:32,4x256:128:64")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--binary", default="build/bench/step")
a = p.parse_args()
torch.set_num_threads(a.threads)


class Ours:
    def __init__(self, size, length, sequences, precision):
        layers, hidden = SIZES[size]
        config = {"model_type": "bert", "vocab_size": 30522, "hidden_size": hidden, "num_hidden_layers": layers,
                  "num_attention_heads": hidden // 64, "intermediate_size": 4 * hidden, "hidden_act": "gelu",
                  "max_position_embeddings": 512, "type_vocab_size": 2}
        self.folder = tempfile.mkdtemp()
        path = os.path.join(self.folder, "config.json")
        with open(path, "w") as f:
            json.dump(config, f)
        self.child = subprocess.Popen([a.binary, path, precision, str(a.threads), str(sequences), str(length)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, steps):
        self.child.stdin.write(f"{steps}\n")
        self.child.stdin.flush()
        return [float(x) for x in self.child.stdout.readline().split()]

    def close(self):
        self.child.stdin.close()
        self.child.wait()


class Torch:
    def __init__(self, size, length, sequences, precision, mode, heads):
        layers, hidden = SIZES[size]
        torch.manual_seed(1)
        config = BertConfig(vocab_size=30522, hidden_size=hidden, num_hidden_layers=layers,
                            num_attention_heads=hidden // 64, intermediate_size=4 * hidden)
        self.model = BertForPreTraining(config).train()
        self.precision, self.heads = precision, heads
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
        g = torch.Generator().manual_seed(1)
        self.ids = torch.randint(0, 30522, (sequences, length), generator=g)
        self.types = (torch.arange(length) > length // 2).long().expand(sequences, length).contiguous()
        # 15 % of the positions: every row has the same ones, as in bench/step.c
        i = torch.arange(length) % 20
        chosen = ((i == 3) | (i == 9) | (i == 16)).expand(sequences, length)
        self.labels = torch.where(chosen, torch.randint(0, 30522, (sequences, length), generator=g), -100)
        self.rows = chosen.flatten().nonzero().squeeze(1)
        self.following = torch.randint(0, 2, (sequences,), generator=g)
        self.loss = torch.compile(self._loss) if mode == "compiled" else self._loss

    def _loss(self, ids, types, labels, following):
        m = self.model
        if self.heads == "all":
            return m(input_ids=ids, token_type_ids=types, labels=labels, next_sentence_label=following).loss
        o = m.bert(ids, token_type_ids=types)
        logits = m.cls.predictions(o.last_hidden_state.flatten(0, 1)[self.rows])
        nsp = m.cls.seq_relationship(o.pooler_output)
        ce = torch.nn.functional.cross_entropy
        return ce(logits.float(), labels.flatten()[self.rows]) + ce(nsp.float(), following)

    def run(self, steps):
        times = []
        for _ in range(steps):
            started = time.perf_counter()
            with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16"):
                loss = self.loss(self.ids, self.types, self.labels, self.following)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            times.append(time.perf_counter() - started)
        return times

    def close(self):
        pass


for case in a.cases.split(","):
    size, length, sequences = case.split(":")
    length, sequences = int(length), int(sequences)
    contenders = {}
    for precision in a.precision.split(","):
        contenders[f"bertc {precision}"] = Ours(size, length, sequences, precision)
        for mode in a.modes.split(","):
            for heads in a.heads.split(","):
                contenders[f"torch {precision} {mode} {heads}"] = Torch(size, length, sequences, precision, mode, heads)
    for name, contender in contenders.items():
        started = time.time()
        contender.run(2)
        print(f"# {case} {name}: ready after {time.time() - started:.0f} s", file=sys.stderr, flush=True)
    times = {name: [] for name in contenders}
    for _ in range(a.rounds):
        for name, contender in contenders.items():
            times[name] += contender.run(a.steps)
    print(f"\n{size}, S={length}, {sequences} sequences a step, {a.threads} threads, "
          f"{a.rounds * a.steps} steps each, interleaved")
    print("| contender | median s/step | min | max | sequences/s |\n|---|---|---|---|---|")
    rate = {}
    for name, t in times.items():
        rate[name] = sequences / statistics.median(t)
        print(f"| {name} | {statistics.median(t):.3f} | {min(t):.3f} | {max(t):.3f} | {rate[name]:.2f} |")
    best = max((r, n) for n, r in rate.items() if n.startswith("torch"))
    for name in rate:
        if name.startswith("bertc"):
            same = max(r for n, r in rate.items() if n.startswith("torch " + name.split()[1]))
            print(f"{name}: {rate[name] / best[0]:.2f} x PyTorch's best ({best[1]}), "
                  f"{rate[name] / same:.2f} x its best in the same precision")
    for contender in contenders.values():
        contender.close()
