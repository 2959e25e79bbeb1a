"""PyTorch + transformers doing the same work as bertc bench on a GPU: the peer of bench/gpu.py.

    gpu_peer.py [--device cuda|cpu]

Reads cases from standard input, one JSON object per line:
    {"layers": 24, "hidden": 1024, "lengths": [128, ...], "training": true, "precision": "bf16",
     "compiled": true, "seconds": 5}
and answers each with one: {"seconds": [...], "memory_bytes": ..., "attention": "flash", "compile_seconds": ...}.

BertForPreTraining with autocast, dropout 0.1, fused AdamW and clipping, the head on masked rows only; the fastest of SDPA's
kernels for these shapes, measured first. Sequences of one length are passed as they are; sequences of different lengths are
padded to the longest, with a mask, as in the original programs. An inference case is the forward pass with its loss, without
dropout. Seconds are those of single synchronized steps, after three warm-up steps. Needs torch and transformers: without them,
or without a GPU, it says so and ends with exit code 3.
"""
import argparse
import contextlib
import json
import os
import sys
import time

# Answers go to the current standard output; whatever libraries print goes to standard error.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

p = argparse.ArgumentParser()
p.add_argument("--device", default="cuda")
device = p.parse_args().device


def no_peer(why):
    print(why, file=sys.stderr)
    sys.exit(3)


try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    import transformers
    from transformers import BertConfig, BertForPreTraining
except ImportError as e:
    no_peer(str(e))
if device == "cuda" and not torch.cuda.is_available():
    no_peer(f"PyTorch {torch.__version__} sees no GPU")
VOCABULARY = 30522
# Compared with FP8, PyTorch runs in bf16.
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "tf32": torch.float32, "fp8": torch.bfloat16}
KERNELS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}


def wait():
    if device == "cuda":
        torch.cuda.synchronize()


def batch_of(lengths):
    """Three of every 20 positions are predicted, as in run/benchmark.c."""
    g = torch.Generator().manual_seed(1)
    sequences, longest = len(lengths), max(lengths)
    at = torch.arange(longest).expand(sequences, longest)
    inside = at < torch.tensor(lengths)[:, None]
    place = at % 20
    chosen = ((place == 3) | (place == 9) | (place == 16)) & inside
    half = (torch.tensor(lengths) // 2)[:, None]
    labels = torch.randint(0, VOCABULARY, (sequences, longest), generator=g)
    b = dict(ids=torch.randint(0, VOCABULARY, (sequences, longest), generator=g), types=((at > half) & inside).long(),
             mask=None if inside.all() else inside.long(), rows=chosen.flatten().nonzero().squeeze(1), labels=labels[chosen],
             following=torch.arange(sequences) % 2)
    return {k: v.to(device) if v is not None else None for k, v in b.items()}


@contextlib.contextmanager
def attention(name):
    """Selects this one of SDPA's kernels, otherwise the one that always works."""
    order = [getattr(SDPBackend, KERNELS[n]) for n in (name, "efficient", "math")]
    with sdpa_kernel(list(dict.fromkeys(order)), set_priority=True):
        yield


def fastest_attention(case, dtype):
    """Chosen by the time of forward and backward, with the model's dropout and mask."""
    if device != "cuda":
        return "math"
    longest, heads = max(case["lengths"]), case["hidden"] // 64
    shape = (len(case["lengths"]), heads, longest, 64)
    q, k, v = (torch.randn(shape, device=device, dtype=dtype, requires_grad=case["training"]) for _ in range(3))
    mask = None
    if min(case["lengths"]) < longest:
        inside = torch.arange(longest)[None, :] < torch.tensor(case["lengths"])[:, None]
        mask = inside[:, None, None, :].expand(-1, 1, longest, -1).to(device)
    best, least = "math", float("inf")
    for name in ("flash", "cudnn", "efficient"):
        try:
            with sdpa_kernel(getattr(SDPBackend, KERNELS[name])):
                for run in range(4):
                    wait()
                    started = time.perf_counter()
                    y = torch.nn.functional.scaled_dot_product_attention(
                        q, k, v, attn_mask=mask, dropout_p=0.1 if case["training"] else 0.0)
                    if case["training"]:
                        y.backward(y.detach())
                    wait()
                    seconds = time.perf_counter() - started
        except RuntimeError:  # not available for these shapes
            continue
        if seconds < least:
            best, least = name, seconds
    return best


def step_of(case, dtype):
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case["precision"] == "tf32"
    training = case["training"]
    model = BertForPreTraining(BertConfig(
        vocab_size=VOCABULARY, hidden_size=case["hidden"], num_hidden_layers=case["layers"],
        num_attention_heads=max(1, case["hidden"] // 64), intermediate_size=4 * case["hidden"],
        attn_implementation="sdpa")).to(device)
    model.train(training)
    batch = batch_of(case["lengths"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=device == "cuda") if training else None

    def loss(ids, types, mask, rows, labels, following):
        o = model.bert(ids, attention_mask=mask, token_type_ids=types)
        logits = model.cls.predictions(o.last_hidden_state.flatten(0, 1)[rows])
        nsp = model.cls.seq_relationship(o.pooler_output)
        ce = torch.nn.functional.cross_entropy
        return ce(logits.float(), labels) + ce(nsp.float(), following)

    # Small batches are limited by kernel launches, which a graph avoids.
    compiled = torch.compile(loss, mode=None if training else "reduce-overhead") if case["compiled"] else loss

    def step():
        with torch.autocast(device, dtype, enabled=dtype != torch.float32), torch.set_grad_enabled(training):
            value = compiled(**batch)
        if training:
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return step


def answer(case):
    dtype = TYPES[case["precision"]]
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    kernel = fastest_attention(case, dtype)
    with attention(kernel):
        started = time.perf_counter()
        step = step_of(case, dtype)
        for _ in range(3):
            step()
        wait()
        ready, seconds = time.perf_counter(), []
        while len(seconds) < 3 or (time.perf_counter() - ready < case["seconds"] and len(seconds) < 1000):
            begun = time.perf_counter()
            step()
            wait()
            seconds.append(time.perf_counter() - begun)
    memory = 0
    if device == "cuda":
        available, total = torch.cuda.mem_get_info()
        memory = total - available
    return dict(seconds=seconds, memory_bytes=memory, attention=kernel, compile_seconds=ready - started)


torch.set_float32_matmul_precision("highest")
print(json.dumps(dict(ready=f"PyTorch {torch.__version__}, transformers {transformers.__version__}")), file=answers, flush=True)
for line in sys.stdin:
    try:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
    except (RuntimeError, torch.OutOfMemoryError) as e:
        print(json.dumps(dict(error=str(e).strip().splitlines()[-1][:200])), file=answers, flush=True)
    torch._dynamo.reset()
    if device == "cuda":
        torch.cuda.empty_cache()
