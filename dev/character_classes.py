#!/usr/bin/env python3
"""Makes src/text/tokenizer/character_classes.c: the classes of code points that pre-tokenizers of Hugging Face's
tokenizers library use, found by asking the library about every code point. Needs tokenizers; its version is written into the file.

    character_classes.py --out src/text/tokenizer/character_classes.c    writes the file
    character_classes.py --check src/text/tokenizer/character_classes.c  compares and fails if it differs
"""
import argparse
import sys

import tokenizers
from tokenizers import Regex, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]  # UTF-8 has no surrogates
LETTER, NUMBER, WORD, SPACE, NUMERIC = 1, 2, 4, 8, 16


def of_pattern(pattern):
    """Code points that a regular expression of one character matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    left = set()
    for _, (begin, end) in split.pre_tokenize_str("".join(map(chr, CODE_POINTS))):
        left.update(CODE_POINTS[begin:end])
    return set(CODE_POINTS) - left


def whitespace():
    """Code points that Whitespace has within words: its expressions, and those of added tokens, have another \\w than Split's."""
    pieces = pre_tokenizers.Whitespace().pre_tokenize_str(" ".join(f"a{chr(c)}b" for c in CODE_POINTS))
    return {ord(word[1]) for word, _ in pieces if len(word) == 3}


def numeric():
    """Code points that Digits isolates."""
    text = "a".join(map(chr, CODE_POINTS))
    pieces = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str(text)
    return {ord(word) for word, (begin, end) in pieces if end - begin == 1 and begin % 2 == 0}


def rows():
    flags = dict.fromkeys(CODE_POINTS, 0)
    classes = {LETTER: of_pattern(r"\p{L}"), NUMBER: of_pattern(r"\p{N}"), WORD: whitespace(), SPACE: of_pattern(r"\s"),
               NUMERIC: numeric()}
    for flag, members in classes.items():
        for c in members:
            flags[c] |= flag
    first = None
    for c in range(0x110001):
        flag = flags.get(c, 0)
        if first is not None and flag != flags[first]:
            yield first, c - 1, flags[first]
            first = None
        if first is None and flag:
            first = c


def text():
    lines, line = [], ""
    for first, last, flag in rows():
        item = f"{{0x{first:X}, 0x{last:X}, {flag}}},"
        if len(line) + 1 + len(item) > 120:
            lines.append(line)
            line = ""
        line += " " * bool(line) + item
    lines.append(line)
    body = "\n".join("\t" + line for line in lines)
    return f"""/* The classes of characters. Made by dev/character_classes.py (tokenizers {tokenizers.__version__}); do not edit. */
#include "text/tokenizer/character_classes.h"

/* clang-format off */

const struct character_class_row character_class_rows[] = {{
{body}
}};
const int character_class_row_count = sizeof character_class_rows / sizeof *character_class_rows;
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--out")
    action.add_argument("--check")
    args = parser.parse_args()
    made = text()
    if args.out:
        with open(args.out, "w", encoding="ascii") as file:
            file.write(made)
    else:
        with open(args.check, encoding="ascii") as file:
            sys.exit(0 if file.read() == made else "differs")


if __name__ == "__main__":
    main()
