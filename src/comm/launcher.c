/* Starts the ranks of this machine as child processes, passes signals on, and turns one rank's failure into everyone's. */
#include "comm/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "comm/affinity.h"
#include "comm/place.h"
#include "comm/watchdog.h"

#define LOOK_NANOSECONDS 200000000

struct child {
	pid_t pid;
	bool running;
	int status; /* from waitpid */
};

struct launcher {
	const struct launcher_settings *settings;
	struct segment segment;
	struct affinity affinity;
	struct watcher watcher;
	struct buffer arguments; /* NUL-terminated, one after another */
	char **argv;
	struct child *children;
	int32_t running;
	pid_t group;
	int64_t restarts, failed, killed; /* number of restarts; times of failing and killing in ns, 0: not yet */
	int stop_signal;                  /* the last one passed on; 0: none */
	bool left_by_signal;              /* a stop signal killed a rank, which did not handle it or got it twice */
	sigset_t signals, before;
};

static enum status read_arguments(struct launcher *launcher)
{
	int64_t count = 0;
	TRY(file_read("/proc/self/cmdline", 1 << 24, &launcher->arguments));
	for (size_t i = 0; i < launcher->arguments.size; i++)
		count += launcher->arguments.data[i] == '\0';
	TRY(memory_new(&launcher->argv, count + 1, sizeof *launcher->argv, "arguments"));
	char *at = launcher->arguments.data;
	for (int64_t i = 0; i < count; i++, at += strlen(at) + 1)
		launcher->argv[i] = at;
	return OK;
}

static void log_path(char out[PATH_BYTES], const char *folder, int32_t rank)
{
	snprintf(out, PATH_BYTES, "%.4000s/logs/rank-%d.log", folder, rank);
}

static void set_variable(const char *name, int64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%lld", (long long)value);
	setenv(name, text, 1);
}

/* In the child process: becomes rank `rank`. Returns only if that fails. */
static void become_rank(struct launcher *launcher, int32_t rank, pid_t parent)
{
	char path[PATH_BYTES];
	/* A process group of their own, so that the terminal's Ctrl-C reaches the ranks once, through the launcher. Writing to
	 * the terminal must not stop them because of it. */
	setpgid(0, launcher->group);
	signal(SIGTTOU, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(ERR_PEER);
	sigprocmask(SIG_SETMASK, &launcher->before, NULL);
	cpu_set_t *set = CPU_ALLOC(AFFINITY_CPUS);
	if (!set)
		return;
	int cores = affinity_share(&launcher->affinity, rank, launcher->settings->ranks, set);
	if (launcher->affinity.count > 0)
		sched_setaffinity(0, AFFINITY_BYTES, set);
	set_variable(PLACE_RANK, rank);
	set_variable(PLACE_SIZE, launcher->settings->ranks);
	set_variable(PLACE_CORES, cores);
	set_variable(PLACE_RESTARTS, launcher->restarts);
	set_variable(PLACE_SEGMENT, launcher->segment.file);
	fcntl(launcher->segment.file, F_SETFD, 0);
	if (rank > 0) {
		log_path(path, launcher->settings->folder, rank);
		int none = open("/dev/null", O_RDWR | O_CLOEXEC),
		    log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (log < 0 || none < 0) {
			log_warning("'%s': cannot open the log of rank %d: %s", path, rank, strerror(errno));
			return;
		}
		dup2(none, 0);
		dup2(none, 1);
		dup2(log, 2);
	}
	execv("/proc/self/exe", launcher->argv);
}

static enum status start(struct launcher *launcher)
{
	pid_t parent = getpid();
	TRY(segment_create(&launcher->segment, launcher->settings->ranks, true));
	launcher->segment.header->reported = true;
	for (int32_t rank = 0; rank < launcher->settings->ranks; rank++)
		gethostname(launcher->segment.header->ranks[rank].host, sizeof launcher->segment.header->ranks[rank].host - 1);
	launcher->group = 0;
	launcher->running = 0;
	launcher->failed = launcher->killed = 0;
	launcher->watcher = (struct watcher){.limit = watchdog_nanoseconds(launcher->settings->watchdog_seconds)};
	for (int32_t rank = 0; rank < launcher->settings->ranks; rank++) {
		fflush(NULL);
		pid_t child = fork();
		if (child == 0) {
			become_rank(launcher, rank, parent);
			_exit(ERR_RESOURCE);
		}
		if (child < 0)
			return error_hinted(
				error_set_errno(ERR_RESOURCE, "cannot start rank %d of %d", rank, launcher->settings->ranks),
				"use fewer --ranks, or raise the process limit (ulimit -u)");
		/* In parent and child: whichever runs first. */
		launcher->group = launcher->group ? launcher->group : child;
		setpgid(child, launcher->group);
		launcher->children[rank] = (struct child){.pid = child, .running = true};
		launcher->running++;
	}
	return OK;
}

static void send_all(struct launcher *launcher, int number)
{
	for (int32_t rank = 0; rank < launcher->settings->ranks; rank++)
		if (launcher->children[rank].running)
			kill(launcher->children[rank].pid, number);
}

/* Makes a failure everyone's. */
static void fail(struct launcher *launcher, int32_t rank, const struct error *error)
{
	segment_fail(&launcher->segment, rank, error);
	launcher->failed = launcher->failed ? launcher->failed : segment_now();
}

/* Decides what the end of a rank means. */
static void judge_end(struct launcher *launcher, int32_t rank)
{
	const struct segment_rank *facts = &launcher->segment.header->ranks[rank];
	int status = launcher->children[rank].status, code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	struct error error = {.status = WIFSIGNALED(status) ? ERR_PEER : (enum status)code};
	char log[PATH_BYTES];
	/* A rank that stops before the first step ends at once, without telling those that wait for it. */
	if (code == OK || (code == STOPPED && atomic_load(&facts->left)) || launcher->killed)
		return;
	log_path(log, launcher->settings->folder, rank);
	if (WIFSIGNALED(status)) {
		int number = WTERMSIG(status);
		const char *name = sigabbrev_np(number);
		launcher->left_by_signal |= launcher->stop_signal == number; /* as requested */
		snprintf(error.message, sizeof error.message,
			 "rank %d on %s (process %d) was killed by SIG%s in '%s' of step %lld", rank, facts->host,
			 launcher->children[rank].pid, name ? name : "?", SECTION_OF(facts),
			 (long long)atomic_load(&facts->step));
		snprintf(error.hint, sizeof error.hint,
			 "%sthe last checkpoint is intact: run the same command again to resume%s%.600s",
			 number == SIGKILL ? "if nobody sent it, the system ran out of memory (see dmesg); " : "",
			 rank > 0 ? "; its log is " : "", rank > 0 ? log : "");
	} else if (code == STOPPED) {
		snprintf(error.message, sizeof error.message, "rank %d on %s was stopped before the first step", rank,
			 facts->host);
		snprintf(error.hint, sizeof error.hint, "run the same command again to resume");
	} else {
		snprintf(error.message, sizeof error.message, "rank %d on %s ended with exit status %d in '%s' of step %lld",
			 rank, facts->host, code, SECTION_OF(facts), (long long)atomic_load(&facts->step));
		snprintf(error.hint, sizeof error.hint, "see its log for the reason: %.700s", log);
	}
	fail(launcher, rank, &error);
}

static void reap(struct launcher *launcher)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int32_t rank = 0; rank < launcher->settings->ranks; rank++)
			if (launcher->children[rank].running && launcher->children[rank].pid == pid) {
				launcher->children[rank].running = false;
				launcher->children[rank].status = status;
				launcher->running--;
				judge_end(launcher, rank);
			}
}

static void pass_on(struct launcher *launcher, int number)
{
	if (number == SIGTSTP) {
		/* Ctrl-Z: all ranks stop, and continue when this process does. */
		send_all(launcher, SIGSTOP);
		raise(SIGSTOP);
		send_all(launcher, SIGCONT);
		return;
	}
	launcher->stop_signal = number;
	send_all(launcher, number);
}

/* Makes the rank write its stack to its log, if it still can, and kills it. */
static void end_hanging(const struct child *child)
{
	kill(child->pid, SIGUSR2);
	clock_pause(0.2);
	kill(child->pid, SIGKILL);
}

/* Watches the ranks until the last one has ended. */
static void watch(struct launcher *launcher)
{
	while (launcher->running > 0) {
		struct timespec look = {.tv_nsec = LOOK_NANOSECONDS};
		struct error error;
		int32_t rank;
		int number = sigtimedwait(&launcher->signals, NULL, &look);
		if (number > 0 && number != SIGCHLD)
			pass_on(launcher, number);
		reap(launcher);
		int64_t now = segment_now();
		bool hangs = watcher_look(&launcher->watcher, &launcher->segment, &rank, &error);
		if (!launcher->failed && hangs) {
			fail(launcher, rank, &error);
			if (rank >= 0)
				end_hanging(&launcher->children[rank]);
		}
		if (!launcher->failed && segment_check(&launcher->segment) != OK)
			launcher->failed = now;
		if (launcher->failed && !launcher->killed && now - launcher->failed > (int64_t)LEAVE_SECONDS * 1000000000) {
			launcher->killed = now;
			send_all(launcher, SIGKILL);
		}
	}
}

/* The outcome of all ranks together. */
static enum status conclude(struct launcher *launcher)
{
	struct segment_header *header = launcher->segment.header;
	const struct child *first = &launcher->children[0];
	if (launcher->left_by_signal && launcher->stop_signal != SIGUSR1) {
		/* As without a launcher: the parent process sees the signal. */
		signal(launcher->stop_signal, SIG_DFL);
		sigprocmask(SIG_SETMASK, &launcher->before, NULL);
		raise(launcher->stop_signal);
	}
	if (launcher->left_by_signal)
		return error_set(STOPPED, "stopped by SIGUSR1");
	/* Rank 0 reports why it leaves if it leaves in good order, or before it has joined the others. */
	bool orderly = atomic_load(&header->ranks[0].left) || atomic_load(&header->ranks[0].pid) == 0;
	int code = WIFEXITED(first->status) ? WEXITSTATUS(first->status) : OK;
	bool said = code == STOPPED ? header->failure.status == STOPPED : orderly && code != OK;
	enum status status = OK;
	if (launcher->failed && atomic_load(&header->failed) == 2) {
		struct error error = header->failure;
		if (said)
			error.message[0] = error.hint[0] = '\0';
		return error_restore(&error);
	}
	for (int32_t rank = 0; rank < launcher->settings->ranks; rank++) {
		int ended = launcher->children[rank].status;
		if (WIFSIGNALED(ended))
			status = ERR_PEER;
		else if (WEXITSTATUS(ended) != OK && (status == OK || status == STOPPED))
			status = (enum status)WEXITSTATUS(ended);
	}
	return status == OK ? OK : error_set(status, "%s", "");
}

static void block_signals(struct launcher *launcher)
{
	static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGTSTP};
	sigemptyset(&launcher->signals);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		struct sigaction old;
		/* Signals that the parent process ignores (nohup, background jobs) stay ignored. */
		if (numbers[i] != SIGCHLD && sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			continue;
		sigaddset(&launcher->signals, numbers[i]);
	}
	signal(SIGCHLD, SIG_DFL); /* if it were ignored, children would leave no exit status */
	sigprocmask(SIG_BLOCK, &launcher->signals, &launcher->before);
}

static enum status prepare(struct launcher *launcher)
{
	char folder[PATH_BYTES];
	TRY(path_join(folder, launcher->settings->folder, "logs"));
	TRY(folder_make(folder));
	TRY(memory_new(&launcher->children, launcher->settings->ranks, sizeof *launcher->children, "a list of ranks"));
	TRY(affinity_read(&launcher->affinity, "/sys"));
	return read_arguments(launcher);
}

enum status launcher_run(const struct launcher_settings *settings)
{
	struct launcher launcher = {.settings = settings, .segment = {.file = -1}};
	enum status status = prepare(&launcher);
	block_signals(&launcher);
	while (status == OK) {
		status = start(&launcher);
		if (status != OK) {
			struct error error = *error_last();
			launcher.killed = segment_now();
			send_all(&launcher, SIGKILL);
			watch(&launcher);
			status = error_restore(&error);
			break;
		}
		watch(&launcher);
		status = conclude(&launcher);
		if (status != ERR_PEER || launcher.restarts == settings->max_restarts || launcher.stop_signal)
			break;
		launcher.restarts++;
		if (error_last()->message[0])
			log_warning("%s", error_last()->message);
		log_note("restarting all ranks (%lld of %lld)", (long long)launcher.restarts, (long long)settings->max_restarts);
		segment_leave(&launcher.segment);
		status = OK;
	}
	segment_leave(&launcher.segment);
	sigprocmask(SIG_SETMASK, &launcher.before, NULL);
	affinity_release(&launcher.affinity);
	buffer_release(&launcher.arguments);
	free(launcher.argv);
	free(launcher.children);
	return status;
}

enum status launcher_log(const struct place *place, const char *folder)
{
	char path[PATH_BYTES];
	if (place->ranks.size == 1)
		return OK;
	TRY(path_join(path, folder, "logs"));
	TRY(folder_make(path));
	log_path(path, folder, place->ranks.rank);
	if (place->ranks.rank == 0) {
		log_to_file(path);
		return OK;
	}
	if (place->launched)
		return OK;
	int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (log < 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot open", path);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	close(log);
	return OK;
}
