#!/usr/bin/env python3
"""Makes src/text/tokenizer/unicode_tables.c: what Hugging Face's and Google's BERT tokenizers know about each code point, except for
decompositions and combining classes, which utf8proc has: there, the tables only say for which code points they apply.

Hugging Face's facts are found by asking the tokenizers library about every code point, since its Rust crates
carry tables of several Unicode versions; Google's are those of Python's unicodedata, fixed here to Unicode 14.
Needs Python 3.11 and tokenizers; the versions are written into the file.

    unicode_tables.py --out src/text/tokenizer/unicode_tables.c    writes the file
    unicode_tables.py --check src/text/tokenizer/unicode_tables.c  compares and fails if it differs
"""
import argparse
import itertools
import sys
import unicodedata

import tokenizers
from tokenizers import normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]  # UTF-8 has no surrogates

DROPPED, SPACE, MARK, PUNCTUATION, CASED, IGNORABLE, REORDERED, ACCENT = 1, 2, 4, 8, 16, 32, 64, 128


class HuggingFace:
    """Answers of the tokenizers library."""

    def __init__(self):
        off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
        clean = normalizers.BertNormalizer(**{**off, "clean_text": True})
        strip = normalizers.BertNormalizer(**{**off, "strip_accents": True})
        lower = normalizers.BertNormalizer(**{**off, "lowercase": True})
        nfd = normalizers.NFD()
        accents = normalizers.StripAccents()
        split = pre_tokenizers.BertPreTokenizer()
        self.flags, self.decomposition, self.lower, self.combining = {}, {}, {}, {}
        for c in CODE_POINTS:
            x = chr(c)
            cleaned = clean.normalize_str(x)
            assert cleaned in ("", " ", x)
            decomposed = nfd.normalize_str(x)
            flags = DROPPED if cleaned == "" else SPACE if cleaned == " " else 0
            if decomposed != x:
                self.decomposition[c] = decomposed
            elif strip.normalize_str(x) == "":
                flags |= MARK
            if accents.normalize_str("a" + x) == "a":
                flags |= ACCENT
            words = [word for word, _ in split.pre_tokenize_str("a" + x + "b")]
            if words == ["a", x, "b"]:
                flags |= PUNCTUATION
            elif words == ["a", "b"]:
                assert flags & (DROPPED | SPACE), hex(c)  # white space that cleaning has already handled
            else:
                assert words == ["a" + x + "b"], hex(c)
            self.flags[c] = flags
            lowered = lower.normalize_str(x)
            if lowered != x:
                self.lower[c] = lowered
        # The combining class only decides the order in which marks are sorted, so it is found by sorting: each candidate
        # against one character of each class.

        def swaps(a, b):
            return a != b and nfd.normalize_str("a" + a + b) == "a" + b + a

        lowest, highest = "\u0334", "\u0345"  # classes 1 and 240
        marks = [c for c in CODE_POINTS if c not in self.decomposition and
                 (swaps(highest, chr(c)) or swaps(chr(c), lowest))]
        classes = {}
        for c in marks:
            classes.setdefault(unicodedata.combining(chr(c)), chr(c))
        classes.pop(0, None)
        for c in marks:
            self.combining[c] = next(k for k in sorted(classes)
                                     if not swaps(classes[k], chr(c)) and not swaps(chr(c), classes[k]))


class Google:
    """What tokenization.py gets from Python: unicodedata and str.lower()."""

    def __init__(self):
        assert unicodedata.unidata_version == "14.0.0", "needs a Python with Unicode 14 (3.11)"
        self.flags, self.decomposition, self.lower, self.combining = {}, {}, {}, {}
        for c in CODE_POINTS:
            x = chr(c)
            category = unicodedata.category(x)
            flags = 0
            if x in " \t\n\r" or category == "Zs":
                flags |= SPACE
            elif c in (0, 0xFFFD) or category in ("Cc", "Cf"):
                flags |= DROPPED
            elif x.isspace():
                flags |= SPACE  # str.split() separates words there
            decomposed = unicodedata.normalize("NFD", x)
            if decomposed != x:
                self.decomposition[c] = decomposed
            elif category == "Mn":
                flags |= MARK
            if 33 <= c <= 47 or 58 <= c <= 64 or 91 <= c <= 96 or 123 <= c <= 126 or category[0] == "P":
                flags |= PUNCTUATION
            # Final sigma: a capital sigma after a cased letter, with only case-ignorable characters in between.
            alone = (x + "\u03a3").lower()[-1] == "\u03c2"
            after_cased = ("A" + x + "\u03a3").lower()[-1] == "\u03c2"
            if flags & (DROPPED | SPACE):
                pass  # removed before lower-casing
            elif alone:
                flags |= CASED
            elif after_cased:
                flags |= IGNORABLE
            self.flags[c] = flags
            if x.lower() != x:
                self.lower[c] = x.lower()
            if unicodedata.combining(x) and c not in self.decomposition:
                self.combining[c] = unicodedata.combining(x)


def check(source):
    """Checks the assumptions of the C code."""
    for c in CODE_POINTS:
        if source.flags[c] & (SPACE | PUNCTUATION | DROPPED):
            assert c not in source.combining, hex(c)
    for c, text in source.lower.items():
        assert len(text) == 1 or c == 0x130 and text == "i\u0307", hex(c)
    for c, text in source.decomposition.items():
        assert len(text) <= 4, hex(c)
        assert text == unicodedata.normalize("NFD", chr(c)), hex(c)
        classes = [source.combining.get(ord(x), 0) for x in text]
        assert classes[0] == 0 or all(classes) and classes == sorted(classes)
    assert all(value == unicodedata.combining(chr(c)) for c, value in source.combining.items())


def property_rows(sources):
    def key(c):
        return tuple(s.flags[c] | (REORDERED if c in s.combining else 0) for s in sources)

    rows = []
    for c in CODE_POINTS:
        k = key(c)
        if not any(k):
            continue
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == k:
            rows[-1][1] = c
        else:
            rows.append([c, c, k])
    return ["{0x%X, 0x%X, {%d, %d}}" % (first, last, *k) for first, last, k in rows]


def both(sources, get):
    """{code point: [(mask of sources, value), ...]}"""
    result = {}
    for c in CODE_POINTS:
        values = {}
        for bit, source in enumerate(sources):
            value = get(source, c)
            if value is not None:
                values[value] = values.get(value, 0) | 1 << bit
        if values:
            assert len(values) == 1, hex(c)
            result[c] = next((mask, value) for value, mask in values.items())
    return result


def lowercase_rows(sources):
    table = both(sources, lambda s, c: ord(s.lower[c]) - c if len(s.lower.get(c, "")) == 1 else None)
    rows = []  # first, last, step, delta, mask
    for c, (mask, delta) in table.items():
        if rows and rows[-1][3:] == [delta, mask]:
            gap = c - rows[-1][1]
            if gap in (1, 2) and rows[-1][2] in (0, gap):
                rows[-1][1:3] = [c, gap]
                continue
        rows.append([c, c, 0, delta, mask])
    return ["{0x%X, 0x%X, %d, %d, %d}" % (a, b, step or 1, delta, mask) for a, b, step, delta, mask in rows]


def decomposition_rows(sources):
    """Ranges may contain other code points that are assigned: these will never have a decomposition."""
    rows = []  # first, last, mask
    for c, (mask, _) in both(sources, lambda s, c: s.decomposition.get(c)).items():
        if rows and rows[-1][2] == mask and all(unicodedata.category(chr(x)) != "Cn" for x in range(rows[-1][1] + 1, c)):
            rows[-1][1] = c
        else:
            rows.append([c, c, mask])
    return ["{0x%X, 0x%X, %d}" % tuple(row) for row in rows]


def lines(rows, width=108):
    out, line = [], "\t"
    for row in rows:
        if len(line.expandtabs(8)) + len(row) + 2 > width:
            out.append(line.rstrip())
            line = "\t"
        line += row + ", "
    return "\n".join(out + [line.rstrip()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out")
    parser.add_argument("--check")
    options = parser.parse_args()
    sources = [HuggingFace(), Google()]
    for source in sources:
        check(source)
    tables = [("struct unicode_property_row", "unicode_property_rows", property_rows(sources)),
              ("struct unicode_lowercase_row", "unicode_lowercase_rows", lowercase_rows(sources)),
              ("struct unicode_decomposition_row", "unicode_decomposition_rows", decomposition_rows(sources))]
    text = "/* Made by dev/unicode_tables.py (tokenizers %s, Unicode %s of Python %d.%d); do not edit. */\n" % (
        tokenizers.__version__, unicodedata.unidata_version, *sys.version_info[:2])
    text += '#include "text/unicode.h"\n\n/* clang-format off */\n'
    for kind, name, rows in tables:
        text += "\nconst %s %s[] = {\n%s\n};\nconst int %s = %d;\n" % (
            kind, name, lines(rows), name.replace("_rows", "_row_count"), len(rows))
    if options.out:
        with open(options.out, "w", encoding="ascii") as file:
            file.write(text)
    for kind, name, rows in tables:
        print(name, len(rows), "rows", file=sys.stderr)
    if options.check:
        with open(options.check, encoding="ascii") as file:
            old = file.read()
        # The first line names versions: another version with the same facts is fine.
        if old.split("\n", 1)[1] != text.split("\n", 1)[1]:
            sys.exit("'%s' differs from what tokenizers %s says" % (options.check, tokenizers.__version__))
        print("'%s' agrees" % options.check, file=sys.stderr)


if __name__ == "__main__":
    main()
