/* Files of static instances as a run reads them: bertc's own are opened in place, other formats (TFRecord, HDF5) are converted
 * once into the run's data folder. */
#ifndef RUN_RUN_STATIC_H
#define RUN_RUN_STATIC_H

#include "base/pool.h"
#include "data/pretraining/instance_files.h"

/* Opens the files that `values` stand for (files, folders, globs), in their order. Converted files are put into `folder` under
 * names that contain a fingerprint of their source: a source that has changed is converted again. Instances longer than demanded,
 * and ids beyond the vocabulary, are detected in our own files, too. Instances of which the vocabulary lacks nearly all words are
 * ERR_STATE (data/unknown.h). */
MUST_USE enum status run_static_open(const char *const *values, int64_t count, const char *folder,
				     const struct instance_demands *demands, const struct vocab *vocab, struct pool *pool,
				     struct static_file **out, int64_t *out_count);
void run_static_close(struct static_file *files, int64_t count);

#endif
