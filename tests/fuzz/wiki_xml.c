/* The reader of MediaWiki exports. */
#include "records.h"

FUZZ_SEEDS(FUZZ_SEED("\3<mediawiki><siteinfo><namespaces><namespace "
		     "key=\"6\">File</namespace></namespaces></siteinfo>"
		     "<page><title>A</title><ns>0</ns><revision><model>wikitext</model><text>b &amp; "
		     "c</text></revision></page>"
		     "<page><title>Talk:A</title><redirect "
		     "title=\"B\"/><revision><text>d</text></revision></page></mediawiki>"),
	   FUZZ_SEED("\1<page><title>A</title><revision><text>b</text></revision><revision><text>c</text></"
		     "revision></page>"
		     "<page><ns>1</ns><text>&bad;</text></page><page><text>e</text></page>"),
	   FUZZ_SEED("\5<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"b\"><!ENTITY c "
		     "\"&a;&a;\">]><mediawiki><page><text>&c;"))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	fuzz_records(RECORDS_WIKI_XML, NULL, bytes, count);
	return 0;
}
