"""Makes tests/golden/forms: for the forms of the encoder (src/model/forms.c), folders that transformers wrote with random
weights, in which the file of weights also holds loss and gradients, in float64, on the batch of tests/weights/test_forms.c.

    forms_golden.py FOLDER
"""
import copy
import os
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

SIZES = dict(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12, max_position_embeddings=12,
             hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
ROBERTA = dict(SIZES, type_vocab_size=1, pad_token_id=2)
ELECTRA = dict(SIZES, embedding_size=6, summary_last_dropout=0.0)
MODERNBERT = dict(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=6,
                  max_position_embeddings=12, pad_token_id=0, bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3,
                  local_attention=4, global_attn_every_n_layers=2, classifier_pooling="mean", norm_eps=1e-5)
DISTILBERT = dict(vocab_size=20, dim=8, n_layers=2, n_heads=2, hidden_dim=12, max_position_embeddings=12, dropout=0.0,
                  attention_dropout=0.0, seq_classif_dropout=0.0, qa_dropout=0.0, activation="silu")
NOMIC = dict(SIZES, num_hidden_layers=2)
FORMS = {
    "roberta": ("Roberta", ROBERTA),
    "xlm-roberta": ("XLMRoberta", dict(ROBERTA, layer_norm_eps=1e-5, hidden_act="relu")),
    "camembert": ("Camembert", dict(ROBERTA, hidden_act="gelu_new", pad_token_id=1)),
    "electra": ("Electra", ELECTRA),
    "modernbert": ("ModernBert", MODERNBERT),
    "distilbert": ("DistilBert", DISTILBERT),
    "nomic": ("NomicBert", NOMIC),
}
HEADS = {"words": "ForMaskedLM", "untied": "ForMaskedLM", "class": "ForSequenceClassification", "choice": "ForMultipleChoice",
         "tags": "ForTokenClassification", "answers": "ForQuestionAnswering"}
CASES = ["roberta words", "roberta untied", "roberta class", "roberta choice", "xlm-roberta class", "camembert words",
         "electra words", "electra class", "electra choice", "modernbert words", "modernbert untied", "modernbert class",
         "modernbert choice", "modernbert tags", "modernbert answers",
         "distilbert words", "distilbert class", "distilbert choice", "distilbert tags", "distilbert answers", "nomic words", "nomic class", "nomic tags"]
# Two sequences of the same length, so that nothing is padded; the second segment begins at token 3.
IDS = torch.tensor([[4, 7, 19, 5, 11, 6], [4, 13, 5, 8, 8, 6]])
TYPES = torch.tensor([[0, 0, 0, 1, 1, 1]] * 2)
MASKED = [(0, 1, 9), (0, 4, 3), (1, 2, 17)]


def inputs(head, types):
    kwargs = dict(input_ids=IDS, attention_mask=torch.ones_like(IDS))
    if types:
        kwargs["token_type_ids"] = TYPES
    if head == "choice":  # one example with two choices
        kwargs = {name: value[None] for name, value in kwargs.items()}
    labels = torch.full_like(IDS, -100)
    for row, column, word in MASKED:
        labels[row, column] = word
    if head == "answers":
        return dict(kwargs, start_positions=torch.tensor([2, 1]), end_positions=torch.tensor([4, 3]))
    tags = torch.where(labels >= 0, labels % 3, labels)  # of the same tokens
    kwargs["labels"] = {"words": labels, "untied": labels, "class": torch.tensor([2, 0]), "choice": torch.tensor([1]), "tags": tags}[head]
    return kwargs


def make(folder, form, head):
    classes, sizes = FORMS[form]
    torch.manual_seed(3)
    config = getattr(transformers, classes + "Config")(**sizes, **({"num_labels": 3} if head in ("class", "tags") else {}),
                                                              tie_word_embeddings=head != "untied")
    model = getattr(transformers, classes + HEADS[head])(config).double().eval()
    for name, value in model.named_parameters():
        norm = "norm" in name.lower() and name.endswith("weight")
        value.data.normal_(1.0 if norm else 0.0, 0.3)
        value.data = value.data.float().double()
    loss = model(**inputs(head, sizes.get("type_vocab_size", 2) > 1 and form != "modernbert")).loss
    loss.backward()
    extra = {"golden.loss": loss.detach()[None]}
    if form == "nomic":  # whose files have other names and shapes than the model: gradients are written as weights
        gradients = copy.deepcopy(model)
        for value, like in zip(gradients.parameters(), model.parameters()):
            value.data = torch.zeros_like(like) if like.grad is None else like.grad.clone()
        gradients.save_pretrained(folder)
        extra.update(("golden." + name, value) for name, value in load_file(os.path.join(folder, "model.safetensors")).items())
    for name, value in model.named_parameters(remove_duplicate=False) if form != "nomic" else ():  # a tied matrix has two names
        extra["golden." + name] = value.grad.clone() if value.grad is not None else torch.zeros_like(value)
    model.float().save_pretrained(folder)
    path = os.path.join(folder, "model.safetensors")
    save_file({**load_file(path), **{name: value.contiguous() for name, value in extra.items()}}, path)


for case in CASES:
    form, head = case.split()
    make(os.path.join(sys.argv[1], form + "-" + head), form, head)
