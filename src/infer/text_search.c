/* Opens what a search needs, makes or maps the vectors, and searches. */
#include "infer/text_search.h"

#include <inttypes.h>

#include "backend/open.h"
#include "infer/device.h"

#define ROW(member, role, value) OPTION_ROW(struct search_options, member, role, value)

/* clang-format off */
const struct option search_rows[] = {
	{ROW(query_vectors, ROLE_PLACE, "FILE.npy"),
	 .help = "vectors of the queries, one for each, as embed --format npy writes them; otherwise --model makes them"},
	{ROW(corpus_vectors, ROLE_PLACE, "FILE.npy"), .help = "vectors of the corpus, one for each of its texts"},
	{ROW(query_prompt, ROLE_RESULT, "TEXT"), .fallback_text = "that of the model's folder",
	 .help = "put this before queries"},
	{ROW(document_prompt, ROLE_RESULT, "TEXT"), .alias = "corpus_prompt", .fallback_text = "that of the model's folder",
	 .help = "put this before the texts of the corpus"},
	{ROW(similarity, ROLE_RESULT, "NAME"), .range = "cosine|dot", .fallback = "cosine",
	 .help = "measure of nearness; weights of words (SPLADE) are always compared by dot products"},
	{0},
};
/* clang-format on */

enum status text_search_check(const struct search_options *options, const char *model)
{
	if (model || (options->query_vectors && options->corpus_vectors))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "there are no vectors to search"),
			    "give --model FOLDER, which makes them, or --query_vectors and --corpus_vectors with files of "
			    "them");
}

enum status text_search_open(struct text_search *search, const char *model)
{
	TRY(pool_create(&search->pool, (int)search->of_models.device.threads));
	if (!model)
		return OK;
	TRY(text_model_open(&search->model, model, search->pool, &search->of_models));
	if (search->model.weighs_words && !search->takes_weights)
		return error_set(ERR_USAGE, "'%s' weighs words, and this needs vectors", model);
	return search->model.makes_vectors || search->model.weighs_words
		       ? OK
		       : error_set(ERR_USAGE, "'%s' answers a task and makes no vectors", model);
}

static enum status get_vectors(struct text_search *search, struct text_vectors *out, const struct searched_texts *texts,
			       const char *file, const char *prompt)
{
	if (file)
		return text_vectors_map(out, file, texts->rows, texts->what, texts->places, texts->count);
	const struct text_pass pass = {.model = &search->model, .title = texts->what, .prompt = prompt};
	return text_vectors_make(out, &pass, texts->texts, texts->count);
}

/* What the vectors of the corpus are, from the numbers of a query. ERR_DATA if they cannot be that. */
static enum status check_widths(struct text_search *search)
{
	const struct npy_file *file = &search->documents.file;
	int64_t width = search->queries.vectors.width, other = search->documents.vectors.width;
	search->code = CODE_FLOAT32;
	if (file->codes)
		search->code = other == width ? (file->is_signed ? CODE_INT8 : CODE_UINT8)
					      : (file->is_signed ? CODE_BINARY : CODE_UBINARY);
	return vector_code_count(search->code, width) == other
		       ? OK
		       : error_set(ERR_DATA,
				   "the vectors of the queries have %" PRId64 " numbers, those of the corpus %" PRId64 "%s",
				   width, other, file->codes ? " bytes" : "");
}

enum status text_search_vectors(struct text_search *search, const struct searched_texts *queries,
				const struct searched_texts *documents)
{
	const struct search_options *options = search->options;
	const struct sentence_folder *folder = &search->model.sentences;
	if (search->model.weighs_words && (options->query_vectors || options->corpus_vectors))
		return error_set(ERR_USAGE, "the model weighs words: it cannot be combined with files of vectors");
	TRY(get_vectors(search, &search->queries, queries, options->query_vectors,
			options->query_prompt ? options->query_prompt : sentence_folder_query_prompt(folder)));
	search->documents.file.takes_codes = search->codes != NULL;
	TRY(get_vectors(search, &search->documents, documents, options->corpus_vectors,
			options->document_prompt ? options->document_prompt : sentence_folder_document_prompt(folder)));
	return check_widths(search);
}

enum status text_search_nearest(struct text_search *search, int64_t most, struct nearest_row *out)
{
	if (search->model.weighs_words)
		return sparse_search(search->pool, &search->queries.sparse, &search->documents.sparse,
				     text_model_width(&search->model), most, out);
	if (search->code != CODE_FLOAT32)
		return code_search_run(&(struct code_search){.options = search->codes,
							     .pool = search->pool,
							     .queries = search->queries.vectors,
							     .code = search->code,
							     .codes = search->documents.file.codes,
							     .count = search->documents.vectors.count,
							     .most = most},
				       out);
	struct device_options on_cpu = {.device = DEVICE_CPU, .precision = search->of_models.device.precision};
	if (on_cpu.precision != PRECISION_FP32 && on_cpu.precision != PRECISION_BF16)
		on_cpu.precision = PRECISION_FASTEST;
	TRY(device_open_on(&on_cpu, true, search->pool, &search->be));
	return vector_search_run(&(struct vector_search){.backend = search->be,
							 .nearest = backend_nearest(search->be),
							 .similarity = search->options->similarity,
							 .most = most,
							 .queries = search->queries.vectors,
							 .documents = search->documents.vectors,
							 .title = "searching"},
				 out);
}

enum status text_search_open_reranker(struct text_search *search, const char *folder)
{
	TRY(text_model_open(&search->reranker, folder, search->pool, &search->of_models));
	return text_pass_check_reranker(&search->reranker, folder);
}

void text_search_close(struct text_search *search)
{
	text_model_close(&search->reranker);
	text_model_close(&search->model);
	if (search->be)
		backend_close(search->be);
	pool_free(search->pool);
	text_vectors_release(&search->queries);
	text_vectors_release(&search->documents);
}
