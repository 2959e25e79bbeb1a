"""Fine-tuning and prediction: bertc and transformers' Trainer in its best mode, with the same model and texts, in alternation.

    python bench/finetune.py --work FOLDER [--model base|4x256] [--texts short|128|squad] [--examples 512] [--rounds 3]
                             [--threads 2] [--modes eager,compiled] [--device cpu|cuda] [--wait] [--bertc build/bertc] [--json FILE]

Needs bench/requirements.txt. The model has random weights. Texts are made of vocabulary entries: `short` ones are
as long as English sentences (mean about 29 tokens), those of `128` have 128 tokens; `squad` is questions of 10 tokens about
passages of lengths like SQuAD's (mean about 150, some longer than a window), read in windows of 384 tokens, 128 tokens apart.
In each round, each program trains an epoch in batches of 32 and predicts all texts, bertc in a new process each time, Trainer
in one that stays and has compiled beforehand. Trainer: bf16 autocast, torch.compile, dynamic padding, batches grouped by
length, fused AdamW, texts tokenized beforehand; the better of compiled and eager mode; its predictions are in bf16, sorted by
length. bertc: bf16, including tokenization; prediction is timed as a whole command, from start to end, in bf16 and in int8, on
a GPU in FP8. --modes '' leaves Trainer out. Prints examples per second, medians of the rounds, and the median over rounds of
the ratio within a round.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from encoders import need

SIZES = {"base": (12, 768, 12), "4x256": (4, 256, 4)}
BATCH = 32

p = argparse.ArgumentParser()
p.add_argument("--work", required=True)
p.add_argument("--model", default="base", choices=SIZES)
p.add_argument("--texts", default="short", choices=("short", "128", "squad"))
p.add_argument("--examples", type=int, default=512)
p.add_argument("--rounds", type=int, default=3)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--bertc", default="build/bertc")
p.add_argument("--modes", default="eager,compiled", help="of Trainer")
p.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
p.add_argument("--wait", action="store_true", help="begin measuring when a line comes on standard input: compilation takes minutes")
p.add_argument("--json")
p.add_argument("--child", default="", help=argparse.SUPPRESS)
a = p.parse_args()
BYTES = "int8" if a.device == "cpu" else "fp8"
folder = os.path.join(a.work, a.model)
squad = a.texts == "squad"
table = os.path.join(a.work, f"{a.texts}-{a.examples}.{'json' if squad else 'tsv'}")
length = 384 if squad else 128
STRIDE, QUESTION = 128, 10


def lengths():
    """The lengths of `bertc bench --sentence_lengths` (src/run/benchmark.c), or 128; those of passages without their
    questions."""
    share = 0.5
    for _ in range(a.examples):
        spread = (share / (1 - share)) ** 0.27
        yield min(700, max(25, round(137 * spread))) if squad else 128 if a.texts == "128" else min(128, max(3, round(25.65 * spread)))
        share = (share + 0.6180339887498949) % 1


def prepare():
    import random
    from transformers import BertConfig, BertForPreTraining
    layers, hidden, heads = SIZES[a.model]
    words = [c1 + c2 + c3 for c1 in "bdfgklmnprst" for c2 in "aeiou" for c3 in "bdfgklmnprst"]
    if not os.path.exists(os.path.join(folder, "config.json")):
        entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words
        entries += [f"[unused{i}]" for i in range(30522 - len(entries))]
        BertForPreTraining(BertConfig(num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads,
                                      intermediate_size=4 * hidden)).save_pretrained(folder)
        with open(os.path.join(folder, "vocab.txt"), "w") as f:
            f.write("\n".join(entries) + "\n")
    rng = random.Random(1)
    if squad:
        write_passages(rng, words)
        return
    with open(table, "w") as f:
        f.write("sentence\tlabel\n")
        for n in lengths():
            f.write(" ".join(rng.choice(words) for _ in range(n - 2)) + f"\t{rng.randrange(2)}\n")


def write_passages(rng, words):
    paragraphs = []
    for number, n in enumerate(lengths()):
        passage = [rng.choice(words) for _ in range(n)]
        first = rng.randrange(n)
        answer = {"text": " ".join(passage[first:first + 3]), "answer_start": len(" ".join(passage[:first])) + (first > 0)}
        question = " ".join(rng.choice(words) for _ in range(QUESTION))
        paragraphs.append({"context": " ".join(passage), "qas": [{"id": str(number), "question": question, "answers": [answer]}]})
    with open(table, "w") as f:
        json.dump({"version": "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}, f)


# --- Trainer ----------------------------------------------------------------------------------------------------------

def windows(tokenizer):
    """As in transformers' example, whose stride is the overlap."""
    data = []
    for paragraph in json.load(open(table))["data"][0]["paragraphs"]:
        question, answer = paragraph["qas"][0]["question"], paragraph["qas"][0]["answers"][0]
        encoded = tokenizer(question, paragraph["context"], truncation="only_second", max_length=length,
                            stride=length - 3 - QUESTION - STRIDE, return_overflowing_tokens=True, return_offsets_mapping=True)
        begin, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
        for w, ids in enumerate(encoded["input_ids"]):
            places = [place if part == 1 else (-1, -1) for place, part in zip(encoded["offset_mapping"][w], encoded.sequence_ids(w))]
            first = [i for i, place in enumerate(places) if place[0] == begin]
            last = [i for i, place in enumerate(places) if place[1] == end]
            found = first and last
            data.append({"input_ids": ids, "token_type_ids": encoded["token_type_ids"][w],
                         "attention_mask": encoded["attention_mask"][w], "start_positions": first[0] if found else 0,
                         "end_positions": last[-1] if found else 0})
    return data


def child():
    """Answers the lines "train" and "predict" on standard input with seconds."""
    import torch
    from transformers import (BertForQuestionAnswering, BertForSequenceClassification, BertTokenizerFast, DataCollatorWithPadding,
                              Trainer, TrainerCallback, TrainingArguments)
    kind = BertForQuestionAnswering if squad else BertForSequenceClassification
    torch.set_num_threads(a.threads)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # for stray output
    tokenizer = BertTokenizerFast(os.path.join(folder, "vocab.txt"))
    if squad:
        data = windows(tokenizer)
        print(f"Trainer reads {len(data)} windows", file=sys.stderr)
    else:
        rows = [line.rstrip("\n").split("\t") for line in open(table)][1:]
        data = [dict(tokenizer(text, truncation=True, max_length=length), labels=int(label)) for text, label in rows]
    ordered = sorted(data, key=lambda d: -len(d["input_ids"]))
    model = kind.from_pretrained(folder)

    class Turns(TrainerCallback):
        """Holds the training at the end of each epoch until it is released."""
        began = 0.0

        def on_epoch_begin(self, args, state, control, **_):
            self.wait()

        def on_epoch_end(self, args, state, control, **_):
            print(time.perf_counter() - self.began, file=answers, flush=True)

        def wait(self):
            for line in sys.stdin:
                if line.strip() == "train":
                    self.began = time.perf_counter()
                    return
                if line.strip() == "predict":
                    began = time.perf_counter()
                    predictor.predict(ordered)
                    print(time.perf_counter() - began, file=answers, flush=True)
            os._exit(0)

    settings = dict(output_dir=os.path.join(a.work, "trainer"), per_device_train_batch_size=BATCH, per_device_eval_batch_size=BATCH,
                    use_cpu=a.device == "cpu", bf16=True, torch_compile=a.child == "compiled", report_to=[], save_strategy="no",
                    logging_strategy="no", disable_tqdm=True, dataloader_num_workers=0, remove_unused_columns=False)
    grouped = dict(train_sampling_strategy="group_by_length")
    collate = DataCollatorWithPadding(tokenizer)
    predictor = Trainer(model=kind.from_pretrained(folder), data_collator=collate,
                        args=TrainingArguments(bf16_full_eval=True, **settings))
    trainer = Trainer(model=model, train_dataset=data, data_collator=collate, callbacks=[Turns()],
                      args=TrainingArguments(num_train_epochs=1000, learning_rate=2e-5, **grouped, **settings))
    trainer.train()


class Peer:
    def __init__(self, mode):
        self.name = f"Trainer, {mode}"
        self.process = subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--child", mode], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, what):
        print(what, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended; see above")
        return a.examples / float(line)


# --- bertc ------------------------------------------------------------------------------------------------------------

def bertc_train():
    out = os.path.join(a.work, "run")
    task = ["squad", "--max_seq_length", str(length), "--doc_stride", str(STRIDE)] if squad else ["classification"]
    subprocess.run([a.bertc, "finetune", "--task", *task, "--model", folder, "--train", table, "--out", out, "--fresh",
                    "--num_train_epochs", "1", "--train_batch_size", str(BATCH), "--device", a.device, "--precision", "bf16", "--threads", str(a.threads),
                    "--log_steps", "1", "--no_progress", "--save_checkpoints_steps", "0", "--eval_steps", "0", "-q"], check=True)
    lines = [json.loads(line) for line in open(os.path.join(out, "metrics.jsonl"))]
    return a.examples / [line["seconds"] for line in lines if "loss" in line][-1]


def bertc_predict(precision):
    began = time.perf_counter()
    subprocess.run([a.bertc, "predict", "--model", os.path.join(a.work, "run", "final"), table, "--out", os.path.join(a.work, "answers"),
                    "--device", a.device, "--precision", precision, "--threads", str(a.threads), "-q"], check=True)
    return a.examples / (time.perf_counter() - began)


def main():
    need("torch", "transformers", "accelerate")
    prepare()
    peers = [Peer(mode) for mode in a.modes.split(",") if mode]
    for peer in peers:
        for what in ("train", "predict"):
            peer.ask(what)
    if a.wait:
        print("ready", file=sys.stderr, flush=True)
        sys.stdin.readline()
    rates = []
    for _ in range(a.rounds):
        r = {"train": {"bertc bf16": bertc_train()},
             "predict": {f"bertc {precision}": bertc_predict(precision) for precision in ("bf16", BYTES)}}
        for peer in peers:
            for what in r:
                r[what][peer.name] = peer.ask(what)
        rates.append(r)
        print(json.dumps(r), file=sys.stderr, flush=True)
    result = {"model": a.model, "texts": a.texts, "examples": a.examples, "rates": rates}
    for what in rates[0]:
        print(f"{a.model}, texts {a.texts}: {what}, {'questions' if squad else 'examples'} a second")
        for name in rates[0][what]:
            values = [r[what][name] for r in rates]
            print(f"  {name:20} {statistics.median(values):8.1f}   ({min(values):.1f} to {max(values):.1f})")
        best = [max(r[what][peer.name] for peer in peers) for r in rates]
        for name in [n for n in rates[0][what] if n.startswith("bertc")]:
            ratio = statistics.median(r[what][name] / b for r, b in zip(rates, best))
            print(f"  {name} is {ratio:.2f} times as fast as Trainer's better mode")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(result, f, indent=1)


child() if a.child else main()
