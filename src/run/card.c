/* Writes the model card from what the run has recorded. */
#include "run/card.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weights/checkpoint_folder.h"
#include "weights/manifest.h"

/* The last evaluation on the set by which the run is judged. (Columns before the loss say where it took place.) */
static int last_evaluation(const struct history *history, struct card_metric out[HISTORY_COLUMNS])
{
	int64_t row = history->set_count > 0 ? history_last_evaluation(history, history_main_set(history)) : -1;
	int count = 0;
	for (int column = HISTORY_LOSS; row >= 0 && column < history->column_count; column++) {
		double value = history_value(&history->evaluations, row, column);
		if (isfinite(value))
			out[count++] = (struct card_metric){"held out", history->names[column], value};
	}
	return count;
}

/* The last part of the run folder's name. */
static void name_of(const char *path, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%s", path);
	size_t size = strlen(out);
	while (size > 1 && out[size - 1] == '/')
		out[--size] = '\0';
	char *slash = strrchr(out, '/');
	if (slash && slash[1])
		memmove(out, slash + 1, strlen(slash));
}

enum status run_write_card(const struct run *run, int64_t step, const struct card_metric *metrics, int count)
{
	struct card_metric last[HISTORY_COLUMNS];
	struct history history = {0};
	struct json_document settings = {0};
	struct buffer text = {0};
	char name[PATH_BYTES], folder[PATH_BYTES], modules[PATH_BYTES];
	enum status status;
	name_of(run->folder.path, name);
	if (!metrics) /* the report's own history ended with the training */
		TRY_GOTO(history_read(&history, run->folder.metrics), done);
	TRY_GOTO(path_join(folder, run->folder.path, "final"), done);
	TRY_GOTO(path_join(modules, folder, "modules.json"), done);
	TRY_GOTO(json_parse(&settings, "settings", buffer_string(&run->record_text), run->record_text.size), done);
	struct model_card card = {
		.name = name,
		.model = run->memory.model,
		.task = run->task_config,
		.cased = !run->tokenizer->lowercase,
		.has_own_rules = run->vocab->chain != NULL,
		.embeds_sentences = file_exists(modules),
		.step = step,
		.settings = settings.root,
		.metrics = metrics ? metrics : last,
		.metric_count = metrics ? count : last_evaluation(&history, last),
	};
	model_card_put(&text, &card);
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(manifest_put_file(folder, MODEL_CARD_FILE, text.data, text.size), done);
	status = checkpoint_folder_list_final(run->folder.path, folder);
done:
	history_release(&history);
	json_release(&settings);
	buffer_release(&text);
	return status;
}
