/* Stub for builds without cuDNN, and for the emulated device. */
#include "backend/cuda/attention_cudnn.h"

enum status attention_cudnn_open(struct attention_cudnn **out, struct cuda_state *state, enum dtype dtype)
{
	(void)state;
	(void)dtype;
	*out = NULL;
	enum status status = error_set(ERR_USAGE, "--attention cudnn: this program was built without cuDNN");
	error_hint("build it with make CUDA=1 where cudnn.h is, or give --attention own");
	return status;
}

void attention_cudnn_close(struct attention_cudnn *cudnn)
{
	(void)cudnn;
}

const char *attention_cudnn_name(const struct attention_cudnn *cudnn)
{
	(void)cudnn;
	return "";
}

void attention_cudnn_library(struct library_list *list)
{
	(void)list;
}

enum status attention_cudnn_check(const struct attention_cudnn *cudnn, const struct shape_limits *limits)
{
	(void)cudnn;
	(void)limits;
	return OK;
}

void attention_cudnn_lay_out(const struct shape_limits *limits, struct cudnn_scratch *out, struct arena *arena)
{
	(void)limits;
	(void)arena;
	*out = (struct cudnn_scratch){0};
}

void attention_cudnn_fwd(struct replica *r, const struct attention_fwd *a)
{
	(void)r;
	(void)a;
}

void attention_cudnn_bwd(struct replica *r, const struct attention_bwd *a)
{
	(void)r;
	(void)a;
}
