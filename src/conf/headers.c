/* SPDX-License-Identifier: MIT */
/*
 * Header rules. Those of an inner scope are merged into the outer scope's by name, case aside: an inner rule replaces
 * every outer one for the same field and the others stay; what add_response_headers says comes last, and only adds.
 * Fields that frame a message or belong to one connection (RFC 9110 §7.6.1, RFC 9112 §6) are weir's own: a rule for
 * them would break it.
 */
#include "conf/load.h"

static const struct str framing[] = {
    { "connection", 10 }, { "content-length", 14 },    { "keep-alive", 10 }, { "te", 2 },
    { "trailer", 7 },     { "transfer-encoding", 17 }, { "upgrade", 7 },
};

static bool is_framing(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(framing); i++)
        if (str_eq_nocase(name, framing[i]))
            return true;
    return false;
}

static bool read_rule(const struct value *v, struct header_rule *rule)
{
    struct load *ld = v->ld;
    struct str name = load_dup(ld, str_c(config_setting_name(v->s)));
    unsigned n = value_count(v);
    struct template *values = load_array(ld, struct template, n);
    unsigned n_values = 0;
    if (!value_is_token(name) || is_framing(name)) {
        diag_bad(v, "this field is weir's own business; expected another name");
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        struct value item = value_at(v, i);
        struct str text;
        if (!value_raw_text(&item, &text)) {
            struct str found = value_show(&item);
            diag_bad(&item, "found %.*s; expected a text, or a list of texts", STR_ARG(found));
            return false;
        }
        if (text.n == 0 && n == 1)
            break;
        if (!template_compile(&item, text, &values[n_values]))
            return false;
        n_values++;
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
        is_right &= read_rule(&item, &own[i]);
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
