/* The files that decide what a model answers, and whether they are still those that were looked at: weights, configuration,
 * tokenizer, what is known of its task, and what a sentence-transformers folder says. They are read one after the other, so a
 * folder that is replaced meanwhile would give the words of one model and the weights of another. */
#ifndef WEIGHTS_MODEL_FILES_H
#define WEIGHTS_MODEL_FILES_H

#include "base/error.h"
#include "base/file.h"

/* Zero-initialise. */
struct model_files {
	struct name_list paths;
	struct file_stamp *stamps; /* [paths.count] */
};

/* Looks at the files of `model`, whatever a person means by it (weights/model_folder.h); nothing that is there is an empty list.
 * The caller releases *out, also after a failure. */
MUST_USE enum status model_files_look(struct model_files *out, const char *model);
/* Are they as they were? ERR_STATE names the first that was changed, replaced or removed, or that is new. */
MUST_USE enum status model_files_check(const struct model_files *files, const char *model);
void model_files_release(struct model_files *files);

#endif
