/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm.c - GPUs of AMD and Intel, and others with a DRM driver, from what
 * the kernel itself tells: sysfs, hwmon and /proc/PID/fdinfo. No library of a
 * vendor is needed.
 */
#include "source/source_ops.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/text/base_text.h"
#include "source/gpu/drm/source_drm_card.h"
#include "source/gpu/drm/source_drm_clients.h"
#include "source/gpu/select/source_gpu_choice.h"

static const char source_name[] = "drm";

/* How long the first search for clients may take. Where there is surely a GPU,
 * most machines are done by then; the rest follows between the readings. Where
 * there is perhaps none, as in a virtual machine, every start pays for it. */
#define SEARCH_NS (20 * WM_NS_PER_MS)
#define SEARCH_PERHAPS_NS WM_NS_PER_MS

/* The driver asks amdgpu's firmware at most this often. */
#define AMDGPU_PERIOD_NS WM_NS_PER_MS

/* At k = 2: our assumption. */
#define GAIN 0.10

static const struct {
    const char *name;
    const char *unit;
    enum wm_kind kind;
} metrics[WM_DRM_METRICS] = {
    [WM_DRM_ENERGY] = { "energy", "J", WM_COUNTER },
    [WM_DRM_POWER] = { "power", "W", WM_GAUGE },
    [WM_DRM_UTILIZATION] = { "utilization", "ratio", WM_GAUGE },
    [WM_DRM_MEMORY_USED] = { "memory_used", "B", WM_GAUGE },
    [WM_DRM_MEMORY_TOTAL] = { "memory_total", "B", WM_GAUGE },
    [WM_DRM_TEMPERATURE] = { "temperature", "celsius", WM_GAUGE },
    [WM_DRM_MEMORY_TEMPERATURE] = { "memory_temperature", "celsius", WM_GAUGE },
};

/* What stands behind a channel, and how its last reading went. */
struct slot {
    size_t card;
    enum wm_drm_metric metric;
    enum wm_reading_state state;
    struct wm_error err; /* where the state is not ok */
};

struct drm {
    struct wm_drm_card *cards; /* those that are a GPU or may be one */
    enum wm_drm_verdict *verdicts;
    struct wm_drm_gpu *gpus; /* by the place of their card */
    size_t card_count;
    size_t gpu_count; /* of those, that are a GPU */
    struct wm_drm_clients clients;

    struct slot *slots; /* one per channel */
    struct wm_channel *channels;
    size_t channel_count;

    char skipped[160]; /* cards that are not read, and why */
    char detail[512];
};

static void append(char *list, size_t size, const char *separator, const char *text)
{
    size_t length = strlen(list);

    snprintf(list + length, size - length, "%s%s", length > 0 ? separator : "", text);
}

enum { CLASS_PATH_SIZE = 256 };

static int list_cards(const char *sysfs, char path[CLASS_PATH_SIZE],
                      long numbers[WM_DRM_CARDS], size_t *ret_count, struct wm_error *err)
{
    int length = snprintf(path, CLASS_PATH_SIZE, "%s/class/drm", sysfs);

    if (length < 0 || length >= CLASS_PATH_SIZE)
        return wm_fail(err, WM_EINVAL, "too long a path: %s", sysfs);
    return wm_drm_list_cards(path, numbers, ret_count, err);
}

static int find_cards(struct drm *drm, const char *sysfs, struct wm_error *err)
{
    long numbers[WM_DRM_CARDS];
    struct wm_drm_card *cards[WM_DRM_CARDS];
    char path[CLASS_PATH_SIZE], why[96];
    size_t count = 0;

    int status = list_cards(sysfs, path, numbers, &count, err);
    if (status < 0)
        return status;

    for (size_t i = 0; i < count; i++) {
        struct wm_drm_card *card = &drm->cards[drm->card_count];
        enum wm_drm_verdict verdict =
            wm_drm_card_open(card, path, numbers[i], why, sizeof(why));
        if (verdict == WM_DRM_NO_GPU) {
            wm_drm_card_close(card);
            append(drm->skipped, sizeof(drm->skipped), "; ", why);
            continue;
        }
        drm->verdicts[drm->card_count++] = verdict;
        drm->gpu_count += verdict == WM_DRM_IS_GPU;
    }
    for (size_t i = 0; i < drm->card_count; i++)
        cards[i] = &drm->cards[i];
    wm_drm_tell_apart(cards, drm->card_count);
    return WM_OK;
}

static int fail_no_gpu(const struct drm *drm, const char *sysfs, struct wm_error *err)
{
    return wm_fail(err, WM_ENODEV,
                   "no DRM GPU with readable counters: looked in %s/class/drm (%s)", sysfs,
                   drm->skipped[0] ? drm->skipped : "which has no cards");
}

/* Finds the clients of all cards, and drops the cards of unknown kind for which
 * nobody has counters. */
static int find_clients(struct drm *drm, const char *procfs, struct wm_error *err)
{
    for (size_t i = 0; i < drm->card_count; i++) {
        drm->gpus[i] = wm_drm_gpu_of(&drm->cards[i]);
        drm->gpus[i].wanted = true;
    }
    int status =
        wm_drm_clients_init(&drm->clients, procfs, drm->gpus, drm->card_count, err);
    if (status < 0)
        return status;
    wm_drm_clients_search(&drm->clients,
                          drm->gpu_count > 0 ? SEARCH_NS : SEARCH_PERHAPS_NS);

    for (size_t i = 0; i < drm->card_count; i++) {
        if (drm->verdicts[i] == WM_DRM_IS_GPU)
            continue;
        if (drm->gpus[i].counts_engines) {
            drm->verdicts[i] = WM_DRM_IS_GPU;
            drm->gpu_count++;
            continue;
        }
        char why[96];
        drm->verdicts[i] = WM_DRM_NO_GPU;
        snprintf(why, sizeof(why), "%s: %s, without counters", drm->cards[i].label,
                 drm->cards[i].driver);
        append(drm->skipped, sizeof(drm->skipped), "; ", why);
    }
    return WM_OK;
}

/* One word of the configuration: the label of a card, or what NVML's GPUs can be
 * chosen by. Words that name an NVIDIA GPU are for the source that reads it. */
static int choose_word(const struct drm *drm, const size_t *places,
                       const struct wm_gpu_id *ids, const char *word, bool *chosen,
                       struct wm_error *err)
{
    bool now[WM_DRM_CARDS] = { false };

    if (strncmp(word, "GPU-", 4) == 0 || strncmp(word, "MIG-", 4) == 0)
        return WM_OK;
    for (size_t i = 0; i < drm->gpu_count; i++) {
        if (strcmp(drm->cards[places[i]].label, word) == 0) {
            chosen[i] = true;
            return WM_OK;
        }
    }
    int status = wm_gpu_choice(word, ids, drm->gpu_count, now, err);
    for (size_t i = 0; i < drm->gpu_count && status == WM_OK; i++)
        chosen[i] |= now[i];
    return status;
}

static int choose_words(const struct drm *drm, const size_t *places,
                        const struct wm_gpu_id *ids, const char *words, bool *chosen,
                        struct wm_error *err)
{
    char word[128];

    for (const char *rest = words; rest;) {
        size_t length = strcspn(rest, ",");
        const char *start = wm_text_skip_blanks(rest);
        size_t skipped = (size_t)(start - rest);

        if (skipped > length || length - skipped >= sizeof(word))
            return wm_gpu_choice(words, ids, drm->gpu_count, chosen, err);
        memcpy(word, start, length - skipped);
        word[length - skipped] = '\0';
        for (size_t end = length - skipped; end > 0 && word[end - 1] == ' '; end--)
            word[end - 1] = '\0';
        int status = choose_word(drm, places, ids, word, chosen, err);
        if (status < 0)
            return status;
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return WM_OK;
}

/* Leaves `wanted` to the GPUs that the configuration asks for. */
static int choose_gpus(struct drm *drm, const char *words, struct wm_error *err)
{
    struct wm_gpu_id ids[WM_DRM_CARDS];
    bool chosen[WM_DRM_CARDS] = { false };
    size_t places[WM_DRM_CARDS];
    size_t count = 0, wanted = 0;
    int status;

    for (size_t i = 0; i < drm->card_count; i++) {
        drm->gpus[i].wanted = false;
        if (drm->verdicts[i] != WM_DRM_IS_GPU)
            continue;
        snprintf(ids[count].text, sizeof(ids[count].text), "%s", drm->cards[i].identity);
        places[count++] = i;
    }
    if (!words || strcmp(words, "all") == 0)
        status = wm_gpu_choice(words, ids, count, chosen, err);
    else
        status = choose_words(drm, places, ids, words, chosen, err);
    if (status < 0)
        return status;

    for (size_t i = 0; i < count; i++) {
        drm->gpus[places[i]].wanted = chosen[i];
        wanted += chosen[i];
    }
    if (wanted == 0)
        return wm_fail(err, WM_ENODEV, "none of the %zu DRM GPUs is among those chosen: %s",
                       count, words);
    return WM_OK;
}

static int64_t period_of(const struct wm_drm_card *card, enum wm_drm_metric metric)
{
    enum wm_drm_way way = card->sensors[metric].way;

    if (metric == WM_DRM_MEMORY_USED || metric == WM_DRM_MEMORY_TOTAL)
        return 0;
    if (way == WM_DRM_BY_CLIENTS)
        return WM_DRM_WINDOW_NS;
    return strcmp(card->driver, "amdgpu") == 0 ? AMDGPU_PERIOD_NS : 0;
}

/* Memory that is added up over clients counts buffers that several of them share
 * more than once, and what the driver keeps for itself not at all. */
static enum wm_origin origin_of(const struct wm_drm_card *card, enum wm_drm_metric metric)
{
    return metric == WM_DRM_MEMORY_USED && card->sensors[metric].way == WM_DRM_BY_CLIENTS
               ? WM_ESTIMATED
               : WM_MEASURED;
}

/* What the sensor of an integrated GPU sees is inside the energy of the CPU package, or
 * is all of it: a sensor beside the GPU, which is added to nothing. Where there is no
 * sensor the channel still tells this. */
static enum wm_device_kind kind_of(const struct wm_drm_card *card,
                                   enum wm_drm_metric metric)
{
    return card->integrated && metric == WM_DRM_POWER ? WM_DEVICE_OTHER : WM_DEVICE_GPU;
}

/* So the GPU has no energy of its own, whatever the driver tells. */
static bool has_no_energy(const struct wm_drm_card *card, enum wm_drm_metric metric)
{
    return card->integrated && metric == WM_DRM_ENERGY;
}

static struct wm_sensor sensor_of(const struct wm_drm_card *card, enum wm_drm_metric metric)
{
    if (metric != WM_DRM_ENERGY && metric != WM_DRM_POWER)
        return (struct wm_sensor) { 0 };
    return (struct wm_sensor) {
        .kind = WM_SENSOR_BUILT_IN,
        .gain = GAIN,
        .text = kind_of(card, metric) == WM_DEVICE_GPU
                    ? "the GPU's own sensor"
                    : "the sensor of CPU and GPU together",
    };
}

static void add_channel(struct drm *drm, size_t place, enum wm_drm_metric metric)
{
    const struct wm_drm_card *card = &drm->cards[place];
    struct slot *slot = &drm->slots[drm->channel_count];

    *slot = (struct slot) { .card = place, .metric = metric };
    if (has_no_energy(card, metric))
        wm_fail(&slot->err, WM_ENODEV, "its power is that of the CPU package");
    else if (metric == WM_DRM_ENERGY && card->metrics_status == WM_EFORMAT)
        slot->err = card->metrics_err;
    else if (card->sensors[metric].way == WM_DRM_NOT_AT_ALL)
        wm_fail(&slot->err, WM_ENODEV, "%s tells no %s of this GPU", card->driver,
                metrics[metric].name);
    drm->channels[drm->channel_count++] = (struct wm_channel) {
        .source = source_name,
        .device = card->identity,
        .label = card->label,
        .model = card->model,
        .metric = metrics[metric].name,
        .unit = metrics[metric].unit,
        .device_kind = kind_of(card, metric),
        .kind = metrics[metric].kind,
        .origin = origin_of(card, metric),
        .period_ns = period_of(card, metric),
        .sensor = sensor_of(card, metric),
    };
}

static void add_card(struct drm *drm, size_t place)
{
    const struct wm_drm_card *card = &drm->cards[place];
    char text[160];

    for (enum wm_drm_metric metric = 0; metric < WM_DRM_METRICS; metric++) {
        /* Few have one, and a column of "not supported" would help nobody. */
        if (metric == WM_DRM_MEMORY_TEMPERATURE &&
            card->sensors[metric].way == WM_DRM_NOT_AT_ALL)
            continue;
        add_channel(drm, place, metric);
    }
    snprintf(text, sizeof(text), "%s: %s%s%s%s", card->label, card->driver,
             card->slot[0] ? " at " : "", card->slot,
             card->integrated ? ", integrated, so that its power is that of the CPU too"
                              : "");
    append(drm->detail, sizeof(drm->detail), "; ", text);
}

static int drm_look(const struct wm_source_config *config, struct wm_error *err)
{
    const struct drm none = { 0 };
    long numbers[WM_DRM_CARDS];
    char path[CLASS_PATH_SIZE];
    size_t count = 0;

    if (wm_gpu_choice_is_none(config->gpus))
        return wm_fail(err, WM_ENODEV, "GPUs were switched off with --gpu none");
    int status = list_cards(config->sysfs, path, numbers, &count, err);
    return status == WM_OK && count == 0 ? fail_no_gpu(&none, config->sysfs, err) : status;
}

static int drm_open(void *state, const struct wm_source_config *config,
                    struct wm_error *err)
{
    struct drm *drm = state;

    drm->cards = calloc(WM_DRM_CARDS, sizeof(*drm->cards));
    drm->verdicts = calloc(WM_DRM_CARDS, sizeof(*drm->verdicts));
    drm->gpus = calloc(WM_DRM_CARDS, sizeof(*drm->gpus));
    if (!drm->cards || !drm->verdicts || !drm->gpus)
        return wm_fail(err, WM_ENOMEM, "drm: out of memory");

    int status = find_cards(drm, config->sysfs, err);
    if (status < 0)
        return status;
    if (drm->card_count == 0)
        return fail_no_gpu(drm, config->sysfs, err);
    status = find_clients(drm, config->procfs, err);
    if (status < 0)
        return status;
    if (drm->gpu_count == 0)
        return fail_no_gpu(drm, config->sysfs, err);
    status = choose_gpus(drm, config->gpus, err);
    if (status < 0)
        return status;

    drm->slots = calloc(drm->gpu_count * WM_DRM_METRICS, sizeof(*drm->slots));
    drm->channels = calloc(drm->gpu_count * WM_DRM_METRICS, sizeof(*drm->channels));
    if (!drm->slots || !drm->channels)
        return wm_fail(err, WM_ENOMEM, "drm: out of memory");
    for (size_t i = 0; i < drm->card_count; i++) {
        if (drm->gpus[i].wanted)
            add_card(drm, i);
    }
    return WM_OK;
}

static size_t drm_channels(const void *state, const struct wm_channel **ret_channels)
{
    const struct drm *drm = state;

    *ret_channels = drm->channels;
    return drm->channel_count;
}

static enum wm_reading_state fail_clients(const struct wm_drm_card *card, const char *what,
                                          struct wm_error *err)
{
    wm_fail(err, WM_ENODEV, "%s does not tell the %s of its clients here", card->driver,
            what);
    return WM_READING_UNSUPPORTED;
}

/* Nobody's use is no use, but only where the driver would have told of some. */
static enum wm_reading_state read_sum(const struct drm *drm, size_t place,
                                      enum wm_drm_metric metric, double *ret_value,
                                      struct wm_error *err)
{
    const struct wm_drm_card *card = &drm->cards[place];
    const struct wm_drm_gpu *gpu = &drm->gpus[place];
    bool nobody = gpu->client_count == 0 && wm_drm_card_counts_clients(card);

    enum wm_reading_state state =
        wm_drm_clients_limit(&drm->clients, err->text, sizeof(err->text));
    if (state != WM_READING_OK)
        return state;
    if (gpu->is_silent && gpu->client_count == 0)
        return fail_clients(card, "use", err);

    if (metric == WM_DRM_MEMORY_USED) {
        if (!nobody && !gpu->counts_memory)
            return fail_clients(card, "memory", err);
        *ret_value = gpu->memory_bytes;
        return WM_READING_OK;
    }
    if (!nobody && !gpu->counts_engines)
        return fail_clients(card, "engines", err);
    if (!gpu->has_utilization) {
        wm_fail(err, WM_EIO, "a ratio needs two readings that are 10 ms apart");
        return WM_READING_NONE;
    }
    *ret_value = gpu->utilization;
    return WM_READING_OK;
}

static enum wm_reading_state read_slot(struct drm *drm, struct slot *slot,
                                       double *ret_value)
{
    struct wm_drm_card *card = &drm->cards[slot->card];

    if (has_no_energy(card, slot->metric))
        return WM_READING_UNSUPPORTED; /* why is there since open */
    switch (card->sensors[slot->metric].way) {
    case WM_DRM_NOT_AT_ALL:
        return WM_READING_UNSUPPORTED; /* why is there since open */
    case WM_DRM_BY_CLIENTS:
        return read_sum(drm, slot->card, slot->metric, ret_value, &slot->err);
    default:
        return wm_drm_card_read(card, slot->metric, ret_value, &slot->err);
    }
}

/* One for all: a process may use several GPUs, and its clients are searched for
 * once. */
static size_t drm_parts(const void *state)
{
    (void)state;
    return 1;
}

static size_t drm_part_channels(const void *state, size_t part)
{
    const struct drm *drm = state;
    (void)part;

    return drm->channel_count;
}

static void drm_read_part(void *state, size_t part, struct wm_reading *readings)
{
    struct drm *drm = state;
    size_t before = WM_DRM_CARDS;
    int64_t when_ns = 0;
    (void)part;

    wm_drm_clients_read(&drm->clients);
    for (size_t i = 0; i < drm->channel_count; i++) {
        struct slot *slot = &drm->slots[i];
        double value = 0;

        if (slot->card != before) {
            wm_drm_card_turn(&drm->cards[slot->card]);
            when_ns = wm_clock_monotonic_ns();
            before = slot->card;
        }
        slot->state = read_slot(drm, slot, &value);
        readings[i] = (struct wm_reading) { when_ns, value, slot->state };
    }
}

static const char *drm_why(const void *state, size_t channel)
{
    const struct drm *drm = state;
    const struct slot *slot = &drm->slots[channel];

    return slot->state == WM_READING_OK || !slot->err.text[0] ? NULL : slot->err.text;
}

static const char *drm_detail(const void *state)
{
    const struct drm *drm = state;

    return drm->detail;
}

static size_t drm_gpu_processes(const void *state, size_t part,
                                const struct wm_gpu_process **ret_processes)
{
    const struct drm *drm = state;
    (void)part;

    *ret_processes = drm->clients.processes;
    return drm->clients.process_count;
}

static size_t drm_device_count(const void *state)
{
    const struct drm *drm = state;

    return drm->gpu_count;
}

static void drm_close(void *state)
{
    struct drm *drm = state;

    wm_drm_clients_release(&drm->clients);
    for (size_t i = 0; i < drm->card_count; i++)
        wm_drm_card_close(&drm->cards[i]);
    free(drm->channels);
    free(drm->slots);
    free(drm->gpus);
    free(drm->verdicts);
    free(drm->cards);
}

static const struct wm_source_file files[] = {
    { WM_SOURCE_FILE, "class/drm/card[0-9]*/device/hwmon/hwmon*/*[0-9]_input" },
    { WM_SOURCE_FILE, "class/drm/card[0-9]*/device/hwmon/hwmon*/*[0-9]_average" },
    { 0 },
};

/* Where no file is in the way it is other people's processes. */
static void drm_advise(const struct wm_source_case *asked)
{
    char program[WM_ADVICE_SIZE];

    if (asked->advice->count > 0 || !asked->lacks_some)
        return;
    wm_permission_program(program, sizeof(program));
    wm_permission_capability(
        asked->advice,
        "the GPU's users belong to others, whose /proc files only root may read",
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
    .look = drm_look,
    .open = drm_open,
    .channels = drm_channels,
    .parts = drm_parts,
    .part_channels = drm_part_channels,
    .read_part = drm_read_part,
    .why = drm_why,
    .detail = drm_detail,
    .gpu_processes = drm_gpu_processes,
    .device_count = drm_device_count,
    .close = drm_close,
};
