/* The library's own calls for whole matrices, with its own threads: what a step's products alone would cost. */
#include <omp.h>
#include <stdlib.h>
#include "backend/cpu/state.h"
#include "backend/cpu/onednn_version.h"
#include "base/memory.h"

enum { ARGUMENTS = 4 };

struct whole {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t arguments[ARGUMENTS];
	struct arena memory[ARGUMENTS];
};

/* Numbers of realistic magnitude: some machines process zeros and denormals at a different speed. */
static void fill(void *memory, size_t bytes, dnnl_data_type_t type)
{
	for (size_t i = 0; i < bytes / (type == dnnl_bf16 ? 2 : 4); i++) {
		float x = (float)((int)(i * 2654435761u >> 8 & 0xffff) - 32768) / 32768;
		if (type == dnnl_bf16)
			((uint16_t *)memory)[i] = float_to_bf16(x);
		else
			((float *)memory)[i] = x;
	}
}

static enum status argument_add(struct whole *w, int place, int name, const_description d, dnnl_data_type_t type)
{
	size_t bytes = dnnl_memory_desc_get_size(d) + ARENA_ALIGNMENT;
	TRY(arena_create(&w->memory[place], bytes, "measuring products"));
	fill(w->memory[place].base, bytes, type);
	w->arguments[place].arg = name;
	CHECK(dnnl_memory_create(&w->arguments[place].memory, d, w->engine, w->memory[place].base));
	return OK;
}

/* y (m,n) = a (m,k) b (k,n). For the weight's gradient, the left operand is dy (k,m), transposed, and the result is fp32; the
 * other two have a packed weight as right operand. */
static enum status whole_make(struct whole *w, enum dtype dtype, int64_t m, int64_t n, int64_t k, bool is_gradient)
{
	dnnl_data_type_t type = data_type(dtype), y_type = is_gradient ? dnnl_f32 : type;
	description a = describe_strides(m, k, type, is_gradient ? 1 : k, is_gradient ? m : 1);
	description b = is_gradient ? describe_strides(k, n, type, n, 1) : describe_any(k, n, type);
	description y = describe_strides(m, n, y_type, n, 1);
	dnnl_primitive_attr_t attributes;
	dnnl_primitive_desc_t d = NULL;
	CHECK(dnnl_engine_create(&w->engine, dnnl_cpu, 0));
	CHECK(dnnl_stream_create(&w->stream, w->engine, dnnl_stream_default_flags));
	CHECK(dnnl_primitive_attr_create(&attributes));
	CHECK(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
	CHECK(describe_matmul(&d, w->engine, borrow(&a), borrow(&b), borrow(&y), attributes));
	CHECK(dnnl_primitive_create(&w->primitive, d));
	enum status status;
	TRY_GOTO(argument_add(w, 0, DNNL_ARG_SRC, described(d, dnnl_query_src_md), type), done);
	TRY_GOTO(argument_add(w, 1, DNNL_ARG_WEIGHTS, described(d, dnnl_query_weights_md), type), done);
	TRY_GOTO(argument_add(w, 2, DNNL_ARG_DST, described(d, dnnl_query_dst_md), y_type), done);
	TRY_GOTO(argument_add(w, 3, DNNL_ARG_SCRATCHPAD, described(d, dnnl_query_scratchpad_md), dnnl_f32), done);
done:
	dnnl_primitive_desc_destroy(d);
	dnnl_primitive_attr_destroy(attributes);
	forget(a);
	forget(b);
	forget(y);
	return status;
}

static void whole_release(struct whole *w)
{
	for (int i = 0; i < ARGUMENTS; i++) {
		dnnl_memory_destroy(w->arguments[i].memory);
		arena_release(&w->memory[i]);
	}
	dnnl_primitive_destroy(w->primitive);
	dnnl_stream_destroy(w->stream);
	dnnl_engine_destroy(w->engine);
}

static double whole_run(struct whole *w, double (*clock)(void))
{
	double started = clock();
	CHECK(dnnl_primitive_execute(w->primitive, w->stream, ARGUMENTS, w->arguments));
	CHECK(dnnl_stream_wait(w->stream));
	return clock() - started;
}

enum status cpu_whole_product(struct backend *be, enum whole_product product, int64_t rows, int64_t outputs, int64_t inputs,
			      double (*clock)(void), double *out_seconds)
{
	struct whole whole = {0};
	int64_t m = product == WHOLE_WGRAD ? outputs : rows, n = product == WHOLE_FORWARD ? outputs : inputs;
	int64_t k = product == WHOLE_FORWARD ? inputs : product == WHOLE_DGRAD ? outputs : rows;
	int threads = omp_get_max_threads();
	omp_set_num_threads(pool_threads(be->pool));
	enum status status = whole_make(&whole, be->dtype, m, n, k, product == WHOLE_WGRAD);
	if (status == OK) {
		whole_run(&whole, clock);
		/* Median of three. */
		double a = whole_run(&whole, clock), b = whole_run(&whole, clock), c = whole_run(&whole, clock);
		double least = a < b ? a : b, most = a < b ? b : a;
		*out_seconds = c < least ? least : c > most ? most : c;
	}
	whole_release(&whole);
	omp_set_num_threads(threads);
	return status;
}
