/* Edits against all possible edits, and the texts that they produce. */
#include "base/rng.h"
#include "tasks/edits.h"
#include "test.h"

enum { SOURCE_MOST = 3, COPIED_MOST = 4, MADE_MOST = 32 };

/* Applies edits to keys, by their definition. */
static int64_t make(const struct edit_texts *texts, const struct edit *edits, int64_t made[MADE_MOST])
{
	int64_t count = 0;
	for (int64_t i = 0; i <= texts->source_count; i++) {
		for (int32_t k = edits[i].first; k >= 0 && k <= edits[i].last; k++)
			made[count++] = texts->copied[k];
		if (i < texts->source_count && !edits[i].deleted)
			made[count++] = texts->source[i];
	}
	return count;
}

static int64_t cost_of(const struct edit_texts *texts, const struct edit *edits)
{
	int64_t cost = 0;
	for (int64_t i = 0; i <= texts->source_count; i++)
		cost += edits[i].deleted + (edits[i].first >= 0);
	return cost;
}

/* The smallest number of deletions and insertions that give the target, over all possibilities from position `i` on; -1:
 * impossible. */
static int64_t fewest(const struct edit_texts *texts, struct edit *edits, int64_t i)
{
	int64_t best = -1, made[MADE_MOST];
	if (i > texts->source_count) {
		bool same = make(texts, edits, made) == texts->target_count &&
			    memcmp(made, texts->target, (size_t)texts->target_count * sizeof *made) == 0;
		return same ? cost_of(texts, edits) : -1;
	}
	for (int deleted = 0; deleted < (i < texts->source_count ? 2 : 1); deleted++) {
		for (int32_t first = -1; first < texts->copied_count; first++) {
			for (int32_t last = first; last < (first < 0 ? 0 : texts->copied_count); last++) {
				if (first >= 0 && texts->copied[last] < 0)
					break; /* a run cannot cross a separator */
				edits[i] = (struct edit){.deleted = deleted, .first = first, .last = last};
				int64_t cost = fewest(texts, edits, i + 1);
				if (cost >= 0 && (best < 0 || cost < best))
					best = cost;
			}
		}
	}
	return best;
}

static void the_cheapest_edits_are_found(void **state)
{
	int expressible = 0, others = 0;
	for (uint32_t trial = 0; trial < 150; trial++) {
		struct rng rng = rng_start(trial, RNG_TEST, 1);
		int64_t source[SOURCE_MOST], target[6], copied[COPIED_MOST], made[MADE_MOST], missing;
		struct edit_texts texts = {.source = source,
					   .source_count = rng_below(&rng, SOURCE_MOST + 1),
					   .target = target,
					   .target_count = rng_below(&rng, 7),
					   .copied = copied,
					   .copied_count = COPIED_MOST};
		for (int i = 0; i < SOURCE_MOST; i++)
			source[i] = rng_below(&rng, 3);
		for (int i = 0; i < 6; i++)
			target[i] = rng_below(&rng, trial % 3 == 0 ? 4 : 3);
		for (int i = 0; i < COPIED_MOST; i++)
			copied[i] = (int64_t)rng_below(&rng, 4) - 1;
		texts.preferred = (int32_t)rng_below(&rng, COPIED_MOST + 1);
		struct edit found[SOURCE_MOST + 1], tried[SOURCE_MOST + 1];
		assert_ok(edits_find(&texts, found, &missing));
		int64_t best = fewest(&texts, tried, 0);
		assert_int_equal(missing == 0, best >= 0);
		bool unknown = false;
		for (int64_t i = 0; i <= texts.source_count; i++)
			unknown |= found[i].unknown;
		assert_int_equal(unknown, missing > 0);
		if (missing > 0) {
			others++;
			continue;
		}
		expressible++;
		assert_int_equal(cost_of(&texts, found), best);
		assert_int_equal(make(&texts, found, made), texts.target_count);
		assert_memory_equal(made, target, (size_t)texts.target_count * sizeof *made);
	}
	assert_true(expressible > 40 && others > 40);
}

static void copies_come_from_the_last_preferred_place(void **state)
{
	/* copied: 5 6 | 5 | 5 6, of which the first three are preferred */
	static const int64_t source[] = {9}, copied[] = {5, 6, -1, 5, -1, 5, 6}, one[] = {5, 9}, two[] = {5, 6, 9};
	struct edit_texts texts = {
		.source = source, .source_count = 1, .target = one, .target_count = 2, .copied = copied, .copied_count = 7};
	struct edit edits[2];
	int64_t missing;
	texts.preferred = 5;
	assert_ok(edits_find(&texts, edits, &missing));
	assert_int_equal(edits[0].first, 3);
	assert_int_equal(edits[0].last, 3);
	assert_false(edits[0].deleted);
	texts.target = two;
	texts.target_count = 3;
	assert_ok(edits_find(&texts, edits, &missing));
	assert_int_equal(edits[0].first, 0);
	assert_int_equal(edits[0].last, 1);
	texts.preferred = 0;
	assert_ok(edits_find(&texts, edits, &missing));
	assert_int_equal(edits[0].first, 5);
	assert_int_equal(edits[1].first, -1);
}

/* Splits a text at white space and single characters: words, and each character that is not ASCII. */
static int64_t cut(const char *text, struct edit_token out[32])
{
	int64_t count = 0;
	for (size_t at = 0; text[at];) {
		size_t length = 1;
		if (text[at] == ' ') {
			at++;
			continue;
		}
		if (text[at] & 0x80)
			while ((text[at + length] & 0xC0) == 0x80)
				length++;
		else if (!strchr(",.?!()", text[at]))
			length = strcspn(text + at, " ,.?!()\xE4\xE5\xE6\xE7\xE8\xE9");
		out[count++] = (struct edit_token){text, (uint32_t)at, (uint32_t)(at + length)};
		at += length;
	}
	return count;
}

/* Words are separated by spaces, ideographs are not. */
static void texts_are_put_together(void **state)
{
	static const struct {
		const char *source, *context;
		struct edit edits[8];
		const char *expected;
	} cases[] = {
		{"它的作者",
		 "你知道简爱吗",
		 {{true, 3, 4, false}, {0, -1, -1, 0}, {0, -1, -1, 0}, {0, -1, -1, 0}, {0, -1, -1, 0}},
		 "简爱的作者"},
		{"how old is it ?",
		 "the moon",
		 {{0, -1, -1, 0}, {0, -1, -1, 0}, {0, -1, -1, 0}, {true, 0, 1, 0}, {0, -1, -1, 0}, {0, -1, -1, 0}},
		 "how old is the moon ?"},
		{"how old is it?",
		 "the moon",
		 {{0, -1, -1, 0}, {0, -1, -1, 0}, {0, -1, -1, 0}, {true, 0, 1, 0}, {0, -1, -1, 0}, {0, -1, -1, 0}},
		 "how old is the moon?"},
		{"it is  late",
		 "the moon",
		 {{true, 0, 1, 0}, {true, -1, -1, 0}, {0, -1, -1, 0}, {0, -1, -1, 0}},
		 "the moon  late"},
		{"and why", "the moon", {{0, -1, -1, 0}, {0, -1, -1, 0}, {0, 0, 1, 0}}, "and why the moon"},
		{"why, ", "the moon", {{0, -1, -1, 0}, {0, -1, -1, 0}, {0, 0, 1, 0}}, "why, the moon "},
		{"iphonex 好", "为什么", {{0, -1, -1, 0}, {0, 0, 2, 0}, {0, -1, -1, 0}}, "iphonex 为什么好"},
		{"it late", "x", {{true, -1, -1, 0}, {0, -1, -1, 0}, {0, -1, -1, 0}}, "late"},
		{"", "the moon", {{0, 1, 1, 0}}, "moon"},
		{" a  b ", "x", {{0, -1, -1, 0}, {0, -1, -1, 0}, {0, -1, -1, 0}}, " a  b "},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct edit_token source[32], context[32];
		struct buffer out = {0};
		int64_t count = cut(cases[i].source, source);
		cut(cases[i].context, context);
		assert_ok(edits_apply(cases[i].source, source, count, cases[i].edits, context, &out, NULL));
		assert_string_equal(buffer_string(&out), cases[i].expected);
		buffer_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cheapest_edits_are_found),
		cmocka_unit_test(copies_come_from_the_last_preferred_place),
		cmocka_unit_test(texts_are_put_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
