"""Scores of made-up answers by the official scripts, for tests/tasks/squad/test_squad_score.c.

    squad_score_golden.py FOLDER tests/golden/squad_scores.json       a few answers made up here
    squad_score_golden.py FOLDER /tmp/many.json 2000 DATASET.json...  this many lines for words, and every question of real files;
    SQUAD_SCORE_GOLDEN=/tmp/many.json build/tests/tasks/test_squad_score   the same test reads them

FOLDER holds evaluate-v1.1.py, evaluate-v2.0.py (SQuAD) and cmrc2018_evaluate.py (CMRC 2018; written for Python 2, so a
few words of it are replaced here). It splits words with NLTK and preserve_line=True.
"""
import contextlib
import io
import json
import random
import sys
import types

import nltk

folder, out = sys.argv[1:3]
draw = random.Random(3)


def load(name, change=lambda text: text):
    module = types.ModuleType(name)
    text = change(open(f"{folder}/{name}.py", encoding="utf-8").read())
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def from_python_2(text):
    text = text.replace("reload(sys)\nsys.setdefaultencoding('utf8')\n", "").replace(".decode('utf-8')", "").replace("ur'", "r'")
    return text.replace("nltk.word_tokenize(temp_str)", "nltk.word_tokenize(temp_str, preserve_line=True)").expandtabs(8)


version_1 = load("evaluate-v1.1")
version_2 = load("evaluate-v2.0")
chinese = load("cmrc2018_evaluate", from_python_2)

PIECES = ["the", "The", "a", "An", "cat", "cats", "cat's", "\u2013", "(", ")", ",", ".", "...", "theatre", "a.m.", "42", "1,000",
          "\u00a0", "\u039f\u0394\u039f\u03a3", "\u0130", "\u00c9t\u00e9", "e\u0301", "\u4e2d\u56fd", "\u4eba\u3002", "\uff0c", "\u00b7",
          "AT&T", "n't", "'", "''", '"', "can't", "cannot", "gonna", "wanna", "'tis", "d'ye", "more'n", "re", "'re", "she'll",
          "\u201cok\u201d", "\u2014", "\u2026", "100%", "$5", "e-mail", "--", "[x]", "x:y", "12:30", "\u3042", "\u0661", "\u00bd",
          "\u3000", "\t", "_", "*", "#1", "\u2019s", "t", "s", "`", "``", ";", "?!", "\u200b", "\ufb01", "a\u2013b", "the_end"]

# NLTK uses the module "regex" for its regular expressions since 3.10, and Python's "re" before: they differ in what counts
# as a letter.
WORD_PIECES = [p for p in PIECES if p not in ("e\u0301", "\u00bd", "\u0130")]


def made_up_text():
    return "".join(
        draw.choice(PIECES) + draw.choice(["", " ", " "]) for _ in range(draw.choice([0, 1, 2, 3, 6])))


def made_up_dataset():
    questions = []
    for i in range(60):
        answers = [made_up_text() for _ in range(draw.choice([0, 1, 1, 3]))]
        questions.append({"id": f"id {i}", "question": "?", "answers": [{"text": a, "answer_start": 0} for a in answers],
                          "is_impossible": not answers})
    return {"data": [{"title": "t", "paragraphs": [{"context": "c", "qas": questions}]}]}


def prediction_for(question):
    kind = draw.random()
    if not question["answers"] or kind < 0.2:
        return draw.choice(["", "", made_up_text()])
    text = draw.choice(question["answers"])["text"]
    if kind < 0.5:
        return text
    if kind < 0.7:
        return text.upper() + draw.choice(PIECES)
    begin = draw.randrange(len(text) + 1)
    return text[begin:draw.randint(begin, len(text))]


def case_of(dataset):
    questions = [q for a in dataset["data"] for p in a["paragraphs"] for q in p["qas"]]
    answered = {"data": [{"title": "", "paragraphs": [{"context": "c", "qas": [q for q in questions if q["answers"]]}]}]}
    predictions = {q["id"]: prediction_for(q) for q in draw.sample(questions, len(questions))}
    predictions["unknown"] = "x"
    some = {k: v for k, v in predictions.items() if k == "unknown" or draw.random() < 0.9}
    na_probs = {q["id"]: round(draw.random() * 2 - 0.5, draw.choice([1, 6])) for q in draw.sample(questions, len(questions))}
    threshold = 0.4
    case = {"dataset": json.dumps(dataset), "answered": json.dumps(answered), "predictions": predictions, "some": some,
            "na_probs": na_probs, "threshold": threshold}
    with contextlib.redirect_stderr(io.StringIO()):
        case["version_1"] = version_1.evaluate(answered["data"], some)
        f1, em, total, skip = chinese.evaluate(answered, some)
        case["chinese"] = {"exact_match": em, "f1": f1, "average": (em + f1) * 0.5, "total": total, "skip": skip}
    has_answer = version_2.make_qid_to_has_ans(dataset["data"])
    exact, f1 = version_2.get_raw_scores(dataset["data"], predictions)
    for name, na, limit in (("version_2", {k: 0.0 for k in predictions}, 1.0), ("version_2_null", na_probs, threshold)):
        sides = [version_2.apply_no_ans_threshold(s, na, has_answer, limit) for s in (exact, f1)]
        result = version_2.make_eval_dict(*sides)
        for prefix, wanted in (("HasAns", True), ("NoAns", False)):
            ids = [k for k, v in has_answer.items() if v is wanted]
            if ids:
                version_2.merge_eval(result, version_2.make_eval_dict(*sides, qid_list=ids), prefix)
        case[name] = result
    version_2.find_all_best_thresh(case["version_2_null"], predictions, exact, f1, na_probs, has_answer)
    # Over every threshold, one by one: questions with a value up to it are answered, others are not.
    best = {}
    for name, scores in (("exact", exact), ("f1", f1)):
        tried = [(sum((scores[k] if predictions[k] else not has_answer[k]) if na_probs[k] <= limit else not has_answer[k]
                      for k in scores), -limit) for limit in [min(na_probs.values()) - 1] + sorted(set(na_probs.values()))]
        top = max(score for score, _ in tried)
        best[name] = 100 * top / len(scores)
    case["best"] = best
    return case


def main():
    lines = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    datasets = [json.load(open(path, encoding="utf-8")) for path in sys.argv[4:]] or [made_up_dataset(), made_up_dataset()]
    words = []
    for _ in range(lines):
        text = "".join(draw.choice(WORD_PIECES) + draw.choice(["", "", " "]) for _ in range(draw.choice([1, 2, 4, 8])))
        if draw.random() < 0.5:
            text = text.lower()
        words.append([text, nltk.word_tokenize(text, preserve_line=True)])
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"words": words, "cases": [case_of(d) for d in datasets]}, file, ensure_ascii=False)
        file.write("\n")


main()
