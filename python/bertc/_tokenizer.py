from __future__ import annotations

import ctypes
import operator
import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._library import (
    EncodeOptions,
    TextArray,
    TokenizerOptions,
    array,
    call,
    choice,
    encoded,
    integer,
    interruptible,
    library,
    no_copies,
    path_bytes,
)

_CHARACTERS = 2


class Encoding:
    """The tokens of a number of texts, one text behind the other, without padding.

    `ids` are the tokens of all texts; those of text i are `ids[starts[i]:starts[i + 1]]`, or `encoding[i]`.
    `type_ids` (1 for the second text of a pair) and `offsets` (a row of begin and end for each token, in characters of its
    text, end exclusive) are there if they were asked for, otherwise None."""

    def __init__(
        self,
        ids: NDArray[np.int32],
        starts: NDArray[np.int64],
        type_ids: NDArray[np.int8] | None = None,
        offsets: NDArray[np.uint32] | None = None,
    ) -> None:
        self.ids = ids
        self.starts = starts
        self.type_ids = type_ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"text {index} of {len(self)}")
        index %= len(self)
        return self.ids[self.starts[index] : self.starts[index + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<bertc.Encoding: {len(self)} texts, {len(self.ids)} tokens>"

    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each text."""
        return np.diff(self.starts)

    def padded(self, length: int | None = None, pad_id: int = 0) -> dict[str, NDArray[np.int64]]:
        """As models of PyTorch and ONNX take them: input_ids, attention_mask and token_type_ids, each with a row for each text.

        Rows are as long as the longest text, or `length` tokens long."""
        lengths = self.lengths()
        longest = int(lengths.max()) if len(self) else 0
        if length is None:
            length = longest
        elif longest > length:
            raise ValueError(f"a text has {longest} tokens, more than {length}: cut texts with max_length")
        mask = np.arange(length) < lengths[:, None]
        ids = np.full(mask.shape, pad_id, dtype=np.int64)
        types = np.zeros(mask.shape, dtype=np.int64)
        ids[mask] = self.ids
        if self.type_ids is not None:
            types[mask] = self.type_ids
        return {"input_ids": ids, "attention_mask": mask.astype(np.int64), "token_type_ids": types}


class Tokenizer:
    """BERT's tokenizer: the ids are those of transformers' fast BertTokenizer.

    `path` is a vocab.txt, a tokenizer.json, a model folder, or a run of bertc. `cased` need not be given where the folder
    says it. `threads` (by default all cores) share the texts of a large call. With `special_tokens_in_text` false, "[MASK]"
    in a text is text. `rules` are those of "transformers" or of "google" (google-research/bert).

    A tokenizer may be used by several threads at once, and in forked processes."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        cased: bool | None = None,
        threads: int | None = None,
        special_tokens_in_text: bool = True,
        rules: Literal["transformers", "google"] = "transformers",
    ) -> None:
        if rules not in ("transformers", "google"):
            raise ValueError(f"rules must be 'transformers' or 'google', not {rules!r}")
        handle = ctypes.c_void_p()
        options = TokenizerOptions(
            letter_case=choice(cased, "cased"),
            threads=integer(threads, "threads"),
            plain_text=not special_tokens_in_text,
            google_rules=rules == "google",
        )
        call("bertc_tokenizer_open", path_bytes(path), ctypes.byref(options), ctypes.byref(handle))
        self._handle = handle
        # Not when the interpreter ends: a thread that is not waited for may still be tokenizing.
        weakref.finalize(self, library.bertc_tokenizer_close, handle).atexit = False

    def encode(
        self,
        texts: str | Iterable[str],
        pairs: str | Iterable[str] | None = None,
        *,
        max_length: int | None = None,
        special_tokens: bool = True,
        offsets: bool = False,
    ) -> Encoding:
        """The tokens of texts, or of texts[i] and pairs[i] together: [CLS] text [SEP] pair [SEP].
        A single string is a list of one.

        A text of more than `max_length` tokens, [CLS] and [SEP] included, is cut; of a pair the longer text is cut.
        `special_tokens=False` leaves [CLS] and [SEP] out."""
        first = TextArray(texts, "texts")
        second = None if pairs is None else TextArray(pairs, "pairs")
        if second is not None and second.count != first.count:
            raise ValueError(f"there are {first.count} texts and {second.count} pairs")
        longest = integer(max_length, "max_length")
        if max_length is not None and longest < 1:
            raise ValueError(f"max_length must be at least 1, not {longest}")
        options = EncodeOptions(
            max_length=longest,
            no_special_tokens=not special_tokens,
            offsets=_CHARACTERS if offsets else 0,
        )
        tokens = ctypes.c_void_p()
        interruptible(
            "bertc_tokenizer_encode",
            self._handle,
            first.pointer(),
            second.pointer() if second is not None else None,
            first.count,
            ctypes.byref(options),
            ctypes.byref(tokens),
            keep=(self, first, second, options, tokens),
            undo=lambda: library.bertc_tokens_free(tokens),
        )
        try:
            starts = array(library.bertc_tokens_starts(tokens), (first.count + 1,), np.int64)
            total = int(starts[-1])
            types = library.bertc_tokens_types(tokens)
            places = library.bertc_tokens_offsets(tokens)
            return Encoding(
                array(library.bertc_tokens_ids(tokens), (total,), np.int32),
                starts,
                array(types, (total,), np.int8) if second is not None else None,
                array(places, (total, 2), np.uint32) if offsets else None,
            )
        finally:
            library.bertc_tokens_free(tokens)

    def decode(self, ids: Sequence[int] | NDArray[np.integer], *, skip_special_tokens: bool = True) -> str:
        """The text of ids, as transformers' decoder writes it. Case, accents, and white space do not come back."""
        given = np.asarray(ids)
        if given.ndim != 1:
            raise ValueError("ids must be one list of ids; decode one text after the other")
        if given.size > 0 and given.dtype.kind not in "iu":
            raise TypeError(f"ids must be integers, not {given.dtype}")
        if given.size > 0 and not -(2**31) <= int(given.min()) <= int(given.max()) < 2**31:
            raise ValueError(f"ids must be from 0 to {len(self) - 1}")
        numbers = np.ascontiguousarray(given, dtype=np.int32)
        text = ctypes.c_void_p()
        call(
            "bertc_tokenizer_decode",
            self._handle,
            ctypes.c_void_p(numbers.ctypes.data),
            len(numbers),
            skip_special_tokens,
            ctypes.byref(text),
        )
        try:
            return ctypes.string_at(text.value or 0).decode()
        finally:
            library.bertc_free(text)

    def __reduce__(self) -> tuple[Any, ...]:
        raise no_copies(self)

    def __len__(self) -> int:
        """The number of entries of the vocabulary."""
        return int(library.bertc_tokenizer_vocabulary_size(self._handle))

    def token(self, id: int) -> str:
        """The entry with this id."""
        text = library.bertc_tokenizer_token(self._handle, id) if 0 <= operator.index(id) < len(self) else None
        if text is None:
            raise IndexError(f"id {id} of {len(self)}")
        return text.decode(errors="replace")

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The entries with these ids."""
        return [self.token(operator.index(id)) for id in ids]

    def id(self, token: str) -> int | None:
        """The id of an entry; None if the vocabulary has no such entry."""
        if not isinstance(token, str):
            raise TypeError(f"token must be a string, not a {type(token).__name__}")
        found = library.bertc_tokenizer_id(self._handle, encoded(token, "token"))
        return int(found) if found >= 0 else None
