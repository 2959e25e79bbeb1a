#include "cmd/squad_options.h"

#include <string.h>

struct squad_task_settings squad_options_given(const struct options *options, const struct squad_settings *settings)
{
	const char *scorer = settings->scorer;
	return (struct squad_task_settings){
		.doc_stride = (int32_t)settings->doc_stride,
		.max_query_length = (int32_t)settings->max_query_length,
		.n_best_size = (int32_t)settings->n_best_size,
		.max_answer_length = (int32_t)settings->max_answer_length,
		.version_is_given = options_given(options, "version_2_with_negative") ||
				    options_origin(options, "version_2_with_negative") == ORIGIN_RESUMED,
		.version_2_with_negative = settings->version_2_with_negative,
		.threshold_is_given = options_given(options, "null_score_diff_threshold") ||
				      options_origin(options, "null_score_diff_threshold") == ORIGIN_RESUMED,
		.null_score_diff_threshold = settings->null_score_diff_threshold,
		.scorer = !scorer || strcmp(scorer, "auto") == 0 ? SQUAD_SCORER_AUTO
			  : strcmp(scorer, "cmrc") == 0          ? SQUAD_SCORER_CMRC
								 : SQUAD_SCORER_SQUAD,
		.scorer_is_given = scorer != NULL,
	};
}
