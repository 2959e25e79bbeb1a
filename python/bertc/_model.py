from __future__ import annotations

import ctypes
import json
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ._error import Error
from ._library import (
    EmbedOptions,
    ModelOptions,
    PredictOptions,
    StatesOptions,
    TextArray,
    array,
    choice,
    encoded,
    integer,
    interruptible,
    library,
    no_copies,
    path_bytes,
)
from ._tokenizer import Tokenizer

# Texts of one call of the library, at first and at most, and how long it should take: after Ctrl-C, one is still computed.
_FIRST_TEXTS, _CALL_TEXTS, _CALL_SECONDS = 256, 4096, 0.5


class Model:
    """A model folder opened for inference.

    `path` is a run of bertc, a checkpoint, or a model folder of bertc, transformers, or sentence-transformers. `device` is
    "cpu" or "cuda", `precision` "fp32", "bf16", "int8", ...: by default the fastest that is there. `max_length` is the
    number of tokens of the longest text (longer ones are cut), by default what the folder says. `threads` are by default
    all cores.

    A model may be used by several threads at once; other Python threads go on while it computes. It cannot be used in a
    process that was forked after it was opened: open it there."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        device: Literal["cpu", "cuda"] | None = None,
        precision: str | None = None,
        threads: int | None = None,
        max_length: int | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        handle = ctypes.c_void_p()
        options = ModelOptions(
            device=encoded(device, "device"),
            precision=encoded(precision, "precision"),
            threads=integer(threads, "threads"),
            max_length=integer(max_length, "max_length"),
            batch_tokens=integer(batch_tokens, "batch_tokens", 64),
        )
        interruptible(
            "bertc_model_open",
            path_bytes(path),
            ctypes.byref(options),
            ctypes.byref(handle),
            keep=options,
            undo=lambda: library.bertc_model_close(handle),
        )
        self._handle = handle
        self._users = self._abandoned = 0  # calls that run; those of them for which nobody waits
        self._changed = threading.Condition()
        self._path = path
        place = os.path.abspath(path)  # the process may change its folder
        self._folder = place if os.path.isdir(place) else os.path.dirname(place)  # of a file of weights
        self._tokenizer: Tokenizer | None = None
        # Not when the interpreter ends: a thread that is not waited for may still be computing.
        self._close = weakref.finalize(self, library.bertc_model_close, handle)
        self._close.atexit = False

    def close(self) -> None:
        """Frees the model's memory, once no other thread computes with it; it cannot be used afterwards."""
        with self._changed:
            self._handle = ctypes.c_void_p()
            self._changed.wait_for(lambda: self._users <= self._abandoned)
            self._free()

    def _free(self) -> None:
        if not self._handle and self._users == 0:
            self._close()

    def _open(self) -> ctypes.c_void_p:
        """The library's model."""
        if not self._handle:
            raise ValueError("the model is closed")
        return self._handle

    def _compute(
        self, name: str, first: int, *arguments: Any, keep: object, undo: Callable[[], object] | None = None
    ) -> None:
        """Calls a function of the library that takes the model first, for texts from number `first` on. After Ctrl-C, the model
        stays open until that call ends."""
        running, abandoned = True, False

        def leave() -> None:
            nonlocal running
            with self._changed:
                running = False
                self._users -= 1
                self._abandoned -= abandoned
                self._free()
                self._changed.notify_all()

        with self._changed:
            handle = self._open()
            self._users += 1
        try:
            interruptible(name, handle, *arguments, keep=(self, keep), undo=undo, last=leave)
        except Error as error:
            raise _counted(error, first) from None
        except BaseException:
            with self._changed:
                if running:
                    abandoned = True
                    self._abandoned += 1
                    self._changed.notify_all()
            raise

    def __enter__(self) -> Model:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        raise no_copies(self)

    def __repr__(self) -> str:
        kind = f"{self.task or 'embeddings'}; " if self._handle else ""
        return f"<bertc.Model {os.fspath(self._path)!r}: {kind}{self.description}>"

    @property
    def description(self) -> str:
        """Device, precision, and threads."""
        return (library.bertc_model_description(self._handle) or b"closed").decode()

    @property
    def task(self) -> str | None:
        """What the model was fine-tuned for: "classification", "tagging", "squad", ...; None for a model that makes embeddings."""
        name = library.bertc_model_task(self._open())
        return name.decode() if name else None

    @property
    def labels(self) -> list[str]:
        """The labels that the model tells apart, in the order of its scores."""
        count = library.bertc_model_label_count(self._open())
        return [library.bertc_model_label(self._open(), i).decode() for i in range(count)]

    @property
    def max_length(self) -> int:
        """Tokens of the longest text that the model takes, [CLS] and [SEP] included."""
        return int(library.bertc_model_max_length(self._open()))

    @property
    def hidden_size(self) -> int:
        return int(library.bertc_model_hidden_size(self._open()))

    @property
    def embedding_size(self) -> int:
        """Numbers of an embedding; 0 if the model makes none."""
        return int(library.bertc_model_embedding_size(self._open()))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that the model's texts go through: "[MASK]" in a text is text."""
        if self._tokenizer is None:
            self._tokenizer = Tokenizer(self._folder, special_tokens_in_text=False)
        return self._tokenizer

    def embed(
        self,
        texts: str | Iterable[str],
        *,
        normalize: bool | None = None,
        dimensions: int | None = None,
        pooling: Literal["mean", "cls", "max"] | None = None,
        prompt: str | None = None,
        prompt_name: str | None = None,
        truncate: bool = True,
    ) -> NDArray[np.float32]:
        """Embeddings of texts: an array with a row for each; of a single string, its row.

        What is not given is as the sentence-transformers folder says; for other folders the mean over all tokens, not
        normalized. `normalize` makes each row have length 1; `dimensions` returns that many of its numbers; `prompt` is put
        before each text, `prompt_name` is the name of one of the folder's prompts. With `truncate=False`, a text that is
        too long is an error."""
        rows = TextArray(texts, "texts")
        size = integer(dimensions, "dimensions")
        if dimensions is not None and size < 1:
            raise ValueError(f"dimensions must be at least 1, not {size}")
        options = EmbedOptions(
            normalize=choice(normalize, "normalize"),
            dimensions=size,
            pooling=encoded(pooling, "pooling"),
            prompt=encoded(prompt, "prompt"),
            prompt_name=encoded(prompt_name, "prompt_name"),
            refuse_long=not truncate,
        )
        # One pooling has no more numbers than hidden states; the folder's truncate_dim holds for it as well.
        width = size or (min(self.hidden_size, self.embedding_size) if pooling else self.embedding_size)
        out = np.empty((rows.count, width), dtype=np.float32)
        for first, count, part in _parts(rows.count, out):
            self._compute(
                "bertc_model_embed",
                first,
                rows.pointer(first),
                count,
                ctypes.byref(options),
                part.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
                part.size,
                keep=(rows, options, out),
            )
        return out[0] if rows.single else out

    def scores(
        self,
        texts: str | Iterable[str],
        pairs: str | Iterable[str] | None = None,
        *,
        raw: bool = False,
        truncate: bool = True,
    ) -> NDArray[np.float32]:
        """Scores of texts, or of texts[i] with pairs[i]: an array with a row for each and a column for each of `labels`; of a single
        string, its row.

        Scores are probabilities, or the value that a regression model predicts; with `raw`, the model's outputs (logits)."""
        rows, others = _texts_and_pairs(texts, pairs)
        options = PredictOptions(raw=raw, refuse_long=not truncate)
        out = np.empty((rows.count, library.bertc_model_score_count(self._open())), dtype=np.float32)
        for first, count, part in _parts(rows.count, out):
            self._compute(
                "bertc_model_scores",
                first,
                rows.pointer(first),
                others.pointer(first) if others is not None else None,
                count,
                ctypes.byref(options),
                part.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
                part.size,
                keep=(rows, others, options, out),
            )
        return out[0] if rows.single else out

    @overload
    def predict(self, texts: str, pairs: str | None = None, *, truncate: bool = True) -> dict[str, Any]: ...

    @overload
    def predict(
        self, texts: Iterable[str], pairs: Iterable[str] | None = None, *, truncate: bool = True
    ) -> list[dict[str, Any]]: ...

    def predict(
        self, texts: str | Iterable[str], pairs: str | Iterable[str] | None = None, *, truncate: bool = True
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """Answers to texts, or to texts[i] with pairs[i], as `bertc predict` gives them: a dictionary for each; to a single string,
        its dictionary.

        {"label", "probabilities"} for classes, {"labels", "probabilities"} for several labels, {"value"} for a number,
        {"tags", "entities"} for words, {"answer", "start", "end", "score"} for questions (`texts`) about passages
        (`pairs`). Offsets are characters of the text."""
        rows, others = _texts_and_pairs(texts, pairs)
        options = PredictOptions(refuse_long=not truncate)
        out: list[dict[str, Any]] = []
        for first, count, _ in _parts(rows.count):
            answers = ctypes.c_void_p()
            self._compute(
                "bertc_model_predict",
                first,
                rows.pointer(first),
                others.pointer(first) if others is not None else None,
                count,
                ctypes.byref(options),
                ctypes.byref(answers),
                keep=(rows, others, options, answers),
                undo=partial(library.bertc_answers_free, answers),
            )
            try:
                found = [json.loads(library.bertc_answers_json(answers, i)) for i in range(count)]
            finally:
                library.bertc_answers_free(answers)
            for taken in (rows, others):
                found = found if taken is None else taken.restored(found)
            out.extend(found)
        return out[0] if rows.single else out

    @overload
    def encode(self, texts: str, *, layer: int = -1, truncate: bool = True) -> NDArray[np.float32]: ...

    @overload
    def encode(self, texts: Iterable[str], *, layer: int = -1, truncate: bool = True) -> list[NDArray[np.float32]]: ...

    def encode(
        self, texts: str | Iterable[str], *, layer: int = -1, truncate: bool = True
    ) -> NDArray[np.float32] | list[NDArray[np.float32]]:
        """Hidden states of texts: for each an array with a row for each token, [CLS] and [SEP] included; of a single string, its
        array.

        `layer` is -1 for the last, -2 for the one before it, or 1 for the first, 2 for the second."""
        rows = TextArray(texts, "texts")
        number = integer(layer, "layer")
        if number == 0:
            raise ValueError("there is no layer 0: layers are 1, 2, ..., or -1 for the last, -2 for the one before it")
        options = StatesOptions(layer=number, refuse_long=not truncate)
        out: list[NDArray[np.float32]] = []
        for first, count, _ in _parts(rows.count):
            states = ctypes.c_void_p()
            self._compute(
                "bertc_model_encode",
                first,
                rows.pointer(first),
                count,
                ctypes.byref(options),
                ctypes.byref(states),
                keep=(rows, options, states),
                undo=partial(library.bertc_states_free, states),
            )
            try:
                starts = array(library.bertc_states_starts(states), (count + 1,), np.int64)
                shape = (int(starts[-1]), self.hidden_size)
                values = array(library.bertc_states_values(states), shape, np.float32)
            finally:
                library.bertc_states_free(states)
            out.extend(np.split(values, starts[1:-1]) if count > 0 else [])
        return out[0] if rows.single else out


def _texts_and_pairs(texts: str | Iterable[str], pairs: str | Iterable[str] | None) -> tuple[TextArray, TextArray | None]:
    rows = TextArray(texts, "texts")
    if pairs is None:
        return rows, None
    others = TextArray(pairs, "pairs")
    if others.single != rows.single:
        raise TypeError("texts and pairs must both be a single string, or both lists of strings")
    if others.count != rows.count:
        raise ValueError(f"there are {rows.count} texts and {others.count} pairs")
    return rows, others


def _counted(error: Error, first: int) -> Error:
    """The error of a call for texts from number `first` on, with the number of the text among all."""
    message = re.sub(r"^texts\[(\d+)\]", lambda found: f"texts[{int(found[1]) + first}]", error.message)
    return Error(error.status, message, error.hint, error.exit_code)


def _parts(count: int, out: NDArray[np.float32] | None = None) -> Iterable[tuple[int, int, Any]]:
    """Cuts texts into calls of the library: the first text, how many, and their rows of `out`. One call where there are none, so
    that what is wrong with a call is always said."""
    first, size = 0, _FIRST_TEXTS
    while first < max(count, 1):
        began = time.monotonic()
        size = min(size, count - first)
        yield first, size, None if out is None else out[first : first + size]
        first += max(size, 1)
        faster = _CALL_SECONDS / max(time.monotonic() - began, 1e-3)
        size = max(16, min(_CALL_TEXTS, int(size * min(faster, 4))))
