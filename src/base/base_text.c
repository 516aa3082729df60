/* SPDX-License-Identifier: Apache-2.0 */
/* base_text.c - strict numbers and valid UTF-8. */
#include "base/base_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Not strtoull(): it skips blanks, takes a sign and turns "-1" into a very
 * large number, and this runs on every field of every process in each tick. */
bool wm_text_u64(const char *text, const char **ret_end, uint64_t *ret_value)
{
    const char *at = text;
    uint64_t value = 0;

    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (at == text)
        return false;

    if (ret_end)
        *ret_end = at;
    *ret_value = value;
    return true;
}

bool wm_text_i64(const char *text, const char **ret_end, int64_t *ret_value)
{
    bool negative = *text == '-';
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    const char *end;
    uint64_t size;

    if (!wm_text_u64(text + (negative ? 1 : 0), &end, &size) || size > limit)
        return false;
    if (ret_end)
        *ret_end = end;
    *ret_value = negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

size_t wm_text_mark(const char *text, size_t length)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t size = sizeof(mark) - 1;

    return length >= size && memcmp(text, mark, size) == 0 ? size : 0;
}

const char *wm_text_skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

/* The bytes that may follow a lead byte, as the Unicode Standard has them in
 * its table of well-formed sequences: overlong forms, surrogates and what lies
 * above U+10FFFF are ruled out by the second byte. */
static const struct lead {
    unsigned char first, last;
    unsigned char length;
    unsigned char second_min, second_max;
} leads[] = {
    { 0x01, 0x7f, 1, 0, 0 },       { 0xc2, 0xdf, 2, 0x80, 0xbf },
    { 0xe0, 0xe0, 3, 0xa0, 0xbf }, { 0xe1, 0xec, 3, 0x80, 0xbf },
    { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
    { 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf },
    { 0xf4, 0xf4, 4, 0x80, 0x8f },
};

static const struct lead *find_lead(unsigned char byte)
{
    for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++) {
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    }
    return NULL;
}

/* How many bytes belong together at bytes[0], and whether they are a
 * character. A broken sequence ends where the first wrong byte stands, so that
 * a good character after it survives. */
static size_t next_character(const unsigned char *bytes, size_t length, bool *ret_valid)
{
    const struct lead *lead = find_lead(bytes[0]);
    size_t taken = 1;

    *ret_valid = false;
    if (!lead)
        return taken;

    for (; taken < lead->length && taken < length; taken++) {
        unsigned char min = taken == 1 ? lead->second_min : 0x80;
        unsigned char max = taken == 1 ? lead->second_max : 0xbf;
        if (bytes[taken] < min || bytes[taken] > max)
            return taken;
    }
    *ret_valid = taken == lead->length;
    return taken;
}

size_t wm_text_utf8(char *out, size_t size, const char *bytes, size_t length)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t used = 0;

    if (size == 0)
        return 0;

    while (length > 0) {
        bool valid;
        size_t taken = next_character((const unsigned char *)bytes, length, &valid);
        const char *from = valid ? bytes : replacement;
        size_t add = valid ? taken : sizeof(replacement) - 1;

        if (add >= size - used)
            break;
        memcpy(out + used, from, add);
        used += add;
        bytes += taken;
        length -= taken;
    }
    out[used] = '\0';
    return used;
}

/* U+2028 to U+202E and U+2066 to U+2069 end a line, or turn the direction of what follows
 * them, so that a name may look like another, and like what stands beside it. */
static bool is_control(const char *character, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)character;

    if (length == 2)
        return bytes[0] == 0xc2 && bytes[1] < 0xa0;
    if (length == 3 && bytes[0] == 0xe2)
        return (bytes[1] == 0x80 && bytes[2] >= 0xa8 && bytes[2] <= 0xae) ||
               (bytes[1] == 0x81 && bytes[2] >= 0xa6 && bytes[2] <= 0xa9);
    return bytes[0] < 0x20 || bytes[0] == 0x7f;
}

void wm_text_clean(char *text)
{
    size_t length = strlen(text);
    char *out = text;

    for (const char *in = text; length > 0;) {
        bool valid;
        size_t taken = next_character((const unsigned char *)in, length, &valid);

        if (valid && !is_control(in, taken) && strncmp(in, "\xef\xbf\xbd", 3) != 0) {
            memmove(out, in, taken);
            out += taken;
        } else {
            *out++ = '?';
        }
        in += taken;
        length -= taken;
    }
    *out = '\0';
}

/* From `from` to before `to`, in one text. */
static void hide(char *from, char *to)
{
    if (to <= from)
        return;
    *from = '*';
    memmove(from + 1, to, strlen(to) + 1);
}

/* Whether a host's port stands there, rather than a user's password. */
static bool is_port(const char *text)
{
    text += strspn(text, "0123456789");
    text += strspn(text, "'\",.:;)"); /* the message's, after the URL */
    return *text == '\0' || *text == ' ' || *text == '/';
}

/* The '@' behind the password of what follows a scheme. A password may hold any character
 * that is not escaped, so that it is the last one of the word; or the last one before the
 * next URL, where a blank is in the password. */
static char *find_sign(char *at, const char *scheme)
{
    char *end = at + strcspn(at, " ");
    char *sign = memrchr(at, '@', (size_t)(end - at));
    char *colon = memchr(at, ':', (size_t)(end - at));

    if (sign || !colon || is_port(colon + 1))
        return sign;
    char *next = strstr(at, scheme);
    return memrchr(at, '@', next ? (size_t)(next - at) : strlen(at));
}

/* Where a word without an '@' ends: at the message's end, or at a blank; or at the last
 * quotation mark before that. */
static char *find_end(char *at)
{
    char *end = at + strcspn(at, " ");
    char *single = memrchr(at, '\'', (size_t)(end - at));
    char *quote = single ? single : memrchr(at, '"', (size_t)(end - at));

    return *end == ' ' && quote ? quote : end;
}

void wm_text_hide_passwords(char *text)
{
    static const char scheme[] = "://", parameter[] = "password=";

    for (char *at = text; (at = strstr(at, scheme)) != NULL;) {
        at += strlen(scheme);
        char *sign = find_sign(at, scheme);
        char *end = sign ? sign : find_end(at);
        char *colon = memchr(at, ':', (size_t)(end - at));
        /* A long message is cut off, or a long word in it, and a password with it. */
        bool is_cut = !sign && *end != ' ' && colon && !is_port(colon + 1) &&
                      !memchr(colon, '/', (size_t)(end - colon));
        if (colon && (sign || is_cut))
            hide(colon + 1, end);
    }
    for (char *at = text; (at = strstr(at, parameter)) != NULL;) {
        at += strlen(parameter);
        char *end = at + strcspn(at, "& ");
        while (end > at && strchr("'\",.:;)", end[-1]))
            end--;
        hide(at, end);
    }
}

bool wm_text_is_quoted(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ',' || text[i] == '"' || text[i] == '\r' || text[i] == '\n')
            return true;
    }
    return false;
}

size_t wm_text_double_quotes(char *out, const char *text, size_t length)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            out[used++] = '"';
        out[used++] = text[i];
    }
    return used;
}

size_t wm_text_line(char *out, size_t size, const char *text)
{
    const char *start = wm_text_skip_blanks(text);
    size_t length = strcspn(start, "\r\n");

    while (length > 0 && (start[length - 1] == ' ' || start[length - 1] == '\t'))
        length--;
    return wm_text_utf8(out, size, start, length);
}

bool wm_text_ends(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

void wm_text_list(char *list, size_t size, const char *separator, const char *format, ...)
{
    size_t length = strlen(list);
    va_list args;

    if (length > 0)
        length += (size_t)snprintf(list + length, size - length, "%s", separator);
    if (length >= size)
        return;
    va_start(args, format);
    vsnprintf(list + length, size - length, format, args);
    va_end(args);
}
