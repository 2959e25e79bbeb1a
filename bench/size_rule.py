"""Which size of model for how much computation? Trains several sizes by the recipe `fast` for several numbers of updates, fits the
held-out loss as a function of parameters and tokens, and says where the next size becomes the better one: the measurement behind the
rule of `bertc pretrain --time` (src/run/budget.c).

    size_rule.py --corpus PATH... --out FOLDER [--run MODEL:UPDATES[:BATCH]]... [--point MODEL:UPDATES:BATCH:MILLION_TOKENS:LOSS]...
                 [--threads 1] [--vocab_size 16000] [--build build]

The law is that of Hoffmann et al. (2022): L = E + A / N^a + B / D^b, with N the parameters of the encoder and D the tokens seen,
fitted by least squares to log L with E, A, B > 0 from many starting points. Its error is given as the residuals and as the error of
each loss predicted without its point (leave-one-out). Text, held-out masks and speed do not matter to each other: runs are counted in
updates, so they can share their machine. Finished runs are kept; --point adds the result of a run made elsewhere on the same text.
FOLDER may be one that quality.py made: text and masks are the same. Needs NumPy and SciPy.
"""
import argparse
import json
import os
import subprocess

import numpy as np
from scipy.optimize import least_squares

from corpus import prepare
from task_scores import read_json, write_json

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--corpus", nargs="+", required=True)
p.add_argument("--out", required=True)
p.add_argument("--build", default="build")
p.add_argument("--run", action="append", default=[])
p.add_argument("--point", action="append", default=[])
p.add_argument("--threads", type=int, default=1)
p.add_argument("--vocab_size", type=int, default=16000)
a = p.parse_args()
bertc = os.path.join(a.build, "bertc")
LENGTH, MASKED = 128, 0.2  # of the recipe
SHAPES = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512), "medium": (8, 512), "base": (12, 768), "large": (24, 1024)}


def path(*parts):
    return os.path.join(a.out, *parts)


def parameters(model):
    """Of the encoder's matrices."""
    layers, hidden = SHAPES[model]
    return 12 * layers * hidden ** 2


def work(model):
    """Floating-point operations of training on one token: encoder, attention, and the head's share."""
    layers, hidden = SHAPES[model]
    return 6 * (parameters(model) + 2 * layers * hidden * LENGTH + MASKED * hidden * (hidden + a.vocab_size))


def train(model, updates, batch):
    """Tokens seen and held-out loss of the finished model."""
    name = f"{model}-{updates}-{batch}"
    done = read_json(path("sizes", name + ".json"))
    if not done:
        folder = path("sizes", name)
        subprocess.run([bertc, "pretrain", "--data", path("text"), "--eval_file", path("curve.tfrecord"), "--vocab_file",
                        path("vocab.txt"), "--model", model, "--recipe", "fast", "--no_end_with_pairs", "--max_seq_length", str(LENGTH),
                        "--train_batch_size", str(batch), "--num_train_steps", str(updates), "--eval_steps", str(max(1, updates // 10)),
                        "--no_save_best", "--keep_checkpoints", "1", "--threads", str(a.threads), "--out", folder, "--no_progress",
                        "--quiet"], check=True)
        scored = subprocess.run([bertc, "evaluate", "--model", os.path.join(folder, "final"), "--input_file", path("held_out.tfrecord"),
                                 "--precision", "fp32", "--threads", str(a.threads), "--json"], check=True, stdout=subprocess.PIPE)
        scores = json.loads(scored.stdout)
        last = [r for r in map(json.loads, open(os.path.join(folder, "metrics.jsonl"))) if "loss" in r][-1]
        done = {"tokens": last["tokens"], "loss": scores["mlm_loss"], "accuracy": scores["mlm_accuracy"]}
        write_json(path("sizes", name + ".json"), done)
    return done


def law(x, n, d):
    e, la, lb, alpha, beta = x
    return np.exp(e) + np.exp(la - alpha * np.log(n)) + np.exp(lb - beta * np.log(d))


def fit(n, d, loss):
    """The five numbers (log E, log A, log B, a, b) with the least squares of log L."""
    best = None
    for e in (-1, 0, 0.7):
        for alpha in (0.1, 0.3, 0.6):
            for beta in (0.1, 0.3, 0.6):
                start = [e, np.log(1.5) + alpha * np.log(n.mean()), np.log(1.5) + beta * np.log(d.mean()), alpha, beta]
                found = least_squares(lambda x: np.log(law(x, n, d)) - np.log(loss), start,
                                      bounds=([-5, -20, -20, 0.01, 0.01], [1.2, 40, 40, 2, 2]), max_nfev=5000)
                best = found if best is None or found.cost < best.cost else best
    return best.x


def main():
    prepare(bertc, a.corpus, a.out, a.vocab_size)
    points = []
    for text in a.run:
        model, updates, batch = (text.split(":") + ["16"])[:3]
        done = train(model, int(updates), int(batch))
        points.append((model, int(updates), int(batch), done["tokens"], done["loss"], done["accuracy"]))
        print(f"{model} {updates} x {batch}: {done['tokens'] / 1e6:.2f} million tokens, loss {done['loss']:.3f}, "
              f"accuracy {100 * done['accuracy']:.2f} %", flush=True)
    for text in a.point:
        model, updates, batch, tokens, loss = text.split(":")
        points.append((model, int(updates), int(batch), 1e6 * float(tokens), float(loss), None))
    n = np.array([parameters(point[0]) for point in points], float)
    d = np.array([point[3] for point in points], float)
    loss = np.array([point[4] for point in points])
    if len(points) < 7:
        return
    x = fit(n, d, loss)
    print("\n| model | updates x sequences | million tokens | C | loss | accuracy | fitted | without this point |\n" + "|---" * 8 + "|")
    left_out = []
    for i, (model, updates, batch, tokens, value, accuracy) in enumerate(points):
        rest = np.arange(len(points)) != i
        left_out.append(law(fit(n[rest], d[rest], loss[rest]), n[i], d[i]))
        shown = f"{100 * accuracy:.1f} %" if accuracy is not None else ""
        print(f"| {model} | {updates:,} x {batch} | {tokens / 1e6:.1f} | {tokens * work(model):.1e} | {value:.2f} | {shown} "
              f"| {law(x, n[i], d[i]):.2f} | {left_out[-1]:.2f} |")
    errors, outside = law(x, n, d) - loss, np.array(left_out) - loss
    print(f"\nL = {np.exp(x[0]):.2f} + {np.exp(x[1]):.3g} / N^{x[3]:.3f} + {np.exp(x[2]):.3g} / D^{x[4]:.3f}; "
          f"root mean square error {np.sqrt(np.mean(errors ** 2)):.3f}, left out {np.sqrt(np.mean(outside ** 2)):.3f}, "
          f"largest left out {np.abs(outside).max():.3f}")
    grid = np.exp(np.arange(np.log(1e12), np.log(1e20), 0.01))
    curves = {model: law(x, parameters(model), grid / work(model)) for model in SHAPES}
    best = [min(curves, key=lambda model: curves[model][i]) for i in range(len(grid))]
    for before, after, c in zip(best, best[1:], grid[1:]):
        if before != after:
            print(f"{after} instead of {before} from C = {c:.1e} ({c / work(after) / 1e6:.0f} million tokens, "
                  f"{c / work(after) / parameters(after):.0f} per parameter)")


main()
