/* Queues jobs, fills batches fairly from all of them, and computes the batches in one thread. */
#include "serve/batcher.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/condition.h"
#include "base/log.h"
#include "base/memory.h"

/* The jobs of one model, oldest first. */
struct queue {
	struct batch_job *first, *last;
	int64_t jobs, tokens;
	uint64_t turn; /* when its last batch ran, counted in batches */
};

struct batcher {
	struct batcher_settings settings;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct queue *queues; /* [models] */
	int64_t waiting;      /* tokens in all queues */
	bool closing;
	uint64_t turns;
	double computed, seconds; /* recent tokens and the seconds they took, for the speed */
	struct batch_part *parts;
	int64_t part_count, part_capacity;
};

/* ---- Filling a batch; the lock is held ---- */

/* Takes the next items of a job while they fit into *room tokens and *items items: at most `share` tokens in all, but at least
 * one item if the batch is empty. */
static void take_items(struct batcher *batcher, struct batch_job *job, int64_t share, int64_t *room, int64_t *items)
{
	int64_t used = 0, at = job->taken + job->taken_now;
	while (at<job->count && * items> 0) {
		int64_t tokens = job->tokens[at];
		bool is_first = *room == batcher->settings.max_batch_tokens;
		if ((tokens > *room || (used > 0 && used + tokens > share)) && !is_first)
			break;
		*room -= tokens;
		*items -= 1;
		used += tokens;
		job->taken_now++;
		at++;
	}
}

/* Fills the batch with items of queued jobs. Jobs stay in the queue until all their items are computed. */
static enum status fill_batch(struct batcher *batcher, struct queue *queue)
{
	int64_t room = batcher->settings.max_batch_tokens, items = batcher->settings.max_batch_items;
	int64_t share = room / queue->jobs;
	batcher->part_count = 0;
	TRY(memory_grow(&batcher->parts, &batcher->part_capacity, queue->jobs, sizeof *batcher->parts, "a batch"));
	for (struct batch_job *job = queue->first; job; job = job->next)
		take_items(batcher, job, share, &room, &items);
	for (struct batch_job *job = queue->first; job; job = job->next)
		take_items(batcher, job, room, &room, &items);
	double now = clock_seconds();
	for (struct batch_job *job = queue->first; job; job = job->next) {
		if (job->taken_now == 0)
			continue;
		if (job->taken == 0)
			job->begun = now;
		batcher->parts[batcher->part_count++] = (struct batch_part){job, job->taken, job->taken_now};
	}
	return OK;
}

/* Of the models whose batch is full or has waited long enough, the one whose last turn is longest ago. -1: there is none; then
 * *out_until says when the next may be due. */
static int choose_model(const struct batcher *batcher, double now, double *out_until)
{
	int chosen = -1;
	*out_until = INFINITY;
	for (int m = 0; m < batcher->settings.models; m++) {
		const struct queue *queue = &batcher->queues[m];
		if (!queue->first)
			continue;
		double until = queue->first->added + batcher->settings.max_wait_seconds;
		if (queue->tokens < batcher->settings.max_batch_tokens && now < until && !batcher->closing)
			*out_until = until < *out_until ? until : *out_until;
		else if (chosen < 0 || queue->turn < batcher->queues[chosen].turn)
			chosen = m;
	}
	return chosen;
}

/* ---- Ending a batch ---- */

static int64_t tokens_of(const struct batch_part *part)
{
	int64_t tokens = 0;
	for (int64_t i = 0; i < part->count; i++)
		tokens += part->job->tokens[part->first + i];
	return tokens;
}

static void count_speed(struct batcher *batcher, double tokens, double seconds)
{
	const double kept = 0.95;
	batcher->computed = kept * batcher->computed + tokens;
	batcher->seconds = kept * batcher->seconds + seconds;
}

/* Moves complete and failed jobs from the queue to the returned list. */
static struct batch_job *remove_done(struct batcher *batcher, struct queue *queue)
{
	struct batch_job *done = NULL, **done_end = &done, *last = NULL;
	for (struct batch_job **at = &queue->first; *at;) {
		struct batch_job *job = *at;
		if (job->taken < job->count && job->error.status == OK) {
			last = job;
			at = &job->next;
			continue;
		}
		*at = job->next;
		job->next = NULL;
		queue->jobs--;
		queue->tokens -= job->tokens_left;
		batcher->waiting -= job->tokens_left;
		*done_end = job;
		done_end = &job->next;
	}
	queue->last = last;
	return done;
}

/* Records the progress of each part's job; `error` NULL: the batch succeeded. Returns the jobs that are done. */
static struct batch_job *end_batch(struct batcher *batcher, struct queue *queue, const struct error *error)
{
	double now = clock_seconds();
	for (int64_t i = 0; i < batcher->part_count; i++) {
		const struct batch_part *part = &batcher->parts[i];
		int64_t tokens = tokens_of(part);
		part->job->taken += part->count;
		part->job->taken_now = 0;
		part->job->tokens_left -= tokens;
		part->job->ended = now;
		queue->tokens -= tokens;
		batcher->waiting -= tokens;
		if (error)
			part->job->error = *error;
	}
	return remove_done(batcher, queue);
}

/* Notifies the owners of jobs that are done. */
static void tell(struct batch_job *done)
{
	while (done) {
		struct batch_job *next = done->next; /* once notified, the owner may free the job */
		done->done(done);
		done = next;
	}
}

/* Fills, computes, and ends a batch of this model. The lock is held on entry and on return, but not while computing. */
static void run_batch(struct batcher *batcher, int model)
{
	struct queue *queue = &batcher->queues[model];
	struct error error;
	double started = clock_seconds(), tokens = 0;
	queue->turn = ++batcher->turns;
	enum status status = fill_batch(batcher, queue);
	if (status != OK) { /* no memory for the list of parts: none of its jobs can be served */
		for (struct batch_job *job = queue->first; job; job = job->next)
			job->error = *error_last();
	} else {
		pthread_mutex_unlock(&batcher->lock);
		status = batcher->settings.compute(batcher->settings.context, model, batcher->parts, batcher->part_count);
		error = *error_last();
		pthread_mutex_lock(&batcher->lock);
		for (int64_t i = 0; i < batcher->part_count; i++)
			tokens += (double)tokens_of(&batcher->parts[i]);
		count_speed(batcher, tokens, clock_seconds() - started);
	}
	struct batch_job *done = end_batch(batcher, queue, status == OK ? NULL : &error);
	pthread_mutex_unlock(&batcher->lock);
	tell(done);
	pthread_mutex_lock(&batcher->lock);
}

static void wait_until(struct batcher *batcher, double until)
{
	struct timespec time;
	if (isinf(until)) {
		pthread_cond_wait(&batcher->changed, &batcher->lock);
		return;
	}
	time.tv_sec = (time_t)until;
	time.tv_nsec = (long)(1e9 * (until - (double)time.tv_sec));
	pthread_cond_timedwait(&batcher->changed, &batcher->lock, &time);
}

static void *run(void *context)
{
	struct batcher *batcher = context;
	pthread_mutex_lock(&batcher->lock);
	while (!batcher->closing || batcher->waiting > 0) {
		double until;
		int model = choose_model(batcher, clock_seconds(), &until);
		if (model >= 0)
			run_batch(batcher, model);
		else
			wait_until(batcher, until);
	}
	pthread_mutex_unlock(&batcher->lock);
	return NULL;
}

/* ---- Interface ---- */

enum status batcher_open(struct batcher **out, const struct batcher_settings *settings)
{
	struct batcher *batcher;
	enum status status = OK;
	*out = NULL;
	TRY(memory_new(&batcher, 1, sizeof *batcher, "the queue"));
	batcher->settings = *settings;
	TRY_GOTO(memory_new(&batcher->queues, settings->models, sizeof *batcher->queues, "the queue"), failed);
	BUG_IF(pthread_mutex_init(&batcher->lock, NULL) != 0);
	condition_init(&batcher->changed);
	if (pthread_create(&batcher->thread, NULL, run, batcher) != 0) {
		pthread_mutex_destroy(&batcher->lock);
		pthread_cond_destroy(&batcher->changed);
		status = error_set(ERR_RESOURCE, "cannot start a thread");
		goto failed;
	}
	*out = batcher;
	return OK;
failed:
	free(batcher->queues);
	free(batcher);
	return status;
}

bool batcher_add(struct batcher *batcher, struct batch_job *job)
{
	BUG_IF(job->count < 1 || job->model < 0 || job->model >= batcher->settings.models);
	job->next = NULL;
	job->error.status = OK;
	job->taken = job->taken_now = job->tokens_left = 0;
	for (int64_t i = 0; i < job->count; i++)
		job->tokens_left += job->tokens[i];
	pthread_mutex_lock(&batcher->lock);
	struct queue *queue = &batcher->queues[job->model];
	bool takes = !batcher->closing && batcher->waiting < batcher->settings.max_queue_tokens;
	if (takes) {
		job->added = clock_seconds();
		if (queue->last)
			queue->last->next = job;
		else
			queue->first = job;
		queue->last = job;
		queue->jobs++;
		queue->tokens += job->tokens_left;
		batcher->waiting += job->tokens_left;
		pthread_cond_signal(&batcher->changed);
	}
	pthread_mutex_unlock(&batcher->lock);
	return takes;
}

bool batcher_is_full(struct batcher *batcher)
{
	return batcher_waiting(batcher) >= batcher->settings.max_queue_tokens;
}

int64_t batcher_waiting(struct batcher *batcher)
{
	pthread_mutex_lock(&batcher->lock);
	int64_t waiting = batcher->waiting;
	pthread_mutex_unlock(&batcher->lock);
	return waiting;
}

double batcher_delay(struct batcher *batcher)
{
	pthread_mutex_lock(&batcher->lock);
	double delay = batcher->computed > 0 ? (double)batcher->waiting * batcher->seconds / batcher->computed : 0;
	pthread_mutex_unlock(&batcher->lock);
	return delay;
}

void batcher_close(struct batcher *batcher)
{
	if (!batcher)
		return;
	pthread_mutex_lock(&batcher->lock);
	batcher->closing = true;
	pthread_cond_signal(&batcher->changed);
	pthread_mutex_unlock(&batcher->lock);
	pthread_join(batcher->thread, NULL);
	pthread_mutex_destroy(&batcher->lock);
	pthread_cond_destroy(&batcher->changed);
	free(batcher->parts);
	free(batcher->queues);
	free(batcher);
}
