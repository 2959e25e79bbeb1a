/* Entities as seqeval's default mode finds them, which ignores the scheme: a tag's prefix is its first character, its type is
 * what follows the first hyphen ("_" if nothing does). */
#include "tasks/measures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

/* A tag as seqeval sees it. */
struct tag {
	char prefix;  /* first character, 0 if it is not ASCII */
	int32_t type; /* index into the types */
};

#define NO_TYPE (-1) /* before the first tag */

static const char *type_of(const char *name)
{
	const unsigned char *p = (const unsigned char *)name;
	if (*p)
		p++;
	while ((*p & 0xC0) == 0x80) /* the rest of the first character */
		p++;
	const char *hyphen = strchr((const char *)p, '-');
	const char *type = hyphen ? hyphen + 1 : (const char *)p;
	return *type ? type : "_";
}

static int32_t find_or_add(struct class_scores *types, const char *type)
{
	for (int32_t i = 0; i < types->count; i++)
		if (strcmp(types->names[i], type) == 0)
			return i;
	types->names[types->count] = type;
	return types->count++;
}

/* The rules by which an entity ends before a tag, or begins with it. */
static bool ends_between(struct tag before, struct tag tag)
{
	bool breaks = tag.prefix == 'B' || tag.prefix == 'S' || tag.prefix == 'O';
	if (before.prefix == 'E' || before.prefix == 'S' || ((before.prefix == 'B' || before.prefix == 'I') && breaks))
		return true;
	return before.prefix != 'O' && before.prefix != '.' && before.type != tag.type;
}

static bool begins_with(struct tag before, struct tag tag)
{
	bool goes_on = tag.prefix == 'E' || tag.prefix == 'I';
	if (tag.prefix == 'B' || tag.prefix == 'S')
		return true;
	if ((before.prefix == 'E' || before.prefix == 'S' || before.prefix == 'O') && goes_on)
		return true;
	return tag.prefix != 'O' && tag.prefix != '.' && before.type != tag.type;
}

/* Reads the tags of one side. */
struct finder {
	struct tag before;
	int64_t begin; /* of the current entity */
};

/* Takes the tag at `at`; true if an entity ended before it, whose type and first word are returned. */
static bool next_tag(struct finder *finder, struct tag tag, int64_t at, int32_t *out_type, int64_t *out_begin)
{
	bool ended = ends_between(finder->before, tag);
	*out_type = finder->before.type;
	*out_begin = finder->begin;
	if (begins_with(finder->before, tag))
		finder->begin = at;
	finder->before = tag;
	return ended;
}

struct entity_counts {
	const struct tag *tags; /* by tag id */
	struct tag outside;
	struct finder gold, predicted;
	struct class_score *scores; /* by type; support, predicted and correct are counted */
	int64_t at;
};

static void count_word(struct entity_counts *c, struct tag gold, struct tag predicted)
{
	int32_t gold_type, predicted_type;
	int64_t gold_begin, predicted_begin;
	bool gold_ended = next_tag(&c->gold, gold, c->at, &gold_type, &gold_begin);
	bool predicted_ended = next_tag(&c->predicted, predicted, c->at, &predicted_type, &predicted_begin);
	c->at++;
	if (gold_ended)
		c->scores[gold_type].support++;
	if (predicted_ended)
		c->scores[predicted_type].predicted++;
	if (gold_ended && predicted_ended && gold_type == predicted_type && gold_begin == predicted_begin)
		c->scores[gold_type].correct++;
}

static void count_entities(struct entity_counts *c, const struct tagged *tagged, int64_t *right)
{
	c->gold.before = c->predicted.before = (struct tag){'O', NO_TYPE};
	for (int64_t s = 0; s < tagged->sentences; s++) {
		for (int64_t i = tagged->starts[s]; i < tagged->starts[s + 1]; i++) {
			BUG_IF(tagged->gold[i] < 0 || tagged->gold[i] >= tagged->tags);
			BUG_IF(tagged->predicted[i] < 0 || tagged->predicted[i] >= tagged->tags);
			*right += strcmp(tagged->names[tagged->gold[i]], tagged->names[tagged->predicted[i]]) == 0;
			count_word(c, c->tags[tagged->gold[i]], c->tags[tagged->predicted[i]]);
		}
		count_word(c, c->outside, c->outside);
	}
	count_word(c, c->outside, c->outside);
}

static void finish(struct class_score *score)
{
	double correct = (double)score->correct;
	score->precision = score->predicted ? correct / (double)score->predicted : 0;
	score->recall = score->support ? correct / (double)score->support : 0;
	score->f1 = score->support + score->predicted ? 2 * correct / (double)(score->support + score->predicted) : 0;
}

static void add_entity_measures(const struct class_scores *types, double accuracy, bool empty, struct measures *out)
{
	struct class_score all = {0};
	for (int32_t i = 0; i < types->count; i++) {
		all.support += types->scores[i].support;
		all.predicted += types->scores[i].predicted;
		all.correct += types->scores[i].correct;
		finish(&types->scores[i]);
	}
	finish(&all);
	const double values[] = {accuracy, empty ? NAN : all.precision, empty ? NAN : all.recall, empty ? NAN : all.f1};
	static const char *const names[] = {"accuracy", "precision", "recall", "f1"};
	for (int i = 0; i < 4; i++)
		measures_add(out,
			     &(struct measure){
				     .name = names[i], .unit = UNIT_SHARE, .direction = DIRECTION_HIGHER, .value = values[i]});
}

/* Drops types without entities (such as that of "O"). */
static void drop_absent(struct class_scores *types)
{
	int32_t kept = 0;
	for (int32_t i = 0; i < types->count; i++) {
		if (types->scores[i].support + types->scores[i].predicted == 0)
			continue;
		types->names[kept] = types->names[i];
		types->scores[kept++] = types->scores[i];
	}
	types->count = kept;
}

enum status measure_entities(const struct tagged *tagged, struct class_scores *per_type, struct measures *out)
{
	struct class_scores types = {0};
	struct tag *tags = NULL;
	int64_t words = tagged->sentences ? tagged->starts[tagged->sentences] - tagged->starts[0] : 0, right = 0;
	enum status status;
	TRY_GOTO(memory_new(&tags, tagged->tags, sizeof *tags, "tags"), out);
	TRY_GOTO(memory_new(&types.names, (int64_t)tagged->tags + 1, sizeof *types.names, "entity types"), out);
	TRY_GOTO(memory_new(&types.scores, (int64_t)tagged->tags + 1, sizeof *types.scores, "entity types"), out);
	for (int32_t i = 0; i < tagged->tags; i++) {
		char first = tagged->names[i][0];
		tags[i] = (struct tag){(unsigned char)first < 0x80 ? first : 0, find_or_add(&types, type_of(tagged->names[i]))};
	}
	struct entity_counts counts = {.tags = tags, .outside = {'O', find_or_add(&types, "_")}, .scores = types.scores};
	count_entities(&counts, tagged, &right);
	add_entity_measures(&types, (double)right / (double)words, words == 0, out);
	drop_absent(&types);
	if (per_type) {
		*per_type = types;
		types = (struct class_scores){0};
	}
out:
	free(tags);
	class_scores_release(&types);
	return status;
}

enum status class_scores_keep_names(struct class_scores *scores)
{
	for (int32_t i = 0; i < scores->count; i++)
		TRY(string_store_copy(&scores->store, scores->names[i], strlen(scores->names[i]), &scores->names[i]));
	return OK;
}

void class_scores_release(struct class_scores *scores)
{
	free(scores->names);
	free(scores->scores);
	string_store_release(&scores->store);
	*scores = (struct class_scores){.count = 0};
}
