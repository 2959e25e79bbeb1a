#!/usr/bin/env python3
"""What Hugging Face's tokenizers and sentencepiece make of hard texts with small Unigram vocabularies, for make test.

    unigram_golden.py tests/golden/unigram.json

Trains vocabularies on the sentences below. Prints the row for tests/golden/MANIFEST.

{"texts": [...],
 "tokenizers": [{"name", "json": a tokenizer.json's text, "results": [[[id, begin, end], ...] for each text]}, ...],
 "sentencepiece": [{"name", "model": its bytes as code points, "results": [[id, ...] for each text]}, ...]}
Offsets are bytes.
"""
import hashlib
import io
import json
import platform
import random
import sys
import tempfile

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2 as model_pb2
from tokenizers import Regex, Tokenizer, models, normalizers as n, pre_tokenizers as p

SEED = 4
SENTENCES = """The cats and the dogs sat on the mats and ate the fish.
Where there is a will there is a way, and the way is there.
In the beginning there was nothing but water and the wind.
Der Hund und die Katze sitzen im Garten und essen den Fisch.
Où est la bibliothèque? L'été, les élèves y étudient à côté.
我们在图书馆里看书。他们在学校里学习中文。我们的学校在北京。
図書館で本を読みます。学校で日本語を勉強します。
도서관에서 책을 읽습니다. 학교에서 한국어를 배웁니다.
Мы читаем книги в библиотеке. Они учатся в школе.
الكتاب في المكتبة والمدرسة
The numbers 10, 20, 30, 40 and 50 are ten, twenty, thirty, forty and fifty.""".split("\n")
# original, replacement: full width, composition, compatibility, white space, removal, sequences
RULES = [("Ａ", "A"), ("ｔ", "t"), ("，", ","), ("ﬁ", "fi"), ("™", "TM"), ("½", "1⁄2"), ("ﷺ", "صلى الله"), ("\u00a0", " "), ("\u3000", " "),
         ("\t", " "), ("\n", " "), ("\u200b", " "), ("\u2581", " "), ("\u0001", ""), ("\u00ad", ""), ("e\u0301", "é"), ("a\u0300", "à"),
         ("é\u0327", "ȩ\u0301"), ("…", "..."), ("\u1100\u1161", "가"), ("C", "c"), ("\ufffd", " ")]
PIECES = ["The", "the", "cat", "s", " ", "  ", "\u00a0", "\t", "\u0301", "\u0300", "e", "a", "é", "ﬁ", "™", "½", "ﷺ", "…", "\u0001", "\u00ad",
          "\u200d", "▁", "\u1100", "\u1161", "我们", "图书馆", "，", "Ａ", "库", "😀", "\u2764\ufe0f", "<unk>", "<s>", "<url>", "\ufffd", "\x00",
          "\r\n", "İ", "Σ", "Ⅻ", "\u0600", "x"]


def texts():
    rng = random.Random(SEED)
    return ["", " ", "a", "\u0001", "\u0001cats", " the  cats ", "cats\u0001\u00ad dogs"] + SENTENCES + [
        "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 9))) for _ in range(60)]


def train(**options):
    out = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        for original, replacement in RULES:
            rules.write("%s\t%s\n" % tuple(" ".join("%X" % ord(c) for c in x) for x in (original, replacement)))
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES * 4), model_writer=out, normalization_rule_tsv=rules.name, num_threads=1,
            hard_vocab_limit=False, minloglevel=2, **options)
    return out.getvalue()


def tokenizer(model, normalizer, pre_tokenizer, byte_fallback=False):
    proto = model_pb2.ModelProto()
    proto.ParseFromString(model)
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(piece.piece, piece.score) for piece in proto.pieces[3:]] + [("<mask>", 0.0)]
    t = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=byte_fallback))
    charsmap = [n.Precompiled(proto.normalizer_spec.precompiled_charsmap)]
    t.normalizer = n.Sequence(charsmap + normalizer if normalizer is not None else [])
    t.pre_tokenizer = pre_tokenizer
    return t


def results_of(t):
    out = []
    for text in texts():
        at = [len(text[:i].encode()) for i in range(len(text) + 1)]
        encoding = t.encode(text, add_special_tokens=False)
        out.append([[i, at[b], at[e]] for i, (b, e) in zip(encoding.ids, encoding.offsets)])
    return out


def main():
    plain = train(vocab_size=200)
    fallback = train(vocab_size=420, byte_fallback=True, character_coverage=0.98)
    symbols = train(vocab_size=200, user_defined_symbols=["<url>", "图书馆"], add_dummy_prefix=False)
    spaces = train(vocab_size=200, remove_extra_whitespaces=False, split_by_whitespace=False)
    suffix = train(vocab_size=200, treat_whitespace_as_suffix=True)
    always = p.Metaspace(prepend_scheme="always")
    tokenizer_list = {
        "transformers 5": tokenizer(plain, [], p.Sequence([p.WhitespaceSplit(), always])),
        "transformers 4": tokenizer(plain, [n.Strip(left=False), n.Replace(Regex(" {2,}"), "▁")], always),
        "first": tokenizer(plain, [n.Strip()], p.Metaspace(prepend_scheme="first")),
        "never": tokenizer(plain, [n.Replace("the", "x y")], p.Metaspace(prepend_scheme="never", split=False)),
        "bytes": tokenizer(fallback, [n.Lowercase()], always, byte_fallback=True),
        "NFC": tokenizer(plain, [n.NFC()], always),
        "NFD": tokenizer(plain, [n.NFD(), n.StripAccents()], always),
        "NFKC": tokenizer(plain, [n.NFKC(), n.Prepend("▁")], p.Metaspace(prepend_scheme="never")),
        "NFKD": tokenizer(plain, [n.NFKD()], always),
        "nothing": tokenizer(plain, None, None),
    }
    sentencepiece_list = {"plain": plain, "bytes": fallback, "symbols": symbols, "spaces": spaces, "suffix": suffix}
    golden = {
        "texts": texts(),
        "tokenizers": [{"name": name, "json": t.to_str(), "results": results_of(t)} for name, t in tokenizer_list.items()],
        "sentencepiece": [
            {"name": name, "model": model.decode("latin-1"),
             "results": sentencepiece.SentencePieceProcessor(model_proto=model).encode(texts())}
            for name, model in sentencepiece_list.items()],
    }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")
    with open(sys.argv[1], "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    print("unigram.json | dev/unigram_golden.py | Python %s, tokenizers %s, sentencepiece %s | %d | %s" % (
        platform.python_version(), tokenizers.__version__, sentencepiece.__version__, SEED, digest))


if __name__ == "__main__":
    main()
