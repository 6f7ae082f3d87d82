/* SPDX-License-Identifier: MIT */
/*
 * Actions: what answers. Each is read where it is written, into the list of that site or location (struct actions, on
 * the builder's stack); which of them a location then has, and whether they go together, is decided when it is finished
 * (location.c). The action itself lives in the conf's arena. A wrong action is counted too, and marks its list as
 * broken: a location that tried to say who answers must not also be told that nobody does.
 */
#include "conf/load.h"

#include "conf/check.h"

static bool read_file_action(const struct value *v, struct action *action)
{
    struct str path;
    if (!read_path(v, &path))
        return false;
    action->kind = ACTION_FILE;
    action->u.file.root = path;
    action->u.file.root_hash = hash_bytes(path);
    action->u.file.alias = v->row->type == TYPE_ALIAS;
    return action->u.file.alias ? check_exists(v, path) : check_folder(v, path);
}

static bool read_meteor(const struct value *v, struct action *action)
{
    struct str path;
    if (!read_path(v, &path))
        return false;
    action->kind = ACTION_METEOR;
    action->u.meteor.bundle = path;
    action->u.meteor.hash = hash_bytes(path);
    return check_folder(v, path) && check_bundle(v, path);
}

static bool read_proxy(const struct value *v, struct action *action)
{
    struct str text;
    if (!value_text(v, &text) || text.n == 0)
        return diag_bad_type(v);
    action->kind = ACTION_PROXY;
    action->u.proxy.upstream = upstream_for(v, text);
    return action->u.proxy.upstream != NULL;
}

bool read_redirect_status(const struct value *v)
{
    struct action *action = v->t->part;
    int64_t status;
    if (!value_number(v, &status) ||
        !(status == 301 || status == 302 || status == 303 || status == 307 || status == 308))
        return diag_bad_type(v);
    action->u.redirect.status = (uint16_t)status;
    return true;
}

/* Not a name that a client would take for a neighbour of the path it has asked for: a scheme, "/", "?" or "#". */
static bool leads_somewhere(struct str s)
{
    size_t n = 0;
    while (n < s.n && (is_digit(s.p[n]) || (ascii_lower(s.p[n]) >= 'a' && ascii_lower(s.p[n]) <= 'z')))
        n++;
    return strchr("/?#", s.p[0]) != NULL || (n > 0 && n < s.n && s.p[n] == ':');
}

static bool read_redirect(const struct value *v, struct action *action)
{
    struct target t = *v->t;
    struct str text;
    unsigned n_errors = v->ld->out->n_errors;
    action->kind = ACTION_REDIRECT;
    if (value_is_group(v)) {
        t.part = action;
        area_read(v->ld, v->s, AREA_redirect, &t);
    } else if (!value_raw_text(v, &text)) {
        return diag_bad_type(v);
    } else if (!template_compile(v, text, &action->u.redirect.to)) {
        return false;
    }
    if (v->ld->out->n_errors != n_errors)
        return false;
    const struct template *to = &action->u.redirect.to;
    if (to->n == 0) {
        diag_bad(v, "no place to go; expected a URL such as \"https://$host$request_uri\"");
        return false;
    }
    for (unsigned i = 0; i < to->n; i++)
        if (to->pieces[i].var == VAR_LITERAL && !value_check_url(v, to->pieces[i].text, true))
            return false;
    if (to->pieces[0].var != VAR_LITERAL || leads_somewhere(to->pieces[0].text))
        return true;
    diag_bad(v, "found \"%.*s\"; expected a URL (\"https://...\") or a path that begins with \"/\"", STR_ARG(to->source));
    return false;
}

static bool read_respond(const struct value *v, struct action *action)
{
    struct target t = *v->t;
    struct str text;
    int64_t status;
    *action = v->ld->respond_defaults;
    action->kind = ACTION_RESPOND;
    if (value_is_group(v)) {
        unsigned n_errors = v->ld->out->n_errors;
        t.part = action;
        area_read(v->ld, v->s, AREA_respond, &t);
        action->u.respond.has_body = action->u.respond.body.p != NULL;
        return v->ld->out->n_errors == n_errors;
    }
    /* "404" from the environment is a status; a text that is longer or no number is a body. */
    if (value_number(v, &status) && (!value_text(v, &text) || text.n == 3)) {
        if (status < 200 || status > 599) {
            diag_bad(v, "%lld is no status of an answer; expected one from 200 to 599", (long long)status);
            return false;
        }
        action->u.respond.status = (uint16_t)status;
        return true;
    }
    if (!value_text(v, &text))
        return diag_bad_type(v);
    action->u.respond.body = text;
    action->u.respond.has_body = true;
    return true;
}

static bool read_builtin(const struct value *v, struct action *action)
{
    int word;
    if (!read_word(v, WORDS_builtin, &word))
        return false;
    action->kind = ACTION_BUILTIN;
    action->u.builtin = (enum builtin_kind)word;
    return true;
}

bool read_action(const struct value *v)
{
    struct actions *actions = v->t->actions;
    struct action *action = load_new(v->ld, struct action);
    bool is_right;
    switch (v->row->type) {
    case TYPE_METEOR:
        is_right = read_meteor(v, action);
        break;
    case TYPE_PROXY:
        is_right = read_proxy(v, action);
        break;
    case TYPE_REDIRECT:
        is_right = read_redirect(v, action);
        break;
    case TYPE_RESPOND:
        is_right = read_respond(v, action);
        break;
    case TYPE_BUILTIN:
        is_right = read_builtin(v, action);
        break;
    default:
        is_right = read_file_action(v, action);
        break;
    }
    action->where = value_where(v->ld, v->s);
    /* A wrong one counts too: a location that tried to say who answers must not be told that it has no action. */
    actions->is_broken |= !is_right;
    actions->names[actions->n] = v->row->name;
    actions->list[actions->n++] = action;
    return is_right;
}
