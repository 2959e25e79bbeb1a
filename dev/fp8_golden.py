"""Saturating conversions to PyTorch's float8_e4m3fn and float8_e5m2, for tests/backend/test_fp8.c.

    python dev/fp8_golden.py tests/golden/fp8.safetensors

    e4m3.bf16, e5m2.bf16      U8 (65536): the byte of every bf16 number, by its bits
    sample                    F32 (n): numbers drawn over all exponents, the midpoints between neighbors in both formats and
                              the numbers next to them
    e4m3.sample, e5m2.sample  U8 (n)
    e4m3.value, e5m2.value    F32 (256): the value of every byte
Larger numbers and infinities become the largest value: they are clamped first, since versions of PyTorch differ there. NaN is
compared as NaN, whatever its byte.
"""
import sys

import numpy
import torch
from safetensors.numpy import save_file

FORMATS = {"e4m3": (torch.float8_e4m3fn, 448.0), "e5m2": (torch.float8_e5m2, 57344.0)}


def encode(x, name):
    dtype, largest = FORMATS[name]
    return x.clamp(-largest, largest).to(dtype).view(torch.uint8).numpy()


random = numpy.random.RandomState(9)
bits = random.randint(0, 1 << 32, 20000, dtype=numpy.uint64).astype(numpy.uint32)
near = (random.uniform(-1, 1, 20000) * 2.0 ** random.uniform(-20, 18, 20000)).astype(numpy.float32)
out, middles = {}, []
for name, (dtype, largest) in FORMATS.items():
    values = torch.arange(256, dtype=torch.uint8).view(dtype).to(torch.float32).numpy()
    out[f"{name}.value"] = values
    finite = numpy.unique(values[numpy.isfinite(values)])
    middle = ((finite[1:].astype(numpy.float64) + finite[:-1]) / 2).astype(numpy.float32)
    for x in (finite, middle):
        middles += [x, numpy.nextafter(x, numpy.float32(numpy.inf)), numpy.nextafter(x, numpy.float32(-numpy.inf))]
sample = numpy.concatenate([bits.view(numpy.float32), near, *middles])
out["sample"] = sample
every = torch.from_numpy((numpy.arange(65536, dtype=numpy.uint32) << 16).view(numpy.float32))
for name in FORMATS:
    out[f"{name}.bf16"] = encode(every, name)
    out[f"{name}.sample"] = encode(torch.from_numpy(sample), name)
save_file(out, sys.argv[1])
