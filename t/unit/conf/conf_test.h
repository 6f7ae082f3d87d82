/* SPDX-License-Identifier: MIT */
/* Loading texts in the tests of conf: no file is looked at; the folder is /etc/weir, the name t.conf. */
#ifndef T_UNIT_CONF_CONF_TEST_H
#define T_UNIT_CONF_CONF_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conf/conf.h"

struct loaded {
    struct conf_result r;
    const struct conf *c;
    char *said; /* all findings, as printed */
};

static inline char *said_by(const struct conf_result *r)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    struct arena a;
    assert_non_null(f);
    arena_init(&a, NULL);
    for (const struct diagnostic *d = r->first; d != NULL; d = d->next) {
        struct str line = diagnostic_print(&a, r, d);
        fwrite(line.p, 1, line.n, f);
    }
    arena_reset(&a);
    fclose(f);
    return text;
}

static inline struct loaded load_bytes(const char *text, size_t n)
{
    struct loaded l;
    conf_load_flags(str_of(text, n), "t.conf", "/etc/weir", CONF_NO_FILES, &l.r);
    l.c = l.r.conf;
    l.said = said_by(&l.r);
    return l;
}

/* A text that loads without a finding. */
static inline struct loaded load(const char *text)
{
    struct loaded l = load_bytes(text, strlen(text));
    assert_string_equal(l.said, "");
    assert_non_null(l.c);
    return l;
}

static inline void unload(struct loaded *l)
{
    conf_free(l->r.conf);
    conf_result_free(&l->r);
    free(l->said);
}

/* The text is refused with exactly these findings. */
static inline void refuses_bytes(const char *text, size_t n, const char *said)
{
    struct loaded l = load_bytes(text, n);
    assert_string_equal(l.said, said);
    assert_null(l.c);
    unload(&l);
}

static inline void refuses(const char *text, const char *said)
{
    refuses_bytes(text, strlen(text), said);
}

/* The text loads, with exactly these warnings. */
static inline void warns(const char *text, const char *said)
{
    struct loaded l = load_bytes(text, strlen(text));
    assert_string_equal(l.said, said);
    assert_non_null(l.c);
    unload(&l);
}

#define assert_str(s, literal)                                          \
    do {                                                                \
        struct str str_ = (s);                                          \
        if (!str_eq(str_, str_c(literal)))                              \
            fail_msg("\"%.*s\" is not \"%s\"", STR_ARG(str_), literal); \
    } while (0)

/* A site that is complete, for tests about what stands around it. */
#define SITE "sites = ( { listen = \"80\"; respond = 200; } );\n"

#endif
