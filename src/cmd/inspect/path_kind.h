/* What a path names, for `inspect` and `verify`: everything that bertc writes, and the files of other programs that it reads. The
 * kind is found from names and first bytes, without checking whether the file or folder is complete. */
#ifndef CMD_INSPECT_PATH_KIND_H
#define CMD_INSPECT_PATH_KIND_H

#include <stdbool.h>
#include "base/error.h"
#include "base/file.h"

enum path_kind {
	PATH_UNKNOWN,
	/* Folders. */
	PATH_SWEEP,
	PATH_RUN,
	PATH_RUN_DATA,       /* the folder `data` of a run */
	PATH_CHECKPOINT,     /* a model folder with a manifest and the training state */
	PATH_FINISHED_MODEL, /* a model folder with a manifest: final/ of a run */
	PATH_INT8_MODEL,
	PATH_ADAPTER,           /* as peft keeps it: of a base model that is elsewhere */
	PATH_SENTENCE_MODEL,    /* in the form of sentence-transformers */
	PATH_ONNX_FOLDER,       /* onnx/model.onnx with tokenizer and configuration */
	PATH_TRITON_MODEL,      /* config.pbtxt and versions */
	PATH_TRITON_REPOSITORY, /* a folder of such folders */
	PATH_TENSORFLOW_FOLDER, /* in the form that Google's code reads */
	PATH_MODEL_FOLDER,      /* any other folder with a configuration */
	PATH_WEIGHTS_FOLDER,    /* nothing but weights */
	/* Files. */
	PATH_PART, /* PATH.part: what an interrupted command has written so far */
	PATH_ONNX,
	PATH_SHARDS,
	PATH_STATIC_INSTANCES,
	PATH_TFRECORD,
	PATH_HDF5,
	PATH_EVENTS, /* of TensorBoard */
	PATH_WEIGHTS,
	PATH_VECTORS_NPY,
	PATH_VECTORS_JSON, /* lines with "embedding", or as extract_features.py writes them */
	PATH_VECTORS_TSV,
	PATH_METRICS,
	PATH_SAMPLES, /* samples.jsonl of a run */
	PATH_ANSWERS, /* of `predict` or `score`, as JSON lines */
	PATH_VOCABULARY,
	PATH_JSON,
	PATH_KINDS,
};
extern const char *const path_kind_names[PATH_KINDS];

/* PATH_UNKNOWN also for plain text, and for a path that does not exist. */
enum path_kind path_kind_find(const char *path);
/* Is it a folder that a command is writing, or was writing when it was killed? Such a folder gets its final name when it is
 * complete. */
bool path_is_unfinished(const char *path);
/* The PREFIX of token shards from "PREFIX", "PREFIX.bin", "PREFIX.idx", or "PREFIX.json"; false if the path is none of these. */
bool path_shard_prefix(const char *path, char out[PATH_BYTES]);
/* Does the folder contain a file or folder of this name? */
bool folder_has(const char *folder, const char *name);
/* The graph of a Triton model's newest version: 1/model.onnx, or 1/model.onnx/model.onnx if the former is a folder. */
MUST_USE enum status triton_graph(const char *path, char out[PATH_BYTES]);

#endif
