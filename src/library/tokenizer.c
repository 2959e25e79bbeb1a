/* The tokenizer of the library. A call with a lot of text is cut into slices, and each slice into parts that the pool's threads
 * tokenize; the results are then put together in order. Smaller calls, and calls made while the pool is busy, do the same in
 * their own thread, so that no call ever waits for another. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "library/internal.h"
#include "tasks/task.h"
#include "text/decode.h"
#include "text/tokenizer.h"
#include "weights/model_folder.h"
#include "weights/sentence_folder.h"
#include "weights/tokenizer_file.h"

/* Limits of a slice, per thread. Less than one thread's slice of text is not worth waking threads for. */
#define SLICE_BYTES ((int64_t)64 << 10)
#define SLICE_TEXTS 4096
/* Parts of a slice per thread: threads that are held up take fewer. */
#define PARTS_PER_THREAD 4
/* Number of scratch structs (remembered words, room for tokens) kept for later calls. */
#define KEPT_SCRATCH 16

/* What a thread needs to tokenize. */
struct scratch {
	struct tokens tokens;
	struct scratch *next;
};

struct bertc_tokenizer {
	struct vocab vocab;
	struct tokenizer *tokenizer;
	int threads;
	pid_t process; /* the one in which the pool's threads run */
	/* For calls with a lot of text, one at a time. */
	pthread_mutex_t pool_lock;
	struct pool *pool;        /* started by the first of these calls */
	struct scratch **workers; /* [threads] */
	/* For all other calls. */
	pthread_mutex_t scratch_lock;
	struct scratch *kept;
	int kept_count;
};

struct bertc_tokens {
	int64_t count;
	int64_t *starts; /* [count + 1] */
	int32_t *ids;
	int8_t *types;
	uint32_t *offsets;
	int64_t id_capacity, type_capacity, offset_capacity;
};

/* ---- Opening ---- */

static enum status copy_path(char out[PATH_BYTES], const char *path)
{
	int size = snprintf(out, PATH_BYTES, "%s", path);
	return size < PATH_BYTES ? OK : error_set(ERR_USAGE, "the path '%.100s...' is too long", path);
}

static enum status find_vocabulary(const char *path, char out[PATH_BYTES], bool *out_lowercase)
{
	struct sentence_folder sentences;
	struct model_source source;
	*out_lowercase = false;
	if (!file_is_folder(path)) {
		if (!file_exists(path))
			return error_set(ERR_USAGE, "'%s' does not exist", path);
		return copy_path(out, path);
	}
	enum status status = sentence_folder_read(&sentences, path);
	char folder[PATH_BYTES];
	if (status == OK)
		status = copy_path(folder, sentences.found ? sentences.transformer : path);
	*out_lowercase = status == OK && sentences.lowercase;
	sentence_folder_release(&sentences);
	TRY(status);
	TRY(vocab_file_find(folder, out));
	if (out[0])
		return OK;
	/* A run folder. */
	TRY(model_source_find(folder, &source));
	if (!source.vocab[0])
		return error_set(ERR_USAGE, "'%s' holds no vocab.txt or tokenizer.json", path);
	return copy_path(out, source.vocab);
}

static enum status find_settings(const bertc_tokenizer_options *options, const char *path, const struct vocab *vocab,
				 bool lowercase, struct tokenizer_settings *out)
{
	bool found;
	if (options->letter_case < BERTC_CASE_AS_IN_FOLDER || options->letter_case > BERTC_UNCASED)
		return error_set(ERR_USAGE, "letter_case is %d", options->letter_case);
	bool cased = options->letter_case == BERTC_CASED;
	if (options->letter_case == BERTC_CASE_AS_IN_FOLDER)
		cased = vocab_looks_cased(vocab);
	*out = tokenizer_defaults(cased);
	TRY(tokenizer_file_settings(path, out, &found));
	out->lowercase = out->lowercase || lowercase;
	if (found && options->letter_case != BERTC_CASE_AS_IN_FOLDER && cased == out->lowercase)
		return error_hinted(error_set(ERR_STATE, "%s contradicts the settings of the tokenizer beside '%s'",
					      cased ? "cased" : "uncased", path),
				    "leave it out, or copy the vocabulary to a separate folder");
	out->special_tokens = !options->plain_text;
	if (options->google_rules) {
		out->compat = COMPAT_GOOGLE;
		out->max_word_characters = 200;
		out->special_tokens = false;
	}
	return OK;
}

static void scratch_free(struct scratch *scratch)
{
	if (!scratch)
		return;
	tokens_release(&scratch->tokens);
	free(scratch);
}

static enum status open_tokenizer(bertc_tokenizer *t, const char *path, const bertc_tokenizer_options *options)
{
	char vocabulary[PATH_BYTES];
	struct tokenizer_settings settings;
	bool lowercase;
	TRY(library_not_negative(options->threads, "threads"));
	TRY(find_vocabulary(path, vocabulary, &lowercase));
	TRY(vocab_file_read(&t->vocab, vocabulary));
	TRY(find_settings(options, vocabulary, &t->vocab, lowercase, &settings));
	t->threads = options->threads > 0 ? options->threads : pool_available_cores();
	t->process = getpid();
	TRY(memory_new(&t->workers, t->threads, sizeof(struct scratch *), "tokenizer"));
	return tokenizer_open(&t->tokenizer, &t->vocab, &settings);
}

static enum status open_at(const char *path, const bertc_tokenizer_options *given, bertc_tokenizer **out)
{
	bertc_tokenizer_options options;
	bertc_tokenizer *t;
	TRY(library_given(out, "out"));
	*out = NULL;
	TRY(library_given(path, "path"));
	TRY(library_options(&options, sizeof options, given, "bertc_tokenizer_options"));
	TRY(memory_new(&t, 1, sizeof *t, "tokenizer"));
	pthread_mutex_init(&t->pool_lock, NULL);
	pthread_mutex_init(&t->scratch_lock, NULL);
	enum status status = open_tokenizer(t, path, &options);
	if (status != OK)
		bertc_tokenizer_close(t);
	else
		*out = t;
	return status;
}

BERTC_API bertc_status bertc_tokenizer_open(const char *path, const bertc_tokenizer_options *options, bertc_tokenizer **out,
					    bertc_error *error)
{
	return library_leave(open_at(path, options, out), error);
}

BERTC_API void bertc_tokenizer_close(bertc_tokenizer *tokenizer)
{
	if (!tokenizer)
		return;
	/* A forked child has the memory of the pool, but not its threads. */
	if (tokenizer->process == getpid())
		pool_free(tokenizer->pool);
	for (int i = 0; tokenizer->workers && i < tokenizer->threads; i++)
		scratch_free(tokenizer->workers[i]);
	free(tokenizer->workers);
	while (tokenizer->kept) {
		struct scratch *scratch = tokenizer->kept;
		tokenizer->kept = scratch->next;
		scratch_free(scratch);
	}
	tokenizer_close(tokenizer->tokenizer);
	vocab_release(&tokenizer->vocab);
	pthread_mutex_destroy(&tokenizer->pool_lock);
	pthread_mutex_destroy(&tokenizer->scratch_lock);
	free(tokenizer);
}

/* ---- Vocabulary ---- */

BERTC_API int32_t bertc_tokenizer_vocabulary_size(const bertc_tokenizer *tokenizer)
{
	return tokenizer ? tokenizer->vocab.count : 0;
}

BERTC_API const char *bertc_tokenizer_token(const bertc_tokenizer *tokenizer, int32_t id)
{
	return tokenizer && id >= 0 && id < tokenizer->vocab.count ? tokenizer->vocab.text[id] : NULL;
}

BERTC_API int32_t bertc_tokenizer_id(const bertc_tokenizer *tokenizer, const char *token)
{
	return tokenizer && token ? vocab_find(&tokenizer->vocab, token, strlen(token)) : -1;
}

/* ---- Encoding ---- */

/* Where the tokens of a text are once a slice is done: in the memory of the thread that made them. */
struct piece {
	const struct tokens *tokens;
	int64_t first, count;
};

struct call {
	bertc_tokenizer *tokenizer;
	const char *const *texts, *const *pairs;
	const bertc_encode_options *options;
	bertc_tokens *out;
	/* The slice: texts [first, end), cut into parts of `part_texts` texts. */
	int64_t first, end;
	struct piece *pieces; /* [2 * (end - first)]: of each text and its pair */
	int64_t part_texts;
	struct scratch **workers;
	/* The first error of any thread. */
	pthread_mutex_t lock;
	struct error error;
};

static enum status scratch_take(bertc_tokenizer *tokenizer, struct scratch **out)
{
	*out = NULL;
	/* A lock that another thread of the parent held at fork() stays locked in the child, so nobody waits for it. */
	if (pthread_mutex_trylock(&tokenizer->scratch_lock) == 0) {
		*out = tokenizer->kept;
		if (*out) {
			tokenizer->kept = (*out)->next;
			tokenizer->kept_count--;
		}
		pthread_mutex_unlock(&tokenizer->scratch_lock);
	}
	return *out ? OK : memory_new(out, 1, sizeof **out, "tokenizer");
}

static void scratch_keep(bertc_tokenizer *tokenizer, struct scratch *scratch)
{
	bool kept = false;
	if (pthread_mutex_trylock(&tokenizer->scratch_lock) == 0) {
		kept = tokenizer->kept_count < KEPT_SCRATCH;
		if (kept) {
			scratch->next = tokenizer->kept;
			tokenizer->kept = scratch;
			tokenizer->kept_count++;
		}
		pthread_mutex_unlock(&tokenizer->scratch_lock);
	}
	if (!kept)
		scratch_free(scratch);
}

static enum status tokenize_text(const struct call *call, const char *text, struct tokens *tokens, struct piece *out)
{
	*out = (struct piece){.tokens = tokens, .first = tokens->count};
	if (text)
		TRY(tokenizer_encode(call->tokenizer->tokenizer, text, strlen(text), tokens));
	out->count = tokens->count - out->first;
	return OK;
}

static void tokenize_part(void *context, int64_t part, int worker)
{
	struct call *call = context;
	struct tokens *tokens = &call->workers[worker]->tokens;
	int64_t first = call->first + part * call->part_texts, end = first + call->part_texts;
	enum status status = OK;
	for (int64_t i = first; i < end && i < call->end && status == OK; i++) {
		struct piece *pieces = &call->pieces[2 * (i - call->first)];
		status = tokenize_text(call, call->texts[i], tokens, &pieces[0]);
		if (status == OK)
			status = tokenize_text(call, call->pairs ? call->pairs[i] : NULL, tokens, &pieces[1]);
	}
	if (status == OK)
		return;
	pthread_mutex_lock(&call->lock);
	if (call->error.status == OK)
		call->error = *error_last();
	pthread_mutex_unlock(&call->lock);
}

/* Counts the characters of a text up to given byte offsets, which mostly ascend. */
struct character_counter {
	const char *text;
	size_t at, characters;
};

static uint32_t characters_before(struct character_counter *counter, uint32_t byte)
{
	if (byte < counter->at)
		counter->at = counter->characters = 0;
	for (; counter->at < byte; counter->at++)
		counter->characters += ((unsigned char)counter->text[counter->at] & 0xC0) != 0x80;
	return (uint32_t)counter->characters;
}

static void put_offsets(const struct call *call, const char *text, const struct piece *piece, int64_t count, uint32_t *out)
{
	struct character_counter counter = {.text = text};
	bool bytes = call->options->offsets == BERTC_OFFSETS_BYTES;
	for (int64_t i = 0; i < count; i++) {
		uint32_t begin = piece->tokens->begin[piece->first + i], end = piece->tokens->end[piece->first + i];
		out[2 * i] = bytes ? begin : characters_before(&counter, begin);
		out[2 * i + 1] = bytes ? end : characters_before(&counter, end);
	}
}

/* Writes `count` tokens of a piece. */
static void put_piece(const struct call *call, const char *text, const struct piece *piece, int64_t count, uint8_t type,
		      int64_t *at)
{
	bertc_tokens *out = call->out;
	if (count == 0)
		return;
	memcpy(out->ids + *at, piece->tokens->ids + piece->first, (size_t)count * sizeof *out->ids);
	if (out->offsets)
		put_offsets(call, text, piece, count, out->offsets + 2 * *at);
	if (out->types)
		memset(out->types + *at, type, (size_t)count);
	*at += count;
}

/* Writes special tokens [first, first + count) of a template. */
static void put_special(const struct call *call, const struct token_template *template, int first, int count, int64_t *at)
{
	bertc_tokens *out = call->out;
	for (int i = first; i < first + count && !call->options->no_special_tokens; i++, ++*at) {
		out->ids[*at] = template->ids[i];
		if (out->types)
			out->types[*at] = (int8_t) template->types[i];
		if (out->offsets)
			out->offsets[2 * *at] = out->offsets[2 * *at + 1] = 0;
	}
}

static const struct token_template *template_of(const struct call *call, int64_t i)
{
	const struct vocab *vocab = &call->tokenizer->vocab;
	return call->pairs && call->pairs[i] ? &vocab->pair : &vocab->single;
}

static void put_text(const struct call *call, int64_t i, int64_t a, int64_t b)
{
	const struct token_template *template = template_of(call, i);
	const struct piece *pieces = &call->pieces[2 * (i - call->first)];
	int64_t at = call->out->starts[i];
	put_special(call, template, 0, template->before, &at);
	put_piece(call, call->texts[i], &pieces[0], a, template->first_type, &at);
	put_special(call, template, template->before, template->between, &at);
	if (call->pairs && call->pairs[i])
		put_piece(call, call->pairs[i], &pieces[1], b, template->second_type, &at);
	put_special(call, template, template->before + template->between, template->after, &at);
	call->out->starts[i + 1] = at;
}

/* Appends the slice's tokens, in order, to those of earlier slices. */
static enum status collect_slice(const struct call *call)
{
	bertc_tokens *out = call->out;
	const bertc_encode_options *options = call->options;
	int64_t most = out->starts[call->first];
	for (int64_t i = 0; i < 2 * (call->end - call->first); i++)
		most += call->pieces[i].count + TEMPLATE_TOKENS;
	TRY(memory_grow(&out->ids, &out->id_capacity, most, sizeof *out->ids, "tokens"));
	if (call->pairs)
		TRY(memory_grow(&out->types, &out->type_capacity, most, sizeof *out->types, "tokens"));
	if (options->offsets != BERTC_OFFSETS_NONE)
		TRY(memory_grow(&out->offsets, &out->offset_capacity, 2 * most, sizeof *out->offsets, "tokens"));
	for (int64_t i = call->first; i < call->end; i++) {
		const struct piece *pieces = &call->pieces[2 * (i - call->first)];
		int64_t a = pieces[0].count, b = pieces[1].count;
		int64_t special = options->no_special_tokens ? 0 : template_size(template_of(call, i));
		if (options->max_length > 0)
			task_cut_pair(&a, &b, options->max_length - special);
		put_text(call, i, a, b);
	}
	return OK;
}

/* The end of a slice for this many threads that begins at call->first. */
static int64_t slice_end(const struct call *call, int64_t count, int threads)
{
	int64_t end = call->first, bytes = 0;
	while (end < count && end - call->first < (int64_t)SLICE_TEXTS * threads && bytes < SLICE_BYTES * threads) {
		bytes += (int64_t)strlen(call->texts[end]);
		if (call->pairs && call->pairs[end])
			bytes += (int64_t)strlen(call->pairs[end]);
		end++;
	}
	return end;
}

/* Encodes all slices, on the pool or (pool NULL) in the caller's thread. */
static enum status encode_slices(struct call *call, int64_t count, struct pool *pool, int threads)
{
	int64_t capacity = 0;
	enum status status = OK;
	while (call->first < count) {
		call->end = slice_end(call, count, threads);
		int64_t texts = call->end - call->first, parts = pool ? (int64_t)threads * PARTS_PER_THREAD : 1;
		TRY_GOTO(memory_grow(&call->pieces, &capacity, 2 * texts, sizeof *call->pieces, "tokens"), done);
		for (int w = 0; w < threads; w++)
			tokens_clear(&call->workers[w]->tokens);
		call->part_texts = (texts + parts - 1) / parts;
		if (pool)
			pool_run(pool, (texts + call->part_texts - 1) / call->part_texts, tokenize_part, call);
		else
			tokenize_part(call, 0, 0);
		if (call->error.status != OK)
			TRY_GOTO(error_restore(&call->error), done);
		TRY_GOTO(collect_slice(call), done);
		call->first = call->end;
	}
done:
	free(call->pieces);
	return status;
}

static enum status start_pool(bertc_tokenizer *t)
{
	for (int i = 0; i < t->threads; i++)
		if (!t->workers[i])
			TRY(memory_new(&t->workers[i], 1, sizeof **t->workers, "tokenizer"));
	return t->pool ? OK : pool_create_unpinned(&t->pool, t->threads);
}

static bool is_large(const struct call *call, int64_t count)
{
	return slice_end(call, count, 1) < count;
}

static enum status encode_texts(struct call *call, int64_t count)
{
	bertc_tokenizer *t = call->tokenizer;
	struct scratch *own;
	enum status status;
	bool shares = t->threads > 1 && t->process == getpid() && is_large(call, count);
	if (shares && pthread_mutex_trylock(&t->pool_lock) == 0) {
		call->workers = t->workers;
		status = start_pool(t);
		if (status == OK)
			status = encode_slices(call, count, t->pool, t->threads);
		pthread_mutex_unlock(&t->pool_lock);
		return status;
	}
	TRY(scratch_take(t, &own));
	call->workers = &own;
	status = encode_slices(call, count, NULL, 1);
	scratch_keep(t, own);
	return status;
}

static enum status check_encode_options(const bertc_encode_options *options, const struct token_template *template)
{
	int32_t special = options->no_special_tokens ? 0 : template_size(template);
	TRY(library_not_negative(options->max_length, "max_length"));
	if (options->offsets < BERTC_OFFSETS_NONE || options->offsets > BERTC_OFFSETS_CHARACTERS)
		return error_set(ERR_USAGE, "offsets is %d", options->offsets);
	if (options->max_length > 0 && options->max_length < special)
		return error_set(ERR_USAGE, "max_length is %d, which leaves no room for %d special tokens", options->max_length,
				 special);
	return OK;
}

static enum status encode(const bertc_tokenizer *tokenizer, const char *const *texts, const char *const *pairs, int64_t count,
			  const bertc_encode_options *given, bertc_tokens **out)
{
	bertc_encode_options options;
	enum status status;
	TRY(library_given(out, "out"));
	*out = NULL;
	TRY(library_given(tokenizer, "tokenizer"));
	TRY(library_texts(texts, count, "texts", false));
	TRY(library_texts(pairs, count, "pairs", true));
	TRY(library_options(&options, sizeof options, given, "bertc_encode_options"));
	TRY(check_encode_options(&options, pairs ? &tokenizer->vocab.pair : &tokenizer->vocab.single));
	/* Whatever changes in a tokenizer is guarded by a lock, so dropping the const is safe. */
	struct call call = {.tokenizer = (bertc_tokenizer *)(uintptr_t)tokenizer,
			    .texts = texts,
			    .pairs = pairs,
			    .options = &options,
			    .lock = PTHREAD_MUTEX_INITIALIZER};
	TRY(memory_new(&call.out, 1, sizeof *call.out, "tokens"));
	call.out->count = count;
	TRY_GOTO(memory_new(&call.out->starts, count + 1, sizeof *call.out->starts, "tokens"), done);
	TRY_GOTO(memory_grow(&call.out->ids, &call.out->id_capacity, 1, sizeof *call.out->ids, "tokens"), done);
	status = encode_texts(&call, count);
done:
	if (status != OK)
		bertc_tokens_free(call.out);
	else
		*out = call.out;
	return status;
}

BERTC_API bertc_status bertc_tokenizer_encode(const bertc_tokenizer *tokenizer, const char *const *texts,
					      const char *const *pairs, int64_t count, const bertc_encode_options *options,
					      bertc_tokens **out, bertc_error *error)
{
	return library_leave(encode(tokenizer, texts, pairs, count, options, out), error);
}

BERTC_API void bertc_tokens_free(bertc_tokens *tokens)
{
	if (!tokens)
		return;
	free(tokens->starts);
	free(tokens->ids);
	free(tokens->types);
	free(tokens->offsets);
	free(tokens);
}

BERTC_API int64_t bertc_tokens_count(const bertc_tokens *tokens)
{
	return tokens ? tokens->count : 0;
}

BERTC_API const int64_t *bertc_tokens_starts(const bertc_tokens *tokens)
{
	return tokens ? tokens->starts : NULL;
}

BERTC_API const int32_t *bertc_tokens_ids(const bertc_tokens *tokens)
{
	return tokens ? tokens->ids : NULL;
}

BERTC_API const int8_t *bertc_tokens_types(const bertc_tokens *tokens)
{
	return tokens ? tokens->types : NULL;
}

BERTC_API const uint32_t *bertc_tokens_offsets(const bertc_tokens *tokens)
{
	return tokens ? tokens->offsets : NULL;
}

/* ---- Decoding ---- */

static enum status decode(const bertc_tokenizer *tokenizer, const int32_t *ids, int64_t count, bool skips, char **out)
{
	struct buffer text = {0};
	enum status status;
	TRY(library_given(out, "out"));
	*out = NULL;
	TRY(library_given(tokenizer, "tokenizer"));
	TRY(library_not_negative(count, "count"));
	if (count > 0)
		TRY(library_given(ids, "ids"));
	for (int64_t i = 0; i < count; i++)
		if (ids[i] < 0 || ids[i] >= tokenizer->vocab.count)
			return error_set(ERR_USAGE, "ids[%lld] is %d, and the vocabulary has %d entries", (long long)i, ids[i],
					 tokenizer->vocab.count);
	vocab_decode(&tokenizer->vocab, ids, count, skips, &text);
	buffer_char(&text, '\0');
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(memory_new(out, (int64_t)text.size, 1, "text"), done);
	memcpy(*out, text.data, text.size);
done:
	buffer_release(&text);
	return status;
}

BERTC_API bertc_status bertc_tokenizer_decode(const bertc_tokenizer *tokenizer, const int32_t *ids, int64_t count,
					      int32_t skip_special_tokens, char **out, bertc_error *error)
{
	return library_leave(decode(tokenizer, ids, count, skip_special_tokens != 0, out), error);
}
