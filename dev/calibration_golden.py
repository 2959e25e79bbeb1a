"""Temperatures and thresholds by SciPy and scikit-learn, for tests/tasks/test_calibration.c.

    python dev/calibration_golden.py tests/golden/calibration.json          a few cases
    python dev/calibration_golden.py /tmp/many.json 200 7                   this many, from another seed;
    CALIBRATION_GOLDEN=/tmp/many.json build/tests/tasks/test_calibration    the same test reads them

temperature, loss    scipy.optimize.minimize_scalar on the mean log loss (of classes, or of labels one by one)
error                expected calibration error in 15 bins, as torchmetrics' CalibrationError(norm="l1") defines it
f1, recall           the best F1, and the most recall with at least the wanted precision, that any threshold of
                     sklearn.metrics.precision_recall_curve gives
"""
import json
import sys

import numpy
import scipy.optimize
import scipy.special
from sklearn import metrics

WANTED = 0.8


def shares_of(logits, temperature, labels):
    scaled = logits / temperature
    return scipy.special.expit(scaled) if labels else scipy.special.softmax(scaled, axis=1)


def loss_of(logits, gold, temperature, labels):
    scaled = logits / temperature
    if labels:
        return numpy.mean(numpy.logaddexp(0, numpy.where(gold == 1, -scaled, scaled)))
    return numpy.mean(scipy.special.logsumexp(scaled, axis=1) - scaled[numpy.arange(len(gold)), gold])


def error_of(scores, right):
    bins = numpy.minimum((scores * 15).astype(int), 14)
    return sum(abs(scores[bins == b].sum() - right[bins == b].sum()) for b in range(15)) / len(scores)


def curve(right, scores, extra):
    """The best F1, and the most recall at the wanted precision (-1: there is none); `extra` positives have no score."""
    found = right.sum()
    if found == 0:
        return 0.0, -1.0
    precision, recall, _ = metrics.precision_recall_curve(right, scores)
    precision, recall = precision[:-1], recall[:-1] * found / (found + extra)
    f1 = 2 * precision * recall / numpy.maximum(precision + recall, 1e-300)
    reached = recall[precision >= WANTED]
    return float(f1.max()), float(reached.max()) if len(reached) else -1.0


def case(draw):
    labels = bool(draw.integers(2))
    width, count = int(draw.integers(2, 6)), int(draw.integers(40, 120))
    truth = draw.normal(size=(count, width)) * 1.5
    if labels:
        gold = (draw.random((count, width)) < scipy.special.expit(truth - 0.5)).astype(int)
    else:
        gold = numpy.array([draw.choice(width, p=p) for p in scipy.special.softmax(truth, axis=1)])
    logits = ((truth + draw.normal(size=truth.shape)) * draw.uniform(0.5, 3)).astype(numpy.float32)
    wide = logits.astype(float)
    found = scipy.optimize.minimize_scalar(lambda b: loss_of(wide, gold, 1 / b, labels), bounds=(0.01, 100), method="bounded",
                                           options={"xatol": 1e-10})
    shares = shares_of(wide, 1, labels)
    best = shares.argmax(axis=1)
    if labels:
        scores, right = shares.ravel(), gold.ravel()
    elif width == 2:
        scores, right = shares[:, 1], gold
    else:
        scores, right = shares.max(axis=1), (best == gold).astype(int)
    per_label = []
    for k in range(width):
        is_gold = gold[:, k] if labels else (gold == k).astype(int)
        used = slice(None) if labels else best == k
        f1 = curve(is_gold, shares[:, k], 0)[0]
        recall = curve(is_gold[used], shares[used, k], 0 if labels else is_gold[best != k].sum())[1]
        per_label.append({"f1": f1, "recall": recall})
    return {"labels": labels, "width": width, "logits": [float(x) for x in logits.ravel()], "gold": gold.ravel().tolist(),
            "temperature": 1 / found.x, "loss": float(found.fun), "loss_before": float(loss_of(wide, gold, 1, labels)),
            "error": float(error_of(scores, right)), "per_label": per_label}


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    draw = numpy.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 6)
    with open(sys.argv[1], "w") as out:
        json.dump({"wanted": WANTED, "cases": [case(draw) for _ in range(count)]}, out)
        out.write("\n")
