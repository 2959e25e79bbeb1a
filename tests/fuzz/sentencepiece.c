/* sentencepiece's model files, and texts that consist of their pieces and bytes: every way to number the pieces (the first byte).
 */
#include "fuzz.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/sentencepiece.h"

#define PIECE(text, type) "\x0A\x0A\x0A\x01" text "\x15\0\0\x80\xBF\x18" type
#define FIRST "\x0A\x09\x0A\x05<unk>\x18\x02\x0A\x07\x0A\x03<s>\x18\x03\x0A\x08\x0A\x04</s>\x18\x03"

FUZZ_SEEDS(FUZZ_SEED("\0" FIRST PIECE("a", "\1") PIECE("b", "\4")),
	   FUZZ_SEED("\1" FIRST PIECE("a", "\1") "\x12\x05\x18\x01\x98\x02\x01\x1A\x04\x18\0\x20\0"),
	   FUZZ_SEED("\2" FIRST "\x0A\x0F\x0A\x06\xE2\x96\x81 ab\x15\0\0\0\xC0\x18\1\x12\x03\xC0\x01\x01"),
	   /* A character map: a trie of 4 units with the one sequence "a", and its replacement. */
	   FUZZ_SEED("\0" FIRST "\x1A\x1A\x12\x18\x10\0\0\0\0\4\0\0\x61\5\0\0\0\0\0\x80\0\0\0\0 b\0\0"))

static enum status take_word(void *context, const struct word *word)
{
	struct pieces *pieces = context;
	const struct chain *chain = *(const struct chain **)(pieces + 1);
	size_t end = 0;
	BUG_IF(word->size == 0);
	pieces->count = 0;
	TRY(chain->model->cut(chain->model_own, word->text, word->size, pieces));
	BUG_IF(pieces->count == 0);
	for (int64_t i = 0; i < pieces->count; i++) {
		BUG_IF(pieces->items[i].id < 0 || pieces->items[i].begin > end || pieces->items[i].end < end);
		end = pieces->items[i].end;
	}
	BUG_IF(end != word->size);
	return OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct {
		struct pieces pieces;
		const struct chain *chain;
	} context = {.chain = NULL};
	struct sentencepiece_model model;
	struct chain chain;
	if (count == 0 || sentencepiece_parse(&model, "fuzz", bytes[0] % 3, bytes + 1, count - 1) != OK)
		return 0;
	if (sentencepiece_chain(&chain, &model, "fuzz") == OK) {
		struct chain_run run = {.chain = &chain, .word = take_word, .context = &context};
		context.chain = &chain;
		BUG_IF(chain_run_text(&run, (const char *)bytes, 0, count) != OK);
		for (int32_t i = 0; i < model.count && i < 20; i++)
			BUG_IF(chain_run_text(&run, model.pieces[i].text, 0, model.pieces[i].size) != OK);
		chain_run_release(&run);
		chain_release(&chain);
		pieces_release(&context.pieces);
	}
	sentencepiece_release(&model);
	return 0;
}
