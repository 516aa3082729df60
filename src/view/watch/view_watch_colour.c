/* SPDX-License-Identifier: Apache-2.0 */
/* view_watch_colour.c - the chart's colours as text on a black terminal. */
#include "view/watch/view_watch_colour.h"

#include <math.h>

#include "view/chart/view_mark.h"

static double channel_light(uint32_t value)
{
    double part = value / 255.0;

    return part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4);
}

double wm_watch_contrast(uint32_t colour)
{
    double light = 0.2126 * channel_light(colour >> 16 & 0xff) +
                   0.7152 * channel_light(colour >> 8 & 0xff) +
                   0.0722 * channel_light(colour & 0xff);

    return (light + 0.05) / 0.05;
}

/* A step nearer to white. */
static uint32_t lighten(uint32_t colour)
{
    uint32_t result = 0;

    for (int shift = 16; shift >= 0; shift -= 8) {
        uint32_t value = colour >> shift & 0xff;
        result |= (value + (255 - value + 15) / 16) << shift;
    }
    return result;
}

uint32_t wm_watch_colour(size_t index)
{
    uint32_t colour = wm_chart_colour(index);

    while (wm_watch_contrast(colour) < WM_WATCH_CONTRAST)
        colour = lighten(colour);
    return colour;
}

static uint32_t squared_distance(uint32_t a, uint32_t b)
{
    uint32_t sum = 0;

    for (int shift = 16; shift >= 0; shift -= 8) {
        int difference = (int)(a >> shift & 0xff) - (int)(b >> shift & 0xff);
        sum += (uint32_t)(difference * difference);
    }
    return sum;
}

int wm_watch_colour_256(uint32_t colour, uint32_t *ret_colour)
{
    static const uint8_t levels[] = { 0, 95, 135, 175, 215, 255 };
    uint32_t best = UINT32_MAX;
    int found = 0;

    for (int i = 0; i < 6 * 6 * 6; i++) {
        uint32_t own = (uint32_t)levels[i / 36] << 16 | (uint32_t)levels[i / 6 % 6] << 8 |
                       levels[i % 6];
        if (squared_distance(own, colour) >= best ||
            wm_watch_contrast(own) < WM_WATCH_CONTRAST)
            continue;
        best = squared_distance(own, colour);
        found = 16 + i;
        *ret_colour = own;
    }
    return found;
}
