"""Trains Hugging Face's BertForPreTraining on a TFRecord file of Google's pre-training data, in file order, batch after
batch, without dropout: `bertc pretrain --input_file X.tfrecord --shuffle false` with dropout 0 must give the same.

    train_records_torch.py --init FOLDER --records X.tfrecord --steps N --batch N --total_steps N --warmup W
                           --learning_rate X [--metrics metrics.jsonl]

With --metrics the loss of every step is compared with the run's. The records are parsed by hand (tfrecord_reader.py).
"""
import argparse
import json

import numpy as np
import torch
from tfrecord_reader import records
from transformers import BertForPreTraining

p = argparse.ArgumentParser()
p.add_argument("--init", required=True)
p.add_argument("--records", required=True)
p.add_argument("--steps", type=int, required=True)
p.add_argument("--batch", type=int, required=True)
p.add_argument("--total_steps", type=int, required=True)
p.add_argument("--warmup", type=int, required=True)
p.add_argument("--learning_rate", type=float, required=True)
p.add_argument("--weight_decay", type=float, default=0.01)
p.add_argument("--eps", type=float, default=1e-6)
p.add_argument("--clip", type=float, default=1.0)
p.add_argument("--metrics")
p.add_argument("--precision", default="fp32")
a = p.parse_args()


torch.manual_seed(1)
torch.set_num_threads(2)
dtype = torch.float64 if a.precision == "fp64" else torch.float32
model = BertForPreTraining.from_pretrained(a.init, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                                           dtype=dtype, attn_implementation="eager")
model.train()
decayed = [q for n, q in model.named_parameters() if not n.endswith("bias") and "LayerNorm" not in n]
plain = [q for n, q in model.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
optimizer = torch.optim.AdamW(
    [{"params": decayed, "weight_decay": a.weight_decay}, {"params": plain, "weight_decay": 0.0}],
    lr=a.learning_rate, betas=(0.9, 0.999), eps=a.eps)
instances = records(a.records)


def rate(t):
    if t <= a.warmup:
        return a.learning_rate * t / a.warmup
    return a.learning_rate * (a.total_steps + 1 - t) / (a.total_steps + 1 - a.warmup)


ours = {}
if a.metrics:
    for line in open(a.metrics):
        row = json.loads(line)
        if "loss" in row:
            ours[row["step"]] = row
worst = 0.0
for t in range(1, a.steps + 1):
    rows = [instances[i % len(instances)] for i in range((t - 1) * a.batch, t * a.batch)]
    g = {k: torch.tensor(np.array([r[k] for r in rows])) for k in rows[0]}
    out = model(input_ids=g["input_ids"], attention_mask=g["input_mask"], token_type_ids=g["segment_ids"])
    at = g["masked_lm_positions"].unsqueeze(-1).expand(-1, -1, out.prediction_logits.shape[-1])
    logits = out.prediction_logits.gather(1, at).flatten(0, 1)
    losses = torch.nn.functional.cross_entropy(logits, g["masked_lm_ids"].flatten(), reduction="none")
    weights = g["masked_lm_weights"].flatten().to(dtype)
    mlm = (losses * weights).sum() / weights.sum()
    nsp = torch.nn.functional.cross_entropy(out.seq_relationship_logits, g["next_sentence_labels"].flatten())
    loss = mlm + nsp
    for group in optimizer.param_groups:
        group["lr"] = rate(t)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), a.clip)
    optimizer.step()
    line = f"step {t} loss {loss.item():.7f} mlm {mlm.item():.7f} nsp {nsp.item():.7f} norm {norm.item():.6f}"
    if t in ours:
        difference = abs(ours[t]["loss"] - loss.item()) / loss.item()
        worst = max(worst, difference)
        line += f" ours {ours[t]['loss']:.7f} relative {difference:.1e}"
    print(line)
if ours:
    print(f"largest relative difference of the loss: {worst:.2e}")
