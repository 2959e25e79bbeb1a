/* The operations of ops.h as data: one row per operation, one row per field of its struct. The table drives the checks before
 * every operation, the trace, and the tests' calls; what does not fit into rows is a function beside them (operations.c).
 *
 * Shapes are written in the letters of ops.h: "M", "3H" (three times H), or a number. A letter's size is that of the first
 * field in the row that has it, which messages name.
 */
#ifndef BACKEND_OPERATION_H
#define BACKEND_OPERATION_H

#include <stddef.h>
#include "backend/ops.h"

enum field_kind {
	FIELD_BATCH = 1,   /* const struct batch *, with as many tokens as the letter in `rows`; it gives B */
	FIELD_DROPOUT,     /* struct dropout */
	FIELD_ACTIVATIONS, /* struct tensor of the back end's dtype */
	FIELD_STATISTICS,  /* struct tensor of its master_dtype */
	FIELD_WEIGHT,      /* const struct weight *: its master or its copy is read */
	FIELD_GRADIENT,    /* const struct weight *: its gradient is overwritten or added to */
	FIELD_INTEGERS,    /* int32_t *, on the device like the next two */
	FIELD_FLOATS,      /* float * */
	FIELD_DOUBLES,     /* double * */
	FIELD_POINTER,     /* to something of which only the presence is checked */
	FIELD_HEAD,        /* int: index into inverse_weight */
	FIELD_SIZE,        /* int32_t: the size of the letter in `rows`, if there is one */
	FIELD_LONG_SIZE,   /* int64_t: likewise */
	FIELD_FLAG,        /* bool */
	FIELD_NUMBER,      /* double */
	FIELD_WORD,        /* an enum, whose names are `words`, up to NULL */
};

enum field_role {
	FIELD_IN = 0,
	FIELD_OUT = 1,      /* written: must not overlap any other field */
	FIELD_OPTIONAL = 2, /* absent if the pointer, or the tensor's data, is NULL */
};

struct operation_field {
	const char *name;
	size_t offset; /* in the operation's struct */
	enum field_kind kind;
	int role; /* of enum field_role */
	const char *rows, *columns;
	const char *key; /* its name in a line of the trace, where its value or presence is printed; or NULL */
	const char *const *words;
};

struct operation_call;

/* More than the fields of any operation. */
#define OPERATION_FIELDS 18

struct operation {
	const char *name;
	size_t bytes;                                          /* of its struct */
	void (*run)(struct replica *r, const void *arguments); /* the function of ops.h */
	const char *keys;                                      /* what a line of the trace has, in this order */
	const char *aliases;                                   /* names of fields in pairs that may be the same memory; or NULL */
	void (*rule)(struct operation_call *c, const void *arguments); /* other checks, FLOPs, bytes; or NULL */
	struct operation_field fields[OPERATION_FIELDS];               /* as many as have a name */
};

/* In the order of struct operations. */
#define OPERATION_COUNT (sizeof(struct operations) / sizeof(void (*)(void)))
extern const struct operation operation_table[OPERATION_COUNT];

/* Bytes that a field uses, for the check of overlaps. */
struct operation_span {
	const char *of; /* "gradient of " or "" */
	const char *name;
	bool written;
	const char *data;
	size_t bytes;
};

/* A size, and the field that it was taken from (NULL: not known yet). */
struct operation_extent {
	int64_t size;
	const char *owner;
};

/* An operation being checked and run. */
struct operation_call {
	const struct operation *operation;
	const struct replica *replica;
	const void *arguments;
	const struct batch *batch; /* NULL without one */
	struct operation_extent letters['z' - 'A' + 1];
	struct operation_span spans[2 * OPERATION_FIELDS];
	int span_count;
	struct {
		const char *key;
		int64_t value;
	} derived[4]; /* keys of the trace that no field has */
	int derived_count;
	double flops, bytes; /* for the observer (struct operation_done) */
	double started;
};

/* Checks the arguments against the row; a mismatch aborts, naming the operation, the field and both sizes. */
void operation_begin(struct operation_call *c, struct replica *r, const struct operation *operation, const void *arguments);
/* Tells the observer. */
void operation_end(struct operation_call *c);

/* ---- For rules ---- */

__attribute__((noreturn)) PRINTF_LIKE(2, 3) void operation_mismatch(const struct operation_call *c, const char *format, ...);
int64_t operation_size(const struct operation_call *c, char letter);
/* Bytes of a field, 0 if it is absent; of all fields, each counted once, with NULL. */
double operation_bytes(const struct operation_call *c, const char *field);
/* Adds a key to the line of the trace. */
void operation_derive(struct operation_call *c, const char *key, int64_t value);
/* Checks a weight as a FIELD_GRADIENT, or marks a field as written, where that depends on other fields. */
void operation_check_gradient(struct operation_call *c, const char *name, const struct weight *w, const char *rows,
			      const char *columns);
void operation_mark_written(struct operation_call *c, const char *field);

#endif
