"""The Python package: python3 -m unittest discover -s python/tests, with the package on the path."""

from __future__ import annotations

import copy
import io
import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import numpy as np

import bertc
import small_model

TEXTS = [
    "The man sleeps.",
    "",
    "a very good film!",
    "the dogs   unable, 日本 [MASK] é",
    "the woman was not sleeping? the cat eats " * 3,
]
LABELS = ["bad", "so-so", "good"]


def setUpModule() -> None:
    global room, plain, mood, plain_path, mood_path, tags_path
    # Python takes no handler where the signal is ignored, as shells have it for what they start with &.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    room = tempfile.TemporaryDirectory()
    plain_path, mood_path, tags_path = (os.path.join(room.name, name) for name in ("plain", "mood", "tags"))
    plain = small_model.write_model(plain_path, "BertModel")
    mood = small_model.write_model(mood_path, "BertForSequenceClassification", LABELS)
    small_model.write_model(tags_path, "BertForTokenClassification", ["O", "B-X", "I-X"])


def tearDownModule() -> None:
    room.cleanup()


def word_ids(*words: str) -> list[int]:
    return [small_model.WORDS.index(word) for word in words]


class Tokenizers(unittest.TestCase):
    def setUp(self) -> None:
        self.tokenizer = bertc.Tokenizer(plain_path)

    def test_ids(self) -> None:
        encoding = self.tokenizer.encode(TEXTS)
        self.assertEqual(len(encoding), len(TEXTS))
        self.assertEqual(encoding.ids.dtype, np.int32)
        self.assertEqual(encoding[0].tolist(), word_ids("[CLS]", "the", "man", "sleeps", ".", "[SEP]"))
        self.assertEqual(encoding[1].tolist(), word_ids("[CLS]", "[SEP]"))
        self.assertEqual(
            encoding[3].tolist(),
            word_ids("[CLS]", "the", "dog", "##s", "un", "##able", ",", "日", "本", "[MASK]", "e", "[SEP]"),
        )
        self.assertEqual([ids.tolist() for ids in encoding], [encoding[i].tolist() for i in range(len(TEXTS))])
        self.assertEqual(encoding[-1].tolist(), encoding[len(TEXTS) - 1].tolist())
        with self.assertRaises(IndexError):
            encoding[len(TEXTS)]

    def test_offsets_are_characters(self) -> None:
        text = "日 the é\U0001f600 dogs"
        encoding = self.tokenizer.encode([text], offsets=True)
        pieces = [text[begin:end] for begin, end in encoding.offsets]
        self.assertEqual(pieces, ["", "日", "the", "é\U0001f600", "dog", "s", ""])

    def test_pairs_and_padding(self) -> None:
        encoding = self.tokenizer.encode(["the man", "a"], ["a dog sleeps", "cat"], max_length=7)
        self.assertEqual(encoding[0].tolist(), word_ids("[CLS]", "the", "man", "[SEP]", "a", "dog", "[SEP]"))
        padded = encoding.padded(8, pad_id=9)
        self.assertEqual(padded["input_ids"].shape, (2, 8))
        self.assertEqual(padded["input_ids"][1].tolist(), word_ids("[CLS]", "a", "[SEP]", "cat", "[SEP]") + [9] * 3)
        self.assertEqual(padded["token_type_ids"].tolist(), [[0, 0, 0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 0, 0, 0]])
        self.assertEqual(padded["attention_mask"].sum(axis=1).tolist(), [7, 5])
        with self.assertRaisesRegex(ValueError, "a text has 7 tokens"):
            encoding.padded(6)
        self.assertEqual(self.tokenizer.encode([]).padded()["input_ids"].shape, (0, 0))

    def test_nul_is_dropped(self) -> None:
        encoding = self.tokenizer.encode(["the\0man", "a dog", "\0"], offsets=True)
        self.assertEqual(encoding[1].tolist(), word_ids("[CLS]", "a", "dog", "[SEP]"))
        self.assertEqual(encoding[2].tolist(), word_ids("[CLS]", "[SEP]"))

    def test_words_and_text(self) -> None:
        ids = self.tokenizer.encode(["The dogs sleeping!"], special_tokens=False)[0]
        self.assertEqual(self.tokenizer.tokens(ids), ["the", "dog", "##s", "[UNK]", "!"])
        self.assertEqual(self.tokenizer.decode(ids), "the dogs!")
        self.assertEqual(self.tokenizer.decode(ids, skip_special_tokens=False), "the dogs [UNK]!")
        self.assertEqual(self.tokenizer.id("film"), small_model.WORDS.index("film"))
        self.assertIsNone(self.tokenizer.id("nothing"))
        self.assertEqual(len(self.tokenizer), len(small_model.WORDS))
        with self.assertRaises(IndexError):
            self.tokenizer.token(len(small_model.WORDS))

    def test_threads_make_the_same_ids(self) -> None:
        texts = [text * (1 + i % 40) for i, text in enumerate(TEXTS * 600)]
        one = bertc.Tokenizer(plain_path, threads=1).encode(texts, offsets=True)
        many = bertc.Tokenizer(plain_path, threads=4).encode(texts, offsets=True)
        np.testing.assert_array_equal(one.ids, many.ids)
        np.testing.assert_array_equal(one.starts, many.starts)
        np.testing.assert_array_equal(one.offsets, many.offsets)

    def test_settings(self) -> None:
        vocabulary = os.path.join(room.name, "vocab.txt")
        with open(vocabulary, "w", encoding="utf-8") as file:
            file.write("\n".join(small_model.WORDS))
        cased = bertc.Tokenizer(vocabulary, cased=True)
        self.assertEqual(cased.encode(["The [MASK]"])[0].tolist(), word_ids("[CLS]", "[UNK]", "[MASK]", "[SEP]"))
        plain = bertc.Tokenizer(vocabulary, cased=False, special_tokens_in_text=False)
        self.assertNotIn(4, plain.encode(["The [MASK]"])[0])
        with self.assertRaisesRegex(bertc.Error, "contradicts"):
            bertc.Tokenizer(plain_path, cased=True)

    def test_mistakes(self) -> None:
        for error, words, wrong in (
            (TypeError, "not bytes", lambda: self.tokenizer.encode(b"text")),  # type: ignore[arg-type]
            (TypeError, r"texts\[1\] is a NoneType", lambda: self.tokenizer.encode(["a", None])),
            (TypeError, r"pairs\[0\] is a int", lambda: self.tokenizer.encode(["a"], [1])),
            (ValueError, r"texts\[2\] has a lone surrogate", lambda: self.tokenizer.encode(["a", "b", "\ud800"])),
            (ValueError, "1 texts and 2 pairs", lambda: self.tokenizer.encode(["a"], ["a", "b"])),
            (ValueError, "max_length", lambda: self.tokenizer.encode(["a"], max_length=0)),
            (bertc.Error, "max_length is 1", lambda: self.tokenizer.encode(["a"], max_length=1)),
            (bertc.Error, r"ids\[1\] is 999", lambda: self.tokenizer.decode([1, 999])),
            (bertc.Error, "does not exist", lambda: bertc.Tokenizer("/nowhere")),
            (ValueError, "rules", lambda: bertc.Tokenizer(plain_path, rules="other")),
            (ValueError, "NUL", lambda: bertc.Tokenizer(os.path.join(plain_path, "vocab.txt\0.old"))),
            (TypeError, "cased must be True", lambda: bertc.Tokenizer(plain_path, cased="no")),
            (TypeError, "max_length must be an integer", lambda: self.tokenizer.encode(["a"], max_length="8")),
            (TypeError, "not float64", lambda: self.tokenizer.decode([9.7])),
            (TypeError, "token must be a string", lambda: self.tokenizer.id(None)),
            (ValueError, "NUL", lambda: self.tokenizer.id("the\0cat")),
            (TypeError, "copied", lambda: copy.copy(self.tokenizer)),
            # What would be another number if its upper bits were cut off.
            (ValueError, "out of range", lambda: self.tokenizer.encode(["a"], max_length=2**32 + 5)),
            (ValueError, "from 0 to", lambda: self.tokenizer.decode(np.array([2**32 + 9]))),
            (IndexError, "4294967305", lambda: self.tokenizer.token(2**32 + 9)),
        ):
            with self.assertRaisesRegex(error, words):
                wrong()

    def test_equals_transformers(self) -> None:
        try:
            from tokenizers import BertWordPieceTokenizer
        except ImportError:
            self.skipTest("the package tokenizers is not installed")
        other = BertWordPieceTokenizer(os.path.join(plain_path, "vocab.txt"), lowercase=True)
        encoding = self.tokenizer.encode(TEXTS, offsets=True)
        for i, text in enumerate(TEXTS):
            expected = other.encode(text)
            self.assertEqual(encoding[i].tolist(), expected.ids)
            places = encoding.offsets[encoding.starts[i] : encoding.starts[i + 1]]
            self.assertEqual([tuple(place) for place in places.tolist()], expected.offsets)


class Frame(list):
    """As a pandas.DataFrame: iterating over it gives the names of its columns."""

    columns = ["text"]


class Models(unittest.TestCase):
    def test_embeddings(self) -> None:
        model = bertc.Model(plain_path, precision="fp32", threads=2)
        encoding = model.tokenizer.encode(TEXTS, max_length=model.max_length)
        vectors = model.embed(TEXTS)
        self.assertEqual((vectors.dtype, vectors.shape), (np.float32, (len(TEXTS), small_model.HIDDEN)))
        for i, states in enumerate(model.encode(TEXTS)):
            expected = small_model.hidden_states(plain, encoding[i])
            np.testing.assert_allclose(states, expected, atol=2e-6)
            np.testing.assert_allclose(vectors[i], expected.mean(0), atol=2e-6)
        normalized = model.embed(TEXTS, normalize=True, dimensions=5)
        np.testing.assert_allclose(normalized, vectors[:, :5] / np.linalg.norm(vectors[:, :5], axis=1)[:, None], atol=1e-6)
        np.testing.assert_array_equal(model.embed(TEXTS[2:3]), vectors[2:3])
        np.testing.assert_array_equal(model.embed(iter(TEXTS)), vectors)
        np.testing.assert_array_equal(model.embed(["man sleeps."], prompt="the "), model.embed(["the man sleeps."]))
        self.assertEqual(model.embed([]).shape, (0, small_model.HIDDEN))
        self.assertIsNone(model.task)
        self.assertEqual(model.labels, [])

    def test_scores(self) -> None:
        with bertc.Model(mood_path, precision="fp32", threads=1) as model:
            self.assertEqual(model.task, "classification")
            self.assertEqual(model.labels, LABELS)
            encoding = model.tokenizer.encode(TEXTS, TEXTS[::-1], max_length=model.max_length)
            expected = np.stack(
                [
                    small_model.logits(mood, encoding[i], encoding.type_ids[encoding.starts[i] : encoding.starts[i + 1]])
                    for i in range(len(TEXTS))
                ]
            )
            np.testing.assert_allclose(model.scores(TEXTS, TEXTS[::-1], raw=True), expected, atol=5e-6)
            shares = np.exp(expected) / np.exp(expected).sum(1, keepdims=True)
            scores = model.scores(TEXTS, TEXTS[::-1])
            np.testing.assert_allclose(scores, shares, atol=2e-6)
            for row, answer in zip(scores, model.predict(TEXTS, TEXTS[::-1])):
                self.assertEqual(answer["label"], LABELS[row.argmax()])
                np.testing.assert_allclose([answer["probabilities"][label] for label in LABELS], row, atol=1e-6)

    def test_a_file_of_weights(self) -> None:
        with bertc.Model(os.path.join(plain_path, "model.safetensors"), threads=1) as model:
            self.assertEqual(len(model.tokenizer), len(small_model.WORDS))

    def test_tags(self) -> None:
        model = bertc.Model(tags_path, precision="fp32")
        answers = model.predict(TEXTS)
        self.assertEqual([len(answer["tags"]) for answer in answers][:2], [4, 0])
        with self.assertRaisesRegex(bertc.Error, "no scores of a whole text"):
            model.scores(TEXTS)

    def test_many_texts(self) -> None:
        model = bertc.Model(plain_path, precision="fp32", threads=2)
        once = model.embed(TEXTS)
        np.testing.assert_array_equal(model.embed(TEXTS * 1700), np.tile(once, (1700, 1)))

    def test_folder_that_truncates(self) -> None:
        path = os.path.join(room.name, "truncated")
        shutil.copytree(plain_path, path)
        small_model.write_sentence_files(path, truncate_dim=8)
        model, whole = bertc.Model(path, precision="fp32"), bertc.Model(plain_path, precision="fp32")
        self.assertEqual(model.embedding_size, 8)
        for pooling in (None, "mean", "cls"):
            wanted = whole.embed(TEXTS, pooling=pooling)
            np.testing.assert_array_equal(model.embed(TEXTS, pooling=pooling), wanted[:, :8])
            np.testing.assert_array_equal(model.embed(TEXTS, pooling=pooling, dimensions=20), wanted[:, :20])
        both = os.path.join(room.name, "both")
        shutil.copytree(plain_path, both)
        small_model.write_sentence_files(both, truncate_dim=40, modes=("mean", "max"))
        model = bertc.Model(both, precision="fp32")
        self.assertEqual(model.embed(TEXTS).shape, (len(TEXTS), 40))
        np.testing.assert_array_equal(model.embed(TEXTS, pooling="cls"), whole.embed(TEXTS, pooling="cls"))

    def test_mistakes(self) -> None:
        model = bertc.Model(plain_path, precision="fp32", threads=1)
        for error, words, wrong in (
            (bertc.Error, "nowhere", lambda: bertc.Model("/nowhere")),
            (bertc.Error, "unknown precision 'fp64'", lambda: bertc.Model(plain_path, precision="fp64")),
            (bertc.Error, "threads is -1", lambda: bertc.Model(plain_path, threads=-1)),
            (bertc.Error, "'no_model': no such file or folder .give a model folder", lambda: bertc.Model("no_model")),
            (bertc.Error, "not a model for a task", lambda: model.predict(["a"])),
            (bertc.Error, "no prompt 'query'", lambda: model.embed(["a"], prompt_name="query")),
            (bertc.Error, "unknown pooling", lambda: model.embed(["a"], pooling="median")),
            (bertc.Error, "dimensions is 33", lambda: model.embed(["a"], dimensions=33)),
            (ValueError, "dimensions must be", lambda: model.embed(["a"], dimensions=0)),
            (bertc.Error, r"texts\[1\] has .* tokens", lambda: model.embed(["a", "a " * 99], truncate=False)),
            (bertc.Error, r"texts\[700\] has .* tokens", lambda: model.embed(["a"] * 700 + ["a " * 99], truncate=False)),
            (bertc.Error, r"texts\[300\] has .* tokens", lambda: model.encode(["a"] * 300 + ["a " * 99], truncate=False)),
            (TypeError, "not bytes", lambda: model.embed(b"a")),
            (TypeError, "not dict", lambda: model.embed({"a": 1})),
            (TypeError, "not set", lambda: model.embed({"a", "b"})),
            (TypeError, "not Frame", lambda: model.embed(Frame(["text"]))),
            (TypeError, "both be a single string", lambda: model.scores("a", ["b"])),
            (TypeError, "not iterable", lambda: model.embed(None)),
            (TypeError, r"texts\[0\] is a float", lambda: model.embed([float("nan")])),
            (TypeError, "normalize must be True", lambda: model.embed(["a"], normalize="yes")),
            (TypeError, "dimensions must be an integer", lambda: model.embed(["a"], dimensions="8")),
            (TypeError, "pooling must be a string", lambda: model.embed(["a"], pooling=1)),
            (ValueError, "out of range", lambda: model.embed(["a"], dimensions=2**32 + 8)),
            (ValueError, "out of range", lambda: bertc.Model(plain_path, threads=2**32 + 1)),
            (ValueError, "NUL", lambda: bertc.Model(plain_path + "\0.old")),
            (TypeError, "not NoneType", lambda: bertc.Model(None)),
            (ValueError, "no layer 0", lambda: model.encode(["a"], layer=0)),
            (ValueError, "out of range", lambda: model.encode(["a"], layer=2**32 + 1)),
            (TypeError, "copied", lambda: copy.copy(model)),
            (TypeError, "pickled", lambda: pickle.dumps(model)),
        ):
            with self.assertRaisesRegex(error, words):
                wrong()
        with self.assertRaises(bertc.Error) as caught:
            model.predict(["a"])
        self.assertEqual(caught.exception.status, "usage")
        self.assertIn("bertc finetune", caught.exception.hint)
        self.assertEqual(str(pickle.loads(pickle.dumps(caught.exception))), str(caught.exception))

    def test_no_texts(self) -> None:
        model = bertc.Model(mood_path, precision="fp32", threads=1)
        self.assertEqual(model.scores([]).shape, (0, len(LABELS)))
        self.assertEqual(model.predict([]), [])
        self.assertEqual(bertc.Model(plain_path, precision="fp32", threads=1).encode([]), [])

    def test_closed(self) -> None:
        model = bertc.Model(mood_path, precision="fp32", threads=1)
        tokenizer = model.tokenizer
        model.close()
        model.close()
        for use in (
            lambda: model.scores(["a"]),
            lambda: model.predict([]),
            lambda: model.embed(["a"]),
            lambda: model.encode(["a"]),
            lambda: model.labels,
            lambda: model.max_length,
            lambda: model.__enter__(),
        ):
            with self.assertRaisesRegex(ValueError, "the model is closed"):
                use()
        self.assertIn("closed", repr(model))
        self.assertEqual(len(tokenizer.encode(["a"])), 1)

    def test_single_strings(self) -> None:
        plain_model, mood = bertc.Model(plain_path, precision="fp32", threads=1), bertc.Model(mood_path, precision="fp32", threads=1)
        text, pair = TEXTS[0], TEXTS[1]
        np.testing.assert_array_equal(plain_model.embed(text), plain_model.embed([text])[0])
        np.testing.assert_array_equal(plain_model.encode(text), plain_model.encode([text])[0])
        np.testing.assert_array_equal(mood.scores(text), mood.scores([text])[0])
        np.testing.assert_array_equal(mood.scores(text, pair), mood.scores([text], [pair])[0])
        self.assertEqual(mood.predict(text), mood.predict([text])[0])
        np.testing.assert_array_equal(plain_model.tokenizer.encode(text).ids, plain_model.tokenizer.encode([text]).ids)

    def test_control_characters_come_back(self) -> None:
        model = bertc.Model(plain_path, precision="fp32", threads=1)
        np.testing.assert_array_equal(model.embed("the\0 \1man"), model.embed("the man"))
        texts = bertc._library.TextArray(["a\0b", "\1\2"], "texts")
        self.assertEqual(texts.restored([{"text": "a\3b", "start": 0, "tags": ["\1"]}]), [{"text": "a\0b", "start": 0, "tags": ["\1"]}])
        with self.assertRaisesRegex(ValueError, "every other control character"):
            model.embed("".join(map(chr, range(128))))

    def test_close_waits(self) -> None:
        """close() returns only when the calls of other threads have ended, with what they ask for."""
        model = bertc.Model(plain_path, precision="fp32", threads=1)
        expected, results = model.embed(["the man"]), []
        entered, go = threading.Event(), threading.Event()
        real = bertc._library.call

        def slow(name: str, *arguments: object) -> None:
            entered.set()
            go.wait(60)
            real(name, *arguments)

        with unittest.mock.patch.object(bertc._library, "call", slow):
            user = threading.Thread(target=lambda: results.append(model.embed(["the man"])))
            user.start()
            entered.wait(60)
            closer = threading.Thread(target=model.close)
            closer.start()
            closer.join(0.3)
            self.assertTrue(closer.is_alive())
            go.set()
            user.join(60)
            closer.join(60)
        self.assertFalse(closer.is_alive())
        np.testing.assert_array_equal(results, [expected])

    def test_interrupted_within_a_call(self) -> None:
        """Ctrl-C is heard while a function of the library runs, which does not hear it itself."""
        model = bertc.Model(plain_path, precision="fp32", threads=1)
        entered, go = threading.Event(), threading.Event()
        heard: list[str] = []
        real = bertc._library.call

        def slow(name: str, *arguments: object) -> None:
            entered.set()
            try:
                go.wait(60)
            except KeyboardInterrupt:  # it was called in the main thread
                heard.append(name)
            real(name, *arguments)

        def interrupt() -> None:
            entered.wait(60)
            os.kill(os.getpid(), signal.SIGINT)

        with unittest.mock.patch.object(bertc._library, "call", slow):
            threading.Thread(target=interrupt).start()
            with self.assertRaises(KeyboardInterrupt):
                model.embed(["the man"])
            self.assertFalse(go.is_set())
            go.set()
        self.assertEqual(heard, [])
        model.close()

    def test_closed_while_a_thread_computes(self) -> None:
        for _ in range(5):
            model = bertc.Model(plain_path, precision="fp32", threads=1)
            failures: list[BaseException] = []

            def compute(model: bertc.Model = model, failures: list[BaseException] = failures) -> None:
                try:
                    while True:
                        model.embed(TEXTS * 100)
                except BaseException as error:
                    failures.append(error)

            thread = threading.Thread(target=compute)
            thread.start()
            time.sleep(0.05)
            model.close()
            thread.join()
            self.assertEqual([str(failure) for failure in failures], ["the model is closed"])

    def test_interrupted_at_once(self) -> None:
        long = " ".join(TEXTS) * 10
        with bertc.Model(plain_path, precision="fp32", threads=1) as model:
            model.embed([long] * 4)
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            began = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                model.embed([long] * 100_000)
            self.assertLess(time.monotonic() - began, 20)  # it would take minutes
            self.assertEqual(model.embed(TEXTS).shape[0], len(TEXTS))

    def test_interrupted_while_texts_are_taken_over(self) -> None:
        """A second of steps that Python cannot interrupt was the rule here; each is short now."""
        texts = [" ".join(TEXTS) * 20] * 100_000
        steps: list[float] = []
        real = np.frombuffer

        def noted(*arguments: object, **options: object) -> object:
            steps.append(len(arguments[0]))  # type: ignore[arg-type]
            return real(*arguments, **options)  # type: ignore[call-overload]

        with unittest.mock.patch.object(np, "frombuffer", noted):
            array = bertc._library.TextArray(texts, "texts")
        self.assertEqual(array.count, len(texts))
        self.assertLess(max(steps), sum(steps) / 50)

    def test_damaged_folders(self) -> None:
        for name, bytes_, words in (
            ("config.json", b"{", "JSON"),
            ("model.safetensors", b"", "not a safetensors file"),
            ("model.safetensors", b"x" * 50, "header of"),
            ("vocab.txt", b"", "empty"),
            ("vocab.txt", b"\xff\xfe", "not UTF-8"),
        ):
            with tempfile.TemporaryDirectory() as folder:
                damaged = shutil.copytree(plain_path, os.path.join(folder, "damaged"))
                with open(os.path.join(damaged, name), "wb") as file:
                    file.write(bytes_)
                with self.assertRaisesRegex(bertc.Error, words) as caught:
                    bertc.Model(damaged)
                self.assertEqual(caught.exception.status, "data")

    def test_an_answer_is_a_number(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            huge = shutil.copytree(plain_path, os.path.join(folder, "huge"))
            name = os.path.join(huge, "model.safetensors")
            with open(name, "rb") as file:
                content = bytearray(file.read())
            norm = plain["bert.embeddings.LayerNorm.weight"].tobytes()
            self.assertEqual(content.count(norm), 1)
            content[content.find(norm) : content.find(norm) + len(norm)] = np.full(small_model.HIDDEN, 1e38, np.float32).tobytes()
            with open(name, "wb") as file:
                file.write(content)
            with self.assertRaisesRegex(bertc.Error, "the model's answer to 'the man' is not finite") as caught:
                bertc.Model(huge, precision="fp32", threads=1).embed(["the man"])
            self.assertEqual(caught.exception.status, "numeric")

    def test_interrupted(self) -> None:
        model = bertc.Model(plain_path, precision="fp32", threads=1)
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            while True:
                model.embed(TEXTS * 100)
        self.assertEqual(model.embed(["a"]).shape, (1, small_model.HIDDEN))

    def test_other_threads_go_on(self) -> None:
        model = bertc.Model(plain_path, precision="fp32", threads=1)
        texts = TEXTS * 400
        expected, wrong, count = model.embed(texts), [], 0

        def embed() -> None:
            if not np.array_equal(model.embed(texts), expected):
                wrong.append(threading.current_thread().name)

        threads = [threading.Thread(target=embed) for _ in range(3)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.0005)
            count += 1
        self.assertEqual(wrong, [])
        self.assertGreater(count, 10)

    def test_nothing_on_standard_error(self) -> None:
        vocabulary = os.path.join(room.name, "twice", "vocab.txt")
        os.makedirs(os.path.dirname(vocabulary))
        with open(vocabulary, "w", encoding="utf-8") as file:
            file.write("\n".join([*small_model.WORDS, "man"]))
        said = io.StringIO()
        handler = logging.StreamHandler(said)
        logging.getLogger("bertc").addHandler(handler)
        try:
            bertc.Tokenizer(vocabulary, cased=False)
        finally:
            logging.getLogger("bertc").removeHandler(handler)
        self.assertIn("the later id is used", said.getvalue())


def in_child(tokenizer: bertc.Tokenizer, model: bertc.Model, queue: multiprocessing.Queue) -> None:
    texts = [text * 20 for text in TEXTS * 300]
    try:
        queue.put(int(tokenizer.encode(texts).ids.sum()))
        model.embed(["a"])
    except bertc.Error as error:
        queue.put(error.status)


class Processes(unittest.TestCase):
    def test_fork(self) -> None:
        context = multiprocessing.get_context("fork")
        tokenizer, model, queue = bertc.Tokenizer(plain_path, threads=2), bertc.Model(plain_path), context.Queue()
        expected = int(tokenizer.encode([text * 20 for text in TEXTS * 300]).ids.sum())
        child = context.Process(target=in_child, args=(tokenizer, model, queue))
        child.start()
        self.assertEqual(queue.get(timeout=60), expected)
        self.assertEqual(queue.get(timeout=60), "state")
        child.join(60)
        self.assertEqual(child.exitcode, 0)

    def test_the_command_does_not_wait_for_numpy(self) -> None:
        loaded = "import bertc.__main__, sys; sys.exit('numpy' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", loaded]).returncode, 0)

    def test_command(self) -> None:
        program = os.path.join(os.path.dirname(bertc.__file__), "bin", "bertc")
        if not os.path.exists(program):
            self.skipTest("the program is not in the package: it is in the wheel")
        for command in ([sys.executable, "-m", "bertc"], [os.path.join(os.path.dirname(sys.executable), "bertc")]):
            said = subprocess.run([*command, "version"], capture_output=True, text=True, check=True).stdout
            self.assertIn(bertc.__version__, said)
        run = subprocess.run([*command, "embed", "--model", plain_path, "-"], input="a man\n", capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("embedding", run.stdout)
        self.assertEqual(subprocess.run([*command, "nothing"], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
