/* Answering files as they appear in a folder. */
#ifndef CMD_FOLDER_WATCH_H
#define CMD_FOLDER_WATCH_H

#include "base/error.h"

/* Calls answer(context, path, out) for every file in `folder`, present or yet to appear, until a signal asks to stop; then
 * returns OK after the current file. `out` is "answers/NAME" with `ending`, such as ".jsonl". A file is skipped if its answer
 * exists and is not older than the file itself.
 *
 * A file is taken once its size and time have stayed the same for two seconds. Names that begin with a dot or end in .tmp or
 * .part belong to files still being written. If a file cannot be answered (ERR_DATA, ERR_USAGE, ERR_STATE), the reason is logged
 * and written to "NAME.error" beside the answers, and the file is not taken again until it changes; any other error ends the
 * watch. */
MUST_USE enum status folder_watch(const char *folder, const char *answers, const char *ending,
				  enum status (*answer)(void *context, const char *path, const char *out), void *context);

#endif
