/* The thread that carries out large operations in the order in which they were queued. */
#include <time.h>

#include "base/condition.h"
#include "base/log.h"
#include "comm/transport.h"

#define IDLE_NANOSECONDS 200000000

/* Called with the lock held. A transport without a thread of its own for signs of life sends them from this one. */
static void wait_for_work(struct comm *comm)
{
	struct queue *queue = &comm->queue;
	if (!comm->transport->idle || queue->error.status != OK) {
		pthread_cond_wait(&queue->changed, &queue->lock);
		return;
	}
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += IDLE_NANOSECONDS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_cond_timedwait(&queue->changed, &queue->lock, &until) == 0)
		return;
	pthread_mutex_unlock(&queue->lock);
	enum status status = comm->transport->idle(comm);
	pthread_mutex_lock(&queue->lock);
	if (status != OK)
		queue->error = *error_last();
}

static void *queue_main(void *argument)
{
	struct comm *comm = argument;
	struct queue *queue = &comm->queue;
	pthread_mutex_lock(&queue->lock);
	for (;;) {
		while (queue->done == queue->begun && !queue->quit)
			wait_for_work(comm);
		if (queue->done == queue->begun)
			break;
		struct operation operation = queue->entries[(queue->done + 1) % QUEUE_LENGTH];
		bool failed = queue->error.status != OK && !operation.always;
		pthread_mutex_unlock(&queue->lock);
		double started = clock_seconds();
		enum status status = failed ? OK : comm->transport->perform(comm, &operation);
		double seconds = clock_seconds() - started;
		pthread_mutex_lock(&queue->lock);
		if (status != OK && queue->error.status == OK)
			queue->error = *error_last();
		if (operation.kind != OPERATION_CALL)
			queue->busy += seconds;
		queue->done++;
		pthread_cond_broadcast(&queue->changed);
	}
	pthread_mutex_unlock(&queue->lock);
	return NULL;
}

enum status queue_open(struct comm *comm)
{
	struct queue *queue = &comm->queue;
	pthread_mutex_init(&queue->lock, NULL);
	condition_init(&queue->changed);
	if (pthread_create(&queue->thread, NULL, queue_main, comm) != 0)
		return error_set(ERR_RESOURCE, "cannot start the thread that talks to other ranks");
	queue->started = true;
	return OK;
}

comm_ticket queue_push(struct comm *comm, const struct operation *operation)
{
	struct queue *queue = &comm->queue;
	pthread_mutex_lock(&queue->lock);
	while (queue->begun - queue->done == QUEUE_LENGTH)
		pthread_cond_wait(&queue->changed, &queue->lock);
	comm_ticket ticket = ++queue->begun;
	queue->entries[ticket % QUEUE_LENGTH] = *operation;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
	return ticket;
}

enum status queue_wait(struct comm *comm, comm_ticket ticket)
{
	struct queue *queue = &comm->queue;
	enum status status = OK;
	pthread_mutex_lock(&queue->lock);
	BUG_IF(ticket > queue->begun);
	if (queue->done < ticket) {
		bool large = queue->entries[ticket % QUEUE_LENGTH].kind != OPERATION_CALL;
		double started = clock_seconds();
		while (queue->done < ticket)
			pthread_cond_wait(&queue->changed, &queue->lock);
		queue->exposed += large ? clock_seconds() - started : 0;
	}
	if (queue->error.status != OK)
		status = error_restore(&queue->error);
	pthread_mutex_unlock(&queue->lock);
	return status;
}

void queue_seconds(struct comm *comm, double *out_busy, double *out_exposed)
{
	struct queue *queue = &comm->queue;
	*out_busy = *out_exposed = 0;
	if (!queue->started)
		return;
	pthread_mutex_lock(&queue->lock); /* weights may still be under way */
	*out_busy = queue->busy;
	*out_exposed = queue->exposed;
	pthread_mutex_unlock(&queue->lock);
}

enum status queue_check(struct comm *comm)
{
	struct queue *queue = &comm->queue;
	enum status status = OK;
	if (!queue->started)
		return OK;
	pthread_mutex_lock(&queue->lock);
	if (queue->error.status != OK)
		status = error_restore(&queue->error);
	pthread_mutex_unlock(&queue->lock);
	return status;
}

void queue_close(struct comm *comm)
{
	struct queue *queue = &comm->queue;
	if (!queue->started)
		return;
	pthread_mutex_lock(&queue->lock);
	queue->quit = true;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
	pthread_join(queue->thread, NULL);
	pthread_mutex_destroy(&queue->lock);
	pthread_cond_destroy(&queue->changed);
	queue->started = false;
}
