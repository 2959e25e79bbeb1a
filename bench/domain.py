"""Adapting a model to a field (the question of SciBERT and BioBERT): continue it, extend its vocabulary, or start from nothing?

    domain.py --general MODEL --field TEXT... --out FOLDER [--steps 7700] [--batch 16] [--threads 2] [--build build]
              [--task NAME:MEASURE=OPTIONS]... [--seeds 5] [--only NAME]...

MODEL is a finished model of general text. All runs use the recipe `fast`, the model's shape and the same numbers of sequences:
  general      the model as it is
  continued    trained on the field's text with its own vocabulary
  extended     with the field's words added to the vocabulary (`vocab --extend`), each beginning as the mean of its pieces
  own          from nothing, with a vocabulary of the field, as large as the model's
  from-nothing from nothing, with the model's vocabulary
One document in fifty is held out, the same ones for all. Losses of tokens cannot be compared across vocabularies, so whole words are
masked and the loss is given for a word: that of the tokens times the tokens of a word. Tasks are scored by fine-tuning (task_scores.py).
What is finished is kept; the same command resumes. Writes FOLDER/results.md.
"""
import argparse
import gzip
import json
import os
import subprocess
import zlib

from task_scores import fine_tune, read_json, spread, tasks, write_json

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--general", required=True)
p.add_argument("--field", nargs="+", required=True)
p.add_argument("--out", required=True)
p.add_argument("--build", default="build")
p.add_argument("--steps", type=int, default=7700)
p.add_argument("--batch", type=int, default=16)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--task", action="append", default=[])
p.add_argument("--seeds", type=int, default=5)
p.add_argument("--only", action="append", default=[])
a = p.parse_args()
bertc = os.path.join(a.build, "bertc")
RUNS = ["general", "continued", "extended", "own", "from-nothing"]


def path(*parts):
    return os.path.join(a.out, *parts)


def run(*command, **kw):
    return subprocess.run([bertc, *map(str, command)], check=True, **kw)


def split():
    """Divides the documents of the text, separated by blank lines, into train.txt and held_out.txt by a hash of their content."""
    if os.path.exists(path("held_out.txt")):
        return
    with open(path("train.txt"), "wb") as train, open(path("held_out.new"), "wb") as held_out:
        for name in a.field:
            with (gzip.open if name.endswith(".gz") else open)(name, "rb") as text:
                for document in text.read().split(b"\n\n"):
                    if document.strip():
                        (held_out if zlib.crc32(document) % 50 == 0 else train).write(document.strip(b"\n") + b"\n\n")
    os.replace(path("held_out.new"), path("held_out.txt"))


def vocabulary(name):
    """The vocabulary of a run: the model's, the model's with new words, or one of the field."""
    given = os.path.join(a.general, "vocab.txt")
    size = sum(1 for _ in open(given, encoding="utf-8"))
    file = {"extended": path("vocab.extended.txt"), "own": path("vocab.own.txt")}.get(name, given)
    if not os.path.exists(file):
        run("vocab", "--corpus", path("train.txt"), "--out", file, "--quiet",
            *(["--extend", given] if name == "extended" else ["--vocab_size", size]), stdout=subprocess.DEVNULL)
    return file


def data(name):
    """Shards and held-out instances in the run's vocabulary, and the tokens and words of the held-out text."""
    kind = name if name in ("extended", "own") else "general"
    file = vocabulary(name)
    if not os.path.exists(path(kind + ".json")):
        run("prepare", "--corpus", path("train.txt"), "--vocab_file", file, "--drop_copied_documents", "--out", path(kind), "--quiet",
            stdout=subprocess.DEVNULL)
    if not os.path.exists(path(kind + ".held_out.tfrecord")):
        run("instances", "--corpus", path("held_out.txt"), "--vocab_file", file, "--next_sentence", "none", "--short_seq_prob", 0,
            "--dupe_factor", 1, "--whole_word_mask", "--out", path(kind + ".new.tfrecord"), "--quiet", stdout=subprocess.DEVNULL)
        os.replace(path(kind + ".new.tfrecord"), path(kind + ".held_out.tfrecord"))
    return kind, file


def tokens_of_a_word(file):
    tokens = run("tokenize", "--vocab_file", file, "--format", "tokens", path("held_out.txt"), stdout=subprocess.PIPE).stdout.decode().split()
    return len(tokens) / sum(not token.startswith("##") for token in tokens)


def train(name):
    kind, file = data(name)
    model = a.general
    if name != "general":
        begin = {"continued": ["--init_checkpoint", a.general],
                 "extended": ["--init_checkpoint", a.general, "--remap_vocab"]}.get(name, ["--model", os.path.join(a.general, "config.json")])
        run("pretrain", "--recipe", "fast", "--data", path(kind), "--vocab_file", file, *begin, "--max_seq_length", 128,
            "--train_batch_size", a.batch, "--num_train_steps", a.steps, "--eval_file", path(kind + ".held_out.tfrecord"),
            "--eval_steps", max(1, a.steps // 10), "--eval_instances", 400, "--no_save_best", "--keep_checkpoints", 1, "--threads", a.threads,
            "--out", path("runs", name), "--no_progress", "--quiet")
        model = path("runs", name, "final")
    done = run("evaluate", "--model", model, "--input_file", path(kind + ".held_out.tfrecord"), "--threads", a.threads, "--json",
               stdout=subprocess.PIPE)
    scores = json.loads(done.stdout)
    write_json(path("runs", name + ".json"), {"loss": scores["mlm_loss"], "accuracy": scores["mlm_accuracy"],
                                              "tokens_of_a_word": tokens_of_a_word(file)})


def curve(name):
    """The loss per word at every evaluation."""
    file, scores = path("runs", name, "metrics.jsonl"), read_json(path("runs", name + ".json"))
    if not os.path.exists(file):
        return []
    lines = map(json.loads, open(file))
    return list({r["step"]: r["eval_mlm_loss"] * scores["tokens_of_a_word"] for r in lines if "eval_mlm_loss" in r}.values())


def report():
    names = [name for name, _, _ in tasks(a.task)]
    head = ["run", "tokens a word", "loss a token", "loss a word", "accuracy", *names]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    curves = []
    for name in RUNS:
        scores, scored = read_json(path("runs", name + ".json")), read_json(path("tasks", name + ".json"))
        if not scores:
            continue
        row = [name, f"{scores['tokens_of_a_word']:.3f}", f"{scores['loss']:.3f}", f"{scores['loss'] * scores['tokens_of_a_word']:.3f}",
               f"{100 * scores['accuracy']:.2f} %"]
        lines.append("| " + " | ".join(row + [spread(scored.get(task, {})) for task in names]) + " |")
        if curve(name):
            curves.append(f"- {name}: " + ", ".join(f"{loss:.2f}" for loss in curve(name)))
    text = "\n".join(lines) + "\n\nLoss of a word after each tenth of the run:\n\n" + "\n".join(curves) + "\n"
    with open(path("results.md"), "w") as file:
        file.write(text)
    return text


os.makedirs(path("runs"), exist_ok=True)
split()
for name in RUNS:
    if a.only and name not in a.only:
        continue
    if not os.path.exists(path("runs", name + ".json")):
        train(name)
    if a.task:
        fine_tune(bertc, path("tasks", name + ".json"), a.general if name == "general" else path("runs", name, "final"), a.task, a.seeds,
                  a.threads)
    report()
print(report())
