#!/usr/bin/env python3
"""Prints the texts whose vectors are nearest to those of the questions, as pairs for a reranker: question, text, cosine.

    python3 neighbors.py TEXTS VECTORS QUESTIONS VECTORS COUNT"""

import sys

import numpy


def main() -> None:
    texts, questions = (open(path, encoding="utf-8").read().splitlines() for path in sys.argv[1:4:2])
    vectors, asked = (numpy.load(path) for path in sys.argv[2:5:2])
    cosines = asked @ vectors.T  # bertc's vectors of a sentence model have length 1
    print("query\tpassage\tcosine")
    for question, row in zip(questions, cosines):
        for i in row.argsort()[::-1][: int(sys.argv[5])]:
            print(f"{question}\t{texts[i]}\t{row[i]:.3f}")


main()
