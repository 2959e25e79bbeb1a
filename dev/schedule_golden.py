"""Learning rates by other people's code and formulas, for tests/train/test_schedule.c.

    python dev/schedule_golden.py tests/golden/schedules.json

linear, poly, cosine, constant, wsd, inverse_sqrt   transformers' schedulers for N + 1 steps, stepped by torch.optim, at step t
slanted_triangular   the formula of Howard and Ruder 2018, section 3.2
google_linear        create_optimizer of google-research/bert (its global_step is t - 1), in numpy's float64
nvidia_poly          PolyWarmUp of NVIDIA's BERT (its last_epoch + 1 is t)
"""
import json
import math
import sys

import numpy
import torch
import transformers
from transformers import optimization

cases = []


def emit(shape, rates, **settings):
    cases.append(dict(settings, shape=shape, rates=rates))


def transformers_rates(make, steps, peak):
    """The rates of steps 1 … N of a schedule with N + 1 steps, and of one more step."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=peak)
    scheduler = make(optimizer)
    rates = []
    for _ in range(steps + 1):
        optimizer.step()
        scheduler.step()
        rates.append(scheduler.get_last_lr()[0])
    return rates


for steps, warmup, peak in ((50, 10, 1e-4), (40, 0, 6e-3), (30, 30, 1e-3), (7, 3, 0.5)):
    common = dict(total_steps=steps, warmup_steps=warmup, peak=peak)
    more = steps + 1
    if warmup < steps:
        emit("linear", transformers_rates(
            lambda o: optimization.get_linear_schedule_with_warmup(o, warmup, more), steps, peak), **common)
        emit("cosine", transformers_rates(
            lambda o: optimization.get_cosine_schedule_with_warmup(o, warmup, more), steps, peak), **common)
        for power, end in ((0.5, 0.0), (1.0, peak / 10), (2.0, peak / 5)):
            emit("poly", transformers_rates(
                lambda o: optimization.get_polynomial_decay_schedule_with_warmup(o, warmup, more, lr_end=end, power=power),
                steps, peak), degree=power, end=end, **common)
    for decay, end in ((steps // 5, 0.0), (steps - warmup, 0.0 if warmup else peak / 10)):  # its warm-up begins at `end`
        if 0 < decay <= steps - warmup:
            emit("wsd", transformers_rates(
                lambda o: optimization.get_wsd_schedule(o, warmup, decay, more, decay_type="linear",
                                                        min_lr_ratio=end / peak),
                steps, peak), decay_steps=decay, end=end, **common)
    emit("constant", transformers_rates(
        lambda o: optimization.get_constant_schedule_with_warmup(o, warmup), steps, peak), **common)
    emit("inverse_sqrt", transformers_rates(
        lambda o: optimization.get_inverse_sqrt_schedule(o, warmup), steps, peak), **common)


def howard_ruder(steps, cut_frac, peak, ratio):
    cut = math.floor(steps * cut_frac)

    def rate(t):
        p = t / cut if t < cut else 1 - (t - cut) / (cut * (1 / cut_frac - 1))
        return peak * (1 + p * (ratio - 1)) / ratio

    emit("slanted_triangular", [rate(t) for t in range(1, steps + 1)], total_steps=steps, warmup_steps=cut, peak=peak,
         end=0.0 if ratio == 32 else peak / ratio)


howard_ruder(50, 0.1, 0.01, 32)
howard_ruder(200, 0.2, 1e-3, 10)


def google(steps, warmup, peak):
    def rate(global_step):
        learning_rate = (peak - 0.0) * (1.0 - numpy.minimum(global_step, steps) / numpy.float64(steps)) ** 1.0 + 0.0
        if warmup:
            warmup_percent_done = numpy.float64(global_step) / numpy.float64(warmup)
            is_warmup = 1.0 if global_step < warmup else 0.0
            learning_rate = (1.0 - is_warmup) * learning_rate + is_warmup * peak * warmup_percent_done
        return float(learning_rate)

    emit("google_linear", [rate(t - 1) for t in range(1, steps + 1)], total_steps=steps, warmup_steps=warmup, peak=peak)


google(50, 10, 1e-4)
google(25, 0, 2e-5)


def nvidia(steps, proportion, peak, degree):
    def rate(step):  # step updates have been made
        progress = (step + 1) / steps
        return peak * progress / proportion if progress < proportion else peak * (1.0 - progress) ** degree

    emit("nvidia_poly", [rate(t - 1) for t in range(1, steps + 1)], total_steps=steps, warmup_steps=proportion * steps,
         peak=peak, degree=degree)


nvidia(70, 0.2843, 6e-3, 0.5)
nvidia(156, 0.128, 4e-3, 0.5)

with open(sys.argv[1], "w") as out:
    json.dump(cases, out, separators=(",", ":"))
    out.write("\n")
print(f"{len(cases)} cases; torch {torch.__version__}, transformers {transformers.__version__}, numpy {numpy.__version__}")
