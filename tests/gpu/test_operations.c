/* Every operation on a real GPU against the reference, in every type that the GPU has: the cases of tests/backend, and the
 * shapes of BERT-large, which would take the emulated device hours. */
#include "../cuda/each_operation.h"

static const char *const large_lines[] = {
	"linear_fwd M=1000 O=3072 I=1024 act=none",
	"linear_gelu_fwd M=1000 O=4096 I=1024 act=gelu_erf",
	"linear_norm_fwd M=1000 H=1024 I=4096 p=0.1",
	"norm_bwd M=4000 H=1024 p=0.1 bias=1",
	"linear_bwd M=1000 O=1024 I=4096 b=0 producer=1 pre=gelu_erf",
	"linear_bwd M=1000 O=3072 I=1024 b=0 add=2 overwrite=0",
	"attention_fwd T=2048 H=1024 heads=16 B=8 longest=512 p=0.1",
	"attention_bwd T=2048 H=1024 heads=16 B=8 longest=512 p=0.1 bias=1",
	"embed_fwd T=4000 H=1024 V=30522 S=512 p=0.1",
	"embed_bwd T=4000 H=1024 V=30522 S=512 p=0.1 overwrite=1 overwrite_word=0",
	"vocab_xent P=150 V=30522 H=1024",
};

static void test_operations(void **state)
{
	struct arithmetic in = *(struct arithmetic *)*state;
	run_operations(&(struct operation_run){.in = in, .lines = case_lines, .count = CASE_COUNT});
	if (!getenv("BERTC_TEST_CASES"))
		run_operations(&(struct operation_run){
			.in = in, .lines = large_lines, .count = sizeof large_lines / sizeof large_lines[0]});
}

int main(void)
{
	return run_each_arithmetic(test_operations);
}
