/* What a new run starts from: existing weights (where they are, what their vocabulary and configuration determine, and how they
 * get into the model), or new ones. */
#ifndef RUN_INITIAL_WEIGHTS_H
#define RUN_INITIAL_WEIGHTS_H

#include "base/option.h"
#include "text/vocab.h"
#include "weights/model_files.h"
#include "weights/model_folder.h"
#include "weights/model_weights.h"

/* The words of --init_tokens and --init_attention, in their order. */
enum init_tokens { INIT_TOKENS_MEAN, INIT_TOKENS_DRAW };
enum init_attention { INIT_ATTENTION_RANDOM, INIT_ATTENTION_NEIGHBORS };

struct initial_options {
	const char *vocab_file; /* of the run; NULL: that of the weights, or a learned one */
	const char *model;      /* a size, a configuration or weights; NULL: from the initial weights, or the amount of text */
	const char *init_checkpoint;         /* NULL: --model, if it names weights */
	const char *init_vocab;              /* of the weights; NULL: the one beside them */
	bool remap_vocab;                    /* the run's vocabulary differs from theirs */
	enum init_tokens init_tokens;        /* rows of tokens that their vocabulary lacks */
	enum position_policy init_positions; /* what to do where the model has more positions */
	enum init_attention init_attention;  /* of a new model: NEIGHBORS: heads begin by attending to neighbors
						(model/neighbor_attention.h) */
};
extern const struct option initial_rows[];

/* Zero-initialize; released also after a failure. */
struct initial_weights {
	const struct initial_options *given; /* borrowed */
	const char *path;                    /* as given; NULL: there are no initial weights */
	struct model_source source;
	struct model_files files; /* as they were when found */
	const char *vocab_path;   /* NULL: unknown */
	struct vocab vocab;
};

/* Does --model name trained weights, rather than a size or just a configuration? NULL does not. */
bool initial_weights_named(const char *model);
/* Finds the weights and reads their vocabulary. What cannot be opened is reported now, before any text is prepared. A resumed run
 * has no initial weights. `options` are those that `given` is part of. */
MUST_USE enum status initial_weights_find(struct initial_weights *out, const struct initial_options *given,
					  const struct options *options, bool resumed);
/* The vocabulary file for the run (NULL: one must be learned). If nobody has said whether it is cased and their vocabulary is
 * known, sets *cased to their casing. */
MUST_USE enum status initial_weights_text(const struct initial_weights *initial, struct options *options,
					  const char **out_vocab_file, bool *cased);
/* ERR_STATE if the run's vocabulary should equal theirs but does not; the message says where they differ. */
MUST_USE enum status initial_weights_check_vocab(const struct initial_weights *initial, const struct vocab *vocab);
/* Adapts their configuration to the run's vocabulary and its longest sequence, as far as the settings allow. */
void initial_weights_fit(const struct initial_weights *initial, int32_t vocab_count, int64_t longest,
			 struct model_config *config);
/* Loads them into the model, replacing its weights, and logs what came from where. Without initial weights, sets up how attention
 * starts out. */
MUST_USE enum status initial_weights_load(const struct initial_weights *initial, const struct vocab *vocab, struct model *model,
					  struct replica *replica);
void initial_weights_release(struct initial_weights *initial);

#endif
