"""Scores of pre-trained models on tasks, for the benchmarks of pre-training: fine-tuning with several seeds, results kept in a file.

A task is given as NAME:MEASURE=OPTIONS, with the options of `bertc finetune` and the name of a measure in its eval_results.json:
"sst2:eval_accuracy=--task sst-2 --data_dir glue/sst2 --num_train_epochs 1".
"""
import json
import os
import shlex
import shutil
import statistics
import subprocess


def write_json(file, value):
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file + ".new", "w") as out:
        json.dump(value, out, indent=1)
    os.replace(file + ".new", file)


def read_json(file):
    return json.load(open(file)) if os.path.exists(file) else {}


def tasks(given):
    """(name, measure, options) of each task."""
    for task in given:
        name, options = task.split("=", 1)
        name, measure = name.split(":")
        yield name, measure, shlex.split(options)


def fine_tune(bertc, file, model, given, seeds, threads):
    """Adds to FILE the scores of tasks and seeds that it does not have yet: {task: {seed: score}}. Returns all of them.
    Fine-tunes with dropout, even a model that was pre-trained without it."""
    scores = read_json(file)
    for task, measure, options in tasks(given):
        for seed in range(1, seeds + 1):
            if str(seed) in scores.get(task, {}):
                continue
            folder = f"{file[:-len('.json')]}.{task}-{seed}"
            subprocess.run([str(x) for x in (bertc, "finetune", "--model", model, *options, "--seed", seed, "--out", folder,
                                             "--hidden_dropout_prob", 0.1, "--attention_probs_dropout_prob", 0.1,
                                             "--save_checkpoints_steps", 0, "--threads", threads, "--no_progress", "--quiet")],
                           check=True, stdout=subprocess.DEVNULL)
            scores.setdefault(task, {})[str(seed)] = json.load(open(os.path.join(folder, "eval_results.json")))[measure]
            write_json(file, scores)
            shutil.rmtree(folder)
    return scores


def spread(scores):
    """Mean and standard deviation over seeds in percent; empty without scores."""
    values = [100 * s for s in scores.values()]
    if not values:
        return ""
    return f"{statistics.mean(values):.1f}" + (f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else "")
