/* Ranks that exchange messages: over TCP on this machine, and through MPI where it is built in. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "base/log.h"
#include "comm/collectives.h"
#include "comm/messages.h"
#include "comm/tcp.h"

/* A port that is currently free. */
static int32_t free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof address;
	int number = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(number, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(number, (struct sockaddr *)&address, &length), 0);
	close(number);
	return ntohs(address.sin_port);
}

static struct large_case large_cases[] = {
	{1, COMM_F32, COMM_F32, true, 1},
	{65, COMM_F64, COMM_F64, true, 2},
	{4097, COMM_F32, COMM_BF16, true, 3},
	{20000, COMM_F32, COMM_F16, false, 4},
	{4000, COMM_F64, COMM_BF16, true, 5},
	{900001, COMM_F32, COMM_F32, true, 6},
	/* With three ranks, the last share is longer than a message, and the others are not. */
	{1048448, COMM_F32, COMM_F32, false, 7},
};
static bool no = false, yes = true;
static int32_t one = 1;

/* Everything that each transport must support, one test after another. */
static inline enum status everything(struct comm *comm, void *context)
{
	(void)context;
	TRY(small_things(comm, NULL));
	for (size_t i = 0; i < sizeof large_cases / sizeof *large_cases; i++)
		TRY(large_sum(comm, &large_cases[i]));
	TRY(many_at_once(comm, NULL));
	TRY(threads(comm, NULL));
	TRY(allocations(comm, NULL));
	if (comm_place(comm)->size < 3)
		return OK;
	TRY(disagree(comm, &one));
	return failing(comm, NULL);
}

static void test_tcp(void **state)
{
	for (int32_t size = 2; size <= 8; size += size < 4 ? 1 : 4) {
		ranks_port = free_port();
		run_ranks(size, everything, NULL, NULL);
	}
	for (int large = 0; large < 2; large++) {
		ranks_port = free_port();
		run_ranks(3, leave_early, large ? &yes : &no, NULL);
	}
	ranks_port = 0;
}

/* ---- Strangers ---- */

static enum status meet(struct comm *comm, void *context)
{
	(void)context;
	for (int i = 0; i < 3; i++)
		TRY(comm_gather(comm, NULL, 0, NULL));
	return OK;
}

/* Connects to the port as soon as somebody listens there. */
static int reach(int32_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	for (;;) {
		int number = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(number, (struct sockaddr *)&address, sizeof address) == 0)
			return number;
		close(number);
		usleep(1000);
	}
}

/* A process that runs until it is killed: opens idle connections, and some that send what no rank would send. */
static pid_t send_strangers(void)
{
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		char noise[4096];
		memset(noise, 'x', sizeof noise);
		alarm(60);
		for (int i = 0; i < 100; i++) {
			int number = reach(ranks_port);
			if (i % 3 == 1 && send(number, noise, sizeof noise, MSG_NOSIGNAL) < 0)
				continue;
			if (i % 3 == 2 && send(number, noise, 3, MSG_NOSIGNAL) < 0)
				continue;
		}
		for (;;)
			pause();
	}
	return child;
}

/* A process that claims to be a rank of this run; returns its exit code. */
static int pretender(int32_t rank, int32_t size, const char *secret)
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		alarm(60);
		setenv(TCP_SECRET, secret, 1);
		_exit(rank_main(-1, rank, size, meet, NULL));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Ranks meet within seconds whoever else connects, and no stranger ends the run. */
static void test_tcp_strangers(void **state)
{
	setenv(TCP_SECRET, "open sesame", 1);
	for (int round = 0; round < 2; round++) {
		ranks_port = free_port();
		pid_t strangers = send_strangers();
		/* The first rank listens; the others start after the strangers and the pretenders. */
		pid_t ranks[3];
		double started = clock_seconds();
		for (int32_t rank = 0; rank < 3; rank++) {
			fflush(NULL);
			ranks[rank] = fork();
			if (ranks[rank] == 0) {
				alarm(60);
				_exit(rank_main(-1, rank, 3, meet, NULL));
			}
			if (rank > 0)
				continue;
			assert_int_equal(pretender(1, 3, "open barley"), ERR_PEER); /* another secret */
			assert_int_equal(pretender(1, 7, "open sesame"), ERR_PEER); /* another size */
		}
		for (int32_t rank = 0; rank < 3; rank++) {
			int status;
			assert_int_equal(waitpid(ranks[rank], &status, 0), ranks[rank]);
			assert_int_equal(status, 0);
		}
		assert_true(clock_seconds() - started < 30);
		kill(strangers, SIGKILL);
		waitpid(strangers, NULL, 0);
	}
	unsetenv(TCP_SECRET);
	ranks_port = 0;
}

/* ---- Networks ---- */

static bool is_slow, reaches_itself;
static char node_address[INET_ADDRSTRLEN]; /* of this machine, not a loopback address */

/* A rank that is slow to say who it is to the first one it has connected to. */
ssize_t getrandom(void *bytes, size_t count, unsigned flags)
{
	if (is_slow)
		sleep(3);
	is_slow = false;
	return syscall(SYS_getrandom, bytes, count, flags);
}

/* The system gives a connection its target's port as its own, once. */
int connect(int number, __CONST_SOCKADDR_ARG address, socklen_t length)
{
	if (reaches_itself && bind(number, address, length) != 0)
		return -1;
	reaches_itself = false;
	return (int)syscall(SYS_connect, number, address.__sockaddr__, length);
}

/* "node.test" has two addresses, of which other machines ("node.elsewhere") know only the second. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
	static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	*(void **)(void *)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	bool here = name && strcmp(name, "node.test") == 0, elsewhere = name && strcmp(name, "node.elsewhere") == 0;
	int code = real(here ? node_address : elsewhere ? "127.0.0.1" : name, service, hints, out);
	return here && code == 0 ? real("127.0.0.1", service, hints, &(*out)->ai_next) : code;
}

/* A rank of `size` at `address`; `slow`, `itself`: as above. */
static pid_t start_rank(int32_t rank, int32_t size, const char *address, bool slow, bool itself)
{
	struct place place = {.ranks = {rank, size, rank, size, "here"}, .meeting = MEETING_ADDRESS, .port = ranks_port};
	struct comm *comm;
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child > 0)
		return child;
	alarm(60);
	is_slow = slow;
	reaches_itself = itself;
	snprintf(place.address, sizeof place.address, "%s", address);
	enum status status = comm_open(&comm, &(struct comm_settings){.place = &place});
	if (status == OK)
		status = meet(comm, NULL);
	if (status != OK)
		fprintf(stderr, "rank %d: %s\n", rank, error_last()->message);
	comm_close(comm);
	_exit((int)status);
}

static void await_ranks(const pid_t *ranks, int32_t count)
{
	for (int32_t rank = 0; rank < count; rank++) {
		int status;
		assert_int_equal(waitpid(ranks[rank], &status, 0), ranks[rank]);
		assert_int_equal(status, 0);
	}
	ranks_port = 0;
}

/* More ranks connect at the same time than strangers may, and take a while to say who they are. */
static void test_tcp_many(void **state)
{
	pid_t ranks[70];
	ranks_port = free_port();
	for (int32_t rank = 0; rank < 70; rank++)
		ranks[rank] = start_rank(rank, 70, "127.0.0.1", rank > 0, false);
	await_ranks(ranks, 70);
}

/* A rank connects to a port at which nobody listens yet, and reaches itself. */
static void test_tcp_itself(void **state)
{
	pid_t ranks[2];
	ranks_port = free_port();
	ranks[1] = start_rank(1, 2, "127.0.0.1", false, true);
	usleep(500000);
	ranks[0] = start_rank(0, 2, "127.0.0.1", false, false);
	await_ranks(ranks, 2);
}

static void test_tcp_several_addresses(void **state)
{
	struct ifaddrs *all;
	pid_t ranks[2];
	assert_int_equal(getifaddrs(&all), 0);
	for (struct ifaddrs *each = all; each; each = each->ifa_next) {
		const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)each->ifa_addr;
		if (four && four->sin_family == AF_INET && ntohl(four->sin_addr.s_addr) >> 24 != 127)
			inet_ntop(AF_INET, &four->sin_addr, node_address, sizeof node_address);
	}
	freeifaddrs(all);
	if (!node_address[0])
		skip();
	ranks_port = free_port();
	ranks[0] = start_rank(0, 2, "node.test", false, false);
	ranks[1] = start_rank(1, 2, "node.elsewhere", false, false);
	await_ranks(ranks, 2);
}

/* A stranger that listens in place of rank 0 is not believed, either. */
static void test_tcp_false_master(void **state)
{
	int yes_ = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	ranks_port = free_port();
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)ranks_port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes_, sizeof yes_);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, 10), 0);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		/* The right opening and a wrong proof. */
		static unsigned char answer[24] = {'b', 'c', 'r', 'a', 'n', 'k', 'p', 's'}, proof[32];
		char hello[1024];
		int number = accept(listener, NULL, NULL);
		if (send(number, answer, sizeof answer, MSG_NOSIGNAL) < 0 || recv(number, hello, sizeof hello, 0) <= 0 ||
		    send(number, proof, sizeof proof, MSG_NOSIGNAL) < 0)
			_exit(1);
		pause();
	}
	close(listener);
	assert_int_equal(pretender(1, 2, "open sesame"), ERR_PEER);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ranks_port = 0;
}

/* What another process may send in place of status messages. */
static enum status say_nonsense(struct comm *comm, void *context)
{
	struct messages *messages = comm->own;
	struct note note;
	int which = *(int *)context;
	memset(&note, 0, sizeof note);
	note.kind = which < 4 ? NOTE_BEAT : NOTE_FAILURE;
	memset(note.section, 'A', sizeof note.section);
	memset(note.host, 'B', sizeof note.host);
	memset(note.error.message, 'C', sizeof note.error.message);
	memset(note.error.hint, 'D', sizeof note.error.hint);
	note.error.status = ERR_PEER;
	switch (which) {
	case 0: note.age = INT64_MIN; break;
	case 1: note.age = INT64_MAX; break;
	case 2: note.limit = INT64_MIN; break;
	case 3: note.kind = 99; break;
	case 4: note.rank = 1000000; break;
	case 5: note.error.status = (enum status)12345; break;
	}
	messages->messenger->tell(messages, 0, &note);
	return OK;
}

static enum status nonsense(struct comm *comm, void *context)
{
	(void)context;
	for (int which = 0; which < 6; which++) {
		struct operation operation = {.kind = OPERATION_CALL, .call = say_nonsense, .context = &which};
		if (comm_place(comm)->rank == 1)
			TRY(queue_wait(comm, queue_push(comm, &operation)));
		for (int i = 0; i < 2; i++) {
			TRY(comm_gather(comm, NULL, 0, NULL));
			usleep(300000); /* status messages are read when there is nothing else to do */
		}
	}
	return OK;
}

static enum status say_escape(struct comm *comm, void *context)
{
	struct messages *messages = comm->own;
	struct note note = {.kind = NOTE_FAILURE, .rank = 1, .error = {.status = ERR_PEER, .message = "gone \033[2J\a"}};
	if (*(bool *)context) /* or reports a hang, on a machine of that name */
		note = (struct note){.kind = NOTE_BEAT,
				     .pid = getpid(),
				     .age = INT64_MAX / 4,
				     .limit = 1,
				     .section = "\033[1m",
				     .host = "gone \033[2J\a"};
	messages->messenger->tell(messages, 0, &note);
	usleep(*(bool *)context ? 2000000 : 0); /* until then no true sign of life follows */
	return OK;
}

static enum status escape(struct comm *comm, void *context)
{
	struct operation operation = {.kind = OPERATION_CALL, .call = say_escape, .context = context};
	TRY(comm_gather(comm, NULL, 0, NULL));
	if (comm_place(comm)->rank == 1)
		TRY(queue_wait(comm, queue_push(comm, &operation)));
	for (int i = 0; i < 50; i++) {
		enum status status = comm_gather(comm, NULL, 0, NULL);
		if (status != OK && comm_place(comm)->rank == 1)
			return OK;
		if (status != OK)
			return strstr(error_last()->message, "gone \\x1b[2J\\x07") ? OK : ERR_DATA;
		usleep(300000);
	}
	return ERR_INTERNAL;
}

/* Status messages that make no sense are ignored; text that will be shown is escaped. */
static void test_tcp_nonsense(void **state)
{
	ranks_port = free_port();
	run_ranks(2, nonsense, NULL, NULL);
	ranks_port = free_port();
	run_ranks(2, escape, &no, NULL);
	ranks_port = free_port();
	run_ranks(2, escape, &yes, NULL);
	ranks_port = 0;
}

/* ---- Faults ---- */

static enum status steps(struct comm *comm, void *context)
{
	static float data[5000];
	(void)context;
	for (int64_t step = 1; step < 30; step++) {
		comm_section(comm, "forward", step);
		usleep(2000);
		comm_section(comm, "reduce", step);
		enum status status = comm_wait(comm, comm_reduce_scatter(comm, data, 5000, COMM_F32, COMM_F32));
		if (status == OK)
			status = comm_gather(comm, NULL, 0, NULL);
		if (status == OK)
			continue;
		const char *expected = context;
		RANK_CHECK(status == ERR_PEER);
		if (!strstr(error_last()->message, expected)) {
			fprintf(stderr, "rank %d: %s\n", comm_place(comm)->rank, error_last()->message);
			return ERR_DATA;
		}
		return status;
	}
	return OK;
}

static void test_tcp_faults(void **state)
{
	int statuses[64];
	char closed[] = "rank 1 on here has closed its connection (it died";
	setenv("BERTC_RANK_FAULT", "1:forward:7:SIGKILL", 1);
	ranks_port = free_port();
	run_ranks(3, steps, closed, statuses);
	assert_int_equal(statuses[0], ERR_PEER);
	assert_int_equal(statuses[1], 128 + SIGKILL);
	assert_int_equal(statuses[2], ERR_PEER);
	/* Whichever rank hangs, all others learn of it. */
	for (int rank = 0; rank < 3; rank++) {
		char fault[64], expected[64];
		snprintf(fault, sizeof fault, "%d:reduction:5:hang", rank);
		snprintf(expected, sizeof expected, "rank %d on here (process", rank);
		setenv("BERTC_RANK_FAULT", fault, 1);
		ranks_port = free_port();
		ranks_watchdog = 1;
		run_ranks(3, steps, expected, statuses);
		for (int other = 0; other < 3; other++)
			assert_int_equal(statuses[other], ERR_PEER);
	}
	ranks_watchdog = 0;
	ranks_port = 0;
	unsetenv("BERTC_RANK_FAULT");
}

/* ---- Through mpirun: this program again, with the name of the part to play ---- */

static int mpi_rank_main(const char *body)
{
	struct place place;
	struct comm *comm = NULL;
	char nothing[] = "";
	alarm(60);
	const char *seconds = getenv("BERTC_TEST_WATCHDOG");
	setenv("BERTC_TRANSPORT", "mpi", 1);
	enum status status = place_find(&place);
	if (status == OK)
		status = comm_open(
			&comm, &(struct comm_settings){.place = &place, .watchdog_seconds = seconds ? strtod(seconds, NULL) : 0});
	if (status == OK && !strstr(comm_description(comm), "MPI"))
		status = error_set(ERR_STATE, "the transport is %s", comm_description(comm));
	if (status == OK)
		status = strcmp(body, "everything") == 0 ? everything(comm, NULL) : steps(comm, nothing);
	if (status != OK)
		fprintf(stderr, "rank %d: %s\n", place.ranks.rank, error_last()->message);
	comm_close(comm);
	return (int)status;
}

static int run_mpi(int32_t size, bool is_everything, const char *environment)
{
	char self[1024] = "", command[2048];
	assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	snprintf(command, sizeof command,
		 "%s " MPI_ENVIRONMENT "BERTC_TEST_BODY=%s timeout 100 "
		 "mpirun --oversubscribe -n %d %s",
		 environment, is_everything ? "everything" : "steps", size, self);
	int status = system(command);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_mpi(void **state)
{
	if (!MPI_CAN_BE_TESTED)
		skip();
	for (int32_t size = 2; size <= 4; size++)
		assert_int_equal(run_mpi(size, true, ""), 0);
}

static void test_mpi_faults(void **state)
{
	if (!MPI_CAN_BE_TESTED)
		skip();
	unsetenv("BERTC_RANK_FAULT");
	assert_int_equal(run_mpi(3, false, ""), 0);
	assert_int_not_equal(run_mpi(3, false, "BERTC_RANK_FAULT=1:forward:7:SIGKILL"), 0);
	/* mpirun itself does not notice a rank that hangs. */
	assert_int_equal(run_mpi(3, false, "BERTC_TEST_WATCHDOG=1 BERTC_RANK_FAULT=2:reduction:5:hang"), ERR_PEER);
	assert_int_equal(run_mpi(3, false, "BERTC_TEST_WATCHDOG=1 BERTC_RANK_FAULT=1:forward:5:SIGSTOP"), ERR_PEER);
}

int main(void)
{
	const char *body = getenv("BERTC_TEST_BODY");
	if (body)
		return mpi_rank_main(body);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_tcp_strangers),
		cmocka_unit_test(test_tcp_many),
		cmocka_unit_test(test_tcp_itself),
		cmocka_unit_test(test_tcp_several_addresses),
		cmocka_unit_test(test_tcp_false_master),
		cmocka_unit_test(test_tcp_nonsense),
		cmocka_unit_test(test_tcp_faults),
		cmocka_unit_test(test_mpi),
		cmocka_unit_test(test_mpi_faults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
