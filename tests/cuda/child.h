/* Tests on pretended cards, one world each: the stand-in reads its environment once a process, and what it catches may
 * end the process, so every case runs in a child of its own. */
#ifndef ZLG_TESTS_CUDA_CHILD_H
#define ZLG_TESTS_CUDA_CHILD_H

#include <stdbool.h>

struct cards_child {
  bool passed;         /* it ended by itself and no check in it failed */
  int signal;          /* that ended it, 0 if none */
  char reported[8192]; /* what the cards reported, a line each: "word: details" */
};

/* Runs `body` in a child with these additions to the environment: names and values in turn, NULL last. The parent must
 * not have started StarPU or any thread. */
struct cards_child cards_run(const char *const *environment, void (*body)(void));
/* True where a line of the report begins with "word:". */
bool cards_reported(const struct cards_child *child, const char *word);
/* Fails unless the child passed and nothing was reported. */
void cards_check_clean(const struct cards_child *child, const char *file, int line);
#define CARDS_CHECK_CLEAN(child) cards_check_clean((child), __FILE__, __LINE__)
/* Fails unless `word` was reported: what the seeded fault is. */
void cards_check_caught(const struct cards_child *child, const char *word, const char *file, int line);
#define CARDS_CHECK_CAUGHT(child, word) cards_check_caught((child), (word), __FILE__, __LINE__)

#endif
