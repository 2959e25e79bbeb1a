"""libbertc through ctypes: the declarations of include/bertc.h, errors as exceptions, texts as arrays of pointers.

ctypes releases the GIL while a function of the library runs."""

from __future__ import annotations

import ctypes
import logging
import operator
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_float, c_int, c_int8, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._error import error_of

_ABI = 0


class ErrorStruct(Structure):
    _fields_ = [("status", c_int), ("message", c_char * 1536), ("hint", c_char * 768)]


class Options(Structure):
    """Options begin with their size; what is not given is zero, the default."""

    def __init__(self, **members: Any) -> None:
        super().__init__(ctypes.sizeof(type(self)), **members)


class TokenizerOptions(Options):
    _fields_ = [
        ("size", c_size_t),
        ("letter_case", c_int32),
        ("threads", c_int32),
        ("plain_text", c_int32),
        ("google_rules", c_int32),
    ]


class EncodeOptions(Options):
    _fields_ = [("size", c_size_t), ("max_length", c_int32), ("no_special_tokens", c_int32), ("offsets", c_int32)]


class ModelOptions(Options):
    _fields_ = [
        ("size", c_size_t),
        ("device", c_char_p),
        ("precision", c_char_p),
        ("threads", c_int32),
        ("max_length", c_int32),
        ("batch_tokens", c_int64),
    ]


class EmbedOptions(Options):
    _fields_ = [
        ("size", c_size_t),
        ("normalize", c_int32),
        ("dimensions", c_int32),
        ("pooling", c_char_p),
        ("prompt", c_char_p),
        ("prompt_name", c_char_p),
        ("refuse_long", c_int32),
    ]


class PredictOptions(Options):
    _fields_ = [("size", c_size_t), ("raw", c_int32), ("refuse_long", c_int32)]


class StatesOptions(Options):
    _fields_ = [("size", c_size_t), ("layer", c_int32), ("refuse_long", c_int32)]


_WarningTaker = CFUNCTYPE(None, c_void_p, c_char_p)
_error = POINTER(ErrorStruct)

# name: (result, arguments)
_functions: dict[str, tuple[Any, list[Any]]] = {
    "bertc_version": (c_char_p, []),
    "bertc_abi": (c_int32, []),
    "bertc_on_warning": (None, [_WarningTaker, c_void_p]),
    "bertc_free": (None, [c_void_p]),
    "bertc_tokenizer_open": (c_int, [c_char_p, POINTER(TokenizerOptions), POINTER(c_void_p), _error]),
    "bertc_tokenizer_close": (None, [c_void_p]),
    "bertc_tokenizer_vocabulary_size": (c_int32, [c_void_p]),
    "bertc_tokenizer_token": (c_char_p, [c_void_p, c_int32]),
    "bertc_tokenizer_id": (c_int32, [c_void_p, c_char_p]),
    "bertc_tokenizer_encode": (
        c_int,
        [c_void_p, c_void_p, c_void_p, c_int64, POINTER(EncodeOptions), POINTER(c_void_p), _error],
    ),
    "bertc_tokens_free": (None, [c_void_p]),
    "bertc_tokens_count": (c_int64, [c_void_p]),
    "bertc_tokens_starts": (POINTER(c_int64), [c_void_p]),
    "bertc_tokens_ids": (POINTER(c_int32), [c_void_p]),
    "bertc_tokens_types": (POINTER(c_int8), [c_void_p]),
    "bertc_tokens_offsets": (POINTER(c_uint32), [c_void_p]),
    "bertc_tokenizer_decode": (c_int, [c_void_p, c_void_p, c_int64, c_int32, POINTER(c_void_p), _error]),
    "bertc_model_open": (c_int, [c_char_p, POINTER(ModelOptions), POINTER(c_void_p), _error]),
    "bertc_model_close": (None, [c_void_p]),
    "bertc_model_task": (c_char_p, [c_void_p]),
    "bertc_model_description": (c_char_p, [c_void_p]),
    "bertc_model_max_length": (c_int32, [c_void_p]),
    "bertc_model_hidden_size": (c_int32, [c_void_p]),
    "bertc_model_embedding_size": (c_int32, [c_void_p]),
    "bertc_model_label_count": (c_int32, [c_void_p]),
    "bertc_model_label": (c_char_p, [c_void_p, c_int32]),
    "bertc_model_score_count": (c_int32, [c_void_p]),
    "bertc_model_embed": (
        c_int,
        [c_void_p, c_void_p, c_int64, POINTER(EmbedOptions), POINTER(c_float), c_size_t, _error],
    ),
    "bertc_model_scores": (
        c_int,
        [c_void_p, c_void_p, c_void_p, c_int64, POINTER(PredictOptions), POINTER(c_float), c_size_t, _error],
    ),
    "bertc_model_predict": (
        c_int,
        [c_void_p, c_void_p, c_void_p, c_int64, POINTER(PredictOptions), POINTER(c_void_p), _error],
    ),
    "bertc_answers_free": (None, [c_void_p]),
    "bertc_answers_count": (c_int64, [c_void_p]),
    "bertc_answers_json": (c_char_p, [c_void_p, c_int64]),
    "bertc_model_encode": (
        c_int,
        [c_void_p, c_void_p, c_int64, POINTER(StatesOptions), POINTER(c_void_p), _error],
    ),
    "bertc_states_free": (None, [c_void_p]),
    "bertc_states_count": (c_int64, [c_void_p]),
    "bertc_states_starts": (POINTER(c_int64), [c_void_p]),
    "bertc_states_ids": (POINTER(c_int32), [c_void_p]),
    "bertc_states_values": (POINTER(c_float), [c_void_p]),
}


def _load() -> ctypes.CDLL:
    """The library of this package, or the one that BERTC_LIBRARY names."""
    path = os.environ.get("BERTC_LIBRARY") or os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "lib", f"libbertc.so.{_ABI}"
    )
    loaded = ctypes.CDLL(path)
    for name, (result, arguments) in _functions.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    if loaded.bertc_abi() != _ABI:
        raise ImportError(f"'{path}' has ABI {loaded.bertc_abi()}, and this package needs {_ABI}")
    return loaded


library = _load()


@_WarningTaker
def _log_warning(_context: int | None, message: bytes) -> None:
    logging.getLogger("bertc").warning("%s", message.decode(errors="replace"))


library.bertc_on_warning(_log_warning, None)


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status and takes a pointer to an error last."""
    error = ErrorStruct()
    status = getattr(library, name)(*arguments, ctypes.byref(error))
    if status != 0:
        raise error_of(status, error.message.decode(errors="replace"), error.hint.decode(errors="replace"))


def interruptible(
    name: str, *arguments: Any, keep: object = None, undo: Callable[[], object] | None = None, last: Callable[[], object] | None = None
) -> None:
    """call(), which Ctrl-C ends at once: the function runs in a thread, because Python hears signals only between two of its own
    instructions. What it computes after an interruption is thrown away: it still uses `keep`, `undo` releases what it made, and
    `last` is called at its end in any case."""
    failure: list[BaseException] = []
    lock = threading.Lock()
    ended = threading.Event()
    abandoned = False

    def run(_: object) -> None:
        try:
            call(name, *arguments)
        except BaseException as error:
            failure.append(error)
        with lock:
            if abandoned and undo is not None and not failure:
                undo()
            ended.set()
        if last is not None:
            last()

    if threading.current_thread() is not threading.main_thread():
        run(keep)  # signals arrive elsewhere
    else:
        try:
            threading.Thread(target=run, args=(keep,), daemon=True).start()
            ended.wait()
        except BaseException:
            with lock:
                abandoned = True
                if ended.is_set() and undo is not None and not failure:
                    undo()
            raise
    if failure:
        raise failure[0]


def encoded(text: str | None, name: str) -> bytes | None:
    """A string as the library takes it."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a string, not a {type(text).__name__}")
    if "\0" in text:
        raise ValueError(f"{name} has a NUL character, which cannot be used here")
    return text.encode()


def path_bytes(path: str | os.PathLike[str]) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:  # the library would read the file whose name ends there
        raise ValueError(f"the path {path!r} has a NUL character")
    return name


def integer(value: int | None, name: str, bits: int = 32) -> int:
    """A number as the library takes it; None is 0, the default. ctypes would cut off what does not fit."""
    if value is None:
        return 0
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not a {type(value).__name__}") from None
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"{name} is {number}, which is out of range")
    return number


def choice(value: bool | None, name: str) -> int:
    """0 for None, the default, 1 for True, and 2 for False."""
    try:
        return {None: 0, True: 1, False: 2}[value]
    except (KeyError, TypeError):
        raise TypeError(f"{name} must be True, False, or None, not {value!r}") from None


def no_copies(what: object) -> TypeError:
    """Two objects that close the same memory would crash."""
    return TypeError(f"a bertc.{type(what).__name__} can be neither copied nor pickled: open it again from its path")


class TextArray:
    """Texts as a C array of pointers to NUL-terminated UTF-8."""

    def __init__(self, texts: str | Iterable[str], name: str) -> None:
        # Iterating over these gives names or keys, or an order that nobody chose.
        if isinstance(texts, (bytes, bytearray, set, frozenset, Mapping)) or hasattr(texts, "columns"):
            raise TypeError(f"{name} must be a string or a list of strings, not {type(texts).__name__}")
        self.single = isinstance(texts, str)
        items = [texts] if isinstance(texts, str) else list(texts)
        self.count = len(items)
        self._stand_in = ""
        self._bytes, ends = _join(items, name)
        if len(ends) != max(self.count - 1, 0):
            # A NUL within a text would end it. The tokenizer drops it as it drops every control character, so another one,
            # which no text has, takes its place until the answers are there.
            self._stand_in = _free_control(self._bytes, name)
            self._bytes, ends = _join([text.replace("\0", self._stand_in) for text in items], name)
        address = ctypes.cast(ctypes.c_char_p(self._bytes), c_void_p).value or 0
        self._pointers = np.full(max(self.count, 1), address, dtype=np.uintp)
        self._pointers[1:] += (ends + 1).astype(np.uintp)

    def restored(self, answer: Any) -> Any:
        """An answer with the NULs of the texts."""
        if not self._stand_in:
            return answer
        if isinstance(answer, str):
            return answer.replace(self._stand_in, "\0")
        if isinstance(answer, list):
            return [self.restored(item) for item in answer]
        if isinstance(answer, dict):
            return {key: self.restored(value) for key, value in answer.items()}
        return answer

    def pointer(self, first: int = 0) -> c_void_p:
        return c_void_p(self._pointers.ctypes.data + first * self._pointers.itemsize)


def _free_control(texts: bytes, name: str) -> str:
    for code in [*range(1, 9), *range(14, 32), 127]:
        if code not in texts:
            return chr(code)
    raise ValueError(f"{name} have a NUL and every other control character")


_PIECE = 1024  # texts that are joined at a time: between two pieces, Python hears Ctrl-C


def _join(items: list[str], name: str) -> tuple[bytes, NDArray[np.int64]]:
    """The texts with a NUL between each two, and the places of all NULs."""
    pieces: list[bytes] = []
    ends = [np.empty(0, dtype=np.int64)]
    size = 0
    try:
        for first in range(0, len(items), _PIECE):
            pieces.append("\0".join(items[first : first + _PIECE]).encode())
            ends.append(np.flatnonzero(np.frombuffer(pieces[-1], dtype=np.uint8) == 0) + size)
            size += len(pieces[-1]) + 1
            ends.append(np.array([size - 1]))
        return b"\0".join(pieces), np.concatenate(ends)[:-1] if pieces else ends[0]
    except TypeError:
        wrong = next(i for i, text in enumerate(items) if not isinstance(text, str))
        raise TypeError(f"{name}[{wrong}] is a {type(items[wrong]).__name__}, not a string") from None
    except UnicodeEncodeError:
        for i, text in enumerate(items):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"{name}[{i}] has a lone surrogate at {error.start}, which no encoding has") from None
        raise


def array(pointer: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """A copy of what the library owns."""
    if not pointer or 0 in shape:
        return np.empty(shape, dtype=dtype)
    return np.ctypeslib.as_array(pointer, shape=shape).astype(dtype, copy=True)
