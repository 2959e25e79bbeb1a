/* The folder `data` of a run: what the run makes once, and reads whenever it is started. A mark in it says that it is ours, and
 * with which settings it was made; by the same mark a folder is known to be a run's (RUN_FOLDER_MARK). */
#ifndef RUN_DATA_FOLDER_H
#define RUN_DATA_FOLDER_H

#include <stdbool.h>
#include "base/error.h"

/* In the folder; in the run folder it is RUN_FOLDER_MARK. */
#define DATA_FOLDER_MARK ".bertc"

/* Makes the folder and marks it with `settings`, lines of text about everything that decides what it will hold. One that was made
 * with others is emptied, unless it is to be kept: a checkpoint resumes with it as it is. One that holds something and has no
 * mark is the user's: nothing is written into it, and nothing ever removed (ERR_USAGE). */
MUST_USE enum status data_folder_claim(const char *folder, const char *settings, bool keep);

#endif
