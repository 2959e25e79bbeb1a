"""Compares instances with BERT's algorithm, by statistics.

The algorithm of create_pretraining_data.py is implemented here once more, written from its description (docs/developers/math.md,
"Instances"; Devlin et al. 2019, appendix A), with Python's random numbers instead of ours.

    python dev/instance_statistics.py golden tests/golden/instance_statistics.json
        expectations for tests/data/test_instance_statistics.c

    python dev/instance_statistics.py compare FOLDER VOCAB NAME...
        FOLDER holds NAME.params.json and NAME.instances.jsonl, written by Google's program, and the input that the
        parameters name. Prints for each statistic the official value, this algorithm's over many seeds and ours over
        many epochs (build/dev/dump_instances, see dev/dump_instances.c), with z = difference / standard error.
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy

import megatron_shard

CLS, SEP, MASK = "cls", "sep", "mask"


# ---- The algorithm ----

def random_text(documents, current, wanted, rng):
    """B from a random document; from another one than A's if ten tries find one."""
    for _ in range(10):
        other = rng.randrange(len(documents))
        if other != current:
            break
    text = []
    for sentence in documents[other][rng.randrange(len(documents[other])):]:
        text += sentence
        if len(text) >= wanted:
            break
    return text


def walk(documents, current, longest, short_seq_prob, rng):
    """Yields (A, B, random) of one document, before truncation."""
    document = documents[current]
    target = rng.randint(2, longest) if rng.random() < short_seq_prob else longest
    start = 0
    while start < len(document):
        end = start
        while end < len(document) and sum(map(len, document[start:end])) < target:
            end += 1
        middle = start + 1 if end - start == 1 else rng.randint(start + 1, end - 1)
        a = sum(document[start:middle], [])
        if end - start == 1 or rng.random() < 0.5:
            yield a, random_text(documents, current, target - len(a), rng), True
            start = middle
        else:
            yield a, sum(document[middle:end], []), False
            start = end


def truncate(a, b, longest, rng):
    while len(a) + len(b) > longest:
        longer = a if len(a) > len(b) else b
        del longer[0 if rng.random() < 0.5 else -1]


def mask(ids, settings, vocabulary, rng):
    """Masks in place; returns positions and labels, in order."""
    wanted = min(settings["max_predictions_per_seq"], max(1, round(len(ids) * settings["masked_lm_prob"])))
    words = []
    for position, token in enumerate(ids):
        if token in (CLS, SEP):
            continue
        if settings["do_whole_word_mask"] and words and vocabulary.continues(token):
            words[-1].append(position)
        else:
            words.append([position])
    rng.shuffle(words)
    labels = {}
    for word in words:
        if len(labels) == wanted:
            break
        if len(labels) + len(word) > wanted:
            continue
        for position in word:
            labels[position] = ids[position]
            if rng.random() < 0.8:
                ids[position] = MASK
            elif rng.random() >= 0.5:
                ids[position] = vocabulary.any(rng)
    return sorted(labels), [labels[p] for p in sorted(labels)]


def simulate(documents, settings, vocabulary, rng, passes=1):
    """The instances of several passes over all documents."""
    longest = settings["max_seq_length"] - 3
    instances = []
    for _ in range(passes):
        for current in range(len(documents)):
            for a, b, is_random in walk(documents, current, longest, settings["short_seq_prob"], rng):
                a, b = list(a), list(b)
                truncate(a, b, longest, rng)
                ids = [CLS, *a, SEP, *b, SEP]
                positions, labels = mask(ids, settings, vocabulary, rng)
                instances.append(dict(ids=ids, a=len(a), b=len(b), positions=positions, labels=labels,
                                      next=int(is_random), text=(a, b)))
    return instances


# ---- Statistics ----

def statistics(instances, full, traced=None):
    """The statistics of a list of instances; `full` is max_seq_length. `traced`: ids identify the bounds of their sentence."""
    count = len(instances)
    lengths = [i["a"] + i["b"] + 3 for i in instances]
    result = {
        "instances": count,
        "tokens": sum(lengths),
        "random": sum(i["next"] for i in instances) / count,
        "a_tokens": sum(i["a"] for i in instances) / count,
        "b_tokens": sum(i["b"] for i in instances) / count,
        "a_of_random": numpy.mean([i["a"] for i in instances if i["next"]] or [0]),
        "predictions": sum(len(i["positions"]) for i in instances) / count,
        "short": sum(n < full for n in lengths) / count,
        "tiny": sum(n <= full // 4 for n in lengths) / count,
        "half": sum(n <= full // 2 for n in lengths) / count,
        "three_quarters": sum(n <= full * 3 // 4 for n in lengths) / count,
    }
    pairs = [(i["ids"][p], label) for i in instances for p, label in zip(i["positions"], i["labels"])]
    result["masked"] = sum(token == MASK for token, _ in pairs) / len(pairs)
    result["kept"] = sum(token == label for token, label in pairs) / len(pairs)
    result["replaced"] = 1 - result["masked"] - result["kept"]
    result["rate"] = len(pairs) / (sum(lengths) - 3 * count)
    result["place"] = numpy.mean([p / n for i, n in zip(instances, lengths) for p in i["positions"]])
    if traced:
        begins, ends, documents = traced
        result["a_begins"] = sum(begins(i["text"][0][0]) for i in instances) / count
        result["a_ends"] = sum(ends(i["text"][0][-1]) for i in instances) / count
        result["b_begins"] = sum(begins(i["text"][1][0]) for i in instances) / count
        result["b_ends"] = sum(ends(i["text"][1][-1]) for i in instances) / count
        result["same_document"] = sum(documents(i["text"][0][0]) == documents(i["text"][1][0]) for i in instances) / count
    return {name: float(value) for name, value in result.items()}


def gather(rows):
    """{name: (mean, standard deviation)} over runs."""
    return {name: (float(numpy.mean([r[name] for r in rows])), float(numpy.std([r[name] for r in rows], ddof=1)))
            for name in rows[0]}


# ---- Golden expectations ----

class MadeVocabulary:
    """Every token of the corpus has its own id, from first_id on; every third is a continuation."""
    first_id = 5

    def __init__(self, tokens):
        self.size = self.first_id + tokens

    def continues(self, token):
        return token % 3 == 0

    def any(self, rng):
        token = rng.randrange(self.size)
        return {1: CLS, 2: SEP, 3: MASK}.get(token, token)


CASES = [
    # name, documents, most sentences, sentence lengths, max_seq_length, max_predictions, p, short, whole words
    ("usual", 40, 12, (1, 25), 64, 10, 0.15, 0.1, False),
    ("whole_words", 30, 14, (2, 30), 128, 20, 0.15, 0.1, True),
    ("two_long_documents", 2, 30, (10, 60), 32, 4, 0.2, 0.5, False),
    ("single_sentences", 60, 1, (1, 40), 48, 8, 0.15, 0.1, False),
]


def make_golden(path, runs=1500):
    rng = random.Random(1)
    cases = []
    for name, count, most, (low, high), full, predictions, p, short, whole_words in CASES:
        lengths = [[rng.randint(low, high) for _ in range(rng.randint(1 if most == 1 else 2, most))] for _ in range(count)]
        documents, sentence_of, document_of, next_id = [], {}, {}, MadeVocabulary.first_id
        begins, ends = set(), set()
        for d, sentences in enumerate(lengths):
            documents.append([])
            for n in sentences:
                documents[-1].append(list(range(next_id, next_id + n)))
                begins.add(next_id)
                ends.add(next_id + n - 1)
                document_of.update((i, d) for i in range(next_id, next_id + n))
                next_id += n
        vocabulary = MadeVocabulary(next_id - MadeVocabulary.first_id)
        settings = dict(max_seq_length=full, max_predictions_per_seq=predictions, masked_lm_prob=p,
                        short_seq_prob=short, do_whole_word_mask=whole_words)
        traced = (begins.__contains__, ends.__contains__, document_of.__getitem__)
        rows = [statistics(simulate(documents, settings, vocabulary, random.Random(1000 + r)), full, traced)
                for r in range(runs)]
        cases.append(dict(name=name, **settings, runs=runs, documents=lengths,
                          statistics={n: dict(mean=m, deviation=d) for n, (m, d) in gather(rows).items()}))
        print(name, {n: round(m, 4) for n, (m, _) in gather(rows).items()})
    with open(path, "w") as file:
        lines = json.dumps(dict(cases=cases)).replace('"documents"', '\n"documents"').replace('"statistics"', '\n"statistics"')
        file.write(lines.replace('{"name"', '\n{"name"') + "\n")


# ---- Comparison with official files and with ours ----

class RealVocabulary:
    def __init__(self, words):
        self.words = words
        self.special = {words.index("[CLS]"): CLS, words.index("[SEP]"): SEP, words.index("[MASK]"): MASK}

    def continues(self, token):
        return isinstance(token, int) and self.words[token].startswith("##")

    def any(self, rng):
        return self.name(rng.randrange(len(self.words)))

    def name(self, token):
        return self.special.get(token, token)


def from_official(line, vocabulary):
    """One line of Google's padded instances."""
    length = sum(line["input_mask"])
    predictions = int(sum(line["masked_lm_weights"]))
    b = sum(line["segment_ids"][:length]) - 1
    return dict(ids=[vocabulary.name(i) for i in line["input_ids"][:length]], a=length - b - 3, b=b,
                positions=line["masked_lm_positions"][:predictions], labels=line["masked_lm_ids"][:predictions],
                next=line["next_sentence_labels"][0])


def from_ours(line, vocabulary):
    b = sum(line["types"]) - 1
    return dict(ids=[vocabulary.name(i) for i in line["ids"]], a=len(line["ids"]) - b - 3, b=b,
                positions=line["positions"], labels=line["labels"], next=line["next"], epoch=line["epoch"])


def run_ours(documents, vocab, settings, vocabulary, epochs):
    with tempfile.TemporaryDirectory() as folder:
        megatron_shard.write_shard(folder + "/shard", documents, len(vocabulary.words))
        arguments = [settings["random_seed"], settings["max_seq_length"], settings["max_predictions_per_seq"],
                     settings["masked_lm_prob"], settings["short_seq_prob"], int(settings["do_whole_word_mask"])]
        output = subprocess.run(["build/dev/dump_instances", folder + "/shard", vocab, str(epochs), *map(str, arguments)],
                                check=True, capture_output=True, text=True).stdout
    return [from_ours(json.loads(line), vocabulary) for line in output.splitlines()]


def compare(folder, vocab, name, runs=600):
    settings = json.load(open(f"{folder}/{name}.params.json"))
    tokenizer, words = megatron_shard.tokenizer_of(vocab)
    vocabulary = RealVocabulary(words)
    documents = [[tokenizer.encode(s, add_special_tokens=False).ids for s in d]
                 for d in megatron_shard.read_sentences(f"{folder}/{settings['input']}")]
    documents = [[s for s in d if s] for d in documents]
    full, passes = settings["max_seq_length"], settings["dupe_factor"]
    official = statistics([from_official(json.loads(line), vocabulary)
                           for line in open(f"{folder}/{name}.instances.jsonl")], full)
    ours = [[] for _ in range(runs)]
    for instance in run_ours(documents, vocab, settings, vocabulary, runs * passes):
        ours[instance["epoch"] // passes].append(instance)
    ours = gather([statistics(run, full) for run in ours])
    python = gather([statistics(simulate(documents, settings, vocabulary, random.Random(r), passes), full)
                     for r in range(runs)])
    print(f"{name}: {runs} runs of {passes} passes\n{'':16}{'official':>10}{'algorithm':>11}{'ours':>10}"
          f"{'z official':>12}{'z ours':>8}")
    worst = 0
    for key, (mean, deviation) in python.items():
        our_mean, our_deviation = ours[key]
        error = math.sqrt((deviation ** 2 + our_deviation ** 2) / runs)
        z = (our_mean - mean) / error if error else float(our_mean != mean) * 99
        z_official = (official[key] - mean) / deviation if deviation else float(official[key] != mean) * 99
        worst = max(worst, abs(z))
        print(f"{key:16}{official[key]:10.4f}{mean:11.4f}{our_mean:10.4f}{z_official:12.2f}{z:8.2f}")
    print(f"largest |z| of ours: {worst:.2f}\n")


if __name__ == "__main__":
    if sys.argv[1] == "golden":
        make_golden(sys.argv[2])
    else:
        for name in sys.argv[4:]:
            compare(sys.argv[2], sys.argv[3], name)
