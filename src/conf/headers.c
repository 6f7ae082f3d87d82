/* SPDX-License-Identifier: MIT */
/*
 * Header rules. Those of an inner scope are merged into the outer scope's by name, case aside: an inner rule replaces
 * every outer one for the same field and the others stay; what add_response_headers says comes last, and only adds.
 * Fields that frame a message, belong to one connection or hold a handshake together (RFC 9110 §7.6.1, RFC 9112 §6, RFC
 * 6455 §4) are weir's own: a rule for them would break it. Host of a request is not among them, but it is exactly one
 * line.
 */
#include "conf/load.h"

enum { OF_REQUEST = 1, OF_ANSWER = 2 };

static const struct {
    struct str name;
    unsigned where;
    const char *why;
} refused[] = {
    { { "connection", 10 }, OF_REQUEST | OF_ANSWER, "belongs to one connection, which weir keeps or closes itself" },
    { { "content-length", 14 }, OF_REQUEST | OF_ANSWER, "says how long the body is, and weir sends that itself" },
    { { "content-range", 13 }, OF_ANSWER, "says which part the body is, and whoever answers sends that" },
    { { "date", 4 }, OF_ANSWER, "is always sent, by whoever answers" },
    { { "expect", 6 }, OF_REQUEST, "belongs to one connection; weir answers it itself" },
    { { "http2-settings", 14 }, OF_REQUEST | OF_ANSWER, "belongs to one connection" },
    { { "keep-alive", 10 }, OF_REQUEST | OF_ANSWER, "belongs to one connection, which weir keeps or closes itself" },
    { { "proxy-connection", 16 }, OF_REQUEST | OF_ANSWER, "belongs to one connection" },
    { { "sec-websocket-accept", 20 }, OF_REQUEST | OF_ANSWER, "answers a handshake, and weir checks it" },
    { { "sec-websocket-key", 17 }, OF_REQUEST | OF_ANSWER, "belongs to one handshake, whose answer weir checks" },
    { { "sec-websocket-version", 21 }, OF_REQUEST, "belongs to one handshake, which weir checks" },
    { { "te", 2 }, OF_REQUEST | OF_ANSWER, "belongs to one connection" },
    { { "trailer", 7 }, OF_REQUEST | OF_ANSWER, "says what comes behind the body, and weir sends that itself" },
    { { "transfer-encoding", 17 }, OF_REQUEST | OF_ANSWER, "frames the body, and weir does that itself" },
    { { "upgrade", 7 }, OF_REQUEST | OF_ANSWER, "belongs to one connection; WebSockets pass without a rule" },
};

static bool check_name(const struct value *v, struct str name, bool is_request)
{
    if (!value_is_token(name)) {
        diag_bad(v, "not the name of a header field; expected letters, digits, - and _");
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        if (!str_eq_nocase(name, refused[i].name) || !(refused[i].where & (is_request ? OF_REQUEST : OF_ANSWER)))
            continue;
        diag_bad(v, "this field %s; expected another name", refused[i].why);
        return false;
    }
    return true;
}

/* Is the variable unknown when the head goes out? */
static bool is_too_early(enum var_id var, bool is_request)
{
    switch (var) {
    case VAR_BODY_BYTES_SENT:
    case VAR_BYTES_SENT:
    case VAR_UPSTREAM_CONNECT_TIME:
    case VAR_UPSTREAM_HEADER_TIME:
    case VAR_UPSTREAM_RESPONSE_TIME:
    case VAR_UPSTREAM_STATUS:
        return true;
    case VAR_SENT_HTTP:
    case VAR_STATUS:
    case VAR_UPSTREAM_ADDR:
    case VAR_UPSTREAM_QUEUE_TIME:
        return is_request;
    default:
        return false;
    }
}

static void check_variables(const struct value *v, const struct template *t, bool is_request)
{
    for (unsigned i = 0; i < t->n; i++) {
        if (!is_too_early(t->pieces[i].var, is_request))
            continue;
        struct str name = template_var_name(t->pieces[i].var);
        diag_warn(v, "$%.*s%.*s is not known yet when this field is sent", STR_ARG(name), STR_ARG(t->pieces[i].text));
    }
}

static bool read_rule(const struct value *v, bool is_request, struct header_rule *rule)
{
    struct load *ld = v->ld;
    struct str name = load_dup(ld, str_c(config_setting_name(v->s)));
    unsigned n = value_count(v);
    struct template *values = load_array(ld, struct template, n);
    unsigned n_values = 0;
    if (!check_name(v, name, is_request))
        return false;
    for (unsigned i = 0; i < n; i++) {
        struct value item = value_at(v, i);
        struct str text;
        if (!value_raw_text(&item, &text)) {
            struct str found = value_show(&item);
            diag_bad(&item, "found %.*s; expected a text, or a list of texts", STR_ARG(found));
            return false;
        }
        if (text.n == 0)
            continue;
        if (!template_compile(&item, text, &values[n_values]))
            return false;
        check_variables(&item, &values[n_values], is_request);
        n_values++;
    }
    if (is_request && n_values != 1 && str_eq_nocase(name, STR("host"))) {
        diag_bad(v, "a request has exactly one Host; expected one text");
        return false;
    }
    *rule =
        (struct header_rule){ .name = name, .values = values, .n_values = n_values, .where = value_where(ld, v->s) };
    return true;
}

bool read_headers(const struct value *v, bool add)
{
    struct scope_conf *scope = v->t->scoped;
    bool is_request = setting_id(v->row) == SET_headers_request_headers;
    const struct header_rule *outer = is_request ? scope->request_headers : scope->response_headers;
    unsigned n_outer = is_request ? scope->n_request_headers : scope->n_response_headers;
    if (!value_is_group(v))
        return diag_bad_type(v);

    unsigned n_own = (unsigned)config_setting_length(v->s), n = 0;
    struct header_rule *own = load_array(v->ld, struct header_rule, n_own);
    struct header_rule *all = load_array(v->ld, struct header_rule, n_outer + n_own);
    bool is_right = true;
    for (unsigned i = 0; i < n_own; i++) {
        struct value item = *v;
        item.s = config_setting_get_elem(v->s, i);
        is_right &= read_rule(&item, is_request, &own[i]);
        own[i].append = add;
        for (unsigned j = 0; j < i && is_right; j++) {
            if (!str_eq_nocase(own[i].name, own[j].name))
                continue;
            diag_bad(&item, "second rule for the same field (names compare without case); the first is in line %u",
                     own[j].where.line);
            is_right = false;
        }
    }
    if (!is_right)
        return false;
    for (unsigned i = 0; i < n_outer; i++) {
        bool is_replaced = false;
        for (unsigned j = 0; j < n_own && !add; j++)
            is_replaced |= str_eq_nocase(outer[i].name, own[j].name);
        if (!is_replaced)
            all[n++] = outer[i];
    }
    if (n_own > 0)
        memcpy(&all[n], own, n_own * sizeof *own);
    n += n_own;
    if (is_request) {
        scope->request_headers = all;
        scope->n_request_headers = n;
    } else {
        scope->response_headers = all;
        scope->n_response_headers = n;
    }
    return true;
}
