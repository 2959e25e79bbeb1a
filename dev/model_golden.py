"""Reference losses and gradients of BertForPreTraining, from transformers in float64.

    python dev/model_golden.py tiny tests/golden/model_tiny.safetensors
    python dev/model_golden.py base /tmp/base.safetensors      (about 1.3 GB, 2 minutes; for dev/model_compare.c)

The file holds, for tests/model/golden.h:
    weights.<name>            F32, the weights of both runs
    batch.<array>             the packed batch of src/data/batch.h (sequences of mixed lengths, no padding)
    <act>.loss                F64: MLM loss, NSP loss (means), MLM correct, NSP correct (counts)
    <act>.gradient.<name>     of the sum of both means; <act> is "gelu" (erf) or "gelu_new" (tanh)
    <act>.error32             F64, in the order of the tensors' names: |g32 - g64| of transformers' own fp32 run
and the configuration as metadata. Dropout is off. One sequence of the tiny batch has no next-sentence label.
"""
import json
import sys

import numpy
import torch
from safetensors.numpy import save_file
from transformers import BertConfig, BertForPreTraining

SIZES = {
    "tiny": dict(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40,
                 max_position_embeddings=16, lengths=[16, 5, 9, 2], activations=["gelu", "gelu_new"], dtype="F64"),
    "base": dict(vocab_size=30522, hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
                 intermediate_size=3072, max_position_embeddings=512, lengths=[128, 37, 90, 64],
                 activations=["gelu", "gelu_new"], dtype="F32"),
}


def make_model(config, seed):
    torch.manual_seed(seed)
    model = BertForPreTraining(BertConfig(
        **config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager"))
    for name, parameter in model.named_parameters():
        # Moves every weight away from its initial 0 or 1, by enough to matter, so that no gradient is a special case.
        with torch.no_grad():
            spread = 0.02 if parameter.dim() == 1 else (0.3 if config["hidden_size"] < 64 else 0.02)
            parameter.normal_(1.0 if name.endswith("LayerNorm.weight") else 0.0, spread)
    return model


def make_batch(config, lengths, seed):
    random = numpy.random.RandomState(seed)
    starts = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype(numpy.int32)
    tokens = int(starts[-1])
    batch = dict(starts=starts, ids=random.randint(5, config["vocab_size"], tokens).astype(numpy.int32),
                 types=numpy.zeros(tokens, numpy.int32), positions=numpy.zeros(tokens, numpy.int32),
                 next_labels=random.randint(0, 2, len(lengths)).astype(numpy.int32))
    batch["ids"][-1] = batch["ids"][0]  # at least one id occurs twice
    if config["hidden_size"] < 64:
        batch["next_labels"][1] = -1
    rows = []
    for sequence, length in enumerate(lengths):
        start = starts[sequence]
        batch["positions"][start:start + length] = numpy.arange(length)
        batch["types"][start + length // 2:start + length] = 1
        if length > 2:  # the shortest sequence has no prediction
            rows += sorted(start + 1 + random.permutation(length - 1)[:max(1, round(0.15 * length))])
    batch["prediction_rows"] = numpy.array(rows, numpy.int32)
    batch["prediction_labels"] = random.randint(5, config["vocab_size"], len(rows)).astype(numpy.int32)
    return batch


def padded(batch, lengths):
    """The same batch in the form that transformers expects."""
    shape = (len(lengths), max(lengths))
    ids, types, mask = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    labels = torch.full(shape, -100)
    for sequence, length in enumerate(lengths):
        start = batch["starts"][sequence]
        ids[sequence, :length] = torch.from_numpy(batch["ids"][start:start + length])
        types[sequence, :length] = torch.from_numpy(batch["types"][start:start + length])
        mask[sequence, :length] = 1
    for row, label in zip(batch["prediction_rows"], batch["prediction_labels"]):
        sequence = int(numpy.searchsorted(batch["starts"], row, "right")) - 1
        labels[sequence, row - batch["starts"][sequence]] = int(label)
    following = torch.from_numpy(batch["next_labels"]).long()
    following[following == -1] = -100
    return ids, types, mask, labels, following


def run(model, inputs):
    ids, types, mask, labels, following = inputs
    model.zero_grad()
    out = model(input_ids=ids, token_type_ids=types, attention_mask=mask)
    logits = out.prediction_logits[labels != -100]
    wanted = labels[labels != -100]
    mlm = torch.nn.functional.cross_entropy(logits, wanted)
    nsp = torch.nn.functional.cross_entropy(out.seq_relationship_logits, following, ignore_index=-100)
    (mlm + nsp).backward()
    with torch.no_grad():
        whole = model(input_ids=ids, token_type_ids=types, attention_mask=mask, labels=labels,
                      next_sentence_label=following).loss
        assert abs(whole.item() - (mlm + nsp).item()) < 1e-5
    labeled = following != -100
    loss = [mlm.item(), nsp.item(), int((logits.argmax(1) == wanted).sum()),
            int((out.seq_relationship_logits.argmax(1) == following)[labeled].sum())]
    return loss, {name: p.grad.detach().double().numpy().copy() for name, p in model.named_parameters()}


def main():
    size, path = sys.argv[1:]
    config = dict(SIZES[size])
    lengths, activations, dtype = config.pop("lengths"), config.pop("activations"), config.pop("dtype")
    batch = make_batch(config, lengths, seed=2)
    tensors = {"batch." + name: value for name, value in batch.items()}
    for activation in activations:
        model = make_model(dict(config, hidden_act=activation), seed=1).eval()
        for name, parameter in model.named_parameters():
            tensors["weights." + name] = parameter.detach().numpy().copy()
        if activation == activations[0]:  # makes the model right about every third word
            with torch.no_grad():
                ids, types, mask, labels, _ = padded(batch, lengths)
                logits = model(input_ids=ids, token_type_ids=types, attention_mask=mask).prediction_logits
                batch["prediction_labels"][::3] = logits[labels != -100].argmax(1)[::3].numpy()
        inputs = padded(batch, lengths)
        _, single = run(model, inputs)
        loss, double = run(model.double(), inputs)
        print(size, activation, "loss", loss, "gradient norm",
              numpy.sqrt(sum((g ** 2).sum() for g in double.values())))
        tensors[activation + ".loss"] = numpy.array(loss, numpy.float64)
        names = sorted(double)
        tensors[activation + ".error32"] = numpy.array([numpy.linalg.norm(single[n] - double[n]) for n in names])
        for name in names:
            tensors[f"{activation}.gradient.{name}"] = double[name].astype(
                numpy.float64 if dtype == "F64" else numpy.float32)
    save_file(tensors, path, metadata=dict(config=json.dumps(dict(config, model_type="bert"))))


if __name__ == "__main__":
    main()
