/* bertc prepare: text files to token shards. */
#include <stdio.h>
#include "base/log.h"
#include "base/pool.h"
#include "base/stop.h"
#include "cmd/command.h"
#include "cmd/vocab_tokenizer.h"
#include "infer/device_options.h"
#include "data/prepare.h"
#include "weights/tokenizer_file.h"

struct prepare_options {
	struct option_list corpus;
	const char *out;
	struct vocab_choice vocab;
	struct input_options input;
	double held_out_fraction, max_unknown_share, save_seconds;
	int64_t min_document_tokens, max_document_tokens;
	bool drop_copied_documents, drop_copied_sentences;
	struct device_options device; /* of which only the threads are an option */
};

#define FIELD(name) offsetof(struct prepare_options, name)
#define ROW(member, role, value) OPTION_ROW(struct prepare_options, member, role, value)

/* clang-format off */
static const struct option option_table[] = {
	{.help = "Input and output"},
	{ROW(corpus, ROLE_SOURCE, "PATH..."), .help = "text to convert into shards: " CORPUS_FILES},
	{.group = vocab_choice_rows, .only = "vocab_file", .field = FIELD(vocab)},
	{ROW(out, ROLE_PLACE, "PREFIX"), .letter = 'o', .help = "writes PREFIX.bin, PREFIX.idx and PREFIX.json"},
	{.help = "How the text is read"},
	{.group = vocab_choice_rows, .only = "cased", .field = FIELD(vocab)},
	{.group = input_rows, .field = FIELD(input)},
	{ROW(held_out_fraction, ROLE_RESULT, "X"), .range = "0..1", .fallback = "0",
	 .help = "share of the documents, chosen by a hash of their content, to write to PREFIX.held_out instead"},
	{.help = "What is left out"},
	{ROW(min_document_tokens, ROLE_RESULT, "N"), .range = "0..", .fallback = "0", .help = "skip documents with fewer tokens"},
	{ROW(max_document_tokens, ROLE_RESULT, "N"), .range = "0..", .fallback = "0",
	 .help = "skip documents with more tokens; 0 = no limit"},
	{ROW(max_unknown_share, ROLE_RESULT, "X"), .range = "0..1", .fallback = "0",
	 .help = "skip documents with a larger share of [UNK]; 0 = no limit"},
	{ROW(drop_copied_documents, ROLE_RESULT, NULL), .fallback = "false", .help = "skip exact duplicate documents"},
	{ROW(drop_copied_sentences, ROLE_RESULT, NULL), .fallback = "false", .alias = "drop_copied_lines",
	 .help = "skip exact duplicate sentences"},
	{.help = "Running"},
	{ROW(save_seconds, ROLE_RUN, "X"), .range = "0.001..", .fallback = "30",
	 .help = "time between saves from which a killed run resumes"},
	{.group = device_rows, .only = "threads", .field = FIELD(device)},
	{0},
};
/* clang-format on */

static const struct command_text text = {
	.name = "prepare",
	.synopsis = "--corpus PATH... --vocab_file FILE --out PREFIX [options]",
	.summary = "convert text into token shards",
	.description =
		"Splits text into documents and sentences, encodes them with the tokenizer of a vocabulary, and writes token "
		"shards in Megatron's format: PREFIX.bin with the ids, PREFIX.idx with lengths and document ends, and "
		"PREFIX.json, which records how they were made. `bertc pretrain --data PREFIX` reads them.\n\nMemory use "
		"does not depend on the size of the text. To resume a stopped or killed run, run the same command again. "
		"Documents are held out by a hash of their content, so the choice does not depend on their order, and "
		"copies of a document always end up on the same side. Duplicate documents and sentences are counted, and "
		"skipped on request; PREFIX.html shows counts, lengths, and samples.",
	.examples = "bertc prepare --corpus 'text/*.txt.gz' --vocab_file vocab.txt --out data/wiki\tencode a folder\n"
		    "bertc prepare --corpus text --vocab_file vocab.txt --held_out_fraction 0.01 --out data/wiki\talso "
		    "data/wiki.held_out, for evaluation\n",
};

static void report_shard(const char *prefix, const struct shard_description *d)
{
	char documents[FORMAT_BYTES], sentences[FORMAT_BYTES], tokens[FORMAT_BYTES];
	log_note("%s: %s, %s, %s, %.2f %% unknown", prefix, format_counted(documents, d->documents, "document", "documents"),
		 format_counted(sentences, d->sentences, "sentence", "sentences"),
		 format_counted(tokens, d->tokens, "token", "tokens"), 100 * (double)d->unknown_tokens / (double)d->tokens);
}

static void report_dropped(const struct prepare_report *report)
{
	static const char *const names[PREPARE_DROPS] = {"too short", "too long", "of unknown words", "copies of earlier ones",
							 "copies of earlier ones"};
	for (int kind = 0; kind < PREPARE_DROPS; kind++) {
		const struct prepare_dropped *dropped = &report->dropped[kind];
		char count[FORMAT_BYTES], tokens[FORMAT_BYTES];
		if (dropped->count > 0)
			log_note("%s: %s %s of %s tokens, %s", dropped->left_out ? "left out" : "kept",
				 format_count(count, dropped->count), kind == PREPARE_COPIED_SENTENCE ? "sentences" : "documents",
				 format_count(tokens, dropped->tokens), names[kind]);
	}
}

static void report_all(const struct corpus *corpus, const struct prepare_settings *settings, const struct prepare_report *report)
{
	char size[FORMAT_BYTES], time[FORMAT_BYTES], a[FORMAT_BYTES], b[FORMAT_BYTES];
	double tokens = (double)(report->train.tokens + report->held_out.tokens);
	report_shard(settings->prefix, &report->train);
	if (report->held_out.documents > 0)
		report_shard(settings->held_out_prefix, &report->held_out);
	else if (settings->held_out_prefix != NULL)
		log_warning("nothing is held out: the corpus is a single document");
	corpus_note_oddities(corpus);
	report_dropped(report);
	if (report->empty_sentences > 0)
		log_note("left out: %s without a token, %s of nothing else",
			 format_counted(a, report->empty_sentences, "sentence", "sentences"),
			 format_counted(b, report->empty_documents, "document", "documents"));
	log_note("%s of text in %s, %.2f bytes per token", format_size(size, (double)report->text_bytes),
		 format_duration(time, report->seconds), (double)report->text_bytes / tokens);
	if (report->train.vocab_size >= SHARD_NARROW_VOCAB)
		log_note("the vocabulary has %d entries: ids take 4 bytes each, not 2", report->train.vocab_size);
	log_note("pictures: %s.html", settings->prefix);
}

static enum status prepare_with(const struct prepare_options *options, const struct tokenizer *tokenizer, struct pool *pool)
{
	struct corpus *corpus;
	struct prepare_report report;
	char held_out[PATH_BYTES];
	struct prepare_settings settings = {.prefix = options->out,
					    .held_out_fraction = options->held_out_fraction,
					    .save_seconds = options->save_seconds,
					    .filters = {
						    .min_document_tokens = options->min_document_tokens,
						    .max_document_tokens = options->max_document_tokens,
						    .max_unknown_share = options->max_unknown_share,
						    .drop_copied_documents = options->drop_copied_documents,
						    .drop_copied_sentences = options->drop_copied_sentences,
					    }};
	if (!path_name(options->out)[0])
		return error_hinted(error_set(ERR_USAGE, "--out '%s' is a folder", options->out),
				    "add the beginning of the files' names: --out folder/name makes folder/name.bin and others");
	if (snprintf(held_out, sizeof held_out, "%s.held_out", options->out) >= PATH_BYTES)
		return error_set(ERR_USAGE, "--out is too long");
	if (options->held_out_fraction > 0)
		settings.held_out_prefix = held_out;
	/* The files of both prefixes, as data/shard.h names them. */
	static const char *const ends[] = {"bin", "idx", "json", "held_out.bin", "held_out.idx", "held_out.json"};
	enum { OUTPUTS = sizeof ends / sizeof *ends };
	char names[OUTPUTS][PATH_BYTES + 16];
	const char *outputs[OUTPUTS];
	for (int i = 0; i < OUTPUTS; i++) {
		snprintf(names[i], sizeof names[i], "%s.%s", options->out, ends[i]);
		outputs[i] = names[i];
	}
	struct corpus_settings input = {.input = options->input, .threads = (int)options->device.threads};
	input.outputs = outputs;
	input.output_count = options->held_out_fraction > 0 ? OUTPUTS : OUTPUTS / 2;
	settings.input = &input;
	TRY(shard_check_own(options->out));
	if (settings.held_out_prefix)
		TRY(shard_check_own(held_out));
	TRY(corpus_open(&corpus, options->corpus.values, options->corpus.count, &input));
	enum status status = prepare_corpus(corpus, tokenizer, pool, &settings, &report);
	if (status == OK)
		report_all(corpus, &settings, &report);
	corpus_close(corpus);
	return status;
}

static enum status check(struct options *options)
{
	TRY(options_require(options, "corpus", "give the text to convert: --corpus PATH..."));
	TRY(options_require(options, "vocab_file", "`bertc vocab` makes a vocabulary from text"));
	return options_require(options, "out", "give the prefix of the shards, such as --out data/mine");
}

static enum status run(struct options *parsed)
{
	const struct prepare_options *options = parsed->settings;
	stop_install();

	enum status status = OK;
	struct vocab vocab = {0};
	struct tokenizer *tokenizer = NULL;
	struct pool *pool = NULL;
	struct tokenizer_settings settings;
	TRY_GOTO(vocab_file_read(&vocab, options->vocab.vocab_file), done);
	TRY_GOTO(vocab_tokenizer_settings(parsed, &vocab, &options->vocab, &settings), done);
	settings.special_tokens = false; /* words such as [MASK] in a corpus are ordinary text */
	TRY_GOTO(tokenizer_open(&tokenizer, &vocab, &settings), done);
	TRY_GOTO(pool_create(&pool, (int)options->device.threads), done);
	status = prepare_with(options, tokenizer, pool);
done:
	if (pool != NULL)
		pool_free(pool);
	if (tokenizer != NULL)
		tokenizer_close(tokenizer);
	vocab_release(&vocab);
	return status;
}

const struct command command_prepare = {
	.text = &text,
	.options = option_table,
	.settings_bytes = sizeof(struct prepare_options),
	.check = check,
	.run = run,
};
