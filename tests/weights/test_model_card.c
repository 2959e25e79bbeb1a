/* The model card word for word, and names that would change its meaning. (huggingface_hub was used to check that the hub's
 * library reads the front matter.) */
#include <math.h>
#include "test.h"
#include "weights/model_card.h"
#include "weights/sentence_folder.h"

static struct backend names = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32};

static struct model *small_model(const struct model_heads *heads)
{
	struct model_config config;
	struct model *model;
	assert_ok(model_config_named(&config, "tiny"));
	config.vocab_size = 100;
	assert_ok(model_create(&model, &names, &config, heads));
	return model;
}

static void a_classifier(void **state)
{
	static const char *const labels[] = {"no", "yes | *really*"};
	static const char settings[] = "{\"task\": \"mrpc\", \"train\": [\"a.tsv\", \"/home/x/b.tsv\", \"/home/x/papers/\"], "
				       "\"dev\": [\"new=/home/x/c.tsv\", \"old=d.tsv\"], \"num_train_steps\": \"33\", \"time\": "
				       "\"1m\", \"learning_rate\": \"2e-5\"}";
	static const char expected[] =
		"---\n"
		"# license: to be chosen by the owner of the model, with regard to the text it was trained on\n"
		"# language: not known to the program that trained it\n"
		"library_name: transformers\n"
		"tags:\n- bert\n- bertc\n"
		"pipeline_tag: text-classification\n"
		"model-index:\n- name: \"my \\\"run\\\"\"\n  results:\n"
		"  - task:\n      type: text-classification\n    dataset:\n      name: \"dev\"\n      type: \"dev\"\n    "
		"metrics:\n"
		"    - type: \"accuracy\"\n      value: 0.75\n"
		"    - type: \"loss\"\n      value: 0.5\n"
		"  - task:\n      type: text-classification\n    dataset:\n      name: \"other\"\n      type: \"other\"\n    "
		"metrics:\n"
		"    - type: \"accuracy\"\n      value: 1.0\n"
		"---\n\n"
		"# my \"run\"\n\n"
		"A model of the form `bert` with 0.5 million weights: 2 layers, width 128, 2 attention heads, a lower-cased "
		"vocabulary of 100 entries, "
		"texts of "
		"up to 512 tokens. The class of transformers is `BertForSequenceClassification`. Trained with bertc " VERSION
		" for 40 steps.\n\n"
		"Its 2 classes are no, yes \\| \\*really\\*.\n\n"
		"## Use\n\n```python\nfrom transformers import AutoModelForSequenceClassification, AutoTokenizer\n\n"
		"model = AutoModelForSequenceClassification.from_pretrained(\"FOLDER\")\n"
		"tokenizer = AutoTokenizer.from_pretrained(\"FOLDER\")\n```\n\n"
		"or, without Python,\n\n    bertc predict --model FOLDER texts.txt\n\n"
		"## Results\n\n| set | measure | value |\n|---|---|---|\n"
		"| dev | accuracy | 0.75 |\n| dev | loss | 0.5 |\n| other | accuracy | 1 |\n\n"
		"## Training\n\n| setting | value |\n|---|---|\n"
		"| task | mrpc |\n| train | a.tsv, b.tsv, papers/ |\n| dev | new=c.tsv, old=d.tsv |\n"
		"| num\\_train\\_steps | 40 |\n| time | 1m |\n| learning\\_rate | 2e-5 |\n\n" /* not the estimate */
		"## Limits\n\nThe model repeats what its training text holds, errors and prejudices included. Say here what it "
		"is meant "
		"for, and what it is not.\n";
	const struct card_metric metrics[] = {
		{"dev", "accuracy", 0.75}, {"dev", "auc", NAN}, {"dev", "loss", 0.5}, {"other", "accuracy", 1}};
	struct model *model = small_model(&model_heads_none);
	struct task_config task;
	struct json_document document;
	struct buffer text = {0};
	assert_ok(task_config_make(&task, "BertForSequenceClassification", NULL, labels, 2));
	assert_ok(json_parse(&document, "settings", settings, strlen(settings)));
	model_card_put(&text, &(struct model_card){.name = "my \"run\"",
						   .model = model,
						   .task = &task,
						   .step = 40,
						   .settings = document.root,
						   .metrics = metrics,
						   .metric_count = 4});
	assert_string_equal(buffer_string(&text), expected);
	buffer_release(&text);
	json_release(&document);
	task_config_release(&task);
	model_free(model);
}

static void take_card(struct buffer *text, const char *architecture, bool embeds_sentences, const char *settings)
{
	const struct sentence_folder sentences = {.max_seq_length = 256};
	struct model *model = small_model(&model_heads_none);
	struct task_config task;
	struct json_document document;
	buffer_clear(text);
	assert_ok(task_config_make(&task, architecture, NULL, NULL, 0));
	task.sentence = embeds_sentences ? &sentences : NULL;
	assert_ok(json_parse(&document, "settings", settings, strlen(settings)));
	model_card_put(text, &(struct model_card){.name = "x",
						  .model = model,
						  .task = &task,
						  .embeds_sentences = embeds_sentences,
						  .settings = document.root});
	json_release(&document);
	task_config_release(&task);
	model_free(model);
}

/* What the Hub's pages are made from. */
static void other_encoders_and_vectors(void **state)
{
	struct buffer text = {0};
	take_card(&text, "RobertaForTokenClassification", false,
		  "{\"model\": \"/home/x/hub/models--FacebookAI--roberta-base/snapshots/e2da8e2f\"}");
	const char *card = buffer_string(&text);
	assert_non_null(strstr(card, "pipeline_tag: token-classification\n"));
	assert_non_null(strstr(card, "AutoModelForTokenClassification"));
	assert_non_null(strstr(card, "\nbase_model: \"FacebookAI/roberta-base\"\n"));
	assert_null(strstr(card, "/home/x"));
	take_card(&text, "BertModel", true, "{\"model\": \"models/base\"}");
	card = buffer_string(&text);
	assert_non_null(strstr(card, "library_name: sentence-transformers\n"));
	assert_non_null(strstr(card, "pipeline_tag: sentence-similarity\n"));
	assert_non_null(strstr(card, "SentenceTransformer(\"FOLDER\")"));
	assert_non_null(strstr(card, "texts of up to 256 tokens"));
	assert_null(strstr(card, "AutoModel"));
	assert_null(strstr(card, "base_model"));
	buffer_release(&text);
}

/* A setting that all phases share is shown once; steps that a time limit cut short are not. */
static void phases(void **state)
{
	struct buffer text = {0};
	take_card(&text, "BertForPreTraining", false,
		  "{\"recipe\": \"fast\", \"phases\": [{\"learning_rate\": \"1e-3\", \"next_sentence\": \"none\", "
		  "\"num_train_steps\": \"50\", \"input_file\": [\"/a/b\", \"c\"]}, {\"learning_rate\": \"1e-3\", "
		  "\"next_sentence\": \"overlap\", \"num_train_steps\": \"70\", \"schedule\": \"linear\"}], \"seed\": \"3\"}");
	assert_non_null(strstr(buffer_string(&text), "| recipe | fast |\n| learning\\_rate | 1e-3 |\n"
						     "| next\\_sentence | none, then overlap |\n"
						     "| num\\_train\\_steps | 50, then 70 |\n"
						     "| input\\_file | b, c, then none |\n"
						     "| schedule | none, then linear |\n| seed | 3 |\n"));
	take_card(&text, "BertForPreTraining", false,
		  "{\"phases\": [{\"num_train_steps\": \"50\"}, {\"num_train_steps\": \"70\", \"time\": \"15s\"}]}");
	assert_null(strstr(buffer_string(&text), "steps |"));
	assert_non_null(strstr(buffer_string(&text), "| time | none, then 15s |\n"));
	buffer_release(&text);
}

static void other_tokenizers(void **state)
{
	struct model *model = small_model(&model_heads_pretraining);
	struct buffer text = {0};
	(void)state;
	model_card_put(&text, &(struct model_card){.name = "a", .model = model, .has_own_rules = true});
	assert_non_null(strstr(buffer_string(&text), ", a vocabulary of 100 entries"));
	buffer_release(&text);
	model_free(model);
}

/* Without metrics and settings; with a name that would end the front matter or start a page of its own. */
static void little_is_known(void **state)
{
	struct model *model = small_model(&model_heads_pretraining);
	struct buffer text = {0};
	model_card_put(&text, &(struct model_card){.name = "a\n---\n# <b>", .model = model, .cased = true});
	const char *card = buffer_string(&text), *end = strstr(card + 4, "\n---\n");
	assert_non_null(end);
	assert_null(strstr(card, "model-index"));
	assert_null(strstr(card, "## Results"));
	assert_null(strstr(card, "## Training"));
	assert_non_null(strstr(card, "pipeline_tag: fill-mask\n"));
	assert_non_null(strstr(card, "a cased vocabulary"));
	assert_null(strstr(end + 5, "\n---\n"));
	assert_null(strstr(card, "<b>"));
	buffer_release(&text);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_classifier), cmocka_unit_test(other_encoders_and_vectors),
					   cmocka_unit_test(phases), cmocka_unit_test(little_is_known),
					   cmocka_unit_test(other_tokenizers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
