/* The option rows for making instances from text. */
#include "data/pretraining/instance_options.h"

#define ROW(member, role, value) OPTION_ROW(struct instance_options, member, role, value)

/* clang-format off */
const struct option instance_rows[] = {
	{ROW(min_seq_length, ROLE_RESULT, "N"), .section = "phase", .range = "0..65536", .fallback = "0", .rare = true,
	 .help = "drop instances with fewer tokens than this"},
	{ROW(masked_lm_prob, ROLE_RESULT, "P"), .section = "phase", .range = "0.01..0.9", .fallback = "0.15",
	 .alias = "mlm_probability mask_prob",
	 .help = "share of tokens to mask and predict; evaluations always mask 0.15"},
	{ROW(max_predictions_per_seq, ROLE_RESULT, "N"), .section = "phase", .range = "0..65536", .fallback = "0", .rare = true,
	 .help = "maximum number of masked tokens per instance; 0 = no limit"},
	{ROW(short_seq_prob, ROLE_RESULT, "P"), .section = "phase", .range = "0..1", .fallback = "0.1", .rare = true,
	 .help = "share of instances that are made shorter than max_seq_length"},
	{ROW(whole_word_mask, ROLE_RESULT, NULL), .section = "phase", .fallback = "false", .alias = "do_whole_word_mask",
	 .help = "mask all pieces of a word together (whole-word masking)"},
	{ROW(max_ngram, ROLE_RESULT, "N"), .section = "phase", .range = "1..16", .fallback = "1", .alias = "ngram max_ngrams",
	 .rare = true,
	 .help = "mask spans of up to N words; a span of n words is chosen with weight 1/n (Megatron uses 3)"},
	{ROW(next_sentence, ROLE_RESULT, "HOW"), .section = "phase", .range = "pairs|order|none|single|overlap",
	 .fallback = "pairs",
	 .help = "pairs: BERT's next-sentence prediction; order: predict whether two neighboring segments are swapped (ALBERT, "
	 "Megatron); none: running text without pairs; single: one sentence per instance; overlap: predict how many of their "
	 "words two texts share"},
	{ROW(running_text_share, ROLE_RESULT, "P"), .section = "phase", .range = "0..1", .fallback = "0", .rare = true,
	 .help = "with --next_sentence overlap, share of documents that give running text instead of such pairs"},
	{0},
};
/* clang-format on */

struct instance_settings instance_options_settings(const struct instance_options *options)
{
	return (struct instance_settings){
		.min_seq_length = (int32_t)options->min_seq_length,
		.masked_lm_prob = options->masked_lm_prob,
		.max_predictions_per_seq = (int32_t)options->max_predictions_per_seq,
		.short_seq_prob = options->short_seq_prob,
		.whole_word_mask = options->whole_word_mask,
		.max_ngram = (int32_t)options->max_ngram,
		.next_sentence = options->next_sentence,
		.running_text_share = options->running_text_share,
	};
}

enum status instance_vocab_check(const struct vocab *vocab)
{
	const struct {
		int32_t id;
		const char *what, *member;
	} needed[] = {{vocab->cls, "token before a text", "cls_token"},
		      {vocab->sep, "token after a text", "sep_token"},
		      {vocab->mask, "mask token", "mask_token"}};
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
		if (needed[i].id >= 0)
			continue;
		return error_hinted(
			error_set(ERR_DATA, "the vocabulary has no %s, which pre-training needs", needed[i].what),
			"if one of its entries is meant for that, name it as \"%s\" in tokenizer_config.json beside it",
			needed[i].member);
	}
	return OK;
}

void instance_settings_take_vocab(struct instance_settings *settings, const struct vocab *vocab)
{
	settings->vocab_size = vocab->count;
	settings->single = vocab->single.before > 0 ? vocab->single : template_usual(vocab->cls, vocab->sep, false);
	settings->pair = vocab->pair.before > 0 ? vocab->pair : template_usual(vocab->cls, vocab->sep, true);
	settings->mask = vocab->mask;
	settings->is_continuation = vocab->is_continuation;
}
