/* Running a check at one instruction set level: the level is decided once in a process, so each needs its
 * own. */
#ifndef TESTS_BACKEND_EACH_ISA_H
#define TESTS_BACKEND_EACH_ISA_H

#include <sys/wait.h>
#include <unistd.h>
#include "backend/cpu/isa.h"
#include "test.h"

/* What a body returns: 0 = passed, 1 = failed, or that the machine lacks the level. */
enum { LACKING = 77 };

/* Runs `body` in a child with BERTC_ISA=name and gives what it returns. No pool may live across the call:
 * threads do not survive a fork. */
static inline int in_child(const char *name, int (*body)(void))
{
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		setenv("BERTC_ISA", name, 1);
		_exit(body());
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Fails if the body fails; skips the test if the machine lacks the level. */
static inline void check_level(enum cpu_isa isa, int (*body)(void))
{
	int result = in_child(cpu_isa_names[isa], body);
	if (result == LACKING)
		skip();
	assert_int_equal(result, 0);
}

#endif
