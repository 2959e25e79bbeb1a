/* FP8's arithmetic (backend/fp8.h) against PyTorch's: every bf16 number, many fp32 numbers, every byte; its scales; and
 * how back ends apply it to operands. */
#include <math.h>
#include "test.h"
#include "fp8_rounding.h"
#include "backend/fp8.h"
#include "formats/safetensors.h"
#include "backend/open.h"

static const char golden_path[] = "tests/golden/fp8.safetensors";
static const char *const format_names[] = {"e4m3", "e5m2"};
static const enum dtype formats[] = {DTYPE_E4M3, DTYPE_E5M2};
static struct safetensors golden;

static int open_golden(void **state)
{
	return safetensors_open(&golden, golden_path) == OK ? 0 : -1;
}

static int close_golden(void **state)
{
	safetensors_close(&golden);
	return 0;
}

static const struct safetensors_entry *find(const char *format, const char *what)
{
	char name[32];
	snprintf(name, sizeof name, "%s.%s", format, what);
	const struct safetensors_entry *entry = safetensors_find(&golden, name);
	assert_non_null(entry);
	return entry;
}

static float float_at(const struct safetensors_entry *entry, int64_t i)
{
	float x;
	memcpy(&x, (const char *)entry->data + (size_t)i * sizeof x, sizeof x);
	return x;
}

/* x encodes to `byte`; rounding without encoding gives the value that the byte stands for. */
static void check(int f, float x, uint8_t byte)
{
	enum dtype format = formats[f];
	uint8_t actual = fp8_encode(format, x);
	if (isnan(x)) {
		assert_true(isnan(fp8_decode(format, actual)));
		assert_true(isnan(fp8_decode(format, byte)));
		return;
	}
	float value = fp8_decode(format, byte), rounded = fp8_rounded(format, x);
	if (actual != byte || fp8_bits_of(rounded) != fp8_bits_of(value))
		fail_msg("%s: %a is %02x (%a), expected %02x (%a)", format_names[f], (double)x, actual, (double)rounded, byte,
			 (double)value);
}

static void every_bf16_number(void **state)
{
	for (int f = 0; f < 2; f++) {
		const struct safetensors_entry *bytes = find(format_names[f], "bf16");
		assert_int_equal(bytes->count, 65536);
		for (uint32_t i = 0; i < 65536; i++)
			check(f, fp8_float_of(i << 16), ((const uint8_t *)bytes->data)[i]);
	}
}

static void numbers_of_fp32(void **state)
{
	const struct safetensors_entry *sample = safetensors_find(&golden, "sample");
	assert_non_null(sample);
	assert_true(sample->count > 40000);
	for (int f = 0; f < 2; f++) {
		const struct safetensors_entry *bytes = find(format_names[f], "sample");
		for (int64_t i = 0; i < sample->count; i++)
			check(f, float_at(sample, i), ((const uint8_t *)bytes->data)[i]);
	}
}

static void every_byte(void **state)
{
	for (int f = 0; f < 2; f++) {
		const struct safetensors_entry *values = find(format_names[f], "value");
		for (int i = 0; i < 256; i++) {
			float value = fp8_decode(formats[f], (uint8_t)i), expected = float_at(values, i);
			if (isnan(expected))
				assert_true(isnan(value));
			else
				assert_true(fp8_bits_of(value) == fp8_bits_of(expected));
		}
	}
}

/* The largest power of two that leaves the largest magnitude in range. */
static void scales(void **state)
{
	for (int f = 0; f < 2; f++) {
		float most = fp8_largest(formats[f]);
		for (uint32_t bits = 0x00800000u; bits < 0x7f800000u; bits += 0x1357) {
			float x = fp8_float_of(bits);
			struct fp8_scale s = fp8_scale_of(formats[f], bits);
			assert_true(frexpf(s.scale, &(int){0}) == 0.5f);
			assert_true(s.scale * s.inverse == 1);
			assert_true(x * s.scale <= most);
			assert_true(x * s.scale * 2 > most || s.scale == 0x1p126f);
			/* The result is a bf16 number. */
			float back = fp8_rounded(formats[f], x * s.scale) * s.inverse;
			assert_int_equal(fp8_bits_of(back) & 0xffffu, 0);
		}
		assert_true(fp8_scale_of(formats[f], 0).scale == 1);
		assert_true(fp8_scale_of(formats[f], 1).inverse == 0x1p-126f);
		assert_true(isnan(fp8_scale_of(formats[f], 0x7f800000u).inverse));
		assert_true(isnan(fp8_scale_of(formats[f], 0x7fc00000u).inverse));
	}
}

/* On the back ends that simulate FP8. */
static void operands_of_products(void **state)
{
	static const char *const devices[] = {"ref", "cpu"};
	for (int i = 0; i < 2; i++) {
		struct pool *pool;
		struct backend *be;
		assert_int_equal(pool_create(&pool, 2), OK);
		assert_int_equal(backend_open(&be,
					      &(struct backend_settings){
						      .device = devices[i], .dtype = DTYPE_BF16, .fp8 = true, .pool = pool}),
				 OK);
		check_fp8_rounding(be);
		backend_close(be);
		pool_free(pool);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_bf16_number),    cmocka_unit_test(numbers_of_fp32),
		cmocka_unit_test(every_byte),           cmocka_unit_test(scales),
		cmocka_unit_test(operands_of_products),
	};
	return cmocka_run_group_tests(tests, open_golden, close_golden);
}
