/* Makes or reuses the vocabulary and the shards in a run's data folder. */
#include "run/run_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/set_list.h"
#include "data/prepare.h"
#include "data/pretraining/instance_options.h"
#include "data/shared_documents.h"
#include "data/unknown.h"
#include "text/vocab_learn.h"
#include "run/data_folder.h"
#include "weights/tokenizer_file.h"

#define ROW(member, role, value) OPTION_ROW(struct text_options, member, role, value)
/* clang-format off */
const struct option text_rows[] = {
	{ROW(corpus, ROLE_SOURCE, "PATH..."), .alias = "train_file", .help = "text to train on: " CORPUS_FILES},
	{ROW(data, ROLE_SOURCE, "PREFIX..."),
	 .help = "token shards from `bertc prepare` instead of text; PREFIX:WEIGHT mixes several sets by weight"},
	{ROW(input_file, ROLE_SOURCE, "PATH..."), .rare = true, .section = "phase",
	 .alias = "input_dir input_files input_files_dir", .commas = true,
	 .help = "static instances instead of text: Google's TFRecord, NVIDIA's HDF5, or the output of `bertc instances`; or "
	 "bert-ad's pairs for rewriting, as lines of label, id, text_a, text_b; files, folders, globs"},
	{.group = input_rows, .field = offsetof(struct text_options, input), .rare = true},
	{ROW(drop_copied_documents, ROLE_RESULT, NULL), .fallback = "false",
	 .help = "leave out documents of the corpus that are exact copies of earlier ones"},
	{ROW(held_out_fraction, ROLE_RESULT, "X"), .range = "0..0.5", .fallback = "0.01",
	 .help = "share of the documents to hold out for evaluation, chosen by a hash of their content"},
	{ROW(eval_corpus, ROLE_SOURCE, "[NAME=]PATH..."), .alias = "validation_file",
	 .help = "text to evaluate on instead of held-out documents; each NAME= starts a separate set with its own curve: "
	 "old=a.txt new=b.txt c.txt"},
	{ROW(eval_data, ROLE_SOURCE, "[NAME=]PREFIX..."), .help = "token shards to evaluate on"},
	{ROW(eval_file, ROLE_SOURCE, "[NAME=]PATH..."), .rare = true, .alias = "eval_files_dir", .commas = true,
	 .help = "static instances to evaluate on"},
	{0},
};

const struct option vocabulary_rows[] = {
	{ROW(vocab_size, ROLE_START, "N"), .range = "0..1000000", .fallback_text = "from the amount of text",
	 .help = "size of the vocabulary to learn"},
	{ROW(vocab_type, ROLE_START, "TYPE"), .range = "|wordpiece|bpe",
	 .fallback_text = "bpe for a new roberta or modernbert, else wordpiece",
	 .help = "vocabulary to learn: wordpiece, or bpe (byte-level byte-pair encoding, always cased)"},
	{ROW(min_frequency, ROLE_START, "N"), .range = "1..", .fallback = "2", .rare = true,
	 .help = "do not learn merges seen fewer times than this"},
	{ROW(cased, ROLE_RESULT, NULL), .fallback = "false",
	 .help = "keep case and accents; not needed if there is a tokenizer_config.json beside the vocabulary"},
	{0},
};
/* clang-format on */

/* Holds the fingerprint of the text from which the vocabulary was learned, as that text is read a second time to be tokenized. */
#define VOCAB_SOURCE_NAME ".vocab_source"
#define MAX_LENGTH_UNKNOWN 512

static enum status corpus_open_list(struct corpus **out, const struct option_list *list, const struct corpus_settings *input)
{
	return corpus_open(out, list->values, list->count, input);
}

static const char *pipe_name(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : "a pipe";
}

/* Learning a vocabulary reads the text once, and tokenizing it reads it a second time. */
static enum status refuse_pipes(const struct option_list *list)
{
	for (int64_t i = 0; i < list->count; i++) {
		const char *path = list->values[i];
		if (!corpus_reads_once(path))
			continue;
		return error_hinted(
			error_set(ERR_USAGE,
				  "--corpus %s: %s can be read only once, but learning a vocabulary needs to read it first", path,
				  pipe_name(path)),
			"give --vocab_file, or put the text into a file");
	}
	return OK;
}

/* Standard input and pipes cannot be compared with the text that was read from them before. */
static void warn_of_pipes(const char *option, const struct option_list *list)
{
	for (int64_t i = 0; i < list->count; i++)
		if (corpus_reads_once(list->values[i]))
			log_warning("--%s %s: not reading %s: the run resumes with the text it read at its start; --fresh starts "
				    "over with other text",
				    option, list->values[i], pipe_name(list->values[i]));
}

static enum status vocab_source_write(const char *folder, uint64_t fingerprint)
{
	char path[PATH_BYTES], text[32];
	TRY(path_join(path, folder, VOCAB_SOURCE_NAME));
	snprintf(text, sizeof text, "%016" PRIx64 "\n", fingerprint);
	return file_write(path, text, strlen(text));
}

/* Refuses a corpus other than the one that the vocabulary in the folder was learned from, if it was learned here. */
static enum status vocab_source_check(const struct run_data_settings *settings)
{
	char path[PATH_BYTES];
	struct corpus *corpus = NULL;
	struct buffer found = {0};
	enum status status;
	TRY(path_join(path, settings->folder, VOCAB_SOURCE_NAME));
	if (!file_exists(path))
		return OK;
	TRY_GOTO(file_read(path, 32, &found), done);
	TRY_GOTO(corpus_open_list(&corpus, &settings->text->corpus, &settings->input), done);
	if (corpus_fingerprint(corpus) != strtoull(buffer_string(&found), NULL, 16)) {
		status = error_set(ERR_STATE, "the corpus has changed since the vocabulary in '%s' was learned from it",
				   settings->folder);
		error_hint("give --fresh to start over with the new text, or choose another --out");
	}
done:
	corpus_close(corpus);
	buffer_release(&found);
	return status;
}

/* Learns a vocabulary from the corpus and leaves it, with its tokenizer files, in the folder. */
static enum status vocab_learn(const struct run_data_settings *settings, struct tokenizer_settings *tokenizer, struct vocab *out)
{
	struct corpus *corpus = NULL;
	struct vocab_learner *learner = NULL;
	struct vocab_learn_report report;
	struct spill_settings spill = {.folder = settings->folder, .memory_limit = memory_available() / 4};
	char count[FORMAT_BYTES], words[FORMAT_BYTES];
	enum status status;
	TRY(refuse_pipes(&settings->text->corpus));
	*tokenizer = tokenizer_defaults(settings->text->cased);
	tokenizer->special_tokens = false;
	TRY_GOTO(corpus_open_list(&corpus, &settings->text->corpus, &settings->input), done);
	TRY_GOTO(vocab_learner_create(&learner, settings->text->vocab_type, tokenizer, &spill), done);
	TRY_GOTO(vocab_learner_count(learner, corpus, settings->pool), done);
	int32_t size = settings->text->vocab_size > 0 ? (int32_t)settings->text->vocab_size : vocab_default_size(learner);
	TRY_GOTO(vocab_learner_finish(
			 learner, &(struct vocab_learn_settings){.size = size, .min_frequency = settings->text->min_frequency},
			 out, &report),
		 done);
	log_note("vocabulary: %s entries learned from %s words, %.2f tokens per word", format_count(count, out->count),
		 format_count(words, report.words), report.tokens_per_word);
	/* Its source is written first: a vocabulary without it, left when the process is killed, would be accepted for any
	 * text. */
	status = vocab_source_write(settings->folder, corpus_fingerprint(corpus));
	if (status == OK)
		status = tokenizer_write_folder(out, tokenizer, MAX_LENGTH_UNKNOWN, settings->folder);
	if (status != OK)
		vocab_release(out);
done:
	vocab_learner_free(learner);
	corpus_close(corpus);
	return status;
}

static enum status no_text(void)
{
	return error_hinted(error_set(ERR_USAGE, "no text to train on"),
			    "give --corpus with text files, --data with prepared shards, or --input_file with instances");
}

/* Splits "PREFIX:WEIGHT"; *out is 0 if there is no weight. */
static enum status split_weight(const char *value, char prefix[PATH_BYTES], double *out)
{
	const char *colon = strrchr(value, ':');
	char index[PATH_BYTES], *end;
	*out = 0;
	if (snprintf(prefix, PATH_BYTES, "%s", value) >= PATH_BYTES ||
	    snprintf(index, PATH_BYTES, "%.4000s.idx", value) >= PATH_BYTES)
		return error_set(ERR_USAGE, "'%.200s...': the path is too long", value);
	if (!colon || file_exists(index))
		return OK;
	*out = strtod(colon + 1, &end);
	if (end == colon + 1 || *end || !(*out > 0 && *out < 1e9))
		return error_hinted(error_set(ERR_USAGE, "'%s': the colon must be followed by a positive weight", value),
				    "for example, --data A:0.7 B:0.3 mixes the shards A and B by these weights");
	prefix[colon - value] = '\0';
	return OK;
}

static const char *casing(bool lowercase)
{
	return lowercase ? "in lower case" : "with upper case kept";
}

/* A model's text is split by its tokenizer, so its training text must have been split the same way. */
static enum status check_splitting(const char *prefix, const struct shard_description *shard,
				   const struct tokenizer_settings *tokenizer)
{
	enum status status = OK;
	if (shard->lowercase != tokenizer->lowercase)
		status = error_set(ERR_STATE, "the text of '%s' was tokenized %s, but this run's tokenizer takes text %s", prefix,
				   casing(shard->lowercase), casing(tokenizer->lowercase));
	else if (shard->strip_accents != tokenizer->strip_accents || shard->split_chinese != tokenizer->split_chinese)
		status = error_set(ERR_STATE, "the text of '%s' was split differently from this run's tokenizer: %s", prefix,
				   shard->strip_accents != tokenizer->strip_accents ? "strip_accents differs"
										    : "tokenize_chinese_chars differs");
	if (status != OK)
		error_hint("prepare the shards again with the --cased that tokenizer_config.json beside the vocabulary "
			   "says: all data of a run must be prepared in the same way");
	return status;
}

/* Do the lists come from a resumed run's record? Then they are needed only if the shards are missing. */
static bool is_recorded(const struct run_data_settings *settings, const char *option)
{
	return options_origin(settings->options, option) == ORIGIN_RESUMED;
}

/* How text is split: as tokenizer_config.json beside the vocabulary says, else as the first of the given shards says, else by
 * --cased. A --cased that was given must not contradict the others. */
static enum status choose_splitting(const struct run_data_settings *settings, const struct vocab *vocab, const char *vocab_path,
				    struct tokenizer_settings *out)
{
	bool found, described = false, cased_given = options_said(settings->options, "cased");
	struct shard_description shard = {0};
	char prefix[PATH_BYTES] = "";
	double weight;
	*out = tokenizer_defaults(settings->text->cased);
	TRY(tokenizer_file_settings(vocab_path, out, &found));
	out->special_tokens = false;
	if (settings->text->data.count > 0) {
		TRY(split_weight(settings->text->data.values[0], prefix, &weight));
		TRY(shard_read_splitting(prefix, &shard, &described));
	}
	if (!found && described) {
		out->lowercase = shard.lowercase;
		out->strip_accents = shard.strip_accents;
		out->split_chinese = shard.split_chinese;
	}
	if (!found && !described && !cased_given && out->lowercase)
		vocab_warn_of_lower_case(vocab, vocab_path);
	if (!cased_given || settings->text->cased != out->lowercase)
		return OK;
	char beside[PATH_BYTES + 64];
	snprintf(beside, sizeof beside, "the tokenizer_config.json or tokenizer.json beside '%s'", vocab_path);
	return error_hinted(error_set(ERR_STATE, "--cased %s: %s%s%s takes text %s", settings->text->cased ? "true" : "false",
				      found ? beside : "'", found ? "" : prefix, found ? "" : "'", casing(out->lowercase)),
			    "leave --cased out, or %s", found ? "give another --vocab_file" : "prepare the shards again");
}

/* Finds the vocabulary, which was given, is in the folder, or must be learned; and how its text is split. */
static enum status vocab_find_or_learn(const struct run_data_settings *settings, struct run_data *out, bool *out_learned)
{
	char path[PATH_BYTES];
	TRY(vocab_file_find(settings->folder, path));
	if (!settings->vocab_file && !path[0]) {
		*out_learned = settings->text->corpus.count > 0;
		if (*out_learned)
			return vocab_learn(settings, &out->tokenizer, &out->vocab);
		if (settings->text->data.count + settings->text->input_file.count == 0)
			return no_text();
		return error_hinted(error_set(ERR_USAGE, "the vocabulary of the %s is not known",
					      settings->text->input_file.count > 0 ? "instances" : "shards"),
				    "give the vocabulary they were made with as --vocab_file");
	}
	const char *from = settings->vocab_file ? settings->vocab_file : path;
	const char *option = options_asked(settings->options, "vocab_type")   ? "vocab_type"
			     : options_asked(settings->options, "vocab_size") ? "vocab_size"
									      : NULL;
	if (settings->vocab_file && option)
		log_warning("--%s has no effect: the vocabulary is '%s', and none is learned", option, settings->vocab_file);
	TRY(vocab_file_read(&out->vocab, from));
	TRY(choose_splitting(settings, &out->vocab, from, &out->tokenizer));
	if (settings->vocab_file && path[0]) {
		struct vocab old;
		TRY(vocab_file_read(&old, path));
		bool same = old.hash == out->vocab.hash;
		vocab_release(&old);
		if (!same)
			return error_hinted(error_set(ERR_STATE, "'%s' differs from '%s', with which this run began",
						      settings->vocab_file, path),
					    "leave --vocab_file out to resume, or give --fresh to start over");
		return OK;
	}
	if (settings->vocab_file)
		return tokenizer_write_folder(&out->vocab, &out->tokenizer, MAX_LENGTH_UNKNOWN, settings->folder);
	return OK;
}

/* Were the shards made from this text? Assumed if they do not say. */
static enum status shard_is_of(const char *prefix, const struct option_list *patterns, const struct corpus_settings *input,
			       bool *same)
{
	struct corpus *corpus;
	struct shard shard;
	TRY(corpus_open_list(&corpus, patterns, input));
	enum status status = shard_open(&shard, prefix);
	if (status == OK) {
		*same = !shard.described || shard.description.source_fingerprint == 0 ||
			shard.description.source_fingerprint == corpus_fingerprint(corpus);
		shard_close(&shard);
	}
	corpus_close(corpus);
	return status;
}

/* With fewer tokens of held-out text, of which 15 % are predicted, the loss on it means little. */
#define HELD_OUT_LEAST 2000

static enum status make_shards(const struct option_list *patterns, const struct corpus_settings *input,
			       const struct tokenizer *tokenizer, struct pool *pool, const char *prefix, double held_out_fraction,
			       bool drop_copies)
{
	struct corpus *corpus;
	char held_out[PATH_BYTES];
	snprintf(held_out, sizeof held_out, "%.4000s.held_out", prefix);
	TRY(corpus_open_list(&corpus, patterns, input));
	enum status status;
	struct prepare_report report;
	struct prepare_settings settings = {
		.prefix = prefix,
		.held_out_prefix = held_out_fraction > 0 ? held_out : NULL,
		.held_out_fraction = held_out_fraction,
		.input = input,
		.filters = {.drop_copied_documents = drop_copies},
	};
	TRY_GOTO(prepare_corpus(corpus, tokenizer, pool, &settings, &report), done);
	char documents[FORMAT_BYTES], sentences[FORMAT_BYTES], tokens[FORMAT_BYTES];
	corpus_note_oddities(corpus);
	log_note("text: %s, %s, %s (%.2f %% unknown)",
		 format_counted(documents, report.train.documents + report.held_out.documents, "document", "documents"),
		 format_counted(sentences, report.train.sentences + report.held_out.sentences, "sentence", "sentences"),
		 format_counted(tokens, report.train.tokens + report.held_out.tokens, "token", "tokens"),
		 100.0 * (double)(report.train.unknown_tokens + report.held_out.unknown_tokens) /
			 (double)(report.train.tokens + report.held_out.tokens));
	int64_t copies = report.dropped[PREPARE_COPIED_DOCUMENT].count;
	if (copies > 0 && drop_copies)
		log_note("left out: %s, each a copy of an earlier one",
			 format_counted(documents, copies, "document", "documents"));
	else if (copies > 0)
		log_note("copies of earlier documents: %s; --drop_copied_documents leaves them out",
			 format_count(documents, copies));
	if (held_out_fraction > 0)
		log_note("held out for evaluation: %s, %s",
			 format_counted(documents, report.held_out.documents, "document", "documents"),
			 format_counted(tokens, report.held_out.tokens, "token", "tokens"));
	if (held_out_fraction > 0 && report.held_out.tokens > 0 && report.held_out.tokens < HELD_OUT_LEAST)
		log_warning(
			"that is too little text to judge the model by: --eval_corpus names text to evaluate on, and a larger "
			"--held_out_fraction holds out more");
done:
	corpus_close(corpus);
	return status;
}

enum status run_data_shards(const struct option_list *patterns, const struct corpus_settings *input,
			    const struct tokenizer *tokenizer, struct pool *pool, const char *prefix, double held_out_fraction,
			    bool drop_copies)
{
	if (!shard_exists(prefix))
		return make_shards(patterns, input, tokenizer, pool, prefix, held_out_fraction, drop_copies);
	bool same;
	TRY(shard_is_of(prefix, patterns, input, &same));
	if (same)
		return OK;
	return error_hinted(
		error_set(ERR_STATE, "the corpus has changed since '%s' was made from it", prefix),
		"leave --corpus out to resume with the text as it was, or give --fresh to start over with the new text");
}

/* A shard must have been made with this vocabulary, from text that was split as this tokenizer does. */
static enum status check_shard(const struct shard *shard, const struct run_data *data)
{
	TRY(shard_check_vocab(shard, data->vocab.hash, data->vocab.count));
	if (shard->described) {
		char what[PATH_BYTES + 2];
		snprintf(what, sizeof what, "'%s'", shard->prefix);
		TRY(unknown_check(what, shard->description.unknown_tokens, shard->description.tokens));
	}
	return shard->described ? check_splitting(shard->prefix, &shard->description, &data->tokenizer) : OK;
}

/* Opens shards and verifies that they belong to the vocabulary. */
static enum status shards_open(const char *const *prefixes, int64_t count, const struct run_data *data, struct shard **out,
			       int64_t *out_count)
{
	TRY(memory_new(out, count, sizeof **out, "shards"));
	for (int64_t i = 0; i < count; i++) {
		TRY(shard_open(&(*out)[i], prefixes[i]));
		++*out_count;
		TRY(check_shard(&(*out)[i], data));
	}
	return OK;
}

/* Adds an evaluation set of shards. */
static enum status set_open(struct run_data *out, const char *name, const char *const *prefixes, int64_t count)
{
	struct run_data_set *set = &out->evaluation[out->evaluation_count++];
	snprintf(set->name, sizeof set->name, "%s", name);
	return shards_open(prefixes, count, out, &set->shards, &set->shard_count);
}

/* Opens files of static instances; the settings say how pairs are converted. */
static enum status open_static(const struct run_data *data, const struct run_data_settings *settings, const char *const *values,
			       int64_t count, struct static_file **out, int64_t *out_count)
{
	struct tokenizer *tokenizer;
	TRY(tokenizer_open(&tokenizer, &data->vocab, &data->tokenizer));
	struct instance_demands demands = {.vocab_size = data->vocab.count,
					   .skip_bad = settings->input.input.on_bad_record == SKIP_BAD_RECORD,
					   .tokenizer = tokenizer,
					   .pair_length = settings->pair_length,
					   .pair_predictions = settings->pair_predictions};
	enum status status =
		run_static_open(values, count, settings->folder, &demands, &data->vocab, settings->pool, out, out_count);
	tokenizer_close(tokenizer);
	return status;
}

enum status run_data_static(const struct run_data *data, const struct run_data_settings *settings,
			    const struct option_list *files, struct static_file **out, int64_t *out_count)
{
	return open_static(data, settings, files->values, files->count, out, out_count);
}

static enum status parse_sets(struct set_list *out, const struct option_list *list)
{
	TRY(set_list_parse(out, list));
	return set_list_check_names(out);
}

/* Adds an evaluation set of static instances. */
static enum status static_set_open(const struct run_data_settings *settings, const struct file_set *group, struct run_data *out)
{
	struct run_data_set *set = &out->evaluation[out->evaluation_count++];
	snprintf(set->name, sizeof set->name, "%s", group->name);
	return open_static(out, settings, group->paths, group->count, &set->files, &set->file_count);
}

/* Were the shards made from the text of the evaluation set? Assumed if a resumed run takes the text from its record and the text
 * is gone. */
static enum status evaluation_is_of(const struct run_data_settings *settings, const char *prefix, const struct option_list *texts,
				    bool *same)
{
	struct name_list files = {0};
	bool there = !is_recorded(settings, "eval_corpus") || path_expand_all(texts->values, texts->count, &files) == OK;
	name_list_release(&files);
	*same = true;
	return there ? shard_is_of(prefix, texts, &settings->input, same) : OK;
}

/* Turns the text of an evaluation set into shards, again if the text has changed: training does not depend on it. */
static enum status evaluation_text(const struct run_data_settings *settings, const struct tokenizer *tokenizer,
				   const struct file_set *group, struct run_data *out)
{
	char prefix[PATH_BYTES], name[96];
	const char *prefixes[] = {prefix};
	const struct option_list list = {.values = group->paths, .count = group->count};
	snprintf(name, sizeof name, "evaluation%s%s", group->name[0] ? "." : "", group->name);
	TRY(path_join(prefix, settings->folder, name));
	bool there = shard_exists(prefix), same = true;
	if (there)
		TRY(evaluation_is_of(settings, prefix, &list, &same));
	if (there && same && settings->resumed && !is_recorded(settings, "eval_corpus"))
		warn_of_pipes("eval_corpus", &list);
	if (there && !same)
		log_note("evaluation set%s%s: its text has changed; preparing it again", group->name[0] ? " " : "", group->name);
	if (!there || !same)
		TRY(make_shards(&list, &settings->input, tokenizer, settings->pool, prefix, 0, false));
	return set_open(out, group->name, prefixes, 1);
}

/* Opens what was held out of each of the training shards, as one set. */
static enum status held_out_open(struct run_data *out)
{
	struct name_list prefixes = {0};
	char prefix[PATH_BYTES];
	enum status status = OK;
	for (int64_t i = 0; i < out->train_count && status == OK; i++) {
		snprintf(prefix, sizeof prefix, "%.4000s.held_out", out->train[i].prefix);
		if (shard_exists(prefix))
			status = name_list_add(&prefixes, prefix);
	}
	if (status == OK && prefixes.count > 0)
		status = set_open(out, "", (const char *const *)prefixes.names, prefixes.count);
	name_list_release(&prefixes);
	return status;
}

/* Opens the evaluation sets that were given; otherwise the documents held out of the training text. */
static enum status evaluation_open(const struct run_data_settings *settings, const struct tokenizer *tokenizer,
				   struct run_data *out)
{
	struct set_list texts = {0}, shards = {0}, files = {0};
	enum status status;
	TRY_GOTO(parse_sets(&texts, &settings->text->eval_corpus), done);
	TRY_GOTO(parse_sets(&shards, &settings->text->eval_data), done);
	TRY_GOTO(parse_sets(&files, &settings->text->eval_file), done);
	TRY_GOTO(set_list_check_apart(&texts, &shards), done);
	TRY_GOTO(set_list_check_apart(&texts, &files), done);
	TRY_GOTO(set_list_check_apart(&shards, &files), done);
	TRY_GOTO(memory_new(&out->evaluation, texts.count + shards.count + files.count + out->train_count + 1,
			    sizeof *out->evaluation, "evaluation sets"),
		 done);
	for (int64_t i = 0; i < texts.count; i++)
		TRY_GOTO(evaluation_text(settings, tokenizer, &texts.sets[i], out), done);
	for (int64_t i = 0; i < shards.count; i++)
		TRY_GOTO(set_open(out, shards.sets[i].name, shards.sets[i].paths, shards.sets[i].count), done);
	for (int64_t i = 0; i < files.count; i++)
		TRY_GOTO(static_set_open(settings, &files.sets[i], out), done);
	if (out->evaluation_count == 0)
		TRY_GOTO(held_out_open(out), done);
	if (out->evaluation_count == 0)
		log_warning("no held-out documents: the run is not evaluated (give --eval_corpus, --eval_data, or --eval_file)");
done:
	set_list_release(&files);
	set_list_release(&texts);
	set_list_release(&shards);
	return status;
}

static bool has_evaluation(const struct run_data_settings *settings)
{
	return settings->text->eval_corpus.count > 0 || settings->text->eval_data.count > 0 ||
	       settings->text->eval_file.count > 0;
}

/* The text of the mark: the settings that determine the folder's contents. */
static void mark_text(const struct run_data_settings *settings, struct buffer *out)
{
	buffer_format(out,
		      "made by bertc pretrain; --fresh removes this folder\n"
		      "vocab_file %s\nvocab_size %" PRId64 "\nmin_frequency %" PRId64
		      "\ncased %d\ninput_form %s\ntext_form %s\ntext_key %s\nskip bad records %d\n"
		      "held_out_fraction %g\nown evaluation set %d\n",
		      settings->vocab_file ? settings->vocab_file : "-", settings->text->vocab_size,
		      settings->text->min_frequency, settings->text->cased, input_form_names[settings->input.input.input_form],
		      text_form_names[settings->input.input.text_form],
		      settings->input.input.text_key ? settings->input.input.text_key : "-",
		      settings->input.input.on_bad_record == SKIP_BAD_RECORD, settings->text->held_out_fraction,
		      has_evaluation(settings));
	if (settings->text->vocab_type == VOCAB_BPE)
		buffer_text(out, "byte-level BPE\n");
	if (settings->text->drop_copied_documents)
		buffer_text(out, "without copied documents\n");
	/* Static instances do not record their vocabulary, so one that was left here by other text must not be used for them. */
	if (settings->text->input_file.count > 0)
		buffer_text(out, "static instances\n");
}

/* Adds the text it was made from, for a folder that no run has started to use: that of a plan, or of a run that failed before its
 * first step. A run that has started refuses other text instead, and names the file. */
static enum status mark_corpora(const struct run_data_settings *settings, struct buffer *out)
{
	struct set_list texts = {0};
	struct corpus *corpus;
	enum status status = parse_sets(&texts, &settings->text->eval_corpus);
	for (int64_t i = -1; i < texts.count && status == OK; i++) {
		const char **values = i < 0 ? settings->text->corpus.values : texts.sets[i].paths;
		int64_t count = i < 0 ? settings->text->corpus.count : texts.sets[i].count;
		if (count == 0)
			continue;
		status = corpus_open(&corpus, values, count, &settings->input);
		if (status != OK)
			break;
		buffer_format(out, "text %016" PRIx64 "\n", corpus_fingerprint(corpus));
		/* What comes through a pipe may be other text each time, so that no later mark may be the same. */
		if (corpus_total_bytes(corpus) < 0)
			buffer_format(out, "read once, by process %ld at %lld\n", (long)getpid(), (long long)time(NULL));
		corpus_close(corpus);
	}
	set_list_release(&texts);
	return status;
}

static enum status claim_folder(const struct run_data_settings *settings, const struct name_list *inputs)
{
	struct buffer text = {0};
	mark_text(settings, &text);
	enum status status = settings->resumed ? OK : mark_corpora(settings, &text);
	if (status == OK)
		status = buffer_status(&text);
	if (status == OK)
		status = data_folder_claim(settings->folder, buffer_string(&text), settings->resumed, inputs);
	buffer_release(&text);
	return status;
}

/* Opens the training shards, with their weights if there are any. */
static enum status weighted_open(const struct option_list *list, struct run_data *out)
{
	int64_t weighted = 0;
	TRY(memory_new(&out->weights, list->count, sizeof *out->weights, "weights"));
	TRY(memory_new(&out->train, list->count, sizeof *out->train, "shards"));
	for (int64_t i = 0; i < list->count; i++) {
		char prefix[PATH_BYTES];
		TRY(split_weight(list->values[i], prefix, &out->weights[i]));
		weighted += out->weights[i] > 0;
		TRY(shard_open(&out->train[i], prefix));
		out->train_count++;
		TRY(check_shard(&out->train[i], out));
	}
	if (weighted > 0 && weighted < list->count)
		return error_hinted(error_set(ERR_USAGE, "some of --data have a weight and others do not"),
				    "--data A:0.7 B:0.3 mixes by weight; without weights, all text is seen once per epoch");
	if (weighted == 0) {
		free(out->weights);
		out->weights = NULL;
	}
	return OK;
}

/* Adds the files of the sets that an option lists; `find` says what values stand for. */
static enum status add_sets(const struct option_list *list,
			    enum status (*find)(const char *const *values, int64_t count, struct name_list *out),
			    struct name_list *out)
{
	struct set_list sets = {0};
	enum status status = parse_sets(&sets, list);
	for (int64_t i = 0; i < sets.count && status == OK; i++)
		status = find(sets.sets[i].paths, sets.sets[i].count, out);
	set_list_release(&sets);
	return status;
}

/* The index of the shards PREFIX. */
static enum status find_shards(const char *prefix, struct name_list *out)
{
	char index[PATH_BYTES + 8];
	snprintf(index, sizeof index, "%.4096s.idx", prefix);
	if (file_exists(index))
		return name_list_add(out, index);
	return error_hinted(error_set(ERR_USAGE, "'%s': there are no token shards with this prefix (no '%s')", prefix, index),
			    "give the PREFIX that `bertc prepare --out PREFIX` wrote");
}

static enum status find_all_shards(const char *const *prefixes, int64_t count, struct name_list *out)
{
	for (int64_t i = 0; i < count; i++)
		TRY(find_shards(prefixes[i], out));
	return OK;
}

/* Lists the files that the run reads. Reports a mistyped path before any text is prepared, and before what was prepared for other
 * settings is removed. */
static enum status find_inputs(const struct run_data_settings *settings, struct name_list *out)
{
	for (int64_t i = 0; i < settings->text->data.count; i++) {
		char prefix[PATH_BYTES];
		double weight;
		TRY(split_weight(settings->text->data.values[i], prefix, &weight));
		TRY(find_shards(prefix, out));
	}
	TRY(path_expand_all(settings->text->input_file.values, settings->text->input_file.count, out));
	if (!is_recorded(settings, "corpus"))
		TRY(path_expand_all(settings->text->corpus.values, settings->text->corpus.count, out));
	if (!is_recorded(settings, "eval_corpus"))
		TRY(add_sets(&settings->text->eval_corpus, path_expand_all, out));
	TRY(add_sets(&settings->text->eval_data, find_all_shards, out));
	TRY(add_sets(&settings->text->eval_file, path_expand_all, out));
	return settings->vocab_file ? name_list_add(out, settings->vocab_file) : OK;
}

/* Checks all shards and files of instances, including those of evaluation sets. */
static enum status verify_contents(struct run_data *data)
{
	int64_t count = data->train_count + data->train_file_count;
	struct shard_contents *items;
	for (int64_t i = 0; i < data->evaluation_count; i++)
		count += data->evaluation[i].shard_count + data->evaluation[i].file_count;
	TRY(memory_new(&items, count, sizeof *items, "shards"));
	count = 0;
	for (int64_t i = 0; i < data->train_count; i++)
		items[count++] = shard_contents(&data->train[i]);
	for (int64_t i = 0; i < data->train_file_count; i++)
		items[count++] = static_contents(&data->train_files[i]);
	for (int64_t i = 0; i < data->evaluation_count; i++) {
		const struct run_data_set *set = &data->evaluation[i];
		for (int64_t k = 0; k < set->shard_count; k++)
			items[count++] = shard_contents(&set->shards[k]);
		for (int64_t k = 0; k < set->file_count; k++)
			items[count++] = static_contents(&set->files[k]);
	}
	enum status status = shard_check_start(&data->check, items, count, SHARD_CHECK_AT_ONCE);
	free(items);
	return status;
}

/* Documents held out of the training text are not in it: copies are held out together. */
static enum status warn_of_shared(const struct run_data *data)
{
	char found[FORMAT_BYTES], all[FORMAT_BYTES];
	for (int64_t i = 0; i < data->evaluation_count; i++) {
		const struct run_data_set *set = &data->evaluation[i];
		int64_t shared, documents;
		TRY(shared_documents_count(set->shards, set->shard_count, data->train, data->train_count, &shared, &documents));
		if (shared > 0)
			log_warning("%s of %s documents of the evaluation text%s%s are in the training text as well: scores on "
				    "them say little about other texts",
				    format_count(found, shared), format_count(all, documents), *set->name ? " " : "", set->name);
		for (int64_t k = 0; k < set->file_count * data->train_file_count; k++)
			if (set->files[k / data->train_file_count].content_hash ==
			    data->train_files[k % data->train_file_count].content_hash)
				log_warning("one of the files of --eval_file%s%s has the instances of a file of --input_file: "
					    "scores on "
					    "it say nothing about other texts",
					    *set->name ? " " : "", set->name);
	}
	return OK;
}

static uint64_t data_hash(const struct run_data *data, bool dated)
{
	uint64_t hash = data->vocab.hash;
	for (int64_t i = 0; i < data->train_count; i++)
		hash = hash64_combine(hash, data->train[i].content_hash);
	for (int64_t i = 0; data->weights && i < data->train_count; i++)
		hash = hash64_combine(hash, hash64(&data->weights[i], sizeof *data->weights));
	for (int64_t i = 0; i < data->train_file_count; i++)
		hash = hash64_combine(hash, dated ? data->train_files[i].dated_hash : data->train_files[i].content_hash);
	return hash;
}

enum status run_data_open(struct run_data *out, const struct run_data_settings *settings)
{
	*out = (struct run_data){0};
	struct tokenizer *tokenizer = NULL;
	struct name_list inputs = {0};
	char prefix[PATH_BYTES];
	enum status status;
	if (!settings->resumed &&
	    settings->text->corpus.count + settings->text->data.count + settings->text->input_file.count == 0)
		return no_text();
	TRY_GOTO(find_inputs(settings, &inputs), failed);
	if (settings->first_rank)
		TRY_GOTO(claim_folder(settings, &inputs), failed);
	/* How the files were interpreted is logged only when they are read for the first time. */
	struct corpus_settings input = settings->input;
	TRY_GOTO(vocab_find_or_learn(settings, out, &input.quiet), failed);
	TRY_GOTO(instance_vocab_check(&out->vocab), failed);
	TRY_GOTO(tokenizer_open(&tokenizer, &out->vocab, &out->tokenizer), failed);
	bool own_evaluation = has_evaluation(settings);
	if (settings->text->input_file.count > 0) {
		TRY_GOTO(run_data_static(out, settings, &settings->text->input_file, &out->train_files, &out->train_file_count),
			 failed);
	} else if (settings->text->data.count > 0) {
		TRY_GOTO(weighted_open(&settings->text->data, out), failed);
	} else {
		const char *names[] = {prefix};
		TRY_GOTO(path_join(prefix, settings->folder, "train"), failed);
		bool made = is_recorded(settings, "corpus") && shard_exists(prefix);
		if (!made && shard_exists(prefix) && settings->resumed)
			warn_of_pipes("corpus", &settings->text->corpus);
		if (settings->text->corpus.count > 0 && !made && !shard_exists(prefix))
			TRY_GOTO(vocab_source_check(settings), failed);
		if (settings->text->corpus.count > 0 && !made)
			TRY_GOTO(run_data_shards(&settings->text->corpus, &input, tokenizer, settings->pool, prefix,
						 own_evaluation ? 0 : settings->text->held_out_fraction,
						 settings->text->drop_copied_documents),
				 failed);
		else if (!shard_exists(prefix)) {
			status = no_text();
			goto failed;
		}
		TRY_GOTO(shards_open(names, 1, out, &out->train, &out->train_count), failed);
	}
	TRY_GOTO(evaluation_open(settings, tokenizer, out), failed);
	if (settings->first_rank) {
		TRY_GOTO(verify_contents(out), failed);
		TRY_GOTO(warn_of_shared(out), failed);
	}
	out->hash = data_hash(out, false);
	out->dated_hash = data_hash(out, true);
	name_list_release(&inputs);
	tokenizer_close(tokenizer);
	return OK;
failed:
	name_list_release(&inputs);
	tokenizer_close(tokenizer);
	run_data_close(out);
	return status;
}

void run_data_close(struct run_data *data)
{
	shard_check_close(data->check);
	for (int64_t i = 0; i < data->train_count; i++)
		shard_close(&data->train[i]);
	for (int64_t i = 0; i < data->evaluation_count; i++) {
		struct run_data_set *set = &data->evaluation[i];
		for (int64_t k = 0; k < set->shard_count; k++)
			shard_close(&set->shards[k]);
		free(set->shards);
		run_static_close(set->files, set->file_count);
	}
	run_static_close(data->train_files, data->train_file_count);
	free(data->weights);
	free(data->train);
	free(data->evaluation);
	vocab_release(&data->vocab);
	*data = (struct run_data){0};
}
