/* SPDX-License-Identifier: MIT */
/*
 * The Meteor bundles that the configuration names, shared by all loops: read once, watched by a thread of their own,
 * read again when a deployment changed them. A loop asks through a view, which costs one atomic load.
 */
#ifndef HANDLER_METEOR_BUNDLE_H
#define HANDLER_METEOR_BUNDLE_H

#include "conf/conf.h"
#include "handler/meteor_manifest.h"

struct meteor_bundle;

/* A loop opens its state / is done. The last one to leave ends the watching and frees everything. */
void meteor_bundles_enter(void);
void meteor_bundles_leave(void);
/* Reads the bundles of this configuration that are not known yet, on the caller's thread, and watches them from now
 * on. Those that no configuration names any more go when no view is left. */
void meteor_bundles_prepare(const struct conf *c);

/* What one loop holds of one bundle. */
struct meteor_view {
    struct meteor_view *next;
    struct meteor_bundle *bundle;
    struct meteor_manifest *manifest; /* NULL: none was ever read */
    unsigned seen;
    uint64_t hash; /* of the path */
    uint64_t used_ms;
};

/* NULL: out of memory. path as in struct action (NUL-terminated). */
struct meteor_view *meteor_view_open(struct str path, uint64_t hash) MUST_USE;
void meteor_view_close(struct meteor_view *v);
struct str meteor_view_path(const struct meteor_view *v);
/* The manifest in force, valid until the loop's next call for this view; NULL: none. */
const struct meteor_manifest *meteor_view_get(struct meteor_view *v);

#endif
