/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml.c - NVIDIA GPUs through NVML, the library behind nvidia-smi.
 *
 * Each GPU is a part of its own, as one that hangs must not hold up the others.
 * One that is lost, to a fault or to a driver that was unloaded, is looked for
 * from then on and goes on when it is back. So is one that is asleep, about which NVML is
 * not asked; while all are, NVML is not started.
 */
#include "source/source_ops.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_text.h"
#include "source/gpu/nvml/source_gpu_nvml.h"
#include "source/gpu/nvml/source_nvml_abi.h"
#include "source/gpu/nvml/source_nvml_boards.h"
#include "source/gpu/nvml/source_nvml_bus.h"
#include "source/gpu/nvml/source_nvml_library.h"
#include "source/gpu/nvml/source_nvml_pace.h"
#include "source/gpu/nvml/source_nvml_power.h"
#include "source/gpu/nvml/source_nvml_processes.h"
#include "source/source_gpu_channel.h"

/* How often GPUs are counted, and a lost one is searched for. */
#define SEARCH_PERIOD_NS WM_NS_PER_S

/* The driver measures PCIe traffic for 20 ms a direction before it answers: one GPU is
 * asked for it in each of these times. */
#define TRAFFIC_PERIOD_NS (WM_NS_PER_S / 2)

struct gpu {
    struct nvml_values values;
    size_t place; /* in the driver's order */
    const char *id;
    char label[16];
    bool has_details; /* else it hung when it was asked for its name and power */
    bool is_module;
    double most_watts; /* 0: not known */
    const char *name;  /* empty where it has none */

    int gone; /* what NVML said when it was lost; NVML_SUCCESS: it is not */
    int64_t searched_ns;

    struct nvml_pace energy_pace;
    struct wm_reading *last; /* of each field; it stands until the next */
    int64_t traffic_due_ns;  /* when it is asked for its traffic; 0: not known yet */

    struct nvml_processes processes;
    int process_status; /* NVML_SUCCESS: those are all */

    /* The GPU's utilization: now, its mean over the time of the last samples of processes,
     * and its sum since those. */
    double use, sampled_use, use_sum;
    size_t use_count;
    int64_t sampled_ns; /* when the last samples were asked for */
};

/* What is always sampled. Energy first: of all values a counter loses most by being
 * late. */
static const enum wm_gpu_field usual[] = {
    WM_GPU_ENERGY,      WM_GPU_POWER_INSTANT, WM_GPU_POWER_AVERAGE, WM_GPU_UTILIZATION_GPU,
    WM_GPU_MEMORY_USED, WM_GPU_MEMORY_TOTAL,  WM_GPU_TEMPERATURE,
};

enum { USUAL_COUNT = sizeof(usual) / sizeof(usual[0]) };

struct nvml {
    char *name;                /* of the library; NULL: the loader's */
    struct nvml_bus bus;       /* as the kernel has the GPUs */
    struct wm_gpu_picks picks; /* borrowed; without a list: all GPUs */

    struct nvml_boards *boards; /* all GPUs, chosen or not; NULL: NVML is not started */
    size_t board_count;
    _Atomic(const struct nvml_library *) library; /* the boards', or NULL */
    struct wm_gpu_id *ids; /* of the boards, as far as they have answered */
    bool *asleep;          /* of the boards: at the start */
    bool *asked;           /* of the boards: who they are */
    bool *chosen;          /* of the boards */
    struct gpu *gpus;      /* the chosen ones that have an identity */
    size_t gpu_count;
    enum wm_gpu_field fields[WM_GPU_FIELDS]; /* that are sampled */
    size_t field_count;
    struct wm_channel *channels; /* field_count per GPU, GPU by GPU */
    struct wm_reading *last;     /* likewise */
    int *statuses;               /* NVML's answer to each channel's last query */
    char detail[1024], left_out[1024];

    atomic_size_t device_count;
    int64_t counted_ns;   /* the first part's */
    atomic_flag starting; /* one part at a time starts NVML again... */
    unsigned restarts;    /* ...and counts it, for as many ends */
};

static bool is_asleep(const struct nvml *nvml, size_t place)
{
    return nvml_bus_is_asleep(&nvml->bus, place, nvml->board_count);
}

/* NULL where it has not answered, or is asleep. */
static const struct nvml_board *board_of(const struct nvml *nvml, size_t index,
                                         enum nvml_question question)
{
    return nvml->asleep[index] ? NULL : nvml_board(nvml->boards, index, question);
}

/* What NVML said when it was asked for the identity of that GPU. */
static int identity_status(const struct nvml *nvml, size_t index)
{
    const struct nvml_board *board = board_of(nvml, index, NVML_IDENTITY);

    return board ? board->status : NVML_NO_ANSWER;
}

/* Who the GPUs are, as far as they have answered; one that is asleep has its address. */
static void note_identities(struct nvml *nvml)
{
    for (size_t i = 0; i < nvml->board_count; i++) {
        const struct nvml_board *board = board_of(nvml, i, NVML_IDENTITY);
        if (board)
            nvml->ids[i] = board->id;
        else if (nvml->asleep[i])
            snprintf(nvml->ids[i].text, sizeof(nvml->ids[i].text), "%s",
                     nvml->bus.slots[i].address);
    }
}

/* Whether the board at its place is the one that was picked; a board that slept then, or
 * sleeps now, is known by its address. */
static bool is_picked(const struct nvml *nvml, const struct wm_gpu_pick *pick)
{
    const char *address =
        pick->place < nvml->bus.count ? nvml->bus.slots[pick->place].address : "";

    return nvml->asleep[pick->place] || strcmp(address, pick->identity) == 0 ||
           strcmp(nvml->ids[pick->place].text, pick->identity) == 0;
}

/* All that say who they are, or those that were picked. */
static int choose(struct nvml *nvml, struct wm_error *err)
{
    for (size_t i = 0; i < nvml->board_count && !nvml->picks.list; i++)
        nvml->chosen[i] = nvml->ids[i].text[0] != '\0';
    for (size_t i = 0; i < nvml->picks.count; i++) {
        const struct wm_gpu_pick *pick = &nvml->picks.list[i];
        const char *id = pick->place < nvml->board_count ? nvml->ids[pick->place].text : "";
        if (!id[0])
            return wm_fail(err, WM_EIO, "GPU %zu is there, but does not answer",
                           pick->place);
        if (!is_picked(nvml, pick))
            return wm_fail(err, WM_EIO, "GPU %zu is no longer %s, which was chosen",
                           pick->place, pick->identity);
        nvml->chosen[pick->place] = true;
    }
    return WM_OK;
}

/* GPUs that all refuse this user are not broken. */
static int explain_no_gpu(const struct nvml *nvml, int status, struct wm_error *err)
{
    if (status != WM_EIO)
        return status;
    for (size_t i = 0; i < nvml->board_count; i++) {
        if (nvml->asked[i] && identity_status(nvml, i) != NVML_ERROR_NO_PERMISSION)
            return status;
    }
    return wm_fail(err, WM_EACCES,
                   "no permission to ask the GPUs who they are; see who may open "
                   "/dev/nvidia* (NVML: %s)",
                   nvml_text(nvml->library, NVML_ERROR_NO_PERMISSION));
}

/* One broken board must not hide its neighbours. */
static int choose_gpus(struct nvml *nvml, struct wm_error *err)
{
    int status = WM_OK;

    nvml->asleep = calloc(nvml->board_count, sizeof(*nvml->asleep));
    nvml->ids = calloc(nvml->board_count, sizeof(*nvml->ids));
    nvml->asked = calloc(nvml->board_count, sizeof(*nvml->asked));
    nvml->chosen = calloc(nvml->board_count, sizeof(*nvml->chosen));
    if (!nvml->asleep || !nvml->ids || !nvml->asked || !nvml->chosen)
        return wm_fail(err, WM_ENOMEM, "out of memory for %zu GPUs", nvml->board_count);
    memset(nvml->asked, !nvml->picks.list, nvml->board_count * sizeof(*nvml->asked));
    for (size_t i = 0; i < nvml->picks.count; i++) {
        if (nvml->picks.list[i].place < nvml->board_count)
            nvml->asked[nvml->picks.list[i].place] = true;
    }
    for (size_t i = 0; i < nvml->board_count; i++) {
        nvml->asleep[i] = !nvml->boards || is_asleep(nvml, i);
        nvml->asked[i] &= !nvml->asleep[i];
    }
    if (nvml->boards)
        status = nvml_boards_ask(nvml->boards, NVML_IDENTITY, nvml->asked, err);
    note_identities(nvml);
    if (status == WM_OK)
        status = choose(nvml, err);
    if (status == WM_OK && nvml->boards)
        status = nvml_boards_ask(nvml->boards, NVML_DETAILS, nvml->chosen, err);
    return status;
}

static enum wm_contains contains_of(const struct gpu *gpu, enum wm_gpu_field field)
{
    if (!gpu->has_details || field == WM_GPU_ENERGY)
        return gpu->is_module ? WM_CONTAINS_MODULE : WM_CONTAINS_DEVICE;
    return nvml_power_contains(&gpu->values.power,
                               field == WM_GPU_POWER_AVERAGE ? NVML_POWER_AVERAGE
                                                             : NVML_POWER_INSTANT,
                               gpu->is_module);
}

/* The energy counter is assumed to see as much of the time as power does. A driver that
 * is not real sees all of it, without error. */
static void set_sensor(const struct gpu *gpu, enum wm_gpu_field field,
                       struct wm_channel *channel)
{
    bool is_metered = field == WM_GPU_ENERGY || field == WM_GPU_POWER_INSTANT ||
                      field == WM_GPU_POWER_AVERAGE;
    bool is_usage = field == WM_GPU_POWER_INSTANT && gpu->has_details &&
                    gpu->values.power.values[NVML_POWER_INSTANT].way == NVML_POWER_BY_USAGE;

    if (!is_metered)
        return;
    channel->sensor.kind = WM_SENSOR_BUILT_IN;
    channel->sensor.contains = contains_of(gpu, field);
    if (channel->origin == WM_SIMULATED)
        return;
    channel->sensor = nvml_sensor(gpu->name, is_usage);
    channel->sensor.contains = contains_of(gpu, field);
    channel->sensor.range = gpu->most_watts;
    channel->period_ns = channel->sensor.period_ns;
}

static int add_gpu(struct nvml *nvml, unsigned index)
{
    const struct nvml_board *board = board_of(nvml, index, NVML_IDENTITY);
    const struct nvml_board *details = board_of(nvml, index, NVML_DETAILS);
    struct gpu *gpu = &nvml->gpus[nvml->gpu_count++];

    gpu->place = index;
    gpu->values.device = board ? board->handle : NULL;
    gpu->gone = board ? NVML_SUCCESS : NVML_ASLEEP;
    gpu->id = nvml->ids[index].text;
    snprintf(gpu->label, sizeof(gpu->label), "gpu%u", index);
    gpu->has_details = details != NULL;
    gpu->name = details ? details->name : "";
    if (details)
        gpu->values.power = details->power; /* what is supported; readings begin later */
    gpu->is_module = details && details->is_module;
    gpu->most_watts = details ? details->most_watts : 0;

    size_t first = (nvml->gpu_count - 1) * nvml->field_count;
    gpu->last = &nvml->last[first];
    for (size_t i = 0; i < nvml->field_count; i++) {
        struct wm_channel *channel = &nvml->channels[first + i];
        *channel = wm_gpu_channel_of(nvml->fields[i]);
        channel->source = wm_source_nvml.name;
        channel->device = gpu->id;
        channel->label = gpu->label;
        channel->model = gpu->name[0] ? gpu->name : NULL;
        channel->origin = strstr(gpu->name, "SIMULATED") ? WM_SIMULATED : WM_MEASURED;
        channel->period_ns = nvml_period_ns(nvml->fields[i]);
        set_sensor(gpu, nvml->fields[i], channel);
    }
    return nvml_processes_init(&gpu->processes);
}

static void choose_fields(struct nvml *nvml, const char *words)
{
    for (; nvml->field_count < USUAL_COUNT; nvml->field_count++)
        nvml->fields[nvml->field_count] = usual[nvml->field_count];
    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        if (nvml_has_query(field) && wm_gpu_channels_name(words, field))
            nvml->fields[nvml->field_count++] = field;
    }
}

static int add_chosen_gpus(struct nvml *nvml, struct wm_error *err)
{
    size_t most = nvml->board_count * nvml->field_count;

    nvml->gpus = calloc(nvml->board_count, sizeof(*nvml->gpus));
    nvml->channels = calloc(most, sizeof(*nvml->channels));
    nvml->last = calloc(most, sizeof(*nvml->last));
    nvml->statuses = calloc(most, sizeof(*nvml->statuses));
    if (!nvml->gpus || !nvml->channels || !nvml->last || !nvml->statuses)
        return wm_fail(err, WM_ENOMEM, "out of memory for %zu GPUs", nvml->board_count);

    for (unsigned i = 0; i < nvml->board_count; i++) {
        if (nvml->chosen[i] && add_gpu(nvml, i) != NVML_SUCCESS)
            return wm_fail(err, WM_ENOMEM, "out of memory for the processes of GPU %u", i);
    }
    for (size_t i = 0; i < nvml->gpu_count; i++)
        nvml->gpus[i].energy_pace.gpus = nvml->gpus[i].processes.pace.gpus =
            nvml->gpu_count;
    if (nvml->gpu_count == 0)
        return wm_fail(err, WM_EIO, "none of %zu GPUs would say who it is",
                       nvml->board_count);
    return WM_OK;
}

/* NULL where nobody knows. */
static const char *power_text(const struct gpu *gpu)
{
    return gpu->has_details ? nvml_power_text(&gpu->values.power) : NULL;
}

/* Names the GPUs only where they differ, as those of one machine seldom do. */
static void describe_power(struct nvml *nvml)
{
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        const char *text = power_text(&nvml->gpus[i]);
        size_t first = 0, equal = 0;

        while (power_text(&nvml->gpus[first]) != text)
            first++;
        if (first < i || !text)
            continue; /* told with the first one */

        wm_text_list(nvml->detail, sizeof(nvml->detail), "", ", power by %s", text);
        for (size_t k = i; k < nvml->gpu_count; k++)
            equal += power_text(&nvml->gpus[k]) == text;
        if (equal == nvml->gpu_count)
            return;
        for (size_t k = i; k < nvml->gpu_count; k++) {
            if (power_text(&nvml->gpus[k]) == text)
                wm_text_list(nvml->detail, sizeof(nvml->detail), "", "%s%s",
                             k == i ? " (" : " ", nvml->gpus[k].label);
        }
        wm_text_list(nvml->detail, sizeof(nvml->detail), "", ")");
    }
}

static void describe(struct nvml *nvml)
{
    wm_text_list(nvml->detail, sizeof(nvml->detail), "", "%s",
                 nvml->library ? nvml->library->detail
                               : "NVML is not started, as that would wake the GPUs");
    describe_power(nvml);
    for (size_t i = 0; i < nvml->board_count; i++) {
        int status = identity_status(nvml, i);
        if (nvml->asleep[i] && nvml->chosen[i])
            wm_text_list(nvml->detail, sizeof(nvml->detail), "", ", gpu%zu is asleep", i);
        if (!nvml->asked[i])
            continue;
        if (status != NVML_SUCCESS)
            wm_text_list(nvml->left_out, sizeof(nvml->left_out), ", ",
                         "gpu%zu does not answer (%s)", i,
                         nvml_text(nvml->library, status));
        else if (nvml->chosen[i] && !board_of(nvml, i, NVML_DETAILS))
            wm_text_list(nvml->detail, sizeof(nvml->detail), "",
                         ", gpu%zu did not report its name", i);
    }
    if (nvml->left_out[0])
        wm_text_list(nvml->detail, sizeof(nvml->detail), ", ", "%s", nvml->left_out);
}

static int start(struct nvml *nvml, struct wm_error *err)
{
    int status = nvml_boards_open(nvml->name, &nvml->boards, err);

    if (status == WM_OK)
        nvml->library = nvml_boards_library(nvml->boards);
    return status;
}

static int nvml_look(const struct wm_source_config *config, struct wm_error *err)
{
    return nvml_library_look(config->nvml, err);
}

static void nvml_choose(void *state, const struct wm_gpu_picks *picks)
{
    struct nvml *nvml = state;

    nvml->picks = *picks;
}

static int nvml_open(void *state, const struct wm_source_config *config,
                     struct wm_source_found *ret_found, struct wm_error *err)
{
    struct nvml *nvml = state;

    atomic_flag_clear(&nvml->starting);
    int status = nvml_bus_open(config->sysfs, &nvml->bus);
    if (status == WM_OK && config->nvml && !(nvml->name = strdup(config->nvml)))
        status = WM_ENOMEM;
    if (status < 0)
        return wm_fail_memory(err, "NVML");
    nvml->board_count = nvml->bus.count;
    if (!nvml_bus_are_all_asleep(&nvml->bus)) {
        status = start(nvml, err);
        if (status < 0)
            return status;
        nvml->board_count = nvml_boards_count(nvml->boards);
    }
    atomic_store(&nvml->device_count, nvml->board_count);

    status = choose_gpus(nvml, err);
    choose_fields(nvml, config->channels);
    if (status == WM_OK)
        status = add_chosen_gpus(nvml, err);
    if (status < 0)
        return explain_no_gpu(nvml, status, err);
    describe(nvml);
    *ret_found =
        (struct wm_source_found) { .channels = nvml->channels,
                                   .channel_count = nvml->gpu_count * nvml->field_count,
                                   .part_count = nvml->gpu_count,
                                   .detail = nvml->detail,
                                   .left_out = nvml->left_out[0] ? nvml->left_out : NULL };
    return WM_OK;
}

/* GPUs may be added while we run. */
static void count_again(struct nvml *nvml, int64_t now_ns)
{
    unsigned count = 0;

    if (now_ns - nvml->counted_ns < SEARCH_PERIOD_NS)
        return;
    nvml->counted_ns = now_ns;
    if (nvml->library->api.device_count(&count) == NVML_SUCCESS && count <= NVML_GPUS_MAX)
        atomic_store(&nvml->device_count, count);
}

/* Whether a status means that the GPU is lost, rather than that one call failed. */
static bool is_lost(int status)
{
    return status == NVML_ERROR_UNINITIALIZED || status == NVML_ERROR_DRIVER_NOT_LOADED ||
           status == NVML_ERROR_GPU_IS_LOST;
}

/* Whether it may mean either. */
static bool is_doubtful(int status)
{
    return status == NVML_ERROR_RESET_REQUIRED || status == NVML_ERROR_INVALID_ARGUMENT;
}

/* Two parts may find out at once that NVML is not started any more. */
static int start_again(struct nvml *nvml)
{
    unsigned count = 0;

    if (atomic_flag_test_and_set(&nvml->starting))
        return NVML_ERROR_UNINITIALIZED; /* the other part is at it */
    if (!nvml->library && start(nvml, NULL) < 0) {
        atomic_flag_clear(&nvml->starting);
        return NVML_ERROR_UNINITIALIZED;
    }

    const struct nvml_api *api = &nvml->library->api;
    int status = api->device_count(&count);
    if (status == NVML_ERROR_UNINITIALIZED) {
        status = api->init();
        nvml->restarts += status == NVML_SUCCESS;
    }
    atomic_flag_clear(&nvml->starting);
    return status;
}

static void search(struct nvml *nvml, struct gpu *gpu, int64_t now_ns)
{
    nvml_device handle = NULL;

    if (gpu->searched_ns != 0 && now_ns - gpu->searched_ns < SEARCH_PERIOD_NS)
        return;
    gpu->searched_ns = now_ns;

    int status = NVML_ERROR_UNINITIALIZED;
    if (nvml->library)
        status = nvml_find(&nvml->library->api, gpu->id, &handle);
    if (status == NVML_ERROR_UNINITIALIZED) {
        status = start_again(nvml);
        if (status != NVML_SUCCESS)
            gpu->gone = status; /* says more than "uninitialized" */
        else
            status = nvml_find(&nvml->library->api, gpu->id, &handle);
    }
    if (status != NVML_SUCCESS)
        return;

    /* It may be another driver, which supports what the last one did not. */
    gpu->values.device = handle;
    gpu->gone = NVML_SUCCESS;
    gpu->values.power = (struct nvml_power) { 0 };
    gpu->energy_pace.due_ns = 0;
    gpu->traffic_due_ns = now_ns;
    nvml_processes_restart(&gpu->processes);
}

/* A round of one GPU. */
struct round {
    int64_t now_ns;
    bool is_end, asks_traffic;
};

/* Whether the GPU is to be asked for its traffic. Each has its turns by the clock: one that
 * hangs keeps no other from them. */
static bool takes_turn(const struct nvml *nvml, struct gpu *gpu, int64_t now_ns)
{
    if (gpu->traffic_due_ns == 0)
        gpu->traffic_due_ns = now_ns + (gpu - nvml->gpus) * TRAFFIC_PERIOD_NS;
    if (now_ns < gpu->traffic_due_ns)
        return false;
    gpu->traffic_due_ns = now_ns + (int64_t)nvml->gpu_count * TRAFFIC_PERIOD_NS;
    return true;
}

/* Whether the last reading of an expensive field stands, as the next one is not due. */
static bool stands(const struct gpu *gpu, enum wm_gpu_field field,
                   const struct round *round, int64_t now_ns)
{
    if (gpu->gone != NVML_SUCCESS)
        return false;
    if (field == WM_GPU_ENERGY)
        return !nvml_pace_is_due(&gpu->energy_pace, now_ns, round->is_end);
    return wm_gpu_field_info(field)->asked_with == WM_GPU_THROUGHPUT &&
           !round->asks_traffic;
}

static struct nvml_answer query(struct gpu *gpu, enum wm_gpu_field field)
{
    if (field != WM_GPU_ENERGY)
        return nvml_ask_sampled(&gpu->values, field);

    int64_t now_ns = wm_clock_monotonic_ns();
    int64_t begun_ns = nvml_pace_begin(&gpu->energy_pace);
    struct nvml_answer joules = nvml_ask_sampled(&gpu->values, field);
    nvml_pace_end(&gpu->energy_pace, now_ns, begun_ns);
    return joules;
}

/* Joules need the time of the counter and of power; the others have that of power, as a
 * recording keeps one for the counter and one for the rest of a device.
 *
 * A lost GPU is not asked on, as each call may take its time to fail. When the
 * first call of all fails doubtfully, the GPU is looked for once, and the others
 * decide should the call go on to fail. */
static void read_fields(const struct nvml *nvml, struct gpu *gpu, const struct round *round,
                        int *statuses)
{
    int doubt = NVML_SUCCESS;
    bool has_answered = false;
    int64_t asked_ns = round->now_ns, when_ns = asked_ns;

    nvml_values_begin(&gpu->values);
    for (size_t i = 0; i < nvml->field_count; i++) {
        enum wm_gpu_field field = nvml->fields[i];
        struct nvml_answer value = { .status = gpu->gone };

        if (stands(gpu, field, round, when_ns))
            continue;
        if (value.status == NVML_SUCCESS) {
            value = query(gpu, field);
            if (field == WM_GPU_ENERGY || field == WM_GPU_POWER_INSTANT)
                when_ns = wm_clock_middle_ns(&asked_ns);
            has_answered = has_answered || value.status == NVML_SUCCESS;
            if (is_doubtful(value.status))
                doubt = value.status;
            if (is_lost(value.status) ||
                (is_doubtful(value.status) && !has_answered && value.status != statuses[i]))
                gpu->gone = value.status;
        }
        statuses[i] = value.status;
        gpu->last[i] =
            (struct wm_reading) { when_ns, value.number, nvml_state(value.status) };
        if (field == WM_GPU_UTILIZATION_GPU)
            gpu->use = value.status == NVML_SUCCESS ? value.number : NAN;
    }
    if (!has_answered && doubt != NVML_SUCCESS)
        gpu->gone = doubt;
}

/* Expensive samples are asked for seldom; in between a process's use follows the GPU's. */
static void follow_use(struct gpu *gpu)
{
    gpu->use_sum += gpu->use;
    gpu->use_count++;
    gpu->processes.version += nvml_pace_costs(&gpu->processes.pace);
    if (gpu->sampled_ns == gpu->processes.asked_ns)
        return;
    gpu->sampled_ns = gpu->processes.asked_ns;
    gpu->sampled_use = gpu->use_sum / (double)gpu->use_count;
    gpu->use_sum = 0;
    gpu->use_count = 0;
}

static void read_processes(const struct nvml *nvml, struct gpu *gpu, int64_t now_ns,
                           bool is_end)
{
    int status = gpu->gone;

    if (status == NVML_SUCCESS)
        status = nvml_processes_read(&gpu->processes, &nvml->library->api,
                                     gpu->values.device, NULL, now_ns, is_end);
    else
        gpu->processes.count = 0;
    gpu->processes.version += status != gpu->process_status || gpu->gone != NVML_SUCCESS;
    gpu->process_status = status;
    follow_use(gpu);
}

/* What one tick asks of a GPU, in this order: its energy (as often as that is cheap, and at
 * the end), power (one call for the instant and the average), utilization, memory,
 * temperature, the chosen channels (PCIe traffic in turns of half a second), and the lists
 * of its processes (those without any once a second), with their samples if there are any.
 * Once a second the first part counts the GPUs. */
static void nvml_read_part(void *state, size_t part, bool is_end,
                           struct wm_reading *readings)
{
    struct nvml *nvml = state;
    struct gpu *gpu = &nvml->gpus[part];
    int64_t now_ns = wm_clock_monotonic_ns();

    if (is_asleep(nvml, gpu->place)) {
        gpu->gone = NVML_ASLEEP;
    } else if (gpu->gone != NVML_SUCCESS) {
        search(nvml, gpu, now_ns);
        now_ns = wm_clock_monotonic_ns();
    }

    gpu->values.api = nvml->library ? &nvml->library->api : NULL;
    const struct round round = { now_ns, is_end, takes_turn(nvml, gpu, now_ns) };
    read_fields(nvml, gpu, &round, &nvml->statuses[part * nvml->field_count]);
    memcpy(readings, gpu->last, nvml->field_count * sizeof(*readings));
    read_processes(nvml, gpu, now_ns, is_end);
    if (part == 0 && gpu->gone != NVML_ASLEEP && nvml->library)
        count_again(nvml, now_ns);
}

static const char *nvml_why(const void *state, size_t channel)
{
    const struct nvml *nvml = state;
    int status = nvml->statuses[channel];

    return status == NVML_SUCCESS ? NULL : nvml_text(nvml->library, status);
}

/* A process's use now: its part of the GPU's use at the last samples, times the GPU's use
 * now. If the GPU was unused then, it is not known yet who uses it now. */
static enum wm_reading_state
share_now(const struct gpu *gpu, const struct nvml_process *process, double *ret_ratio)
{
    int status = nvml_process_share(&gpu->processes, process->sample->sm, ret_ratio);

    if (status != NVML_SUCCESS || !nvml_pace_costs(&gpu->processes.pace) ||
        isnan(gpu->sampled_use) || isnan(gpu->use))
        return nvml_state(status);
    if (gpu->sampled_use <= 0)
        return gpu->use > 0 ? WM_READING_NONE : WM_READING_OK;
    *ret_ratio = fmin(*ret_ratio * gpu->use / gpu->sampled_use, 1);
    return WM_READING_OK;
}

/* Member by member, which is a third of what a copy costs. */
static void tell_process(const struct gpu *gpu, const struct nvml_process *process,
                         struct wm_gpu_process *ret_told)
{
    ret_told->device = gpu->id;
    ret_told->pid = (pid_t)process->user.pid;
    ret_told->memory_bytes = (double)process->memory;
    ret_told->state = process->knows_memory ? WM_READING_OK : WM_READING_UNSUPPORTED;
    ret_told->sm_state = share_now(gpu, process, &ret_told->sm_ratio);
    ret_told->why = NULL;
}

/* That there may be more. That a driver does not tell them, or not to this user, needs no
 * words of NVML's. */
static struct wm_gpu_process tell_unknown(const struct nvml *nvml, const struct gpu *gpu)
{
    enum wm_reading_state state = nvml_state(gpu->process_status);
    bool has_words = state == WM_READING_FAILED || gpu->process_status == NVML_ASLEEP;

    return (struct wm_gpu_process) {
        .device = gpu->id,
        .state = state,
        .sm_state = state,
        .why = has_words ? nvml_text(nvml->library, gpu->process_status) : NULL,
    };
}

static size_t nvml_gpu_processes(const void *state, size_t part, unsigned *version,
                                 struct wm_gpu_process *processes, size_t room)
{
    const struct nvml *nvml = state;
    const struct gpu *gpu = &nvml->gpus[part];
    size_t count = gpu->processes.count;

    bool is_known = gpu->process_status == NVML_SUCCESS;

    if (*version != gpu->processes.version) {
        for (size_t i = 0; i < count && i < room; i++)
            tell_process(gpu, &gpu->processes.found[i], &processes[i]);
        if (!is_known && count < room)
            processes[count] = tell_unknown(nvml, gpu);
    }
    *version = gpu->processes.version;
    return is_known ? count : count + 1;
}

static size_t nvml_device_count(const void *state)
{
    const struct nvml *nvml = state;

    return atomic_load(&nvml->device_count);
}

static void nvml_close(void *state)
{
    struct nvml *nvml = state;

    for (size_t i = 0; i < nvml->gpu_count; i++)
        nvml_processes_release(&nvml->gpus[i].processes);
    nvml_boards_close(nvml->boards, nvml->restarts);
    nvml_bus_close(&nvml->bus);
    free(nvml->name);
    free(nvml->asleep);
    free(nvml->statuses);
    free(nvml->channels);
    free(nvml->last);
    free(nvml->gpus);
    free(nvml->chosen);
    free(nvml->asked);
    free(nvml->ids);
}

static const struct wm_source_file files[] = {
    { WM_SOURCE_DEVICE, "nvidia[0-9]*" },
    { WM_SOURCE_DEVICE, "nvidiactl" },
    { 0 },
};

const struct wm_source_ops wm_source_nvml = {
    .name = "nvml",
    .summary = "NVIDIA GPUs: energy, power, utilization, memory, temperature, processes",
    .traits = { .has_gpus = true },
    .files = files,
    .advise = wm_nvml_advise,
    .state_size = sizeof(struct nvml),
    .choose = nvml_choose,
    .look = nvml_look,
    .open = nvml_open,
    .read_part = nvml_read_part,
    .why = nvml_why,
    .gpu_processes = nvml_gpu_processes,
    .device_count = nvml_device_count,
    .close = nvml_close,
};
