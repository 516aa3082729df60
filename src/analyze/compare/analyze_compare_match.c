/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_compare_match.c - which blocks of sessions are the same.
 *
 * A name may end in ":<line>", which moves with every edit above it. So what has no
 * counterpart of its own name is matched by what stands before the line, in the order of
 * the lines. gpu_tracker does it by the position in the order of the names, in which lines
 * count as numbers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/analyze_compare.h"
#include "base/base_array.h"
#include "base/base_text.h"

/* A block of a run, and where it stands in its file. */
struct place {
    const struct wm_region_usage *block;
    size_t run; /* among those of all sessions */
    size_t session;
    bool has_line;   /* else the rest is 0 */
    size_t stem;     /* bytes before the line, with the colon */
    intmax_t number; /* of the line, or the most that a number can hold */
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* What is a number to Python's int(), by which gpu_tracker tells: with blanks around it, a
 * sign before it and single underscores between its digits. */
static bool read_line(const char *text, intmax_t *ret_number)
{
    static const char blanks[] = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
    intmax_t number = 0;

    text += strspn(text, blanks);
    bool is_negative = *text == '-';
    text += is_negative || *text == '+';
    bool has_digits = is_digit(*text);
    while (is_digit(*text)) {
        number = number > INTMAX_MAX / 10 - 1 ? INTMAX_MAX : number * 10 + (*text - '0');
        text += text[1] == '_' && is_digit(text[2]) ? 2 : 1;
    }
    *ret_number = is_negative ? -number : number;
    return has_digits && text[strspn(text, blanks)] == '\0';
}

static struct place place_of(const struct wm_region_usage *block, size_t run,
                             size_t session)
{
    struct place place = { .block = block, .run = run, .session = session };
    const char *colon = strrchr(block->name, ':');
    intmax_t number;

    if (colon && read_line(colon + 1, &number)) {
        place.has_line = true;
        place.stem = (size_t)(colon + 1 - block->name);
        place.number = number;
    }
    return place;
}

static bool has_stem(const struct place *one, const struct place *other)
{
    return one->has_line && other->has_line && one->stem == other->stem &&
           memcmp(one->block->name, other->block->name, one->stem) == 0;
}

/* All blocks of all runs; the caller's. */
static struct place *find_places(const struct wm_compare *compare, size_t *ret_count)
{
    size_t count = 0;

    for (size_t i = 0; i < compare->run_count; i++)
        count += wm_compare_run_of(compare, i)->report->regions.name_count;
    struct place *places = calloc(count + 1, sizeof(*places));
    *ret_count = 0;
    for (size_t i = 0; places && i < compare->run_count; i++) {
        const struct wm_region_report *regions =
            &wm_compare_run_of(compare, i)->report->regions;
        size_t session = (size_t)(wm_compare_session_of(compare, i) - compare->sessions);
        for (size_t b = 0; b < regions->name_count; b++)
            places[(*ret_count)++] = place_of(&regions->names[b], i, session);
    }
    return places;
}

static int by_name(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    int order = strcmp(a->block->name, b->block->name);

    if (order != 0)
        return order;
    return a->run < b->run ? -1 : a->run > b->run;
}

/* Takes the places for the blocks of one group; NULL when out of memory. */
static struct wm_compare_group *add_group(struct wm_compare *compare)
{
    if (wm_array_reserve(&compare->groups, compare->group_count, &compare->group_room,
                         sizeof(*compare->groups)) < 0)
        return NULL;

    struct wm_compare_group *group = &compare->groups[compare->group_count];
    *group = (struct wm_compare_group) {
        .blocks = calloc(compare->run_count, sizeof(const struct wm_region_usage *)),
    };
    if (!group->blocks)
        return NULL;
    compare->group_count++;
    return group;
}

/* A group for each name. `firsts` gets the place of the first block of each. */
static int group_names(struct wm_compare *compare, const struct place *places, size_t count,
                       struct place *firsts, struct wm_error *err)
{
    struct wm_compare_group *group = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct place *place = &places[i];
        bool is_new = i == 0 || strcmp(place->block->name, places[i - 1].block->name) != 0;
        if (!is_new && place->run == places[i - 1].run)
            return wm_fail(err, WM_EFORMAT, "session \"%.60s\" has block \"%.60s\" twice",
                           compare->sessions[place->session].name, place->block->name);
        if (is_new) {
            firsts[compare->group_count] = *place;
            group = add_group(compare);
        }
        if (!group)
            return wm_fail_memory(err, "comparison");
        group->blocks[place->run] = place->block;
    }
    return WM_OK;
}

/* A group on its way to being matched by its line. */
struct candidate {
    struct place first;
    struct wm_compare_group *group;
};

/* Those of one stem together, with the blocks of earlier sessions first, and by line. */
static int by_stem(const void *one, const void *other)
{
    const struct place *a = &((const struct candidate *)one)->first;
    const struct place *b = &((const struct candidate *)other)->first;
    size_t shorter = a->stem < b->stem ? a->stem : b->stem;
    int order = memcmp(a->block->name, b->block->name, shorter);

    if (order != 0)
        return order;
    if (a->stem != b->stem)
        return a->stem < b->stem ? -1 : 1;
    if (a->session != b->session)
        return a->session < b->session ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return strcmp(a->block->name, b->block->name);
}

static bool is_apart(const struct wm_compare *compare, const struct wm_compare_group *one,
                     const struct wm_compare_group *other)
{
    for (size_t i = 0; i < compare->session_count; i++) {
        if (wm_compare_has(compare, one, i) && wm_compare_has(compare, other, i))
            return false;
    }
    return true;
}

/* What the second group has moves into the first. */
static int join(struct wm_compare *compare, const struct candidate *into,
                const struct candidate *from, struct wm_error *err)
{
    for (size_t i = 0; i < compare->run_count; i++) {
        if (from->group->blocks[i])
            into->group->blocks[i] = from->group->blocks[i];
        from->group->blocks[i] = NULL;
    }
    if (wm_remarks_add(
            &compare->remarks,
            "block \"%s\" of session \"%s\" is compared with \"%s\" of \"%s\": they differ "
            "by the number of their line alone; give them names if they are not the same",
            from->first.block->name, compare->sessions[from->first.session].name,
            into->first.block->name, compare->sessions[into->first.session].name) < 0)
        return wm_fail_memory(err, "comparison");
    return WM_OK;
}

/* Candidates of one stem. Each takes the first before it that has none of its sessions. */
static int join_stem(struct wm_compare *compare, struct candidate *candidates, size_t count,
                     struct wm_error *err)
{
    size_t kept = 0;
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i++) {
        const struct candidate *candidate = &candidates[i];
        size_t at = 0;
        while (at < kept && !is_apart(compare, candidates[at].group, candidate->group))
            at++;
        if (at < kept)
            status = join(compare, &candidates[at], candidate, err);
        else
            candidates[kept++] = *candidate;
    }
    return status;
}

/* Whether each session has a block of the group. */
static bool is_in_all(const struct wm_compare *compare,
                      const struct wm_compare_group *group)
{
    for (size_t i = 0; i < compare->session_count; i++) {
        if (!wm_compare_has(compare, group, i))
            return false;
    }
    return true;
}

static int join_lines(struct wm_compare *compare, const struct place *firsts,
                      struct candidate *candidates, struct wm_error *err)
{
    size_t count = 0, end;
    int status = WM_OK;

    for (size_t i = 0; i < compare->group_count; i++) {
        if (firsts[i].has_line && !is_in_all(compare, &compare->groups[i]))
            candidates[count++] = (struct candidate) { firsts[i], &compare->groups[i] };
    }
    qsort(candidates, count, sizeof(*candidates), by_stem);
    for (size_t start = 0; start < count && status == WM_OK; start = end) {
        end = start + 1;
        while (end < count && has_stem(&candidates[start].first, &candidates[end].first))
            end++;
        status = join_stem(compare, candidates + start, end - start, err);
    }
    return status;
}

static int by_text(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* The names of the blocks in their order, each once, with " -> " between them. */
static int set_label(const struct wm_compare *compare, struct wm_compare_group *group)
{
    const char **names = calloc(compare->run_count, sizeof(*names));
    size_t count = 0, length = 0;

    if (!names)
        return WM_ENOMEM;
    for (size_t i = 0; i < compare->run_count; i++) {
        if (group->blocks[i])
            names[count++] = group->blocks[i]->name;
    }
    qsort(names, count, sizeof(*names), by_text);
    for (size_t i = 0; i < count; i++)
        length += strlen(names[i]) + strlen(" -> ");

    char *label = malloc(length + 1);
    size_t used = 0;
    for (size_t i = 0; label && i < count; i++) {
        if (i > 0 && strcmp(names[i], names[i - 1]) == 0)
            continue;
        used += (size_t)snprintf(label + used, length + 1 - used, "%s%s",
                                 i > 0 ? " -> " : "", names[i]);
    }
    free(names);
    group->label = label;
    return label ? WM_OK : WM_ENOMEM;
}

/* Takes away the groups whose blocks have moved, and gives the others their labels. */
static int finish(struct wm_compare *compare, struct wm_error *err)
{
    size_t kept = 0;
    int status = WM_OK;

    for (size_t i = 0; i < compare->group_count; i++) {
        struct wm_compare_group group = compare->groups[i];
        bool is_empty = true;
        for (size_t r = 0; r < compare->run_count; r++)
            is_empty = is_empty && !group.blocks[r];
        if (is_empty) {
            free(group.blocks);
            continue;
        }
        if (status == WM_OK && set_label(compare, &group) < 0)
            status = wm_fail_memory(err, "comparison");
        compare->groups[kept++] = group;
    }
    compare->group_count = kept;
    return status;
}

int wm_compare_match(struct wm_compare *compare, struct wm_error *err)
{
    size_t count;
    struct place *places = find_places(compare, &count);
    struct place *firsts = calloc(count + 1, sizeof(*firsts));
    struct candidate *candidates = calloc(count + 1, sizeof(*candidates));
    int status = WM_OK;

    if (!places || !firsts || !candidates)
        status = wm_fail_memory(err, "comparison");
    else
        qsort(places, count, sizeof(*places), by_name);
    if (status == WM_OK)
        status = group_names(compare, places, count, firsts, err);
    if (status == WM_OK)
        status = join_lines(compare, firsts, candidates, err);
    if (status == WM_OK)
        status = finish(compare, err);
    free(places);
    free(firsts);
    free(candidates);
    return status;
}

static int in_order(const void *one, const void *other)
{
    const struct place *a = one, *b = other;

    if (has_stem(a, b) && a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return strcmp(a->block->name, b->block->name);
}

static int refuse(struct wm_error *err)
{
    if (err)
        wm_text_clean(err->text);
    return WM_EINVAL;
}

static int check_names(struct wm_compare *compare, const struct place *first,
                       const struct place *other, struct wm_error *err)
{
    const char *name = first->block->name, *other_name = other->block->name;
    const char *session = compare->sessions[first->session].name;
    const char *other_session = compare->sessions[other->session].name;

    if (strcmp(name, other_name) == 0)
        return WM_OK;
    if (!has_stem(first, other)) {
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
        return wm_fail_memory(err, "comparison");
    return WM_OK;
}

static int check_session(struct wm_compare *compare, const struct place *const *ordered,
                         size_t first, size_t other, struct wm_error *err)
{
    size_t count = compare->sessions[first].runs->report->regions.name_count;
    size_t other_count = compare->sessions[other].runs->report->regions.name_count;
    int status = WM_OK;

    if (count != other_count) {
        wm_fail(
            err, WM_EINVAL,
            "All sub-tracking results must have the same number of code blocks. The "
            "first has %zu code blocks but tracking session \"%s\" has %zu code blocks.",
            count, compare->sessions[other].name, other_count);
        return refuse(err);
    }
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = check_names(compare, &ordered[first][i], &ordered[other][i], err);
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

/* `ordered` has the blocks of each session. */
static int match(struct wm_compare *compare, const struct place *const *ordered,
                 struct wm_error *err)
{
    size_t first = find_first(compare);
    int status = WM_OK;

    for (size_t i = 0; i < compare->session_count && status == WM_OK; i++) {
        if (i != first)
            status = check_session(compare, ordered, first, i, err);
    }
    for (size_t b = 0;
         b < compare->sessions[first].runs->report->regions.name_count && status == WM_OK;
         b++) {
        struct wm_compare_group *group = add_group(compare);
        for (size_t i = 0; group && i < compare->session_count; i++)
            group->blocks[i] = ordered[i][b].block;
        if (!group || set_label(compare, group) < 0)
            status = wm_fail_memory(err, "comparison");
    }
    return status;
}

int wm_compare_match_gpu_tracker(struct wm_compare *compare, struct wm_error *err)
{
    size_t count, at = 0;
    struct place *places = find_places(compare, &count);
    const struct place **ordered = calloc(compare->session_count, sizeof(*ordered));
    int status = places && ordered ? WM_OK : wm_fail_memory(err, "comparison");

    for (size_t i = 0; i < compare->session_count && status == WM_OK; i++) {
        size_t blocks = compare->sessions[i].runs->report->regions.name_count;
        qsort(places + at, blocks, sizeof(*places), in_order);
        ordered[i] = places + at;
        at += blocks;
    }
    if (status == WM_OK)
        status = match(compare, ordered, err);
    free(places);
    free(ordered);
    return status;
}
