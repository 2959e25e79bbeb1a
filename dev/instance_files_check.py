"""Files of static instances, read and written by the libraries that define their formats: TensorFlow, h5py.

    instance_files_check.py BERTC VOCAB TEXT WORK_FOLDER [GOLDEN_FOLDER]

Ours to theirs: the instances of TEXT, written by bertc as TFRecord, gzip TFRecord and HDF5 (NVIDIA's layout), are read by
TensorFlow and h5py, and must agree number for number. Theirs to ours: the same numbers written by TensorFlow (plain, gzip,
zlib; shuffled map order, unpacked integers) and h5py (as NVIDIA's script does) are converted by bertc and must come back the same.
GOLDEN_FOLDER holds NAME.params.json, NAME.instances.jsonl and the inputs of runs of Google's script: --compat google must
reproduce each instance.
"""
import json
import os
import random
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import h5py
import numpy as np
import tensorflow as tf

bertc, vocab, text, work = sys.argv[1:5]
golden = sys.argv[5] if len(sys.argv) > 5 else None
KEYS = ["input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids", "masked_lm_weights",
        "next_sentence_labels"]


def run(*arguments):
    subprocess.run([bertc, "instances", "--quiet", *arguments], check=True)


def read_records(path, compression=""):
    out = []
    for raw in tf.data.TFRecordDataset(path, compression_type=compression):
        features = tf.train.Example.FromString(raw.numpy()).features.feature
        out.append({k: list(f.int64_list.value) or list(f.float_list.value) for k, f in features.items()})
    return out


def read_hdf5(path):
    with h5py.File(path) as f:
        for name, kind in (("input_ids", "i4"), ("input_mask", "i1"), ("segment_ids", "i1"), ("masked_lm_positions", "i4"),
                           ("masked_lm_ids", "i4"), ("next_sentence_labels", "i1")):
            assert f[name].dtype == np.dtype(kind) and f[name].compression == "gzip", (name, f[name].dtype)
        return {k: f[k][:] for k in f}


def equal(a, b, what):
    assert len(a) == len(b), (what, len(a), len(b))
    same = sum(x == y for x, y in zip(a, b))
    print(f"{what}: {same} of {len(b)} equal")
    assert same == len(b), what


def path(name):
    return os.path.join(work, name)


for name in ("a.tfrecord", "a.tfrecord.gz", "a.hdf5", "a.instances"):
    run("--corpus", text, "--vocab_file", vocab, "--dupe_factor", "2", "--out", path(name))
plain = read_records(path("a.tfrecord"))
equal(read_records(path("a.tfrecord.gz"), "GZIP"), plain, "TensorFlow: bertc's gzip against its plain TFRecord")
tables = read_hdf5(path("a.hdf5"))
rows = [{**{k: tables[k][i].tolist() for k in KEYS[:5]}, "next_sentence_labels": [int(tables["next_sentence_labels"][i])],
         "masked_lm_weights": [float(p > 0) for p in tables["masked_lm_positions"][i]]} for i in range(len(plain))]
equal(rows, plain, "h5py: bertc's HDF5 against its TFRecord")
run("--convert", path("a.instances"), "--out", path("b.tfrecord"))
equal(read_records(path("b.tfrecord")), plain, "bertc's own form, converted")


def example(row, rng):
    names = list(row)
    rng.shuffle(names)
    features = {}
    for k in names:
        features[k] = (tf.train.Feature(float_list=tf.train.FloatList(value=row[k])) if k == "masked_lm_weights"
                       else tf.train.Feature(int64_list=tf.train.Int64List(value=row[k])))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


rng = random.Random(1)
for compression in ("", "GZIP", "ZLIB"):
    name = path("theirs.tfrecord" + compression)
    with tf.io.TFRecordWriter(name, tf.io.TFRecordOptions(compression_type=compression)) as writer:
        for row in plain:
            writer.write(example(row, rng))
    run("--convert", name, "--out", path("c.tfrecord"))
    equal(read_records(path("c.tfrecord")), plain, f"bertc: TensorFlow's {compression or 'plain'} TFRecord")

# Like create_pretraining_data.py of N21: one create_dataset per feature, gzip, with its types.
with h5py.File(path("theirs.hdf5"), "w") as f:
    for k, kind in zip(KEYS[:5], ("i4", "i1", "i1", "i4", "i4")):
        f.create_dataset(k, data=np.array([r[k] for r in plain]), dtype=kind, compression="gzip")
    f.create_dataset("next_sentence_labels", data=np.array([r["next_sentence_labels"][0] for r in plain]), dtype="i1",
                     compression="gzip")
run("--convert", path("theirs.hdf5"), "--out", path("d.tfrecord"))
equal(read_records(path("d.tfrecord")), plain, "bertc: h5py's HDF5 in NVIDIA's layout")

for name in sorted(os.listdir(golden)) if golden else []:
    if not name.endswith(".params.json"):
        continue
    p = json.load(open(os.path.join(golden, name)))
    expected = [json.loads(line) for line in open(os.path.join(golden, name.replace(".params.json", ".instances.jsonl")))]
    vocab_file = os.path.join(os.path.dirname(vocab), p["vocab"] + ".vocab.txt")
    run("--compat", "google", "--input_file", os.path.join(golden, p["input"]), "--vocab_file", vocab_file,
        "--do_lower_case", str(p["do_lower_case"]).lower(), "--max_seq_length", str(p["max_seq_length"]),
        "--max_predictions_per_seq", str(p["max_predictions_per_seq"]), "--masked_lm_prob", str(p["masked_lm_prob"]),
        "--random_seed", str(p["random_seed"]), "--dupe_factor", str(p["dupe_factor"]), "--short_seq_prob",
        str(p["short_seq_prob"]), "--do_whole_word_mask", str(p["do_whole_word_mask"]).lower(), "--output_file",
        path("g.tfrecord"))
    equal(read_records(path("g.tfrecord")), expected, f"Google's script: {name[:-12]}")
