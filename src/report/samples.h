/* The model's predictions for a few held-out sentences as it learns. The choice of sentences and blanks depends only on the
 * held-out shards, so all runs on the same shards show the same ones. Predictions are kept in samples.jsonl in the run folder. */
#ifndef REPORT_SAMPLES_H
#define REPORT_SAMPLES_H

#include <stdint.h>
#include "base/buffer.h"
#include "base/file.h"
#include "data/shard.h"
#include "infer/predictor.h"
#include "report/task.h"

#define SAMPLE_SENTENCES 6
#define SAMPLE_BLANKS 2  /* maximum per sentence */
#define SAMPLE_TOKENS 30 /* maximum per sentence */
#define SAMPLE_SHOWN 5   /* predictions shown per blank */
#define SAMPLE_RANKS 100 /* the rank of the right word is known up to here */

struct sample_sentence {
	int32_t ids[SAMPLE_TOKENS], count; /* with [MASK] for the blanks */
	int32_t blanks;
	int32_t answers[SAMPLE_BLANKS];
};

/* The predictions for one blank in one evaluation. */
struct sample_blank {
	int32_t ids[SAMPLE_SHOWN];
	float probabilities[SAMPLE_SHOWN];
	int32_t place;     /* rank of the right word, from 1; 0 = beyond SAMPLE_RANKS */
	float probability; /* of the right word, if it has a rank */
};
struct sample_evaluation {
	int64_t step, tokens;
	struct sample_blank blanks[SAMPLE_SENTENCES][SAMPLE_BLANKS];
};

struct samples {
	char path[PATH_BYTES];
	struct sample_sentence sentences[SAMPLE_SENTENCES];
	int count; /* of sentences; 0: none was suitable */
	struct activations *activations;
	struct predictor predictor;
	struct sample_evaluation *evaluations;
	int64_t evaluation_count, evaluation_capacity;
};

/* Chooses sentences and reads earlier evaluations, up to state->evaluated_step, from samples.jsonl in `folder`. Zero-initialize
 * *samples, and release it even after a failure. `model`, `replica`, and `vocab` are borrowed. */
MUST_USE enum status samples_open(struct samples *samples, const char *folder, const struct shard *held_out,
				  int64_t held_out_count, const struct model *model, struct replica *replica,
				  const struct vocab *vocab, const struct report_progress *state);
/* Predicts the blanks and appends a line to samples.jsonl. */
MUST_USE enum status samples_evaluate(struct samples *samples, const struct report_progress *state);
void samples_release(struct samples *samples);

/* Appends the latest predictions and some earlier ones as a section of a page. */
void samples_html(const struct samples *samples, struct buffer *out);
/* samples_evaluate() and samples_html() as a report's preview. */
struct report_preview samples_preview(struct samples *samples);

/* Spells out the tokens of a sentence as people would write them: pieces joined, no space before a period. Calls
 * put(context, token, id, glued) for each token; `glued` means that no space precedes it. */
void samples_spell(const struct vocab *vocab, const int32_t *ids, int32_t count,
		   void (*put)(void *context, const char *text, int32_t id, bool glued), void *context);

#endif
