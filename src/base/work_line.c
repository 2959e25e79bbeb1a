/* The ring of slots and the helper threads behind work that is done in parallel and taken in order. */
#include "base/work_line.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include "base/memory.h"

enum slot_state { SLOT_FREE, SLOT_WAITING, SLOT_WORKING, SLOT_DONE };

struct work_line {
	pthread_mutex_t mutex;
	pthread_cond_t submitted, done;
	pthread_t *threads;
	int thread_count;
	bool closing;
	unsigned char *slots;
	size_t slot_bytes;
	int slot_count;
	enum slot_state *states;
	int64_t first, next, begun; /* slot numbers: next to take (or taken), to fill, to work on */
	void (*work)(void *slot);
};

static void *slot_at(const struct work_line *line, int64_t number)
{
	return line->slots + (size_t)(number % line->slot_count) * line->slot_bytes;
}

static enum slot_state *state_at(const struct work_line *line, int64_t number)
{
	return &line->states[number % line->slot_count];
}

/* Works on the oldest submitted slot that has not been begun. The mutex is held on entry and on return. */
static void work_on_next(struct work_line *line)
{
	int64_t number = line->begun++;
	*state_at(line, number) = SLOT_WORKING;
	pthread_mutex_unlock(&line->mutex);
	line->work(slot_at(line, number));
	pthread_mutex_lock(&line->mutex);
	*state_at(line, number) = SLOT_DONE;
	pthread_cond_broadcast(&line->done);
}

static void *help(void *context)
{
	struct work_line *line = context;

	pthread_mutex_lock(&line->mutex);
	while (!line->closing) {
		if (line->begun < line->next)
			work_on_next(line);
		else
			pthread_cond_wait(&line->submitted, &line->mutex);
	}
	pthread_mutex_unlock(&line->mutex);
	return NULL;
}

enum status work_line_open(struct work_line **out, int helpers, void *slots, int slot_count, size_t slot_bytes,
			   void (*work)(void *slot))
{
	struct work_line *line;

	BUG_IF(slot_count < 1 || helpers < 0);
	*out = NULL;
	TRY(memory_new(&line, 1, sizeof *line, "line of work"));
	pthread_mutex_init(&line->mutex, NULL);
	pthread_cond_init(&line->submitted, NULL);
	pthread_cond_init(&line->done, NULL);
	line->slots = slots;
	line->slot_count = slot_count;
	line->slot_bytes = slot_bytes;
	line->work = work;
	enum status status = memory_new(&line->states, slot_count, sizeof *line->states, "line of work");
	if (status == OK)
		status = memory_new(&line->threads, helpers, sizeof *line->threads, "line of work");
	/* Having fewer threads than requested is slower, not wrong. */
	while (status == OK && line->thread_count < helpers &&
	       pthread_create(&line->threads[line->thread_count], NULL, help, line) == 0)
		line->thread_count++;
	if (status != OK)
		work_line_close(line);
	else
		*out = line;
	return status;
}

void *work_line_free(struct work_line *line)
{
	return line->next - line->first < line->slot_count ? slot_at(line, line->next) : NULL;
}

void work_line_submit(struct work_line *line)
{
	pthread_mutex_lock(&line->mutex);
	*state_at(line, line->next) = SLOT_WAITING;
	line->next++;
	pthread_cond_signal(&line->submitted);
	pthread_mutex_unlock(&line->mutex);
}

void *work_line_take(struct work_line *line)
{
	if (line->first == line->next)
		return NULL;
	pthread_mutex_lock(&line->mutex);
	while (*state_at(line, line->first) != SLOT_DONE) {
		/* Work instead of waiting. */
		if (line->begun < line->next)
			work_on_next(line);
		else
			pthread_cond_wait(&line->done, &line->mutex);
	}
	pthread_mutex_unlock(&line->mutex);
	return slot_at(line, line->first);
}

void work_line_release(struct work_line *line)
{
	BUG_IF(line->first == line->next);
	pthread_mutex_lock(&line->mutex);
	*state_at(line, line->first) = SLOT_FREE;
	line->first++;
	pthread_mutex_unlock(&line->mutex);
}

void work_line_close(struct work_line *line)
{
	if (!line)
		return;
	pthread_mutex_lock(&line->mutex);
	line->closing = true;
	pthread_cond_broadcast(&line->submitted);
	pthread_mutex_unlock(&line->mutex);
	for (int i = 0; i < line->thread_count; i++)
		pthread_join(line->threads[i], NULL);
	pthread_mutex_destroy(&line->mutex);
	pthread_cond_destroy(&line->submitted);
	pthread_cond_destroy(&line->done);
	free(line->threads);
	free(line->states);
	free(line);
}
