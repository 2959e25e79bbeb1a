/* Files and measures of retrieval: the figures are pytrec_eval's for the same run and judgments. */
#include <math.h>
#include "tasks/retrieval_measures.h"
#include "test.h"

static void read_lists(struct text_list *queries, struct text_list *documents)
{
	put_file("queries.jsonl", "{\"_id\": \"q1\", \"text\": \"one\"}\n{\"_id\": \"q2\", \"text\": \"two\"}\n"
				  "{\"_id\": \"q3\", \"text\": \"three\"}\n");
	put_file("corpus.jsonl",
		 "{\"_id\": \"d1\", \"title\": \"A\", \"text\": \"first\"}\n{\"_id\": \"d2\", \"title\": \"\", \"text\": "
		 "\"second\"}\n{\"_id\": \"d3\", \"text\": \"third\"}\n{\"_id\": \"d4\", \"text\": \"\"}\n");
	assert_ok(text_list_read(queries, test_path("queries.jsonl"), NULL));
	assert_ok(text_list_read(documents, test_path("corpus.jsonl"), NULL));
}

static void reads_texts(void **state)
{
	struct text_list queries = {0}, documents = {0};
	read_lists(&queries, &documents);
	assert_int_equal(documents.count, 4);
	assert_string_equal(documents.texts[0], "A first");
	assert_string_equal(documents.texts[1], "second");
	assert_string_equal(documents.texts[3], "");
	assert_string_equal(documents.ids[2], "d3");
	text_list_release(&documents);
	put_file("lines.txt", "a text\n\nanother\n");
	assert_ok(text_list_read(&documents, test_path("lines.txt"), NULL));
	assert_int_equal(documents.count, 3);
	assert_string_equal(documents.texts[1], "");
	text_list_release(&documents);
	text_list_release(&queries);
}

#define QRELS                                                                                                                    \
	"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t2\nq1\td4\t0\nq1\tgone\t1\nq2\td3\t1\nq2\td1\t-"                         \
	"1\nq9\td1\t1\nq3\td2\t0\n"

static void measures_are_those_of_trec_eval(void **state)
{
	struct text_list queries = {0}, documents = {0};
	struct judgments judgments = {0};
	struct retrieval_sums sums = {0};
	struct measures measures = {0};
	/* Equal scores: the larger id comes first. */
	struct retrieved found[3][4] = {{{0.5f, 0}, {0.5f, 1}, {0.7f, 2}, {0.5f, 3}}, {{0.1f, 0}, {0.2f, 2}}, {{1, 1}}};
	const int64_t counts[] = {4, 2, 1};
	read_lists(&queries, &documents);
	/* Given twice, a judgment counts once. */
	put_file("qrels.tsv", QRELS "q1\td2\t2\nq1\tgone\t1\n");
	assert_ok(judgments_read(&judgments, test_path("qrels.tsv"), &queries, &documents));
	assert_int_equal(judgments.count, 7);
	assert_int_equal(judgments.unknown_queries, 1);
	assert_int_equal(judgments.unknown_documents, 1);
	assert_int_equal(judgments.repeated, 2);
	for (int64_t q = 0, first = 0; q < 3; q++) {
		int64_t judged = 0;
		while (first + judged < judgments.count && judgments.items[first + judged].query == q)
			judged++;
		retrieval_sort(found[q], counts[q], &documents);
		assert_ok(retrieval_add_query(&sums, judgments.items + first, judged, found[q], counts[q]));
		first += judged;
	}
	retrieval_add_measures(&sums, &measures);
	assert_near(measures_get(&measures, "ndcg@1"), 0.333333333333, 1e-9);
	assert_near(measures_get(&measures, "ndcg@3"), 0.439797981080, 1e-9);
	assert_near(measures_get(&measures, "ndcg@10"), 0.485649809128, 1e-9);
	assert_near(measures_get(&measures, "map@3"), 0.370370370370, 1e-9);
	assert_near(measures_get(&measures, "map@10"), 0.425925925926, 1e-9);
	assert_near(measures_get(&measures, "recall@1"), 0.333333333333, 1e-9);
	assert_near(measures_get(&measures, "recall@3"), 0.444444444444, 1e-9);
	assert_near(measures_get(&measures, "mrr@10"), 0.444444444444, 1e-9);
	judgments_release(&judgments);
	text_list_release(&documents);
	text_list_release(&queries);
}

static void bad_files_are_refused(void **state)
{
	struct text_list queries = {0}, documents = {0};
	struct judgments judgments = {0};
	read_lists(&queries, &documents);
	put_file("bad.tsv", "q1\td1\t1\nq1\td2\n");
	assert_error(ERR_DATA, "bad.tsv', line 2: a judgment has three fields",
		     judgments_read(&judgments, test_path("bad.tsv"), &queries, &documents));
	judgments_release(&judgments);
	put_file("bad.tsv", "q1 0 d1 much\n");
	assert_error(ERR_DATA, "line 1: the grade 'much' is not a whole number",
		     judgments_read(&judgments, test_path("bad.tsv"), &queries, &documents));
	put_file("bad.tsv", "q1 0 d1 1\nq2 0 d1 0\nq1 0 d1 0\n");
	assert_error(ERR_DATA, "gives query 'q1' and document 'd1' two grades",
		     judgments_read(&judgments, test_path("bad.tsv"), &queries, &documents));
	judgments_release(&judgments);
	put_file("bad.tsv", "q7 0 d1 1\n");
	assert_error(ERR_DATA, "judges none of the queries",
		     judgments_read(&judgments, test_path("bad.tsv"), &queries, &documents));
	judgments_release(&judgments);
	assert_ok(text_list_read(&documents, test_path("queries.jsonl"), NULL));
	documents.ids[4] = "d1";
	assert_error(ERR_DATA, "document 1 and 5 have the same id 'd1'",
		     judgments_read(&judgments, test_path("bad.tsv"), &queries, &documents));
	judgments_release(&judgments);
	text_list_release(&documents);
	text_list_release(&queries);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_texts), cmocka_unit_test(measures_are_those_of_trec_eval),
					   cmocka_unit_test(bad_files_are_refused)};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
