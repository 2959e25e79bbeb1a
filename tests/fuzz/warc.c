/* WARC and WET. */
#include "records.h"

FUZZ_SEEDS(FUZZ_SEED("\3WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\nContent-Length: "
		     "5\r\n\r\nHello\r\n\r\n"
		     "WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 2\r\n\r\nxx\r\n\r\n"),
	   FUZZ_SEED("\7WARC/1.1\nWARC-Type: response\nContent-Length: 46\n\nHTTP/1.1 200 "
		     "OK\r\nContent-Type: text/plain\r\n\r\nabc\n\n"),
	   FUZZ_SEED("\1WARC/1.0\r\nContent-Length: x\r\n\r\nWARC/1.0\r\nWARC-Type: "
		     "conversion\r\nContent-Length: 1\r\n\r\na\r\n\r\n"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	fuzz_records(RECORDS_WARC, NULL, bytes, count);
	return 0;
}
