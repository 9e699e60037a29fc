/* What the pretended cards did since the process began, for tests to look at: call twice and subtract. */
#ifndef ZLG_STANDIN_COUNTS_H
#define ZLG_STANDIN_COUNTS_H

#include <stdint.h>

struct standin_counts {
  uint64_t to_card, to_host, between; /* bytes copied: host to card, card to host, card to card */
  uint64_t pinned, pageable;          /* asynchronous copies of the host's memory that is pinned; that is not */
  uint64_t registered, unregistered;  /* ranges of the host's memory pinned and unpinned where they lie */
  uint64_t allocated, freed;          /* bytes of cards' memory, in all */
  uint64_t most;                      /* bytes of one card in use at once, the most of all cards */
  uint64_t launches;
  uint64_t pinned_now; /* ranges that are pinned where they lie */
};
struct standin_counts standin_counts(void);

#endif
