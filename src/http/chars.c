/* SPDX-License-Identifier: MIT */
/*
 * The table behind chars.h. Constant data only, so that it can be shared by every thread.
 * Each byte has the set of places it may stand in, worked out from the grammars of RFC 9110 §5.5, §5.6.2, §5.6.4 and
 * RFC 3986 §2.2, §3.2.2, §3.3. Control bytes but HTAB are in none of them, so no parser that asks here can let one
 * through; bytes above 0x7f are text in field values and quoted strings, nowhere else.
 * Entries must not overlap: the compiler warns of a byte that is set twice.
 */
#include "http/chars.h"

#define ANYWHERE (CHAR_TOKEN | CHAR_VALUE | CHAR_TARGET | CHAR_QUOTED | CHAR_PATH | CHAR_HOST)
/* A delimiter of HTTP, but plain text to a URI. */
#define DELIMITER (CHAR_VALUE | CHAR_TARGET | CHAR_QUOTED)
#define SUB_DELIM (DELIMITER | CHAR_PATH | CHAR_HOST)

const uint8_t char_classes[256] = {
    ['\t'] = CHAR_VALUE | CHAR_QUOTED,
    [' '] = CHAR_VALUE | CHAR_QUOTED,
    ['!'] = ANYWHERE,
    ['"'] = CHAR_VALUE | CHAR_TARGET,
    ['#'] = CHAR_TOKEN | CHAR_VALUE | CHAR_QUOTED,
    ['$'] = ANYWHERE,
    ['%'] = CHAR_TOKEN | DELIMITER,
    ['&'] = ANYWHERE,
    ['\''] = ANYWHERE,
    ['('] = SUB_DELIM,
    [')'] = SUB_DELIM,
    ['*'] = ANYWHERE,
    ['+'] = ANYWHERE,
    [','] = SUB_DELIM,
    ['-'] = ANYWHERE,
    ['.'] = ANYWHERE,
    ['/'] = DELIMITER | CHAR_PATH,
    ['0' ... '9'] = ANYWHERE,
    [':'] = DELIMITER | CHAR_PATH,
    [';'] = SUB_DELIM,
    ['<'] = DELIMITER,
    ['='] = SUB_DELIM,
    ['>'] = DELIMITER,
    ['?'] = DELIMITER,
    ['@'] = DELIMITER | CHAR_PATH,
    ['A' ... 'Z'] = ANYWHERE,
    ['['] = DELIMITER,
    ['\\'] = CHAR_VALUE | CHAR_TARGET,
    [']'] = DELIMITER,
    ['^'] = CHAR_TOKEN | DELIMITER,
    ['_'] = ANYWHERE,
    ['`'] = CHAR_TOKEN | DELIMITER,
    ['a' ... 'z'] = ANYWHERE,
    ['{'] = DELIMITER,
    ['|'] = CHAR_TOKEN | DELIMITER,
    ['}'] = DELIMITER,
    ['~'] = ANYWHERE,
    [0x80 ... 0xff] = CHAR_VALUE | CHAR_QUOTED,
};
