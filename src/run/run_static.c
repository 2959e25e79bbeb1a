/* Opens static instances, converting those of other programs first. */
#include "run/run_static.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_sample.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/unknown.h"

struct conversion {
	const struct instance_demands *demands;
	const struct vocab *vocab;
	const char *folder;
	const struct name_list *sources;
	struct static_file *files; /* [sources->count], opened or zero */
	struct error *errors;      /* [sources->count] */
};

/* Opens one source, converting it first if necessary. */
static enum status open_source(const struct conversion *conversion, int64_t index)
{
	const char *source = conversion->sources->names[index];
	struct static_file *file = &conversion->files[index];
	enum instance_format format;
	struct instance_counts counts;
	uint64_t fingerprint, made;
	char path[PATH_BYTES], name[48], number[FORMAT_BYTES];
	TRY(instance_file_format(source, &format));
	if (format == INSTANCE_STATIC)
		return static_file_open(file, source);
	TRY(instance_file_fingerprint(source, &fingerprint));
	struct file_stamp stamp = file_stamp_at(source);
	made = hash64_combine(fingerprint, file_sample_hash(source, &stamp));
	if (format == INSTANCE_PAIRS) {
		const struct tokenizer_settings *settings = tokenizer_settings_of(conversion->demands->tokenizer);
		const int32_t made_with[] = {conversion->demands->pair_length, conversion->demands->pair_predictions,
					     settings->lowercase, settings->strip_accents, settings->split_chinese};
		made = hash64_combine(made, hash64_combine(conversion->vocab->hash, hash64(made_with, sizeof made_with)));
	}
	snprintf(name, sizeof name, "input-%016" PRIx64 ".instances", made);
	TRY(path_join(path, conversion->folder, name));
	if (static_file_is(path) && static_file_open(file, path) == OK) {
		if (file->summary.source_fingerprint == fingerprint)
			return OK;
		static_file_close(file);
	}
	TRY(instance_file_convert(source, conversion->demands, path, &counts));
	if (counts.bad > 0)
		log_warning("'%s': %s left out", source, format_counted(number, counts.bad, "bad record", "bad records"));
	log_note("'%s': %s", source, format_counted(number, counts.instances, "instance", "instances"));
	TRY(static_file_open(file, path));
	if (file->summary.source_fingerprint == fingerprint)
		return OK;
	static_file_close(file);
	return error_hinted(error_set(ERR_STATE, "'%s' was replaced by another file while it was read", source),
			    "wait until nothing writes to it any more, then run the same command again");
}

static enum status check_summary(const struct static_file *file, const struct instance_demands *demands)
{
	const struct static_summary *summary = &file->summary;
	enum status status = OK;
	if (demands->vocab_size > 0 && summary->largest_id >= demands->vocab_size) {
		status = error_set(ERR_STATE, "'%s' holds id %d, but the vocabulary has %d entries", file->path,
				   summary->largest_id, demands->vocab_size);
		error_hint("give the vocabulary with which the instances were made");
	} else if (demands->max_length > 0 && summary->max_length > demands->max_length) {
		status = error_set(ERR_STATE, "'%s' has an instance of %d tokens, but the model has %d positions", file->path,
				   summary->max_length, demands->max_length);
		error_hint("use a model with more positions, or make the instances with a smaller --max_seq_length");
	}
	return status;
}

/* Does the vocabulary contain the words of the instances? */
static enum status check_unknown(const struct static_file *file, const char *source, const struct vocab *vocab)
{
	char what[PATH_BYTES + 2];
	int64_t unknown, tokens;
	TRY(static_file_unknown(file, vocab, &unknown, &tokens));
	snprintf(what, sizeof what, "'%s'", source);
	return unknown_check(what, unknown, tokens);
}

static void open_task(void *context, int64_t index, int worker)
{
	(void)worker;
	struct conversion *conversion = context;
	enum status status = open_source(conversion, index);
	if (status == OK)
		status = check_summary(&conversion->files[index], conversion->demands);
	if (status == OK)
		status = check_unknown(&conversion->files[index], conversion->sources->names[index], conversion->vocab);
	if (status != OK)
		conversion->errors[index] = *error_last();
}

enum status run_static_open(const char *const *values, int64_t count, const char *folder, const struct instance_demands *demands,
			    const struct vocab *vocab, struct pool *pool, struct static_file **out, int64_t *out_count)
{
	struct name_list sources = {0};
	struct conversion conversion = {.demands = demands, .vocab = vocab, .folder = folder, .sources = &sources};
	enum status status;
	*out = NULL;
	*out_count = 0;
	TRY_GOTO(path_expand_all(values, count, &sources), done);
	TRY_GOTO(memory_new(&conversion.files, sources.count, sizeof *conversion.files, "files of instances"), done);
	TRY_GOTO(memory_new(&conversion.errors, sources.count, sizeof *conversion.errors, "files of instances"), done);
	pool_run(pool, sources.count, open_task, &conversion);
	for (int64_t i = 0; i < sources.count && status == OK; i++)
		if (conversion.errors[i].status != OK)
			status = error_restore(&conversion.errors[i]);
	if (status != OK)
		run_static_close(conversion.files, sources.count);
	else {
		*out = conversion.files;
		*out_count = sources.count;
	}
done:
	free(conversion.errors);
	name_list_release(&sources);
	return status;
}

void run_static_close(struct static_file *files, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		static_file_close(&files[i]);
	free(files);
}
