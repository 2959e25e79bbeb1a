"""Pre-training with PyTorch for a given time, by one of two recipes, for bench/quality.py. Run it again after an interruption to resume.

    quality_peer.py --recipe run_mlm|cramming --data PREFIX --held_out FILE.tfrecord --vocab vocab.txt --layers L --hidden H
                    --seconds S --out FOLDER [--threads N] [--seed N] [--curve FILE.tfrecord] [--costs UPDATE SEQUENCE]
    quality_peer.py ... --measure

run_mlm   what run_mlm.py of transformers does with no options except files and a config: BertForMaskedLM, blocks of 512
          tokens, batches of 8, AdamW (5e-5, no weight decay, epsilon 1e-8), linear decay without warm-up, 15 % masked, dropout
          0.1, fp32, logits of all positions. Here the decay goes by the clock instead of three epochs. Leaves a folder that
          transformers and bertc load.
cramming  Geiping and Goldstein 2022, their final recipe in the requested width and depth: pre-norm, GeGLU, no biases, scaled
          sinusoidal positions, 25 % masked, predictions at masked positions only and without a transform, dropout 0, AdamW
          (1e-3, beta2 0.98, epsilon 1e-12, weight decay 0.01), clipping at 0.5, a rate that rises and falls over the budget,
          batches that grow over 60 % of it (here from 16 to 256 sequences of 128; theirs, on a GPU, to 8,192), bf16 if the
          processor has instructions for it. transformers has no class for this model, so it is scored here, and not on tasks.

The time includes training, loading and saving, but not scoring. With --costs it is not taken from the clock: every update
counts as UPDATE seconds plus SEQUENCE seconds for each of its sequences. --measure prints these two, in processor seconds on
one thread (the smallest of three measurements). FOLDER/result.json has the scores on the held-out instances; with --costs,
metrics.jsonl has those on --curve after each tenth of the budget.
"""
import argparse
import json
import math
import os
import shutil
import sys
import time

import numpy
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../dev"))
from megatron_shard import read_shard  # noqa: E402
from tfrecord_reader import records  # noqa: E402

began = time.time()
p = argparse.ArgumentParser()
p.add_argument("--recipe", choices=["run_mlm", "cramming"], required=True)
p.add_argument("--data", required=True)
p.add_argument("--held_out", required=True)
p.add_argument("--vocab", required=True)
p.add_argument("--layers", type=int, required=True)
p.add_argument("--hidden", type=int, required=True)
p.add_argument("--seconds", type=float)
p.add_argument("--out")
p.add_argument("--curve")
p.add_argument("--costs", type=float, nargs=2)
p.add_argument("--measure", action="store_true")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--seed", type=int, default=1)
p.add_argument("--save_every", type=float, default=120)
a = p.parse_args()
if not a.measure and (not a.seconds or not a.out):
    p.error("--seconds and --out are needed, or --measure")
if a.measure:
    a.threads = 1
torch.set_num_threads(a.threads)
# Elsewhere PyTorch emulates bf16, which is several times slower than fp32.
BF16 = a.recipe == "cramming" and (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
vocabulary = open(a.vocab, encoding="utf-8").read().split("\n")
vocabulary = vocabulary[:-1] if vocabulary[-1] == "" else vocabulary
PAD, CLS, SEP, MASK = (vocabulary.index(w) for w in ("[PAD]", "[CLS]", "[SEP]", "[MASK]"))
LENGTH = {"run_mlm": 512, "cramming": 128}[a.recipe]
SHARE = {"run_mlm": 0.15, "cramming": 0.25}[a.recipe]


class Layer(torch.nn.Module):
    """Cramming's layer: pre-norm, GeGLU with halves of twice the width, no biases."""

    def __init__(self, hidden):
        super().__init__()
        self.heads = hidden // 64
        self.norm1, self.norm2 = (torch.nn.LayerNorm(hidden, eps=1e-12) for _ in range(2))
        self.qkv = torch.nn.Linear(hidden, 3 * hidden, bias=False)
        self.out = torch.nn.Linear(hidden, hidden, bias=False)
        self.up = torch.nn.Linear(hidden, 4 * hidden, bias=False)
        self.down = torch.nn.Linear(2 * hidden, hidden, bias=False)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, 64).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, h))
        gate, value = self.up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.gelu(gate) * value)


class Crammed(torch.nn.Module):
    def __init__(self, layers, hidden, entries):
        super().__init__()
        self.word = torch.nn.Embedding(entries, hidden)
        place = torch.arange(LENGTH)[:, None] * torch.exp(-math.log(10000) * torch.arange(0, hidden, 2) / hidden)
        self.register_buffer("positions", torch.stack((place.sin(), place.cos()), -1).reshape(LENGTH, hidden))
        self.scale = torch.nn.Parameter(torch.tensor(hidden ** -0.5))
        self.norm, self.final = (torch.nn.LayerNorm(hidden, eps=1e-12) for _ in range(2))
        self.layers = torch.nn.ModuleList(Layer(hidden) for _ in range(layers))
        for module in self.modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                torch.nn.init.trunc_normal_(module.weight, std=0.02, a=-0.04, b=0.04)

    def forward(self, ids, rows):
        x = self.norm(self.word(ids) + self.scale * self.positions[:ids.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.final(x).flatten(0, 1)[rows], self.word.weight)


def blocks():
    """Concatenated documents, [CLS] ... [SEP], cut into blocks: [n, LENGTH]."""
    parts = []
    for document in read_shard(a.data):
        parts += [[CLS], *document, [SEP]]
    ids = numpy.concatenate([numpy.asarray(part, "<i4") for part in parts])
    return ids[:len(ids) // LENGTH * LENGTH].reshape(-1, LENGTH)


def batch_at(data, first, count):
    """Instances from `first` on out of endless shuffled epochs, newly masked: ids, rows of the masked tokens, their original
    ids."""
    take = []
    for number in range(first, first + count):
        epoch, place = divmod(number, len(data))
        if batch_at.epoch != epoch:
            batch_at.order, batch_at.epoch = numpy.random.default_rng([a.seed, epoch]).permutation(len(data)), epoch
        take.append(batch_at.order[place])
    generator = numpy.random.default_rng([a.seed, 1 << 20, first])
    ids = torch.from_numpy(data[take].astype("<i8"))
    draw = torch.from_numpy(generator.random((3, *ids.shape)))
    chosen = (draw[0] < SHARE) & (ids != CLS) & (ids != SEP)
    rows = chosen.flatten().nonzero().flatten()
    labels = ids.flatten()[rows]
    random = torch.from_numpy(generator.integers(0, len(vocabulary), ids.shape))
    ids = torch.where(chosen & (draw[1] < 0.8), torch.tensor(MASK), ids)
    ids = torch.where(chosen & (draw[1] >= 0.8) & (draw[2] < 0.5), random, ids)
    return ids, rows, labels


batch_at.epoch = -1


def make():
    torch.manual_seed(a.seed)
    if a.recipe == "cramming":
        model = Crammed(a.layers, a.hidden, len(vocabulary))
        decayed = [q for q in model.parameters() if q.dim() > 1]
        others = [q for q in model.parameters() if q.dim() <= 1]
        return model, torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                                        lr=1e-3, betas=(0.9, 0.98), eps=1e-12)
    from transformers import BertConfig, BertForMaskedLM
    model = BertForMaskedLM(BertConfig(vocab_size=len(vocabulary), hidden_size=a.hidden, num_hidden_layers=a.layers,
                                       num_attention_heads=a.hidden // 64, intermediate_size=4 * a.hidden))
    return model, torch.optim.AdamW(model.parameters(), lr=5e-5, eps=1e-8, weight_decay=0.0)


def logits_of(model, ids, rows, attention=None):
    if a.recipe == "cramming":
        return model(ids, rows)
    return model(input_ids=ids, attention_mask=attention).logits.flatten(0, 1)[rows]


def rate(share):
    if a.recipe == "run_mlm":
        return 5e-5 * (1 - share)
    return 1e-3 * min(2 * share, 2 - 2 * share)


def batch_size(share):
    return 8 if a.recipe == "run_mlm" else 16 + int((256 - 16) * min(1, share / 0.6))


def score(model, file):
    """Scores on the held-out instances, always with the same masks."""
    model.eval()
    loss = correct = count = 0
    with torch.no_grad():
        for record in records(file):
            length = sum(record["input_mask"])
            ids = torch.tensor([record["input_ids"][:length]])
            real = [w > 0 for w in record["masked_lm_weights"]]
            rows = torch.tensor([r for r, w in zip(record["masked_lm_positions"], real) if w])
            labels = torch.tensor([r for r, w in zip(record["masked_lm_ids"], real) if w])
            if len(rows) == 0:
                continue
            logits = logits_of(model, ids, rows).float()
            loss += F.cross_entropy(logits, labels, reduction="sum").item()
            correct += (logits.argmax(-1) == labels).sum().item()
            count += len(labels)
    model.train()
    return {"mlm_loss": loss / count, "mlm_accuracy": correct / count, "predictions": count}


def update(model, optimizer, data, first, size):
    """One update with `size` sequences; more than 32 are computed in pieces, so that memory is not a limit."""
    batches = [batch_at(data, first + begun, min(32, size - begun)) for begun in range(0, size, 32)]
    total = sum(len(labels) for _, _, labels in batches)
    loss = 0.0
    for ids, rows, labels in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=BF16):
            part = F.cross_entropy(logits_of(model, ids, rows).float(), labels, reduction="sum") / total
        part.backward()
        loss += part.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5 if a.recipe == "cramming" else 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss


def measure():
    """Processor seconds of an update apart from its sequences, and of a sequence. Costs are not exactly linear, so they are
    measured at the sizes that occur: run_mlm has one, and cramming computes pieces of 16 to 32."""
    data = blocks()
    model, optimizer = make()
    sizes, updates = {"run_mlm": (8,), "cramming": (16, 32)}[a.recipe], 5

    def once(size):
        started = time.process_time()
        for i in range(updates):
            update(model, optimizer, data, i * size, size)
        return (time.process_time() - started) / updates

    once(sizes[0])
    costs = [min(once(size) for _ in range(3)) for size in sizes]
    sequence = (costs[1] - costs[0]) / (sizes[1] - sizes[0]) if len(sizes) > 1 else 0
    print(json.dumps([max(0, costs[0] - sizes[0] * sequence), sequence]))


def main():
    data = blocks()
    model, optimizer = make()
    state = {"step": 0, "samples": 0, "elapsed": 0.0}
    path = os.path.join(a.out, "state.pt")
    os.makedirs(a.out, exist_ok=True)
    if os.path.exists(path):
        saved = torch.load(path)
        state = saved["state"]
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    start = began - state["elapsed"]

    def elapsed():
        if a.costs:
            return state["step"] * a.costs[0] + state["samples"] * a.costs[1]
        return time.time() - start

    def save():
        state["elapsed"] = elapsed()
        torch.save({"state": state, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".new")
        os.replace(path + ".new", path)

    def log(values):
        with open(os.path.join(a.out, "metrics.jsonl"), "a") as file:
            file.write(json.dumps(dict(step=state["step"], tokens=state["samples"] * LENGTH, seconds=elapsed(), **values)) + "\n")

    model.train()
    saved_at = time.time()
    while (share := elapsed() / a.seconds) < 1:
        size = batch_size(share)
        for group in optimizer.param_groups:
            group["lr"] = rate(share)
        loss = update(model, optimizer, data, state["samples"], size)
        state["step"] += 1
        state["samples"] += size
        if state["step"] % 50 == 0:
            log({"loss": loss, "learning_rate": rate(share)})
        if a.costs and a.curve and int(10 * elapsed() / a.seconds) > int(10 * share):
            log({"eval_" + k: v for k, v in score(model, a.curve).items()})
            save()
        if time.time() - saved_at > a.save_every:
            save()
            saved_at = time.time()
    save()
    if a.recipe == "run_mlm":
        model.save_pretrained(os.path.join(a.out, "final"))
        shutil.copy(a.vocab, os.path.join(a.out, "final", "vocab.txt"))
    result = dict(score(model, a.held_out), step=state["step"], tokens=state["samples"] * LENGTH, seconds=state["elapsed"])
    with open(os.path.join(a.out, "result.json"), "w") as file:
        json.dump(result, file)
    print(json.dumps(result))


measure() if a.measure else main()
