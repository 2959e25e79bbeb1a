"""Compares `bertc finetune` with PyTorch and transformers, which read the raw texts with a tokenizer of their own.

    finetune_check.py exact --bertc build/bertc --task TASK --model FOLDER --train FILE --dev FILE --work FOLDER [options]
    finetune_check.py seeds --bertc build/bertc --task TASK --model FOLDER --train FILE --dev FILE --work FOLDER [options]
    finetune_check.py files choice|multilabel|squad SOURCE OUT [--model FOLDER] [--first N] [--count N]

exact: both programs start from the same weights, the head's included, and see the same examples in the order of the file, without
dropout. --checks names what is compared, separated by commas:

  curve     the loss, gradient norm and learning rate of every step (metrics.jsonl), with PyTorch's AdamW; the logits of the first
            1,000 dev examples before and after training (build/dev/task_outputs, which lies beside --bertc as `make` puts it)
  measures  eval_results.json, with scikit-learn, SciPy and seqeval on the predictions that bertc wrote
  ranks     the loss curve of one, two and four ranks
  resume    a run stopped halfway and resumed, on one and on two ranks: the same bits of weights and moments, the same metrics
  dropout   the mean loss of the trained model under dropout of 0.3, each program with masks of its own
  device    --emulated build/emulated/bertc on its emulated GPU in fp32, tf32 and bf16, with the CPU in fp32

The head's initial weights come from bertc: a run of one step with a learning rate of 0 saves them, and both programs go on
from its folder. --precision is PyTorch's; with fp64 the differences are those of bertc's rounding alone. The status is 1 if
anything is outside its bound.

With --teacher FOLDER, a model fine-tuned for the same task, both programs learn from it as well (--distill_alpha,
--distill_temperature, --distill_layers S:T,S:T..., --distill_hidden_weight, as bertc has them), and the three parts of the loss are
compared.

seeds: fine-tunes with several seeds in both programs from the same pre-trained model by the same recipe, each with its own order
of examples, dropout and initial head, and prints the scores of the dev set.

files: makes files that no published set here has, or that both programs read by the same rules:
  choice      which of four sentences follows the first, of SOURCE, a text with one sentence per line; the other three come from
              elsewhere in it
  multilabel  which types of entities a sentence of a CoNLL file has
  squad       the questions of a SQuAD file whose answers begin with a word and end with a token of --model's vocabulary: there
              Google's rule for the tokens of an answer and that of transformers' example agree
--first and --count choose among what is made.

TASK is one of bertc's; tables are TSV with a header, JSON lines, or the published layouts in LAYOUTS. Needs torch, transformers,
scikit-learn, scipy and seqeval.
"""
import argparse
import collections
import gzip
import json
import math
import pathlib
import random
import re
import string
import subprocess
import sys

import numpy as np
import safetensors.torch
import torch
import transformers
from transformers import BertTokenizerFast

F = torch.nn.functional

# ---- Files ----

# Header lines; columns of the texts and of the label, counted from 0.
LAYOUTS = {"sst-2": (1, [0], 1), "mrpc": (1, [3, 4], 0), "qqp": (1, [1, 2], 3), "sts-b": (0, [5, 6], 4), "cola": (0, [3], 1)}
KINDS = {"pair": "classification", "chemprot": "classification", "sst-2": "classification", "mrpc": "classification", "qqp": "classification",
         "cola": "classification", "sts-b": "regression"}


def lines_of(path):
    opened = gzip.open(path, "rt", encoding="utf-8-sig", newline="\n") if str(path).endswith(".gz") else open(
        path, encoding="utf-8-sig", newline="\n")
    with opened as file:
        return [line.rstrip("\r\n") for line in file]


def read_table(path, layout):
    """[(texts, label)]; for multiple choice the texts are the stem and the choices."""
    lines = lines_of(path)
    if layout:
        header, texts, label = layout
        rows = [line.split("\t") for line in lines[header:]]
        return [([row[i] for i in texts], row[label]) for row in rows]
    if lines[0].startswith("{"):
        rows = [json.loads(line) for line in lines]
    else:
        names = lines[0].split("\t")
        rows = [dict(zip(names, line.split("\t"))) for line in lines[1:]]
    if "choices" in rows[0]:
        return [([row["context"], *row["choices"]], row["label"]) for row in rows]
    texts = [name for name in ("text", "sentence", "sentence1", "sentence2") if name in rows[0]]
    return [([row[name] for name in texts], row["labels" if "labels" in row else "label"]) for row in rows]


def read_conll(path):
    """[(words, tags)] with tags in IOB2: an entity begins with B-."""
    sentences, words, tags = [], [], []
    for line in lines_of(path) + [""]:
        if line and not line.startswith("-DOCSTART-"):
            columns = line.split("\t")
            words.append(columns[0])
            tags.append(columns[-1])
        elif words:
            follows = ["O", *tags[:-1]]
            tags = ["B" + tag[1:] if tag[0] == "I" and before[2:] != tag[2:] else tag for tag, before in zip(tags, follows)]
            sentences.append((words, tags))
            words, tags = [], []
    return sentences


def read_squad(path):
    """[(question, passage, answers)]"""
    data = json.load(open(path, encoding="utf-8"))["data"]
    return [(question["question"], paragraph["context"], question["answers"])
            for article in data for paragraph in article["paragraphs"] for question in paragraph["qas"]]


# ---- Tasks: examples as ids, logits, losses. An example is (sequences, target); a sequence is (ids, segments). ----

def divergence(mine, theirs, temperature):
    """The divergence between rows of logits, as in transformers' run_squad_w_distillation.py."""
    return F.kl_div(F.log_softmax(mine / temperature, -1), F.softmax(theirs / temperature, -1),
                    reduction="batchmean") * temperature**2


class Task:
    auto = transformers.AutoModelForSequenceClassification
    percent = 1  # 1 for measures that lie between 0 and 1; others lie between 0 and 100

    def __init__(self, arguments, folder):
        self.arguments, self.length, self.cut = arguments, arguments.max_seq_length, 0
        self.layout = LAYOUTS.get(arguments.task)
        if (folder / "vocab.txt").exists():
            settings = json.load(open(folder / "tokenizer_config.json"))
            self.tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=settings.get("do_lower_case", True))
        else:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.ids = json.load(open(folder / "config.json")).get("label2id", {})

    def encode(self, texts):
        return self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []

    def joined(self, parts):
        """Google's truncation: the longer text loses its last token until both fit; if both are equally long, the second one
        does."""
        parts = [list(part) for part in parts]
        room = self.length - 1 - len(parts)
        self.cut += sum(map(len, parts)) > room
        while sum(map(len, parts)) > room:
            max(reversed(parts), key=len).pop()
        ids, segments = [self.tokenizer.cls_token_id], [0]
        for number, part in enumerate(parts):
            ids += part + [self.tokenizer.sep_token_id]
            segments += [number] * (len(part) + 1)
        return ids, segments

    def model(self, folder, dropout=0.0, **options):
        """Every rate of dropout that the form has is `dropout`."""
        names = [name for name in transformers.AutoConfig.from_pretrained(folder).to_dict() if re.search("dropout|pdrop", name)]
        model = self.auto.from_pretrained(folder, attn_implementation="eager", **dict.fromkeys(names, dropout), **options)
        self.has_types = getattr(model.config, "type_vocab_size", 0) > 1
        return model

    def padded(self, sequences):
        width = max(len(ids) for ids, _ in sequences)
        ids, segments, mask = (torch.zeros(len(sequences), width, dtype=torch.long) for _ in range(3))
        for i, (row, types) in enumerate(sequences):
            ids[i, :len(row)], segments[i, :len(row)], mask[i, :len(row)] = torch.tensor(row), torch.tensor(types), 1
        ids[mask == 0] = self.tokenizer.pad_token_id
        types = {"token_type_ids": segments} if self.has_types else {}
        return {"input_ids": ids, "attention_mask": mask, **types}

    def logits(self, model, examples):
        """The head's outputs for each example, in bertc's order: a list of flat tensors."""
        return list(model(**self.padded([example[0][0] for example in examples])).logits)


class Classification(Task):
    def read(self, path):
        rows = read_table(path, self.layout)
        columns = [self.encode([texts[i] for texts, _ in rows]) for i in range(len(rows[0][0]))]
        return [([self.joined(parts)], self.target(label)) for parts, (_, label) in zip(zip(*columns), rows)]

    def target(self, label):
        return self.ids[label]

    def loss(self, logits, examples):
        return F.cross_entropy(torch.stack(logits), torch.tensor([target for _, target in examples]))

    def soft_loss(self, logits, teachers, temperature):
        return divergence(torch.stack(logits), torch.stack(teachers), temperature)

    def score(self, logits, examples):
        from sklearn import metrics
        truth, chosen = [target for _, target in examples], [int(x.argmax()) for x in logits]
        scores = {"accuracy": metrics.accuracy_score(truth, chosen), "f1_micro": metrics.f1_score(truth, chosen, average="micro"),
                  "f1": metrics.f1_score(truth, chosen, average="binary" if len(self.ids) == 2 else "macro")}
        if len(self.ids) == 2:
            scores["auc"] = metrics.roc_auc_score(truth, [float(x.softmax(0)[1]) for x in logits])
        return scores


class Regression(Classification):
    def target(self, label):
        return float(label)

    def loss(self, logits, examples):
        out = torch.cat(logits)
        return F.mse_loss(out, torch.tensor([target for _, target in examples], dtype=out.dtype))

    def soft_loss(self, logits, teachers, temperature):
        return F.mse_loss(torch.cat(logits), torch.cat(teachers))

    def score(self, logits, examples):
        from scipy import stats
        truth, values = [target for _, target in examples], [float(x[0]) for x in logits]
        return {"pearson": stats.pearsonr(truth, values)[0], "spearmanr": stats.spearmanr(truth, values)[0]}


class Multilabel(Classification):
    def target(self, labels):
        return [float(name in labels) for name in self.ids]

    def loss(self, logits, examples):
        out = torch.stack(logits)
        return F.binary_cross_entropy_with_logits(out, torch.tensor([target for _, target in examples], dtype=out.dtype))

    def soft_loss(self, logits, teachers, temperature):
        mine, theirs = (torch.distributions.Bernoulli(logits=torch.stack(x) / temperature) for x in (logits, teachers))
        return torch.distributions.kl_divergence(theirs, mine).mean() * temperature**2

    def score(self, logits, examples):
        from sklearn import metrics
        truth, chosen = np.array([target for _, target in examples]), np.stack([x.numpy() > 0 for x in logits])
        return {"accuracy": metrics.accuracy_score(truth, chosen), "f1": metrics.f1_score(truth, chosen, average="macro"),
                "f1_micro": metrics.f1_score(truth, chosen, average="micro")}


class Choice(Task):
    auto = transformers.AutoModelForMultipleChoice

    def read(self, path):
        rows = read_table(path, None)
        parts = self.encode([text for texts, _ in rows for text in texts])
        examples, at = [], 0
        for texts, label in rows:
            own = parts[at:at + len(texts)]
            examples.append(([self.joined([own[0], choice]) for choice in own[1:]], int(label)))
            at += len(texts)
        return examples

    def logits(self, model, examples):
        # Examples with the same number of choices in one call.
        assert len({len(sequences) for sequences, _ in examples}) == 1
        inputs = self.padded([sequence for sequences, _ in examples for sequence in sequences])
        return list(model(**{name: x.view(len(examples), -1, x.shape[1]) for name, x in inputs.items()}).logits)

    soft_loss = Classification.soft_loss
    loss, score = Classification.loss, lambda self, logits, examples: {
        "accuracy": float(np.mean([int(x.argmax()) == target for x, (_, target) in zip(logits, examples)]))}


class Tagging(Task):
    """Windows of long sentences overlap by half, and a word counts in the window where it is farthest from both ends."""
    auto = transformers.AutoModelForTokenClassification

    def read(self, path):
        self.sentences = read_conll(path)
        room, examples = self.length - 2, []
        pieces_of = dict(zip(words := sorted({word for sentence, _ in self.sentences for word in sentence}), self.encode(words)))
        for number, (words, tags) in enumerate(self.sentences):
            pieces, firsts = [], []
            for w, word in enumerate(words):
                if pieces_of[word]:
                    firsts.append((len(pieces), w))
                pieces += pieces_of[word]
            if not firsts:
                continue
            last = max(len(pieces) - room, 0)
            starts = [min(i * (room // 2), last) for i in range(1 + math.ceil(last / (room // 2)))]
            self.cut += len(starts) > 1
            chosen = [max(range(len(starts)), key=lambda i: (min(piece - starts[i], starts[i] + room - 1 - piece), -i))
                      for piece, _ in firsts]
            for i, start in enumerate(starts):
                own = [(piece - start + 1, self.ids[tags[w]], number, w) for (piece, w), c in zip(firsts, chosen) if c == i]
                ids = [self.tokenizer.cls_token_id, *pieces[start:start + room], self.tokenizer.sep_token_id]
                if own:
                    examples.append(([(ids, [0] * len(ids))], own))
        return examples

    def logits(self, model, examples):
        out = super().logits(model, examples)
        return [x[[row for row, *_ in target]] for x, (_, target) in zip(out, examples)]

    def loss(self, logits, examples):
        return F.cross_entropy(torch.cat(logits), torch.tensor([label for _, target in examples for _, label, *_ in target]))

    def soft_loss(self, logits, teachers, temperature):
        return divergence(torch.cat(logits), torch.cat(teachers), temperature)

    def score(self, logits, examples):
        from seqeval import metrics
        names = {number: name for name, number in self.ids.items()}
        found = [["O"] * len(words) for words, _ in self.sentences]
        for x, (_, target) in zip(logits, examples):
            for (_, _, sentence, word), label in zip(target, x.argmax(1).tolist()):
                found[sentence][word] = names[label]
        truth = [tags for _, tags in self.sentences]
        return {"f1": metrics.f1_score(truth, found), "precision": metrics.precision_score(truth, found),
                "recall": metrics.recall_score(truth, found), "accuracy": metrics.accuracy_score(truth, found)}


def squad_words(text):
    """The words of an answer as SQuAD's official script compares them."""
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def squad_f1(found, truth):
    found, truth = squad_words(found), squad_words(truth)
    same = sum((collections.Counter(found) & collections.Counter(truth)).values())
    return 2 * same / (len(found) + len(truth)) if same else 0.0


class Squad(Task):
    """As in transformers' question answering example: windows from the tokenizer, targets from offsets. Its stride is an
    overlap."""
    auto = transformers.AutoModelForQuestionAnswering
    percent = 100
    CHOICES, LONGEST = 20, 30

    def read(self, path):
        examples = []
        self.questions = read_squad(path)
        for number, (question, context, answers) in enumerate(self.questions):
            room = self.length - 3 - len(self.tokenizer(question, add_special_tokens=False)["input_ids"])
            encoded = self.tokenizer(question, context, truncation="only_second", max_length=self.length, verbose=False,
                                     stride=max(room - self.arguments.doc_stride, 0), return_overflowing_tokens=True,
                                     return_offsets_mapping=True)
            begin, end = answers[0]["answer_start"], answers[0]["answer_start"] + len(answers[0]["text"])
            self.cut += len(encoded["input_ids"]) > 1
            for w, ids in enumerate(encoded["input_ids"]):
                places = [place if part == 1 else None
                          for place, part in zip(encoded["offset_mapping"][w], encoded.sequence_ids(w))]
                own = [i for i, place in enumerate(places) if place]
                target = 0, 0
                if places[own[0]][0] <= begin and places[own[-1]][1] >= end:
                    target = max(i for i in own if places[i][0] <= begin), min(i for i in own if places[i][1] >= end)
                examples.append(([(ids, encoded["token_type_ids"][w])], (target, number, places)))
        return examples

    def logits(self, model, examples):
        out = model(**self.padded([sequences[0] for sequences, _ in examples]))
        return [torch.stack([start[:len(ids)], end[:len(ids)]], 1)
                for start, end, ([(ids, _)], _) in zip(out.start_logits, out.end_logits, examples)]

    def loss(self, logits, examples):
        losses = [(F.cross_entropy(x[:, 0], torch.tensor(start)) + F.cross_entropy(x[:, 1], torch.tensor(end))) / 2
                  for x, (_, ((start, end), *_)) in zip(logits, examples)]
        return torch.stack(losses).mean()

    def soft_loss(self, logits, teachers, temperature):
        return torch.stack([divergence(x.T, y.T, temperature) for x, y in zip(logits, teachers)]).mean()

    def score(self, logits, examples):
        best = {}
        for x, (_, (_, number, places)) in zip(logits, examples):
            starts, ends = (x[:, k].argsort(descending=True)[:self.CHOICES].tolist() for k in (0, 1))
            for i in starts:
                for j in ends:
                    if places[i] and places[j] and i <= j < i + self.LONGEST:
                        best[number] = max(best.get(number, (-math.inf, "")), (
                            float(x[i, 0] + x[j, 1]), self.questions[number][1][places[i][0]:places[j][1]]))
        exact = f1 = 0.0
        for number, (_, _, answers) in enumerate(self.questions):
            found = best.get(number, (0, ""))[1]
            exact += max(squad_words(found) == squad_words(answer["text"]) for answer in answers)
            f1 += max(squad_f1(found, answer["text"]) for answer in answers)
        return {"exact_match": 100 * exact / len(self.questions), "f1": 100 * f1 / len(self.questions)}


class Editor(transformers.BertPreTrainedModel):
    """bertc's head for edits: a linear layer over all rows."""

    def __init__(self, config):
        super().__init__(config)
        self.bert = transformers.BertModel(config, add_pooling_layer=False)
        self.dropout = torch.nn.Dropout(config.hidden_dropout_prob)
        self.edits = torch.nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, **inputs):
        return self.edits(self.dropout(self.bert(**inputs).last_hidden_state))


class Rewriting(Task):
    """Contexts, source and target separated by two tabs. Edits have the lowest cost: 4096 for each token deleted and each run
    inserted, 1 for each token copied, 2^24 for each token that cannot be produced."""
    auto = Editor
    percent = 100
    POINTER = 64

    def tokens(self, text):
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [(i, text[b:e] if i == self.tokenizer.unk_token_id else None, text[b:e])
                for i, (b, e) in zip(encoded["input_ids"], encoded["offset_mapping"])]

    @staticmethod
    def edits(source, target, rows, second):
        """[(deleted, first, last)] for each token and the end; first is None if what comes before it cannot be produced."""
        def key(token):
            return token and token[:2]

        def run(row, j):
            n = 0
            while (row + n < len(rows) and j + n < len(target) and rows[row + n] and key(rows[row + n]) == key(target[j + n])):
                n += 1
            return n
        runs = [[run(row, j) for row in range(len(rows))] for j in range(len(target))] + [[0]]
        costs = {}

        def steps(i, j, inserted):
            if i < len(source) and j < len(target) and key(source[i]) == key(target[j]):
                yield costs[i + 1, j + 1, False], ("keep", 0)
            for n in range(1, 1 if inserted else max(runs[j]) + 1):
                yield 4096 + n + costs[i, j + n, True], ("insert", n)
            if i < len(source):
                yield 4096 + costs[i + 1, j, False], ("delete", 0)
            if j < len(target):
                yield 2**24 + costs[i, j + 1, inserted], ("miss", 0)
        for i in range(len(source), -1, -1):
            for j in range(len(target), -1, -1):
                for inserted in (True, False):
                    costs[i, j, inserted] = min((cost for cost, _ in steps(i, j, inserted)), default=0)
        out, i, j, inserted = [[False, 0, 0] for _ in range(len(source) + 1)], 0, 0, False
        while i < len(source) or j < len(target):
            step, n = next(what for cost, what in steps(i, j, inserted) if cost == costs[i, j, inserted])
            if step == "insert":
                order = [*range(second - 1, -1, -1), *range(len(rows) - 1, second - 1, -1)]
                first = next(row for row in order if runs[j][row] >= n)
                if out[i][1] is not None:
                    out[i][1:] = first, first + n - 1
                j, inserted = j + n, True
            elif step == "miss":
                out[i][1], j = None, j + 1
            else:
                out[i][0] = step == "delete"
                i, j, inserted = i + 1, j + (step == "keep"), False
        return out

    def read(self, path):
        examples = []
        for line in lines_of(path):
            *contexts, source, target = [self.tokens(text) for text in line.split("\t\t")]
            rows = [None]
            for context in contexts:
                rows += [*context, None] if context else []
            second = len(rows)
            rows += [*source, None]
            assert len(rows) <= self.length
            special = [self.tokenizer.cls_token_id] + [self.tokenizer.sep_token_id] * len(rows)
            ids = [row[0] if row else special[i] for i, row in enumerate(rows)]
            edits = self.edits(source, target, rows, second)
            examples.append(([(ids, [int(i >= second) for i in range(len(rows))])], (second, edits, rows, line.split("\t\t")[-1])))
        return examples

    def logits(self, model, examples):
        out = model(**self.padded([sequences[0] for sequences, _ in examples]))
        return [x[:len(ids)] for x, ([(ids, _)], _) in zip(out, examples)]

    def scores(self, x, k):
        size = self.POINTER
        query, key = (x[:, 2 + (2 * k + part) * size:][:, :size] for part in (0, 1))
        return query @ key.T / size**0.5

    def loss(self, logits, examples):
        losses = []
        for x, (_, (second, edits, *_)) in zip(logits, examples):
            own = x[second:second + len(edits)]
            deleted, *places = zip(*edits)
            losses.append(F.cross_entropy(own[:, :2], torch.tensor(deleted, dtype=torch.long), reduction="none"))
            known = [place is not None for place in places[0]]
            for k in (0, 1):
                targets = torch.tensor([place if ok else -100 for place, ok in zip(places[k], known)])
                losses[-1] = losses[-1] + F.cross_entropy(self.scores(x, k)[second:second + len(edits)], targets, reduction="none")
        return torch.cat(losses).mean()

    def rewritten(self, x, second, rows):
        """The text without spaces."""
        first, last, text = self.scores(x, 0), self.scores(x, 1), ""
        # Runs within one text, in order.
        part = torch.tensor([0] + [sum(row is None for row in rows[:i + 1]) for i in range(1, len(rows))])
        possible = (part[:, None] == part[None, :]).triu() & torch.tensor([row is not None for row in rows])[:, None]
        for row in range(second, len(rows)):
            pairs = torch.where(possible, first[row][:, None] + last[row][None, :], torch.tensor(-math.inf))
            if pairs.max() > first[row, 0] + last[row, 0]:
                a, b = divmod(int(pairs.argmax()), len(rows))
                text += "".join(rows[i][2] for i in range(a, b + 1))
            text += rows[row][2] if rows[row] and x[row, 0] >= x[row, 1] else ""
        return text

    def score(self, logits, examples):
        """Scores of texts without spaces, character by character: BLEU like sacrebleu's without smoothing, ROUGE-L like
        rouge-score's."""
        pairs = [(self.rewritten(x, second, rows), target.replace(" ", "")) for x, (_, (second, _, rows, target)) in zip(logits, examples)]
        right, all_ = [0] * 5, [0] * 5
        for found, truth in pairs:
            for n in range(1, 5):
                mine, theirs = (collections.Counter(x[i:i + n] for i in range(len(x) - n + 1)) for x in (found, truth))
                right[n] += sum((mine & theirs).values())
                all_[n] += sum(mine.values())
        length = min(0, 1 - sum(len(truth) for _, truth in pairs) / sum(len(found) for found, _ in pairs))
        bleu = math.exp(length + sum(math.log(r / n) for r, n in zip(right[1:], all_[1:])) / 4) if all(right[1:]) else 0
        return {"exact_match": 100 * float(np.mean([found == truth for found, truth in pairs])), "bleu_4": 100 * bleu,
                "rouge_l": 100 * float(np.mean([2 * common(found, truth) / max(len(found) + len(truth), 1) for found, truth in pairs]))}


def common(x, y):
    """The length of the longest common subsequence."""
    row = [0] * (len(y) + 1)
    for a in x:
        before = row
        row = [0]
        for j, b in enumerate(y):
            row.append(before[j] + 1 if a == b else max(row[j], before[j + 1]))
    return row[-1]


CLASSES = {"rewriting": Rewriting, "classification": Classification, "regression": Regression, "multilabel": Multilabel, "multiple_choice": Choice,
           "tagging": Tagging, "squad": Squad}


def task_of(arguments, folder):
    return CLASSES[KINDS.get(arguments.task, arguments.task)](arguments, folder)


# ---- bertc ----

class Bertc:
    """Runs of the program with the recipe of the arguments."""

    def __init__(self, arguments):
        self.a, self.work = arguments, pathlib.Path(arguments.work)
        self.work.mkdir(parents=True, exist_ok=True)

    def finetune(self, name, model, *options, program=None):
        a = self.a
        command = [program or a.bertc, "finetune", "--task", a.task, "--model", str(model), "--train", a.train, "--dev", a.dev,
                   "--out", str(self.work / name), "--fresh", "--train_batch_size", str(a.batch), "--max_seq_length",
                   str(a.max_seq_length), "--optimizer", "adamw", "--bias_correction", "true", "--adam_epsilon", str(a.eps),
                   "--weight_decay", str(a.weight_decay), "--max_grad_norm", str(a.clip), "--schedule", "linear",
                   "--learning_rate", str(a.learning_rate), "--log_steps", "1", "--no_progress", "--threads", "1"]
        if a.teacher:
            command += ["--teacher", a.teacher, "--distill_alpha", str(a.distill_alpha), "--distill_temperature",
                        str(a.distill_temperature), "--distill_hidden_weight", str(a.distill_hidden_weight)]
            command += ["--distill_layers", a.distill_layers] if a.distill_layers else []
        if a.task == "squad" and a.doc_stride != 128:
            command += ["--doc_stride", str(a.doc_stride)]
        options = [str(option) for option in options]
        if "--resume" in options:
            options.remove("--resume")
            command.remove("--fresh")
        done = subprocess.run(command + options, capture_output=True, text=True)
        if done.returncode not in (0, 75):
            sys.exit(f"{' '.join(command + options)}\nended with status {done.returncode}:\n{done.stderr[-2000:]}")
        return self.work / name

    def outputs(self, folder):
        """The raw outputs of the dev set, example by example."""
        out = self.work / "outputs.bin"
        program = pathlib.Path(self.a.bertc).parent / "dev/task_outputs"
        subprocess.run([program, folder / "final", self.a.dev, out], check=True, stderr=subprocess.DEVNULL)
        data = out.read_bytes()
        count = int(np.frombuffer(data, np.int64, 1)[0])
        starts = np.frombuffer(data, np.int64, count + 1, 8)
        values = np.frombuffer(data, np.float32, offset=8 * (count + 2)).astype(np.float64)
        return [values[starts[i]:starts[i + 1]] for i in range(count)]


def rows_with(folder, name):
    rows = [json.loads(line) for line in open(folder / "metrics.jsonl")]
    return {row["step"]: row for row in rows if name in row}


def curve(folder):
    return rows_with(folder, "learning_rate")


def evaluations(folder):
    return rows_with(folder, "eval_loss")


# The parts that do not depend on the machine.
NUMBERS = ["loss", "label_loss", "soft_loss", "hidden_loss", "learning_rate", "grad_norm", "tokens", "samples", *("eval_" + name for name in (
    "loss", "accuracy", "f1", "precision", "recall", "exact_match", "pearson", "spearmanr", "mse", "examples"))]


def relative(x, y):
    return abs(x - y) / max(abs(y), 1e-12)


# ---- PyTorch's training ----

class Recorded(torch.nn.Module):
    """A model that records its hidden states, for tokens only, and a student's linear layer to its teacher's width."""

    def __init__(self, model, projection=None):
        super().__init__()
        self.inner, self.projection = model, projection

    def forward(self, **inputs):
        out = self.inner(**inputs, output_hidden_states=True)
        tokens = inputs["attention_mask"].reshape(-1, inputs["attention_mask"].shape[-1]).bool()
        self.hidden = [x.view(*tokens.shape, -1)[tokens] for x in out.hidden_states]
        return out


class Teacher:
    def __init__(self, a, task, initial, dtype):
        self.a, self.task = a, task
        self.model = Recorded(task.model(pathlib.Path(a.teacher), dtype=dtype)).eval()
        self.layers = [tuple(map(int, pair.split(":"))) for pair in a.distill_layers.split(",")] if a.distill_layers else []
        ids = self.model.inner.config.label2id
        self.columns = [ids[name] for name in task.ids] if sorted(ids) == sorted(task.ids) and len(ids) > 1 else None
        self.initial, self.dtype = initial, dtype

    def student(self, model):
        name, projection = "distillation.projection.", None
        weights = safetensors.torch.load_file(self.initial / "checkpoint-1/model.safetensors")
        if name + "weight" in weights:
            projection = torch.nn.Linear(*reversed(weights[name + "weight"].shape), dtype=self.dtype)
            projection.load_state_dict({key: weights[name + key] for key in ("weight", "bias")})
        return Recorded(model, projection)

    def loss(self, model, logits, examples):
        """The whole loss, then its parts."""
        a = self.a
        with torch.no_grad():
            theirs = self.task.logits(self.model, examples)
        if self.columns:
            theirs = [x[..., self.columns] for x in theirs]
        labels, soft = self.task.loss(logits, examples), self.task.soft_loss(logits, theirs, a.distill_temperature)
        project = model.projection or (lambda x: x)
        hidden = sum(F.mse_loss(project(model.hidden[s]), self.model.hidden[t]) for s, t in self.layers)
        whole = (1 - a.distill_alpha) * labels + a.distill_alpha * soft + a.distill_hidden_weight * hidden
        return whole, {"label_loss": labels.item(), "soft_loss": soft.item(), **({"hidden_loss": hidden.item()} if self.layers else {})}


def optimizer_of(model, a):
    bare = [n.endswith("bias") or "norm" in n.lower() for n, _ in model.named_parameters()]
    parameters = [q for _, q in model.named_parameters()]
    return torch.optim.AdamW([{"params": [q for q, plain in zip(parameters, bare) if not plain], "weight_decay": a.weight_decay},
                              {"params": [q for q, plain in zip(parameters, bare) if plain], "weight_decay": 0.0}],
                             lr=a.learning_rate, betas=(0.9, 0.999), eps=a.eps)


def rate(a, step, steps, warmup):
    if step <= warmup:
        return a.learning_rate * step / warmup
    return a.learning_rate * (steps + 1 - step) / (steps + 1 - warmup)


def train_step(task, model, optimizer, examples, a, learning_rate, teacher=None):
    logits, parts = task.logits(model, examples), {}
    if teacher:
        loss, parts = teacher.loss(model, logits, examples)
    else:
        loss = task.loss(logits, examples)
    optimizer.zero_grad()
    loss.backward()
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), a.clip))
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    return loss.item(), norm, parts


def evaluate(task, model, examples):
    with torch.no_grad():
        return [x for i in range(0, len(examples), 50) for x in task.logits(model, examples[i:i + 50])]


# ---- exact ----

class Exact:
    def __init__(self, arguments):
        self.a, self.bertc, self.failures = arguments, Bertc(arguments), 0
        self.warmup = arguments.steps // 10
        self.initial = self.bertc.finetune("initial", arguments.model, *self.plain(1, 0), "--learning_rate", 0, "--weight_decay", 0)
        self.task = task_of(arguments, self.initial / "final")
        self.one = self.training("one", "--ranks", 1)

    @staticmethod
    def plain(steps, warmup):
        return ["--num_train_steps", steps, "--num_warmup_steps", warmup, "--precision", "fp32", "--hidden_dropout_prob", 0,
                "--attention_probs_dropout_prob", 0, "--shuffle", "false", "--eval_steps", 0, "--save_checkpoints_steps", 0]

    def training(self, name, *options, program=None):
        return self.bertc.finetune(name, self.initial / "final", *self.plain(self.a.steps, self.warmup), *options,
                                   program=program)

    def report(self, name, value, bound):
        good = value <= bound
        self.failures += not good
        print(f"{self.a.task:15s} {name:62s} {value:.3g} (bound {bound:g}){'' if good else '  FAILED'}", flush=True)

    def note(self, text):
        print(f"{'':15s} ({text})", flush=True)

    def compare_logits(self, name, model, dev, folder, bound):
        mine, some = self.bertc.outputs(folder), dev[:1000]
        theirs = [x.double().flatten().numpy() for x in evaluate(self.task, model, some)]
        assert len(mine) == len(dev), f"bertc has {len(mine)} examples, there are {len(dev)}"
        assert all(x.shape == y.shape for x, y in zip(mine, theirs)), "examples have outputs of other sizes"
        difference = max(float(np.abs(x - y).max()) for x, y in zip(mine, theirs))
        self.report(f"logits of {len(theirs)} dev examples {name}: largest |difference|", difference, bound)
        firsts = [y[0] for y in theirs]
        self.note(f"{sum(map(len, theirs))} logits of {min(map(min, theirs)):.2f} to {max(map(max, theirs)):.2f}; the first of "
                  f"an example has a standard deviation of {np.std(firsts):.3f}")

    def check_curve(self):
        a, task = self.a, self.task
        torch.set_num_threads(1)
        train, dev = task.read(a.train), None
        cut = task.cut
        assert len(train) >= a.steps * a.batch, f"{len(train)} examples: the order of a second epoch is not compared"
        dev = task.read(a.dev)
        model = task.model(self.initial / "final", dtype=torch.float64 if a.precision == "fp64" else torch.float32)
        model.train()
        teacher = Teacher(a, task, self.initial, model.dtype) if a.teacher else None
        if teacher:
            model = teacher.student(model)
        self.compare_logits("before training", model, dev, self.initial, 1e-5)
        optimizer, mine = optimizer_of(model, a), curve(self.one)
        worst, worst_rate, worst_norm, losses, worst_parts = (0.0, 0), 0.0, (0.0, 0), [], {}
        for step in range(1, a.steps + 1):
            now = rate(a, step, a.steps, self.warmup)
            loss, norm, parts = train_step(task, model, optimizer, train[(step - 1) * a.batch:step * a.batch], a, now, teacher)
            losses.append(loss)
            for name, value in parts.items():
                worst_parts[name] = max(worst_parts.get(name, (0.0, 0)), (relative(mine[step][name], value), step))
            worst = max(worst, (relative(mine[step]["loss"], loss), step))
            worst_norm = max(worst_norm, (relative(mine[step]["grad_norm"], norm), step))
            worst_rate = max(worst_rate, relative(mine[step]["learning_rate"], now))
            if step == 1:
                self.report("loss of the first step, relative", worst[0], 1e-6)
                self.report("gradient norm of the first step, relative", worst_norm[0], 1e-5)
        self.report(f"loss of {a.steps} steps, relative (worst: step {worst[1]})", worst[0], 1e-4)
        for name, (value, step) in worst_parts.items():
            self.report(f"{name} of {a.steps} steps, relative (worst: step {step})", value, 1e-3)
        self.report("learning rate of all steps, relative", worst_rate, 1e-6)
        self.report(f"gradient norm of all steps, relative (worst: step {worst_norm[1]})", worst_norm[0], 1e-3)
        self.note(f"loss {np.mean(losses[:5]):.4f} over the first 5 steps, {np.mean(losses[-5:]):.4f} over the last; PyTorch "
                  f"{a.precision}; {len(train)} examples; {cut} texts were cut or read in windows")
        self.compare_logits("after training", model, dev, self.one, 1e-3)

    def check_measures(self):
        """Checks the measures of bertc's own outputs."""
        results, dev = json.load(open(self.one / "eval_results.json")), self.task.read(self.a.dev)
        widths = {"tagging": len(self.task.ids), "rewriting": 258}
        logits = [torch.tensor(x).view(-1, widths[self.a.task]) if self.a.task in widths else torch.tensor(x)
                  for x in self.bertc.outputs(self.one)]
        expected = self.task.score(logits, dev) if hasattr(self.task, "score") else {}
        expected["loss"] = float(self.task.loss([x.view(-1, 2) if self.a.task == "squad" else x for x in logits], dev))
        for name, value in expected.items():
            self.report(f"eval_{name} = {results['eval_' + name]:.6f}, |difference|", abs(results["eval_" + name] - value), 1e-6)
        left = [name for name in results if name.startswith("eval_") and name[5:] not in expected]
        self.note(f"not compared: {', '.join(left)}")

    def check_ranks(self):
        one = curve(self.one)
        for ranks in (2, 4):
            many = curve(self.training(f"ranks{ranks}", "--ranks", ranks))
            assert sorted(one) == sorted(many) == list(range(1, self.a.steps + 1)), "steps are missing from metrics.jsonl"
            for name, bound in (("loss", 1e-5), ("grad_norm", 1e-4)):
                self.report(f"{name} of {self.a.steps} steps, {ranks} ranks and one, relative",
                            max(relative(many[step][name], one[step][name]) for step in one), bound)

    def check_resume(self):
        """With dropout and in random order, so that their states are resumed as well."""
        half, last = self.a.steps // 2, self.a.steps
        files = [f"checkpoint-{last}/{name}" for name in ("model.safetensors", "optimizer.safetensors")]
        for ranks in (1, 2):
            options = ["--ranks", ranks, "--shuffle", "true", "--hidden_dropout_prob", 0.1, "--attention_probs_dropout_prob", 0.1,
                       "--eval_steps", max(last // 5, 1)]
            whole = self.training(f"whole{ranks}", *options)
            self.training(f"halves{ranks}", *options, "--stop_at_step", half)
            halves = self.training(f"halves{ranks}", *options, "--resume")
            other = sum((whole / name).read_bytes() != (halves / name).read_bytes()
                        for name in files + ["final/model.safetensors", "eval_results.json"])
            self.report(f"resumed at step {half}, {ranks} rank(s): files with other bits", other, 0)
            different = set()
            for x, y in ((curve(whole), curve(halves)), (evaluations(whole), evaluations(halves))):
                assert list(x) == list(y), "steps are missing from metrics.jsonl"
                different |= {name for step in x for name in NUMBERS if x[step].get(name) != y[step].get(name)}
            self.report(f"resumed at step {half}, {ranks} rank(s): other metrics {' '.join(sorted(different))}", len(different), 0)

    def check_dropout(self):
        """The trained model's mean loss under dropout, without training: each program draws its own masks, so means are compared,
        in standard errors of their difference over the steps."""
        a, draws = self.a, 4
        folder = self.bertc.finetune("dropped", self.one / "final", *self.plain(a.steps, 0), "--learning_rate", 0,
                                     "--hidden_dropout_prob", 0.3, "--attention_probs_dropout_prob", 0.3)
        mine, without = curve(folder), []
        train, torch_losses, plain = self.task.read(a.train), [], self.task.model(self.one / "final").eval()
        model = self.task.model(self.one / "final", dropout=0.3).train()
        with torch.no_grad():
            for step in range(a.steps):
                examples = train[step * a.batch:(step + 1) * a.batch]
                torch_losses.append([float(self.task.loss(self.task.logits(model, examples), examples)) for _ in range(draws)])
                without.append(float(self.task.loss(self.task.logits(plain, examples), examples)))
        differences = [mine[step + 1]["loss"] - np.mean(losses) for step, losses in enumerate(torch_losses)]
        error = np.std(differences, ddof=1) / math.sqrt(a.steps)
        self.report(f"mean loss under dropout, {a.steps} steps: difference in standard errors", abs(np.mean(differences)) / error, 3.5)
        self.note(f"bertc {np.mean([mine[step + 1]['loss'] for step in range(a.steps)]):.4f}, PyTorch {np.mean(torch_losses):.4f}, "
                  f"standard error {error:.4f}; without dropout {np.mean(without):.4f}")

    def check_device(self):
        cpu, emulated = curve(self.one), self.a.emulated
        bf16 = curve(self.training("cpu-bf16", "--precision", "bf16"))
        first = [cpu[step] for step in sorted(cpu)]

        def difference(other, name):
            return max(relative(row[name], other[row["step"]][name]) for row in first)

        self.note(f"bf16 on the CPU: loss {difference(bf16, 'loss'):.2g}, gradient norm {difference(bf16, 'grad_norm'):.2g} from fp32")
        for precision, bounds in (("fp32", (1e-5, 1e-4)), ("tf32", (1e-3, 1e-2)), ("bf16", (2e-2, 1e-1))):
            other = curve(self.training("cuda-" + precision, "--device", "cuda", "--precision", precision, program=emulated))
            for name, bound in zip(("loss", "grad_norm"), bounds):
                self.report(f"{name} of {len(first)} steps, emulated GPU in {precision}, relative", difference(other, name), bound)


def run_exact(a):
    checks = a.checks.split(",")
    unknown = [name for name in checks if not hasattr(Exact, "check_" + name)]
    if unknown:
        sys.exit(f"there is no check {', '.join(unknown)}")
    exact = Exact(a)
    for name in checks:
        getattr(exact, "check_" + name)()
    return exact.failures > 0


# ---- seeds ----

def torch_run(a, task, folder, train, dev, seed):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    labels = {"num_labels": len(task.ids)} if task.ids else {}
    if isinstance(task, Regression):
        labels = {"num_labels": 1, "problem_type": "regression"}
    if isinstance(task, Rewriting):
        labels = {"num_labels": 2 + 4 * task.POINTER}
    model = task.model(folder, dropout=a.dropout, **labels)
    model.train()
    optimizer, shuffled = optimizer_of(model, a), random.Random(seed)
    batches = math.ceil(len(train) / a.batch)
    steps, step = math.ceil(a.epochs * batches), 0
    while step < steps:
        order = list(range(len(train)))
        shuffled.shuffle(order)
        for i in range(0, len(train), a.batch):
            step += 1
            if step <= steps:
                now = rate(a, step, steps, max(1, round(steps * 0.1)))
                train_step(task, model, optimizer, [train[k] for k in order[i:i + a.batch]], a, now)
    model.eval()
    return task.score(evaluate(task, model, dev), dev)


def run_seeds(a):
    bertc, scores, names = Bertc(a), {"bertc": [], "PyTorch": []}, a.metric.split(",")
    options = ["--num_train_epochs", a.epochs, "--hidden_dropout_prob", a.dropout, "--attention_probs_dropout_prob", a.dropout,
               "--save_checkpoints_steps", 0, "--eval_steps", 0, "--precision", a.precision]
    transformers.logging.set_verbosity_error()
    for seed in range(a.first_seed, a.first_seed + a.seeds):
        folder = bertc.finetune("bertc", a.model, *options, "--seed", seed)
        results = json.load(open(folder / "eval_results.json"))
        scores["bertc"].append([results["eval_" + name] for name in names])
        if not a.bertc_only:
            if seed == a.first_seed:
                task = task_of(a, folder / "final")
                train, dev = task.read(a.train), task.read(a.dev)
            theirs = torch_run(a, task, a.model, train, dev, seed)
            scores["PyTorch"].append([theirs[name] for name in names])
        unit = 100 / CLASSES[KINDS.get(a.task, a.task)].percent
        print(f"seed {seed}: " + ", ".join(f"{program} " + " ".join(f"{unit * v:.2f}" for v in x[-1]) for program, x in scores.items() if x),
              flush=True)
    for k, name in enumerate(names):
        values = {program: [unit * row[k] for row in rows] for program, rows in scores.items() if rows}
        for program, x in values.items():
            spread = np.std(x, ddof=1) if len(x) > 1 else 0
            print(f"{program:8s} {name} mean {np.mean(x):.2f}, standard deviation {spread:.2f}, {min(x):.2f} to {max(x):.2f}")
        if len(values.get("PyTorch", [])) > 1:
            inside = min(values["PyTorch"]) <= np.mean(values["bertc"]) <= max(values["PyTorch"])
            print(f"bertc's mean {name} lies {'within' if inside else 'OUTSIDE'} PyTorch's seeds")
    return 0


# ---- files ----

def make_choice(a):
    documents = [text.split("\n") for text in "\n".join(lines_of(a.source)).split("\n\n")]
    pairs = [(x, y) for document in documents for x, y in zip(document[::2], document[1::2])
             if 20 < len(x) < 200 and 20 < len(y) < 200]
    chooser = random.Random(1)
    for first, second in pairs:
        right = chooser.randrange(4)
        choices = [chooser.choice(pairs)[1] for _ in range(4)]
        choices[right] = second
        yield json.dumps({"context": first, "choices": choices, "label": right}, ensure_ascii=False)


def make_multilabel(a):
    for words, tags in read_conll(a.source):
        gap = "" if any("\u4e00" <= word[0] <= "\u9fff" for word in words if word) else " "
        yield json.dumps({"text": gap.join(words), "labels": sorted({tag[2:] for tag in tags} - {""})}, ensure_ascii=False)


def make_squad(a):
    folder = pathlib.Path(a.model)
    settings = json.load(open(folder / "tokenizer_config.json"))
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=settings.get("do_lower_case", True))
    questions = []
    for number, (question, context, (answer, *_)) in enumerate(read_squad(a.source)):
        begin, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
        places = tokenizer(context, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
        good = (begin == 0 or context[begin - 1] == " ") and context[begin:end] == answer["text"] and begin in {
            first for first, _ in places} and end in {last for _, last in places}
        if good and len(tokenizer(question, add_special_tokens=False)["input_ids"]) <= 64 and question.strip() == question:
            questions.append({"context": context, "qas": [{"id": f"q{number}", "question": question, "answers": [answer]}]})
    return questions


def run_files(a):
    made = list({"choice": make_choice, "multilabel": make_multilabel, "squad": make_squad}[a.kind](a))
    made = made[a.first:a.first + a.count if a.count else None]
    with open(a.out, "w", encoding="utf-8") as file:
        if a.kind == "squad":
            json.dump({"version": "1.1", "data": [{"title": "", "paragraphs": made}]}, file, ensure_ascii=False)
        else:
            file.write("\n".join(made) + "\n")
    print(f"{a.out}: {len(made)}")
    return 0


# ---- Command line ----

def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    for name in ("bertc", "task", "model", "train", "dev", "work"):
        common.add_argument("--" + name, required=True)
    common.add_argument("--batch", type=int, default=16)
    common.add_argument("--max_seq_length", type=int, default=128)
    common.add_argument("--doc_stride", type=int, default=128)
    common.add_argument("--learning_rate", type=float, default=5e-4)
    common.add_argument("--weight_decay", type=float, default=0.01)
    common.add_argument("--eps", type=float, default=1e-6)
    common.add_argument("--clip", type=float, default=1.0)
    common.add_argument("--teacher")
    common.add_argument("--distill_alpha", type=float, default=0.5)
    common.add_argument("--distill_temperature", type=float, default=2)
    common.add_argument("--distill_hidden_weight", type=float, default=1)
    common.add_argument("--distill_layers", default="")
    exact = commands.add_parser("exact", parents=[common])
    exact.add_argument("--steps", type=int, default=50)
    exact.add_argument("--precision", default="fp32", choices=["fp32", "fp64"])
    exact.add_argument("--emulated", default="build/emulated/bertc")
    exact.add_argument("--checks", default="curve,measures,ranks,resume")
    exact.set_defaults(run=run_exact)
    seeds = commands.add_parser("seeds", parents=[common])
    seeds.add_argument("--seeds", type=int, default=5)
    seeds.add_argument("--first_seed", type=int, default=1)
    seeds.add_argument("--epochs", type=float, default=3)
    seeds.add_argument("--dropout", type=float, default=0.1)
    seeds.add_argument("--metric", default="accuracy", help="one, or several separated by commas")
    seeds.add_argument("--precision", default="fp32", help="of bertc; PyTorch computes in fp32")
    seeds.add_argument("--bertc_only", action="store_true")
    seeds.set_defaults(run=run_seeds)
    files = commands.add_parser("files")
    files.add_argument("kind", choices=["choice", "multilabel", "squad"])
    files.add_argument("source")
    files.add_argument("out")
    files.add_argument("--model")
    files.add_argument("--first", type=int, default=0)
    files.add_argument("--count", type=int, default=0)
    files.set_defaults(run=run_files)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse()
    sys.exit(arguments.run(arguments))
