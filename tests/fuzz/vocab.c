/* vocab.txt. */
#include "fuzz.h"
#include "text/vocab.h"

#define SPECIAL "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

FUZZ_SEEDS(FUZZ_SEED(SPECIAL "the\n##s\nthe\n\nünï\n"), FUZZ_SEED("\xef\xbb\xbf[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\n"),
	   FUZZ_SEED(SPECIAL "a \nb\t\n##\n"), FUZZ_SEED(SPECIAL "\xff\xfe\n"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct vocab vocab = {0};
	if (vocab_read(&vocab, fuzz_file("vocab", bytes, count)) == OK) {
		for (int32_t id = 0; id < vocab.count; id++) {
			int32_t found = vocab_find(&vocab, vocab.text[id], vocab.size[id]);
			BUG_IF(found < id && vocab.size[id] > 0); /* of identical entries the last one counts */
		}
		BUG_IF(vocab.mask < 0 || vocab.mask >= vocab.count);
	}
	vocab_release(&vocab);
	return 0;
}
