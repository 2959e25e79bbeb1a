"""Loads one of our model folders in transformers and computes the loss of a golden batch with it.

    python dev/model_folder_check.py FOLDER GOLDEN.safetensors gelu|gelu_new

FOLDER: as written by `build/model_compare GOLDEN gelu cpu f32 save FOLDER`. Fails on any missing, unexpected or
mismatched weight in BertForPreTraining, BertModel or AutoModelForMaskedLM, and on a different loss.
"""
import sys

import numpy
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertForPreTraining, BertModel


def check(kind, folder, allowed_unexpected=()):
    model, info = kind.from_pretrained(folder, output_loading_info=True)
    print(kind.__name__, {key: sorted(value) for key, value in info.items() if value})
    assert not info["missing_keys"] and not info["mismatched_keys"]
    assert all(key.startswith(tuple(allowed_unexpected)) for key in info["unexpected_keys"])
    return model.eval()


def main():
    folder, path, act = sys.argv[1:]
    golden = load_file(path)
    check(BertModel, folder, ("cls.",))
    check(AutoModelForMaskedLM, folder, ("cls.seq_relationship", "bert.pooler"))
    model = check(BertForPreTraining, folder)
    for name, parameter in model.named_parameters():
        assert parameter.dtype == torch.float32
        assert numpy.array_equal(parameter.detach().numpy(), golden["weights." + name]), name
    starts, rows = golden["batch.starts"], golden["batch.prediction_rows"]
    mlm = nsp = labelled = 0.0
    with torch.no_grad():
        for s, (begin, end) in enumerate(zip(starts[:-1], starts[1:])):
            out = model(input_ids=torch.from_numpy(golden["batch.ids"][begin:end]).long()[None],
                        token_type_ids=torch.from_numpy(golden["batch.types"][begin:end]).long()[None])
            for row, label in zip(rows, golden["batch.prediction_labels"]):
                if begin <= row < end:
                    mlm += torch.nn.functional.cross_entropy(out.prediction_logits[0, row - begin][None],
                                                             torch.tensor([int(label)])).item() / len(rows)
            if golden["batch.next_labels"][s] >= 0:
                nsp += torch.nn.functional.cross_entropy(out.seq_relationship_logits,
                                                         torch.tensor([int(golden["batch.next_labels"][s])])).item()
                labelled += 1
    wanted = golden[act + ".loss"]
    print("loss", mlm + nsp / labelled, "golden", wanted[0] + wanted[1])
    assert abs(mlm + nsp / labelled - wanted[0] - wanted[1]) < 1e-6 * wanted[:2].sum()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    print(type(tokenizer).__name__, len(tokenizer), tokenizer("w7 [MASK] w49")["input_ids"])
    assert len(tokenizer) == model.config.vocab_size
    print("ok")


main()
