"""Vectors of many sentences, from a text file to a .npy file: bertc embed and sentence-transformers on each of its back ends,
in alternation.

    python bench/embed.py --folder FOLDER --texts FILE --work FOLDER [--bertc build/bertc] [--count 100000] [--sample 4000]
                          [--rounds 3] [--threads 2] [--engines bertc-int8,bertc-bf16,torch-fp32,torch-bf16,onnx-fp32,onnx-int8,
                          openvino-bf16,openvino-int8] [--json FILE] [--markdown FILE] [--prepare]

FOLDER is a sentence-transformers folder, FILE holds one sentence per line (plain or gzip). Needs bench/requirements.txt, and
optimum-onnx and optimum-intel for those back ends; one that cannot be loaded ends the program before anything is measured. In each
round the engines take turns with a sample of the sentences, drawn evenly so that it has the lengths of the whole; bertc in int8
also takes all --count of them. The time of bertc is that of the whole command; that of sentence-transformers covers reading the
file, encode() with its own batches sorted by length, and numpy.save, without starting Python and loading the model. Vectors are
compared with those of PyTorch in fp32.

Models converted for the peers are kept in --work; --prepare only converts. The last part measures the time from the start of a
process to the first answer, with the folder in floats and in int8 (--rounds x 5 times, from the page cache), and the peak
memory of the process.
"""
import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import time

from encoders import need

LIBRARIES = {"torch": ["torch", "sentence_transformers"], "onnx": ["sentence_transformers", "onnxruntime", "optimum.onnxruntime"],
             "openvino": ["sentence_transformers", "openvino", "nncf", "optimum.intel"]}


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--folder", required=True)
    p.add_argument("--texts", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--bertc", default="build/bertc")
    p.add_argument("--count", type=int, default=100000)
    p.add_argument("--sample", type=int, default=4000)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--engines",
                   default="bertc-int8,bertc-bf16,torch-fp32,torch-bf16,onnx-fp32,onnx-int8,openvino-bf16,openvino-int8")
    p.add_argument("--json")
    p.add_argument("--markdown")
    p.add_argument("--prepare", action="store_true")
    p.add_argument("--child")
    return p.parse_args()


a = arguments()


def path_of(name):
    return os.path.join(a.work, os.path.basename(os.path.normpath(a.folder)) + "." + name)


# --- sentence-transformers, in a process of its own -------------------------------------------------------------------


def quantize_openvino(model, path):
    """As sentence-transformers does it, but calibrated with our own sentences instead of a published data set."""
    import nncf
    import openvino

    names = [port.get_any_name() for port in model.inputs]
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(a.folder)
    with open(path_of("sample.txt"), encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file][:256]
    texts = [{k: v for k, v in tokenizer([line], truncation=True, max_length=128, return_tensors="np").items() if k in names}
             for line in lines]
    quantized = nncf.quantize(model, nncf.Dataset(texts), model_type=nncf.ModelType.TRANSFORMER, subset_size=len(texts))
    openvino.save_model(quantized, path, compress_to_fp16=False)


def open_model(engine):
    backend, _, precision = engine.partition("-")
    import torch
    from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model

    torch.set_num_threads(a.threads)
    if backend == "torch":
        kwargs = {"model_kwargs": {"dtype": torch.bfloat16}} if precision == "bf16" else {}
        return SentenceTransformer(a.folder, device="cpu", **kwargs)
    folder = path_of(backend)
    if not os.path.exists(folder):
        SentenceTransformer(a.folder, backend=backend, device="cpu").save_pretrained(folder)
    if backend == "onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = a.threads
        kwargs = {"provider": "CPUExecutionProvider", "session_options": options, "file_name": "onnx/model.onnx"}
        name = "onnx/model_qint8_avx512_vnni.onnx"
        if precision == "int8":
            if not os.path.exists(os.path.join(folder, name)):
                model = SentenceTransformer(folder, backend="onnx", device="cpu", model_kwargs=kwargs)
                export_dynamic_quantized_onnx_model(model, "avx512_vnni", folder)
            kwargs["file_name"] = name
        return SentenceTransformer(folder, backend="onnx", device="cpu", model_kwargs=kwargs)
    name = "openvino/openvino_model.xml"
    if precision == "int8":
        import openvino

        whole, name = os.path.join(folder, name), "openvino/openvino_model_int8.xml"
        if not os.path.exists(os.path.join(folder, name)):
            quantize_openvino(openvino.Core().read_model(whole), os.path.join(folder, name))
    config = {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": str(a.threads)}
    return SentenceTransformer(folder, backend="openvino", device="cpu", model_kwargs={"file_name": name, "ov_config": config})


def child(engine):
    """Reads paths and answers each with seconds; the vectors are written to path + engine + .npy."""
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    os.dup2(2, 1)
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
    import numpy

    model = open_model(engine)
    model.encode(["a sentence to warm up with"] * 32 + ["another, somewhat longer than the first one is"] * 32)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        path = line.strip()
        began = time.perf_counter()
        with open(path, encoding="utf-8") as file:
            texts = [text.rstrip("\n") for text in file]
        numpy.save(f"{path}.{engine}.npy", numpy.asarray(model.encode(texts, batch_size=32, convert_to_numpy=True), dtype="float32"))
        print(time.perf_counter() - began, file=answers, flush=True)


class Peer:
    def __init__(self, engine):
        self.log = path_of(engine + ".log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--child", engine], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"see {self.log}")

    def seconds(self, path):
        print(path, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


# --- bertc ------------------------------------------------------------------------------------------------------------


def exported(form):
    """The folder in a form of bertc's own, with a manifest: checking it is part of every start."""
    folder = path_of("bertc-" + form)
    if not os.path.exists(folder):
        subprocess.run([a.bertc, "export", "--model", a.folder, "--to", form, "--out", folder], check=True, capture_output=True)
    return folder


class Bertc:
    def __init__(self, engine):
        self.name, self.precision = engine, engine.split("-")[1]
        self.folder = exported("int8" if self.precision == "int8" else "sentence_transformers")

    def seconds(self, path):
        began = time.perf_counter()
        subprocess.run([a.bertc, "embed", "--model", self.folder, "--precision", self.precision, "--threads", str(a.threads), path,
                        "--input", "text", "--format", "npy", "--out", f"{path}.{self.name}.npy", "--fresh"], check=True,
                       capture_output=True)
        return time.perf_counter() - began


def first_answers(folder):
    """Seconds and the peak of resident bytes, for one text."""
    out = []
    for _ in range(a.rounds * 5):
        began = time.perf_counter()
        child = subprocess.Popen([a.bertc, "embed", "--model", folder, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        child.stdin.write(b"the first text of all\n")
        child.stdin.close()
        child.stdout.readline()
        seconds = time.perf_counter() - began
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        out.append((seconds, usage.ru_maxrss * 1024))
    return out


# --- the whole --------------------------------------------------------------------------------------------------------


def write_texts():
    """All texts, and a sample of them."""
    all_path, sample_path = path_of("texts.txt"), path_of("sample.txt")
    if not os.path.exists(sample_path):
        opened = gzip.open(a.texts, "rt", encoding="utf-8", newline="\n") if a.texts.endswith(".gz") else open(a.texts, encoding="utf-8")
        with opened as file:
            lines = [line for line in (line.strip() for line in file) if line][: a.count]
        for path, chosen in ((all_path, lines), (sample_path, lines[:: max(1, len(lines) // a.sample)])):
            with open(path, "w", encoding="utf-8", newline="\n") as out:
                out.write("\n".join(chosen) + "\n")
    return all_path, sample_path, *(sum(1 for _ in open(path, "rb")) for path in (all_path, sample_path))


def compare(sample, engines):
    import numpy

    if "torch-fp32" not in engines:
        return {}
    right = numpy.load(f"{sample}.torch-fp32.npy")
    out = {}
    for name in engines:
        vectors = numpy.load(f"{sample}.{name}.npy")
        lengths = numpy.linalg.norm(vectors, axis=1) * numpy.linalg.norm(right, axis=1)
        out[name] = float(((vectors * right).sum(axis=1) / lengths).min())
    return out


def main():
    os.makedirs(a.work, exist_ok=True)
    names = a.engines.split(",")
    need(*{library: None for name in names for library in LIBRARIES.get(name.split("-")[0], [])})
    everything, sample, count, sample_count = write_texts()
    engines, seconds, whole = {}, {}, {}
    for name in names:
        try:
            engines[name] = Bertc(name) if name.startswith("bertc") else Peer(name)
        except (RuntimeError, OSError) as error:
            sys.exit(f"embed.py: {name} cannot be measured: {error}\nChoose others by --engines.")
        print(f"{name} is ready", file=sys.stderr)
    if a.prepare:
        return
    for number in range(a.rounds):
        for name, engine in engines.items():
            seconds.setdefault(name, []).append(engine.seconds(sample))
            if name == "bertc-int8":
                whole.setdefault(name, []).append(engine.seconds(everything))
        print(f"round {number + 1} of {a.rounds}", file=sys.stderr)
    cosines = compare(sample, engines)
    rates = {name: sample_count / statistics.median(s) for name, s in seconds.items()}
    whole_rates = {name: count / statistics.median(s) for name, s in whole.items()}
    peers = [name for name in engines if not name.startswith("bertc")]
    best = max(peers, key=rates.get) if peers else None
    lines = [f"| {count} sentences to .npy | texts/s, {sample_count} of them | texts/s, all | least cosine with PyTorch fp32 |",
             "|---|---|---|---|"]
    for name in engines:
        all_of_them = f"{whole_rates[name]:.0f}" if name in whole else ""
        cosine = f"{cosines[name]:.5f}" if name in cosines else ""
        lines.append(f"| {name} | {rates[name]:.0f} | {all_of_them} | {cosine} |")
    lines.append("")
    for name in whole_rates:
        if best:
            line = f"{name}, all sentences: {whole_rates[name] / rates[best]:.2f} times the best of sentence-transformers ({best})"
            if "torch-fp32" in rates:
                line += f", {whole_rates[name] / rates['torch-fp32']:.2f} times its default"
            lines.append(line + "\n")
    starts = {}
    for folder in map(exported, ("int8", "sentence_transformers")):
        times = first_answers(folder)
        starts[folder] = [statistics.median(t for t, _ in times), min(t for t, _ in times), max(m for _, m in times)]
        lines.append(f"start to first answer, {os.path.basename(folder)}: median {starts[folder][0]:.3f} s, least "
                     f"{starts[folder][1]:.3f} s, at most {starts[folder][2] / 1e6:.0f} MB resident\n")
    print("\n".join(lines))
    if a.markdown:
        with open(a.markdown, "w") as out:
            out.write("\n".join(lines) + "\n")
    if a.json:
        with open(a.json, "w") as out:
            json.dump({"folder": a.folder, "count": count, "sample": sample_count, "seconds": seconds, "whole": whole,
                       "cosines": cosines, "starts": starts}, out, indent=1)
    for name in peers:
        engines[name].process.stdin.close()
        engines[name].process.wait()


child(a.child) if a.child else main()
