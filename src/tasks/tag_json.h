/* Tagged words as JSON: an object for each sentence with a list of words and a list of tags, in lines or in one list, as Hugging
 * Face's data sets and run_ner.py have them. */
#ifndef TASKS_TAG_JSON_H
#define TASKS_TAG_JSON_H

#include "formats/conll.h"
#include "tasks/labels.h"

/* Does the text begin as such a file? */
bool tag_json_recognise(const char *text, size_t size);
/* Reads it as if it had one word per line, its tag behind it; nothing of the file is borrowed. Tags that are numbers take
 * their names from `labels` (--labels). ERR_DATA names file and line (of a list: the object): words or tags are no lists of
 * texts, or not as many of one as of the other; numbers without names. Without `needs_tags` a file may have words alone. */
MUST_USE enum status tag_json_read(struct conll *out, const struct text_file *file, bool needs_tags,
				   const struct label_list *labels, struct bad_records *bad);

#endif
