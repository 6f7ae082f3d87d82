/* SPDX-License-Identifier: MIT */
/*
 * A client without a connection: a request given as text, its answer collected in memory. For `weir explain` and for tests of the
 * request path. File ranges are not read, only described.
 */
#ifndef SERVE_CLIENT_MEMORY_H
#define SERVE_CLIENT_MEMORY_H

#include "serve/request.h"

struct memory_answer {
    uint16_t status;
    struct fields fields;     /* in `arena`, framing fields left out */
    struct str block;
    bool has_length;
    uint64_t length;
    struct str body;          /* memory parts of the body; at most 1 MB is kept */
    uint64_t file_bytes;      /* bytes that would have come from a file */
    bool complete;            /* ended, not cut */
    bool waits;               /* not answered: it would have to wait for something outside */
    enum fail fail;
    struct arena arena;
};

/* Runs one request (a whole HTTP/1.1 message as text) on this worker, whose loop is not running, until it is answered or has to wait for
 * something outside. trace may be NULL. False: the text is no complete request head (out->fail says why). The answer is the
 * caller's: memory_answer_free. */
bool client_memory_run(struct worker *w, const struct listen_conf *listen, struct str text, const struct ip *peer,
                       struct trace *trace, struct memory_answer *out) MUST_USE;
void memory_answer_free(struct memory_answer *a);

#endif
