/* Packs weights into inference's panels, and quantizes activations to int8 rows. */
#include "backend/cpu/kernels/elements.h"
#include "backend/cpu/kernels/inference_kernels.h"
#include "backend/int8.h"

void KERNEL(inference_pack)(const struct panel_pack *a);
void KERNEL(inference_quantize)(const void *x, enum dtype dtype, int64_t rows, int64_t columns, void *out, int64_t out_row);

enum { PANEL = LANES == 4 ? 16 : 2 * LANES, PIECE = 64 };
#ifdef ISA_neon_mmla
enum { INT8_GROUP = 8, BF16_GROUP = 4 };
#elif defined(__AVX512VNNI__) || defined(__ARM_FEATURE_DOTPROD)
enum { INT8_GROUP = 4, BF16_GROUP = 2 };
#else
enum { INT8_GROUP = 2, BF16_GROUP = 2 };
#endif

/* Inputs [k, k + PIECE) of a row as floats, with zeros after the last. */
static void row_piece(const struct panel_pack *a, int64_t row, int64_t k, float out[PIECE])
{
	int64_t count = a->inputs - k < PIECE ? a->inputs - k : PIECE, at = row * a->inputs + k;
	if (a->from == DTYPE_F32) {
		memcpy(out, (const float *)a->rows + at, (size_t)count * sizeof(float));
	} else if (a->from == DTYPE_S8) {
		for (int64_t i = 0; i < count; i++)
			out[i] = (float)((const int8_t *)a->rows)[at + i] * a->row_scales[row];
	} else {
		const uint16_t *numbers = (const uint16_t *)a->rows + at;
		for (int64_t i = 0; i < count; i++)
			out[i] = a->from == DTYPE_BF16 ? bf16_to_float(numbers[i]) : f16_to_float(numbers[i]);
	}
	for (int64_t i = count; i < PIECE; i++)
		out[i] = 0;
}

/* The same for a row of bytes; returns their sum. */
static int32_t byte_piece(const struct panel_pack *a, int64_t row, int64_t k, int8_t out[PIECE])
{
	int64_t count = a->inputs - k < PIECE ? a->inputs - k : PIECE;
	int32_t sum = 0;
	memcpy(out, (const int8_t *)a->rows + row * a->inputs + k, (size_t)count);
	for (int64_t i = count; i < PIECE; i++)
		out[i] = 0;
	for (int i = 0; i < PIECE; i++)
		sum += out[i];
	return sum;
}

/* The factor applied to a row's numbers before rounding, and its scale. */
static struct int8_scale row_scale(const struct panel_pack *a, int64_t row)
{
	if (a->from == DTYPE_S8)
		return (struct int8_scale){.scale = a->row_scales[row], .factor = 1};
	uint32_t largest = 0;
	for (int64_t k = 0; k < a->inputs; k += PIECE) {
		float piece[PIECE];
		uint32_t bits[PIECE];
		row_piece(a, row, k, piece);
		memcpy(bits, piece, sizeof bits);
		for (int i = 0; i < PIECE; i++) {
			bits[i] &= 0x7fffffffu;
			largest = bits[i] > largest ? bits[i] : largest;
		}
	}
	return int8_scale_of(largest);
}

static void pack_f32(const struct panel_pack *a)
{
	float piece[PANEL_MOST][PIECE];
	for (int64_t k = 0; k < a->inputs; k += PIECE) {
		int64_t inputs = a->inputs - k < PIECE ? a->inputs - k : PIECE;
		for (int64_t n = 0; n < a->count; n++)
			row_piece(a, n, k, piece[n]);
		float *out = (float *)a->panel + k * PANEL + a->first;
		for (int64_t i = 0; i < inputs; i++)
			for (int64_t n = 0; n < a->count; n++)
				out[i * PANEL + n] = piece[n][i];
	}
}

static void pack_bf16(const struct panel_pack *a)
{
	uint16_t piece[PANEL_MOST][PIECE];
	for (int64_t k = 0; k < a->inputs; k += PIECE) {
		int64_t groups = round_up(a->inputs - k < PIECE ? a->inputs - k : PIECE, BF16_MULTIPLE) / BF16_GROUP;
		for (int64_t n = 0; n < a->count; n++) {
			float row[PIECE];
			row_piece(a, n, k, row);
			for (int64_t i = 0; i < PIECE; i += LANES)
				store_bf16(piece[n], i, LANES, vector_load(row + i));
		}
		uint16_t *out = (uint16_t *)a->panel + k * PANEL + a->first * BF16_GROUP;
		for (int64_t i = 0; i < groups; i++)
			for (int64_t n = 0; n < a->count; n++)
				memcpy(out + (i * PANEL + n) * BF16_GROUP, &piece[n][BF16_GROUP * i], BF16_GROUP * sizeof *out);
	}
}

static void pack_s8(const struct panel_pack *a)
{
	struct int8_scale scales[PANEL_MOST];
	int32_t sums[PANEL_MOST] = {0};
	int8_t piece[PANEL_MOST][PIECE];
	for (int64_t n = 0; n < a->count; n++)
		scales[n] = row_scale(a, n);
	for (int64_t k = 0; k < a->inputs; k += PIECE) {
		for (int64_t n = 0; n < a->count; n++) {
			float row[PIECE];
			if (a->from == DTYPE_S8) { /* already quantized */
				sums[n] += byte_piece(a, n, k, piece[n]);
				continue;
			}
			row_piece(a, n, k, row);
			for (int64_t i = 0; i < PIECE; i++) {
				piece[n][i] = int8_rounded(row[i], scales[n].factor);
				sums[n] += piece[n][i];
			}
		}
		int8_t *out = (int8_t *)a->panel + k * PANEL + a->first * INT8_GROUP;
		for (int64_t i = 0; i < PIECE / INT8_GROUP; i++)
			for (int64_t n = 0; n < a->count; n++)
				memcpy(out + (i * PANEL + n) * INT8_GROUP, &piece[n][i * INT8_GROUP], INT8_GROUP);
	}
	for (int64_t n = 0; n < a->count; n++) {
		a->scales[a->first + n] = scales[n].scale;
		a->sums[a->first + n] = -128 * sums[n];
	}
}

void KERNEL(inference_pack)(const struct panel_pack *a)
{
	if (a->type == DTYPE_S8)
		pack_s8(a);
	else if (a->type == DTYPE_BF16)
		pack_bf16(a);
	else
		pack_f32(a);
}

/* Stores LANES numbers of an int8 row. */
INLINE void store_int8(char *out, int64_t i, vector scaled)
{
#if defined(__ARM_NEON)
	int16x4_t half = vqmovn_s32(vcvtnq_s32_f32(scaled));
	uint32_t bytes = vget_lane_u32(vreinterpret_u32_s8(vqmovn_s16(vcombine_s16(half, half))), 0);
	memcpy(out + i, &bytes, sizeof bytes);
#elif defined(__AVX512VNNI__)
	__m128i bytes = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(scaled));
	_mm_storeu_si128((__m128i *)(void *)(out + i), _mm_xor_si128(bytes, _mm_set1_epi8((char)0x80)));
#elif defined(__AVX512F__)
	_mm256_storeu_si256((__m256i *)(void *)(out + 2 * i), _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(scaled)));
#else
	__m256i words = _mm256_cvtps_epi32(scaled);
	__m128i half = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
	_mm_storeu_si128((__m128i *)(void *)(out + 2 * i), half);
#endif
}

INLINE uint32_t largest_bits(vector largest)
{
	float x = vector_largest(largest);
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

INLINE void quantize(const void *x, enum dtype dtype, int64_t rows, int64_t columns, char *out, int64_t out_row)
{
	for (int64_t r = 0; r < rows; r++, out += out_row) {
		const void *row = row_of(x, r, columns, dtype);
		vector largest = vector_set(0), finite = vector_set(0);
		for (int64_t c = 0; c < columns; c += LANES) {
			vector v = load(row, c, columns - c, dtype);
			largest = vector_max(vector_abs(v), largest);
			finite += v * vector_set(0); /* a maximum can lose NaN */
		}
		float sum = vector_sum(finite);
		struct int8_scale scale = int8_scale_of(sum == 0 ? largest_bits(largest) : 0x7fc00000u);
		memset(out, 0, INT8_ROW_HEADER);
		memcpy(out, &scale.scale, sizeof scale.scale);
		const vector factor = vector_set(scale.factor);
		for (int64_t c = 0; c < columns; c += LANES)
			store_int8(out + INT8_ROW_HEADER, c, load(row, c, columns - c, dtype) * factor);
		for (int64_t c = round_up(columns, LANES); c < round_up(columns, INT8_MULTIPLE); c += LANES)
			store_int8(out + INT8_ROW_HEADER, c, vector_set(0));
	}
}

void KERNEL(inference_quantize)(const void *x, enum dtype dtype, int64_t rows, int64_t columns, void *out, int64_t out_row)
{
	if (dtype == DTYPE_BF16)
		quantize(x, DTYPE_BF16, rows, columns, out, out_row);
	else
		quantize(x, DTYPE_F32, rows, columns, out, out_row);
}
