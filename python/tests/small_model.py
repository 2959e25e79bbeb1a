"""Small BERTs of made-up weights, written as transformers writes them, and what they compute, in NumPy and float64."""

from __future__ import annotations

import json
import math
import os
import struct

import numpy as np

HIDDEN, LAYERS, HEADS, INTERMEDIATE, POSITIONS = 32, 2, 2, 48, 64
WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] . , ! ? the a man woman dog cat sleeps runs eats ##s ##ing un ##able good bad film "
    "was is very not 日 本 e"
).split()


def names(heads: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "bert.embeddings.word_embeddings.weight": (len(WORDS), HIDDEN),
        "bert.embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "bert.embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "bert.embeddings.LayerNorm.weight": (HIDDEN,),
        "bert.embeddings.LayerNorm.bias": (HIDDEN,),
        "bert.pooler.dense.weight": (HIDDEN, HIDDEN),
        "bert.pooler.dense.bias": (HIDDEN,),
    }
    for layer in range(LAYERS):
        at = f"bert.encoder.layer.{layer}."
        for name, out, inner in (
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INTERMEDIATE, HIDDEN),
            ("output.dense", HIDDEN, INTERMEDIATE),
        ):
            shapes[at + name + ".weight"] = (out, inner)
            shapes[at + name + ".bias"] = (out,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[at + name + ".weight"] = (HIDDEN,)
            shapes[at + name + ".bias"] = (HIDDEN,)
    return shapes | heads


def write_model(folder: str, architecture: str, labels: list[str] | None = None) -> dict[str, np.ndarray]:
    """Writes a model folder and returns its weights."""
    heads: dict[str, tuple[int, ...]] = {}
    if labels:
        heads = {"classifier.weight": (len(labels), HIDDEN), "classifier.bias": (len(labels),)}
    random = np.random.default_rng(3)
    weights = {}
    for name, shape in names(heads).items():
        values = random.normal(scale=0.2, size=shape)
        weights[name] = (values + 1 if name.endswith("LayerNorm.weight") else values).astype(np.float32)
    os.makedirs(folder)
    header, offset = {}, 0
    for name, values in weights.items():
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(values.tobytes() for values in weights.values()))
    config = {
        "architectures": [architecture],
        "model_type": "bert",
        "vocab_size": len(WORDS),
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    }
    if labels:
        config["id2label"] = dict(enumerate(labels))
        config["label2id"] = {label: i for i, label in enumerate(labels)}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(WORDS) + "\n")
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump({"do_lower_case": True, "model_max_length": POSITIONS}, file)
    return weights


def write_sentence_files(folder: str, truncate_dim: int, modes: tuple[str, ...] = ("mean",)) -> None:
    """Makes it a folder of sentence-transformers, whose vectors are cut."""
    kinds = {"mean": "mean_tokens", "max": "max_tokens", "cls": "cls_token"}
    pooling = {"word_embedding_dimension": HIDDEN} | {"pooling_mode_" + kinds[mode]: mode in modes for mode in kinds}
    os.makedirs(os.path.join(folder, "1_Pooling"))
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
        for i, (path, kind) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling")))
    ]
    for name, content in (
        ("modules.json", modules),
        ("1_Pooling/config.json", pooling),
        ("config_sentence_transformers.json", {"truncate_dim": truncate_dim}),
    ):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)


_erf = np.vectorize(math.erf)


def _norm(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return x * weights[name + ".weight"] + weights[name + ".bias"]


def _linear(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def hidden_states(weights: dict[str, np.ndarray], ids: np.ndarray, types: np.ndarray | None = None) -> np.ndarray:
    """The last layer's rows for one text."""
    weights = {name: values.astype(np.float64) for name, values in weights.items()}
    at = "bert.embeddings."
    x = weights[at + "word_embeddings.weight"][ids] + weights[at + "position_embeddings.weight"][: len(ids)]
    x = x + weights[at + "token_type_embeddings.weight"][np.zeros_like(ids) if types is None else types]
    x = _norm(x, weights, at + "LayerNorm")
    width = HIDDEN // HEADS
    for layer in range(LAYERS):
        at = f"bert.encoder.layer.{layer}."
        query, key, value = (
            _linear(x, weights, at + "attention.self." + name).reshape(-1, HEADS, width).swapaxes(0, 1)
            for name in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / math.sqrt(width)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = (shares @ value).swapaxes(0, 1).reshape(-1, HIDDEN)
        x = _norm(x + _linear(mixed, weights, at + "attention.output.dense"), weights, at + "attention.output.LayerNorm")
        inner = _linear(x, weights, at + "intermediate.dense")
        inner = inner * 0.5 * (1 + _erf(inner / math.sqrt(2)))
        x = _norm(x + _linear(inner, weights, at + "output.dense"), weights, at + "output.LayerNorm")
    return x


def logits(weights: dict[str, np.ndarray], ids: np.ndarray, types: np.ndarray | None = None) -> np.ndarray:
    """What the head of a classifier gives for one text."""
    weights = {name: values.astype(np.float64) for name, values in weights.items()}
    pooled = np.tanh(_linear(hidden_states(weights, ids, types)[0], weights, "bert.pooler.dense"))
    return _linear(pooled, weights, "classifier")
