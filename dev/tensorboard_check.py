"""TensorBoard's own reader against metrics.jsonl: the same steps and values, none lost, none twice, even after kills.

    python dev/tensorboard_check.py RUN_FOLDER        (needs the package tensorboard)
"""
import json
import math
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder = sys.argv[1]
accumulator = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
accumulator.Reload()
tags = accumulator.Tags()["scalars"]
expected = {}
for line in open(folder + "/metrics.jsonl"):
    row = json.loads(line)
    if "event" in row:
        continue
    name = row.get("eval_set")
    prefix = f"eval_{name}_" if name else "eval_"
    evaluation = "eval_loss" in row or name
    for key, value in row.items():
        if evaluation:
            if not key.startswith(prefix) or key in ("eval_seconds", "eval_set"):
                continue
            tag = (f"eval_{name}/" if name else "eval/") + key[len(prefix):]
        elif key in ("tokens_per_second", "share_of_gemm"):
            tag = "speed/" + key
        elif key in ("step", "phase", "samples", "seconds"):
            continue
        else:
            tag = "train/" + key
        expected.setdefault(tag, {})[row["step"]] = value

float32 = lambda x: struct.unpack("f", struct.pack("f", x))[0]
problems = 0
for tag, steps in sorted(expected.items()):
    events = accumulator.Scalars(tag) if tag in tags else []
    got = [(event.step, event.value) for event in events]
    want = [(step, math.nan if value is None else float32(value)) for step, value in steps.items()]
    same = len(got) == len(want) and all(
        a[0] == b[0] and (a[1] == b[1] or (not math.isfinite(a[1]) and not math.isfinite(b[1]))) for a, b in zip(got, want))
    problems += not same
    print(f"{'same' if same else 'DIFFERENT':9} {tag}: {len(got)} in the events, {len(want)} in metrics.jsonl")
print("texts:", {tag: len(accumulator.Tensors(tag)) for tag in accumulator.Tags()["tensors"]})
sys.exit(problems != 0)
