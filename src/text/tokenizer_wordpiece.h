/* Greedy longest-match WordPiece (Wu et al. 2016; Devlin et al. 2018) over a trie of the vocabulary. */
#ifndef TEXT_TOKENIZER_WORDPIECE_H
#define TEXT_TOKENIZER_WORDPIECE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "text/vocab.h"

/* A trie over bytes, its nodes numbered breadth first: the children of a node lie side by side, ordered by
 * their byte, from first_child[node] to first_child[node + 1]. */
struct wordpiece {
	uint32_t *first_child; /* [node_count + 1] */
	uint8_t *byte;         /* [node_count] on the edge from the parent */
	int32_t *id;           /* [node_count] of the entry that ends here, or -1 */
	uint32_t node_count;
	/* The first step by byte, 0 = none: of a word's beginning (the root's children), and of its
	 * continuation (the children of the node "##"). These two nodes are too wide to search. */
	uint32_t branches[2][256];
};

MUST_USE enum status wordpiece_init(struct wordpiece *wordpiece, const struct vocab *vocab);
void wordpiece_release(struct wordpiece *wordpiece);
/* The longest entry that `text` (size > 0) begins with: its id and bytes (without "##"), or -1.
 * `is_continuation` is 0 at the beginning of a word and 1 within it. */
int32_t wordpiece_match(const struct wordpiece *wordpiece, int is_continuation, const char *text, size_t size, size_t *out_size);
/* The pieces of a word, or, where `text` begins with "##", of a word's continuation: their ids into `ids` (capacity), and how
 * many they are; 0 if it has a part that is no entry or has more of them than the capacity. */
int32_t wordpiece_cut(const struct wordpiece *wordpiece, const char *text, size_t size, int32_t *ids, int32_t capacity);

#endif
