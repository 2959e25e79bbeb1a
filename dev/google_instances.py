"""Instances as google-research/bert's create_pretraining_data.py defines them, written from the algorithm's description
(docs/developers/math.md, "Instances") on top of CPython's own random module and dev/google_tokenizer.py: an oracle for `bertc instances
--compat google` with any text, vocabulary and seed.

    google_instances.py TEXT VOCAB OURS.tfrecord [--cased] [--whole_words] [--seed N] [--dupe N] [--length N]
                        [--predictions N] [--masked P] [--short P]

Compares instance by instance with the output of bertc with the same settings.
"""
import argparse
import random

from google_tokenizer import tokenize
from tfrecord_reader import records

p = argparse.ArgumentParser()
p.add_argument("text")
p.add_argument("vocab")
p.add_argument("ours")
p.add_argument("--cased", action="store_true")
p.add_argument("--whole_words", action="store_true")
p.add_argument("--seed", type=int, default=12345)
p.add_argument("--dupe", type=int, default=10)
p.add_argument("--length", type=int, default=128)
p.add_argument("--predictions", type=int, default=20)
p.add_argument("--masked", type=float, default=0.15)
p.add_argument("--short", type=float, default=0.1)
a = p.parse_args()

vocab = {}
for number, line in enumerate(open(a.vocab, encoding="utf-8")):
    vocab[line.strip()] = number
words = list(vocab)
documents = [[]]
for line in open(a.text, encoding="utf-8", newline="\n"):
    line = line.strip()
    tokens = tokenize(line, vocab, not a.cased)
    if not line:
        documents.append([])
    elif tokens:
        documents[-1].append(tokens)
documents = [d for d in documents if d]
rng = random.Random(a.seed)
rng.shuffle(documents)
room = a.length - 3


def mask(tokens):
    candidates = []
    for i, t in enumerate(tokens):
        if t in ("[CLS]", "[SEP]"):
            continue
        if a.whole_words and candidates and t.startswith("##"):
            candidates[-1].append(i)
        else:
            candidates.append([i])
    rng.shuffle(candidates)
    wanted = min(a.predictions, max(1, int(round(len(tokens) * a.masked))))
    out, chosen = list(tokens), []
    for group in candidates:
        if len(chosen) >= wanted:
            break
        if len(chosen) + len(group) > wanted:
            continue
        for i in group:
            if rng.random() < 0.8:
                out[i] = "[MASK]"
            elif rng.random() >= 0.5:
                out[i] = words[rng.randint(0, len(words) - 1)]
            chosen.append(i)
    return out, sorted(chosen)


def of_document(place):
    document, chunk, length, i = documents[place], [], 0, 0
    target = rng.randint(2, room) if rng.random() < a.short else room
    while i < len(document):
        chunk.append(document[i])
        length += len(document[i])
        if i == len(document) - 1 or length >= target:
            end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            first = sum(chunk[:end], [])
            label = int(len(chunk) == 1 or rng.random() < 0.5)
            if label:
                for _ in range(10):
                    other = rng.randint(0, len(documents) - 1)
                    if other != place:
                        break
                second, start = [], rng.randint(0, len(documents[other]) - 1)
                for sentence in documents[other][start:]:
                    second += sentence
                    if len(second) >= target - len(first):
                        break
                i -= len(chunk) - end
            else:
                second = sum(chunk[end:], [])
            while len(first) + len(second) > room:
                longer = first if len(first) > len(second) else second
                longer.pop(0 if rng.random() < 0.5 else -1)
            tokens = ["[CLS]"] + first + ["[SEP]"] + second + ["[SEP]"]
            masked, chosen = mask(tokens)
            yield {"input_ids": [vocab[t] for t in masked], "segments": len(first) + 2,
                   "positions": chosen, "labels": [vocab[tokens[c]] for c in chosen], "next": label}
            chunk, length = [], 0
        i += 1


expected = [instance for _ in range(a.dupe) for place in range(len(documents)) for instance in of_document(place)]
rng.shuffle(expected)
found = []
for r in records(a.ours):
    n, k = sum(r["input_mask"]), int(sum(r["masked_lm_weights"]))
    found.append({"input_ids": r["input_ids"][:n], "segments": r["segment_ids"][:n].count(0),
                  "positions": r["masked_lm_positions"][:k], "labels": r["masked_lm_ids"][:k],
                  "next": r["next_sentence_labels"][0]})
same = sum(x == y for x, y in zip(found, expected))
print(f"{same} of {len(expected)} equal ({len(found)} found)")
raise SystemExit(0 if same == len(expected) == len(found) else 1)
