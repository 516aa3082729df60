/* SPDX-License-Identifier: Apache-2.0 */
/* view_width.c - how many columns of a terminal a text takes, which is UTF-8: two of a wide
 * East Asian character, none of a combining one. */
#include <limits.h>
#include <locale.h>
#include <stdbool.h>
#include <wchar.h>

#include "view/text/view_text_line.h"

static bool begins_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

/* All of it below U+0300, or among U+2000 to U+2FFF, in which our own signs are. */
static bool is_narrow(const char *text)
{
    for (; *text; text++) {
        unsigned char lead = (unsigned char)*text;
        if (lead >= 0xcc && lead != 0xe2)
            return false;
    }
    return true;
}

static size_t fit_narrow(const char *text, int width, int *ret_width)
{
    size_t length = 0;
    int taken = 0;

    while (text[length] && taken < width) {
        taken++;
        do
            length++;
        while (!begins_character(text[length]));
    }
    *ret_width = taken;
    return length;
}

/* In a locale that is UTF-8 the C library knows it, as the terminal does. */
static size_t fit_any(const char *text, int width, int *ret_width)
{
    mbstate_t state = { 0 };
    size_t length = 0;
    int taken = 0;

    while (text[length]) {
        wchar_t character = L'\0';
        size_t bytes = mbrtowc(&character, text + length, MB_LEN_MAX, &state);
        bool is_valid = bytes <= MB_LEN_MAX;
        int own = is_valid ? wcwidth(character) : 1;
        own = own < 0 ? 1 : own;
        if (taken + own > width)
            break;
        taken += own;
        length += is_valid ? bytes : 1;
        if (!is_valid)
            state = (mbstate_t) { 0 };
    }
    *ret_width = taken;
    return length;
}

size_t wm_view_fit(const char *text, int width, int *ret_width)
{
    locale_t utf8 =
        is_narrow(text) ? (locale_t)0 : newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

    if (utf8 == (locale_t)0)
        return fit_narrow(text, width, ret_width);
    locale_t before = uselocale(utf8);
    size_t length = fit_any(text, width, ret_width);
    uselocale(before);
    freelocale(utf8);
    return length;
}

size_t wm_view_fit_words(const char *text, int width)
{
    int taken;
    size_t length = wm_view_fit(text, width, &taken), end = length;

    if (text[length] == '\0')
        return length;
    while (end > 0 && text[end] != ' ')
        end--;
    return end > 0 ? end : length;
}

int wm_view_width(const char *text)
{
    int width;

    wm_view_fit(text, INT_MAX, &width);
    return width;
}

static int blanks(const char *text, int width)
{
    int own = wm_view_width(text);

    return width > own ? width - own : 0;
}

void wm_view_left(FILE *out, const char *text, int width)
{
    fprintf(out, "%s%*s", text, blanks(text, width), "");
}

void wm_view_right(FILE *out, const char *text, int width)
{
    fprintf(out, "%*s%s", blanks(text, width), "", text);
}

int wm_view_cut(FILE *out, const char *text, int width)
{
    int taken;
    size_t length = wm_view_fit(text, width, &taken);

    if (text[length] == '\0') {
        fputs(text, out);
        return taken;
    }
    length = wm_view_fit(text, width - 1, &taken);
    fwrite(text, 1, length, out);
    fputs("…", out);
    return taken + 1;
}
