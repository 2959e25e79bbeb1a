/* A sweep: the same training with several settings, one run for each, in its own folder below --out. This module defines a sweep
 * and what it remembers: its runs, their folders and scores (sweep.json), which of them is best, the table and the page, and the
 * finished model. Which options there are and how a run is carried out is up to the command (cmd/finetune/finetune_sweep.c).
 *
 * With several ranks, each keeps the same struct; only the first writes files. */
#ifndef RUN_SWEEP_H
#define RUN_SWEEP_H

#include "base/file.h"
#include "base/json.h"
#include "base/option.h"
#include "base/string_store.h"
#include "report/preview.h"

/* A larger number is taken to be a mistake. */
#define SWEEP_RUNS_MOST 10000

/* An option and its values as text; first as given, then normalized by the command. */
struct sweep_setting {
	const char *name;
	const char **values; /* [count]; owned by the sweep */
	int64_t count, capacity;
};

enum sweep_state { SWEEP_WAITING, SWEEP_RUNNING, SWEEP_FINISHED, SWEEP_FAILED };

struct sweep_run {
	const char *name;    /* name of its folder: "learning_rate=2e-5,seed=1" */
	const char **values; /* [setting_count]; NULL for a run that is no longer part of the sweep */
	enum sweep_state state;
	double score;        /* on the dev set, by the deciding measure; NaN: none */
	int64_t step;        /* of its finished model */
	const char *message; /* why it failed */
	uint64_t model;      /* identity of its initial model; 0: unknown */
};

/* Zero-initialize; release with sweep_release(), also after a failure. */
struct sweep {
	const char *folder; /* --out; borrowed */
	struct string_store strings;
	struct sweep_setting *settings; /* [setting_count] in the order of folder names: by name, seed last */
	int64_t setting_count, setting_capacity;
	struct sweep_run *runs; /* [run_count], with the last setting changing fastest */
	int64_t run_count;
	struct sweep_run *others; /* [other_count] runs of earlier sweeps in the same folder, which stay there */
	int64_t other_count;
	const char **setting_names;  /* [setting_count], for reports */
	struct json_document record; /* sweep.json as found; root NULL: there was none */
	const char *measure, *set;   /* what runs are judged by, on which dev set ("": the only one); NULL: not known yet */
	const char *published;       /* the run whose model was last copied to --out; NULL: none */
	uint64_t data;               /* identity of all files that runs read besides their models */
};

/* Parses settings such as "learning_rate=2e-5,3e-5", separated by spaces, in any number of strings. ERR_USAGE for anything
 * else. */
MUST_USE enum status sweep_parse(struct sweep *sweep, const struct option_list *texts);
/* Makes a run for every combination of values, once the command has normalized names and values. ERR_USAGE: equal values, or too
 * many runs. */
MUST_USE enum status sweep_make_runs(struct sweep *sweep);
/* Takes over what DIR/sweep.json, if there is one, says about the runs, and logs that. */
MUST_USE enum status sweep_load(struct sweep *sweep);
/* Sets the identity of all files that its runs read besides their models. ERR_STATE if they differ from those that the sweep
 * began with. */
MUST_USE enum status sweep_set_data(struct sweep *sweep, uint64_t data);
/* The error of sweep_set_data(), for callers that make the comparison themselves. */
MUST_USE enum status sweep_data_have_changed(const struct sweep *sweep);
/* Sets the identity of a run's model. ERR_STATE if it was different when the run began. `path` is for the message. */
MUST_USE enum status sweep_set_model(struct sweep *sweep, int64_t run, const char *path, uint64_t model);
/* Sets the measure and the dev set by which runs are judged; NULL: not known yet. ERR_STATE if finished runs were judged
 * differently. */
MUST_USE enum status sweep_set_judge(struct sweep *sweep, const char *measure, const char *set);
/* Writes sweep.json and report.html. `options`: the other options, as the text of a JSON object. First rank only. */
MUST_USE enum status sweep_save(const struct sweep *sweep, const char *options);
/* The folder of a run. */
MUST_USE enum status sweep_run_folder(const struct sweep *sweep, int64_t run, char out[PATH_BYTES]);
/* Removes the checkpoints of a finished run, but keeps its finished model. First rank only. */
MUST_USE enum status sweep_prune(const struct sweep *sweep, int64_t run);
/* The best run: the best seed of the setting with the best mean over its seeds; -1: no run has a score. *out_ties: how many
 * others did equally well. */
MUST_USE enum status sweep_best(const struct sweep *sweep, int64_t *out, int64_t *out_ties);
/* Copies the model and the results of a finished run to --out itself. First rank only. */
MUST_USE enum status sweep_publish(const struct sweep *sweep, int64_t run);
/* Is this run's model the one that was last copied to --out, and is it still there? */
bool sweep_is_published(const struct sweep *sweep, int64_t run);
/* Appends a table of all runs, and of the means over seeds, as text. */
MUST_USE enum status sweep_table(const struct sweep *sweep, struct buffer *out);
void sweep_release(struct sweep *sweep);

#endif
