/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_experiment.c - finding the runs of an experiment, whatever keeps them. */
#include "analyze/experiment/analyze_experiment.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base_text.h"
#include "base/base_utf8.h"
#include "base/text/base_localtime.h"
#include "base/text/base_number.h"
#include "record/record_ops.h"
#include "record/record_read.h"

#define NAMELESS "-"

static void note_broken(struct wm_experiment *found, const struct wm_error *why)
{
    if (found->broken++ == 0)
        snprintf(found->trouble, sizeof(found->trouble), "%s", why->text);
}

/* The first tick; a run that was killed before it has its anchor. */
static int64_t start_of(struct wm_recording *recording)
{
    const struct wm_run *run = wm_recording_run(recording);
    struct wm_tick tick;

    if (wm_recording_next(recording, &tick, NULL) <= 0)
        return run->anchor_unix_ns;
    return run->anchor_unix_ns - run->anchor_ns + tick.when_ns;
}

static void release_run(struct wm_experiment_run *run)
{
    free(run->path);
    free(run->name);
    wm_run_release(&run->run);
    wm_experiment_ticks_free(run->ticks);
}

static int fill_run(struct wm_experiment_run *run, const char *path, const char *name,
                    struct wm_recording *recording, size_t *kept, struct wm_error *err)
{
    int status = wm_run_copy(wm_recording_run(recording), &run->run, err);
    if (status < 0)
        return status;
    if (!name)
        name = wm_run_note(&run->run, WM_NOTE_EXPERIMENT);
    run->start_unix_ns = start_of(recording);
    run->path = strdup(path);
    run->name = name ? strdup(name) : NULL;
    run->ticks = calloc(1, sizeof(*run->ticks));
    if (!run->path || (name && !run->name) || !run->ticks)
        return wm_fail_memory(err, "experiment");
    run->ticks->kept = kept;
    return WM_OK;
}

/* `name` is NULL where the run says it itself. */
static int add_run(struct wm_experiment *found, const char *path, const char *name,
                   struct wm_recording *recording, size_t index, struct wm_error *err)
{
    struct wm_experiment_run run = { .index = index };
    struct wm_experiment_run *grown =
        realloc(found->runs, (found->count + 1) * sizeof(*grown));

    if (!grown)
        return wm_fail_memory(err, "experiment");
    found->runs = grown;
    int status = fill_run(&run, path, name, recording, &found->kept, err);
    if (status < 0)
        release_run(&run);
    else
        grown[found->count++] = run;
    return status;
}

/* All runs of one recording. One that cannot be read hides no other; the recording
 * itself has to be there. */
static int add_recording(struct wm_experiment *found, const char *path, const char *name,
                         struct wm_error *err)
{
    struct wm_recording *recording;
    struct wm_error why;

    int status = wm_recording_open(path, 0, &recording, &why);
    size_t count = status == WM_OK ? wm_recording_run_count(recording) : 1;
    if (status < 0 && wm_recording_open(path, WM_LAST_RUN, &recording, NULL) == WM_OK) {
        count = wm_recording_run_count(recording);
        wm_recording_close(recording);
    } else if (status < 0) {
        return wm_fail(err, status, "%s", why.text);
    }
    for (size_t i = 0;;) {
        int result = WM_OK;
        if (status == WM_OK) {
            result = add_run(found, path, name, recording, i, err);
            wm_recording_close(recording);
        } else {
            note_broken(found, &why);
        }
        if (result < 0 || ++i >= count)
            return result;
        status = wm_recording_open(path, i, &recording, &why);
    }
}

static const char *base_name(const char *path, char name[256])
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    size_t start = length;
    while (start > 0 && path[start - 1] != '/')
        start--;
    snprintf(name, 256, "%.*s", (int)(length - start), path + start);
    return name;
}

static bool has_recording(const char *folder)
{
    char file[PATH_MAX];
    struct stat info;

    int length = snprintf(file, sizeof(file), "%s/" WM_AIPM_FILE, folder);
    return (size_t)length < sizeof(file) && stat(file, &info) == 0;
}

static int add_entry(struct wm_experiment *found, const char *target, const char *name,
                     struct wm_error *err)
{
    struct wm_error why;
    char *path = NULL;
    int status = WM_OK;

    if (asprintf(&path, "%s/%s", target, name) < 0)
        return wm_fail_memory(err, "experiment");
    if (name[0] != '.' && has_recording(path)) {
        status = add_recording(found, path, name, &why);
        if (status < 0 && status != WM_ENOMEM) {
            note_broken(found, &why);
            status = WM_OK;
        }
    }
    free(path);
    return status < 0 ? wm_fail(err, status, "%s", why.text) : WM_OK;
}

/* A folder that is a recording itself is an experiment of its own. */
static int add_folder(struct wm_experiment *found, const char *target, struct wm_error *err)
{
    struct dirent **entries;
    char name[256];
    int status = WM_OK;

    if (has_recording(target))
        return add_recording(found, target, base_name(target, name), err);
    int count = scandir(target, &entries, NULL, alphasort);
    if (count < 0)
        return wm_fail_errno(err, wm_text_path(target));
    for (int i = 0; i < count; i++) {
        if (status == WM_OK)
            status = add_entry(found, target, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static int add_target(struct wm_experiment *found, const char *target, struct wm_error *err)
{
    return wm_experiment_is_folder(target) ? add_folder(found, target, err)
                                           : add_recording(found, target, NULL, err);
}

/* Whether two names are the same; NULL is that of the runs without one. */
static bool is_name(const char *name, const char *other)
{
    return strcmp(name ? name : NAMELESS, other ? other : NAMELESS) == 0;
}

/* That of the run's name, which is made where there is none yet. */
static struct wm_experiment_entry *find_entry(struct wm_experiment_list *list,
                                              const struct wm_experiment_run *run)
{
    size_t i = 0;

    while (i < list->count && !is_name(list->entries[i].name, run->name))
        i++;
    if (i == list->count)
        list->entries[list->count++] =
            (struct wm_experiment_entry) { .name = run->name,
                                           .first_unix_ns = run->start_unix_ns,
                                           .last_unix_ns = run->start_unix_ns };
    return &list->entries[i];
}

static void add_to_list(struct wm_experiment_list *list,
                        const struct wm_experiment_run *run)
{
    struct wm_experiment_entry *entry = find_entry(list, run);
    const char *description = wm_run_note(&run->run, WM_NOTE_DESCRIPTION);

    if (description)
        entry->description = description;
    if (run->start_unix_ns < entry->first_unix_ns)
        entry->first_unix_ns = run->start_unix_ns;
    if (run->start_unix_ns > entry->last_unix_ns)
        entry->last_unix_ns = run->start_unix_ns;
    entry->runs++;
}

static int compare_entries(const void *a, const void *b)
{
    const struct wm_experiment_entry *left = a, *right = b;

    return (left->first_unix_ns > right->first_unix_ns) -
           (left->first_unix_ns < right->first_unix_ns);
}

int wm_experiment_list_load(const char *target, struct wm_experiment_list *list,
                            struct wm_error *err)
{
    *list = (struct wm_experiment_list) { 0 };
    int status = add_target(&list->found, target, err);
    if (status < 0 || list->found.count == 0)
        return status;
    list->entries = calloc(list->found.count, sizeof(*list->entries));
    if (!list->entries)
        return wm_fail_memory(err, "experiment");
    for (size_t i = 0; i < list->found.count; i++)
        add_to_list(list, &list->found.runs[i]);
    qsort(list->entries, list->count, sizeof(*list->entries), compare_entries);
    return WM_OK;
}

static void release(struct wm_experiment *experiment)
{
    for (size_t i = 0; i < experiment->count; i++)
        release_run(&experiment->runs[i]);
    free(experiment->runs);
    free(experiment->name);
}

void wm_experiment_list_release(struct wm_experiment_list *list)
{
    release(&list->found);
    free(list->entries);
}

/* Leaves the runs of one name. */
static void keep_runs(struct wm_experiment *experiment)
{
    size_t kept = 0;

    for (size_t i = 0; i < experiment->count; i++) {
        if (is_name(experiment->runs[i].name, experiment->name))
            experiment->runs[kept++] = experiment->runs[i];
        else
            release_run(&experiment->runs[i]);
    }
    experiment->count = kept;
}

static int compare_runs(const void *a, const void *b)
{
    const struct wm_experiment_run *left = a, *right = b;

    if (left->start_unix_ns != right->start_unix_ns)
        return left->start_unix_ns < right->start_unix_ns ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static int not_there(const char *target, const char *name, struct wm_error *err)
{
    struct wm_experiment_list list;
    char names[160] = "";

    if (wm_experiment_list_load(target, &list, err) == WM_OK) {
        for (size_t i = 0; i < list.count; i++)
            wm_text_list(names, sizeof(names), ", ", "%s",
                         list.entries[i].name ? list.entries[i].name : NAMELESS);
    }
    wm_experiment_list_release(&list);
    return wm_fail(err, WM_ENOENT, "there is no experiment '%.60s'; there %s%s", name,
                   names[0] ? "are: " : "is none", names);
}

int wm_experiment_open(const char *target, const char *name,
                       struct wm_experiment **ret_experiment, struct wm_error *err)
{
    struct wm_experiment *experiment = calloc(1, sizeof(*experiment));

    if (experiment)
        experiment->name = strdup(name);
    if (!experiment || !experiment->name) {
        free(experiment);
        return wm_fail_memory(err, "experiment");
    }
    int status = add_target(experiment, target, err);
    if (status == WM_OK)
        keep_runs(experiment);
    if (status == WM_OK && experiment->count == 0)
        status = not_there(target, name, err);
    if (status < 0) {
        wm_experiment_close(experiment);
        return status;
    }
    qsort(experiment->runs, experiment->count, sizeof(*experiment->runs), compare_runs);
    experiment->zero_ns = experiment->runs[0].start_unix_ns;
    *ret_experiment = experiment;
    return WM_OK;
}

void wm_experiment_close(struct wm_experiment *experiment)
{
    if (!experiment)
        return;
    release(experiment);
    free(experiment);
}

int wm_experiment_time(const struct wm_experiment *experiment, const char *text,
                       int64_t *ret_unix_ns, struct wm_error *err)
{
    double seconds;

    if (wm_number_parse(text, strlen(text), &seconds)) {
        if (!(seconds >= 0 && seconds < 4e9))
            return wm_fail(err, WM_EINVAL, "'%.60s': seconds are counted from the start",
                           text);
        *ret_unix_ns = experiment->zero_ns + (int64_t)(seconds * 1e9);
        return WM_OK;
    }
    if (wm_localtime_parse_zoned(text, strlen(text), 0, ret_unix_ns))
        return WM_OK;
    return wm_fail(err, WM_EINVAL,
                   "'%.60s' is neither a number of seconds nor a time as "
                   "2026-11-21T08:48:21Z",
                   text);
}
