"""Scores by other people's code for random and odd inputs, for tests/tasks/test_measures.c.

    python dev/measures_golden.py tests/golden/measures.json            a few cases of each kind
    python dev/measures_golden.py /tmp/many.json 2000 7                 this many of each kind, from another seed;
    MEASURES_GOLDEN=/tmp/many.json build/tests/tasks/test_measures      the same test reads them

classes, multilabel, auc, ndcg@10   scikit-learn
pearson, spearmanr                  SciPy
entities                            seqeval, default mode
bleu_1, ..., bleu_4                 sacrebleu (tokenize none, no smoothing)
bleu_sentence                       NLTK, SmoothingFunction.method2
rouge_1, rouge_2, rouge_l           rouge-score
mrr@10                              its definition, over every order of candidates with equal scores
"""
import itertools
import json
import math
import random
import sys
import warnings

import numpy
import rouge_score.rouge_scorer
import sacrebleu
import scipy.stats
import seqeval.metrics
from nltk.translate import bleu_score
from sklearn import metrics

warnings.filterwarnings("ignore")


def classes(draw):
    count = draw.choice([1, 2, 3, 5, 20, 100])
    number = draw.choice([2, 2, 3, 4, 9])
    used = draw.randint(1, number)
    gold = [draw.randrange(used) for _ in range(count)]
    predicted = [g if draw.random() < 0.5 else draw.randrange(number) for g in gold]
    if draw.random() < 0.2:
        predicted = [draw.randrange(number)] * count
    average = "binary" if number == 2 else "macro"
    negative = draw.choice([-1, -1, 0, number - 1])
    marked = [c for c in range(number) if c != negative]
    options = dict(average=average, zero_division=0)
    expected = {
        "accuracy": metrics.accuracy_score(gold, predicted),
        "precision": metrics.precision_score(gold, predicted, **options),
        "recall": metrics.recall_score(gold, predicted, **options),
        "f1": metrics.f1_score(gold, predicted, **options),
        "f1_micro": metrics.f1_score(gold, predicted, labels=marked, average="micro", zero_division=0),
        "matthews_correlation": metrics.matthews_corrcoef(gold, predicted),
    }
    if negative >= 0:
        options = dict(labels=marked, average="micro", zero_division=0)
        expected["precision_micro"] = metrics.precision_score(gold, predicted, **options)
        expected["recall_micro"] = metrics.recall_score(gold, predicted, **options)
    rows = metrics.precision_recall_fscore_support(gold, predicted, labels=list(range(number)), zero_division=0)
    return dict(classes=number, negative=negative, gold=gold, predicted=predicted, expected=expected,
                confusion=metrics.confusion_matrix(gold, predicted, labels=list(range(number))).flatten().tolist(),
                per_class=[list(map(float, row)) for row in zip(*rows)])


def auc(draw):
    count = draw.choice([1, 2, 3, 10, 200])
    gold = [draw.randrange(2) for _ in range(count)]
    if draw.random() < 0.1:
        gold = [1] * count
    digits = draw.choice([0, 1, 2, 17])
    scores = [round(draw.random() * draw.choice([1, 1, 10]), digits) for _ in gold]
    area = metrics.roc_auc_score(gold, scores) if len(set(gold)) > 1 else math.nan
    return dict(gold=gold, scores=scores, expected={"auc": area})


def values(draw):
    count = draw.choice([1, 2, 3, 10, 300])
    offset = draw.choice([0, 0, 1e6])
    digits = draw.choice([0, 1, 6])
    gold = [round(draw.gauss(2.5, 1.5) + offset, digits) for _ in range(count)]
    predicted = [round(0.7 * g + draw.gauss(0, 1), digits) for g in gold]
    if draw.random() < 0.1:
        predicted = [1.5] * count
    expected = {"pearson": math.nan, "spearmanr": math.nan, "mse": metrics.mean_squared_error(gold, predicted)}
    if count > 1:
        expected["pearson"] = scipy.stats.pearsonr(gold, predicted)[0]
        expected["spearmanr"] = scipy.stats.spearmanr(gold, predicted)[0]
    return dict(gold=gold, predicted=predicted, expected=expected)


def multilabel(draw):
    count, labels = draw.choice([1, 2, 10, 50]), draw.choice([1, 2, 5, 12])
    share = draw.choice([0, 0.1, 0.5])
    gold = numpy.array([[int(draw.random() < share) for _ in range(labels)] for _ in range(count)])
    predicted = numpy.array([[v if draw.random() < 0.7 else int(draw.random() < 0.3) for v in row] for row in gold.tolist()])
    if labels == 1:  # scikit-learn expects a single column for a binary task
        scores = [[f(gold[:, 0], predicted[:, 0], zero_division=0) for f in
                   (metrics.precision_score, metrics.recall_score, metrics.f1_score)] + [int(gold.sum())]]
        expected = dict(zip(("precision", "recall", "f1"), scores[0]), f1_micro=scores[0][2])
    else:
        rows = metrics.precision_recall_fscore_support(gold, predicted, zero_division=0)
        scores = [list(map(float, row)) for row in zip(*rows)]
        expected = {name: f(gold, predicted, average="macro", zero_division=0) for name, f in (
            ("precision", metrics.precision_score), ("recall", metrics.recall_score), ("f1", metrics.f1_score))}
        expected["f1_micro"] = metrics.f1_score(gold, predicted, average="micro", zero_division=0)
    expected["accuracy"] = metrics.accuracy_score(gold, predicted)
    return dict(labels=labels, gold=gold.flatten().tolist(), predicted=predicted.flatten().tolist(), expected=expected,
                per_class=[[float(v) for v in row] for row in scores])


SCHEMES = [
    ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"],
    ["O", "I-PER", "I-LOC", "B-PER"],
    ["O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B"],
    ["O", "B-A", "I-A", "L-A", "U-A", "B-C", "I-C"],
    ["O", "PER", "LOC", "B", "I", "B-a-b", "I-a-b", "I-", ".", "O-X", "S-X", "Ä-X", "é"],
]


def entities(draw):
    names = draw.choice(SCHEMES)
    weights = [3] + [1] * (len(names) - 1)
    lengths = [draw.choice([1, 2, 5, 12]) for _ in range(draw.choice([1, 2, 5]))]
    gold = [draw.choices(range(len(names)), weights, k=n) for n in lengths]
    predicted = [[g if draw.random() < 0.7 else draw.randrange(len(names)) for g in row] for row in gold]
    if draw.random() < 0.1:
        gold = [[0] * n for n in lengths]
    named_gold = [[names[t] for t in row] for row in gold]
    named_predicted = [[names[t] for t in row] for row in predicted]
    both = named_gold, named_predicted
    expected = {
        "accuracy": seqeval.metrics.accuracy_score(*both),
        "precision": seqeval.metrics.precision_score(*both, zero_division=0),
        "recall": seqeval.metrics.recall_score(*both, zero_division=0),
        "f1": seqeval.metrics.f1_score(*both, zero_division=0),
    }
    report = {}
    if any(seqeval.metrics.sequence_labeling.get_entities(side) for side in both):
        report = seqeval.metrics.classification_report(*both, output_dict=True, zero_division=0)
    types = {name: [float(row[k]) for k in ("precision", "recall", "f1-score", "support")] for name, row in report.items()
             if not name.endswith(" avg")}
    return dict(names=names, lengths=lengths, gold=sum(gold, []), predicted=sum(predicted, []), expected=expected, types=types)


def reciprocal_rank(scores, relevance):
    """The mean over all orders of candidates with equal scores."""
    groups = [[i for i, s in enumerate(scores) if s == score] for score in sorted(set(scores), reverse=True)]
    total = orders = 0
    for order in itertools.product(*(itertools.permutations(g) for g in groups)):
        places = [i for i in itertools.chain(*order)]
        total += next((1 / (rank + 1) for rank, i in enumerate(places[:10]) if relevance[i] > 0), 0)
        orders += 1
    return total / orders


def rankings(draw):
    lengths, scores, relevance, gains, ranks = [], [], [], [], []
    for _ in range(draw.choice([1, 1, 3])):
        tied = draw.random() < 0.5
        count = draw.choice([2, 4, 6] if tied else [2, 5, 15, 30])
        s = [float(draw.randrange(3)) if tied else draw.random() for _ in range(count)]
        if tied and draw.random() < 0.3:
            s = [9.0 - i for i in range(8)] + s  # the tie spans the tenth place
            count = len(s)
        r = [float(draw.choice([0, 0, 0, 1, draw.choice([1, 2, 3])])) for _ in range(count)]
        lengths.append(count)
        scores += s
        relevance += r
        gains.append(metrics.ndcg_score([r], [s], k=10))
        ranks.append(reciprocal_rank(s, r))
    return dict(lengths=lengths, scores=scores, relevance=relevance,
                expected={"ndcg@10": float(numpy.mean(gains)), "mrr@10": float(numpy.mean(ranks))})


class Split:
    def tokenize(self, text):
        return text.split()


def texts(draw):
    characters = draw.random() < 0.4
    vocabulary = list("的一是在不了有和人") if characters else ["the", "cat", "sat", "on", "a", "mat", "Ünï", "."]
    vocabulary = vocabulary[:draw.choice([2, 5, 9])]
    pairs = []
    for _ in range(draw.choice([1, 2, 10])):
        reference = [draw.choice(vocabulary) for _ in range(draw.choice([1, 3, 5, 12]))]
        text = [w for w in reference if draw.random() < 0.9]
        for _ in range(draw.choice([0, 1, 3])):
            text.insert(draw.randint(0, len(text)), draw.choice(vocabulary))
        if draw.random() < 0.2:
            text = list(reference)
        if draw.random() < 0.05:
            text = []
        pairs.append((text, reference))
    scorer = rouge_score.rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=Split())
    smoothing = bleu_score.SmoothingFunction().method2
    rouge = [scorer.score(" ".join(r), " ".join(t)) for t, r in pairs]
    join = "".join if characters else " ".join
    expected = {
        "exact_match": 100 * float(numpy.mean([t == r for t, r in pairs])),
        "bleu_sentence": 100 * float(
            numpy.mean([bleu_score.sentence_bleu([r], t, smoothing_function=smoothing) for t, r in pairs])),
    }
    for n in range(1, 5):
        bleu = sacrebleu.metrics.BLEU(tokenize="none", smooth_method="none", max_ngram_order=n)
        expected[f"bleu_{n}"] = bleu.corpus_score([" ".join(t) for t, _ in pairs], [[" ".join(r) for _, r in pairs]]).score
    for ours, theirs in (("rouge_1", "rouge1"), ("rouge_2", "rouge2"), ("rouge_l", "rougeL")):
        expected[ours] = 100 * float(numpy.mean([scores[theirs].fmeasure for scores in rouge]))
    return dict(characters=characters, texts=[join(t) for t, _ in pairs], references=[join(r) for _, r in pairs],
                expected=expected)


def without_nan(value):
    if isinstance(value, dict):
        return {key: without_nan(v) for key, v in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def main():
    path = sys.argv[1]
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    with open(path, "w") as file:
        file.write("[\n")
        rows = []
        for kind in (classes, auc, values, multilabel, entities, rankings, texts):
            for _ in range(number):
                case = dict(kind(draw), kind=kind.__name__)
                case["expected"] = {k: without_nan(float(v)) for k, v in case["expected"].items()}
                rows.append(json.dumps(case, sort_keys=True, ensure_ascii=False))
        file.write(",\n".join(rows) + "\n]\n")


main()
