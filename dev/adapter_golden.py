"""Makes tests/golden/adapters: LoRA adapters that peft wrote, of models in tests/golden/forms. A second file holds, in float64,
the weights with the adapter merged into them ("merged.NAME"), and loss and gradients of what is trained ("loss", "gradient.NAME")
on the batch of tests/weights/test_forms.c.

    adapter_golden.py FOLDER    (run at the top of the repository)
"""
import os
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForSequenceClassification

# Form, targets, whether it is rank-stabilized.
CASES = [("roberta", ["query", "value", "dense"], False), ("modernbert", ["Wqkv", "Wo", "Wi"], True),
         ("distilbert", ["q_lin", "k_lin", "lin2"], False)]
IDS = torch.tensor([[4, 7, 19, 5, 11, 6], [4, 13, 5, 8, 8, 6]])

for form, targets, stabilized in CASES:
    base, folder = f"tests/golden/forms/{form}-class", os.path.join(sys.argv[1], form)
    torch.manual_seed(4)
    model = AutoModelForSequenceClassification.from_pretrained(base)
    # peft would otherwise take the head's own dense layer for a target
    config = LoraConfig(task_type="SEQ_CLS", r=2, lora_alpha=3, target_modules=targets, use_rslora=stabilized,
                        exclude_modules=["classifier.dense", "pre_classifier"])
    model = get_peft_model(model, config).double().eval()
    for name, value in model.named_parameters():
        if value.requires_grad:
            value.data.normal_(0.0, 0.3)
            value.data = value.data.float().double()
    loss = model(input_ids=IDS, attention_mask=torch.ones_like(IDS), labels=torch.tensor([2, 0])).loss
    loss.backward()
    golden = {"loss": loss.detach()[None]}
    for name, value in model.named_parameters():
        if value.requires_grad:
            name = name.replace("base_model.model.", "").replace(".default", "").replace(".modules_to_save", "")
            golden["gradient." + name] = value.grad.clone()
    model.float().save_pretrained(folder)
    for name, value in model.double().merge_and_unload().named_parameters():
        golden["merged." + name] = value.data
    save_file({name: value.contiguous() for name, value in golden.items()}, os.path.join(folder, "golden.safetensors"))
    os.remove(os.path.join(folder, "README.md"))
