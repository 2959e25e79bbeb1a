/* Tagged words as JSON: an object per sentence with a list of words and a list of tags, one per line or all in one list, as in
 * Hugging Face's data sets and run_ner.py. */
#ifndef TASKS_TAG_JSON_H
#define TASKS_TAG_JSON_H

#include "formats/conll.h"
#include "tasks/labels.h"

/* Does the text begin like such a file? */
bool tag_json_recognise(const char *text, size_t size);
/* Reads it as if it had one word per line, followed by its tag; nothing is borrowed from the file. Tags that are numbers take
 * their names from `labels` (--labels). ERR_DATA names file and line (in a list: the object): words or tags are not lists of
 * strings, or their numbers differ; numbers without names. Without `needs_tags` a file may have only words. */
MUST_USE enum status tag_json_read(struct conll *out, const struct text_file *file, bool needs_tags,
				   const struct label_list *labels, struct bad_records *bad);

#endif
