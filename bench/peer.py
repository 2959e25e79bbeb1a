"""Training steps of bertc and of PyTorch + transformers in one run: the same work, in alternation.

    peer.py [--only base-128,base-512,small-128,4x256-128,base-natural-128,base-natural-512,roberta-base-128,modernbert-base-128]
            [--precision bf16,fp32] [--modes eager,compiled,trainer] [--heads masked,all] [--rounds N] [--threads N]
            [--batches FOLDER] [--build build]

A case is MODEL-LENGTH (sequences of LENGTH random words) or MODEL-natural-LENGTH: batches of real text from
FOLDER/natural-LENGTH.safetensors (bench/cpu.sh makes them with dev/dump_batches), which bertc packs without padding and
PyTorch gets padded: to LENGTH as in the original programs ("max") and, in eager mode, to the longest of the batch rounded up
to 64 ("longest"). Its masked rows are padded to the same number in all batches, with rows that have no label. PyTorch therefore
sees one shape with "max" (one compilation) and few with "longest", all of them before the first round.

PyTorch: BertForPreTraining, or the form's model of masked words, SDPA, dropout 0.1, AdamW (fused), clipping; its head on all
positions, as it comes, and on masked rows only; eager and torch.compile. "trainer" is transformers' Trainer, with its head on all
positions, for cases of random words. Each of the modes runs together with bertc, two processes at a time that take turns step by step.
Prints medians of the seconds per step, the rate, the peak of resident memory, and the speed of bertc relative to PyTorch: the median
over rounds of the ratio within a round, so that changes of the machine's speed do no harm.
Needs bench/requirements.txt; make build/bench/step.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import encoders

SEQUENCES = {("base", 128): 32, ("base", 512): 8, ("large", 128): 16}  # per step; others: 8192 tokens

p = argparse.ArgumentParser()
p.add_argument("--only", default="base-128,base-512,small-128,4x256-128")
p.add_argument("--precision", default="bf16,fp32")
p.add_argument("--modes", default="eager,compiled")
p.add_argument("--heads", default="masked,all")
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--batches", default="")
p.add_argument("--build", default="build")
p.add_argument("--worker", default="", help=argparse.SUPPRESS)  # JSON: this process is a PyTorch contender
a = p.parse_args()


# --- a PyTorch contender ----------------------------------------------------------------------------------------------

def random_batch(vocabulary, types, length, sequences):
    """15 % of the positions are predicted: the same ones in every row, those of run/benchmark.c."""
    import torch
    g = torch.Generator().manual_seed(1)
    i = torch.arange(length) % 20
    chosen = ((i == 3) | (i == 9) | (i == 16)).expand(sequences, length)
    labels = torch.where(chosen, torch.randint(0, vocabulary, (sequences, length), generator=g), -100)
    return dict(ids=torch.randint(0, vocabulary, (sequences, length), generator=g),
                types=(torch.arange(length) > length // 2).long().clamp(max=types - 1).expand(sequences, length).contiguous(),
                mask=None, labels=labels, rows=chosen.flatten().nonzero().squeeze(1),
                following=torch.randint(0, 2, (sequences,), generator=g))


def padded_batches(path, width):
    """The file's packed batches as padded ones; width 0: to the longest sequence, rounded up to 64."""
    import torch
    from safetensors.torch import load_file
    tensors = load_file(path)
    most = max(len(v) for k, v in tensors.items() if k.endswith(".rows"))
    out = []
    for step in sorted(int(k[4:-4]) for k in tensors if k.endswith(".ids")):
        t = {k: tensors[f"step{step}.{k}"].long() for k in ("ids", "types", "starts", "rows", "labels", "next")}
        lengths = t["starts"].diff()
        columns = width or (int(lengths.max()) + 63) // 64 * 64
        sequence = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        place = sequence * columns + torch.arange(len(t["ids"])) - t["starts"][sequence]
        shape = (len(lengths), columns)

        def padded(values, places, fill):
            return torch.full((shape[0] * shape[1],), fill).scatter(0, places, values).view(shape)
        places = place[t["rows"]]
        rows = torch.cat([places, torch.zeros(most - len(places), dtype=torch.long)])  # [CLS] has no label
        out.append(dict(ids=padded(t["ids"], place, 0), types=padded(t["types"], place, 0),
                        mask=padded(torch.ones_like(t["ids"]), place, 0), labels=padded(t["labels"], places, -100),
                        rows=rows, following=t["next"]))
    return out


def with_trainer(model, batch, job):
    """Steps of transformers' Trainer, on the same batch again and again, as many as each line of standard input says."""
    import tempfile
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Turns(TrainerCallback):
        times, wanted = [], 0

        def on_step_begin(self, args, state, control, **_):
            while self.wanted == 0:
                line = sys.stdin.readline()
                if not line:
                    os._exit(0)
                self.wanted = int(line)
            self.began = time.perf_counter()

        def on_step_end(self, args, state, control, **_):
            self.times.append(time.perf_counter() - self.began)
            self.wanted -= 1
            if self.wanted == 0:
                print(*self.times, file=answers, flush=True)
                self.times.clear()
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    names = dict(ids="input_ids", types="token_type_ids", labels="labels", following="next_sentence_label")
    if model.config.model_type != "bert":
        names = dict(ids="input_ids", labels="labels")
    rows = [{theirs: batch[ours][i] for ours, theirs in names.items()} for i in range(len(batch["ids"]))]
    arguments = TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=len(rows), max_steps=1 << 20, use_cpu=True,
                                  bf16=job["precision"] == "bf16", optim="adamw_torch_fused", weight_decay=0.01, learning_rate=1e-4,
                                  save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True)
    Trainer(model, arguments, train_dataset=rows, callbacks=[Turns()]).train()


def worker(job):
    import torch
    from transformers import AutoModelForMaskedLM, AutoModelForPreTraining
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    config = encoders.transformers_config(job["size"])
    bert = config.model_type == "bert"
    model = (AutoModelForPreTraining if bert else AutoModelForMaskedLM).from_config(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    if job["file"]:
        batches = padded_batches(job["file"], job["length"] if job["padding"] == "max" else 0)
    else:
        batches = [random_batch(config.vocab_size, getattr(config, "type_vocab_size", 1), job["length"], job["sequences"])]

    if job["mode"] == "trainer":
        return with_trainer(model, batches[0], job)

    def encode(ids, types, mask):
        given = {} if config.model_type == "modernbert" else {"token_type_ids": types}
        return model.base_model(ids, attention_mask=mask, **given)

    def predict(rows):
        if bert:
            return model.cls.predictions(rows)
        return model.lm_head(rows) if hasattr(model, "lm_head") else model.decoder(model.head(rows))

    def masked_loss(ids, types, mask, labels, rows, following):
        o = encode(ids, types, mask)
        ce = torch.nn.functional.cross_entropy
        loss = ce(predict(o.last_hidden_state.flatten(0, 1)[rows]).float(), labels.flatten()[rows])
        return loss + ce(model.cls.seq_relationship(o.pooler_output).float(), following) if bert else loss

    def whole_loss(ids, types, mask, labels, rows, following):
        if bert:
            return model(input_ids=ids, token_type_ids=types, attention_mask=mask, labels=labels,
                         next_sentence_label=following).loss
        return model(input_ids=ids, attention_mask=mask, labels=labels).loss
    loss = masked_loss if job["heads"] == "masked" else whole_loss
    if job["mode"] == "compiled":
        loss = torch.compile(loss)
    next_batch = 0
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            batch = batches[next_batch % len(batches)]
            next_batch += 1
            started = time.perf_counter()
            with torch.autocast("cpu", torch.bfloat16, enabled=job["precision"] == "bf16"):
                value = loss(**batch)
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            times.append(time.perf_counter() - started)
        print(*times, flush=True)


if a.worker:
    worker(json.loads(a.worker))
    sys.exit()


# --- the measurement --------------------------------------------------------------------------------------------------

class Contender:
    def __init__(self, name, command):
        self.name, self.rounds = name, []
        self.errors = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def run(self, steps):
        """The seconds of each step."""
        self.child.stdin.write(f"{steps}\n")
        self.child.stdin.flush()
        times = [float(x) for x in self.child.stdout.readline().split()]
        if len(times) != steps:
            self.errors.seek(0)
            sys.exit(f"peer.py: {self.name} ended with {self.child.wait()} (-9: no memory?)\n{self.errors.read()}")
        time.sleep(0.3)  # lets its threads come to rest
        return times

    def peak(self):
        """The peak of resident memory in bytes."""
        with open(f"/proc/{self.child.pid}/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def prepare(case, precision, folder):
    """The commands of bertc and of PyTorch's modes, and the contents of a step."""
    size, length = case.rsplit("-", 1)
    natural, size, length = size.endswith("-natural"), size.removesuffix("-natural"), int(length)
    sequences = SEQUENCES.get((size.rsplit("-")[-1], length), 8192 // length)
    file, steps, tokens = "", 1, sequences * length
    ours = [os.path.join(a.build, "bench", "step"), 
            encoders.write_config(os.path.join(folder, f"{size}.json"), size), precision, str(a.threads)]
    if natural:
        from safetensors import safe_open
        file = os.path.join(a.batches, f"natural-{length}.safetensors")
        with safe_open(file, "np") as f:
            starts = [f.get_tensor(k) for k in f.keys() if k.endswith(".starts")]
        steps, sequences = len(starts), sum(len(s) - 1 for s in starts) / len(starts)
        tokens = sum(int(s[-1]) for s in starts) / steps
        ours.append(file)
    else:
        ours += [str(sequences), str(length)]
    theirs = []
    for mode in a.modes.split(","):
        for heads in a.heads.split(","):
            if natural and heads == "all" or mode == "trainer" and (natural or heads == "masked"):
                continue
            for padding in (["max", "longest"] if mode == "eager" else ["max"]) if natural else [""]:
                job = dict(size=size, length=length, sequences=int(sequences), precision=precision, mode=mode, heads=heads,
                           file=file, padding=padding)
                name = f"PyTorch {mode}, head on {heads}" + (f", padded to {padding}" if padding else "")
                theirs.append((name, [sys.executable, os.path.abspath(__file__), "--threads", str(a.threads), "--worker",
                                      json.dumps(job)]))
    return ours, theirs, steps, sequences, tokens, length


def warm_up(contender, steps, label):
    """Runs every batch once; the next one is the first again."""
    began = time.time()
    contender.run(max(steps, 2))
    print(f"# {label} {contender.name}: ready after {time.time() - began:.0f} s", file=sys.stderr, flush=True)


def measure(case, precision, folder):
    ours, theirs, steps, sequences, tokens, length = prepare(case, precision, folder)
    label = f"{case} {precision}"
    bertc = Contender("bertc", ours)
    warm_up(bertc, steps, label)
    fill = f", {100 * tokens / (sequences * length):.0f} % of the padded places are tokens" if steps > 1 else ""
    print(f"\n**{case}, {precision}**: {sequences:g} sequences, {tokens:.0f} tokens per step{fill}; {a.threads} threads, "
          f"{a.rounds} rounds\n")
    print("| contender | s/step | least - most | sequences/s | peak memory | bertc is |\n|---|---|---|---|---|---|")

    def row(contender, versus):
        times = contender.rounds
        print(f"| {contender.name} | {statistics.median(times):.3f} | {min(times):.3f} - {max(times):.3f} | "
              f"{sequences / statistics.median(times):.2f} | {contender.peak() / 1e9:.2f} GB | {versus} |", flush=True)
    for name, command in theirs:
        torch = Contender(name, command)
        warm_up(torch, steps, label)
        ratios = []
        for _ in range(a.rounds):
            bertc.rounds.append(sum(bertc.run(steps)) / steps)
            torch.rounds.append(sum(torch.run(steps)) / steps)
            ratios.append(torch.rounds[-1] / bertc.rounds[-1])
        row(torch, f"{statistics.median(ratios):.2f} x as fast")
        torch.close()
    row(bertc, "")
    bertc.close()


encoders.need("torch", "transformers", "safetensors")
with tempfile.TemporaryDirectory() as scratch:
    for case in a.only.split(","):
        for precision in a.precision.split(","):
            measure(case, precision, scratch)
