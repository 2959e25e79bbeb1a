/* Queries or documents with ids, and judgments (qrels) about two of each. */
#include "fuzz.h"
#include "tasks/retrieval_files.h"

FUZZ_SEEDS(FUZZ_SEED("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t0\n"), FUZZ_SEED("q1 0 d1 2\nq1 0 d9 -1\nq9 0 d1 1\n"),
	   FUZZ_SEED("{\"_id\":\"q1\",\"title\":\"t\",\"text\":\"a\"}\n{\"_id\":\"q2\",\"text\":\"\"}\n"),
	   FUZZ_SEED("id\ttitle\ttext\n1\ta\tb\n"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct text_list queries = {0}, documents = {0}, read = {0};
	struct judgments judgments = {0};
	BUG_IF(text_list_add(&queries, "a", "q1") != OK || text_list_add(&queries, "b", "q2") != OK);
	BUG_IF(text_list_add(&documents, "c", "d1") != OK || text_list_add(&documents, "d", "d2") != OK);
	const char *path = fuzz_file("data", bytes, count);
	if (judgments_read(&judgments, path, &queries, &documents) == OK)
		for (int64_t i = 0; i < judgments.count; i++)
			BUG_IF(judgments.items[i].query < 0 || judgments.items[i].query > 1 || judgments.items[i].document < 0 ||
			       judgments.items[i].document > 1 + judgments.unknown_documents);
	judgments_release(&judgments);
	if (text_list_read(&read, path, count % 2 ? NULL : "2") == OK)
		for (int64_t i = 0; i < read.count; i++)
			BUG_IF(!read.texts[i]);
	text_list_release(&read);
	text_list_release(&queries);
	text_list_release(&documents);
	return 0;
}
