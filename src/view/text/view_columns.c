/* SPDX-License-Identifier: Apache-2.0 */
/* view_columns.c - padding and cutting by characters. */
#include "view/text/view_columns.h"

#include <stdbool.h>
#include <string.h>

static bool begins_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

int wm_view_width(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += begins_character(*text);
    return width;
}

static int blanks(const char *text, int width)
{
    return width > wm_view_width(text) ? width - wm_view_width(text) : 0;
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
    size_t kept = 0;

    if (wm_view_width(text) <= width) {
        fputs(text, out);
        return wm_view_width(text);
    }
    for (int shown = 0; shown < width; kept++)
        shown += begins_character(text[kept]);
    fwrite(text, 1, kept - 1, out);
    fputs("…", out);
    return width;
}
