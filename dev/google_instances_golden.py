"""Small golden files for tests/data/test_google_instances.c from runs of Google's create_pretraining_data.py.

    google_instances_golden.py FOLDER VOCAB_FOLDER OUT.json NAME...

FOLDER holds, for each run NAME, NAME.params.json (input, vocabulary, flags) and NAME.instances.jsonl: what the official program
wrote, decoded. An instance is reduced to the CRC-32 of its numbers as int32: length, ids, positions, labels, next-sentence
label. The vocabulary is reduced to the entries that the text's tokens (by Hugging Face's tokenizer) and the masks use; the test
fills in the others with entries that match no text, which changes no result of the greedy longest match.
"""
import json
import sys
import zlib

import numpy as np
from tokenizers import BertWordPieceTokenizer

folder, vocab_folder, out = sys.argv[1:4]
cases, used, size = [], {}, 0
for name in sys.argv[4:]:
    p = json.load(open(f"{folder}/{name}.params.json"))
    vocab = [line.rstrip("\n").strip() for line in open(f"{vocab_folder}/{p['vocab']}.vocab.txt", encoding="utf-8")]
    size = len(vocab)
    tokenizer = BertWordPieceTokenizer(f"{vocab_folder}/{p['vocab']}.vocab.txt", lowercase=p["do_lower_case"])
    for i in tokenizer.encode(open(f"{folder}/{p['input']}", encoding="utf-8").read(), add_special_tokens=False).ids:
        used[i] = vocab[i]
    crcs = []
    for line in open(f"{folder}/{name}.instances.jsonl"):
        r = json.loads(line)
        n, k = sum(r["input_mask"]), int(sum(r["masked_lm_weights"]))
        numbers = ([n] + r["input_ids"][:n] + r["segment_ids"][:n] + [k] + r["masked_lm_positions"][:k] +
                   r["masked_lm_ids"][:k] + r["next_sentence_labels"])
        crcs.append(zlib.crc32(np.array(numbers, dtype="<i4").tobytes()))
        for i in r["input_ids"] + r["masked_lm_ids"]:
            used[i] = vocab[i]
    case = {k: p[k] for k in ("max_seq_length", "max_predictions_per_seq", "masked_lm_prob", "random_seed", "dupe_factor",
                              "short_seq_prob", "do_whole_word_mask")}
    cases.append({"name": name, "text": open(f"{folder}/{p['input']}", encoding="utf-8").read(), **case, "crc32": crcs})
for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"):
    used[vocab.index(token)] = token
ids = sorted(used)
json.dump({"vocab_size": size, "ids": ids, "entries": [used[i] for i in ids], "cases": cases}, open(out, "w"),
          ensure_ascii=False)
