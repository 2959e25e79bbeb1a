/* The checks before every operation: arguments that do not fit abort, naming the operation, the field and both sizes; a
 * trace is a list of test cases; a device that is not available is a user error. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test.h"
#include "cases.h"
#include "check.h"
#include "operations.h"
#include "backend/open.h"

/* Runs body(argument) in a child and returns what it wrote to standard error; *out_status tells how it ended. */
static char *stderr_of(void (*body)(const void *argument), const void *argument, int *out_status)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL); /* cmocka's handler would continue with the next test */
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		body(argument);
		_exit(0);
	}
	close(ends[1]);
	enum { LIMIT = 1 << 16 };
	char *text = calloc(1, LIMIT);
	assert_non_null(text);
	size_t used = 0;
	ssize_t got;
	while (used < LIMIT - 1 && (got = read(ends[0], text + used, LIMIT - 1 - used)) > 0)
		used += (size_t)got;
	close(ends[0]);
	assert_int_equal(waitpid(child, out_status, 0), child);
	return text;
}

/* A valid case, spoiled in one place before the call. */
struct bad_call {
	const char *line;
	const char *field; /* an array of the case, to which the change is made */
	enum { NONE, ROWS, COLUMNS, TYPE, MISSING, SAME_AS, SHIFTED } change;
	const char *other; /* SAME_AS: takes this one's place; SHIFTED: one row past its beginning */
	const char *message;
};

static const struct bad_call bad_calls[] = {
	{"linear_fwd M=4 O=2 I=3 act=none", "w", COLUMNS, NULL, "linear_fwd: 'w' has 4 columns where 'x' has 3"},
	{"linear_fwd M=4 O=2 I=3 act=none", "b", COLUMNS, NULL, "linear_fwd: 'b' has 3 columns where 'w' has 2"},
	{"linear_fwd M=4 O=2 I=3 act=none", "y", ROWS, NULL, "linear_fwd: 'y' has 5 rows where 'x' has 4"},
	{"linear_fwd M=4 O=2 I=3 act=none", "y", TYPE, NULL, "linear_fwd: 'y' is fp32 where the back end has fp64"},
	{"linear_fwd M=4 O=2 I=3 act=none", "w", MISSING, NULL, "linear_fwd: 'w' is missing"},
	{"linear_fwd M=4 O=3 I=3 act=none", "y", SAME_AS, "x", "linear_fwd: 'y' overlaps 'x'"},
	{"linear_fwd M=4 O=2 I=3 act=gelu_erf", NULL, NONE, NULL, "linear_fwd: 'activation' is neither none nor tanh"},
	{"linear_gelu_fwd M=4 O=2 I=3 act=tanh", NULL, NONE, NULL, "linear_gelu_fwd: 'activation' is not a gelu"},
	{"linear_gelu_fwd M=4 O=2 I=3 act=gelu_erf", "pre", SAME_AS, "y", "linear_gelu_fwd: 'pre' overlaps 'y'"},
	{"embed_fwd T=6 H=4 V=5 S=6", "type", COLUMNS, NULL, "embed_fwd: 'type' has 5 columns where 'y' has 4"},
	{"embed_fwd T=6 H=4 V=5 S=6", "y", ROWS, NULL, "embed_fwd: 'batch' has 6 tokens where 'y' has 7 rows"},
	{"embed_bwd T=6 H=4 V=5 S=6", "word.gradient", ROWS, NULL, "embed_bwd: gradient of 'word' has 6 rows where 'word' has 5"},
	{"linear_norm_fwd M=4 H=3 I=2 p=0.1", "w", MISSING, NULL, "linear_norm_fwd: 'w' is missing"},
	{"linear_norm_fwd M=4 H=3 I=3", "y", SAME_AS, "residual", "linear_norm_fwd: 'y' overlaps 'residual'"},
	{"norm_bwd M=4 H=3", "mean", COLUMNS, NULL, "norm_bwd: 'mean' has 5 columns where 'dy' has 4"},
	{"norm_bwd M=4 H=3", "dresidual", SHIFTED, "dy", "norm_bwd: 'dresidual' overlaps 'dy'"},
	{"norm_bwd M=4 H=3 dx=0 p=0.5", NULL, NONE, NULL, "norm_bwd: dropout or 'pre' needs a 'dx' apart from 'dresidual'"},
	{"norm_bwd M=4 H=3 p=2", NULL, NONE, NULL, "norm_bwd: dropout of 2 is not in [0, 1)"},
	{"linear_bwd M=4 O=2 I=3 add=1", "dx", SHIFTED, "add", "linear_bwd: 'dx' overlaps 'add'"},
	{"linear_bwd M=4 O=2 I=3", "b.gradient", MISSING, NULL, "linear_bwd: gradient of 'b' is missing"},
	{"linear_bwd M=4 O=2 I=3 producer=1", "dx", MISSING, NULL, "linear_bwd: 'dx' is missing"},
	{"attention_fwd T=6 H=5 heads=2", NULL, NONE, NULL, "attention_fwd: 5 columns of 'y' cannot be shared by 2 heads"},
	{"attention_bwd T=6 H=4 heads=2", "qkv", COLUMNS, NULL, "attention_bwd: 'qkv' has 13 columns where 3 times 'dy' has 12"},
	{"attention_bwd T=6 H=4 heads=2", "lse", ROWS, NULL, "attention_bwd: 'lse' has 3 rows where 'heads' has 2"},
	{"gather_fwd T=9 P=2 H=3", "y", ROWS, NULL, "gather_fwd: 'y' has 3 rows where 'count' has 2"},
	{"gather_bwd T=9 P=2 H=3", "dy", COLUMNS, NULL, "gather_bwd: 'dy' has 4 columns where 'dx' has 3"},
	{"pooling_fwd T=9 H=3 B=2", "y", ROWS, NULL, "pooling_fwd: 'y' has 3 rows where 'batch' has 2"},
	{"pooling_bwd T=9 H=3 B=2", "dy", TYPE, NULL, "pooling_bwd: 'dy' is fp32 where the back end has fp64"},
	{"vocab_xent P=3 V=9 H=4", "loss", MISSING, NULL, "vocab_xent: 'loss' is missing"},
	{"vocab_xent P=3 V=9 H=4", "bias", COLUMNS, NULL, "vocab_xent: 'bias' has 10 columns where 'table' has 9"},
	{"vocab_topk P=3 V=9 H=4 k=10", NULL, NONE, NULL, "vocab_topk: k is 10 where 'table' has 9 rows"},
	{"xent N=3 C=2", "dlogits", SAME_AS, "logits", "xent: 'dlogits' overlaps 'logits'"},
	{"adamw n=10", "g", SAME_AS, "m", "adamw: 'm' overlaps 'g'"},
	{"lamb_norms n=10 tensors=2", "v", COLUMNS, NULL, "lamb_norms: 'v' has 11 columns where 'w' has 10"},
	{"lamb_norms n=10 tensors=2", "norms", MISSING, NULL, "lamb_norms: 'norms' is missing"},
	{"lamb_apply n=10 tensors=2", "w", SAME_AS, "m", "lamb_apply: 'w' overlaps 'm'"},
	{"sumsq_finite n=10", "range", TYPE, NULL, "sumsq_finite: 'range' is fp32 where the back end has fp64"},
};

static struct replica tiny_replica(struct backend *be, struct scalars *scalars)
{
	return (struct replica){.backend = be, .operations = be->operations, .scalars = scalars};
}

/* The change is made after everything has been laid out. */
static void call_badly(const void *argument)
{
	const struct bad_call *bad = argument;
	struct pool *pool;
	struct backend *be = open_backend("ref", DTYPE_F64, 1, &pool);
	struct replica replica;
	open_reference_replica(be, &replica);
	struct test_case c;
	case_create(&c, bad->line, DTYPE_F64, &replica);
	struct bound b;
	bound_create(&b, &c, be, &replica);
	if (bad->change == NONE) {
		bound_run(&b);
		return;
	}
	int i = find_array(&c, bad->field), other = bad->other != NULL ? find_array(&c, bad->other) : -1;
	struct tensor *t = &b.tensor[i];
	if (bad->change == MISSING)
		t->data = NULL;
	if (bad->change == SAME_AS)
		t->data = b.tensor[other].data;
	if (bad->change == SHIFTED)
		t->data = (double *)b.tensor[other].data + b.tensor[other].columns;
	if (bad->change == TYPE)
		t->dtype = DTYPE_F32;
	t->rows += bad->change == ROWS;
	t->columns += bad->change == COLUMNS;
	b.weight[i].master = *t;
	char gradient[24];
	for (int w = 0; w < c.count; w++) { /* is it a gradient? */
		snprintf(gradient, sizeof gradient, "%.14s.gradient", c.arrays[w].name);
		if (strcmp(gradient, bad->field) == 0)
			b.weight[w].gradient = *t;
	}
	bound_run(&b);
}

static void test_what_does_not_fit(void **state)
{
	for (size_t i = 0; i < sizeof bad_calls / sizeof bad_calls[0]; i++) {
		int status;
		char *text = stderr_of(call_badly, &bad_calls[i], &status);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || strstr(text, bad_calls[i].message) == NULL)
			fail_msg("%s with '%s': status %d, \"%s\" instead of \"%s\"", bad_calls[i].line,
				 bad_calls[i].field != NULL ? bad_calls[i].field : "", status, text, bad_calls[i].message);
		free(text);
	}
}

/* One small case of each operation, traced. */
static void trace_all(const void *argument)
{
	(void)argument;
	setenv("BERTC_TRACE", "1", 1);
	struct pool *pool;
	struct backend *be = open_backend("ref", DTYPE_F64, 1, &pool);
	struct replica replica;
	open_reference_replica(be, &replica);
	for (size_t o = 0; o < OPERATION_COUNT; o++) {
		size_t length = strlen(operation_table[o].name);
		for (int i = CASE_COUNT - 1; i >= 0; i--) {
			if (strncmp(case_lines[i], operation_table[o].name, length) != 0 || case_lines[i][length] != ' ')
				continue;
			struct test_case c;
			struct bound b;
			case_create(&c, case_lines[i], DTYPE_F64, &replica);
			fputs("--\n", stderr); /* what comes before only made the inputs */
			bound_create(&b, &c, be, &replica);
			bound_run(&b);
			break;
		}
	}
}

static void test_trace(void **state)
{
	int status;
	char *text = stderr_of(trace_all, NULL, &status);
	assert_int_equal(status, 0);
	struct pool *pool;
	struct backend *be = open_backend("ref", DTYPE_F64, 1, &pool);
	struct replica replica;
	open_reference_replica(be, &replica);
	size_t traced = 0;
	bool after_marker = false;
	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		if (after_marker) {
			const struct operation *expected = &operation_table[traced++];
			size_t length = strlen(line);
			assert_memory_equal(line, expected->name, strlen(expected->name));
			assert_true(length > 3 && strcmp(line + length - 3, " us") == 0);
			struct test_case c; /* aborts on what it does not understand */
			case_create(&c, line, DTYPE_F64, &replica);
			assert_true(c.count > 0);
			case_release(&c);
		}
		after_marker = strcmp(line, "--") == 0;
	}
	assert_int_equal(traced, OPERATION_COUNT);
	free(text);
	be->functions->replica_release(&replica);
	backend_close(be);
	pool_free(pool);
}

/* The letters are those of the call, not of the line that produced it. */
static void trace_one(const void *argument)
{
	(void)argument;
	setenv("BERTC_TRACE", "1", 1);
	struct pool *pool;
	struct backend *be = open_backend("ref", DTYPE_F64, 1, &pool);
	struct scalars scalars = {0};
	struct replica replica = tiny_replica(be, &scalars);
	double x[6] = {0}, w[8] = {0}, y[12];
	struct weight weight = {.master = f64_tensor(w, 4, 2)};
	linear_fwd(&replica,
		   &(struct linear_fwd){
			   .w = &weight, .activation = ACTIVATION_TANH, .x = f64_tensor(x, 3, 2), .y = f64_tensor(y, 3, 4)});
}

static void test_trace_letters(void **state)
{
	int status;
	char *text = stderr_of(trace_one, NULL, &status);
	assert_int_equal(status, 0);
	static const char start[] = "linear_fwd M=3 O=4 I=2 act=tanh b=0 ";
	assert_memory_equal(text, start, sizeof start - 1);
	assert_true(strtod(text + sizeof start - 1, NULL) < 1e6);
	free(text);
}

static void test_unknown_device(void **state)
{
	struct pool *pool;
	assert_int_equal(pool_create(&pool, 1), OK);
	struct backend *be = (struct backend *)&pool;
	static const char *const names[] = {"tpu", "", "cuda"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		assert_int_equal(backend_open(&be, &(struct backend_settings){.device = names[i], .pool = pool}), ERR_USAGE);
		assert_null(be);
		assert_non_null(strstr(error_last()->message, names[i]));
		assert_non_null(strstr(error_last()->hint, "--device"));
	}
	pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* A process decides at its first operation whether it traces, so these children must come before our own
		 * first operation. */
		cmocka_unit_test(test_what_does_not_fit),
		cmocka_unit_test(test_trace_letters),
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_unknown_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
