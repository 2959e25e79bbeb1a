/* How text is read: options of all commands that read any. */
#ifndef TEXT_INPUT_OPTIONS_H
#define TEXT_INPUT_OPTIONS_H

#include "base/option.h"
#include "formats/bad_records.h"
#include "text/input_form.h"
#include "text/text_form.h"

struct input_options {
	enum input_form input_form;
	enum text_form text_form; /* AUTO to DOCUMENTS; also applies to the texts in JSON and WARC records */
	const char *text_key;     /* key of the text in JSON, "a.b" for b within a; NULL: the usual ones */
	enum on_bad_record on_bad_record;
};
extern const struct option input_rows[];

#define CORPUS_FILES "files, folders, globs, - for standard input; plain, gz, bz2, zst, xz" /* for the help of such lists */

#endif
