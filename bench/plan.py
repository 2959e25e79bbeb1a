#!/usr/bin/env python3
"""Published runs compared with what `bertc plan` predicts for them: a table for docs/results.md.

    python bench/plan.py [build/bertc]

For each group, `bertc plan` is given the throughput that its authors measured on one device ("alone") or, if they give none, on
one host (then the first row is not a prediction), and predicts the rest, with their batch, accumulation and number of hosts,
their 16-bit gradients and their way of reducing them. The figures are those of the README files of NVIDIA's
DeepLearningExamples (PyTorch 21.11 and 20.06, Paddle 22.12, TensorFlow 1 20.06, TensorFlow 2 21.02) and of the logs of MLPerf
Training v3.0 to v5.0.
"""
import json
import statistics
import subprocess
import sys

BERTC = sys.argv[1] if len(sys.argv) > 1 else "build/bertc"


def plan(**options):
    command = [BERTC, "plan", "--json"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


A100 = dict(device_kind="a100", link="hdr", cards=8)
DGX2H = dict(device_kind="v100", gpus_per_node=16, link="edr", cards=8)
DGX1 = dict(device_kind="v100_16", gpus_per_node=8, link="edr", cards=4)
TRADITION = dict(model="large", optimizer="lamb", scheme="all_reduce", allreduce_post_accumulation_fp16="true", precision="fp16")
MLPERF = dict(model="large", optimizer="lamb", scheme="hierarchical", allreduce_post_accumulation_fp16="true", precision="fp8",
              max_seq_length=512, mean_seq_length=254.4, bucket_size=100)


def dle(batch, length, rate, rows, machine=A100, micro=None, **more):
    """rows: (GPUs, sequences/s). Without a rate: the one that makes the plan of the first row, of one host, come out right."""
    if rate is None:
        gpus, published = rows[0]
        first = list(dle(batch, length, published / gpus, rows[:1], machine, micro, **more))[0][2]
        predicted = plan(**first)["phases"][0]["sequences_per_second"]
        rate = published / gpus * published / predicted
    for gpus, published in rows:
        options = {**TRADITION, **machine, **more, "train_batch_size": batch, "max_seq_length": length,
                   "device_rate": rate, "gpus": gpus}
        if micro:
            options["gradient_accumulation_steps"] = max(1, -(-batch // gpus // micro))
        yield gpus, published, options


def mlperf(kind, rate, rows):
    """rows: (GPUs, sequences per GPU, sequences/s)"""
    options = {**MLPERF, "device_kind": kind, "device_rate": rate, "device_rate_batch": 96,
               "gradient_accumulation_steps": 1}
    alone = plan(**options, gpus=8, train_batch_size=8 * 96)["phases"][0]["sequences_per_second"]
    options["device_rate"] = rate * rate * 8 / alone  # makes the first row, of one host, come out right
    for gpus, local, published in rows:
        yield gpus, published, {**options, "gpus": gpus, "train_batch_size": gpus * local}


GROUPS = [
    ("NVIDIA PyTorch, A100, large, 128, 580/s alone",
     dle(65536, 128, 580, [(8, 4591), (16, 9191), (32, 18119), (64, 35774), (128, 70555), (256, 138294)], micro=256)),
    ("the same, 512, 210/s alone",
     dle(32768, 512, 210, [(8, 1657), (16, 3291), (32, 6464), (64, 13005), (128, 25570), (256, 49663)], micro=32)),
    ("Paddle, A100, large, 128, 694/s alone",
     dle(65536, 128, 694, [(8, 5541), (16, 10646), (32, 21389), (64, 41681), (128, 79023), (256, 157952)], micro=256)),
    ("the same, 512, 264/s alone",
     dle(32768, 512, 264, [(8, 2109), (16, 4051), (32, 7972), (64, 15760), (128, 31129), (256, 60206)], micro=32)),
    ("TensorFlow 1, A100, large, 128, 357/s alone",
     dle(65536, 128, 356.845, [(4, 1422), (8, 2872), (32, 11159), (128, 41144), (256, 77480)], micro=64)),
    ("TensorFlow 2, A100, large, 128, 486/s alone",
     dle(79872, 128, 485.59, [(8, 3799), (16, 7551), (64, 29711), (256, 110281)], micro=312)),
    ("PyTorch 2020, DGX-2H (16 V100), large, 128",
     dle(65536, 128, None, [(16, 3379.2), (64, 12709.9), (256, 51937.3), (1024, 188088.3)], DGX2H, micro=64)),
    ("the same, 512",
     dle(32768, 512, None, [(16, 625.66), (64, 2386.4), (256, 9932.8), (1024, 37478.4)], DGX2H, micro=8)),
    ("PyTorch 2020, DGX-1 (8 V100 of 16 GB), large, 128",
     dle(65536, 128, None, [(8, 874.24), (32, 3089.8), (128, 12144.6)], DGX1, micro=16)),
    ("BioBERT (base), DGX-2H, 128",
     dle(65536, 128, None, [(16, 7772.2), (64, 29785.3), (256, 115581.3), (512, 226156.5), (1024, 444955.7)], DGX2H,
         micro=64, model="base")),
    ("MLPerf, H200",
     mlperf("h200", 1031, [(8, 96, 8248), (16, 48, 13720), (32, 48, 27305), (64, 72, 59153)])),
    ("MLPerf, H100",
     mlperf("h100", 970, [(8, 96, 7760), (64, 72, 53186), (64, 72, 58192), (512, 6, 138645), (768, 6, 190757),
                          (3072, 4, 599199), (3472, 4, 793320)])),
]

# A single device, using the table of device kinds only: no rate is given.
ALONE = [
    ("H200, FP8, MLPerf's lengths (NVIDIA, Supermicro: with 8 GPUs' communication)", 1031,
     {**MLPERF, "device_kind": "h200", "train_batch_size": 96, "gradient_accumulation_steps": 1}),
    ("H100, FP8, the same", 970,
     {**MLPERF, "device_kind": "h100", "train_batch_size": 96, "gradient_accumulation_steps": 1}),
    ("A100, FP16, large, 128 (Paddle)", 694, {**TRADITION, **A100, "train_batch_size": 256}),
    ("A100, FP16, large, 128 (PyTorch)", 580, {**TRADITION, **A100, "train_batch_size": 256}),
    ("A100, TF32, large, 128 (PyTorch)", 317, {**TRADITION, **A100, "train_batch_size": 128, "precision": "tf32"}),
    ("A100, FP16, MLPerf's lengths (Dell v3.0)", 319,
     {**MLPERF, **A100, "precision": "fp16", "train_batch_size": 56, "gradient_accumulation_steps": 1}),
    ("V100, FP16, large, 128 (DeepSpeed's kernels)", 272, {**TRADITION, "device_kind": "v100", "train_batch_size": 64}),
    ("V100, FP16, large, 512 (DeepSpeed's kernels)", 52,
     {**TRADITION, "device_kind": "v100", "train_batch_size": 16, "max_seq_length": 512}),
    ("V100, FP32, large, 128 (PyTorch)", 50,
     {**TRADITION, "device_kind": "v100", "train_batch_size": 32, "precision": "fp32"}),
    ("P100, FP32, base, 70 (bert-ad's single-card original, a classifier)", 100,
     {**TRADITION, "model": "base", "device_kind": "p100", "train_batch_size": 16, "max_seq_length": 70,
      "precision": "fp32"}),
    ("P100, FP32, base, 384 (the same)", 16,
     {**TRADITION, "model": "base", "device_kind": "p100", "train_batch_size": 3, "max_seq_length": 384,
      "precision": "fp32"}),
]


def main():
    print("| run | GPUs | published, sequences/s | error of the plan | efficiency: published; plan |")
    print("|---|---|---|---|---|")
    every = []
    for title, rows in GROUPS:
        given, cells = "alone" not in title, ([], [], [], [], [])
        for gpus, published, options in rows:
            rate = options["device_rate"]
            predicted = plan(**options)["phases"][0]["sequences_per_second"]
            error = predicted / published - 1
            every += [] if given else [abs(error)]
            for cell, text in zip(cells, (f"{gpus}", f"{published:.0f}", "given" if given else f"{100 * error:+.1f}",
                                          f"{100 * published / gpus / rate:.0f}", f"{100 * predicted / gpus / rate:.0f}")):
                cell.append(text)
            given = False
        gpus, published, errors, theirs, ours = (", ".join(cell) for cell in cells)
        print(f"| {title} | {gpus} | {published} | {errors} % | {theirs}; {ours} % |")
    print(f"\nmedian of the errors {100 * statistics.median(every):.1f} %, largest {100 * max(every):.0f} %, "
          f"{sum(e < 0.05 for e in every)} of {len(every)} below 5 %\n")
    print("| one device, from the table alone | published, sequences/s | plan | published over plan |")
    print("|---|---|---|---|")
    for title, published, options in ALONE:
        predicted = plan(**{**options, "gpus": 1})["phases"][0]["sequences_per_second"]
        print(f"| {title} | {published:,} | {predicted:,.0f} | {published / predicted:.2f} |")


main()
