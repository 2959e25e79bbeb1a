/* Answering files as they appear in a folder. */
#ifndef CMD_FOLDER_WATCH_H
#define CMD_FOLDER_WATCH_H

#include "base/error.h"

/* Calls answer(context, path, out) for every file in `folder`, now and as they appear, until a signal asks to stop; then OK,
 * after the file in hand. `out` is "answers/NAME.jsonl"; a file whose answer is there and not older than the file is passed over.
 *
 * A file is taken once its size and time have stayed the same for two seconds; names that begin with a dot, or end in .tmp or
 * .part, are of files being written. What cannot be answered (ERR_DATA, ERR_USAGE) is said, its reason left as "NAME.error"
 * beside the answers, and the file taken again only when it has changed; other errors end the watch. */
MUST_USE enum status folder_watch(const char *folder, const char *answers,
				  enum status (*answer)(void *context, const char *path, const char *out), void *context);

#endif
