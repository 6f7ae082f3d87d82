/* SPDX-License-Identifier: MIT */
/*
 * Fixed answers: a status with a text of the configuration, or with the small page for that status.
 *
 * Owns nothing: the text belongs to the snapshot the request holds, and the answer is complete when start returns.
 * Every method is answered alike, because whoever wrote `respond` meant it; a body that comes with the request is the
 * client layer's to discard.
 */
#include "handler/fixed.h"

#include "http/status.h"
#include "serve/respond.h"

static enum handled fixed_start(struct request *r)
{
    const struct action *a = r->action;
    uint16_t status = a->u.respond.status ? a->u.respond.status : 200;
    request_note(r, "respond", a->u.respond.body, a->where);
    if (a->u.respond.has_body) {
        struct str type = a->u.respond.type.n ? a->u.respond.type : STR("text/plain; charset=utf-8");
        respond_simple(r, status, type, a->u.respond.body);
    } else if (status >= 300) {
        respond_page(r, status);
    } else {
        respond_simple(r, status, STR_NONE, STR_NONE);
    }
    return HANDLED;
}

const struct handler fixed_handler = { .name = "respond", .start = fixed_start };
