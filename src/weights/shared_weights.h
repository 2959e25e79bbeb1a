/* Which weights two models have in common, since both are adapters of one base, or one is the base itself: for them, one copy in
 * memory can serve both. */
#ifndef WEIGHTS_SHARED_WEIGHTS_H
#define WEIGHTS_SHARED_WEIGHTS_H

#include "base/error.h"
#include "model/model.h"

/* Whether two files of weights are of the same base. */
MUST_USE enum status weights_have_one_base(const char *a, const char *b, bool *out);
/* Has `model`, whose weights are about to be packed from the file `weights`, use the compute copies of `lender`, which were
 * packed from `lender_weights`, wherever neither file's adapter changes them. Both must have the same back end, and the lender
 * must outlive the model. */
MUST_USE enum status weights_share(struct model *model, const char *weights, const struct model *lender,
				   const char *lender_weights);

#endif
