/* The options of training in the form a run takes them: each function fills one of src/run's structs. Options that were left open
 * stay open. */
#ifndef CMD_TRAINING_SETTINGS_H
#define CMD_TRAINING_SETTINGS_H

#include "cmd/training_options.h"
#include "run/run.h"

struct machine_settings training_machine(const struct training_settings *settings);
/* Without what only the command knows: the folder's command, usage, and inputs. `settings` belong to `options`. */
struct run_settings training_run(const struct options *options, const struct training_settings *settings);
/* `phase` are the options of a phase. */
struct phase_settings training_phase(const struct options *phase, const struct training_settings *settings);
/* Records as problems what is wrong with a command line of any training command. */
MUST_USE enum status training_check(struct options *options);
/* Settles options that are two ways to say the same thing: steps and epochs, the batch in total and per device, warm-up as steps
 * and as a share. Giving both in one place is an error; if one is in the config file and the other on the command line, the
 * latter wins. */
MUST_USE enum status training_settle(struct options *phase);

/* Warns if a file of `train`, the name of an option with paths and patterns to train on, is also one of those that the option
 * `other` names ([NAME=]PATH...): scores on it say nothing about other texts. */
void training_note_shared(const struct options *options, const char *train, const char *other);
/* If the run to be resumed in `folder` has finished, the hint for settings that differ from its record says how its model is
 * trained further: with `model_option`. */
MUST_USE enum status training_note_finished(struct options *options, const struct run_start *start, const char *folder,
					    const char *model_option);
/* Warns about edits to settings.json when a run resumes from a checkpoint of its own (options_note_edits). */
MUST_USE enum status training_note_edits(const struct options *options, const struct run_start *start, const char *folder);

/* The value, or -1 if it was not set and has no default. */
double training_number(const struct options *options, const char *name, double value);

#endif
