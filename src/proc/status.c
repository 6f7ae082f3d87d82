/* SPDX-License-Identifier: MIT */
/*
 * The status object of the control socket. Sums the loops' counters (each written by its loop alone, read here relaxed: a sum may be a
 * request behind) and reads the servers' shared counts. Member names are those of `weir status --json`, kept once given.
 */
#include "proc/status.h"

#include <unistd.h>

#include "base/clock.h"
#include "conf/diff.h"
#include "proc/control.h"
#include "upstream/health.h"

typedef unsigned long long ull;

static ull get(const atomic_ullong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* The sum over the loops of the counter at this place of struct counters. */
static ull sum(const struct status_facts *s, size_t offset)
{
    ull total = 0;
    for (unsigned i = 0; i < s->n_workers; i++)
        total += get((const atomic_ullong *)(const void *)((const char *)&s->workers[i]->counters + offset));
    return total;
}

#define SUM(member) sum(s, offsetof(struct counters, member))

static void print_member(FILE *f, const char *name, struct str value)
{
    fprintf(f, ",\"%s\":", name);
    control_print_string(f, value);
}

/* Does the file say something else than what is in force? */
static void print_disk(FILE *f, const struct status_facts *s)
{
    struct conf_result disk;
    struct arena a;
    if (s->path == NULL)
        return;
    arena_init(&a, NULL);
    conf_load(s->path, &disk);
    if (disk.conf == NULL) {
        fputs(",\"disk_differs\":true", f);
        if (disk.first != NULL) {
            struct str line = diagnostic_print(&a, &disk, disk.first);
            ptrdiff_t end = str_chr(line, '\n', 0);
            print_member(f, "disk_error", end < 0 ? line : str_take(line, (size_t)end));
        }
    } else {
        struct str diff = conf_diff(&a, s->snapshot->conf, disk.conf);
        bool is_same = str_eq(diff, STR("nothing changed"));
        fprintf(f, ",\"disk_differs\":%s", is_same ? "false" : "true");
        if (!is_same)
            print_member(f, "disk_changes", diff);
        conf_free(disk.conf);
    }
    conf_result_free(&disk);
    arena_reset(&a);
}

static void print_failures(FILE *f, const struct status_facts *s)
{
    const char *separator = "";
    fputs(",\"failures\":{", f);
    for (unsigned i = 1; i < FAIL_COUNT; i++) {
        ull n = sum(s, offsetof(struct counters, fails) + i * sizeof(atomic_ullong));
        if (n == 0)
            continue;
        fprintf(f, "%s\"%s\":%llu", separator, fail_row((enum fail)i)->symbol, n);
        separator = ",";
    }
    fputc('}', f);
}

static void print_upstream(FILE *f, const struct upstream *u)
{
    const struct server_set *set = atomic_load(&u->set);
    fputs("{\"name\":", f);
    control_print_string(f, u->name);
    fprintf(f, ",\"waiting\":%u,\"servers\":[", atomic_load(&u->queue.waiting));
    for (unsigned i = 0; i < set->n; i++) {
        const struct server *v = set->entries[i].server;
        char cause[HEALTH_CAUSE];
        const char *state = health_state(&set->entries[i], cause);
        fputs(i > 0 ? ",{\"address\":" : "{\"address\":", f);
        control_print_string(f, v->name);
        fprintf(f,
                ",\"state\":\"%s\",\"weight\":%u,\"in_flight\":%u,\"maxconn\":%u,\"idle\":%u,\"tunnels\":%u,"
                "\"requests\":%llu,\"connects\":%llu,\"failures\":%llu",
                state, set->entries[i].weight, atomic_load(&v->in_flight), atomic_load(&v->maxconn),
                atomic_load(&v->idle), atomic_load(&v->tunnels), get(&v->requests), get(&v->connects),
                get(&v->failures));
        if (cause[0] != '\0')
            print_member(f, "cause", str_c(cause));
        fputc('}', f);
    }
    fputs("]}", f);
}

void status_print(FILE *f, const struct status_facts *s)
{
    const struct conf *c = s->snapshot->conf;
    fprintf(f, "{\"ok\":true,\"version\":\"%s\",\"pid\":%d,\"uptime_s\":%llu,\"state\":\"%s\",\"loops\":%u", WEIR_VERSION,
            (int)getpid(), (ull)(clock_monotonic_ms() - s->started_ms) / 1000, s->draining ? "draining" : "serving",
            s->n_workers);
    fprintf(f, ",\"restarts\":%u,\"generation\":%llu", s->restarts, (ull)s->snapshot->generation);
    print_member(f, "configuration", str_c(s->name));
    print_disk(f, s);
    fprintf(f, ",\"clients\":%u,\"clients_max\":%u,\"tunnels\":%llu,\"accepted\":%llu,\"requests\":%llu",
            atomic_load(&s->shared->clients), s->shared->clients_max, SUM(tunnels), SUM(accepted), SUM(requests));
    fprintf(f, ",\"bytes_in\":%llu,\"bytes_out\":%llu,\"status\":{", SUM(bytes_in), SUM(bytes_out));
    for (unsigned class = 1; class <= 5; class++)
        fprintf(f, "%s\"%uxx\":%llu", class > 1 ? "," : "", class,
                sum(s, offsetof(struct counters, status_class) + class * sizeof(atomic_ullong)));
    fputc('}', f);
    print_failures(f, s);
    fprintf(f, ",\"log_lines_dropped\":%llu,\"upstreams\":[", (ull)s->log_lines_dropped);
    for (unsigned i = 0; i < c->n_upstreams; i++) {
        if (i > 0)
            fputc(',', f);
        print_upstream(f, s->snapshot->upstreams[i]);
    }
    fputs("]}", f);
}
