/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu.c - the list of backends, the chosen ones of their GPUs, and their values. */
#include "wattmeter/gpu.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "source/gpu/select/source_gpu_select.h"
#include "source/gpu/source_gpu_drivers.h"
#include "source/gpu/source_gpu_ops.h"
#include "source/gpu/source_gpu_process.h"
#include "source/gpu/source_gpu_sheet.h"
#include "source/source_config.h"

/* In the order in which GPUs are counted. */
static const struct wm_gpu_ops *const table[] = { &wm_gpu_nvml, &wm_gpu_drm };

enum { TABLE_COUNT = sizeof(table) / sizeof(table[0]) };

#define PATIENCE_NS (WM_GPU_PATIENCE_S * WM_NS_PER_S)

/* When one driver hangs in its first call, the others have the rest of the time
 * for all of theirs. */
#define OPEN_NS (PATIENCE_NS * 4 / 5)

/* One GPU, chosen or not. */
struct gpu {
    struct wm_gpu_sheet *sheet;
    struct wm_gpu_who *who; /* of its processes, in their order */
    size_t who_count, who_room;
};

struct wm_gpus {
    struct wm_gpu_drivers *drivers;
    struct wm_gpu_people *people;
    struct gpu *present;
    size_t present_count;
    size_t *chosen; /* indices in `present` */
    size_t chosen_count;
    struct wm_gpu_place *places; /* of the GPUs present, where the choice is "visible" */

    char *sysfs;

    /* Of the last choice; apart, since choosing changes nothing else. */
    char **remark;
};

static const struct gpu *chosen_gpu(const struct wm_gpus *gpus, size_t gpu)
{
    return &gpus->present[gpus->chosen[gpu]];
}

static int find_people(struct wm_gpus *gpus, struct gpu *gpu, struct wm_error *err)
{
    struct wm_gpu_value list;
    size_t count = wm_gpu_sheet_rows(gpu->sheet, WM_GPU_PROCESS_LIST, &list);

    gpu->who_count = 0;
    if (count > gpu->who_room) {
        struct wm_gpu_who *grown = realloc(gpu->who, count * sizeof(*grown));
        if (!grown)
            return wm_fail_memory(err, "GPU processes");
        gpu->who = grown;
        gpu->who_room = count;
    }
    for (; gpu->who_count < count; gpu->who_count++) {
        struct wm_gpu_value pid = wm_gpu_sheet_cell(
            gpu->sheet, WM_GPU_PROCESS_LIST, gpu->who_count, WM_GPU_PROCESS_DRIVER_PID);
        wm_gpu_people_find(gpus->people, (pid_t)pid.number, &gpu->who[gpu->who_count]);
    }
    return WM_OK;
}

static int refresh(struct wm_gpus *gpus, unsigned groups, int64_t deadline_ns,
                   struct wm_error *err)
{
    for (size_t i = 0; i < gpus->chosen_count; i++)
        wm_gpu_sheet_ask(chosen_gpu(gpus, i)->sheet, groups);
    int result = wm_gpu_drivers_refresh(gpus->drivers, deadline_ns, err);

    for (size_t i = 0; i < gpus->present_count; i++) {
        struct gpu *gpu = &gpus->present[i];
        struct wm_gpu_value parts;

        if (wm_gpu_sheet_is_listed_anew(gpu->sheet) && find_people(gpus, gpu, err) < 0)
            result = WM_ENOMEM;
        /* A list of processes says itself that it is not whole. */
        wm_gpu_sheet_rows(gpu->sheet, WM_GPU_MIG_LIST, &parts);
        if (parts.state == WM_READING_FAILED)
            result = wm_fail(err, WM_ENOMEM, "parts of a GPU: %s", parts.why);
    }
    return result;
}

/* Every GPU is chosen until the choice has been made. */
static void choose_all(struct wm_gpus *gpus)
{
    for (size_t i = 0; i < gpus->present_count; i++)
        gpus->chosen[i] = i;
    gpus->chosen_count = gpus->present_count;
}

static int make_room(struct wm_gpus *gpus, const char *sysfs, struct wm_error *err)
{
    size_t count = wm_gpu_drivers_count(gpus->drivers);

    gpus->present = calloc(count + 1, sizeof(*gpus->present));
    gpus->chosen = calloc(count + 1, sizeof(*gpus->chosen));
    gpus->places = calloc(count + 1, sizeof(*gpus->places));
    gpus->remark = calloc(1, sizeof(*gpus->remark));
    gpus->sysfs = strdup(sysfs);
    if (!gpus->present || !gpus->chosen || !gpus->places || !gpus->remark || !gpus->sysfs)
        return wm_fail_memory(err, "GPUs");
    for (size_t i = 0; i < count; i++)
        gpus->present[i].sheet = wm_gpu_drivers_sheet(gpus->drivers, i);
    gpus->present_count = count;
    choose_all(gpus);
    return WM_OK;
}

/* Finds all GPUs, and asks none of them anything yet. */
static int find_gpus(struct wm_gpus *gpus, const struct wm_gpu_ops *const *backends,
                     size_t count, const struct wm_source_config *config,
                     int64_t deadline_ns, struct wm_error *err)
{
    int status = wm_gpu_people_open(config->procfs, "/proc", &gpus->people, err);
    if (status == WM_OK)
        status =
            wm_gpu_drivers_open(backends, count, config, deadline_ns, &gpus->drivers, err);
    return status < 0 ? status : make_room(gpus, config->sysfs, err);
}

/* Where the words are numbers the other GPUs are not asked. Returns whether the
 * choice has been made. */
static int ask_gpus(struct wm_gpus *gpus, const char *words, unsigned groups,
                    int64_t deadline_ns, struct wm_error *err)
{
    int is_made =
        words ? wm_gpu_select_numbers(gpus, words, gpus->chosen, &gpus->chosen_count, err)
              : 0;
    if (is_made < 0)
        return is_made;
    int status = refresh(gpus, groups, deadline_ns, err);
    return status < 0 ? status : is_made;
}

static int open_backends(const struct wm_gpu_ops *const *backends, size_t count,
                         const struct wm_source_config *config, unsigned groups,
                         struct wm_gpus **ret_gpus, struct wm_error *err)
{
    int64_t begin_ns = wm_clock_monotonic_ns();
    struct wm_source_config full;
    int status = wm_source_config_complete(config, &full, err);

    if (status < 0)
        return status;
    struct wm_gpus *gpus = calloc(1, sizeof(*gpus));
    if (!gpus)
        return wm_fail_memory(err, "GPUs");
    status = find_gpus(gpus, backends, count, &full, begin_ns + OPEN_NS, err);
    if (status == WM_OK)
        status = ask_gpus(gpus, full.gpus, groups, begin_ns + PATIENCE_NS, err);
    if (status == 0 && full.gpus)
        status = wm_gpu_select_places(gpus, full.gpus, NULL, gpus->places, gpus->chosen,
                                      &gpus->chosen_count, NULL, err);
    if (status < 0) {
        wm_gpus_close(gpus);
        return status;
    }
    *ret_gpus = gpus;
    return WM_OK;
}

int wm_gpus_open_backends(const struct wm_gpu_ops *const *backends, size_t count,
                          const struct wm_source_config *config, struct wm_gpus **ret_gpus,
                          struct wm_error *err)
{
    return open_backends(backends, count, config,
                         WM_GPU_EVERYTHING & ~(unsigned)WM_GPU_THROUGHPUT, ret_gpus, err);
}

int wm_gpus_open_groups(const struct wm_source_config *config, unsigned groups,
                        struct wm_gpus **ret_gpus, struct wm_error *err)
{
    return open_backends(table, TABLE_COUNT, config, groups, ret_gpus, err);
}

int wm_gpus_open_to_select(const struct wm_gpu_ops *const *backends, size_t count,
                           const struct wm_source_config *config, struct wm_gpus **ret_gpus,
                           struct wm_error *err)
{
    int64_t begin_ns = wm_clock_monotonic_ns();
    struct wm_source_config full;

    int status = wm_source_config_complete(config, &full, err);
    if (status < 0)
        return status;
    struct wm_gpus *gpus = calloc(1, sizeof(*gpus));
    if (!gpus)
        return wm_fail_memory(err, "GPUs");
    if (!backends) {
        backends = table;
        count = TABLE_COUNT;
    }
    status = find_gpus(gpus, backends, count, &full, begin_ns + OPEN_NS, err);
    if (status == WM_OK)
        status = ask_gpus(gpus, full.gpus, wm_gpu_select_groups(full.gpus),
                          begin_ns + PATIENCE_NS, err);
    if (status < 0) {
        wm_gpus_close(gpus);
        return status;
    }
    choose_all(gpus);
    *ret_gpus = gpus;
    return WM_OK;
}

int wm_gpus_open(const struct wm_source_config *config, struct wm_gpus **ret_gpus,
                 struct wm_error *err)
{
    return wm_gpus_open_backends(table, TABLE_COUNT, config, ret_gpus, err);
}

void wm_gpus_close(struct wm_gpus *gpus)
{
    if (!gpus)
        return;
    for (size_t i = 0; i < gpus->present_count; i++)
        free(gpus->present[i].who);
    wm_gpu_drivers_close(gpus->drivers, wm_clock_monotonic_ns() + PATIENCE_NS);
    wm_gpu_people_close(gpus->people);
    if (gpus->remark)
        free(*gpus->remark);
    free(gpus->remark);
    free(gpus->sysfs);
    free(gpus->chosen);
    free(gpus->places);
    free(gpus->present);
    free(gpus);
}

size_t wm_gpus_count(const struct wm_gpus *gpus)
{
    return gpus->chosen_count;
}

size_t wm_gpus_present(const struct wm_gpus *gpus)
{
    return gpus->present_count;
}

int wm_gpus_refresh(struct wm_gpus *gpus, unsigned groups, struct wm_error *err)
{
    if (groups & ~(unsigned)WM_GPU_EVERYTHING)
        return wm_fail(err, WM_EINVAL, "GPUs: there is no group %#x",
                       groups & ~(unsigned)WM_GPU_EVERYTHING);
    return refresh(gpus, groups, wm_clock_monotonic_ns() + PATIENCE_NS, err);
}

int wm_gpus_refresh_until(struct wm_gpus *gpus, unsigned groups, int64_t deadline_ns,
                          struct wm_error *err)
{
    return refresh(gpus, groups, deadline_ns, err);
}

int wm_gpus_set(struct wm_gpus *gpus, size_t gpu, enum wm_gpu_field field, double value,
                int64_t deadline_ns, struct wm_error *err)
{
    return wm_gpu_drivers_set(gpus->drivers, gpus->chosen[gpu], field, value, deadline_ns,
                              err);
}

void wm_gpu_get(const struct wm_gpus *gpus, size_t gpu, enum wm_gpu_field field,
                struct wm_gpu_value *ret_value)
{
    wm_gpus_get_any(gpus, gpus->chosen[gpu], field, ret_value);
}

void wm_gpu_seen_as(const struct wm_gpus *gpus, size_t gpu, struct wm_gpu_value *ret_value)
{
    const struct wm_gpu_place *place = &gpus->places[gpus->chosen[gpu]];

    *ret_value =
        (struct wm_gpu_value) { .state = WM_READING_OK, .number = (double)place->number };
    if (place->place == 0)
        *ret_value = wm_gpu_missing(WM_READING_NONE, "asked for with --visible only");
    else if (place->why)
        *ret_value = wm_gpu_missing(WM_READING_UNSUPPORTED, place->why);
}

void wm_gpus_get_any(const struct wm_gpus *gpus, size_t index, enum wm_gpu_field field,
                     struct wm_gpu_value *ret_value)
{
    wm_gpu_sheet_get(gpus->present[index].sheet, field, ret_value);
}

const char *wm_gpus_sysfs(const struct wm_gpus *gpus)
{
    return gpus->sysfs;
}

void wm_gpus_keep_remark(const struct wm_gpus *gpus, char *remark)
{
    free(*gpus->remark);
    *gpus->remark = remark;
}

size_t wm_gpu_process_count(const struct wm_gpus *gpus, size_t gpu,
                            struct wm_gpu_value *ret_list)
{
    const struct gpu *owner = chosen_gpu(gpus, gpu);
    struct wm_gpu_value list;

    if (owner->who_count < wm_gpu_sheet_rows(owner->sheet, WM_GPU_PROCESS_LIST, &list))
        list = wm_gpu_missing(WM_READING_FAILED, "out of memory");
    if (ret_list)
        *ret_list = list;
    return owner->who_count;
}

/* Who it is says /proc, and of a process that it does not show the driver the name. */
void wm_gpu_process_get(const struct wm_gpus *gpus, size_t gpu, size_t process,
                        enum wm_gpu_process_field field, struct wm_gpu_value *ret_value)
{
    const struct gpu *owner = chosen_gpu(gpus, gpu);
    struct wm_gpu_value told =
        wm_gpu_sheet_cell(owner->sheet, WM_GPU_PROCESS_LIST, process, field);

    *ret_value = told;
    if ((size_t)field >= WM_GPU_WHO_FIELDS)
        return;
    const struct wm_gpu_value *found = &owner->who[process].values[field];
    if (field != WM_GPU_PROCESS_NAME || found->state == WM_READING_OK ||
        told.state != WM_READING_OK)
        *ret_value = *found;
}

size_t wm_gpus_mig_count_any(const struct wm_gpus *gpus, size_t index)
{
    struct wm_gpu_value list;

    return wm_gpu_sheet_rows(gpus->present[index].sheet, WM_GPU_MIG_LIST, &list);
}

void wm_gpus_mig_get_any(const struct wm_gpus *gpus, size_t index, size_t mig,
                         enum wm_gpu_mig_field field, struct wm_gpu_value *ret_value)
{
    *ret_value = wm_gpu_sheet_cell(gpus->present[index].sheet, WM_GPU_MIG_LIST, mig, field);
}

size_t wm_gpu_mig_count(const struct wm_gpus *gpus, size_t gpu)
{
    return wm_gpus_mig_count_any(gpus, gpus->chosen[gpu]);
}

void wm_gpu_mig_get(const struct wm_gpus *gpus, size_t gpu, size_t mig,
                    enum wm_gpu_mig_field field, struct wm_gpu_value *ret_value)
{
    wm_gpus_mig_get_any(gpus, gpus->chosen[gpu], mig, field, ret_value);
}

const struct wm_gpu_looked *wm_gpus_looked(const struct wm_gpus *gpus, size_t index)
{
    return wm_gpu_drivers_looked(gpus->drivers, index);
}
