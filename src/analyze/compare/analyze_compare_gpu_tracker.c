/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_compare_gpu_tracker.c - blocks of sessions matched as gpu_tracker does it: by
 * their position in the order of their names, in which lines count as numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/analyze_compare.h"
#include "base/text/base_text.h"

/* A name and what it is sorted by: zeros before the line make it as wide as the widest one
 * of the session. */
struct entry {
    const struct wm_region_usage *block;
    char *key;
};

struct ordered {
    struct entry *entries; /* of one session */
    size_t count;
};

static int no_memory(struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "comparison: out of memory");
}

static char *make_key(const char *name, size_t width)
{
    const char *line = wm_compare_line(name);
    size_t length = strlen(name);

    if (!line)
        return strdup(name);
    size_t stem = (size_t)(line - name), digits = length - stem;
    char *key = malloc(stem + width + 1);
    if (key) {
        memcpy(key, name, stem);
        memset(key + stem, '0', width - digits);
        memcpy(key + stem + width - digits, line, digits + 1);
    }
    return key;
}

static int by_key(const void *one, const void *other)
{
    const struct entry *a = one, *b = other;
    int order = strcmp(a->key, b->key);

    if (order != 0)
        return order;
    return a->block < b->block ? -1 : a->block > b->block;
}

static int put_in_order(const struct wm_block_analysis *results, struct ordered *ordered)
{
    size_t width = 0;

    ordered->entries = calloc(results->count + 1, sizeof(*ordered->entries));
    if (!ordered->entries)
        return WM_ENOMEM;
    for (size_t i = 0; i < results->count; i++) {
        const char *line = wm_compare_line(results->blocks[i].name);
        if (line && strlen(line) > width)
            width = strlen(line);
    }
    for (size_t i = 0; i < results->count; i++) {
        struct entry *entry = &ordered->entries[ordered->count++];
        entry->block = &results->blocks[i];
        entry->key = make_key(entry->block->name, width);
        if (!entry->key)
            return WM_ENOMEM;
    }
    qsort(ordered->entries, ordered->count, sizeof(*ordered->entries), by_key);
    return WM_OK;
}

static int refuse(struct wm_error *err)
{
    if (err)
        wm_text_clean(err->text);
    return WM_EINVAL;
}

/* `first` and `other` are numbers of sessions. */
static int check_names(struct wm_compare *compare, size_t first, size_t other,
                       const char *name, const char *other_name, struct wm_error *err)
{
    const char *line = wm_compare_line(name), *other_line = wm_compare_line(other_name);
    const char *session = compare->sessions[first].name;
    const char *other_session = compare->sessions[other].name;

    if (strcmp(name, other_name) == 0)
        return WM_OK;
    bool is_same_file = line && other_line && line - name == other_line - other_name &&
                        memcmp(name, other_name, (size_t)(line - name)) == 0;
    if (!is_same_file) {
        wm_fail(err, WM_EINVAL,
                "Code block name \"%s\" of tracking session \"%s\" does not match code "
                "block name \"%s\" of tracking session \"%s\"",
                name, session, other_name, other_session);
        return refuse(err);
    }
    if (wm_remarks_add(
            &compare->remarks,
            "Code block name \"%s\" of tracking session \"%s\" matched with code block "
            "name \"%s\" of tracking session \"%s\" but they differ by line number. If "
            "these code blocks were not meant to match, their comparison will not be valid "
            "and their names must be disambiguated.",
            name, session, other_name, other_session) < 0)
        return no_memory(err);
    return WM_OK;
}

static int check_session(struct wm_compare *compare, const struct ordered *ordered,
                         size_t first, size_t other, struct wm_error *err)
{
    int status = WM_OK;

    if (ordered[first].count != ordered[other].count) {
        wm_fail(
            err, WM_EINVAL,
            "All sub-tracking results must have the same number of code blocks. The "
            "first has %zu code blocks but tracking session \"%s\" has %zu code blocks.",
            ordered[first].count, compare->sessions[other].name, ordered[other].count);
        return refuse(err);
    }
    for (size_t i = 0; i < ordered[first].count && status == WM_OK; i++)
        status = check_names(compare, first, other, ordered[first].entries[i].block->name,
                             ordered[other].entries[i].block->name, err);
    return status;
}

/* The one whose name comes first in the alphabet is what the others are held against. */
static size_t find_first(const struct wm_compare *compare)
{
    size_t first = 0;

    for (size_t i = 1; i < compare->session_count; i++) {
        if (strcmp(compare->sessions[i].name, compare->sessions[first].name) < 0)
            first = i;
    }
    return first;
}

static int match(struct wm_compare *compare, struct ordered *ordered, struct wm_error *err)
{
    size_t first = find_first(compare);
    int status = WM_OK;

    for (size_t i = 0; i < compare->session_count; i++) {
        if (put_in_order(compare->sessions[i].analysis, &ordered[i]) < 0)
            return no_memory(err);
    }
    for (size_t i = 0; i < compare->session_count && status == WM_OK; i++) {
        if (i != first)
            status = check_session(compare, ordered, first, i, err);
    }
    for (size_t b = 0; b < ordered[first].count && status == WM_OK; b++) {
        struct wm_compare_group *group = wm_compare_add_group(compare);
        for (size_t i = 0; group && i < compare->session_count; i++)
            group->blocks[i] = ordered[i].entries[b].block;
        if (!group || wm_compare_set_label(compare, group) < 0)
            status = no_memory(err);
    }
    return status;
}

int wm_compare_match_gpu_tracker(struct wm_compare *compare, struct wm_error *err)
{
    struct ordered *ordered = calloc(compare->session_count, sizeof(*ordered));

    if (!ordered)
        return no_memory(err);
    int status = match(compare, ordered, err);
    for (size_t i = 0; i < compare->session_count; i++) {
        for (size_t b = 0; b < ordered[i].count; b++)
            free(ordered[i].entries[b].key);
        free(ordered[i].entries);
    }
    free(ordered);
    return status;
}
