"""The loss in quality from int8 and bf16: fine-tuned models scored in fp32, in bf16, and after export to int8.

    python dev/int8_quality.py --bertc build/bertc --work FOLDER [--precisions fp32,bf16,int8] [--threads 1] ROW...

A ROW is NAME=MODEL=MEASURE=TEST, for instance sst2=runs/sst2=accuracy=dev.tsv. MEASURE words scores masked words of the text
TEST (in percent); any other is one of those that `bertc evaluate --test` prints. Prints a table in percentage points, and the
layers that the export left in bf16. Exported folders are kept in --work.
"""
import argparse
import json
import os
import re
import subprocess
import sys


def run(options, *command):
    result = subprocess.run([options.bertc, *command], capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(result.stderr.strip())
    return result


def export(options, name, model):
    """The int8 folder, and the message about layers kept in bf16."""
    folder = os.path.join(options.work, name.replace(" ", "-") + ".int8")
    said = folder + ".txt"
    if not os.path.exists(said):
        result = run(options, "export", "--model", model, "--to", "int8", "--out", folder)
        with open(said, "w") as out:
            out.write(result.stderr)
    with open(said) as file:
        lines = [line for line in file.read().splitlines() if "bf16" in line]
    kept = re.search(r"(\d+) of (?:the |its )?(\d+)", lines[0]) if lines else None
    return folder, kept.group(0) if kept else (lines[0] if lines else "none")


def score(options, model, measure, test, precision):
    command = ["evaluate", "--model", model, "--threads", str(options.threads), "--json"]
    command += ["--corpus", test, "--eval_instances", "2000"] if measure == "words" else ["--test", test]
    if precision != "int8":
        command += ["--precision", precision]
    values = json.loads(run(options, *command).stdout)
    values = values.get("evaluation", values)
    value = values["mlm_accuracy" if measure == "words" else measure]
    return value if measure in ("exact_match", "exact") or value > 1 else 100 * value


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bertc", default="build/bertc")
    p.add_argument("--work", required=True)
    p.add_argument("--precisions", default="fp32,bf16,int8")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("rows", nargs="+")
    options = p.parse_args()
    os.makedirs(options.work, exist_ok=True)
    precisions = options.precisions.split(",")
    losses = {precision: [] for precision in precisions[1:]}
    print("| set, measure | " + " | ".join(precisions) + " | differences | layers in bf16 |", flush=True)
    print("|---|" + "---|" * (len(precisions) + 2))
    for row in options.rows:
        name, model, measure, test = row.split("=")
        try:
            folder, kept = export(options, name, model)
            values = [score(options, folder if precision == "int8" else model, measure, test, precision) for precision in precisions]
        except (RuntimeError, KeyError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr, flush=True)
            continue
        differences = [value - values[0] for value in values[1:]]
        for precision, difference in zip(precisions[1:], differences):
            losses[precision].append(-difference)
        print(f"| {name}, {measure} | " + " | ".join(f"{v:.2f}" for v in values) + " | " +
              ", ".join(f"{d:+.2f}" for d in differences) + f" | {kept} |", flush=True)
    for precision, lost in losses.items():
        print(f"{precision}: mean loss {sum(lost) / len(lost):+.2f} points, largest {max(lost):+.2f}", flush=True)


main()
