/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_colour.h - the colours of text and lines in the terminal; for src/view/watch
 * alone. */
#ifndef WM_VIEW_WATCH_COLOUR_H
#define WM_VIEW_WATCH_COLOUR_H

#include <stddef.h>
#include <stdint.h>

/* Of text (WCAG 2.2, success criterion 1.4.3). */
#define WM_WATCH_CONTRAST 4.5

/* Of what is not important. */
#define WM_WATCH_GREY UINT32_C(0x808080)

/* The chart's colour, 0xRRGGBB, as light as that contrast to black takes. */
uint32_t wm_watch_colour(size_t index);

/* The nearest colour with that contrast of a terminal with 256: its number, and what it is.
 */
int wm_watch_colour_256(uint32_t colour, uint32_t *ret_colour);

/* The contrast to black, 1 to 21. */
double wm_watch_contrast(uint32_t colour);

#endif
