"""Trains Hugging Face's BertForPreTraining, or the model of masked words of another form of the encoder, on batches written by
dump_batches: the peer that a run of bertc is compared with, with the same weights, batches, rates and optimizer.

    train_torch.py --init FOLDER --batches B.safetensors --steps N --total_steps N --warmup W --learning_rate X
                   [--dropout P] [--precision fp32|fp64|bf16] [--save FOLDER] [--save_every N] [--out metrics.jsonl]
                   [--optimizer adamw|google_adamw|lamb|nvlamb|nvlamb_uncorrected]

BERT's head runs on masked rows only (the same numbers as on all rows, with less work). Optimizers, none of them ours:

    adamw               torch.optim.AdamW
    google_adamw        BertAdam of pytorch-pretrained-bert, its own clipping and schedule off
    lamb, nvlamb        Lamb of timm, which clips as NVIDIA's code does; nvlamb: always_adapt
    nvlamb_uncorrected  Lamb of torch-optimizer: trust ratio everywhere, no bias correction
"""
import argparse
import json
import time

import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForMaskedLM, BertForPreTraining

p = argparse.ArgumentParser()
p.add_argument("--init", required=True)
p.add_argument("--batches", required=True)
p.add_argument("--steps", type=int, required=True)
p.add_argument("--total_steps", type=int, required=True)
p.add_argument("--warmup", type=int, required=True)
p.add_argument("--learning_rate", type=float, required=True)
p.add_argument("--dropout", type=float, default=0.0)
p.add_argument("--weight_decay", type=float, default=0.01)
p.add_argument("--eps", type=float, default=1e-6)
p.add_argument("--clip", type=float, default=1.0)
p.add_argument("--precision", default="fp32")
p.add_argument("--save")
p.add_argument("--save_every", type=int, default=200)
p.add_argument("--out")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--seed", type=int, default=1)
p.add_argument("--attention", default="sdpa")
p.add_argument("--optimizer", default="adamw")
a = p.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(a.seed)
dtype = torch.float64 if a.precision == "fp64" else torch.float32
config = AutoConfig.from_pretrained(a.init)
is_bert = config.model_type == "bert"
rates = {name: a.dropout for name in config.to_dict() if "dropout" in name or "pdrop" in name}
model = (BertForPreTraining if is_bert else AutoModelForMaskedLM).from_pretrained(
    a.init, dtype=dtype, attn_implementation=a.attention, **rates)
model.train()
decayed = [q for n, q in model.named_parameters() if not n.endswith("bias") and "norm" not in n.lower()]
plain = [q for n, q in model.named_parameters() if n.endswith("bias") or "norm" in n.lower()]
groups = [{"params": decayed, "weight_decay": a.weight_decay}, {"params": plain, "weight_decay": 0.0}]
clips = a.clip > 0
if a.optimizer == "adamw":
    optimizer = torch.optim.AdamW(groups, lr=a.learning_rate, betas=(0.9, 0.999), eps=a.eps, fused=True)
elif a.optimizer == "google_adamw":
    from pytorch_pretrained_bert.optimization import BertAdam
    optimizer = BertAdam(groups, lr=a.learning_rate, schedule="none", e=a.eps, max_grad_norm=-1)
elif a.optimizer in ("lamb", "nvlamb"):
    import timm.optim
    optimizer = timm.optim.Lamb(groups, lr=a.learning_rate, betas=(0.9, 0.999), eps=a.eps,
                                max_grad_norm=a.clip if clips else None, always_adapt=a.optimizer == "nvlamb")
    clips = False
else:
    import torch_optimizer
    assert a.optimizer == "nvlamb_uncorrected", a.optimizer
    optimizer = torch_optimizer.Lamb(groups, lr=a.learning_rate, betas=(0.9, 0.999), eps=a.eps, clamp_value=1e9)
file = safe_open(a.batches, "pt")
out = open(a.out, "w") if a.out else None
NAMES = ("ids", "types", "positions", "starts", "rows", "labels", *(["next"] if is_bert else []))


def rate(t):
    if t <= a.warmup:
        return a.learning_rate * t / a.warmup
    return a.learning_rate * (a.total_steps + 1 - t) / (a.total_steps + 1 - a.warmup)


def batch(t):
    """Turns packed rows into padded ones."""
    g = {k: file.get_tensor(f"step{t}.{k}").long() for k in NAMES}
    lengths = g["starts"][1:] - g["starts"][:-1]
    b, s = len(lengths), int(lengths.max())
    ids = torch.full((b, s), config.pad_token_id or 0)
    types = torch.zeros(b, s, dtype=torch.long)
    mask = torch.zeros(b, s, dtype=torch.long)
    for i, (begin, n) in enumerate(zip(g["starts"].tolist(), lengths.tolist())):
        ids[i, :n] = g["ids"][begin:begin + n]
        types[i, :n] = g["types"][begin:begin + n]
        mask[i, :n] = 1
    sequence = torch.bucketize(g["rows"], g["starts"], right=True) - 1
    rows = sequence * s + g["rows"] - g["starts"][sequence]
    return ids, types, mask, rows, g["labels"], g.get("next")


started = time.time()
tokens = 0
for t in range(1, a.steps + 1):
    ids, types, mask, rows, labels, following = batch(t)
    lr = rate(t)
    for group in optimizer.param_groups:
        group["lr"] = lr
    with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
        nsp = torch.zeros(())
        if is_bert:
            o = model.bert(ids, attention_mask=mask, token_type_ids=types)
            logits = model.cls.predictions(o.last_hidden_state.flatten(0, 1)[rows])
            following_logits = model.cls.seq_relationship(o.pooler_output)
            following_logits = following_logits if dtype == torch.float64 else following_logits.float()
            nsp = torch.nn.functional.cross_entropy(following_logits, following)
        else:
            logits = model(ids, attention_mask=mask).logits.flatten(0, 1)[rows]
        logits = logits if dtype == torch.float64 else logits.float()
        mlm = torch.nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad(set_to_none=True)
    (mlm + nsp).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), a.clip if clips else float("inf"))
    optimizer.step()
    tokens += int(mask.sum())
    line = {"step": t, "loss": (mlm + nsp).item(), "mlm_loss": mlm.item(), "nsp_loss": nsp.item(),
            "mlm_accuracy": (logits.argmax(-1) == labels).float().mean().item(), "learning_rate": lr,
            "grad_norm": norm.item(), "tokens": tokens, "seconds": time.time() - started}
    if out:
        out.write(json.dumps(line) + "\n")
        out.flush()
    if a.save and a.save_every and t % a.save_every == 0:
        model.save_pretrained(f"{a.save}-{t}")
    if t % 50 == 0 or t == a.steps:
        print(line, flush=True)
if a.save:
    model.save_pretrained(a.save)
