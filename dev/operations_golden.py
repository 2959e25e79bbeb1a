"""Reference values of every operation of src/backend/ops.h, from PyTorch in float64.

    python dev/operations_golden.py tests/golden/operations.safetensors

Forward is written with PyTorch's own functions, backward is its autograd, so nothing here shares a formula with
src/backend/ref. Dropout masks come from the Philox implementation below. For tests/backend/test_ref.c the file holds, for case k,
    metadata "cases"             the lines of the cases (tests/backend/operations.h), from case 0 on
    k/in/<array>, k/out/<array>  F64, with the array names used there; k/in/batch.<array> for the batch
    k/in/seed                    dropout's key, low and high 32 bits
"""
import sys

import numpy
import timm.optim
import torch
from safetensors.numpy import save_file

torch.set_default_dtype(torch.float64)
F = torch.nn.functional
SEED = 0x0123456789ABCDEF
SITE = 7
random = numpy.random.RandomState(5)
tensors, lines = {}, []


def philox4x32(key, counter, rounds):
    """Salmon et al. 2011, with Python's integers."""
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    c0, c1, c2, c3 = counter
    for _ in range(rounds):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def factor(p, index, c0, c1, sample):
    """0 or scale for element `index` of its block of eight."""
    threshold = int(65536 * p + 0.5)
    word = philox4x32(SEED, (c0, c1, SITE, sample), 7)[index // 2]
    u = word >> 16 if index % 2 else word & 0xFFFF
    return 0.0 if u < threshold else 65536 / (65536 - threshold)


def hidden_mask(batch, width, p):
    return torch.tensor([[factor(p, j % 8, j // 8, int(position), int(sample)) if p else 1.0 for j in range(width)]
                         for position, sample in zip(batch["positions"], batch["token_samples"])])


def attention_mask(head, length, sample, p):
    return torch.tensor([[factor(p, key % 8, head << 16 | key // 8, query, int(sample)) if p else 1.0
                          for key in range(length)] for query in range(length)])


def make_batch(lengths, vocab=11):
    starts = numpy.concatenate([[0], numpy.cumsum(lengths)])
    samples = random.randint(0, 2**32, len(lengths), dtype=numpy.uint64)
    batch = dict(starts=starts, samples=samples)
    batch["positions"] = numpy.concatenate([numpy.arange(n) for n in lengths])
    batch["token_samples"] = numpy.repeat(samples, lengths)
    batch["ids"] = random.randint(0, vocab, starts[-1])
    batch["ids"][-1] = batch["ids"][0]
    batch["types"] = random.randint(0, 2, starts[-1])
    return batch


def normal(*shape, mean=0.0, spread=1.0):
    return torch.tensor(random.normal(mean, spread, shape)).requires_grad_()


def emit(line, inputs, outputs, batch=None):
    k = str(len(lines))
    lines.append(line)
    for way, arrays in (("in", inputs), ("out", outputs)):
        for name, value in arrays.items():
            value = value.detach().numpy() if torch.is_tensor(value) else numpy.asarray(value)
            tensors[f"{k}/{way}/{name}"] = numpy.ascontiguousarray(value, dtype=numpy.float64)
    for name, value in (batch or {}).items():
        tensors[f"{k}/in/batch.{name}"] = numpy.asarray(value, dtype=numpy.float64)
    tensors[f"{k}/in/seed"] = numpy.array([SEED & 0xFFFFFFFF, SEED >> 32], dtype=numpy.float64)


def statistics(x, eps=1e-12):
    return dict(mean=x.mean(-1), rstd=1 / torch.sqrt(x.var(-1, unbiased=False) + eps))


def gradients(**weights):
    return {f"{name}.gradient" if name[0] != "d" else name: value.grad for name, value in weights.items()}


def embed(p):
    batch, width = make_batch([5, 1, 9]), 12
    word, position, kind = normal(11, width), normal(10, width), normal(2, width)
    gamma, beta = normal(width, mean=1.0, spread=0.3), normal(width)
    rows = [torch.tensor(batch[name]) for name in ("ids", "positions", "types")]
    total = F.embedding(rows[0], word) + F.embedding(rows[1], position) + F.embedding(rows[2], kind)
    y = F.layer_norm(total, (width,), gamma, beta, 1e-12) * hidden_mask(batch, width, p)
    dy = normal(*y.shape)
    y.backward(dy.detach())
    weights = dict(word=word, position=position, type=kind, gamma=gamma, beta=beta)
    keys = f"T=15 H={width} V=11 S=10 p={p} B=3 longest=9"
    saved = dict(sum=total, **statistics(total))
    emit(f"embed_fwd {keys}", weights, dict(y=y, **saved), batch)
    emit(f"embed_bwd {keys}", dict(dy=dy, **weights, **saved), gradients(**weights), batch)


def gelu(name):
    return lambda x: F.gelu(x, approximate="tanh" if name == "gelu_tanh" else "none")


def linear(rows, outer, inner, act):
    x, w, b = normal(rows, inner), normal(outer, inner), normal(outer)
    pre = F.linear(x, w, b)
    if act in ("none", "tanh"):
        emit(f"linear_fwd M={rows} O={outer} I={inner} act={act}", dict(x=x, w=w, b=b),
             dict(y=torch.tanh(pre) if act == "tanh" else pre))
    else:
        emit(f"linear_gelu_fwd M={rows} O={outer} I={inner} act={act}", dict(x=x, w=w, b=b),
             dict(pre=pre, y=gelu(act)(pre)))


def linear_bwd(rows, outer, inner, act="none", add=0, tanh=0):
    """With act the input is gelu(pre + producer); `add` is the gradient that pre (or x) gets from elsewhere."""
    z, w, b, producer = normal(rows, inner), normal(outer, inner), normal(outer), normal(inner)
    moved = z + producer
    x = gelu(act)(moved) if act != "none" else moved
    moved.retain_grad()
    y = F.linear(x, w, b)
    y = torch.tanh(y) if tanh else y
    dy, added = normal(rows, outer), normal(rows, inner)
    ((y * dy.detach()).sum() + add * (moved * added.detach()).sum()).backward()
    inputs = dict(x=x, w=w, b=b, dy=dy, producer=producer)
    inputs |= dict(pre=moved) if act != "none" else {}
    inputs |= dict(add=added) if add else {}
    inputs |= dict(tanh_y=y) if tanh else {}
    emit(f"linear_bwd M={rows} O={outer} I={inner} producer=1 pre={act} add={add} tanh={tanh}", inputs,
         gradients(w=w, b=b, producer=producer) | dict(dx=moved.grad))


def linear_norm(rows, width, inner, p, residual):
    """Forward of the whole, backward of the part after the product."""
    batch = make_batch([rows - 3, 3])
    x, w, b = normal(rows, inner), normal(width, inner), normal(width)
    gamma, beta, rest = normal(width, mean=1.0, spread=0.3), normal(width), normal(rows, width)
    product = F.linear(x, w, b)
    product.retain_grad()
    total = product * hidden_mask(batch, width, p) + (rest if residual else 0)
    total.retain_grad()
    y = F.layer_norm(total, (width,), gamma, beta, 1e-12)
    dy = normal(rows, width)
    y.backward(dy.detach())
    keys = f"M={rows} H={width} p={p} B=2 longest={rows - 3}"
    saved = dict(sum=total, **statistics(total))
    inputs = dict(x=x, w=w, b=b, gamma=gamma, beta=beta) | (dict(residual=rest) if residual else {})
    emit(f"linear_norm_fwd {keys} I={inner} residual={residual}", inputs, dict(y=y, **saved), batch if p else None)
    emit(f"norm_bwd {keys} bias=1", dict(dy=dy, gamma=gamma, beta=beta, bias=b, **saved),
         dict(gradients(gamma=gamma, beta=beta), dresidual=total.grad, dx=product.grad, **{"bias.gradient": b.grad}),
         batch if p else None)


def transform_norm(rows, width, act):
    """The MLM head's transform: LN(gelu(pre)), pre = product + bias."""
    pre, bias = normal(rows, width), normal(width)
    gamma, beta = normal(width, mean=1.0, spread=0.3), normal(width)
    moved = pre + bias
    moved.retain_grad()
    total = gelu(act)(moved)
    total.retain_grad()
    y = F.layer_norm(total, (width,), gamma, beta, 1e-12)
    dy = normal(rows, width)
    y.backward(dy.detach())
    saved = dict(sum=total, **statistics(total))
    emit(f"linear_norm_fwd M={rows} H={width} w=0 residual=0", dict(x=total, gamma=gamma, beta=beta), dict(y=y, **saved))
    emit(f"norm_bwd M={rows} H={width} bias=1 pre={act}", dict(dy=dy, gamma=gamma, beta=beta, bias=bias, pre=moved, **saved),
         dict(gradients(gamma=gamma, beta=beta, bias=bias), dresidual=total.grad, dx=moved.grad))


def attention(lengths, heads, size, p, window=0):
    batch, width = make_batch(lengths), heads * size
    tokens = sum(lengths)
    qkv, bias = normal(tokens, 3 * width), normal(3 * width)
    moved = qkv + bias
    moved.retain_grad()
    outputs, sums = [], []
    for start, length, sample in zip(batch["starts"], lengths, batch["samples"]):
        part = moved[start:start + length].reshape(length, 3, heads, size).permute(1, 2, 0, 3)
        scores = part[0] @ part[1].transpose(-1, -2) / size**0.5
        places = torch.arange(length)
        if window:
            scores = scores.masked_fill((places[:, None] - places[None]).abs() > window, -torch.inf)
        mask = torch.stack([attention_mask(head, length, sample, p) for head in range(heads)])
        outputs.append(((torch.softmax(scores, -1) * mask) @ part[2]).permute(1, 0, 2).reshape(length, width))
        sums.append(torch.logsumexp(scores, -1))
        if not p and not window:
            fused = F.scaled_dot_product_attention(part[0], part[1], part[2])
            assert torch.allclose(fused.permute(1, 0, 2).reshape(length, width), outputs[-1], atol=1e-12)
    y, lse = torch.cat(outputs), torch.cat(sums, 1)
    dy = normal(tokens, width)
    y.backward(dy.detach())
    keys = f"T={tokens} H={width} heads={heads} B={len(lengths)} longest={max(lengths)} p={p}"
    keys += f" window={window}" if window else ""
    emit(f"attention_fwd {keys}", dict(qkv=moved), dict(y=y, lse=lse), batch)
    emit(f"attention_bwd {keys} bias=1", dict(qkv=moved, bias=bias, dy=dy, y=y, lse=lse),
         dict(gradients(bias=bias), dqkv=moved.grad), batch)


def gather():
    rows, x, dy = torch.tensor([0, 3, 4, 8]), normal(9, 5), normal(4, 5)
    y = x[rows]
    y.backward(dy.detach())
    emit("gather_fwd T=9 P=4 H=5", dict(rows=rows, x=x), dict(y=y))
    emit("gather_bwd T=9 P=4 H=5", dict(rows=rows, dy=dy), dict(dx=x.grad))


def pooling(lengths, width, cls):
    """Like sentence_transformers.models.Pooling: the mean of a text's rows, or the row of [CLS]."""
    batch, tokens = make_batch(lengths), sum(lengths)
    x, dy = normal(tokens, width), normal(len(lengths), width)
    parts = torch.split(x, lengths)
    y = torch.stack([part[0] if cls else part.mean(0) for part in parts])
    y.backward(dy.detach() * LOSS_SCALE)
    keys = f"T={tokens} H={width} B={len(lengths)} cls={cls}"
    emit(f"pooling_fwd {keys}", dict(x=x), dict(y=y), batch)
    emit(f"pooling_bwd {keys}", dict(dy=dy), dict(dx=x.grad), batch)


# The same values as in case_create() in tests/backend/case.h.
INVERSE_PREDICTIONS, INVERSE_INSTANCES, LOSS_SCALE = 1 / 37, 1 / 11, 8
INVERSE_TOKENS = 1 / 53
BEFORE = 0.25  # what loss and correct hold beforehand


def vocabulary(rows, vocab, width):
    x, table, bias = normal(rows, width), normal(vocab, width), normal(vocab)
    labels = torch.tensor(random.randint(0, vocab, rows))
    weights = torch.tensor(random.choice([0.0, 0.5, 1.0], rows))
    logits = F.linear(x, table, bias)
    labels[0] = logits[0].argmax()
    weights[0] = 0.5
    losses = weights * F.cross_entropy(logits, labels, reduction="none")
    (losses.sum() * INVERSE_PREDICTIONS * LOSS_SCALE).backward()
    correct = (weights * (logits.argmax(-1) == labels)).sum()
    inputs = dict(x=x, table=table, bias=bias, labels=labels, weights=weights)
    emit(f"vocab_xent P={rows} V={vocab} H={width}", inputs,
         dict(gradients(table=table, bias=bias), dx=x.grad, losses=losses, loss=BEFORE + losses.sum(),
              correct=BEFORE + correct))
    best = torch.softmax(logits, -1).topk(4)
    emit(f"vocab_topk P={rows} V={vocab} H={width} k=4", dict(x=x, table=table, bias=bias),
         dict(ids=best.indices, probabilities=best.values))


def vocabulary_max(lengths, vocab, width):
    """Like sentence_transformers' SpladePooling, with strategy max and activation relu."""
    batch, tokens = make_batch(lengths), sum(lengths)
    x, table, bias, dy = normal(tokens, width), normal(vocab, width), normal(vocab), normal(len(lengths), vocab)
    best = [part.max(0) for part in torch.split(F.linear(x, table, bias), lengths)]
    y = torch.stack([torch.log1p(torch.relu(part.values)) for part in best])
    y.backward(dy.detach() * LOSS_SCALE)
    rows = torch.stack([part.indices + sum(lengths[:i]) for i, part in enumerate(best)]).masked_fill(y == 0, -1)
    keys = f"T={tokens} V={vocab} H={width} B={len(lengths)}"
    emit(f"vocab_max_fwd {keys} rows=1", dict(x=x, table=table, bias=bias), dict(y=y, rows=rows), batch)
    emit(f"vocab_max_bwd {keys}", dict(x=x, table=table, bias=bias, dy=dy, y=y, rows=rows),
         dict(gradients(table=table, bias=bias), dx=x.grad), batch)


def classes(rows, count):
    logits = normal(rows, count)
    labels = torch.tensor(random.randint(-1, count, rows))
    labels[0], labels[1] = -1, logits[1].argmax()
    weights = item_weights(rows)
    loss = (F.cross_entropy(logits, labels, ignore_index=-1, reduction="none") * weights).sum()
    (loss * INVERSE_INSTANCES * LOSS_SCALE).backward()
    correct = ((logits.argmax(-1) == labels) * weights).sum()
    emit(f"xent N={rows} C={count}", dict(logits=logits, labels=labels, weights=weights),
         dict(dlogits=logits.grad, loss=BEFORE + loss, correct=BEFORE + correct))


def item_weights(items):
    """Every fifth is 0, others a half, as in tests/backend/operations.h."""
    return torch.tensor([0.0 if i % 5 == 3 else 0.5 if i % 5 == 2 else 1.0 for i in range(items)])


def values(rows, count):
    """Rows of outputs against rows of values."""
    weights = item_weights(rows)
    outputs, numbers = normal(rows, count), torch.tensor(random.randint(-8, 20, (rows, count)) / 4.0)
    loss = (F.mse_loss(outputs, numbers, reduction="none").mean(-1) * weights).sum()
    (loss * INVERSE_INSTANCES * LOSS_SCALE).backward()
    emit(f"squared_error N={rows} C={count}", dict(logits=outputs, values=numbers, weights=weights),
         dict(dlogits=outputs.grad, loss=BEFORE + loss))
    logits, shares = normal(rows, count), torch.tensor(random.randint(0, 5, (rows, count)) / 4.0)
    loss = (F.binary_cross_entropy_with_logits(logits, shares, reduction="none").mean(-1) * weights).sum()
    (loss * INVERSE_INSTANCES * LOSS_SCALE).backward()
    correct = (((logits > 0) == (shares > 0.5)).all(-1) * weights).sum()
    emit(f"binary_xent N={rows} C={count}", dict(logits=logits, values=shares, weights=weights),
         dict(dlogits=logits.grad, loss=BEFORE + loss, correct=BEFORE + correct))


def groups(sizes):
    starts = numpy.concatenate([[0], numpy.cumsum(sizes)])
    logits, weights = normal(int(starts[-1]), 1), item_weights(len(sizes))
    labels = [-1 if i == 1 else int(random.randint(0, n)) for i, n in enumerate(sizes)]
    loss, correct = 0, 0
    for i, label in enumerate(labels):
        own = logits[starts[i]:starts[i + 1], 0]
        if label >= 0:
            loss = loss + weights[i] * F.cross_entropy(own[None], torch.tensor([label]))
            correct += weights[i] * (own.argmax() == label)
    (loss * INVERSE_INSTANCES * LOSS_SCALE).backward()
    emit(f"group_xent E={len(sizes)} B={int(starts[-1])}", dict(logits=logits, starts=starts, labels=labels, weights=weights),
         dict(dlogits=logits.grad, loss=BEFORE + loss, correct=BEFORE + correct))


def lists(sizes, kind):
    """sentence-transformers' ListNetLoss and MarginMSELoss of cross-encoders, for targets that are given."""
    starts = numpy.concatenate([[0], numpy.cumsum(sizes)])
    logits, weights = normal(int(starts[-1]), 1), item_weights(int(starts[-1]))
    targets = numpy.round(random.rand(int(starts[-1])), 3).astype(numpy.float32).astype(float)
    loss = 0
    for i, first in enumerate(starts[:-1]):
        own, t = logits[first:starts[i + 1], 0], torch.tensor(targets[first:starts[i + 1]])
        if kind == "shares":
            loss = loss + weights[first] * F.cross_entropy(own, t)
        else:
            margins = F.mse_loss(own[0] - own[1:], t[0] - t[1:], reduction="none")
            loss = loss + (margins * weights[first + 1:starts[i + 1]]).sum()
    (loss * INVERSE_INSTANCES * LOSS_SCALE).backward()
    emit(f"list_loss E={len(sizes)} B={int(starts[-1])} kind={kind}",
         dict(logits=logits, starts=starts, targets=targets, weights=weights), dict(dlogits=logits.grad, loss=BEFORE + loss))


def segments(lengths):
    """Starts and ends of answers, as in BertForQuestionAnswering: the mean of both cross entropies."""
    batch = make_batch(lengths)
    tokens, weights = sum(lengths), item_weights(len(lengths))
    logits = normal(tokens, 2)
    labels = [[int(random.randint(0, n)), int(random.randint(0, n))] for n in lengths]
    labels[-1][1] = -1
    loss, correct = 0, 0
    for i, pair in enumerate(labels):
        right = []
        for column, label in enumerate(pair):
            own = logits[batch["starts"][i]:batch["starts"][i + 1], column]
            if label >= 0 and weights[i] > 0:
                loss = loss + weights[i] / 2 * F.cross_entropy(own[None], torch.tensor([label]))
                right.append(bool(own.argmax() == label))
        correct += weights[i] * (len(right) > 0 and all(right))
    (loss * INVERSE_INSTANCES * LOSS_SCALE).backward()
    emit(f"segment_xent T={tokens} B={len(lengths)}", dict(logits=logits, labels=labels, weights=weights),
         dict(dlogits=logits.grad, loss=BEFORE + loss, correct=BEFORE + correct), batch)


def pointers(lengths, classes, count, size):
    """Rows with a class that point at rows of their sequence, with the logits of scaled dot-product attention."""
    batch = make_batch(lengths)
    tokens = sum(lengths)
    rows = list(range(0, tokens, 3))
    logits, weights = normal(tokens, classes + 2 * count * size), item_weights(len(rows))
    labels, lse = [], numpy.zeros((count, len(rows)))
    loss, correct = 0, 0
    for i, row in enumerate(rows):
        sequence = int(numpy.searchsorted(batch["starts"], row, side="right")) - 1
        own = logits[batch["starts"][sequence]:batch["starts"][sequence + 1]]
        asked = [logits[row, :classes]]
        for k in range(count):
            query = logits[row, classes + 2 * k * size:][:size]
            key = own[:, classes + (2 * k + 1) * size:][:, :size]
            asked.append(torch.nn.functional.linear(query[None], key)[0] / size ** 0.5)
            lse[k, i] = torch.logsumexp(asked[-1], 0).detach()
        labels.append([int(random.randint(0, len(x))) for x in asked])
        if i % 3 == 1:
            labels[-1][i % (count + 1)] = -1
        right = []
        for x, label in zip(asked, labels[-1]):
            if label >= 0 and weights[i] > 0:
                loss = loss + weights[i] * F.cross_entropy(x[None], torch.tensor([label]))
                right.append(bool(x.argmax() == label))
        correct += weights[i] * (len(right) > 0 and all(right))
    (loss * INVERSE_INSTANCES * LOSS_SCALE).backward()
    emit(f"pointer_xent T={tokens} B={len(lengths)} C={classes} K={count} D={size}",
         dict(logits=logits, rows=[rows], labels=labels, weights=weights),
         dict(dlogits=logits.grad, loss=BEFORE + loss, correct=BEFORE + correct, lse=lse), batch)
def soft(kind, rows, columns, temperature, share, sizes=()):
    """A teacher's outputs as targets: Kullback-Leibler divergence at a temperature, times its square, as in PyTorch; for
    numbers the squared error. Mixed with the gradients from labels."""
    teacher, logits, before = normal(rows, columns), normal(rows, columns), normal(rows, columns)
    starts = numpy.concatenate([[0], numpy.cumsum(sizes)]).astype(int)
    weights, inputs = item_weights(len(sizes) or rows), {}

    def divergence(own, right):
        log, target = F.log_softmax(own / temperature, -1), F.softmax(right.detach() / temperature, -1)
        return F.kl_div(log, target, reduction="sum") * temperature**2

    if kind == "classes":
        losses = [divergence(own, right) for own, right in zip(logits, teacher)]
    elif kind == "rows":
        inputs = dict(starts=starts)
        losses = [sum(divergence(logits[a:b, c], teacher[a:b, c]) for c in range(columns)) / columns
                  for a, b in zip(starts, starts[1:])]
    elif kind == "sigmoids":
        bernoulli = lambda x: torch.distributions.Bernoulli(logits=x / temperature)
        losses = torch.distributions.kl_divergence(bernoulli(teacher.detach()), bernoulli(logits)).mean(-1) * temperature**2
    else:
        losses = F.mse_loss(logits, teacher.detach(), reduction="none").mean(-1)
    loss = sum(weight * own for weight, own in zip(weights, losses))
    (loss * INVERSE_INSTANCES * LOSS_SCALE).backward()
    line = f"soft_loss M={rows} C={columns} kind={kind} temperature={temperature} share={share}"
    emit(line + (f" N={len(sizes)}" if sizes else ""),
         dict(teacher=teacher, logits=logits, weights=weights, dlogits=before, **inputs),
         dict(dlogits=(1 - share) * before + share * logits.grad, loss=BEFORE + loss))


def hidden(lengths, width, factor):
    batch = make_batch(lengths)
    tokens = sum(lengths)
    x, target = normal(tokens, width), normal(tokens, width)
    loss = F.mse_loss(x, target.detach(), reduction="none").mean(-1).sum()
    (loss * factor * INVERSE_TOKENS * LOSS_SCALE).backward()
    emit(f"hidden_error T={tokens} H={width} B={len(lengths)} factor={factor}", dict(x=x, target=target),
         dict(dx=x.grad, loss=BEFORE + loss), batch)


def row_dropout(lengths, width, p):
    batch = make_batch(lengths)
    tokens = sum(lengths)
    rows = list(range(0, tokens, 2))
    x = normal(len(rows), width)
    emit(f"row_dropout N={len(rows)} H={width} T={tokens} B={len(lengths)} p={p}", dict(x=x, rows=rows),
         dict(y=x * hidden_mask(batch, width, p)[rows]), batch)


def adamw_torch(count, decay, clip):
    """The second step of torch.optim.AdamW, with its clip_grad_norm_; a second parameter brings the norm to sqrt(20)."""
    w, m, v = normal(count), normal(count, spread=0.1), normal(count, spread=0.1).detach() ** 2
    g = normal(count, spread=0.3)
    parameter, other = torch.nn.Parameter(w.detach().clone()), torch.nn.Parameter(torch.zeros(1))
    parameter.grad = g.detach().clone()
    other.grad = torch.sqrt(20 - (g.detach() ** 2).sum()).reshape(1)
    if clip:
        torch.nn.utils.clip_grad_norm_([parameter, other], clip)
    optimizer = torch.optim.AdamW([parameter], lr=0.05, betas=(0.9, 0.999), eps=1e-6, weight_decay=decay)
    optimizer.state[parameter] = dict(step=torch.tensor(1.0), exp_avg=m.detach().clone(), exp_avg_sq=v.clone())
    optimizer.step()
    state = optimizer.state[parameter]
    emit(f"adamw n={count} decay={decay} clip={clip}", dict(w=w, m=m, v=v, g=g),
         dict(w=parameter, m=state["exp_avg"], v=state["exp_avg_sq"]))


def adamw_google(count, decay):
    """AdamWeightDecayOptimizer.apply_gradients of google-research/bert, after tf.clip_by_global_norm."""
    w, m, v = (normal(count, spread=s).detach().numpy() for s in (1, 0.1, 0.1))
    v, g = v**2, normal(count, spread=3).detach().numpy()
    next_m = numpy.multiply(0.9, m) + numpy.multiply(1.0 - 0.9, g)
    next_v = numpy.multiply(0.999, v) + numpy.multiply(1.0 - 0.999, numpy.square(g))
    update = next_m / (numpy.sqrt(next_v) + 1e-6)
    update += decay * w
    emit(f"adamw n={count} decay={decay} clip=0 google=1", dict(w=w, m=m, v=v, g=g),
         dict(w=w - 0.05 * update, m=next_m, v=next_v))


def lamb(count, tensors, decay, clip=1, everywhere=0, limited=0):
    """The second step of timm's LAMB; tensors, their decay and which of them adapt as in tests/backend/operations.h. One more
    parameter brings the norm to sqrt(20). timm keeps no norms: they are computed from the moments it leaves."""
    w, m, v = normal(count), normal(count, spread=0.1), normal(count, spread=0.1).detach() ** 2
    g = normal(count, spread=0.3)
    groups, pieces = [], []
    for i in range(tensors):
        first, end = i * count // tensors, (i + 1) * count // tensors
        pieces.append(slice(first, end - i % 3 if end - first > 4 else end))
        parameter = torch.nn.Parameter(w.detach()[pieces[i]].clone())
        parameter.grad = g.detach()[pieces[i]].clone()
        groups.append(dict(params=[parameter], weight_decay=0.0 if i % 3 == 1 else decay))
    other = torch.nn.Parameter(torch.zeros(1))
    other.grad = torch.sqrt(20 - sum((group["params"][0].grad ** 2).sum() for group in groups)).reshape(1)
    optimizer = timm.optim.Lamb(groups + [dict(params=[other])], lr=0.05, betas=(0.9, 0.999), eps=1e-6,
                                max_grad_norm=clip or None, always_adapt=bool(everywhere), trust_clip=bool(limited))
    for group, piece in zip(optimizer.param_groups, pieces):
        group["step"] = torch.tensor(1.0)
        optimizer.state[group["params"][0]] = dict(exp_avg=m.detach()[piece].clone(), exp_avg_sq=v[piece].clone())
    optimizer.step()
    after, norms = [x.detach().clone() for x in (w, m, v)], []
    for group, piece in zip(optimizer.param_groups, pieces):
        parameter = group["params"][0]
        state = optimizer.state[parameter]
        for whole, part in zip(after, (parameter.detach(), state["exp_avg"], state["exp_avg_sq"])):
            whole[piece] = part
        update = state["exp_avg"] / (1 - 0.9**2) / (torch.sqrt(state["exp_avg_sq"] / (1 - 0.999**2)) + 1e-6)
        update = update + group["weight_decay"] * w.detach()[piece]
        norms.append([float((x**2).sum()) for x in (w.detach()[piece], update)])
    keys = f"n={count} tensors={tensors} decay={decay} all={everywhere}"
    emit(f"lamb_norms {keys} clip={clip}", dict(w=w, m=m, v=v, g=g), dict(m=after[1], v=after[2], norms=norms))
    emit(f"lamb_apply {keys} max_trust={limited}", dict(w=w, m=after[1], v=after[2], norms=norms), dict(w=after[0]))


def bare(p):
    """What a pre-norm block without biases asks: no position, type, bias, or beta, and the gradient of the residual stream."""
    batch, width, inner, rows = make_batch([7, 4]), 12, 6, 11
    word, gamma = normal(11, width), normal(width, mean=1.0, spread=0.3)
    total = F.embedding(torch.tensor(batch["ids"]), word)
    y = F.layer_norm(total, (width,), gamma, None, 1e-12) * hidden_mask(batch, width, p)
    dy = normal(*y.shape)
    y.backward(dy.detach())
    keys, saved = f"p={p} B=2 longest=7 beta=0", dict(sum=total, **statistics(total))
    emit(f"embed_fwd T={rows} H={width} V=11 position=0 type=0 {keys}", dict(word=word, gamma=gamma), dict(y=y, **saved), batch)
    emit(f"embed_bwd T={rows} H={width} V=11 position=0 type=0 {keys}", dict(dy=dy, word=word, gamma=gamma, **saved),
         gradients(word=word, gamma=gamma), batch)
    x, w, gamma = normal(rows, inner), normal(width, inner), normal(width, mean=1.0, spread=0.3)
    rest, dy, add = normal(rows, width), normal(rows, width), normal(rows, width)
    product = F.linear(x, w)
    product.retain_grad()
    total = product * hidden_mask(batch, width, p) + rest
    total.retain_grad()
    y = F.layer_norm(total, (width,), gamma, None, 1e-12)
    ((y * dy.detach()).sum() + (total * add.detach()).sum()).backward()
    saved, batch = dict(sum=total, **statistics(total)), batch if p else None
    emit(f"linear_norm_fwd M={rows} H={width} I={inner} b=0 {keys}", dict(x=x, w=w, gamma=gamma, residual=rest),
         dict(y=y, **saved), batch)
    emit(f"norm_bwd M={rows} H={width} add=1 {keys}", dict(dy=dy, gamma=gamma, add=add, **saved),
         dict(gradients(gamma=gamma), dresidual=total.grad, dx=product.grad), batch)


def gated(lengths, width, act, p):
    batch, rows = make_batch(lengths), sum(lengths)
    pre = normal(rows, 2 * width)
    left, right = pre.chunk(2, dim=-1)
    y = gelu(act)(left) * right * hidden_mask(batch, width, p)
    dy = normal(rows, width)
    y.backward(dy.detach())
    keys, batch = f"M={rows} F={width} act={act} p={p} B={len(lengths)} longest={max(lengths)}", batch if p else None
    emit(f"gated_fwd {keys}", dict(pre=pre), dict(y=y), batch)
    emit(f"gated_bwd {keys}", dict(dy=dy, pre=pre), dict(dpre=pre.grad), batch)


def rotary(lengths, heads, size, base):
    """As in transformers' apply_rotary_pos_emb, with angles in float32; backward is autograd's."""
    batch, tokens = make_batch(lengths), sum(lengths)
    exponents = torch.arange(0, size, 2, dtype=torch.int64).to(torch.float32) / size
    angles = torch.tensor(batch["positions"]).to(torch.float32)[:, None] * (1.0 / (base ** exponents))[None]
    angles = torch.cat([angles, angles], -1).double()[:, None, None]
    qkv = normal(tokens, 3 * heads * size)
    parts = qkv.reshape(tokens, 3, heads, size)
    turned = torch.cat([-parts[..., size // 2:], parts[..., :size // 2]], -1)
    y = torch.cat([(parts * angles.cos() + turned * angles.sin())[:, :2], parts[:, 2:]], 1).reshape(qkv.shape)
    dy = normal(*qkv.shape)
    y.backward(dy.detach())
    keys = f"T={tokens} H={heads * size} heads={heads} base={base} B={len(lengths)} longest={max(lengths)}"
    emit(f"rotary {keys}", dict(qkv=qkv), dict(qkv=y), batch)
    emit(f"rotary {keys} back=1", dict(qkv=dy), dict(qkv=qkv.grad), batch)


for p in (0, 0.1):
    embed(p)
    linear_norm(11, 20, 6, p, residual=1)
    attention([6, 1, 13], 2, 5, p)
linear_norm(8, 9, 10, 0.5, residual=0)
for act in ("none", "tanh", "gelu_erf", "gelu_tanh"):
    linear(6, 5, 9, act)
for act in ("none", "gelu_erf", "gelu_tanh"):
    linear_bwd(6, 5, 9, act)
    linear_bwd(6, 5, 9, act, add=1)
linear_bwd(6, 5, 9, tanh=1)
for act in ("gelu_erf", "gelu_tanh"):
    transform_norm(7, 12, act)
gather()
vocabulary(9, 23, 6)
classes(7, 2)
classes(9, 5)
for decay in (0.01, 0):
    adamw_torch(30, decay, clip=1)
    adamw_torch(30, decay, clip=0)
    adamw_google(30, decay)
lamb(30, 3, 0.01)
lamb(41, 3, 0.5, clip=0, limited=1)
lamb(30, 3, 0.01, everywhere=1)
lamb(17, 1, 0.01)
values(7, 1)
values(6, 4)
groups([3, 5, 2, 4, 6])
segments([6, 1, 13])
row_dropout([6, 1, 13], 20, 0.3)
for cls in (0, 1):
    pooling([6, 1, 13], 5, cls)
pointers([6, 1, 13], 3, 2, 5)
soft("classes", 7, 4, 2.0, 0.25)
soft("rows", 19, 1, 1.5, 0.5, [3, 5, 1, 4, 6])
soft("rows", 20, 2, 3.0, 0.75, [6, 1, 13])
soft("sigmoids", 6, 3, 2.0, 0.5)
soft("numbers", 7, 1, 2.0, 0.5)
hidden([6, 1, 13], 5, 3)

for p in (0, 0.1):
    bare(p)
    attention([6, 1, 13], 2, 5, p, window=3)
gated([6, 1, 13], 9, "gelu_erf", 0.3)
gated([6, 5], 4, "gelu_tanh", 0)
rotary([6, 1, 13], 2, 6, 10000)
rotary([9, 4], 3, 8, 160000)
vocabulary_max([6, 1, 13], 23, 5)
for kind in ("shares", "margins"):
    lists([3, 5, 2, 4, 6], kind)

save_file(tensors, sys.argv[1], metadata={"cases": "\n".join(lines)})
print(f"{len(lines)} cases; torch {torch.__version__}, timm {timm.__version__}, numpy {numpy.__version__}")
