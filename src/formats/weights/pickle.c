/* The pickle virtual machine, reduced to data (Python's Lib/pickletools.py describes the opcodes). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "formats/little_endian.h"
#include "formats/weights/pickle_machine.h"

#define BLOCK_BYTES ((size_t)64 << 10)

enum status pickle_fail(const struct pickle_machine *machine, const char *format, ...)
{
	char what[1024];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	return error_set(ERR_DATA, "'%s': pickle, byte %llu: %s", machine->path,
			 (unsigned long long)(machine->base + machine->opcode), what);
}

enum status pickle_take(struct pickle_machine *machine, size_t size, void *out)
{
	size = (size + 15) & ~(size_t)15;
	struct pickle_block *block = machine->blocks;
	if (!block || block->capacity - block->used < size) {
		size_t capacity = size > BLOCK_BYTES ? size : BLOCK_BYTES;
		TRY(memory_new(&block, (int64_t)(sizeof *block + capacity), 1, "values of a pickle"));
		block->capacity = capacity;
		block->next = machine->blocks;
		machine->blocks = block;
	}
	*(void **)out = block->bytes + block->used;
	block->used += size;
	return OK;
}

enum status pickle_new_value(struct pickle_machine *machine, enum pickle_kind kind, struct pickle_value **out)
{
	TRY(pickle_take(machine, sizeof **out, out));
	(*out)->kind = kind;
	return OK;
}

/* ---- Input ---- */

static enum status need(struct pickle_machine *machine, size_t count, const unsigned char **out)
{
	if (count > machine->size - machine->at)
		return pickle_fail(machine, "ends in the middle: truncated?");
	*out = machine->bytes + machine->at;
	machine->at += count;
	return OK;
}

/* A number of `width` bytes, little-endian. */
static enum status need_number(struct pickle_machine *machine, int width, uint64_t *out)
{
	const unsigned char *at = NULL;
	TRY(need(machine, (size_t)width, &at));
	*out = 0;
	for (int i = width - 1; i >= 0; i--)
		*out = *out << 8 | at[i];
	return OK;
}

enum status pickle_need_line(struct pickle_machine *machine, const unsigned char **out, size_t *out_size)
{
	const unsigned char *begin = machine->bytes + machine->at;
	const unsigned char *end = memchr(begin, '\n', machine->size - machine->at);
	if (!end)
		return pickle_fail(machine, "a name without an end: truncated?");
	*out = begin;
	*out_size = (size_t)(end - begin);
	machine->at += *out_size + 1;
	return OK;
}

/* ---- Stack and memo ---- */

enum status pickle_push(struct pickle_machine *machine, struct pickle_value *value)
{
	TRY(memory_grow(&machine->stack, &machine->capacity, machine->count + 1, sizeof *machine->stack, "stack of a pickle"));
	machine->stack[machine->count++] = value;
	return OK;
}

/* Index of the lowest stack entry after the last mark. */
static int64_t floor_of_stack(const struct pickle_machine *machine)
{
	return machine->mark_count ? machine->marks[machine->mark_count - 1] : 0;
}

enum status pickle_pop(struct pickle_machine *machine, int64_t count, struct pickle_value ***out)
{
	if (machine->count - floor_of_stack(machine) < count)
		return pickle_fail(machine, "takes more values than there are");
	machine->count -= count;
	*out = machine->stack + machine->count;
	return OK;
}

/* Pops all values after the last mark, and the mark itself. */
static enum status pop_to_mark(struct pickle_machine *machine, struct pickle_value ***out, int64_t *out_count)
{
	if (machine->mark_count == 0)
		return pickle_fail(machine, "has no mark to go back to");
	int64_t mark = machine->marks[--machine->mark_count];
	*out_count = machine->count - mark;
	*out = machine->stack + mark;
	machine->count = mark;
	return OK;
}

static enum status top(struct pickle_machine *machine, enum pickle_kind kind, const char *what, struct pickle_value **out)
{
	if (machine->count <= floor_of_stack(machine) || machine->stack[machine->count - 1]->kind != kind)
		return pickle_fail(machine, "adds to something that is not a %s", what);
	*out = machine->stack[machine->count - 1];
	return OK;
}

static enum status mark(struct pickle_machine *machine)
{
	TRY(memory_grow(&machine->marks, &machine->mark_capacity, machine->mark_count + 1, sizeof *machine->marks,
			"marks of a pickle"));
	machine->marks[machine->mark_count++] = machine->count;
	return OK;
}

/* In every pickle written by a program, memo numbers count up from 0. */
static enum status memo_put(struct pickle_machine *machine, uint64_t number)
{
	if (machine->count <= floor_of_stack(machine))
		return pickle_fail(machine, "memoizes a value where there is none");
	if (number > (uint64_t)machine->memo_count)
		return pickle_fail(machine, "remembers value %llu where %lld is due", (unsigned long long)number,
				   (long long)machine->memo_count);
	TRY(memory_grow(&machine->memo, &machine->memo_capacity, (int64_t)number + 1, sizeof *machine->memo, "memo of a pickle"));
	machine->memo[number] = machine->stack[machine->count - 1];
	if (number == (uint64_t)machine->memo_count)
		machine->memo_count++;
	return OK;
}

static enum status memo_get(struct pickle_machine *machine, uint64_t number)
{
	if (number >= (uint64_t)machine->memo_count)
		return pickle_fail(machine, "recalls value %llu of %lld", (unsigned long long)number,
				   (long long)machine->memo_count);
	return pickle_push(machine, machine->memo[number]);
}

/* ---- Values ---- */

enum status pickle_push_integer(struct pickle_machine *machine, enum pickle_kind kind, int64_t integer)
{
	struct pickle_value *value = NULL;
	TRY(pickle_new_value(machine, kind, &value));
	value->integer = integer;
	return pickle_push(machine, value);
}

static enum status copy_text(struct pickle_machine *machine, const unsigned char *bytes, size_t size, char **out)
{
	TRY(pickle_take(machine, size + 1, out));
	memcpy(*out, bytes, size);
	(*out)[size] = 0;
	return OK;
}

static enum status push_text(struct pickle_machine *machine, int width)
{
	uint64_t size = 0;
	const unsigned char *bytes = NULL;
	struct pickle_value *value = NULL;
	char *text = NULL;
	TRY(need_number(machine, width, &size));
	TRY(need(machine, size, &bytes));
	TRY(pickle_new_value(machine, PICKLE_TEXT, &value));
	TRY(copy_text(machine, bytes, size, &text));
	value->text.bytes = text;
	value->text.size = size;
	return pickle_push(machine, value);
}

/* LONG1: `size` bytes, two's complement. Numbers longer than 64 bits are not needed here. */
static enum status push_long(struct pickle_machine *machine)
{
	uint64_t size = 0, number = 0;
	const unsigned char *bytes = NULL;
	TRY(need_number(machine, 1, &size));
	TRY(need(machine, size, &bytes));
	if (size > 8)
		return pickle_fail(machine, "a number of %llu bytes", (unsigned long long)size);
	for (uint64_t i = size; i-- > 0;)
		number = number << 8 | bytes[i];
	if (size > 0 && size < 8 && bytes[size - 1] & 0x80)
		number |= ~(uint64_t)0 << (8 * size);
	return pickle_push_integer(machine, PICKLE_INTEGER, (int64_t)number);
}

static enum status push_float(struct pickle_machine *machine)
{
	const unsigned char *bytes = NULL;
	struct pickle_value *value = NULL;
	uint64_t bits = 0;
	TRY(need(machine, 8, &bytes));
	for (int i = 0; i < 8; i++) /* the only number that is big-endian */
		bits = bits << 8 | bytes[i];
	TRY(pickle_new_value(machine, PICKLE_FLOAT, &value));
	memcpy(&value->number, &bits, sizeof bits);
	return pickle_push(machine, value);
}

enum status pickle_push_container(struct pickle_machine *machine, enum pickle_kind kind)
{
	struct pickle_value *value = NULL;
	TRY(pickle_new_value(machine, kind, &value));
	return pickle_push(machine, value);
}

/* Appends to a list or dict; the array moves into a new block when it is full. */
static enum status add_items(struct pickle_machine *machine, struct pickle_value *container, struct pickle_value *const *values,
			     int64_t count)
{
	int64_t needed = container->items.count + count;
	if (needed > container->items.capacity) {
		int64_t capacity = 2 * container->items.capacity > needed ? 2 * container->items.capacity : needed;
		struct pickle_value **items = NULL;
		TRY(pickle_take(machine, (size_t)capacity * sizeof *items, &items));
		if (container->items.count)
			memcpy(items, container->items.values, (size_t)container->items.count * sizeof *items);
		container->items.values = items;
		container->items.capacity = capacity;
	}
	if (count)
		memcpy(container->items.values + container->items.count, values, (size_t)count * sizeof *values);
	container->items.count = needed;
	return OK;
}

static enum status push_tuple(struct pickle_machine *machine, struct pickle_value **values, int64_t count)
{
	struct pickle_value *value = NULL;
	TRY(pickle_new_value(machine, PICKLE_TUPLE, &value));
	TRY(add_items(machine, value, values, count));
	return pickle_push(machine, value);
}

static enum status add_to_list(struct pickle_machine *machine, struct pickle_value **values, int64_t count)
{
	struct pickle_value *list = NULL;
	TRY(top(machine, PICKLE_LIST, "list", &list));
	return add_items(machine, list, values, count);
}

static enum status add_to_dict(struct pickle_machine *machine, struct pickle_value **values, int64_t count)
{
	struct pickle_value *dict = NULL;
	if (count % 2)
		return pickle_fail(machine, "a dictionary's key without a value");
	TRY(top(machine, PICKLE_DICT, "dictionary", &dict));
	return add_items(machine, dict, values, count);
}

/* Ignores the state of an object: for a state dict's OrderedDict it is version information, which does not concern the
 * weights. */
static enum status run_build(struct pickle_machine *machine)
{
	struct pickle_value **state = NULL, *object = NULL;
	TRY(pickle_pop(machine, 1, &state));
	if (state[0]->kind != PICKLE_DICT)
		return pickle_fail(machine, "state that is not a dictionary");
	return top(machine, PICKLE_DICT, "dictionary", &object);
}

static enum status run_stop(struct pickle_machine *machine)
{
	if (machine->count != 1 || machine->mark_count != 0)
		return pickle_fail(machine, "ends with %lld values instead of one", (long long)machine->count);
	machine->root = machine->stack[0];
	return OK;
}

/* Opcodes by their bytes, with the names that Python's documentation uses. */
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

static enum status run_opcode(struct pickle_machine *machine, enum opcode opcode)
{
	struct pickle_value **values = NULL;
	int64_t count = 0;
	uint64_t number = 0;
	switch (opcode) {
	case OP_PROTO:
		TRY(need_number(machine, 1, &number));
		if (number < 2 || number > 5)
			return pickle_fail(machine, "protocol %llu", (unsigned long long)number);
		return OK;
	case OP_FRAME: return need_number(machine, 8, &number);
	case OP_MARK: return mark(machine);
	case OP_STOP: return run_stop(machine);
	case OP_POP: return pickle_pop(machine, 1, &values);
	case OP_NONE: return pickle_push_container(machine, PICKLE_NONE);
	case OP_NEWTRUE:
	case OP_NEWFALSE: return pickle_push_integer(machine, PICKLE_BOOL, opcode == OP_NEWTRUE);
	case OP_BININT:
		TRY(need_number(machine, 4, &number));
		return pickle_push_integer(machine, PICKLE_INTEGER, (int32_t)(uint32_t)number);
	case OP_BININT1:
		TRY(need_number(machine, 1, &number));
		return pickle_push_integer(machine, PICKLE_INTEGER, (int64_t)number);
	case OP_BININT2:
		TRY(need_number(machine, 2, &number));
		return pickle_push_integer(machine, PICKLE_INTEGER, (int64_t)number);
	case OP_LONG1: return push_long(machine);
	case OP_BINFLOAT: return push_float(machine);
	case OP_BINUNICODE:
	case OP_BINSTRING: return push_text(machine, 4);
	case OP_SHORT_BINUNICODE:
	case OP_SHORT_BINSTRING: return push_text(machine, 1);
	case OP_EMPTY_LIST: return pickle_push_container(machine, PICKLE_LIST);
	case OP_EMPTY_DICT: return pickle_push_container(machine, PICKLE_DICT);
	case OP_EMPTY_TUPLE: return pickle_push_container(machine, PICKLE_TUPLE);
	case OP_TUPLE1:
	case OP_TUPLE2:
	case OP_TUPLE3:
		count = opcode - OP_TUPLE1 + 1;
		TRY(pickle_pop(machine, count, &values));
		return push_tuple(machine, values, count);
	case OP_TUPLE: TRY(pop_to_mark(machine, &values, &count)); return push_tuple(machine, values, count);
	case OP_APPEND: TRY(pickle_pop(machine, 1, &values)); return add_to_list(machine, values, 1);
	case OP_APPENDS: TRY(pop_to_mark(machine, &values, &count)); return add_to_list(machine, values, count);
	case OP_SETITEM: TRY(pickle_pop(machine, 2, &values)); return add_to_dict(machine, values, 2);
	case OP_SETITEMS: TRY(pop_to_mark(machine, &values, &count)); return add_to_dict(machine, values, count);
	case OP_BINPUT: TRY(need_number(machine, 1, &number)); return memo_put(machine, number);
	case OP_LONG_BINPUT: TRY(need_number(machine, 4, &number)); return memo_put(machine, number);
	case OP_MEMOIZE: return memo_put(machine, (uint64_t)machine->memo_count);
	case OP_BINGET: TRY(need_number(machine, 1, &number)); return memo_get(machine, number);
	case OP_LONG_BINGET: TRY(need_number(machine, 4, &number)); return memo_get(machine, number);
	case OP_GLOBAL: return pickle_run_global(machine);
	case OP_STACK_GLOBAL: return pickle_run_stack_global(machine);
	case OP_BINPERSID: return pickle_run_persistent_id(machine);
	case OP_REDUCE: return pickle_run_reduce(machine);
	case OP_BUILD: return run_build(machine);
	}
	enum status status =
		pickle_fail(machine, "opcode 0x%02x is not one that a dictionary of tensors needs", (unsigned)opcode);
	error_hint("bertc reads dictionaries of tensors and runs no code of a file");
	return status;
}

enum status pickle_read(struct pickle *out, const char *path, uint64_t base, const unsigned char *bytes, size_t size)
{
	struct pickle_machine machine = {
		.path = path,
		.base = base,
		.bytes = bytes,
		.size = size < PICKLE_BYTES_LIMIT ? size : PICKLE_BYTES_LIMIT,
	};
	*out = (struct pickle){0};
	enum status status = memory_grow(&machine.stack, &machine.capacity, 64, sizeof *machine.stack, "stack of a pickle");
	while (status == OK && !machine.root) {
		const unsigned char *opcode = NULL;
		machine.opcode = machine.at;
		status = need(&machine, 1, &opcode);
		if (status == OK)
			status = run_opcode(&machine, (enum opcode) * opcode);
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
	struct pickle_block *block = pickle->memory;
	while (block) {
		struct pickle_block *next = block->next;
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
		if (name->kind == PICKLE_TEXT && pickle_text_is(name->text.bytes, name->text.size, key))
			return dict->items.values[i + 1];
	}
	return NULL;
}
