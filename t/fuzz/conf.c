/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the configuration loader on the bytes of a file; no other file is looked at. Whatever is accepted must load
 * again without an error from the text the server keeps for a restart, and from what conf_print makes of it; what is
 * refused must say why.
 */
#include "base/check.h"
#include "conf/print.h"

static void load_again(struct str text)
{
    struct conf_result r;
    conf_load_flags(text, "again", "/etc/weir", CONF_NO_FILES, &r);
    CHECK(r.conf != NULL);
    conf_free(r.conf);
    conf_result_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct conf_result r;
    struct arena a;
    arena_init(&a, NULL);
    conf_load_flags(str_of((const char *)data, n), "fuzz.conf", "/etc/weir", CONF_NO_FILES, &r);
    CHECK((r.conf == NULL) == (r.n_errors > 0));
    unsigned n_findings = 0;
    for (const struct diagnostic *d = r.first; d != NULL; d = d->next, n_findings++) {
        struct str text = diagnostic_print(&a, &r, d);
        CHECK(text.n > 0 && text.p[text.n - 1] == '\n');
    }
    CHECK(n_findings == r.n_errors + r.n_warnings);
    if (r.conf != NULL) {
        struct str printed = conf_print(&a, r.conf);
        load_again(r.conf->text);
        load_again(printed);
        conf_free(r.conf);
    }
    conf_result_free(&r);
    arena_reset(&a);
    return 0;
}
