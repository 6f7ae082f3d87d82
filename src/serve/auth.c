/* SPDX-License-Identifier: MIT */
/*
 * Passwords for basic_auth. crypt(3) takes milliseconds to a second, by design; so one thread of the server does it, for at most
 * QUEUE_MAX requests that wait, in their order. Who is beyond that gets a 503; who has logged in within the last minute is
 * known by the cache, and waits for nobody.
 *
 * The cache is of a fixed size: SHA-256 over a secret of this process, the stored hash, the user and the password. So it holds
 * no password, and one that is changed by a reload is forgotten with its hash. Only what was right is kept; digests are
 * compared in constant time.
 *
 * A job belongs to the request's loop: it is made and freed there. The thread only reads it, writes `is_right`, and sends it
 * back by mail. A request that leaves before clears job->r, on the same loop.
 */
#include "serve/auth.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"

enum { QUEUE_MAX = 256, CACHE_SETS = 256, CACHE_WAYS = 4, KEPT_MS = 60 * 1000 };

struct digest {
    unsigned char b[SHA256_DIGEST_LENGTH];
};

struct known {
    struct digest digest;
    uint64_t until_ms; /* 0: empty */
};

struct auth_job {
    struct mail mail;
    struct auth_job *next;
    struct auth *auth;
    struct loop *loop;
    struct request *r; /* NULL: it has left */
    struct digest digest;
    bool is_known;     /* the user is in the list */
    bool is_right, is_done;
    char hash[AUTH_HASH_MAX];
    struct credentials credentials;
};

struct auth {
    pthread_mutex_t mutex;
    pthread_cond_t wanted;
    pthread_t thread;
    bool has_thread, ends;
    unsigned n_waiting;
    struct auth_job *first, **end;
    unsigned char secret[32];
    struct known known[CACHE_SETS][CACHE_WAYS];
};

struct auth *auth_new(void)
{
    struct auth *a = calloc(1, sizeof(*a));
    if (a == NULL)
        return NULL;
    if (RAND_bytes(a->secret, sizeof(a->secret)) != 1) {
        free(a);
        return NULL;
    }
    a->end = &a->first;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->wanted, NULL);
    return a;
}

static void job_free(struct auth_job *job)
{
    OPENSSL_cleanse(&job->credentials, sizeof(job->credentials));
    free(job);
}

/* --- the cache; under the mutex --- */

static struct digest digest_of(const struct auth *a, const char *hash, const struct credentials *c)
{
    struct digest d = { 0 };
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    /* Each part ends with its NUL: no two lists of parts are the same bytes. */
    bool is_made = md != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
                   EVP_DigestUpdate(md, a->secret, sizeof(a->secret)) == 1 && EVP_DigestUpdate(md, hash, strlen(hash) + 1) == 1 &&
                   EVP_DigestUpdate(md, c->user.p, c->user.n + 1) == 1 &&
                   EVP_DigestUpdate(md, c->password.p, c->password.n + 1) == 1 && EVP_DigestFinal_ex(md, d.b, NULL) == 1;
    EVP_MD_CTX_free(md);
    if (!is_made)
        RAND_bytes(d.b, sizeof(d.b)); /* equal to nothing */
    return d;
}

static bool is_known_now(const struct auth *a, const struct digest *d, uint64_t now_ms)
{
    const struct known *set = a->known[d->b[0]];
    bool is_found = false;
    for (unsigned i = 0; i < CACHE_WAYS; i++)
        is_found |= set[i].until_ms > now_ms && CRYPTO_memcmp(set[i].digest.b, d->b, sizeof(d->b)) == 0;
    return is_found;
}

static void remember(struct auth *a, const struct digest *d, uint64_t now_ms)
{
    struct known *set = a->known[d->b[0]], *oldest = set;
    for (unsigned i = 1; i < CACHE_WAYS; i++)
        if (set[i].until_ms < oldest->until_ms)
            oldest = &set[i];
    *oldest = (struct known){ .digest = *d, .until_ms = now_ms + KEPT_MS };
}

/* --- the thread --- */

static bool check_password(const struct auth_job *job, struct crypt_data *data)
{
    const char *made = crypt_rn(job->credentials.password.p, job->hash, data, sizeof(*data));
    if (made == NULL)
        return false;
    size_t n = strlen(job->hash);
    bool is_same = strlen(made) == n && CRYPTO_memcmp(made, job->hash, n) == 0;
    OPENSSL_cleanse(data, sizeof(*data));
    return is_same && job->is_known;
}

static void on_done(struct loop *l, struct mail *mail)
{
    struct auth_job *job = container_of(mail, struct auth_job, mail);
    (void)l;
    job->is_done = true;
    if (job->r == NULL)
        job_free(job);
    else
        request_wake(job->r);
}

static void *run(void *arg)
{
    struct auth *a = arg;
    (void)pthread_setname_np(pthread_self(), "weir-auth");
    struct crypt_data *data = calloc(1, sizeof(*data));
    pthread_mutex_lock(&a->mutex);
    while (!a->ends) {
        struct auth_job *job = a->first;
        if (job == NULL) {
            pthread_cond_wait(&a->wanted, &a->mutex);
            continue;
        }
        a->first = job->next;
        if (a->first == NULL)
            a->end = &a->first;
        pthread_mutex_unlock(&a->mutex);
        job->is_right = data != NULL && check_password(job, data);
        pthread_mutex_lock(&a->mutex);
        a->n_waiting--;
        if (job->is_right)
            remember(a, &job->digest, clock_monotonic_ms());
        mailbox_post(job->loop, &job->mail);
    }
    pthread_mutex_unlock(&a->mutex);
    free(data);
    return NULL;
}

void auth_free(struct auth *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->mutex);
    a->ends = true;
    pthread_cond_signal(&a->wanted);
    pthread_mutex_unlock(&a->mutex);
    if (a->has_thread)
        pthread_join(a->thread, NULL);
    while (a->first != NULL) {
        struct auth_job *job = a->first;
        a->first = job->next;
        job_free(job);
    }
    pthread_mutex_destroy(&a->mutex);
    pthread_cond_destroy(&a->wanted);
    OPENSSL_cleanse(a, sizeof(*a));
    free(a);
}

/* --- a loop's side --- */

/* The user's hash; of one that is not there somebody else's, so that it takes as long. */
static const struct auth_user *find(const struct auth_conf *conf, struct str name, bool *is_known)
{
    const struct auth_user *user = &conf->users[0];
    *is_known = false;
    for (unsigned i = 0; i < conf->n_users; i++) {
        if (!str_eq(conf->users[i].name, name))
            continue;
        user = &conf->users[i];
        *is_known = true;
    }
    return user;
}

/* Under the mutex. */
static bool put(struct auth *a, struct auth_job *job)
{
    if (a->n_waiting >= QUEUE_MAX)
        return false;
    if (!a->has_thread && pthread_create(&a->thread, NULL, run, a) != 0)
        return false;
    a->has_thread = true;
    a->n_waiting++;
    *a->end = job;
    a->end = &job->next;
    pthread_cond_signal(&a->wanted);
    return true;
}

enum auth_result auth_ask(struct request *r, const struct auth_conf *conf, const struct credentials *c, struct auth_job **job)
{
    struct auth *a = r->w->shared->auth;
    if (a == NULL)
        return AUTH_BUSY;
    if (conf->n_users == 0)
        return AUTH_WRONG;
    struct auth_job *new = calloc(1, sizeof(*new));
    if (new == NULL)
        return AUTH_BUSY;
    const struct auth_user *user = find(conf, c->user, &new->is_known);
    memcpy(new->hash, user->hash.p, user->hash.n);
    new->credentials = *c;
    new->credentials.user.p = new->credentials.text;
    new->credentials.password.p = new->credentials.text + c->user.n + 1;
    new->auth = a;
    new->loop = r->w->loop;
    new->r = r;
    new->mail.run = on_done;
    new->digest = digest_of(a, new->hash, &new->credentials);
    pthread_mutex_lock(&a->mutex);
    enum auth_result result = new->is_known && is_known_now(a, &new->digest, new->loop->now_ms) ? AUTH_RIGHT
        : put(a, new)                                                                            ? AUTH_WAIT
                                                                                                 : AUTH_BUSY;
    pthread_mutex_unlock(&a->mutex);
    if (result == AUTH_WAIT)
        *job = new;
    else
        job_free(new);
    return result;
}

enum auth_result auth_answer(struct auth_job **job)
{
    if (!(*job)->is_done)
        return AUTH_WAIT;
    enum auth_result result = (*job)->is_right ? AUTH_RIGHT : AUTH_WRONG;
    job_free(*job);
    *job = NULL;
    return result;
}

void auth_forget(struct auth_job **job)
{
    if (*job == NULL)
        return;
    if ((*job)->is_done)
        job_free(*job);
    else
        (*job)->r = NULL;
    *job = NULL;
}
