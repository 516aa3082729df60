/* SPDX-License-Identifier: Apache-2.0 */
/* view_columns.h - text in columns. A column holds a character, not a byte as
 * printf() has it; wide characters and combining ones are taken for one column. */
#ifndef WM_VIEW_COLUMNS_H
#define WM_VIEW_COLUMNS_H

#include <stdio.h>

/* How many columns a text takes, which is UTF-8. */
int wm_view_width(const char *text);

/* The text with blanks after it, or before it, up to `width`. */
void wm_view_left(FILE *out, const char *text, int width);
void wm_view_right(FILE *out, const char *text, int width);

/* The text, cut where it is longer than `width`, and then with an ellipsis at its
 * end. Returns how many columns that takes. */
int wm_view_cut(FILE *out, const char *text, int width);

#endif
