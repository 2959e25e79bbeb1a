/* A sweep: the same training with several settings, a run each in a folder of its own below --out. Here is what a sweep is and
 * what it remembers: its runs, their folders and scores (sweep.json), which of them is the best, table and page, and the finished
 * model. Which options there are, and how a run is run, the command knows (cmd/finetune_sweep.c).
 *
 * In several ranks every one keeps the same struct; the first alone writes. */
#ifndef RUN_SWEEP_H
#define RUN_SWEEP_H

#include "base/file.h"
#include "base/json.h"
#include "base/option.h"
#include "base/string_store.h"
#include "report/preview.h"

/* More are taken for a mistake. */
#define SWEEP_RUNS_MOST 10000

/* An option and its values, as texts; at first as given, then as the command has found them to be meant. */
struct sweep_setting {
	const char *name;
	const char **values; /* [count]; owned by the sweep */
	int64_t count, capacity;
};

enum sweep_state { SWEEP_WAITING, SWEEP_RUNNING, SWEEP_FINISHED, SWEEP_FAILED };

struct sweep_run {
	const char *name;    /* of its folder: "learning_rate=2e-5,seed=1" */
	const char **values; /* [setting_count]; NULL of a run that is no longer part of the sweep */
	enum sweep_state state;
	double score;        /* on the dev set, by the measure that decides; NaN: none */
	int64_t step;        /* of its finished model */
	const char *message; /* why it failed */
	uint64_t model;      /* identity of the model that it begins with; 0: not known */
};

/* Zero-initialise; released by sweep_release(), also after a failure. */
struct sweep {
	const char *folder; /* --out; borrowed */
	struct string_store strings;
	struct sweep_setting *settings; /* [setting_count] in the order of folder names: by name, seed last */
	int64_t setting_count, setting_capacity;
	struct sweep_run *runs; /* [run_count], the last setting changes fastest */
	int64_t run_count;
	struct sweep_run *others; /* [other_count] of earlier sweeps in the same folder, which stay there */
	int64_t other_count;
	const char **setting_names;  /* [setting_count], for reports */
	struct json_document record; /* sweep.json as it was found; root NULL: there was none */
	const char *measure, *set;   /* by which runs are judged, on which dev set ("": the only one); NULL: not known yet */
	const char *published;       /* the run whose model was copied to --out last; NULL: none */
	uint64_t data;               /* identity of all files that runs read besides their models */
};

/* Reads "learning_rate=2e-5,3e-5" and the like: words between spaces, in any number of texts. ERR_USAGE for what is none. */
MUST_USE enum status sweep_parse(struct sweep *sweep, const struct option_list *texts);
/* After the command has made names and values what they are meant to be: the product of the lists. Values that are the same, and
 * too many runs, are ERR_USAGE. */
MUST_USE enum status sweep_make_runs(struct sweep *sweep);
/* Takes over what DIR/sweep.json knows of the runs, if there is one, and says so in the log. */
MUST_USE enum status sweep_load(struct sweep *sweep);
/* Identity of all files that its runs read besides their models: ERR_STATE if they are not those that the sweep began with. */
MUST_USE enum status sweep_set_data(struct sweep *sweep, uint64_t data);
/* "WHAT since the sweep in DIR began" as ERR_STATE. */
MUST_USE enum status sweep_has_changed(const struct sweep *sweep, const char *what);
/* The same error, for those who compare by themselves. */
MUST_USE enum status sweep_data_have_changed(const struct sweep *sweep);
/* Identity of the model of a run: ERR_STATE if it was another when the run began. `path` is for the message. */
MUST_USE enum status sweep_set_model(struct sweep *sweep, int64_t run, const char *path, uint64_t model);
/* By which measure of which dev set the runs are judged; NULL: not known yet. ERR_STATE if finished runs were judged otherwise.
 */
MUST_USE enum status sweep_set_judge(struct sweep *sweep, const char *measure, const char *set);
/* Writes sweep.json and report.html. `options`: the other options as an object (JSON text). First rank. */
MUST_USE enum status sweep_save(const struct sweep *sweep, const char *options);
/* The folder of a run. */
MUST_USE enum status sweep_run_folder(const struct sweep *sweep, int64_t run, char out[PATH_BYTES]);
/* Removes the checkpoints of a finished run: its finished model stays. First rank. */
MUST_USE enum status sweep_prune(const struct sweep *sweep, int64_t run);
int64_t sweep_count(const struct sweep *sweep, enum sweep_state state);
/* The best run: the best seed of the setting that is best in the mean over its seeds; -1: no run has a score. *out_ties: how
 * many others did as well. */
MUST_USE enum status sweep_best(const struct sweep *sweep, int64_t *out, int64_t *out_ties);
/* Copies the model and the results of a finished run to --out itself. First rank. */
MUST_USE enum status sweep_publish(const struct sweep *sweep, int64_t run);
/* Is this run's model the one that was copied last, and still there? */
bool sweep_is_published(const struct sweep *sweep, int64_t run);
/* All runs, and the means over seeds, as text. */
MUST_USE enum status sweep_table(const struct sweep *sweep, struct buffer *out);
void sweep_release(struct sweep *sweep);

#endif
