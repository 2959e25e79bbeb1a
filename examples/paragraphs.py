#!/usr/bin/env python3
"""Writes the data of search.sh from pages in Markdown: the paragraphs, one a line, and pairs of a heading and a paragraph, which is
that below it (1) or another one (0).

    python3 paragraphs.py FOLDER PAGE..."""

import os
import random
import re
import sys


def main() -> None:
    random.seed(1)
    folder, pages = sys.argv[1], sys.argv[2:]
    found, below = [], []
    for page in pages:
        heading = ""
        with open(page, encoding="utf-8") as file:
            for block in re.split(r"\n\s*\n", file.read()):
                block = " ".join(block.split())
                if block.startswith("#"):
                    heading = block.lstrip("# ")
                elif re.match(r"[A-Z`*]", block) and len(block) > 100:
                    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", block.replace("`", "").replace("*", ""))
                    found.append(text)
                    if heading:
                        below.append((heading, text))
                    heading = ""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "paragraphs.txt"), "w", encoding="utf-8") as file:
        file.writelines(text + "\n" for text in found)
    with open(os.path.join(folder, "judged.tsv"), "w", encoding="utf-8") as file:
        file.write("query\tpassage\tlabel\n")
        for heading, text in below:
            file.write(f"{heading}\t{text}\t1\n")
            others = [t for t in found if t != text]
            file.writelines(f"{heading}\t{other}\t0\n" for other in random.sample(others, min(4, len(others))))


main()
