"""Training from Python. Needs the program (BERTC_PROGRAM); NumPy and libbertc only for the notebook."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import signal
import tempfile
import threading
import time
import unittest
from fractions import Fraction
from typing import Any

import bertc
from bertc._train import _arguments, _Metrics

try:
    answers = bertc.Model is not None
except (ImportError, OSError):  # no NumPy, or no libbertc
    answers = False

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
WORDS = {"good": ("lovely", "great", "fine"), "bad": ("cold", "awful", "bland")}
ROWS = [{"text": f"the {what} was {word}", "label": label} for what in ("soup", "tea") for label in WORDS for word in WORDS[label]] * 3
SMALL: dict[str, Any] = {"train_batch_size": 4, "precision": "fp32", "threads": 1, "quiet": True}
CALL: dict[str, Any] = {"task": "classification", "train": ROWS, **SMALL}


def setUpModule() -> None:
    global room, base
    room = tempfile.TemporaryDirectory()
    base = os.path.join(room.name, "base")
    size = {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
    texts = bertc.Dataset([row["text"] + "." for row in ROWS] * 4)
    results = bertc.pretrain(corpus=texts, out=base, vocab_size=60, num_train_steps=2, max_seq_length=32, **size, **SMALL)
    assert results["step"] == 2 and results["finished"], results


def tearDownModule() -> None:
    room.cleanup()


def folder(name: str) -> str:
    return os.path.join(room.name, name)


def finetune(out: str, **more: Any) -> dict[str, Any]:
    return bertc.finetune(**{**CALL, "model": base, "out": folder(out), **more})


def losses(records: list[dict[str, Any]]) -> list[int]:
    return [record["step"] for record in records if "loss" in record]


class Training(unittest.TestCase):
    def test_results_and_records(self) -> None:
        path = folder("rows.jsonl")
        self.assertEqual(bertc.Dataset(ROWS).save(path), len(ROWS))
        records: list[dict[str, Any]] = []
        results = finetune("results", train=path, dev={"a": ROWS, "b": path}, test=ROWS, log_steps=1, callback=records.append)
        self.assertTrue(results["finished"])
        self.assertEqual(results["out"], folder("results"))
        self.assertEqual(results["eval_a_accuracy"], results["eval_b_accuracy"])
        self.assertEqual(results["test_accuracy"], results["eval_a_accuracy"])
        self.assertEqual(losses(records), list(range(1, results["step"] + 1)))
        with open(folder("results/metrics.jsonl"), encoding="utf-8") as file:
            self.assertEqual(records, [json.loads(line) for line in file])
        again = finetune("results", train=path, dev={"a": ROWS, "b": path}, test=ROWS, log_steps=1, callback=records.append)
        self.assertEqual(len(losses(records)), results["step"], "a finished run logs nothing")
        self.assertEqual(again["eval_a_accuracy"], results["eval_a_accuracy"])

    def test_numbers_of_any_type(self) -> None:
        sets: list[tuple[bertc.Dataset, str]] = []
        arguments = _arguments({"seed": Fraction(2), "labels": [Fraction(1), 2]}, "", sets)
        self.assertEqual((arguments, sets), (["--seed=2", "--labels=1,2"], []))

    def test_same_as_the_command(self) -> None:
        path = folder("command.jsonl")
        bertc.Dataset(ROWS).save(path)
        finetune("of_rows")
        finetune("of_file", train=pathlib.Path(path))
        weights = [pathlib.Path(folder(name), "final", "model.safetensors").read_bytes() for name in ("of_rows", "of_file")]
        self.assertEqual(*weights)

    def test_interrupted_runs_go_on(self) -> None:
        records: list[dict[str, Any]] = []

        def interrupt(record: dict[str, Any]) -> None:
            records.append(record)
            if record["step"] == 5:
                os.kill(os.getpid(), signal.SIGINT)

        many = {"num_train_steps": 4000, "log_steps": 1, "save_checkpoints_steps": 0}
        with self.assertRaises(KeyboardInterrupt):
            finetune("stopped", callback=interrupt, **many)
        stopped = records[-1]["step"]
        self.assertLess(stopped, 4000)
        self.assertTrue(os.path.isdir(folder(f"stopped/checkpoint-{stopped}")))

        def fail(record: dict[str, Any]) -> None:
            if "loss" in record:
                records.append(record)
                raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            finetune("stopped", callback=fail, **many)
        self.assertEqual(records[-1]["step"], stopped + 1)
        results = finetune("stopped", steps_this_run=3, **many)
        self.assertFalse(results["finished"])
        self.assertGreater(results["step"], stopped + 3)

    def test_what_was_logged_before_is_not_new(self) -> None:
        out = folder("logged")
        os.makedirs(out)

        def write(name: str, text: str) -> None:
            with open(os.path.join(out, name), "a", encoding="utf-8") as file:
                file.write(text)

        write("metrics.jsonl", '{"step":1}\n{"step":2}\n{"step":3}\n')
        metrics = _Metrics(out)
        write("metrics.jsonl", '{"step":4}\n{"st')
        self.assertEqual([record["step"] for record in metrics.new()], [4])
        write("cut", '{"step":1}\n{"step":2}\n')  # as a run that resumes from step 2 does it
        os.replace(os.path.join(out, "cut"), os.path.join(out, "metrics.jsonl"))
        write("metrics.jsonl", '{"step":3,"again":1}\n')
        self.assertEqual(list(metrics.new()), [{"step": 3, "again": 1}])

    def test_in_a_thread(self) -> None:
        results: list[dict[str, Any]] = []
        thread = threading.Thread(target=lambda: results.append(finetune("thread", num_train_steps=2)))
        thread.start()
        thread.join()
        self.assertEqual(results[0]["step"], 2)

    def test_many_open_files(self) -> None:
        least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most < 1200:
            self.skipTest(f"only {most} files may be open")
        resource.setrlimit(resource.RLIMIT_NOFILE, (1200, most))
        files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
        try:
            self.assertEqual(finetune("files", num_train_steps=1)["step"], 1)
        finally:
            for file in files:
                os.close(file)
            resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))

    def test_stops_when_python_is_killed(self) -> None:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as below nohup
            finetune("killed", num_train_steps=100000, log_steps=1, save_checkpoints_steps=0)
            os._exit(1)
        metrics = folder("killed/metrics.jsonl")
        self.wait_for(lambda: os.path.exists(metrics))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.wait_for(lambda: any(name.startswith("checkpoint-") for name in os.listdir(folder("killed"))))

    def wait_for(self, condition: Any) -> None:
        for _ in range(300):
            if condition():
                return
            time.sleep(0.1)
        self.fail("waited in vain")

    def test_errors(self) -> None:
        for status, code, words, more in (
            ("usage", 2, "unknown option '--learning_rat'.*did you mean --learning_rate", {"learning_rat": 1}),
            ("usage", 2, "out is missing", {"out": None}),
            ("usage", 2, "cannot open '/nowhere'", {"train": "/nowhere"}),
            ("data", 3, "there are no rows", {"train": bertc.Dataset([])}),
            ("data", 3, "the label 'bad' is not one of those of --labels", {"labels": ["good", "so-so"]}),
        ):
            with self.assertRaisesRegex(bertc.Error, words) as caught:
                bertc.finetune(**{**CALL, "model": base, "out": folder("errors"), **more})
            self.assertEqual((caught.exception.status, caught.exception.exit_code), (status, code))


class Datasets(unittest.TestCase):
    def lines(self, data: Any, columns: list[str] | None = None) -> list[Any]:
        path = folder("lines.jsonl")
        bertc.Dataset(data, columns).save(path)
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_rows(self) -> None:
        expected = [{"text": "é", "label": 1}, {"text": None, "label": 2}]
        self.assertEqual(self.lines(expected), expected)
        self.assertEqual(self.lines(iter(expected)), expected)
        self.assertEqual(self.lines({"text": ["é", float("nan")], "label": [1, 2]}), expected)
        self.assertEqual(self.lines([("é", 1), (None, 2)], ["text", "label"]), expected)
        self.assertEqual(self.lines(["é"]), [{"text": "é"}])

    def test_a_generator_is_read_once(self) -> None:
        rows = bertc.Dataset({"text": text} for text in "ab")
        self.assertEqual(len(list(rows)), 2)
        with self.assertRaisesRegex(ValueError, "the rows of a generator can be read only once"):
            rows.save(folder("lines.jsonl"))

    def test_refusals(self) -> None:
        for kind, words, data in (
            (TypeError, "row 0 is a tuple", [("a", 1)]),
            (TypeError, "row 0: a value of the type bytes", [{"text": b"a"}]),
            (ValueError, "row 1: .*lone surrogate", ["a", "\ud800"]),
            (ValueError, "the columns differ in length", {"text": ["a"], "label": []}),
            (TypeError, "'text' is a text, not a list", {"text": "fine", "label": "good"}),
            (ValueError, "not a Parquet", "a.tsv"),
            (TypeError, "made of rows, not of int", 3),
        ):
            with self.assertRaisesRegex(kind, words):
                self.lines(data)
        for named in ([{"text": "a"}], {"text": ["a"]}):
            with self.assertRaisesRegex(TypeError, "columns names the values of tuples"):
                self.lines(named, ["text"])

    def test_class_numbers_become_names(self) -> None:
        class ClassLabel:
            names = ["bad", "good"]

        class Features(list):  # a stand-in for datasets.Dataset
            features = {"label": ClassLabel(), "tags": [ClassLabel()], "text": None}

        rows = Features([{"label": 1, "tags": [0, 1], "text": "a"}, {"label": -1, "tags": [], "text": "b"}])
        self.assertEqual(self.lines(rows), [{"label": "good", "tags": ["bad", "good"], "text": "a"}, {"label": None, "tags": [], "text": "b"}])

    def test_what_is_installed(self) -> None:
        rows = [{"text": "a", "label": 1, "words": ["b", "c"]}, {"text": "d", "label": 2, "words": []}]

        def files(module: Any) -> Any:
            import pyarrow.parquet

            pyarrow.parquet.write_table(module.Table.from_pylist(rows), folder("a.parquet"))
            return folder("a.parquet")

        for name, make in (
            ("pandas", lambda module: module.DataFrame(rows)),
            ("polars", lambda module: module.DataFrame(rows)),
            ("datasets", lambda module: module.Dataset.from_list(rows)),
            ("datasets", lambda module: module.Dataset.from_list(rows).with_format("numpy")),
            ("pyarrow", lambda module: module.Table.from_pylist(rows)),
            ("pyarrow", lambda module: module.Table.from_pylist(rows).to_reader()),
            ("pyarrow", files),
        ):
            with self.subTest(name):
                try:
                    module = __import__(name)
                except ImportError:
                    self.skipTest(f"no {name}")
                self.assertEqual(self.lines(make(module)), rows)
                if name == "pandas":
                    with self.assertRaisesRegex(ValueError, "several columns are called 'text'"):
                        self.lines(module.DataFrame([["a", "b"]], columns=["text", "text"]))


@unittest.skipUnless(answers, "needs NumPy and libbertc")
@unittest.skipUnless(EXAMPLES.is_dir(), "no examples beside the package")
class Notebook(unittest.TestCase):
    def test_every_cell(self) -> None:
        notebook = json.loads((EXAMPLES / "training.ipynb").read_text(encoding="utf-8"))
        before = os.getcwd()
        os.environ |= {"MODEL": base, "OUT": folder("notebook"), "EPOCHS": "1"}
        try:
            os.chdir(EXAMPLES)
            names: dict[str, Any] = {}
            for number, cell in enumerate(notebook["cells"]):
                if cell["cell_type"] == "code":
                    self.assertTrue(cell["outputs"] or number == 1, f"cell {number} was not run")
                    exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        finally:
            os.chdir(before)
        self.assertTrue(os.path.exists(folder("notebook/final/model.safetensors")))


if __name__ == "__main__":
    unittest.main()
