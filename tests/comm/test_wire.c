/* Numbers in their transfer formats: every 16-bit pattern and every rounding case, by the formats' definitions. */
#include <math.h>
#include "base/rng.h"
#include "comm/wire.h"
#include "test.h"

static float float_of(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* The value of a 16-bit number. */
static double value_of(uint16_t bits, enum comm_type wire)
{
	int digits = wire == COMM_F16 ? 10 : 7, bias = wire == COMM_F16 ? 15 : 127;
	int exponent = (bits & 0x7fff) >> digits, fraction = bits & ((1 << digits) - 1);
	double sign = bits & 0x8000 ? -1 : 1;
	if (exponent == (wire == COMM_F16 ? 31 : 255))
		return fraction ? NAN : sign * INFINITY;
	if (exponent == 0)
		return sign * ldexp(fraction, 1 - bias - digits);
	return sign * ldexp((1 << digits) + fraction, exponent - bias - digits);
}

/* The nearest number, ties to even: found by bisection around a first guess. */
static double nearest(double x, enum comm_type wire)
{
	int lowest = wire == COMM_F16 ? -24 : -133, digits = wire == COMM_F16 ? 11 : 8, exponent;
	if (x == 0 || !isfinite(x))
		return x;
	frexp(x, &exponent);
	int unit = exponent - digits < lowest ? lowest : exponent - digits;
	double rounded = ldexp(nearbyint(ldexp(x, -unit)), unit);
	if (fabs(rounded) >= (wire == COMM_F16 ? 65536.0 : ldexp(1, 128)))
		return copysign(INFINITY, x);
	return rounded;
}

static bool equal(double a, double b)
{
	return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void test_unpack(void **state)
{
	static uint16_t all[65536];
	static float values[65536];
	for (int i = 0; i < 65536; i++)
		all[i] = (uint16_t)i;
	for (enum comm_type wire = COMM_BF16; wire <= COMM_F16; wire++) {
		wire_add_packed(values, all, 65536, COMM_F32, wire, true);
		for (int i = 0; i < 65536; i++)
			if (!equal(values[i], value_of((uint16_t)i, wire)))
				fail_msg("%04x is %g, not %g", i, (double)values[i], value_of((uint16_t)i, wire));
	}
}

static void check(const float *x, int64_t count)
{
	static float rounded[70000];
	static uint16_t packed[70000];
	static double wide[70000], wide_rounded[70000];
	for (enum comm_type wire = COMM_BF16; wire <= COMM_F16; wire++) {
		wire_add(rounded, x, count, COMM_F32, wire, true);
		wire_pack(packed, x, count, COMM_F32, wire);
		for (int64_t i = 0; i < count; i++)
			wide[i] = (double)x[i];
		wire_add(wide_rounded, wide, count, COMM_F64, wire, true);
		for (int64_t i = 0; i < count; i++) {
			double expected = nearest((double)x[i], wire);
			if (!equal(rounded[i], expected) || !equal(value_of(packed[i], wire), expected) ||
			    !equal(wide_rounded[i], expected))
				fail_msg("%a becomes %a and %a, not %a", (double)x[i], (double)rounded[i],
					 value_of(packed[i], wire), expected);
		}
	}
}

static void test_round(void **state)
{
	static float x[70000];
	int64_t count = 0;
	/* Around every point where rounding changes: all exponents, and the bits next to the last one kept. */
	for (uint32_t exponent = 0; exponent < 256; exponent++)
		for (uint32_t low = 0; low < 16; low++)
			for (int which = 0; which < 4; which++) {
				static const uint32_t units[] = {1u << 12, 1u << 15, 1, 1u << 20};
				x[count++] = float_of(exponent << 23 | (low * units[which] & 0x7fffff));
				x[count++] = -float_of(exponent << 23 | ((low * units[which] + 1) & 0x7fffff));
			}
	check(x, count);
	struct rng rng = rng_start(3, RNG_TEST, 1);
	for (int64_t i = 0; i < 70000; i++)
		x[i] = float_of(rng_u32(&rng));
	check(x, 70000);
}

static void test_sums(void **state)
{
	float values[3] = {1, 2, 3}, sum[3] = {10, 20, NAN};
	double wide[3] = {1, 2, 3}, wide_sum[3];
	wire_add(sum, values, 2, COMM_F32, COMM_F32, false);
	assert_true(sum[0] == 11 && sum[1] == 22 && isnan(sum[2]));
	wire_add(wide_sum, wide, 3, COMM_F64, COMM_F64, true);
	wire_add(wide_sum, wide, 3, COMM_F64, COMM_F64, false);
	assert_true(wide_sum[0] == 2 && wide_sum[2] == 6);
	assert_int_equal(comm_type_bytes(COMM_F64) + comm_type_bytes(COMM_F32) + comm_type_bytes(COMM_BF16) +
				 comm_type_bytes(COMM_F16),
			 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unpack),
		cmocka_unit_test(test_round),
		cmocka_unit_test(test_sums),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
