/* SPDX-License-Identifier: MIT */
/*
 * basic_auth: who may log in, from a file and from the configuration itself. Both hold "user:hash" with a hash of crypt(5)
 * that is slow by design; everything else (MD5, SHA-1, clear text) is refused at load, with what to write instead, rather
 * than at each login. The file is read here, on the loader's thread: a change of it takes a reload.
 */
#include <errno.h>

#include "conf/check.h"

static const char how[] = "a hash of crypt(5): made by `mkpasswd` (yescrypt), `openssl passwd -6` or `htpasswd -B`";

/* yescrypt, gost-yescrypt, scrypt, bcrypt, SHA-512 and SHA-256. */
static bool is_strong(struct str hash)
{
    static const struct str starts[] = { { "$y$", 3 }, { "$gy$", 4 }, { "$7$", 3 }, { "$2b$", 4 }, { "$2y$", 4 }, { "$2a$", 4 },
                                         { "$6$", 3 }, { "$5$", 3 } };
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (str_starts(hash, starts[i]) && hash.n > starts[i].n + 20 && hash.n < AUTH_HASH_MAX)
            return true;
    return false;
}

static const char *name_hash(struct str hash)
{
    return str_starts(hash, STR("$apr1$"))  ? "Apache's MD5"
        : str_starts(hash, STR("$1$"))      ? "MD5"
        : str_starts(hash, STR("{SHA}"))    ? "SHA-1"
        : str_starts(hash, STR("{PLAIN}"))  ? "a clear text"
        : hash.n == 13                      ? "DES, or a clear text"
                                            : "no hash that is known";
}

/* One "user:hash" into auth's list, which has room. where: "in users", or "in FILE, line N". */
static bool add_user(const struct value *v, struct auth_conf *auth, struct auth_user *list, struct str text, const char *where)
{
    ptrdiff_t colon = str_chr(text, ':', 0);
    struct str name = colon < 0 ? STR_NONE : str_take(text, (size_t)colon);
    struct str hash = colon < 0 ? STR_NONE : str_skip(text, (size_t)colon + 1);
    if (name.n == 0 || name.n > 255) {
        diag_bad(v, "%s: not \"user:hash\"; expected %s", where, how);
        return false;
    }
    if (!is_strong(hash)) {
        diag_bad(v, "%s: the password of \"%.*s\" is %s; expected %s", where, STR_ARG(name), name_hash(hash), how);
        return false;
    }
    for (unsigned i = 0; i < auth->n_users; i++)
        if (str_eq(list[i].name, name)) {
            diag_bad(v, "%s: user \"%.*s\" for the second time; expected it once", where, STR_ARG(name));
            return false;
        }
    /* Kept by the conf, NUL-terminated: crypt(3) takes them so. */
    list[auth->n_users++] = (struct auth_user){ .name = load_dup(v->ld, name), .hash = load_dup(v->ld, hash) };
    return true;
}

static bool add_lines(const struct value *v, struct auth_conf *auth, struct auth_user *list, struct str text)
{
    bool is_right = true;
    for (unsigned n = 1; text.n > 0; n++) {
        ptrdiff_t lf = str_chr(text, '\n', 0);
        struct str line = str_trim(lf < 0 ? text : str_take(text, (size_t)lf));
        text = lf < 0 ? STR_NONE : str_skip(text, (size_t)lf + 1);
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        if (line.n > 0 && line.p[0] != '#')
            is_right &= add_user(v, auth, list, line, load_printf(v->ld, "\"%.*s\", line %u", STR_ARG(auth->file), n).p);
    }
    return is_right;
}

/* The text of the users' file; empty without one, or when it is not to be read. */
static bool read_file(const struct value *v, const struct auth_conf *auth, struct str *out)
{
    *out = STR_NONE;
    if (auth->file.n == 0 || (v->ld->flags & CONF_NO_FILES) || load_file(v->ld, auth->file.p, out))
        return true;
    return check_missing(v, auth->file, "a file that can be read", errno);
}

static unsigned count_lines(struct str s)
{
    unsigned n = 1;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == '\n';
    return n;
}

static bool read_users(const struct value *v, struct auth_conf *auth, const struct value *users)
{
    struct str text;
    if (!read_file(v, auth, &text))
        return false;
    unsigned n = users->s != NULL ? value_count(users) : 0;
    struct auth_user *list = load_array(v->ld, struct auth_user, count_lines(text) + n);
    auth->users = list;
    bool is_right = add_lines(v, auth, list, text);
    for (unsigned i = 0; i < n; i++) {
        struct value item = value_at(users, i);
        struct str user;
        if (value_text(&item, &user))
            is_right &= add_user(&item, auth, list, user, "here");
        else
            is_right = diag_bad_type(&item);
    }
    return is_right;
}

bool read_basic_auth(const struct value *v)
{
    struct load *ld = v->ld;
    config_setting_t *written[SET_COUNT] = { 0 };
    struct target t = *v->t;
    unsigned n_errors = ld->out->n_errors;
    if (value_is_off(v)) {
        v->t->scoped->basic_auth = NULL;
        return true;
    }
    if (!value_is_group(v))
        return diag_bad_type(v);
    struct auth_conf *auth = load_new(ld, struct auth_conf);
    t.part = auth;
    t.written = written;
    auth->realm = STR("restricted");
    area_read(ld, v->s, AREA_basic_auth, &t);
    v->t->scoped->basic_auth = auth; /* whatever is wrong: never open by mistake */
    if (ld->out->n_errors > n_errors)
        return false;
    if (auth->file.n == 0 && written[SET_basic_auth_users] == NULL) {
        diag_bad(v, "nobody could log in; expected file = \"users\"; or users = ( \"name:hash\" );");
        return false;
    }
    struct value users = value_of(ld, written[SET_basic_auth_users], &settings[SET_basic_auth_users], &t);
    return read_users(v, auth, &users);
}
