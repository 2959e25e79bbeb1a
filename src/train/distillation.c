/* Runs the teacher beside the student on each micro-batch, and adds the losses between them. */
#include "train/distillation.h"

#include <stdlib.h>
#include <string.h>
#include "backend/open.h"
#include "base/memory.h"

struct teacher {
	struct model *model;
	struct activations *activations;
	struct replica replica;
	void *memory;             /* device memory of the tensors below */
	struct tensor *gradients; /* [layer_count] (T,H) of the student's hidden states */
	struct tensor projected;  /* (T, teacher's H) the student's hidden states at the teacher's width */
};

/* ---- The teacher ---- */

enum status teacher_create(struct teacher **out, struct backend *be, const struct model_config *config,
			   const struct model_heads *heads)
{
	struct teacher *teacher;
	struct model_heads own = *heads;
	own.projection = 0;
	own.low_rank = (struct low_rank){0};
	*out = NULL;
	TRY(memory_new(&teacher, 1, sizeof *teacher, "teacher"));
	enum status status = model_create(&teacher->model, be, config, &own);
	if (status != OK)
		teacher_free(teacher);
	else
		*out = teacher;
	return status;
}

struct model *teacher_model(struct teacher *teacher)
{
	return teacher->model;
}

static struct shape_limits own_limits(const struct teacher *teacher, const struct shape_limits *student)
{
	return model_shape_limits(&teacher->model->config, student->batch, student->longest, false);
}

/* Lays out, from `base` on, the memory that the student needs for learning; with NULL, only measures it. `gradients` may be
 * NULL. */
static size_t lay_out(const struct teacher *teacher, void *base, const struct shape_limits *student,
		      const struct distillation_settings *settings, struct tensor *gradients, struct tensor *projected)
{
	const struct backend *be = teacher->model->backend;
	struct arena arena = {.base = base, .capacity = SIZE_MAX};
	int64_t tokens = round_up(backend_room(be, student->batch).tokens, ROW_MULTIPLE);
	int64_t hidden = student->hidden, wide = teacher->model->config.hidden_size;
	for (int32_t i = 0; i < settings->layer_count; i++) {
		void *at = arena_take(&arena, (size_t)tokens * (size_t)hidden * dtype_bytes(be->dtype));
		if (gradients)
			gradients[i] = (struct tensor){.data = at, .dtype = be->dtype, .columns = hidden};
	}
	if (settings->layer_count > 0 && wide != hidden)
		*projected = (struct tensor){.data = arena_take(&arena, (size_t)tokens * (size_t)wide * dtype_bytes(be->dtype)),
					     .dtype = be->dtype,
					     .columns = wide};
	return arena.used;
}

size_t teacher_bytes(const struct teacher *teacher, const struct shape_limits *student,
		     const struct distillation_settings *settings)
{
	struct backend *be = teacher->model->backend;
	const struct shape_limits limits = own_limits(teacher, student);
	struct tensor projected;
	size_t batches = 0, pinned;
	if (be->functions->batch_bytes)
		be->functions->batch_bytes(be, &limits, &batches, &pinned);
	return model_forward_bytes(teacher->model) + activations_bytes(teacher->model, limits.batch, limits.longest, false) +
	       be->functions->workspace_bytes(be, &limits) + batches +
	       lay_out(teacher, NULL, student, settings, NULL, &projected);
}

double teacher_flops(const struct teacher *teacher, const struct model_config *student,
		     const struct distillation_settings *settings, const struct model_work *work)
{
	const struct model *model = teacher->model;
	struct model_config config = model->config;
	double projection = 0;
	if (settings->layer_count > 0 && config.hidden_size != student->hidden_size)
		projection = 6.0 * settings->layer_count * work->tokens * student->hidden_size * config.hidden_size;
	if (settings->alpha == 0) /* the layers up to that of the last pair suffice, without a head */
		config.num_hidden_layers = settings->layers[settings->layer_count - 1].teacher + 1;
	return projection + model_forward_flops(&config, settings->alpha > 0 ? &model->heads : &model_heads_none, work);
}

static void release_memory(struct teacher *teacher)
{
	struct backend *be = teacher->model->backend;
	activations_free(teacher->activations);
	if (teacher->replica.backend)
		be->functions->replica_release(&teacher->replica);
	if (teacher->memory)
		be->functions->release(be, teacher->memory);
	free(teacher->gradients);
	teacher->activations = NULL;
	teacher->replica = (struct replica){.backend = NULL};
	teacher->memory = NULL;
	teacher->gradients = NULL;
}

/* The model's own memory can only be freed with the model, so the model is replaced. */
enum status teacher_give_back(struct teacher *teacher)
{
	struct model *old = teacher->model, *model = NULL;
	release_memory(teacher);
	TRY(model_create(&model, old->backend, &old->config, &old->heads));
	teacher->model = model;
	model_free(old);
	return OK;
}

enum status teacher_allocate(struct teacher *teacher, const struct shape_limits *student,
			     const struct distillation_settings *settings)
{
	struct backend *be = teacher->model->backend;
	const struct shape_limits limits = own_limits(teacher, student);
	TRY(model_allocate_forward(teacher->model));
	TRY(be->functions->replica_create(be, &teacher->replica, &limits));
	TRY(activations_create(&teacher->activations, teacher->model, limits.batch, limits.longest, false));
	if (settings->layer_count == 0)
		return OK;
	TRY(memory_new(&teacher->gradients, settings->layer_count, sizeof *teacher->gradients, "hidden states"));
	size_t bytes = lay_out(teacher, NULL, student, settings, NULL, &teacher->projected);
	TRY(be->functions->allocate(be, &teacher->memory, bytes, "gradients of hidden states"));
	lay_out(teacher, teacher->memory, student, settings, teacher->gradients, &teacher->projected);
	return OK;
}

enum status teacher_set_weights(struct teacher *teacher, const float *slab)
{
	return model_set_weights(teacher->model, &teacher->replica, slab);
}

void teacher_free(struct teacher *teacher)
{
	if (!teacher)
		return;
	if (teacher->model)
		release_memory(teacher);
	model_free(teacher->model);
	free(teacher);
}

/* ---- A micro-batch ---- */

struct distillation {
	struct objective objective, *inner;
	struct distillation_settings settings;
	struct teacher *teacher;
	const struct model *student;
	struct activations *activations;
	struct layer_taps taps;
	/* Of the micro-batch being computed: */
	struct replica *replica;
	const struct batch *batch;
	bool first;
	int32_t teacher_layers; /* number of the teacher's layers computed so far; -1: not even its embeddings */
};

static struct distillation *self(const struct objective *objective)
{
	return objective->state;
}

enum { SUM_OF_HIDDEN = 3 * BATCH_HEADS };

/* Computes those of the teacher's first `count` layers that have not been computed yet; returns the hidden states after them. */
static struct tensor advance(struct distillation *d, int32_t count)
{
	struct teacher *teacher = d->teacher;
	if (d->teacher_layers < 0) {
		model_embed(teacher->model, teacher->activations, &teacher->replica, d->batch);
		d->teacher_layers = 0;
	}
	model_layers(teacher->model, teacher->activations, &teacher->replica, d->batch, d->teacher_layers,
		     count - d->teacher_layers);
	d->teacher_layers = count;
	return activations_hidden(teacher->activations, count - 1);
}

static struct tensor with_rows(struct tensor tensor, int64_t rows)
{
	tensor.rows = rows;
	return tensor;
}

/* The pair of a student's layer, or -1. */
static int32_t pair_of(const struct distillation *d, int32_t layer)
{
	for (int32_t i = 0; i < d->settings.layer_count; i++)
		if (d->settings.layers[i].student == layer)
			return i;
	return -1;
}

/* Computes the error of a layer's output and its gradient, which is kept until the backward pass reaches the layer. */
static void learn_layer(void *context, int32_t layer, struct tensor y)
{
	struct distillation *d = context;
	int32_t pair = pair_of(d, layer);
	if (pair < 0)
		return;
	const struct head_weights *projection = &d->student->projection;
	struct tensor target = advance(d, d->settings.layers[pair].teacher + 1);
	struct tensor gradient = with_rows(d->teacher->gradients[pair], y.rows), x = y, dx = gradient;
	bool projects = d->student->heads.projection > 0;
	target.twin = y.twin = x.twin = NULL; /* the twins belong to the encoder's products */
	if (projects) {
		x = dx = with_rows(d->teacher->projected, y.rows);
		linear_fwd(d->replica, &(struct linear_fwd){.w = &projection->w, .b = &projection->b, .x = y, .y = x});
	}
	hidden_error(d->replica, &(struct hidden_error){.batch = d->batch,
							.factor = d->settings.hidden_weight,
							.loss = &d->replica->accumulators->value[SUM_OF_HIDDEN],
							.x = x,
							.target = target,
							.dx = dx});
	if (projects)
		linear_bwd(d->replica, &(struct linear_bwd){.w = &projection->w,
							    .b = &projection->b,
							    .overwrite = d->first && pair == 0,
							    .dy = dx,
							    .x = y,
							    .dx = gradient});
}

static void add_gradient(void *context, int32_t layer, struct tensor gradient)
{
	const struct distillation *d = context;
	int32_t pair = pair_of(d, layer);
	if (pair < 0)
		return;
	gather_bwd(d->replica, &(struct gather_bwd){.count = (int32_t)gradient.rows,
						    .dy = with_rows(d->teacher->gradients[pair], gradient.rows),
						    .dx = gradient});
}

static void gradients(struct objective *objective, struct replica *replica, const struct batch *batch, bool first,
		      struct layer_hook hook)
{
	struct distillation *d = self(objective);
	struct teacher *teacher = d->teacher;
	struct soft_targets soft = {.temperature = d->settings.temperature, .share = d->settings.alpha};
	d->replica = replica;
	d->batch = batch;
	d->first = first;
	d->teacher_layers = -1;
	activations_tap(d->activations, &d->taps);
	if (d->student->heads.projection > 0 && d->student->before_layer) /* it is read earlier than its layer */
		d->student->before_layer(d->student->before_context, d->student->config.num_hidden_layers);
	model_forward(d->student, d->activations, replica, batch, true);
	if (soft.share > 0) {
		advance(d, teacher->model->config.num_hidden_layers);
		for (int h = 0; h < teacher->model->heads.count; h++)
			soft.outputs[h] = model_outputs(teacher->model, teacher->activations, &teacher->replica, batch, h);
		model_soft_losses(d->student, d->activations, replica, batch, &soft, first);
	} else {
		model_losses(d->student, d->activations, replica, batch, true, first);
	}
	model_backward(d->student, d->activations, replica, batch, first, hook.done, hook.context);
	activations_tap(d->activations, NULL);
}

/* ---- The objective ---- */

static enum status next_step(struct objective *objective, const struct step **out)
{
	struct objective *inner = self(objective)->inner;
	return inner->next_step(inner, out);
}

static struct measure loss_measure(const char *name, double value)
{
	return (struct measure){name, name, UNIT_NATS, DIRECTION_LOWER, value};
}

static void step_metrics(struct objective *objective, const struct step *step, const struct accumulators *sums,
			 struct measures *out)
{
	const struct distillation *d = self(objective);
	const struct model_heads *heads = &d->student->heads;
	double soft = 0, hidden = sums->value[SUM_OF_HIDDEN] / (double)step->token_count;
	d->inner->metrics(d->inner, step, sums, out);
	double labels = measures_get(out, "loss");
	for (int h = 0; h < heads->count; h++)
		if (step->weights[h] > 0)
			soft += heads->head[h].coefficient * sums->value[sum_of_soft_loss(h)] / step->weights[h];
	const struct measure parts[] = {loss_measure("label_loss", labels), loss_measure("soft_loss", soft),
					loss_measure("hidden_loss", hidden)};
	double loss = (1 - d->settings.alpha) * labels;
	if (d->settings.alpha > 0)
		loss += d->settings.alpha * soft;
	if (d->settings.layer_count > 0)
		loss += d->settings.hidden_weight * hidden;
	out->item[0].value = loss;
	measures_add(out, &parts[0]);
	if (d->settings.alpha > 0)
		measures_add(out, &parts[1]);
	if (d->settings.layer_count > 0)
		measures_add(out, &parts[2]);
}

static enum status evaluate(struct objective *objective, struct replica *replica, int64_t set, struct measures *out)
{
	struct objective *inner = self(objective)->inner;
	TRY(inner->evaluate(inner, replica, set, out));
	struct measure labels = loss_measure("label_loss", measures_get(out, "loss"));
	measures_add(out, &labels);
	return OK;
}

static bool locate_not_finite(struct objective *objective, bool loss_is_finite, char *out, size_t size)
{
	struct objective *inner = self(objective)->inner;
	return inner->locate_not_finite(inner, loss_is_finite, out, size);
}

static double more_flops(const struct objective *objective, const struct batch *batch)
{
	const struct distillation *d = self(objective);
	struct model_work work = model_work_of(batch);
	return teacher_flops(d->teacher, &d->student->config, &d->settings, &work);
}

static double waited(const struct objective *objective)
{
	const struct objective *inner = self(objective)->inner;
	return inner->waited(inner);
}

static void close_objective(struct objective *objective)
{
	struct distillation *d = self(objective);
	d->inner->close(d->inner);
	free(d);
}

enum status distillation_objective_create(struct objective **out, struct objective *inner, struct teacher *teacher,
					  const struct distillation_settings *settings, const struct model *student,
					  struct activations *activations)
{
	struct distillation *d;
	*out = NULL;
	enum status status = memory_new(&d, 1, sizeof *d, "objective");
	if (status != OK) {
		inner->close(inner);
		return status;
	}
	*d = (struct distillation){.objective = {.name = inner->name,
						 .state = d,
						 .next_step = next_step,
						 .gradients = gradients,
						 .more_flops = more_flops,
						 .metrics = step_metrics,
						 .evaluation_count = inner->evaluation_count,
						 .evaluation_names = inner->evaluation_names,
						 .evaluate = evaluate,
						 .locate_not_finite = locate_not_finite,
						 .waited = waited,
						 .close = close_objective},
				   .inner = inner,
				   .settings = *settings,
				   .teacher = teacher,
				   .student = student,
				   .activations = activations,
				   .taps = {.context = d, .forward = learn_layer, .backward = add_gradient}};
	*out = &d->objective;
	return OK;
}
