/* Command lines of other fine-tuning programs, pasted: Google's run_classifier.py and run_squad.py, NVIDIA's run_glue.py
 * and run_squad.py, transformers' run_glue.py, run_qa.py, run_ner.py and run_swag.py. Whatever they request is either done
 * or refused. */
#include <unistd.h>
#include "cmd/small_run.h"

/* GLUE's folders with their real headers and some rows each. */
static void put_glue(void)
{
	struct buffer mrpc = {0}, mnli = {0}, mnli_dev = {0}, cola = {0};
	buffer_text(&mrpc, "\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n");
	buffer_text(&mnli, "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
			   "sentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label\n");
	buffer_text(&mnli_dev, "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
			       "sentence2_parse\tsentence1\tsentence2\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n");
	static const char *const labels[] = {"neutral", "entailment", "contradiction"};
	for (int i = 0; i < 18; i++) {
		const char *label = labels[i % 3];
		buffer_format(&mrpc, "%d\t%d\t%d\tthe cat sees a river .\tthe cat %s\n", i % 2, i, i + 1,
			      i % 2 ? "sees it" : "\"paints");
		buffer_format(&mnli, "%d\t1\t2\tg\tp\tp\tp\tp\tthe cat sees it\tnobody sees it\t%s\t%s\n", i, label, label);
		buffer_format(&mnli_dev, "%d\t1\t2\tg\tp\tp\tp\tp\tthe cat sees it\tnobody sees it\t%s\tx\tx\tx\tx\t%s\n", i,
			      label, label);
		buffer_format(&cola, "gj04\t%d\t%s\tthe cat %s it .\n", i % 2, i % 2 ? "" : "*", i % 2 ? "sees" : "likes");
	}
	static const char *const folders[] = {"MRPC", "MNLI", "CoLA"};
	for (int i = 0; i < 3; i++)
		assert_ok(folder_make(test_path(folders[i])));
	put_file("MRPC/train.tsv", buffer_string(&mrpc));
	put_file("MRPC/dev.tsv", buffer_string(&mrpc));
	put_file("MRPC/test.tsv",
		 "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n7\t1\t2\ta cat\tthe cat\n9\t1\t2\ta dog\tthe dog\n");
	put_file("MNLI/train.tsv", buffer_string(&mnli));
	put_file("MNLI/dev_matched.tsv", buffer_string(&mnli_dev));
	put_file("MNLI/dev_mismatched.tsv", buffer_string(&mnli_dev));
	put_file("CoLA/train.tsv", buffer_string(&cola));
	put_file("CoLA/dev.tsv", buffer_string(&cola));
	buffer_release(&mrpc);
	buffer_release(&mnli);
	buffer_release(&mnli_dev);
	buffer_release(&cola);
}

#define SQUAD                                                                                                                    \
	"{\"version\": \"v2.0\", \"data\": [{\"title\": \"t\", \"paragraphs\": [{\"context\": \"the cat sees the red boat.\", "  \
	"\"qas\": [{\"id\": \"q1\", \"question\": \"the cat sees?\", \"is_impossible\": false, \"answers\": [{\"text\": \"the "  \
	"red "                                                                                                                   \
	"boat\", \"answer_start\": 13}]}, {\"id\": \"q2\", \"question\": \"nobody likes?\", \"is_impossible\": true, "           \
	"\"answers\": []}]}]}]}"
#define SQUAD_1                                                                                                                  \
	"{\"data\": [{\"paragraphs\": [{\"context\": \"the cat sees the red boat.\", \"qas\": [{\"id\": \"q1\", \"question\": "  \
	"\"the cat sees?\", \"answers\": [{\"text\": \"the red boat\", \"answer_start\": 13}]}]}]}]}"
#define QA_RECORDS                                                                                                               \
	"{\"data\": [{\"id\": \"q1\", \"context\": \"the cat sees the red boat.\", \"question\": \"the cat sees?\", "            \
	"\"answers\": "                                                                                                          \
	"{\"text\": [\"the red boat\"], \"answer_start\": [13]}}]}"

static int setup(void **state)
{
	if (small_run_make(state, 3) != 0)
		return -1;
	if (program("pretrain --corpus %s --model %s --out %s/base --vocab_size 80 --train_batch_size 16 --max_seq_length 32 "
		    "--num_train_steps 2 --precision fp32 --threads 1",
		    corpus, config, test_folder) != 0)
		return -1;
	/* In the form of Google's models: weights, configuration and vocabulary as separate files. */
	if (folder_make(test_path("google")) != OK || rename(test_path("base/final/vocab.txt"), test_path("google/v.txt")) != 0 ||
	    rename(test_path("base/final/config.json"), test_path("google/bert_config.json")) != 0 ||
	    rename(test_path("base/final/model.safetensors"), test_path("google/model.safetensors")) != 0)
		return -1;
	put_glue();
	put_file("squad2.json", SQUAD);
	put_file("squad1.json", SQUAD_1);
	put_file("records.json", QA_RECORDS);
	put_file("ner.jsonl", "{\"tokens\": [\"the\", \"cat\", \"sees\"], \"ner_tags\": [\"O\", \"B-X\", \"O\"]}\n"
			      "{\"tokens\": [\"nobody\", \"sees\"], \"ner_tags\": [\"O\", \"O\"]}\n");
	put_file("swag.csv", ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
			     "0,v1,3416,x,the cat,it,gold,sees.,likes.,\"says \"\"no\"\"\",paints.,2\n"
			     "1,v2,3417,x,a dog,it,gold,sees.,likes.,finds.,paints.,0\n");
	return 0;
}

static void forget(const char *name)
{
	if (file_exists(test_path(name)))
		assert_ok(folder_remove(test_path(name)));
}

#define QUICK "--threads 1 --precision fp32 --no_progress "
#define GOOGLE_MODEL                                                                                                             \
	"--vocab_file=%s/google/v.txt --bert_config_file=%s/google/bert_config.json "                                            \
	"--init_checkpoint=%s/google/model.safetensors "
#define FOLDERS test_folder, test_folder, test_folder

static void run_classifier_py(void **state)
{
	forget("mrpc");
	assert_program(
		0, "finished",
		"finetune " QUICK
		"--task_name=MRPC --do_train=true --do_eval=true --do_predict=true --data_dir=%s/MRPC " GOOGLE_MODEL
		"--max_seq_length=32 --train_batch_size=9 --learning_rate=2e-5 --num_train_epochs=1.0 --do_lower_case=True "
		"--eval_batch_size=8 --predict_batch_size=8 --save_checkpoints_steps=1000 --iterations_per_loop=1000 "
		"--use_tpu=False --output_dir=%s/mrpc",
		test_folder, FOLDERS, test_folder);
	assert_said("--do_lower_case means --cased false");
	assert_said("text: #1 String; second text: #2 String; label: Quality");
	assert_holds("mrpc/eval_results.txt", "eval_accuracy = ");
	assert_holds("mrpc/eval_results.txt", "global_step = 2\n");
	assert_holds("mrpc/MRPC.tsv", "index\tprediction\n7\t");
	assert_holds("mrpc/final/bertc_task.json", "\"layout\": \"mrpc\"");
	/* The prediction command of Google's README: another folder, no training. */
	forget("asked");
	assert_program(0, "nothing is trained",
		       "finetune " QUICK "--task_name=MRPC --do_predict=true --data_dir=%s/MRPC --init_checkpoint=%s/mrpc "
		       "--max_seq_length=32 --output_dir=%s/asked",
		       FOLDERS);
	assert_same_file(test_path("mrpc/predict.txt"), test_path("asked/predict.txt"));
	assert_false(file_exists(test_path("asked/final")));
	assert_false(file_exists(test_path("asked/eval_results.txt")));
}

/* Microsoft's corpus as it is downloaded: other names, and a test set instead of a dev set. */
static void the_paraphrase_corpus_itself(void **state)
{
	char command[3 * PATH_BYTES];
	snprintf(command, sizeof command,
		 "cd %s && mkdir -p MSR && cp MRPC/train.tsv MSR/msr_paraphrase_train.txt && "
		 "cp MRPC/dev.tsv MSR/msr_paraphrase_test.txt",
		 test_folder);
	assert_int_equal(system(command), 0);
	assert_program(0, "finished",
		       "finetune " QUICK "--task mrpc --data_dir %s/MSR " GOOGLE_MODEL
		       "--max_seq_length 32 --train_batch_size 9 --num_train_epochs 1 --out %s/msr",
		       test_folder, FOLDERS, test_folder);
	assert_said("text: #1 String; second text: #2 String; label: Quality");
	assert_said("msr_paraphrase_test.txt");
	assert_holds("msr/eval_results.txt", "eval_accuracy = ");
}

static void mnli_has_two_dev_sets_and_google_s_labels(void **state)
{
	forget("mnli");
	assert_program(0, "finished",
		       "finetune " QUICK "--task_name=mnli --do_train --do_eval --data_dir=%s/MNLI " GOOGLE_MODEL
		       "--max_seq_length=32 --train_batch_size=9 --num_train_epochs=1 --output_dir=%s/mnli",
		       test_folder, FOLDERS, test_folder);
	assert_holds("mnli/eval_results.json", "\"eval_accuracy\"");
	assert_holds("mnli/eval_results.json", "\"eval_mismatched_accuracy\"");
	assert_holds("mnli/final/config.json", "\"0\": \"contradiction\"");
	assert_holds("mnli/final/config.json", "\"2\": \"neutral\"");
}

/* False is obeyed, too. */
static void what_is_not_wanted_is_not_done(void **state)
{
	forget("cola");
	assert_program(
		0, "finished",
		"finetune " QUICK "--bert_model bert-base-uncased --task_name CoLA --do_train --do_eval=false --data_dir %s/CoLA "
		"--config_file %s/google/bert_config.json --vocab_file %s/google/v.txt --init_checkpoint "
		"%s/google/model.safetensors "
		"--max_seq_length 32 --train_batch_size 6 --max_steps -1 --num_train_epochs 1 --warmup_proportion 0.1 --seed 2 "
		"--fp16 --output_dir %s/cola",
		test_folder, FOLDERS, test_folder);
	assert_said("--fp16 is ignored");
	assert_false(file_exists(test_path("cola/eval_results.json")));
	assert_program(2, "there is nothing to do",
		       "finetune --task mrpc --model m --do_train=false --data_dir %s/MRPC --output_dir %s/x", test_folder,
		       test_folder);
	assert_program(2, "--do_predict is given, but there is no test set",
		       "finetune --task mnli --model m --do_predict --data_dir %s/MNLI --output_dir %s/x", test_folder,
		       test_folder);
	assert_said("/MNLI' has none under the task's usual names");
	assert_program(2, "there are no files of the task in the folder",
		       "finetune --task mnli --model m --do_train --data_dir %s/MRPC/.. --output_dir %s/x", test_folder,
		       test_folder);
	assert_program(2, "is a model for classification",
		       "finetune --task squad --do_predict --test %s/squad1.json --model %s/cola --out %s/x", FOLDERS);
	assert_program(2, "--task is missing", "finetune --train %s/ner.jsonl --out %s/x", test_folder, test_folder);
}

static void run_squad_py(void **state)
{
	forget("squad");
	assert_program(0, "finished",
		       "finetune " QUICK GOOGLE_MODEL "--do_train=True --train_file=%s/squad2.json --do_predict=True "
		       "--predict_file=%s/squad2.json --train_batch_size=24 --learning_rate=3e-5 --num_train_epochs=2.0 "
		       "--max_seq_length=32 --doc_stride=16 --max_query_length=8 --n_best_size=5 --max_answer_length=9 "
		       "--output_dir=%s/squad --use_tpu=False --version_2_with_negative=True --null_score_diff_threshold=-2.5 "
		       "--verbose_logging=False",
		       FOLDERS, FOLDERS);
	assert_said("--task squad is assumed");
	assert_holds("squad/predictions.json", "\"q2\": ");
	assert_holds("squad/null_odds.json", "\"q2\": ");
	assert_holds("squad/final/bertc_task.json", "\"null_score_diff_threshold\": -2.5");
	assert_holds("squad/final/bertc_task.json", "\"doc_stride\": 16");
	/* NVIDIA's command line: the predictions are scored; its switches. */
	forget("nvidia");
	assert_program(
		0, "the answers to the test set are scored",
		"finetune " QUICK "--bert_model bert-base-uncased --task squad --init_checkpoint %s/google/model.safetensors "
		"--config_file %s/google/bert_config.json --vocab_file %s/google/v.txt --do_train --train_file %s/squad1.json "
		"--do_predict --predict_file %s/squad1.json --do_eval --eval_script evaluate-v1.1.py --do_lower_case "
		"--max_seq_length 32 --doc_stride 16 --train_batch_size 4 --predict_batch_size 4 --max_steps 2 --seed 1 --fp16 "
		"--skip_cache --json-summary x.json --disable-progress-bar --output_dir %s/nvidia",
		FOLDERS, FOLDERS);
	assert_holds("nvidia/eval_results.json", "\"eval_exact_match\"");
	/* Questions without an answer, in a dev set for a model that always answers. */
	forget("dev");
#define ALWAYS(more)                                                                                                             \
	"finetune " QUICK GOOGLE_MODEL "--task squad --train %s/squad1.json --dev %s/squad2.json --max_seq_length 32 "           \
	"--doc_stride 16 --num_train_steps 1 --train_batch_size 1 --out %s/dev " more,                                           \
		FOLDERS, FOLDERS
	assert_program(3, "question 'q2' has no answer in its paragraph", ALWAYS(""));
	assert_said("--version_2_with_negative, or --on_bad_record skip");
	assert_false(file_exists(test_path("dev/metrics.jsonl")));
	assert_program(0, "squad2.json': 1 bad record left out", ALWAYS("--on_bad_record skip"));
	assert_holds("dev/eval_results.json", "\"eval_exact_match\"");
	/* The same model again, without training. */
	forget("again");
	assert_program(0, "",
		       "finetune " QUICK "--do_eval --do_predict --predict_file %s/squad2.json --init_checkpoint %s/squad "
		       "--doc_stride 16 --output_dir %s/again",
		       FOLDERS);
	assert_printed("exact ");
	assert_same_file(test_path("squad/predictions.json"), test_path("again/predictions.json"));
	assert_holds("again/eval_results.json", "\"eval_NoAns_exact\"");
}

#define HUGGING_FACE                                                                                                             \
	"--model_name_or_path %s/mrpc/final --per_device_train_batch_size 4 --per_device_eval_batch_size 8 --learning_rate "     \
	"3e-5 "                                                                                                                  \
	"--num_train_epochs 1 --max_seq_length 32 --overwrite_output_dir --report_to none --save_strategy no "                   \
	"--evaluation_strategy epoch --load_best_model_at_end True "

static void transformers_examples(void **state)
{
	forget("hf");
	assert_program(0, "finished",
		       "finetune " QUICK HUGGING_FACE "--task_name mrpc --do_train --do_eval --train_file %s/MRPC/train.tsv "
		       "--validation_file %s/MRPC/dev.tsv --output_dir %s/hf",
		       test_folder, FOLDERS);
	assert_said("--overwrite_output_dir means --fresh true");
	/* Into the folder of that run, and with named sets. */
	assert_program(0, "finished",
		       "finetune " QUICK HUGGING_FACE
		       "--task_name mnli --do_train --do_eval --train_file %s/MNLI/train.tsv --dev "
		       "m=%s/MNLI/dev_matched.tsv mm=%s/MNLI/dev_mismatched.tsv --output_dir %s/hf",
		       test_folder, test_folder, FOLDERS);
	assert_holds("hf/eval_results.json", "\"eval_mm_accuracy\"");
	assert_program(0, "finished",
		       "finetune " QUICK HUGGING_FACE "--task squad --do_train --do_eval --train_file %s/records.json "
		       "--validation_file %s/records.json --doc_stride 16 --output_dir %s/hf",
		       test_folder, FOLDERS);
	assert_holds("hf/eval_results.json", "\"eval_exact_match\"");
	assert_program(0, "finished",
		       "finetune " QUICK HUGGING_FACE
		       "--task_name swag --do_train --do_eval --train_file %s/swag.csv --validation_file "
		       "%s/swag.csv --pad_to_max_length False --output_dir %s/hf",
		       test_folder, FOLDERS);
	assert_holds("hf/final/config.json", "BertForMultipleChoice");
	assert_program(0, "finished",
		       "finetune " QUICK HUGGING_FACE
		       "--task_name ner --do_train --do_eval --train_file %s/ner.jsonl --validation_file "
		       "%s/ner.jsonl --return_entity_level_metrics True --output_dir %s/hf",
		       test_folder, FOLDERS);
	assert_holds("hf/final/config.json", "BertForTokenClassification");
	assert_program(2, "training downloads nothing",
		       "finetune " QUICK HUGGING_FACE "--dataset_name squad --do_train --output_dir %s/hf", test_folder,
		       test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_classifier_py),
		cmocka_unit_test(the_paraphrase_corpus_itself),
		cmocka_unit_test(mnli_has_two_dev_sets_and_google_s_labels),
		cmocka_unit_test(what_is_not_wanted_is_not_done),
		cmocka_unit_test(run_squad_py),
		cmocka_unit_test(transformers_examples),
	};
	return cmocka_run_group_tests_name("command lines of other fine-tuning programs", tests, setup, program_teardown);
}
