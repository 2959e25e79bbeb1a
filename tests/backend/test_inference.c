/* Inference on the CPU: its operations against the reference on every instruction set, in every type and int8; rows
 * computed alone against the same rows in batches, bit by bit; weights packed piece by piece, without masters. */
#include <sys/wait.h>
#include <unistd.h>
#include "test.h"
#include "backend/cpu/inference.h"
#include "backend/int8.h"
#include "cases.h"
#include "check.h"
#include "each_isa.h"
#include "operations.h"
#include "backend/open.h"

/* Shapes that the cases for training do not cover: many rows and many tasks, several tiles and panels. */
static const char *const more_lines[] = {
	"linear_fwd M=11 O=65 I=1536 act=none",
	"linear_fwd M=13 O=48 I=5 act=none",
	"linear_fwd M=301 O=200 I=66 act=none",
	"linear_gelu_fwd M=241 O=160 I=64 act=gelu_erf",
	"linear_gelu_fwd M=1000 O=96 I=40 act=gelu_erf",
	"linear_norm_fwd M=161 H=96 I=100",
	"linear_norm_fwd M=20 H=768 I=3072",
	"linear_norm_fwd M=1001 H=64 I=31",
	"attention_fwd T=700 H=128 heads=2 B=2 longest=600",
	"attention_fwd T=515 H=64 heads=2 B=3 longest=512",
	"attention_fwd T=90 H=96 heads=3 B=5 longest=63",
	"attention_fwd T=41 H=768 heads=12 B=4 longest=17",
	"linear_fwd M=3 O=40 I=64 act=none scale=0",
	"linear_fwd M=3 O=40 I=64 act=none scale=1e-20",
};

enum { MORE = sizeof more_lines / sizeof more_lines[0] };

static struct test_case cases[CASE_COUNT + MORE];
static int case_count;

/* The line as a forward pass uses it: nothing saved for backward, no dropout. False if inference has no such operation. */
static bool inference_line(const char *line, char out[256])
{
	static const struct {
		const char *name;
		bool saves;
	} operations[] = {{"embed_fwd", false},      {"linear_fwd", false},   {"linear_gelu_fwd", true},
			  {"linear_norm_fwd", true}, {"attention_fwd", true}, {"gather_fwd", false},
			  {"vocab_xent", true},      {"vocab_topk", false},   {"xent", true}};
	size_t i = 0, count = sizeof operations / sizeof operations[0], length = strcspn(line, " ");
	while (i < count && (strlen(operations[i].name) != length || strncmp(line, operations[i].name, length) != 0))
		i++;
	if (i == count)
		return false;
	out[0] = '\0';
	char copy[256];
	snprintf(copy, sizeof copy, "%s", line);
	for (char *state, *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state))
		if (strncmp(word, "p=", 2) != 0 && strncmp(word, "train=", 6) != 0 && strncmp(word, "overwrite=", 10) != 0)
			snprintf(out + strlen(out), 256 - strlen(out), "%s%s", out[0] ? " " : "", word);
	if (operations[i].saves)
		strcat(out, " train=0");
	return true;
}

static void prepare(enum dtype dtype, bool int8)
{
	struct pool *pool;
	struct backend *ref =
		open_backend_as((struct backend_settings){.device = "ref", .inference = true, .int8 = int8}, 2, &pool);
	struct replica replica;
	open_reference_replica(ref, &replica);
	case_count = 0;
	for (int i = 0; i < CASE_COUNT + MORE; i++) {
		char line[256];
		if (!inference_line(i < CASE_COUNT ? case_lines[i] : more_lines[i - CASE_COUNT], line))
			continue;
#ifdef __SANITIZE_THREAD__
		if (!is_small(line))
			continue;
#endif
		case_create(&cases[case_count], line, dtype, &replica);
		case_expect(&cases[case_count++], ref);
	}
	assert_true(case_count > 50);
	ref->functions->replica_release(&replica);
	backend_close(ref);
	pool_free(pool);
}

static enum dtype tested_dtype;
static bool tested_int8;

static int run_cases(void)
{
	struct pool *three, *one;
	struct checker k = {0};
	or_abort(pool_create(&three, 3));
	or_abort(pool_create(&one, 1));
	struct backend_settings settings = {
		.device = "cpu", .dtype = tested_dtype, .inference = true, .int8 = tested_int8, .pool = three};
	if (backend_open(&k.backend, &settings) != OK || k.backend->dtype != tested_dtype)
		return LACKING;
	settings.pool = one;
	or_abort(backend_open(&k.other, &settings));
	for (int i = 0; i < case_count; i++)
		check_case(&k, &cases[i]);
	print_margins(&k, k.backend->description);
	if (k.failures > 0)
		fprintf(stderr, "%s: %d failures\n", k.backend->description, k.failures);
	backend_close(k.backend);
	backend_close(k.other);
	pool_free(three);
	pool_free(one);
	return k.failures > 0;
}

/* On each instruction set; at least one must be available. */
static void check_each_isa(int (*body)(void))
{
	int passed = 0;
	for (int isa = 0; isa < CPU_ISA_COUNT; isa++) {
		int result = in_child(cpu_levels[isa].name, body);
		if (result != LACKING)
			assert_int_equal(result, 0);
		passed += result == 0;
	}
	if (passed == 0)
		skip();
}

static void check_against_reference(enum dtype dtype, bool int8)
{
	tested_dtype = dtype;
	tested_int8 = int8;
	prepare(dtype, int8);
	check_each_isa(run_cases);
	for (int i = 0; i < case_count; i++)
		case_release(&cases[i]);
}

static void f32_as_the_reference(void **state)
{
	check_against_reference(DTYPE_F32, false);
}

static void bf16_as_the_reference(void **state)
{
	check_against_reference(DTYPE_BF16, false);
}

static void int8_as_the_reference(void **state)
{
	check_against_reference(DTYPE_F32, true);
	check_against_reference(DTYPE_BF16, true);
}

/* ---- alone and among others ---- */

enum { WIDE = 96, INPUTS = 160, MOST_ROWS = 700 };

struct bench {
	struct pool *pool;
	struct backend *be;
	struct replica replica;
	struct weight w, b, gamma, beta, narrow, narrow_bias;
	int failures;
};

static float drawn(struct rng *rng)
{
	return (float)rng_truncated_normal(rng);
}

static void make_weight(struct bench *t, struct weight *w, enum weight_use use, int64_t rows, int64_t columns, struct rng *rng)
{
	void *memory;
	*w = (struct weight){.use = use, .master = {.dtype = DTYPE_F32, .rows = rows, .columns = columns}};
	or_abort(t->be->functions->allocate(t->be, &memory, (size_t)(rows * columns) * sizeof(float), "a weight"));
	w->master.data = memory;
	for (int64_t i = 0; i < rows * columns; i++)
		((float *)memory)[i] = drawn(rng);
	w->copy_bytes = (int64_t)t->be->functions->weight_copy_bytes(t->be, w);
	or_abort(t->be->functions->allocate(t->be, &w->copy, (size_t)w->copy_bytes, "a weight's copy"));
	struct weight *weights[] = {w};
	t->be->functions->weights_refresh(&t->replica, weights, 1);
}

static bool bench_open(struct bench *t, int threads)
{
	*t = (struct bench){0};
	or_abort(pool_create(&t->pool, threads));
	struct backend_settings settings = {
		.device = "cpu", .dtype = tested_dtype, .inference = true, .int8 = tested_int8, .pool = t->pool};
	if (backend_open(&t->be, &settings) != OK || t->be->dtype != tested_dtype)
		return false;
	struct shape_limits limits = {.batch = {.tokens = MOST_ROWS, .sequences = MOST_ROWS, .examples = MOST_ROWS},
				      .longest = 300,
				      .hidden = WIDE,
				      .heads = 3,
				      .intermediate = INPUTS,
				      .vocab = 2};
	or_abort(t->be->functions->replica_create(t->be, &t->replica, &limits));
	struct rng rng = rng_start(7, RNG_TEST, 1);
	make_weight(t, &t->w, WEIGHT_LINEAR, INPUTS, WIDE, &rng);
	make_weight(t, &t->b, WEIGHT_VECTOR, 1, INPUTS, &rng);
	make_weight(t, &t->narrow, WEIGHT_LINEAR, WIDE, INPUTS, &rng);
	make_weight(t, &t->narrow_bias, WEIGHT_VECTOR, 1, WIDE, &rng);
	make_weight(t, &t->gamma, WEIGHT_VECTOR, 1, WIDE, &rng);
	make_weight(t, &t->beta, WEIGHT_VECTOR, 1, WIDE, &rng);
	return true;
}

static void bench_close(struct bench *t)
{
	if (t->be && t->replica.backend)
		t->be->functions->replica_release(&t->replica);
	backend_close(t->be);
	pool_free(t->pool);
}

static struct tensor make_tensor(struct bench *t, int64_t rows, int64_t columns, bool twin)
{
	struct tensor out = {.dtype = t->be->dtype, .rows = rows, .columns = columns};
	size_t bytes = (size_t)(round_up(rows, ROW_MULTIPLE) * columns) * dtype_bytes(out.dtype);
	or_abort(t->be->functions->allocate(t->be, &out.data, bytes, "a tensor"));
	memset(out.data, 0xff, bytes); /* NaN in every type */
	if (twin && t->be->int8)
		or_abort(t->be->functions->allocate(t->be, &out.twin, t->be->functions->twin_bytes(t->be, rows, columns, false),
						    "a twin"));
	return out;
}

static void drop_tensor(struct bench *t, struct tensor *x)
{
	t->be->functions->release(t->be, x->data);
	t->be->functions->release(t->be, x->twin);
}

static void set(struct tensor *x, int64_t i, float value)
{
	if (x->dtype == DTYPE_BF16)
		((uint16_t *)x->data)[i] = float_to_bf16(value);
	else
		((float *)x->data)[i] = value;
}

/* A layer's operations on sequences of the given lengths, whose values are numbered from `first` on; returns y, (T, WIDE). */
static struct tensor layer(struct bench *t, const int32_t *lengths, int32_t count, uint64_t first, bool twins)
{
	int32_t starts[MOST_ROWS + 1] = {0}, longest = 1;
	uint32_t samples[MOST_ROWS] = {0};
	for (int32_t s = 0; s < count; s++) {
		starts[s + 1] = starts[s] + lengths[s];
		longest = lengths[s] > longest ? lengths[s] : longest;
	}
	int32_t tokens = starts[count];
	struct batch batch = {
		.token_count = tokens, .sequence_count = count, .longest = longest, .starts = starts, .samples = samples};
	struct tensor x = make_tensor(t, tokens, WIDE, false), wide = make_tensor(t, tokens, INPUTS, twins);
	struct tensor norm = make_tensor(t, tokens, WIDE, twins), attention = make_tensor(t, tokens, WIDE / 3, twins);
	struct tensor again = make_tensor(t, tokens, WIDE, twins), y = make_tensor(t, tokens, INPUTS, false);
	for (int32_t s = 0; s < count; s++) {
		struct rng rng = rng_start(8, RNG_TEST, first + (uint64_t)s);
		for (int64_t i = (int64_t)starts[s] * WIDE; i < (int64_t)starts[s + 1] * WIDE; i++)
			set(&x, i, drawn(&rng));
	}
	linear_gelu_fwd(&t->replica,
			&(struct linear_gelu_fwd){.w = &t->w, .b = &t->b, .activation = ACTIVATION_GELU_ERF, .x = x, .y = wide});
	linear_norm_fwd(&t->replica, &(struct linear_norm_fwd){.w = &t->narrow,
							       .b = &t->narrow_bias,
							       .gamma = &t->gamma,
							       .beta = &t->beta,
							       .epsilon = 1e-12,
							       .x = wide,
							       .residual = x,
							       .y = norm});
	/* Its width is three times that of a head: a single head of 32. */
	attention_fwd(&t->replica, &(struct attention_fwd){.batch = &batch,
							   .heads = 1,
							   .qkv = norm,
							   .y = attention,
							   .lse = {.dtype = DTYPE_F32, .rows = 1, .columns = tokens}});
	linear_norm_fwd(&t->replica,
			&(struct linear_norm_fwd){
				.gamma = &t->gamma, .beta = &t->beta, .epsilon = 1e-12, .x = norm, .residual = x, .y = again});
	linear_fwd(&t->replica, &(struct linear_fwd){.w = &t->w, .b = &t->b, .x = again, .y = y});
	/* y ends with the result of attention. */
	for (int32_t i = 0; i < tokens; i++)
		memcpy((char *)y.data + ((int64_t)i * INPUTS) * (int64_t)dtype_bytes(y.dtype),
		       (char *)attention.data + ((int64_t)i * WIDE / 3) * (int64_t)dtype_bytes(y.dtype),
		       (size_t)(WIDE / 3) * dtype_bytes(y.dtype));
	drop_tensor(t, &x);
	drop_tensor(t, &wide);
	drop_tensor(t, &norm);
	drop_tensor(t, &attention);
	drop_tensor(t, &again);
	return y;
}

/* Checks that a sequence's rows have the same bits alone and among others. */
static void compare(struct bench *t, const struct tensor *company, int32_t row, const struct tensor *alone, const char *what)
{
	size_t row_bytes = (size_t)INPUTS * dtype_bytes(company->dtype);
	if (memcmp((char *)company->data + (size_t)row * row_bytes, alone->data, (size_t)alone->rows * row_bytes) != 0) {
		fprintf(stderr, "%s: row %d on has other bits %s\n", t->be->description, row, what);
		t->failures++;
	}
}

static int alone_and_in_company(void)
{
	static const int32_t lengths[] = {1, 20, 7, 300, 13, 1, 40, 33, 64, 9, 10, 11, 12, 120};
	enum { COUNT = sizeof lengths / sizeof lengths[0] };
	struct bench one, three;
	if (!bench_open(&one, 1) || !bench_open(&three, 3)) {
		bench_close(&one);
		return LACKING;
	}
	struct tensor company = layer(&three, lengths, COUNT, 0, true), untwinned = layer(&three, lengths, COUNT, 0, false);
	compare(&three, &company, 0, &untwinned, "without twins");
	int32_t row = 0;
	for (int32_t s = 0; s < COUNT; row += lengths[s++]) {
		struct tensor alone = layer(&one, &lengths[s], 1, (uint64_t)s, true);
		compare(&one, &company, row, &alone, "alone on one thread");
		drop_tensor(&one, &alone);
		alone = layer(&three, &lengths[s], COUNT - s < 3 ? COUNT - s : 3, (uint64_t)s, true);
		compare(&three, &company, row, &alone, "with fewer others");
		drop_tensor(&three, &alone);
	}
	drop_tensor(&three, &company);
	drop_tensor(&three, &untwinned);
	int failures = one.failures + three.failures;
	bench_close(&one);
	bench_close(&three);
	return failures > 0;
}

static void an_answer_does_not_depend_on_its_batch(void **state)
{
	tested_int8 = false;
	tested_dtype = DTYPE_F32;
	check_each_isa(alone_and_in_company);
	tested_dtype = DTYPE_BF16;
	check_each_isa(alone_and_in_company);
	tested_int8 = true;
	check_each_isa(alone_and_in_company);
	tested_dtype = DTYPE_F32;
	check_each_isa(alone_and_in_company);
}

/* A row that is not finite makes its own results NaN, and no others. */
static int not_finite(void)
{
	enum { ROWS = 14 };
	struct bench t;
	if (!bench_open(&t, 2)) {
		bench_close(&t);
		return LACKING;
	}
	struct tensor y[2];
	for (int bad = 0; bad < 2; bad++) {
		struct tensor x = make_tensor(&t, ROWS, WIDE, false);
		struct rng rng = rng_start(10, RNG_TEST, 0);
		for (int64_t i = 0; i < ROWS * WIDE; i++)
			set(&x, i, drawn(&rng));
		if (bad) {
			set(&x, 2 * WIDE + 5, NAN);
			set(&x, 11 * WIDE + WIDE - 1, NAN);
			set(&x, 12 * WIDE, -INFINITY);
		}
		y[bad] = make_tensor(&t, ROWS, INPUTS, false);
		linear_fwd(&t.replica, &(struct linear_fwd){.w = &t.w, .b = &t.b, .x = x, .y = y[bad]});
		drop_tensor(&t, &x);
	}
	size_t row = (size_t)INPUTS * dtype_bytes(t.be->dtype);
	for (int r = 0; r < ROWS; r++) {
		const char *clean = (char *)y[0].data + (size_t)r * row, *found = (char *)y[1].data + (size_t)r * row;
		bool is_bad = r == 2 || r == 11 || r == 12;
		if (!is_bad)
			t.failures += memcmp(clean, found, row) != 0;
		for (int64_t c = 0; is_bad && c < INPUTS; c++)
			t.failures += !isnan(load((const unsigned char *)found, ACTIVATION, t.be->dtype, c));
	}
	int failures = t.failures;
	bench_close(&t);
	return failures > 0;
}

static void a_row_that_is_not_finite_spoils_no_other(void **state)
{
	tested_int8 = true;
	tested_dtype = DTYPE_F32;
	check_each_isa(not_finite);
	tested_dtype = DTYPE_BF16;
	check_each_isa(not_finite);
}

/* ---- packing ---- */

/* Packs `w` again, in pieces of other types and without its master: must give the same bits as the refreshed weight. */
static void check_pieces(struct bench *t, struct weight *w, enum dtype dtype)
{
	int64_t rows = w->master.rows, columns = w->master.columns, piece = rows > 1 ? rows / 3 + 1 : 1;
	float *master = w->master.data;
	void *converted = malloc((size_t)(rows * columns) * sizeof(float));
	assert_non_null(converted);
	for (int64_t i = 0; i < rows * columns; i++) {
		if (dtype == DTYPE_F16)
			((uint16_t *)converted)[i] = float_to_f16(master[i]);
		else if (dtype == DTYPE_BF16)
			((uint16_t *)converted)[i] = float_to_bf16(master[i]);
		else
			((float *)converted)[i] = master[i];
		master[i] = dtype == DTYPE_F16    ? f16_to_float(((uint16_t *)converted)[i])
			    : dtype == DTYPE_BF16 ? bf16_to_float(((uint16_t *)converted)[i])
						  : master[i];
	}
	struct weight *weights[] = {w};
	t->be->functions->weights_refresh(&t->replica, weights, 1);
	struct weight other = *w;
	other.master.data = NULL;
	or_abort(t->be->functions->allocate(t->be, &other.copy, (size_t)w->copy_bytes, "a weight's copy"));
	for (int64_t first = 0; first < rows; first += piece)
		t->be->functions->weight_pack(
			t->be, &other,
			&(struct weight_rows){.first = first,
					      .count = first + piece < rows ? piece : rows - first,
					      .dtype = dtype,
					      .data = (char *)converted + (size_t)(first * columns) * dtype_bytes(dtype)});
	size_t head = (size_t)round_up(sizeof(struct packed_weight), ARENA_ALIGNMENT);
	if (memcmp((char *)w->copy + head, (char *)other.copy + head, (size_t)w->copy_bytes - head) != 0) {
		fprintf(stderr, "%s: pieces in %s pack to other bits\n", t->be->description, dtype_names[dtype]);
		t->failures++;
	}
	t->be->functions->release(t->be, other.copy);
	free(converted);
}

/* Rounding on the host with the shared arithmetic gives the same bits as rounding while packing; in another type, what was
 * rounded gives those of the values that it represents. */
static void check_int8_source(struct bench *t, struct weight *w)
{
	int64_t rows = w->master.rows, columns = w->master.columns;
	float *master = w->master.data;
	int8_t *numbers = malloc((size_t)(rows * columns));
	float *scales = malloc((size_t)rows * sizeof(float));
	assert_true(numbers && scales);
	for (int64_t i = 0; i < rows; i++) {
		struct int8_scale scale = int8_scale_of_row(master + i * columns, columns);
		scales[i] = scale.scale;
		for (int64_t j = 0; j < columns; j++)
			numbers[i * columns + j] = int8_rounded(master[i * columns + j], scale.factor);
		for (int64_t j = 0; j < columns && !t->be->int8; j++)
			master[i * columns + j] = (float)numbers[i * columns + j] * scale.scale;
	}
	struct weight *weights[] = {w}, other = *w;
	t->be->functions->weights_refresh(&t->replica, weights, 1);
	other.master.data = NULL;
	or_abort(t->be->functions->allocate(t->be, &other.copy, (size_t)w->copy_bytes, "a weight's copy"));
	t->be->functions->weight_pack(t->be, &other,
				      &(struct weight_rows){.count = rows, .dtype = DTYPE_S8, .data = numbers, .scales = scales});
	size_t head = (size_t)round_up(sizeof(struct packed_weight), ARENA_ALIGNMENT);
	if (memcmp((char *)w->copy + head, (char *)other.copy + head, (size_t)w->copy_bytes - head) != 0) {
		fprintf(stderr, "%s: int8 rows pack to other bits\n", t->be->description);
		t->failures++;
	}
	t->be->functions->release(t->be, other.copy);
	free(numbers);
	free(scales);
}

static int packs(void)
{
	struct bench t;
	if (!bench_open(&t, 2)) {
		bench_close(&t);
		return LACKING;
	}
	struct weight table, tied;
	struct rng rng = rng_start(9, RNG_TEST, 1);
	make_weight(&t, &table, WEIGHT_TABLE, 101, 33, &rng);
	make_weight(&t, &tied, WEIGHT_TIED, 75, 70, &rng);
	struct weight *all[] = {&t.w, &t.narrow, &t.gamma, &table, &tied};
	static const enum dtype sources[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		for (size_t j = 0; j < sizeof sources / sizeof sources[0]; j++)
			check_pieces(&t, all[i], sources[j]);
	check_int8_source(&t, &t.w);
	int failures = t.failures;
	bench_close(&t);
	return failures > 0;
}

static void weights_are_packed_piece_by_piece(void **state)
{
	for (int i = 0; i < 4; i++) {
		tested_int8 = i % 2;
		tested_dtype = i < 2 ? DTYPE_F32 : DTYPE_BF16;
		check_each_isa(packs);
	}
}

/* ---- the arithmetic of int8 ---- */

static void int8_rows_are_rounded_as_defined(void **state)
{
	static const float row[] = {127, -127, 0.5f, 1.5f, -2.5f, 63.49f, 0};
	struct int8_scale scale = int8_scale_of_row(row, 7);
	static const int8_t expected[] = {127, -127, 0, 2, -2, 63, 0};
	assert_true(scale.scale == 1 && scale.factor == 1);
	for (int i = 0; i < 7; i++)
		assert_int_equal(int8_rounded(row[i], scale.factor), expected[i]);
	static const float zeros[3] = {0}, odd[] = {1, INFINITY}, worse[] = {NAN, 1};
	assert_true(int8_scale_of_row(zeros, 3).scale == 0);
	assert_true(isnan(int8_scale_of_row(odd, 2).scale) && isnan(int8_scale_of_row(worse, 2).scale));
	/* The largest number of each row stays in range. */
	struct rng rng = rng_start(3, RNG_TEST, 0);
	for (int i = 0; i < 100000; i++) {
		float x = ldexpf(1 + (float)rng_below(&rng, 1 << 23) * 0x1p-23f, (int)rng_below(&rng, 150) - 75);
		scale = int8_scale_of_row(&x, 1);
		assert_int_equal(lrintf(x * scale.factor), 127);
	}
}

static void int8_is_for_inference_alone(void **state)
{
	struct pool *pool;
	struct backend *be;
	or_abort(pool_create(&pool, 1));
	struct backend_settings settings = {.device = "cpu", .dtype = DTYPE_F32, .int8 = true, .pool = pool};
	assert_int_equal(backend_open(&be, &settings), ERR_USAGE);
	assert_non_null(strstr(error_last()->message, "int8"));
	pool_free(pool);
}

/* A weight that is kept out of int8 is still packed in it to measure the effect. With few inputs, int8 takes more room
 * than fp32. */
static void weights_have_room_for_both_forms(void **state)
{
	struct pool *pool;
	struct backend *be;
	or_abort(pool_create(&pool, 1));
	struct backend_settings settings = {.device = "cpu", .dtype = DTYPE_F32, .inference = true, .int8 = true, .pool = pool};
	or_abort(backend_open(&be, &settings));
	for (int64_t inputs = 1; inputs <= 96; inputs++) {
		struct weight w = {.use = WEIGHT_LINEAR, .master = {.dtype = DTYPE_F32, .rows = 48, .columns = inputs}};
		size_t in_int8 = be->functions->weight_copy_bytes(be, &w);
		w.unquantized = true;
		assert_true(be->functions->weight_copy_bytes(be, &w) >= in_int8);
	}
	backend_close(be);
	pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(int8_rows_are_rounded_as_defined),
		cmocka_unit_test(weights_have_room_for_both_forms),
		cmocka_unit_test(int8_is_for_inference_alone),
		cmocka_unit_test(weights_are_packed_piece_by_piece),
		cmocka_unit_test(an_answer_does_not_depend_on_its_batch),
		cmocka_unit_test(a_row_that_is_not_finite_spoils_no_other),
		cmocka_unit_test(f32_as_the_reference),
		cmocka_unit_test(bf16_as_the_reference),
		cmocka_unit_test(int8_as_the_reference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
