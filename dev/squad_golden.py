"""Features, answers and result files of Google's run_squad.py, for tests/tasks/squad/test_squad_answers.c.

    squad_golden.py FOLDER tests/golden/squad.json                    texts made up here
    squad_golden.py FOLDER /tmp/many.json VOCAB.txt QUESTIONS DATASET.json...   the first QUESTIONS questions of real files;
    SQUAD_GOLDEN=/tmp/many.json build/tests/tasks/test_squad_answers  the same test reads them

FOLDER holds run_squad.py and tokenization.py of google-research/bert. Logits are made up by a formula that the test knows,
with many ties.
"""
import copy
import io
import json
import sys
import types

folder, out = sys.argv[1:3]


class Flags:
    def __getattr__(self, name):
        return lambda *a, **k: None


tf = types.ModuleType("tensorflow")
tf.flags = Flags()
tf.flags.FLAGS = types.SimpleNamespace(verbose_logging=False)
tf.logging = Flags()
written = {}


class Written(io.StringIO):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def close(self):
        written[self.name] = self.getvalue()
        super().close()


tf.gfile = types.SimpleNamespace(
    Open=lambda path, mode="r": open(path, encoding="utf-8"),
    GFile=lambda path, mode="r": Written(path) if mode == "w" else open(path, encoding="utf-8"))
tf.app = types.SimpleNamespace(run=None)
for name in ("modeling", "optimization"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["tensorflow"] = tf
sys.path.insert(0, folder)
import run_squad  # noqa: E402
import tokenization  # noqa: E402


def logit(window, row, side):
    return (window * 7919 + row * row * 31 + row * 104729 + side * 1299709) % 97 / 8 - 6


def features_of(dataset, settings, vocab_path, training):
    path = out + ".dataset"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dataset, file)
    tf.flags.FLAGS.version_2_with_negative = settings["version_2"]
    tf.flags.FLAGS.null_score_diff_threshold = settings["null_threshold"]
    examples = run_squad.read_squad_examples(path, training)
    tokenizer = tokenization.FullTokenizer(vocab_file=vocab_path, do_lower_case=settings["lowercase"])
    features = []
    run_squad.convert_examples_to_features(examples, tokenizer, settings["max_seq_length"], settings["doc_stride"],
                                           settings["max_query_length"], training, features.append)
    return examples, features


def row_of(feature, training):
    size = sum(feature.input_mask)
    row = {"id": feature.example_index}
    if training:
        row["target"] = [feature.start_position, feature.end_position]
    else:
        row["ids"] = feature.input_ids[:size]
        row["query"] = feature.segment_ids[:size].index(1)
        places = range(row["query"], size - 1)
        row["words"] = [feature.token_to_orig_map[i] for i in places]
        row["max_context"] = "".join("01"[feature.token_is_max_context[i]] for i in places)
    return row


def case_of(dataset, settings, vocab_path):
    first_answers = copy.deepcopy(dataset)
    for article in first_answers["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                question["answers"] = question["answers"][:1]
                question.setdefault("is_impossible", False)
    train_examples, train = features_of(first_answers, settings, vocab_path, True)
    examples, features = features_of(dataset, settings, vocab_path, False)
    results = []
    for number, feature in enumerate(features):
        size = sum(feature.input_mask)  # padding rows are never among the best
        sides = [[logit(number, row, side) if row < size else -100.0 for row in range(settings["max_seq_length"])]
                 for side in (0, 1)]
        results.append(run_squad.RawResult(feature.unique_id, *sides))
    written.clear()
    run_squad.write_predictions(examples, features, results, settings["n_best_size"], settings["max_answer_length"],
                                settings["lowercase"], "predictions", "n_best", "null_odds")
    return {"dataset": json.dumps(first_answers, ensure_ascii=False), "settings": settings,
            "train_ids": [e.qas_id for e in train_examples], "train": [row_of(f, True) for f in train],
            "features": [row_of(f, False) for f in features], **written}


PARAGRAPHS = [
    ("The harbour of Brel (founded 1412, rebuilt 1790-1795) lies at the mouth of the Ulm. Its light\u2013house, 42\u00a0m high, "
     "was paid for by the town's fishermen; the queen gave $1,000.50 and \"a bell\".  Nobody\trang it.\nIn 1795, 1412 boats "
     "were counted... The unbelievable light was seen 30 km away!",
     [("When was the harbour founded?", "1412"), ("When was it rebuilt?", "1790-1795"), ("How high is it?", "42\u00a0m"),
      ("What did the queen give?", "$1,000.50 and \"a bell\""), ("Who rang?", None), ("Who paid?", "the town's fishermen"),
      ("How many boats?", "1412 boats"), ("What was seen?", "believable light")]),
    ("Caf\u00e9 M\u00fcller\u2019s cr\u00e8me br\u00fbl\u00e9e \u2014 \u00abtr\u00e8s bonne\u00bb \u2014 costs 4\u202f\u20ac. "
     "\u039f\u03b4\u03c5\u03c3\u03c3\u03b5\u03cd\u03c2 ate it; \u039f\u0394\u039f\u03a3 too. \u4ed6\u4eec\u559c\u6b22\u5496\u5561\uff0c"
     "\u4e5f\u559c\u6b22\u8336\u3002 Zero\u200bwidth and soft\u00adhyphen words #1 C## a_b e-mail \u0130stanbul.",
     [("What costs 4 euros?", "cr\u00e8me br\u00fbl\u00e9e"), ("Who ate it?", "\u039f\u03b4\u03c5\u03c3\u03c3\u03b5\u03cd\u03c2"),
      ("\u4ed6\u4eec\u559c\u6b22\u4ec0\u4e48\uff1f", "\u5496\u5561"), ("Which width?", "Zero\u200bwidth"), ("Whose?", None),
      ("Which city?", "\u0130stanbul"), ("Which language is a sharp one that ends in two signs?", "C##")]),
    (" " + "boat " * 60 + "and one more bell", [("What is more?", "bell"), ("How many boats?", None)]),
    ("bell", [("What?", "bell")]),
]
PIECES = ("the harbour of founded rebuilt lies at mouth its light house high was paid for by town s fish ##er ##men queen gave "
          "and a bell nobody rang it in boats boat were counted un ##believ ##able believ ##ably seen km away ! . , ; : ( ) - "
          "\u2013 \u2014 ' \u2019 \" $ # ? _ \u00ab \u00bb \u20ac when who what how many did is 1 14 ##12 179 ##0 ##5 1795 42 "
          "m 000 50 30 cafe muller creme bru ##lee tres bonne costs 4 ate too zero ##width soft ##hyphen words c b e mail istanbul "
          "\u03bf\u03b4\u03c5\u03c3\u03c3\u03b5\u03c5\u03c2 \u4ed6 \u4eec \u559c \u6b22 \u5496 \u5561 \uff0c \u4e5f \u8336 \u3002 "
          "\uff1f one more which city").split()


def made_up():
    qas = 0
    paragraphs = []
    for text, questions in PARAGRAPHS:
        paragraph = {"context": text, "qas": []}
        for question, answer in questions:
            answers = [] if answer is None else [{"text": answer, "answer_start": text.index(answer)}]
            paragraph["qas"].append({"id": "q%d" % qas, "question": question, "answers": answers,
                                     "is_impossible": answer is None})
            qas += 1
        paragraphs.append(paragraph)
    return {"version": "made up", "data": [{"title": "Invented", "paragraphs": paragraphs}]}


def without_impossible(dataset):
    dataset = copy.deepcopy(dataset)
    for article in dataset["data"]:
        for paragraph in article["paragraphs"]:
            paragraph["qas"] = [q for q in paragraph["qas"] if not q.get("is_impossible")]
    return dataset


def first_questions(dataset, count):
    dataset = copy.deepcopy(dataset)
    for article in dataset["data"]:
        for paragraph in article["paragraphs"]:
            paragraph["qas"] = paragraph["qas"][:count]
            count -= len(paragraph["qas"])
    return dataset


def main():
    if len(sys.argv) > 3:
        vocab_path, count = sys.argv[3], int(sys.argv[4])
        lines = open(vocab_path, encoding="utf-8").read().rstrip("\n").split("\n")
        vocab = [line.strip() or "[blank %d]" % i for i, line in enumerate(lines)]
        cases = []
        for path in sys.argv[5:]:
            dataset = first_questions(json.load(open(path, encoding="utf-8")), count)
            version_2 = any(q.get("is_impossible") for a in dataset["data"] for p in a["paragraphs"] for q in p["qas"])
            cases.append(case_of(dataset, dict(
                lowercase="uncased" in vocab_path or "chinese" in vocab_path, version_2=version_2, null_threshold=0.0,
                max_seq_length=384, doc_stride=128, max_query_length=64, n_best_size=20, max_answer_length=30), vocab_path))
    else:
        vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + PIECES + ["##" + c for c in "abcdefgilmnoprstuy"] + ["##s##"]
        vocab_path = out + ".vocab"
        with open(vocab_path, "w", encoding="utf-8") as file:
            file.write("\n".join(vocab) + "\n")
        dataset = made_up()
        common = dict(lowercase=True, max_query_length=8, n_best_size=4, max_answer_length=6)
        cases = [
            case_of(without_impossible(dataset), dict(common, version_2=False, null_threshold=0.0, max_seq_length=32,
                                                      doc_stride=9), vocab_path),
            case_of(dataset, dict(common, version_2=True, null_threshold=-1.5, max_seq_length=48, doc_stride=64), vocab_path),
            case_of(dataset, dict(common, lowercase=False, version_2=True, null_threshold=3.0, max_seq_length=384, doc_stride=128,
                                  n_best_size=8, max_answer_length=30), vocab_path),
        ]
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"vocab": vocab, "cases": cases}, file, ensure_ascii=False)
        file.write("\n")


main()
