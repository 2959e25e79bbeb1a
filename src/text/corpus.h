/* Text files to documents of sentences. */
#ifndef TEXT_CORPUS_H
#define TEXT_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "text/document.h"
#include "text/input_form.h"
#include "text/text_form.h"

struct corpus_settings {
	enum input_form input_form;
	enum text_form text_form; /* AUTO to DOCUMENTS; also of the texts in JSON and WARC records */
	const char *text_key;     /* of JSON, "a.b" for b within a; NULL: the usual ones */
	bool skip_bad_records;    /* skip and count damaged records, instead of ERR_DATA */
	bool quiet;               /* what files were read as is said with --verbose only: text that is read a second time */
	int threads;              /* that may work ahead of corpus_next(); 0: one for each core */
	const char *const
		*outputs; /* [output_count] files that are going to be written: none of those that are read may be one */
	int output_count;
};

/* Reads files one after the other, with bounded memory: a document, some megabytes of lines or records for
 * each thread, the decoder. Documents come in the order of the files, whatever the number of threads. */
struct corpus;
/* `patterns`: files, folders, globs, "-". `settings` NULL: all found out, damage is an error. With INPUT_AUTO
 * and TEXT_FORM_AUTO the form of each file is found from its first megabyte, and said (log_note,
 * for each of the first files and the first of each form). Nothing found is ERR_USAGE, a file that may not be read ERR_RESOURCE.
 * While reading, a binary file (more than one NUL in a thousand bytes of its first megabyte), one that is not UTF-8 (more than a
 * tenth of these bytes) and damaged data are ERR_DATA naming file and offset. */
MUST_USE enum status corpus_open(struct corpus **out, const char *const *patterns, int64_t pattern_count,
				 const struct corpus_settings *settings);
/* The next document, which has at least one sentence; *out = NULL at the end. A document ends with its file.
 */
MUST_USE enum status corpus_next(struct corpus *corpus, const struct document **out);
/* Form of the file that the last document came from, with the reason in words ("2.1 sentences per line, 312
 * blank lines"). */
enum text_form corpus_form(const struct corpus *corpus, const char **out_reason);
const struct corpus_counts *corpus_counts(const struct corpus *corpus);
/* One line of what was dropped, cut or odd ("3 files without text, 12 bytes that are not UTF-8"); "" if
 * nothing. */
void corpus_describe_oddities(const struct corpus *corpus, struct buffer *out);
/* Says it, where there is something to say, and what files beyond the first were read as: every command that reads a corpus does
 * so when it has read it. */
void corpus_note_oddities(const struct corpus *corpus);
/* Bytes of all (compressed) files, and read so far; -1 if unknown (standard input). */
int64_t corpus_total_bytes(const struct corpus *corpus);
int64_t corpus_done_bytes(const struct corpus *corpus);
/* Names, sizes and modification times of all files, hashed: tells whether a corpus has changed. */
uint64_t corpus_fingerprint(const struct corpus *corpus);
void corpus_close(struct corpus *corpus); /* NULL is fine */

#endif
