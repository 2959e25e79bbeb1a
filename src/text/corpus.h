/* Reads text files as documents of sentences. */
#ifndef TEXT_CORPUS_H
#define TEXT_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "text/document.h"
#include "text/input_options.h"

struct corpus_settings {
	struct input_options input;
	bool quiet;                 /* report the forms of files only with --verbose; for text that is read a second time */
	int threads;                /* threads that may work ahead of corpus_next(); 0: one per core */
	const char *const *outputs; /* [output_count] files that will be written; none of them may be among the files read */
	int output_count;
};

/* Reads files one after the other, with bounded memory: a document, a few megabytes of lines or records per
 * thread, and the decoder. Documents come in file order, whatever the number of threads. */
struct corpus;
/* `patterns`: files, folders, globs, "-". `settings` NULL: everything is detected, and damage is an error. With INPUT_AUTO
 * and TEXT_FORM_AUTO, the form of each file is detected from its first megabyte and reported (log_note, for each of the first
 * files and the first of each form). No files at all is ERR_USAGE, a file without read permission ERR_RESOURCE. While reading, a
 * binary file (more than one NUL in a thousand bytes of its first megabyte), a file that is not UTF-8 (input_check_encoding())
 * and damaged data are ERR_DATA naming file and offset. */
MUST_USE enum status corpus_open(struct corpus **out, const char *const *patterns, int64_t pattern_count,
				 const struct corpus_settings *settings);
/* The next document, which has at least one sentence; *out = NULL at the end. No document extends beyond its file. */
MUST_USE enum status corpus_next(struct corpus *corpus, const struct document **out);
/* Form of the file that the last document came from, and the reason in words ("2.1 sentences per line, 312
 * gaps of blank lines"). */
enum text_form corpus_form(const struct corpus *corpus, const char **out_reason);
const struct corpus_counts *corpus_counts(const struct corpus *corpus);
/* One line about anything dropped, cut or odd ("3 files without text, 12 bytes that are not UTF-8"); "" if there was
 * nothing. */
void corpus_describe_oddities(const struct corpus *corpus, struct buffer *out);
/* Logs that line, if any, how many records were left out, and a summary of the forms of files that were not reported one by one.
 * Every command that reads a corpus calls it afterwards. */
void corpus_note_oddities(const struct corpus *corpus);
/* Total size of all files (compressed where they are), or -1 if unknown (standard input); and bytes read so far. */
int64_t corpus_total_bytes(const struct corpus *corpus);
int64_t corpus_done_bytes(const struct corpus *corpus);
/* Whether these are, at least in part, bytes of compressed files. */
bool corpus_is_compressed(const struct corpus *corpus);
/* Hash of all files' names (without their folders), sizes, modification times, and first and last bytes: tells whether a corpus
 * has changed. Pipes and standard input are all the same to it. */
uint64_t corpus_fingerprint(const struct corpus *corpus);
/* Whether a path is standard input ("-") or a pipe. */
bool corpus_reads_once(const char *path);
void corpus_close(struct corpus *corpus); /* NULL is fine */

#endif
