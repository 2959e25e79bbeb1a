/* MediaWiki exports: <mediawiki><siteinfo/><page>...</page>...</mediawiki>, or bare <page> elements. expat parses the XML; it
 * limits the expansion of entities, and external ones are never loaded.
 *
 * Only articles are kept: pages of namespace 0 that are not redirects and contain wiki text. Dumps older than 2012 have no <ns>,
 * so there the title's prefix decides. Of several revisions of a page, the last one counts.
 *
 * After damage, the next <page> is searched for, and a new parser continues there. */
#include <expat.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/memory.h"
#include "formats/records_internal.h"

#define VALUE_LIMIT 1024 /* for the short elements whose values are used */

enum element { ELEMENT_OTHER, ELEMENT_TITLE, ELEMENT_NS, ELEMENT_MODEL, ELEMENT_TEXT, ELEMENT_NAMESPACE };

struct wiki_xml {
	XML_Parser parser;
	int64_t parser_start; /* offset in the file of the parser's byte 0, minus the bytes put before it */
	bool started, bare, within_page, has_text, redirect, has_namespace;
	int64_t depth, page_depth;
	int64_t page_namespace;
	enum element element; /* the element whose characters are being received */
	struct buffer value, model;
	int64_t namespace_key;
	struct name_list namespaces; /* names of all namespaces except 0 */
	int64_t damage_offset;
	bool searching;     /* searching for the next page, after damage */
	size_t matched;     /* bytes of "<page>" matched at the end of what was fed */
	enum status status; /* a failure of the sink, kept until expat returns */
};

static const char page_tag[] = "<page>";

static void fail(struct wiki_xml *xml, enum status status)
{
	if (status != OK && xml->status == OK) {
		xml->status = status;
		XML_StopParser(xml->parser, XML_FALSE);
	}
}

static enum element find_element(const char *name)
{
	static const struct {
		const char *name;
		enum element element;
	} elements[] = {{"title", ELEMENT_TITLE},
			{"ns", ELEMENT_NS},
			{"model", ELEMENT_MODEL},
			{"text", ELEMENT_TEXT},
			{"namespace", ELEMENT_NAMESPACE}};
	for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
		if (!strcmp(elements[i].name, name))
			return elements[i].element;
	return ELEMENT_OTHER;
}

static void XMLCALL start_element(void *context, const XML_Char *name, const XML_Char **attributes)
{
	struct records *records = context;
	struct wiki_xml *xml = records->state;

	xml->depth++;
	buffer_clear(&xml->value);
	xml->element = find_element(name);
	if (!strcmp(name, "page") && !xml->within_page) {
		xml->within_page = true;
		xml->page_depth = xml->depth;
		xml->has_text = xml->redirect = xml->has_namespace = false;
		xml->page_namespace = 0;
		buffer_clear(&xml->model);
		fail(xml, record_begin(records));
	} else if (!strcmp(name, "redirect")) {
		xml->redirect = true;
	} else if (xml->element == ELEMENT_NAMESPACE) {
		xml->namespace_key = 0;
		for (int i = 0; attributes[i]; i += 2)
			if (!strcmp(attributes[i], "key"))
				xml->namespace_key = strtoll(attributes[i + 1], NULL, 10);
	} else if (xml->element == ELEMENT_TEXT && xml->within_page) {
		if (xml->has_text) { /* a later revision: discard the previous one, keep the title */
			fail(xml, records->sink.end(records->sink.context, NULL, false));
			fail(xml, records->sink.begin(records->sink.context));
		}
		xml->has_text = true;
	}
}

static bool is_article(const struct wiki_xml *xml, const char *title)
{
	static const char *const usual[] = {"Talk", "User",     "Wikipedia", "File",    "Image",  "MediaWiki", "Template",
					    "Help", "Category", "Portal",    "Special", "Module", "Media",     NULL};
	const char *colon = strchr(title, ':');

	if (xml->redirect || !xml->has_text)
		return false;
	if (xml->model.size && strcmp(buffer_string(&xml->model), "wikitext") != 0)
		return false;
	if (xml->has_namespace)
		return xml->page_namespace == 0;
	if (!colon)
		return true;
	size_t size = (size_t)(colon - title);
	for (int64_t i = 0; i < xml->namespaces.count; i++)
		if (strlen(xml->namespaces.names[i]) == size && !memcmp(xml->namespaces.names[i], title, size))
			return false;
	for (int i = 0; usual[i]; i++)
		if (strlen(usual[i]) == size && !memcmp(usual[i], title, size))
			return false;
	return true;
}

static void XMLCALL end_element(void *context, const XML_Char *name)
{
	struct records *records = context;
	struct wiki_xml *xml = records->state;
	const char *value = buffer_string(&xml->value);

	switch (xml->element) {
	case ELEMENT_TITLE:
		if (xml->within_page && xml->value.size) {
			buffer_clear(&records->title);
			buffer_append(&records->title, xml->value.data, xml->value.size);
		}
		break;
	case ELEMENT_NS:
		xml->page_namespace = strtoll(value, NULL, 10);
		xml->has_namespace = true;
		break;
	case ELEMENT_MODEL:
		buffer_clear(&xml->model);
		buffer_text(&xml->model, value);
		break;
	case ELEMENT_NAMESPACE:
		if (xml->namespace_key != 0 && *value) {
			fail(xml, name_list_add(&xml->namespaces, value));
			fail(xml, records->sink.wiki_namespace(records->sink.context, xml->namespace_key, value));
		}
		break;
	case ELEMENT_TEXT:
	case ELEMENT_OTHER: break;
	}
	xml->element = ELEMENT_OTHER;
	if (xml->within_page && xml->depth == xml->page_depth && !strcmp(name, "page")) {
		xml->within_page = false;
		fail(xml, record_end(records, is_article(xml, buffer_string(&records->title))));
	}
	xml->depth--;
}

static void XMLCALL characters(void *context, const XML_Char *text, int size)
{
	struct records *records = context;
	struct wiki_xml *xml = records->state;

	if (xml->element == ELEMENT_TEXT) {
		bool wanted = xml->within_page && !xml->redirect && xml->page_namespace == 0;
		if (wanted && xml->status == OK)
			fail(xml, record_text(records, text, (size_t)size));
	} else if (xml->element != ELEMENT_OTHER && xml->value.size + (size_t)size <= VALUE_LIMIT) {
		buffer_append(&xml->value, text, (size_t)size);
	}
}

/* Creates a parser for input that begins at `offset` in the file. */
static enum status new_parser(struct records *records, int64_t offset)
{
	struct wiki_xml *xml = records->state;

	if (xml->parser)
		XML_ParserFree(xml->parser);
	xml->parser = XML_ParserCreate("UTF-8");
	if (!xml->parser)
		return error_set(ERR_RESOURCE, "'%s': not enough memory for the XML parser", records->settings.name);
	XML_SetUserData(xml->parser, records);
	XML_SetElementHandler(xml->parser, start_element, end_element);
	XML_SetCharacterDataHandler(xml->parser, characters);
	xml->parser_start = offset;
	xml->depth = 0;
	xml->within_page = false;
	xml->element = ELEMENT_OTHER;
	xml->status = OK;
	return OK;
}

static enum status wiki_xml_open(struct records *records)
{
	TRY(memory_new(&records->state, 1, sizeof(struct wiki_xml), "XML reader"));
	return new_parser(records, 0);
}

static void wiki_xml_close(struct records *records)
{
	struct wiki_xml *xml = records->state;
	if (!xml)
		return;
	if (xml->parser)
		XML_ParserFree(xml->parser);
	buffer_release(&xml->value);
	buffer_release(&xml->model);
	name_list_release(&xml->namespaces);
	free(xml);
}

/* Reports damage at `offset` to the sink and starts searching for the next page from there. */
static enum status report_damage(struct records *records, const char *what, int64_t offset, const char *reason)
{
	struct wiki_xml *xml = records->state;

	if (xml->within_page)
		TRY(records->sink.end(records->sink.context, NULL, false));
	xml->within_page = false;
	xml->searching = true;
	xml->damage_offset = offset;
	enum status status =
		error_set(ERR_DATA, "'%s': %s XML at byte %lld: %s", records->settings.name, what, (long long)offset, reason);
	error_hint("fetch or make the file again, or give --on_bad_record skip to leave out what is damaged");
	(void)status;
	return record_damaged(records);
}

static enum status parse(struct records *records, const char *bytes, size_t size)
{
	struct wiki_xml *xml = records->state;

	if (XML_Parse(xml->parser, bytes, (int)size, XML_FALSE) == XML_STATUS_OK)
		return buffer_status(&xml->value);
	if (xml->status != OK)
		return xml->status;
	enum XML_Error code = XML_GetErrorCode(xml->parser);
	if (code == XML_ERROR_NO_MEMORY)
		return error_set(ERR_RESOURCE, "'%s': not enough memory for the XML parser", records->settings.name);
	int64_t offset = xml->parser_start + XML_GetCurrentByteIndex(xml->parser);
	return report_damage(records, "damaged", offset, XML_ErrorString(code));
}

/* Skips bytes up to the end of the next "<page>", where, at *at, a new parser continues. */
static enum status search(struct records *records, const char *bytes, size_t size, size_t *at)
{
	static const char root[] = "<mediawiki><page>";
	struct wiki_xml *xml = records->state;

	while (*at < size && xml->matched < sizeof page_tag - 1) {
		if (bytes[*at] == page_tag[xml->matched])
			xml->matched++;
		else
			xml->matched = bytes[*at] == page_tag[0];
		++*at;
	}
	if (xml->matched < sizeof page_tag - 1)
		return OK;
	xml->matched = 0;
	xml->searching = false;
	TRY(new_parser(records, records->offset + (int64_t)*at - (int64_t)(sizeof root - 1)));
	return parse(records, root, sizeof root - 1);
}

/* A file of bare pages, cut out of a dump, is read like one whose beginning is damaged. That cannot be decided until its first
 * tag has arrived. */
static enum status begin_reading(struct records *records, const char *bytes, size_t size)
{
	struct wiki_xml *xml = records->state;
	struct buffer *head = &xml->model; /* unused before the first page */

	buffer_append(head, bytes, size);
	TRY(buffer_status(head));
	const char *tag = memchr(head->data, '<', head->size);
	if (!tag && head->size < VALUE_LIMIT)
		return OK;
	if (tag && (size_t)(head->data + head->size - tag) < sizeof page_tag - 1 && head->size < VALUE_LIMIT)
		return OK;
	xml->started = true;
	size_t ahead = head->size - size; /* fed in earlier calls */
	xml->bare = tag && head->size - (size_t)(tag - head->data) >= sizeof page_tag - 1 &&
		    memcmp(tag, page_tag, sizeof page_tag - 1) == 0;
	xml->searching = xml->bare;
	struct buffer whole = *head;
	*head = (struct buffer){0};
	records->offset -= (int64_t)ahead;
	enum status status = records->kind->feed(records, whole.data, whole.size);
	records->offset += (int64_t)ahead;
	buffer_release(&whole);
	return status;
}

static enum status wiki_xml_feed(struct records *records, const char *bytes, size_t size)
{
	struct wiki_xml *xml = records->state;
	size_t at = 0;

	if (size == 0)
		return OK;
	if (!xml->started)
		return begin_reading(records, bytes, size);
	while (at < size) {
		if (xml->searching) {
			TRY(search(records, bytes, size, &at));
			continue;
		}
		TRY(parse(records, bytes + at, size - at));
		if (!xml->searching) {
			at = size;
		} else if (xml->damage_offset > records->offset + (int64_t)at) {
			size_t behind = (size_t)(xml->damage_offset - records->offset);
			at = behind < size ? behind : size;
		}
	}
	return OK;
}

static enum status wiki_xml_finish(struct records *records)
{
	struct wiki_xml *xml = records->state;

	if (!xml->started && xml->model.size > 0) {
		xml->started = true;
		TRY(wiki_xml_feed(records, xml->model.data, xml->model.size));
	}
	if (xml->searching)
		return OK;
	if (XML_Parse(xml->parser, "", 0, XML_TRUE) == XML_STATUS_OK)
		return OK;
	if (xml->status != OK)
		return xml->status;
	enum XML_Error code = XML_GetErrorCode(xml->parser);
	if (code == XML_ERROR_NO_MEMORY)
		return error_set(ERR_RESOURCE, "'%s': not enough memory for the XML parser", records->settings.name);
	bool ended = code == XML_ERROR_NO_ELEMENTS || code == XML_ERROR_UNCLOSED_TOKEN || code == XML_ERROR_PARTIAL_CHAR ||
		     code == XML_ERROR_UNCLOSED_CDATA_SECTION;
	if (ended && xml->bare && !xml->within_page && code == XML_ERROR_NO_ELEMENTS)
		return OK;
	if (ended)
		return report_damage(records, "truncated", records->offset,
				     xml->within_page ? "the file ends within a page" : "the file ends within the dump");
	return report_damage(records, "damaged", xml->parser_start + XML_GetCurrentByteIndex(xml->parser), XML_ErrorString(code));
}

const struct record_kind wiki_xml_records = {wiki_xml_open, wiki_xml_feed, wiki_xml_finish, wiki_xml_close};
