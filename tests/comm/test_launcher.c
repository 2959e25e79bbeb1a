/* The launcher and what it supervises: this program starts itself as several ranks, in which things go wrong.
 * BERTC_TEST_PART names the part that a rank plays. */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"
#include "comm/affinity.h"
#include "comm/launcher.h"
#include "comm/place.h"
#include "comm/watchdog.h"
#include "test.h"

/* ---- The ranks ---- */

enum { STEPS = 12, COUNT = 50000 };

/* A loop like that of training: sections, a reduction, a sum, and sometimes `save`. */
static enum status train(struct comm *comm, double pause)
{
	float *data;
	TRY(comm_allocate(comm, (void **)&data, COUNT * sizeof *data, "gradients"));
	for (int64_t step = 1; step <= STEPS; step++) {
		double values[1] = {1};
		comm_section(comm, "data", step);
		comm_section(comm, "forward", step);
		clock_pause(pause);
		for (int64_t i = 0; i < COUNT; i++)
			data[i] = (float)(i % 100);
		comm_section(comm, "reduce", step);
		TRY(comm_wait(comm, comm_reduce_scatter(comm, data, COUNT, COMM_F32, COMM_F32)));
		TRY(comm_sum(comm, values, 1));
		if (step % 5 == 0)
			comm_section(comm, "save", step);
		TRY(comm_gather(comm, NULL, 0, NULL));
	}
	comm_release(comm, data);
	return OK;
}

static volatile sig_atomic_t asked;

static void remember(int number)
{
	asked = number;
}

/* Runs until a stop is requested; all ranks agree on the step. */
static enum status until_asked(struct comm *comm)
{
	for (int64_t step = 1; step < 10000; step++) {
		double stop = asked != 0;
		comm_section(comm, "forward", step);
		clock_pause(0.005);
		TRY(comm_max(comm, &stop, 1));
		if (stop > 0) {
			log_note("rank %d stopped", comm_place(comm)->rank);
			return error_set(STOPPED, "stopped at step %lld", (long long)step);
		}
	}
	return OK;
}

/* For a rank, the time of day is always set back by an hour right after it was read. */
static bool clock_is_set_back;

int clock_gettime(clockid_t clock, struct timespec *out)
{
	long result = syscall(SYS_clock_gettime, clock, out);
	if (clock == CLOCK_REALTIME && clock_is_set_back)
		out->tv_sec += 3600;
	return (int)result;
}

static enum status run_part(const char *part, struct comm *comm, const struct place *place)
{
	int32_t rank = place->ranks.rank;
	if (strcmp(part, "clock_set_back") == 0)
		return train(comm, 0.5);
	if (strcmp(part, "stopped_early") == 0 || (strcmp(part, "one_stopped_early") == 0 && rank == 1))
		_exit(STOPPED);
	if (strcmp(part, "one_stopped_early") == 0)
		return comm_gather(comm, NULL, 0, NULL);
	if (strcmp(part, "train") == 0)
		return train(comm, 0.002);
	if (strcmp(part, "slowly") == 0)
		return train(comm, 0.1);
	if (strcmp(part, "until_asked") == 0)
		return until_asked(comm);
	if (strcmp(part, "own_error") == 0) {
		TRY(comm_gather(comm, NULL, 0, NULL));
		if (rank == 1)
			return error_set(ERR_DATA, "'shard' is broken");
		return comm_gather(comm, NULL, 0, NULL);
	}
	if (strcmp(part, "disagree") == 0)
		return comm_agree(comm, "the vocabulary", rank == 2 ? "hash 2" : "hash 1");
	if (strcmp(part, "first_run_dies") == 0) {
		TRY(comm_gather(comm, NULL, 0, NULL));
		if (place->restarts < 2 && rank == 1)
			kill(getpid(), SIGKILL);
		return train(comm, 0);
	}
	if (strcmp(part, "deadlock") == 0) {
		comm_section(comm, "forward", 1);
		comm_section(comm, "forward", 2);
		static float data[100];
		return rank == 0 ? comm_gather(comm, NULL, 0, NULL)
				 : comm_wait(comm, comm_reduce_scatter(comm, data, 100, COMM_F32, COMM_F32));
	}
	return error_set(ERR_USAGE, "no part '%s'", part);
}

static int rank_main(const char *part)
{
	struct place place;
	struct comm *comm = NULL;
	const char *seconds = getenv("BERTC_TEST_WATCHDOG");
	clock_is_set_back = strcmp(part, "clock_set_back") == 0;
	if (strcmp(part, "until_asked") == 0) {
		signal(SIGUSR1, remember);
		signal(SIGTERM, remember);
	}
	enum status status = place_find(&place);
	if (status == OK)
		status = comm_open(
			&comm, &(struct comm_settings){.place = &place, .watchdog_seconds = seconds ? strtod(seconds, NULL) : 0});
	if (status == OK && place.ranks.rank == 0)
		fprintf(stderr, "ready\n");
	if (status == OK)
		status = run_part(part, comm, &place);
	comm_fail(comm, status);
	if (status != OK)
		fprintf(stderr, "said by rank %d: %s\n", place.ranks.rank, error_last()->message);
	comm_close(comm);
	return (int)status;
}

/* ---- The launcher, in a process of its own ---- */

static struct buffer said;

/* Starts ranks; returns their launcher's exit status (128 + signal), leaves everyone's output in `said`, and the time in
 * *out_seconds. If `number` is not 0, sends that signal to the launcher after a while. */
static int launch(const char *part, int32_t ranks, double watchdog, int64_t restarts, const char *fault, int number,
		  double *out_seconds)
{
	char text[32];
	double started = clock_seconds();
	remove(test_path("said"));
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		alarm(60);
		if (!freopen(test_path("said"), "w", stderr))
			_exit(99);
		setvbuf(stderr, NULL, _IOLBF, 4096);
		setenv("BERTC_TEST_PART", part, 1);
		snprintf(text, sizeof text, "%g", watchdog);
		setenv("BERTC_TEST_WATCHDOG", text, 1);
		if (fault)
			setenv("BERTC_RANK_FAULT", fault, 1);
		enum status status = launcher_run(&(struct launcher_settings){
			.ranks = ranks, .folder = test_folder, .watchdog_seconds = watchdog, .max_restarts = restarts});
		if (status != OK && error_last()->message[0])
			fprintf(stderr, "said by the launcher: %s\n", error_last()->message);
		fflush(NULL);
		_exit((int)status);
	}
	if (number) {
		buffer_clear(&said);
		for (int i = 0; i < 3000 && !strstr(buffer_string(&said), "ready"); i++) {
			clock_pause(0.01);
			if (file_exists(test_path("said")))
				assert_ok(file_read(test_path("said"), 1 << 20, &said));
		}
		clock_pause(0.1);
		kill(child, number);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (out_seconds)
		*out_seconds = clock_seconds() - started;
	buffer_clear(&said);
	assert_ok(file_read(test_path("said"), 1 << 20, &said));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

#define assert_said(part)                                                                                                        \
	do {                                                                                                                     \
		if (!strstr(buffer_string(&said), part))                                                                         \
			fail_msg("'%s' is not in:\n%s", part, buffer_string(&said));                                             \
	} while (0)

static void test_all_well(void **state)
{
	for (int32_t ranks = 2; ranks <= 4; ranks *= 2)
		if (launch("train", ranks, 0, 0, NULL, 0, NULL) != OK)
			fail_msg("%s", buffer_string(&said));
	assert_true(file_exists(test_path("logs/rank-1.log")) && file_exists(test_path("logs/rank-3.log")));
}

/* A rank that dies: at the start, in a step, in a reduction, in a save. */
static void test_death(void **state)
{
	static const struct {
		const char *fault, *said;
	} cases[] = {
		{"1:data:1:SIGKILL", "rank 1 on "},
		{"2:forward:3:SIGSEGV", "was killed by SIGSEGV in 'forward' of step 3"},
		{"1:reduction:7:SIGKILL", "was killed by SIGKILL in 'reduce' of step 7"},
		{"0:save:5:SIGABRT", "was killed by SIGABRT in 'save' of step 5"},
		{"2:forward:4:exit", "ended with exit status 1 in 'forward' of step 4"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double seconds;
		int status = launch("train", 3, 0, 0, cases[i].fault, 0, &seconds);
		if (status != (strstr(cases[i].fault, "exit") ? ERR_INTERNAL : ERR_PEER))
			fail_msg("%s: status %d\n%s", cases[i].fault, status, buffer_string(&said));
		assert_said(cases[i].said);
		assert_true(seconds < 10);
	}
}

/* A rank that is stopped, and one that hangs by itself. */
static void test_hang(void **state)
{
	double seconds;
	assert_int_equal(launch("train", 3, 1, 0, "1:reduce:4:SIGSTOP", 0, &seconds), ERR_PEER);
	assert_said("rank 1 on ");
	assert_said("has given no sign of life for ");
	assert_said("'reduce' of step 4: a signal has stopped it");
	assert_true(seconds < 9);
	assert_int_equal(launch("train", 3, 1, 0, "2:forward:4:hang", 0, &seconds), ERR_PEER);
	assert_said("rank 2 on ");
	assert_said("hangs in 'forward' of step 4");
	assert_true(seconds < 9);
	struct buffer log = {0};
	assert_ok(file_read(test_path("logs/rank-2.log"), 1 << 20, &log));
	const char *stack = strstr(buffer_string(&log), "stack of a rank that hangs");
	assert_true(stack && strstr(stack, "test_launcher"));
	buffer_release(&log);
	assert_int_equal(launch("train", 2, 1, 0, "1:reduction:4:hang", 0, &seconds), ERR_PEER);
	assert_said("rank 1 on ");
	assert_said("hangs in 'reduce' of step 4");
}

static void test_deadlock(void **state)
{
	assert_int_equal(launch("deadlock", 2, 0.5, 0, NULL, 0, NULL), ERR_PEER);
	assert_said("all ranks wait for each other: rank 0 in 'forward' of step 2, rank 1 in 'forward' of step 2");
}

/* A slow rank is not a hanging rank. */
static void test_slow(void **state)
{
	if (launch("slowly", 2, 0.5, 0, NULL, 0, NULL) != OK)
		fail_msg("%s", buffer_string(&said));
}

static void test_own_error(void **state)
{
	assert_int_equal(launch("own_error", 3, 0, 0, NULL, 0, NULL), ERR_DATA);
	assert_said("said by rank 0: rank 1 on ");
	assert_said(": 'shard' is broken");
	assert_null(strstr(buffer_string(&said), "launcher"));
	assert_int_equal(launch("disagree", 4, 0, 0, NULL, 0, NULL), ERR_STATE);
	assert_said("said by rank 0: ranks disagree about the vocabulary: rank 0 on ");
	assert_said("has 'hash 1', rank 2 on ");
}

static void test_restarts(void **state)
{
	assert_int_equal(launch("first_run_dies", 2, 0, 1, NULL, 0, NULL), ERR_PEER);
	assert_said("restarting all ranks (1 of 1)");
	assert_int_equal(launch("first_run_dies", 2, 0, 3, NULL, 0, NULL), OK);
	assert_said("(2 of 3)");
	assert_null(strstr(buffer_string(&said), "(3 of 3)"));
	assert_int_equal(launch("train", 2, 0, 1, "1:reduction:2:SIGKILL", 0, NULL), OK);
}

static void test_signals(void **state)
{
	assert_int_equal(launch("until_asked", 3, 0, 0, NULL, SIGUSR1, NULL), STOPPED);
	assert_said("said by rank 0: stopped at step ");
	assert_int_equal(launch("until_asked", 3, 0, 0, NULL, SIGTERM, NULL), STOPPED);
	/* Ranks that do not handle the signal: as if there were no launcher. */
	assert_int_equal(launch("slowly", 3, 0, 0, NULL, SIGINT, NULL), 128 + SIGINT);
	assert_int_equal(launch("slowly", 3, 0, 0, NULL, SIGTERM, NULL), 128 + SIGTERM);
}

/* Ranks that a signal ends before the first step: all of them, or one that the others then wait for. */
static void test_stopped_early(void **state)
{
	double seconds;
	assert_int_equal(launch("stopped_early", 2, 0, 0, NULL, 0, NULL), STOPPED);
	assert_null(strstr(buffer_string(&said), "launcher"));
	assert_int_equal(launch("one_stopped_early", 3, 0, 0, NULL, 0, &seconds), STOPPED);
	assert_said("said by rank 0: rank 1 on ");
	assert_said(" was stopped before the first step");
	assert_true(seconds < 10);
}

static void test_clock_set_back(void **state)
{
	if (launch("clock_set_back", 2, 3, 0, NULL, 0, NULL) != OK)
		fail_msg("%s", buffer_string(&said));
}

static void test_log_that_cannot_be_opened(void **state)
{
	remove(test_path("logs/rank-1.log"));
	assert_ok(folder_make(test_path("logs/rank-1.log")));
	assert_int_equal(launch("train", 2, 0, 0, NULL, 0, NULL), ERR_RESOURCE);
	assert_said("logs/rank-1.log': cannot open the log of rank 1: Is a directory");
	assert_int_equal(rmdir(test_path("logs/rank-1.log")), 0);
}

/* If the launcher is killed, its ranks end, too. Each holds a lock of the test, which is free once they are gone. */
static void test_launcher_killed(void **state)
{
	int ends[2];
	char byte;
	assert_int_equal(pipe(ends), 0); /* inherited by all ranks: reaches its end when the last of them is gone */
	assert_int_equal(launch("until_asked", 3, 0, 0, NULL, SIGKILL, NULL), 128 + SIGKILL);
	close(ends[1]);
	alarm(10);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	alarm(0);
	close(ends[0]);
}

/* ---- Ranks started by something else ---- */

static pid_t start_placed(const char *part, int rank, int size, const char *fault, const char *job)
{
	char number[32], total[32];
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child > 0)
		return child;
	alarm(60);
	snprintf(number, sizeof number, "%d", rank);
	snprintf(total, sizeof total, "%d", size);
	setenv("RANK", number, 1);
	setenv("LOCAL_RANK", number, 1);
	setenv("WORLD_SIZE", total, 1);
	setenv("LOCAL_WORLD_SIZE", total, 1);
	setenv("MASTER_PORT", job, 1);
	setenv("BERTC_TEST_WATCHDOG", "1", 1);
	if (fault)
		setenv("BERTC_RANK_FAULT", fault, 1);
	if (!freopen(test_path("said"), "a", stderr))
		_exit(99);
	setvbuf(stderr, NULL, _IOLBF, 4096);
	_exit(rank_main(part));
}

static int placed_port(void)
{
	static int count;
	return 1 + (getpid() + 17 * count++) % 65000;
}

/* Starts the ranks, last one first; `statuses` as in run_ranks(). */
static void run_placed(const char *part, int size, const char *fault, int *statuses)
{
	pid_t children[8];
	char job[32];
	/* A free port, which only serves as a name. */
	snprintf(job, sizeof job, "%d", placed_port());
	remove(test_path("said"));
	for (int rank = size - 1; rank >= 0; rank--)
		children[rank] = start_placed(part, rank, size, fault, job);
	for (int rank = 0; rank < size; rank++) {
		int status, stopped;
		do {
			stopped = waitpid(children[rank], &status, WUNTRACED) == children[rank] && WIFSTOPPED(status);
			if (stopped) { /* by the fault: it is killed after the others have noticed */
				statuses[rank] = 128 + SIGSTOP;
				break;
			}
		} while (stopped);
		if (!stopped)
			statuses[rank] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	for (int rank = 0; rank < size; rank++)
		if (statuses[rank] == 128 + SIGSTOP) {
			kill(children[rank], SIGKILL);
			waitpid(children[rank], NULL, 0);
		}
	buffer_clear(&said);
	if (file_exists(test_path("said")))
		assert_ok(file_read(test_path("said"), 1 << 20, &said));
}

static void test_placed(void **state)
{
	int statuses[8];
	run_placed("train", 4, NULL, statuses);
	for (int rank = 0; rank < 4; rank++)
		if (statuses[rank] != OK)
			fail_msg("rank %d: %d\n%s", rank, statuses[rank], buffer_string(&said));
	run_placed("train", 3, "1:reduction:4:SIGKILL", statuses);
	assert_int_equal(statuses[0], ERR_PEER);
	assert_int_equal(statuses[1], 128 + SIGKILL);
	assert_int_equal(statuses[2], ERR_PEER);
	assert_said("died in 'reduce' of step 4");
	run_placed("train", 3, "2:forward:4:SIGSTOP", statuses);
	assert_int_equal(statuses[0], ERR_PEER);
	assert_int_equal(statuses[1], ERR_PEER);
	assert_said("rank 2 on ");
	assert_said("has given no sign of life for ");
	run_placed("disagree", 3, NULL, statuses);
	for (int rank = 0; rank < 3; rank++)
		assert_int_equal(statuses[rank], ERR_STATE);
	/* The name is removed as soon as all ranks have arrived. */
	char path[128], job[32];
	snprintf(job, sizeof job, "%d", placed_port());
	snprintf(path, sizeof path, "/dev/shm/bertc-%u-%s--", (unsigned)getuid(), job);
	pid_t first = start_placed("slowly", 0, 2, NULL, job), second;
	for (int i = 0; i < 1000 && !file_exists(path); i++)
		clock_pause(0.01);
	assert_true(file_exists(path));
	second = start_placed("slowly", 1, 2, NULL, job);
	for (int i = 0; i < 1000 && file_exists(path); i++)
		clock_pause(0.01);
	assert_false(file_exists(path));
	assert_int_equal(waitpid(first, NULL, 0), first);
	assert_int_equal(waitpid(second, NULL, 0), second);
}

/* Two processes are the same rank, and one rank is missing: all end at once. */
static void test_twice_the_same_rank(void **state)
{
	char job[32];
	pid_t children[3];
	double started = clock_seconds();
	snprintf(job, sizeof job, "%d", placed_port());
	remove(test_path("said"));
	for (int i = 0; i < 3; i++)
		children[i] = start_placed("train", i > 0, 3, NULL, job);
	for (int i = 0; i < 3; i++) {
		int status;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == (i == 0 ? ERR_PEER : ERR_USAGE));
	}
	assert_true(clock_seconds() - started < 9);
	buffer_clear(&said);
	assert_ok(file_read(test_path("said"), 1 << 20, &said));
	assert_said(" are both rank 1 of 3");
}

static void take_warning(void *context, const char *message)
{
	snprintf(context, 256, "%s", message);
}

/* Half of what describes a rank is not passed over in silence. */
static void test_half_a_place(void **state)
{
	struct place place;
	char warning[256] = "";
	log_warnings_to(take_warning, warning);
	setenv("RANK", "1", 1);
	assert_ok(place_find(&place));
	unsetenv("RANK");
	assert_int_equal(place.meeting, MEETING_ALONE);
	assert_non_null(strstr(warning, "RANK is set, but WORLD_SIZE is not"));
	setenv("WORLD_SIZE", "2", 1);
	assert_ok(place_find(&place));
	assert_non_null(strstr(warning, "WORLD_SIZE is set, but RANK is not"));
	warning[0] = '\0';
	setenv("WORLD_SIZE", "1", 1);
	assert_ok(place_find(&place));
	unsetenv("WORLD_SIZE");
	assert_string_equal(warning, "");
	log_warnings_to(NULL, NULL);
}

/* Ranks as described by the environment. */
static void test_places(void **state)
{
	static const struct {
		const char *variables;
		int rank, size, local_rank, local_size;
		enum meeting meeting;
		enum status status;
	} cases[] = {
		{"", 0, 1, 0, 1, MEETING_ALONE, OK},
		{"RANK=3 WORLD_SIZE=4 LOCAL_RANK=3 LOCAL_WORLD_SIZE=4 MASTER_PORT=29500", 3, 4, 3, 4, MEETING_NAME, OK},
		{"RANK=0 WORLD_SIZE=1", 0, 1, 0, 1, MEETING_ALONE, OK},
		{"RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", 3, 4, 1, 2, MEETING_MPI, OK},
		{"RANK=4 WORLD_SIZE=4", 0, 0, 0, 0, MEETING_ALONE, ERR_USAGE},
		{"RANK=x WORLD_SIZE=4", 0, 0, 0, 0, MEETING_ALONE, ERR_USAGE},
		{"RANK=1 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2", 0, 0, 0, 0, MEETING_ALONE, ERR_USAGE},
		{"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=2 "
		 "OMPI_COMM_WORLD_LOCAL_SIZE=3",
		 2, 3, 2, 3, MEETING_NAME, OK},
		/* In the batch script itself: not in a step. */
		{"SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_LOCALID=0", 0, 1, 0, 1, MEETING_ALONE, OK},
		{"SLURM_PROCID=7 SLURM_STEP_NUM_TASKS=11 SLURM_LOCALID=1 SLURM_NODEID=2 "
		 "SLURM_STEP_TASKS_PER_NODE=3(x2),2,3",
		 7, 11, 1, 2, MEETING_MPI, OK},
		/* torchrun within a task of srun */
		{"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 "
		 "LOCAL_WORLD_SIZE=2",
		 1, 2, 1, 2, MEETING_NAME, OK},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char variables[400], names[16][64];
		int count = 0;
		struct place place;
		snprintf(variables, sizeof variables, "%s", cases[i].variables);
		for (char *rest = variables, *word; (word = strtok_r(rest, " ", &rest));) {
			char *equals = strchr(word, '=');
			*equals = '\0';
			snprintf(names[count++], sizeof names[0], "%s", word);
			setenv(word, equals + 1, 1);
		}
		enum status status = place_find(&place);
		for (int k = 0; k < count; k++)
			unsetenv(names[k]);
		assert_int_equal(status, cases[i].status);
		if (status != OK)
			continue;
		assert_int_equal(place.ranks.rank, cases[i].rank);
		assert_int_equal(place.ranks.size, cases[i].size);
		assert_int_equal(place.ranks.local_rank, cases[i].local_rank);
		assert_int_equal(place.ranks.local_size, cases[i].local_size);
		assert_int_equal(place.meeting, cases[i].meeting);
	}
}

/* Two jobs on a machine with a long name do not meet. */
static void test_long_names(void **state)
{
	static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"};
	struct place places[2];
	for (int i = 0; i < 2; i++) {
		char job[128];
		snprintf(job, sizeof job, "prterun-worker-pool-2-vmss000017.internal.cloudapp.example.net-%d@1", 12345 + i);
		setenv(variables[0], "0", 1);
		setenv(variables[1], "2", 1);
		setenv(variables[2], job, 1);
		assert_ok(place_find(&places[i]));
	}
	for (int i = 0; i < 3; i++)
		unsetenv(variables[i]);
	assert_int_equal(places[0].meeting, MEETING_NAME);
	assert_string_not_equal(places[0].name, places[1].name);
}

/* Every core belongs to one rank; the cores of a memory node stay together. */
static void test_affinity(void **state)
{
	struct affinity affinity;
	int order[] = {0, 4, 1, 5, 2, 6, 3, 7};
	cpu_set_t *set = CPU_ALLOC(AFFINITY_CPUS), *all = CPU_ALLOC(AFFINITY_CPUS);
	affinity = (struct affinity){.cpus = order, .count = 8, .cores = 8};
	assert_int_equal(affinity_share(&affinity, 1, 4, set), 2);
	assert_true(CPU_COUNT_S(AFFINITY_BYTES, set) == 2 && CPU_ISSET_S(1, AFFINITY_BYTES, set) &&
		    CPU_ISSET_S(5, AFFINITY_BYTES, set));
	for (int ranks = 1; ranks <= 8; ranks++) {
		int threads = 0;
		CPU_ZERO_S(AFFINITY_BYTES, all);
		for (int rank = 0; rank < ranks; rank++) {
			threads += affinity_share(&affinity, rank, ranks, set);
			CPU_OR_S(AFFINITY_BYTES, all, all, set);
		}
		assert_int_equal(threads, 8);
		assert_int_equal(CPU_COUNT_S(AFFINITY_BYTES, all), 8);
	}
	/* If there are more ranks than cores, all ranks share all cores; a quota limits the number of threads, not the
	 * cores. */
	assert_int_equal(affinity_share(&affinity, 8, 9, set), 1);
	assert_int_equal(CPU_COUNT_S(AFFINITY_BYTES, set), 8);
	affinity.cores = 2;
	assert_int_equal(affinity_share(&affinity, 0, 2, set), 1);
	assert_int_equal(CPU_COUNT_S(AFFINITY_BYTES, set), 4);
	/* This machine. */
	assert_ok(affinity_read(&affinity, "/sys"));
	assert_true(affinity.count >= 1 && affinity.cores >= 1);
	affinity_release(&affinity);
	/* Another one: hyper-threads i and i + 4 of a core, even cores on node 1. */
	cpu_set_t own;
	assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
	if (CPU_COUNT(&own) >= 2 && CPU_ISSET(0, &own) && CPU_ISSET(1, &own)) {
		assert_ok(folder_make(test_path("sys/devices/system/node/node0")));
		assert_ok(folder_make(test_path("sys/devices/system/node/node1")));
		assert_ok(file_write(test_path("sys/devices/system/node/node0/cpulist"), "1,3-3\n", 6));
		assert_ok(file_write(test_path("sys/devices/system/node/node1/cpulist"), "0,2\n", 4));
		assert_ok(affinity_read(&affinity, test_path("sys")));
		assert_int_equal(affinity.cpus[affinity.count > 3 ? 2 : 1], 0);
		affinity_release(&affinity);
	}
	CPU_FREE(set);
	CPU_FREE(all);
}

int main(void)
{
	const char *part = getenv("BERTC_TEST_PART");
	if (part)
		return rank_main(part);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_well),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_deadlock),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_own_error),
		cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_launcher_killed),
		cmocka_unit_test(test_placed),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_affinity),
		cmocka_unit_test(test_stopped_early),
		cmocka_unit_test(test_clock_set_back),
		cmocka_unit_test(test_log_that_cannot_be_opened),
		cmocka_unit_test(test_twice_the_same_rank),
		cmocka_unit_test(test_half_a_place),
		cmocka_unit_test(test_long_names),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
