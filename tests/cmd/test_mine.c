/* bertc mine on vectors from files: which rows it writes, and what bad input gets. (tests/cmd/test_embedding.c mines with models,
 * and trains on the rows.) */
#include <math.h>
#include "cmd/program.h"
#include "infer/vector_format.h"
#include "infer/vector_format.h"

/* Unit vectors at these angles, in degrees; the product with another one is the cosine of the difference. */
static void put_vectors(const char *name, const double *degrees, int64_t count)
{
	struct buffer file = {0};
	vector_put_npy_header(&file, "<f4", count, 2);
	for (int64_t i = 0; i < count; i++) {
		double radians = degrees[i] * acos(-1) / 180;
		float vector[] = {(float)(3 * cos(radians)), (float)(3 * sin(radians))};
		vector_put_binary(&file, vector, 2);
	}
	assert_ok(file_write(test_path(name), file.data, file.size));
	buffer_release(&file);
}

static int setup(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	/* The query "q" has two positives, at 10 and 30 degrees from it, and its own text is in the corpus. */
	put_file("pairs.tsv", "anchor\tpositive\nq\ta\nr\td\nq\tc\n");
	put_vectors("queries.npy", (const double[]){0, 90, 0}, 3);
	put_file("corpus.jsonl", "{\"_id\": \"1\", \"text\": \"a\"}\n{\"_id\": \"2\", \"text\": \"b\"}\n{\"text\": \"c\"}\n"
				 "{\"text\": \"d\"}\n{\"text\": \"q\"}\n{\"text\": \"e\"}\n{\"text\": \"b\"}\n");
	put_vectors("corpus.npy", (const double[]){10, 20, 30, 80, 1, 50, 20}, 7);
	return 0;
}

#define MINE "mine --train %s/pairs.tsv --query_vectors %s/queries.npy --out %s/rows.jsonl "
#define FOLDERS test_folder, test_folder, test_folder
#define CORPUS "--corpus %s/corpus.jsonl --corpus_vectors %s/corpus.npy "

static void check_rows(const char *expected)
{
	struct buffer rows = {0};
	assert_ok(file_read(test_path("rows.jsonl"), 1 << 20, &rows));
	assert_string_equal(buffer_string(&rows), expected);
	buffer_release(&rows);
}

static void writes_negatives(void **state)
{
	assert_program(0, "6 negatives for 3 pairs, in 3 rows of", MINE CORPUS "--num_negatives 2", FOLDERS, test_folder,
		       test_folder);
	check_rows("{\"anchor\":\"q\",\"positive\":\"a\",\"negatives\":[\"b\",\"e\"]}\n"
		   "{\"anchor\":\"r\",\"positive\":\"d\",\"negatives\":[\"e\",\"c\"]}\n"
		   "{\"anchor\":\"q\",\"positive\":\"c\",\"negatives\":[\"b\",\"e\"]}\n");
	/* b, at 20 degrees, is nearer to q than c is. */
	assert_program(0, "1 by --absolute_margin", MINE CORPUS "--num_negatives 1 --absolute_margin 0.15 --format triplet",
		       FOLDERS, test_folder, test_folder);
	check_rows("{\"anchor\":\"q\",\"positive\":\"a\",\"negative\":\"e\"}\n"
		   "{\"anchor\":\"r\",\"positive\":\"d\",\"negative\":\"e\"}\n"
		   "{\"anchor\":\"q\",\"positive\":\"c\",\"negative\":\"e\"}\n");
	assert_program(0, "first texts with fewer than 1 negatives: 1 of 2",
		       MINE CORPUS "--num_negatives 1 --min_score 0.77 --output_scores", FOLDERS, test_folder, test_folder);
	check_rows("{\"anchor\":\"q\",\"positive\":\"a\",\"negatives\":[\"b\"],\"scores\":[0.9848077,0.9396926]}\n"
		   "{\"anchor\":\"q\",\"positive\":\"c\",\"negatives\":[\"b\"],\"scores\":[0.8660254,0.9396926]}\n");
}

static void the_pairs_are_a_corpus(void **state)
{
	put_vectors("seconds.npy", (const double[]){10, 80, 30}, 3);
	assert_program(0, "", MINE "--corpus_vectors %s/seconds.npy --range_min 0 --sampling random", FOLDERS, test_folder);
	check_rows("{\"anchor\":\"q\",\"positive\":\"a\",\"negatives\":[\"d\"]}\n"
		   "{\"anchor\":\"r\",\"positive\":\"d\",\"negatives\":[\"c\",\"a\"]}\n"
		   "{\"anchor\":\"q\",\"positive\":\"c\",\"negatives\":[\"d\"]}\n");
}

/* Four documents of so many bytes. */
static void put_codes(const char *name, const char *type, int64_t bytes)
{
	struct buffer file = {0};
	vector_put_npy_header(&file, type, 4, bytes);
	for (int64_t i = 0; i < 4 * bytes; i++)
		buffer_char(&file, (char)(40 * i));
	assert_ok(file_write(test_path(name), file.data, file.size));
	buffer_release(&file);
}

/* Two queries; q finds itself first, which does not count, and then b; r finds its document second. */
static void retrieval_is_measured(void **state)
{
	assert_ok(folder_make(test_path("set")));
	assert_ok(folder_make(test_path("set/qrels")));
	put_file("set/queries.jsonl", "{\"_id\": \"q\", \"text\": \"q\"}\n{\"_id\": \"r\", \"text\": \"r\"}\n");
	put_file("set/corpus.jsonl", "{\"_id\": \"q\", \"text\": \"q\"}\n{\"_id\": \"b\", \"text\": \"b\"}\n"
				     "{\"_id\": \"d\", \"text\": \"d\"}\n{\"_id\": \"e\", \"text\": \"e\"}\n");
	put_file("set/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\tb\t1\nr\te\t2\n");
	put_vectors("set/q.npy", (const double[]){0, 90}, 2);
	put_vectors("set/c.npy", (const double[]){1, 20, 80, 60}, 4);
#define RETRIEVAL "evaluate --retrieval %s/set --query_vectors %s/set/q.npy --corpus_vectors %s/set/c.npy "
	assert_program(0, "4 documents, 2 queries with 2 judgments", RETRIEVAL "--json --run_out %s/run.txt", FOLDERS,
		       test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "\"ndcg@10\":0.8154648767857288"));
	assert_non_null(strstr(buffer_string(&program_output), "\"recall@1\":0.5,"));
	assert_non_null(strstr(buffer_string(&program_output), "\"queries\":2"));
	struct buffer run = {0};
	assert_ok(file_read(test_path("run.txt"), 1 << 20, &run));
	assert_non_null(strstr(buffer_string(&run), "q Q0 b 1 0.939692616 bertc\n"));
	assert_null(strstr(buffer_string(&run), "q Q0 q"));
	static const char *const read[] = {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"};
	for (int i = 0; i < 3; i++)
		assert_program(ERR_USAGE, "which is read: it would be overwritten", RETRIEVAL "--run_out %s/set/%s", FOLDERS,
			       test_folder, read[i]);
	buffer_release(&run);
	/* Bytes and bits are told apart by how many there are. */
#define CODED "evaluate --retrieval %s/set --query_vectors %s/set/q.npy --corpus_vectors %s/set/%s.npy "
	put_codes("set/bytes.npy", "|u1", 2);
	put_codes("set/bits.npy", "|i1", 1);
	put_codes("set/odd.npy", "|i1", 3);
	assert_program(0, "", CODED "--calibration_vectors %s/set/c.npy --json", FOLDERS, "bytes", test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "\"recall@5\":1.0"));
	assert_program(0, "", CODED "--json", FOLDERS, "bits");
	assert_non_null(strstr(buffer_string(&program_output), "\"recall@5\":1.0"));
	assert_program(ERR_USAGE, "vectors of bytes need --calibration_vectors", CODED, FOLDERS, "bytes");
	assert_program(ERR_DATA, "have 2 numbers, those of the corpus 3 bytes", CODED, FOLDERS, "odd");
	assert_program(ERR_DATA, "of the type '|u1', not float32", MINE "--corpus_vectors %s/set/bytes.npy", FOLDERS,
		       test_folder);
	assert_program(ERR_USAGE, "there are no vectors to search", "evaluate --retrieval %s/set", test_folder);
	assert_program(ERR_USAGE, "has no queries.jsonl", "evaluate --retrieval %s --query_vectors x --corpus_vectors x",
		       test_folder);
	assert_program(ERR_USAGE, "--retrieval goes with neither", RETRIEVAL "--test %s/pairs.tsv", FOLDERS, test_folder);
	assert_program(ERR_DATA, "c.npy' has 4 vectors, and there are 2 queries",
		       "evaluate --retrieval %s/set --query_vectors %s/set/c.npy --corpus_vectors %s/set/c.npy", FOLDERS);
}

static void bad_input_is_explained(void **state)
{
	assert_program(ERR_USAGE, "there are no vectors to search", "mine --train %s/pairs.tsv --out %s/rows.jsonl", test_folder,
		       test_folder);
	assert_program(ERR_USAGE, "--num_negatives 3 cannot be taken from --range_min 1 to --range_max 3",
		       MINE CORPUS "--range_min 1 --range_max 3", FOLDERS, test_folder, test_folder);
	assert_program(ERR_USAGE, "--range_max ", MINE CORPUS "--range_max 9223372036854775807", FOLDERS, test_folder,
		       test_folder);
	assert_program(ERR_DATA, "queries.npy' has 3 vectors, and there are 7 texts in the corpus",
		       MINE "--corpus %s/corpus.jsonl --corpus_vectors %s/queries.npy", FOLDERS, test_folder, test_folder);
	assert_program(ERR_DATA, "pairs.tsv' is not an array file that can be read: it does not begin as NumPy's files do",
		       MINE "--corpus_vectors %s/pairs.tsv", FOLDERS, test_folder);
	put_file("few.txt", "a\nb\n");
	put_vectors("few.npy", (const double[]){10, 20}, 2);
	assert_program(ERR_DATA, "2 pairs have a second text that is not in the corpus",
		       MINE "--corpus %s/few.txt --corpus_vectors %s/few.npy", FOLDERS, test_folder, test_folder);
	put_file("odd.jsonl", "{\"color\": \"red\", \"size\": \"big\"}\n");
	assert_program(ERR_DATA, "none of its columns is named \"text\"; they are 1 color, 2 size",
		       MINE "--corpus %s/odd.jsonl --corpus_vectors %s/few.npy", FOLDERS, test_folder, test_folder);
	put_file("scored.tsv", "sentence1\tsentence2\tscore\nq\ta\t0.5\nr\td\t1\n");
	assert_program(ERR_USAGE, "has pairs with scores",
		       "mine --train %s/scored.tsv --query_vectors %s/few.npy --corpus_vectors %s/few.npy --out %s/rows.jsonl",
		       FOLDERS, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(writes_negatives), cmocka_unit_test(the_pairs_are_a_corpus),
					   cmocka_unit_test(retrieval_is_measured), cmocka_unit_test(bad_input_is_explained)};
	return cmocka_run_group_tests(tests, setup, test_folder_drop);
}
