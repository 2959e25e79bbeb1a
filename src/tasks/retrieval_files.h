/* Files of retrieval: texts with ids (a corpus, queries), and judgments of which texts belong to which queries (qrels). */
#ifndef TASKS_RETRIEVAL_FILES_H
#define TASKS_RETRIEVAL_FILES_H

#include "base/string_index.h"
#include "base/string_store.h"
#include "formats/table.h"

/* The texts of files, in their order. Zero-initialize; release when done. */
struct text_list {
	const char **texts;
	const char **ids; /* NULL in a row without one */
	int64_t count;
	/* Private from here. */
	int64_t capacity, id_capacity, table_count, table_capacity;
	struct table **tables;
	struct string_store strings;
};

/* Appends the texts of a file, a table (formats/table.h): the column `column` (a name or a number) or, if it is NULL, the one
 * with a usual name ("text"), before which comes the "title", if there is one, as in BEIR. Ids are in "_id" or "id". An empty
 * text is a text, so that rows correspond to those of `bertc embed`. ERR_USAGE or ERR_DATA if it is unclear which column holds
 * the texts. */
MUST_USE enum status text_list_read(struct text_list *list, const char *path, const char *column);
/* Appends a text, which is borrowed. */
MUST_USE enum status text_list_add(struct text_list *list, const char *text, const char *id);
void text_list_release(struct text_list *list);

/* A judgment: the text `document` answers the query to the degree `grade`; 0 and less: it does not. */
struct judgment {
	int64_t query, document; /* numbers in the lists; from the corpus's count on: documents that are not in it */
	int64_t grade;
};
struct judgments {
	struct judgment *items; /* [count] by query, then by document */
	int64_t count, capacity;
	int64_t unknown_queries;             /* judgments left out because their query is not in the list */
	int64_t unknown_documents, repeated; /* judgments of documents that are not in the corpus; left out as given before */
};

/* Reads qrels: BEIR's (query-id, corpus-id, score) or TREC's (query, 0, document, grade), separated by tabs or spaces. ERR_DATA
 * names a line that is damaged; also if no judgment is about a query of the list, or two contradict each other. */
MUST_USE enum status judgments_read(struct judgments *out, const char *path, const struct text_list *queries,
				    const struct text_list *documents);
void judgments_release(struct judgments *judgments);

#endif
