/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_trace_folded.c - stacks of regions for flame graphs: "epoch;forward 1234".
 *
 * Most readers take whole numbers only, so these are microjoules or microseconds.
 */
#include <math.h>

#include "view/trace/view_trace.h"

/* A name without what separates names and lines. */
static void put_name(FILE *out, const char *name)
{
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        fputc(c == ';' ? ',' : c < ' ' ? ' ' : c, out);
    }
}

static void put_stack(FILE *out, const struct wm_flame *flame, size_t index)
{
    const struct wm_flame_node *node = &flame->nodes[index];

    if (node->parent > 0) {
        put_stack(out, flame, node->parent);
        fputc(';', out);
    }
    put_name(out, wm_flame_name(node));
}

static int write_folded(const struct wm_flame *flame, const char *path, FILE *out,
                        struct wm_error *err)
{
    (void)path;
    (void)err;
    for (size_t i = 1; i < flame->count; i++) {
        double micro = round(flame->nodes[i].own * 1e6);
        if (micro < 1)
            continue;
        put_stack(out, flame, i);
        fprintf(out, " %.0f\n", micro);
    }
    return WM_OK;
}

const struct wm_trace_ops wm_trace_folded = { .write_tree = write_folded };
