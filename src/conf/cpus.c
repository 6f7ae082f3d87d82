/* SPDX-License-Identifier: MIT */
/*
 * `workers` and `cpu_affinity`. "auto" is what this process may really use: the CPUs of its affinity mask, and no more
 * than its cgroup's quota allows (cgroup v2: cpu.max of the group and of every group above it). In a container with a
 * quota of half a CPU that is one.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/load.h"

enum { WORKERS_MAX = 256, CPU_MAX = 1023 };

static struct str small_file(const char *path, char *buf, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return STR_NONE;
    ssize_t n = read(fd, buf, cap);
    close(fd);
    return n > 0 ? str_of(buf, (size_t)n) : STR_NONE;
}

/* "50000 100000\n" → 1; "max 100000" → 0, no bound. */
static unsigned quota_of(struct str text)
{
    ptrdiff_t space = str_chr(text, ' ', 0);
    uint64_t quota, period;
    if (space < 0)
        return 0;
    struct str rest = str_skip(text, (size_t)space + 1);
    ptrdiff_t eol = str_chr(rest, '\n', 0);
    if (eol >= 0)
        rest = str_take(rest, (size_t)eol);
    if (!str_to_u64(str_take(text, (size_t)space), &quota) || !str_to_u64(rest, &period) || period == 0)
        return 0;
    uint64_t cpus = quota / period + (quota % period != 0);
    return cpus == 0 ? 1 : cpus > WORKERS_MAX ? WORKERS_MAX : (unsigned)cpus;
}

/* The path of this process's group in the one hierarchy: the line "0::/path". */
static struct str own_group(struct str text)
{
    while (text.n > 0) {
        ptrdiff_t eol = str_chr(text, '\n', 0);
        struct str line = str_take(text, eol < 0 ? text.n : (size_t)eol);
        if (str_starts(line, STR("0::/")))
            return str_skip(line, 3);
        text = str_skip(text, line.n + 1);
    }
    return STR_NONE;
}

static unsigned quota_cpus(void)
{
    char buf[4096], path[5000], max[64];
    struct str group = own_group(small_file("/proc/self/cgroup", buf, sizeof buf));
    unsigned least = 0;
    if (group.p == NULL)
        return 0;
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%.*s/cpu.max", STR_ARG(group));
        unsigned cpus = quota_of(small_file(path, max, sizeof max));
        if (cpus > 0 && (least == 0 || cpus < least))
            least = cpus;
        if (group.n == 0)
            return least;
        do
            group.n--;
        while (group.n > 0 && group.p[group.n] != '/');
    }
}

unsigned cpus_auto(bool may_read_files)
{
    cpu_set_t set;
    if (!may_read_files)
        return 1;
    unsigned cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    unsigned quota = quota_cpus();
    if (quota > 0 && quota < cpus)
        cpus = quota;
    return cpus == 0 ? 1 : cpus > WORKERS_MAX ? WORKERS_MAX : cpus;
}

bool read_workers(const struct value *v)
{
    struct str text;
    int64_t n;
    if (value_number(v, &n)) {
        if (n < 1 || n > WORKERS_MAX) {
            diag_bad(v, "%lld is out of range; expected %s", (long long)n, type_expected[TYPE_WORKERS]);
            return false;
        }
        v->t->conf->workers = (unsigned)n;
        return true;
    }
    if (!value_text(v, &text) || !str_eq_nocase(text, STR("auto")))
        return diag_bad_type(v);
    v->t->conf->workers = cpus_auto(!(v->ld->flags & CONF_NO_FILES));
    return true;
}

bool read_cpus(const struct value *v)
{
    struct load *ld = v->ld;
    unsigned n = value_count(v);
    unsigned *list = load_array(ld, unsigned, n);
    cpu_set_t set;
    bool knows_set = !(ld->flags & CONF_NO_FILES) && sched_getaffinity(0, sizeof set, &set) == 0;
    bool is_right = true;
    for (unsigned i = 0; i < n; i++) {
        struct value item = value_at(v, i);
        int64_t cpu;
        if (!value_number(&item, &cpu)) {
            is_right = diag_bad_type(&item);
            continue;
        }
        if (cpu < 0 || cpu > CPU_MAX) {
            diag_bad(&item, "%lld is out of range; expected %s", (long long)cpu, type_expected[TYPE_CPUS]);
            is_right = false;
            continue;
        }
        if (knows_set && !CPU_ISSET((size_t)cpu, &set))
            diag_warn(&item, "this process may not run on CPU %lld here", (long long)cpu);
        list[i] = (unsigned)cpu;
    }
    v->t->conf->cpu_affinity = list;
    v->t->conf->n_cpu_affinity = n;
    return is_right;
}
