/* What the training commands tell their users about inputs and about the run that is resumed. */
#ifndef CMD_TRAINING_NOTES_H
#define CMD_TRAINING_NOTES_H

#include "run/run_folder.h"

/* Warns if a file of `train`, the name of an option with paths and patterns to train on, is also one of those that the option
 * `other` names ([NAME=]PATH...): scores on it say nothing about other texts. */
void training_note_shared(const struct options *options, const char *train, const char *other);
/* If the run to be resumed in `folder` has finished, the hint for settings that differ from its record says how its model is
 * trained further: with `model_option`. */
MUST_USE enum status training_note_finished(struct options *options, const struct run_start *start, const char *folder,
					    const char *model_option);
/* Warns about edits to settings.json when a run resumes from a checkpoint of its own (options_note_edits). */
MUST_USE enum status training_note_edits(const struct options *options, const struct run_start *start, const char *folder);

#endif
