/* The table of published tasks. */
#include "tasks/layouts.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define SENTENCES .text = {"sentence1"}, .pair = {"sentence2"}
#define GLUE_ID .id = {"index", "id", "idx"}
#define TSV_FILES(submitted)                                                                                                     \
	.train = {"train.tsv"}, .dev = {{.name = "", .files = {"dev.tsv"}}},                                                     \
	.test = {{.name = "", .files = {"test.tsv"}, .submission = submitted}}

static const struct layout layouts[] = {
	{.name = "cola",
	 .text = {"sentence"},
	 .label = {"label"},
	 GLUE_ID,
	 .positions = {{4, 4, 0, 2, 0}, {2, 2, 0, 0, 1}},
	 .labels = {"0", "1"},
	 TSV_FILES("CoLA.tsv"),
	 .measures = {"matthews_correlation", "accuracy"}},
	{.name = "sst-2",
	 .alias = "sst2",
	 .text = {"sentence"},
	 .label = {"label"},
	 GLUE_ID,
	 .positions = {{2, 1, 0, 2, 0}},
	 .labels = {"0", "1"},
	 TSV_FILES("SST-2.tsv"),
	 .measures = {"accuracy"}},
	{.name = "mrpc",
	 .input = TASK_INPUT_PAIR,
	 .text = {"#1 String", "sentence1"},
	 .pair = {"#2 String", "sentence2"},
	 .label = {"Quality", "label"},
	 GLUE_ID,
	 .positions = {{5, 4, 5, 1, 0}},
	 .labels = {"0", "1"},
	 /* GLUE's files, or those of Microsoft's corpus (`bertc download glue/MRPC`), which has no dev set. */
	 .train = {"train.tsv", "msr_paraphrase_train.txt"},
	 .dev = {{.name = "", .files = {"dev.tsv", "msr_paraphrase_test.txt"}}},
	 .test = {{.name = "", .files = {"test.tsv"}, .submission = "MRPC.tsv"}},
	 .measures = {"accuracy", "f1"}},
	{.name = "qqp",
	 .input = TASK_INPUT_PAIR,
	 .text = {"question1"},
	 .pair = {"question2"},
	 .label = {"is_duplicate", "label"},
	 .id = {"id", "index", "test_id"},
	 .positions = {{6, 4, 5, 6, 1}, {3, 2, 3, 0, 1}},
	 .labels = {"0", "1"},
	 TSV_FILES("QQP.tsv"),
	 .measures = {"accuracy", "f1", "auc"}},
	{.name = "sts-b",
	 .alias = "stsb",
	 .input = TASK_INPUT_PAIR,
	 .target = TARGET_NUMBER,
	 SENTENCES,
	 .label = {"score", "similarity", "label"},
	 GLUE_ID,
	 /* GLUE's files; then those of the STS benchmark itself: genre, file, year, id, score, both sentences, sometimes
	  * sources. */
	 .positions = {{10, 8, 9, 10, 1}, {7, 6, 7, 5, 0}},
	 .least_columns = 7,
	 .train = {"train.tsv", "sts-train.csv"},
	 .dev = {{.name = "", .files = {"dev.tsv", "sts-dev.csv"}}},
	 .test = {{.name = "", .files = {"test.tsv", "sts-test.csv"}, .submission = "STS-B.tsv"}},
	 .measures = {"pearson", "spearmanr"}},
	{.name = "mnli",
	 .input = TASK_INPUT_PAIR,
	 SENTENCES,
	 .label = {"gold_label", "label"},
	 GLUE_ID,
	 .positions = {{12, 9, 10, 12, 1}, {16, 9, 10, 16, 1}, {10, 9, 10, 0, 1}},
	 .labels = {"contradiction", "entailment", "neutral"},
	 .train = {"train.tsv"},
	 .dev = {{.name = "", .files = {"dev_matched.tsv"}}, {.name = "mismatched", .files = {"dev_mismatched.tsv"}}},
	 .test = {{.name = "", .files = {"test_matched.tsv"}, .submission = "MNLI-m.tsv"},
		  {.name = "mismatched", .files = {"test_mismatched.tsv"}, .submission = "MNLI-mm.tsv"}},
	 .measures = {"accuracy"}},
	{.name = "qnli",
	 .input = TASK_INPUT_PAIR,
	 .text = {"question"},
	 .pair = {"sentence"},
	 .label = {"label"},
	 GLUE_ID,
	 .positions = {{4, 2, 3, 4, 1}, {3, 2, 3, 0, 1}},
	 .labels = {"entailment", "not_entailment"},
	 TSV_FILES("QNLI.tsv"),
	 .measures = {"accuracy"}},
	{.name = "rte",
	 .input = TASK_INPUT_PAIR,
	 SENTENCES,
	 .label = {"label"},
	 GLUE_ID,
	 .positions = {{4, 2, 3, 4, 1}, {3, 2, 3, 0, 1}},
	 .labels = {"entailment", "not_entailment"},
	 TSV_FILES("RTE.tsv"),
	 .measures = {"accuracy"}},
	{.name = "wnli",
	 .input = TASK_INPUT_PAIR,
	 SENTENCES,
	 .label = {"label"},
	 GLUE_ID,
	 .positions = {{4, 2, 3, 4, 1}, {3, 2, 3, 0, 1}},
	 .labels = {"0", "1"},
	 TSV_FILES("WNLI.tsv"),
	 .measures = {"accuracy"}},
	{.name = "xnli",
	 .input = TASK_INPUT_PAIR,
	 .text = {"sentence1", "premise"},
	 .pair = {"sentence2", "hypo", "hypothesis"},
	 .label = {"gold_label", "label"},
	 .id = {"pairID"},
	 .positions = {{3, 1, 2, 3, 0}},
	 .labels = {"contradiction", "entailment", "neutral"},
	 .renamed = {"contradictory", "contradiction"},
	 .only_where = {"language", "zh"},
	 .train = {"multinli.train.zh.tsv", "multinli/multinli.train.zh.tsv"},
	 .dev = {{.name = "", .files = {"xnli.dev.tsv"}}},
	 .test = {{.name = "", .files = {"xnli.test.tsv"}}},
	 .measures = {"accuracy"}},
	{.name = "swag",
	 .input = TASK_INPUT_CHOICES,
	 .target = TARGET_CHOICE,
	 .text = {"sent1"},
	 .pair = {"sent2"},
	 .label = {"label"},
	 .id = {"video-id"},
	 .train = {"train.csv"},
	 .dev = {{.name = "", .files = {"val.csv", "dev.csv"}}},
	 .test = {{.name = "", .files = {"test.csv"}}},
	 .measures = {"accuracy"}},
	{.name = "chemprot",
	 .relates = true,
	 .text = {"text"},
	 .label = {"label"},
	 .train = {"train.jsonl", "train.txt"},
	 .dev = {{.name = "", .files = {"dev.jsonl", "dev.txt"}}},
	 .test = {{.name = "", .files = {"test.jsonl", "test.txt"}}},
	 .measures = {"f1_micro", "f1", "accuracy"}},
	{.name = "scicite",
	 .alias = "sci-cite",
	 .text = {"text", "string"},
	 .label = {"label"},
	 .id = {"unique_id"},
	 .labels = {"background", "method", "result"},
	 .train = {"train.jsonl", "train.txt"},
	 .dev = {{.name = "", .files = {"dev.jsonl", "dev.txt"}}},
	 .test = {{.name = "", .files = {"test.jsonl", "test.txt"}}},
	 .measures = {"f1", "accuracy"}},
};

const struct layout *layouts_all(int *count)
{
	*count = (int)(sizeof layouts / sizeof *layouts);
	return layouts;
}

bool layout_same_name(const char *a, const char *b)
{
	for (; a && *a && *b; a++, b++) {
		char x = *a == '_' ? '-' : (char)tolower((unsigned char)*a),
		     y = *b == '_' ? '-' : (char)tolower((unsigned char)*b);
		if (x != y)
			return false;
	}
	return a && !*a && !*b;
}

const struct layout *layout_find(const char *name)
{
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
		if (layout_same_name(layouts[i].name, name) || layout_same_name(layouts[i].alias, name))
			return &layouts[i];
	return NULL;
}

const struct column_names generic_pairs[] = {
	{"sentence1", "sentence2"}, {"question1", "question2"}, {"premise", "hypothesis"},
	{"premise", "hypo"},        {"question", "sentence"},   {"sentence_A", "sentence_B"},
	{"text_a", "text_b"},       {"text1", "text2"},         {"#1 String", "#2 String"},
	{"text", "text_pair"},      {"query", "passage"},       {"query", "document"},
	{"query", "title"},         {"question", "answer"},     {NULL, NULL},
};
const char *const generic_texts[] = {"text",     "sentence", "content",   "review", "comment", "title", "question", "string",
				     "abstract", "document", "utterance", "tweet",  "message", "body",  "sms",      NULL};
const char *const generic_labels[] = {"label",    "labels", "gold_label", "is_duplicate", "Quality", "entailment_judgment",
				      "category", "class",  "target",     "sentiment",    "intent",  "relation",
				      NULL};
const char *const generic_words[] = {"tokens", "token", "words", NULL};
const char *const generic_scores[] = {"score", "similarity", "relatedness_score", "label", "target", "rating", "value", NULL};
const char *const generic_ids[] = {"id", "idx", "index", "guid", "pair_ID", "pairID", NULL};
const char *const generic_contexts[] = {"sent1", "context", "premise", "passage", "article", "ctx_a", "ctx", "goal", NULL};
const char *const generic_stems[] = {"sent2", "question", "question.stem", "ctx_b", NULL};
const char *const generic_choice_lists[] = {"endings", "choices", "choices.text", "question.choices", "options", "answers", NULL};
const char *const generic_choices[] = {"ending", "choice", "option", "answer", "sol", NULL};
const char *const generic_choice_labels[] = {"label", "answer", "gold", "answerKey", "correct", NULL};

const char *const generic_sources[] = {"source",   "src",   "utterance", "current",  "query",
				       "question", "input", "text",      "sentence", NULL};
const char *const generic_targets[] = {"target",    "tgt",    "rewrite", "rewritten", "rewritten_utterance",
				       "reference", "output", "label",   NULL};
const char *const generic_dialogues[] = {"context", "contexts", "history", "dialogue", "dialog", NULL};
const char *const generic_turns[] = {"context", "history", "turn", "utterance", NULL};

const char *const header_names[] = {
	"label",     "labels",    "gold_label", "is_duplicate", "Quality",    "sentence",   "sentence1",  "sentence2",
	"question1", "question2", "premise",    "hypothesis",   "hypo",       "sentence_A", "sentence_B", "text_a",
	"text_b",    "text1",     "text2",      "text_pair",    "#1 String",  "#2 String",  "text",       "score",
	"index",     "idx",       "guid",       "pair_ID",      "pairID",     "sent1",      "sent2",      "ending0",
	"ending1",   "choice0",   "choice1",    "id",           "question",   "content",    "review",     "category",
	"sentiment", "context",   "comment",    "title",        "similarity", "tokens",     "relation",   "source",
	"target",    "rewrite",   "context1",   "context_1",    "history",    "query",      "passage",    "document",
	"answer",    "string",    "abstract",   "utterance",    "tweet",      "message",    "body",       "sms",
	"class",     "intent",    "rating",     "value",        "token",      "words",      "article",    "ctx",
	"ctx_a",     "ctx_b",     "goal",       "endings",      "choices",    "options",    "answers",    "answerKey",
	"gold",      "correct",   "src",        "tgt",          "current",    "input",      "output",     "reference",
	"rewritten", "contexts",  "dialogue",   "dialog",       "comments",   "tweets",     "reviews",    "sentences",
	"texts",     NULL,
};
