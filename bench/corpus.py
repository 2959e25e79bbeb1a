"""Text for the benchmarks of pre-training: a vocabulary learned from it, shards, and held-out instances whose masks are always the
same."""
import os
import struct
import subprocess


def prepare(bertc, corpus, folder, vocab_size):
    """Makes in FOLDER, if missing: vocab.txt, text.* (training), held_out.tfrecord (one document in a hundred, 15 % of the tokens
    masked), and curve.tfrecord (its first 400 instances)."""
    def path(name):
        return os.path.join(folder, name)

    def run(*command):
        subprocess.run([str(x) for x in (bertc, *command, "--quiet")], check=True, stdout=subprocess.DEVNULL)

    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(path("text.json")):
        run("vocab", "--corpus", *corpus, "--vocab_size", vocab_size, "--out", path("vocab.txt"), "--overwrite")
        run("prepare", "--corpus", *corpus, "--vocab_file", path("vocab.txt"), "--held_out_fraction", 0.01, "--drop_copied_documents",
            "--out", path("text"))
    if not os.path.exists(path("held_out.tfrecord")):
        run("instances", "--data", path("text.held_out"), "--vocab_file", path("vocab.txt"), "--next_sentence", "none",
            "--short_seq_prob", 0, "--dupe_factor", 1, "--out", path("held_out.part.tfrecord"))
        os.replace(path("held_out.part.tfrecord"), path("held_out.tfrecord"))
    if not os.path.exists(path("curve.tfrecord")):
        with open(path("held_out.tfrecord"), "rb") as whole, open(path("curve.part.tfrecord"), "wb") as first:
            for _ in range(400):
                head = whole.read(12)  # the length and its checksum; the record's own checksum comes after the record
                if not head:
                    break
                first.write(head + whole.read(struct.unpack("<Q", head[:8])[0] + 4))
        os.replace(path("curve.part.tfrecord"), path("curve.tfrecord"))
