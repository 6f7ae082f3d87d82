/* SPDX-License-Identifier: MIT */
/*
 * Basic credentials (RFC 7617 §2): "Basic", blanks, base64 (RFC 4648 §4, with its padding) of user and password with the
 * first colon between them. Strict: one text has one encoding, so what is refused here is not accepted elsewhere as
 * something else. A NUL would end a password early for crypt(3), and is refused like any other malformed text.
 * A pure function; nothing is kept.
 */
#include "http/credentials.h"

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (is_digit(c))
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Whole groups of four, padding only in the last, unused bits zero. -1: malformed or longer than cap. */
static ptrdiff_t base64_decode(struct str s, char *out, size_t cap)
{
    size_t n = 0, padding = str_ends(s, STR("==")) ? 2 : str_ends(s, STR("=")) ? 1 : 0;
    if (s.n % 4 != 0 || s.n / 4 * 3 - padding > cap)
        return -1;
    unsigned bits = 0, held = 0;
    for (size_t i = 0; i < s.n - padding; i++) {
        int digit = digit_of(s.p[i]);
        if (digit < 0)
            return -1;
        held = held << 6 | (unsigned)digit;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out[n++] = (char)(held >> bits);
            held &= (1u << bits) - 1;
        }
    }
    return held == 0 ? (ptrdiff_t)n : -1;
}

bool credentials_parse(struct str value, struct credentials *out)
{
    struct str scheme = STR("Basic ");
    if (!str_eq_nocase(str_take(value, scheme.n), scheme))
        return false;
    ptrdiff_t n = base64_decode(str_trim(str_skip(value, scheme.n)), out->text, CREDENTIALS_MAX);
    if (n <= 0 || memchr(out->text, '\0', (size_t)n) != NULL)
        return false;
    out->text[n] = '\0';
    ptrdiff_t colon = str_chr(str_of(out->text, (size_t)n), ':', 0);
    if (colon <= 0)
        return false;
    out->text[colon] = '\0';
    out->user = str_of(out->text, (size_t)colon);
    out->password = str_of(out->text + colon + 1, (size_t)(n - colon - 1));
    return true;
}
