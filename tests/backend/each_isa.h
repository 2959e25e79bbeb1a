/* Runs a check at one instruction set level. The level is decided once per process, so each level needs a process of its
 * own. */
#ifndef TESTS_BACKEND_EACH_ISA_H
#define TESTS_BACKEND_EACH_ISA_H

#include <sys/wait.h>
#include <unistd.h>
#include "backend/cpu/isa.h"
#include "test.h"

/* What a body returns: 0 = passed, 1 = failed, LACKING = the machine lacks the level. */
enum { LACKING = 77 };

/* Runs `body` in a child with BERTC_ISA=name and returns its result. No pool may be alive across the call: threads do not
 * survive a fork. */
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
	int result = in_child(cpu_levels[isa].name, body);
	if (result == LACKING)
		skip();
	assert_int_equal(result, 0);
}

/* Whether a level computes with floats as the one before it does, and differs from it in int8 only. */
static inline bool repeats_floats(enum cpu_isa isa)
{
	return isa > 0 && strcmp(cpu_levels[isa].floats, cpu_levels[isa - 1].floats) == 0;
}

#endif
