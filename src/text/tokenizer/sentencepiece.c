/* Reads sentencepiece's model file, and normalizes as it says. */
#include "text/tokenizer/sentencepiece.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/memory.h"
#include "formats/protobuf.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/charsmap.h"
#include "text/utf8.h"

#define FILE_LIMIT ((size_t)1 << 28)
#define SPACE_MARK "\xE2\x96\x81" /* U+2581 */

/* ---- The file ---- */

/* Numbers of fields, and of values of enums. */
enum { MODEL_PIECES = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_MODEL_TYPE = 3, TRAINER_WHITESPACE_AS_SUFFIX = 24, TRAINER_BYTE_FALLBACK = 35 };
enum { NORMALIZER_CHARSMAP = 2, NORMALIZER_DUMMY_PREFIX = 3, NORMALIZER_EXTRA_WHITESPACES = 4, NORMALIZER_ESCAPE = 5 };
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER_DEFINED, TYPE_UNUSED, TYPE_BYTE };
static const char *const model_types[] = {"unknown", "Unigram", "BPE", "Word", "Char"};

static enum status malformed(const char *path)
{
	return error_hinted(error_set(ERR_DATA, "'%s': not a well-formed sentencepiece model", path),
			    "it must be the file that sentencepiece's trainer has written");
}

/* The pieces of the file as they are read. */
struct reading {
	const char *path;
	struct sentencepiece_model *model;
	int64_t capacity;
	int32_t unknown_count;
};

static enum status read_piece(struct reading *r, struct byte_range message)
{
	struct sentencepiece_model *m = r->model;
	struct unigram_piece piece = {.text = "", .kind = UNIGRAM_NORMAL};
	struct protobuf_field field;
	uint64_t type = TYPE_NORMAL;
	while (message.at < message.end) {
		float score;
		if (!protobuf_next(&message, &field))
			return malformed(r->path);
		if (field.number == PIECE_TEXT && field.kind == PROTOBUF_BYTES) {
			piece.text = (const char *)field.content.at;
			piece.size = range_left(&field.content);
		} else if (field.number == PIECE_SCORE && field.kind == PROTOBUF_32) {
			memcpy(&score, &field.value, sizeof score);
			piece.score = score;
		} else if (field.number == PIECE_TYPE && field.kind == PROTOBUF_VARINT) {
			type = field.value;
		}
	}
	if (piece.size == 0 || type < TYPE_NORMAL || type > TYPE_BYTE || m->count == INT32_MAX - 8)
		return malformed(r->path);
	if (!isfinite(piece.score))
		return error_set(ERR_DATA, "'%s': the score of piece %d, '%.*s', is %s", r->path, m->count,
				 piece.size > 100 ? 100 : (int)piece.size, piece.text, isnan(piece.score) ? "NaN" : "infinite");
	if (type == TYPE_USER_DEFINED)
		piece.kind = UNIGRAM_USER_DEFINED;
	else if (type != TYPE_NORMAL)
		piece.kind = UNIGRAM_UNMATCHED;
	if (type == TYPE_UNKNOWN) {
		m->unk = m->count;
		r->unknown_count++;
	}
	TRY(memory_grow(&m->pieces, &r->capacity, m->count + 1, sizeof *m->pieces, "vocabulary"));
	m->pieces[m->count++] = piece;
	return OK;
}

static enum status read_trainer(struct reading *r, struct byte_range message)
{
	struct protobuf_field field;
	while (message.at < message.end) {
		if (!protobuf_next(&message, &field))
			return malformed(r->path);
		if (field.kind != PROTOBUF_VARINT)
			continue;
		if (field.number == TRAINER_MODEL_TYPE && field.value != 1) {
			const char *type = model_types[field.value < sizeof model_types / sizeof *model_types ? field.value : 0];
			return error_set(ERR_DATA, "'%s': a sentencepiece model of the type %s; bertc has Unigram only", r->path,
					 type);
		}
		if (field.number == TRAINER_WHITESPACE_AS_SUFFIX)
			r->model->whitespace_as_suffix = field.value != 0;
		if (field.number == TRAINER_BYTE_FALLBACK)
			r->model->byte_fallback = field.value != 0;
	}
	return OK;
}

static enum status read_normalizer(struct reading *r, struct byte_range message)
{
	struct protobuf_field field;
	while (message.at < message.end) {
		if (!protobuf_next(&message, &field))
			return malformed(r->path);
		if (field.number == NORMALIZER_CHARSMAP && field.kind == PROTOBUF_BYTES) {
			r->model->charsmap = field.content.at;
			r->model->charsmap_size = range_left(&field.content);
		}
		if (field.kind != PROTOBUF_VARINT)
			continue;
		if (field.number == NORMALIZER_DUMMY_PREFIX)
			r->model->add_dummy_prefix = field.value != 0;
		if (field.number == NORMALIZER_EXTRA_WHITESPACES)
			r->model->remove_extra_whitespaces = field.value != 0;
		if (field.number == NORMALIZER_ESCAPE)
			r->model->escape_whitespaces = field.value != 0;
	}
	return OK;
}

static enum status read_model(struct reading *r)
{
	const unsigned char *bytes = (const unsigned char *)r->model->file.data;
	struct byte_range message = {bytes, bytes + r->model->file.size};
	struct protobuf_field field;
	while (message.at < message.end) {
		if (!protobuf_next(&message, &field))
			return malformed(r->path);
		if (field.kind != PROTOBUF_BYTES)
			continue;
		if (field.number == MODEL_PIECES)
			TRY(read_piece(r, field.content));
		if (field.number == MODEL_TRAINER)
			TRY(read_trainer(r, field.content));
		if (field.number == MODEL_NORMALIZER)
			TRY(read_normalizer(r, field.content));
	}
	return r->unknown_count == 1 ? OK
				     : error_set(ERR_DATA, "'%s': %d pieces for unknown characters, where one is needed", r->path,
						 r->unknown_count);
}

/* ---- Ids ---- */

/* A numbering other than the file's: pieces in front of the file's, in place of its first `replaced`, and <mask> behind them. */
struct numbering {
	const char *first[5];
	int32_t count, replaced, unk;
};
static const struct numbering numberings[] = {
	[SENTENCEPIECE_XLM_R] = {{"<s>", "<pad>", "</s>", "<unk>"}, 4, 3, 3},
	[SENTENCEPIECE_CAMEMBERT] = {{"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"}, 5, 1, 3},
};

static struct unigram_piece special_piece(const char *text)
{
	return (struct unigram_piece){.text = text, .size = strlen(text), .kind = UNIGRAM_UNMATCHED};
}

static enum status renumber(struct sentencepiece_model *m, const char *path, const struct numbering *numbering)
{
	static const char *const file_first[] = {"<unk>", "<s>", "</s>"};
	struct unigram_piece *pieces;
	for (int32_t i = 0; i < 3; i++)
		if (i >= m->count || m->pieces[i].size != strlen(file_first[i]) ||
		    memcmp(m->pieces[i].text, file_first[i], m->pieces[i].size) != 0)
			return error_set(ERR_DATA, "'%s': the pieces of this model's file must begin with <unk> <s> </s>", path);
	TRY(memory_new(&pieces, (int64_t)m->count + 8, sizeof *pieces, "vocabulary"));
	for (int32_t i = 0; i < numbering->count; i++)
		pieces[i] = special_piece(numbering->first[i]);
	int32_t rest = m->count - numbering->replaced;
	memcpy(pieces + numbering->count, m->pieces + numbering->replaced, (size_t)rest * sizeof *pieces);
	pieces[numbering->count + rest] = special_piece("<mask>");
	free(m->pieces);
	m->pieces = pieces;
	m->count = numbering->count + rest + 1;
	m->unk = numbering->unk;
	return OK;
}

enum status sentencepiece_parse(struct sentencepiece_model *out, const char *path, enum sentencepiece_ids ids, const void *bytes,
				size_t size)
{
	struct reading reading = {.path = path, .model = out};
	enum status status;
	*out = (struct sentencepiece_model){
		.add_dummy_prefix = true, .remove_extra_whitespaces = true, .escape_whitespaces = true};
	buffer_append(&out->file, bytes, size);
	TRY_GOTO(buffer_status(&out->file), fail);
	TRY_GOTO(read_model(&reading), fail);
	if (ids != SENTENCEPIECE_OWN)
		TRY_GOTO(renumber(out, path, &numberings[ids]), fail);
	return OK;
fail:
	sentencepiece_release(out);
	return status;
}

enum status sentencepiece_read(struct sentencepiece_model *out, const char *path, enum sentencepiece_ids ids)
{
	struct buffer file = {0};
	enum status status = file_read(path, FILE_LIMIT, &file);
	*out = (struct sentencepiece_model){.count = 0};
	if (status == OK)
		status = sentencepiece_parse(out, path, ids, file.data, file.size);
	buffer_release(&file);
	return status;
}

void sentencepiece_release(struct sentencepiece_model *model)
{
	free(model->pieces);
	buffer_release(&model->file);
	*model = (struct sentencepiece_model){.count = 0};
}

/* ---- Normalization ---- */

struct rules {
	struct charsmap charsmap;
	const struct unigram *unigram; /* for the pieces that are defined by users, which are left as they are */
	bool add_dummy_prefix, whitespace_as_suffix, remove_extra_whitespaces, escape_whitespaces;
};

/* What becomes of the beginning of a text. */
struct replaced {
	const char *text;
	size_t size;
	size_t length; /* of what is replaced */
};

static struct replaced replace_next(const struct rules *rules, const char *text, size_t size)
{
	uint32_t code_point;
	struct replaced next = {.text = text, .size = unigram_user_defined(rules->unigram, text, size)};
	next.length = next.size;
	if (next.size > 0)
		return next;
	next.size = next.length = utf8_decode(text, size, &code_point);
	const char *replacement = charsmap_find(&rules->charsmap, text, size, true, &next.length);
	if (replacement) {
		next.text = replacement;
		next.size = strlen(replacement);
	}
	return next;
}

static enum status put_space(const struct rules *rules, struct normalized_text *out, uint32_t begin, uint32_t end)
{
	return rules->escape_whitespaces ? normalized_text_append(out, SPACE_MARK, 3, begin, end)
					 : normalized_text_append(out, " ", 1, begin, end);
}

static enum status put(const struct rules *rules, struct normalized_text *out, const struct replaced *next, uint32_t begin,
		       uint32_t end)
{
	for (size_t i = 0; i < next->size; i++) {
		if (next->text[i] == ' ')
			TRY(put_space(rules, out, begin, end));
		else
			TRY(normalized_text_append(out, next->text + i, 1, begin, end));
	}
	return OK;
}

static void drop_spaces_at_end(const struct rules *rules, struct normalized_text *out)
{
	const char *space = rules->escape_whitespaces ? SPACE_MARK : " ";
	int64_t size = (int64_t)strlen(space);
	while (out->size >= size && memcmp(out->text + out->size - size, space, (size_t)size) == 0)
		out->size -= size;
}

static enum status run(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	const struct rules *rules = stage->own;
	struct normalized_text *out = chain_buffer(run, stage);
	bool after_space = rules->remove_extra_whitespaces;
	uint32_t begin, end, last;
	size_t at = 0;
	while (rules->remove_extra_whitespaces && at < word->size) {
		struct replaced next = replace_next(rules, word->text + at, word->size - at);
		if (next.size != 1 || next.text[0] != ' ')
			break;
		at += next.length;
	}
	if (at == word->size)
		return OK;
	word_place(word, at, &begin, &end);
	if (rules->add_dummy_prefix && !rules->whitespace_as_suffix)
		TRY(put_space(rules, out, begin, end));
	while (at < word->size) {
		struct replaced next = replace_next(rules, word->text + at, word->size - at);
		word_place(word, at, &begin, &last);
		word_place(word, at + next.length - 1, &last, &end);
		at += next.length;
		for (; after_space && next.size > 0 && next.text[0] == ' '; next.text++)
			next.size--;
		TRY(put(rules, out, &next, begin, end));
		if (next.size > 0)
			after_space = rules->remove_extra_whitespaces && next.text[next.size - 1] == ' ';
	}
	if (rules->remove_extra_whitespaces)
		drop_spaces_at_end(rules, out);
	if (rules->add_dummy_prefix && rules->whitespace_as_suffix)
		TRY(put_space(rules, out, begin, end));
	struct word result = word_of_buffer(out);
	return chain_next(run, stage, &result);
}

static void close_rules(struct stage *stage)
{
	struct rules *rules = stage->own;
	charsmap_release(&rules->charsmap);
	free(rules);
}

static const struct stage_kind stage_sentencepiece = {.type = "sentencepiece", .run = run, .close = close_rules};

enum status sentencepiece_chain(struct chain *out, const struct sentencepiece_model *model, const char *path)
{
	const struct unigram_settings settings = {.unk = model->unk, .byte_fallback = model->byte_fallback, .single = true};
	struct unigram *unigram;
	struct rules *rules;
	enum status status;
	*out = (struct chain){.count = 0};
	TRY(unigram_new(&unigram, path, model->pieces, model->count, &settings));
	out->model = &unigram_model;
	out->model_own = unigram;
	TRY_GOTO(memory_new(&rules, 1, sizeof *rules, "tokenizer"), fail);
	*rules = (struct rules){
		.unigram = unigram,
		.add_dummy_prefix = model->add_dummy_prefix,
		.whitespace_as_suffix = model->whitespace_as_suffix,
		.remove_extra_whitespaces = model->remove_extra_whitespaces,
		.escape_whitespaces = model->escape_whitespaces,
	};
	out->stages[0] = (struct stage){.kind = &stage_sentencepiece, .own = rules};
	out->count = out->normalizer_count = 1;
	TRY_GOTO(charsmap_init(&rules->charsmap, path, model->charsmap, model->charsmap_size), fail);
	return OK;
fail:
	chain_release(out);
	return status;
}
