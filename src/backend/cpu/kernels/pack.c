/* Packs weights as oneDNN's AVX-512 and AMX products, or our own, expect them. A matrix (k,n) becomes panels of `panel` columns.
 * In bf16 a row of a panel holds `panel` pairs (k, k+1), or on arm64 as many groups of four k; in fp32 `panel` numbers. Partial
 * panels are padded with zeros. The copies of all weights are larger than a cache and are written past it, which saves reading
 * the lines first. */
#include "backend/cpu/kernels/table.h"

#ifdef __AVX512F__
/* Elements adjacent along n are adjacent in the master: rows are copied, or two of them interleaved. */
INLINE void pack_rows(const struct pack_piece *a, bool pairs)
{
	int64_t step = pairs ? 2 : 1;
	for (int64_t first = 0; first < a->n; first += a->panel) {
		uint32_t *out = (uint32_t *)a->packed + first / a->panel * (a->panel_stride / step);
		for (int64_t k = 0; k < a->k_padded; k += step) {
			const float *row = a->master + k * a->k_stride;
			for (int64_t n = first; n < first + a->panel; n += 16, out += 16) {
				__m512i v = _mm512_setzero_si512();
				if (n < a->n && k < a->k) {
					vector low = load_floats(row, n, a->n - n);
					v = pairs ? _mm512_cvtepu16_epi32(to_bf16(low)) : _mm512_castps_si512(low);
				}
				if (pairs && n < a->n && k + 1 < a->k) {
					__m256i high = to_bf16(load_floats(row + a->k_stride, n, a->n - n));
					v = _mm512_or_si512(v, _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
				}
				_mm512_stream_si512((void *)out, v);
			}
		}
	}
}

/* 16 words of a row: 16 floats, or 32 rounded to bf16. */
INLINE vector words(const float *row, int64_t left, bool pairs)
{
	if (!pairs)
		return load_floats(row, 0, left);
	__m256i low = to_bf16(load_floats(row, 0, left)), high = _mm256_setzero_si256();
	if (left > 16)
		high = to_bf16(load_floats(row, 16, left - 16));
	return _mm512_castsi512_ps(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
}

/* Elements adjacent along k are adjacent in the master: blocks of 16 x 16 words are transposed. */
INLINE void pack_columns(const struct pack_piece *a, bool pairs)
{
	int64_t per_word = pairs ? 2 : 1, step = 16 * per_word, k_words = a->k_padded / per_word;
	for (int64_t first = 0; first < a->n; first += a->panel) {
		uint32_t *panel = (uint32_t *)a->packed + first / a->panel * (a->panel_stride / per_word);
		for (int64_t n = first; n < first + a->panel; n += 16) {
			for (int64_t k = 0; k < a->k_padded; k += step) {
				vector r[LANES];
				for (int64_t i = 0; i < 16; i++) {
					bool inside = n + i < a->n && k < a->k;
					r[i] = inside ? words(a->master + (n + i) * a->n_stride + k, a->k - k, pairs)
						      : vector_set(0);
				}
				transpose(r);
				uint32_t *out = panel + k / per_word * a->panel + (n - first);
				for (int64_t j = 0; j < 16 && k / per_word + j < k_words; j++)
					_mm512_stream_ps((void *)(out + j * a->panel), r[j]);
			}
		}
	}
}

void KERNEL(pack)(const struct pack_piece *a)
{
	if (a->n_stride == 1)
		a->pairs ? pack_rows(a, true) : pack_rows(a, false);
	else
		a->pairs ? pack_columns(a, true) : pack_columns(a, false);
	_mm_sfence();
}
#elif defined(__ARM_NEON)
/* 4 x 4 numbers at a time: vectors along n for fp32, along k for bf16. */
void KERNEL(pack)(const struct pack_piece *a)
{
	bool along_n = a->n_stride == 1;
	for (int64_t first = 0; first < a->n; first += a->panel) {
		int64_t at = first / a->panel * a->panel_stride;
		for (int64_t k = 0; k < a->k_padded; k += LANES) {
			for (int64_t n = first; n < first + a->panel; n += LANES, at += LANES * LANES) {
				vector x[LANES];
#pragma GCC unroll 4
				for (int i = 0; i < LANES; i++) {
					int64_t row = along_n ? k + i : k, column = along_n ? n : n + i;
					bool inside = row < a->k && column < a->n;
					x[i] = !inside   ? vector_set(0)
					       : along_n ? load_floats(a->master + row * a->k_stride, n, a->n - n)
							 : load_floats(a->master + column * a->n_stride, k, a->k - k);
				}
				if (along_n == a->pairs)
					transpose(x);
#pragma GCC unroll 4
				for (int i = 0; i < LANES; i++) {
					if (a->pairs)
						vst1_u16((uint16_t *)a->packed + at + i * LANES, to_bf16(x[i]));
					else
						vector_store((float *)a->packed + at - (n - first) * (LANES - 1) + i * a->panel,
							     x[i]);
				}
			}
		}
	}
}
#else
void KERNEL(pack)(const struct pack_piece *a)
{
	(void)a;
	__builtin_trap(); /* oneDNN's AVX2 products use other layouts, and oneDNN packs for them */
}
#endif
