/* SPDX-License-Identifier: MIT */
/*
 * What the fields of a complete head say together: the length of the body (RFC 9112 §6.3), persistence (§9.3), Host
 * (§3.2), and the two expectations a proxy has to answer for. Nothing here reads bytes from a peer; everything that
 * could be read in two ways is refused, because the next hop might read it the other way:
 * Transfer-Encoding beside Content-Length or on HTTP/1.0, any coding but exactly one "chunked", lengths that differ or
 * exceed an int64_t, and a second or malformed Host, which Node would take without a word.
 */
#include "http/h1_parser.h"
#include "http/status.h"
#include "http/target.h"

/* Content-Length, if any: digits only; llhttp has refused a second line already, this does not rely on it. */
static bool read_length(struct head *head)
{
    const struct field *it = fields_get(&head->fields, F_CONTENT_LENGTH);
    if (it == NULL)
        return true;
    if (fields_next(&head->fields, it) != NULL)
        return false;
    uint64_t length;
    if (!str_to_u64(it->value, &length) || length > INT64_MAX)
        return false;
    head->length = length;
    head->has_length = true;
    return true;
}

/* The rules that requests and answers share, also those without a body. */
static enum h1_bad read_framing(struct head *head, bool *chunked)
{
    const struct field *coding = fields_get(&head->fields, F_TRANSFER_ENCODING);
    *chunked = coding != NULL;
    if (coding == NULL)
        return read_length(head) ? H1_BAD_NONE : H1_BAD_LENGTH;
    if (head->minor == 0 || fields_get(&head->fields, F_CONTENT_LENGTH) != NULL)
        return H1_BAD_FRAMING;
    bool is_right = str_eq_nocase(coding->value, STR("chunked")) && fields_next(&head->fields, coding) == NULL;
    return is_right ? H1_BAD_NONE : H1_BAD_CODING;
}

static void read_connection(struct head *head)
{
    const struct fields *f = &head->fields;
    bool has_field = fields_get(f, F_CONNECTION) != NULL;
    if (head->minor == 0)
        head->keep_alive = has_field && fields_have_token(f, F_CONNECTION, STR("keep-alive")) &&
            !fields_have_token(f, F_CONNECTION, STR("close"));
    else
        head->keep_alive = !has_field || !fields_have_token(f, F_CONNECTION, STR("close"));
    head->wants_upgrade = head->minor > 0 && has_field && fields_get(f, F_UPGRADE) != NULL &&
        fields_have_token(f, F_CONNECTION, STR("upgrade"));
}

static bool is_host_right(const struct head *head)
{
    const struct field *host = fields_get(&head->fields, F_HOST);
    struct str name;
    uint16_t port;
    if (host == NULL)
        return head->minor == 0;
    return fields_next(&head->fields, host) == NULL && host_parse(host->value, &name, &port);
}

enum h1_bad h1_frame_request(struct head *head)
{
    bool chunked;
    enum h1_bad bad = read_framing(head, &chunked);
    if (bad != H1_BAD_NONE)
        return bad;
    if (!is_host_right(head))
        return H1_BAD_HOST;
    read_connection(head);
    head->expect_continue = head->minor > 0 && fields_have_token(&head->fields, F_EXPECT, STR("100-continue"));
    head->body = chunked ? BODY_CHUNKED : head->length > 0 ? BODY_LENGTH : BODY_NONE;
    if (head->method == METHOD_CONNECT) { /* what follows is no HTTP, whatever the fields say */
        head->body = BODY_NONE;
        head->keep_alive = false;
    }
    return H1_BAD_NONE;
}

enum h1_bad h1_frame_response(struct head *head, enum method request_method)
{
    bool chunked;
    enum h1_bad bad = read_framing(head, &chunked);
    if (bad != H1_BAD_NONE)
        return bad;
    read_connection(head);
    if (request_method == METHOD_HEAD || status_has_no_body(head->status))
        head->body = BODY_NONE;
    else if (chunked)
        head->body = BODY_CHUNKED;
    else if (head->has_length)
        head->body = BODY_LENGTH;
    else
        head->body = BODY_UNTIL_CLOSE;
    if (head->body == BODY_UNTIL_CLOSE)
        head->keep_alive = false;
    return H1_BAD_NONE;
}
