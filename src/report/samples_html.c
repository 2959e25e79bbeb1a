/* The section of a report with the sample sentences. */
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "infer/blanks.h"
#include "report/html.h"
#include "report/samples.h"

struct spelling {
	struct buffer *out;
	const struct vocab *vocab;
	const struct sample_sentence *sentence;
	int32_t blank;
};

static void put_word(struct buffer *out, const char *before, const struct vocab *vocab, int32_t id, const char *after)
{
	struct buffer word = {0};
	html_element(out, before, blank_word(vocab, id, &word), after);
	buffer_release(&word);
}

/* Appends a token of a sentence; a blank shows the word that was masked. */
static void put_token(void *context, const char *text, int32_t id, bool glued)
{
	struct spelling *spelling = context;
	if (!glued)
		buffer_char(spelling->out, ' ');
	if (id != spelling->vocab->mask) {
		html_text(spelling->out, text);
		return;
	}
	put_word(spelling->out, "<span class=\"blank\">", spelling->vocab, spelling->sentence->answers[spelling->blank++],
		 "</span>");
}

/* "1st", "2nd", "3rd", "11th", "23rd" */
static const char *ordinal(char out[16], int32_t number)
{
	int32_t last = number % 10;
	bool teen = number / 10 % 10 == 1;
	snprintf(out, 16, "%d%s", number, teen || last > 3 || last == 0 ? "th" : last == 1 ? "st" : last == 2 ? "nd" : "rd");
	return out;
}

static void put_guesses(const struct vocab *vocab, const struct sample_blank *blank, int32_t answer, struct buffer *out)
{
	char number[16];
	for (int i = 0; i < SAMPLE_SHOWN && i < vocab->count; i++) {
		buffer_text(out, "<span class=\"w\">");
		put_word(out, blank->ids[i] == answer ? "<span class=\"right\">" : "<span>", vocab, blank->ids[i], "</span>");
		double percent = 100 * (double)blank->probabilities[i];
		buffer_format(out, " <span class=\"p\">%.*f %%</span></span> ", percent < 9.5 ? 1 : 0, percent);
	}
	if (blank->place == 0)
		buffer_format(out, "<small class=\"w\">right word: not among the first %d</small>", SAMPLE_RANKS);
	else if (blank->place > SAMPLE_SHOWN)
		buffer_format(out, "<small class=\"w\">right word: %s</small>", ordinal(number, blank->place));
}

/* Chooses at most eight evaluations, more of them early, when predictions change fastest. */
#define SAMPLES_SHOWN 8
static int choose_evaluations(int64_t count, int64_t chosen[SAMPLES_SHOWN])
{
	int shown = 0;
	for (int i = 0; i < SAMPLES_SHOWN; i++) {
		double share = (double)i / (SAMPLES_SHOWN - 1);
		int64_t at = (int64_t)llround(exp(share * log((double)count))) - 1;
		if (count <= SAMPLES_SHOWN)
			at = i;
		if (at < count && (shown == 0 || at > chosen[shown - 1]))
			chosen[shown++] = at;
	}
	return shown;
}

void samples_html(const struct samples *samples, struct buffer *out)
{
	int64_t chosen[SAMPLES_SHOWN];
	if (samples->count == 0 || samples->evaluation_count == 0)
		return;
	const struct vocab *vocab = samples->predictor.vocab;
	int shown = choose_evaluations(samples->evaluation_count, chosen);
	buffer_text(out, "<h2>What it fills into the blanks</h2>\n<p class=\"note\">The same few sentences throughout, from text "
			 "that the model is not trained on. The underlined words were masked; below them are the model's five "
			 "best guesses as training progressed.</p>\n");
	for (int s = 0; s < samples->count; s++) {
		const struct sample_sentence *sentence = &samples->sentences[s];
		struct spelling spelling = {.out = out, .vocab = vocab, .sentence = sentence};
		buffer_text(out, "<div class=\"guess\"><p>");
		samples_spell(vocab, sentence->ids, sentence->count, put_token, &spelling);
		buffer_text(out, "</p>\n<div style=\"overflow-x:auto\"><table><tr><th class=\"n\">step</th>");
		for (int32_t b = 0; b < sentence->blanks; b++)
			put_word(out, "<th>for \xE2\x80\x9C", vocab, sentence->answers[b], "\xE2\x80\x9D</th>");
		buffer_text(out, "</tr>\n");
		for (int i = 0; i < shown; i++) {
			const struct sample_evaluation *evaluation = &samples->evaluations[chosen[i]];
			char number[FORMAT_BYTES];
			buffer_format(out, "<tr><td class=\"n\">%s</td>", format_count(number, evaluation->step));
			for (int32_t b = 0; b < sentence->blanks; b++) {
				buffer_text(out, "<td>");
				put_guesses(vocab, &evaluation->blanks[s][b], sentence->answers[b], out);
				buffer_text(out, "</td>");
			}
			buffer_text(out, "</tr>\n");
		}
		buffer_text(out, "</table></div></div>\n");
	}
}

static enum status update_preview(void *context, const struct report_progress *progress)
{
	return samples_evaluate(context, progress);
}

static void write_preview(const void *context, struct buffer *html)
{
	samples_html(context, html);
}

struct report_preview samples_preview(struct samples *samples)
{
	return (struct report_preview){.update = update_preview, .write = write_preview, .context = samples};
}
