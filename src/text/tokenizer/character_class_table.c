/* The classes of all code points in one table. */
#include <pthread.h>
#include <string.h>
#include "text/tokenizer/character_classes.h"

uint8_t character_classes[UNICODE_LIMIT];

static void fill(void)
{
	for (int i = 0; i < character_class_row_count; i++) {
		const struct character_class_row *row = &character_class_rows[i];
		memset(character_classes + row->first, row->classes, row->last - row->first + 1);
	}
}

void character_classes_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, fill);
}
