/* The contents of a pre-training run's report: masked words and next sentences, compared with guessing and word frequencies. */
#ifndef TRAIN_PRETRAINING_REPORT_H
#define TRAIN_PRETRAINING_REPORT_H

#include "data/pretraining/instances.h"
#include "data/pretraining/token_frequencies.h"
#include "report/samples.h"
#include "text/vocab.h"

struct pretraining_report_facts {
	int32_t vocab_size;                          /* the model's */
	const struct token_frequencies *frequencies; /* of the training tokens */
	const struct vocab *vocab;                   /* borrowed */
	enum next_sentence next_sentence;            /* what the next-sentence head learns; NONE: nothing */
	struct samples *samples;                     /* borrowed */
};
struct report_task pretraining_report(const struct pretraining_report_facts *facts);

#endif
