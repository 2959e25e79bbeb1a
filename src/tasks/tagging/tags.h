/* Schemes of tags that mark entities in sentences of words: detecting which one a file uses, and converting between them.
 *
 * A tag is O, or a prefix and a type ("B-PER", "B_PER"; the type may be missing: "B"). What prefixes mean:
 *   IO     I- all words of an entity; two adjacent ones cannot be distinguished
 *   IOB1   I- all words; B- the first word of an entity that touches another of its type before it
 *   IOB2   B- the first word, I- the others
 *   BIOES  B- first, I- inner, E- last, S- the only word; BMES and BILOU: the same with other letters
 * Tags without prefixes (such as parts of speech) are plain: each stands for itself, and there are no entities. */
#ifndef TASKS_TAGGING_TAGS_H
#define TASKS_TAGGING_TAGS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

enum tag_scheme { TAGS_PLAIN, TAGS_IO, TAGS_IOB1, TAGS_IOB2, TAGS_BIOES, TAGS_BILOU, TAGS_BMES };

/* How a file writes its tags. */
struct tag_form {
	enum tag_scheme scheme;
	char separator; /* between prefix and type: '-' or '_' */
};

/* A parsed tag. */
struct tag {
	char prefix;      /* 'O', 'B', 'I', 'E', 'S' ('L' and 'U' of BILOU become E and S, 'M' of BMES becomes I) */
	const char *type; /* what follows the separator, borrowed; "" for O and for a prefix alone */
};

struct tag_entity {
	const char *type;
	int64_t start, end; /* words [start, end) */
};

/* What was found in the tags of a training file. */
struct tag_facts {
	struct tag_form form;
	int64_t entities;
	int64_t irregular;       /* tags that break the rules of the scheme, as I-X after O does in IOB2 */
	int64_t first_irregular; /* index of the first irregular tag */
};

/* Detects the scheme of `sentence_count` sentences with tags [starts[i], starts[i + 1]). ERR_DATA: most tags have prefixes but
 * one does not, or the prefixes do not belong to any scheme; the message names the tag, and *out_bad is its index (else -1). */
MUST_USE enum status tags_detect(const char *const *tags, const int64_t *starts, int64_t sentence_count, struct tag_facts *out,
				 int64_t *out_bad);
const char *tag_scheme_name(enum tag_scheme scheme);
/* The scheme with this name; false: there is none. */
bool tag_scheme_find(const char *name, enum tag_scheme *out);

/* Parses a tag; false: it has no prefix of the scheme (plain tags have none). */
bool tag_parse(const char *text, struct tag_form form, struct tag *out);
/* Appends a tag in the given form. */
void tag_write(struct buffer *out, struct tag tag, struct tag_form form);

/* Puts the entities of a sentence of `count` tags (in any scheme but plain) into `out`, which has room for `count`, and returns
 * their number. Finds them as seqeval's default mode does: every word that is not O belongs to one. */
int64_t tags_entities(const struct tag *tags, int64_t count, struct tag_entity *out);
/* Rewrites the tags of a sentence by the rules of `scheme` (not plain). `out` may be `tags`. */
void tags_convert(const struct tag *tags, int64_t count, enum tag_scheme scheme, struct tag *out);

#endif
