/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm.c - GPUs of AMD and Intel, and others with a DRM driver, from what
 * the kernel itself reports: sysfs, hwmon and /proc/PID/fdinfo. No library of a
 * vendor is needed.
 */
#include "source/source_ops.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/base_text.h"
#include "source/gpu/drm/source_drm_card.h"
#include "source/gpu/drm/source_drm_clients.h"
#include "source/gpu/drm/source_gpu_drm_look.h"
#include "source/gpu/source_drm_text.h"
#include "source/source_gpu_channel.h"

static const char source_name[] = "drm";

/* How long the first search for clients may take: most machines are done by then, and the
 * rest follows between the readings. */
#define SEARCH_NS (20 * WM_NS_PER_MS)

/* The driver asks amdgpu's firmware at most this often. */
#define AMDGPU_PERIOD_NS WM_NS_PER_MS

/* At k = 2: our assumption. */
#define GAIN 0.10

/* Our assumptions, too: how long an instant and an average are, and for how long a reading
 * of power may stay as it is after power has changed. */
#define MOMENT_S 1e-3
#define AVERAGE_S 0.5
#define LONGEST_NS WM_NS_PER_S

/* The channels of the metrics. The driver's power may be an average. */
static const enum wm_gpu_field fields[WM_DRM_METRICS] = {
    [WM_DRM_ENERGY] = WM_GPU_ENERGY,
    [WM_DRM_POWER] = WM_GPU_POWER_INSTANT,
    [WM_DRM_UTILIZATION] = WM_GPU_UTILIZATION_GPU,
    [WM_DRM_MEMORY_USED] = WM_GPU_MEMORY_USED,
    [WM_DRM_MEMORY_TOTAL] = WM_GPU_MEMORY_TOTAL,
    [WM_DRM_TEMPERATURE] = WM_GPU_TEMPERATURE,
    [WM_DRM_MEMORY_TEMPERATURE] = WM_GPU_TEMPERATURE_MEMORY,
};

/* What stands behind a channel, and how its last reading went. */
struct slot {
    size_t card;
    enum wm_drm_metric metric; /* WM_DRM_METRICS: one that is sampled on demand */
    enum wm_gpu_field field;   /* which then */
    enum wm_reading_state state;
    struct wm_error err; /* where the state is not ok */
};

struct drm {
    struct wm_gpu_picks picks; /* borrowed; without a list: all GPUs */
    struct wm_drm_cards cards;
    struct wm_drm_gpu *gpus; /* by the place of their card */
    struct wm_drm_clients clients;

    /* What is sampled on demand: as `info` finds it out. */
    bool wanted[WM_GPU_FIELDS];
    size_t wanted_count;
    unsigned groups; /* of those */
    struct look {
        struct wm_drm_board board;
        struct wm_drm_look look;
        struct wm_error whys[WM_GPU_FIELDS];
        struct wm_drm_way ways[WM_GPU_FIELDS];
        bool only[WM_GPU_FIELDS];
    } * looks; /* by the place of their card; NULL: nothing is */

    struct slot *slots; /* one per channel */
    struct wm_channel *channels;
    size_t channel_count;

    char detail[512];
};

static bool is_picked(const struct drm *drm, const struct wm_drm_card *card)
{
    for (size_t i = 0; i < drm->picks.count; i++) {
        if (strcmp(drm->picks.list[i].identity, card->identity) == 0)
            return true;
    }
    return !drm->picks.list;
}

/* Finds the clients of all cards, of which those that the configuration asks for are
 * wanted. */
static int find_clients(struct drm *drm, const struct wm_source_config *config,
                        struct wm_error *err)
{
    size_t count = drm->cards.count, found = 0;

    for (size_t i = 0; i < count; i++) {
        drm->gpus[i].card = &drm->cards.cards[i];
        drm->gpus[i].wanted = is_picked(drm, drm->gpus[i].card);
        found += drm->gpus[i].wanted;
    }
    if (drm->picks.list && found < drm->picks.count)
        return wm_fail(err, WM_EIO, "a GPU that was chosen is not there any more");
    int status = wm_drm_clients_init(&drm->clients, config->procfs, drm->gpus, count, err);
    if (status == WM_OK)
        wm_drm_clients_search(&drm->clients, SEARCH_NS);
    return status;
}

static int64_t period_of(const struct wm_drm_card *card, enum wm_drm_metric metric)
{

    if (metric == WM_DRM_MEMORY_USED || metric == WM_DRM_MEMORY_TOTAL)
        return 0;
    if (card->ways[metric].by == WM_DRM_BY_CLIENTS)
        return WM_DRM_WINDOW_NS;
    return wm_drm_card_has_driver(card, "amdgpu") ? AMDGPU_PERIOD_NS : 0;
}

/* Memory that is added up over clients counts buffers that several of them share
 * more than once, and what the driver keeps for itself not at all. */
static enum wm_origin origin_of(const struct wm_drm_card *card, enum wm_drm_metric metric)
{
    return metric == WM_DRM_MEMORY_USED && card->ways[metric].by == WM_DRM_BY_CLIENTS
               ? WM_ESTIMATED
               : WM_MEASURED;
}

/* What the sensor of an integrated GPU sees is the power of the processor, which stands
 * beside what other sources know of it. */
static enum wm_device_kind kind_of(const struct wm_drm_card *card,
                                   enum wm_drm_metric metric)
{
    return card->integrated && metric == WM_DRM_POWER ? WM_DEVICE_CPU : WM_DEVICE_GPU;
}

/* The sensor of the first die measures the second, too. If the first is not among the
 * chosen GPUs, the second's power is missing rather than elsewhere. */
static enum wm_contains contains_of(const struct drm *drm, const struct wm_drm_card *card)
{
    bool is_alone =
        card->first_die && !drm->gpus[card->first_die - drm->cards.cards].wanted;

    return card->elsewhere[0] && !is_alone ? WM_CONTAINS_PACKAGE : WM_CONTAINS_DEVICE;
}

/* A GPU whose power another device measures has no energy of its own, whatever the driver
 * reports. */
static bool has_no_energy(const struct wm_drm_card *card, enum wm_drm_metric metric)
{
    return card->elsewhere[0] && metric == WM_DRM_ENERGY;
}

static const char *sensor_text(const struct wm_drm_card *card, enum wm_drm_metric metric)
{
    if (card->has_second || card->first_die)
        return "the sensor of both dies of the package";
    return card->elsewhere[0] && metric == WM_DRM_POWER
               ? "the sensor of CPU and GPU together"
               : "the GPU's own sensor";
}

/* hwmon distinguishes instantaneous power from an average, but says neither how long the
 * average is nor how often it is updated. */
static bool is_moment(const struct wm_drm_card *card)
{
    const struct wm_drm_way *way = &card->ways[WM_DRM_POWER];
    const char *name = way->by == WM_DRM_BY_FILES ? way->files[0].name : "";
    size_t length = strlen(name), end = strlen("_input");

    return length > end && strcmp(name + length - end, "_input") == 0;
}

static struct wm_sensor sensor_of(const struct drm *drm, const struct wm_drm_card *card,
                                  enum wm_drm_metric metric)
{
    if (metric != WM_DRM_ENERGY && metric != WM_DRM_POWER)
        return (struct wm_sensor) { 0 };
    struct wm_sensor sensor = {
        .kind = WM_SENSOR_BUILT_IN,
        .contains = contains_of(drm, card),
        .gain = GAIN,
        .range = wm_drm_card_most_watts(card),
        .text = sensor_text(card, metric),
    };

    if (metric == WM_DRM_POWER) {
        sensor.is_sample = is_moment(card);
        sensor.window_s = sensor.is_sample ? MOMENT_S : AVERAGE_S;
        sensor.longest_ns = LONGEST_NS;
    }
    return sensor;
}

static struct wm_channel channel_of(const struct wm_drm_card *card, enum wm_gpu_field field)
{
    struct wm_channel channel = wm_gpu_channel_of(field);

    channel.source = source_name;
    channel.device = card->identity;
    channel.label = card->label;
    channel.model = card->model;
    return channel;
}

static void add_channel(struct drm *drm, size_t place, enum wm_drm_metric metric)
{
    const struct wm_drm_card *card = &drm->cards.cards[place];
    struct slot *slot = &drm->slots[drm->channel_count];

    *slot = (struct slot) { .card = place, .metric = metric };
    if (has_no_energy(card, metric))
        wm_fail(&slot->err, WM_ENODEV, "%s", card->elsewhere);
    else if (metric == WM_DRM_ENERGY && card->metrics_status == WM_EFORMAT)
        slot->err = card->metrics_err;
    else if (card->ways[metric].by == WM_DRM_NOT_AT_ALL)
        wm_fail(&slot->err, WM_ENODEV, "%s reports no %s of this GPU", card->driver,
                wm_gpu_field_info(fields[metric])->metric);
    struct wm_channel *channel = &drm->channels[drm->channel_count++];
    *channel = channel_of(card, fields[metric]);
    channel->device_kind = kind_of(card, metric);
    channel->origin = origin_of(card, metric);
    channel->period_ns = period_of(card, metric);
    channel->sensor = sensor_of(drm, card, metric);
}

static bool is_usual(enum wm_gpu_field field)
{
    size_t i = 0;

    while (i < WM_DRM_METRICS && fields[i] != field)
        i++;
    return i < WM_DRM_METRICS;
}

static void take_look(struct wm_drm_look *look)
{
    memset(look->told, 0, sizeof(look->told));
    wm_drm_look_at_files(look);
    wm_drm_look_at_condition(look);
}

/* What this GPU does not have gets no channel. */
static void add_on_demand(struct drm *drm, size_t place)
{
    struct wm_drm_card *card = &drm->cards.cards[place];
    struct look *mine = &drm->looks[place];
    struct wm_drm_look *look = &mine->look;

    mine->board.card = card;
    memcpy(mine->only, drm->wanted, sizeof(mine->only));
    *look = (struct wm_drm_look) {
        .board = &mine->board,
        .groups = drm->groups,
        .only = mine->only,
        .whys = mine->whys,
        .ways = mine->ways,
    };
    wm_drm_find_link(card);
    wm_drm_card_turn(card);
    take_look(look);
    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        mine->only[field] =
            look->told[field] && look->states[field] != WM_READING_UNSUPPORTED;
        if (!mine->only[field])
            continue;
        drm->slots[drm->channel_count] =
            (struct slot) { .card = place, .metric = WM_DRM_METRICS, .field = field };
        struct wm_channel *channel = &drm->channels[drm->channel_count++];
        *channel = channel_of(card, field);
    }
}

static void add_card(struct drm *drm, size_t place)
{
    const struct wm_drm_card *card = &drm->cards.cards[place];

    for (enum wm_drm_metric metric = 0; metric < WM_DRM_METRICS; metric++) {
        /* Few have one, and a column of "not supported" would help nobody. */
        if (metric == WM_DRM_MEMORY_TEMPERATURE &&
            card->ways[metric].by == WM_DRM_NOT_AT_ALL)
            continue;
        add_channel(drm, place, metric);
    }
    if (drm->looks)
        add_on_demand(drm, place);
    wm_text_list(drm->detail, sizeof(drm->detail), "; ", "%s: %s%s%s%s", card->label,
                 card->driver, card->slot[0] ? " at " : "", card->slot,
                 card->integrated ? ", integrated, so that its power is that of the CPU too"
                 : card->has_second ? ", its power is that of both dies of the package"
                                    : "");
}

static int drm_look(const struct wm_source_config *config, struct wm_error *err)
{
    return wm_drm_cards_look(config->sysfs, err);
}

static int make_room(struct drm *drm, const char *words, struct wm_error *err)
{
    size_t count = drm->cards.count, channels;

    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        drm->wanted[field] = wm_gpu_channels_name(words, field) && !is_usual(field);
        drm->wanted_count += drm->wanted[field];
        drm->groups |= drm->wanted[field] ? wm_gpu_field_info(field)->asked_with : 0;
    }
    channels = count * (WM_DRM_METRICS + drm->wanted_count);
    drm->gpus = calloc(count, sizeof(*drm->gpus));
    drm->slots = calloc(channels, sizeof(*drm->slots));
    drm->channels = calloc(channels, sizeof(*drm->channels));
    if (drm->wanted_count > 0)
        drm->looks = calloc(count, sizeof(*drm->looks));
    if (!drm->gpus || !drm->slots || !drm->channels ||
        (drm->wanted_count > 0 && !drm->looks))
        return wm_fail_memory(err, "drm");
    return WM_OK;
}

static void drm_choose(void *state, const struct wm_gpu_picks *picks)
{
    struct drm *drm = state;

    drm->picks = *picks;
}

static int drm_open(void *state, const struct wm_source_config *config,
                    struct wm_source_found *ret_found, struct wm_error *err)
{
    struct drm *drm = state;

    int status = wm_drm_cards_open(&drm->cards, config->sysfs, err);
    if (status < 0)
        return status;
    status = make_room(drm, config->channels, err);
    if (status == WM_OK)
        status = find_clients(drm, config, err);
    for (size_t i = 0; status == WM_OK && i < drm->cards.count; i++) {
        if (drm->gpus[i].wanted)
            add_card(drm, i);
    }
    *ret_found = (struct wm_source_found) { .channels = drm->channels,
                                            .channel_count = drm->channel_count,
                                            .part_count = 1,
                                            .detail = drm->detail };
    return status;
}

/* Nobody's use is no use, but only where the driver would have told of some. */
static enum wm_reading_state read_sum(const struct drm *drm, size_t place,
                                      enum wm_drm_metric metric, double *ret_value,
                                      struct wm_error *err)
{
    const struct wm_drm_gpu *gpu = &drm->gpus[place];
    bool is_memory = metric == WM_DRM_MEMORY_USED;
    bool nobody =
        gpu->client_count == 0 && wm_drm_card_counts_clients(&drm->cards.cards[place]);

    enum wm_reading_state state = wm_drm_clients_limit(&drm->clients, gpu, err);
    if (state != WM_READING_OK)
        return state;
    if (!nobody && !(is_memory ? gpu->counts_memory : gpu->counts_engines))
        return wm_drm_fail_clients(gpu, is_memory ? "memory" : "engines", err);
    if (!is_memory && !gpu->has_utilization) {
        wm_fail(err, WM_EIO, "a ratio needs two readings that are 10 ms apart");
        return WM_READING_NONE;
    }
    *ret_value = is_memory ? gpu->memory_bytes : gpu->utilization;
    return WM_READING_OK;
}

static enum wm_reading_state read_on_demand(const struct drm *drm, struct slot *slot,
                                            double *ret_value)
{
    const struct wm_drm_look *look = &drm->looks[slot->card].look;

    if (!look->told[slot->field]) {
        wm_fail(&slot->err, WM_EIO, "%s does not report it any more",
                look->board->card->label);
        return WM_READING_FAILED;
    }
    *ret_value = look->numbers[slot->field];
    if (look->states[slot->field] != WM_READING_OK)
        slot->err = look->whys[slot->field];
    return look->states[slot->field];
}

static enum wm_reading_state read_slot(struct drm *drm, struct slot *slot,
                                       double *ret_value)
{
    struct wm_drm_card *card = &drm->cards.cards[slot->card];

    if (slot->metric == WM_DRM_METRICS)
        return read_on_demand(drm, slot, ret_value);
    if (has_no_energy(card, slot->metric))
        return WM_READING_UNSUPPORTED; /* why is there since open */
    switch (card->ways[slot->metric].by) {
    case WM_DRM_NOT_AT_ALL:
        return WM_READING_UNSUPPORTED; /* why is there since open */
    case WM_DRM_BY_CLIENTS:
        return read_sum(drm, slot->card, slot->metric, ret_value, &slot->err);
    default:
        return wm_drm_card_read(card, slot->metric, ret_value, &slot->err);
    }
}

/* One for all: a process may use several GPUs, and its clients are searched for
 * once. The counter of a card has its own time, and the rest that of power. */
static void drm_read_part(void *state, size_t part, bool is_end,
                          struct wm_reading *readings)
{
    struct drm *drm = state;
    size_t before = WM_DRM_CARDS, looked_at = WM_DRM_CARDS;
    int64_t asked_ns = 0, when_ns = 0;
    (void)part;
    (void)is_end;

    wm_drm_clients_read(&drm->clients);
    for (size_t i = 0; i < drm->channel_count; i++) {
        struct slot *slot = &drm->slots[i];
        double value = 0;

        if (slot->card != before) {
            wm_drm_card_turn(&drm->cards.cards[slot->card]);
            when_ns = asked_ns = wm_clock_monotonic_ns();
            before = slot->card;
        }
        if (slot->metric == WM_DRM_METRICS && looked_at != slot->card) {
            take_look(&drm->looks[slot->card].look);
            looked_at = slot->card;
        }
        slot->state = read_slot(drm, slot, &value);
        if (slot->metric == WM_DRM_ENERGY || slot->metric == WM_DRM_POWER)
            when_ns = wm_clock_middle_ns(&asked_ns);
        readings[i] = (struct wm_reading) { when_ns, value, slot->state };
    }
}

static const char *drm_why(const void *state, size_t channel)
{
    const struct drm *drm = state;
    const struct slot *slot = &drm->slots[channel];

    return slot->state == WM_READING_OK || !slot->err.text[0] ? NULL : slot->err.text;
}

static size_t drm_gpu_processes(const void *state, size_t part, unsigned *version,
                                struct wm_gpu_process *processes, size_t room)
{
    const struct drm *drm = state;
    size_t count = drm->clients.process_count;
    (void)part;

    (*version)++;
    for (size_t i = 0; i < count && i < room; i++)
        processes[i] = drm->clients.processes[i];
    return count;
}

static size_t drm_device_count(const void *state)
{
    const struct drm *drm = state;

    return drm->cards.count;
}

static void drm_close(void *state)
{
    struct drm *drm = state;

    wm_drm_clients_release(&drm->clients);
    wm_drm_cards_close(&drm->cards);
    for (size_t i = 0; drm->looks && i < drm->cards.count; i++) {
        for (size_t field = 0; field < WM_GPU_FIELDS; field++)
            wm_drm_close_way(&drm->looks[i].ways[field]);
    }
    free(drm->looks);
    free(drm->channels);
    free(drm->slots);
    free(drm->gpus);
}

static const struct wm_source_file files[] = {
    { WM_SOURCE_FILE, "class/drm/card[0-9]*/device/hwmon/hwmon*/*[0-9]_input" },
    { WM_SOURCE_FILE, "class/drm/card[0-9]*/device/hwmon/hwmon*/*[0-9]_average" },
    { 0 },
};

/* Where no file is in the way it is other people's processes, or a container. */
static void drm_advise(const struct wm_source_case *asked)
{
    char program[WM_ADVICE_SIZE];

    if (asked->advice->count > 0 || !asked->lacks_some || geteuid() == 0)
        return;
    wm_permission_program(program, sizeof(program));
    wm_permission_capability(asked->advice,
                             "the GPU's users belong to others, whose /proc files only "
                             "root may read; this shows "
                             "them to everybody who may run wattmeter",
                             "cap_sys_ptrace+ep", program);
}

const struct wm_source_ops wm_source_drm = {
    .name = source_name,
    .summary =
        "AMD and Intel GPUs: energy, power, utilization, memory, temperature, processes",
    .traits = { .has_gpus = true },
    .files = files,
    .advise = drm_advise,
    .state_size = sizeof(struct drm),
    .choose = drm_choose,
    .look = drm_look,
    .open = drm_open,
    .read_part = drm_read_part,
    .why = drm_why,
    .gpu_processes = drm_gpu_processes,
    .device_count = drm_device_count,
    .close = drm_close,
};
