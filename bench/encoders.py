"""The encoders of the benchmarks, with random weights: one config.json that bertc and transformers both read; and whether the
libraries of the peers can be loaded."""
import importlib
import json
import sys

SHAPES = {"tiny": (2, 128), "mini": (4, 256), "4x256": (4, 256), "small": (4, 512), "6x384": (6, 384), "base": (12, 768),
          "large": (24, 1024)}
MODELS = list(SHAPES) + ["roberta-base", "modernbert-base"]


def config(model):
    """The members of config.json of SHAPE, roberta-SHAPE, or modernbert-SHAPE. The bases have the sizes of the published models."""
    form, _, shape = model.rpartition("-")
    layers, hidden = SHAPES[shape]
    out = {"model_type": form or "bert", "hidden_size": hidden, "num_hidden_layers": layers,
           "num_attention_heads": 12 if hidden == 384 else hidden // 64, "intermediate_size": 4 * hidden}
    if form == "modernbert":
        return dict(out, vocab_size=50368, num_hidden_layers=22 if shape == "base" else layers, intermediate_size=hidden * 3 // 2,
                    max_position_embeddings=8192, local_attention=128, global_attn_every_n_layers=3, global_rope_theta=160000.0,
                    local_rope_theta=10000.0, pad_token_id=50283, bos_token_id=50281, eos_token_id=50282, cls_token_id=50281,
                    sep_token_id=50282, hidden_activation="gelu", norm_bias=False, attention_bias=False, mlp_bias=False,
                    attention_dropout=0.1, embedding_dropout=0.1, mlp_dropout=0.1)
    if form == "roberta":
        return dict(out, vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, pad_token_id=1, bos_token_id=0,
                    eos_token_id=2, hidden_act="gelu")
    return dict(out, vocab_size=30522, max_position_embeddings=512, type_vocab_size=2, pad_token_id=0, hidden_act="gelu")


def write_config(path, model):
    with open(path, "w") as out:
        json.dump(config(model), out)
    return path


def transformers_config(model):
    import transformers

    return transformers.AutoConfig.for_model(**config(model))


def need(*libraries):
    """Ends the program, before it has measured anything, if one of these cannot be loaded."""
    failed = []
    for library in libraries:
        try:
            importlib.import_module(library)
        except Exception as error:  # any library may throw anything
            failed.append(f"{library} ({str(error).splitlines()[0] if str(error) else type(error).__name__})")
    if failed:
        sys.exit(f"{sys.argv[0]}: cannot load {', '.join(failed)}: python -m pip install -r bench/requirements.txt")
