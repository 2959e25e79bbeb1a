/* What commands that run a model share: opening the device, and a saved model ready for inference. */
#ifndef CMD_SESSION_H
#define CMD_SESSION_H

#include "backend/backend.h"
#include "base/option.h"
#include "base/pool.h"
#include "cmd/text_options.h"
#include "model/model.h"
#include "text/tokenizer.h"

/* The values of --device, --precision, --attention, --threads. */
struct device_settings {
	const char *device, *precision; /* NULL: the fastest of the machine, of the device */
	const char *attention;          /* "own" or "cudnn" */
	int64_t threads;                /* 0 = all cores */
};
/* Their rows of an option table, for a settings struct whose member `member` is a struct device_settings. */
#define DEVICE_OPTIONS(settings, member)                                                                                         \
	{.name = "device",                                                                                                       \
	 .type = OPTION_CHOICE,                                                                                                  \
	 .field = offsetof(settings, member.device),                                                                             \
	 .range = "cpu|cuda|ref",                                                                                                \
	 .role = ROLE_RUN,                                                                                                       \
	 .value_name = "NAME",                                                                                                   \
	 .fallback_text = "cuda where this build and the machine have it, else cpu",                                             \
	 .help = "where to compute: cpu, cuda (an NVIDIA GPU), or ref, the slow float64 definition"},                            \
		{.name = "precision",                                                                                            \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.precision),                                                                  \
		 .range = "fp32|tf32|bf16|fp16|fp8",                                                                             \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "TYPE",                                                                                           \
		 .fallback_text = "bf16 where the device has it, else fp32 (fp16 on older GPUs)",                                \
		 .help = "type of activations and matrix products; tf32 and fp16 on GPUs only; fp8: products of the encoder's "  \
			 "linear layers in FP8, all else bf16 (on CPUs a slower simulation); masters are always fp32"},          \
		{.name = "attention",                                                                                            \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.attention),                                                                  \
		 .fallback = "own",                                                                                              \
		 .range = "own|cudnn",                                                                                           \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "WHOSE",                                                                                          \
		 .help = "on a GPU: our kernels, or cuDNN's (bf16 and fp16, Hopper or later); its dropout drops other elements " \
			 "than everywhere else, and a run with it cannot be repeated bit for bit"},                              \
		THREADS_OPTION(offsetof(settings, member.threads))

MUST_USE enum status device_open(const struct device_settings *settings, struct pool **pool, struct backend **be);

/* A model folder opened for inference. */
struct session {
	struct pool *pool;
	struct backend *backend;
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct batch_capacity capacity;
	struct vocab vocab;
	struct tokenizer_settings tokenizer_settings;
	bool has_next_sentence; /* false: the weights came without that head */
};

/* Opens what `model` means (train/model_folder.h: a checkpoint, `final`, a run folder, any BERT folder or file of weights
 * with its configuration and vocabulary beside it) with room for batches of `capacity`. */
MUST_USE enum status session_open(struct session *session, const char *model, const struct device_settings *device,
				  struct batch_capacity capacity, int32_t longest);
void session_close(struct session *session);

#endif
