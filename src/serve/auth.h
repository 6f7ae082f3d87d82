/* SPDX-License-Identifier: MIT */
/* Checking passwords without stopping a loop: a thread that hashes, and a memory of who was right a moment ago. */
#ifndef SERVE_AUTH_H
#define SERVE_AUTH_H

#include "http/credentials.h"
#include "serve/request.h"

struct auth;
struct auth_job;

enum auth_result { AUTH_WRONG, AUTH_RIGHT, AUTH_WAIT, AUTH_BUSY };

/* NULL: no memory. Its thread begins with the first password. */
struct auth *auth_new(void) MUST_USE;
/* Ends the thread, after the hash it is at. While loops still exist, and no longer run. */
void auth_free(struct auth *a);

/* Are these right for that list? AUTH_WAIT: *job is set, and later r is woken, with the answer in auth_answer. AUTH_BUSY: too
 * many wait already, or memory is out. An unknown user takes as long as a known one. Loop's thread. */
enum auth_result auth_ask(struct request *r, const struct auth_conf *conf, const struct credentials *c, struct auth_job **job);
/* AUTH_WAIT: not yet. Otherwise the job is gone, *job NULL. */
enum auth_result auth_answer(struct auth_job **job);
/* The request no longer wants to know. NULL and twice are fine. */
void auth_forget(struct auth_job **job);

#endif
