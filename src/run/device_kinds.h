/* Kinds of devices as data, and the rates at which a device works: what a training plan is computed from when nothing could be
 * measured. Every figure says where it comes from. */
#ifndef RUN_DEVICE_KINDS_H
#define RUN_DEVICE_KINDS_H

#include "comm/link.h"

enum device_precision { DEVICE_FP32, DEVICE_TF32, DEVICE_FP16, DEVICE_BF16, DEVICE_FP8, DEVICE_PRECISION_COUNT };
extern const char *const device_precision_names[]; /* "fp32", ...; ends with NULL */

struct device_kind {
	const char *name, *what;
	double memory;                           /* bytes */
	double products[DEVICE_PRECISION_COUNT]; /* FLOP/s of large matrix products of random numbers; 0: not supported */
	enum provenance products_provenance;
	double bandwidth; /* bytes/s of copies within its memory */
	enum provenance bandwidth_provenance;
	double attention_forward, attention_backward; /* FLOP/s of fused attention, heads of 64, long sequences */
	int multiprocessors;                          /* a product's tiles are divided among them */
	const char *local_link, *network;             /* names of the kinds of links its hosts usually have */
	int cards, per_host;
	double to_host; /* bytes/s of copies to the host */
};
/* Ends with an entry whose name is NULL. */
extern const struct device_kind device_kinds[];
const struct device_kind *device_kind_find(const char *name); /* or NULL */

/* How fast a device does each part of a step. */
struct device_rates {
	double products_forward, products_backward;   /* FLOP/s of the encoder's linear layers */
	double head;                                  /* FLOP/s of the output layer and the loss, forward and backward together */
	double attention_forward, attention_backward; /* FLOP/s */
	double attention_memory;                      /* bytes/s of what attention reads and writes, in addition */
	double elements_forward, elements_backward;   /* bytes/s of the element-wise passes between products */
	double embeddings;                            /* bytes/s */
	double update;                                /* bytes/s of optimizer and gradient norm */
	int multiprocessors;                          /* 0: products of any shape reach their rate */
	double gap;                                   /* additional seconds per operation */
	double overhead;                              /* additional share of the whole: data, logging, gaps */
	double uneven;        /* relative standard deviation of step times between hosts: all wait for the slowest */
	double slowed;        /* share of its speed that it loses while communicating */
	double element_bytes; /* of an activation */
};

/* Assumptions where rates come from the table: the shares of the plain rates that bertc's training steps reached on an
 * H200 (docs/results.md). */
#define SHARE_OF_PRODUCTS 0.88
#define SHARE_OF_PRODUCTS_FP8 0.6
#define SHARE_OF_ATTENTION_FORWARD 0.43
#define SHARE_OF_ATTENTION_BACKWARD 0.51
#define SHARE_OF_BANDWIDTH 0.85
#define DEVICE_OVERHEAD 0.04
#define DEVICE_GAP 1.5e-6
#define DEVICE_SLOWED 0.09
#define HOSTS_UNEVEN 0.02

/* Rates of a kind of device; all zero if it does not support the precision. */
struct device_rates device_kind_rates(const struct device_kind *kind, enum device_precision precision);

#endif
