/* Precompiled character maps: the first byte says how many of the others are the map; the rest is a text. */
#include "fuzz.h"
#include "base/memory.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/charsmap.h"
#include "text/utf8.h"

FUZZ_SEEDS(FUZZ_SEED("\x18\x10\0\0\0\0\4\0\0\x61\5\0\0\0\0\0\x80\0\0\0\0 b\0\0xay\xCC\x81 a\xCC\x81"),
	   FUZZ_SEED("\x18\x10\0\0\0\0\4\0\0\x61\5\0\0\0\0\0\x80\0\0\0\0\0b\0\0aa\r\n\xE2\x84\xA2"))

static enum status take_word(void *context, const struct word *word)
{
	(void)context;
	BUG_IF(utf8_count_invalid(word->text, word->size) > 0);
	for (size_t i = 0; i < word->size && word->begins; i++)
		BUG_IF(word->begins[i] > word->ends[i]);
	return OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct chain chain = {.count = 1, .normalizer_count = 1};
	struct chain_run run = {.chain = &chain, .word = take_word};
	struct charsmap *map;
	if (count == 0 || memory_new(&map, 1, sizeof *map, "map") != OK)
		return 0;
	size_t size = bytes[0] < count ? bytes[0] : count - 1;
	chain.stages[0] = (struct stage){.kind = &stage_precompiled, .own = map};
	if (charsmap_init(map, "fuzz", bytes + 1, size) == OK)
		BUG_IF(chain_run_text(&run, (const char *)bytes, size + 1, count) != OK);
	chain_run_release(&run);
	chain_release(&chain);
	return 0;
}
