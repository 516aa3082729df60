/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_trace_speedscope.c - stacks of regions for speedscope: a frame for each path, a
 * sample for each stack, its weight in joules or seconds.
 *
 * Its format has no unit of energy, so joules are named in the title of the profile.
 */
#include <string.h>

#include "view/trace/view_trace.h"
#include "wattmeter/version.h"

static int put_frames(const struct wm_flame *flame, FILE *out, struct wm_error *err)
{
    int status = WM_OK;

    for (size_t i = 1; i < flame->count && status == WM_OK; i++) {
        fputs(i > 1 ? ",\n{\"name\":" : "\n{\"name\":", out);
        status = wm_trace_put_text(out, wm_flame_name(&flame->nodes[i]), err);
        fputc('}', out);
    }
    return status;
}

static void put_stack(FILE *out, const struct wm_flame *flame, size_t index)
{
    size_t parent = flame->nodes[index].parent;

    if (parent > 0) {
        put_stack(out, flame, parent);
        fputc(',', out);
    }
    fprintf(out, "%zu", index - 1);
}

/* Of those that have something. */
static void put_samples(const struct wm_flame *flame, FILE *out)
{
    const char *comma = "\n[";

    fputs("\"samples\":[", out);
    for (size_t i = 1; i < flame->count; i++) {
        if (flame->nodes[i].own <= 0)
            continue;
        fputs(comma, out);
        put_stack(out, flame, i);
        fputc(']', out);
        comma = ",\n[";
    }
    fputs("],\n\"weights\":[", out);
    comma = "";
    for (size_t i = 1; i < flame->count; i++) {
        if (flame->nodes[i].own <= 0)
            continue;
        fputs(comma, out);
        wm_trace_put_number(out, flame->nodes[i].own);
        comma = ",";
    }
    fputs("]", out);
}

static int put_profile(const struct wm_flame *flame, const char *path, FILE *out,
                       struct wm_error *err)
{
    const char *slash = strrchr(path, '/');
    bool is_time = strcmp(flame->measure->unit, "s") == 0;
    char title[512];

    snprintf(title, sizeof(title), "%.400s: %s in %s", slash ? slash + 1 : path,
             flame->measure->key, flame->measure->unit);
    fputs("{\"type\":\"sampled\",\"name\":", out);
    int status = wm_trace_put_text(out, title, err);
    fprintf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":",
            is_time ? "seconds" : "none");
    wm_trace_put_number(out, flame->nodes[0].whole);
    fputs(",\n", out);
    put_samples(flame, out);
    fputc('}', out);
    return status;
}

static int write_speedscope(const struct wm_flame *flame, const char *path, FILE *out,
                            struct wm_error *err)
{
    fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
          "\"exporter\":\"wattmeter " WM_VERSION "\",\n\"shared\":{\"frames\":[",
          out);
    int status = put_frames(flame, out, err);
    fputs("\n]},\n\"profiles\":[", out);
    if (status == WM_OK)
        status = put_profile(flame, path, out, err);
    fputs("]}\n", out);
    return status;
}

const struct wm_trace_ops wm_trace_speedscope = { .write_tree = write_speedscope };
