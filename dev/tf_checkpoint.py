"""A BERT checkpoint in Google's names, written by TensorFlow from a safetensors file, for tests and comparisons of bertc's
reader.

    python dev/tf_checkpoint.py WEIGHTS.safetensors PREFIX [slots] [bare] [encoder]

slots: with adam_m, adam_v and global_step, as run_pretraining.py leaves it; bare: without "bert/" in front; encoder:
without heads.
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

v1 = tf.compat.v1


def google_name(name):
    """Google's name, and whether the matrix is transposed; None for tensors that its checkpoints do not have."""
    if ".decoder." in name or name.endswith("position_ids"):
        return None, False
    path = name.replace("encoder.layer.", "encoder.layer_").replace(".", "/")
    if name.endswith("embeddings.weight"):
        return path[:-len("/weight")], False
    if "LayerNorm" in name:
        return path.replace("weight", "gamma").replace("bias", "beta"), False
    if name == "cls.predictions.bias":
        return "cls/predictions/output_bias", False
    if name.startswith("cls.seq_relationship"):
        return "cls/seq_relationship/output_" + ("weights" if name.endswith("weight") else "bias"), False
    if name.endswith(".weight"):
        return path[:-len("weight")] + "kernel", True
    return path, False


def main(source, prefix, *flags):
    tensors = load_file(source)
    with tf.Graph().as_default(), v1.Session() as session:
        variables = []
        for name, value in sorted(tensors.items()):
            path, transposed = google_name(name)
            if path is None or ("encoder" in flags and not path.startswith("bert/")):
                continue
            if "bare" in flags and path.startswith("bert/"):
                path = path[len("bert/"):]
            value = np.ascontiguousarray(value.T) if transposed else value
            variables.append(v1.Variable(value, name=path))
            if "slots" in flags:
                variables += [v1.Variable(np.full_like(value, 0.5), name=f"{path}/{slot}") for slot in ("adam_m", "adam_v")]
        if "slots" in flags:
            variables.append(v1.Variable(np.int64(20), name="global_step"))
        session.run(v1.global_variables_initializer())
        v1.train.Saver(variables).save(session, prefix, write_meta_graph=False)
    print("TensorFlow", tf.__version__, "wrote", len(variables), "variables")


if __name__ == "__main__":
    main(*sys.argv[1:])
