/* Detects changes to the files that determine a model's answers: weights, configuration, tokenizer, task record, and the files of
 * sentence-transformers. They are read one after another, so if the folder were replaced meanwhile, the vocabulary of one model
 * could be combined with the weights of another. */
#ifndef WEIGHTS_MODEL_FILES_H
#define WEIGHTS_MODEL_FILES_H

#include "base/error.h"
#include "base/file.h"

/* Zero-initialize. */
struct model_files {
	struct name_list paths;
	struct file_stamp *stamps; /* [paths.count] */
};

/* Records the state of the files of `model`, in any form that the user may give (weights/model_folder.h); the list is empty if
 * there are none. The caller releases *out, even after a failure. */
MUST_USE enum status model_files_look(struct model_files *out, const char *model);
/* Checks that the files are unchanged. Otherwise returns ERR_STATE, naming the first that was changed, replaced, removed, or
 * added. */
MUST_USE enum status model_files_check(const struct model_files *files, const char *model);
/* The identity of a model, as it is now: the contents of all its files. NULL: of none. */
MUST_USE enum status model_files_hash(const char *model, uint64_t *out);
void model_files_release(struct model_files *files);

#endif
