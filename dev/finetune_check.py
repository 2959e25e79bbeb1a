"""Compares `bertc finetune` with transformers: both start from the same weights, the head's included, and see the same
examples in the order of the file, without dropout.

    finetune_check.py --bertc build/bertc --model FOLDER --task sst-2|mrpc|sts-b|cola --train FILE --dev FILE --work FOLDER
                      [--steps 50] [--batch 16] [--max_seq_length 128] [--learning_rate 5e-4] [--precision fp32|fp64]
                      [--checks curve,measures,ranks,resume]

curve     the loss of every step and the learning rate (metrics.jsonl), and the predictions for up to 1,000 dev examples before
          and after training (test_results.tsv), with PyTorch's AdamW
measures  eval_results.json, with scikit-learn and SciPy on the predictions that bertc wrote
ranks     the loss curve of one, two and four ranks
resume    a run stopped halfway and resumed: the same bits in final/model.safetensors

The head's initial weights come from bertc: a run of one step with a learning rate of 0 saves them, and both programs go on
from its folder. --precision is PyTorch's; with fp64 the differences are those of bertc's rounding alone. Exits with status 1
if anything is outside its bound. Needs torch, transformers, scikit-learn and scipy.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, BertTokenizerFast

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--bertc", required=True)
p.add_argument("--model", required=True)
p.add_argument("--task", required=True, choices=["sst-2", "mrpc", "sts-b", "cola"])
p.add_argument("--train", required=True)
p.add_argument("--dev", required=True)
p.add_argument("--work", required=True)
p.add_argument("--steps", type=int, default=50)
p.add_argument("--batch", type=int, default=16)
p.add_argument("--max_seq_length", type=int, default=128)
p.add_argument("--learning_rate", type=float, default=5e-4)
p.add_argument("--weight_decay", type=float, default=0.01)
p.add_argument("--eps", type=float, default=1e-6)
p.add_argument("--clip", type=float, default=1.0)
p.add_argument("--precision", default="fp32", choices=["fp32", "fp64"])
p.add_argument("--checks", default="curve,measures,ranks,resume")
a = p.parse_args()
checks = a.checks.split(",")
work = pathlib.Path(a.work)
work.mkdir(parents=True, exist_ok=True)
warmup = a.steps // 10
failures = 0

# Where the texts and the label are: (header lines, columns of the texts, column of the label), counted from 0.
LAYOUTS = {"sst-2": (1, [0], 1), "mrpc": (1, [3, 4], 0), "sts-b": (0, [5, 6], 4), "cola": (0, [3], 1)}


def report(name, value, bound):
    global failures
    good = value <= bound
    failures += not good
    print(f"{a.task:6s} {name:58s} {value:.3g} (bound {bound:g}){'' if good else '  FAILED'}", flush=True)


def read(path):
    header, texts, label = LAYOUTS[a.task]
    rows = [line.rstrip("\r\n").split("\t") for line in open(path, encoding="utf-8-sig", newline="\n")][header:]
    return [([row[i] for i in texts], row[label]) for row in rows]


def finetune(out, model, *options):
    command = [a.bertc, "finetune", "--task", a.task, "--model", str(model), "--train", a.train, "--dev", a.dev, "--test", a.dev,
               "--out", str(out), "--precision", "fp32", "--hidden_dropout_prob", "0", "--attention_probs_dropout_prob", "0",
               "--shuffle", "false", "--train_batch_size", str(a.batch), "--max_seq_length", str(a.max_seq_length),
               "--log_steps", "1", "--eval_steps", "0", "--save_checkpoints_steps", "0", "--optimizer", "adamw",
               "--bias_correction", "true", "--adam_epsilon", str(a.eps), "--weight_decay", str(a.weight_decay),
               "--max_grad_norm", str(a.clip), "--schedule", "linear", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with status {done.returncode}:\n{done.stderr[-2000:]}")
    return pathlib.Path(out)


def training(name, *options):
    return finetune(work / name, initial / "final", "--num_train_steps", str(a.steps), "--learning_rate", str(a.learning_rate),
                    "--num_warmup_steps", str(warmup), *options)


def curve(folder):
    rows = [json.loads(line) for line in open(folder / "metrics.jsonl")]
    return {row["step"]: row for row in rows if "loss" in row and "learning_rate" in row}


def predictions(folder):
    return np.array([[float(x) for x in line.split("\t")] for line in open(folder / "test_results.tsv")])


def relative(x, y):
    return abs(x - y) / max(abs(y), 1e-12)


initial = finetune(work / "initial", a.model, "--fresh", "--num_train_steps", "1", "--learning_rate", "0", "--num_warmup_steps", "0")
ours = training("one", "--ranks", "1", "--fresh")
train, dev = read(a.train), read(a.dev)
assert len(train) >= a.steps * a.batch, "more steps than an epoch: the order of the second is not compared"

# ---- The same in PyTorch ----

tokenizer = BertTokenizerFast(vocab=str(initial / "final/vocab.txt"), do_lower_case=json.load(
    open(initial / "final/tokenizer_config.json")).get("do_lower_case", True))
regression = a.task == "sts-b"
cut = 0


def ids_of(texts):
    """Google's truncation: the longer text loses its last token until both fit, the second one of equal lengths."""
    global cut
    parts = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    room = a.max_seq_length - 1 - len(parts)
    cut += sum(map(len, parts)) > room
    while sum(map(len, parts)) > room:
        max(reversed(parts), key=len).pop()
    ids, segments = [tokenizer.cls_token_id], [0]
    for number, part in enumerate(parts):
        ids += part + [tokenizer.sep_token_id]
        segments += [number] * (len(part) + 1)
    return ids, segments


def logits(model, rows):
    encoded = [ids_of(texts) for texts, _ in rows]
    width = max(len(ids) for ids, _ in encoded)
    ids, segments, mask = (torch.zeros(len(rows), width, dtype=torch.long) for _ in range(3))
    for i, (row, types) in enumerate(encoded):
        ids[i, :len(row)], segments[i, :len(row)], mask[i, :len(row)] = torch.tensor(row), torch.tensor(types), 1
    return model(input_ids=ids, token_type_ids=segments, attention_mask=mask).logits


def evaluate(model):
    with torch.no_grad():
        return torch.cat([logits(model, dev[i:i + 50]) for i in range(0, min(len(dev), 1000), 50)]).double().numpy()


def as_logits(values):
    """Probabilities as logits whose mean is 0; values of a regression as they are."""
    if regression:
        return values
    logs = np.log(values)
    return logs - logs.mean(1, keepdims=True)


def compare_predictions(name, theirs, folder, bound):
    mine = predictions(folder)
    assert len(mine) == len(dev), f"{len(mine)} predictions for {len(dev)} examples"
    if not regression:
        theirs = theirs - theirs.mean(1, keepdims=True)
    difference = np.abs(as_logits(mine[:len(theirs)]) - theirs).max()
    report(f"logits of {len(theirs)} dev examples {name}: largest |difference|", difference, bound)
    print(f"       (logits lie between {theirs.min():.3f} and {theirs.max():.3f}, spread over examples {theirs[:, 0].std():.3f})")


def rate(step):
    if step <= warmup:
        return a.learning_rate * step / warmup
    return a.learning_rate * (a.steps + 1 - step) / (a.steps + 1 - warmup)


def check_curve():
    torch.set_num_threads(1)
    dtype = torch.float64 if a.precision == "fp64" else torch.float32
    model = AutoModelForSequenceClassification.from_pretrained(
        initial / "final", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, dtype=dtype, attn_implementation="eager")
    model.train()
    compare_predictions("before training", evaluate(model), initial, 1e-5)
    plain = [n.endswith("bias") or "LayerNorm" in n for n, _ in model.named_parameters()]
    parameters = [q for _, q in model.named_parameters()]
    optimizer = torch.optim.AdamW(
        [{"params": [q for q, bare in zip(parameters, plain) if not bare], "weight_decay": a.weight_decay},
         {"params": [q for q, bare in zip(parameters, plain) if bare], "weight_decay": 0.0}],
        lr=a.learning_rate, betas=(0.9, 0.999), eps=a.eps)
    mine = curve(ours)
    worst, worst_rate, worst_norm, first, last = (0.0, 0), 0.0, 0.0, None, None
    for step in range(1, a.steps + 1):
        rows = train[(step - 1) * a.batch:step * a.batch]
        out = logits(model, rows)
        if regression:
            loss = torch.nn.functional.mse_loss(out[:, 0], torch.tensor([float(y) for _, y in rows], dtype=dtype))
        else:
            loss = torch.nn.functional.cross_entropy(out, torch.tensor([model.config.label2id[y] for _, y in rows]))
        optimizer.zero_grad()
        loss.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, a.clip))
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        worst = max(worst, (relative(mine[step]["loss"], loss.item()), step))
        worst_rate = max(worst_rate, relative(mine[step]["learning_rate"], rate(step)))
        worst_norm = max(worst_norm, relative(mine[step]["grad_norm"], norm))
        first, last = loss.item() if step == 1 else first, loss.item()
        if step == 1:
            report("loss of the first step, relative", relative(mine[1]["loss"], first), 1e-6)
            report("gradient norm of the first step, relative", relative(mine[1]["grad_norm"], norm), 1e-5)
    report(f"loss of {a.steps} steps, relative (worst: step {worst[1]})", worst[0], 1e-4)
    report("learning rate of all steps, relative", worst_rate, 1e-6)
    report("gradient norm of all steps, relative", worst_norm, 1e-3)
    print(f"       (loss {first:.4f} at step 1, {last:.4f} at step {a.steps}; PyTorch {a.precision}; {cut} texts were cut)")
    compare_predictions("after training", evaluate(model), ours, 1e-4)


def check_measures(folder):
    from scipy import stats
    from sklearn import metrics
    values, results = predictions(folder), json.load(open(folder / "eval_results.json"))
    expected = {"examples": len(dev)}
    if regression:
        truth, values = np.array([float(y) for _, y in dev]), values[:, 0]
        expected |= {"mse": metrics.mean_squared_error(truth, values), "pearson": stats.pearsonr(truth, values)[0],
                     "spearmanr": stats.spearmanr(truth, values)[0], "loss": metrics.mean_squared_error(truth, values)}
    else:
        truth, chosen = np.array([int(y) for _, y in dev]), values.argmax(1)
        expected |= {"accuracy": metrics.accuracy_score(truth, chosen), "f1": metrics.f1_score(truth, chosen),
                     "f1_micro": metrics.f1_score(truth, chosen, average="micro"),
                     "precision": metrics.precision_score(truth, chosen, zero_division=0),
                     "recall": metrics.recall_score(truth, chosen),
                     "matthews_correlation": metrics.matthews_corrcoef(truth, chosen),
                     "auc": metrics.roc_auc_score(truth, values[:, 1]), "loss": metrics.log_loss(truth, values)}
    missing = [name for name in results if name.startswith("eval_") and name[5:] not in expected]
    for name, value in expected.items():
        if "eval_" + name not in results:
            missing.append("(absent) " + name)
            continue
        report(f"eval_{name} = {results['eval_' + name]:.6f}, |difference|", abs(results["eval_" + name] - value), 1e-6)
    if missing:
        print("       not compared:", ", ".join(missing))


def check_ranks():
    one = curve(ours)
    for ranks in (2, 4):
        many = curve(training(f"ranks{ranks}", "--ranks", str(ranks), "--fresh"))
        assert sorted(one) == sorted(many) == list(range(1, a.steps + 1)), "steps are missing from metrics.jsonl"
        report(f"loss of {a.steps} steps, {ranks} ranks and one, relative",
               max(relative(many[step]["loss"], one[step]["loss"]) for step in one), 1e-5)


def check_resume():
    for name, ranks in (("", "1"), ("2", "2")):
        whole = training("whole" + name, "--fresh", "--ranks", ranks)
        training("halves" + name, "--fresh", "--ranks", ranks, "--stop_at_step", str(a.steps // 2))
        halves = training("halves" + name, "--ranks", ranks)
        same = (whole / "final/model.safetensors").read_bytes() == (halves / "final/model.safetensors").read_bytes()
        report(f"stopped at {a.steps // 2} and resumed, {ranks} rank(s): other bits", 0 if same else 1, 0)


if "curve" in checks:
    check_curve()
if "measures" in checks:
    check_measures(ours)
if "ranks" in checks:
    check_ranks()
if "resume" in checks:
    check_resume()
sys.exit(failures > 0)
