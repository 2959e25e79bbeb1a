"""megatron-core (PyPI) reads one of our shards and writes it again.

    megatron_core_check.py PREFIX OUT_PREFIX VOCAB_SIZE

Prints what it has read; OUT_PREFIX.bin and .idx, made by its IndexedDatasetBuilder, must equal ours byte for byte, and bertc must
train on them (cmp; bertc instances --data).
"""
import sys

import megatron.core
import numpy as np
import torch
from megatron.core.datasets.indexed_dataset import DType, IndexedDataset, IndexedDatasetBuilder

prefix, out, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = IndexedDataset(prefix, mmap=True)
ends = data.document_indices
print("megatron-core", megatron.core.__version__, "sequences", len(data), "documents", len(ends) - 1, "tokens",
      int(data.sequence_lengths.sum()))
builder = IndexedDatasetBuilder(out + ".bin", dtype=DType.optimal_dtype(size))
done = 1
for i in range(len(data)):
    builder.add_item(torch.tensor(np.array(data[i], dtype=np.int64)))
    while done < len(ends) and ends[done] == i + 1:
        builder.end_document()
        done += 1
builder.finalize(out + ".idx")
