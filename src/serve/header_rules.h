/* SPDX-License-Identifier: MIT */
/* The header rules of a location (request_headers, response_headers, add_response_headers): what they make of the
 * fields of one message. */
#ifndef SERVE_HEADER_RULES_H
#define SERVE_HEADER_RULES_H

#include "serve/request.h"

/* The request as it goes to a backend: r->s's request_headers are applied to f, whose values are borrowed or in the
 * request's arena. False: out of memory, and f is not to be used. */
bool header_rules_request(struct request *r, struct fields *f) MUST_USE;
/* r->resp is filled, and nothing of it has gone out: r->carried and then r->s's response_headers are applied to it.
 * Want of memory leaves a line as it was, and is logged. */
void header_rules_answer(struct request *r);

#endif
