/* A task: how its files become examples, which head answers them, how answers are scored and written. A row of the table in
 * task.c and a file each; knows no objective and no trainer. */
#ifndef TASKS_TASK_H
#define TASKS_TASK_H

#include "base/buffer.h"
#include "base/measures.h"
#include "data/labelled.h"
#include "formats/bad_records.h"
#include "model/heads.h"
#include "tasks/contrastive.h"
#include "tasks/examples.h"
#include "tasks/labels.h"
#include "tasks/mentions.h"
#include "tasks/tags.h"
#include "text/tokenizer.h"

/* What a set of examples is for. */
enum task_use {
	TASK_TRAIN,
	TASK_SCORE,   /* labels are known to training */
	TASK_PREDICT, /* labels may be absent */
};

enum squad_scorer {
	SQUAD_SCORER_AUTO,  /* by the answers' letters */
	SQUAD_SCORER_SQUAD, /* evaluate-v1.1.py, evaluate-v2.0.py */
	SQUAD_SCORER_CMRC,  /* cmrc2018_evaluate.py */
};

/* Of questions about paragraphs. 0 and false: not given, then Google's defaults, in brackets. */
struct squad_task_settings {
	int32_t doc_stride;               /* tokens from the beginning of a window to the next one's (128) */
	int32_t max_query_length;         /* tokens of a question (64) */
	int32_t n_best_size;              /* (20) */
	int32_t max_answer_length;        /* tokens (30) */
	bool version_2_with_negative;     /* a paragraph may have no answer: SQuAD 2.0 */
	double null_score_diff_threshold; /* no answer if it leads the best one by more than this (0) */
	enum squad_scorer scorer;
	bool version_is_given, threshold_is_given, scorer_is_given;
	bool find_threshold; /* after training, on the first dev set */
};
/* Writes what `given` has over what is in *own. */
void squad_task_settings_take(struct squad_task_settings *own, const struct squad_task_settings *given);

/* Of two mentions in a text (tasks/relation.c). */
struct relation_task_settings {
	const char *markers;       /* "A,B,C,D": what stands around the first and the second mention; NULL: found in training */
	enum marker_tokens tokens; /* training settles it */
	bool reads_markers;        /* the head reads the rows of both opening markers instead of [CLS] */
	struct mention_form form;  /* found in training, recorded for later */
};

/* Of embeddings and rerankers. */
struct embedding_task_settings {
	int32_t hidden_size;               /* of the model */
	double temperature;                /* 0: the usual one (0.05) */
	unsigned pooling;                  /* POOLING_MEAN or POOLING_CLS; 0: the mean */
	enum contrastive_kind scored_loss; /* of pairs with scores: COSENT or COSINE */
	const char *negative_columns;      /* names or numbers, commas between; NULL: found */
	/* What is put before the first text of an example, and before its others, as it stands; NULL or "": nothing. */
	const char *query_prompt, *document_prompt;
	/* They are those of a model's folder, where nobody said what they are for: they go with files of pairs and triplets, whose
	 * texts are queries and documents. Else with all. */
	bool prompts_of_folder;
};

/* As given, or as recorded of training (bertc_task.json). All is borrowed. */
struct task_settings {
	const struct layout *layout; /* of a published task; NULL: none */
	const struct tokenizer *tokenizer;
	int32_t max_seq_length;
	struct column_choice columns;    /* by name or number from 1; NULL: found */
	bool needs_pairs;                /* a file of texts alone is an error */
	struct column_choice trained;    /* of the training set: taken if a file has them */
	struct label_list given, folder; /* labels of --labels; of the model's folder */
	const char *class_weights;       /* NULL, "balanced" or "a:2,b:1" */
	enum label_cells cells;          /* of several labels: found in training, recorded for later */
	enum tag_words words;            /* of tagged text: found in training, recorded for later */
	struct tag_form tags; /* of tagged words, as files have them: found in training, recorded for later; separator 0:
				 not known, and found in the labels of the model */
	struct squad_task_settings squad;
	struct embedding_task_settings embedding;
	struct relation_task_settings relation;
	const char *negative_label; /* the class that is left out of micro F1; NULL: none is */
	struct vocab *vocab;        /* of training: the tokenizer's, whose free rows may become markers; else NULL */
	struct bad_records *bad;
	const struct example_piece *piece; /* of predictions: this is read instead of a file; NULL: files are read whole */
	bool quiet; /* nothing is said of texts that are cut: a service answers one request after the other */
};

/* A text in memory, or two. Of questions `pair` is the paragraph. */
struct task_text {
	const char *text, *pair; /* pair NULL: a text alone */
};

/* The outputs of a model for every example of a set, in its order: example e has values[starts[e]] to values[starts[e + 1]], rows
 * of as many numbers as the head gives. */
struct task_outputs {
	int64_t count;   /* of examples */
	int64_t *starts; /* [count + 1] */
	float *values;
};

/* One set of examples, read and encoded. Zero-initialise. */
struct task_set {
	const char *name; /* "" for the first of its kind */
	enum task_use use;
	struct labelled_set encoded;
	struct example_set examples; /* of tasks whose files are tables */
	void *own;                   /* what other tasks keep */
	bool has_labels;
	int64_t answer_count;          /* texts, sentences or questions that put() is asked for; encode() tells where they are no
					  examples (task_answers()) */
	int64_t cut_count, cut_tokens; /* texts that were too long, and what was cut off them */
};

struct task;
/* What is known of a task in a run or a session: its labels above all. Zero-initialise but for task and settings. */
struct task_state {
	const struct task *task;
	struct task_settings settings;
	struct label_set labels; /* ordered once training is read, or as recorded */
	bool pairs;              /* examples have two texts */
	struct pool *pool;       /* borrowed: whose threads may help scores; NULL: none */
	const char
		*decides; /* the measure that chooses the best checkpoint, where the first dev set says which; NULL: the task */
	float *label_weights; /* [labels.count], or NULL */
};

/* An answer beside what is right, for people to look at. Texts are valid until the reader returns. */
struct task_answer {
	int64_t number;          /* from 1, in the order of the files */
	const char *text, *pair; /* what was asked; pair NULL: a text alone */
	const char *right, *predicted;
	double loss; /* of this answer; NaN: unknown */
	bool wrong;
};
/* Takes one answer after the other. */
struct task_answer_reader {
	enum status (*take)(void *context, const struct task_answer *answer);
	void *context;
};

struct task {
	const char *name;         /* of --task */
	const char *summary;      /* for the help */
	const char *architecture; /* transformers' class: "BertForSequenceClassification" */
	const char *problem_type; /* as in config.json; NULL: it has none */
	enum task_input input;    /* of tables */
	enum task_target target;
	int32_t max_seq_length; /* where nothing is said; 0: 128 */
	const char *decides;    /* the measure that chooses the best checkpoint, unless a published layout says another */
	/* Reads files into a set, in their order. TASK_TRAIN also finds the labels. */
	enum status (*read)(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count);
	/* The same from memory, for predictions: the set borrows the texts. NULL: the task's examples are more than texts. */
	enum status (*take)(struct task_state *state, struct task_set *set, const struct task_text *texts, int64_t count);
	/* Makes set->encoded. */
	enum status (*encode)(struct task_state *state, struct task_set *set);
	void (*heads)(const struct task_state *state, struct model_heads *out);
	/* Adds the measures of a whole set (which has labels). */
	enum status (*score)(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			     struct measures *out);
	/* Files of results for a set into a folder. */
	enum status (*write)(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			     const char *folder);
	/* Appends the prediction for answer number `example` of task_answers() as a JSON object (no line end). */
	enum status (*put)(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			   int64_t example, struct buffer *out);
	/* The same as transformers' pipeline of this task would print it; NULL: there is no such pipeline. */
	enum status (*put_pipeline)(const struct task_state *state, const struct task_set *set,
				    const struct task_outputs *outputs, int64_t example, struct buffer *out);
	/* Hands over the answers to a set that has labels. NULL: it has none that a person could compare. */
	enum status (*examine)(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			       struct task_answer_reader reader);
	/* After training: what is still open is chosen so that the answers to the first dev set are best. NULL: nothing is. */
	enum status (*tune)(struct task_state *state, const struct task_set *set, const struct task_outputs *outputs);
	/* Of a task whose loss is over the vectors of a whole step at a time (LOSS_VECTORS): the mean over its examples, which
	 * are some of `set`, and its gradient for each vector (NULL: not wanted). NULL: losses are the heads'. */
	enum status (*loss)(const struct task_state *state, const struct task_set *set, const struct contrastive_step *step,
			    struct pool *pool, struct contrastive_scratch *scratch, double *out, float *gradients);
	void (*close_set)(struct task_set *set); /* frees set->own; NULL: there is none */
};

/* The task of this name, as --task has it; a published task's name gives the kind it is of, and its layout. ERR_USAGE with the
 * names there are. */
MUST_USE enum status task_find(const char *name, const struct task **out, const struct layout **out_layout);
/* The task whose head an architecture has, with the problem type (may be NULL) and the number of its outputs; NULL: none. */
const struct task *task_of_architecture(const char *architecture, const char *problem_type, int32_t outputs);
/* All tasks, `*count` of them. */
const struct task *const *tasks_all(int *count);

/* What put() can be asked for: the examples, unless the task cuts its texts into several or leaves some out. Numbers from 0 in
 * the order of the files. */
static inline int64_t task_answers(const struct task_set *set)
{
	return set->answer_count > 0 ? set->answer_count : set->encoded.example_count;
}

/* The measure that chooses the best checkpoint. Known once training is read. */
const char *task_decides(const struct task_state *state);

void task_set_release(const struct task_state *state, struct task_set *set);
void task_state_release(struct task_state *state);
/* The labels as a model's folder has them, in the order of its outputs, instead of those of training. */
MUST_USE enum status task_state_labels(struct task_state *state, const char *const *names, int64_t count);
/* Room for the outputs of every example of a set under a head: values are zero. */
MUST_USE enum status task_outputs_create(struct task_outputs *out, const struct labelled_set *set, const struct head *head);
void task_outputs_release(struct task_outputs *outputs);
/* Outputs of one example. */
static inline const float *task_output(const struct task_outputs *outputs, int64_t example)
{
	return outputs->values + outputs->starts[example];
}

/* Cuts two texts of *a and *b tokens so that both fit into `room`: the longer loses its last token, the second of equal ones,
 * until they do (google-research/bert). */
void task_cut_pair(int64_t *a, int64_t *b, int64_t room);
/* One or two texts as [CLS] A [SEP] or [CLS] A [SEP] B [SEP], cut to `most` tokens: of a pair the longer text loses its last
 * token, the second of equal ones, until it fits (google-research/bert). `room` has `most` ids. */
struct encoded_text {
	int32_t count, second; /* tokens; of segment 0 */
	int32_t cut;           /* tokens cut off */
};
void task_join_tokens(const struct vocab *vocab, const struct tokens *text, const struct tokens *pair, int32_t most, int32_t *ids,
		      struct encoded_text *out); /* of tokens; pair NULL: one text */
MUST_USE enum status task_encode_text(const struct tokenizer *tokenizer, struct tokens scratch[2], const char *text,
				      const char *pair, int32_t most, int32_t *ids, struct encoded_text *out);

/* ---- What rows of the table share ---- */

/* Reads tables into set->examples, in the order of their rows; labels stay text. Training tells state->pairs. */
MUST_USE enum status task_read_tables(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count);
/* The same from memory. */
MUST_USE enum status task_take_texts(struct task_state *state, struct task_set *set, const struct task_text *texts,
				     int64_t count);
/* Gives the labels of training their order, says which there are, and reads their weights. */
MUST_USE enum status task_order_labels(struct task_state *state);
/* Adds example `number` of a set to what encode() makes. A bad one is ERR_DATA with file and line, and has added nothing. */
typedef enum status task_example_adder(void *context, int64_t number);
/* Adds all examples of tables. Bad ones are left out of set->examples, too, and counted, unless they are to be predicted: each of
 * those has an answer. No example left is ERR_DATA. Says how many texts were cut. */
MUST_USE enum status task_add_examples(struct task_state *state, struct task_set *set, task_example_adder *add, void *context);
/* Says in the log how many texts were cut, if any were. */
void task_log_cut(const struct task_set *set, int32_t most);
/* Index of the largest of count > 0 values, the first of equal ones. */
int32_t task_best(const float *values, int64_t count);
/* Softmax of count > 0 logits, in double. */
void task_probabilities(const float *logits, int64_t count, double *out);
/* The probability of one logit, in double. */
double task_sigmoid(double logit);

extern const struct task task_embedding, task_reranking, task_rewriting;
extern const struct task task_classification, task_regression, task_multilabel, task_choice, task_tagging, task_squad,
	task_relation;

#endif
