/* What the model predicts for a few held-out sentences as it learns: the sentences and their blanks are chosen once, from
 * the held-out shards alone, so every run on them shows the same ones. Kept in samples.jsonl in the run folder. */
#ifndef REPORT_SAMPLES_H
#define REPORT_SAMPLES_H

#include <stdint.h>
#include "base/buffer.h"
#include "base/file.h"
#include "data/shard.h"
#include "infer/predictor.h"
#include "report/task.h"

#define SAMPLE_SENTENCES 6
#define SAMPLE_BLANKS 2  /* of a sentence */
#define SAMPLE_TOKENS 30 /* of a sentence, at most */
#define SAMPLE_SHOWN 5   /* predictions of a blank */
#define SAMPLE_RANKS 100 /* the right word's place is known up to here */

struct sample_sentence {
	int32_t ids[SAMPLE_TOKENS], count; /* with [MASK] in place of the blanks */
	int32_t blanks;
	int32_t answers[SAMPLE_BLANKS];
};

/* The predictions of one evaluation. */
struct sample_blank {
	int32_t ids[SAMPLE_SHOWN];
	float probabilities[SAMPLE_SHOWN];
	int32_t place;     /* of the right word, from 1; 0 = beyond SAMPLE_RANKS */
	float probability; /* of the right word, where it has a place */
};
struct sample_evaluation {
	int64_t step, tokens;
	struct sample_blank blanks[SAMPLE_SENTENCES][SAMPLE_BLANKS];
};

struct samples {
	char path[PATH_BYTES];
	struct sample_sentence sentences[SAMPLE_SENTENCES];
	int count; /* of sentences; 0: none was fit */
	struct activations *activations;
	struct predictor predictor;
	struct sample_evaluation *evaluations;
	int64_t evaluation_count, evaluation_capacity;
};

/* Chooses sentences and takes what samples.jsonl in `folder` holds of earlier evaluations up to state->evaluated_step.
 * Zero-initialise; released also after a failure. `model`, `replica` and `vocab` are borrowed. */
MUST_USE enum status samples_open(struct samples *samples, const char *folder, const struct shard *held_out,
				  int64_t held_out_count, const struct model *model, struct replica *replica,
				  const struct vocab *vocab, const struct report_progress *state);
/* Predicts and appends a line to samples.jsonl. */
MUST_USE enum status samples_evaluate(struct samples *samples, const struct report_progress *state);
void samples_release(struct samples *samples);

/* The newest predictions, and some of before, as a section of a page. */
void samples_html(const struct samples *samples, struct buffer *out);
/* The two above as a report's preview. */
struct report_preview samples_preview(struct samples *samples);

/* The tokens of a sentence as a reader would write them: pieces joined, no space before a full stop. Calls
 * put(context, token, id, glued) for each token: `glued` means no space before it. */
void samples_spell(const struct vocab *vocab, const int32_t *ids, int32_t count,
		   void (*put)(void *context, const char *text, int32_t id, bool glued), void *context);

#endif
