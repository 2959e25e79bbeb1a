/* The settings of the task of rerankers. */
#ifndef TASKS_RERANKING_H
#define TASKS_RERANKING_H

#include "base/option.h"

enum ranking_loss { RANKING_BINARY, RANKING_LISTWISE, RANKING_LISTNET, RANKING_MARGINS };

struct reranking_settings {
	enum ranking_loss ranking_loss;
};

extern const struct option reranking_rows[];

#endif
