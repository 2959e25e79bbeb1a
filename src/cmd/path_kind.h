/* What a path names, for `inspect` and `verify`: everything that bertc writes, and what it reads of other programs. Found from
 * names and first bytes; whether it is whole is another question. */
#ifndef CMD_PATH_KIND_H
#define CMD_PATH_KIND_H

#include <stdbool.h>
#include "base/error.h"
#include "base/file.h"

enum path_kind {
	PATH_UNKNOWN,
	/* Folders. */
	PATH_SWEEP,
	PATH_RUN,
	PATH_RUN_DATA,       /* the folder `data` of a run */
	PATH_CHECKPOINT,     /* a model folder with a manifest and the state of training */
	PATH_FINISHED_MODEL, /* a model folder with a manifest: DIR/final of a run */
	PATH_INT8_MODEL,
	PATH_SENTENCE_MODEL,    /* for sentence-transformers */
	PATH_ONNX_FOLDER,       /* onnx/model.onnx with tokenizer and configuration */
	PATH_TRITON_MODEL,      /* config.pbtxt and versions */
	PATH_TRITON_REPOSITORY, /* a folder of such folders */
	PATH_TENSORFLOW_FOLDER, /* as Google's code reads it */
	PATH_MODEL_FOLDER,      /* any other with a configuration */
	PATH_WEIGHTS_FOLDER,    /* weights alone */
	/* Files. */
	PATH_PART, /* PATH.part: what an interrupted command has written so far */
	PATH_ONNX,
	PATH_SHARDS,
	PATH_STATIC_INSTANCES,
	PATH_TFRECORD,
	PATH_HDF5,
	PATH_EVENTS, /* TensorBoard's */
	PATH_WEIGHTS,
	PATH_VECTORS_NPY,
	PATH_VECTORS_JSON, /* lines with "embedding", or as extract_features.py writes them */
	PATH_VECTORS_TSV,
	PATH_METRICS,
	PATH_SAMPLES, /* samples.jsonl of a run */
	PATH_ANSWERS, /* of `predict` or `score`, in JSON lines */
	PATH_VOCABULARY,
	PATH_JSON,
	PATH_KINDS,
};
extern const char *const path_kind_names[PATH_KINDS];

/* PATH_UNKNOWN also for a path that is not there; text is PATH_UNKNOWN. */
enum path_kind path_kind_find(const char *path);
/* Is it a folder that a command is writing, or was when it was killed? Such folders get their name when they are whole. */
bool path_is_unfinished(const char *path);
/* PREFIX of "PREFIX", "PREFIX.bin", "PREFIX.idx" or "PREFIX.json" of token shards; false if it is none. */
bool path_shard_prefix(const char *path, char out[PATH_BYTES]);
/* Is there a file or folder of that name in the folder? */
bool folder_has(const char *folder, const char *name);
/* The graph of a Triton model's newest version: 1/model.onnx, or that file in a folder of this name. */
MUST_USE enum status triton_graph(const char *path, char out[PATH_BYTES]);

#endif
