"""Training: runs the program `bertc` as a child process and hands on what it logs."""

from __future__ import annotations

import ctypes
import glob
import json
import numbers
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ._dataset import Dataset
from ._error import error_of

Record = dict[str, Any]
Callback = Callable[[Record], object]

_STOPPED = 75  # saved on request
_POLL_SECONDS = 0.2
# What stands in a command as it is; the numbers may be NumPy's.
_WORDS = (str, os.PathLike, numbers.Real)
# Options whose values the program takes as one, with commas.
_JOINED = {"labels", "label_column", "label_column_name", "negative_column", "markers", "init_layers", "distill_layers"}


def finetune(*, callback: Callback | None = None, **options: Any) -> Record:
    """`bertc finetune` with the command's own options: finetune(task="classification", model=..., train=..., dev=..., out=...).

    What a file may be given for may also be a Dataset, or anything that one is made of; {"name": set} gives sets their names.
    `callback` gets every record of metrics.jsonl as it is logged. The result holds the newest value of everything logged, the scores
    of the finished model ("eval_accuracy", "test_accuracy"; those of a named test set below its name), "out", and "finished", which
    is False after a stop on request, such as max_time. Messages go to sys.stderr; quiet=True leaves warnings.

    Ctrl-C, or an exception that the callback raises, has the run stop after its step and save; it is raised again then. The same
    call goes on from there. An error of the program raises bertc.Error."""
    return _train("finetune", callback, options)


def pretrain(*, callback: Callback | None = None, **options: Any) -> Record:
    """`bertc pretrain` with the command's own options: pretrain(corpus=..., model="small", out=...). See finetune()."""
    return _train("pretrain", callback, options)


def program() -> str:
    """The program: what BERTC_PROGRAM names, that of this package, or the one in the PATH."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "bertc")
    found = os.environ.get("BERTC_PROGRAM") or (own if os.path.exists(own) else shutil.which("bertc"))
    if not found:
        raise FileNotFoundError("the program bertc is neither in this package nor in the PATH; BERTC_PROGRAM may name it")
    return found


def _train(command: str, callback: Callback | None, options: Mapping[str, Any]) -> Record:
    with tempfile.TemporaryDirectory(prefix="bertc-") as room:
        sets: list[tuple[Dataset, str]] = []
        line = [program(), command, *_arguments(options, room, sets)]
        out = _out_folder(line)
        for data, path in sets:
            data.save(path)
        place = os.path.abspath(out)  # the callback may change the process's folder
        code = _run(line, _Metrics(place), callback)
    return _results(place) | {"out": out, "finished": code == 0}


def _arguments(options: Mapping[str, Any], room: str, sets: list[tuple[Dataset, str]]) -> list[str]:
    """The options as arguments. Data in memory will be files in `room`, and are added to `sets`."""

    def place(name: str, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, _WORDS):
            return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
        path = os.path.join(room, f"{name}{len(sets) or ''}.jsonl")
        sets.append((value if isinstance(value, Dataset) else Dataset(value), path))
        return path

    def places(name: str, value: Any) -> list[str]:
        if isinstance(value, Mapping):
            sign = ":" if name == "class_weights" else "="
            values = [key + sign + item for key, part in value.items() for item in places(name, part)]
            return [",".join(values)] if name == "class_weights" else values
        if isinstance(value, (list, tuple)) and all(isinstance(item, (*_WORDS, Dataset)) for item in value):
            values = [place(name, item) for item in value]
            return [",".join(values)] if name in _JOINED else values
        return [place(name, value)]

    arguments = []
    for name, value in options.items():
        if value is True:
            arguments.append(f"--{name}")
        elif value is not None:
            arguments += [f"--{name}={item}" for item in places(name, value)]
    return arguments


def _out_folder(line: list[str]) -> str:
    """The run folder, whichever of its names, or which config file, gives it. Raises what is wrong with the options."""
    done = subprocess.run([*line, "--print_config"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise _failure(done.returncode, done.stderr.splitlines())
    for row in done.stdout.splitlines():
        name, _, value = row.partition(" = ")
        if name == "out":
            return str(json.JSONDecoder().raw_decode(value)[0]) if value.startswith('"') else value.rpartition("  #")[0]
    raise error_of(2, "out is missing", "name the run folder: out=...")


class _Metrics:
    """Reads metrics.jsonl as it grows. A run that resumes replaces the file by the part of it that it keeps, which is known already."""

    def __init__(self, out: str) -> None:
        self._out = out
        self._read: dict[str, tuple[int, int]] = {}  # path: inode, bytes
        self._known: set[int] = set()  # hashes of lines
        for _ in self.new():
            pass

    def new(self) -> Iterator[Record]:
        """The records that were not there before; those of a sweep's runs say of which ("run")."""
        yield from self._of(os.path.join(self._out, "metrics.jsonl"), {})
        for path in sorted(glob.glob(os.path.join(glob.escape(self._out), "*", "metrics.jsonl"))):
            yield from self._of(path, {"run": os.path.basename(os.path.dirname(path))})

    def _of(self, path: str, more: Record) -> Iterator[Record]:
        try:
            file = open(path, "rb")
        except OSError:
            return
        with file:
            facts = os.fstat(file.fileno())
            inode, at = self._read.get(path, (0, 0))
            if inode != facts.st_ino or facts.st_size < at:
                at = 0
            file.seek(at)
            lines = file.read()
        for line in lines[: lines.rfind(b"\n") + 1].splitlines(keepends=True):  # the last one may not be whole yet
            at += len(line)
            self._read[path] = (facts.st_ino, at)
            if hash(line) not in self._known:
                self._known.add(hash(line))
                yield json.loads(line) | more


def _run(line: list[str], metrics: _Metrics, callback: Callback | None) -> int:
    """Runs the program to its end and returns its exit code. Whatever is raised meanwhile stops the run, and is raised at its end."""
    prctl, set_death_signal = ctypes.CDLL(None).prctl, 1

    def begin() -> None:
        for number in (signal.SIGINT, signal.SIGHUP):  # where Python ignores them, as below nohup, they must still stop the run
            signal.signal(number, signal.SIG_DFL)
        prctl(set_death_signal, signal.SIGHUP)  # if Python is killed, the run stops as if its terminal had closed

    child = subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C in a terminal must not reach it twice
        preexec_fn=begin,
    )
    assert child.stdout is not None
    said_more = select.poll()  # unlike select(), for any number of open files
    said_more.register(child.stdout, select.POLLIN)
    raised: BaseException | None = None
    rest, failed = b"", list[str]()
    while True:
        try:
            said = os.read(child.stdout.fileno(), 1 << 16) if said_more.poll(1000 * _POLL_SECONDS) else None
            *lines, rest = (rest + (said or b"")).split(b"\n")
            for text in [item.decode(errors="replace") for item in lines]:
                if failed or text.startswith("bertc: "):
                    failed.append(text)
                else:
                    print(text, file=sys.stderr, flush=True)
            if callback is not None:
                for record in metrics.new():
                    callback(record)
            if said == b"":
                break
        except BaseException as error:
            if isinstance(error, Exception):
                callback = None  # it is the one that failed
            if raised is None or isinstance(error, KeyboardInterrupt):
                child.send_signal(signal.SIGINT)
            raised = raised or error
    child.stdout.close()
    code = child.wait()
    if raised is not None:
        raise raised
    if code not in (0, _STOPPED):
        raise _failure(code, failed)
    return code


def _failure(code: int, lines: list[str]) -> Exception:
    """What the program's last lines say: "bertc: MESSAGE", with "hint: ADVICE" below it."""
    hint = [line[len("hint: ") :] for line in lines if line.startswith("hint: ")]
    message = "\n".join(line for line in lines if not line.startswith("hint: "))
    return error_of(code, message.removeprefix("bertc: ") or f"bertc ended with status {code}", " ".join(hint))


def _results(out: str) -> Record:
    """The newest values of metrics.jsonl, and the scores of the finished model."""
    results: Record = {}
    if os.path.exists(metrics := os.path.join(out, "metrics.jsonl")):
        with open(metrics, encoding="utf-8") as file:
            for record in map(json.loads, file):
                if "event" not in record:
                    results.update(record)
    for name in ("eval_results.json", "test_results.json"):
        for path in [os.path.join(out, name), *glob.glob(os.path.join(glob.escape(out), "*", name))]:
            folder = os.path.dirname(path)
            if not os.path.exists(path):
                continue
            with open(path, encoding="utf-8") as file:
                (results if folder == out else results.setdefault(os.path.basename(folder), {})).update(json.load(file))
    return results
