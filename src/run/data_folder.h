/* The folder `data` of a run: what the run makes once and reads whenever it is started. A mark file in it says that the folder is
 * ours, and with which settings it was made; the same mark identifies a folder as a run's (RUN_FOLDER_MARK). */
#ifndef RUN_DATA_FOLDER_H
#define RUN_DATA_FOLDER_H

#include <stdbool.h>
#include "base/file.h"

/* Name inside the data folder; relative to the run folder it is RUN_FOLDER_MARK. */
#define DATA_FOLDER_MARK ".bertc"

/* Makes the folder and marks it with `settings`, lines of text with everything that determines its contents. A folder that was
 * made with other settings is emptied, unless `keep` is set: a checkpoint resumes with the folder as it is. A folder that is not
 * empty and has no mark is the user's: nothing is written into it, and nothing is ever removed (ERR_USAGE). Nor is a folder that
 * holds one of `inputs`, the files that the run is about to read. */
MUST_USE enum status data_folder_claim(const char *folder, const char *settings, bool keep, const struct name_list *inputs);

#endif
