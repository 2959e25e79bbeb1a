/* bertc instances: text to static training data, in the manner of create_pretraining_data.py and similar scripts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "cmd/foreign_rows.h"
#include "cmd/vocab_tokenizer.h"
#include "infer/device_options.h"
#include "data/pretraining/google_instances.h"
#include "data/pretraining/instance_options.h"
#include "data/pretraining/instance_pipeline.h"
#include "data/line_shard.h"
#include "data/prepare.h"
#include "data/pretraining/rewriting.h"
#include "data/pretraining/static_instances.h"
#include "formats/hdf5_rows.h"
#include "formats/stream.h"
#include "text/input_form.h"
#include "weights/tokenizer_file.h"

struct instances_settings {
	struct option_list corpus, data, pairs, convert, out;
	struct vocab_choice vocab;
	enum { FORMAT_AUTO, FORMAT_TFRECORD, FORMAT_TFRECORD_GZIP, FORMAT_HDF5, FORMAT_INSTANCES } format;
	enum { COMPAT_NONE, COMPAT_GOOGLE_SCRIPT } compat;
	struct input_options input;
	struct instance_options instances;
	bool segmented_words;
	int64_t max_seq_length, dupe_factor, seed;
	struct device_options device; /* of which only the threads are an option */
};

#define FIELD(name) offsetof(struct instances_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct instances_settings, member, role, value)

#define INSTANCES .unsectioned = true, .shown = true, .field = FIELD(instances)

/* clang-format off */
static const struct option option_table[] = {
	{.help = "Input: one of these"},
	{ROW(corpus, ROLE_PLACE, "PATH..."), .alias = "input_file", .help = "text: " CORPUS_FILES},
	{ROW(data, ROLE_PLACE, "PREFIX..."), .help = "token shards instead of text"},
	{ROW(pairs, ROLE_PLACE, "PATH..."),
	 .help = "lines of label, id, text_a, text_b, separated by tabs: a span of B as long as A is masked"},
	{ROW(convert, ROLE_PLACE, "PATH..."), .help = "files of instances, to be written in another format"},
	{.help = "Output"},
	{ROW(out, ROLE_PLACE, "FILE..."), .letter = 'o', .alias = "output_file",
	 .help = "one or more output files, to which instances are written in turn; commas also separate them"},
	{ROW(format, ROLE_RESULT, "FORMAT"), .range = "auto|tfrecord|tfrecord.gz|hdf5|instances", .fallback = "auto",
	 .help = "Google's TFRecord, NVIDIA's HDF5 or bertc's own; auto goes by the name: .tfrecord, .tfrecord.gz, .hdf5, .h5, "
	 ".instances"},
	{.help = "Tokens"},
	{.group = vocab_choice_rows, .field = FIELD(vocab)},
	{.help = "How input is read"},
	{.group = input_rows, .field = FIELD(input)},
	{.help = "Instances"},
	{ROW(max_seq_length, ROLE_RESULT, "N"), .range = "8..65536", .fallback = "128",
	 .help = "tokens per instance, including padding"},
	{.group = instance_rows, .only = "max_predictions_per_seq masked_lm_prob short_seq_prob min_seq_length", INSTANCES},
	{.reworded = true, .name = "max_predictions_per_seq", .range = "1..65536", .fallback = "20",
	 .help = "maximum number of masked tokens per instance"},
	{.reworded = true, .name = "masked_lm_prob", .range = "0..1", .help = "share of tokens to mask"},
	{.reworded = true, .name = "short_seq_prob",
	 .help = "share of the documents that are cut into shorter instances of random length"},
	{ROW(dupe_factor, ROLE_RESULT, "N"), .range = "1..10000", .fallback = "10",
	 .help = "number of passes over the text, each with new masks"},
	{.group = instance_rows, .only = "whole_word_mask", INSTANCES},
	{ROW(segmented_words, ROLE_RESULT, NULL), .fallback = "false",
	 .help = "words in the text are separated by spaces (it was processed by a segmenter): whole-word masking masks all of "
	 "such a word, as for Chinese"},
	{.group = instance_rows, .only = "max_ngram next_sentence", INSTANCES},
	{ROW(seed, ROLE_RESULT, "N"), .fallback = "12345", .alias = "random_seed", .help = "random seed"},
	{ROW(compat, ROLE_RESULT, "WHOSE"), .range = "none|google", .fallback = "none",
	 .help = "google: exactly the instances that create_pretraining_data.py makes from this text and seed"},
	{.help = "Running"},
	{.group = device_rows, .only = "threads", .field = FIELD(device)},
	{0},
};
/* clang-format on */

static const struct command_text text = {
	.name = "instances",
	.synopsis = "(--corpus PATH... | --data PREFIX... | --pairs PATH... | --convert PATH...) --out FILE... [options]",
	.summary = "make static training data: TFRecord or HDF5",
	.description = "Makes masked instances once, for programs that read them from files. `bertc pretrain` does not need "
		       "them, since it draws new masks in every epoch, but it can read them (--input_file).\n\n"
		       "The text is read --dupe_factor times; every pass is shuffled, and the passes follow each other. With "
		       "--compat google, everything is shuffled once at the end, and every instance equals the one that "
		       "Google's script makes from the same text, vocabulary, and seed. A single random generator decides "
		       "everything there, so this runs on one core; each line is one sentence, and a document ends with a "
		       "blank line, not with its file.\n\n"
		       "Memory use grows only slightly with the text: 1 byte per instance, 16 with --compat google. "
		       "Temporary files in a folder beside the output take about 2 bytes per token, and with --compat google "
		       "another 3 per token of every instance.",
	.examples =
		"bertc instances --corpus 'text/*.txt' --vocab_file vocab.txt --out train.tfrecord --dupe_factor 5\tTFRecord\n"
		"bertc instances --input_file a.txt,b.txt --output_file x.tfrecord,y.tfrecord --vocab_file vocab.txt "
		"--compat google\twhat Google's script writes\n"
		"bertc instances --convert phase1.hdf5 --out phase1.tfrecord\tHDF5 to TFRecord\n",
};

/* Everything a run owns, so that one function can release it. */
struct run {
	const struct instances_settings *settings;
	struct name_list corpus, outputs; /* comma-separated lists taken apart */
	char folder[PATH_BYTES];          /* temporary; empty: not made */
	struct vocab vocab;
	struct tokenizer *tokenizer;
	struct pool *pool;
	struct instance_writer_settings writer;
	struct instance_pipeline *pipeline;
	double started;
	int64_t text_bytes;
};

static enum status require(struct options *options, bool given, const char *message)
{
	if (given)
		return OK;
	enum status status = error_set(ERR_USAGE, "%s", message);
	error_hint("`bertc instances --help` shows examples");
	return options_blame(options, status);
}

static bool is_google(const struct instances_settings *settings)
{
	return settings->compat == COMPAT_GOOGLE_SCRIPT;
}

static enum status check(struct options *options)
{
	const struct instances_settings *settings = options->settings;
	int inputs = (settings->corpus.count > 0) + (settings->data.count > 0) + (settings->pairs.count > 0) +
		     (settings->convert.count > 0);
	TRY(require(options, inputs == 1, "give one of --corpus, --data, --pairs and --convert"));
	TRY(options_require(options, "out", "give the file to write, such as --out train.tfrecord"));
	if (settings->convert.count == 0)
		TRY(options_require(options, "vocab_file", "`bertc vocab` makes a vocabulary from text"));
	if (is_google(settings)) {
		TRY(require(options, settings->corpus.count > 0, "--compat google makes instances of --corpus alone"));
		TRY(require(options,
			    settings->instances.next_sentence == NEXT_SENTENCE_PAIRS && settings->instances.max_ngram == 1 &&
				    settings->instances.min_seq_length == 0 && !settings->segmented_words,
			    "--compat google knows neither --next_sentence, --max_ngram, --min_seq_length nor "
			    "--segmented_words"));
	}
	if (settings->segmented_words) {
		TRY(require(options, settings->instances.whole_word_mask, "--segmented_words is for --whole_word_mask"));
		TRY(require(options, settings->corpus.count > 0, "--segmented_words is for --corpus"));
	}
	return OK;
}

static bool ends_with(const char *name, const char *end)
{
	size_t size = strlen(name), end_size = strlen(end);
	return size >= end_size && strcasecmp(name + size - end_size, end) == 0;
}

static enum status choose_format(const struct instances_settings *settings, const struct name_list *outputs,
				 enum instance_format *out)
{
	static const struct {
		const char *ends[3];
		enum instance_format format;
	} table[] = {
		/* in the order of the words of --format */
		{{".tfrecord", ".tfrecords", ".tf_record"}, INSTANCE_TFRECORD},
		{{".tfrecord.gz", ".tfrecords.gz", ".tf_record.gz"}, INSTANCE_TFRECORD_GZIP},
		{{".hdf5", ".h5", ".hdf"}, INSTANCE_HDF5},
		{{".instances", ".instances", ".instances"}, INSTANCE_STATIC},
	};
	int found = (int)settings->format - FORMAT_TFRECORD;
	for (int i = 0; i < 4 && settings->format == FORMAT_AUTO; i++)
		for (int k = 0; k < 3; k++)
			found = ends_with(outputs->names[0], table[i].ends[k]) ? i : found;
	if (found < 0)
		return error_hinted(
			error_set(ERR_USAGE, "the name '%s' does not say in which format to write", outputs->names[0]),
			"give --format tfrecord, tfrecord.gz, hdf5 or instances, or a name that ends so");
	*out = table[found].format;
	return OK;
}

/* Makes a folder beside the output, where there is room for it. */
static enum status make_folder(struct run *run)
{
	const char *first = run->outputs.names[0];
	int size = (int)(path_name(first) - first);
	if (snprintf(run->folder, PATH_BYTES, "%.*s.bertc-instances-XXXXXX", size, first) < PATH_BYTES &&
	    mkdtemp(run->folder) != NULL)
		return OK;
	run->folder[0] = 0;
	return error_hinted(error_set_errno(errno == ENOENT || errno == ENOTDIR ? ERR_USAGE : ERR_RESOURCE,
					    "'%s': cannot make a folder beside it", first),
			    "it holds the tokens while the instances are made");
}

static enum status open_tokenizer(struct run *run, const struct options *options)
{
	const struct instances_settings *settings = run->settings;
	struct tokenizer_settings tokenizer;
	TRY(vocab_file_read(&run->vocab, settings->vocab.vocab_file));
	TRY(vocab_tokenizer_settings(options, &run->vocab, &settings->vocab, &tokenizer));
	tokenizer.special_tokens = false; /* words such as [MASK] in a corpus are ordinary text */
	if (is_google(settings)) {
		tokenizer.compat = COMPAT_GOOGLE;
		tokenizer.max_word_characters = 200;
	}
	return tokenizer_open(&run->tokenizer, &run->vocab, &tokenizer);
}

static enum status open_output(struct run *run)
{
	return instance_pipeline_open(&run->pipeline, run->pool, (const char *const *)run->outputs.names, run->outputs.count,
				      &run->writer);
}

static void note_lines(const struct line_shard_counts *counts)
{
	char documents[FORMAT_BYTES], sentences[FORMAT_BYTES], tokens[FORMAT_BYTES];
	log_note("text: %s, %s, %s, %.2f %% unknown", format_counted(documents, counts->documents, "document", "documents"),
		 format_counted(sentences, counts->sentences, "sentence", "sentences"),
		 format_counted(tokens, counts->tokens, "token", "tokens"),
		 100 * (double)counts->unknown_tokens / (double)counts->tokens);
	/* corpus_note_oddities() has reported those of a corpus. */
	if (counts->invalid_bytes > 0)
		log_warning("%lld bytes of the text are not UTF-8: left out", (long long)counts->invalid_bytes);
	input_warn_invalid(counts->invalid_bytes, counts->text_bytes);
}

/* Converts text to a shard in the temporary folder, line by line or the way bertc reads a corpus. */
static enum status prepare_text(struct run *run, const char *prefix)
{
	const struct instances_settings *settings = run->settings;
	if (is_google(settings) || settings->segmented_words) {
		struct line_shard_counts counts;
		TRY(line_shard_write(&(struct line_shard_settings){.paths = (const char *const *)run->corpus.names,
								   .path_count = run->corpus.count,
								   .tokenizer = run->tokenizer,
								   .prefix = prefix,
								   .segmented_words = settings->segmented_words},
				     &counts));
		run->text_bytes = counts.text_bytes;
		note_lines(&counts);
		return OK;
	}
	struct corpus *corpus;
	struct prepare_report report;
	struct corpus_settings input = {.input = settings->input, .threads = (int)settings->device.threads};
	input.outputs = (const char *const *)run->outputs.names;
	input.output_count = (int)run->outputs.count;
	TRY(corpus_open(&corpus, (const char *const *)run->corpus.names, run->corpus.count, &input));
	enum status status =
		prepare_corpus(corpus, run->tokenizer, run->pool, &(struct prepare_settings){.prefix = prefix}, &report);
	if (status == OK)
		corpus_note_oddities(corpus);
	corpus_close(corpus);
	TRY(status);
	run->text_bytes = report.text_bytes;
	note_lines(&(struct line_shard_counts){.documents = report.train.documents,
					       .sentences = report.train.sentences,
					       .tokens = report.train.tokens,
					       .unknown_tokens = report.train.unknown_tokens});
	return OK;
}

/* ---- Google's instances: made in order, written in shuffled order ---- */

struct shuffled {
	struct static_file file;
	int64_t *order;
	int32_t vocab_size;
};

static enum status make_shuffled(void *context, int64_t index, struct instance *out)
{
	const struct shuffled *shuffled = context;
	return static_file_read(&shuffled->file, shuffled->order[index], shuffled->vocab_size, out);
}

static enum status run_google(struct run *run)
{
	const struct instances_settings *settings = run->settings;
	char prefix[PATH_BYTES], path[PATH_BYTES];
	struct shuffled shuffled = {.vocab_size = run->vocab.count};
	struct static_writer *writer = NULL;
	struct shard shard = {0};
	enum status status;
	TRY(path_join(prefix, run->folder, "text"));
	TRY(path_join(path, run->folder, "unshuffled"));
	TRY(prepare_text(run, prefix));
	TRY(shard_open(&shard, prefix));
	TRY_GOTO(static_writer_open(&writer, path), done);
	TRY_GOTO(google_instances(&shard,
				  &(struct google_settings){
					  .seed = settings->seed,
					  .max_seq_length = (int32_t)settings->max_seq_length,
					  .max_predictions_per_seq = (int32_t)settings->instances.max_predictions_per_seq,
					  .dupe_factor = (int32_t)settings->dupe_factor,
					  .masked_lm_prob = settings->instances.masked_lm_prob,
					  .short_seq_prob = settings->instances.short_seq_prob,
					  .whole_word_mask = settings->instances.whole_word_mask,
					  .vocab = &run->vocab,
				  },
				  writer, &shuffled.order),
		 done);
	struct static_writer *whole = writer;
	writer = NULL;
	TRY_GOTO(static_writer_commit(whole, 0), done);
	TRY_GOTO(static_file_open(&shuffled.file, path), done);
	TRY_GOTO(open_output(run), done);
	status = instance_pipeline_run(run->pipeline, make_shuffled, &shuffled, shuffled.file.summary.count);
done:
	static_writer_abandon(writer);
	static_file_close(&shuffled.file);
	free(shuffled.order);
	shard_close(&shard);
	return status;
}

/* ---- bertc's own instances: each pass is a permutation, each instance independent ---- */

struct pass {
	struct instances *instances;
	int64_t first_sample;
};

static enum status make_sample(void *context, int64_t index, struct instance *out)
{
	const struct pass *pass = context;
	return instances_get(pass->instances, pass->first_sample + index, out);
}

static enum status run_passes(struct run *run, struct instances *instances)
{
	int64_t first = 0;
	for (int64_t round = 0; round < run->settings->dupe_factor; round++) {
		int64_t count;
		TRY(instances_epoch_count(instances, first, &count));
		struct pass pass = {.instances = instances, .first_sample = first};
		TRY(instance_pipeline_run(run->pipeline, make_sample, &pass, count));
		first += count;
	}
	return OK;
}

static enum status run_shards(struct run *run, const struct shard *shards, int64_t count)
{
	const struct instances_settings *settings = run->settings;
	const struct vocab *vocab = &run->vocab;
	struct instances *instances;
	struct instance_settings of_instances = instance_options_settings(&settings->instances);
	of_instances.seed = (uint64_t)settings->seed;
	of_instances.max_seq_length = (int32_t)settings->max_seq_length;
	of_instances.shuffle = true;
	of_instances.segmented_words = settings->segmented_words;
	TRY(instance_vocab_check(vocab));
	instance_settings_take_vocab(&of_instances, vocab);
	TRY(instances_open(&instances, shards, count, &of_instances));
	instances_warn_of_pairs(shards, count, &of_instances);
	enum status status = OK;
	if (instances_per_epoch(instances) == 0) {
		status = error_set(ERR_DATA, "the text yields no instances");
		error_hint("its documents are too short for --next_sentence %s or --min_seq_length %lld",
			   next_sentence_names[settings->instances.next_sentence], (long long)settings->instances.min_seq_length);
	}
	if (status == OK)
		status = open_output(run);
	if (status == OK)
		status = run_passes(run, instances);
	instances_close(instances);
	return status;
}

static enum status run_data(struct run *run)
{
	const struct option_list *list = &run->settings->data;
	struct shard *shards;
	int64_t opened = 0;
	enum status status = OK;
	TRY(memory_new(&shards, list->count, sizeof *shards, "shards"));
	for (; opened < list->count && status == OK; opened++) {
		status = shard_open(&shards[opened], list->values[opened]);
		if (status == OK)
			status = shard_check_vocab(&shards[opened], run->vocab.hash, run->vocab.count);
		if (status == OK)
			status = shard_check_contents(&shards[opened], NULL, NULL);
	}
	if (status == OK)
		status = run_shards(run, shards, opened);
	for (int64_t i = 0; i < opened; i++)
		shard_close(&shards[i]);
	free(shards);
	return status;
}

static enum status run_corpus(struct run *run)
{
	char prefix[PATH_BYTES];
	struct shard shard;
	TRY(path_join(prefix, run->folder, "text"));
	TRY(prepare_text(run, prefix));
	TRY(shard_open(&shard, prefix));
	enum status status = run_shards(run, &shard, 1);
	shard_close(&shard);
	return status;
}

/* ---- Pairs for rewriting ---- */

struct rewriting_pass {
	const struct rewriting *rewriting;
	int64_t round;
};

static enum status make_pair(void *context, int64_t index, struct instance *out)
{
	const struct rewriting_pass *pass = context;
	return rewriting_get(pass->rewriting, pass->round, index, out);
}

static enum status run_pairs(struct run *run)
{
	const struct instances_settings *settings = run->settings;
	char prefix[PATH_BYTES];
	struct rewriting *rewriting;
	struct rewriting_counts counts;
	struct rewriting_settings of_pairs = {
		.paths = settings->pairs.values,
		.path_count = settings->pairs.count,
		.tokenizer = run->tokenizer,
		.prefix = prefix,
		.seed = (uint64_t)settings->seed,
		.max_seq_length = (int32_t)settings->max_seq_length,
		.max_predictions_per_seq = (int32_t)settings->instances.max_predictions_per_seq,
	};
	TRY(path_join(prefix, run->folder, "text"));
	TRY(rewriting_open(&rewriting, &of_pairs, &counts));
	log_note("pairs: %lld of %lld lines; left out: %lld malformed, %lld whose A has fewer than two tokens or as many "
		 "as B",
		 (long long)counts.pairs, (long long)counts.lines, (long long)counts.malformed, (long long)counts.unfit);
	enum status status = open_output(run);
	for (int64_t round = 0; round < settings->dupe_factor && status == OK; round++) {
		struct rewriting_pass pass = {.rewriting = rewriting, .round = round};
		status = instance_pipeline_run(run->pipeline, make_pair, &pass, rewriting_count(rewriting));
	}
	rewriting_close(rewriting);
	return status;
}

/* ---- One format to another ---- */

struct converted {
	struct static_file *files;
	int64_t *first; /* [count + 1] */
	int64_t count;
	int32_t vocab_size;
};

static enum status make_converted(void *context, int64_t index, struct instance *out)
{
	const struct converted *converted = context;
	int64_t file = 0;
	while (converted->first[file + 1] <= index)
		file++;
	return static_file_read(&converted->files[file], index - converted->first[file], converted->vocab_size, out);
}

static enum status open_converted(struct run *run, const char *path, int64_t number, struct static_file *out)
{
	enum instance_format format;
	char own[PATH_BYTES], name[32];
	struct instance_counts counts;
	struct instance_demands demands = {.vocab_size = run->vocab.count,
					   .skip_bad = run->settings->input.on_bad_record == SKIP_BAD_RECORD};
	TRY(instance_file_format(path, &format));
	if (format == INSTANCE_STATIC) {
		TRY(static_file_open(out, path));
		if (!out->summary.has_pairs)
			return OK;
		return error_hinted(error_set(ERR_USAGE, "'%s' holds pairs for rewriting whose masks training draws", path),
				    "`bertc instances --pairs` makes masked instances from the original lines");
	}
	snprintf(name, sizeof name, "%lld.instances", (long long)number);
	TRY(path_join(own, run->folder, name));
	TRY(instance_file_convert(path, &demands, own, &counts));
	if (counts.bad > 0)
		log_warning("'%s': %lld bad records left out", path, (long long)counts.bad);
	return static_file_open(out, own);
}

/* Chooses the length of rows: as requested, else the usual length, or what the instances need. */
static enum status choose_shape(struct run *run, const struct options *options, const struct converted *converted)
{
	int32_t length = 1, predictions = 1;
	int64_t labeled = 0;
	for (int64_t i = 0; i < converted->count; i++) {
		const struct static_summary *summary = &converted->files[i].summary;
		length = summary->max_length > length ? summary->max_length : length;
		predictions = summary->max_predictions > predictions ? summary->max_predictions : predictions;
		labeled += summary->labeled_count;
	}
	run->writer.labeled = labeled > 0;
	if (labeled > 0 && labeled != converted->first[converted->count])
		return error_set(ERR_DATA, "some of the instances have a next-sentence label, others have none");
	bool given = options_given(options, "max_seq_length");
	if (given && length > run->writer.max_seq_length)
		return error_set(ERR_USAGE, "an instance has %d tokens, more than --max_seq_length %d", length,
				 run->writer.max_seq_length);
	if (!given && length > run->writer.max_seq_length)
		run->writer.max_seq_length = length > 512 ? length : 512;
	given = options_given(options, "max_predictions_per_seq");
	if (given && predictions > run->writer.max_predictions)
		return error_set(ERR_USAGE, "an instance has %d predictions, more than --max_predictions_per_seq %d", predictions,
				 run->writer.max_predictions);
	if (!given && predictions > run->writer.max_predictions)
		run->writer.max_predictions = predictions;
	return OK;
}

static enum status run_convert(struct run *run, const struct options *options)
{
	const struct option_list *list = &run->settings->convert;
	struct converted converted = {.vocab_size = run->vocab.count > 0 ? run->vocab.count : INT32_MAX};
	enum status status;
	TRY_GOTO(memory_new(&converted.files, list->count, sizeof *converted.files, "files"), done);
	TRY_GOTO(memory_new(&converted.first, list->count + 1, sizeof(int64_t), "files"), done);
	for (; converted.count < list->count; converted.count++) {
		int64_t i = converted.count;
		TRY_GOTO(open_converted(run, list->values[i], i, &converted.files[i]), done);
		converted.first[i + 1] = converted.first[i] + converted.files[i].summary.count;
	}
	TRY_GOTO(choose_shape(run, options, &converted), done);
	TRY_GOTO(open_output(run), done);
	status = instance_pipeline_run(run->pipeline, make_converted, &converted, converted.first[converted.count]);
done:
	for (int64_t i = 0; i < converted.count; i++)
		static_file_close(&converted.files[i]);
	free(converted.files);
	free(converted.first);
	return status;
}

static void report(const struct run *run, const struct instance_totals *totals)
{
	char count[FORMAT_BYTES], rate[FORMAT_BYTES], time[FORMAT_BYTES], size[FORMAT_BYTES];
	double seconds = clock_seconds() - run->started, instances = (double)totals->instances;
	if (instances == 0)
		return;
	log_note("%s in %s, %s per second%s%s%s", format_counted(count, totals->instances, "instance", "instances"),
		 format_duration(time, seconds), format_count(rate, (int64_t)(instances / seconds)),
		 run->text_bytes > 0 ? ", " : "", run->text_bytes > 0 ? format_size(size, (double)run->text_bytes / seconds) : "",
		 run->text_bytes > 0 ? "/s of text" : "");
	log_note("an instance has %.1f tokens and %.1f predictions on average", (double)totals->tokens / instances,
		 (double)totals->predictions / instances);
	if (totals->labeled > 0)
		log_note("next-sentence label 1: %.1f %%", 100 * (double)totals->random / (double)totals->labeled);
}

static bool is_same_target(const char *a, const char *b)
{
	char folder_a[PATH_BYTES], folder_b[PATH_BYTES];
	path_folder(folder_a, a);
	path_folder(folder_b, b);
	return strcmp(path_name(a), path_name(b)) == 0 && path_lies_within(folder_a, folder_b) &&
	       path_lies_within(folder_b, folder_a);
}

/* Would a file that is read be overwritten, or one that is written? Lists divided by commas are taken apart only here. */
static enum status check_outputs(const struct run *run)
{
	const struct option_list *const lists[] = {&run->settings->pairs, &run->settings->convert};
	for (int64_t i = 0; i < run->outputs.count; i++) {
		const char *out = run->outputs.names[i];
		for (int64_t k = 0; k < run->corpus.count; k++)
			TRY(command_check_input(run->corpus.names[k], "out", out));
		for (int l = 0; l < 2; l++)
			for (int64_t k = 0; k < lists[l]->count; k++)
				TRY(command_check_input(lists[l]->values[k], "out", out));
		for (int64_t k = 0; k < i; k++)
			if (is_same_target(run->outputs.names[k], out))
				return error_set(ERR_USAGE, "--out names '%s' twice: only a part of the instances would be in it",
						 out);
	}
	return OK;
}

static enum status run_with(struct run *run, const struct options *options)
{
	const struct instances_settings *settings = run->settings;
	for (int64_t i = 0; i < settings->corpus.count; i++)
		TRY(name_list_add_parts(&run->corpus, settings->corpus.values[i]));
	for (int64_t i = 0; i < settings->out.count; i++)
		TRY(name_list_add_parts(&run->outputs, settings->out.values[i]));
	if (run->outputs.count == 0)
		return error_set(ERR_USAGE, "--out names no file");
	TRY(check_outputs(run));
	TRY(choose_format(settings, &run->outputs, &run->writer.format));
	if (run->writer.format == INSTANCE_HDF5)
		TRY(hdf5_require());
	run->writer.max_seq_length = (int32_t)settings->max_seq_length;
	run->writer.max_predictions = (int32_t)settings->instances.max_predictions_per_seq;
	enum next_sentence kind = settings->instances.next_sentence;
	run->writer.labeled = settings->pairs.count > 0 || (kind != NEXT_SENTENCE_NONE && kind != NEXT_SENTENCE_SINGLE);
	if (settings->vocab.vocab_file != NULL)
		TRY(open_tokenizer(run, options));
	TRY(pool_create(&run->pool, (int)settings->device.threads));
	TRY(make_folder(run));
	if (settings->convert.count > 0)
		TRY(run_convert(run, options));
	else if (settings->pairs.count > 0)
		TRY(run_pairs(run));
	else if (settings->data.count > 0)
		TRY(run_data(run));
	else
		TRY((is_google(settings) ? run_google(run) : run_corpus(run)));
	struct instance_totals totals = *instance_pipeline_totals(run->pipeline);
	struct instance_pipeline *pipeline = run->pipeline;
	run->pipeline = NULL;
	TRY(instance_pipeline_commit(pipeline));
	report(run, &totals);
	return OK;
}

/* Options of create_pretraining_data.py in the versions of Google, NVIDIA, and bert-ad. */
/* clang-format off */
static const struct option_foreign foreign[] = {
	{.name = "do_lower_case", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "cased"},
	VALUE_LEFT_OUT("bert_model", "only a label; --vocab_file names the vocabulary"),
	VALUE_REFUSED("root_data_path slice_name", "--corpus takes files, folders and globs with their whole paths"),
	{0},
};
/* clang-format on */

static enum status run(struct options *options)
{
	const struct instances_settings *settings = options->settings;
	TRY(stream_check_paths(settings->convert.values, settings->convert.count));
	struct run run = {.settings = settings, .started = clock_seconds()};
	stop_install();
	enum status status = run_with(&run, options);
	struct error error = *error_last();
	instance_pipeline_abandon(run.pipeline);
	if (run.folder[0] != 0 && folder_remove(run.folder) != OK)
		log_warning("'%s' could not be removed", run.folder);
	if (run.pool != NULL)
		pool_free(run.pool);
	if (run.tokenizer != NULL)
		tokenizer_close(run.tokenizer);
	vocab_release(&run.vocab);
	name_list_release(&run.corpus);
	name_list_release(&run.outputs);
	return status == OK ? OK : error_restore(&error);
}

const struct command command_instances = {
	.text = &text,
	.options = option_table,
	.foreign = foreign,
	.settings_bytes = sizeof(struct instances_settings),
	.rare = true,
	.check = check,
	.run = run,
};
