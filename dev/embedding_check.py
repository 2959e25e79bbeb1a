"""Compares `bertc finetune --task embedding` and `--task reranking` with sentence-transformers: both start from the same weights
and see the same examples in the order of the file, without dropout.

    embedding_check.py --bertc build/bertc --model FOLDER --pairs FILE --scored FILE --scored_dev FILE --pairs_dev FILE
                       --work FOLDER [--steps 50] [--batch 16] [--checks vectors,curve,measures,cut,reranking]

FILEs are TSV with a header: anchor and positive, or two texts and a score (from 0 to 5).

vectors    SentenceTransformer(folder).encode beside `bertc embed`, for mean and [CLS] pooling
curve      the loss of every step with sentence-transformers' own losses and PyTorch's AdamW: pairs, triplets, CoSENT, cosine
measures   eval_results.json beside sentence-transformers' evaluators and SciPy on the vectors of the folder
cut        the curve on 1, 2 and 4 ranks and of three sizes of micro-batches, with dropout
reranking  the curve and the scores of a CrossEncoder

Exits with status 1 if anything is outside its bound. Needs torch, sentence-transformers and scipy.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
from scipy import stats
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer import losses

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("bertc", "model", "pairs", "pairs_dev", "scored", "scored_dev", "work"):
    p.add_argument("--" + name, required=True)
p.add_argument("--steps", type=int, default=50)
p.add_argument("--batch", type=int, default=16)
p.add_argument("--max_seq_length", type=int, default=128)
p.add_argument("--learning_rate", type=float, default=1e-4)
p.add_argument("--precision", default="fp64", choices=["fp32", "fp64"])
p.add_argument("--checks", default="vectors,curve,measures,cut,reranking")
a = p.parse_args()
checks = a.checks.split(",")
work = pathlib.Path(a.work)
work.mkdir(parents=True, exist_ok=True)
warmup, failures = a.steps // 10, 0
torch.set_num_threads(1)
if a.precision == "fp64":
    torch.set_default_dtype(torch.float64)


def report(name, value, bound):
    global failures
    failures += not value <= bound
    print(f"{name:80s} {value:.3g} (bound {bound:g}){'' if value <= bound else '  FAILED'}", flush=True)


def run(*command):
    done = subprocess.run([a.bertc, *map(str, command)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with status {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def finetune(out, model, train, *options, task="embedding", dropout=0.0, steps=None):
    run("finetune", "--task", task, "--model", model, "--train", train, "--out", out, "--precision", "fp32", "--fresh",
        "--hidden_dropout_prob", dropout, "--attention_probs_dropout_prob", dropout, "--shuffle", "false",
        "--train_batch_size", a.batch, "--max_seq_length", a.max_seq_length, "--log_steps", 1, "--eval_steps", 0,
        "--save_checkpoints_steps", 0, "--optimizer", "adamw", "--bias_correction", "true", "--adam_epsilon", 1e-6,
        "--weight_decay", 0.01, "--max_grad_norm", 1.0, "--schedule", "linear", "--num_train_steps", steps or a.steps,
        "--learning_rate", a.learning_rate, "--num_warmup_steps", min(warmup, (steps or a.steps) - 1), *options)
    return pathlib.Path(out)


def curve(folder):
    rows = [json.loads(line) for line in open(folder / "metrics.jsonl")]
    return [row["loss"] for row in rows if "loss" in row and "learning_rate" in row]


def read(path):
    """Rows with quotes are left out, since they can be read in two ways."""
    rows = csv.DictReader(open(path, encoding="utf-8", newline="\n"), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [dict(row) for row in rows if '"' not in "".join(row.values())]


def write(name, rows):
    path = work / name
    with open(path, "w", encoding="utf-8") as out:
        for row in [list(rows[0])] + [list(row.values()) for row in rows]:
            out.write("\t".join(map(str, row)) + "\n")
    return path


def without_repeats(rows):
    """bertc leaves equal texts out of the negatives of a batch, sentence-transformers does not: so repeated texts are removed."""
    seen, kept = set(), []
    for row in rows:
        texts = [str(x).lower() for x in list(row.values())]
        if not seen & set(texts) and len(set(texts)) == len(texts):
            seen |= set(texts)
            kept.append(row)
    return kept


def compare_curve(name, folder, model, loss_of, bound=1e-4):
    parameters = [(n, q) for n, q in model.named_parameters() if "pooler" not in n or isinstance(model, torch.nn.Module) and name == "reranking"]
    bare = [n.endswith("bias") or "LayerNorm" in n for n, _ in parameters]
    optimizer = torch.optim.AdamW(
        [{"params": [q for (_, q), b in zip(parameters, bare) if not b], "weight_decay": 0.01},
         {"params": [q for (_, q), b in zip(parameters, bare) if b], "weight_decay": 0.0}], lr=1, betas=(0.9, 0.999), eps=1e-6)
    ours, worst = curve(folder), (0.0, 0)
    first = last = None
    for step in range(1, a.steps + 1):
        loss = loss_of((step - 1) * a.batch, step * a.batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([q for _, q in parameters], 1.0)
        rate = a.learning_rate * (step / warmup if step <= warmup else (a.steps + 1 - step) / (a.steps + 1 - warmup))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        worst = max(worst, (abs(ours[step - 1] - loss.item()) / max(abs(loss.item()), 1e-12), step))
        first, last = first if step > 1 else loss.item(), loss.item()
    report(f"{name}: loss of {a.steps} steps, relative (worst: step {worst[1]})", worst[0], bound)
    print(f"       (loss {first:.5f} at step 1, {last:.5f} at step {a.steps})")


def without_dropout(model):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0
    model.train()
    return model.double() if a.precision == "fp64" else model


def start_of(pooling):
    """A sentence-transformers folder with the weights that training starts from."""
    pairs = write("two.tsv", without_repeats(read(a.pairs))[:4])
    return finetune(work / f"start_{pooling}", a.model, pairs, "--pooling", pooling, "--learning_rate", 0, steps=1) / "final"


def vectors_of(folder, texts):
    path = work / "texts.txt"
    path.write_text("".join(t + "\n" for t in texts), encoding="utf-8")
    out = run("embed", "--model", folder, "--precision", "fp32", path)
    return np.array([json.loads(line)["embedding"] for line in out.splitlines()])


def check_vectors():
    rows = read(a.scored_dev)[:500]
    texts = [list(row.values())[0] for row in rows]
    for pooling in ("mean", "cls"):
        folder = start_of(pooling)
        model = SentenceTransformer(str(folder), device="cpu")
        theirs, mine = model.encode(texts), vectors_of(folder, texts)
        assert len(model) == 3 and abs(np.linalg.norm(theirs, axis=1) - 1).max() < 1e-5
        report(f"vectors of {len(texts)} texts, {pooling} pooling: largest |difference|", abs(theirs - mine).max(), 1e-5)


def check_curves():
    folder = start_of("mean")
    pairs = without_repeats(read(a.pairs))
    scored = read(a.scored)
    for row in scored:
        row["score"] = float(row["score"]) / 5
    triplets = [dict(anchor=x["anchor"], positive=x["positive"], negative=y["positive"]) for x, y in zip(pairs[::2], pairs[1::2])]
    batch = a.steps * a.batch
    cases = {"pairs": (pairs, losses.MultipleNegativesRankingLoss, []), "triplets": (triplets, losses.MultipleNegativesRankingLoss, []),
             "cosent": (scored, losses.CoSENTLoss, []), "cosine": (scored, losses.CosineSimilarityLoss, ["--score_loss", "cosine"])}
    for name, (rows, loss_class, options) in cases.items():
        assert len(rows) >= batch, f"{name}: more steps than an epoch"
        rows = rows[:batch]
        ours = finetune(work / name, folder, write(name + ".tsv", rows), *options)
        model = without_dropout(SentenceTransformer(str(folder), device="cpu"))
        loss = loss_class(model)
        columns = [c for c in rows[0] if c != "score"]

        def loss_of(first, end):
            features = [model.preprocess([str(row[c]) for row in rows[first:end]]) for c in columns]
            scores = torch.tensor([row.get("score", 0.0) for row in rows[first:end]], dtype=torch.get_default_dtype())
            return loss(features, scores)

        compare_curve(name, ours, model, loss_of)
        texts = [str(row[columns[0]]) for row in rows[:200]]
        model.eval()
        report(f"{name}: vectors after training, largest |difference|", abs(model.encode(texts) - vectors_of(ours / "final", texts)).max(), 1e-3)


def check_measures():
    from sentence_transformers.sentence_transformer.evaluation import (EmbeddingSimilarityEvaluator, InformationRetrievalEvaluator,
                                                                        TripletEvaluator)
    pairs, scored = read(a.pairs_dev), read(a.scored_dev)
    triplets = [dict(anchor=x["anchor"], positive=x["positive"], negative=y["positive"]) for x, y in zip(pairs, pairs[7:])]
    folder = finetune(work / "measured", a.model, a.pairs, "--dev", "pairs=" + str(write("d_pairs.tsv", pairs)),
                      "scored=" + str(write("d_scored.tsv", scored)), "triplets=" + str(write("d_triplets.tsv", triplets)), steps=20)
    results = json.load(open(folder / "eval_results.json"))
    model = SentenceTransformer(str(folder / "final"), device="cpu")
    columns = list(scored[0])
    left, right = ([row[c] for row in scored] for c in columns[:2])
    gold = [float(row[columns[2]]) for row in scored]
    theirs = EmbeddingSimilarityEvaluator(left, right, gold)(model)
    report("spearmanr beside EmbeddingSimilarityEvaluator", abs(results["eval_scored_spearmanr"] - theirs["spearman_cosine"]), 1e-6)
    report("pearson beside EmbeddingSimilarityEvaluator", abs(results["eval_scored_pearson"] - theirs["pearson_cosine"]), 1e-6)
    for name, rows in (("pairs", pairs), ("triplets", triplets)):
        query = {}
        corpus, relevant = {}, {}
        for row in rows:
            q = query.setdefault(row["anchor"].lower(), f"q{len(query)}")
            for c in ("positive", "negative"):
                if c in row:
                    corpus.setdefault(row[c].lower(), f"d{len(corpus)}")
            relevant.setdefault(q, set()).add(corpus[row["positive"].lower()])
        evaluator = InformationRetrievalEvaluator({i: t for t, i in query.items()}, {i: t for t, i in corpus.items()}, relevant,
                                                  mrr_at_k=[10], ndcg_at_k=[10])
        theirs = evaluator(model)
        for ours, key in (("ndcg@10", "cosine_ndcg@10"), ("mrr@10", "cosine_mrr@10")):
            report(f"{name}: {ours} = {results[f'eval_{name}_{ours}']:.6f} beside InformationRetrievalEvaluator",
                   abs(results[f"eval_{name}_{ours}"] - theirs[key]), 1e-6)
    theirs = TripletEvaluator(*([row[c] for row in triplets] for c in ("anchor", "positive", "negative")))(model)
    report("triplets: accuracy beside TripletEvaluator", abs(results["eval_triplets_accuracy"] - theirs["cosine_accuracy"]), 1e-9)


def check_cut():
    pairs = write("cut.tsv", read(a.pairs)[:a.steps * a.batch])
    scored = write("cut_scored.tsv", read(a.scored)[:a.steps * a.batch])
    for name, rows in (("pairs", pairs), ("cosent", scored)):
        def trained(label, *options):
            return curve(finetune(work / f"cut_{name}_{label}", a.model, rows, *options, dropout=0.1))
        one = trained("whole")
        for label, options in {"2 ranks": ["--ranks", 2], "4 ranks": ["--ranks", 4], "2 micro-batches": ["--gradient_accumulation_steps", 2],
                               "4 micro-batches": ["--gradient_accumulation_steps", 4],
                               "a micro-batch an example": ["--gradient_accumulation_steps", a.batch],
                               "2 ranks of 4 micro-batches": ["--ranks", 2, "--gradient_accumulation_steps", 4]}.items():
            other = trained(label.replace(" ", "_"), *options)
            report(f"{name}: loss of the first step, {label}, relative", abs(other[0] - one[0]) / one[0], 1e-6)
            report(f"{name}: loss of {a.steps} steps, {label}, relative", max(abs(x - y) / abs(y) for x, y in zip(other, one)), 1e-4)


def check_reranking():
    rows = read(a.scored)[:a.steps * a.batch]
    for row in rows:
        row["score"] = round(float(row["score"]) / 5, 4)
    train = write("rerank.tsv", rows)
    start = finetune(work / "rerank_start", a.model, train, "--learning_rate", 0, task="reranking", steps=1) / "final"
    ours = finetune(work / "rerank", start, train, task="reranking")
    model = CrossEncoder(str(start), device="cpu", max_length=a.max_seq_length)
    assert isinstance(model.activation_fn, torch.nn.Sigmoid), model.activation_fn
    without_dropout(model)
    criterion = torch.nn.BCEWithLogitsLoss()
    columns = [c for c in rows[0] if c != "score"]

    def loss_of(first, end):
        texts = [[str(row[c]) for c in columns] for row in rows[first:end]]
        encoded = model.tokenizer(texts, padding=True, truncation=True, max_length=a.max_seq_length, return_tensors="pt")
        return criterion(model.model(**encoded).logits[:, 0], torch.tensor([row["score"] for row in rows[first:end]]))

    compare_curve("reranking", ours, model, loss_of)
    texts = [[str(row[c]) for c in columns] for row in rows[:300]]
    path = work / "rerank_texts.tsv"
    path.write_text("".join("\t".join(t) + "\n" for t in [["query", "passage"], *texts]), encoding="utf-8")
    mine = np.array([json.loads(line)["score"] for line in run("predict", "--model", start, "--precision", "fp32", path).splitlines()])
    model = CrossEncoder(str(start), device="cpu", max_length=a.max_seq_length)
    report("reranking: scores of 300 pairs, largest |difference|", abs(model.predict(texts) - mine).max(), 1e-5)


for name, check in (("vectors", check_vectors), ("curve", check_curves), ("measures", check_measures), ("cut", check_cut),
                    ("reranking", check_reranking)):
    if name in checks:
        check()
sys.exit(failures > 0)
