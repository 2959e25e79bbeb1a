"""Compares the weights as read by bertc with transformers: losses and hidden states of the same batch.

    make build/dev/weights_compare
    python dev/weights_compare.py REFERENCE MODEL...

REFERENCE is a Hugging Face folder, read by transformers and computed in float64; each MODEL is a form of the same weights
that bertc reads. A reference without heads is compared by hidden states only. A bert_config.json beside a TensorFlow
checkpoint means the tanh form of GELU, and such a MODEL is compared with that.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy
import torch
from safetensors.numpy import load_file, save_file
from transformers import BertConfig, BertForPreTraining, BertModel

from model_golden import make_batch, padded

LENGTHS = [128, 37, 90, 64]


def reference(folder, activation, batch, dtype):
    """Losses (None without heads) and hidden states of the real tokens."""
    config = BertConfig.from_pretrained(folder, attn_implementation="eager")
    if activation:
        config.hidden_act = activation
    ids, types, mask, labels, following = padded(batch, LENGTHS)
    heads = "BertForPreTraining" in (config.architectures or [])
    model = (BertForPreTraining if heads else BertModel).from_pretrained(folder, config=config, dtype=torch.float32)
    model = model.to(dtype).eval()
    with torch.no_grad():
        encoder = model.bert if heads else model
        hidden = encoder(input_ids=ids, token_type_ids=types, attention_mask=mask).last_hidden_state
        hidden = torch.cat([hidden[i, :n] for i, n in enumerate(LENGTHS)]).double().numpy()
        if not heads:
            return None, hidden
        out = model(input_ids=ids, token_type_ids=types, attention_mask=mask)
        mlm = torch.nn.functional.cross_entropy(out.prediction_logits[labels != -100], labels[labels != -100])
        nsp = torch.nn.functional.cross_entropy(out.seq_relationship_logits, following)
    return (mlm.item(), nsp.item()), hidden


def distance(a, b):
    return numpy.linalg.norm(a - b) / numpy.linalg.norm(b)


def is_google(model):
    folder = model if os.path.isdir(model) else os.path.dirname(model)
    return any(name.endswith(".index") for name in os.listdir(folder)) and \
        os.path.exists(os.path.join(folder, "bert_config.json"))


def main(folder, *models):
    config = BertConfig.from_pretrained(folder)
    sizes = dict(vocab_size=config.vocab_size, hidden_size=config.hidden_size)
    batch = make_batch(sizes, LENGTHS, seed=3)
    with tempfile.TemporaryDirectory() as scratch:
        path, out = os.path.join(scratch, "batch.safetensors"), os.path.join(scratch, "out.safetensors")
        save_file({"batch." + name: value for name, value in batch.items()}, path, {"config": json.dumps(
            dict(sizes, model_type="bert", num_attention_heads=config.num_attention_heads))})
        for model in models:
            activation = "gelu_new" if is_google(model) else None
            wanted, states = reference(folder, activation, batch, torch.float64)
            single, single_states = reference(folder, activation, batch, torch.float32)
            text = subprocess.run(["build/dev/weights_compare", model, path, out], check=True, capture_output=True, text=True)
            mlm, nsp, loaded, missing = text.stdout.split()
            got = load_file(out)["hidden"].astype(numpy.float64)
            line = f"{model}: {loaded} tensors, {missing} missing; hidden states {distance(got, states):.1e} " \
                   f"(transformers' fp32 {distance(single_states, states):.1e})"
            if wanted:
                line += f"; MLM {float(mlm):.8f} ({abs(float(mlm) / wanted[0] - 1):.1e}), " \
                        f"NSP {float(nsp):.8f} ({abs(float(nsp) / wanted[1] - 1):.1e}); transformers' fp32 " \
                        f"{abs(single[0] / wanted[0] - 1):.1e}, {abs(single[1] / wanted[1] - 1):.1e}"
            print(line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
