/* The settings of the task of relations. */
#ifndef TASKS_RELATION_H
#define TASKS_RELATION_H

#include "base/option.h"
#include "tasks/mentions.h"

enum relation_head {
	RELATION_CLS,
	RELATION_MARKERS, /* the rows of both opening markers side by side */
};

struct relation_settings {
	const char *markers;              /* "A,B,C,D"; NULL: found in training */
	enum marker_tokens marker_tokens; /* MARKERS_AUTO is decided in training */
	enum relation_head relation_head;
	struct mention_form form; /* no option: found in training, recorded for later */
};

extern const struct option relation_rows[];

#endif
