from __future__ import annotations

import ctypes
import json
import os
import weakref
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._library import (
    EmbedOptions,
    ModelOptions,
    PredictOptions,
    StatesOptions,
    TextArray,
    array,
    call,
    choice,
    encoded,
    integer,
    library,
    no_copies,
    path_bytes,
)
from ._tokenizer import Tokenizer

# Texts of one call of the library: between two of them Ctrl-C is heard.
_CALL_TEXTS = 4096


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
        call("bertc_model_open", path_bytes(path), ctypes.byref(options), ctypes.byref(handle))
        self._handle = handle
        self._path = path
        self._tokenizer: Tokenizer | None = None
        # Not when the interpreter ends: a thread that is not waited for may still be computing.
        self._close = weakref.finalize(self, library.bertc_model_close, handle)
        self._close.atexit = False

    def close(self) -> None:
        """Frees the model's memory. It may no longer be in use by any thread, nor be used afterwards."""
        self._close()
        self._handle = ctypes.c_void_p()

    def _open(self) -> ctypes.c_void_p:
        """The library's model."""
        if not self._handle:
            raise ValueError("the model is closed")
        return self._handle

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
            self._tokenizer = Tokenizer(self._path, special_tokens_in_text=False)
        return self._tokenizer

    def embed(
        self,
        texts: Iterable[str],
        *,
        normalize: bool | None = None,
        dimensions: int | None = None,
        pooling: Literal["mean", "cls", "max"] | None = None,
        prompt: str | None = None,
        prompt_name: str | None = None,
        truncate: bool = True,
    ) -> NDArray[np.float32]:
        """Embeddings of texts: an array with a row for each.

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
            call(
                "bertc_model_embed",
                self._open(),
                rows.pointer(first),
                count,
                ctypes.byref(options),
                part.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
                part.size,
            )
        return out

    def scores(
        self,
        texts: Iterable[str],
        pairs: Iterable[str] | None = None,
        *,
        raw: bool = False,
        truncate: bool = True,
    ) -> NDArray[np.float32]:
        """Scores of texts, or of texts[i] with pairs[i]: an array with a row for each and a column for each of `labels`.

        Scores are probabilities, or the value that a regression model predicts; with `raw`, the model's outputs (logits)."""
        rows, others = _texts_and_pairs(texts, pairs)
        options = PredictOptions(raw=raw, refuse_long=not truncate)
        out = np.empty((rows.count, library.bertc_model_score_count(self._open())), dtype=np.float32)
        for first, count, part in _parts(rows.count, out):
            call(
                "bertc_model_scores",
                self._open(),
                rows.pointer(first),
                others.pointer(first) if others is not None else None,
                count,
                ctypes.byref(options),
                part.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
                part.size,
            )
        return out

    def predict(
        self, texts: Iterable[str], pairs: Iterable[str] | None = None, *, truncate: bool = True
    ) -> list[dict[str, Any]]:
        """Answers to texts, or to texts[i] with pairs[i], as `bertc predict` gives them: a dictionary for each.

        {"label", "probabilities"} for classes, {"labels", "probabilities"} for several labels, {"value"} for a number,
        {"tags", "entities"} for words, {"answer", "start", "end", "score"} for questions (`texts`) about passages
        (`pairs`). Offsets are characters of the text."""
        rows, others = _texts_and_pairs(texts, pairs)
        options = PredictOptions(refuse_long=not truncate)
        out: list[dict[str, Any]] = []
        for first, count, _ in _parts(rows.count):
            answers = ctypes.c_void_p()
            call(
                "bertc_model_predict",
                self._open(),
                rows.pointer(first),
                others.pointer(first) if others is not None else None,
                count,
                ctypes.byref(options),
                ctypes.byref(answers),
            )
            try:
                out.extend(json.loads(library.bertc_answers_json(answers, i)) for i in range(count))
            finally:
                library.bertc_answers_free(answers)
        return out

    def encode(self, texts: Iterable[str], *, layer: int = -1, truncate: bool = True) -> list[NDArray[np.float32]]:
        """Hidden states of texts: for each an array with a row for each token, [CLS] and [SEP] included.

        `layer` is -1 for the last, -2 for the one before it, or 1 for the first, 2 for the second."""
        rows = TextArray(texts, "texts")
        number = integer(layer, "layer")
        if number == 0:
            raise ValueError("there is no layer 0: layers are 1, 2, ..., or -1 for the last, -2 for the one before it")
        options = StatesOptions(layer=number, refuse_long=not truncate)
        out: list[NDArray[np.float32]] = []
        for first, count, _ in _parts(rows.count):
            states = ctypes.c_void_p()
            call(
                "bertc_model_encode",
                self._open(),
                rows.pointer(first),
                count,
                ctypes.byref(options),
                ctypes.byref(states),
            )
            try:
                starts = array(library.bertc_states_starts(states), (count + 1,), np.int64)
                shape = (int(starts[-1]), self.hidden_size)
                values = array(library.bertc_states_values(states), shape, np.float32)
            finally:
                library.bertc_states_free(states)
            out.extend(np.split(values, starts[1:-1]) if count > 0 else [])
        return out


def _texts_and_pairs(texts: Iterable[str], pairs: Iterable[str] | None) -> tuple[TextArray, TextArray | None]:
    rows = TextArray(texts, "texts")
    if pairs is None:
        return rows, None
    others = TextArray(pairs, "pairs")
    if others.count != rows.count:
        raise ValueError(f"there are {rows.count} texts and {others.count} pairs")
    return rows, others


def _parts(count: int, out: NDArray[np.float32] | None = None) -> Iterable[tuple[int, int, Any]]:
    """Cuts texts into calls of the library: the first text, how many, and their rows of `out`. One call where there are none, so
    that what is wrong with a call is always said."""
    for first in range(0, max(count, 1), _CALL_TEXTS):
        size = min(_CALL_TEXTS, count - first)
        yield first, size, None if out is None else out[first : first + size]
