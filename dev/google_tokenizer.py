"""The rules of google-research/bert's tokenization.py in a few lines, as an oracle for COMPAT_GOOGLE.

Written from the description of the algorithm; Unicode properties come from the running Python (3.11: Unicode 14), as in
the original. Checked against lines tokenized by the original (compare_tokenizers.py --google_golden).
"""
import unicodedata

IDEOGRAPHS = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
              (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]


def is_space(x):
    return x in " \t\n\r" or unicodedata.category(x) == "Zs"


def is_dropped(x):
    return not is_space(x) and (x in "\0\uFFFD" or unicodedata.category(x) in ("Cc", "Cf"))


def is_punctuation(x):
    return x.isascii() and x.isprintable() and not x.isalnum() and x != " " or unicodedata.category(x)[0] == "P"


def words(text, lowercase):
    text = "".join(" " if is_space(x) else x for x in text if not is_dropped(x))
    text = "".join(" %s " % x if any(a <= ord(x) <= b for a, b in IDEOGRAPHS) else x for x in text)
    for run in text.split():
        if lowercase:
            run = unicodedata.normalize("NFD", run.lower())
            run = "".join(x for x in run if unicodedata.category(x) != "Mn")
        yield from "".join(" %s " % x if is_punctuation(x) else x for x in run).split()


def pieces(word, vocab, unknown="[UNK]", limit=200):
    if len(word) > limit:
        return [unknown]
    result, begin = [], 0
    while begin < len(word):
        for end in range(len(word), begin, -1):
            piece = ("##" if begin else "") + word[begin:end]
            if piece in vocab:
                break
        else:
            return [unknown]
        result.append(piece)
        begin = end
    return result


def tokenize(text, vocab, lowercase=True):
    return [piece for word in words(text, lowercase) for piece in pieces(word, vocab)]
