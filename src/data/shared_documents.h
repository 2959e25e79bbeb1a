/* Counts documents that are in two texts, such as that of training and that of evaluation. */
#ifndef DATA_SHARED_DOCUMENTS_H
#define DATA_SHARED_DOCUMENTS_H

#include "data/shard.h"

/* *out: how many of the documents of `shards`, leaving out empty ones (*out_all), are also in `others`, split into the same
 * sentences. Reads the tokens of `shards`, but of `others` only those of documents whose sentences have the same lengths. */
MUST_USE enum status shared_documents_count(const struct shard *shards, int64_t count, const struct shard *others,
					    int64_t other_count, int64_t *out, int64_t *out_all);

#endif
