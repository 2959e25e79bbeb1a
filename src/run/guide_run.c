/* Opens the guide, has it compute the texts, and closes it before the run takes its memory. */
#include "run/guide_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "infer/text_pass.h"
#include "model/pooling.h"
#include "weights/checkpoint_folder.h"
#include "weights/model_files.h"

struct guide_run {
	const struct run *run;
	uint64_t *hash;
};

/* The vectors of the texts that are first, or of all others, each put where its text is. */
static enum status some_vectors(struct text_model *model, const char *const *texts, const bool *are_first, bool first,
				int64_t count, float **out, int64_t *out_width)
{
	const struct sentence_folder *folder = &model->sentences;
	const struct text_pass pass = {.model = model,
				       .title = first ? "guide: first texts" : "guide: other texts",
				       .prompt = first ? sentence_folder_query_prompt(folder)
						       : sentence_folder_document_prompt(folder)};
	struct text_vectors made = {0};
	const char **some;
	int64_t some_count = 0, at = 0;
	TRY(memory_new(&some, count, sizeof *some, "texts"));
	for (int64_t i = 0; i < count; i++)
		if (are_first[i] == first)
			some[some_count++] = texts[i];
	enum status status = text_vectors_make(&made, &pass, some, some_count);
	int64_t width = *out_width = made.vectors.width;
	if (status == OK && !*out)
		status = memory_new(out, count, (size_t)width * sizeof **out, "vectors of the guide");
	for (int64_t i = 0; i < count && status == OK; i++) {
		if (are_first[i] != first)
			continue;
		memcpy(*out + i * width, made.values + at++ * width, (size_t)width * sizeof **out);
		pooling_normalize(*out + i * width, width);
	}
	text_vectors_release(&made);
	free(some);
	return status;
}

static enum status make(void *context, const char *folder, const char *const *texts, const bool *are_first, int64_t count,
			float **out, int64_t *out_width)
{
	const struct guide_run *self = context;
	const struct text_model_settings settings = {.device = self->run->machine->device, .no_blanks = true};
	struct text_model model = {0};
	struct model_files files = {0};
	char number[FORMAT_BYTES];
	uint64_t hash;
	enum status status;
	if (!file_exists(folder))
		return checkpoint_missing(folder, "give an embedding model: a run folder, one of its checkpoints, or a folder of "
						  "sentence-transformers");
	TRY_GOTO(model_files_look(&files, folder), done);
	TRY_GOTO(model_files_hash(folder, &hash), done);
	*self->hash = hash64_combine(*self->hash, hash);
	TRY_GOTO(text_model_open(&model, folder, self->run->machine->pool, &settings), done);
	TRY_GOTO(model_files_check(&files, folder), done); /* the model that was hashed */
	if (!model.makes_vectors)
		TRY_GOTO(error_hinted(error_set(ERR_USAGE, "--guide: '%s' makes no vectors", folder), "give an embedding model"),
			 done);
	TRY_GOTO(some_vectors(&model, texts, are_first, true, count, out, out_width), done);
	TRY_GOTO(some_vectors(&model, texts, are_first, false, count, out, out_width), done);
	log_note("guide: '%s', vectors of %" PRId64 " numbers for %s", folder, *out_width,
		 format_counted(number, count, "text", "texts"));
done:
	model_files_release(&files);
	text_model_close(&model);
	return status;
}

enum status guide_run_prepare(const struct run *run, const struct task_state *state, struct task_set *train, uint64_t *hash)
{
	struct guide_run self = {.run = run, .hash = hash};
	if (!state->task->guide || run->values->folder.plan)
		return OK;
	return state->task->guide(state, train, make, &self);
}
