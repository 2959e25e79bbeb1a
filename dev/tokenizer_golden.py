#!/usr/bin/env python3
"""What Hugging Face's and Google's BERT tokenizers make of every code point and of hard cases, for make test.

    tokenizer_golden.py code_points tests/golden/tokenizer_code_points.txt
    tokenizer_golden.py cases tests/golden/tokenizer_cases.json

Hugging Face's answers come from the tokenizers library, Google's from google_tokenizer.py (itself checked against
lines tokenized by the original). Prints the row for tests/golden/MANIFEST.

code_points: a line for each block of 4096 code points, "FIRST CRC CRC ...", with a CRC-32 (zlib's) for each mode in the order
of MODES. It covers the words of every code point x other than surrogates, alone and as "axb": each word is
followed by a space, each text by a line feed.

cases: {"vocab": [...], "cases": [{"text": ..., MODE: [id, ...] or {"ids", "begin", "end"} (bytes)}, ...]}
"""
import hashlib
import json
import platform
import random
import sys
import unicodedata
import zlib

import google_tokenizer
import tokenizers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

# lowercase, strip_accents, handle_chinese_chars; None: Google's
MODES = {
    "uncased": (True, True, True),
    "cased": (False, False, True),
    "uncased_accents": (True, False, True),
    "cased_stripped": (False, True, True),
    "uncased_no_chinese": (True, True, False),
    "google_uncased": True,
    "google_cased": False,
}
WITH_OFFSETS = ("uncased", "cased")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SEED = 11


def normalizer(mode):
    lowercase, strip_accents, chinese = MODES[mode]
    return normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=chinese, strip_accents=strip_accents,
                                      lowercase=lowercase)


def words_of(mode):
    """A function from text to its words."""
    if isinstance(MODES[mode], bool):
        return lambda text: list(google_tokenizer.words(text, MODES[mode]))
    normalize, split = normalizer(mode).normalize_str, pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    return lambda text: [word for word, _ in split(normalize(text))]


def code_points():
    functions = [words_of(mode) for mode in MODES]
    lines = ["# first " + " ".join(MODES)]
    for first in range(0, 0x110000, 4096):
        crcs = []
        for words in functions:
            crc = 0
            for c in range(first, first + 4096):
                if 0xD800 <= c <= 0xDFFF:
                    continue
                for text in (chr(c), "a" + chr(c) + "b"):
                    crc = zlib.crc32(("".join(word + " " for word in words(text)) + "\n").encode(), crc)
            crcs.append(crc)
        lines.append("%06X " % first + " ".join("%08x" % crc for crc in crcs))
    return "\n".join(lines) + "\n"


# Marks that survive the stripping of accents and have to be reordered, marks that do not survive, and their bases.
MARKS = "\u0300\u0301\u0307\u0323\u0334\u0345\u0591\u064B\u0711\u08D4\u08E1\u093C\u0941\u0F71\u0F72\u0F73\u0F74\u1B44" \
    "\u1BAA\u1DFB\u302E\u302F\u3099\uA953\U0001D165\U0001D16D\U0001D15E\U000116B6"
TRICKY = "aAbBzZ09\u0130\u0131\u00C5\u00E9\u1E9E\u00DF\u03A3\u03C2\u0391\u0041\u212B\u01C5\u2126\uFB01\u2260\u037E\u1FEF\uAC00" \
    "\uD7A3\u1100\u4E00\u9FFF\uF900\U00020000\U0002B820\U0002B920\U0002F800\u3042\u3000\u00A0\u2028\u0085\u00AD\u200D\uFEFF\uFFFD" \
    "\uE000\U000F0000\u0378\x00\x07\x0B\t\r\n '.-,[]\u2019\u00B7\u166D\U00010400\U00016E40\U00010D50\uA7CB\U00011938"

TEXTS = [
    "", " ", "\n", "Hello World!", "hello,world", "  two  spaces  ", "unaffable", "UNAFFABLE", "helloing", "xq xqx",
    "na\u00EFve caf\u00E9 \u00C5ngstr\u00F6m", "nai\u0308ve", "\u0301abc", "a\u0301", "abc \u0301 def", "\u0130stanbul \u0131I",
    "a\u0323\u0307b", "a\u0307\u0323b", "d\u0323\u0307", "\u1E9E \u00DF \u01C5 \u2126 \u212B", "\u2260 a\u2260b 1\u22602",
    "\u03A3\u0391\u03A3", "\u0391\u03A3", "\u03A3", "\u0391\u03A3.", "\u0391\u03A3.\u0391", "\u0391\u03A3'\u0391", "\u0391'\u03A3", "1\u03A3",
    "\u0391\u00AD\u03A3", "\u0391\u03A3\u4E00\u0391", "\u0391\u0301\u03A3\u0301", "\u0391\u03A3\u2028\u0391", "\u0391.\u03A3 \u0391\u03A3-\u03A3\u0391",
    "\uD55C\uAD6D\uC5B4", "\uAC00", "\u4E2D\u6587abc\u5B57", "\u4E2D \u6587", "a\u4E2Db", "\uF900\uFA0E", "\U0002B820 \U0002B920", "\u3042\u4E9C",
    "x\u302E\u0323", "x\u302E\u0334y", "\u0344\u302E", "\u0F73\u0F71\u302E", "\u2260\u302E\u0334", "\u0941\u302Ex", "x\u302E\u0941\u08D4",
    "\U0001D15E\U0001D165", "\U0001D160", "\u08D4\u0301\u302E", "a.\u302E\u0334,b", "\U00011938", "\u1B44\u0300\u1BAA",
    "a\u200Db", "a\u00ADb", "\uFEFFa", "a\x00b", "\x07", "a\x0Bb", "a\x85b", "a\u2028b\u2029c", "a\u00A0b\u3000c\u1680d",
    "\uE000a\uE000", "\U000F0000", "a\U0010FFFDb", "\u0378", "\uFFFD", "a\uFFFDb", "\U000110CD", "\u0890a", "\u180Ea",
    "a\u166Db", "\U00010D50\U00016E40\U00010400\uA7CB", "\u1C89", "\u2E43\u2E52", "\U0001FB00", "\U0001F600\U0001F468\u200D\U0001F469",
    "[MASK]", "a[MASK]b", "[mask]", "[MASK", "MASK]", "[[MASK]]", "[MASK][MASK]", "[CLS] a [SEP]", "[UNK]", "[PAD].",
    "a [MASK]\u0301 b", "x\u302E[MASK]\u0334", "[ MASK ]", "\u0391\u03A3[MASK]\u0391", "[MA\u0301SK]", "\u3010MASK\u3011",
    "a" * 100, "a" * 101, "a" * 200, "a" * 201, "\u00E9" * 100, "\u00E9" * 101, "a" * 99 + "\u0301" * 5 + "b", "a" * 100 + "q",
    "\uAC00" * 50, "\uAC00" * 51, "a" * 100 + "." + "a" * 101, "\u4E00" * 3, "don't", "don\u2019t", "3.14", "a-b_c", "$5 `x` ~y ^z",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "abcdefghijklmno", "abcdefghijklmnop", "abcdefghijklmnopq", "Abcdefghijklmno ABCDEFGH",
    "abcdefgh abcdefghi", "h\u00E9lloing h\u00C9LLO", "hello\u0301", "\u0301", "hello\u0301\u4E00", "\u00E9", "e\u0301\u0301.", "##a #a",
]


def case_texts():
    rng = random.Random(SEED)
    texts = list(TEXTS)
    for i in range(120):
        alphabet = [MARKS + "xyz\u00C5\u00E9 \u0391", TRICKY, TRICKY + MARKS][i % 3]
        texts.append("".join(rng.choice(alphabet) for _ in range(rng.choice([3, 6, 12]))))
    return texts


def case_vocab(texts):
    """Most characters that the texts are turned into, as words and as continuations, and a few longer entries. Entries that no
    text can match, such as upper case in the uncased modes, do no harm; some characters are left out to get [UNK]."""
    characters = set("abcdefghijklmnopqrstuvwxyz0123456789" + MARKS)
    for text in texts:
        for mode in MODES:
            for word in words_of(mode)(text):
                characters.update(word)
    characters -= set("\U00020000\u0378")
    ordered = sorted(x for x in characters if not x.isspace())
    vocab = SPECIAL[:1] + ["un", "##aff", "##able", "hello", "##ing", "##q"] + SPECIAL[1:] + ordered
    return vocab + ["##" + x for x in ordered if x not in "q\u9FFF"] + ["world", "##\u0301\u0301", "e\u0301", "##abc"]


def byte_offsets(text, offsets):
    starts = [0]
    for x in text:
        starts.append(starts[-1] + len(x.encode()))
    return [starts[a] for a, _ in offsets], [starts[b] for _, b in offsets]


def cases():
    texts = case_texts()
    vocab = case_vocab(texts)
    ids = {entry: i for i, entry in enumerate(vocab)}
    assert len(ids) == len(vocab)
    rows = [{"text": text} for text in texts]
    for mode, settings in MODES.items():
        if isinstance(settings, bool):
            for row in rows:
                row[mode] = [ids[x] for x in google_tokenizer.tokenize(row["text"], ids, settings)]
            continue
        tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
        tokenizer.normalizer = normalizer(mode)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.add_special_tokens([AddedToken(x, special=True, normalized=False) for x in SPECIAL])
        for row in rows:
            encoding = tokenizer.encode(row["text"], add_special_tokens=False)
            if mode in WITH_OFFSETS:
                begin, end = byte_offsets(row["text"], encoding.offsets)
                row[mode] = {"ids": encoding.ids, "begin": begin, "end": end}
            else:
                row[mode] = encoding.ids
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    return '{"vocab":%s,\n"cases":[\n%s\n]}\n' % (json.dumps(vocab, separators=(",", ":")), lines)


def main():
    what, path = sys.argv[1:]
    text = {"code_points": code_points, "cases": cases}[what]()
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    print("%s | dev/tokenizer_golden.py %s | Python %s (Unicode %s), tokenizers %s | %s | %s" % (
        path.rsplit("/", 1)[-1], what, platform.python_version(), unicodedata.unidata_version, tokenizers.__version__,
        SEED if what == "cases" else "none", hashlib.sha256(text.encode()).hexdigest()))


if __name__ == "__main__":
    main()
