/* The options of training as a run takes them: each function fills one of src/run's structs. What they leave open stays open. */
#ifndef CMD_TRAINING_SETTINGS_H
#define CMD_TRAINING_SETTINGS_H

#include "cmd/training_options.h"
#include "run/run.h"

struct machine_settings training_machine(const struct training_settings *settings);
/* Without what only the command knows: the folder's command, usage and inputs. `options` are those that `settings` belong to. */
struct run_settings training_run(const struct options *options, const struct training_settings *settings);
/* `phase` are the options of one. */
struct phase_settings training_phase(const struct options *phase, const struct training_settings *settings);
/* What of the command line itself is wrong for every command that trains becomes a problem. */
MUST_USE enum status training_check(struct options *options);
/* Steps and epochs, a batch in all and for each device, warm-up in steps and as a share are two ways to say one thing: both given
 * in one place are an error; of a config file's and the command line's the latter counts. */
MUST_USE enum status training_settle(struct options *phase);

/* Warns if a file that is trained on, of `train` (an option's name, and its paths and patterns), is also one of those that
 * `other` names ([NAME=]PATH...): scores on it say nothing of other texts. */
void training_note_shared(const struct options *options, const char *train, const char *other);
/* Warns of what somebody has changed in the settings.json of a run that resumes from a checkpoint of its own
 * (options_note_edits). */
MUST_USE enum status training_note_edits(const struct options *options, const struct run_start *start, const char *folder);

/* The value, or -1 if nobody has set it and it has no default. */
double training_number(const struct options *options, const char *name, double value);

#endif
