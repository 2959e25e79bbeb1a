/* The Python names in a pickle of tensors, and what bertc makes of them: dictionaries, storages, tensors. */
#include <string.h>
#include "formats/weights/pickle_machine.h"

/* Names that occur in a pickle of tensors, and what they mean here. */
enum known_name { NAME_ORDERED_DICT, NAME_TENSOR_V2, NAME_TENSOR, NAME_PARAMETER, NAME_STORAGE_FIRST };

static const struct {
	const char *module, *name;
	enum known_name known;
	enum safetensors_dtype dtype; /* for storages */
} known_names[] = {
	{"collections", "OrderedDict", NAME_ORDERED_DICT, ST_F32}, {"torch._utils", "_rebuild_tensor_v2", NAME_TENSOR_V2, ST_F32},
	{"torch._utils", "_rebuild_tensor", NAME_TENSOR, ST_F32},  {"torch._utils", "_rebuild_parameter", NAME_PARAMETER, ST_F32},
	{"torch", "FloatStorage", NAME_STORAGE_FIRST, ST_F32},     {"torch", "HalfStorage", NAME_STORAGE_FIRST, ST_F16},
	{"torch", "BFloat16Storage", NAME_STORAGE_FIRST, ST_BF16}, {"torch", "DoubleStorage", NAME_STORAGE_FIRST, ST_F64},
	{"torch", "LongStorage", NAME_STORAGE_FIRST, ST_I64},      {"torch", "IntStorage", NAME_STORAGE_FIRST, ST_I32},
	{"torch", "ShortStorage", NAME_STORAGE_FIRST, ST_I16},     {"torch", "CharStorage", NAME_STORAGE_FIRST, ST_I8},
	{"torch", "ByteStorage", NAME_STORAGE_FIRST, ST_U8},       {"torch", "BoolStorage", NAME_STORAGE_FIRST, ST_BOOL},
};
#define KNOWN_NAMES ((int)(sizeof known_names / sizeof known_names[0]))

/* Makes text from a pickle printable in a message: anything but plain ASCII becomes '?'. */
static void printable(char out[100], const char *bytes, size_t size)
{
	size_t count = size < 99 ? size : 99;
	for (size_t i = 0; i < count; i++)
		out[i] = bytes[i] < 0x20 || bytes[i] == 0x7f || bytes[i] & 0x80 ? '?' : bytes[i];
	out[count] = 0;
}

static enum status push_name(struct pickle_machine *machine, const char *module, size_t module_size, const char *name,
			     size_t name_size)
{
	for (int i = 0; i < KNOWN_NAMES; i++)
		if (pickle_text_is(module, module_size, known_names[i].module) &&
		    pickle_text_is(name, name_size, known_names[i].name))
			return pickle_push_integer(machine, PICKLE_NAME, i);
	char module_text[100], name_text[100];
	printable(module_text, module, module_size);
	printable(name_text, name, name_size);
	enum status status = pickle_fail(machine, "it wants Python's %s.%s, which is not plain data", module_text, name_text);
	error_hint("bertc reads dictionaries of tensors and runs no code of a file; load it in Python, if you trust it, and save "
		   "model.state_dict() alone or as safetensors");
	return status;
}

enum status pickle_run_global(struct pickle_machine *machine)
{
	const unsigned char *module = NULL, *name = NULL;
	size_t module_size = 0, name_size = 0;
	TRY(pickle_need_line(machine, &module, &module_size));
	TRY(pickle_need_line(machine, &name, &name_size));
	return push_name(machine, (const char *)module, module_size, (const char *)name, name_size);
}

enum status pickle_run_stack_global(struct pickle_machine *machine)
{
	struct pickle_value **words = NULL;
	TRY(pickle_pop(machine, 2, &words));
	if (words[0]->kind != PICKLE_TEXT || words[1]->kind != PICKLE_TEXT)
		return pickle_fail(machine, "a name that is not text");
	return push_name(machine, words[0]->text.bytes, words[0]->text.size, words[1]->text.bytes, words[1]->text.size);
}

/* ('storage', type, key, device, elements[, view]) */
enum status pickle_run_persistent_id(struct pickle_machine *machine)
{
	struct pickle_value **id = NULL, *value = NULL;
	TRY(pickle_pop(machine, 1, &id));
	if (id[0]->kind != PICKLE_TUPLE || id[0]->items.count < 5 || id[0]->items.count > 6)
		return pickle_fail(machine, "refers to something that is not a storage");
	struct pickle_value *const *fields = id[0]->items.values;
	if (fields[0]->kind != PICKLE_TEXT || strcmp(fields[0]->text.bytes, "storage") != 0 || fields[1]->kind != PICKLE_NAME ||
	    known_names[fields[1]->integer].known != NAME_STORAGE_FIRST || fields[2]->kind != PICKLE_TEXT ||
	    fields[4]->kind != PICKLE_INTEGER)
		return pickle_fail(machine, "refers to something that is not a storage");
	if (id[0]->items.count == 6 && fields[5]->kind != PICKLE_NONE)
		return pickle_fail(machine, "a storage that is a view of another");
	if (fields[4]->integer < 0 || fields[4]->integer > INT64_MAX / 16)
		return pickle_fail(machine, "a storage of %lld elements", (long long)fields[4]->integer);
	TRY(pickle_new_value(machine, PICKLE_STORAGE, &value));
	value->storage.dtype = known_names[fields[1]->integer].dtype;
	value->storage.key = fields[2]->text.bytes;
	value->storage.elements = fields[4]->integer;
	value->storage.next = machine->storages;
	machine->storages = value;
	return pickle_push(machine, value);
}

static enum status read_sizes(struct pickle_machine *machine, const struct pickle_value *tuple, int64_t *out, int *out_count)
{
	if (tuple->kind != PICKLE_TUPLE || tuple->items.count > PICKLE_RANK_LIMIT)
		return pickle_fail(machine, "a tensor's shape or strides are not a tuple of at most %d numbers",
				   PICKLE_RANK_LIMIT);
	for (int64_t i = 0; i < tuple->items.count; i++) {
		const struct pickle_value *item = tuple->items.values[i];
		if (item->kind != PICKLE_INTEGER || item->integer < 0)
			return pickle_fail(machine, "a tensor's shape or strides hold something that is not a size");
		out[i] = item->integer;
	}
	*out_count = (int)tuple->items.count;
	return OK;
}

/* Counts the elements of the shape and checks that the last one is within the storage. A view that repeats elements (stride 0)
 * could be any number of times larger than the file, and is not a weight. */
static enum status verify_view(struct pickle_machine *machine, struct pickle_tensor *tensor)
{
	int64_t count = 1, last = tensor->offset;
	bool overflow = false, empty = false;
	for (int i = 0; i < tensor->rank; i++)
		empty |= tensor->shape[i] == 0;
	for (int i = 0; i < tensor->rank && !empty; i++) {
		int64_t step;
		overflow |= __builtin_mul_overflow(count, tensor->shape[i], &count);
		overflow |= __builtin_mul_overflow(tensor->shape[i] - 1, tensor->strides[i], &step);
		overflow |= __builtin_add_overflow(last, step, &last);
	}
	tensor->count = empty ? 0 : count;
	int64_t elements = tensor->storage->storage.elements;
	if (empty)
		return OK;
	if (overflow || last >= elements || count > elements)
		return pickle_fail(machine, "a tensor reaches beyond its storage '%.100s' of %lld elements",
				   tensor->storage->storage.key, (long long)elements);
	return OK;
}

/* Properties of a view in PyTorch: with {"neg": True} its numbers are stored with the opposite sign. */
static enum status check_view_facts(struct pickle_machine *machine, const struct pickle_value *facts)
{
	if (facts->kind == PICKLE_NONE || (facts->kind == PICKLE_DICT && facts->items.count == 0))
		return OK;
	if (facts->kind != PICKLE_DICT)
		return pickle_fail(machine, "a tensor with a seventh argument that is not a dictionary");
	for (int64_t i = 0; i + 1 < facts->items.count; i += 2) {
		const struct pickle_value *name = facts->items.values[i], *value = facts->items.values[i + 1];
		if (value->kind == PICKLE_BOOL && !value->integer)
			continue;
		char text[100];
		printable(text, name->kind == PICKLE_TEXT ? name->text.bytes : "?",
			  name->kind == PICKLE_TEXT ? name->text.size : 1);
		enum status status =
			pickle_fail(machine, "a tensor is a view with the property \"%s\", which bertc does not read", text);
		error_hint("\"neg\" stores the numbers with the other sign: save tensor.resolve_neg(), or as safetensors");
		return status;
	}
	return OK;
}

/* (storage, offset, shape, strides[, requires_grad, hooks[, properties of the view]]) */
static enum status rebuild_tensor(struct pickle_machine *machine, const struct pickle_value *arguments, struct pickle_value **out)
{
	struct pickle_value *const *fields = arguments->items.values;
	struct pickle_value *value = NULL;
	int stride_count = 0;
	if (arguments->items.count < 4 || fields[0]->kind != PICKLE_STORAGE || fields[1]->kind != PICKLE_INTEGER ||
	    fields[1]->integer < 0)
		return pickle_fail(machine, "a tensor without storage, offset, shape and strides");
	if (arguments->items.count > 6)
		TRY(check_view_facts(machine, fields[6]));
	TRY(pickle_new_value(machine, PICKLE_TENSOR, &value));
	TRY(pickle_take(machine, sizeof *value->tensor, &value->tensor));
	struct pickle_tensor *tensor = value->tensor;
	*tensor = (struct pickle_tensor){.storage = fields[0], .offset = fields[1]->integer};
	TRY(read_sizes(machine, fields[2], tensor->shape, &tensor->rank));
	TRY(read_sizes(machine, fields[3], tensor->strides, &stride_count));
	if (stride_count != tensor->rank)
		return pickle_fail(machine, "a tensor of %d dimensions with %d strides", tensor->rank, stride_count);
	*out = value;
	return verify_view(machine, tensor);
}

enum status pickle_run_reduce(struct pickle_machine *machine)
{
	struct pickle_value **call = NULL, *value = NULL;
	TRY(pickle_pop(machine, 2, &call));
	const struct pickle_value *name = call[0], *arguments = call[1];
	if (name->kind != PICKLE_NAME || arguments->kind != PICKLE_TUPLE)
		return pickle_fail(machine, "applies something that is not a name");
	switch (known_names[name->integer].known) {
	case NAME_ORDERED_DICT:
		if (arguments->items.count != 0)
			return pickle_fail(machine, "an OrderedDict of old Python");
		return pickle_push_container(machine, PICKLE_DICT);
	case NAME_TENSOR_V2:
	case NAME_TENSOR: TRY(rebuild_tensor(machine, arguments, &value)); return pickle_push(machine, value);
	case NAME_PARAMETER:
		if (arguments->items.count < 1 || arguments->items.values[0]->kind != PICKLE_TENSOR)
			return pickle_fail(machine, "a parameter that is not a tensor");
		return pickle_push(machine, arguments->items.values[0]);
	case NAME_STORAGE_FIRST: break;
	}
	return pickle_fail(machine, "applies %s.%s", known_names[name->integer].module, known_names[name->integer].name);
}
