/* Examples from tables: columns chosen by option, by published layout, by usual names, by the contents of the columns. The
 * files of the published layouts are made up with the real headers: layouts are tested here, scores are not. */
#include "tasks/examples.h"
#include "base/log.h"
#include "test.h"

static struct bad_records bad;

static enum status read_file(struct example_set *set, const char *name, const char *text, struct example_options options)
{
	const char *path = test_path(name);
	bad.count = 0;
	options.bad = &bad;
	if (options.layout) {
		options.input = options.layout->input;
		options.target = options.layout->target;
	}
	assert_ok(file_write(path, text, strlen(text)));
	return example_set_read(set, path, &options);
}

/* "text|pair|label|id" of each example, separated by '/'; choices follow the text, each after a '+'. */
static void describe(const struct example_set *set, struct buffer *out)
{
	for (int64_t i = 0; i < set->count; i++) {
		const struct example_text *e = &set->examples[i];
		buffer_format(out, "%s%s", i ? "/" : "", e->text);
		for (int32_t c = 0; c < e->choice_count; c++)
			buffer_format(out, "+%s", set->choices[e->first_choice + c]);
		buffer_format(out, "|%s|%s|%s", e->pair ? e->pair : "-", e->label ? e->label : "-", e->id ? e->id : "-");
	}
}

static void expect(const char *name, const char *text, struct example_options options, const char *expected)
{
	struct example_set set = {0};
	struct buffer got = {0};
	if (read_file(&set, name, text, options) != OK)
		fail_msg("%s", error_last()->message);
	describe(&set, &got);
	assert_string_equal(buffer_string(&got), expected);
	buffer_release(&got);
	example_set_release(&set);
}

static void refuse(enum status status, const char *message, const char *name, const char *text, struct example_options options)
{
	struct example_set set = {0};
	assert_error(status, message, read_file(&set, name, text, options));
	example_set_release(&set);
}

static struct example_options task(const char *name, bool needs_labels)
{
	const struct layout *layout = layout_find(name);
	assert_non_null(layout);
	return (struct example_options){.layout = layout, .needs_labels = needs_labels};
}

static void published_files_are_read(void **state)
{
	static const struct {
		const char *task, *file, *text, *expected;
		bool labeled;
	} cases[] = {
		{"cola", "train.tsv", "gj04\t1\t\tOur friends.\ncj99\t0\t*\tThe \"more\n", "Our friends.|-|1|-/The \"more|-|0|-",
		 true},
		{"CoLA", "test.tsv", "index\tsentence\n0\tBill.\n1\tSue.\n", "Bill.|-|-|0/Sue.|-|-|1", false},
		{"sst-2", "train.tsv", "sentence\tlabel\nhide new \t0\na b\t1\n", "hide new |-|0|-/a b|-|1|-", true},
		{"SST2", "test.tsv", "index\tsentence\n0\tuneasy\n", "uneasy|-|-|0", false},
		{"mrpc", "train.tsv",
		 "\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t70\t71\tAmrozi \"x\tReferring\n0\t1\t2\ta\tb\n",
		 "Amrozi \"x|Referring|1|-/a|b|0|-", true},
		{"mrpc", "test.tsv", "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t70\t71\ta\tb\n", "a|b|-|0", false},
		{"qqp", "train.tsv",
		 "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n13\t1\t2\ta?\tb?\t1\n2\t3\t4\tc?\td?\t0\n",
		 "a?|b?|1|13/c?|d?|0|2", true},
		{"qqp", "train.tsv", "13\t1\t2\ta?\tb?\t1\n2\t3\t4\tc?\td?\t0\n", "a?|b?|1|13/c?|d?|0|2", true},
		{"qqp", "test.tsv", "id\tquestion1\tquestion2\n0\ta?\tb?\n", "a?|b?|-|0", false},
		{"sts-b", "train.tsv",
		 "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
		 "0\tmain\tMSR\t2012\t0001\tnone\tnone\tA plane.\tAn air plane.\t5.000\n",
		 "A plane.|An air plane.|5.000|0", true},
		{"sts_b", "sts-dev.csv",
		 "main\tMSR\t2012\t1\t2.5\ta\tb\nmain\tMSR\t2012\t2\t3.0\tc\td\nnews\tx\t2013\t3\t0.0\te\tf\tsource\tsource\n",
		 "a|b|2.5|-/c|d|3.0|-/e|f|0.0|-", true},
		{"mnli", "train.tsv",
		 "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_"
		 "parse\t"
		 "sentence1\tsentence2\tlabel1\tgold_label\n0\t1\t2\tg\tp\tp\tp\tp\ta\tb\tneutral\tentailment\n",
		 "a|b|entailment|0", true},
		{"mnli", "dev_matched.tsv",
		 "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_"
		 "parse\t"
		 "sentence1\tsentence2\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
		 "0\t1\t2\tg\tp\tp\tp\tp\ta\tb\tn\tn\tn\tn\tn\tneutral\n",
		 "a|b|neutral|0", true},
		{"qnli", "train.tsv", "index\tquestion\tsentence\tlabel\n0\tWhen?\tThen.\tentailment\n",
		 "When?|Then.|entailment|0", true},
		{"rte", "train.tsv", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tnot_entailment\n", "a|b|not_entailment|0",
		 true},
		{"wnli", "test.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n", "a|b|-|0", false},
		{"xnli", "multinli.train.zh.tsv", "premise\thypo\tlabel\na\tb\tcontradictory\nc\td\tneutral\n",
		 "a|b|contradiction|-/c|d|neutral|-", true},
		{"xnli", "xnli.dev.tsv",
		 "language\tgold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_"
		 "parse\tsentence1\t"
		 "sentence2\tpromptID\tpairID\nar\tneutral\t\t\t\t\tx\ty\t1\t1\nzh\tneutral\t\t\t\t\ta\tb\t1\t2\n",
		 "a|b|neutral|2", true},
		{"swag", "train.csv",
		 ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
		 "0,v1,3416,x,\"Members, a\",They,gold,go.,stay.,\"say \"\"no\"\"\",sit.,2\n",
		 "Members, a+They go.+They stay.+They say \"no\"+They sit.|-|2|v1", true},
		{"chemprot", "train.jsonl", "{\"text\": \"<< a >> [[ b ]]\", \"label\": \"INHIBITOR\", \"metadata\": [1]}\n",
		 "<< a >> [[ b ]]|-|INHIBITOR|-", true},
		{"scicite", "train.jsonl", "{\"text\": \"a\", \"label\": \"method\", \"metadata\": {}}\n", "a|-|method|-", true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect(cases[i].file, cases[i].text, task(cases[i].task, cases[i].labeled), cases[i].expected);
	assert_null(layout_find("sst"));
	assert_null(layout_find(""));
	refuse(ERR_DATA, "has no column of the labels as the files of mnli have; its columns are 1 sentence1, 2 sentence2",
	       "dev.tsv", "sentence1\tsentence2\na\tb\n", task("mnli", true));
	refuse(ERR_DATA, "line 2: 4 fields where the other rows have 6", "train.tsv",
	       "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\ta?\n13\t1\t2\ta?\tb?\t1\n2\t3\t4\tc?\td?\t0\n",
	       task("qqp", true));
	refuse(ERR_DATA, "line 3: 6 fields where at least 7 are needed", "sts-dev.csv",
	       "main\tMSR\t2012\t1\t2.5\ta\tb\nmain\tMSR\t2012\t1\t2.5\ta\tb\nmain\tMSR\t2012\t2\t3.0\tc\n"
	       "main\tMSR\t2012\t1\t2.5\ta\tb\n",
	       task("sts-b", true));
}

/* Tables of one's own for the same task; the published form is not asked of them. */
static void tables_of_another_form_than_published(void **state)
{
	expect("a.tsv", "sentence1\tsentence2\tscore\na\tb\t2.5\n", task("sts-b", true), "a|b|2.5|-");
	expect("a.tsv", "sentence1\tsentence2\na\tb\n", task("sts-b", false), "a|b|-|-");
	expect("a.tsv", "a b\tc\nd\te\n", task("sts-b", false), "a b|c|-|-/d|e|-|-");
	expect("a.tsv", "a b\tc\t2.5\nd\te\t0\n", task("sts-b", true), "a b|c|2.5|-/d|e|0|-");
}

static const struct example_options plain = {.needs_labels = true}, pairs = {.input = TASK_INPUT_PAIR, .needs_labels = true};

static void usual_names_are_known(void **state)
{
	expect("a.tsv", "label\ttext\n1\ta\n", plain, "a|-|1|-");
	expect("a.tsv", "Text\tx\tLabel\tid\na\tb\t1\t7\n", plain, "a|-|1|7");
	expect("a.tsv", "label\tsentence1\tsentence2\n1\ta\tb\n", plain, "a|b|1|-"); /* both are used, and a message says so */
	expect("a.tsv", "label\tsentence1\tsentence2\n1\ta\tb\n", pairs, "a|b|1|-");
	expect("a.tsv", "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n3\ta\tb\t4.5\tNEUTRAL\n", pairs,
	       "a|b|NEUTRAL|3");
	expect("a.tsv", "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n3\ta\tb\t4.5\tNEUTRAL\n",
	       (struct example_options){.input = TASK_INPUT_PAIR, .target = TARGET_NUMBER, .needs_labels = true}, "a|b|4.5|3");
	expect("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\", \"label\": \"x\"}\n", (struct example_options){0},
	       "a|-|-|-/b|-|x|-");
	expect("a.jsonl", "{\"text\": \"a\", \"labels\": [\"x\", \"y\"]}\n{\"text\": \"b\", \"labels\": []}\n",
	       (struct example_options){.target = TARGET_CLASSES, .needs_labels = true}, "a|-|[\"x\",\"y\"]|-/b|-|[]|-");
	expect("a.csv", "text,labels\na,\"x,y\"\nb,\n", (struct example_options){.target = TARGET_CLASSES, .needs_labels = true},
	       "a|-|x,y|-/b|-||-");
}

static void options_come_first(void **state)
{
	struct example_options options = plain;
	options.given = (struct column_choice){.text = "title", .label = "1"};
	expect("a.tsv", "stars\ttext\ttitle\n5\ta\tb\n", options, "b|-|5|-");
	options.given.pair = "text";
	expect("a.tsv", "stars\ttext\ttitle\n5\ta\tb\n", options, "b|a|5|-");
	options.given = (struct column_choice){.text = "body"};
	refuse(ERR_USAGE, "has no column 'body'; its columns are 1 label, 2 text", "a.tsv", "label\ttext\n1\ta\n", options);
	options.given = (struct column_choice){.text = "2", .label = "text"};
	refuse(ERR_USAGE, "column 'text' is given for two of", "a.tsv", "label\ttext\n1\ta\n", options);
	options.given = (struct column_choice){.text = "3", .label = "1"};
	expect("a.tsv", "x\ty\tz\nu\tv\tw\n", options, "z|-|x|-/w|-|u|-");
}

static void what_training_had_is_looked_for(void **state)
{
	struct example_options options = {.trained = {.text = "title", .label = "stars"}};
	expect("a.tsv", "stars\ttext\ttitle\n5\ta\tb\n", options, "b|-|5|-");
	expect("a.tsv", "text\tlabel\na\t1\n", options, "a|-|1|-");
	refuse(ERR_DATA, "which column has the texts?", "a.tsv", "sentence1\tsentence2\na\tb\n", options);
	options.trained.pair = "body";
	refuse(ERR_DATA, "which column has the second texts?", "a.tsv", "text\tlabel\na\t1\n", options);
}

/* Names from options and from training show a header that has none of the usual names; numbers in training, that there is rather
 * none. */
static void headers_are_known_by_what_is_sought(void **state)
{
	static const char text[] = "Kommentar\tBewertung\ngut so\tja\nschlecht\tnein\n";
	struct example_options options = plain;
	options.given = (struct column_choice){.text = "Kommentar", .label = "Bewertung"};
	expect("a.tsv", text, options, "gut so|-|ja|-/schlecht|-|nein|-");
	options = plain;
	options.trained = (struct column_choice){.text = "Kommentar", .label = "Bewertung"};
	expect("a.tsv", text, options, "gut so|-|ja|-/schlecht|-|nein|-");
	options.needs_labels = false;
	expect("a.txt", "Kommentar\ngut\n", options, "gut|-|-|-");
	expect("a.tsv", "was\tgut\tneu\na b\t1\t0\nc\tfalse\ttrue\n",
	       (struct example_options){
		       .target = TARGET_CLASSES, .needs_labels = true, .given = {.text = "was", .label = "gut,neu"}},
	       "a b|-|[\"gut\"]|-/c|-|[\"neu\"]|-");
	options = (struct example_options){.trained = {.text = "column 1", .label = "column 2"}};
	expect("a.tsv", "what is new\tquestion\n", options, "what is new|-|question|-");
	expect("a.txt", "review\na b\n", options, "review|-|-|-/a b|-|-|-");
	expect("a.csv", "review\na b\n", options, "a b|-|-|-");
	expect("a.tsv", "text\tlabel\nwhat is new\tquestion\n", options, "what is new|-|question|-");
	/* A row that would be a class of its own if it is a header. */
	struct example_set set = {0};
	assert_ok(read_file(&set, "a.tsv", "Kommentar\tBewertung\na\tx\nb\ty\nc\tx\nd\ty\ne\tx\n", plain));
	assert_true(example_may_be_header(&set, 0) && !example_may_be_header(&set, 1));
	example_set_release(&set);
	assert_ok(read_file(&set, "a.tsv", "text\tlabel\na\tx\n", plain));
	assert_false(example_may_be_header(&set, 0));
	example_set_release(&set);
}

static void names_that_occur_twice(void **state)
{
	struct example_options options = plain;
	static const char text[] = "text\ttext\tlabel\na\tb\tx\nc\td\ty\n";
	refuse(ERR_USAGE, "column 'text' occurs twice; give its number", "a.tsv", text, options);
	options.given.text = "text";
	refuse(ERR_USAGE, "column 'text' occurs twice; give its number", "a.tsv", text, options);
	options.given.text = "2";
	expect("a.tsv", text, options, "b|-|x|-/d|-|y|-");
}

/* STS benchmark's files have sources at the end of some rows. In a CSV file, a further field is a comma that lacks its quotes. */
static void rows_may_have_more_fields_than_columns_given_by_number(void **state)
{
	struct example_options options = plain;
	refuse(ERR_DATA, "3 fields where the other rows have 2", "a.tsv", "x\ta\ny\tb\tmore\nx\tc\nz\td\n", options);
	options.given = (struct column_choice){.text = "2", .label = "1"};
	expect("a.tsv", "x\ta\ny\tb\tmore\nx\tc\nz\td\n", options, "a|-|x|-/b|-|y|-/c|-|x|-/d|-|z|-");
	refuse(ERR_DATA, "3 fields where the other rows have 2", "a.csv", "x,a\ny,b,more\nx,c\nz,d\n", options);
	options.given.label = "label";
	refuse(ERR_DATA, "3 fields where the other rows have 2", "a.tsv", "label\ttext\nx\ta\ny\tb\tmore\nx\tc\n", options);
}

/* A column of decimal commas is found, and refused for them. */
static void decimal_commas_are_columns_of_numbers(void **state)
{
	const struct example_options numbers = {.target = TARGET_NUMBER, .needs_labels = true};
	expect("a.csv", "a b;0,5\nc;-1,25\n", numbers, "a b|-|0,5|-/c|-|-1,25|-");
	expect("a.csv", "text;score\na b;0,5\n", numbers, "a b|-|0,5|-");
	refuse(ERR_DATA, "which column has the texts?", "a.csv", "a b;0,x\nc;d\n", numbers);
}

static void columns_without_names_are_guessed_with_care(void **state)
{
	expect("a.tsv", "good\tA fine day\nbad\tA dull one\ngood\tBright\nbad\tDark\n", plain,
	       "A fine day|-|good|-/A dull one|-|bad|-/Bright|-|good|-/Dark|-|bad|-");
	expect("a.tsv", "A\tb\t1\nC\td\t0\nE\tf\t1\nG\th\t0\n", pairs, "A|b|1|-/C|d|0|-/E|f|1|-/G|h|0|-");
	expect("a.tsv", "a\t0.5\nb\t1\n", (struct example_options){.target = TARGET_NUMBER, .needs_labels = true},
	       "a|-|0.5|-/b|-|1|-");
	expect("a.txt", "one text\nanother\n", (struct example_options){0}, "one text|-|-|-/another|-|-|-");
	expect("a.tsv", "a b\tc\nd\te\n", (struct example_options){.input = TASK_INPUT_PAIR}, "a b|c|-|-/d|e|-|-");
	/* Both columns could be labels, or neither. */
	refuse(ERR_DATA, "which column has the texts? Its columns are 1 to 2, without names", "a.tsv", "0\t1\n1\t1\n0\t1\n1\t1\n",
	       plain);
	refuse(ERR_DATA, "which column has the texts?", "a.tsv", "a b\tc d\ne f\tg h\n", plain);
	refuse(ERR_DATA, "which column has the texts?", "a.tsv", "1\ta\tx\n0\tb\ty\n", plain);
	refuse(ERR_DATA, "which column has the texts?", "a.txt", "one text\nanother\n", plain);
	/* A second file uses the columns of the first. */
	struct example_set set = {0};
	struct buffer got = {0};
	struct example_options options = plain;
	assert_ok(read_file(&set, "a.tsv", "good\tA fine day\nbad\tA dull one\ngood\tBright\nbad\tDark\n", options));
	assert_ok(read_file(&set, "b.tsv", "ugly\tStorm\n", options));
	describe(&set, &got);
	assert_non_null(strstr(buffer_string(&got), "Dark|-|bad|-/Storm|-|ugly|-"));
	assert_int_equal(set.examples[4].line, 1);
	assert_non_null(strstr(set.examples[4].file, "b.tsv"));
	assert_string_equal(set.columns.text, "column 2");
	buffer_release(&got);
	example_set_release(&set);
}

static void bad_rows_are_refused_or_counted(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"label\ttext\n1\ta\n0\t \n1\tb\n", "line 3: the text is empty"},
		{"label\ttext\n1\ta\n\tx\n1\tb\n", "line 3: the row has no label (column 'label')"},
		{"{\"label\": 1, \"text\": \"a\"}\n{\"label\": null, \"text\": \"c\"}\n{\"label\": 1, \"text\": \"b\"}\n",
		 "line 2: the row has no label"},
		{"{\"label\": 1, \"text\": \"a\"}\n{\"label\": 1}\n{\"label\": 1, \"text\": \"b\"}\n",
		 "line 2: the row has no 'text'"},
		{"label\tsentence1\tsentence2\n1\ta\ta\n0\tx\t\n1\tb\tb\n", "line 3: the second text is empty"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct example_set set = {0};
		bad.skip = false;
		refuse(ERR_DATA, cases[i].message, "a.txt", cases[i].text, plain);
		bad.skip = true;
		assert_ok(read_file(&set, "a.txt", cases[i].text, plain));
		assert_int_equal(set.count, 2);
		assert_string_equal(set.examples[1].text, "b");
		assert_int_equal(bad.count, 1);
		example_set_release(&set);
	}
	refuse(ERR_DATA, "none of its rows can be used", "a.tsv", "label\ttext\n1\t\n", plain);
	bad.skip = false;
	refuse(ERR_DATA, "there are no rows in it", "a.tsv", "label\ttext\n", plain);
	expect("a.tsv", "label\ttext\n1\t\n", (struct example_options){.allows_empty = true}, "|-|1|-");
	/* An empty text is a text; a row without a text is not an example. */
	expect("a.jsonl", "{\"text\": \"\"}\n", (struct example_options){.allows_empty = true}, "|-|-|-");
	refuse(ERR_DATA, "line 2: the row has no 'text'", "a.jsonl", "{\"text\": \"a\"}\n{\"body\": \"b\"}\n",
	       (struct example_options){.allows_empty = true});
}

static void choices_are_columns_or_lists(void **state)
{
	const struct example_options choices = {.input = TASK_INPUT_CHOICES, .target = TARGET_CHOICE, .needs_labels = true};
	expect("a.jsonl",
	       "{\"context\": \"c\", \"question\": \"Why?\", \"choices\": [\"x\", \"y\", 3], \"label\": 2}\n"
	       "{\"context\": \"d\", \"question\": \"\", \"choices\": [\"u\", \"v\"], \"label\": \"A\"}\n",
	       choices, "c+Why? x+Why? y+Why? 3|-|2|-/d+u+v|-|A|-");
	expect("a.jsonl",
	       "{\"question\": \"q\", \"endings\": [{\"label\": \"A\", \"text\": \"x\"}, {\"text\": \"y\"}], \"answer\": "
	       "\"y\"}\n",
	       choices, "q+x+y|-|y|-");
	expect("a.csv", "premise,choice1,choice2,question,label\np,x,y,cause,1\n", choices, "p+cause x+cause y|-|1|-");
	expect("a.csv", "question,A,B,C,answer\np,x,y,z,B\n", choices, "p+x+y+z|-|B|-");
	expect("a.csv", "question,Option 1,Option 2,answer\np,x,y,1\n", choices, "p+x+y|-|1|-");
	/* Hugging Face's ARC and CommonsenseQA, HellaSwag, PIQA; choices that the file itself numbers 1 to 4. */
	expect("a.jsonl",
	       "{\"id\": \"x\", \"question\": \"q\", \"choices\": {\"text\": [\"u\", \"v\"], \"label\": [\"1\", \"2\"]}, "
	       "\"answerKey\": "
	       "\"2\"}\n",
	       choices, "q+u+v|-|2|x");
	expect("a.jsonl",
	       "{\"question\": {\"stem\": \"q\", \"choices\": [{\"label\": \"A\", \"text\": \"u\"}, {\"label\": \"B\", \"text\": "
	       "\"v\"}]}, "
	       "\"answerKey\": \"B\"}\n",
	       choices, "q+u+v|-|B|-");
	expect("a.jsonl", "{\"ctx_a\": \"a man\", \"ctx_b\": \"he\", \"endings\": [\"runs\", \"sits\"], \"label\": 1}\n", choices,
	       "a man+he runs+he sits|-|1|-");
	refuse(ERR_DATA, "which column has the choices", "a.tsv", "context\tlabel\na\t1\n", choices);
	refuse(ERR_DATA, "line 1: there are fewer than two choices", "a.jsonl",
	       "{\"context\": \"c\", \"choices\": [\"x\"], \"label\": 0}\n", choices);
	refuse(ERR_DATA, "line 1: a choice is empty", "a.jsonl",
	       "{\"context\": \"c\", \"choices\": [\"x\", \"\"], \"label\": 0}\n", choices);
	refuse(ERR_DATA, "line 1: a choice is not a string", "a.jsonl",
	       "{\"context\": \"c\", \"choices\": [[], \"\"], \"label\": 0}\n", choices);
	refuse(ERR_DATA, "line 1: the choices are not a list", "a.jsonl",
	       "{\"context\": \"c\", \"choices\": \"x\", \"label\": 0}\n", choices);

	/* Only the last choices may be missing: a label counts all of them. */
	static const char gap[] = "{\"context\": \"c\", \"choice0\": \"cat\", \"choice1\": \"dog\", \"choice2\": \"bird\", "
				  "\"label\": 2}\n{\"context\": \"c\", \"choice0\": \"cat\", \"choice1\": %s, "
				  "\"choice2\": %s, \"label\": 0}\n";
	char text[400];
	snprintf(text, sizeof text, gap, "\"dog\"", "null");
	expect("a.jsonl", text, choices, "c+cat+dog+bird|-|2|-/c+cat+dog|-|0|-");
	snprintf(text, sizeof text, gap, "null", "\"bird\"");
	refuse(ERR_DATA, "line 2: the row has 'choice2', but no 'choice1'", "a.jsonl", text, choices);

	struct example_set set = {0};
	int32_t choice;
	bad.skip = true;
	assert_ok(read_file(&set, "a.jsonl",
			    "{\"context\": \"c\", \"choices\": [\"x\", \"\"], \"label\": 1}\n"
			    "{\"context\": \"c\", \"choices\": [\"x\", \"y\"], \"label\": 1}\n",
			    choices));
	bad.skip = false;
	assert_int_equal(set.choice_count, 2); /* none from a skipped row */
	assert_int_equal(set.examples[0].first_choice, 0);
	example_set_release(&set);
	assert_ok(read_file(&set, "a.jsonl",
			    "{\"context\": \"c\", \"question\": \"q\", \"choices\": [\"x\", \"y\"], \"label\": 1}\n"
			    "{\"context\": \"c\", \"question\": \"q\", \"choices\": [\"x\", \"y\"], \"label\": \"B\"}\n"
			    "{\"context\": \"c\", \"question\": \"q\", \"choices\": [\"x\", \"b y\"], \"label\": \"b y\"}\n"
			    "{\"context\": \"c\", \"question\": \"q\", \"choices\": [\"b y\", \"y\"], \"label\": \"y\"}\n"
			    "{\"context\": \"c\", \"question\": \"q\", \"choices\": [\"x\", \"y\"], \"label\": 2}\n"
			    "{\"context\": \"c\", \"question\": \"q\", \"choices\": [\"x\", \"x\"], \"label\": \"x\"}\n"
			    "{\"context\": \"c\", \"question\": \"q\", \"choices\": [\"9\", \"4\"], \"label\": \"4\"}\n",
			    choices));
	for (int i = 0; i < 4; i++) {
		assert_ok(example_right_choice(&set, i, &choice));
		assert_int_equal(choice, 1);
	}
	assert_error(ERR_DATA, "line 5: the label '2' is not one of the row's 2 choices", example_right_choice(&set, 4, &choice));
	assert_error(ERR_DATA, "line 6: the label 'x' is not one", example_right_choice(&set, 5, &choice));
	/* In other rows of such a file, the number would be that of a choice. */
	assert_error(ERR_DATA, "line 7: the label '4' is not one", example_right_choice(&set, 6, &choice));
	example_set_release(&set);
	assert_ok(read_file(&set, "a.jsonl",
			    "{\"question\": \"q\", \"choices\": {\"text\": [\"u\", \"v\"], \"label\": [\"1\", \"2\"]}, "
			    "\"answerKey\": \"2\"}\n"
			    "{\"question\": \"q\", \"choices\": {\"text\": [\"u\", \"v\"], \"label\": [\"A\", \"B\"]}, "
			    "\"answerKey\": \"B\"}\n"
			    "{\"question\": \"q\", \"choices\": {\"text\": [\"u\", \"v\"], \"label\": [\"1\", \"2\"]}, "
			    "\"answerKey\": \"0\"}\n",
			    choices));
	for (int i = 0; i < 2; i++) {
		assert_ok(example_right_choice(&set, i, &choice));
		assert_int_equal(choice, 1);
	}
	assert_error(ERR_DATA, "line 3: the label '0' is not one", example_right_choice(&set, 2, &choice));
	example_set_release(&set);
}

/* Several labels, with one column each. */
static void labels_may_be_columns_of_flags(void **state)
{
	struct example_options several = {.target = TARGET_CLASSES, .needs_labels = true};
	static const char text[] = "id\tcomment\ttoxic\tinsult\tyear\n7\ta b\t1\t0\t2019\n8\tc\t1\t1\t2020\n9\td\t0\t0\t1\n";
	expect("a.tsv", text, several, "a b|-|[\"toxic\"]|7/c|-|[\"toxic\",\"insult\"]|8/d|-|[]|9");
	expect("a.jsonl", "{\"text\": \"a\", \"x\": true, \"y\": false}\n{\"text\": \"b\", \"x\": false, \"y\": false}\n",
	       several, "a|-|[\"x\"]|-/b|-|[]|-");
	several.given.label = "insult,toxic";
	expect("a.tsv", text, several, "a b|-|[\"toxic\"]|7/c|-|[\"insult\",\"toxic\"]|8/d|-|[]|9");
	several.given.label = "insult,year";
	refuse(ERR_DATA, "line 2: column 'year' has '2019', neither 0 nor 1", "a.tsv", text, several);
	several.given.label = NULL;
	several.trained.label = "toxic,insult"; /* as recorded in training */
	several.trained.text = "comment";
	expect("a.tsv", text, several, "a b|-|[\"toxic\"]|7/c|-|[\"toxic\",\"insult\"]|8/d|-|[]|9");
	several.needs_labels = false;
	expect("a.tsv", "comment\na\nb\n", several, "a|-|-|-/b|-|-|-");
	expect("a.tsv", "comment\ttoxic\tinsult\na\t1\t0\nb\t-1\t-1\n", several, "a|-|[\"toxic\"]|-/b|-|-|-");
}

/* CFIMDB's separator, and that of utterance rewriting. */
static void separators_of_several_characters(void **state)
{
	expect("a.txt", "0 ||| There 's something | awful\n1 ||| fine , \"really\"\n1 ||| x\n0 ||| y\n", plain,
	       "There 's something | awful|-|0|-/fine , \"really\"|-|1|-/x|-|1|-/y|-|0|-");
	refuse(ERR_DATA, "line 11: 1 field where the other rows have 2", "a.txt",
	       "0 ||| a\n1 ||| b\n0 ||| a\n1 ||| b\n0 ||| a\n1 ||| b\n0 ||| a\n1 ||| b\n0 ||| a\n1 ||| b\nlost\n", plain);
	struct example_options twice = pairs;
	twice.given = (struct column_choice){.text = "1", .pair = "3", .label = "2"};
	expect("a.txt", "a\t\tx\t\tc\nb\t\ty\t\td e\n", twice, "a|c|x|-/b|d e|y|-");
	/* An empty column is not a second tab. */
	twice.given = (struct column_choice){.text = "1", .pair = "4", .label = "3"};
	expect("a.tsv", "a\t\tx\tc\nb\t\ty\td e\n", twice, "a|c|x|-/b|d e|y|-");
}

/* Conditions that every row of the table must meet. */
static void layouts_are_whole(void **state)
{
	int count;
	const struct layout *all = layouts_all(&count);
	assert_true(count >= 13);
	for (int i = 0; i < count; i++) {
		const struct layout *layout = &all[i];
		assert_ptr_equal(layout_find(layout->name), layout);
		assert_true(layout->text[0] && layout->label[0] && layout->train[0] && layout->dev[0].files[0] &&
			    layout->measures[0]);
		assert_true((layout->pair[0] != NULL) == (layout->input != TASK_INPUT_TEXT));
		assert_true(layout->target != TARGET_NUMBER || !layout->labels[0]);
		/* Each name identifies a header. */
		bool known = false;
		for (const char *const *name = header_names; *name; name++)
			known |= strcmp(*name, layout->label[0]) == 0;
		assert_true(known);
	}
	/* So do the names by which columns are found. */
	const char *const *const lists[] = {generic_texts, generic_ids};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		for (const char *const *wanted = lists[i]; *wanted; wanted++) {
			bool known = false;
			for (const char *const *name = header_names; *name && !known; name++)
				known = strcmp(*name, *wanted) == 0;
			if (!known)
				fail_msg("'%s' identifies no header", *wanted);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_files_are_read),
		cmocka_unit_test(tables_of_another_form_than_published),
		cmocka_unit_test(usual_names_are_known),
		cmocka_unit_test(rows_may_have_more_fields_than_columns_given_by_number),
		cmocka_unit_test(options_come_first),
		cmocka_unit_test(what_training_had_is_looked_for),
		cmocka_unit_test(headers_are_known_by_what_is_sought),
		cmocka_unit_test(names_that_occur_twice),
		cmocka_unit_test(decimal_commas_are_columns_of_numbers),
		cmocka_unit_test(columns_without_names_are_guessed_with_care),
		cmocka_unit_test(bad_rows_are_refused_or_counted),
		cmocka_unit_test(choices_are_columns_or_lists),
		cmocka_unit_test(labels_may_be_columns_of_flags),
		cmocka_unit_test(separators_of_several_characters),
		cmocka_unit_test(layouts_are_whole),
	};
	log_level = LOG_QUIET;
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
