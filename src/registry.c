/* SPDX-License-Identifier: MIT */
/*
 * The explicit lists: nothing registers itself, so who answers what stands here and nowhere else.
 *
 * Owns nothing; the array is constant and every loop reads it. To add a handler, add its kind to enum action_kind
 * (conf/conf.h), its files to handler/local.mk and its line here; a filter has its files in filter/local.mk and its line
 * below. Who goes first on a request is decided by the location's list of actions, not by the order here.
 */
#include "registry.h"

#include "filter/gzip.h"
#include "handler/builtin.h"
#include "handler/file.h"
#include "handler/fixed.h"
#include "handler/meteor.h"
#include "handler/proxy.h"
#include "handler/redirect.h"

const struct handler *const registry_handlers[ACTION_COUNT] = {
    [ACTION_FILE] = &file_handler,     [ACTION_PROXY] = &proxy_handler,     [ACTION_REDIRECT] = &redirect_handler,
    [ACTION_RESPOND] = &fixed_handler, [ACTION_BUILTIN] = &builtin_handler, [ACTION_METEOR] = &meteor_handler,
};

_Static_assert(ACTION_COUNT == 6, "every kind of action has its handler above");

const struct filter *const registry_filters[] = { &gzip_filter, NULL };

_Static_assert(ARRAY_LEN(registry_filters) <= WORKER_FILTERS + 1, "a worker has room for each filter");
