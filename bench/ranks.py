#!/usr/bin/env python3
"""Ranks on this machine compared with `bertc plan`: step and communication, planned and measured, over shared memory, TCP and
MPI.

    python bench/ranks.py [--bertc build/bertc] [--work FOLDER] [--rounds 3] [--steps 100] [--model CONFIG]

Every round runs every case once, with one thread per rank, in turn, and measures the rates of the device anew for its plan, so
that other load on the machine affects all alike; figures are medians over the rounds. One rank with two threads is included to
show what ranks cost where threads would do.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--bertc", default="build/bertc")
parser.add_argument("--work")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--length", type=int, default=128)
parser.add_argument("--layers", type=int, default=4)
parser.add_argument("--hidden", type=int, default=256)
parser.add_argument("--vocab", type=int, default=8000)
parser.add_argument("--precision", default="bf16")
parser.add_argument("--loopback", default="2", help="GB/s of sockets within the machine, which TCP and MPI are planned with")
arguments = parser.parse_args()
bertc = os.path.abspath(arguments.bertc)
work = arguments.work or tempfile.mkdtemp()


def run(command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def make_text():
    """Enough invented words for the vocabulary, in documents long enough for full sequences."""
    random.seed(1)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    words = ["".join(random.choices(syllables, k=random.randint(2, 4))) for _ in range(6000)]
    with open(f"{work}/text", "w") as out:
        for _ in range(600):
            for _ in range(30):
                out.write(" ".join(random.choices(words, k=14)) + ".\n")
            out.write("\n")
    run([bertc, "vocab", "--quiet", "--corpus", f"{work}/text", "--vocab_size", str(arguments.vocab), "--out", f"{work}/vocab.txt"])
    run([bertc, "prepare", "--quiet", "--corpus", f"{work}/text", "--vocab_file", f"{work}/vocab.txt", "--out", f"{work}/train"])
    with open(f"{work}/config.json", "w") as out:
        json.dump({"model_type": "bert", "hidden_size": arguments.hidden, "num_hidden_layers": arguments.layers,
                   "num_attention_heads": arguments.hidden // 64, "intermediate_size": 4 * arguments.hidden,
                   "max_position_embeddings": 512, "vocab_size": sum(1 for _ in open(f"{work}/vocab.txt"))}, out)


def pretrain(name, threads=1):
    return [bertc, "pretrain", "--quiet", "--device", "cpu", "--precision", arguments.precision, "--threads", str(threads),
            "--data", f"{work}/train", "--vocab_file", f"{work}/vocab.txt", "--model", f"{work}/config.json",
            "--out", f"{work}/{name}", "--fresh", "--train_batch_size", str(arguments.batch), "--max_seq_length", str(arguments.length),
            "--micro_batch_tokens", "8192", "--num_train_steps", str(arguments.steps), "--learning_rate", "1e-4", "--log_steps", "1",
            "--save_checkpoints_steps", "0", "--check_weights_steps", "0"]


def placed(name, ranks, transport):
    """Starts ranks as torchrun would, over the given transport."""
    processes = []
    for rank in range(ranks):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
                       "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29533",
                       "BERTC_TRANSPORT": transport}
        processes.append(subprocess.Popen(pretrain(name), env=environment, stderr=subprocess.PIPE, text=True))
    for process in processes:
        _, errors = process.communicate()
        if process.returncode:
            raise SystemExit(errors)


def measured(name):
    """The median seconds of a step, without the first ten steps; mean seconds of communication, and the part spent waiting for
    it."""
    lines = [json.loads(line) for line in open(f"{work}/{name}/metrics.jsonl")]
    rows = [line for line in lines if "loss" in line and line["step"] >= 10]
    seconds = [b["seconds"] - a["seconds"] for a, b in zip(rows, rows[1:])]
    told = [line for line in lines if "step_communication_seconds" in line]
    tokens = rows[-1]["tokens"] / rows[-1]["samples"]
    return (statistics.median(seconds), told[-1]["step_communication_seconds"] if told else 0,
            told[-1]["step_exposed_communication_seconds"] if told else 0, tokens)


def plan(ranks, mean_length, *more):
    return json.loads(run([bertc, "plan", "--json", "--model", f"{work}/config.json", "--ranks", str(ranks), "--threads", "1",
                           "--train_batch_size", str(arguments.batch), "--max_seq_length", str(arguments.length), "--mean_seq_length", f"{mean_length:.2f}", "--micro_batch_tokens", "8192",
                           "--precision", arguments.precision, *more]))["phases"][0]


CASES = [("one rank", 1, None), ("2 ranks, shared memory", 2, "shared"), ("2 ranks, TCP", 2, "tcp"), ("2 ranks, MPI", 2, "mpi")]


def main():
    make_text()
    cases = [case for case in CASES if case[2] != "mpi" or ("MPI" in run([bertc, "version"]) and shutil.which("mpirun"))]
    rows = {case[0]: [] for case in cases}
    mean_length = arguments.length
    threads = []
    for _ in range(arguments.rounds):
        run(pretrain("threads", 2))
        threads.append(measured("threads")[0])
        for title, ranks, transport in cases:
            if ranks == 1:
                run(pretrain("one"))
            elif transport == "mpi":
                run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *pretrain("mpi")],
                    env={**os.environ, "BERTC_TRANSPORT": "mpi"})
            else:
                placed(transport, ranks, transport)
            result = measured("one" if ranks == 1 else transport)
            mean_length = result[3] if ranks == 1 else mean_length
            # Without shared memory, each rank is planned as a machine of its own.
            planned = plan(ranks, mean_length, *(["--gpus_per_node", "1", "--link", arguments.loopback]
                                                 if transport in ("tcp", "mpi") else []))
            rows[title].append((result[0], planned["step_seconds"], result[1], planned["communication_seconds"], result[2],
                                planned["exposed_seconds"]))
    print("| | step: planned, measured (ms) | communication | exposed |")
    print("|---|---|---|---|")
    print(f"| one rank of two threads | {1e3 * statistics.median(threads):.1f} measured | | |")
    for title, results in rows.items():
        m = [1e3 * statistics.median(column) for column in zip(*results)]
        print(f"| {title} | {m[1]:.1f}, {m[0]:.1f} | {m[3]:.1f}, {m[2]:.1f} | {m[5]:.1f}, {m[4]:.1f} |")


main()
