/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_label.c - names of points that lie on nothing else. */
#include "view/plot/view_plot_label.h"

#include <math.h>

#define NEAR 9.0    /* pixels from a point to its label */
#define STEP 14.0   /* from one try to the next */
#define LINE 1.3    /* in the size of the text */
#define BOLDER 1.12 /* how much wider bold text is */
#define LEADER 22.0 /* a label farther away has a line to its point */

enum { RINGS = 12, DIRECTIONS = 16 };

void wm_plot_block(struct wm_plot_labels *labels, const struct wm_plot_box *box)
{
    if (labels->count < WM_PLOT_BLOCKS_MAX)
        labels->blocks[labels->count++] = *box;
}

static double overlap(const struct wm_plot_box *a, const struct wm_plot_box *b)
{
    double width = fmin(a->right, b->right) - fmax(a->left, b->left);
    double height = fmin(a->bottom, b->bottom) - fmax(a->top, b->top);

    return width > 0 && height > 0 ? width * height : 0;
}

static double covered_by(const struct wm_plot_labels *labels, const struct wm_plot_box *box)
{
    double area = (box->right - box->left) * (box->bottom - box->top);
    double covered = area - overlap(box, &labels->area);

    for (size_t i = 0; i < labels->count; i++)
        covered += overlap(box, &labels->blocks[i]);
    return covered;
}

/* At a distance from a point in one of the directions, the right above first. */
static struct wm_plot_box box_at(double x, double y, double width, double height,
                                 size_t ring, size_t direction)
{
    double turn = 2 * M_PI * ((double)direction + 1) / DIRECTIONS;
    double along = cos(turn), up = sin(turn), far = NEAR + STEP * (double)ring;
    double left = x + far * along - (along < -0.1 ? width : along > 0.1 ? 0 : width / 2);
    double top = y - far * up - (up > 0.1 ? height : up < -0.1 ? 0 : height / 2);

    return (struct wm_plot_box) { left, top, left + width, top + height };
}

static struct wm_plot_box find_place(const struct wm_plot_labels *labels, double x,
                                     double y, double width, double height,
                                     size_t *ret_ring)
{
    struct wm_plot_box best = { 0, 0, 0, 0 };
    double least = INFINITY;

    for (size_t ring = 0; ring < RINGS && least > 0; ring++) {
        for (size_t direction = 0; direction < DIRECTIONS && least > 0; direction++) {
            struct wm_plot_box box = box_at(x, y, width, height, ring, direction);
            double covered = covered_by(labels, &box);
            if (covered < least) {
                least = covered;
                best = box;
                *ret_ring = ring;
            }
        }
    }
    return best;
}

static void draw_leader(const struct wm_plot_labels *labels, double x, double y,
                        const struct wm_plot_box *box)
{
    cairo_t *cairo = labels->canvas->cairo;

    wm_plot_colour(labels->canvas, labels->canvas->theme->faint, 1);
    cairo_set_line_width(cairo, 0.7);
    cairo_move_to(cairo, x, y);
    cairo_line_to(cairo, fmin(fmax(x, box->left), box->right),
                  fmin(fmax(y, box->top), box->bottom));
    cairo_stroke(cairo);
}

void wm_plot_label_point(struct wm_plot_labels *labels, double x, double y,
                         const struct wm_plot_label *label)
{
    double width = 0, line = LINE * label->size;
    size_t lines = 0, ring = 0;

    for (; lines < WM_PLOT_LABEL_LINES && label->lines[lines]; lines++) {
        double bolder = lines == 0 && label->is_bold ? BOLDER : 1;
        width = fmax(width, bolder * wm_plot_text_width(labels->canvas, label->size,
                                                        label->lines[lines]));
    }
    struct wm_plot_box box = find_place(labels, x, y, width, line * (double)lines, &ring);
    if (NEAR + STEP * (double)ring > LEADER)
        draw_leader(labels, x, y, &box);
    for (size_t i = 0; i < lines; i++) {
        const struct wm_plot_style style = { .size = label->size,
                                             .colour = label->colour,
                                             .is_bold = i == 0 && label->is_bold };
        wm_plot_text(labels->canvas, box.left, box.top + line * ((double)i + 0.5), &style,
                     label->lines[i]);
    }
    wm_plot_block(labels, &box);
}
