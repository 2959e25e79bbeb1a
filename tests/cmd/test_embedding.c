/* Embeddings and rerankers as a user trains them: every form of file, the same step however it is split, what the folder
 * holds, and bad files and commands. */
#include "cmd/small_run.h"

static const char *const who[] = {"the cat", "a dog", "the old man", "my sister", "nobody", "the sailor"};
static const char *const does[] = {"sees", "likes", "finds", "follows", "paints"};
static const char *const what[] = {"the house", "a river", "the red boat", "some bread", "the moon"};

/* Rows that tell of one event in two ways. `kind`: 'p' pairs, 't' with another event as the negative, 's' pairs with a
 * score, 'u' a single text, 'l' JSON lists of one right and two wrong texts. */
static void put_table(const char *name, char kind, int rows, uint32_t first)
{
	struct buffer text = {0};
	buffer_text(&text, kind == 'p'   ? "anchor\tpositive\n"
			   : kind == 't' ? "anchor\tpositive\tnegative\n"
			   : kind == 's' ? "sentence1\tsentence2\tscore\n"
			   : kind == 'u' ? "sentence\n"
					 : "");
	for (int i = 0; i < rows; i++) {
		uint32_t event = (first + (uint32_t)i) * 7 % 150, other = (event + 31) % 150;
		const char *a = who[event / 25], *b = does[event / 5 % 5], *c = what[event % 5];
		const char *x = who[other / 25], *y = does[other / 5 % 5], *z = what[other % 5];
		if (kind == 'l') {
			buffer_format(
				&text,
				"{\"query\": \"%s %s %s.\", \"documents\": [\"%s, %s %s.\", \"%s, %s %s.\", \"%s, %s %s.\"], "
				"\"labels\": [0, 1, 0]}\n",
				a, b, c, z, y, x, a, b, c, c, b, a);
			continue;
		}
		buffer_format(&text, "%s %s %s.", a, b, c);
		if (kind == 's' && i % 2)
			buffer_format(&text, "\t%s, %s %s.\t0.25", x, y, z);
		else if (kind != 'u')
			buffer_format(&text, "\t%s, %s %s.%s", a, b, c, kind == 's' ? "\t1" : "");
		if (kind == 't')
			buffer_format(&text, "\t%s, %s %s.", x, y, z);
		buffer_char(&text, '\n');
	}
	assert_ok(file_write(test_path(name), text.data, text.size));
	buffer_release(&text);
}

static int setup(void **state)
{
	if (small_run_make(state, 3) != 0)
		return -1;
	if (program("pretrain --corpus %s --model %s --out %s/base --vocab_size 80 --train_batch_size 16 --max_seq_length 32 "
		    "--num_train_steps 20 --learning_rate 1e-2 --num_warmup_steps 2 --precision fp32 --threads 1",
		    corpus, config, test_folder) != 0)
		return -1;
	put_table("pairs.tsv", 'p', 96, 0);
	put_table("dev.tsv", 'p', 40, 100);
	put_table("triplets.tsv", 't', 64, 0);
	put_table("scored.tsv", 's', 64, 0);
	put_table("texts.tsv", 'u', 64, 0);
	put_table("lists.jsonl", 'l', 64, 0);
	return 0;
}

static void forget(const char *name)
{
	if (file_exists(test_path(name)))
		assert_ok(folder_remove(test_path(name)));
}

#define RUN(task, out, train, more)                                                                                              \
	"finetune --task " task " --model %s/base --train %s/" train " --out %s/" out                                            \
	" --max_seq_length 32 --threads 1 --train_batch_size 8 --learning_rate 2e-3 --log_steps 1 --no_progress "                \
	"--save_checkpoints_steps 0 --eval_steps 0 " more,                                                                       \
		test_folder, test_folder, test_folder

static double result(const char *path, const char *name)
{
	struct json_document document;
	double value = NAN;
	assert_ok(json_read(&document, path, 1 << 20));
	assert_ok(json_get_number(document.root, path, name, &value));
	json_release(&document);
	return value;
}

/* The length of the first vector on standard output. */
static double first_length(void)
{
	struct json_document document;
	const char *text = buffer_string(&program_output);
	double squares = 0;
	assert_ok(json_parse(&document, "output", text, strcspn(text, "\n")));
	for (const struct json *x = json_member(document.root, "embedding")->first_child; x; x = x->next)
		squares += x->number * x->number;
	json_release(&document);
	return sqrt(squares);
}

static void pairs_are_learned(void **state)
{
	assert_program(0, "taken as pairs: anchor; what belongs to it: positive",
		       RUN("embedding", "pairs", "pairs.tsv",
			   "--precision fp32 --num_train_steps 60 --dev %s/dev.tsv --test %s/dev.tsv"),
		       test_folder, test_folder);
	double before, after = result(test_path("pairs/eval_results.json"), "eval_ndcg@10");
	assert_program(0, "",
		       RUN("embedding", "untrained", "pairs.tsv",
			   "--precision fp32 --num_train_steps 1 --learning_rate 0 --dev %s/dev.tsv"),
		       test_folder);
	before = result(test_path("untrained/eval_results.json"), "eval_ndcg@10");
	if (!(after > before + 0.1 && after <= 1))
		fail_msg("nDCG@10 is %g before and %g after training", before, after);
	assert_true(result(test_path("pairs/eval_results.json"), "eval_loss") <
		    result(test_path("untrained/eval_results.json"), "eval_loss"));
	/* What sentence-transformers reads. */
	assert_holds("pairs/final/modules.json", "sentence_transformers.models.Normalize");
	assert_holds("pairs/final/1_Pooling/config.json", "\"pooling_mode_mean_tokens\": true");
	assert_holds("pairs/final/sentence_bert_config.json", "\"max_seq_length\": 32");
	assert_holds("pairs/final/config.json", "\"BertModel\"");
	assert_program(0, "", "verify %s/pairs", test_folder);
	assert_program(0, "", "embed --model %s/pairs --precision fp32 %s/texts.tsv", test_folder, test_folder);
	assert_near(first_length(), 1, 1e-5);
	assert_program(0, "", "evaluate --model %s/pairs --test %s/dev.tsv --precision fp32 --json", test_folder, test_folder);
	assert_printed("\"ndcg@10\"");
	assert_program(ERR_USAGE, "gives vectors, not answers", "predict --model %s/pairs %s/texts.tsv", test_folder,
		       test_folder);
	assert_said("bertc embed");
}

/* Files of a published task on pairs: here of the STS benchmark, without a header, some rows with their source. */
static void files_of_published_tasks_are_scored(void **state)
{
	put_file("sts.tsv", "main\tf\t2012\t1\t5.0\tthe cat sees a river.\tthe cat, a river sees.\n"
			    "main\tf\t2012\t2\t1.5\tthe cat sees a river.\tnobody, the moon paints.\tu\tv\n"
			    "main\tf\t2012\t3\t0\ta dog likes the moon.\tmy sister, some bread finds.\n");
	assert_program(0, "taken as scored pairs: column 6; second text: column 7; score: column 5",
		       "evaluate --task sts-b --model %s/pairs --test %s/sts.tsv --precision fp32", test_folder, test_folder);
	assert_printed("spearmanr");
	assert_program(0, "", "evaluate --task embedding --model %s/pairs --test %s/dev.tsv --precision fp32", test_folder,
		       test_folder);
	assert_program(2, "--task sst-2: '", "evaluate --task sst-2 --model %s/pairs --test %s/dev.tsv", test_folder,
		       test_folder);
	assert_said("/pairs' is a model for embedding");
	assert_program(2, "--task embeding: there is no such task\nhint: did you mean embedding?",
		       "evaluate --task embeding --model %s/pairs --test %s/dev.tsv", test_folder, test_folder);
	assert_program(2, "--task only applies to --test", "evaluate --task embedding --model %s/pairs --corpus %s/dev.tsv",
		       test_folder, test_folder);
}

/* Its texts stay as long, and its card is for sentence-transformers. */
static void a_model_is_trained_further(void **state)
{
	assert_program(
		0, "max_seq_length                32 ",
		"finetune --task embedding --model %s/pairs/final --train %s/pairs.tsv --out %s/further --num_train_steps 1 "
		"--threads 1 --precision fp32",
		test_folder, test_folder, test_folder);
	assert_holds("further/final/sentence_bert_config.json", "\"max_seq_length\": 32");
	assert_holds("further/final/README.md", "library_name: sentence-transformers");
}

/* Training with prompts equals training on files whose texts contain them, and the folder records the prompts. */
static void prompts_stand_before_texts(void **state)
{
	static const char shared[] = "--precision fp32 --num_train_steps 4 ";
	struct buffer table = {0}, prompted = {0};
	assert_ok(file_read(test_path("triplets.tsv"), 1 << 20, &table));
	char *rest = (char *)buffer_string(&table), *line = strsep(&rest, "\n");
	buffer_format(&prompted, "%s\n", line);
	while ((line = strsep(&rest, "\n")) && line[0]) {
		char *anchor = strsep(&line, "\t"), *positive = strsep(&line, "\t");
		buffer_format(&prompted, "the moon: %s\ta river: %s\ta river: %s\n", anchor, positive, line);
	}
	assert_ok(file_write(test_path("prompted.tsv"), prompted.data, prompted.size));
	buffer_release(&table);
	buffer_release(&prompted);

	assert_program(0, "'the moon: ' is put before the first text",
		       RUN("embedding", "with", "triplets.tsv",
			   "%s--query_prompt 'the moon: ' --passage_prompt 'a river: ' --dev %s/triplets.tsv"),
		       shared, test_folder);
	assert_said("'a river: ' is put before its other texts");
	assert_program(0, "", RUN("embedding", "written", "prompted.tsv", "%s--dev %s/prompted.tsv"), shared, test_folder);
	static const char *const measures[] = {"loss", "eval_loss", "eval_ndcg@10", "eval_accuracy"};
	for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++)
		assert_true(result(test_path("with/eval_results.json"), measures[i]) ==
			    result(test_path("written/eval_results.json"), measures[i]));
	assert_holds("with/final/config_sentence_transformers.json", "\"query\": \"the moon: \"");
	assert_holds("with/final/config_sentence_transformers.json", "\"document\": \"a river: \"");

	/* They are used later on. */
	assert_program(0, "", "evaluate --model %s/with --test %s/triplets.tsv --precision fp32 --json", test_folder,
		       test_folder);
	struct json_document printed;
	double ndcg = NAN;
	assert_ok(json_parse(&printed, "output", buffer_string(&program_output), program_output.size));
	assert_ok(json_get_number(printed.root, "output", "ndcg@10", &ndcg));
	json_release(&printed);
	assert_null(strstr(buffer_string(&program_output), "loss")); /* it is computed over the batches of training */
	assert_near(ndcg, result(test_path("with/eval_results.json"), "eval_ndcg@10"), 1e-9);
	assert_program(0, "", "embed --model %s/with --prompt_name query %s/texts.tsv", test_folder, test_folder);

	/* And in further training: with the folder's prompts, or with others. */
	static const char on[] = "finetune --task embedding --model %s/with --train %s/pairs.tsv --out %s/on --num_train_steps 1 "
				 "--threads 1 --train_batch_size 8 --max_seq_length 32 --fresh %s";
	assert_program(0, "has prompts, which are used with pairs and triplets", on, test_folder, test_folder, test_folder, "");
	assert_holds("on/final/config_sentence_transformers.json", "\"document\": \"a river: \"");
	assert_program(0, "'the moon: ' is put before", on, test_folder, test_folder, test_folder, "--document_prompt ''");
	assert_holds("on/final/config_sentence_transformers.json", "\"document\": \"\"");
}

/* Where prompts do not apply. */
static void prompts_are_refused(void **state)
{
	assert_program(ERR_USAGE, "--query_prompt is for --task embedding, not reranking",
		       RUN("reranking", "none", "scored.tsv", "--query_prompt 'query: '"));
}

/* Compares the losses of 6 steps with those of `out`. */
static void same_curve(const char *out, const char *other)
{
	char a[64], b[64];
	snprintf(a, sizeof a, "%s/metrics.jsonl", out);
	snprintf(b, sizeof b, "%s/metrics.jsonl", other);
	for (int64_t step = 1; step <= 6; step++) {
		double one = metric_at(test_path(a), step, "loss"), two;
		two = metric_at(test_path(b), step, "loss");
		assert_true(one > 0);
		assert_near(one, two, 2e-5 * one);
	}
}

/* Every text is compared with all texts of the step, and dropout has the same masks in both forward passes. */
static void a_step_is_the_same_however_it_is_cut(void **state)
{
#define SHORT(out, train, more) RUN("embedding", out, train, "--precision fp32 --num_train_steps 6 " more)
	assert_program(0, "", SHORT("whole", "triplets.tsv", ""));
	assert_program(0, "", SHORT("two", "triplets.tsv", "--gradient_accumulation_steps 2"));
	same_curve("whole", "two");
	assert_program(0, "", SHORT("eight", "triplets.tsv", "--gradient_accumulation_steps 8"));
	same_curve("whole", "eight");
	assert_program(0, "", SHORT("ranks", "triplets.tsv", "--ranks 2 --gradient_accumulation_steps 2"));
	same_curve("whole", "ranks");
	assert_program(0, "", SHORT("whole_scored", "scored.tsv", ""));
	assert_program(0, "", SHORT("ranks_scored", "scored.tsv", "--ranks 2 --gradient_accumulation_steps 4"));
	same_curve("whole_scored", "ranks_scored");
}

/* Weights of words, learned with the gradients of a whole step, too, and measured by dot products. */
static void weights_of_words_are_learned(void **state)
{
	assert_program(0, "FLOPS", SHORT("words", "triplets.tsv", "--pooling splade --dev %s/dev.tsv"), test_folder);
	assert_program(0, "", SHORT("words_two", "triplets.tsv", "--pooling splade --gradient_accumulation_steps 2"));
	same_curve("words", "words_two");
	assert_program(0, "", SHORT("words_ranks", "triplets.tsv", "--pooling splade --ranks 2"));
	same_curve("words", "words_ranks");
	assert_holds("words/final/modules.json", "sentence_transformers.sparse_encoder.models.SpladePooling");
	assert_holds("words/final/1_SpladePooling/config.json", "\"pooling_strategy\": \"max\"");
	assert_holds("words/final/config_sentence_transformers.json", "\"SparseEncoder\"");
	assert_holds("words/final/config.json", "\"BertForMaskedLM\"");
	assert_program(0, "", "verify %s/words", test_folder);
	assert_program(0, "", "embed --model %s/words --precision fp32 %s/texts.tsv", test_folder, test_folder);
	assert_printed("{\"embedding\":{\"");
	assert_program(0, "", "evaluate --model %s/words --test %s/dev.tsv --precision fp32 --json", test_folder, test_folder);
	assert_printed("\"ndcg@10\"");
	assert_ok(folder_make(test_path("beir")));
	assert_ok(folder_make(test_path("beir/qrels")));
	put_file("beir/corpus.jsonl", "{\"_id\": \"a\", \"text\": \"the cat\"}\n{\"_id\": \"b\", \"text\": \"a dog\"}\n");
	put_file("beir/queries.jsonl", "{\"_id\": \"q\", \"text\": \"the cat\"}\n");
	put_file("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\ta\t1\n");
	assert_program(0, "", "evaluate --retrieval %s/beir --model %s/words --precision fp32", test_folder, test_folder);
	assert_printed("corpus_active_dims");
	assert_program(ERR_USAGE, "weighs words, and this needs vectors",
		       "mine --model %s/words --train %s/pairs.tsv --out %s/m.jsonl", test_folder, test_folder, test_folder);
	forget("other");
	assert_program(ERR_USAGE, "--matryoshka_dims and --teacher_vectors are for vectors",
		       SHORT("other", "pairs.tsv", "--pooling splade --matryoshka_dims 8"));
}

static void same_model(const char *run, const char *other)
{
	struct buffer one = {0}, two = {0};
	char path[64];
	snprintf(path, sizeof path, "%s/final/model.safetensors", run);
	assert_ok(file_read(test_path(path), 1 << 24, &one));
	snprintf(path, sizeof path, "%s/final/model.safetensors", other);
	assert_ok(file_read(test_path(path), 1 << 24, &two));
	assert_int_equal(one.size, two.size);
	assert_memory_equal(one.data, two.data, one.size);
	buffer_release(&one);
	buffer_release(&two);
}

/* Two runs with the same options, one of them with a break: the same weights. */
#define WITH_A_BREAK(train, more)                                                                                                \
	do {                                                                                                                     \
		forget("straight");                                                                                              \
		forget("halves");                                                                                                \
		assert_program(0, "", SHORT("straight", train, more));                                                           \
		assert_program(STOPPED, "", SHORT("halves", train, "--stop_at_step 3 " more));                                   \
		assert_program(0, "", SHORT("halves", train, more));                                                             \
		same_model("straight", "halves");                                                                                \
	} while (0)

static void an_interruption_changes_nothing(void **state)
{
	WITH_A_BREAK("pairs.tsv", "");
	WITH_A_BREAK("pairs.tsv", "--matryoshka_dims 32,8");
}

/* Nor with what other models say about the examples, which must not change meanwhile. */
static void an_interruption_changes_no_aims(void **state)
{
	char command[512];
#define AIMS(out, more) SHORT(out, "texts.tsv", "--teacher_vectors %s/aims.npy " more), test_folder
#define PUT_AIMS(pooling)                                                                                                        \
	assert_program(0, "", "embed --model %s/base --pooling " pooling " %s/rows.txt --out %s/aims.npy --precision fp32",      \
		       test_folder, test_folder, test_folder)
	PUT_AIMS("cls");
	assert_program(0, "", AIMS("taught", ""));
	assert_program(STOPPED, "", AIMS("taught_halves", "--stop_at_step 3"));
	PUT_AIMS("mean");
	assert_program(ERR_STATE, "the training examples have changed since", AIMS("taught_halves", ""));
	PUT_AIMS("cls");
	assert_program(0, "", AIMS("taught_halves", ""));
	same_model("taught", "taught_halves");
	WITH_A_BREAK("margins.jsonl", "--triplet_loss margin_mse");
	forget("halves");
	assert_program(STOPPED, "", SHORT("halves", "margins.jsonl", "--stop_at_step 3 --triplet_loss margin_mse"));
	snprintf(command, sizeof command, "sed -i 's/\"scores\": *\\[/&-/' %s/margins.jsonl", test_folder);
	assert_int_equal(system(command), 0);
	assert_program(ERR_STATE, "the training examples have changed since", SHORT("halves", "margins.jsonl", ""));
}

static void every_form_is_told_by_its_columns(void **state)
{
	char command[512];
	forget("form");
	assert_program(0, "taken as triplets: anchor; what belongs to it: positive; what does not: negative",
		       SHORT("form", "triplets.tsv", "--dev t=%s/triplets.tsv s=%s/scored.tsv --pooling cls"), test_folder,
		       test_folder);
	assert_true(isfinite(result(test_path("form/eval_results.json"), "eval_t_accuracy")));
	assert_true(isfinite(result(test_path("form/eval_results.json"), "eval_s_spearmanr")));
	assert_holds("form/final/1_Pooling/config.json", "\"pooling_mode_cls_token\": true");
	forget("form");
	assert_program(0, "taken as texts alone: sentence", SHORT("form", "texts.tsv", "--dev %s/scored.tsv --plan"),
		       test_folder);
	assert_said("SimCSE");
	forget("form");
	assert_program(0, "taken as scored pairs: sentence1; second text: sentence2; score: score",
		       SHORT("form", "scored.tsv", "--plan"));
	assert_said("CoSENT");
	forget("form");
	snprintf(command, sizeof command, "sed '1s/.*/text\\tpair\\tscore/' %s/scored.tsv >%s/pair.tsv", test_folder,
		 test_folder);
	assert_int_equal(system(command), 0);
	assert_program(0, "taken as scored pairs: text; second text: pair; score: score", SHORT("form", "pair.tsv", "--plan"));
	forget("form");
	assert_program(0, "squared difference", SHORT("form", "scored.tsv", "--score_loss cosine --plan"));
	forget("form");
	assert_program(0, "taken as triplets: query; what belongs to it: documents",
		       SHORT("form", "lists.jsonl", "--dev %s/lists.jsonl --plan"), test_folder);
	assert_null(strstr(buffer_string(&program_errors), "taken as scored pairs"));
	forget("form");
	assert_program(0, "taken as triplets: query; what belongs to it: documents",
		       SHORT("form", "lists.jsonl", "--pair_column documents --plan"));
	put_file("bare.tsv", "the cat sees it.\tthe cat, it sees.\na dog likes it.\ta dog, it likes.\n");
	forget("form");
	assert_program(0, "taken as pairs: column 1; what belongs to it: column 2", SHORT("form", "bare.tsv", "--plan"));
	put_file("passages.tsv", "the query\tpositive_passages\nwho?\tthe cat\nwhat?\ta dog\n");
	forget("form");
	assert_program(ERR_DATA, "its columns are 1 the query, 2 positive_passages", SHORT("form", "passages.tsv", "--plan"));
	put_file("twice.tsv", "question\tanswer\nwho?\tthe cat\nwhat?\tthe cat\nhow?\tbread\n");
	forget("form");
	assert_program(0, "1 of 3 second texts occur more than once", SHORT("form", "twice.tsv", "--plan"));
}

static void rerankers_score_pairs(void **state)
{
	assert_program(0, "taken as scored pairs: query; second text: documents; score: labels",
		       RUN("reranking", "rank", "lists.jsonl",
			   "--precision fp32 --num_train_steps 120 --learning_rate 5e-3 --hidden_dropout_prob 0 --dev "
			   "%s/lists.jsonl --test %s/lists.jsonl"),
		       test_folder, test_folder);
	double ndcg = result(test_path("rank/eval_results.json"), "eval_ndcg@10");
	assert_true(ndcg > 0 && ndcg <= 1);
	/* Answering 1/2 to everything would cost ln 2. */
	assert_true(result(test_path("rank/eval_results.json"), "eval_loss") < log(2));
	assert_int_equal(result(test_path("rank/eval_results.json"), "eval_examples"), 3 * 64);
	assert_holds("rank/final/config.json", "BertForSequenceClassification");
	assert_holds("rank/report.html", "a random order gives");
	assert_holds("rank/report.html", "Predicted and right values");
	put_file("asked.jsonl", "{\"id\": \"q7\", \"query\": \"the cat sees it.\", \"passage\": \"the cat, it sees.\"}\n");
	assert_program(0, "", "predict --model %s/rank %s/asked.jsonl", test_folder, test_folder);
	assert_printed("{\"id\":\"q7\",\"score\":0.");
	double share = strtod(strstr(buffer_string(&program_output), "\"score\":") + 8, NULL);
	put_file("rank/final/config_sentence_transformers.json", "{\"activation_fn\": \"torch.nn.modules.linear.Identity\"}");
	assert_program(0, "", "predict --model %s/rank %s/asked.jsonl", test_folder, test_folder);
	double output = strtod(strstr(buffer_string(&program_output), "\"score\":") + 8, NULL);
	assert_true(fabs(1 / (1 + exp(-output)) - share) < 1e-6 && fabs(output - share) > 1e-3);
	assert_int_equal(remove(test_path("rank/final/config_sentence_transformers.json")), 0);
	char command[512];
	/* A list has a score for each of its texts; a text that only looks like a list has one score. */
	put_file("looks.jsonl",
		 "{\"query\": \"a\", \"passage\": [\"b\", \"c\"]}\n{\"query\": \"a\", \"passage\": \"[1, 2, 3]\"}\n");
	assert_program(0, "", "predict --model %s/rank %s/looks.jsonl --out %s/looks.answers", test_folder, test_folder,
		       test_folder);
	snprintf(command, sizeof command, "[ $(wc -l <%s/looks.answers) -eq 3 ]", test_folder);
	assert_int_equal(system(command), 0);
	/* In a file with more lines than a chunk holds, each line is answered once. */
	snprintf(command, sizeof command, "for i in $(seq 1100); do cat %s/asked.jsonl; done >%s/long.jsonl", test_folder,
		 test_folder);
	assert_int_equal(system(command), 0);
	assert_program(0, "", "predict --model %s/rank %s/long.jsonl --out %s/long.answers", test_folder, test_folder,
		       test_folder);
	snprintf(command, sizeof command, "[ $(wc -l <%s/long.answers) -eq 1100 ]", test_folder);
	assert_int_equal(system(command), 0);
}

/* Lists are learned, the dev set's loss is that of its queries, and a finished model is like any other reranker. */
static void rerankers_learn_lists(void **state)
{
	static const char *const learned[] = {"listwise", "listnet"};
	char out[32];
	for (size_t i = 0; i < 2; i++) {
		snprintf(out, sizeof out, "list_%s/eval_results.json", learned[i]);
		assert_program(0, "192 pairs are 64 lists of the texts of a query, of at most 3; 64 can be learned from",
			       RUN("reranking", "list_%s", "lists.jsonl",
				   "--precision fp32 --num_train_steps 60 --learning_rate 5e-3 --hidden_dropout_prob 0 --dev "
				   "%s/lists.jsonl --ranking_loss %s"),
			       learned[i], test_folder, learned[i]);
		/* Answering the same to everything costs ln 3. */
		double loss = result(test_path(out), "eval_loss");
		if (!(loss > 0 && loss < log(3) - 0.01))
			fail_msg("%s: the loss is %g", learned[i], loss);
	}
	assert_program(0, "", "evaluate --model %s/list_listwise --test %s/lists.jsonl --precision fp32 --json", test_folder,
		       test_folder);
	assert_printed("\"ndcg@10\"");
	/* Scores of triplets are targets for margins, and refused by losses that take them for probabilities. */
	put_file("judged.jsonl", "{\"query\": \"a\", \"positive\": \"b\", \"negative\": \"c\", \"scores\": [7.5, -2]}\n"
				 "{\"query\": \"d\", \"positive\": \"c\", \"negative\": \"b\", \"scores\": [3, 1]}\n");
	assert_program(0, "loss",
		       RUN("reranking", "list_margins", "judged.jsonl",
			   "--precision fp32 --num_train_steps 1 --learning_rate 0 --train_batch_size 2 "
			   "--ranking_loss margin_mse --hidden_dropout_prob 0"));
	put_file("judged_one.jsonl", "{\"query\": \"a\", \"documents\": [\"b\", \"c\"], \"labels\": [7.5, -2]}\n");
	assert_program(ERR_DATA, "line 1: the score -2 is below 0",
		       RUN("reranking", "list_refused", "judged_one.jsonl", "--ranking_loss listwise"));
	put_file("singles.tsv", "query\tpassage\tscore\na\tb\t1\nc\td\t0\n");
	assert_program(ERR_DATA, "no query has several texts one after the other",
		       RUN("reranking", "list_refused", "singles.tsv", "--ranking_loss listwise"));
}

/* Rows that are read piece by piece get the same answers as those of a list, which is read whole. The last rows have a key
 * that the first ones lack. `list`: all rows as one list. */
static void put_many(const char *name, bool list)
{
	struct buffer text = {0};
	buffer_text(&text, list ? "[" : "");
	for (int i = 0; i < 1500; i++) {
		const char *a = who[i % 6], *b = does[i % 5], *c = what[i / 7 % 5];
		buffer_format(&text, "%s{\"id\": \"q%d\", \"query\": \"%s %s\", \"passage\": [\"%s %s\", \"%s\"]",
			      i > 0 && list ? ",\n" : "", i, a, b, b, c, c);
		if (i >= 1400)
			buffer_format(&text, ", \"negative\": \"%s %s\"", c, a);
		buffer_text(&text, list ? "}" : "}\n");
	}
	buffer_text(&text, list ? "]\n" : "");
	assert_ok(file_write(test_path(name), text.data, text.size));
	buffer_release(&text);
}

static void rerankers_read_piece_by_piece(void **state)
{
	char command[512];
	put_many("many.jsonl", false);
	put_many("many.json", true);
	assert_program(0, "", "predict --model %s/rank %s/many.jsonl --out %s/many.pieces", test_folder, test_folder,
		       test_folder);
	assert_program(0, "", "predict --model %s/rank %s/many.json --out %s/many.whole", test_folder, test_folder, test_folder);
	snprintf(command, sizeof command, "cmp %s/many.pieces %s/many.whole && [ $(wc -l <%s/many.whole) -eq 3100 ]", test_folder,
		 test_folder, test_folder);
	assert_int_equal(system(command), 0);
	/* Columns without names mean in every piece what they mean in the first one: triplets stay triplets even if only
	 * numbers follow. */
	snprintf(command, sizeof command,
		 "for i in $(seq 1100); do printf 'the cat\\ta dog\\tbread\\n'; done >%s/names.tsv; for i in $(seq 1100); do "
		 "printf "
		 "'the cat\\ta dog\\t7\\n'; done >>%s/names.tsv",
		 test_folder, test_folder);
	assert_int_equal(system(command), 0);
	assert_program(0, "what does not: column 3", "predict --model %s/rank %s/names.tsv --out %s/names.answers", test_folder,
		       test_folder, test_folder);
	snprintf(command, sizeof command, "[ $(wc -l <%s/names.answers) -eq 4400 ]", test_folder);
	assert_int_equal(system(command), 0);
	/* The choice of the text column does not change in the middle of a file. */
	snprintf(command, sizeof command,
		 "for i in $(seq 1100); do echo '{\"text\": \"a\", \"passage\": \"b\"}'; done >%s/late.jsonl; echo '{\"query\": "
		 "\"c\", "
		 "\"passage\": \"d\"}' >>%s/late.jsonl",
		 test_folder, test_folder);
	assert_int_equal(system(command), 0);
	assert_program(ERR_DATA, "late.jsonl': the keys from line 1025 on change which members hold the texts",
		       "predict --model %s/rank %s/late.jsonl --out %s/late.answers", test_folder, test_folder, test_folder);
}

/* Pairs to which a model and a reranker add negatives are triplets to train on. */
static void mined_negatives_are_learned(void **state)
{
	assert_program(0, "288 negatives for 96 pairs, in 96 rows",
		       "mine --model %s/pairs --reranker %s/rank --max_score 2 --train %s/pairs.tsv --corpus %s/texts.tsv --out "
		       "%s/mined.jsonl --precision fp32 --threads 1",
		       test_folder, test_folder, test_folder, test_folder, test_folder);
	assert_said("reranking: 96 queries");
	assert_null(strstr(buffer_string(&program_errors), "(null)")); /* a bar within the bar, without a title */
	forget("mined");
	assert_program(0, "taken as triplets: anchor; what belongs to it: positive; what does not: negatives",
		       SHORT("mined", "mined.jsonl", ""));
	assert_program(ERR_USAGE, "does not give one number for a pair",
		       "mine --model %s/pairs --reranker %s/base --train %s/pairs.tsv --out %s/mined.jsonl", test_folder,
		       test_folder, test_folder, test_folder);
	assert_program(ERR_USAGE, "answers a task and makes no vectors",
		       "mine --model %s/rank --train %s/pairs.tsv --out %s/mined.jsonl", test_folder, test_folder, test_folder);
}

/* Each other loss lowers itself on its own rows. */
static void other_losses_are_learned(void **state)
{
	char command[512];
	forget("other");
	assert_program(0, "vectors may be cut to 32,8 numbers",
		       SHORT("other", "pairs.tsv",
			     "--matryoshka_dims 32,8 "
			     "--matryoshka_weights 1,0.5"));
	forget("other");
	assert_program(ERR_USAGE, "widths of vectors are different whole numbers from 1 to",
		       SHORT("other", "pairs.tsv", "--matryoshka_dims 8,999"));
	forget("other");
	assert_program(ERR_USAGE, "widths of vectors are different whole numbers from 1 to",
		       SHORT("other", "pairs.tsv", "--matryoshka_dims 8,16,8"));
	forget("other");
	assert_program(ERR_USAGE, "there must be a number above 0 for each",
		       SHORT("other", "pairs.tsv", "--matryoshka_dims 8,4 --matryoshka_weights 1"));
	/* Vectors of the model that is trained: nothing is left to learn. */
	snprintf(command, sizeof command, "tail -n +2 %s/texts.tsv >%s/rows.txt", test_folder, test_folder);
	assert_int_equal(system(command), 0);
	assert_program(0, "", "embed --model %s/base --pooling mean %s/rows.txt --out %s/rows.npy --precision fp32", test_folder,
		       test_folder, test_folder);
	forget("other");
	assert_program(0, "loss: squared difference from the vectors of",
		       SHORT("other", "texts.tsv",
			     "--teacher_vectors %s/rows.npy --hidden_dropout_prob 0 "
			     "--attention_probs_dropout_prob 0"),
		       test_folder);
	forget("other");
	assert_program(ERR_DATA, "has 64 vectors, and there are 96 training examples",
		       SHORT("other", "pairs.tsv", "--teacher_vectors %s/rows.npy"), test_folder);
	snprintf(command, sizeof command, "truncate -s -4 %s/rows.npy && printf '\\0\\0\\300\\177' >>%s/rows.npy", test_folder,
		 test_folder);
	assert_int_equal(system(command), 0);
	assert_program(ERR_DATA, "rows.npy': row 64 has a number that is not finite",
		       SHORT("other", "texts.tsv", "--teacher_vectors %s/rows.npy"), test_folder);
	/* Where every text but its own is nearer than by -2, each text has only its positive: nothing is left to learn. */
	forget("other");
	assert_program(0, "", SHORT("other", "pairs.tsv", "--false_negative_gap -2"));
	assert_holds("other/metrics.jsonl", "\"loss\":0.0,");
	/* Scores of positives and negatives. */
	assert_program(
		0, "",
		"mine --model %s/pairs --output_scores --train %s/pairs.tsv --out %s/margins.jsonl --precision fp32 --threads 1",
		test_folder, test_folder, test_folder);
	forget("other");
	assert_program(0, "loss: squared difference of margins", SHORT("other", "margins.jsonl", "--triplet_loss margin_mse"));
	forget("other");
	assert_program(ERR_DATA, "\"scores\" is not a list with a score for the positive and each of the 3 negatives",
		       SHORT("other", "mined.jsonl", "--triplet_loss margin_mse"));
	forget("other");
	assert_program(ERR_USAGE, "--triplet_loss margin_mse needs triplets, not pairs",
		       SHORT("other", "pairs.tsv", "--triplet_loss margin_mse"));
}

/* Sets with names are learned side by side, each with its own loss: a step's loss is that of one of them. */
static void several_sets_are_learned(void **state)
{
#define SETS(out, more) SHORT(out, "pairs.tsv", "--train scored=%s/scored.tsv margins=%s/margins.jsonl " more)
#define LOSSES "--train_losses scored:cosine,margins:margin_mse "
	struct buffer one = {0};
	forget("other");
	assert_program(0, "loss of margins: squared difference of margins between cosines and between scores",
		       SETS("other", LOSSES "--dev %s/dev.tsv"), test_folder, test_folder, test_folder);
	assert_program(0, "", SETS("sets", LOSSES "--ranks 2 --gradient_accumulation_steps 2"), test_folder, test_folder);
	same_curve("other", "sets");
	forget("sets");
	assert_program(STOPPED, "", SETS("sets", LOSSES "--stop_at_step 3 --dev %s/dev.tsv"), test_folder, test_folder,
		       test_folder);
	assert_program(0, "", SETS("sets", LOSSES "--threads 2 --dev %s/dev.tsv"), test_folder, test_folder, test_folder);
	same_model("other", "sets");
	/* With this gap, steps of pairs have the loss 0, and the others do not. */
	int zeros = 0;
	forget("other");
	assert_program(0, "", SETS("other", LOSSES "--false_negative_gap -2"), test_folder, test_folder);
	for (int64_t step = 1; step <= 6; step++)
		zeros += metric_at(test_path("other/metrics.jsonl"), step, "loss") == 0;
	assert_ok(file_read(test_path("other/metrics.jsonl"), 1 << 20, &one));
	assert_non_null(strstr(buffer_string(&one), "\"phase\":1,\"train_set\":\"scored\","));
	buffer_release(&one);
	assert_in_range(zeros, 1, 5);
	forget("other");
	assert_program(
		0, "only the first 16 of each training set are used: 32 of 160 examples",
		SHORT("other", "pairs.tsv", "--train scored=%s/scored.tsv --max_train_samples 16 --train_losses scored:cosine"),
		test_folder);
	forget("other");
	assert_program(ERR_USAGE, "'news:2' is not the name of a training set and a value",
		       SETS("other", "--train_weights scored:1,news:2"), test_folder, test_folder);
	assert_program(ERR_USAGE, "the set '' has no weight above 0", SETS("other", "--train_weights scored:1,margins:2"),
		       test_folder, test_folder);
	assert_program(ERR_USAGE, "--train_losses: the set 'scored' is named twice",
		       SETS("other", "--train_losses scored:cosine,scored:cosent"), test_folder, test_folder);
	assert_program(ERR_USAGE, "losses are in_batch, cosent, cosine, and margin_mse",
		       SETS("other", "--train_losses scored:mse"), test_folder, test_folder);
	assert_program(ERR_USAGE, "--train_losses scored:in_batch is not for scored pairs",
		       SETS("other", "--train_losses scored:in_batch"), test_folder, test_folder);
	assert_program(ERR_USAGE, "--teacher_vectors and several training sets do not go together",
		       SETS("other", "--teacher_vectors %s/rows.npy"), test_folder, test_folder, test_folder);
	put_file("unscorable.tsv", "sentence1\tsentence2\tscore\na\tb\thigh\nc\td\tlow\n");
	assert_program(ERR_DATA, "none of the rows of the training set 'bad' can be used",
		       SHORT("other", "pairs.tsv", "--train bad=%s/unscorable.tsv --on_bad_record skip"), test_folder);
}

/* A guide with the weights of the model, which stay as they are, chooses the negatives that the model itself would. */
static void a_guide_chooses_negatives(void **state)
{
#define STILL(out, more)                                                                                                         \
	SHORT(out, "triplets.tsv",                                                                                               \
	      "--model %s/pairs --learning_rate 1e-9 --hidden_dropout_prob 0 --attention_probs_dropout_prob 0 " more),           \
		test_folder
	forget("still");
	assert_program(0, "", STILL("still", "--false_negative_gap -0.4"));
	assert_program(0, "vectors of 32 numbers for 192 texts", STILL("guided", "--false_negative_gap -0.4 --guide %s/pairs"),
		       test_folder);
	same_curve("still", "guided");
	assert_program(0, "", STILL("shared", "--ranks 2 --false_negative_gap -0.4 --guide %s/pairs"), test_folder);
	same_curve("still", "shared");
	forget("still");
	assert_program(0, "", STILL("still", ""));
	assert_true(metric_at(test_path("still/metrics.jsonl"), 1, "loss") >
		    1.01 * metric_at(test_path("guided/metrics.jsonl"), 1, "loss"));
	/* A resumed run keeps its guide. */
	forget("guided");
	assert_program(STOPPED, "", STILL("guided", "--stop_at_step 3 --guide %s/pairs"), test_folder);
	assert_program(ERR_STATE, "have changed since", STILL("guided", "--guide %s/base"), test_folder);
	assert_program(0, "vectors of 32 numbers", STILL("guided", ""));
	assert_program(ERR_USAGE, "--guide is for in-batch negatives", SHORT("other", "scored.tsv", "--guide %s/pairs"),
		       test_folder);
	assert_program(ERR_USAGE, "makes no vectors", SHORT("other", "pairs.tsv", "--guide %s/rank"), test_folder);
	assert_program(ERR_USAGE, "give an embedding model", SHORT("other", "pairs.tsv", "--guide %s/absent"), test_folder);
}

/* A dev set with scores has the loss that is learned: at the first step, that of the whole file. */
static void dev_sets_have_the_loss_that_is_learned(void **state)
{
	static const char *const losses[] = {"cosine", "cosent"};
	for (int i = 0; i < 2; i++) {
		forget("other");
		assert_program(
			0, "",
			RUN("embedding", "other", "scored.tsv",
			    "--precision fp32 --num_train_steps 1 --learning_rate 0 --train_batch_size 64 "
			    "--hidden_dropout_prob 0 --attention_probs_dropout_prob 0 --dev %s/scored.tsv --score_loss %s"),
			test_folder, losses[i]);
		double loss = metric_at(test_path("other/metrics.jsonl"), 1, "loss");
		assert_near(result(test_path("other/eval_results.json"), "eval_loss"), loss, 1e-4 * loss);
	}
	/* Without training there is no loss of a whole step. */
	assert_program(0, "nothing is trained",
		       "finetune --task embedding --do_eval --model %s/other --dev %s/scored.tsv --out %s/asked --threads 1",
		       test_folder, test_folder, test_folder);
	assert_printed("spearmanr");
	assert_null(strstr(buffer_string(&program_output), "loss"));
}

static void files_to_predict_need_no_scores(void **state)
{
	put_file("marked.tsv", "a\tb\tmark\nthe cat\ta dog\t0.5\nthe cat\tbread\t0.1\n");
	put_file("unmarked.tsv", "a\tb\nthe cat\ta dog\n");
	forget("other");
	assert_program(0, "predictions for the test set",
		       RUN("embedding", "other", "marked.tsv",
			   "--num_train_steps 1 --text_column a --pair_column b --label_column mark --test %s/unmarked.tsv"),
		       test_folder);
}

/* "scores" are numbers, one for each text: an empty negative has none. */
static void scores_of_margins_are_checked(void **state)
{
	static const char *const bad[] = {"[1, null]", "[1, true]", "[1, [2]]", "{\"a\": 1, \"b\": 2}", "1", "[1]", "[1, 2, 3]"};
	char text[256];
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, "{\"anchor\": \"a b\", \"positive\": \"a\", \"negative\": \"x\", \"scores\": %s}\n",
			 bad[i]);
		put_file("margin.jsonl", text);
		assert_program(ERR_DATA, "margin.jsonl', line 1: \"scores\" is not a list with a score for the positive",
			       SHORT("bad", "margin.jsonl", "--triplet_loss margin_mse"));
	}
	put_file("margin.jsonl",
		 "{\"anchor\": \"a b\", \"positive\": \"a\", \"negatives\": [\"\", \"x\"], \"scores\": [3, 2, 1]}\n");
	assert_program(ERR_DATA, "each of the 1 negatives", SHORT("bad", "margin.jsonl", "--triplet_loss margin_mse"));
}

/* Options of one task are not for others. */
static void options_of_other_tasks_are_refused(void **state)
{
	put_file("feelings.tsv", "text\tlabel\nthe cat\tgood\na dog\tbad\n");
	assert_program(ERR_USAGE, "--guide is for --task embedding, not classification",
		       RUN("classification", "bad", "feelings.tsv", "--guide /absent"));
	assert_program(ERR_USAGE, "--matryoshka_dims is for --task embedding, not reranking",
		       RUN("reranking", "bad", "scored.tsv", "--matryoshka_dims 8"));
	assert_program(ERR_USAGE, "--ranking_loss is for --task reranking, not embedding",
		       SHORT("bad", "pairs.tsv", "--ranking_loss listnet"));
	assert_program(ERR_USAGE, "--labels is for tasks that choose among classes or labels, not for embedding",
		       SHORT("bad", "pairs.tsv", "--labels a,b"));
	assert_program(ERR_USAGE, "--negative_label is for tasks that choose among classes or labels, not for embedding",
		       SHORT("bad", "pairs.tsv", "--negative_label x"));
}

static void bad_input_is_explained(void **state)
{
	forget("bad");
	assert_program(ERR_USAGE, "--train_batch_size is 1", SHORT("bad", "pairs.tsv", "--train_batch_size 1"));
	put_file("one.tsv", "anchor\tpositive\nthe cat\ta dog\n");
	forget("bad");
	assert_program(ERR_USAGE, "there is one training example", SHORT("bad", "one.tsv", ""));
	put_file("unscored.tsv", "sentence1\tsentence2\tscore\nthe cat\ta dog\t0.5\nthe cat\tbread\t\n");
	forget("bad");
	assert_program(ERR_DATA, "unscored.tsv', line 3: the pair has no score", SHORT("bad", "unscored.tsv", ""));
	put_file("nan.tsv", "sentence1\tsentence2\tscore\nthe cat\ta dog\t0.5\nthe cat\tbread\tnan\n");
	forget("bad");
	assert_program(ERR_DATA, "nan.tsv', line 3: the label 'nan' is not a number", SHORT("bad", "nan.tsv", ""));
	put_file("half.tsv", "anchor\tpositive\nthe cat\ta dog\nthe cat\t \n");
	forget("bad");
	assert_program(ERR_DATA, "half.tsv', line 3: the second text is empty", SHORT("bad", "half.tsv", ""));
	forget("bad");
	assert_program(0, "half.tsv': 1 bad record left out",
		       SHORT("bad", "half.tsv",
			     "--on_bad_record skip --train_batch_size 2 "
			     "--train %s/pairs.tsv"),
		       test_folder);
	put_file("wide.tsv", "sentence1\tsentence2\tscore\nthe cat\ta dog\t4.5\nthe cat\tbread\t1\n");
	forget("bad");
	assert_program(ERR_DATA, "wide.tsv', line 2: the score 4.5 is not between -1 and 1",
		       SHORT("bad", "wide.tsv", "--score_loss cosine"));
	forget("bad");
	assert_program(ERR_DATA, "wide.tsv', line 2: the score 4.5 is not between -1 and 1",
		       SHORT("bad", "scored.tsv", "--score_loss cosine --dev %s/wide.tsv"), test_folder);
	forget("bad");
	assert_program(ERR_DATA, "a reranker learns scores from 0 to 1",
		       RUN("reranking", "bad", "wide.tsv", "--precision fp32 --num_train_steps 2"));
	forget("bad");
	assert_program(ERR_DATA, "neither a score nor texts that do not belong",
		       RUN("reranking", "bad", "pairs.tsv", "--precision fp32 --num_train_steps 2"));
	put_file("numbered.tsv", "news\t1\tthe cat sees it.\tthe cat, it sees.\nnews\t2\ta dog likes it.\ta dog, it likes.\n");
	forget("bad");
	assert_program(ERR_DATA, "there is no header, and its columns do not say what they are",
		       SHORT("bad", "numbered.tsv", "--plan"));
	forget("bad");
	assert_program(0, "taken as pairs: column 3; what belongs to it: column 4",
		       SHORT("bad", "numbered.tsv", "--plan --text_column 3 --pair_column 4"));
	put_file("odd.jsonl", "{\"colour\": \"red\", \"size\": \"big\"}\n");
	forget("bad");
	assert_program(ERR_DATA, "odd.jsonl': which column has the texts?; its columns are 1 colour, 2 size",
		       SHORT("bad", "odd.jsonl", ""));
	forget("bad");
	assert_program(ERR_DATA, "there is one text a row where two are needed", SHORT("bad", "pairs.tsv", "--dev %s/texts.tsv"),
		       test_folder);
}

/* The best run's folder is published completely, including the subfolder that describes the pooling; damage there is
 * found. */
static void a_sweep_publishes_the_whole_folder(void **state)
{
	assert_program(OK, "the best run is seed=1",
		       "finetune --task embedding --model %s/base --train %s/pairs.tsv --dev %s/dev.tsv --out %s/swept "
		       "--sweep seed=1 --max_seq_length 32 --precision fp32 --threads 1 --train_batch_size 16 "
		       "--num_train_steps 2 --no_progress",
		       test_folder, test_folder, test_folder, test_folder);
	assert_same_file(test_path("swept/final/1_Pooling/config.json"), test_path("swept/seed=1/final/1_Pooling/config.json"));
	assert_program(OK, "", "verify %s/swept/final", test_folder);
	assert_program(OK, "", "embed --model %s/swept --threads 1 %s/texts.tsv", test_folder, test_folder);
	put_file("swept/final/1_Pooling/config.json", "{}");
	assert_program(ERR_DATA, "'1_Pooling/config.json' has 2 bytes", "verify %s/swept/final", test_folder);
}

/* Nor do its runs learn from different vectors or guides. */
static void a_sweep_keeps_what_other_models_say(void **state)
{
#define SWEPT(out, train, more)                                                                                                  \
	SHORT(out, train, "--num_train_steps 1 --dev %s/dev.tsv --sweep seed=1 " more), test_folder, test_folder
	PUT_AIMS("cls");
	assert_program(0, "", SWEPT("swept_aims", "texts.tsv", "--teacher_vectors %s/aims.npy"));
	PUT_AIMS("mean");
	assert_program(ERR_STATE, "", SWEPT("swept_aims", "texts.tsv", "--teacher_vectors %s/aims.npy"));
	assert_program(0, "", SWEPT("swept_guided", "pairs.tsv", "--guide %s/pairs"));
	assert_program(ERR_STATE, "", SWEPT("swept_guided", "pairs.tsv", "--guide %s/base"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_are_learned),
		cmocka_unit_test(files_of_published_tasks_are_scored),
		cmocka_unit_test(a_model_is_trained_further),
		cmocka_unit_test(a_step_is_the_same_however_it_is_cut),
		cmocka_unit_test(weights_of_words_are_learned),
		cmocka_unit_test(an_interruption_changes_nothing),
		cmocka_unit_test(every_form_is_told_by_its_columns),
		cmocka_unit_test(rerankers_score_pairs),
		cmocka_unit_test(rerankers_learn_lists),
		cmocka_unit_test(prompts_stand_before_texts),
		cmocka_unit_test(prompts_are_refused),
		cmocka_unit_test(rerankers_read_piece_by_piece),
		cmocka_unit_test(mined_negatives_are_learned),
		cmocka_unit_test(other_losses_are_learned),
		cmocka_unit_test(several_sets_are_learned),
		cmocka_unit_test(an_interruption_changes_no_aims),
		cmocka_unit_test(a_guide_chooses_negatives),
		cmocka_unit_test(dev_sets_have_the_loss_that_is_learned),
		cmocka_unit_test(files_to_predict_need_no_scores),
		cmocka_unit_test(scores_of_margins_are_checked),
		cmocka_unit_test(options_of_other_tasks_are_refused),
		cmocka_unit_test(bad_input_is_explained),
		cmocka_unit_test(a_sweep_publishes_the_whole_folder),
		cmocka_unit_test(a_sweep_keeps_what_other_models_say),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
