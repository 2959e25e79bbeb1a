"""A real pre-training run within a few minutes on a GPU: from text to a BERT-base in two phases, with 128 and then 512 tokens.

    gpu_pretrain.py --corpus PATH... [--seconds 560] [--model base] [--precision bf16] [--vocab_size 30522] [--batch 256,64]
                    [--length 128,512] [--recipe fast] [--work FOLDER] [--fill TEXT...] [--device cuda] [--bertc PATH]

Measures a step of each phase (`bertc bench`), gives the first phase four fifths of the time and the second the rest, so that
each has its whole schedule, and trains with `bertc pretrain`'s own defaults or a recipe. Prints the curve on held-out documents, rates, the
final model's accuracy on the same documents at both lengths, and what it fills into blanks, as Markdown. With OUT in the
environment, metrics.jsonl, report.html and the printed text are also written there. If the time is up before the last step, the
results so far are printed; run it again with the same --work to resume. Needs only Python's standard library.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time

p = argparse.ArgumentParser()
p.add_argument("--corpus", nargs="+", required=True)
p.add_argument("--seconds", type=float, default=560)
p.add_argument("--model", default="base")
p.add_argument("--precision", default="bf16")
p.add_argument("--vocab_size", default="30522")
p.add_argument("--batch", default="256,64")
p.add_argument("--length", default="128,512")
p.add_argument("--recipe", default="original")
p.add_argument("--work", default="runs/gpu_pretrain")
p.add_argument("--fill", nargs="*", default=["The capital of France is [MASK].", "She opened the [MASK] and went into the house.",
                                              "Water is made of hydrogen and [MASK]."])
p.add_argument("--device", default="cuda")
p.add_argument("--bertc", default=os.environ.get("BERTC") or os.path.join(os.environ.get("BUILD", "build"), "bertc"))
a = p.parse_args()
started = time.monotonic()
BATCHES, LENGTHS = a.batch.split(","), a.length.split(",")
ON = ["--device", a.device, "--precision", a.precision]
SPARE = 40            # seconds for vocabulary and shards before training, and for the evaluations after it
OF_FULL_SPEED = 0.85  # the part of `bench`'s rate that evaluations and checkpoints leave
printed = []


def say(line=""):
    print(line, flush=True)
    printed.append(line)


def left():
    return a.seconds - (time.monotonic() - started)


def bertc(*arguments, what):
    """The command's standard output, or None if it was interrupted: it is asked to stop when the time is up. Its standard error
    is shown as it comes."""
    with subprocess.Popen([a.bertc, *arguments], stdout=subprocess.PIPE, text=True) as process:
        try:
            output, _ = process.communicate(timeout=max(1, left()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate()
    if process.returncode == 75:
        say(f"{what} was interrupted when the {a.seconds:.0f} s were up; the same command resumes")
        return None
    if process.returncode != 0:
        sys.exit(f"{what} ended with status {process.returncode}")
    return output


def seconds_a_step(batch, length):
    out = bertc("bench", "-q", "--json", "--mode", "training", "--steps", "3", "--model", a.model, "--vocab_size", a.vocab_size,
                "--train_batch_size", batch, "--max_seq_length", length, *ON, what="bench")
    return json.loads(out)["training"]["seconds"]


def rows_of(run):
    with open(os.path.join(run, "metrics.jsonl")) as f:
        return [json.loads(line) for line in f]


def keep():
    """Copies the results so far to where they outlive the machine."""
    out = os.environ.get("OUT")
    if not out:
        return
    for name in ("metrics.jsonl", "report.html"):
        shutil.copy(os.path.join(run, name), out)
    with open(os.path.join(out, "gpu_pretrain.md"), "w") as f:
        f.write("\n".join(printed) + "\n")


run = os.path.join(a.work, "run")
settings = os.path.join(a.work, "phases.json")
if not os.path.exists(settings):
    each = [seconds_a_step(batch, length) for batch, length in zip(BATCHES, LENGTHS)]
    budget = (left() - SPARE) * OF_FULL_SPEED
    phases = []
    for batch, length, seconds, share in zip(BATCHES, LENGTHS, each, (0.8, 0.2)):
        steps = max(10, int(budget * share / seconds))
        phases.append({"max_seq_length": int(length), "train_batch_size": int(batch), "num_train_steps": steps,
                       "eval_steps": max(1, steps // 6)})
    os.makedirs(a.work, exist_ok=True)
    with open(settings, "w") as f:
        json.dump({"recipe": a.recipe, "model": a.model, "vocab_size": int(a.vocab_size), "corpus": a.corpus, "phases": phases}, f, indent=1)
ended = bertc("pretrain", "--config", settings, "--out", run, *ON, what="pretrain") is not None

rows = rows_of(run)
trained = [row for row in rows if "tokens_per_second" in row]
say(f"`{' '.join(['gpu_pretrain.py', *sys.argv[1:]])}`")
say()
for phase in json.load(open(settings))["phases"]:
    say(f"- {phase['num_train_steps']} steps of {phase['train_batch_size']} instances of {phase['max_seq_length']} tokens")
if not trained:
    sys.exit("not one step was logged in the time")
last = trained[-1]
say(f"- {last['tokens'] / 1e6:.1f} M tokens in {last['seconds']:.0f} s, {last['tokens'] / last['seconds'] / 1e3:.0f} k tokens/s, "
    "with evaluations and checkpoints")
say()
say("| step | phase | tokens (M) | held-out MLM loss | MLM accuracy | NSP loss | NSP accuracy |")
say("|---|---|---|---|---|---|---|")
for row in rows:
    if "eval_mlm_loss" in row:
        seen = [r for r in trained if r["step"] <= row["step"]]
        say(f"| {row['step']} | {row.get('phase', 1)} | {seen[-1]['tokens'] / 1e6 if seen else 0:.1f} | {row['eval_mlm_loss']:.4f} | "
            f"{row['eval_mlm_accuracy']:.4f} | {row['eval_nsp_loss']:.4f} | {row['eval_nsp_accuracy']:.4f} |")
say()
keep()
if not ended:
    sys.exit()
for length in LENGTHS:
    held_out = bertc("evaluate", "-q", "--json", "--model", run, "--data", os.path.join(run, "data", "train.held_out"),
                     "--max_seq_length", length, *ON, what="evaluate")
    score = json.loads(held_out)
    say(f"Held-out documents at {length} tokens: MLM loss {score['mlm_loss']:.4f}, accuracy {score['mlm_accuracy']:.4f}; "
        f"NSP accuracy {score['nsp_accuracy']:.4f} ({score['predictions']} predictions)")
say()
say("```")
say(bertc("fill", "-q", "--model", run, "--top_k", "3", *ON, *a.fill, what="fill").rstrip())
say("```")
keep()
