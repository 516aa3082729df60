/* SPDX-License-Identifier: Apache-2.0 */
/* view_gpu_why.c - what is missing, grouped by its reason. */
#include "view/gpu/view_gpu.h"

#include <string.h>

/* Of a line that can be broken. */
#define MOST_COLUMNS 92

/* So many values with reasons that explain hardly anything else keep them. */
#define MOST_PETTY 4

/* What is missing, and why: names as in JSON, a whole group by its name. */
struct miss {
    const char *why, *group, *key, *suffix; /* of the key in JSON */
    enum wm_reading_state state;
    bool printed;
};

struct misses {
    struct miss list[256];
    size_t count;
};

/* Once for each name and reason, of however many processes. Without `info` it is the
 * whole group. */
static void add_miss(struct misses *misses, const struct wm_gpu_value *value,
                     const char *group, const struct wm_gpu_field_info *info)
{
    const char *key = info ? info->key : "";
    const char *why = value->why ? value->why : "unknown";

    for (size_t i = 0; i < misses->count; i++) {
        const struct miss *old = &misses->list[i];
        if (strcmp(old->key, key) == 0 && strcmp(old->group, group) == 0 &&
            strcmp(old->why, why) == 0)
            return;
    }
    if (misses->count < WM_COUNT(misses->list))
        misses->list[misses->count++] =
            (struct miss) { .why = why,
                            .group = group,
                            .key = key,
                            .suffix = info ? wm_gpu_key_suffix(info) : "",
                            .state = value->state };
}

/* Whether a group says nothing at all, and for one reason. */
static bool is_missing_whole(const struct wm_gpu_view *view, const char *group,
                             const char *why)
{
    const struct wm_gpu_field_info *info;

    for (size_t i = 0; (info = wm_gpu_field_info((enum wm_gpu_field)i)) != NULL; i++) {
        struct wm_gpu_value value = wm_gpu_view_get(view, (enum wm_gpu_field)i);
        if (strcmp(info->group, group) == 0 &&
            (value.state == WM_READING_OK || strcmp(value.why, why) != 0))
            return false;
    }
    return true;
}

static void find_gpu_misses(const struct wm_gpu_view *view, struct misses *misses)
{
    const struct wm_gpu_field_info *info;

    for (size_t i = 0; (info = wm_gpu_field_info((enum wm_gpu_field)i)) != NULL; i++) {
        struct wm_gpu_value value = wm_gpu_view_get(view, (enum wm_gpu_field)i);
        if (value.state == WM_READING_OK)
            continue;
        if (info->group[0] && is_missing_whole(view, info->group, value.why))
            add_miss(misses, &value, info->group, NULL);
        else
            add_miss(misses, &value, info->group, info);
    }
}

static void find_listing_misses(const struct wm_gpu_view *view,
                                const struct wm_gpu_list *listing, struct misses *misses)
{
    for (size_t i = 0; i < listing->column_count; i++) {
        const struct wm_gpu_column *column = &listing->columns[i];
        const struct wm_gpu_field_info *info =
            wm_gpu_table_info(listing->table, column->field);

        for (size_t item = 0; item < listing->items && !column->on_demand; item++) {
            struct wm_gpu_value value = wm_gpu_table_get(listing->table, view->gpus,
                                                         view->gpu, item, column->field);
            if (value.state != WM_READING_OK)
                add_miss(misses, &value, info->group, info);
        }
    }
}

/* Whether it is for good, and the reason explains hardly anything else. */
static bool is_petty(const struct misses *misses, size_t index)
{
    size_t explained = 0;

    for (size_t i = 0; i < misses->count; i++)
        explained += strcmp(misses->list[i].why, misses->list[index].why) == 0;
    return explained <= 2 && misses->list[index].state == WM_READING_UNSUPPORTED;
}

/* A driver that is read file by file has reasons of its own for most values that it
 * never has. A page of those hides the others, which may be cured. */
static void join_petty(struct misses *misses)
{
    static const char joined[] =
        "not reported by this GPU or its driver (--json says why each)";
    bool petty[WM_COUNT(misses->list)];
    size_t count = 0;

    for (size_t i = 0; i < misses->count; i++)
        count += petty[i] = is_petty(misses, i);
    for (size_t i = 0; i < misses->count && count > MOST_PETTY; i++) {
        if (petty[i])
            misses->list[i].why = joined;
    }
}

/* All that one reason explains, in lines that are not too long. */
static void print_miss(FILE *out, struct misses *misses, size_t first)
{
    const char *why = misses->list[first].why;
    int column = fprintf(out, "    %s:", why);

    for (size_t i = first; i < misses->count; i++) {
        struct miss *miss = &misses->list[i];
        if (miss->printed || strcmp(miss->why, why) != 0)
            continue;
        const char *dot = miss->group[0] && miss->key[0] ? "." : "";
        const char *comma = i == first ? "" : ",";
        int width = (int)(strlen(miss->group) + strlen(dot) + strlen(miss->key) +
                          strlen(miss->suffix)) +
                    2;
        fputs(comma, out);
        if (column + width > MOST_COLUMNS)
            column = fprintf(out, "\n       ") - 1;
        fprintf(out, " %s%s%s%s", miss->group, dot, miss->key, miss->suffix);
        column += width;
        miss->printed = true;
    }
    fputc('\n', out);
}

void wm_gpu_view_print_why(const struct wm_gpu_view *view)
{
    struct misses misses = { .count = 0 };
    struct wm_gpu_list processes = wm_gpu_list_processes(view),
                       migs = wm_gpu_list_migs(view);
    struct wm_gpu_value list;

    find_gpu_misses(view, &misses);
    find_listing_misses(view, &migs, &misses);
    find_listing_misses(view, &processes, &misses);
    wm_gpu_process_count(view->gpus, view->gpu, &list);
    if (list.state != WM_READING_OK)
        add_miss(&misses, &list, "processes", NULL);
    if (misses.count == 0)
        return;

    join_petty(&misses);
    fputs("\nn/a because:\n", view->out);
    for (size_t i = 0; i < misses.count; i++) {
        if (!misses.list[i].printed)
            print_miss(view->out, &misses, i);
    }
}

void wm_gpu_view_print_none(const struct wm_gpus *gpus, FILE *out)
{
    size_t present = wm_gpus_present(gpus);
    const struct wm_gpu_looked *looked;

    if (present > 0) {
        fprintf(out, "No GPU of %zu is chosen.\n", present);
        return;
    }
    fputs("No GPU was found. Looked for by:\n", out);
    for (size_t i = 0; (looked = wm_gpus_looked(gpus, i)) != NULL; i++)
        fprintf(out, "    %s: %s\n", looked->source,
                looked->detail ? looked->detail : "none");
}

void wm_gpu_view_print_broken(const struct wm_gpus *gpus, FILE *out)
{
    const struct wm_gpu_looked *looked;

    for (size_t i = 0; (looked = wm_gpus_looked(gpus, i)) != NULL; i++) {
        if (looked->status < 0 && looked->status != WM_ENODEV)
            fprintf(out, "\nnot asked: %s: %s\n", looked->source,
                    looked->detail ? looked->detail : "unknown");
    }
}
