#!/usr/bin/env python3
"""Compares what `bertc export --to onnx` writes with transformers: every head, both forms of GELU, padded batches.

    python dev/onnx_check.py build/bertc [FOLDER...]

Makes small models of every architecture (of BERT and ModernBERT) with random weights (and uses those of each FOLDER), exports them, runs onnx.checker on
the graph and compares the outputs of onnxruntime and transformers. Finally prints the largest difference. Needs torch,
transformers, onnx, onnxruntime."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import safetensors.torch
import torch
import transformers
from transformers import BertConfig, BertTokenizerFast, ModernBertConfig

TEXTS = ["the film was good and i liked it", "bad", "a long sentence with many words , commas , and so on", "[MASK] world"]
WORDS = sorted({w for t in TEXTS for w in t.replace("[MASK]", "").split()})
HEADS = {  # class: outputs of the graph, and what transformers calls them
    "BertModel": (["last_hidden_state", "pooler_output"], ["last_hidden_state", "pooler_output"]),
    "BertForPreTraining": (["logits", "seq_relationship_logits"], ["prediction_logits", "seq_relationship_logits"]),
    "BertForMaskedLM": (["logits"], ["logits"]),
    "BertForSequenceClassification": (["logits"], ["logits"]),
    "BertForTokenClassification": (["logits"], ["logits"]),
    "BertForQuestionAnswering": (["start_logits", "end_logits"], ["start_logits", "end_logits"]),
    "BertForMultipleChoice": (["logits"], ["logits"]),
}


def config_of(name, variant):
    labels = 5 if name.endswith(("ForSequenceClassification", "ForTokenClassification")) else 2
    common = dict(vocab_size=5 + len(WORDS), hidden_size=48, num_attention_heads=4, max_position_embeddings=40,
                  initializer_range=0.2, num_labels=labels)
    if name.startswith("Modern"):  # a variant is a way of pooling, with or without biases
        bias = variant == "mean"
        return ModernBertConfig(num_hidden_layers=5, intermediate_size=40, local_attention=6, global_attn_every_n_layers=2,
                                classifier_pooling=variant, attention_bias=bias, mlp_bias=bias, norm_bias=bias, classifier_bias=bias,
                                pad_token_id=0, bos_token_id=2, cls_token_id=2, eos_token_id=3, sep_token_id=3, **common)
    return BertConfig(num_hidden_layers=3, intermediate_size=80, hidden_act=variant, **common)


def make_folder(folder, name, variant):
    torch.manual_seed(3)
    os.makedirs(folder)
    with open(os.path.join(folder, "vocab.txt"), "w") as f:
        f.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS) + "\n")
    model = getattr(transformers, name)(config_of(name, variant))
    for p in model.parameters():  # biases and norms too
        if p.dim() == 1:
            p.data += torch.randn_like(p) * 0.1
    model.save_pretrained(folder)
    BertTokenizerFast(os.path.join(folder, "vocab.txt")).save_pretrained(folder)


def compare(bertc, folder, name, out):
    subprocess.run([bertc, "export", "--model", folder, "--to", "onnx", "--out", out, "-q"], check=True)
    path = os.path.join(out, "onnx", "model.onnx")
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    encoded = tokenizer(TEXTS, padding=True, return_tensors="pt")
    names, keys = HEADS[name.removeprefix("Modern")]
    encoded = {i.name: encoded[i.name] for i in session.get_inputs()}
    if name.startswith("Modern"):  # which has no pooler, and no head for next sentences
        names, keys = names[:1 + ("end_logits" in names)], keys[:1 + ("end_logits" in keys)]
    if name.endswith("ForMultipleChoice"):
        encoded = {k: v.view(2, 2, -1) for k, v in encoded.items()}
    with torch.no_grad():
        theirs = getattr(transformers, name).from_pretrained(folder).eval()(**encoded)
    ours = session.run(None, {i.name: encoded[i.name].numpy() for i in session.get_inputs()})
    assert [o.name for o in session.get_outputs()] == names, [o.name for o in session.get_outputs()]
    worst = 0.0
    for key, value in zip(keys, ours):
        expected = getattr(theirs, key).numpy()
        assert expected.shape == value.shape
        difference = np.abs(expected - value)
        if not name.endswith("ForMultipleChoice") and value.ndim > 1 and value.shape[1] == encoded["input_ids"].shape[1]:
            difference = difference[encoded["attention_mask"].numpy() > 0]  # outputs at padding positions have no meaning
        worst = max(worst, float(difference.max()))
    print(f"{worst:.2e}  {name}  {folder}")
    return worst


def pooled(hidden, mask):
    """All modes of sentence-transformers' Pooling, in its order, and its Normalize."""
    m = mask.unsqueeze(-1).float()
    number = torch.cumsum(m, 1) * m
    last = (mask.sum(1) - 1).tolist()
    parts = [hidden[:, 0], torch.where(m > 0, hidden, torch.tensor(-1e9)).max(1).values, (hidden * m).sum(1) / m.sum(1),
             (hidden * m).sum(1) / m.sum(1).sqrt(), (hidden * number).sum(1) / number.sum(1),
             torch.stack([hidden[i, k] for i, k in enumerate(last)])]
    return torch.nn.functional.normalize(torch.cat(parts, 1), dim=1).numpy()


def compare_pooling(bertc, folder):
    """An encoder whose sentence-transformers folder asks for every mode."""
    make_folder(folder, "BertModel", "gelu")
    os.makedirs(os.path.join(folder, "1_Pooling"))
    modes = ["cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]
    files = {"modules.json": [{"idx": i, "name": str(i), "path": p, "type": "sentence_transformers.models." + t}
                              for i, (p, t) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_N", "Normalize")])],
             "1_Pooling/config.json": dict({"pooling_mode_" + m: True for m in modes}, word_embedding_dimension=48)}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w") as f:
            json.dump(content, f)
    out = folder + "-onnx"
    subprocess.run([bertc, "export", "--model", folder, "--to", "onnx", "--out", out, "-q"], check=True)
    path = os.path.join(out, "onnx", "model.onnx")
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path)
    encoded = transformers.AutoTokenizer.from_pretrained(out)(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = transformers.BertModel.from_pretrained(folder).eval()(**encoded).last_hidden_state
    (ours,) = session.run(["sentence_embedding"], {k: v.numpy() for k, v in encoded.items()})
    worst = float(np.abs(ours - pooled(hidden, encoded["attention_mask"])).max())
    print(f"{worst:.2e}  sentence_embedding")
    return worst


def compare_relation(bertc, folder):
    """transformers has no class for relations: the concatenated rows of two markers, before a linear layer."""
    make_folder(folder, "BertModel", "gelu")
    encoder = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    head = torch.nn.Linear(96, 3)
    weights = {"bert." + k: v.contiguous() for k, v in encoder.state_dict().items()}
    weights.update({"classifier." + k: v for k, v in head.state_dict().items()})
    safetensors.torch.save_file(weights, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        config = json.load(f)
    config.update(architectures=["BertForRelationExtraction"], id2label={"0": "a", "1": "b", "2": "c"})
    with open(path, "w") as f:
        json.dump(config, f)
    with open(os.path.join(folder, "bertc_task.json"), "w") as f:
        json.dump({"task": "relation", "relation": {"markers": ["<<", ">>", "[[", "]]"], "marker_tokens": "text",
                                                    "head": "markers"}}, f)
    out = folder + ".onnx"
    subprocess.run([bertc, "export", "--model", folder, "--to", "onnx", "--out", out, "-q"], check=True)
    onnx.checker.check_model(out, full_check=True)
    session = onnxruntime.InferenceSession(out)
    encoded = BertTokenizerFast(os.path.join(folder, "vocab.txt"))(TEXTS, padding=True, return_tensors="pt")
    rows = torch.tensor([[1, 4], [0, 1], [5, 2], [2, 1]])
    with torch.no_grad():
        hidden = encoder(**encoded).last_hidden_state
        theirs = head(torch.stack([hidden[i, r].reshape(-1) for i, r in enumerate(rows)])).numpy()
    inputs = {k: v.numpy() for k, v in encoded.items()}
    (ours,) = session.run(["logits"], dict(inputs, entity_positions=rows.numpy()))
    worst = float(np.abs(ours - theirs).max())
    print(f"{worst:.2e}  relation")
    return worst


def main():
    bertc, worst = sys.argv[1], 0.0
    with tempfile.TemporaryDirectory() as top:
        for variant in ("gelu", "gelu_new", "cls", "mean"):
            for name in HEADS:
                if variant in ("cls", "mean"):
                    name = "Modern" + name
                if not hasattr(transformers, name):
                    continue
                folder = os.path.join(top, variant, name)
                make_folder(folder, name, variant)
                worst = max(worst, compare(bertc, folder, name, folder + "-onnx"))
        worst = max(worst, compare_pooling(bertc, os.path.join(top, "vectors")))
        worst = max(worst, compare_relation(bertc, os.path.join(top, "relation")))
        for i, folder in enumerate(sys.argv[2:]):
            name = transformers.AutoConfig.from_pretrained(folder).architectures[0]
            worst = max(worst, compare(bertc, folder, name, os.path.join(top, str(i))))
    print(f"largest difference {worst:.2e}")
    return worst > 1e-5


if __name__ == "__main__":
    sys.exit(main())
