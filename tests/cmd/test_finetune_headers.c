/* Tables with and without headers, as people have them: which row is taken as a header in training and later, and what is said of
 * it. */
#include "cmd/short_training.h"

#define PREDICT(out, file) "predict " CPU "--model %s/" out "/final %s/" file, test_folder, test_folder

static void assert_answers(int expected)
{
	int count = 0;
	for (const char *at = buffer_string(&program_output); (at = strchr(at, '\n')) != NULL; at++)
		count++;
	if (count != expected)
		fail_msg("%d lines, not %d:\n%s", count, expected, buffer_string(&program_output));
}

static void assert_not_said(const char *text)
{
	if (strstr(buffer_string(&program_errors), text))
		fail_msg("'%s' was said:\n%s", text, buffer_string(&program_errors));
}

/* Training without a header, whose second column has a usual name among its labels. */
static void rows_of_files_without_a_header_are_kept(void **state)
{
	put_file("rows.tsv", "wai waj wak\tquestion\nwal\tanswer\nwam\tquestion\nwan wal\tanswer\n");
	assert_program(0, "the first line, with 'question', is taken as a row, not as a header",
		       TRAIN("rows", "classification", "rows.tsv", ""));
	assert_said("answer 2, question 2");
	assert_not_said("becomes a class");
	put_file("ask.tsv", "wai waj\tquestion\n");
	assert_program(0, "text: column 1", PREDICT("rows", "ask.tsv"));
	assert_answers(1);
	put_file("ask.txt", "review\nwai waj\n");
	assert_program(0, "the first line, 'review', is taken as a text, not as a header", PREDICT("rows", "ask.txt"));
	assert_answers(2);
	put_file("ask.csv", "review\nwai waj\n");
	assert_program(0, "the first line, 'review', is taken as a header", PREDICT("rows", "ask.csv"));
	assert_answers(1);
}

static void names_that_were_given_show_a_header(void **state)
{
	put_file("own.csv", "Kommentar,Bewertung\nwai waj,gut\nwak,schlecht\nwal,gut\nwam,schlecht\nwan,gut\nwao,schlecht\n");
	assert_program(0, "CSV with a header, 2 columns (Kommentar, Bewertung), 6 rows",
		       TRAIN("own", "classification", "own.csv", "--text_column Kommentar --label_column Bewertung"));
	assert_said("gut 3, schlecht 3");
	assert_program(0, "2 columns (Kommentar, Bewertung), 6 rows", EVALUATE("own", "own.csv"));
	assert_program(0, "2 columns (Kommentar, Bewertung)", PREDICT("own", "own.csv"));
	assert_answers(6);
	/* Without names, the header is a class, which is said. */
	assert_program(0, "own.csv', line 1: no other row has the label 'Bewertung', which becomes a class; if this first line",
		       TRAIN("lost", "classification", "own.csv", ""));
	assert_said("--text_column 'Kommentar' --label_column 'Bewertung'");
	put_file("several.tsv", "Kommentar\tArten\nwai waj\tneu,gut\nwak\tneu\nwal\tgut\nwam\tneu\nwan\tgut\nwao\tneu\n");
	assert_program(0, "several.tsv', line 1: no other row has the label 'Arten', which becomes a class",
		       TRAIN("several", "multilabel", "several.tsv", "--text_column 1 --label_column 2"));
	put_file("labels.csv", "wak wal,gut\nwai waj,gut\nwak,schlecht\nwal,gut\nwam,schlecht\n");
	put_file("dev.csv", "Kommentar,Bewertung\nwai waj,gut\nwak,schlecht\nwal,gut\nwam,schlecht\n");
	assert_program(3, "line 1: the label 'Bewertung' does not occur in training",
		       TRAIN("dev", "classification", "labels.csv", "--dev %s/dev.csv"), test_folder);
	assert_said("if its first line is one, name the columns: --text_column 'Kommentar' --label_column 'Bewertung'");
}

/* The same for texts that belong together. */
static void pairs_of_texts_have_headers(void **state)
{
	put_file("pairs.csv", "Frage,Antwort\nwai waj,wak\nwal,wam wan\n");
	assert_program(
		0, "CSV with a header, 2 columns (Frage, Antwort), 2 rows; taken as pairs: Frage; what belongs to it: Antwort",
		TRAIN("related", "embedding", "pairs.csv", "--text_column Frage --pair_column Antwort"));
	put_file("twice.csv", "query,query,score\nwai waj,wak,1\nwal,wam wan,0\n");
	assert_program(2, "column 'query' occurs twice; give its number",
		       TRAIN("twice", "embedding", "twice.csv", "--pair_column 2"));
	assert_program(0, "taken as scored pairs: query; second text: query; score: score",
		       TRAIN("twice", "embedding", "twice.csv", "--text_column 1 --pair_column 2"));
}

static void headers_of_words_are_recognized_by_usual_names(void **state)
{
	put_file("named.tsv", "Word\tLemma\tPOS\nwai\ta\tNN\nwaj\tb\tVB\nwak\tc\tNN\n\nwal\td\tNN\nwam\te\tVB\nwan\tf\tNN\n");
	assert_program(0, "3 columns between tabs (word 1, tag 3), with a header, 2 sentences, 6 words",
		       TRAIN("named", "tagging", "named.tsv", ""));
	assert_said("2 labels: NN 4, VB 2");
	put_file("short.tsv", "word\tlemma\ttag\nwai\ta\tNN\nwaj\tb\tVB\n");
	assert_program(0, "with a header, 1 sentence, 2 words", PREDICT("named", "short.tsv"));
	assert_answers(1);
	put_file("words.tsv", "Wort\tPOS\nwai\tNN\nwaj\tVB\nwak\tNN\n\nwal\tNN\nwam\tVB\nwan\tNN\n");
	assert_program(0, "words.tsv', line 1: no other word has the tag 'POS', which becomes a class; if the line is a header",
		       TRAIN("words", "tagging", "words.tsv", ""));
	put_file("words.tsv", "wai\tNN\nwaj\tVB\nwak\tNN\n\nwal\tNN\nwam\tVB\nwan\tNN\n");
	assert_program(0, "", TRAIN("fine", "tagging", "words.tsv", ""));
	assert_not_said("becomes a class");
}

/* A first column that counts words or sentences, or names the document, must not be learned as words. */
static void columns_that_count_are_no_words(void **state)
{
	static const struct {
		const char *text, *said;
	} refused[] = {
		{"1 wai NN\n2 waj VB\n\n1 wak NN\n", "its first column, which would be taken for the words, has numbers alone"},
		{"0\twai\tO\tO\n1\twaj\tB-A\tO\n", "say which of its 4 columns have the words and the tags"},
		{"1:1 wai NN\n1:2 waj VB\n", "has numbers alone"},
		{"nw/a 0 wai NN\nnw/a 1 waj VB\n\nnw/b 0 wak NN\nnw/b 1 wal VB\n", "the same in all lines of a sentence"},
		{"B-A wai\nO waj\nB-B wak\nI-B wal\n", "looks like that of the tags"},
		{"O wai\nO waj\nB-B wak\nO wal\nO wam\n", "looks like that of the tags"},
		{"O\t0\t3\twai\tNN\nB-B\t4\t7\twaj\tVB\nO\t8\t11\twak\tNN\n", "looks like that of the tags"},
		{"sentence_id\tword\ttag\n0\twai\tO\n1\twaj\tB-A\n", "its sentences are numbered in a column"},
		{"wai NN _\nwaj VB _\n", "every word has the tag '_', from column 3"},
		{"wai NN 1\nwaj VB 2\n\nwak NN 1\nwal VB 2\n",
		 "its last column, which would be taken for the tags, counts ('1')"},
		{"wai\t0-3\nwaj\t4-7\nwak\t8-11\n", "which would be taken for the tags, counts ('0-3')"},
		{"Wai\tNN\twai\nwajs\tVB\twaj\n.\tPUNCT\t.\n", "repeats the words, as lemmas do ('wai')"},
		{"wai O O\nwaj B-A B-A\nwak O O\n\nwal O B-A\nwam O O\n", "as predictions beside right tags do ('O')"},
		{"wai NN 1\nwaj VB 1\n\nwak NN 2\nwal VB 2\n", "has one number for all lines of a sentence"},
	};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		put_file("counted.txt", refused[i].text);
		assert_program(3, refused[i].said, TRAIN("counted", "tagging", "counted.txt", ""));
	}
	put_file("ids.txt", "wai 0\nwaj 3\nwak 0\n\nwal 3\nwam 0\n");
	assert_program(
		0, "each tag is a number, such as '0', and the name of a class: if they are meant, say so with --label_column 2",
		TRAIN("ids", "tagging", "ids.txt", ""));
	assert_program(0, "", TRAIN("meant", "tagging", "ids.txt", "--label_column 2"));
	assert_not_said("each tag is a number");
	put_file("layers.txt", "wai NN B-A O\nwaj VB O O\nwak NN B-A B-B\n");
	assert_program(0, "tag 4", TRAIN("layers", "tagging", "layers.txt", ""));
	put_file("turned.txt", "wal wai\nwal waj\nwam wak\nwam wan\nwal NN\n");
	assert_program(0, "has 2 different ones, and that of the tags 5: if they are the other way round",
		       TRAIN("turned", "tagging", "turned.txt", ""));
	put_file("counted.txt", refused[0].text);
	assert_program(0, "word 2, tag 3", TRAIN("counted", "tagging", "counted.txt", "--text_column 2 --label_column 3"));
	put_file("bank.conllu", "# text = wai waj\n1-2\twaiwaj\t_\t_\t_\t_\t_\t_\t_\t_\n1\twai\ta\tNOUN\tNN\t_\t0\troot\t_\t_\n"
				"2\twaj\tb\tVERB\tVB\t_\t1\tdep\t_\tSpaceAfter=No\n2.1\twal\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
				"1\t.\t.\tPUNCT\t.\t_\t0\troot\t_\t_\n");
	assert_program(0, "a treebank in CoNLL-U, 10 columns between tabs (word 2, tag 4, UPOS), 2 sentences, 3 words, 1 comment",
		       TRAIN("bank", "tagging", "bank.conllu", ""));
	assert_said("3 labels: NOUN 1, PUNCT 1, VERB 1");
	assert_program(0, "a treebank in CoNLL-U", PREDICT("bank", "bank.conllu"));
	assert_answers(2);
	assert_program(0, "(word 2, tag 5)", TRAIN("xpos", "tagging", "bank.conllu", "--label_column 5"));
}

/* Tags of which all but one have the letters of a scheme, but in a form that is not known. */
static void tags_of_unknown_schemes_are_named(void **state)
{
	static const struct {
		const char *text, *tag; /* NULL: they are plain */
	} files[] = {
		{"wai PER-B\nwaj PER-I\nwak O\n", "PER-I"},
		{"wai b-PER\nwaj i-PER\nwak o\n", "i-PER"},
		{"wai B:PER\nwaj I:PER\nwak O\n", "I:PER"},
		{"wai BPER\nwaj IPER\nwak O\n", "IPER"},
		{"wai B-PER\nwaj I-PER\nwak 0\nwal 0\n", "I-PER"},
		{"wai B-PER\nwak O-O\nwal O-O\n", "B-PER"},
		{"wai W-PER\nwaj B-PER\nwak E-PER\nwal W-LOC\nwam W-LOC\nwam O\n", "W-LOC"},
		{"wai B\xE2\x80\x93PER\nwaj I\xE2\x80\x93PER\nwak O\n", "I\xE2\x80\x93PER"},
		{"wai LOC\nwaj MISC\nwak O\n", NULL},
		{"wai IN\nwaj BIN\nwak NN\n", NULL},
		{"wai B-A\nwaj NN\nwak VB\nwal VB\n", NULL},
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char out[32], said[100];
		snprintf(out, sizeof out, "scheme%zu", i);
		snprintf(said, sizeof said, "tags such as '%s' may belong to a scheme that is not known", files[i].tag);
		put_file("odd.txt", files[i].text);
		assert_program(0, files[i].tag ? said : "the tags have no prefixes",
			       "finetune --no_progress " CPU "--task tagging --max_seq_length 32 --num_train_steps 1 "
			       "--model %s/base --out %s/%s --train %s/odd.txt",
			       test_folder, test_folder, out, test_folder);
	}
	put_file("right.txt", "wai B-PER\nwaj I-PER\nwak O\n");
	assert_program(0, "IOB2", TRAIN("right", "tagging", "right.txt", ""));
	assert_not_said("not allowed by");
	assert_program(0, "", EVALUATE("right", "right.txt"));
	assert_not_said("not allowed by");
	put_file("wrong.txt", "wai I-PER\nwaj I-PER\nwak O\n");
	assert_program(0, "wrong.txt': 1 tag is not allowed by the rules of IOB2; accuracy counts it as it is",
		       EVALUATE("right", "wrong.txt"));
}

/* Semicolons between fields and decimal commas, as spreadsheets of many countries write them. */
static void decimal_commas_are_named(void **state)
{
	put_file("comma.csv", "wai waj;0,96\nwak;1,5\n");
	assert_program(3, "comma.csv', line 1: the label '0,96' is not a number", TRAIN("comma", "regression", "comma.csv", ""));
	assert_said("decimals are written with a point");
	put_file("point.csv", "wai waj;0.96\nwak;1.5\n");
	assert_program(0, "fields between ';' without a header", TRAIN("point", "regression", "point.csv", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_files_without_a_header_are_kept),
		cmocka_unit_test(names_that_were_given_show_a_header),
		cmocka_unit_test(pairs_of_texts_have_headers),
		cmocka_unit_test(headers_of_words_are_recognized_by_usual_names),
		cmocka_unit_test(columns_that_count_are_no_words),
		cmocka_unit_test(tags_of_unknown_schemes_are_named),
		cmocka_unit_test(decimal_commas_are_named),
	};
	return cmocka_run_group_tests(tests, setup, test_folder_drop);
}
