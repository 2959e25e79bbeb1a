"""Texts whose sentences people have marked, for dev/measure_sentences.py: one sentence per line, a blank line between
documents.

    gold_sentences.py golden english_golden_rules.py    the 48 rules of pySBD and pragmatic_segmenter (its source package,
                                                        benchmarks/)
    gold_sentences.py segtok segmenter_test.py          segtok's examples (its source package), one document
    gold_sentences.py conll FILE...                     documents of a file of tokens (BC5CDR, CoNLL), joined to text
    gold_sentences.py tsv COLUMN FILE                   single sentences of a column, ten per document (MRPC; CoLA: column 3)

For the last two, documents in which a sentence begins in lower case or ends without punctuation are left out: truncated sentences
and text that is not a sentence say nothing about boundaries.
"""
import re
import sys


def put_together(tokens):
    """Joins tokens to a text, with spaces as people write them."""
    text = " ".join(tokens)
    text = re.sub(r" ([,.;:?!%)\]}])", r"\1", text)
    text = re.sub(r"([(\[{$]) ", r"\1", text)
    text = re.sub(r" n 't\b", "n't", re.sub(r" '(s|t|re|ve|ll|d|m)\b", r"'\1", text))
    text = text.replace(" - ", "-").replace(" / ", "/")
    pieces, opens = text.split('"'), True
    text = pieces[0]
    for i, piece in enumerate(pieces[1:], 2):
        # With an odd number, the last quote closes one that was opened in an earlier sentence.
        opens = opens and not (i == len(pieces) and not piece.strip(" .,!?'"))
        text = (text.rstrip() + ' "' if opens else text.rstrip() + '"') + (piece.lstrip() if opens else piece)
        opens = not opens
    return text.strip()


def whole(document):
    return all(not s[0].islower() and s.rstrip("\"')]}”’")[-1:] in set(".!?") for s in document)


def conll(paths):
    for path in paths:
        document, tokens = [], []
        with open(path, encoding="utf-8") as file:
            for line in [*file, "\n", "-DOCSTART-\n"]:
                if line.startswith("-DOCSTART-"):
                    if document and whole(document):
                        yield document
                    document, tokens = [], []
                elif line.strip():
                    tokens.append(line.split()[0])
                elif tokens:
                    document.append(put_together(tokens))
                    tokens = []


def tsv(column, path):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    sentences = [put_together(row[int(column)].split()) for row in rows if len(row) > int(column)]
    sentences = [s for s in sentences if s and whole([s])]
    return [sentences[i:i + 10] for i in range(0, len(sentences), 10)]


def golden(path):
    rules = {}
    with open(path, encoding="utf-8") as file:
        exec(file.read(), rules)  # a list of pairs
    return [[" ".join(s.split()) for s in sentences] for _, sentences in rules["GOLDEN_EN_RULES"]]


def segtok(path):
    with open(path, encoding="utf-8") as file:
        return [re.search(r'OSPL = """(.*?)"""', file.read(), re.S).group(1).split("\n")]


kind, *arguments = sys.argv[1:]
documents = {"golden": golden, "segtok": segtok, "tsv": tsv, "conll": lambda *paths: conll(paths)}[kind](*arguments)
print("\n\n".join("\n".join(document) for document in documents))
