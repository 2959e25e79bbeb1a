"""Compares `bertc finetune --task relation` with PyTorch: both start from the same weights, the head's included, and see the same
examples in the order of the file, without dropout.

    relation_check.py --bertc build/bertc --model FOLDER --train chemprot/train.jsonl --dev chemprot/dev.jsonl --work FOLDER
                      [--head cls|markers] [--marker_tokens text|vocabulary] [--steps 30] [--negative LABEL]

Texts in ChemProt's form, << >> and [[ ]], that fit --max_seq_length (longer ones are cut in a way that transformers does not know).
The loss of every step; the probabilities of up to 500 dev examples before and after; micro F1 by scikit-learn. Needs torch, transformers,
scikit-learn. Exits with status 1 if anything is outside its bound.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import torch
from safetensors.torch import load_file
from sklearn import metrics
from transformers import BertConfig, BertModel, BertTokenizerFast

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--bertc", required=True)
p.add_argument("--model", required=True)
p.add_argument("--train", required=True)
p.add_argument("--dev", required=True)
p.add_argument("--work", required=True)
p.add_argument("--head", default="cls", choices=["cls", "markers"])
p.add_argument("--marker_tokens", default="text", choices=["text", "vocabulary"])
p.add_argument("--steps", type=int, default=30)
p.add_argument("--batch", type=int, default=16)
p.add_argument("--max_seq_length", type=int, default=96)
p.add_argument("--learning_rate", type=float, default=5e-4)
p.add_argument("--negative")
a = p.parse_args()
work = pathlib.Path(a.work)
shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
failures = 0


def report(name, value, bound):
    global failures
    good = value <= bound
    failures += not good
    print(f"{a.head} {a.marker_tokens} {name:50s} {value:.3g} (bound {bound:g}){'' if good else '  FAILED'}", flush=True)


plain = BertTokenizerFast.from_pretrained(pathlib.Path(a.model) / "final")
for source, target, most in ((a.train, "train.jsonl", a.steps * a.batch), (a.dev, "dev.jsonl", 500)):
    rows = [json.loads(line) for line in open(source)]
    rows = [r for r in rows if all(r["text"].count(m) == 1 for m in ("<<", ">>", "[[", "]]"))
            and len(plain(r["text"])["input_ids"]) <= a.max_seq_length]
    rows.sort(key=lambda r: rows.index(r)) if False else None
    if target == "train.jsonl":
        labels = sorted({r["label"] for r in rows[:most]})
    rows = [r for r in rows if r["label"] in labels]
    (work / target).write_text("".join(json.dumps({"text": r["text"], "label": r["label"]}) + "\n" for r in rows[:most]))


def finetune(out, model, *options):
    command = [a.bertc, "finetune", "--task", "relation", "--model", str(model), "--train", str(work / "train.jsonl"), "--dev",
               str(work / "dev.jsonl"), "--test", str(work / "dev.jsonl"), "--out", str(out), "--precision", "fp32",
               "--hidden_dropout_prob", "0", "--attention_probs_dropout_prob", "0", "--shuffle", "false", "--train_batch_size",
               str(a.batch), "--max_seq_length", str(a.max_seq_length), "--log_steps", "1", "--eval_steps", "0",
               "--save_checkpoints_steps", "0", "--relation_head", a.head, "--marker_tokens", a.marker_tokens, "--threads", "2",
               *(["--negative_label", a.negative] if a.negative else []), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with status {done.returncode}:\n{done.stderr[-2000:]}")
    return pathlib.Path(out)


start = finetune(work / "start", a.model, "--num_train_steps", "1", "--learning_rate", "0")
run = finetune(work / "run", start / "final", "--num_train_steps", str(a.steps), "--learning_rate", str(a.learning_rate),
               "--num_warmup_steps", "3")
tokenizer = BertTokenizerFast.from_pretrained(start / "final")
config = BertConfig.from_pretrained(start / "final", hidden_dropout_prob=0, attention_probs_dropout_prob=0)
weights = load_file(start / "final" / "model.safetensors")
bert = BertModel(config, add_pooling_layer=a.head == "cls")
missing = bert.load_state_dict({k[5:]: v for k, v in weights.items() if k.startswith("bert.")}, strict=False)
assert not [k for k in missing.missing_keys if "position_ids" not in k] and not missing.unexpected_keys, missing
head = torch.nn.Linear(weights["classifier.weight"].shape[1], weights["classifier.weight"].shape[0])
head.load_state_dict({"weight": weights["classifier.weight"], "bias": weights["classifier.bias"]})
numbers = config.label2id


def encode(rows):
    batch = tokenizer([r["text"] for r in rows], return_offsets_mapping=True, padding=True, return_tensors="pt")
    places = [[[i for i, (b, e) in enumerate(batch["offset_mapping"][k].tolist()) if b == r["text"].index(m) and e > b][0]
               for m in ("<<", "[[")] for k, r in enumerate(rows)]
    return batch, torch.tensor(places), torch.tensor([numbers[r["label"]] for r in rows])


def logits(batch, places):
    out = bert(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
    if a.head == "cls":
        return head(out.pooler_output)
    rows = out.last_hidden_state[torch.arange(len(places))[:, None], places]
    return head(rows.reshape(len(places), -1))


read = lambda name: [json.loads(line) for line in open(work / name)]
train, dev = read("train.jsonl"), read("dev.jsonl")


def probabilities():
    with torch.no_grad():
        return torch.cat([logits(*encode(dev[i:i + 50])[:2]).softmax(-1) for i in range(0, len(dev), 50)]).numpy()


def check_predictions(name, folder):
    ours = np.loadtxt(folder / "test_results.tsv", delimiter="\t")
    report(f"probabilities of {len(dev)} examples {name} training", np.abs(ours - probabilities()).max(), 1e-5 if name == "before" else 1e-3)


check_predictions("before", start)
no_decay = lambda n: n.endswith("bias") or "LayerNorm" in n
named = list(bert.named_parameters()) + [("classifier." + n, q) for n, q in head.named_parameters()]
named = [(n, q) for n, q in named]
optimizer = torch.optim.AdamW([{"params": [q for n, q in named if not no_decay(n)], "weight_decay": 0.01},
                               {"params": [q for n, q in named if no_decay(n)], "weight_decay": 0}], lr=1, eps=1e-6)
lines = [json.loads(line) for line in open(run / "metrics.jsonl")]
ours = {line["step"]: line for line in lines if "loss" in line}
worst = 0
for step in range(1, a.steps + 1):
    rows = train[(step - 1) * a.batch:step * a.batch]
    batch, places, labels = encode(rows)
    loss = torch.nn.functional.cross_entropy(logits(batch, places), labels)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_([q for _, q in named], 1.0)
    for group in optimizer.param_groups:
        group["lr"] = ours[step]["learning_rate"]
    optimizer.step()
    worst = max(worst, abs(loss.item() - ours[step]["loss"]) / loss.item())
report(f"loss of {a.steps} steps, relative", worst, 1e-4)
check_predictions("after", run)
result = json.load(open(run / "eval_results.json"))
gold = [numbers[r["label"]] for r in dev]
predicted = np.loadtxt(run / "predict.txt", dtype=int)
kept = [i for label, i in numbers.items() if label != a.negative]
report("micro F1", abs(result["eval_f1_micro"] - metrics.f1_score(gold, predicted, labels=kept, average="micro")), 1e-9)
report("macro F1", abs(result["eval_f1"] - metrics.f1_score(gold, predicted, average="macro")), 1e-9)
sys.exit(failures > 0)
