/* The pickle virtual machine, cut down to data (Python's Lib/pickletools.py describes its opcodes). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "formats/little_endian.h"
#include "formats/pickle.h"

/* Names that a pickle of tensors has, and what they are to us. */
enum known_name { NAME_ORDERED_DICT, NAME_TENSOR_V2, NAME_TENSOR, NAME_PARAMETER, NAME_STORAGE_FIRST };

static const struct {
	const char *module, *name;
	enum known_name known;
	enum safetensors_dtype dtype; /* of storages */
} known_names[] = {
        {"collections", "OrderedDict", NAME_ORDERED_DICT, ST_F32},
        {"torch._utils", "_rebuild_tensor_v2", NAME_TENSOR_V2, ST_F32},
        {"torch._utils", "_rebuild_tensor", NAME_TENSOR, ST_F32},
        {"torch._utils", "_rebuild_parameter", NAME_PARAMETER, ST_F32},
        {"torch", "FloatStorage", NAME_STORAGE_FIRST, ST_F32},
        {"torch", "HalfStorage", NAME_STORAGE_FIRST, ST_F16},
        {"torch", "BFloat16Storage", NAME_STORAGE_FIRST, ST_BF16},
        {"torch", "DoubleStorage", NAME_STORAGE_FIRST, ST_F64},
        {"torch", "LongStorage", NAME_STORAGE_FIRST, ST_I64},
        {"torch", "IntStorage", NAME_STORAGE_FIRST, ST_I32},
        {"torch", "ShortStorage", NAME_STORAGE_FIRST, ST_I16},
        {"torch", "CharStorage", NAME_STORAGE_FIRST, ST_I8},
        {"torch", "ByteStorage", NAME_STORAGE_FIRST, ST_U8},
        {"torch", "BoolStorage", NAME_STORAGE_FIRST, ST_BOOL},
};
#define KNOWN_NAMES ((int)(sizeof(known_names) / sizeof(known_names[0])))

/* Blocks of memory, each a link of a list, so that everything is released together. */
struct block {
	struct block *next;
	size_t used, capacity;
	_Alignas(16) unsigned char bytes[];
};
#define BLOCK_BYTES ((size_t)64 << 10)

struct machine {
	const char *path;
	uint64_t base;
	const unsigned char *bytes;
	size_t size, at, opcode; /* `opcode`: where the one being run lies */
	struct block *blocks;
	struct pickle_value **stack;
	int64_t count, capacity;
	int64_t *marks;
	int64_t mark_count, mark_capacity;
	struct pickle_value **memo;
	int64_t memo_count, memo_capacity;
	struct pickle_value *root, *storages;
};

static enum status fail(const struct machine *machine, const char *format, ...) PRINTF_LIKE(2, 3);
static enum status fail(const struct machine *machine, const char *format, ...)
{
	char what[1024];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	return error_set(ERR_DATA, "'%s': pickle, byte %llu: %s", machine->path,
	                 (unsigned long long)(machine->base + machine->opcode), what);
}

static enum status take(struct machine *machine, size_t size, void *out)
{
	size = (size + 15) & ~(size_t)15;
	struct block *block = machine->blocks;
	if (!block || block->capacity - block->used < size) {
		size_t capacity = size > BLOCK_BYTES ? size : BLOCK_BYTES;
		TRY(memory_new(&block, (int64_t)(sizeof(*block) + capacity), 1, "values of a pickle"));
		block->capacity = capacity;
		block->next = machine->blocks;
		machine->blocks = block;
	}
	*(void **)out = block->bytes + block->used;
	block->used += size;
	return OK;
}

static enum status new_value(struct machine *machine, enum pickle_kind kind, struct pickle_value **out)
{
	TRY(take(machine, sizeof(**out), out));
	(*out)->kind = kind;
	return OK;
}

/* --- Input --- */

static enum status need(struct machine *machine, size_t count, const unsigned char **out)
{
	if (count > machine->size - machine->at)
		return fail(machine, "ends in the middle: truncated?");
	*out = machine->bytes + machine->at;
	machine->at += count;
	return OK;
}

/* A number of `width` bytes, little-endian. */
static enum status need_number(struct machine *machine, int width, uint64_t *out)
{
	const unsigned char *at = NULL;
	TRY(need(machine, (size_t)width, &at));
	*out = 0;
	for (int i = width - 1; i >= 0; i--)
		*out = *out << 8 | at[i];
	return OK;
}

/* Text up to a line feed, which is taken too. */
static enum status need_line(struct machine *machine, const unsigned char **out, size_t *out_size)
{
	const unsigned char *begin = machine->bytes + machine->at;
	const unsigned char *end = memchr(begin, '\n', machine->size - machine->at);
	if (!end)
		return fail(machine, "a name without an end: truncated?");
	*out = begin;
	*out_size = (size_t)(end - begin);
	machine->at += *out_size + 1;
	return OK;
}

/* --- Stack and memo --- */

static enum status push(struct machine *machine, struct pickle_value *value)
{
	TRY(memory_grow(&machine->stack, &machine->capacity, machine->count + 1, sizeof(*machine->stack),
	                "stack of a pickle"));
	machine->stack[machine->count++] = value;
	return OK;
}

/* The lowest entry that belongs to the values after the last mark. */
static int64_t floor_of_stack(const struct machine *machine)
{
	return machine->mark_count ? machine->marks[machine->mark_count - 1] : 0;
}

/* Takes the topmost `count` values; *out points to the first of them, until the next push. */
static enum status pop(struct machine *machine, int64_t count, struct pickle_value ***out)
{
	if (machine->count - floor_of_stack(machine) < count)
		return fail(machine, "takes more values than there are");
	machine->count -= count;
	*out = machine->stack + machine->count;
	return OK;
}

/* Takes all values after the last mark, and the mark. */
static enum status pop_to_mark(struct machine *machine, struct pickle_value ***out, int64_t *out_count)
{
	if (machine->mark_count == 0)
		return fail(machine, "has no mark to go back to");
	int64_t mark = machine->marks[--machine->mark_count];
	*out_count = machine->count - mark;
	*out = machine->stack + mark;
	machine->count = mark;
	return OK;
}

static enum status top(struct machine *machine, enum pickle_kind kind, const char *what, struct pickle_value **out)
{
	if (machine->count <= floor_of_stack(machine) || machine->stack[machine->count - 1]->kind != kind)
		return fail(machine, "adds to something that is no %s", what);
	*out = machine->stack[machine->count - 1];
	return OK;
}

static enum status mark(struct machine *machine)
{
	TRY(memory_grow(&machine->marks, &machine->mark_capacity, machine->mark_count + 1, sizeof(*machine->marks),
	                "marks of a pickle"));
	machine->marks[machine->mark_count++] = machine->count;
	return OK;
}

/* Memo numbers count up from 0 in every pickle that is written by a program. */
static enum status memo_put(struct machine *machine, uint64_t number)
{
	if (machine->count <= floor_of_stack(machine))
		return fail(machine, "remembers a value where there is none");
	if (number > (uint64_t)machine->memo_count)
		return fail(machine, "remembers value %llu where %lld is due", (unsigned long long)number,
		            (long long)machine->memo_count);
	TRY(memory_grow(&machine->memo, &machine->memo_capacity, (int64_t)number + 1, sizeof(*machine->memo),
	                "memo of a pickle"));
	machine->memo[number] = machine->stack[machine->count - 1];
	if (number == (uint64_t)machine->memo_count)
		machine->memo_count++;
	return OK;
}

static enum status memo_get(struct machine *machine, uint64_t number)
{
	if (number >= (uint64_t)machine->memo_count)
		return fail(machine, "recalls value %llu of %lld", (unsigned long long)number,
		            (long long)machine->memo_count);
	return push(machine, machine->memo[number]);
}

/* --- Values --- */

static enum status push_integer(struct machine *machine, enum pickle_kind kind, int64_t integer)
{
	struct pickle_value *value = NULL;
	TRY(new_value(machine, kind, &value));
	value->integer = integer;
	return push(machine, value);
}

static enum status copy_text(struct machine *machine, const unsigned char *bytes, size_t size, char **out)
{
	TRY(take(machine, size + 1, out));
	memcpy(*out, bytes, size);
	(*out)[size] = 0;
	return OK;
}

static enum status push_text(struct machine *machine, int width)
{
	uint64_t size = 0;
	const unsigned char *bytes = NULL;
	struct pickle_value *value = NULL;
	char *text = NULL;
	TRY(need_number(machine, width, &size));
	TRY(need(machine, size, &bytes));
	TRY(new_value(machine, PICKLE_TEXT, &value));
	TRY(copy_text(machine, bytes, size, &text));
	value->text.bytes = text;
	value->text.size = size;
	return push(machine, value);
}

/* LONG1: `size` bytes, two's complement. Longer ones than 64 bits have no use here. */
static enum status push_long(struct machine *machine)
{
	uint64_t size = 0, number = 0;
	const unsigned char *bytes = NULL;
	TRY(need_number(machine, 1, &size));
	TRY(need(machine, size, &bytes));
	if (size > 8)
		return fail(machine, "a number of %llu bytes", (unsigned long long)size);
	for (uint64_t i = size; i-- > 0;)
		number = number << 8 | bytes[i];
	if (size > 0 && size < 8 && bytes[size - 1] & 0x80)
		number |= ~(uint64_t)0 << (8 * size);
	return push_integer(machine, PICKLE_INTEGER, (int64_t)number);
}

static enum status push_float(struct machine *machine)
{
	const unsigned char *bytes = NULL;
	struct pickle_value *value = NULL;
	uint64_t bits = 0;
	TRY(need(machine, 8, &bytes));
	for (int i = 0; i < 8; i++) /* the one number that is big-endian */
		bits = bits << 8 | bytes[i];
	TRY(new_value(machine, PICKLE_FLOAT, &value));
	memcpy(&value->number, &bits, sizeof(bits));
	return push(machine, value);
}

static enum status push_container(struct machine *machine, enum pickle_kind kind)
{
	struct pickle_value *value = NULL;
	TRY(new_value(machine, kind, &value));
	return push(machine, value);
}

/* Appends to a list or dict; the array moves into a new block when it is full. */
static enum status add_items(struct machine *machine, struct pickle_value *container, struct pickle_value *const *values,
                             int64_t count)
{
	int64_t needed = container->items.count + count;
	if (needed > container->items.capacity) {
		int64_t capacity = 2 * container->items.capacity > needed ? 2 * container->items.capacity : needed;
		struct pickle_value **items = NULL;
		TRY(take(machine, (size_t)capacity * sizeof(*items), &items));
		if (container->items.count)
			memcpy(items, container->items.values, (size_t)container->items.count * sizeof(*items));
		container->items.values = items;
		container->items.capacity = capacity;
	}
	if (count)
		memcpy(container->items.values + container->items.count, values, (size_t)count * sizeof(*values));
	container->items.count = needed;
	return OK;
}

static enum status push_tuple(struct machine *machine, struct pickle_value **values, int64_t count)
{
	struct pickle_value *value = NULL;
	TRY(new_value(machine, PICKLE_TUPLE, &value));
	TRY(add_items(machine, value, values, count));
	return push(machine, value);
}

static enum status add_to_list(struct machine *machine, struct pickle_value **values, int64_t count)
{
	struct pickle_value *list = NULL;
	TRY(top(machine, PICKLE_LIST, "list", &list));
	return add_items(machine, list, values, count);
}

static enum status add_to_dict(struct machine *machine, struct pickle_value **values, int64_t count)
{
	struct pickle_value *dict = NULL;
	if (count % 2)
		return fail(machine, "a dictionary's key without a value");
	TRY(top(machine, PICKLE_DICT, "dictionary", &dict));
	return add_items(machine, dict, values, count);
}

/* --- Names, and what they rebuild --- */

/* Words of a pickle in a message: what is no plain text shows as '?'. */
static void printable(char out[100], const char *bytes, size_t size)
{
	size_t count = size < 99 ? size : 99;
	for (size_t i = 0; i < count; i++)
		out[i] = bytes[i] < 0x20 || bytes[i] == 0x7f || bytes[i] & 0x80 ? '?' : bytes[i];
	out[count] = 0;
}

static bool equals(const char *bytes, size_t size, const char *word)
{
	return strlen(word) == size && memcmp(bytes, word, size) == 0;
}

static enum status push_name(struct machine *machine, const char *module, size_t module_size, const char *name,
                             size_t name_size)
{
	for (int i = 0; i < KNOWN_NAMES; i++)
		if (equals(module, module_size, known_names[i].module) && equals(name, name_size, known_names[i].name))
			return push_integer(machine, PICKLE_NAME, i);
	char module_text[100], name_text[100];
	printable(module_text, module, module_size);
	printable(name_text, name, name_size);
	enum status status = fail(machine, "it wants Python's %s.%s, which is no plain data", module_text, name_text);
	error_hint("bertc reads dictionaries of tensors and runs no code of a file; load it in Python, if you trust "
	           "it, and save model.state_dict() alone or as safetensors");
	return status;
}

static enum status run_global(struct machine *machine)
{
	const unsigned char *module = NULL, *name = NULL;
	size_t module_size = 0, name_size = 0;
	TRY(need_line(machine, &module, &module_size));
	TRY(need_line(machine, &name, &name_size));
	return push_name(machine, (const char *)module, module_size, (const char *)name, name_size);
}

static enum status run_stack_global(struct machine *machine)
{
	struct pickle_value **words = NULL;
	TRY(pop(machine, 2, &words));
	if (words[0]->kind != PICKLE_TEXT || words[1]->kind != PICKLE_TEXT)
		return fail(machine, "a name that is no text");
	return push_name(machine, words[0]->text.bytes, words[0]->text.size, words[1]->text.bytes, words[1]->text.size);
}

/* ('storage', type, key, device, elements[, view]) */
static enum status run_persistent_id(struct machine *machine)
{
	struct pickle_value **id = NULL, *value = NULL;
	TRY(pop(machine, 1, &id));
	if (id[0]->kind != PICKLE_TUPLE || id[0]->items.count < 5 || id[0]->items.count > 6)
		return fail(machine, "refers to something that is no storage");
	struct pickle_value *const *fields = id[0]->items.values;
	if (fields[0]->kind != PICKLE_TEXT || strcmp(fields[0]->text.bytes, "storage") != 0 ||
	    fields[1]->kind != PICKLE_NAME || known_names[fields[1]->integer].known != NAME_STORAGE_FIRST ||
	    fields[2]->kind != PICKLE_TEXT || fields[4]->kind != PICKLE_INTEGER)
		return fail(machine, "refers to something that is no storage");
	if (id[0]->items.count == 6 && fields[5]->kind != PICKLE_NONE)
		return fail(machine, "a storage that is a view of another");
	if (fields[4]->integer < 0 || fields[4]->integer > INT64_MAX / 16)
		return fail(machine, "a storage of %lld elements", (long long)fields[4]->integer);
	TRY(new_value(machine, PICKLE_STORAGE, &value));
	value->storage.dtype = known_names[fields[1]->integer].dtype;
	value->storage.key = fields[2]->text.bytes;
	value->storage.elements = fields[4]->integer;
	value->storage.next = machine->storages;
	machine->storages = value;
	return push(machine, value);
}

static enum status read_sizes(struct machine *machine, const struct pickle_value *tuple, int64_t *out, int *out_count)
{
	if (tuple->kind != PICKLE_TUPLE || tuple->items.count > PICKLE_RANK_LIMIT)
		return fail(machine, "a tensor's shape or strides are no tuple of at most %d numbers", PICKLE_RANK_LIMIT);
	for (int64_t i = 0; i < tuple->items.count; i++) {
		const struct pickle_value *item = tuple->items.values[i];
		if (item->kind != PICKLE_INTEGER || item->integer < 0)
			return fail(machine, "a tensor's shape or strides hold something that is no size");
		out[i] = item->integer;
	}
	*out_count = (int)tuple->items.count;
	return OK;
}

/* Elements of the shape, and that the last of them lies in the storage. A view that repeats elements (stride 0) could
 * be any number of times larger than the file, and is no weight. */
static enum status prove_view(struct machine *machine, struct pickle_tensor *tensor)
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
		return fail(machine, "a tensor reaches beyond its storage '%.100s' of %lld elements",
		            tensor->storage->storage.key, (long long)elements);
	return OK;
}

/* (storage, offset, shape, strides, …) */
static enum status rebuild_tensor(struct machine *machine, const struct pickle_value *arguments,
                                  struct pickle_value **out)
{
	struct pickle_value *const *fields = arguments->items.values;
	struct pickle_value *value = NULL;
	int stride_count = 0;
	if (arguments->items.count < 4 || fields[0]->kind != PICKLE_STORAGE || fields[1]->kind != PICKLE_INTEGER ||
	    fields[1]->integer < 0)
		return fail(machine, "a tensor without storage, offset, shape and strides");
	TRY(new_value(machine, PICKLE_TENSOR, &value));
	TRY(take(machine, sizeof(*value->tensor), &value->tensor));
	struct pickle_tensor *tensor = value->tensor;
	*tensor = (struct pickle_tensor){.storage = fields[0], .offset = fields[1]->integer};
	TRY(read_sizes(machine, fields[2], tensor->shape, &tensor->rank));
	TRY(read_sizes(machine, fields[3], tensor->strides, &stride_count));
	if (stride_count != tensor->rank)
		return fail(machine, "a tensor of %d dimensions with %d strides", tensor->rank, stride_count);
	*out = value;
	return prove_view(machine, tensor);
}

static enum status run_reduce(struct machine *machine)
{
	struct pickle_value **call = NULL, *value = NULL;
	TRY(pop(machine, 2, &call));
	const struct pickle_value *name = call[0], *arguments = call[1];
	if (name->kind != PICKLE_NAME || arguments->kind != PICKLE_TUPLE)
		return fail(machine, "applies something that is no name");
	switch (known_names[name->integer].known) {
	case NAME_ORDERED_DICT:
		if (arguments->items.count != 0)
			return fail(machine, "an OrderedDict of old Python");
		return push_container(machine, PICKLE_DICT);
	case NAME_TENSOR_V2:
	case NAME_TENSOR:
		TRY(rebuild_tensor(machine, arguments, &value));
		return push(machine, value);
	case NAME_PARAMETER:
		if (arguments->items.count < 1 || arguments->items.values[0]->kind != PICKLE_TENSOR)
			return fail(machine, "a parameter that is no tensor");
		return push(machine, arguments->items.values[0]);
	case NAME_STORAGE_FIRST:
		break;
	}
	return fail(machine, "applies %s.%s", known_names[name->integer].module, known_names[name->integer].name);
}

/* State of an object: of a state dict's OrderedDict these are notes about versions, which say nothing of weights. */
static enum status run_build(struct machine *machine)
{
	struct pickle_value **state = NULL, *object = NULL;
	TRY(pop(machine, 1, &state));
	if (state[0]->kind != PICKLE_DICT)
		return fail(machine, "state that is no dictionary");
	return top(machine, PICKLE_DICT, "dictionary", &object);
}

static enum status run_stop(struct machine *machine)
{
	if (machine->count != 1 || machine->mark_count != 0)
		return fail(machine, "ends with %lld values instead of one", (long long)machine->count);
	machine->root = machine->stack[0];
	return OK;
}

/* Opcodes by their bytes; names are those of Python's documentation. */
enum opcode {
	OP_MARK = '(',
	OP_STOP = '.',
	OP_POP = '0',
	OP_BINFLOAT = 'G',
	OP_BININT = 'J',
	OP_BININT1 = 'K',
	OP_BININT2 = 'M',
	OP_NONE = 'N',
	OP_BINPERSID = 'Q',
	OP_REDUCE = 'R',
	OP_BINSTRING = 'T',
	OP_SHORT_BINSTRING = 'U',
	OP_BINUNICODE = 'X',
	OP_EMPTY_LIST = ']',
	OP_APPEND = 'a',
	OP_BUILD = 'b',
	OP_GLOBAL = 'c',
	OP_APPENDS = 'e',
	OP_BINGET = 'h',
	OP_LONG_BINGET = 'j',
	OP_BINPUT = 'q',
	OP_LONG_BINPUT = 'r',
	OP_SETITEM = 's',
	OP_TUPLE = 't',
	OP_SETITEMS = 'u',
	OP_EMPTY_DICT = '}',
	OP_EMPTY_TUPLE = ')',
	OP_PROTO = 0x80,
	OP_TUPLE1 = 0x85,
	OP_TUPLE2 = 0x86,
	OP_TUPLE3 = 0x87,
	OP_NEWTRUE = 0x88,
	OP_NEWFALSE = 0x89,
	OP_LONG1 = 0x8a,
	OP_SHORT_BINUNICODE = 0x8c,
	OP_STACK_GLOBAL = 0x93,
	OP_MEMOIZE = 0x94,
	OP_FRAME = 0x95,
};

static enum status run_opcode(struct machine *machine, enum opcode opcode)
{
	struct pickle_value **values = NULL;
	int64_t count = 0;
	uint64_t number = 0;
	switch (opcode) {
	case OP_PROTO:
		TRY(need_number(machine, 1, &number));
		if (number < 2 || number > 5)
			return fail(machine, "protocol %llu", (unsigned long long)number);
		return OK;
	case OP_FRAME:
		return need_number(machine, 8, &number);
	case OP_MARK:
		return mark(machine);
	case OP_STOP:
		return run_stop(machine);
	case OP_POP:
		return pop(machine, 1, &values);
	case OP_NONE:
		return push_container(machine, PICKLE_NONE);
	case OP_NEWTRUE:
	case OP_NEWFALSE:
		return push_integer(machine, PICKLE_BOOL, opcode == OP_NEWTRUE);
	case OP_BININT:
		TRY(need_number(machine, 4, &number));
		return push_integer(machine, PICKLE_INTEGER, (int32_t)(uint32_t)number);
	case OP_BININT1:
		TRY(need_number(machine, 1, &number));
		return push_integer(machine, PICKLE_INTEGER, (int64_t)number);
	case OP_BININT2:
		TRY(need_number(machine, 2, &number));
		return push_integer(machine, PICKLE_INTEGER, (int64_t)number);
	case OP_LONG1:
		return push_long(machine);
	case OP_BINFLOAT:
		return push_float(machine);
	case OP_BINUNICODE:
	case OP_BINSTRING:
		return push_text(machine, 4);
	case OP_SHORT_BINUNICODE:
	case OP_SHORT_BINSTRING:
		return push_text(machine, 1);
	case OP_EMPTY_LIST:
		return push_container(machine, PICKLE_LIST);
	case OP_EMPTY_DICT:
		return push_container(machine, PICKLE_DICT);
	case OP_EMPTY_TUPLE:
		return push_container(machine, PICKLE_TUPLE);
	case OP_TUPLE1:
	case OP_TUPLE2:
	case OP_TUPLE3:
		count = opcode - OP_TUPLE1 + 1;
		TRY(pop(machine, count, &values));
		return push_tuple(machine, values, count);
	case OP_TUPLE:
		TRY(pop_to_mark(machine, &values, &count));
		return push_tuple(machine, values, count);
	case OP_APPEND:
		TRY(pop(machine, 1, &values));
		return add_to_list(machine, values, 1);
	case OP_APPENDS:
		TRY(pop_to_mark(machine, &values, &count));
		return add_to_list(machine, values, count);
	case OP_SETITEM:
		TRY(pop(machine, 2, &values));
		return add_to_dict(machine, values, 2);
	case OP_SETITEMS:
		TRY(pop_to_mark(machine, &values, &count));
		return add_to_dict(machine, values, count);
	case OP_BINPUT:
		TRY(need_number(machine, 1, &number));
		return memo_put(machine, number);
	case OP_LONG_BINPUT:
		TRY(need_number(machine, 4, &number));
		return memo_put(machine, number);
	case OP_MEMOIZE:
		return memo_put(machine, (uint64_t)machine->memo_count);
	case OP_BINGET:
		TRY(need_number(machine, 1, &number));
		return memo_get(machine, number);
	case OP_LONG_BINGET:
		TRY(need_number(machine, 4, &number));
		return memo_get(machine, number);
	case OP_GLOBAL:
		return run_global(machine);
	case OP_STACK_GLOBAL:
		return run_stack_global(machine);
	case OP_BINPERSID:
		return run_persistent_id(machine);
	case OP_REDUCE:
		return run_reduce(machine);
	case OP_BUILD:
		return run_build(machine);
	}
	enum status status = fail(machine, "opcode 0x%02x is none that a dictionary of tensors needs", (unsigned)opcode);
	error_hint("bertc reads dictionaries of tensors and runs no code of a file");
	return status;
}

enum status pickle_read(struct pickle *out, const char *path, uint64_t base, const unsigned char *bytes, size_t size)
{
	struct machine machine = {
	        .path = path,
	        .base = base,
	        .bytes = bytes,
	        .size = size < PICKLE_BYTES_LIMIT ? size : PICKLE_BYTES_LIMIT,
	};
	*out = (struct pickle){0};
	enum status status = memory_grow(&machine.stack, &machine.capacity, 64, sizeof(*machine.stack), "stack of a pickle");
	while (status == OK && !machine.root) {
		const unsigned char *opcode = NULL;
		machine.opcode = machine.at;
		status = need(&machine, 1, &opcode);
		if (status == OK)
			status = run_opcode(&machine, (enum opcode)*opcode);
	}
	free(machine.stack);
	free(machine.marks);
	free(machine.memo);
	*out = (struct pickle){
	        .root = machine.root,
	        .storages = machine.storages,
	        .bytes = machine.at,
	        .memory = machine.blocks,
	};
	if (status != OK)
		pickle_release(out);
	return status;
}

void pickle_release(struct pickle *pickle)
{
	struct block *block = pickle->memory;
	while (block) {
		struct block *next = block->next;
		free(block);
		block = next;
	}
	*pickle = (struct pickle){0};
}

const struct pickle_value *pickle_member(const struct pickle_value *dict, const char *key)
{
	if (!dict || dict->kind != PICKLE_DICT)
		return NULL;
	for (int64_t i = 0; i < dict->items.count; i += 2) {
		const struct pickle_value *name = dict->items.values[i];
		if (name->kind == PICKLE_TEXT && equals(name->text.bytes, name->text.size, key))
			return dict->items.values[i + 1];
	}
	return NULL;
}
