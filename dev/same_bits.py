#!/usr/bin/env python3
"""Shows that two builds of bertc train the same bits: dev/same_bits.py BEFORE AFTER FOLDER [pattern]

BEFORE and AFTER are build folders (with bertc and, if it exists, emulated/bertc with the emulated CUDA device). Each
training run is made completely by BEFORE (once: its folders are kept), completely by AFTER, and started by BEFORE and
resumed by AFTER. Weights, moments and metrics.jsonl (without times) must agree to the last bit.
"""
import json, os, pathlib, random, shutil, subprocess, sys

WORDS = [["the cat", "a dog", "the old man", "my sister", "nobody", "the sailor"],
         ["sees", "likes", "finds", "follows", "paints"],
         ["the house", "a river", "the red boat", "some bread", "the moon"]]
MODEL = {"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 64, "hidden_act": "gelu", "max_position_embeddings": 64, "type_vocab_size": 2}
TWO_PHASES = """vocab_size = 80
[phase]
max_seq_length = 32
num_train_steps = 6
learning_rate = 1e-3
[phase]
max_seq_length = 64
num_train_steps = 6
learning_rate = 5e-4
"""
PLAIN = "--vocab_size 80 --max_seq_length 32 --num_train_steps 10 --train_batch_size 12 --eval_steps 5 --log_steps 1"
COURSES = {
    "fp32": f"{PLAIN} --precision fp32",
    "accumulation": f"{PLAIN} --precision fp32 --gradient_accumulation_steps 3 --optimizer google_adamw",
    "bf16": f"{PLAIN} --precision bf16 --whole_word_mask",
    "lamb": f"{PLAIN} --precision fp32 --optimizer lamb",
    "ranks": f"{PLAIN} --precision fp32 --ranks 2",
    "ranks-bf16-lamb": f"{PLAIN} --precision bf16 --ranks 2 --optimizer lamb --gradient_accumulation_steps 2",
    "phases": "--config {folder}/phases.conf --train_batch_size 12 --precision fp32 --log_steps 1",
    "phases-ranks": "--config {folder}/phases.conf --train_batch_size 12 --precision bf16 --ranks 2 --log_steps 1",
    "no-next-sentence": f"{PLAIN} --precision fp32 --next_sentence none",
    "order": f"{PLAIN} --precision bf16 --next_sentence order",
    "cuda-bf16": f"{PLAIN} --precision bf16 --device cuda",
    "cuda-fp16": f"{PLAIN} --precision fp16 --device cuda",
    "cuda-fp8": f"{PLAIN} --precision fp8 --device cuda",
    "cuda-ranks": f"{PLAIN} --precision bf16 --device cuda --ranks 2",
}
TIMES = {"seconds", "tokens_per_second", "share_of_gemm", "eval_seconds", "waited_seconds"}


def make_inputs(folder):
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "phases.conf").exists():  # a run identifies its corpus by its modification time, too
        return
    draw = random.Random(7)
    lines = []
    for _ in range(80):
        lines += [" ".join(draw.choice(w) for w in WORDS) + "." for _ in range(6)] + [""]
    (folder / "corpus.txt").write_text("\n".join(lines) + "\n")
    (folder / "config.json").write_text(json.dumps(MODEL))
    (folder / "phases.conf").write_text(TWO_PHASES)


def run(build, folder, out, options, more="", status=0):
    program = build / ("emulated/bertc" if "--device cuda" in options else "bertc")
    options = options.format(folder=folder)
    command = f"{program} pretrain --corpus {folder}/corpus.txt --model {folder}/config.json --out {out} {options} {more}"
    env = dict(os.environ, EMULATED_DEVICES="2", BERTC_CACHE="")
    done = subprocess.run(command.split(), capture_output=True, text=True, env=env)
    if done.returncode != status:
        sys.exit(f"{command}\nended with {done.returncode}:\n{done.stderr[-2000:]}")


def metrics(out):
    lines = []
    for line in (out / "metrics.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if "loss" in entry or "eval_loss" in entry:
            lines.append({k: v for k, v in entry.items() if k not in TIMES and "seconds" not in k and "share" not in k})
    return lines


def differences(a, b):
    found = []
    files = ["final/model.safetensors"]
    files += [f"{p.name}/optimizer.safetensors" for p in sorted(a.glob("checkpoint-*"))]
    for name in files:
        if not (b / name).exists() or (a / name).read_bytes() != (b / name).read_bytes():
            found.append(name)
    ours, theirs = metrics(a), metrics(b)
    if ours != theirs:
        where = next((i for i, (x, y) in enumerate(zip(ours, theirs)) if x != y), min(len(ours), len(theirs)))
        found.append(f"metrics.jsonl from line {where}: {ours[where:where + 1]} / {theirs[where:where + 1]}")
    return found


def main():
    before, after, folder = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
    pattern = sys.argv[4] if len(sys.argv) > 4 else ""
    make_inputs(folder)
    failed = 0
    for name, options in COURSES.items():
        if pattern not in name or ("cuda" in name and not (before / "emulated/bertc").exists()):
            continue
        whole, begun = folder / "before" / name, folder / "begun" / name
        if not (whole / "final").exists():
            shutil.rmtree(whole, ignore_errors=True)
            run(before, folder, whole, options)
        if not begun.exists():
            run(before, folder, begun, options, "--stop_at_step 4", 75)
        result = []
        for kind in ("whole", "resumed"):
            out = folder / "after" / kind / name
            shutil.rmtree(out, ignore_errors=True)
            if kind == "resumed":
                shutil.copytree(begun, out, symlinks=True)
            run(after, folder, out, options)
            result += [f"{kind}: {what}" for what in differences(whole, out)]
        failed += bool(result)
        print(f"{'DIFFERS' if result else 'same   '} {name}", *result, sep="\n    " if result else " ", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
