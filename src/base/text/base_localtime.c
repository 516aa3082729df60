/* SPDX-License-Identifier: Apache-2.0 */
/* base_localtime.c - local time without a zone. */
#include "base/text/base_localtime.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base_clock.h"

/* What stands before the fraction and the zone. */
#define FORM "0000-00-00 00:00:00"

/* Whether text[0..length) begins as `form` has it, where a '0' stands for any digit, and a
 * blank for a 'T' as well. */
static bool fits(const char *text, size_t length, const char *form)
{
    if (length < strlen(form))
        return false;
    for (; *form; text++, form++) {
        bool is_digit = *text >= '0' && *text <= '9';
        if (*form == '0' ? !is_digit : *text != *form && (*form != ' ' || *text != 'T'))
            return false;
    }
    return true;
}

static int number_at(const char *text, size_t count)
{
    int value = 0;

    while (count-- > 0)
        value = 10 * value + (*text++ - '0');
    return value;
}

/* ".123456", of one to nine digits, or nothing. */
static bool read_fraction(const char *text, size_t length, size_t at, int64_t *ret_ns)
{
    int64_t ns = 0, unit = WM_NS_PER_S;

    if (at < length && (text[at] != '.' || at + 1 == length))
        return false;
    for (at++; at < length; at++) {
        if (text[at] < '0' || text[at] > '9' || unit == 1)
            return false;
        unit /= 10;
        ns += unit * (text[at] - '0');
    }
    *ret_ns = ns;
    return true;
}

static bool read_fields(const char *text, size_t length, struct tm *ret_fields,
                        int64_t *ret_fraction_ns)
{
    if (!fits(text, length, FORM) ||
        !read_fraction(text, length, strlen(FORM), ret_fraction_ns))
        return false;

    struct tm fields = { .tm_year = number_at(text, 4),
                         .tm_mon = number_at(text + 5, 2),
                         .tm_mday = number_at(text + 8, 2),
                         .tm_hour = number_at(text + 11, 2),
                         .tm_min = number_at(text + 14, 2),
                         .tm_sec = number_at(text + 17, 2) };
    if (fields.tm_year < 1971 || fields.tm_year > 2099 || fields.tm_hour > 23 ||
        fields.tm_min > 59 || fields.tm_sec > 59)
        return false;
    fields.tm_year -= 1900;
    fields.tm_mon -= 1;
    *ret_fields = fields;
    return true;
}

/* The moment that shows these fields while daylight saving time is on (1), is
 * off (0), or whatever it is (-1); false where there is none. */
static bool find_moment(const struct tm *fields, int summer, int64_t *ret_s)
{
    struct tm found = *fields;

    found.tm_isdst = summer;
    time_t moment = mktime(&found);
    bool same_day = found.tm_year == fields->tm_year && found.tm_mon == fields->tm_mon &&
                    found.tm_mday == fields->tm_mday;
    bool same_time = found.tm_hour == fields->tm_hour && found.tm_min == fields->tm_min;
    /* The night in which the clock is set forward has hours that never were; they
     * are taken as mktime() does. A 31st of February is none of them. */
    if (moment < 0 || !same_day ||
        (summer >= 0 && (!same_time || found.tm_isdst != summer)))
        return false;
    *ret_s = moment;
    return true;
}

bool wm_localtime_parse(const char *text, size_t length, int64_t after_ns,
                        int64_t *ret_unix_ns)
{
    struct tm fields;
    int64_t fraction_ns = 0, first_s = 0, second_s = 0;

    if (!read_fields(text, length, &fields, &fraction_ns))
        return false;

    bool first = find_moment(&fields, 1, &first_s);
    bool second = find_moment(&fields, 0, &second_s);
    if (!first && !second && !find_moment(&fields, -1, &second_s))
        return false;
    if (!first || (second && first_s * WM_NS_PER_S + fraction_ns < after_ns))
        first_s = second_s;
    *ret_unix_ns = first_s * WM_NS_PER_S + fraction_ns;
    return true;
}

/* The zone that `text` ends with: its length, and how far it is ahead of UTC; 0
 * where there is none. The date has a '-' of its own. */
static size_t read_zone(const char *text, size_t length, int64_t *ret_ahead_s)
{
    size_t at = strlen(FORM);

    *ret_ahead_s = 0;
    if (length > at && text[length - 1] == 'Z')
        return 1;
    while (at < length && text[at] != '+' && text[at] != '-')
        at++;
    size_t start = at++;
    bool has_colon = length == at + 5 && fits(text + at, 5, "00:00");
    if (!has_colon && (length != at + 4 || !fits(text + at, 4, "0000")))
        return 0;
    int hours = number_at(text + at, 2), minutes = number_at(text + length - 2, 2);
    if (hours > 14 || minutes > 59)
        return 0;
    *ret_ahead_s = (text[start] == '-' ? -60 : 60) * (int64_t)(60 * hours + minutes);
    return length - start;
}

bool wm_localtime_parse_zoned(const char *text, size_t length, int64_t after_ns,
                              int64_t *ret_unix_ns)
{
    struct tm fields, copy;
    int64_t fraction_ns = 0, ahead_s = 0;

    size_t zone = read_zone(text, length, &ahead_s);
    if (zone == 0)
        return wm_localtime_parse(text, length, after_ns, ret_unix_ns);
    if (!read_fields(text, length - zone, &fields, &fraction_ns))
        return false;
    copy = fields;
    time_t moment = timegm(&copy);
    if (copy.tm_mon != fields.tm_mon || copy.tm_mday != fields.tm_mday || moment < 0)
        return false;
    *ret_unix_ns = (moment - ahead_s) * WM_NS_PER_S + fraction_ns;
    return true;
}

void wm_localtime_format(int64_t unix_ns, char text[WM_LOCALTIME_SIZE])
{
    time_t seconds = (time_t)(unix_ns / WM_NS_PER_S);
    char date[24] = "1970-01-01 00:00:00";
    struct tm fields;

    if (localtime_r(&seconds, &fields))
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &fields);
    snprintf(text, WM_LOCALTIME_SIZE, "%s.%06d", date, (int)(unix_ns % WM_NS_PER_S / 1000));
}

void wm_localtime_zone(int64_t unix_ns, char text[WM_LOCALTIME_SIZE])
{
    time_t seconds = (time_t)(unix_ns / WM_NS_PER_S);
    struct tm fields;

    text[0] = '\0';
    if (localtime_r(&seconds, &fields))
        strftime(text, WM_LOCALTIME_SIZE, "%z (%Z)", &fields);
}
