/* The demo's world: a small island whose facts never contradict each other.
 *
 *   world write FOLDER   FOLDER/text/island-N.txt, the corpus (a sentence a line, a blank line between documents), and
 *                        FOLDER/questions.txt, a held-out fact a line with [MASK] for its answer
 *   world score          reads `bertc fill --json` of the questions from standard input and prints the score
 *
 * A fact ("the trade of Mira is baker") can be told in six ways. For each of the 100 questions one way of telling one
 * fact is kept out of the corpus altogether: to answer, a model must have learned the fact from its other tellings and
 * the sentence from other people's facts. Nothing is random but what rng.h draws, so the world is always the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"

#define SEED 2718
#define TELLINGS 6
#define QUESTIONS 100
#define DOCUMENTS 6000
#define FILES 4

static const char *const people[] = {
	"Mira", "Tobin", "Elsa",  "Jorun",   "Lena",  "Kasper", "Nora",  "Rufus",  "Greta", "Anton",
	"Ida",  "Milo",  "Vera",  "Oskar",   "Hilda", "Pavel",  "Sonja", "Bruno",  "Clara", "Felix",
	"Dora", "Emil",  "Frida", "Gustav",  "Hanna", "Igor",   "Jana",  "Konrad", "Luisa", "Magnus",
	"Nina", "Otto",  "Petra", "Quentin", "Rosa",  "Stefan", "Thea",  "Ulrich", "Wanda", "Xaver",
};
static const char *const towns[] = {"Arbel", "Brimstad", "Corvo", "Dunmere", "Eskil", "Farrow", "Glim", "Harnes"};
static const char *const trades[] = {"baker",  "smith",  "weaver", "sailor", "teacher",
				     "doctor", "potter", "miller", "farmer", "painter"};
static const char *const animals[] = {"cat", "dog", "goat", "horse", "parrot", "rabbit", "donkey", "hen"};
static const char *const instruments[] = {"flute", "violin", "drum", "harp", "trumpet", "guitar", "piano", "horn"};
static const char *const dishes[] = {"soup", "bread", "cheese", "fish", "honey", "cabbage", "pancakes", "apples"};
static const char *const rivers[] = {"Alva", "Birka", "Cind", "Drone", "Ember", "Fenna", "Gask", "Holm"};
static const char *const goods[] = {"glass", "wool", "salt", "copper", "paper", "timber", "silver", "rope"};

#define COUNT(array) ((int)(sizeof(array) / sizeof(*(array))))

/* One kind of fact: %S is the subject, %A the answer. */
struct relation {
	const char *const *subjects, *const *answers;
	int subject_count, answer_count;
	const char *telling[TELLINGS];
};

#define RELATION(subject, answer) subject, answer, COUNT(subject), COUNT(answer)

static const struct relation relations[] = {
	{RELATION(people, towns),
	 {"%S lives in %A.", "%S comes home to %A every evening.", "The house of %S stands in %A.",
	  "If you look for %S, go to %A.", "In %A everybody knows %S.", "%S was born in %A and never left."}},
	{RELATION(people, trades),
	 {"%S works as a %A.", "The trade of %S is that of a %A.", "People call %S the %A.", "Like many before, %S became a %A.",
	  "%S earns a living as a %A.", "There is no better %A than %S."}},
	{RELATION(people, animals),
	 {"%S owns a %A.", "The %A of %S sleeps by the door.", "Every morning %S feeds the %A.",
	  "%S never goes out without the %A.", "A %A follows %S everywhere.", "The children love the %A that %S keeps."}},
	{RELATION(people, instruments),
	 {"%S plays the %A.", "At night you can hear the %A of %S.", "%S learned the %A as a child.",
	  "On feast days %S brings the %A.", "The %A is the pride of %S.", "Nobody plays the %A as well as %S."}},
	{RELATION(people, dishes),
	 {"%S likes %A best.", "For supper %S always wants %A.", "Nothing pleases %S more than %A.", "On birthdays %S eats %A.",
	  "The favourite food of %S is %A.", "%S could live on %A alone."}},
	{RELATION(towns, rivers),
	 {"The river %A flows through %S.", "%S lies on the %A.", "In spring the %A floods the streets of %S.",
	  "Boats go down the %A from %S to the sea.", "The bridge of %S crosses the %A.", "The people of %S swim in the %A."}},
	{RELATION(towns, goods),
	 {"%S is known for its %A.", "Merchants come to %S to buy %A.", "The %A of %S is sold all over the island.",
	  "Most families in %S live from %A.", "The market of %S is full of %A.", "Nowhere is %A as cheap as in %S."}},
};
#define RELATIONS COUNT(relations)
#define MAX_SUBJECTS COUNT(people)
#define HOME 0
#define FIRST_OF_TOWN 5

struct world {
	int answer[RELATIONS][MAX_SUBJECTS];   /* which answer is true */
	int kept_out[RELATIONS][MAX_SUBJECTS]; /* the telling that is a question, or -1 */
	struct {
		int relation, subject;
	} question[QUESTIONS];
};

static void world_make(struct world *world)
{
	struct rng rng = rng_start(SEED, RNG_DEMO, 0);
	int fact_count = 0;
	struct {
		int relation, subject;
	} facts[RELATIONS * MAX_SUBJECTS];
	for (int r = 0; r < RELATIONS; r++)
		for (int s = 0; s < relations[r].subject_count; s++) {
			/* Towns differ from each other in every respect; people share theirs. */
			world->answer[r][s] = r >= FIRST_OF_TOWN
						      ? (int)rng_permute(SEED, RNG_DEMO, (uint32_t)r,
									 (uint64_t)relations[r].answer_count, (uint64_t)s)
						      : (int)rng_below(&rng, (uint32_t)relations[r].answer_count);
			world->kept_out[r][s] = -1;
			facts[fact_count].relation = r;
			facts[fact_count++].subject = s;
		}
	for (int q = 0; q < QUESTIONS; q++) {
		int pick = q + (int)rng_below(&rng, (uint32_t)(fact_count - q));
		int r = facts[pick].relation, s = facts[pick].subject;
		facts[pick] = facts[q];
		world->question[q].relation = r;
		world->question[q].subject = s;
		world->kept_out[r][s] = (int)rng_below(&rng, TELLINGS);
	}
}

static void tell(struct buffer *out, const struct relation *relation, int telling, const char *subject, const char *answer)
{
	for (const char *c = relation->telling[telling]; *c; c++) {
		if (*c == '%' && (c[1] == 'S' || c[1] == 'A'))
			buffer_text(out, *++c == 'S' ? subject : answer);
		else
			buffer_char(out, *c);
	}
	buffer_char(out, '\n');
}

/* One fact in any way but the one kept out. */
static void tell_fact(const struct world *world, struct rng *rng, struct buffer *out, int r, int s)
{
	int telling;
	do
		telling = (int)rng_below(rng, TELLINGS);
	while (telling == world->kept_out[r][s]);
	tell(out, &relations[r], telling, relations[r].subjects[s], relations[r].answers[world->answer[r][s]]);
}

/* What is said of one person, in any order, then of the person's town. */
static void document_write(const struct world *world, int number, struct buffer *out)
{
	struct rng rng = rng_start(SEED, RNG_DEMO, (uint64_t)number + 1);
	int person = (int)rng_below(&rng, (uint32_t)COUNT(people));
	int order[FIRST_OF_TOWN];
	for (int i = 0; i < FIRST_OF_TOWN; i++) {
		int at = (int)rng_below(&rng, (uint32_t)i + 1);
		order[i] = order[at];
		order[at] = i;
	}
	for (int i = 0; i < FIRST_OF_TOWN; i++)
		tell_fact(world, &rng, out, order[i], person);
	int town = world->answer[HOME][person];
	for (int r = FIRST_OF_TOWN; r < RELATIONS; r++)
		tell_fact(world, &rng, out, r, town);
	buffer_char(out, '\n');
}

static enum status world_write(const struct world *world, const char *folder)
{
	char path[PATH_BYTES], text_folder[PATH_BYTES];
	TRY(path_join(text_folder, folder, "text"));
	TRY(folder_make(text_folder));
	struct buffer out = {0};
	enum status status;
	for (int file = 0; file < FILES; file++) {
		char name[32];
		buffer_clear(&out);
		for (int d = file; d < DOCUMENTS; d += FILES)
			document_write(world, d, &out);
		snprintf(name, sizeof(name), "island-%d.txt", file + 1);
		TRY_GOTO(path_join(path, text_folder, name), done);
		TRY_GOTO(buffer_status(&out), done);
		TRY_GOTO(file_write(path, out.data, out.size), done);
	}
	buffer_clear(&out);
	for (int q = 0; q < QUESTIONS; q++) {
		int r = world->question[q].relation, s = world->question[q].subject;
		tell(&out, &relations[r], world->kept_out[r][s], relations[r].subjects[s], "[MASK]");
	}
	TRY_GOTO(path_join(path, folder, "questions.txt"), done);
	TRY_GOTO(buffer_status(&out), done);
	TRY_GOTO(file_write(path, out.data, out.size), done);
done:
	buffer_release(&out);
	return status;
}

/* How often an answer is true among the facts of its relation. */
static int frequency(const struct world *world, int r, int answer)
{
	int count = 0;
	for (int s = 0; s < relations[r].subject_count; s++)
		count += world->answer[r][s] == answer;
	return count;
}

/* Right answers of the guess "the most frequent word that fits the relation". */
static int baseline(const struct world *world)
{
	int right = 0;
	for (int q = 0; q < QUESTIONS; q++) {
		int r = world->question[q].relation, best = 0;
		for (int a = 1; a < relations[r].answer_count; a++)
			if (frequency(world, r, a) > frequency(world, r, best))
				best = a;
		right += world->answer[r][world->question[q].subject] == best;
	}
	return right;
}

static enum status world_score(const struct world *world)
{
	struct buffer text = {0};
	struct json_document document = {0};
	enum status status;
	int right = 0, number = 0;
	TRY_GOTO(file_read("/dev/stdin", (size_t)64 << 20, &text), done);
	TRY_GOTO(json_parse(&document, "standard input", buffer_string(&text), text.size), done);
	const struct json *results = json_member(document.root, "results");
	if (!results || results->child_count != QUESTIONS) {
		status = error_set(ERR_DATA, "standard input: not the answers to all %d questions", QUESTIONS);
		goto done;
	}
	printf("     question%*sanswer\n", 49, "");
	for (const struct json *result = results->first_child; result; result = result->next, number++) {
		int r = world->question[number].relation, s = world->question[number].subject;
		const char *truth = relations[r].answers[world->answer[r][s]], *asked = NULL, *token = NULL;
		const struct json *blanks = json_member(result, "blanks");
		double probability = 0;
		TRY_GOTO(json_get_string(result, "standard input", "text", &asked), done);
		if (blanks && blanks->first_child && blanks->first_child->first_child) {
			const struct json *best = blanks->first_child->first_child;
			TRY_GOTO(json_get_string(best, "standard input", "token", &token), done);
			TRY_GOTO(json_get_number(best, "standard input", "probability", &probability), done);
		}
		bool good = token && strcasecmp(token, truth) == 0;
		right += good;
		if (number < 12 || !good)
			printf("  %s  %-56s %-10s %3.0f %%%s%s\n", good ? "ok" : "--", asked, token ? token : "?",
			       100.0 * probability, good ? "" : "   it is ", good ? "" : truth);
	}
	printf("\n%d of %d held-out facts right; the most frequent fitting word: %d of %d\n", right, QUESTIONS, baseline(world),
	       QUESTIONS);
	if (right < 90)
		status = error_set(ERR_NUMERIC, "fewer than 90 of the facts were learned");
done:
	json_release(&document);
	buffer_release(&text);
	return status;
}

int main(int argc, char **argv)
{
	struct world world;
	world_make(&world);
	enum status status;
	if (argc == 3 && strcmp(argv[1], "write") == 0)
		status = world_write(&world, argv[2]);
	else if (argc == 2 && strcmp(argv[1], "score") == 0)
		status = world_score(&world);
	else
		status = error_set(ERR_USAGE, "usage: world write FOLDER | world score < answers.json");
	if (status != OK)
		fprintf(stderr, "world: %s\n", error_last()->message);
	return (int)status;
}
