"""Reference values of SPLADE, from transformers and sentence-transformers in float64.

    python dev/splade_golden.py tests/golden/forms tests/golden/splade.safetensors

For tests/weights/test_forms.c: the masked-word models of dev/forms_golden.py on the ids of its batch, FORM.y the weights over the
vocabulary, FORM.dy numbers, and FORM.NAME the gradient of the sum of their products for each parameter.
"""
import sys

import torch
import transformers
from safetensors.torch import save_file
from sentence_transformers.sparse_encoder.modules import SpladePooling

FORMS = ["roberta-words", "modernbert-untied", "electra-words", "distilbert-words"]
IDS = torch.tensor([[4, 7, 19, 5, 11, 6], [4, 13, 5, 8, 8, 6]])
TYPES = torch.tensor([[0, 0, 0, 1, 1, 1]] * 2)

out = {}
torch.manual_seed(4)
for form in FORMS:
    model = transformers.AutoModelForMaskedLM.from_pretrained(f"{sys.argv[1]}/{form}").double().eval()
    kwargs = dict(input_ids=IDS, attention_mask=torch.ones_like(IDS))
    if form == "electra-words":
        kwargs["token_type_ids"] = TYPES
    features = dict(token_embeddings=model(**kwargs).logits, attention_mask=kwargs["attention_mask"])
    y = SpladePooling()(features)["sentence_embedding"]
    dy = torch.randn(y.shape, dtype=torch.float64)
    (y * dy).sum().backward()
    out |= {f"{form}.y": y.detach(), f"{form}.dy": dy}
    for name, value in model.named_parameters(remove_duplicate=False):  # a tied matrix has two names
        out[f"{form}.{name}"] = value.grad.clone() if value.grad is not None else torch.zeros_like(value)
save_file({name: value.contiguous() for name, value in out.items()}, sys.argv[2])
print(f"{len(out)} tensors; torch {torch.__version__}, transformers {transformers.__version__}")
