/* bertc vocab: text files to a WordPiece vocabulary, or to a folder with a byte-level BPE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/pool.h"
#include "cmd/command.h"
#include "infer/device_options.h"
#include "text/vocab_extend.h"
#include "text/vocab_learn.h"
#include "weights/tokenizer_file.h"

struct vocab_options {
	struct option_list corpus;
	const char *out, *extend, *user_words;
	struct input_options input;
	int64_t vocab_size, min_frequency, unused, memory;
	enum vocab_type type;
	bool cased, strip_accents, overwrite;
	struct device_options device; /* of which only the threads are an option */
};

#define MAX_LENGTH 512 /* of texts, until a model decides */

#define FIELD(name) offsetof(struct vocab_options, name)
#define ROW(member, role, value) OPTION_ROW(struct vocab_options, member, role, value)

/* clang-format off */
static const struct option option_table[] = {
	{.help = "Input and output"},
	{ROW(corpus, ROLE_SOURCE, "PATH..."), .help = "text to learn from: " CORPUS_FILES},
	{ROW(out, ROLE_PLACE, "PATH"), .letter = 'o',
	 .help = "output file, one entry per line (vocab.txt); with type bpe, a folder for tokenizer.json and its like"},
	{ROW(extend, ROLE_PLACE, "VOCAB"),
	 .help = "keep the entries of this vocabulary (vocab.txt or tokenizer.json) and add words of the text to them"},
	{.help = "What is learned"},
	{ROW(type, ROLE_RESULT, "TYPE"), .range = "|wordpiece|bpe", .fallback_text = "wordpiece",
	 .help = "wordpiece, as BERT has it, or bpe: byte-level byte-pair encoding, as RoBERTa and ModernBERT have it"},
	{ROW(vocab_size, ROLE_RESULT, "N"), .range = "6..10000000",
	 .fallback_text = "4000 to 30522, depending on the amount of text; with extend a tenth more than there are",
	 .help = "number of entries, including the five special ones"},
	{ROW(min_frequency, ROLE_RESULT, "N"), .range = "1..", .fallback_text = "2; with extend 10",
	 .help = "do not merge pieces seen fewer times than this; with extend: do not add words seen fewer times"},
	{ROW(cased, ROLE_RESULT, NULL), .fallback = "false", .help = "keep case and accents"},
	{ROW(strip_accents, ROLE_RESULT, NULL), .fallback_text = "the opposite of --cased", .help = "strip accents"},
	{ROW(user_words, ROLE_PLACE, "FILE"), .help = "file with words, one per line, that are always included"},
	{ROW(unused, ROLE_RESULT, "N"), .range = "0..100000", .fallback = "0",
	 .help = "number of [unused0], [unused1], ... entries to reserve"},
	{ROW(overwrite, ROLE_PLACE, NULL), .fallback = "false", .help = "replace the file that --out names if it exists"},
	{.help = "How the text is read"},
	{.group = input_rows, .field = FIELD(input)},
	{.help = "Running"},
	{ROW(memory, ROLE_RUN, "MB"), .range = "1..", .fallback_text = "a quarter of the free memory",
	 .help = "memory for words and their counts; the rest goes to temporary files (TMPDIR)"},
	{.group = device_rows, .only = "threads", .field = FIELD(device)},
	{0},
};
/* clang-format on */

static const struct command_text text = {
	.name = "vocab",
	.synopsis = "--corpus PATH... --out PATH [options]",
	.summary = "learn a WordPiece or BPE vocabulary from text",
	.description =
		"Counts the words of the text, split as BERT's tokenizer splits them, and merges the most frequent pairs "
		"of neighboring pieces until the vocabulary is full; pieces that are then rarely used are replaced by "
		"others. The alphabet is not limited: every character of the text enters the vocabulary as long as there "
		"is room, which matters for Chinese.\n\n"
		"Without --vocab_size, the size depends on the amount of text: 4000 entries below 400 thousand words "
		"(about 2 MB of English), 8000 below 2 million, 16000 below 20 million (100 MB), else 30522; more if the "
		"alphabet alone would fill half of it.\n\n"
		"The same text gives the same vocabulary for any order of files and any number of threads. No word is "
		"pruned: words beyond --memory go to temporary files, which takes a few minutes longer. Use a vocabulary "
		"learned with --cased with --cased only.\n\n"
		"With --type bpe, the words are those of GPT-2's pre-tokenizer, and the merges those of Hugging Face's "
		"BpeTrainer "
		"for the same words. Case and all characters are kept. The folder has RoBERTa's special tokens and template, and "
		"is read by transformers' AutoTokenizer and as --vocab_file. A space is put before each text "
		"(add_prefix_space), because sentences are tokenized one by one.\n\n"
		"With --extend, the entries of an existing vocabulary keep their ids, and the words of the text that it "
		"cuts into several pieces are added, starting with those that save the most tokens. `bertc pretrain "
		"--init_checkpoint MODEL --vocab_file FILE --remap_vocab` continues training a model with it: a new word "
		"begins as the mean of the pieces that it was cut into before.",
	.examples = "bertc vocab --corpus 'text/*.txt.gz' --vocab_size 30522 --out vocab.txt\ta vocabulary of "
		    "BERT's size\n"
		    "bertc vocab --corpus text --cased --out vocab.txt\tkeep case; the size follows the text\n"
		    "bertc vocab --corpus text --type bpe --out tokenizer\ta folder with a byte-level BPE\n"
		    "bertc vocab --extend bert/vocab.txt --corpus papers --vocab_size 33000 --out vocab.txt\ta general "
		    "vocabulary and the words of a field\n",
};

/* The folder of a BPE, which is made if it is missing. */
static enum status check_folder(const char *path, bool overwrite)
{
	static const char *const names[] = {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json",
					    "special_tokens_map.json"};
	char file[PATH_BYTES];
	for (size_t i = 0; i < sizeof names / sizeof *names && !overwrite; i++) {
		TRY(path_join(file, path, names[i]));
		if (file_exists(file))
			return error_hinted(error_set(ERR_USAGE, "--out '%s' has a %s", path, names[i]),
					    "models and token shards made with it would no longer fit; choose another name, or "
					    "give --overwrite");
	}
	return folder_make(path);
}

/* Reports a folder that cannot be written to, or a file that must not be overwritten, before the text is read. */
static enum status check_out(const char *path, bool overwrite)
{
	char folder[PATH_BYTES];
	path_folder(folder, path);
	if (file_is_folder(path))
		return error_set(ERR_USAGE, "--out '%s' is a folder; give a file, such as %s/vocab.txt", path, path);
	struct stat info;
	if (!overwrite && stat(path, &info) == 0 && S_ISREG(info.st_mode))
		return error_hinted(
			error_set(ERR_USAGE, "--out '%s' exists", path),
			"models and token shards made with it would no longer fit; choose another name, or give --overwrite");
	if (!file_is_folder(folder))
		return error_hinted(error_set(ERR_USAGE, "--out '%s': there is no folder '%s'", path, folder),
				    "create it first: mkdir -p '%s'", folder);
	if (access(folder, W_OK) != 0)
		return error_set_errno(ERR_RESOURCE, "--out '%s': cannot write into '%s'", path, folder);
	return OK;
}

static void report_result(const struct vocab_options *settings, const struct corpus *corpus, const struct vocab *vocab,
			  const struct vocab_learn_report *report, double seconds)
{
	char a[FORMAT_BYTES], b[FORMAT_BYTES], c[FORMAT_BYTES];
	const struct corpus_counts *counts = corpus_counts(corpus);

	log_note("%s: %s, %s", settings->out, format_counted(a, vocab->count, "entry", "entries"),
		 settings->type == VOCAB_BPE ? "byte-level BPE"
		 : settings->cased           ? "cased"
					     : "uncased");
	log_note("  text       %s in %s, %s", format_size(a, (double)counts->bytes),
		 format_counted(b, counts->files, "file", "files"),
		 format_counted(c, counts->documents, "document", "documents"));
	log_note("  words      %s, %s different", format_count(a, report->words), format_count(b, report->distinct_words));
	if (settings->type != VOCAB_BPE)
		log_note("  alphabet   %s, %.4g %% of the text", format_counted(a, report->alphabet, "character", "characters"),
			 100 * report->coverage);
	log_note("  pieces     %s, %s used fewer than 10 times", format_counted(a, report->merges, "longer one", "longer ones"),
		 format_count(b, report->rare_merges));
	if (settings->type == VOCAB_BPE)
		log_note("  a word is  %.3f tokens", report->tokens_per_word);
	else
		log_note("  a word is  %.3f tokens, [UNK] in %.2g %%", report->tokens_per_word, 100 * report->unknown_words);
	if (report->long_words > 0)
		log_note("  left out   %s longer than a tokenizer takes", format_counted(a, report->long_words, "word", "words"));
	log_note("  took       %s, %s/s", format_duration(a, seconds), format_size(b, (double)counts->bytes / seconds));
}

/* Reads the words of --user_words: one per line, trimmed of white space, empty lines skipped. */
static enum status read_user_words(const char *path, struct name_list *words)
{
	struct buffer file = {0};
	TRY(file_read(path, (size_t)64 << 20, &file));
	enum status status = OK;
	char *rest = NULL;
	if (memchr(buffer_string(&file), '\0', file.size))
		status = error_set(ERR_DATA, "--user_words '%s': not text: there are NULs in it", path);
	for (char *line = file.size > 0 ? strtok_r((char *)file.data, "\r\n", &rest) : NULL; line && status == OK;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		line += strspn(line, " \t");
		size_t size = strlen(line);
		while (size > 0 && (line[size - 1] == ' ' || line[size - 1] == '\t'))
			line[--size] = 0;
		if (size > 0)
			status = name_list_add(words, line);
	}
	buffer_release(&file);
	TRY(status);
	const char *repeated;
	TRY(name_list_repeated(words, 0, &repeated));
	return repeated ? error_set(ERR_USAGE, "--user_words '%s': '%.100s' occurs twice", path, repeated) : OK;
}

static enum status check(struct options *options)
{
	const struct vocab_options *settings = options->settings;
	static const char *const of_wordpiece[] = {"extend", "cased", "strip_accents", "user_words", "unused"};
	for (size_t i = 0; settings->type == VOCAB_BPE && i < sizeof of_wordpiece / sizeof *of_wordpiece; i++)
		if (options_given(options, of_wordpiece[i]))
			TRY(options_blame(options, error_set(ERR_USAGE,
							     "--%s has no meaning for --type bpe, which keeps texts as "
							     "they are",
							     of_wordpiece[i])));
	if (settings->extend && (settings->user_words || settings->unused > 0))
		TRY(options_blame(options, error_set(ERR_USAGE, "--user_words and --unused have no effect with --extend")));
	TRY(options_require(options, "corpus", "give the text to learn from: --corpus PATH..."));
	return options_require(options, "out", "give the file to write: --out vocab.txt");
}

/* The vocabulary being extended determines how words are read; without a file beside it that says so, --cased does. */
static enum status extended_settings(const struct options *options, const struct vocab *vocab,
				     struct tokenizer_settings *tokenizer)
{
	const struct vocab_options *settings = options->settings;
	bool given = options_given(options, "cased"), found;
	if (vocab->chain)
		return error_hinted(error_set(ERR_USAGE, "--extend: '%s' is not a tokenizer of BERT's kind", settings->extend),
				    "words can be added to a WordPiece vocabulary with BERT's normalizer and pre-tokenizer");
	*tokenizer = tokenizer_defaults(given ? settings->cased : vocab_looks_cased(vocab));
	TRY(tokenizer_file_settings(settings->extend, tokenizer, &found));
	if (!given || settings->cased != tokenizer->lowercase)
		return OK;
	return error_hinted(error_set(ERR_STATE, "--cased %s: the files beside '%s' say otherwise",
				      settings->cased ? "true" : "false", settings->extend),
			    "leave --cased out: new words must be those that the model's tokenizer makes of texts");
}

static enum status extend(const struct options *options, struct vocab_learner *learner, const struct vocab *base,
			  struct vocab *out)
{
	const struct vocab_options *settings = options->settings;
	struct vocab_extend_report report;
	int64_t size = settings->vocab_size > 0 ? settings->vocab_size : (int64_t)base->count + (base->count + 9) / 10;
	char a[FORMAT_BYTES], b[FORMAT_BYTES];
	if (size <= base->count)
		return error_set(ERR_USAGE, "--vocab_size %lld: '%s' has %d entries already", (long long)size, settings->extend,
				 base->count);
	TRY(vocab_extend(learner, base, (int32_t)(size - base->count), settings->min_frequency > 0 ? settings->min_frequency : 10,
			 out, &report));
	log_note("%s: %s, of which %s are new", settings->out, format_counted(a, out->count, "entry", "entries"),
		 format_count(b, report.added));
	log_note("  words      %s, %s different; the rarest new one occurs %lld times", format_count(a, report.words),
		 format_count(b, report.distinct_words), (long long)report.least_count);
	log_note("  a word is  %.3f tokens, before %.3f; [UNK] in %.2g %%, before %.2g %%", report.tokens_after,
		 report.tokens_before, 100 * report.unknown_after, 100 * report.unknown_before);
	return OK;
}

static enum status learn(const struct options *options, struct vocab_learner *learner, const struct name_list *user_words,
			 struct vocab *out, struct vocab_learn_report *report)
{
	const struct vocab_options *settings = options->settings;
	return vocab_learner_finish(
		learner,
		&(struct vocab_learn_settings){
			.size = settings->vocab_size ? (int32_t)settings->vocab_size : vocab_default_size(learner),
			.min_frequency = settings->min_frequency > 0 ? settings->min_frequency : 2,
			.unused = (int32_t)settings->unused,
			.user_words = (const char *const *)user_words->names,
			.user_word_count = (int32_t)user_words->count,
		},
		out, report);
}

/* A vocab.txt does not say how text was read for it: other commands follow the files beside it, or their --cased. */
static enum status warn_of_other_words(const char *out, const struct tokenizer_settings *own)
{
	struct tokenizer_settings others = tokenizer_defaults(!own->lowercase);
	bool found;
	TRY(tokenizer_file_settings(out, &others, &found));
	if (others.lowercase != own->lowercase || others.strip_accents != own->strip_accents)
		log_warning(
			"'%s' alone does not say how its words were read: unless the file tokenizer_config.json beside it has "
			"{\"do_lower_case\": %s, \"strip_accents\": %s}, other commands make other words of the same text",
			out, own->lowercase ? "true" : "false", own->strip_accents ? "true" : "false");
	return OK;
}

static enum status run(struct options *options)
{
	struct vocab_options *settings = options->settings;
	struct tokenizer_settings tokenizer = tokenizer_defaults(settings->cased);
	struct corpus *corpus = NULL;
	struct pool *pool = NULL;
	struct vocab_learner *learner = NULL;
	struct vocab vocab = {0}, base = {0};
	struct vocab_learn_report report;
	struct name_list user_words = {0};
	struct spill_settings spill = {.memory_limit = settings->memory > 0 ? settings->memory << 20 : memory_available() / 4};
	double start = clock_seconds();
	enum status status;

	TRY(settings->type == VOCAB_BPE ? check_folder(settings->out, settings->overwrite)
					: check_out(settings->out, settings->overwrite));
	if (settings->extend) {
		TRY(vocab_file_read(&base, settings->extend));
		if (base.added_count > 0)
			log_warning("'%s' has %d added tokens, such as '%.100s': in the new vocab.txt they are ordinary entries, "
				    "which match single words only",
				    settings->extend, base.added_count, base.text[base.added[0].id]);
		TRY_GOTO(extended_settings(options, &base, &tokenizer), done);
	}
	if (options_given(options, "strip_accents"))
		tokenizer.strip_accents = settings->strip_accents;
	if (settings->type != VOCAB_BPE)
		TRY_GOTO(warn_of_other_words(settings->out, &tokenizer), done);
	if (settings->user_words)
		TRY_GOTO(read_user_words(settings->user_words, &user_words), done);
	struct corpus_settings input = {.input = settings->input, .threads = (int)settings->device.threads};
	input.outputs = (const char *const *)&settings->out;
	input.output_count = 1;
	TRY_GOTO(corpus_open(&corpus, settings->corpus.values, settings->corpus.count, &input), done);
	TRY_GOTO(pool_create(&pool, (int)settings->device.threads), done);
	TRY_GOTO(vocab_learner_create(&learner, settings->type, &tokenizer, &spill), done);
	TRY_GOTO(vocab_learner_count(learner, corpus, pool), done);
	if (settings->extend)
		TRY_GOTO(extend(options, learner, &base, &vocab), done);
	else
		TRY_GOTO(learn(options, learner, &user_words, &vocab, &report), done);
	if (settings->type == VOCAB_BPE)
		TRY_GOTO(tokenizer_write_folder(&vocab, &tokenizer, MAX_LENGTH, settings->out), done);
	else
		TRY_GOTO(vocab_write(&vocab, settings->out), done);
	corpus_note_oddities(corpus);
	if (!settings->extend)
		report_result(settings, corpus, &vocab, &report, clock_seconds() - start);
done:
	name_list_release(&user_words);
	vocab_release(&vocab);
	vocab_release(&base);
	vocab_learner_free(learner);
	pool_free(pool);
	corpus_close(corpus);
	return status;
}

const struct command command_vocab = {
	.text = &text,
	.options = option_table,
	.settings_bytes = sizeof(struct vocab_options),
	.check = check,
	.run = run,
};
