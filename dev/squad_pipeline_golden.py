"""Answers of the question-answering pipeline of transformers 4, for tests/tasks/squad/test_squad_pipeline.c.

    squad_pipeline_golden.py tests/golden/squad_pipeline.json

Needs transformers 4.50 to 4.57 (version 5 has no such pipeline), but not torch: the steps before and after the model are run
here, on logits made up by a formula that the test knows, without ties, which NumPy would break arbitrarily.
"""
import json
import os
import random
import sys
import tempfile

import numpy
from transformers import BertTokenizerFast
from transformers.data import SquadExample
from transformers.pipelines.question_answering import QuestionAnsweringPipeline

ENTRIES = ("[PAD] [UNK] [CLS] [SEP] [MASK] who what saw the cat ##s ##ty dog barked at moon ##light in brel , . ' ( ) - a bell rang "
           "un ##believ ##able harbour 14 ##12 \u4e2d \u56fd caf\u00e9 cafe ?").split()
WORDS = ["the", "The", "cats", "catty", "dog", "barked", "at", "moonlight", "in", "Brel", ",", ".", "'", "(a", "bell)", "rang",
         "unbelievable", "harbour-bell", "1412", "\u4e2d\u56fd", "Caf\u00e9", "zebra"]


def logit(window, row, side):
    return (window * 7919 + row * row * 31 + row * 104729 + side * 1299709) % 97 / 8 - 6 + row * row * 0.000731 + row * side * 0.00917


def main():
    draw = random.Random(4)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vocab.txt")
        open(path, "w", encoding="utf-8").write("\n".join(ENTRIES) + "\n")
        tokenizer = BertTokenizerFast(vocab_file=path, do_lower_case=True)
    pipeline = QuestionAnsweringPipeline.__new__(QuestionAnsweringPipeline)
    pipeline.framework, pipeline.tokenizer = "np", tokenizer
    cases = []
    for number in range(40):
        context = " ".join(draw.choice(WORDS) for _ in range(draw.choice([1, 3, 10, 40])))
        question = draw.choice(["Who saw the cat?", "What?", "what rang in Brel"])
        length, overlap, most = draw.choice([(16, 3), (24, 8), (64, 16)]) + (draw.choice([1, 4, 15]),)
        encoded = tokenizer(question, context, truncation="only_second", max_length=length, stride=overlap,
                            return_overflowing_tokens=True)
        outputs = []
        for i, ids in enumerate(encoded["input_ids"]):
            mask = [int(s != 1) for s in encoded.sequence_ids(i)]
            mask[0] = 0
            sides = [numpy.array([[logit(i, row, side) * draw_scale(number) for row in range(len(ids))]]) for side in (0, 1)]
            outputs.append({"start": sides[0], "end": sides[1], "p_mask": numpy.array([mask]), "encoding": encoded[i],
                            "example": SquadExample(None, question, context, None, None, None)})
        answers = {}
        for name, handle in (("answer", False), ("or_none", True)):
            answers[name] = pipeline.postprocess(outputs, top_k=1, handle_impossible_answer=handle, max_answer_len=most)
        cases.append({"context": context, "question": question, "max_seq_length": length, "overlap": overlap,
                      "max_answer_length": most, "scale": draw_scale(number), "windows": encoded["input_ids"], **answers})
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"vocab": ENTRIES, "cases": cases}, file, ensure_ascii=False)
        file.write("\n")


def draw_scale(number):
    """Flat and steep logits alternate."""
    return (0.125, 1.0)[number % 2]


main()
