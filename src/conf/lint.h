/* SPDX-License-Identifier: MIT */
/* Between lint.c (the grammar) and lint_text.c (strings and numbers) only. */
#ifndef CONF_LINT_H
#define CONF_LINT_H

#include "conf/load.h"

enum { LINT_DEPTH = 32 };

struct lint_place {
    struct str name; /* of a setting; none: an element */
    unsigned index;
};

struct lint {
    struct load *ld;
    unsigned file;
    const char *begin, *p, *end;
    unsigned n_said;
    char *out;
    size_t n_out, cap_out;
    struct lint_place path[LINT_DEPTH + 1];
    unsigned depth;
    const char *open_string; /* the last token is a string over several lines that begins here: a quote may be missing;
                                or NULL */
};

enum lint_type { LINT_NONE, LINT_STRING, LINT_INT, LINT_INT64, LINT_FLOAT, LINT_BOOL, LINT_AGGREGATE };

void lint_emit(struct lint *l, const char *p, size_t n);
/* An error at `at`, with a caret. */
void lint_say(struct lint *l, const char *at, const char *fmt, ...) PRINTF(3, 4);
/* The same for what makes reading on pointless; always false. Adds the guess of a missing quote. */
bool lint_fatal(struct lint *l, const char *at, const char *fmt, ...) PRINTF(3, 4);
/* "sites[0].listen: " or nothing. */
struct str lint_path(struct lint *l);

/* At a quote: reads to the closing one, emits the string for libconfig. */
bool lint_string(struct lint *l, bool emit);
/* At a word that is not quoted: a number or a bool, else an error. LINT_NONE: fatal. */
enum lint_type lint_word(struct lint *l);

#endif
