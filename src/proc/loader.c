/* SPDX-License-Identifier: MIT */
/*
 * Loads a configuration beside the running server: read, checked, its logs opened, its upstreams made, its snapshot
 * built, all on a thread of its own, so that neither loops nor signals wait for a disk or a name server. The main
 * thread collects a finished generation or nothing; whatever failed, the one in force is untouched. One job at a time,
 * because the upstream table takes one caller at a time.
 *
 * Some settings cannot change under way. Those are named in the log, and the rest of the new configuration is taken.
 * Addresses that are new are opened here, last of all that may fail, because a socket that was opened by mistake takes
 * connections; if one cannot be had, the whole load is refused.
 */
#include "proc/loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "conf/diff.h"
#include "proc/sup_call.h"
#include "serve/handler.h"

void loader_log_findings(struct conf_result *r)
{
    for (const struct diagnostic *d = r->first; d != NULL; d = d->next) {
        struct str text = diagnostic_print(&r->arena, r, d);
        while (text.n > 0) {
            ptrdiff_t end = str_chr(text, '\n', 0);
            struct str line = end < 0 ? text : str_take(text, (size_t)end);
            log_write(d->warning ? LOG_WARN : LOG_ERROR, "%.*s", STR_ARG(line));
            text = str_skip(text, line.n + 1);
        }
    }
}

static bool same_cpus(const struct conf *a, const struct conf *b)
{
    size_t n = a->n_cpu_affinity;
    return n == b->n_cpu_affinity &&
           (n == 0 || memcmp(a->cpu_affinity, b->cpu_affinity, n * sizeof *a->cpu_affinity) == 0);
}

/* What the new configuration asks for and only a restart brings. */
static void check_restart(const struct conf *old, const struct conf *new)
{
    const struct {
        const char *name;
        bool same;
        const char *needs;
    } rows[] = {
        { "workers", old->workers == new->workers, "an upgrade" },
        { "cpu_affinity", same_cpus(old, new), "an upgrade" },
        { "user", str_eq(old->user, new->user), "a restart" },
        { "control", str_eq(old->control, new->control), "a restart" },
        { "pid_file", str_eq(old->pid_file, new->pid_file), "a restart" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (!rows[i].same)
            log_write(LOG_WARN, "%s has changed: it needs %s and stays as it is until then", rows[i].name,
                      rows[i].needs);
}

static void close_new(struct loader *l)
{
    for (unsigned i = 0; i < l->opened.n; i++)
        sup_call_unlisten(l->calls, l->opened.all[i]);
    listeners_close(&l->opened);
}

/* Addresses that nobody listens on yet, into l->opened. False: every one that cannot be had was logged, and none is
 * left open. */
static bool open_new(struct loader *l, const struct conf *conf)
{
    bool ok = true;
    for (unsigned i = 0; i < conf->n_listens; i++) {
        const struct listen_conf *c = &conf->listens[i];
        const char *step;
        if (listeners_find(l->listeners, c->text) != NULL ||
            sup_call_listen(l->calls, &l->opened, c, sockets_wanted(c, l->n_loops), &step))
            continue;
        listeners_log_failure(conf, c, step, errno);
        ok = false;
    }
    if (!ok)
        close_new(l);
    return ok;
}

static void print_findings(FILE *f, struct conf_result *r)
{
    for (const struct diagnostic *d = r->first; d != NULL; d = d->next) {
        struct str line = diagnostic_print(&r->arena, r, d);
        fwrite(line.p, 1, line.n, f);
    }
}

static char *changes_of(const struct conf *old, const struct conf *new)
{
    struct arena a;
    arena_init(&a, NULL);
    struct str text = conf_diff(&a, old, new);
    char *copy = text.p != NULL ? strndup(text.p, text.n) : NULL;
    arena_reset(&a);
    return copy;
}

/* A checked configuration becomes a generation; takes it over in any case. NULL: logged, and nothing has changed. */
static struct generation *build(struct loader *l, struct conf *conf)
{
    check_restart(l->in_force, conf);
    if (!log_writer_open(l->logs, conf, l->number)) {
        conf_free(conf);
        return NULL;
    }
    if (!open_new(l, conf)) {
        log_writer_forget(l->logs, l->number);
        conf_free(conf);
        return NULL;
    }
    char *changes = changes_of(l->in_force, conf);
    struct generation *g = generation_new(conf, l->number, l->n_loops, l->upstreams, l->wake_fd);
    if (g == NULL) {
        close_new(l);
        log_writer_forget(l->logs, l->number);
        free(changes);
        return NULL;
    }
    l->changes = changes;
    for (unsigned kind = 0; kind < ACTION_COUNT; kind++)
        if (l->handlers[kind]->prepare != NULL)
            l->handlers[kind]->prepare(conf);
    return g;
}

static struct generation *load(struct loader *l)
{
    struct conf_result r;
    struct generation *g = NULL;
    size_t n;
    conf_load(l->path, &r);
    loader_log_findings(&r);
    FILE *f = open_memstream(&l->findings, &n);
    if (f != NULL) {
        print_findings(f, &r);
        log_writer_tee(f); /* what else goes wrong is for whoever asked, too */
    }
    struct conf *conf = r.conf;
    conf_result_free(&r);
    if (conf != NULL)
        g = build(l, conf);
    log_writer_tee(NULL);
    if (f != NULL)
        fclose(f);
    return g;
}

static void *run(void *arg)
{
    struct loader *l = arg;
    (void)pthread_setname_np(pthread_self(), "weir-loader");
    if (l->job == LOADER_CONF)
        l->result = load(l);
    else
        upstream_table_resolve(l->upstreams);
    atomic_store(&l->done, true);
    uint64_t one = 1;
    ssize_t ignored = write(l->wake_fd, &one, sizeof one);
    (void)ignored;
    return NULL;
}

bool loader_start(struct loader *l, enum loader_job job, const struct conf *in_force, uint64_t number)
{
    l->job = job;
    if (job == LOADER_CONF)
        loader_free(l);
    l->in_force = in_force;
    l->number = number;
    l->result = NULL;
    atomic_store(&l->done, false);
    int error = pthread_create(&l->thread, NULL, run, l);
    if (error != 0) {
        errno = error;
        return false;
    }
    l->runs = true;
    return true;
}

void loader_free(struct loader *l)
{
    free(l->findings);
    free(l->changes);
    l->findings = l->changes = NULL;
}

struct generation *loader_collect(struct loader *l)
{
    pthread_join(l->thread, NULL);
    l->runs = false;
    return l->result;
}
