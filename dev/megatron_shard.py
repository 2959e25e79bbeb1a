"""Megatron's .bin/.idx in numpy, written from docs/formats.md alone: the independent reader and writer.

    python dev/megatron_shard.py compare PREFIX VOCAB TEXT...   ids of our shard against Hugging Face's tokenizer
    python dev/megatron_shard.py show PREFIX                    counts and the first sentences
"""
import json
import sys

import numpy

TYPES = {4: "<i4", 8: "<u2"}


def read_shard(prefix):
    """A list of documents, each a list of sentences, each an array of ids."""
    index = open(prefix + ".idx", "rb").read()
    assert index[:9] == b"MMIDIDX\0\0" and int.from_bytes(index[9:17], "little") == 1
    dtype = numpy.dtype(TYPES[index[17]])
    sentences, ends = (int(n) for n in numpy.frombuffer(index, "<u8", 2, 18))
    lengths = numpy.frombuffer(index, "<i4", sentences, 34)
    offsets = numpy.frombuffer(index, "<i8", sentences, 34 + 4 * sentences)
    bounds = numpy.frombuffer(index, "<i8", ends, 34 + 12 * sentences)
    assert len(index) == 34 + 12 * sentences + 8 * ends and bounds[0] == 0 and bounds[-1] == sentences
    ids = numpy.fromfile(prefix + ".bin", dtype)
    assert ids.size == lengths.sum()
    first = offsets // dtype.itemsize
    take = lambda s: ids[first[s]:first[s] + lengths[s]]
    return [[take(s) for s in range(a, b)] for a, b in zip(bounds, bounds[1:])]


def write_shard(prefix, documents, vocab_size):
    code = 8 if vocab_size < 65500 else 4
    dtype = numpy.dtype(TYPES[code])
    sentences = [sentence for document in documents for sentence in document]
    lengths = numpy.array([len(s) for s in sentences], "<i4")
    offsets = numpy.zeros(len(sentences), "<i8")
    offsets[1:] = numpy.cumsum(lengths.astype("<i8"))[:-1] * dtype.itemsize
    bounds = numpy.cumsum([0] + [len(d) for d in documents]).astype("<i8")
    with open(prefix + ".bin", "wb") as file:
        for sentence in sentences:
            file.write(numpy.asarray(sentence, dtype).tobytes())
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + bytes([code]))
        file.write(numpy.array([len(sentences), len(bounds)], "<u8").tobytes())
        file.write(lengths.tobytes() + offsets.tobytes() + bounds.tobytes())


def read_sentences(path):
    """One sentence per line, blank lines between documents."""
    documents = [[]]
    for line in open(path, encoding="utf-8", newline="\n"):
        if line.strip():
            documents[-1].append(line)
        elif documents[-1]:
            documents.append([])
    return [d for d in documents if d]


def tokenizer_of(vocab):
    from tokenizers import BertWordPieceTokenizer
    from tokenizers.models import WordPiece
    words = [line.rstrip() for line in open(vocab, encoding="utf-8", newline="\n")]
    cased = "uncased" not in vocab and "chinese" not in vocab
    return BertWordPieceTokenizer({w: i for i, w in enumerate(words)}, lowercase=not cased), words


def compare(prefix, vocab, paths):
    """Our shard must have been prepared with --text_form sentences from the same files in the same order."""
    tokenizer, _ = tokenizer_of(vocab)
    expected = []
    for path in paths:
        for document in read_sentences(path):
            ids = [tokenizer.encode(s, add_special_tokens=False).ids for s in document]
            ids = [i for i in ids if i]
            if ids:
                expected.append(ids)
    ours = [[s.tolist() for s in d] for d in read_shard(prefix)]
    assert ours == expected, "the shard differs"
    description = json.load(open(prefix + ".json"))
    assert description["documents"] == len(ours)
    assert description["sentences"] == sum(map(len, ours))
    assert description["tokens"] == sum(len(s) for d in ours for s in d)
    print(f"{len(ours)} documents, {description['sentences']} sentences, {description['tokens']} tokens: equal")


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        compare(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        documents = read_shard(sys.argv[2])
        print(len(documents), "documents,", sum(map(len, documents)), "sentences,",
              sum(len(s) for d in documents for s in d), "tokens")
        for sentence in documents[0][:5]:
            print(sentence.tolist())
