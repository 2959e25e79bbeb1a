/* Allocates what a run keeps on its device. */
#include "run/memory.h"

#include "train/ranks.h"

enum status run_memory_describe(struct run_memory *memory, const struct machine *machine, const struct model_config *config,
				const struct model_heads *heads)
{
	return model_create(&memory->model, machine->backend, config, heads);
}

/* With several ranks, weights and gradients are placed where the ranks can reach each other's. */
static enum status allocate_model(struct run_memory *memory, struct comm *comm)
{
	struct model *model = memory->model;
	if (ranks_count(comm) == 1)
		return model_allocate(model, true);
	size_t element = dtype_bytes(model->slab.dtype);
	TRY(comm_allocate(comm, &memory->slabs[0], (size_t)model->slab.columns * element, "weights"));
	TRY(comm_allocate(comm, &memory->slabs[1], (size_t)model->gradients.columns * element, "gradients"));
	return model_allocate_in(model, memory->slabs[0], memory->slabs[1]);
}

/* Allocates what each rank has to itself. */
static enum status allocate_own(struct run_memory *memory, const struct machine *machine, const struct shape_limits *limits,
				const struct optimizer_options *optimizer, bool averages)
{
	struct backend *be = machine->backend;
	TRY(be->functions->replica_create(be, &memory->replica, limits));
	TRY(activations_create(&memory->activations, memory->model, limits->batch, limits->longest, true));
	if (averages)
		TRY(average_open(&memory->average, memory->model, machine->comm));
	return optimizer_create(&memory->optimizer, memory->model, machine->comm, optimizer);
}

enum status run_memory_allocate(struct run_memory *memory, const struct machine *machine, const struct shape_limits *limits,
				const struct optimizer_options *optimizer, bool averages)
{
	TRY(ranks_agree(machine->comm, allocate_model(memory, machine->comm)));
	return ranks_agree(machine->comm, allocate_own(memory, machine, limits, optimizer, averages));
}

void run_memory_release(struct run_memory *memory, const struct machine *machine)
{
	optimizer_free(memory->optimizer);
	average_release(&memory->average);
	activations_free(memory->activations);
	if (memory->replica.backend)
		machine->backend->functions->replica_release(&memory->replica);
	model_free(memory->model);
	for (int i = 0; i < 2 && machine->comm; i++)
		comm_release(machine->comm, memory->slabs[i]);
	*memory = (struct run_memory){0};
}
