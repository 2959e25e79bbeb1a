/* Turns token ids back into text as the decoders of Hugging Face's tokenizers do. */
#include "text/decode.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/memory.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/decoder.h"
#include "text/utf8.h"

#define REPLACEMENT_CHARACTER "\xEF\xBF\xBD"
#define METASPACE "\xE2\x96\x81"

/* Texts, one after the other: those of the tokens, and what a step makes of them. */
struct texts {
	struct buffer bytes, ends; /* of type size_t */
};
struct slice {
	const char *text;
	size_t size;
};

static int64_t count_of(const struct texts *texts)
{
	return (int64_t)(texts->ends.size / sizeof(size_t));
}

static struct slice text_at(const struct texts *texts, int64_t index)
{
	size_t bounds[2] = {0, 0};
	if (index > 0)
		memcpy(bounds, texts->ends.data + (size_t)(index - 1) * sizeof *bounds, sizeof bounds);
	else
		memcpy(&bounds[1], texts->ends.data, sizeof *bounds);
	return (struct slice){texts->bytes.data ? texts->bytes.data + bounds[0] : "", bounds[1] - bounds[0]};
}

/* What was appended to the bytes since the last end is a text. */
static void end_text(struct texts *texts)
{
	buffer_append(&texts->ends, &texts->bytes.size, sizeof texts->bytes.size);
}

static bool begins_with(struct slice slice, const char *text)
{
	size_t size = strlen(text);
	return slice.size >= size && memcmp(slice.text, text, size) == 0;
}

/* Appends a text with something else in place of each `pattern`. */
static void put_replaced(struct slice slice, const char *pattern, const char *content, struct buffer *out)
{
	while (slice.size > 0) {
		bool found = begins_with(slice, pattern);
		size_t taken = found ? strlen(pattern) : 1;
		if (found)
			buffer_text(out, content);
		else
			buffer_char(out, slice.text[0]);
		slice = (struct slice){slice.text + taken, slice.size - taken};
	}
}

/* Appends bytes with U+FFFD in place of each part that is not UTF-8. */
static void put_valid(struct slice bytes, struct buffer *out)
{
	for (size_t at = 0, length; at < bytes.size; at += length) {
		uint32_t c;
		length = utf8_decode(bytes.text + at, bytes.size - at, &c);
		if (c == UTF8_INVALID)
			buffer_text(out, REPLACEMENT_CHARACTER);
		else
			buffer_append(out, bytes.text + at, length);
	}
}

/* ---- Steps ---- */

struct decoder_kind {
	const char *type;
	void (*run)(const struct decoder_step *step, const struct texts *in, struct texts *out);
};

static void run_replace(const struct decoder_step *step, const struct texts *in, struct texts *out)
{
	for (int64_t i = 0; i < count_of(in); i++, end_text(out))
		put_replaced(text_at(in, i), step->pattern, step->content, &out->bytes);
}

/* The suffix marks the end of a word. */
static void run_bpe(const struct decoder_step *step, const struct texts *in, struct texts *out)
{
	for (int64_t i = 0; i < count_of(in); i++, end_text(out))
		put_replaced(text_at(in, i), step->pattern, i + 1 == count_of(in) ? "" : " ", &out->bytes);
}

static void run_metaspace(const struct decoder_step *step, const struct texts *in, struct texts *out)
{
	for (int64_t i = 0; i < count_of(in); i++, end_text(out))
		put_replaced(text_at(in, i), step->pattern, i == 0 && step->flag ? "" : " ", &out->bytes);
}

static void run_strip(const struct decoder_step *step, const struct texts *in, struct texts *out)
{
	size_t size = strlen(step->content);
	for (int64_t i = 0; i < count_of(in); i++, end_text(out)) {
		struct slice rest = text_at(in, i);
		for (int64_t n = 0; n < step->start && begins_with(rest, step->content); n++)
			rest = (struct slice){rest.text + size, rest.size - size};
		for (int64_t n = 0; n < step->stop && rest.size >= size; n++) {
			if (memcmp(rest.text + rest.size - size, step->content, size) != 0)
				break;
			rest.size -= size;
		}
		buffer_append(&out->bytes, rest.text, rest.size);
	}
}

static void run_fuse(const struct decoder_step *step, const struct texts *in, struct texts *out)
{
	(void)step;
	if (count_of(in) > 0)
		buffer_append(&out->bytes, buffer_string(&in->bytes), in->bytes.size);
	end_text(out);
}

/* "<0x0A>" is a byte. */
static bool is_byte(struct slice slice, char *out)
{
	static const char digits[] = "0123456789ABCDEF0123456789abcdef";
	if (slice.size != strlen("<0x0A>") || !begins_with(slice, "<0x") || slice.text[5] != '>')
		return false;
	const char *high = memchr(digits, slice.text[3], 32), *low = memchr(digits, slice.text[4], 32);
	if (!high || !low)
		return false;
	*out = (char)((high - digits) % 16 * 16 + (low - digits) % 16);
	return true;
}

/* Neighboring bytes are a text if they are UTF-8 together, otherwise a U+FFFD each. */
static void run_byte_fallback(const struct decoder_step *step, const struct texts *in, struct texts *out)
{
	(void)step;
	struct buffer bytes = {0};
	for (int64_t i = 0; i < count_of(in); i++) {
		struct slice slice = text_at(in, i);
		char byte;
		bool more = is_byte(slice, &byte);
		if (more)
			buffer_char(&bytes, byte);
		else
			buffer_append(&out->bytes, slice.text, slice.size);
		if (more && i + 1 < count_of(in) && is_byte(text_at(in, i + 1), &byte))
			continue;
		bool valid = utf8_count_invalid(buffer_string(&bytes), bytes.size) == 0;
		if (valid)
			buffer_append(&out->bytes, buffer_string(&bytes), bytes.size);
		for (size_t n = 0; n < bytes.size && !valid; n++)
			buffer_text(&out->bytes, REPLACEMENT_CHARACTER);
		buffer_clear(&bytes);
		end_text(out);
	}
	out->bytes.failed = out->bytes.failed || bytes.failed;
	buffer_release(&bytes);
}

static void run_byte_level(const struct decoder_step *step, const struct texts *in, struct texts *out)
{
	(void)step;
	struct buffer bytes = {0};
	for (int64_t i = 0; i < count_of(in); i++) {
		struct slice slice = text_at(in, i);
		char *room = buffer_room(&bytes, slice.size);
		int64_t count = room ? byte_level_bytes(slice.text, slice.size, room) : -1;
		if (count >= 0)
			buffer_advance(&bytes, (size_t)count);
		else
			buffer_append(&bytes, slice.text, slice.size);
	}
	put_valid((struct slice){buffer_string(&bytes), bytes.size}, &out->bytes);
	out->bytes.failed = out->bytes.failed || bytes.failed;
	buffer_release(&bytes);
	end_text(out);
}

/* Appends a text without the spaces that English does not have, which tokenizers calls cleanup. */
static void put_clean(struct slice slice, struct buffer *out)
{
	static const struct {
		const char *from, *to;
	} rules[] = {{" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
		     {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
	const size_t count = sizeof rules / sizeof *rules;
	for (size_t taken; slice.size > 0; slice = (struct slice){slice.text + taken, slice.size - taken}) {
		size_t rule = slice.text[0] == ' ' ? 0 : count;
		while (rule < count && !begins_with(slice, rules[rule].from))
			rule++;
		taken = rule < count ? strlen(rules[rule].from) : 1;
		if (rule < count)
			buffer_text(out, rules[rule].to);
		else
			buffer_char(out, slice.text[0]);
	}
}

/* Entries with the prefix continue a word, the others follow a space; at the very beginning, all stay as they are. */
static void run_wordpiece(const struct decoder_step *step, const struct texts *in, struct texts *out)
{
	struct buffer text = {0};
	for (int64_t i = 0; i < count_of(in); i++, end_text(out)) {
		struct slice slice = text_at(in, i);
		bool continues = i > 0 && begins_with(slice, step->pattern);
		size_t left_out = continues ? strlen(step->pattern) : 0;
		buffer_clear(&text);
		if (i > 0 && !continues)
			buffer_char(&text, ' ');
		buffer_append(&text, slice.text + left_out, slice.size - left_out);
		if (step->flag)
			put_clean((struct slice){buffer_string(&text), text.size}, &out->bytes);
		else
			buffer_append(&out->bytes, buffer_string(&text), text.size);
	}
	out->bytes.failed = out->bytes.failed || text.failed;
	buffer_release(&text);
}

static void run_join(const struct decoder_step *step, const struct texts *in, struct texts *out)
{
	(void)step;
	for (int64_t i = 0; i < count_of(in); i++, end_text(out)) {
		struct slice slice = text_at(in, i);
		if (i > 0)
			buffer_char(&out->bytes, ' ');
		buffer_append(&out->bytes, slice.text, slice.size);
	}
}

static const struct decoder_kind wordpiece = {"WordPiece", run_wordpiece}, join = {"", run_join};
static const struct decoder_kind metaspace = {"Metaspace", run_metaspace}, bpe = {"BPEDecoder", run_bpe};
static const struct decoder_kind strip = {"Strip", run_strip}, replace = {"Replace", run_replace};
static const struct decoder_kind byte_level = {"ByteLevel", run_byte_level};
static const struct decoder_kind byte_fallback = {"ByteFallback", run_byte_fallback}, fuse = {"Fuse", run_fuse};
static const struct decoder_kind *const kinds[] = {&wordpiece, &metaspace,  &bpe,           &strip,
						   &replace,   &byte_level, &byte_fallback, &fuse};

/* ---- Reading ---- */

static enum status copy_member(const struct json *object, const char *member, const char *otherwise, char **out)
{
	const struct json *value = json_member(object, member);
	const char *text = value && value->kind == JSON_STRING ? value->text : otherwise;
	TRY(memory_new(out, (int64_t)strlen(text) + 1, 1, "tokenizer"));
	memcpy(*out, text, strlen(text));
	return OK;
}

/* Whether the step can be obeyed; it is read as far as it is one that is known. */
static enum status read_step(struct decoder_step *step, const struct part *part, bool *out_known)
{
	const struct json *object = part->object;
	const struct json *type = json_member(object, "type"), *scheme = json_member(object, "prepend_scheme");
	bool is_never = scheme && scheme->kind == JSON_STRING && strcmp(scheme->text, "never") == 0;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds && type && type->kind == JSON_STRING; i++)
		if (strcmp(type->text, kinds[i]->type) == 0)
			step->kind = kinds[i];
	if (step->kind == &wordpiece || step->kind == &bpe)
		TRY(copy_member(object, step->kind == &bpe ? "suffix" : "prefix", step->kind == &bpe ? "</w>" : "##",
				&step->pattern));
	else if (step->kind == &metaspace)
		TRY(copy_member(object, "replacement", METASPACE, &step->pattern));
	else if (step->kind == &replace)
		TRY(copy_member(json_member(object, "pattern"), "String", "", &step->pattern));
	TRY(copy_member(object, "content", step->kind == &strip ? " " : "", &step->content));
	step->flag = true;
	TRY(json_get_bool(object, part->path, step->kind == &metaspace ? "add_prefix_space" : "cleanup", &step->flag));
	TRY(json_get_integer(object, part->path, "start", 0, INT32_MAX, &step->start));
	TRY(json_get_integer(object, part->path, "stop", 0, INT32_MAX, &step->stop));
	step->flag = step->flag && !is_never;
	*out_known = step->kind && (!step->pattern || step->pattern[0]) && (step->kind != &strip || step->content[0]);
	return OK;
}

static enum status add_steps(struct decoder *decoder, const struct part *part, bool *known)
{
	const struct json *type = json_member(part->object, "type"), *members = json_member(part->object, "decoders");
	if (!type || type->kind != JSON_STRING || strcmp(type->text, "Sequence") != 0) {
		if (decoder->count == DECODER_STEPS)
			return error_set(ERR_DATA, "'%s': more than %d decoders", part->path, DECODER_STEPS);
		bool one = false;
		TRY(read_step(&decoder->steps[decoder->count++], part, &one));
		if (*known && !one)
			log_warning("'%s': bertc does not have the decoder \"%.60s\"; texts are decoded with a space between "
				    "tokens",
				    part->path, type && type->kind == JSON_STRING ? type->text : "");
		*known = *known && one;
		return OK;
	}
	for (const struct json *one = members ? members->first_child : NULL; one; one = one->next)
		TRY(add_steps(decoder, &(struct part){one, part->path, part->role}, known));
	return OK;
}

enum status decoder_read(struct decoder **out, const struct json *root, const char *path)
{
	const struct json *object = json_member(root, "decoder");
	bool known = object && object->kind != JSON_NULL;
	TRY(memory_new(out, 1, sizeof **out, "tokenizer"));
	if (known)
		TRY(add_steps(*out, &(struct part){object, path, "decoder"}, &known));
	if (!known) {
		(*out)->steps[0].kind = &join;
		(*out)->count = 1;
	}
	return OK;
}

void decoder_free(struct decoder *decoder)
{
	for (int i = 0; decoder && i < DECODER_STEPS; i++) {
		free(decoder->steps[i].pattern);
		free(decoder->steps[i].content);
	}
	free(decoder);
}

/* ---- Decoding ---- */

/* Whether a token is one of those that skip_special_tokens leaves out. */
static bool is_left_out(const struct vocab *vocab, int32_t id)
{
	for (int32_t i = 0; i < vocab->added_count; i++)
		if (vocab->added[i].id == id)
			return vocab->added[i].special;
	return vocab_is_special(vocab, id);
}

void vocab_decode(const struct vocab *vocab, const int32_t *ids, int64_t count, bool skips_special, struct buffer *out)
{
	char prefix[] = "##";
	struct decoder usual = {{{.kind = &wordpiece, .pattern = prefix, .flag = true}}, 1};
	const struct decoder *decoder = vocab->decoder ? vocab->decoder : &usual;
	struct texts texts = {.bytes = {0}}, made = {.bytes = {0}};
	for (int64_t i = 0; i < count; i++) {
		if (ids[i] < 0 || ids[i] >= vocab->count || (skips_special && is_left_out(vocab, ids[i])))
			continue;
		buffer_append(&texts.bytes, vocab->text[ids[i]], vocab->size[ids[i]]);
		end_text(&texts);
	}
	for (int i = 0; i < decoder->count; i++) {
		struct texts done = texts;
		decoder->steps[i].kind->run(&decoder->steps[i], &texts, &made);
		texts = made;
		made = done;
		texts.bytes.failed = texts.bytes.failed || made.bytes.failed || made.ends.failed;
		buffer_clear(&made.bytes);
		buffer_clear(&made.ends);
	}
	buffer_append(out, buffer_string(&texts.bytes), texts.bytes.size);
	out->failed = out->failed || texts.bytes.failed || texts.ends.failed;
	buffer_release(&texts.bytes);
	buffer_release(&texts.ends);
	buffer_release(&made.bytes);
	buffer_release(&made.ends);
}
