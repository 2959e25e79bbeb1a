/* wgmma: products that a warpgroup starts and later waits for. Each thread remembers what it has started; when all threads of
 * the warpgroup wait, the products are computed from the fragments and from what the descriptors point to. In the meantime the
 * sums hold NaN. Each thread looks after its 16 bytes of every operand in shared memory: nobody may race to write them, neither
 * before the product starts nor before it has been waited for, and they must not change. */
#include "device_emulated.h"

#include <deque>
#include <map>
#include <vector>

namespace
{

constexpr int GROUP = 128, SIZE = 64, DEPTH = 16;
constexpr uint32_t POISON = 0xffffffff;

struct chunk {
	const void *at;
	unsigned char bytes[16];
};

struct started {
	emulated_product product;
	uint32_t a[4];
	std::vector<chunk> chunks; /* of a, if it is in shared memory, and of b */
};

struct thread_products {
	bool fenced;
	std::vector<started> open;
	std::deque<std::vector<started>> groups;
	std::map<float *, std::vector<float>> sums; /* what sums that hold NaN really are so far */
	int waited;                                 /* groups to compute at this meeting */
};

thread_products products[1024];

thread_products *mine()
{
	return &products[threadIdx.x];
}

/* Where a descriptor says that element (outer, k) of an operand is. Both kinds of tile have groups of eight rows of 128 bytes,
 * a multiple of `stride` apart; a row is an outer index with 16 elements of k, or a k with 64 outer indices. */
const unsigned char *place(uint64_t descriptor, bool transposed, int outer, int k)
{
	unsigned start = (unsigned)(descriptor & 0x3fff) << 4, stride = (unsigned)(descriptor >> 32 & 0x3fff) << 4;
	if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0 || (start & 0x380) != 0)
		emulation_fault("the descriptor %016llx is not of a tile with a swizzle of 128 bytes",
				(unsigned long long)descriptor);
	int row = transposed ? k : outer, column = transposed ? outer : k;
	unsigned address = start + (unsigned)(row / 8) * stride + (unsigned)(row % 8 * 128 + column * 2);
	return static_cast<const unsigned char *>(emulation_shared(nullptr)) + (address ^ (address >> 7 & 7) << 4);
}

/* The 16 bytes that this thread looks after of an operand with so many outer indices, if there are enough. */
void look_after(std::vector<chunk> &chunks, uint64_t descriptor, bool transposed, int outer)
{
	chunk c;
	int i = (int)threadIdx.x % GROUP, row = outer / 8; /* chunks of 8 in a row of a transposed operand; others have two */
	if (i >= outer * 2)
		return;
	c.at = transposed ? place(descriptor, true, i % row * 8, i / row) : place(descriptor, false, i / 2, i % 2 * 8);
	emulation_access_by_product(c.at, sizeof(c.bytes));
	memcpy(c.bytes, c.at, sizeof(c.bytes));
	chunks.push_back(c);
}

float element(bool is_bf16, const unsigned char *at)
{
	uint16_t bits;
	memcpy(&bits, at, sizeof(bits));
	return is_bf16 ? bf16_to_float(bits) : f16_to_float(bits);
}

/* Which thread of a warpgroup has the sum in this row and column of a tile, and which of the thread's sums it is. */
int thread_of(int row, int column)
{
	return row / 16 * 32 + row % 8 * 4 + column / 2;
}

size_t index_of(int row, int tile, int column)
{
	return (size_t)(tile * 4 + row / 8 % 2 * 2 + column % 2);
}

void compute(thread_products *const *threads, size_t number)
{
	float a[SIZE][DEPTH], b[SIZE / TENSOR_LANES][DEPTH][TENSOR_LANES];
	const emulated_product *p = &threads[0]->groups.front()[number].product;
	for (int i = 0; i < SIZE * DEPTH; i++) {
		int outer = i / DEPTH, k = i % DEPTH;
		if (outer < p->columns)
			b[outer / TENSOR_LANES][k][outer % TENSOR_LANES] =
				element(p->is_bf16, place(p->b_rows, p->b_transposed, outer, k));
		if (p->a == nullptr)
			a[outer][k] = element(p->is_bf16, place(p->a_rows, p->a_transposed, outer, k));
	}
	for (int thread = 0; thread < GROUP; thread++) {
		const started *s = &threads[thread]->groups.front()[number];
		if ((s->product.a == nullptr) != (p->a == nullptr) || s->product.a_rows != p->a_rows ||
		    s->product.b_rows != p->b_rows || s->product.add != p->add)
			emulation_fault("threads of a warpgroup have started different products");
		for (int i = 0, row, k; p->a != nullptr && i < 8; i++) {
			emulation::place_of_a(emulation::F16, thread % 32, i, &row, &k);
			a[thread / 32 * 16 + row][k] =
				emulation::element_value(p->is_bf16 ? emulation::BF16 : emulation::F16, s->a, i);
		}
	}
	std::vector<float> *sums[GROUP];
	for (int thread = 0; thread < GROUP; thread++)
		sums[thread] = &threads[thread]->sums[threads[thread]->groups.front()[number].product.c];
	/* Eight columns of a row are the sums of four threads, two each. As many products in one addition as in
	 * emulation::multiply(). */
	for (int row = 0; row < SIZE; row++)
		for (int tile = 0; tile < p->columns / TENSOR_LANES; tile++) {
			float c[TENSOR_LANES];
			for (int i = 0; i < TENSOR_LANES; i++)
				c[i] = p->add ? (*sums[thread_of(row, i)])[index_of(row, tile, i)] : 0;
			tensor_core_add(c, a[row], b[tile], DEPTH / 2);
			tensor_core_add(c, a[row] + DEPTH / 2, b[tile] + DEPTH / 2, DEPTH / 2);
			for (int i = 0; i < TENSOR_LANES; i++)
				(*sums[thread_of(row, i)])[index_of(row, tile, i)] = c[i];
		}
}

void compute_groups(void *const *threads)
{
	thread_products *all[GROUP];
	memcpy(all, threads, sizeof(all));
	for (int groups = all[0]->waited; groups > 0; groups--) {
		for (int i = 0; i < GROUP; i++)
			if (all[i]->waited != all[0]->waited || all[i]->groups.front().size() != all[0]->groups.front().size())
				emulation_fault("threads of a warpgroup wait for different products");
		for (size_t number = 0; number < all[0]->groups.front().size(); number++)
			compute(all, number);
		for (int i = 0; i < GROUP; i++)
			all[i]->groups.pop_front();
	}
}

bool is_pending(const thread_products *m, const float *c)
{
	auto is_of_c = [c](const started &s) { return s.product.c == c; };
	bool any = std::any_of(m->open.begin(), m->open.end(), is_of_c);
	for (const auto &group : m->groups)
		any |= std::any_of(group.begin(), group.end(), is_of_c);
	return any;
}

void check_poison(const float *c, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (__float_as_uint(c[i]) != POISON)
			emulation_fault("the sums of a product were written before it was waited for");
}

} // namespace

void emulation_group_multiply(const emulated_product &product)
{
	thread_products *m = mine();
	started s = {product, {}, {}};
	if (!m->fenced)
		emulation_fault("a product without a fence before it");
	if (product.a == nullptr)
		look_after(s.chunks, product.a_rows, product.a_transposed, SIZE);
	else
		memcpy(s.a, product.a, sizeof(s.a));
	look_after(s.chunks, product.b_rows, product.b_transposed, product.columns);
	size_t count = (size_t)product.columns / 2;
	if (m->sums.count(product.c) > 0)
		check_poison(product.c, count);
	else
		m->sums[product.c].assign(product.c, product.c + count);
	memset(product.c, 0xff, count * sizeof(float));
	m->open.push_back(s);
}

void emulation_group_fence(void)
{
	mine()->fenced = true;
}

void emulation_group_commit(void)
{
	mine()->groups.push_back(mine()->open);
	mine()->open.clear();
}

void emulation_group_wait(int groups_left)
{
	thread_products *m = mine();
	m->waited = std::max(0, (int)m->groups.size() - groups_left);
	for (int i = 0; i < m->waited; i++)
		for (const started &s : m->groups[(size_t)i])
			for (const chunk &c : s.chunks) {
				if (memcmp(c.bytes, c.at, sizeof(c.bytes)) != 0)
					emulation_fault(
						"shared memory was written before the product that reads it was waited for");
				emulation_access(c.at, sizeof(c.bytes), false);
			}
	emulation_warpgroup(m, compute_groups, "group_wait");
	m->fenced = false;
	for (auto s = m->sums.begin(); s != m->sums.end();) {
		if (is_pending(m, s->first)) {
			++s;
			continue;
		}
		check_poison(s->first, s->second.size());
		std::copy(s->second.begin(), s->second.end(), s->first);
		s = m->sums.erase(s);
	}
}

/* At the end of a thread. */
void products_check_done(void)
{
	if (!mine()->sums.empty())
		emulation_fault("a thread ends before it has waited for its products");
	mine()->groups.clear();
}
