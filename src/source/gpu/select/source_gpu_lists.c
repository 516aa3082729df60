/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_lists.c - words about GPUs become places for each source. */
#include "source/gpu/select/source_gpu_lists.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_file.h"
#include "source/gpu/select/source_gpu_select.h"
#include "source/gpu/source_gpu_ops.h"

/* A source of GPUs, and the chosen ones among them. */
struct part {
    const char *source; /* the constant of its backend */
    size_t first;       /* of all GPUs its first */
    struct wm_gpu_picks picks;
    size_t room;
    struct wm_error why; /* nothing is picked; else its status is WM_OK */
};

struct wm_gpu_lists {
    const char *words; /* while it is made */
    struct part *parts;
    size_t part_count;
    size_t present;
    char *remark;
    bool is_short; /* one of the chosen is in no list */
};

/* The environment of a process. */
struct environment {
    char *text; /* its entries, each with its NUL */
    const char **entries;
};

/* More than the kernel lets a process begin with. */
enum { ENVIRONMENT_MAX = 1 << 23 };

static int no_memory(struct wm_error *err)
{
    return wm_fail_memory(err, "choosing GPUs");
}

static int read_environment(pid_t pid, struct environment *ret_environment,
                            struct wm_error *err)
{
    char path[512], *text;
    size_t length, count = 0;

    snprintf(path, sizeof(path), "%s/%d/environ",
             wm_env_trusted("WATTMETER_PROCFS", "/proc"), (int)pid);
    int status = wm_file_slurp(path, ENVIRONMENT_MAX, &text, &length, err);
    if (status < 0)
        return status;

    for (size_t i = 0; i < length; i++)
        count += text[i] == '\0';
    const char **entries = calloc(count + 2, sizeof(*entries));
    if (!entries) {
        free(text);
        return no_memory(err);
    }
    count = 0;
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        entries[count++] = text + at;
    *ret_environment = (struct environment) { text, entries };
    return WM_OK;
}

static int append(struct part *part, size_t index, const char *identity)
{
    struct wm_gpu_picks *picks = &part->picks;

    if (wm_array_reserve(&picks->list, picks->count, &part->room, sizeof(*picks->list)) < 0)
        return WM_ENOMEM;
    struct wm_gpu_pick *pick = &picks->list[picks->count++];
    pick->place = index - part->first;
    snprintf(pick->identity, sizeof(pick->identity), "%s", identity);
    return WM_OK;
}

static int make_parts(struct wm_gpu_lists *choice, const struct wm_gpus *gpus)
{
    const struct wm_gpu_looked *looked;
    size_t count = 0, first = 0;

    while (wm_gpus_looked(gpus, count))
        count++;
    choice->parts = calloc(count + 1, sizeof(*choice->parts));
    if (!choice->parts)
        return WM_ENOMEM;
    while ((looked = wm_gpus_looked(gpus, choice->part_count)) != NULL) {
        struct part *part = &choice->parts[choice->part_count++];
        part->source = looked->source;
        part->first = first;
        first += looked->present;
        if (looked->status < 0)
            wm_fail(&part->why, looked->status, "%s",
                    looked->detail ? looked->detail : "no GPU was found");
    }
    return WM_OK;
}

static struct part *find_part(const struct wm_gpu_lists *choice, const char *source)
{
    for (size_t i = 0; i < choice->part_count; i++) {
        if (strcmp(choice->parts[i].source, source) == 0)
            return &choice->parts[i];
    }
    return NULL;
}

static int add_remark(struct wm_gpu_lists *choice, const char *text)
{
    size_t length = choice->remark ? strlen(choice->remark) : 0;
    size_t room = length + strlen("; ") + strlen(text) + 1;
    char *grown = realloc(choice->remark, room);

    if (!grown)
        return WM_ENOMEM;
    snprintf(grown + length, room - length, "%s%s", length > 0 ? "; " : "", text);
    choice->remark = grown;
    return WM_OK;
}

/* A source is told identities, so that one without cannot be measured. */
static int leave_out(struct wm_gpu_lists *choice, struct part *part,
                     const struct wm_gpus *gpus, size_t index)
{
    struct wm_gpu_value identity;
    char text[400];

    wm_gpus_get_any(gpus, index, WM_GPU_UUID, &identity);
    choice->is_short = true;
    wm_fail(&part->why, WM_EIO, "GPU %zu does not answer: %s", index, identity.why);
    snprintf(text, sizeof(text), "GPU %zu is not measured, as it does not answer: %s",
             index, identity.why);
    return add_remark(choice, text);
}

/* Tells each source the identities of the chosen GPUs that are its own. */
static int hand_out(struct wm_gpu_lists *choice, const struct wm_gpus *gpus,
                    const size_t *chosen, size_t count)
{
    int status = WM_OK;

    for (size_t i = 0; i < count && status == WM_OK; i++) {
        const char *source = wm_gpu_text(gpus, chosen[i], WM_GPU_SOURCE);
        const char *identity = wm_gpu_text(gpus, chosen[i], WM_GPU_UUID);
        struct part *part = source ? find_part(choice, source) : NULL;

        if (part)
            status = identity ? append(part, chosen[i], identity)
                              : leave_out(choice, part, gpus, chosen[i]);
    }
    return status;
}

/* Why each source that has found GPUs, and of none of which more is known, has no list. */
static void explain(struct wm_gpu_lists *choice, const struct wm_error *why)
{
    for (size_t i = 0; i < choice->part_count; i++) {
        struct part *part = &choice->parts[i];
        if (part->picks.count == 0 && part->why.status == WM_OK)
            part->why = *why;
    }
}

/* `blind` says why the viewer's own environment could not be read; else empty. */
static int choose(struct wm_gpu_lists *choice, const struct wm_gpus *gpus,
                  const char *const *environment, const char *blind, struct wm_error *err)
{
    size_t count = 0;
    size_t *chosen = calloc(choice->present + 1, sizeof(*chosen));
    const char *remark = NULL;
    struct wm_error why;

    if (!chosen)
        return no_memory(err);
    int result =
        wm_gpu_select(gpus, choice->words, environment, chosen, &count, &remark, &why);
    int status = WM_OK;
    if (result == WM_EINVAL || result == WM_ENOMEM) {
        status = wm_fail(err, result, "%s", why.text);
        goto out;
    }
    if (blind[0])
        status = add_remark(choice, blind);
    if (status == WM_OK && remark)
        status = add_remark(choice, remark);
    if (status == WM_OK && result == WM_OK)
        status = hand_out(choice, gpus, chosen, count);
    if (status < 0)
        status = no_memory(err);
    if (result == WM_OK)
        wm_fail(&why, WM_ENODEV, "none of its GPUs is among those chosen: %.100s",
                choice->words);
    explain(choice, &why); /* a driver in trouble is no failure here */

out:
    free(chosen);
    return status;
}

static int fill(struct wm_gpu_lists *choice, const struct wm_source_config *config,
                pid_t viewer, struct wm_error *err)
{
    struct environment environment = { 0 };
    struct wm_gpus *gpus = NULL;
    struct wm_error why = { 0 };
    char blind[400] = "";
    int status = WM_OK;

    if (viewer != 0 && strcmp(choice->words, "visible") == 0)
        status = read_environment(viewer, &environment, &why);
    if (status == WM_ENOMEM)
        return no_memory(err);
    if (status < 0)
        snprintf(blind, sizeof(blind),
                 "which GPUs process %d sees is taken from wattmeter's own environment: %s",
                 (int)viewer, why.text);

    status = wm_gpus_open_to_select(NULL, 0, config, &gpus, err);
    if (status < 0)
        goto out;
    choice->present = wm_gpus_present(gpus);
    status = make_parts(choice, gpus);
    if (status < 0)
        no_memory(err);
    else
        status = choose(choice, gpus, environment.entries, blind, err);

out:
    wm_gpus_close(gpus);
    free(environment.entries);
    free(environment.text);
    return status;
}

bool wm_gpu_lists_are_plain(const char *words)
{
    return !words || strcmp(words, "all") == 0 || strcmp(words, "none") == 0;
}

int wm_gpu_lists_new(const struct wm_source_config *config, pid_t viewer,
                     struct wm_gpu_lists **ret_gpus, struct wm_error *err)
{
    struct wm_gpu_lists *choice = calloc(1, sizeof(*choice));

    if (!choice)
        return no_memory(err);
    choice->words = config->gpus;
    int status = fill(choice, config, viewer, err);
    if (status < 0) {
        wm_gpu_lists_free(choice);
        return status;
    }
    *ret_gpus = choice;
    return WM_OK;
}

void wm_gpu_lists_free(struct wm_gpu_lists *gpus)
{
    if (!gpus)
        return;
    for (size_t i = 0; i < gpus->part_count; i++)
        free(gpus->parts[i].picks.list);
    free(gpus->parts);
    free(gpus->remark);
    free(gpus);
}

int wm_gpu_lists_of(const struct wm_gpu_lists *gpus, const char *source,
                    const struct wm_gpu_picks **ret_picks, struct wm_error *err)
{
    const struct part *part = find_part(gpus, source);

    if (part && part->picks.count == 0)
        return wm_fail(err, part->why.status, "%s", part->why.text);
    *ret_picks = part ? &part->picks : NULL;
    return WM_OK;
}

size_t wm_gpu_lists_present(const struct wm_gpu_lists *gpus)
{
    return gpus->present;
}

const char *wm_gpu_lists_remark(const struct wm_gpu_lists *gpus)
{
    return gpus->remark;
}

bool wm_gpu_lists_are_short(const struct wm_gpu_lists *gpus)
{
    return gpus->is_short;
}
