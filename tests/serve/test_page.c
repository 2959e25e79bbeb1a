/* The page for browsers, run by Node.js with as much of a document as it needs. */
#include <stdlib.h>
#include "serve/page.h"
#include "test.h"

/* The page's script goes between the two. The second prints what the page shows after asking once. */
static const char before[] =
	"const all = {}, element = id => ({id, style: {}, children: [], value: '', append(...x) { this.children.push(...x); },\n"
	"  replaceChildren(...x) { this.children = x; if (x[0]) this.value = x[0].value; },\n"
	"  get firstChild() { return this.children[0]; }});\n"
	"const document = {createElement: element, getElementById: id => all[id] = all[id] || element(id)}, location = "
	"'http://x/';\n"
	"const fetch = async path => ({status: 200, ok: true, json: async () => info, text: async () => answer});\n";
static const char after[] =
	"const text = e => typeof e === 'string' ? e : (e.textContent || '') + e.children.map(text).join(' ');\n"
	"setTimeout(async () => { await ask(); console.log(text(all.out), all.second?.hidden ? 'one text' : 'two texts'); }, "
	"0);\n";

static void assert_shows(const char *model, const char *answer, const char *expected)
{
	struct buffer html = {0}, script = {0}, shown = {0};
	char command[256];
	page_write(&html);
	const char *begin = strstr(buffer_string(&html), "<script>"), *end = strstr(buffer_string(&html), "</script>");
	assert_true(begin && end);
	buffer_format(&script, "const info = {models: [{model_id: 'm', mask_token: '[MASK]', %s}]}, answer = '%s';\n%s", model,
		      answer, before);
	buffer_append(&script, begin + 8, (size_t)(end - begin) - 8);
	buffer_text(&script, after);
	assert_ok(file_write(test_path("page.js"), script.data, script.size));
	snprintf(command, sizeof command, "node %s/page.js >%s/shown", test_folder, test_folder);
	assert_int_equal(system(command), 0);
	assert_ok(file_read(test_path("shown"), 1 << 20, &shown));
	if (!strstr(buffer_string(&shown), expected))
		fail_msg("'%s' is not in: %s", expected, buffer_string(&shown));
	buffer_release(&html);
	buffer_release(&script);
	buffer_release(&shown);
}

static void what_the_page_shows(void **state)
{
	if (system("node --version >/dev/null 2>&1") != 0)
		skip();
	assert_shows("tasks: ['predict', 'tokenize']", "[{\"label\": \"<b>\", \"score\": 0.25}]", "<b>  25.0 % two texts");
	assert_shows("tasks: ['predict']", "[]", "No label is probable enough. two texts");
	assert_shows("tasks: ['predict'], model_type: {classifier: {id2label: {0: 'B-X', 1: 'O'}}}", "{\"entities\": []}",
		     "No entities. one text");
	assert_shows("tasks: ['embed_sparse']", "", "These models cannot be tried on a page");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_the_page_shows)};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
