"""Examples or texts in memory, as rows for the program: JSON lines, written row by row."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
_PIECE = 1000  # rows of an Arrow table that are Python objects at a time


class Dataset:
    """Rows of a table, for `train`, `dev`, `test`, `corpus`, and the like.

    `data` is one of: a list (or anything iterable) of dictionaries, of texts, or, with `columns`, of tuples; a dictionary of columns;
    a DataFrame of pandas or Polars; a Dataset of the package `datasets`, whose class numbers become the classes' names; a Table,
    RecordBatchReader, or Dataset of pyarrow; the path of a Parquet, Arrow, or Feather file, for which pyarrow is needed. Rows are
    read when a run begins, a few at a time; those of a generator can be read only once. A missing value (None, NaN, NA) is null."""

    def __init__(self, data: Any, columns: Sequence[str] | None = None) -> None:
        self._rows = _reader(data, columns)
        self._once = type(data).__name__ if isinstance(data, Iterator) else None
        self._read = False

    def __iter__(self) -> Iterator[Row]:
        if self._once and self._read:
            raise ValueError(f"the rows of a {self._once} can be read only once: make a Dataset of a list, or a new one each time")
        self._read = True
        return self._rows()

    def save(self, path: str | os.PathLike[str]) -> int:
        """Writes the rows as JSON lines, which every command reads, and returns their number."""
        count = 0
        with open(path, "w", encoding="utf-8") as file:
            for row in self:
                try:
                    file.write(_line(row) + "\n")
                except (TypeError, ValueError) as error:
                    raise type(error)(f"row {count}: {error}") from None
                count += 1
        return count


def _reader(data: Any, columns: Sequence[str] | None) -> Callable[[], Iterator[Row]]:
    table = _table_reader(data)
    if table is not None:
        if columns is not None:
            raise TypeError(f"columns names the values of tuples; those of a {type(data).__name__} have names: select among them beforehand")
        return table
    if not isinstance(data, Iterable) or isinstance(data, (bytes, bytearray)):
        raise TypeError(f"a Dataset is made of rows, not of {type(data).__name__}")
    features = getattr(data, "features", None) or {}
    classes = {name: feature for name, feature in features.items() if _class_names(feature)}
    if features and hasattr(data, "with_format"):
        data = data.with_format(None)  # of the package datasets: values of Python, not tensors or tables
    return lambda: (_named(_row(item, columns, number), classes) for number, item in enumerate(data))


def _table_reader(data: Any) -> Callable[[], Iterator[Row]] | None:
    """The rows of data whose columns have names; None for other rows."""
    if isinstance(data, (str, os.PathLike)):
        return _file_reader(os.fspath(data))
    if hasattr(data, "itertuples"):  # pandas
        names = _distinct([str(name) for name in data.columns])
        return lambda: (dict(zip(names, row)) for row in data.itertuples(index=False, name=None))
    if hasattr(data, "iter_rows"):  # Polars
        return lambda: data.iter_rows(named=True)
    if hasattr(data, "to_batches") or hasattr(data, "read_next_batch"):  # Arrow
        _distinct(data.schema.names)
        return lambda: _batch_rows(data.to_batches() if hasattr(data, "to_batches") else data)
    if isinstance(data, Mapping):
        if isinstance(getattr(data, "column_names", None), Mapping):
            raise TypeError(f"this {type(data).__name__} has several sets: give one of {list(data)}")
        return lambda: _column_rows(data)
    return None


def _distinct(names: list[str]) -> list[str]:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"several columns are called {twice[0]!r}: rename them, or drop all but one")
    return names


def _file_reader(path: str) -> Callable[[], Iterator[Row]]:
    if not path.endswith((".parquet", ".arrow", ".feather")):
        raise ValueError(f"'{path}' is not a Parquet, Arrow, or Feather file; a table or text that bertc reads itself is given as its path")

    def rows() -> Iterator[Row]:
        import pyarrow.dataset

        return _batch_rows(pyarrow.dataset.dataset(path, format=path.rpartition(".")[2]).to_batches(batch_size=_PIECE))

    return rows


def _batch_rows(batches: Iterable[Any]) -> Iterator[Row]:
    for batch in batches:
        for first in range(0, batch.num_rows, _PIECE):
            yield from batch.slice(first, _PIECE).to_pylist()


def _column_rows(columns: Mapping[str, Sequence[Any]]) -> Iterator[Row]:
    if texts := [name for name, values in columns.items() if isinstance(values, str)]:
        raise TypeError(f"the column {texts[0]!r} is a text, not a list of values; a single row is [{{...}}]")
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the columns differ in length: {sizes}")
    return (dict(zip(columns, row)) for row in zip(*columns.values()))


def _row(item: Any, columns: Sequence[str] | None, number: int) -> Row:
    if isinstance(item, Mapping):
        if columns is not None:
            raise TypeError(f"columns names the values of tuples, and row {number} is a {type(item).__name__}, whose values have names")
        return dict(item)
    if columns is None:
        if isinstance(item, str):
            return {"text": item}
        raise TypeError(f"row {number} is a {type(item).__name__}, not a dictionary or a text: name its values, Dataset(rows, columns=[...])")
    values = [item] if isinstance(item, str) else list(item)
    if len(values) != len(columns):
        raise ValueError(f"row {number} has {len(values)} values for {len(columns)} columns")
    return dict(zip(columns, values))


def _class_names(feature: Any) -> list[str] | None:
    """The names of a ClassLabel, or of a list of them."""
    inner = feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", feature)
    names: list[str] | None = getattr(inner, "names", None)
    return names


def _named(row: Row, classes: Mapping[str, Any]) -> Row:
    for column, feature in classes.items():
        row[column] = _class_name(row[column], _class_names(feature) or [])
    return row


def _class_name(value: Any, names: list[str]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_class_name(item, names) for item in value]
    return names[value] if value is not None and value >= 0 else None  # -1: a row without a label


def _line(row: Row) -> str:
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:  # not a number
        text = json.dumps(_without_nan(row), ensure_ascii=False, allow_nan=False, default=_plain)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text has a lone surrogate, which no encoding has") from None
    return text


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return _without_nan(_plain(value)) if hasattr(value, "tolist") else value


def _plain(value: Any) -> Any:
    """What JSON has for a value of NumPy or pandas."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"a value of the type {type(value).__name__} is neither text nor number")
