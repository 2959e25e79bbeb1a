/* What the wheel's libbertc.so has in place of code that only a program can be linked with. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

/* OpenMP for oneDNN: the library always calls it with one thread (src/backend/cpu/onednn.c). Without GNU's OpenMP, it leaves
 * alone that of other packages in the process. */
void GOMP_parallel(void (*function)(void *), void *data, unsigned threads, unsigned flags)
{
	(void)threads, (void)flags;
	function(data);
}

void GOMP_barrier(void)
{
}

int omp_get_max_threads(void)
{
	return 1;
}

int omp_get_num_threads(void)
{
	return 1;
}

int omp_get_thread_num(void)
{
	return 0;
}

int omp_in_parallel(void)
{
	return false;
}

void omp_set_num_threads(int threads)
{
	(void)threads;
}

/* Debian's libbz2.a takes the addresses of these for those of the program itself. */
FILE *stdin, *stdout, *stderr;

__attribute__((constructor)) static void find_streams(void)
{
	stdin = *(FILE **)dlsym(RTLD_DEFAULT, "stdin");
	stdout = *(FILE **)dlsym(RTLD_DEFAULT, "stdout");
	stderr = *(FILE **)dlsym(RTLD_DEFAULT, "stderr");
}
