/* Tagged words as JSON: an object per sentence with a list of words and a list of tags, as in Hugging Face's data sets and
 * run_ner.py, or with a text and spans of it (tasks/tagging/tag_spans.h); one per line or all in one list. */
#ifndef TASKS_TAGGING_TAG_JSON_H
#define TASKS_TAGGING_TAG_JSON_H

#include "formats/conll.h"
#include "tasks/labels.h"
#include "tasks/tagging/tag_words.h"
#include "tasks/tagging/tags.h"

/* Does the text begin like such a file? */
bool tag_json_recognize(const char *text, size_t size);

struct tag_json_settings {
	bool needs_tags;                 /* otherwise a file may have only words, and spans are ignored */
	const struct label_list *labels; /* names of tags that are numbers */
	bool labels_of_model;      /* they are the model's, in whose order the file need not number them: a warning says so */
	struct tag_cutter *cutter; /* of texts into words */
	struct tag_form form;      /* of the tags made of spans; not plain */
	struct bad_records *bad;
};

struct tag_json_facts {
	const char **texts;             /* [sentence_count] in the strings of the file, to be freed; NULL: the file has words */
	const char **ids;               /* [sentence_count] the member "id" as JSON, NULL: there is none; likewise to be freed */
	int64_t spans, widened, shared; /* as tag_spans counts them */
};

/* Reads it as if it had one word per line, followed by its tag; nothing is borrowed from the file. ERR_DATA names file and line
 * (in a list: the object): words or tags are not lists of strings, or their numbers differ; numbers without names; bad spans.
 * Tags that are not needed and have no names stay as they are. */
MUST_USE enum status tag_json_read(struct conll *out, const struct text_file *file, const struct tag_json_settings *settings,
				   struct tag_json_facts *out_facts);

#endif
