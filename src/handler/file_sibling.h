/* SPDX-License-Identifier: MIT */
/* Files that lie beside others in compressed form: FILE.br, FILE.zst, FILE.gz. */
#ifndef HANDLER_FILE_SIBLING_H
#define HANDLER_FILE_SIBLING_H

#include "handler/file_cache.h"
#include "serve/handler.h"

/* Answers with the sibling of f that the client likes best, under what `head` (f itself, or as in file_serve) says,
 * but with the sibling's validators. False: f itself is the answer, and r->resp says Vary if there are siblings;
 * nothing has been sent. want is what f was found with. */
bool sibling_serve(struct request *r, struct file_cache *c, const struct file_want *want, struct file *f,
                   const struct file *head) MUST_USE;

#endif
