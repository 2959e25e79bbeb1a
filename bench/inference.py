"""One encoder with random weights and the same texts: bertc, PyTorch, ONNX Runtime, OpenVINO and CTranslate2, in alternation.

    python bench/inference.py --work FOLDER [--model base|6x384|roberta-base|modernbert-base] [--rounds 7] [--threads 2]
                              [--seconds 1.0] [--nice -19] [--bertc build/bertc]
                              [--engines bertc-int8,bertc-bf16,torch-bf16,torch-fp32,onnxruntime-int8,openvino-bf16,openvino-int8,
                               ctranslate2-int8]
                              [--workloads full,sentences,arrival,one20,one128] [--json FILE] [--markdown FILE] [--prepare]

Needs bench/requirements.txt. An engine that cannot be loaded or run ends the program before anything is measured: name those that
can by --engines. Models converted or compiled for the peers are kept in --work; --prepare only does that. All engines compute the
encoder and, where there is one, the pooler. Every engine has a process of its own, which keeps its model; in each round the engines
take turns with every workload for about --seconds, so that other load on the machine affects all alike. Workloads:

    full       32 texts of 128 tokens                        sentences  128 texts as long as English sentences, 29 tokens on
    one20      one text of 20 tokens, again and again                   average; peers get them sorted, in padded batches of 32
    one128     one text of 128 tokens                        arrival    the same, in batches of 32 as they come

bertc packs its batches without padding and gets the texts as they come. Prints texts per second (best and median of the rounds),
milliseconds for a single text (minimum and median), and bertc relative to the best of the others.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import encoders

PEERS = "torch-bf16,torch-fp32,onnxruntime-int8,onnxruntime-fp32,openvino-bf16,openvino-int8,ctranslate2-int8"
LIBRARIES = {"torch": ["torch", "transformers"], "onnxruntime": ["onnxruntime", "onnx"], "openvino": ["openvino"],
             "ctranslate2": ["ctranslate2"]}


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--work", required=True)
    p.add_argument("--model", default="base", choices=encoders.MODELS)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=1.0)
    p.add_argument("--nice", type=int, help="of the engines while they are measured (Linux's autogroup; for root)")
    p.add_argument("--bertc", default="build/bertc")
    p.add_argument("--engines", default="bertc-int8,bertc-bf16," + PEERS)
    p.add_argument("--workloads", default="full,sentences,arrival,one20,one128")
    p.add_argument("--json")
    p.add_argument("--markdown")
    p.add_argument("--prepare", action="store_true")
    p.add_argument("--child")
    return p.parse_args()


a = arguments()


def sentence_lengths(count):
    """The lengths of `bertc bench --sentence_lengths`: src/run/benchmark.c."""
    share, out = 0.5, []
    for _ in range(count):
        out.append(min(128, max(3, round(25.65 * (share / (1 - share)) ** 0.27))))
        share = (share + 0.6180339887498949) % 1
    return out


def batches(workload):
    """Lists of lengths, one list per batch."""
    if workload == "full":
        return [[128] * 32]
    if workload.startswith("one"):
        return [[int(workload[3:])]]
    lengths = sentence_lengths(128)
    if workload == "sentences":
        lengths.sort()
    return [lengths[i : i + 32] for i in range(0, len(lengths), 32)]


def prefer(value):
    """Sets the priority of this process's whole session, which is its own."""
    if a.nice is not None:
        with open("/proc/self/autogroup", "w") as out:
            out.write(str(value))


def texts(workload):
    return sum(len(batch) for batch in batches(workload))


# --- peers, each in a process of its own ------------------------------------------------------------------------------


def bert(**options):
    import torch
    import transformers

    torch.manual_seed(1)
    torch.set_num_threads(a.threads)
    return transformers.AutoModel.from_config(encoders.transformers_config(a.model), **options).eval()


def arrays(lengths):
    import numpy

    rng = numpy.random.default_rng(len(lengths) * 1000 + lengths[0])
    ids = rng.integers(1000, encoders.config(a.model)["vocab_size"], (len(lengths), max(lengths)), dtype=numpy.int64)
    mask = numpy.arange(max(lengths))[None, :] < numpy.array(lengths)[:, None]
    return ids * mask, mask.astype(numpy.int64)


def onnx_file():
    import torch

    class Encoder(torch.nn.Module):
        """With the inputs by name: transformers' own order changes from release to release."""

        def __init__(self):
            super().__init__()
            self.encoder = bert(attn_implementation="eager")

        def forward(self, ids, mask):
            return tuple(self.encoder(input_ids=ids, attention_mask=mask, return_dict=True).values())

    path = os.path.join(a.work, f"{a.model}.onnx")
    if not os.path.exists(path):
        ids, mask = map(torch.from_numpy, arrays([16, 12]))
        batch, tokens = torch.export.Dim("batch", max=4096), torch.export.Dim("tokens", max=512)
        torch.onnx.export(Encoder(), (ids, mask), path, input_names=["input_ids", "attention_mask"], dynamo=True,
                          external_data=False, verbose=False, dynamic_shapes=({0: batch, 1: tokens}, {0: batch, 1: tokens}))
    return path


def open_torch(precision):
    import torch

    model = bert()
    if precision == "bf16":
        model = torch.compile(model.to(torch.bfloat16), dynamic=True)

    def run(ids, mask):
        with torch.inference_mode():
            model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))

    return run


def open_onnxruntime(precision):
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic

    path = onnx_file() if precision == "fp32" else os.path.join(a.work, f"{a.model}.int8.onnx")
    if not os.path.exists(path):
        quantize_dynamic(onnx_file(), path, weight_type=QuantType.QInt8, per_channel=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = a.threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda ids, mask: session.run(None, {"input_ids": ids, "attention_mask": mask})


def openvino_int8_file(core):
    """Weights and activations in int8, the latter with ranges from calibration: OpenVINO does not do this dynamically on every
    CPU."""
    import nncf
    import openvino

    path = os.path.join(a.work, f"{a.model}.int8.xml")
    if not os.path.exists(path):
        texts = nncf.Dataset([dict(zip(("input_ids", "attention_mask"), arrays(lengths))) for lengths in batches("sentences") * 8])
        model = nncf.quantize(core.read_model(onnx_file()), texts, model_type=nncf.ModelType.TRANSFORMER, subset_size=32)
        openvino.save_model(model, path, compress_to_fp16=False)
    return path


def open_openvino(precision):
    import openvino

    core = openvino.Core()
    hints = {"INFERENCE_PRECISION_HINT": "f32" if precision == "fp32" else "bf16", "INFERENCE_NUM_THREADS": a.threads, "PERFORMANCE_HINT": "LATENCY"}
    model = core.compile_model(core.read_model(openvino_int8_file(core) if precision == "int8" else onnx_file()), "CPU", hints)
    request = model.create_infer_request()
    return lambda ids, mask: request.infer({"input_ids": ids, "attention_mask": mask})


def open_ctranslate2(_):
    import ctranslate2
    import transformers

    folder, converted = (os.path.join(a.work, f"{a.model}.{name}") for name in ("transformers", "ctranslate2"))
    if not os.path.exists(converted):
        bert().save_pretrained(folder)
        with open(os.path.join(folder, "vocab.txt"), "w") as out:
            out.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(encoders.config(a.model)["vocab_size"] - 5)]))
        transformers.BertTokenizerFast(os.path.join(folder, "vocab.txt")).save_pretrained(folder)
        ctranslate2.converters.TransformersConverter(folder).convert(converted, quantization="int8")
    encoder = ctranslate2.Encoder(converted, device="cpu", compute_type="int8", intra_threads=a.threads, inter_threads=1)

    def run(ids, mask):
        encoder.forward_batch([list(map(int, row[: m.sum()])) for row, m in zip(ids, mask)])

    return run


def child(engine):
    """Reads names of workloads and answers each with seconds per pass: [minimum, median]."""
    name, precision = engine.split("-")
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    os.dup2(2, 1)
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(os.path.abspath(a.work), "inductor")
    run = globals()["open_" + name](precision)
    inputs = {}
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        workload = line.strip()
        prefer(a.nice)
        if workload not in inputs:
            inputs[workload] = [arrays(batch) for batch in batches(workload)]
            for batch in inputs[workload] * 2:
                run(*batch)
        seconds, began = [], time.perf_counter()
        while time.perf_counter() - began < a.seconds or not seconds:
            started = time.perf_counter()
            for batch in inputs[workload]:
                run(*batch)
            seconds.append(time.perf_counter() - started)
        prefer(0)
        print(json.dumps([min(seconds), statistics.median(seconds)]), file=answers, flush=True)


class Peer:
    def __init__(self, engine):
        command = [sys.executable, __file__, "--child", engine, "--work", a.work, "--model", a.model, "--threads", str(a.threads),
                   "--seconds", str(a.seconds)] + (["--nice", str(a.nice)] if a.nice is not None else [])
        self.log = os.path.join(a.work, engine + ".log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                            start_new_session=True)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"see {self.log}")

    def measure(self, workload):
        print(workload, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"see {self.log}")
        return json.loads(answer)


class Bertc:
    def __init__(self, engine):
        self.precision = engine.split("-")[1]
        self.config = encoders.write_config(os.path.join(a.work, f"{a.model}.config.json"), a.model)
        self.last = {}

    def measure(self, workload):
        shape = ["--train_batch_size", str(texts(workload)), "--max_seq_length", str(max(max(b) for b in batches(workload)))]
        if workload in ("sentences", "arrival"): # batches of 32; without padding, their order does not matter
            shape = ["--train_batch_size", "32", "--max_seq_length", "128", "--sentence_lengths"]
        scale = texts(workload) / int(shape[1])
        steps = max(3, min(300, int(a.seconds / (self.last.get(workload, 0.2) / scale))))
        command = [a.bertc, "bench", "--model", self.config, "--mode", "inference", "--heads", "pooler", "--precision",
                   self.precision, "--threads", str(a.threads), "--steps", str(steps), "--json", *shape]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, start_new_session=True,
                                           preexec_fn=lambda: prefer(a.nice)).stdout)["inference"]
        self.last[workload] = result["seconds_per_step"] * scale
        self.floor = result["floor_seconds"] * scale, result["read_bytes_per_second"], result["gemm_flops_per_second"]
        return [result["seconds_least"] * scale, result["seconds_per_step"] * scale]


def write_markdown(table, engines):
    with open(a.markdown, "w") as out:
        out.write(f"| {a.model} | " + " | ".join(engines) + " |\n|---|" + "---|" * len(engines) + "\n")
        for workload, seconds in table.items():
            one = workload.startswith("one")
            figures = [f"{1e3 * seconds[name][0]:.2f}" if one else f"{texts(workload) / seconds[name][0]:.1f}" for name in engines]
            out.write(f"| {workload}, {'ms' if one else 'texts/s'} | " + " | ".join(figures) + " |\n")


def main():
    os.makedirs(a.work, exist_ok=True)
    names = a.engines.split(",")
    encoders.need(*{library: None for name in names for library in LIBRARIES.get(name.split("-")[0], [])})
    engines, seconds = {}, {}
    for name in names:
        try:
            engines[name] = Bertc(name) if name.startswith("bertc") else Peer(name)
            for workload in a.workloads.split(","): # compile and warm up
                engines[name].measure(workload)
        except (RuntimeError, ValueError, OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"inference.py: {name} cannot be measured: {getattr(error, 'stderr', None) or error}\n"
                     "Choose others by --engines.")
        print(f"{name} is ready", file=sys.stderr)
    if a.prepare:
        return
    for number in range(a.rounds):
        for workload in a.workloads.split(","):
            for name, engine in engines.items():
                seconds.setdefault((name, workload), []).append(engine.measure(workload))
        print(f"round {number + 1} of {a.rounds}", file=sys.stderr)
    table = {}
    for workload in a.workloads.split(","):
        one = workload.startswith("one")
        print(f"\n{workload}: " + ("milliseconds, least and median" if one else "texts per second, best and median"))
        for name in engines:
            least = min(s[0] for s in seconds[name, workload])
            middle = statistics.median(s[1] for s in seconds[name, workload])
            table.setdefault(workload, {})[name] = [least, middle]
            print(f"  {name:18s} " + (f"{1e3 * least:8.2f} {1e3 * middle:8.2f}" if one
                                      else f"{texts(workload) / least:8.1f} {texts(workload) / middle:8.1f}"))
        for ours in (name for name in engines if name.startswith("bertc")):
            for kind in ("int8", "bf16", "fp32"):
                others = [name for name in engines if not name.startswith("bertc") and name.endswith(kind)]
                if others:
                    best = [min(table[workload][name][i] for name in others) for i in (0, 1)]
                    print(f"  {ours} is {best[0] / table[workload][ours][0]:.2f} (median {best[1] / table[workload][ours][1]:.2f}) "
                          f"times as fast as the best {kind} peer")
    if a.markdown:
        write_markdown(table, list(engines))
    if a.json:
        with open(a.json, "w") as out:
            json.dump({"model": a.model, "threads": a.threads, "rounds": a.rounds, "seconds": table}, out, indent=1)


child(a.child) if a.child else main()
