/* SPDX-License-Identifier: MIT */
/* Lines of access logs, as far as `weir suggest` needs them. Pure. */
#ifndef CLI_SUGGEST_LOG_H
#define CLI_SUGGEST_LOG_H

#include "base/arena.h"

struct logged {
    struct str method, target; /* in the line, or in the arena where escapes were undone */
    unsigned status;
    uint64_t bytes; /* of the body; 0 if the line does not say */
};

/* One line without its end: combined or common (weir, nginx, Apache; more fields may follow), or a JSON object (weir's
 * names or those people usually give nginx). False: it is neither. */
bool suggest_log_line(struct arena *a, struct str line, struct logged *out) MUST_USE;

#endif
