/* tokenizer.json, and tokenizer_config.json (inputs whose first byte is odd). */
#include "fuzz.h"
#include "text/decode.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "text/vocab_json.h"

#define BERT_PARTS                                                                                                               \
	"\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"     \
	"\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]},"
#define TOKENS "\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4"

FUZZ_SEEDS(
	FUZZ_SEED("\0{\"model\":{\"type\":\"WordPiece\",\"vocab\":{" TOKENS ",\"a\":5,\"##b\":6}},"
		  "\"normalizer\":{\"lowercase\":true,\"strip_accents\":null,\"handle_chinese_chars\":false}}"),
	FUZZ_SEED("\0{\"added_tokens\":[{\"id\":5,\"content\":\"x\",\"rstrip\":true}]," BERT_PARTS
		  "\"model\":{\"type\":\"WordPiece\",\"vocab\":{" TOKENS "}}}"),
	FUZZ_SEED("\0{\"model\":{\"type\":\"BPE\",\"vocab\":{}}}"),
	FUZZ_SEED(
		"\0{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
		"\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\xC4\xA0\":3,\"\xC4\xA0"
		"ab\":4},\"merges\":[\"a b\",[\"\xC4\xA0\",\"ab\"]]}}"),
	FUZZ_SEED(
		"\0{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
		"\"content\":\"b\"},"
		"{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\"b\",\"start\":1,\"stop\":1}]},"
		"\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"u\",0],[\"a\",-1],[\"<0x61>\","
		"-2]]}}"),
	FUZZ_SEED("\0{\"decoder\":{\"type\":\"Metaspace\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}"),
	FUZZ_SEED("\1{\"do_lower_case\":false,\"strip_accents\":true,\"tokenize_chinese_chars\":true}"),
	FUZZ_SEED("\1{\"model_max_length\":512}"), FUZZ_SEED("\1[]"))

/* Whatever the ids and the decoder, the text is UTF-8. */
static void decode(const struct vocab *vocab, const struct tokens *tokens)
{
	struct buffer text = {0};
	vocab_decode(vocab, tokens->ids, tokens->count, false, &text);
	vocab_decode(vocab, tokens->ids, tokens->count, true, &text);
	BUG_IF(utf8_count_invalid(buffer_string(&text), text.size) > 0);
	buffer_release(&text);
}

/* Texts made of the vocabulary's own entries, in which its added tokens occur. */
static void encode_entries(const struct vocab *vocab, const struct tokenizer_settings *settings)
{
	struct tokenizer *tokenizer;
	struct tokens tokens = {0};
	BUG_IF(vocab->wordpiece_count > vocab->count);
	for (int32_t i = 0; i < vocab->added_count; i++)
		BUG_IF(vocab->added[i].id < 0 || vocab->added[i].id >= vocab->count);
	if ((vocab->added_count == 0 && !vocab->chain) || tokenizer_open(&tokenizer, vocab, settings) != OK)
		return;
	for (int32_t id = 0; id < vocab->count && id < 50; id++)
		BUG_IF(tokenizer_encode(tokenizer, vocab->text[id], vocab->size[id], &tokens) != OK);
	for (int64_t i = 0; i < tokens.count; i++)
		BUG_IF(tokens.ids[i] < 0 || tokens.ids[i] >= vocab->count);
	decode(vocab, &tokens);
	tokens_release(&tokens);
	tokenizer_close(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const uint8_t empty[] = "{}";
	if (count == 0)
		return 0;
	bool config = bytes[0] & 1;
	struct tokenizer_settings settings = tokenizer_defaults(bytes[0] & 2), before = settings;
	const char *path = fuzz_file("tokenizer.json", config ? empty : bytes + 1, config ? 2 : count - 1);
	fuzz_file("tokenizer_config.json", config ? bytes + 1 : empty, config ? count - 1 : 2);
	bool found;
	if (tokenizer_settings_read(path, &settings, &found) != OK)
		BUG_IF(settings.lowercase != before.lowercase || settings.split_chinese != before.split_chinese);
	struct vocab vocab;
	if (config || vocab_read(&vocab, path) != OK)
		return 0;
	BUG_IF(!vocab.chain && vocab.count < 5);
	for (int32_t id = 0; id < vocab.count; id++)
		BUG_IF(strlen(vocab.text[id]) != vocab.size[id]);
	encode_entries(&vocab, &settings);
	vocab_release(&vocab);
	return 0;
}
