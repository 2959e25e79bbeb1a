/* Places windows on long texts, and pools what the model says about them. */
#include "tasks/windows.h"

#include <string.h>

#include "tasks/task.h"

const char *const long_texts_words[] = {"", "cut", "mean", "max"};

/* clang-format off */
const struct option window_rows[] = {
	{OPTION_ROW(struct window_options, long_texts, ROLE_RESULT, "HOW"), .range = "|cut|mean|max", .synonym = "truncate=cut",
	 .fallback_text = "cut",
	 .help = "texts longer than max_seq_length, for classes, labels, and numbers: cut them; or read them in windows that "
	 "begin doc_stride tokens apart (default: half a window), and answer by the mean or the maximum of the windows' outputs"},
	{0},
};
/* clang-format on */

enum status windows_check(enum text_windowing long_texts, const struct task_state *state)
{
	if (long_texts <= WINDOWS_NONE || state->task->reads_windows)
		return OK;
	return error_set(ERR_USAGE, "--long_texts %s is for classes, labels, and numbers of whole texts, not for %s",
			 long_texts_words[long_texts], state->task->name);
}

struct text_windows windows_find(const struct task_state *state, int64_t first, int64_t last, int64_t room)
{
	const struct task_settings *settings = &state->settings;
	struct text_windows out = {.count = 1};
	if (settings->long_texts <= WINDOWS_NONE || (first > 0 ? first : 0) + last <= room)
		return out;
	out.kept = first < 0 ? 0 : first < room / 2 ? first : room / 2;
	out.room = room - out.kept;
	out.stride = settings->doc_stride == 0 ? (out.room + 1) / 2 : settings->doc_stride;
	if (out.stride > out.room)
		out.stride = out.room;
	if (last > out.room)
		out.count = 1 + (last - out.room + out.stride - 1) / out.stride;
	return out;
}

void windows_pool(const struct task_state *state, const struct task_set *set, struct task_outputs *outputs)
{
	if (!set->windows || outputs->count == 0)
		return;
	int64_t width = outputs->starts[1], count = task_answers(set);
	for (int64_t i = 0; i < count; i++) {
		int64_t first = set->windows[i], windows = set->windows[i + 1] - first;
		float *out = outputs->values + i * width;
		for (int64_t k = 0; k < width; k++) {
			const float *values = outputs->values + first * width + k;
			double sum = 0;
			float most = values[0];
			for (int64_t w = 0; w < windows; w++) {
				sum += values[w * width];
				most = values[w * width] > most ? values[w * width] : most;
			}
			out[k] = state->settings.long_texts == WINDOWS_MAX ? most : (float)(sum / (double)windows);
		}
	}
	for (int64_t i = 0; i <= count; i++)
		outputs->starts[i] = i * width;
	outputs->count = count;
}
