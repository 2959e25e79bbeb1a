/* Files of static instances as a run reads them: bertc's own are opened in place, those of others (TFRecord, HDF5) are
 * converted once into the run's data folder. */
#ifndef RUN_RUN_STATIC_H
#define RUN_RUN_STATIC_H

#include "base/pool.h"
#include "data/pretraining/instance_files.h"

/* Opens the files that `values` stand for (files, folders, globs; commas separate, too), in their order. Conversions lie
 * in `folder` under names that hold a fingerprint of their source: one that has changed is converted again. Longer
 * instances than demanded, or ids beyond the vocabulary, are found in files of our own, too. Instances nearly all of whose words
 * the vocabulary does not have are ERR_STATE (data/unknown.h). */
MUST_USE enum status run_static_open(const char *const *values, int64_t count, const char *folder,
				     const struct instance_demands *demands, const struct vocab *vocab, struct pool *pool,
				     struct static_file **out, int64_t *out_count);
void run_static_close(struct static_file *files, int64_t count);

#endif
