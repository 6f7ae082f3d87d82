/* SPDX-License-Identifier: MIT */
/* The table of upstreams: what is kept, changed and freed when one configuration follows another; slots; names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "upstream/pick.h"
#include "upstream/upstream.h"

enum { MAX = 4 };

/* A configuration of upstreams alone, as the loader would make it. */
struct fake {
    struct conf conf;
    struct upstream_conf upstreams[MAX];
    const struct upstream_conf *pointers[MAX];
    struct server_conf servers[MAX][MAX];
    struct upstream *by_index[MAX];
};

static void add_server(struct fake *f, unsigned u, const char *text)
{
    struct upstream_conf *uc = &f->upstreams[u];
    struct server_conf *sc = &f->servers[u][uc->n_servers++];
    const char *why;
    *sc = (struct server_conf){ .text = str_c(text), .weight = 1, .keepalive = 64 };
    assert_true(endpoint_parse(sc->text, &sc->endpoint, &why));
    uc->servers = f->servers[u];
}

static unsigned add_upstream(struct fake *f, const char *name)
{
    unsigned u = f->conf.n_upstreams++;
    f->upstreams[u] = (struct upstream_conf){ .name = str_c(name), .index = u };
    f->pointers[u] = &f->upstreams[u];
    f->conf.upstreams = f->pointers;
    return u;
}

static struct server *server_at(const struct fake *f, unsigned u, unsigned i)
{
    return atomic_load(&f->by_index[u]->set)->entries[i].server;
}

static void apply(struct upstream_table *t, struct fake *f)
{
    assert_true(upstream_table_apply(t, &f->conf, f->by_index));
}

static void what_is_named_again_is_the_same_object(void **state)
{
    (void)state;
    struct upstream_table *t = upstream_table_new();
    struct fake a = { 0 }, b = { 0 };
    add_server(&a, add_upstream(&a, "one"), "127.0.0.1:1001");
    add_server(&a, 0, "127.0.0.1:1002");
    apply(t, &a);
    struct server *kept = server_at(&a, 0, 1);
    atomic_store(&kept->learnt_ms, 1234);

    add_server(&b, add_upstream(&b, "other"), "127.0.0.1:1002");
    add_server(&b, add_upstream(&b, "one"), "127.0.0.1:1003");
    add_server(&b, 1, "127.0.0.1:1002");
    b.servers[1][1].maxconn = 7;
    apply(t, &b);
    assert_ptr_equal(a.by_index[0], b.by_index[1]);
    assert_ptr_equal(server_at(&b, 1, 1), kept);
    assert_int_equal(atomic_load(&kept->learnt_ms), 1234);
    assert_int_equal(atomic_load(&kept->maxconn), 7);
    assert_ptr_not_equal(server_at(&b, 0, 0), kept);
    upstream_table_free(t);
}

static void a_removed_server_lives_while_it_is_used(void **state)
{
    (void)state;
    struct upstream_table *t = upstream_table_new();
    struct fake a = { 0 }, b = { 0 };
    add_server(&a, add_upstream(&a, "u"), "127.0.0.1:1001");
    add_server(&a, 0, "127.0.0.1:1002");
    apply(t, &a);
    struct server *gone = server_at(&a, 0, 0);
    assert_true(server_take(gone));

    add_server(&b, add_upstream(&b, "u"), "127.0.0.1:1002");
    apply(t, &b);
    assert_true(atomic_load(&gone->retired));
    assert_false(atomic_load(&server_at(&b, 0, 0)->retired));
    unsigned id = gone->id;
    upstream_table_sweep(t);
    assert_int_equal(gone->id, id);
    server_give(gone);
    upstream_table_sweep(t);
    /* Its id is free again. */
    struct fake c = { 0 };
    add_server(&c, add_upstream(&c, "u"), "127.0.0.1:1002");
    add_server(&c, 0, "127.0.0.1:1009");
    apply(t, &c);
    assert_int_equal(server_at(&c, 0, 1)->id, id);
    upstream_table_free(t);
}

static void a_removed_upstream_is_swept_and_may_come_back(void **state)
{
    (void)state;
    struct upstream_table *t = upstream_table_new();
    struct fake a = { 0 }, b = { 0 }, c = { 0 };
    add_server(&a, add_upstream(&a, "u"), "127.0.0.1:1001");
    apply(t, &a);
    apply(t, &b);
    upstream_table_sweep(t);
    add_server(&c, add_upstream(&c, "u"), "127.0.0.1:1001");
    apply(t, &c);
    assert_true(str_eq(c.by_index[0]->name, STR("u")));
    assert_int_equal(server_at(&c, 0, 0)->id, 0);
    upstream_table_free(t);
}

static void slots_are_exact(void **state)
{
    (void)state;
    struct upstream_table *t = upstream_table_new();
    struct fake a = { 0 };
    add_server(&a, add_upstream(&a, "u"), "127.0.0.1:1001");
    a.servers[0][0].maxconn = 2;
    apply(t, &a);
    struct server *s = server_at(&a, 0, 0);
    assert_true(server_take(s));
    assert_true(server_take(s));
    assert_false(server_take(s));
    assert_int_equal(atomic_load(&s->in_flight), 2);
    server_give(s);
    assert_true(server_take(s));
    server_give(s);
    server_give(s);
    assert_int_equal(atomic_load(&s->in_flight), 0);
    upstream_table_free(t);
}

static void quiet(void *arg, enum log_level level, struct str text)
{
    unsigned *warnings = arg;
    (void)text;
    *warnings += level == LOG_WARN;
}

static void a_name_that_does_not_resolve_is_no_obstacle(void **state)
{
    (void)state;
    unsigned warnings = 0;
    log_set_sink(quiet, &warnings);
    struct upstream_table *t = upstream_table_new();
    struct fake a = { 0 };
    add_server(&a, add_upstream(&a, "u"), "no-such-host.invalid:80");
    apply(t, &a);
    log_set_sink(NULL, NULL);
    assert_int_equal(warnings, 1);
    bool is_full;
    assert_null(pick_server(a.by_index[0], &(struct pick_query){ 0 }, &is_full));
    assert_false(is_full);
    upstream_table_free(t);
}

static void the_address_that_worked_comes_first(void **state)
{
    (void)state;
    struct upstream_table *t = upstream_table_new();
    struct fake a = { 0 };
    add_server(&a, add_upstream(&a, "u"), "localhost:80");
    apply(t, &a);
    struct server *s = server_at(&a, 0, 0);
    const char *why;
    struct endpoint e;
    for (unsigned i = 0; i < 3; i++) {
        static const char *const texts[] = { "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80" };
        assert_true(endpoint_parse(str_c(texts[i]), &e, &why));
        s->addrs[i] = e.addr;
    }
    atomic_store(&s->n_resolved, 3);
    server_prefer(s, &s->addrs[1]);
    struct addr got[SERVER_ADDRS];
    assert_int_equal(server_addresses(s, got, SERVER_ADDRS), 3);
    assert_true(addr_eq(&got[0], &s->addrs[1]));
    assert_true(addr_eq(&got[1], &s->addrs[0]));
    assert_true(addr_eq(&got[2], &s->addrs[2]));
    assert_int_equal(server_addresses(s, got, 2), 2);
    upstream_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_named_again_is_the_same_object),
        cmocka_unit_test(a_removed_server_lives_while_it_is_used),
        cmocka_unit_test(a_removed_upstream_is_swept_and_may_come_back),
        cmocka_unit_test(slots_are_exact),
        cmocka_unit_test(a_name_that_does_not_resolve_is_no_obstacle),
        cmocka_unit_test(the_address_that_worked_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
