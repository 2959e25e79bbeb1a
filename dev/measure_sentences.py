#!/usr/bin/env python3
"""Counts the errors of bertc's sentence splitter on text whose sentences are known.

    dev/measure_sentences.py [--icu LOCALE | --pysbd LANGUAGE] FILE...  one sentence per line, a blank line between documents;
                                                                        .gz too; dev/gold_sentences.py makes some

The sentences of a document are joined by spaces (by nothing between East Asian characters), split again with `bertc
extract --text_form paragraphs`, and the borders compared: missed are those not found, wrong those found elsewhere.
--icu splits with ICU's break iterator (UAX 29; package PyICU) instead, --pysbd with the package pysbd, for comparison.
"""
import argparse
import gzip
import os
import subprocess
import sys
import tempfile


def documents(path):
    opener = gzip.open if path.endswith(".gz") else open
    sentences = []
    with opener(path, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            line = " ".join(line.split())
            if line:
                sentences.append(line)
            elif sentences:
                yield sentences
                sentences = []
    if sentences:
        yield sentences


def east_asian(c):
    return "\u2e80" <= c <= "\uff60"


def join(sentences):
    text = sentences[0]
    for sentence in sentences[1:]:
        text += ("" if east_asian(text[-1]) else " ") + sentence
    return text


def borders(sentences):
    """Where sentences end, counted in characters other than spaces."""
    at, ends = 0, set()
    for sentence in sentences:
        at += len(sentence.replace(" ", ""))
        ends.add(at)
    return ends - {at}


def split_bertc(texts):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in.txt")
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n\n".join(texts) + "\n")
        command = [os.environ.get("BERTC", "build/bertc"), "extract", path, "--input_form", "text", "--text_form",
                   "paragraphs", "--out", os.path.join(folder, "out.txt"), "-q"]
        subprocess.run(command, check=True)
        return list(documents(os.path.join(folder, "out.txt")))


def split_icu(texts, locale):
    import icu
    iterator = icu.BreakIterator.createSentenceInstance(icu.Locale(locale))
    for text in texts:
        iterator.setText(icu.UnicodeString(text))
        begin, found, utf16 = 0, [], text.encode("utf-16-le")
        for end in iterator:
            found.append(utf16[2 * begin:2 * end].decode("utf-16-le").strip())
            begin = end
        yield [sentence for sentence in found if sentence]


def split_pysbd(texts, language):
    import pysbd
    segmenter = pysbd.Segmenter(language=language, clean=False)
    for text in texts:
        yield [s.strip() for s in segmenter.segment(text) if s.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--icu", metavar="LOCALE")
    parser.add_argument("--pysbd", metavar="LANGUAGE")
    parser.add_argument("--show", type=int, default=0, help="print so many errors of each kind")
    options = parser.parse_args()
    for path in options.files:
        known = list(documents(path))
        texts = [join(sentences) for sentences in known]
        found = list(split_icu(texts, options.icu) if options.icu else
                     split_pysbd(texts, options.pysbd) if options.pysbd else split_bertc(texts))
        total = missed = wrong = exact = 0
        shown = [0, 0]
        for text, right, ours in zip(texts, known, found, strict=True):
            a, b = borders(right), borders(ours)
            total += len(a)
            exact += a == b
            missed += len(a - b)
            wrong += len(b - a)
            packed = text.replace(" ", "")
            for kind, places in enumerate((a - b, b - a)):
                for at in sorted(places):
                    if shown[kind] < options.show:
                        shown[kind] += 1
                        print(("missed", "wrong")[kind], packed[max(0, at - 40):at], "|", packed[at:at + 30])
        right = total - missed
        print(f"{os.path.basename(path)}: {exact} of {len(known)} documents exact; {total} borders, missed {missed} "
              f"({100 * missed / total:.2f} %), wrong {wrong} ({100 * wrong / total:.2f} %): precision "
              f"{100 * right / max(1, right + wrong):.1f} %, recall {100 * right / total:.1f} %")


if __name__ == "__main__":
    sys.exit(main())
