/* What the objects of the archive and the wheel call and glibc 2.28 does not have. They are compiled with this system's headers,
 * and linked against the symbols of that version (PORTABLE in the Makefile). */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* False: libstdc++ then counts references atomically, as threads require. */
char __libc_single_threaded;

pid_t gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

const char *sigabbrev_np(int number)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {{SIGHUP, "HUP"},   {SIGINT, "INT"},   {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},   {SIGTRAP, "TRAP"},
		     {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},   {SIGFPE, "FPE"},   {SIGKILL, "KILL"}, {SIGUSR1, "USR1"},
		     {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"}, {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"}, {SIGTERM, "TERM"},
		     {SIGXCPU, "XCPU"}, {SIGXFSZ, "XFSZ"}, {SIGSYS, "SYS"}};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}

void arc4random_buf(void *bytes, size_t count)
{
	for (char *at = bytes; count > 0;) {
		ssize_t got = getrandom(at, count, 0);
		if (got < 0 && errno != EINTR)
			abort();
		at += got > 0 ? got : 0;
		count -= got > 0 ? (size_t)got : 0;
	}
}

uint32_t arc4random(void)
{
	uint32_t number;
	arc4random_buf(&number, sizeof number);
	return number;
}

/* Finds nothing: libgcc's unwinder then asks dl_iterate_phdr, as it did before. */
int _dl_find_object(void *address, void *result)
{
	(void)address, (void)result;
	return -1;
}
