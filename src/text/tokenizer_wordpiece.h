/* Greedy longest-match WordPiece (Wu et al. 2016; Devlin et al. 2018) over a trie of the vocabulary. */
#ifndef TEXT_TOKENIZER_WORDPIECE_H
#define TEXT_TOKENIZER_WORDPIECE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "text/vocab.h"

/* A trie over bytes, with nodes numbered breadth first: the children of a node are adjacent and ordered by
 * their byte, from first_child[node] up to but not including first_child[node + 1]. */
struct wordpiece {
	uint32_t *first_child; /* [node_count + 1] */
	uint8_t *byte;         /* [node_count] byte on the edge from the parent */
	int32_t *id;           /* [node_count] id of the entry that ends here, or -1 */
	uint32_t node_count;
	/* The node for the first byte, 0 = none: [0] at the beginning of a word (children of the root), [1] in a
	 * continuation (children of the node "##", or of the vocabulary's own prefix). These two nodes have too many children to
	 * search. */
	uint32_t branches[2][256];
};

MUST_USE enum status wordpiece_init(struct wordpiece *wordpiece, const struct vocab *vocab);
void wordpiece_release(struct wordpiece *wordpiece);
/* The pieces of a word or, if `text` begins with "##", of a word's continuation: stores their ids in `ids` (capacity) and returns
 * their number; 0 if some part is not an entry or there are more pieces than the capacity. */
int32_t wordpiece_cut(const struct wordpiece *wordpiece, const char *text, size_t size, int32_t *ids, int32_t capacity);

/* As the model of a tokenizer: words that cannot be cut, or have more characters than `max_characters`, are `unknown`. */
struct wordpiece_model;
extern const struct token_model wordpiece_model;
MUST_USE enum status wordpiece_model_new(struct wordpiece_model **out, const struct vocab *vocab, int32_t unknown,
					 int64_t max_characters);

#endif
