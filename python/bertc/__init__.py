"""BERT models: tokenize texts, compute embeddings and predictions, train.

    import bertc

    tokenizer = bertc.Tokenizer("runs/mine")
    encoding = tokenizer.encode(["A text.", "Another."])

    model = bertc.Model("runs/mine")
    vectors = model.embed(["A text.", "Another."])

    results = bertc.finetune(task="classification", model="runs/mine", train=rows, dev="dev.tsv", out="runs/task")

Warnings go to the logger "bertc" of Python's logging module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._dataset import Dataset
    from ._error import Error
    from ._model import Model
    from ._tokenizer import Encoding, Tokenizer
    from ._train import finetune, pretrain
    from ._version import __version__

__all__ = ["Dataset", "Encoding", "Error", "Model", "Tokenizer", "__version__", "finetune", "pretrain"]

_homes = {
    "Dataset": "_dataset",
    "Encoding": "_tokenizer",
    "Error": "_error",
    "Model": "_model",
    "Tokenizer": "_tokenizer",
    "__version__": "_version",
    "finetune": "_train",
    "pretrain": "_train",
}


# Loaded when they are first used, so that the command `bertc`, which starts here, does not wait for NumPy.
def __getattr__(name: str) -> Any:
    if name not in _homes:
        raise AttributeError(f"module 'bertc' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module("." + _homes[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
