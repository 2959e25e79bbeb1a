"""What tasks are worth without any pre-training: scores of models that see words alone, for comparison with fine-tuned ones.

    bag_of_words.py [--sst2 FOLDER] [--mrpc FOLDER] [--stsb FOLDER] [--scicite FOLDER] [--tagging FOLDER]

FOLDER holds the task's files as `bertc finetune --data_dir` reads them. Trained on the training set, scored on the dev set:
  sst2, scicite  logistic regression on TF-IDF of words; accuracy, and F1 as the mean of the classes
  mrpc           the same on |a - b| and a * b of the two sentences' TF-IDF, and their cosine; F1
  stsb           the cosine alone; Spearman's correlation
  tagging        the most frequent tag of each word, O for one that is new; F1 of entities
The strength of regularization is chosen by cross-validation on the training set.
Needs: scikit-learn, scipy, seqeval.
"""
import argparse
import collections
import csv
import json
import os

import numpy
import scipy.sparse
from scipy.stats import spearmanr
from seqeval.metrics import f1_score as entity_f1
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV

TOKEN = r"\w+|[^\w\s]"


def table(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def regression(x, y, scoring):
    search = GridSearchCV(LogisticRegression(max_iter=2000), {"C": [0.3, 1, 3, 10, 30]}, scoring=scoring, cv=5)
    return search.fit(x, y)


def texts(train, dev, scoring, score):
    """Classification of single texts given as (text, label)."""
    words = TfidfVectorizer(token_pattern=TOKEN)
    model = regression(words.fit_transform([t for t, _ in train]), [y for _, y in train], scoring)
    return score([y for _, y in dev], model.predict(words.transform([t for t, _ in dev])))


def sst2(folder):
    train, dev = (table(folder, name)[1:] for name in ("train.tsv", "dev.tsv"))
    return texts(train, dev, "accuracy", accuracy_score)


def scicite(folder):
    def read(name):
        rows = [json.loads(line) for line in open(os.path.join(folder, name), encoding="utf-8")]
        return [(row["text"], row["label"]) for row in rows]
    return texts(read("train.jsonl"), read("dev.jsonl"), "f1_macro", lambda y, p: f1_score(y, p, average="macro"))


def pairs(rows, words):
    a, b = (words.transform([row[i] for row in rows]) for i in (0, 1))
    cosine = numpy.asarray(a.multiply(b).sum(axis=1))
    return scipy.sparse.hstack([abs(a - b), a.multiply(b), cosine]).tocsr(), cosine[:, 0]


def word_weights(train):
    return TfidfVectorizer(token_pattern=TOKEN).fit([row[i] for row in train for i in (0, 1)])


def mrpc(folder):
    train, dev = ([(row[3], row[4], int(row[0])) for row in table(folder, name)[1:]] for name in ("train.tsv", "dev.tsv"))
    words = word_weights(train)
    model = regression(pairs(train, words)[0], [row[2] for row in train], "f1")
    return f1_score([row[2] for row in dev], model.predict(pairs(dev, words)[0]))


def stsb(folder):
    train, dev = ([(row[5], row[6], float(row[4])) for row in table(folder, name)] for name in ("train.tsv", "dev.tsv"))
    return spearmanr([row[2] for row in dev], pairs(dev, word_weights(train))[1]).statistic


def sentences(folder, name):
    """The sentences of CoNLL files as (words, tags); the first column is the word, the last one the tag."""
    out = [([], [])]
    for line in open(os.path.join(folder, name), encoding="utf-8"):
        columns = line.split()
        if not columns or columns[0] == "-DOCSTART-":
            out.append(([], []))
        else:
            out[-1][0].append(columns[0])
            out[-1][1].append(columns[-1])
    return [s for s in out if s[0]]


def tagging(folder):
    counts = collections.defaultdict(collections.Counter)
    for words, tags in sentences(folder, "train.txt"):
        for word, tag in zip(words, tags):
            counts[word.lower()][tag] += 1
    usual = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    dev = sentences(folder, "dev.txt")
    return entity_f1([tags for _, tags in dev], [[usual.get(word.lower(), "O") for word in words] for words, _ in dev])


TASKS = {"sst2": sst2, "mrpc": mrpc, "stsb": stsb, "scicite": scicite, "tagging": tagging}
p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in TASKS:
    p.add_argument("--" + name, metavar="FOLDER")
a = vars(p.parse_args())
for name, score in TASKS.items():
    if a[name]:
        print(f"{name:8} {100 * score(a[name]):.1f}", flush=True)
