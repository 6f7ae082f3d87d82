/* SPDX-License-Identifier: MIT */
/*
 * Orders of an operator: "app/127.0.0.1:3000 drain". They live in the upstream table of a server process. So that a
 * crash or an upgrade does not send requests to what is down for maintenance, the supervisor keeps a memory file, which
 * every server has inherited: the one that serves writes there what holds, as lines of the same words, and the next one
 * takes them in before its first request. A line that no longer fits the configuration is passed over.
 */
#include "proc/orders.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

int orders_open(void)
{
    return memfd_create("weir-orders", MFD_CLOEXEC);
}

const char *orders_run(struct upstream_table *t, const struct conf *conf, struct str words)
{
    static const struct {
        const char *word;
        enum server_order order;
    } orders[] = { { "up", SERVER_UP }, { "down", SERVER_DOWN }, { "drain", SERVER_DRAIN } };
    uint64_t weight = 0;
    ptrdiff_t end = str_chr(words, ' ', 0);
    struct str name = end < 0 ? words : str_take(words, (size_t)end);
    struct str order = str_trim(str_skip(words, name.n));
    for (size_t i = 0; i < ARRAY_LEN(orders); i++)
        if (str_eq(order, str_c(orders[i].word)))
            return upstream_table_order(t, conf, name, orders[i].order, 0);
    if (str_starts(order, STR("weight ")) && str_to_u64(str_trim(str_skip(order, 7)), &weight) && weight <= 256)
        return upstream_table_order(t, conf, name, SERVER_WEIGHT, (unsigned)weight);
    return "expected UPSTREAM/ADDRESS and up, down, drain or weight N (0 to 256)";
}

void orders_save(int fd, const struct upstream_table *t)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = fd >= 0 ? open_memstream(&text, &n) : NULL;
    if (f == NULL)
        return;
    upstream_table_print_orders(f, t);
    bool ok = fclose(f) == 0 && ftruncate(fd, 0) == 0 && pwrite(fd, text, n, 0) == (ssize_t)n;
    if (!ok)
        log_write(LOG_WARN, "the supervisor does not hear what was said of servers: a crash or an upgrade forgets it");
    free(text);
}

void orders_restore(int fd, struct upstream_table *t, const struct conf *conf)
{
    struct stat st = { 0 };
    size_t size = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : 0;
    char *text = size > 0 ? malloc(size) : NULL;
    ssize_t n = text != NULL ? pread(fd, text, size, 0) : 0;
    struct str rest = str_of(text, n > 0 ? (size_t)n : 0);
    for (ptrdiff_t end; (end = str_chr(rest, '\n', 0)) >= 0; rest = str_skip(rest, (size_t)end + 1)) {
        struct str line = str_take(rest, (size_t)end);
        const char *error = orders_run(t, conf, line);
        if (error != NULL)
            log_write(LOG_WARN, "\"%.*s\" holds no longer: %s", STR_ARG(line), error);
    }
    free(text);
}
