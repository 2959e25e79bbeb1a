"""Scores of a published model fine-tuned on public tasks: bertc and transformers, from the same weights by the same recipe.

    python bench/proof.py --model FOLDER --data FOLDER --work FOLDER [--tasks mrpc,ncbi] [--seeds 1] [--programs bertc,transformers]
                          [--threads 2] [--bertc build/bertc] [--limit N]

Needs bench/requirements.txt. FOLDER of --data holds glue_like/, ner_en/, cls_sci/ and squad/ with the files named in TASKS below.
Each seed of each program is a process of its own; results stay in WORK/results.json, so that the same command resumes,
the Trainer from its last checkpoint. bertc trains in fp32, and the model of its first seed is evaluated in fp32, bf16
and int8. transformers is the Trainer with dynamic padding and batches drawn at random, in fp32. Seconds are those of
training, the evaluation left out. --limit trains and evaluates on the first N rows, to try the script. Prints a table
in Markdown.
"""
import argparse
import collections
import csv
import json
import os
import statistics
import subprocess
import sys
import time

from encoders import need

# name: kind, training file, dev file, epochs, learning rate, batch, tokens, measure of eval_results.json
TASKS = {
    "sts-embedding": ("embedding", None, "glue_like/stsb/dev.tsv", 0, 0, 0, 256, "eval_spearmanr"),
    "sts-trained": ("embedding", "glue_like/stsb/train.tsv", "glue_like/stsb/dev.tsv", 2, 5e-5, 32, 128, "eval_spearmanr"),
    "stsb": ("regression", "glue_like/stsb/train.tsv", "glue_like/stsb/dev.tsv", 3, 5e-5, 32, 128, "eval_spearmanr"),
    "mrpc": ("pair", "glue_like/mrpc/train.tsv", "glue_like/mrpc/dev.tsv", 4, 5e-5, 32, 128, "eval_accuracy"),
    "qnli": ("pair", "glue_like/qnli/train_part.tsv", "glue_like/qnli/dev_part.tsv", 3, 5e-5, 32, 128, "eval_accuracy"),
    "qqp": ("pair", "glue_like/qqp/train.tsv", "glue_like/qqp/dev.tsv", 1, 5e-5, 32, 128, "eval_accuracy"),
    "sst2": ("classification", "glue_like/sst2/train.tsv", "glue_like/sst2/dev.tsv", 1, 5e-5, 32, 128, "eval_accuracy"),
    "scicite": ("classification", "cls_sci/sci-cite/train.jsonl", "cls_sci/sci-cite/dev.jsonl", 3, 5e-5, 32, 128, "eval_f1"),
    "chemprot": ("classification", "cls_sci/chemprot/train.jsonl", "cls_sci/chemprot/dev.jsonl", 4, 1e-4, 32, 256,
                 "eval_accuracy"),
    "ncbi": ("tagging", "ner_en/NCBI-disease/train.txt", "ner_en/NCBI-disease/dev.txt", 3, 1e-4, 32, 128, "eval_f1"),
    "bc5cdr": ("tagging", "ner_en/bc5cdr/train.txt", "ner_en/bc5cdr/dev.txt", 3, 1e-4, 32, 128, "eval_f1"),
    "squad1": ("squad", "squad/train-v1.1-part.json", "squad/dev-v1.1-part.json", 2, 1e-4, 32, 384, "eval_f1"),
    "squad2": ("squad", "squad/train-v2.0-part.json", "squad/dev-v2.0-part.json", 2, 1e-4, 32, 384, "eval_f1"),
}
# Columns (texts, label) of the tables without a header of their own.
COLUMNS = {"mrpc": (["#1 String", "#2 String"], "Quality"), "qnli": (["question", "sentence"], "label"),
           "qqp": (["question1", "question2"], "is_duplicate"), "sst2": (["sentence"], "label"),
           "stsb": ([5, 6], 4), "sts-embedding": ([5, 6], 4), "sts-trained": ([5, 6], 4)}
WARMUP, DECAY, EPSILON, STRIDE = 0.1, 0.01, 1e-6, 128

p = argparse.ArgumentParser()
p.add_argument("--model", required=True)
p.add_argument("--data", required=True)
p.add_argument("--work", required=True)
p.add_argument("--tasks", default=",".join(TASKS))
p.add_argument("--seeds", type=int, default=1)
p.add_argument("--programs", default="bertc,transformers")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--bertc", default="build/bertc")
p.add_argument("--limit", type=int, default=0)
p.add_argument("--child", help=argparse.SUPPRESS)
a = p.parse_args()


# --- Data: both programs read the same prepared files -------------------------------------------------------------------

def rows_of(task, path):
    """(texts, label) of each row."""
    if path.endswith(".jsonl"):
        for line in open(path, encoding="utf-8"):
            row = json.loads(line)
            yield [row["text"]], row["label"]
        return
    texts, label = COLUMNS[task]
    with open(path, encoding="utf-8-sig", newline="\n") as f:
        lines = csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE)
        header = None if isinstance(label, int) else next(lines)
        at = [header.index(c) for c in texts] + [header.index(label)] if header else texts + [label]
        for row in lines:
            yield [row[i] for i in at[:-1]], row[at[-1]]


def sentences_of(path):
    """(words, tags in IOB2) of each sentence."""
    words, tags = [], []
    for line in [*open(path, encoding="utf-8"), "\n"]:
        fields = line.split()
        if fields and not fields[0].startswith("-DOCSTART-"):
            tag, before = fields[-1], tags[-1] if tags else "O"
            if tag != "O" and (before == "O" or before[2:] != tag[2:]):
                tag = "B" + tag[1:]
            words.append(fields[0])
            tags.append(tag)
        elif words:
            yield words, tags
            words, tags = [], []


def prepare(task):
    """The paths of the training and the dev file; the first is None for a task without training."""
    kind, paths = TASKS[task][0], []
    for part in TASKS[task][1:3]:
        source = part and os.path.join(a.data, part)
        if kind == "squad" or source is None:
            paths.append(source)
            continue
        out = os.path.join(a.work, f"{task}-{len(paths)}" + (".conll" if kind == "tagging" else ".tsv"))
        paths.append(out)
        with open(out, "w", encoding="utf-8") as f:
            if kind == "tagging":
                for number, (words, tags) in enumerate(sentences_of(source)):
                    if not a.limit or number < a.limit:
                        f.write("".join(f"{w}\t{t}\n" for w, t in zip(words, tags)) + "\n")
                continue
            for number, (texts, label) in enumerate(rows_of(task, source)):
                if number == 0:
                    f.write("\t".join(["text", "pair"][:len(texts)] + ["label"]) + "\n")
                if not a.limit or number < a.limit:
                    f.write("\t".join([" ".join(t.split()) for t in texts] + [label]) + "\n")
    return paths


def table(path):
    with open(path, encoding="utf-8") as f:
        header, *rows = [line.rstrip("\n").split("\t") for line in f]
    return [dict(zip(header, row)) for row in rows]


# --- bertc --------------------------------------------------------------------------------------------------------------

def run_bertc(*words):
    done = subprocess.run([a.bertc, *map(str, words), "--threads", str(a.threads), "-q"], capture_output=True, text=True)
    if done.returncode == 2 and "this processor does not compute in" in done.stderr:
        return None
    if done.returncode != 0:
        sys.exit(f"{' '.join(done.args)}:\n{done.stderr}")
    return done.stdout


def columns_of(kind):
    return [] if kind in ("tagging", "squad") else ["--text_column", "text", "--label_column", "label"] + \
        (["--pair_column", "pair"] if kind in ("pair", "regression", "embedding") else [])


def by_bertc(task, seed):
    kind, _, _, epochs, rate, batch, length, measure = TASKS[task]
    train, dev = prepare(task)
    model, out = a.model, os.path.join(a.work, f"{task}-bertc-{seed}")
    result = {}
    if train:
        extra = ["--doc_stride", STRIDE] if kind == "squad" else []
        extra += ["--version_2_with_negative"] if task == "squad2" else []
        extra += ["--max_train_samples", a.limit] if a.limit and kind == "squad" else []
        run_bertc("finetune", "--task", kind, "--model", model, "--train", train, "--dev", dev, "--out", out, "--fresh", *columns_of(kind),
                  "--num_train_epochs", epochs, "--learning_rate", rate, "--train_batch_size", batch, "--max_seq_length", length,
                  "--warmup_proportion", WARMUP, "--weight_decay", DECAY, "--adam_epsilon", EPSILON, "--seed", seed,
                  "--precision", "fp32", "--log_steps", 10, "--save_checkpoints_steps", 0, "--eval_steps", 0, "--no_progress", *extra)
        lines = [json.loads(line) for line in open(os.path.join(out, "metrics.jsonl"))]
        result["seconds"] = [line["seconds"] for line in lines if "loss" in line][-1]
        result["score"] = json.load(open(os.path.join(out, "eval_results.json")))[measure]
        model = os.path.join(out, "final")
    if seed > 1:
        return result
    for precision in ("fp32", "bf16", "int8"):
        extra = columns_of(kind) if kind == "embedding" else []
        said = run_bertc("evaluate", "--model", model, "--test", dev, "--precision", precision, "--json", *extra)
        if said:
            result[precision] = json.loads(said)[measure.split("_", 1)[1]]
    result.setdefault("score", result["fp32"])
    return result


# --- transformers -------------------------------------------------------------------------------------------------------

def by_transformers(task, seed):
    out = os.path.join(a.work, f"{task}-transformers-{seed}.json")
    subprocess.run([sys.executable, __file__, *sys.argv[1:], "--child", f"{task}:{seed}:{out}"], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": str(a.threads), "CUDA_VISIBLE_DEVICES": ""})
    return json.load(open(out))


def embeddings(task, seed, train, dev, out):
    import datasets
    from scipy.stats import spearmanr
    from sentence_transformers import (SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments,
                                       losses)
    _, _, _, epochs, rate, batch, length, _ = TASKS[task]
    rows, model, result = table(dev), SentenceTransformer(a.model, device="cpu"), {}
    model.max_seq_length = length
    if train:
        data = datasets.Dataset.from_list([{"text": r["text"], "pair": r["pair"], "score": float(r["label"])} for r in table(train)])
        trainer = SentenceTransformerTrainer(
            model=model, train_dataset=data, loss=losses.CoSENTLoss(model), args=SentenceTransformerTrainingArguments(
                per_device_train_batch_size=batch, **arguments(out, epochs, rate, seed)))
        result.update(train_or_resume(trainer))
    x, y = (model.encode([r[c] for r in rows], normalize_embeddings=True) for c in ("text", "pair"))
    return {**result, "score": float(spearmanr((x * y).sum(1), [float(r["label"]) for r in rows]).statistic)}


def arguments(out, epochs, rate, seed):
    return {"output_dir": out + ".run", "num_train_epochs": epochs, "learning_rate": rate, "warmup_steps": WARMUP,
            "weight_decay": DECAY, "adam_epsilon": EPSILON, "seed": seed, "use_cpu": True, "report_to": [], "save_steps": 100,
            "save_total_limit": 1, "logging_strategy": "no", "disable_tqdm": True}


def train_or_resume(trainer):
    """Trains, from the last checkpoint where an earlier run was interrupted; returns the seconds of a training in one piece."""
    from transformers.trainer_utils import get_last_checkpoint
    folder = trainer.args.output_dir
    last = get_last_checkpoint(folder) if os.path.isdir(folder) else None
    began = time.perf_counter()
    trainer.train(resume_from_checkpoint=last)
    return {} if last else {"seconds": time.perf_counter() - began}


def squad_examples(tokenizer, path, length):
    """(windows for training, windows for prediction with the question they belong to, contexts)."""
    training, prediction, contexts = [], [], {}
    for article in json.load(open(path))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                contexts[question["id"]] = paragraph["context"]
                if a.limit and len(contexts) > a.limit:
                    return training, prediction, contexts
                encoded = tokenizer(question["question"].strip(), paragraph["context"], truncation="only_second",
                                    max_length=length, stride=STRIDE, return_overflowing_tokens=True, return_offsets_mapping=True)
                answer = None if question.get("is_impossible") or not question["answers"] else question["answers"][0]
                for w, ids in enumerate(encoded["input_ids"]):
                    places = [place if part == 1 else None for place, part in
                              zip(encoded["offset_mapping"][w], encoded.sequence_ids(w))]
                    features = {"input_ids": ids, "token_type_ids": encoded["token_type_ids"][w],
                                "attention_mask": encoded["attention_mask"][w]}
                    prediction.append((question["id"], places, features))
                    first = last = 0
                    if answer:
                        begin, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
                        inside = [i for i, at in enumerate(places) if at and at[1] > begin and at[0] < end]
                        known = [i for i, at in enumerate(places) if at]
                        if inside and places[known[0]][0] <= begin and places[known[-1]][1] >= end:
                            first, last = inside[0], inside[-1]
                    training.append({**features, "start_positions": first, "end_positions": last})
    return training, prediction, contexts


def squad_answers(prediction, starts, ends, contexts):
    """Best span of up to 30 tokens among the 20 best starts and ends of each window; no answer where [CLS] scores higher."""
    best, null = {}, collections.defaultdict(lambda: float("inf"))
    for (question, places, _), start, end in zip(prediction, starts, ends):
        null[question] = min(null[question], start[0] + end[0])
        for i in start.argsort()[-20:]:
            for j in end.argsort()[-20:]:
                if i <= j < i + 30 and j < len(places) and places[i] and places[j]:
                    score = start[i] + end[j]
                    if score > best.get(question, (-1e30,))[0]:
                        best[question] = (score, contexts[question][places[i][0]:places[j][1]])
    return best, null


def child(task, seed, out):
    import numpy as np
    import torch
    from transformers import (AutoModelForQuestionAnswering, AutoModelForSequenceClassification, AutoModelForTokenClassification,
                              AutoTokenizer, DataCollatorForTokenClassification, DataCollatorWithPadding, Trainer, TrainingArguments)
    kind, _, _, epochs, rate, batch, length, _ = TASKS[task]
    train, dev = prepare(task)
    torch.set_num_threads(a.threads)
    torch.manual_seed(seed)
    if kind == "embedding":
        json.dump(embeddings(task, seed, train, dev, out), open(out, "w"))
        return
    tokenizer = AutoTokenizer.from_pretrained(a.model)
    collate = DataCollatorWithPadding(tokenizer)
    if kind == "squad":
        data = squad_examples(tokenizer, train, length)[0]
        model = AutoModelForQuestionAnswering.from_pretrained(a.model)
    elif kind == "tagging":
        parts = [list(sentences_of(path)) for path in (train, dev)]
        names = sorted({t for _, tags in parts[0] for t in tags})

        def encode(words, tags):
            features = tokenizer(words, is_split_into_words=True, truncation=True, max_length=length)
            ids, last = [], None
            for word in features.word_ids():
                ids.append(names.index(tags[word]) if word is not None and word != last else -100)
                last = word
            return {**features, "labels": ids}
        data, test = ([encode(*sentence) for sentence in part] for part in parts)
        model = AutoModelForTokenClassification.from_pretrained(a.model, num_labels=len(names))
        collate = DataCollatorForTokenClassification(tokenizer)
    else:
        parts = [table(path) for path in (train, dev)]
        names = sorted({r["label"] for r in parts[0]})

        def encode_row(r):
            texts = [r["text"]] + ([r["pair"]] if "pair" in r else [])
            label = float(r["label"]) if kind == "regression" else names.index(r["label"])
            return {**tokenizer(*texts, truncation=True, max_length=length), "labels": label}
        data, test = ([encode_row(r) for r in part] for part in parts)
        model = AutoModelForSequenceClassification.from_pretrained(a.model, num_labels=1 if kind == "regression" else len(names))
    trainer = Trainer(model=model, train_dataset=data, data_collator=collate, args=TrainingArguments(
        per_device_train_batch_size=batch, per_device_eval_batch_size=batch, **arguments(out, epochs, rate, seed)))
    result = train_or_resume(trainer)
    if kind == "squad":
        _, prediction, contexts = squad_examples(tokenizer, dev, length)
        starts, ends = trainer.predict([features for _, _, features in prediction]).predictions
        best, null = squad_answers(prediction, starts, ends, contexts)
        answers = {q: "" if task == "squad2" and (q not in best or null[q] > best[q][0]) else best.get(q, (0, ""))[1]
                   for q in contexts}
        json.dump(answers, open(out + ".answers", "w"))
        words = ["--version_2_with_negative"] if task == "squad2" else []
        said = json.loads(run_bertc("evaluate", "--predictions", out + ".answers", "--test", dev, "--json", *words))
        result["score"] = said["f1"]
    else:
        given = trainer.predict(test)
        result["score"] = score(kind, task, given.predictions, given.label_ids, names)
    json.dump({k: float(np.asarray(v)) for k, v in result.items()}, open(out, "w"))


def score(kind, task, predictions, labels, names):
    from scipy.stats import spearmanr
    from seqeval.metrics import f1_score as entities
    from sklearn.metrics import f1_score
    if kind == "regression":
        return spearmanr(predictions[:, 0], labels).statistic
    best = predictions.argmax(-1)
    if kind == "tagging":
        pairs = [[(names[x], names[y]) for x, y in zip(row, want) if y != -100] for row, want in zip(best, labels)]
        return entities([[y for _, y in row] for row in pairs], [[x for x, _ in row] for row in pairs])
    return f1_score(labels, best, average="macro") if TASKS[task][7] == "eval_f1" else (best == labels).mean()


# --- Table --------------------------------------------------------------------------------------------------------------

def show(results, key, program):
    def percent(x):
        return 100 * x if x <= 1 else x
    values = [percent(r[key]) for r in results.get(program, {}).values() if key in r]
    if not values:
        return "-"
    return f"{statistics.mean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


def main():
    need("torch", "transformers", "accelerate", "sklearn", "scipy", "seqeval", "sentence_transformers")
    os.makedirs(a.work, exist_ok=True)
    file = os.path.join(a.work, "results.json")
    results = json.load(open(file)) if os.path.exists(file) else {}
    for task in a.tasks.split(","):
        for seed in range(1, a.seeds + 1 if TASKS[task][1] else 2):
            for program in a.programs.split(","):
                done = results.setdefault(task, {}).setdefault(program, {})
                if str(seed) not in done:
                    done[str(seed)] = (by_bertc if program == "bertc" else by_transformers)(task, seed)
                    print(task, program, seed, done[str(seed)], file=sys.stderr, flush=True)
                    json.dump(results, open(file + ".new", "w"), indent=1)
                    os.replace(file + ".new", file)
    print("| task, measure | bertc | transformers | seeds | bertc's first seed in fp32, bf16, int8 | seconds: bertc, transformers |")
    print("|---|---|---|---|---|---|")
    for task in a.tasks.split(","):
        r, mean = results[task], {}
        for program in r:
            times = [s["seconds"] for s in r[program].values() if "seconds" in s]
            mean[program] = f"{statistics.mean(times):.0f}" if times else "-"
        first = ", ".join(show(r, precision, "bertc") for precision in ("fp32", "bf16", "int8"))
        print(f"| {task}, {TASKS[task][7][5:]} | {show(r, 'score', 'bertc')} | {show(r, 'score', 'transformers')} | "
              f"{max(map(len, r.values()))} | {first} | {mean.get('bertc', '-')}, {mean.get('transformers', '-')} |")


if a.child:
    name, number, target = a.child.split(":", 2)
    child(name, int(number), target)
else:
    main()
