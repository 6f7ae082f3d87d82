/* SPDX-License-Identifier: MIT */
/*
 * Values: from what stands in the tree to the members of the structs, by the type of a row. The small types are here;
 * those with a shape of their own have a file each. Every reader says itself what is wrong and returns false then; the
 * member keeps what it had. Kindnesses that hold everywhere: one value for a list of one, a string that spells a number
 * or a bool, false for "none".
 */
#include "base/units.h"
#include "conf/check.h"

struct value value_of(struct load *ld, config_setting_t *s, const struct setting *row, const struct target *t)
{
    return (struct value){ .ld = ld, .s = s, .row = row, .t = t };
}

bool value_is_group(const struct value *v)
{
    return config_setting_is_group(v->s) == CONFIG_TRUE;
}

bool value_is_list(const struct value *v)
{
    return config_setting_is_list(v->s) == CONFIG_TRUE || config_setting_is_array(v->s) == CONFIG_TRUE;
}

unsigned value_count(const struct value *v)
{
    return value_is_list(v) ? (unsigned)config_setting_length(v->s) : 1;
}

struct value value_at(const struct value *v, unsigned i)
{
    struct value item = *v;
    if (value_is_list(v))
        item.s = config_setting_get_elem(v->s, i);
    return item;
}

bool value_raw_text(const struct value *v, struct str *out)
{
    if (config_setting_type(v->s) != CONFIG_TYPE_STRING)
        return false;
    *out = load_dup(v->ld, str_c(config_setting_get_string(v->s)));
    return true;
}

bool value_text(const struct value *v, struct str *out)
{
    struct str raw;
    if (!value_raw_text(v, &raw))
        return false;
    char *text = load_alloc(v->ld, raw.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        text[n++] = raw.p[i];
        if (raw.p[i] == '$' && i + 1 < raw.n && raw.p[i + 1] == '$')
            i++;
    }
    *out = str_of(text, n);
    return true;
}

bool value_bool(const struct value *v, bool *out)
{
    static const struct {
        struct str word;
        bool value;
    } spellings[] = { { { "true", 4 }, true },   { { "on", 2 }, true },   { { "yes", 3 }, true },
                      { { "false", 5 }, false }, { { "off", 3 }, false }, { { "no", 2 }, false } };
    if (config_setting_type(v->s) == CONFIG_TYPE_BOOL) {
        *out = config_setting_get_bool(v->s) == CONFIG_TRUE;
        return true;
    }
    struct str text;
    if (!value_raw_text(v, &text))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
        if (!str_eq_nocase(text, spellings[i].word))
            continue;
        *out = spellings[i].value;
        return true;
    }
    return false;
}

bool value_number(const struct value *v, int64_t *out)
{
    int type = config_setting_type(v->s);
    if (type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64) {
        *out = config_setting_get_int64(v->s);
        return true;
    }
    struct str text;
    uint64_t number;
    if (!value_raw_text(v, &text))
        return false;
    bool is_negative = text.n > 0 && text.p[0] == '-';
    if (!str_to_u64(is_negative ? str_skip(text, 1) : text, &number) || number > INT64_MAX)
        return false;
    *out = is_negative ? -(int64_t)number : (int64_t)number;
    return true;
}

bool value_is_off(const struct value *v)
{
    bool b;
    int64_t n;
    struct str text;
    if (value_bool(v, &b))
        return !b;
    if (value_number(v, &n))
        return n == 0;
    if (value_is_list(v))
        return value_count(v) == 0;
    return value_raw_text(v, &text) && text.n == 0;
}

void value_state(const struct value *v, enum setting_state state, const char *what)
{
    if (state == BUILT || v->ld->is_defaults)
        return;
    if (state == PLANNED)
        diag_warn(v, "%s has no effect in this version yet", what);
    else
        diag_bad(v, "%s is not available in this version yet; expected the file without it", what);
}

void *target_member(const struct value *v)
{
    const struct target *t = v->t;
    void *const bases[] = {
        [IN_NOWHERE] = NULL,     [IN_CONF] = t->conf, [IN_SCOPE] = t->scoped,    [IN_UPSTREAM] = t->upstream,
        [IN_SERVER] = t->server, [IN_SITE] = t->site, [IN_TRUSTED] = t->trusted, [IN_PART] = t->part
    };
    char *base = bases[v->row->base];
    return base ? base + v->row->offset : NULL;
}

/* The member that counts a list. */
static unsigned *count_member(const struct value *v)
{
    char *member = target_member(v);
    return (unsigned *)(void *)(member - v->row->offset + v->row->n_offset);
}

/* Points a list member at an array; `array` is what the member's own type points to. */
static void set_list(const struct value *v, const void *array, unsigned n)
{
    memcpy(target_member(v), &array, sizeof array);
    *count_member(v) = n;
}

/* Stores into a member of whatever width. */
static void set_number(const struct value *v, uint64_t number)
{
    void *member = target_member(v);
    if (v->row->size == sizeof(uint64_t)) {
        memcpy(member, &number, sizeof number);
    } else if (v->row->size == sizeof(uint32_t)) {
        uint32_t narrow = (uint32_t)number;
        memcpy(member, &narrow, sizeof narrow);
    } else {
        CHECK(v->row->size == sizeof(uint16_t));
        uint16_t narrow = (uint16_t)number;
        memcpy(member, &narrow, sizeof narrow);
    }
}

static void set_text(const struct value *v, struct str text)
{
    *(struct str *)target_member(v) = text;
}

static bool read_bool(const struct value *v)
{
    bool b;
    if (!value_bool(v, &b))
        return diag_bad_type(v);
    *(bool *)target_member(v) = b;
    return true;
}

bool read_uint(const struct value *v, uint64_t lo, uint64_t hi, uint64_t *out)
{
    int64_t n;
    bool b;
    if (lo == 0 && value_bool(v, &b) && !b) {
        *out = 0;
        return true;
    }
    if (!value_number(v, &n))
        return diag_bad_type(v);
    if (n < 0 || (uint64_t)n < lo || (uint64_t)n > hi) {
        struct str expected = value_expected(v->ld, v->row);
        diag_bad(v, "%lld is out of range; expected %.*s", (long long)n, STR_ARG(expected));
        return false;
    }
    *out = (uint64_t)n;
    return true;
}

/* 0, "0", false: nothing at all. */
static bool is_none(const struct value *v)
{
    bool b;
    int64_t n;
    return (value_bool(v, &b) && !b) || (value_number(v, &n) && n == 0);
}

bool read_duration(const struct value *v, uint64_t *ms)
{
    enum { LONGEST_DAYS = 36500 };
    struct str text;
    int64_t n;
    const char *why;
    uint64_t value;
    if (is_none(v)) {
        *ms = 0;
        return true;
    }
    if (value_number(v, &n)) {
        if (n > 0)
            diag_bad(v, "%lld has no unit; expected \"%llds\" or another duration (units ms, s, m, h, d)", (long long)n,
                     (long long)n);
        else
            diag_bad(v, "%lld is negative; expected %s", (long long)n, type_expected[TYPE_DURATION]);
        return false;
    }
    if (!value_text(v, &text))
        return diag_bad_type(v);
    if (!duration_parse(text, &value, &why)) {
        struct str found = value_show(v);
        diag_bad(v, "found %.*s; expected %s: %s", STR_ARG(found), type_expected[TYPE_DURATION], why);
        return false;
    }
    if (value > (uint64_t)LONGEST_DAYS * 24 * 3600 * 1000) {
        struct str found = value_show(v);
        diag_bad(v, "%.*s is too long; expected at most \"%dd\"", STR_ARG(found), LONGEST_DAYS);
        return false;
    }
    *ms = value;
    return true;
}

static bool read_size(const struct value *v, uint64_t lo, uint64_t hi, uint64_t *out)
{
    struct str text, found = value_show(v), expected = value_expected(v->ld, v->row);
    int64_t n;
    const char *why = "";
    uint64_t value = 0;
    if (!is_none(v)) {
        if (value_number(v, &n)) {
            if (n > 0)
                diag_bad(v, "%lld has no unit; expected \"%lldb\" for bytes, or %.*s", (long long)n, (long long)n,
                         STR_ARG(expected));
            else
                diag_bad(v, "%lld is negative; expected %.*s", (long long)n, STR_ARG(expected));
            return false;
        }
        if (!value_text(v, &text))
            return diag_bad_type(v);
        if (!size_parse(text, &value, &why)) {
            diag_bad(v, "found %.*s; expected %.*s: %s", STR_ARG(found), STR_ARG(expected), why);
            return false;
        }
    }
    if (value < lo || value > hi) {
        char largest[UNITS_TEXT];
        size_print(hi, largest);
        if (lo > 0)
            diag_bad(v, "%.*s is out of range; expected %.*s", STR_ARG(found), STR_ARG(expected));
        else
            diag_bad(v, "%.*s is out of range; expected at most \"%s\"", STR_ARG(found), largest);
        return false;
    }
    *out = value;
    return true;
}

bool read_word(const struct value *v, enum word_set set, int *out)
{
    struct str text;
    bool b;
    const struct word *word = NULL;
    if (value_raw_text(v, &text))
        word = word_find(set, text);
    else if (value_bool(v, &b))
        word = word_find(set, b ? STR("on") : STR("off")); /* `autoindex = false` */
    if (word != NULL) {
        const char *what = load_printf(v->ld, "\"%.*s\"", STR_ARG(word->name)).p;
        if (v->row->state != PLANNED || word->state == REFUSED)
            value_state(v, word->state, what);
        *out = word->value;
        return true;
    }
    struct nearest nearest;
    nearest_init(&nearest, text = config_setting_type(v->s) == CONFIG_TYPE_STRING ? text : STR(""));
    for (size_t i = 0; i < n_setting_words; i++)
        if (setting_words[i].set == set)
            nearest_offer(&nearest, setting_words[i].name);
    if (text.n == 0 || nearest.best.n == 0)
        return diag_bad_type(v);
    struct str found = value_show(v);
    diag_bad(v, "found %.*s; did you mean \"%.*s\"?", STR_ARG(found), STR_ARG(nearest.best));
    return false;
}

static bool read_text(const struct value *v, struct str *out)
{
    struct str text;
    if (!value_text(v, &text))
        return diag_bad_type(v);
    *out = text;
    return true;
}

bool read_path(const struct value *v, struct str *out)
{
    struct str text;
    if (!value_text(v, &text) || text.n == 0)
        return diag_bad_type(v);
    *out = load_path(v->ld, value_where(v->ld, v->s).file, text);
    if (out->n >= 4096) {
        diag_bad(v, "the path is too long; expected at most 4095 bytes");
        return false;
    }
    return true;
}

bool value_is_token(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = ascii_lower(s.p[i]);
        if (!(c >= 'a' && c <= 'z') && !is_digit(c) && !strchr("!#$%&'*+-.^_`|~", c))
            return false;
    }
    return s.n > 0;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    return false;
}

bool value_is_resolved_path(struct str path, bool is_whole)
{
    static const char *const inside[] = { "//", "/./", "/../" };
    for (size_t i = 0; i < ARRAY_LEN(inside); i++)
        if (path.n > 0 && memmem(path.p, path.n, inside[i], strlen(inside[i])) != NULL)
            return false;
    return !is_whole || !(str_ends(path, STR("/.")) || str_ends(path, STR("/..")));
}

bool value_check_url(const struct value *v, struct str text, bool may_have_fragment)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c > 0x20 && c < 0x7f && (c != '#' || may_have_fragment))
            continue;
        diag_bad(v, "the byte 0x%02x cannot stand there in a URL; expected %%%02X", c, c);
        return false;
    }
    return true;
}

/* `fallback` is a decoded path, as `match` sees it; what `health` asks for goes to a server as it is written. */
static bool check_url_path(const struct value *v, struct str path)
{
    if (setting_id(v->row) != SET_files_fallback)
        return value_check_url(v, path, false);
    if (str_chr(path, '?', 0) < 0 && value_is_resolved_path(path, true))
        return true;
    struct str found = value_show(v);
    diag_bad(v, "found %.*s; expected a path without query, dot segments and //", STR_ARG(found));
    return false;
}

/* Texts with a rule of their own. */
static bool read_ruled_text(const struct value *v)
{
    struct str text;
    if (!read_text(v, &text))
        return false;
    bool is_right = true;
    if (v->row->type == TYPE_URL_PATH)
        is_right = text.n > 0 && text.p[0] == '/' && !has_control(text);
    else if (v->row->type == TYPE_TOKEN)
        is_right = value_is_token(text);
    else if (v->row->type == TYPE_FIELD_VALUE)
        is_right = !has_control(text) && text.n > 0;
    if (!is_right)
        return diag_bad_type(v);
    if (v->row->type == TYPE_URL_PATH && !check_url_path(v, text))
        return false;
    if (setting_id(v->row) == SET_top_user && !check_user(v, text))
        return false;
    set_text(v, text);
    return true;
}

static bool read_template(const struct value *v)
{
    struct str text;
    struct template t;
    if (!value_raw_text(v, &text))
        return diag_bad_type(v);
    if (!template_compile(v, text, &t))
        return false;
    bool is_path = setting_id(v->row) == SET_body_rewrite;
    for (unsigned i = 0; is_path && i < t.n; i++)
        if (t.pieces[i].var == VAR_LITERAL && !value_check_url(v, t.pieces[i].text, false))
            return false;
    if (is_path && t.n > 0 && t.pieces[0].var == VAR_LITERAL && t.pieces[0].text.p[0] != '/') {
        diag_bad(v, "found \"%.*s\"; expected a path that begins with \"/\"", STR_ARG(text));
        return false;
    }
    *(struct template *)target_member(v) = t;
    return true;
}

static bool read_log_file(const struct value *v)
{
    struct str text, word = setting_id(v->row) != SET_log_to_path ? STR("stderr") : STR("stdout");
    if (value_text(v, &text) && str_eq(text, word)) {
        set_text(v, word);
        return true;
    }
    struct str path;
    if (!read_path(v, &path) || !check_parent(v, path))
        return false;
    set_text(v, path);
    return true;
}

static bool read_error_log(const struct value *v)
{
    if (!value_is_group(v))
        return read_log_file(v);
    area_read(v->ld, v->s, AREA_error_log_to, v->t);
    return true;
}

static bool is_file_name(struct str s)
{
    return s.n > 0 && s.n < 256 && str_chr(s, '/', 0) < 0 && !str_eq(s, STR(".")) && !str_eq(s, STR(".."));
}

static bool read_texts(const struct value *v)
{
    unsigned n = value_count(v);
    struct str *list = load_array(v->ld, struct str, n);
    bool is_right = true;
    for (unsigned i = 0; i < n; i++) {
        struct value item = value_at(v, i);
        if (v->row->type == TYPE_PATHS)
            is_right &= read_path(&item, &list[i]);
        else if (!value_text(&item, &list[i]) || !is_file_name(list[i]))
            is_right = diag_bad_type(&item);
    }
    if (is_right)
        set_list(v, list, n);
    return is_right;
}

static bool read_cidrs(const struct value *v)
{
    unsigned n = value_count(v);
    struct cidr *list = load_array(v->ld, struct cidr, n);
    bool is_right = true;
    for (unsigned i = 0; i < n; i++) {
        struct value item = value_at(v, i);
        struct str text;
        const char *why;
        if (!value_text(&item, &text)) {
            is_right = diag_bad_type(&item);
        } else if (!cidr_parse(text, &list[i], &why)) {
            struct str found = value_show(&item);
            diag_bad(&item, "found %.*s; expected %s", STR_ARG(found), why);
            is_right = false;
        }
    }
    if (!is_right)
        return false;
    set_list(v, list, n);
    if (setting_id(v->row) == SET_access_allow)
        v->t->scoped->has_allow = true;
    return true;
}

static bool read_number_type(const struct value *v)
{
    enum { INTERVAL_MIN_MS = 10 };
    uint64_t number = 0;
    bool is_right = v->row->type == TYPE_UINT   ? read_uint(v, v->row->lo, v->row->hi, &number)
                    : v->row->type == TYPE_SIZE ? read_size(v, v->row->lo, v->row->hi, &number)
                                                : read_duration(v, &number);
    if (!is_right)
        return false;
    if (setting_id(v->row) == SET_health_interval && number < INTERVAL_MIN_MS) {
        struct str found = value_show(v);
        diag_bad(v, "%.*s is too short; expected at least \"%dms\" (health = false checks nothing)", STR_ARG(found),
                 INTERVAL_MIN_MS);
        return false;
    }
    set_number(v, number);
    if (setting_id(v->row) == SET_timeouts_upstream_idle)
        v->t->upstream->has_upstream_idle = true;
    return true;
}

static bool read_enum(const struct value *v)
{
    int word;
    if (!read_word(v, v->row->words, &word))
        return false;
    set_number(v, (uint64_t)word);
    return true;
}

static bool read_path_type(const struct value *v)
{
    struct str path;
    if (!read_path(v, &path))
        return false;
    enum setting_id id = setting_id(v->row);
    if (id == SET_files_mime_types   ? !read_mime_types(v, path)
        : id == SET_error_page_file || id == SET_basic_auth_file ? !check_exists(v, path)
                                    : !check_parent(v, path))
        return false;
    set_text(v, path);
    return true;
}

bool value_read(const struct value *v)
{
    switch (v->row->type) {
    case TYPE_BOOL:
        return read_bool(v);
    case TYPE_UINT:
    case TYPE_SIZE:
    case TYPE_DURATION:
        return read_number_type(v);
    case TYPE_ENUM:
        return read_enum(v);
    case TYPE_TEXT:
    case TYPE_TOKEN:
    case TYPE_URL_PATH:
    case TYPE_FIELD_VALUE:
        return read_ruled_text(v);
    case TYPE_PATH:
        return read_path_type(v);
    case TYPE_LOG_FILE:
        return read_log_file(v);
    case TYPE_ERROR_LOG:
        return read_error_log(v);
    case TYPE_TEMPLATE:
        return read_template(v);
    case TYPE_PATHS:
    case TYPE_FILE_NAMES:
        return read_texts(v);
    case TYPE_CIDRS:
        return read_cidrs(v);
    case TYPE_ACCESS_LOG:
        return read_access_log(v);
    case TYPE_LOG_FORMAT:
        return read_log_format(v);
    case TYPE_HEADERS:
    case TYPE_ADD_HEADERS:
        return read_headers(v, v->row->type == TYPE_ADD_HEADERS);
    case TYPE_BASIC_AUTH:
        return read_basic_auth(v);
    case TYPE_IN_FLIGHT:
    case TYPE_REQUESTS:
        return read_limit(v);
    case TYPE_RATE:
        return read_rate(v);
    case TYPE_GZIP:
        return read_gzip(v);
    case TYPE_TYPES:
        return read_types(v);
    case TYPE_ERROR_PAGES:
        return read_error_pages(v);
    case TYPE_STATUSES:
        return read_statuses(v);
    case TYPE_EXPIRES:
        return read_expires(v);
    case TYPE_STRIP_PREFIX:
        return read_strip_prefix(v);
    case TYPE_WORKERS:
        return read_workers(v);
    case TYPE_CPUS:
        return read_cpus(v);
    case TYPE_HEALTH:
        return read_health(v);
    case TYPE_EXPECT:
        return read_expect(v);
    case TYPE_STICKY:
        return read_sticky(v);
    case TYPE_ADDRESS:
        return read_address(v);
    case TYPE_ALIAS:
    case TYPE_BUILTIN:
    case TYPE_METEOR:
    case TYPE_PROXY:
    case TYPE_REDIRECT:
    case TYPE_RESPOND:
    case TYPE_ROOT:
        return read_action(v);
    case TYPE_REDIRECT_STATUS:
        return read_redirect_status(v);
    case TYPE_MATCH:
        return read_match(v);
    case TYPE_LISTEN_ADDRESS:
        return read_listen_address(v);
    case TYPE_LISTEN:
    case TYPE_LOCATIONS:
    case TYPE_NAMES:
    case TYPE_SERVERS:
    case TYPE_SITES:
    case TYPE_UPSTREAMS:
    case TYPE_USERS:
    case TYPE_INCLUDE:
    case TYPE_COUNT:
        break; /* read later, by their builders (scope.c keeps them) */
    }
    return true;
}
