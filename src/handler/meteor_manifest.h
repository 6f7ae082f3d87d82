/* SPDX-License-Identifier: MIT */
/*
 * A Meteor bundle's client programs as data: which URL is which file, with what head. Pure: text in, structs out. The
 * rules are those of Meteor's webapp package (docs/meteor.md).
 */
#ifndef HANDLER_METEOR_MANIFEST_H
#define HANDLER_METEOR_MANIFEST_H

#include "base/arena.h"
#include "base/map.h"

enum { METEOR_PROGRAMS_MAX = 16 };

/* One file of one program. */
struct meteor_entry {
    const struct meteor_program *program;
    struct str path;        /* below the program's folder; NUL-terminated */
    struct str type;        /* of Content-Type; static or in the manifest's arena */
    struct str etag;        /* with quotes; empty: the manifest has no hash for it */
    struct str source_map;  /* value of SourceMap; empty: none */
    struct str block;       /* the header lines while the file is what the manifest describes */
    size_t type_line;       /* bytes of the first of them */
    int64_t size;           /* -1: not said */
    bool has_sha1;          /* the hash is one: the content can be compared with it */
    unsigned char sha1[20];
    bool cacheable;
    bool immutable; /* and its URL is named by the content */
};

/* programs/NAME */
struct meteor_program {
    struct str name;   /* "web.browser" */
    struct str prefix; /* "/__browser": a path that begins so asks for this program */
    struct str root;   /* its folder, all links resolved; NUL-terminated */
    uint64_t root_hash;
    struct map by_url; /* decoded path -> struct meteor_entry */
    unsigned n_entries, n_left_out;
    struct str left_out; /* of the first of them: what was wrong */
};

struct meteor_manifest {
    struct arena arena;
    struct meteor_program programs[METEOR_PROGRAMS_MAX]; /* in the order Meteor has them: by name */
    unsigned n_programs;
    unsigned holders;             /* the bundle and the loops' views; under the bundles' lock */
    struct meteor_manifest *next; /* among those without holder */
};

/* An empty one; NULL: out of memory. */
struct meteor_manifest *meteor_manifest_new(void) MUST_USE;
void meteor_manifest_free(struct meteor_manifest *m);

/* Adds the program that this program.json describes; programs come in the order of their names. name and root are
 * copied. False: it is none, or there is no memory, and *reason says so (in the manifest's arena or static). Single
 * entries that cannot be served are left out and counted. */
bool meteor_manifest_add(struct meteor_manifest *m, struct str name, struct str root, uint64_t root_hash,
                         struct str json, struct str *reason) MUST_USE;

enum meteor_answer {
    METEOR_NONE,    /* not a file of the bundle: the app's */
    METEOR_FILE,
    METEOR_DEPENDS, /* the program for modern browsers and the one for others have different files of this name, and
                     * only the app knows which browsers it takes for modern; the entry is the modern one */
};

/* Whose is this path? path: decoded once, nothing else done to it. raw: as it came. */
enum meteor_answer meteor_manifest_find(const struct meteor_manifest *m, struct str path, struct str raw,
                                        const struct meteor_entry **out);

#endif
