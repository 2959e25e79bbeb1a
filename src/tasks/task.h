/* A task: how its files become examples, which head answers them, how answers are scored and written, and what other folders must
 * know of it. Each task is a row of the table in task.c and a file or room of its own; it knows nothing of objectives and
 * trainers. The section on tasks of docs/developers/tour.md says how to add one. */
#ifndef TASKS_TASK_H
#define TASKS_TASK_H

#include "base/buffer.h"
#include "base/json.h"
#include "base/measures.h"
#include "base/option.h"
#include "data/labeled.h"
#include "data/row_hashes.h"
#include "formats/bad_records.h"
#include "model/heads.h"
#include "tasks/calibration.h"
#include "tasks/contrastive.h"
#include "tasks/examples.h"
#include "tasks/labels.h"
#include "tasks/measures.h"
#include "tasks/windows.h"
#include "text/tokenizer.h"
#include "weights/sentence_folder.h"

/* What a set of examples is for. */
enum task_use {
	TASK_TRAIN,
	TASK_SCORE,   /* labels must have occurred in training */
	TASK_PREDICT, /* labels may be absent */
};

/* What all tasks share: as given, or as recorded by training (bertc_task.json). Everything is borrowed. */
struct task_settings {
	const struct layout *layout; /* of a published task; NULL: not one */
	const struct tokenizer *tokenizer;
	int32_t max_seq_length, hidden_size, vocab_size; /* the last two: of the model */
	struct column_choice columns;                    /* by name or number from 1; NULL: found automatically */
	bool needs_pairs;                                /* a file of texts alone is an error */
	struct column_choice trained;                    /* of the training set: used if a file has them */
	struct label_list given, folder;                 /* labels from --labels; from the model's folder */
	bool given_by_model;          /* `given` comes from the model instead: names for tags that files write as numbers */
	const char *class_weights;    /* NULL, "balanced" or "a:2,b:1" */
	const char *negative_columns; /* of texts that do not match: names or numbers, separated by commas; NULL: found */
	const char *negative_label;   /* the class left out of micro F1; NULL: none */
	const struct calibration_options *calibration; /* for tune(); NULL: none */
	enum text_windowing long_texts;                /* for tasks that read windows */
	int64_t doc_stride;  /* tokens from the beginning of a window to that of the next; 0: half a window */
	struct vocab *vocab; /* for training: the tokenizer's, whose unused entries may become markers; else NULL */
	struct bad_records *bad;
	const struct example_piece *piece; /* for predictions: read only this part of the file; NULL: files are read whole */
	bool quiet;   /* do not log that texts were cut: for a service, which answers one request after the other */
	int64_t most; /* how many texts, sentences, or questions of each set are used, from its beginning; 0: all */
};

/* One or two texts in memory. For questions, `pair` is the paragraph. */
struct task_text {
	const char *text, *pair; /* pair NULL: a text alone */
};

/* The outputs of a model for all examples of a set, in its order: example e has values[starts[e]] to values[starts[e + 1]], in
 * rows as wide as the head's output. */
struct task_outputs {
	int64_t count;   /* number of examples */
	int64_t *starts; /* [count + 1] */
	float *values;
};

/* One set of examples, read and encoded. Zero-initialize. */
struct task_set {
	const char *name; /* "" for the first of its kind */
	enum task_use use;
	struct labeled_set encoded;
	struct example_set examples; /* for tasks whose files are tables */
	void *own;                   /* data of other tasks */
	bool has_labels;
	int64_t answer_count; /* number of texts, sentences or questions to call put() for; set by encode() if these are not the
				 examples (task_answers()) */
	int64_t *windows; /* [answer_count + 1] the first example of each text, if long ones have several; NULL: they have not */
	int64_t cut_count, cut_tokens; /* number of texts that were too long; tokens cut off them */
	int64_t cut_questions;         /* number of questions that were too long; passages are read in windows */
};

struct task;
/* What is known about a task in a run or a session, above all its labels. Zero-initialize, set the settings, and open. */
struct task_state {
	const struct task *task;
	struct task_settings settings;
	void *own;                      /* the task's own settings (task.settings_bytes); set by task_state_open() */
	struct label_set labels;        /* ordered once training is read, or as recorded */
	bool pairs;                     /* examples have two texts each */
	bool scores_are_outputs;        /* as in struct task_config: no sigmoid, although task.output_is_logit */
	struct pool *pool;              /* borrowed; its threads may help to compute scores; NULL: none */
	const char *decides;            /* the measure that chooses the best checkpoint, if that depends on the files; NULL: the
					   task's */
	float *label_weights;           /* [labels.count] of classes or, with several labels, of those that apply; or NULL */
	struct calibration calibration; /* as found by tune(), or as recorded */
	struct row_hashes trained_rows; /* of the training files, a sample; none if the record has none */
};

/* A part of a text that an answer or the right answer marks. */
struct task_span {
	size_t begin, end;      /* bytes */
	const char *label;      /* as long as the set lives */
	bool predicted, agrees; /* predicted or right; both */
};

/* An answer together with the right one, for people to look at. Strings are valid until the reader returns. */
struct task_answer {
	int64_t number;          /* from 1, in the order of the files */
	const char *text, *pair; /* what was asked; pair NULL: a text alone */
	const char *right, *predicted;
	const struct task_span *spans; /* [span_count] in the order of the text, if answers are spans; else NULL */
	int64_t span_count;
	double loss; /* of this answer; NaN: unknown */
	bool wrong;
};
/* Receives the answers one by one. */
struct task_answer_reader {
	enum status (*take)(void *context, const struct task_answer *answer);
	void *context;
};

/* What others show of a task's answers: train/labeled_report.c has a row for each. */
enum task_view {
	VIEW_CLASSES,   /* a class for each example */
	VIEW_NUMBERS,   /* a number for each example */
	VIEW_LABELS,    /* any number of labels for each example */
	VIEW_ENTITIES,  /* tags of words, which mark entities of several types */
	VIEW_CHOICES,   /* one of several choices */
	VIEW_RANKINGS,  /* numbers that rank the texts of a query */
	VIEW_VECTORS,   /* vectors, of which nothing is shown */
	VIEW_QUESTIONS, /* answers found in a paragraph, or none */
	VIEW_TEXTS,     /* texts */
};

/* The names under which --data_dir looks for a task's files. */
struct data_names {
	const char *train[LAYOUT_NAMES], *dev[LAYOUT_NAMES], *test[LAYOUT_NAMES];
};

/* A run of the task that begins. */
struct task_beginning {
	const char *model;              /* the folder that was named, for messages */
	bool has_dev;                   /* there are dev sets */
	struct sentence_folder *folder; /* if the task makes vectors: what the model's folder says, then what is written */
	/* Notes a value that was chosen for an option. */
	enum status (*chose)(void *context, const char *option, const char *value);
	void *context;
};

/* Makes the vectors, of length 1, that the model in `folder` gives to texts, of which some are the first of their examples. The
 * caller frees *out, [count, width]. */
typedef enum status task_vector_maker(void *context, const char *folder, const char *const *texts, const bool *are_first,
				      int64_t count, float **out, int64_t *out_width);

struct task {
	const char *name;               /* of --task */
	const char *const *other_names; /* in other programs: those of transformers' pipelines and scripts, and of the Hub; ends
					   with NULL. NULL: none */
	const char *summary;            /* for the help */
	const char *architecture;       /* transformers' class: "BertForSequenceClassification" */
	const char *problem_type;       /* as in config.json; NULL: it has none */
	enum task_input input;          /* for tables */
	bool relates;                   /* their texts have two marked mentions */
	enum task_target target;
	int32_t max_seq_length; /* if none is given; 0: 128 */
	const char *decides;    /* the measure that chooses the best checkpoint, unless a published layout names another */
	/* What others must know of a task. They ask these fields, and never which task it is. */
	enum task_view view;
	bool streams;                  /* files are read piece by piece, since a row's answer depends on that row alone */
	bool has_windows;              /* texts longer than the model takes are split into several sequences, not cut */
	bool reads_windows;            /* the same, if --long_texts says so: an example is a window then */
	bool weighs_classes;           /* --class_weights applies */
	bool calibrates;               /* answers are classes or labels with probabilities, by tasks/calibration.h */
	bool output_is_logit;          /* the number is the sigmoid of the output; otherwise it is the output itself */
	bool makes_vectors;            /* models are sentence-transformers folders, with pooling and prompts in place of a head */
	bool scores_test;              /* --do_eval without a dev set scores the test set, as run_squad.py does */
	const char *const *exclusive;  /* options that are refused for any other task, up to a NULL; NULL: none */
	const char *const *implied_by; /* options that imply the task if --task is not given, up to a NULL; NULL: none */
	/* Reads files into a set, in their order. TASK_TRAIN also finds the labels. */
	enum status (*read)(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count);
	/* Keeps only the first `most` of what read() has read, and returns how many there were, or 0 if it has logged what was
	 * left out. NULL: set->examples has them. */
	int64_t (*keep)(struct task_set *set, int64_t most);
	/* The same from memory, for predictions: the set borrows the texts. NULL: the task's examples consist of more than
	 * texts. */
	enum status (*take)(struct task_state *state, struct task_set *set, const struct task_text *texts, int64_t count);
	/* Makes set->encoded. */
	enum status (*encode)(struct task_state *state, struct task_set *set);
	void (*heads)(const struct task_state *state, struct model_heads *out);
	/* Adds the measures for a whole set, which has labels. */
	enum status (*score)(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			     struct measures *out);
	/* The same by label or entity type, to be released. NULL: the task has none. */
	enum status (*score_classes)(const struct task_state *state, const struct task_set *set,
				     const struct task_outputs *outputs, struct class_scores *out);
	/* Adds what a set that is encoded and has labels would score without a model: with texts left unchanged, in a random
	 * order, without any answer, or by words alone (tasks/words_alone.h; of tagged words, the most frequent tag of each).
	 * Adds nothing if that says nothing about the set. NULL: never. */
	enum status (*baseline)(const struct task_state *state, const struct task_set *train, const struct task_set *set,
				struct measures *out);
	/* Writes the result files of a set into a folder. */
	enum status (*write)(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			     const char *folder);
	/* Appends the prediction for answer number `example` of task_answers() as a JSON object (no line end). */
	enum status (*put)(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			   int64_t example, struct buffer *out);
	/* The same as columns with tabs between them. */
	enum status (*put_tsv)(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			       int64_t example, struct buffer *out);
	/* The same as transformers' pipeline of this task would print it; NULL: there is no such pipeline. */
	enum status (*put_pipeline)(const struct task_state *state, const struct task_set *set,
				    const struct task_outputs *outputs, int64_t example, struct buffer *out);
	/* Passes on the answers to a set that has labels. NULL: the task has none that a person could compare. */
	enum status (*examine)(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			       struct task_answer_reader reader);
	/* After training: chooses settings so that the answers to the first dev set (NULL: there is none) are best, if that is
	 * asked for (tunes). NULL: there are none. */
	bool (*tunes)(const struct task_state *state);
	enum status (*tune)(struct task_state *state, const struct task_set *set, const struct task_outputs *outputs);
	/* Once the training set is encoded: has `make` compute vectors of its texts, if the options name a model for that. NULL:
	 * the task needs none. */
	enum status (*guide)(const struct task_state *state, struct task_set *train, task_vector_maker *make, void *context);
	/* For a task whose loss is over the vectors of a whole step (LOSS_VECTORS): the mean over the step's examples, which are
	 * some of those in `set`, and its gradient for each vector (NULL: not wanted). NULL: losses are computed by the heads. */
	enum status (*loss)(const struct task_state *state, const struct task_set *set, const struct contrastive_step *step,
			    struct pool *pool, struct contrastive_scratch *scratch, double *out, float *gradients);
	void (*close_set)(struct task_set *set); /* frees set->own; NULL: there is none */
	/* The task's own settings, a struct that others know as state->own: its size; and its options, if there are any, as a
	 * group for tasks/task_options.c. */
	size_t settings_bytes;
	const struct option *options;
	/* What the record says of them (tasks/record.h), as members of the object that is open, and reading it. NULL: nothing. */
	void (*put_record)(const void *own, struct json_writer *writer);
	enum status (*read_record)(const struct json *record, const char *name, void *own);
	const struct data_names *(*data_names)(const void *own); /* NULL: train, dev, and test, with any usual ending */
	/* For a task that makes vectors: takes from a finished model's folder what the record leaves open. */
	void (*take_folder)(struct task_state *state, const struct sentence_folder *folder);
	/* Before a run reads its files: settles its own settings, and checks them. NULL: there is nothing to settle. */
	enum status (*settle)(struct task_state *state, const struct task_beginning *beginning);
	/* Can the task be learned from these examples, `batch_size` at a time? NULL: it can. */
	enum status (*check_batch)(const struct task_state *state, const struct task_set *train, int64_t batch_size);
};

/* Call it after read() of these files: leaves out what is beyond settings.most, and logs that. */
void task_keep_first(const struct task_state *state, struct task_set *set, const char *const *paths, int64_t count);

/* Warns of examples that are in the training files as well, whose scores say little about new texts. `what` names the set: "the
 * dev set". */
MUST_USE enum status task_warn_of_trained(const struct row_hashes *trained, const struct task_set *set, const char *what);

/* Whether every example of the set has a label and the labels differ: sets to predict may have placeholders for labels. */
bool task_is_labeled(const struct task_set *set);

/* How predictions are written: struct task's put, put_tsv, and put_pipeline. */
enum answer_form { ANSWER_JSONL, ANSWER_TSV, ANSWER_PIPELINE };
/* Appends the prediction for answer number `example` of task_answers() in a form that the task has, and a line end. */
MUST_USE enum status task_put(const struct task_state *state, enum answer_form form, const struct task_set *set,
			      const struct task_outputs *outputs, int64_t example, struct buffer *out);

/* Finds a task by its name in --task; the name of a published task gives its kind and its layout. ERR_USAGE lists the existing
 * names. */
MUST_USE enum status task_find(const char *name, const struct task **out, const struct layout **out_layout);
/* Whether the named task is about pairs of texts, so that a file of texts alone is an error. `layout` NULL: it has none. */
bool task_needs_pairs(const char *name, const struct layout *layout);
/* The task whose head belongs to an architecture, problem type (may be NULL) and number of outputs; NULL: none. */
const struct task *task_of_architecture(const char *architecture, const char *problem_type, int32_t outputs);
/* The task whose models make vectors. */
const struct task *task_of_vectors(void);
/* All tasks, `*count` of them. */
const struct task *const *tasks_all(int *count);

/* The number of answers that put() can be called for: one per example, unless the task splits its texts into several examples or
 * leaves some out. They are numbered from 0 in the order of the files. */
static inline int64_t task_answers(const struct task_set *set)
{
	return set->answer_count > 0 ? set->answer_count : set->encoded.example_count;
}

/* The example whose label is that of a text. */
static inline int64_t task_example_of(const struct task_set *set, int64_t answer)
{
	return set->windows ? set->windows[answer] : answer;
}

/* The measure that chooses the best checkpoint. Known once the training set is read. */
const char *task_decides(const struct task_state *state);

void task_set_release(const struct task_state *state, struct task_set *set);
/* Copies the task's own settings, as its options say (tasks/task_options.h); NULL: all are open. */
MUST_USE enum status task_state_open(struct task_state *state, const struct task *task, const void *own);
void task_state_release(struct task_state *state);
/* Sets the labels from a model's folder, in the order of its outputs, in place of those of training. */
MUST_USE enum status task_state_labels(struct task_state *state, const char *const *names, int64_t count);
/* The memory of the outputs of a head for all examples of a set. */
size_t task_outputs_bytes(const struct labeled_set *set, const struct head *head);
/* Allocates the outputs of a head for all examples of a set; values are zero. */
MUST_USE enum status task_outputs_create(struct task_outputs *out, const struct labeled_set *set, const struct head *head);
void task_outputs_release(struct task_outputs *outputs);
/* Outputs of one example. */
static inline const float *task_output(const struct task_outputs *outputs, int64_t example)
{
	return outputs->values + outputs->starts[example];
}

/* Cuts two texts of *a and *b tokens so that together they fit into `room`: the longer one to what the other leaves, or both to
 * half, of which the longer one (the second if equal) gets the odd token. This is "longest_first" of tokenizers; with
 * google-research/bert, the first text gets the odd token. */
void task_cut_pair(int64_t *a, int64_t *b, int64_t room);
/* One or two texts encoded as the vocabulary's template says ([CLS] A [SEP] or [CLS] A [SEP] B [SEP]), cut to `most` tokens,
 * pairs as by task_cut_pair(). `ids` has room for `most` ids. */
struct encoded_text {
	int32_t count, second; /* number of tokens; of those, of type 0 */
	int32_t cut;           /* number of tokens cut off */
};
void task_join_tokens(const struct vocab *vocab, const struct tokens *text, const struct tokens *pair, int32_t most, int32_t *ids,
		      struct encoded_text *out); /* from tokens; pair NULL: one text */
MUST_USE enum status task_encode_text(const struct tokenizer *tokenizer, struct tokens scratch[2], const char *text,
				      const char *pair, int32_t most, int32_t *ids, struct encoded_text *out);

/* ---- What tasks share ---- */

/* Reads tables into set->examples, in the order of their rows; labels stay text. For TASK_TRAIN also sets state->pairs. */
MUST_USE enum status task_read_tables(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count);
/* The same from memory. */
MUST_USE enum status task_take_texts(struct task_state *state, struct task_set *set, const struct task_text *texts,
				     int64_t count);
/* Puts the labels of training, of this many examples, in order, logs them, and reads their weights. */
MUST_USE enum status task_order_labels(struct task_state *state, int64_t examples);
/* Call this with the status of reading the label of example `number`: in a set to be predicted, a label that cannot be read is
 * passed over and counted (example_drop_label()). */
MUST_USE enum status task_label_read(struct task_set *set, int64_t number, enum status status);
/* Adds example `number` of a set to what encode() makes. A bad example is ERR_DATA with file and line, and adds nothing. */
typedef enum status task_example_adder(void *context, int64_t number);
/* Adds all examples of tables. Bad ones are also left out of set->examples, and counted. ERR_DATA if no example is left, unless
 * the set is a piece of a file. Logs how many texts were cut, and how many labels could not be read. */
MUST_USE enum status task_add_examples(struct task_state *state, struct task_set *set, task_example_adder *add, void *context);
/* Logs how many texts were cut, if any were. */
void task_log_cut(const struct task_set *set, int32_t most);
/* Index of the largest of count > 0 values; of equal ones, the first. */
int32_t task_best(const float *values, int64_t count);
/* Softmax of count > 0 logits, in double. */
void task_probabilities(const float *logits, int64_t count, double *out);
/* The probability that belongs to one logit, in double. */
double task_sigmoid(double logit);
/* The score that a single output stands for, if it is a number. */
double task_score(const struct task_state *state, double output);

extern const struct task task_embedding, task_reranking, task_rewriting;
extern const struct task task_classification, task_regression, task_multilabel, task_choice, task_tagging, task_squad,
	task_relation;

#endif
