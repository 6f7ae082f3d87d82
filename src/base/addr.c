/* SPDX-License-Identifier: MIT */
/*
 * Socket addresses, peers and CIDRs: text to struct and back. Stateless, does no I/O, resolves no names.
 * IPv4-mapped IPv6 addresses (RFC 4291 §2.5.5.2) become plain IPv4 in struct ip, so that a rule for 10.0.0.0/8 also
 * meets a peer of a socket that serves both families. A struct addr keeps the family it was written in.
 * An IPv6 address with a port stands in brackets (RFC 3986 §3.2.2).
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <stdio.h>

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

static struct ip ip_of_v6(const uint8_t *b)
{
    struct ip ip = { .family = 6 };
    if (memcmp(b, mapped_prefix, sizeof mapped_prefix) == 0) {
        ip.family = 4;
        memcpy(ip.b, b + 12, 4);
    } else {
        memcpy(ip.b, b, 16);
    }
    return ip;
}

/* inet_pton wants a NUL; false for what cannot be an address by its length or holds a NUL itself. */
static bool pton(int family, struct str s, void *out)
{
    char z[INET6_ADDRSTRLEN];
    if (s.n == 0 || s.n >= sizeof z || str_chr(s, '\0', 0) >= 0)
        return false;
    memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return inet_pton(family, z, out) == 1;
}

bool ip_parse(struct str s, struct ip *out)
{
    uint8_t b[16];
    if (pton(AF_INET, s, b)) {
        *out = (struct ip){ .family = 4 };
        memcpy(out->b, b, 4);
        return true;
    }
    if (!pton(AF_INET6, s, b))
        return false;
    *out = ip_of_v6(b);
    return true;
}

struct ip ip_of(const struct sockaddr *sa)
{
    struct ip ip = { 0 };
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)sa;
        ip.family = 4;
        memcpy(ip.b, &in->sin_addr, 4);
        ip.port = ntohs(in->sin_port);
    } else if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)sa;
        ip = ip_of_v6(in6->sin6_addr.s6_addr);
        ip.port = ntohs(in6->sin6_port);
    }
    return ip;
}

size_t ip_print(const struct ip *ip, char *out)
{
    if (ip->family == 0)
        return (size_t)snprintf(out, IP_TEXT, "unix:");
    inet_ntop(ip->family == 4 ? AF_INET : AF_INET6, ip->b, out, IP_TEXT);
    return strlen(out);
}

static bool port_parse(struct str s, uint16_t *out)
{
    uint64_t v;
    if (!str_to_u64(s, &v) || v == 0 || v > UINT16_MAX)
        return false;
    *out = (uint16_t)v;
    return true;
}

static bool unix_parse(struct str path, struct endpoint *out, const char **why)
{
    struct sockaddr_un *un = &out->addr.u.un;
    if (path.n == 0 || str_chr(path, '\0', 0) >= 0) {
        *why = "a path after \"unix:\"";
        return false;
    }
    if (path.n >= sizeof un->sun_path) {
        *why = "a shorter path: a unix socket's has at most 107 bytes";
        return false;
    }
    out->kind = ENDPOINT_UNIX;
    out->host = path;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path.p, path.n);
    out->addr.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.n + 1);
    return true;
}

static void addr_set_v4(struct addr *a, const void *b, uint16_t port)
{
    a->len = sizeof a->u.in;
    a->u.in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
    memcpy(&a->u.in.sin_addr, b, 4);
}

static void addr_set_v6(struct addr *a, const void *b, uint16_t port)
{
    a->len = sizeof a->u.in6;
    a->u.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
    memcpy(&a->u.in6.sin6_addr, b, 16);
}

/* Letters, digits, '-', '_' and inner dots; container names carry underscores. */
static bool is_host_name(struct str s)
{
    if (s.n == 0 || s.n > 253 || s.p[0] == '.' || s.p[0] == '-')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = ascii_lower(s.p[i]);
        if (c == '.' && i > 0 && s.p[i - 1] == '.')
            return false;
        if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_' && c != '.')
            return false;
    }
    return true;
}

static bool is_dotted_number(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_digit(s.p[i]) && s.p[i] != '.')
            return false;
    return s.n > 0;
}

/* The part before the port, without brackets. */
static bool host_parse(struct str host, bool has_brackets, struct endpoint *out, const char **why)
{
    uint8_t b[16] = { 0 };
    if (has_brackets) {
        if (!pton(AF_INET6, host, b)) {
            *why = "an IPv6 address in the brackets (\"[::1]:80\")";
            return false;
        }
        addr_set_v6(&out->addr, b, out->port);
        out->kind = ENDPOINT_IP;
    } else if (str_eq(host, STR("*"))) {
        addr_set_v6(&out->addr, b, out->port);
        out->kind = ENDPOINT_ANY;
    } else if (pton(AF_INET, host, b)) {
        addr_set_v4(&out->addr, b, out->port);
        out->kind = ENDPOINT_IP;
    } else if (is_dotted_number(host)) {
        *why = "an IPv4 address of four numbers up to 255 (\"127.0.0.1:80\")";
        return false;
    } else if (is_host_name(host)) {
        out->kind = ENDPOINT_NAME;
    } else {
        *why = "an address or a host name before the port (\"127.0.0.1:80\", \"app:3000\")";
        return false;
    }
    out->host = host;
    return true;
}

bool endpoint_parse(struct str s, struct endpoint *out, const char **why)
{
    *out = (struct endpoint){ .kind = ENDPOINT_ANY };
    if (str_starts(s, STR("unix:")))
        return unix_parse(str_skip(s, 5), out, why);
    struct str host = STR("*"), port = s;
    bool has_brackets = s.n > 0 && s.p[0] == '[';
    ptrdiff_t colon;
    if (has_brackets) {
        ptrdiff_t close = str_chr(s, ']', 0);
        if (close < 0) {
            *why = "a closing bracket (\"[::1]:80\")";
            return false;
        }
        host = str_of(s.p + 1, (size_t)close - 1);
        port = str_skip(s, (size_t)close + 1);
        if (port.n == 0 || port.p[0] != ':') {
            *why = "a port after the address (\"[::1]:80\")";
            return false;
        }
        port = str_skip(port, 1);
    } else if ((colon = str_chr(s, ':', 0)) >= 0) {
        if (str_chr(s, ':', (size_t)colon + 1) >= 0) {
            *why = "brackets around an IPv6 address (\"[::1]:80\")";
            return false;
        }
        host = str_take(s, (size_t)colon);
        port = str_skip(s, (size_t)colon + 1);
    } else if (s.n > 0 && !is_digit(s.p[0])) {
        *why = "a port after the address (\"app:3000\")";
        return false;
    } else if (str_chr(s, '.', 0) >= 0) {
        *why = "a port after the address (\"127.0.0.1:80\")";
        return false;
    }
    if (!port_parse(port, &out->port)) {
        *why = "a port from 1 to 65535";
        return false;
    }
    return host_parse(host, has_brackets, out, why);
}

/* Are all bits of b from the given one on zero? */
static bool is_zero_from(const uint8_t *b, size_t n, unsigned bit)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t mask = i * 8 >= bit ? 0xff : bit - i * 8 >= 8 ? 0 : (uint8_t)(0xff >> (bit - i * 8));
        if (b[i] & mask)
            return false;
    }
    return true;
}

bool cidr_parse(struct str s, struct cidr *out, const char **why)
{
    *out = (struct cidr){ 0 };
    if (str_eq(s, STR("unix"))) {
        out->unix_peers = true;
        return true;
    }
    ptrdiff_t slash = str_chr(s, '/', 0);
    struct str host = slash < 0 ? s : str_take(s, (size_t)slash);
    if (!ip_parse(host, &out->ip)) {
        *why = "an address, a network (\"10.0.0.0/8\", \"::1\") or \"unix\"";
        return false;
    }
    unsigned max = out->ip.family == 4 ? 32 : 128;
    uint64_t bits = max;
    if (slash >= 0) {
        /* "::ffff:10.0.0.0/104" is 10.0.0.0/8: count from where the IPv4 part begins. */
        unsigned skip = out->ip.family == 4 && str_chr(host, ':', 0) >= 0 ? 96 : 0;
        if (!str_to_u64(str_skip(s, (size_t)slash + 1), &bits) || bits < skip || bits > max + skip) {
            *why = max == 32 ? "a prefix length from 0 to 32" : "a prefix length from 0 to 128";
            return false;
        }
        bits -= skip;
    }
    if (!is_zero_from(out->ip.b, max / 8, (unsigned)bits)) {
        *why = "zero bits after the prefix (\"10.0.0.0/8\", not \"10.1.2.3/8\")";
        return false;
    }
    out->bits = (uint8_t)bits;
    return true;
}

bool cidr_has(const struct cidr *c, const struct ip *ip)
{
    if (c->unix_peers || ip->family == 0)
        return c->unix_peers && ip->family == 0;
    if (c->ip.family != ip->family)
        return false;
    size_t whole = c->bits / 8;
    if (memcmp(c->ip.b, ip->b, whole) != 0)
        return false;
    unsigned rest = c->bits % 8;
    return rest == 0 || ((c->ip.b[whole] ^ ip->b[whole]) & (0xff00 >> rest) & 0xff) == 0;
}

bool cidrs_have(const struct cidr *list, unsigned n, const struct ip *ip)
{
    for (unsigned i = 0; i < n; i++)
        if (cidr_has(&list[i], ip))
            return true;
    return false;
}

static struct str unix_path(const struct addr *a)
{
    size_t head = offsetof(struct sockaddr_un, sun_path);
    size_t max = a->len > head ? a->len - head : 0;
    return str_of(a->u.un.sun_path, strnlen(a->u.un.sun_path, max));
}

size_t addr_print(const struct addr *a, char *out, size_t cap)
{
    char ip[INET6_ADDRSTRLEN];
    int n = 0;
    if (a->u.sa.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a->u.in.sin_addr, ip, sizeof ip);
        n = snprintf(out, cap, "%s:%u", ip, ntohs(a->u.in.sin_port));
    } else if (a->u.sa.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->u.in6.sin6_addr, ip, sizeof ip);
        n = snprintf(out, cap, "[%s]:%u", ip, ntohs(a->u.in6.sin6_port));
    } else {
        struct str path = unix_path(a);
        n = snprintf(out, cap, "unix:%.*s", STR_ARG(path));
    }
    if (n < 0 || cap == 0)
        return 0;
    return (size_t)n < cap ? (size_t)n : cap - 1;
}

bool addr_eq(const struct addr *a, const struct addr *b)
{
    if (a->u.sa.sa_family != b->u.sa.sa_family)
        return false;
    if (a->u.sa.sa_family == AF_INET)
        return a->u.in.sin_port == b->u.in.sin_port && a->u.in.sin_addr.s_addr == b->u.in.sin_addr.s_addr;
    if (a->u.sa.sa_family == AF_INET6)
        return a->u.in6.sin6_port == b->u.in6.sin6_port && a->u.in6.sin6_scope_id == b->u.in6.sin6_scope_id &&
               memcmp(&a->u.in6.sin6_addr, &b->u.in6.sin6_addr, 16) == 0;
    return str_eq(unix_path(a), unix_path(b));
}
