/* SPDX-License-Identifier: MIT */
/*
 * What is wrong although every value by itself is right: things that are not there on this machine, upstreams that
 * nobody uses, sites and locations that no request can reach, sessions that would be scattered. The first stop the
 * load (a server that starts and then answers 404 to everything helps nobody); the others only warn. A text that was
 * served before loads in spite of a folder that is gone: a restart after a crash must not depend on what a deployment
 * is doing at that moment.
 */
#include "conf/check.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

bool check_missing(const struct value *v, struct str path, const char *what, int error)
{
    if (v->ld->is_replay) {
        diag_warn(v, "\"%.*s\": %s; expected %s", STR_ARG(path), strerror(error), what);
        return true;
    }
    diag_bad(v, "\"%.*s\": %s; expected %s", STR_ARG(path), strerror(error), what);
    return false;
}

bool check_folder(const struct value *v, struct str path)
{
    struct stat st;
    static const char what[] = "a folder that can be read";
    struct str z = load_dup(v->ld, path);
    if (v->ld->flags & CONF_NO_FILES)
        return true;
    if (stat(z.p, &st) < 0)
        return check_missing(v, path, what, errno);
    if (!S_ISDIR(st.st_mode))
        return check_missing(v, path, what, ENOTDIR);
    if (faccessat(AT_FDCWD, z.p, X_OK, AT_EACCESS) < 0)
        return check_missing(v, path, what, errno);
    return true;
}

bool check_exists(const struct value *v, struct str path)
{
    struct str z = load_dup(v->ld, path);
    if ((v->ld->flags & CONF_NO_FILES) || faccessat(AT_FDCWD, z.p, R_OK, AT_EACCESS) == 0)
        return true;
    return check_missing(v, path, "a file or folder that can be read", errno);
}

bool check_user(const struct value *v, struct str user)
{
    if ((v->ld->flags & CONF_NO_FILES) || v->ld->is_replay)
        return true;
    ptrdiff_t colon = str_chr(user, ':', 0);
    struct str name = load_dup(v->ld, colon < 0 ? user : str_take(user, (size_t)colon));
    struct str group = colon < 0 ? STR_NONE : load_dup(v->ld, str_skip(user, (size_t)colon + 1));
    const char *kind = getpwnam(name.p) == NULL ? "user" : colon >= 0 && getgrnam(group.p) == NULL ? "group" : NULL;
    if (kind == NULL)
        return true;
    diag_bad(v, "there is no %s \"%.*s\"; expected \"user\" or \"user:group\" of this machine", kind,
             STR_ARG(kind[0] == 'u' ? name : group));
    return false;
}

bool check_bundle(const struct value *v, struct str path)
{
    static const char *const programs[] = { "web.browser", "web.browser.legacy", "web.cordova" };
    struct stat st;
    if (v->ld->flags & CONF_NO_FILES)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        struct str at = load_printf(v->ld, "%.*s/programs/%s/program.json", path.n > 1 ? (int)path.n : 0, path.p,
                                    programs[i]);
        if (stat(at.p, &st) == 0 && S_ISREG(st.st_mode))
            return true;
    }
    return check_missing(v, path, "a Meteor bundle, with programs/web.browser/program.json in it", ENOENT);
}

bool check_parent(const struct value *v, struct str path)
{
    size_t n = path.n;
    while (n > 1 && path.p[n - 1] != '/')
        n--;
    struct str parent = load_dup(v->ld, str_take(path, n > 1 ? n - 1 : n));
    struct stat st;
    if (v->ld->flags & CONF_NO_FILES)
        return true;
    if (stat(parent.p, &st) < 0)
        return check_missing(v, parent, "an existing folder for the file", errno);
    if (!S_ISDIR(st.st_mode))
        return check_missing(v, parent, "an existing folder for the file", ENOTDIR);
    if (stat(load_dup(v->ld, path).p, &st) == 0 && S_ISDIR(st.st_mode))
        return check_missing(v, path, "a file, not a folder", EISDIR);
    return true;
}

static void check_unused(struct load *ld)
{
    for (struct upstream_build *b = ld->upstreams; b != NULL; b = b->next) {
        const struct upstream_conf *u = b->upstream;
        if (!b->is_used)
            diag_add(ld, u->where, true, "upstreams.%.*s: no `proxy` names it", STR_ARG(u->name));
        bool has_weight = u->n_servers == 0;
        for (unsigned i = 0; i < u->n_servers; i++)
            has_weight |= u->servers[i].weight > 0;
        if (!has_weight)
            diag_add(ld, u->where, true, "upstreams.%.*s: every server has weight 0, so that none takes a request",
                     STR_ARG(u->name));
    }
}

/* A site without names answers only where it is the default. */
static void check_reachable(struct load *ld)
{
    for (unsigned i = 0; i < ld->n_sites; i++) {
        const struct site_conf *site = ld->sites[i];
        bool is_reachable = site->n_names > 0;
        const struct site_conf *instead = NULL;
        for (unsigned j = 0; j < ld->conf->n_listens; j++) {
            const struct listen_conf *listen = &ld->conf->listens[j];
            is_reachable |= listen->default_site == site;
            for (unsigned k = 0; k < listen->n_sites; k++)
                if (listen->sites[k] == site)
                    instead = listen->default_site;
        }
        if (!is_reachable && instead != NULL)
            diag_add(ld, site->where, true,
                     "this site never answers: it has no names, and the site in %s is the default of its address",
                     where_show(ld, instead->where).p);
    }
}

/* Does this expression match every path, at a glance? */
static bool is_catch_all(struct str regex)
{
    static const struct str all[] = { { ".", 1 },    { "/", 1 },    { "^/", 2 },    { ".*", 2 }, { "^.*", 3 },
                                      { "^/.*", 4 }, { "^.*$", 4 }, { "^/.*$", 5 }, { "^", 1 } };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (str_eq(regex, all[i]))
            return true;
    return false;
}

static void say_shadowed(struct load *ld, const struct location_conf *location, const struct location_conf *by,
                         const char *why)
{
    if (!location->implicit)
        diag_add(ld, location->where, true, "location \"%.*s\" never matches: %s (%s)", STR_ARG(location->match), why,
                 where_show(ld, by->where).p);
}

/* The fixed text that a path must begin with for the expression to match: "^/img/.*\.png" → "/img/". */
static struct str fixed_start(struct str regex)
{
    if (regex.n == 0 || regex.p[0] != '^' || str_chr(regex, '|', 0) >= 0)
        return STR_NONE;
    struct str rest = str_skip(regex, 1);
    size_t n = 0;
    while (n < rest.n && strchr("\\.[](){}*+?$^", rest.p[n]) == NULL)
        n++;
    /* A quantifier makes the character before it optional. */
    if (n > 0 && n < rest.n && strchr("*?{", rest.p[n]) != NULL)
        n--;
    return str_take(rest, n);
}

/* A regex whose every path falls under a `^~` prefix is never asked, unless a longer plain prefix lies below that. */
static void check_final_prefix(struct load *ld, const struct site_conf *site, const struct location_conf *regex)
{
    struct str start = fixed_start(regex->pattern);
    if (regex->nocase)
        return;
    for (unsigned i = 0; i < site->n_prefix; i++) {
        const struct location_conf *prefix = site->prefix[i];
        if (prefix->kind == MATCH_PREFIX && str_starts(prefix->pattern, start) && prefix->pattern.n > start.n)
            return; /* longer, so earlier in the list: part of the regex's paths are its */
        if (!str_starts(start, prefix->pattern))
            continue;
        if (prefix->kind == MATCH_PREFIX_FINAL)
            say_shadowed(ld, regex, prefix, "a `^~` prefix takes all of its paths");
        return;
    }
}

static void check_shadows(struct load *ld, const struct site_conf *site)
{
    const struct location_conf *all = NULL;
    for (unsigned i = 0; i < site->n_regex; i++) {
        const struct location_conf *regex = site->regex[i];
        if (all != NULL)
            say_shadowed(ld, regex, all, "an earlier regular expression takes every path");
        else
            check_final_prefix(ld, site, regex);
        if (all == NULL && is_catch_all(regex->pattern))
            all = regex;
    }
    for (unsigned i = 0; all != NULL && i < site->n_prefix; i++)
        if (site->prefix[i]->kind == MATCH_PREFIX)
            say_shadowed(ld, site->prefix[i], all, "a regular expression takes every path");
}

static bool has_part(struct str s, struct str part)
{
    for (size_t i = 0; i + part.n <= s.n; i++)
        if (str_eq_nocase(str_take(str_skip(s, i), part.n), part))
            return true;
    return false;
}

/* What says that clients keep sessions in one server's memory and come back without a WebSocket; NULL: nothing does. */
static const char *session_protocol(const struct location_conf *location)
{
    if (has_part(location->match, STR("socket.io")) || has_part(location->match, STR("socket\\.io")))
        return "socket.io";
    if (has_part(location->match, STR("sockjs")))
        return "SockJS";
    for (unsigned i = 0; i < location->n_actions; i++)
        if (location->actions[i]->kind == ACTION_METEOR)
            return "Meteor";
    return NULL;
}

/* Does a client land on another server each time? */
static bool is_scattering(const struct upstream_conf *u)
{
    unsigned n = 0;
    for (unsigned i = 0; i < u->n_servers; i++)
        n += u->servers[i].weight > 0 && !u->servers[i].backup && !u->servers[i].drain;
    return n > 1 && u->sticky == STICKY_OFF && u->balance != BALANCE_IP_HASH && u->balance != BALANCE_HASH;
}

static void check_sticky(struct load *ld, const struct site_conf *site)
{
    for (unsigned i = 0; i < site->n_all; i++) {
        const struct location_conf *location = site->all[i];
        const char *protocol = session_protocol(location);
        for (unsigned j = 0; protocol != NULL && j < location->n_actions; j++) {
            const struct action *a = location->actions[j];
            if (a->kind == ACTION_PROXY && is_scattering(a->u.proxy.upstream))
                diag_add(ld, a->where, true,
                         "%s loses a session whose requests go to several servers; expected sticky = \"auto\"; in "
                         "upstreams.%.*s",
                         protocol, STR_ARG(a->u.proxy.upstream->name));
        }
    }
}

void check_all(struct load *ld)
{
    check_unused(ld);
    check_reachable(ld);
    for (unsigned i = 0; i < ld->n_sites; i++) {
        check_shadows(ld, ld->sites[i]);
        check_sticky(ld, ld->sites[i]);
    }
}
