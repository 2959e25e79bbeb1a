/* Names from other programs: macros for rows, and the rows that all training commands share. */
#ifndef CMD_FOREIGN_ROWS_H
#define CMD_FOREIGN_ROWS_H

#include "base/option.h"

/* clang-format off */
#define FLAG_LEFT_OUT(names, reason) {.name = names, .kind = FOREIGN_FLAG, .answer = FOREIGN_IGNORED, .why = reason}
#define VALUE_LEFT_OUT(names, reason) {.name = names, .kind = FOREIGN_VALUE, .answer = FOREIGN_IGNORED, .why = reason}
#define FLAG_REFUSED(names, reason) {.name = names, .kind = FOREIGN_FLAG, .answer = FOREIGN_REFUSED, .why = reason}
#define VALUE_REFUSED(names, reason) {.name = names, .kind = FOREIGN_VALUE, .answer = FOREIGN_REFUSED, .why = reason}
/* Refused, except for `values`, which ask for what is done anyway. */
#define VALUE_REFUSED_BUT(names, values, reason) \
	{.name = names, .kind = FOREIGN_VALUE, .answer = FOREIGN_REFUSED, .value = values, .why = reason}
#define VALUE_MEANS(names, option_) {.name = names, .kind = FOREIGN_VALUE, .answer = FOREIGN_MEANS, .option = option_}
#define FLAG_MEANS(names, option_, value_) \
	{.name = names, .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = option_, .value = value_}
/* clang-format on */

#define RANKS_WHY                                                                                                                \
	"--n_gpus N or --ranks N starts the processes of one machine; across machines, start bertc under torchrun, mpirun, or "  \
	"srun, and each process finds its rank in the environment"

extern const struct option_foreign training_foreign[];

#endif
