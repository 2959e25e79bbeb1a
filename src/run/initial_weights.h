/* What a new run begins with: another's weights, where they are, what their vocabulary and configuration decide, and how they get
 * into the model; or new ones. */
#ifndef RUN_INITIAL_WEIGHTS_H
#define RUN_INITIAL_WEIGHTS_H

#include "run/choices.h"
#include "text/vocab.h"
#include "weights/model_files.h"
#include "weights/model_folder.h"

struct initial_settings {
	const char *checkpoint;  /* --init_checkpoint; NULL: `model`, if it names weights */
	const char *model;       /* --model; NULL: open */
	const char *vocab;       /* of the weights; NULL: beside them */
	const char *vocab_file;  /* of the run; NULL: theirs, or learned */
	bool remap_vocab;        /* the run's vocabulary is another */
	const char *tokens;      /* "mean", "draw": those that their vocabulary lacks */
	const char *positions;   /* "same", "tile", "draw": where the model has more of them */
	bool neighbor_attention; /* of a new model: heads begin by looking at neighbors (model/neighbor_attention.h) */
	bool attention_given;    /* ... and that was asked for, not just part of a recipe */
};

/* Zero-initialise; released also after a failure. */
struct initial_weights {
	const struct initial_settings *settings; /* borrowed */
	const char *path;                        /* as given; NULL: there are none */
	struct model_source source;
	struct model_files files; /* when they were found */
	const char *vocab_path;   /* NULL: not known */
	struct vocab vocab;
};

/* Does --model name trained weights: neither a size nor a configuration alone? NULL does not. */
bool initial_weights_named(const char *model);
/* Finds them and reads their vocabulary. What cannot be opened is reported now, before text is prepared. A resumed run
 * has none. */
MUST_USE enum status initial_weights_find(struct initial_weights *out, const struct initial_settings *settings, bool resumed);
/* The vocabulary file the run is to use (NULL: to learn one); if `*cased` is -1 and they ask for a casing, that one as a choice.
 */
MUST_USE enum status initial_weights_text(const struct initial_weights *initial, struct choices *choices,
					  const char **out_vocab_file, int *cased);
/* ERR_STATE that says where the run's vocabulary is not theirs, if it should be. */
MUST_USE enum status initial_weights_check_vocab(const struct initial_weights *initial, const struct vocab *vocab);
/* Fits their configuration to the run's vocabulary and its longest sequence, as far as the settings allow. */
void initial_weights_fit(const struct initial_weights *initial, int32_t vocab_count, int64_t longest,
			 struct model_config *config);
/* Loads them over the model's weights, and says what came from where. Without any, sets how attention begins. */
MUST_USE enum status initial_weights_load(const struct initial_weights *initial, const struct vocab *vocab, struct model *model,
					  struct replica *replica);
void initial_weights_release(struct initial_weights *initial);

#endif
