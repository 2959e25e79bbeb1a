"""Weights of one BERT as PyTorch programs store them, for tests and comparisons of bertc's readers.

    python dev/torch_checkpoints.py golden                 tests/golden/bert_tiny*
    python dev/torch_checkpoints.py MODEL_FOLDER OUT       OUT/{zip,old,half,bfloat16,sharded,nvidia}/

MODEL_FOLDER is a Hugging Face folder of a BertForPreTraining. The golden model's weights are multiples of 1/128 between
-1 and 1, so that they are the same in every floating-point type.
"""
import json
import os
import shutil
import sys

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForPreTraining

SHAPE = "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act hidden_dropout_prob " \
        "attention_probs_dropout_prob max_position_embeddings type_vocab_size initializer_range".split()


def state_dict(model):
    """As Hugging Face saves it, tied tensors under both names."""
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def nvidia_state(state, rows):
    """NVIDIA's names and padding (DeepLearningExamples, PyTorch/LanguageModeling/BERT/modeling.py)."""
    out = {}
    for name, tensor in state.items():
        if name.endswith("position_ids") or name == "cls.predictions.decoder.bias":
            continue
        for part in ("intermediate", "pooler", "transform"):
            name = name.replace(part + ".dense.", part + ".dense_act.")
        if tensor.dim() and tensor.shape[0] == rows:
            padding = torch.zeros((-rows % 8, *tensor.shape[1:]), dtype=tensor.dtype)
            tensor = torch.cat([tensor, padding])
        out["module." + name] = tensor
    return out


def nvidia_file(model, path, dtype):
    """What run_pretraining.py saves: model, optimizer, the rest of the run."""
    state = nvidia_state(state_dict(model), model.config.vocab_size)
    parameters = [torch.nn.Parameter(torch.zeros(2, 3))]
    optimizer = torch.optim.AdamW(parameters)
    parameters[0].grad = torch.ones(2, 3)
    optimizer.step()
    torch.save({"model": {name: tensor.to(dtype) for name, tensor in state.items()}, "optimizer": optimizer.state_dict(),
                "master params": parameters, "files": [3, "a.hdf5", "b.hdf5"], "epoch": 2, "data_loader": None}, path)


def sharded_files(state, folder):
    """pytorch_model.bin in three files."""
    names, where = list(state), {}
    for i in range(3):
        name = f"pytorch_model-{i + 1:05d}-of-00003.bin"
        part = {key: state[key] for key in names[i::3]}
        torch.save(part, os.path.join(folder, name))
        where.update({key: name for key in part})
    with open(os.path.join(folder, "pytorch_model.bin.index.json"), "w") as file:
        json.dump({"metadata": {"total_size": 0}, "weight_map": where}, file)


def golden():
    torch.manual_seed(7)
    config = BertConfig(vocab_size=13, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12,
                        max_position_embeddings=10)
    model = BertForPreTraining(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randint(-127, 128, parameter.shape) / 128.0)
    model.tie_weights()
    state = state_dict(model)
    once = {name: tensor for name, tensor in state.items() if ".decoder." not in name}
    save_file(once, "tests/golden/bert_tiny.safetensors", {"format": "pt"})
    torch.save(state, "tests/golden/bert_tiny.bin")
    torch.save(state, "tests/golden/bert_tiny_old.bin", _use_new_zipfile_serialization=False)
    nvidia_file(model, "tests/golden/bert_tiny_nvidia.pt", torch.float16)


def folder(out, name, source, google=False):
    path = os.path.join(out, name)
    os.makedirs(path, exist_ok=True)
    for file in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        if os.path.exists(os.path.join(source, file)):
            shutil.copy(os.path.join(source, file), path)
    config = json.load(open(os.path.join(source, "config.json")))
    if google:
        config = {key: config[key] for key in SHAPE}
    json.dump(config, open(os.path.join(path, "bert_config.json" if google else "config.json"), "w"))
    return path


def variants(source, out):
    model = BertForPreTraining.from_pretrained(source, dtype=torch.float32)
    state = state_dict(model)
    torch.save(state, folder(out, "zip", source) + "/pytorch_model.bin")
    torch.save(state, folder(out, "old", source) + "/pytorch_model.bin", _use_new_zipfile_serialization=False)
    for dtype in (torch.float16, torch.bfloat16):
        name = {torch.float16: "half", torch.bfloat16: "bfloat16"}[dtype]
        torch.save({key: value.to(dtype) for key, value in state.items()}, folder(out, name, source) + "/pytorch_model.bin")
    sharded_files(state, folder(out, "sharded", source))
    nvidia_file(model, folder(out, "nvidia", source, google=True) + "/ckpt_8601.pt", torch.float32)


if __name__ == "__main__":
    if sys.argv[1:] == ["golden"]:
        golden()
    else:
        variants(*sys.argv[1:])
