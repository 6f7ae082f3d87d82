/* SPDX-License-Identifier: MIT */
/*
 * What comes over the control socket (control.h knows how it comes). Each command does what a signal would do, or asks
 * about the server, and is answered with one object of JSON: at once, or, for reloads and upgrades, when it is known
 * what became of them. Who waits is remembered in struct process by the number that control.h gave him; he may have
 * gone by then.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "proc/orders.h"
#include "proc/server_private.h"
#include "proc/status.h"

/* The findings as JSON strings, one for each line. */
static void print_findings(FILE *f, const char *findings)
{
    struct str rest = str_c(findings);
    const char *separator = "";
    fputc('[', f);
    while (rest.n > 0) {
        ptrdiff_t end = str_chr(rest, '\n', 0);
        struct str line = end < 0 ? rest : str_take(rest, (size_t)end);
        fputs(separator, f);
        control_print_string(f, line);
        separator = ",";
        rest = str_skip(rest, line.n + 1);
    }
    fputc(']', f);
}

void commands_answer_reload(struct process *p, bool is_taken)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = p->n_asked > 0 ? open_memstream(&text, &n) : NULL;
    if (f != NULL) {
        fprintf(f, "{\"ok\":%s,\"generation\":%llu,", is_taken ? "true" : "false", server_generation(p));
        if (is_taken) {
            fputs("\"changes\":", f);
            control_print_string(f, str_c(p->loader.changes));
            fprintf(f, ",\"connections_kept\":%u,", atomic_load(&p->shared.clients));
        } else {
            fprintf(f, "\"error\":\"still on generation %llu\",", server_generation(p));
        }
        fputs("\"findings\":", f);
        print_findings(f, p->loader.findings);
        fputc('}', f);
        fclose(f);
        for (unsigned i = 0; i < p->n_asked; i++)
            control_answer(p->control, p->asked[i], str_of(text, n));
    }
    free(text);
    p->n_asked = 0;
}

static void answer_status(struct process *p, unsigned who)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    struct status_facts facts = {
        .snapshot = &p->generations->snapshot,
        .workers = p->workers,
        .n_workers = p->n_threads,
        .shared = &p->shared,
        .name = p->o->name,
        .path = p->o->path,
        .started_ms = p->started_ms,
        .restarts = p->o->restarts,
        .draining = p->stage != STAGE_SERVING,
    };
    for (unsigned i = 0; i < p->n_threads; i++)
        facts.log_lines_dropped += atomic_load_explicit(&p->threads[i].ring->dropped, memory_order_relaxed);
    if (f != NULL) {
        status_print(f, &facts);
        fclose(f);
        control_answer(p->control, who, str_of(text, n));
    } else {
        control_refuse(p->control, who, "out of memory");
    }
    free(text);
}

static void ask_reload(struct process *p, unsigned who)
{
    const char *obstacle = server_reload_obstacle(p);
    if (obstacle != NULL) {
        control_refuse(p->control, who, obstacle);
        return;
    }
    if (p->n_asked_again < ARRAY_LEN(p->asked_again))
        p->asked_again[p->n_asked_again++] = who;
    server_reload(p);
}

static void ask_upgrade(struct process *p, unsigned who)
{
    if (p->upgrade_asker != 0) {
        control_refuse(p->control, who, "another upgrade is under way");
    } else if (link_say(p->o->link, LINK_UPGRADE, 0) != IO_OK) {
        control_refuse(p->control, who, "the supervisor does not answer");
    } else {
        p->upgrade_asker = who; /* until it hands over, or hears why not */
    }
}

static const char *order_server(struct process *p, struct str words)
{
    if (server_is_loading(p) && (p->is_taking || p->loader.job == LOADER_CONF))
        return "a configuration is being loaded; try again";
    const char *error = orders_run(p->upstreams, server_conf(p), words);
    if (error == NULL)
        server_save_orders(p);
    return error;
}

void commands_run(void *arg, enum control_verb verb, struct str words, unsigned who)
{
    struct process *p = arg;
    log_write(verb == CONTROL_STATUS ? LOG_DEBUG : LOG_NOTICE, "control socket: %s%s%.*s", control_verb_name(verb),
              words.n > 0 ? " " : "", STR_ARG(words));
    switch (verb) {
    case CONTROL_STATUS:
        answer_status(p, who);
        return;
    case CONTROL_RELOAD:
        ask_reload(p, who);
        return;
    case CONTROL_SERVER: {
        const char *error = order_server(p, words);
        if (error != NULL) {
            control_refuse(p->control, who, error);
            return;
        }
        break;
    }
    case CONTROL_REOPEN:
        log_writer_reopen(p->logs);
        break;
    case CONTROL_STOP:
    case CONTROL_STOP_NOW:
        stages_stop(p, verb == CONTROL_STOP_NOW);
        break;
    default:
        ask_upgrade(p, who);
        return;
    }
    control_answer(p->control, who, STR("{\"ok\":true}"));
}

void commands_answer_upgrade(struct process *p, const char *why)
{
    if (p->upgrade_asker != 0 && why == NULL)
        control_answer(p->control, p->upgrade_asker, STR("{\"ok\":true}"));
    else if (p->upgrade_asker != 0)
        control_refuse(p->control, p->upgrade_asker, why);
    p->upgrade_asker = 0;
}
