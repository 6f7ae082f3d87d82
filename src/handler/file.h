/* SPDX-License-Identifier: MIT */
/* Answers with a file beneath a root (ACTION_FILE): conditions, ranges, index files, folder redirects. */
#ifndef HANDLER_FILE_H
#define HANDLER_FILE_H

#include "handler/file_cache.h"
#include "serve/handler.h"

extern const struct handler file_handler;

/* For other handlers that answer with files. The loop's cache (the file handler of this worker has been opened). */
struct file_cache *file_cache_of(const struct worker *w);
/* What to ask it for on behalf of this request. */
struct file_want file_want_of(const struct request *r, struct str root, uint64_t root_hash, struct str path);
/* GET and HEAD only: anything else is answered (405), and true returned. */
bool file_refuses(struct request *r);
/* Answers with f: conditions, ranges, head, bytes. `head` is f itself, or a copy of it with a block, type, validators
 * and the like of its own; what those point to must live as long as the request. The request's handler must pass
 * resume and abort on to the two below, and its handler_data is theirs. */
void file_serve(struct request *r, struct file *f, const struct file *head);
/* The same with a compressed sibling in its place where the client likes one better; want is what f was found with. */
void file_answer(struct request *r, const struct file_want *want, struct file *f, const struct file *head);
/* Answers with the file of this path (relative) beneath a root, or fails the request. r->handler is file_handler. */
void file_send(struct request *r, struct str root, struct str path);
void file_resume(struct request *r);
void file_abort(struct request *r);

#endif
