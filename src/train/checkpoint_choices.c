/* What back ends chose by measuring (backend_functions.choices), in a checkpoint's record: one list of lines per rank. The
 * first rank's list is complete; the other ranks' lists have their first line, which says where the choices were made, and the
 * lines that the first rank's list lacks. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "train/checkpoint_internal.h"
#include "train/ranks.h"

/* More than any rank has. */
#define RANK_BYTES ((int64_t)1 << 20)

static bool has_line(const char *lines, const char *line, size_t length)
{
	for (const char *at = lines; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, line, length) == 0 && (at[length] == '\n' || at[length] == '\0'))
			return true;
	}
	return false;
}

static void put_lines(struct json_writer *writer, const char *lines, const char *known)
{
	json_open(writer, NULL, '[');
	for (const char *line = lines, *end; *line; line = *end ? end + 1 : end) {
		end = strchr(line, '\n');
		end = end ? end : line + strlen(line);
		if (line == lines || !known || !has_line(known, line, (size_t)(end - line)))
			json_put_text(writer, NULL, line, (size_t)(end - line));
	}
	json_close(writer);
}

/* Gathers the lines of all ranks, a zero-terminated block of *out_each bytes for each. [all] */
static enum status gather_lines(struct comm *comm, const struct buffer *own, char **out, size_t *out_each)
{
	double longest = (double)own->size + 1;
	char *block = NULL;
	enum status status;
	*out = NULL;
	TRY(comm_max(comm, &longest, 1));
	if (longest > (double)RANK_BYTES)
		return error_set(ERR_RESOURCE, "choices of %.0f bytes are more than a checkpoint can hold", longest);
	*out_each = (size_t)longest;
	status = memory_new(&block, 1, *out_each, "choices");
	if (status == OK)
		status = memory_new(out, comm_place(comm)->size, *out_each, "choices of all ranks");
	TRY_GOTO(comm_agree_status(comm, status), done);
	memcpy(block, buffer_string(own), own->size);
	TRY_GOTO(comm_gather(comm, block, *out_each, *out), done);
done:
	free(block);
	if (status != OK) {
		free(*out);
		*out = NULL;
	}
	return status;
}

enum status checkpoint_choices_write(struct buffer *out, struct comm *comm, struct backend *be)
{
	struct buffer own = {0};
	struct json_writer writer = {.out = out};
	char *all = NULL;
	size_t each = 0;
	enum status status;
	if (!be->functions->choices)
		return OK;
	be->functions->choices(be, &own);
	TRY_GOTO(ranks_agree(comm, buffer_status(&own)), done);
	if (ranks_count(comm) > 1)
		TRY_GOTO(gather_lines(comm, &own, &all, &each), done);
	json_open(&writer, NULL, '[');
	put_lines(&writer, buffer_string(&own), NULL);
	for (int32_t rank = 1; rank < ranks_count(comm); rank++)
		put_lines(&writer, all + (size_t)rank * each, all);
	json_close(&writer);
	status = buffer_status(out);
done:
	free(all);
	buffer_release(&own);
	return status;
}

/* Gives the back end one rank's lines. */
static enum status use_lines(const struct json *list, const char *file, struct backend *be, bool *out_used)
{
	struct buffer lines = {0};
	if (list->kind != JSON_ARRAY)
		return error_set(ERR_DATA, "'%s': 'choices' is not a list of lists", file);
	for (const struct json *line = list->first_child; line; line = line->next)
		if (line->kind == JSON_STRING)
			buffer_format(&lines, "%s\n", line->text);
	enum status status = buffer_status(&lines);
	if (status == OK)
		*out_used = be->functions->use_choices(be, buffer_string(&lines));
	buffer_release(&lines);
	return status;
}

enum status checkpoint_choices_use(const struct json *root, const char *file, int32_t rank, struct backend *be)
{
	const struct json *all = json_member(root, "choices"), *first = all ? all->first_child : NULL, *own = first;
	bool own_used = false, first_used = false;
	if (!first || !be->functions->use_choices)
		return OK;
	for (int32_t i = 0; own && i < rank; i++)
		own = own->next;
	if (own && own != first)
		TRY(use_lines(own, file, be, &own_used));
	TRY(use_lines(first, file, be, &first_used));
	const struct json *place = (own ? own : first)->first_child;
	if (!own_used && !first_used)
		log_note("the checkpoint's matmul algorithms were chosen on %s: they are chosen again here, so the run continues "
			 "up to rounding, not bit for bit",
			 place && place->kind == JSON_STRING ? place->text : "another device");
	return OK;
}
