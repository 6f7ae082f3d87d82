/* SPDX-License-Identifier: MIT */
/* Run-time variables (conf/vars.def) of a request: templates become text. */
#ifndef SERVE_VARS_H
#define SERVE_VARS_H

#include "serve/request.h"

/* The template's text for this request, in its arena; p is NULL when memory is out. Unknown values are empty. */
struct str vars_eval(struct request *r, const struct template *t) MUST_USE;
/* The same where the result is a URL: what comes from the decoded path ($uri, captures) is percent-encoded again. */
struct str vars_eval_url(struct request *r, const struct template *t) MUST_USE;

/* The same where the result is a field's value: control bytes that a variable brings (a decoded path may hold a line
 * break) are percent-encoded, so that it stays one line. */
struct str vars_eval_field(struct request *r, const struct template *t) MUST_USE;

/* The value of one variable; empty if it is unknown. Borrowed or in the request's arena. */
struct str vars_value(struct request *r, const struct template_piece *v);

#endif
