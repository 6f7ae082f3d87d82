/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing the PROXY protocol's header. The reader keeps what it needs of the header itself, so the bytes may come
 * in any pieces; it is strict (one space, no leading zeros, both addresses of the family that is named), because two
 * readers that understand a header differently see two clients. What can never become a header is refused at its first
 * wrong byte: an HTTP request that comes without one waits for nothing.
 *
 * Version 2: what follows the addresses (TLVs) is skipped; commands, versions and families that the text does not know
 * are refused, as it asks. Addresses are taken for TCP over IPv4 and IPv6 only; for everything else it allows (datagrams,
 * unix sockets, UNSPEC, LOCAL) the connection's own hold.
 *
 * Pure functions over bytes; no I/O, nothing owned.
 */
#include "http/proxy_header.h"

#include <stdio.h>

enum { V2_SIGNATURE = 12, V2_HEAD = 16, V2_ADDRESSES_4 = 12, V2_ADDRESSES_6 = 36, V2_ADDRESSES_UNIX = 216 };
enum { COMMAND_LOCAL = 0x20, COMMAND_PROXY = 0x21, TCP_4 = 0x11, TCP_6 = 0x21 };

static const char signature[V2_SIGNATURE] = { '\r', '\n', '\r', '\n', '\0', '\r', '\n', 'Q', 'U', 'I', 'T', '\n' };
static const struct str v1_start = { "PROXY ", 6 };

static enum proxy_header_event bad(struct proxy_header *h, const char *why)
{
    h->bad = why;
    return PROXY_HEADER_BAD;
}

/* --- version 1 --- */

static bool port_parse(struct str s, uint16_t *port)
{
    uint64_t n;
    if (s.n > 5 || (s.n > 1 && s.p[0] == '0') || !str_to_u64(s, &n) || n > UINT16_MAX)
        return false;
    *port = (uint16_t)n;
    return true;
}

/* An address of that family as it is written, mapped ones not folded into IPv4 before they are compared. */
static bool v1_ip(struct str s, bool is_v6, struct ip *out)
{
    return ip_parse(s, out) && (str_chr(s, ':', 0) >= 0) == is_v6;
}

static struct str next_word(struct str *line)
{
    ptrdiff_t space = str_chr(*line, ' ', 0);
    struct str word = space < 0 ? *line : str_take(*line, (size_t)space);
    *line = space < 0 ? STR_NONE : str_skip(*line, (size_t)space + 1);
    return word;
}

static enum proxy_header_event v1_line(struct proxy_header *h)
{
    struct str line = str_of(h->held + v1_start.n, h->n - v1_start.n - 2);
    if (h->held[h->n - 2] != '\r' || memchr(h->held, '\r', h->n - 2u) != NULL)
        return bad(h, "its line does not end with CRLF");
    struct str family = next_word(&line);
    if (str_eq(family, STR("UNKNOWN")))
        return PROXY_HEADER_DONE;
    bool is_v6 = str_eq(family, STR("TCP6"));
    if (!is_v6 && !str_eq(family, STR("TCP4")))
        return bad(h, "a family other than TCP4, TCP6 and UNKNOWN");
    struct str from = next_word(&line), to = next_word(&line), from_port = next_word(&line);
    if (!v1_ip(from, is_v6, &h->from) || !v1_ip(to, is_v6, &h->to))
        return bad(h, "malformed address");
    if (!port_parse(from_port, &h->from.port) || !port_parse(line, &h->to.port))
        return bad(h, "malformed port");
    h->has_addresses = true;
    return PROXY_HEADER_DONE;
}

/* --- version 2 --- */

static uint16_t u16_at(const char *p)
{
    return (uint16_t)((unsigned char)p[0] << 8 | (unsigned char)p[1]);
}

static struct ip v2_ip(const char *p, bool is_v6, uint16_t port)
{
    struct addr a = { 0 };
    if (is_v6) {
        a.u.in6.sin6_family = AF_INET6;
        memcpy(&a.u.in6.sin6_addr, p, 16);
    } else {
        a.u.in.sin_family = AF_INET;
        memcpy(&a.u.in.sin_addr, p, 4);
    }
    struct ip ip = ip_of(&a.u.sa);
    ip.port = port;
    return ip;
}

/* Bytes of the addresses that the fixed part announces. */
static unsigned v2_length(const struct proxy_header *h)
{
    static const unsigned lengths[] = { 0, V2_ADDRESSES_4, V2_ADDRESSES_6, V2_ADDRESSES_UNIX };
    return h->held[12] == COMMAND_LOCAL ? 0 : lengths[(unsigned char)h->held[13] >> 4];
}

/* Of the fixed part, as soon as its bytes are there. LOCAL may come with any family. */
static const char *v2_fault(const struct proxy_header *h)
{
    unsigned char command = (unsigned char)h->held[12], family = (unsigned char)h->held[13];
    bool is_known = family == 0 || (family >> 4 >= 1 && family >> 4 <= 3 && (family & 15) >= 1 && (family & 15) <= 2);
    if (command != COMMAND_LOCAL && command != COMMAND_PROXY)
        return "a version or command that is not known";
    if (h->n > 13 && command == COMMAND_PROXY && !is_known)
        return "a family or protocol that is not known";
    if (h->n < V2_HEAD)
        return NULL;
    if (u16_at(h->held + 14) > PROXY_HEADER_MAX - V2_HEAD)
        return "longer than 4096 bytes";
    return u16_at(h->held + 14) < v2_length(h) ? "too short for its addresses" : NULL;
}

/* How many bytes of the header are kept: the addresses of TCP only. */
static unsigned v2_wanted(const struct proxy_header *h)
{
    bool is_tcp = h->n >= V2_HEAD && (h->held[13] == TCP_4 || h->held[13] == TCP_6);
    return V2_HEAD + (is_tcp ? v2_length(h) : 0);
}

static void v2_addresses(struct proxy_header *h)
{
    bool is_v6 = h->held[13] == TCP_6;
    unsigned n = is_v6 ? 16 : 4;
    const char *p = h->held + V2_HEAD;
    h->has_addresses = v2_wanted(h) > V2_HEAD;
    if (!h->has_addresses)
        return;
    h->from = v2_ip(p, is_v6, u16_at(p + 2 * n));
    h->to = v2_ip(p + n, is_v6, u16_at(p + 2 * n + 2));
}

/* --- both --- */

/* Looks at what is held, one byte more than before. */
static enum proxy_header_event look(struct proxy_header *h)
{
    bool is_v2 = h->held[0] == signature[0];
    const char *start = is_v2 ? signature : v1_start.p;
    size_t n = is_v2 ? V2_SIGNATURE : v1_start.n;
    if (memcmp(h->held, start, h->n < n ? h->n : n) != 0)
        return bad(h, "the connection begins with something else");
    if (!is_v2) {
        if (h->n > n && h->held[h->n - 1] == '\n')
            return v1_line(h);
        return h->n < PROXY_HEADER_V1 ? PROXY_HEADER_MORE : bad(h, "its line is longer than 107 bytes");
    }
    const char *fault = h->n > V2_SIGNATURE && h->n <= V2_HEAD ? v2_fault(h) : NULL;
    if (fault != NULL)
        return bad(h, fault);
    if (h->n < V2_HEAD || h->n < v2_wanted(h))
        return PROXY_HEADER_MORE;
    v2_addresses(h);
    h->skip = (uint16_t)(u16_at(h->held + 14) + V2_HEAD - h->n);
    return PROXY_HEADER_DONE;
}

enum proxy_header_event proxy_header_feed(struct proxy_header *h, const char *p, size_t n, size_t *used)
{
    enum proxy_header_event event = PROXY_HEADER_MORE;
    size_t at = 0;
    if (h->skip == 0)
        while (at < n && event == PROXY_HEADER_MORE) {
            h->held[h->n++] = p[at++];
            event = look(h);
        }
    else
        event = PROXY_HEADER_DONE;
    if (event == PROXY_HEADER_DONE) {
        size_t skipped = n - at < h->skip ? n - at : h->skip;
        h->skip = (uint16_t)(h->skip - skipped);
        at += skipped;
        if (h->skip > 0)
            event = PROXY_HEADER_MORE;
    }
    *used = at;
    return event;
}

/* IPv4 beside IPv6 is written as IPv4-mapped. */
static void put_ip(char *out, const struct ip *ip, bool is_v6)
{
    static const char mapped[12] = { [10] = (char)0xff, [11] = (char)0xff };
    if (ip->family == 6) {
        memcpy(out, ip->b, 16);
    } else if (is_v6) {
        memcpy(out, mapped, sizeof mapped);
        memcpy(out + 12, ip->b, 4);
    } else {
        memcpy(out, ip->b, 4);
    }
}

static void put_u16(char *out, unsigned v)
{
    out[0] = (char)(v >> 8);
    out[1] = (char)v;
}

static size_t v1_write(bool has_addresses, bool is_v6, const struct ip *from, const struct ip *to, char *out)
{
    char text[2][IP_TEXT];
    if (!has_addresses)
        return (size_t)snprintf(out, PROXY_HEADER_V1, "PROXY UNKNOWN\r\n");
    text[0][ip_print(from, text[0])] = '\0';
    text[1][ip_print(to, text[1])] = '\0';
    return (size_t)snprintf(out, PROXY_HEADER_V1, "PROXY TCP%d %s%s %s%s %u %u\r\n", is_v6 ? 6 : 4,
                            is_v6 && from->family == 4 ? "::ffff:" : "", text[0], is_v6 && to->family == 4 ? "::ffff:" : "",
                            text[1], from->port, to->port);
}

size_t proxy_header_write(unsigned version, const struct ip *from, const struct ip *to, char *out)
{
    bool has_addresses = from != NULL && from->family != 0 && to->family != 0;
    bool is_v6 = has_addresses && (from->family == 6 || to->family == 6);
    size_t n = is_v6 ? 16 : 4;
    if (version == 1)
        return v1_write(has_addresses, is_v6, from, to, out);
    memcpy(out, signature, V2_SIGNATURE);
    out[12] = from == NULL ? COMMAND_LOCAL : COMMAND_PROXY;
    out[13] = !has_addresses ? 0 : is_v6 ? TCP_6 : TCP_4;
    put_u16(out + 14, has_addresses ? (unsigned)(2 * n + 4) : 0);
    if (!has_addresses)
        return V2_HEAD;
    put_ip(out + V2_HEAD, from, is_v6);
    put_ip(out + V2_HEAD + n, to, is_v6);
    put_u16(out + V2_HEAD + 2 * n, from->port);
    put_u16(out + V2_HEAD + 2 * n + 2, to->port);
    return V2_HEAD + 2 * n + 4;
}
