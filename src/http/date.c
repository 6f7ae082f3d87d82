/* SPDX-License-Identifier: MIT */
/*
 * HTTP dates (RFC 9110 §5.6.7). Printed in the one format servers send, read in the three a recipient must take:
 *
 *     Sun, 06 Nov 1994 08:49:37 GMT     IMF-fixdate
 *     Sunday, 06-Nov-94 08:49:37 GMT    RFC 850
 *     Sun Nov  6 08:49:37 1994          asctime
 *
 * No locale, no time zone, no libc calendar: days are counted here (proleptic Gregorian). A date is read strictly, case
 * included; the name of the day has to be one, but need not fit the date. Leap second 60 is taken as 59.
 */
#include "http/date.h"

static const char day_names[7][4] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" }; /* 1970-01-01 was a Thursday */
static const struct str long_days[7] = {
    { "Thursday", 8 }, { "Friday", 6 },  { "Saturday", 8 },  { "Sunday", 6 },
    { "Monday", 6 },   { "Tuesday", 7 }, { "Wednesday", 9 },
};
static const char month_names[12][4] = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
};

enum { DAY = 86400, ERA_DAYS = 146097 /* 400 years */, TO_EPOCH = 719468 /* days from 0000-03-01 to 1970-01-01 */ };

struct civil {
    int64_t year;
    unsigned month, day; /* from 1 */
};

/* Years are counted from March, so that a leap day is the last of its year. */
static int64_t days_of(struct civil c)
{
    int64_t year = c.year - (c.month <= 2);
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * ((int64_t)c.month + (c.month > 2 ? -3 : 9)) + 2) / 5 + c.day - 1;
    return era * ERA_DAYS + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - TO_EPOCH;
}

static struct civil civil_of(int64_t days)
{
    days += TO_EPOCH;
    int64_t era = (days >= 0 ? days : days - (ERA_DAYS - 1)) / ERA_DAYS;
    int64_t day_of_era = days - era * ERA_DAYS;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    return (struct civil){
        .year = year_of_era + era * 400 + (month >= 10),
        .month = (unsigned)(month < 10 ? month + 3 : month - 9),
        .day = (unsigned)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

static char *put_two(char *at, unsigned n)
{
    at[0] = (char)('0' + n / 10);
    at[1] = (char)('0' + n % 10);
    return at + 2;
}

static char *put(char *at, const char *s, size_t n)
{
    memcpy(at, s, n);
    return at + n;
}

void date_print(char out[HTTP_DATE], int64_t seconds)
{
    int64_t days = seconds / DAY - (seconds % DAY < 0);
    unsigned rest = (unsigned)(seconds - days * DAY);
    struct civil c = civil_of(days);
    unsigned year = (unsigned)(c.year % 10000);
    char *at = put(out, day_names[(days % 7 + 7) % 7], 3);
    at = put(at, ", ", 2);
    at = put_two(at, c.day);
    *at++ = ' ';
    at = put(at, month_names[c.month - 1], 3);
    *at++ = ' ';
    at = put_two(at, year / 100);
    at = put_two(at, year % 100);
    *at++ = ' ';
    at = put_two(at, rest / 3600);
    *at++ = ':';
    at = put_two(at, rest / 60 % 60);
    *at++ = ':';
    at = put_two(at, rest % 60);
    put(at, " GMT", 4);
}

/* The parts of a date, and what is still to be read. A failure leaves `good` false. */
struct scan {
    struct str rest;
    bool good;
    struct civil date;
    unsigned seconds;
};

static void expect(struct scan *s, struct str text)
{
    s->good = s->good && str_starts(s->rest, text);
    s->rest = str_skip(s->rest, text.n);
}

static unsigned number(struct scan *s, size_t digits)
{
    uint64_t n = 0;
    s->good = s->good && s->rest.n >= digits && str_to_u64(str_take(s->rest, digits), &n);
    s->rest = str_skip(s->rest, digits);
    return (unsigned)n;
}

static void month(struct scan *s)
{
    struct str name = str_take(s->rest, 3);
    s->rest = str_skip(s->rest, name.n);
    for (unsigned i = 0; i < 12; i++)
        if (str_eq(name, str_of(month_names[i], 3)))
            s->date.month = i + 1;
    s->good = s->good && s->date.month != 0;
}

static void time_of_day(struct scan *s)
{
    unsigned hour = number(s, 2);
    expect(s, STR(":"));
    unsigned minute = number(s, 2);
    expect(s, STR(":"));
    unsigned second = number(s, 2);
    s->good = s->good && hour < 24 && minute < 60 && second <= 60;
    s->seconds = hour * 3600 + minute * 60 + (second == 60 ? 59 : second);
}

/* A two-digit year that would lie more than 50 years ahead belongs to the century before. */
static int64_t full_year(unsigned two_digits, int64_t now)
{
    int64_t this_year = civil_of(now / DAY - (now % DAY < 0)).year;
    int64_t year = this_year - this_year % 100 + two_digits;
    return year > this_year + 50 ? year - 100 : year;
}

static void fixdate(struct scan *s)
{
    s->date.day = number(s, 2);
    expect(s, STR(" "));
    month(s);
    expect(s, STR(" "));
    s->date.year = number(s, 4);
    expect(s, STR(" "));
    time_of_day(s);
    expect(s, STR(" GMT"));
}

static void rfc850(struct scan *s, int64_t now)
{
    s->date.day = number(s, 2);
    expect(s, STR("-"));
    month(s);
    expect(s, STR("-"));
    s->date.year = full_year(number(s, 2), now);
    expect(s, STR(" "));
    time_of_day(s);
    expect(s, STR(" GMT"));
}

static void asctime_date(struct scan *s)
{
    month(s);
    expect(s, STR(" "));
    if (str_starts(s->rest, STR(" "))) {
        expect(s, STR(" "));
        s->date.day = number(s, 1);
    } else {
        s->date.day = number(s, 2);
    }
    expect(s, STR(" "));
    time_of_day(s);
    expect(s, STR(" "));
    s->date.year = number(s, 4);
}

/* Reads the name of the day and what follows it, which tells the formats apart. */
static void any_format(struct scan *s, int64_t now)
{
    for (size_t i = 0; i < ARRAY_LEN(long_days); i++) {
        struct str day = str_of(day_names[i], 3);
        if (str_starts(s->rest, long_days[i])) {
            s->rest = str_skip(s->rest, long_days[i].n);
            expect(s, STR(", "));
            rfc850(s, now);
            return;
        }
        if (str_starts(s->rest, day)) {
            s->rest = str_skip(s->rest, 3);
            if (str_starts(s->rest, STR(", "))) {
                s->rest = str_skip(s->rest, 2);
                fixdate(s);
            } else {
                expect(s, STR(" "));
                asctime_date(s);
            }
            return;
        }
    }
    s->good = false;
}

bool date_parse(struct str text, int64_t now, int64_t *seconds)
{
    struct scan s = { .rest = text, .good = true };
    any_format(&s, now);
    if (!s.good || s.rest.n != 0 || s.date.day < 1 || s.date.day > 31)
        return false;
    int64_t days = days_of(s.date);
    if (civil_of(days).month != s.date.month) /* the 31st of a month of 30 days */
        return false;
    *seconds = days * DAY + s.seconds;
    return true;
}
