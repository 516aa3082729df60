/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_aipm.c - a folder as AIPowerMeter leaves it: metadata.json, and
 * power_metrics.json with a record for each window between two ticks, in the form
 * of its latest generation.
 *
 * Its powers are averages over the window: the increase of the energy counter by
 * the time, or what a device says of its power that has none, or one that tells nothing
 * of the window: it may be dead, and is not 0 W. The tracked processes
 * are one process there, the one that was started. A tick without any reading ends
 * a segment.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "record/record_aipm_results.h"
#include "record/record_beside.h"
#include "record/record_channel.h"
#include "record/record_localtime.h"
#include "record/record_ops.h"
#include "record/record_out.h"
#include "record/record_text.h"
#include "source/source_energy.h"

#define METADATA "metadata.json"
#define SEGMENT_END "\"END OF RECORDING SEGMENT\"\n"

/* In place of a channel's index: there is no such channel. */
#define NONE ((size_t)-1)

enum part {
    PART_PACKAGE,
    PART_CORE,
    PART_UNCORE,
    PART_DRAM,
    PART_PSYS,
    PART_COUNT,
    PART_GPU = PART_COUNT,
    PART_OTHER, /* AIPowerMeter knows no such thing */
};

/* What each is called, as a sum over all of its kind. */
static const char *const part_keys[PART_COUNT] = {
    [PART_PACKAGE] = "intel_power", [PART_CORE] = "total_cpu_power",
    [PART_UNCORE] = "uncore_power", [PART_DRAM] = "total_dram_power",
    [PART_PSYS] = "psys_power",
};

/* A counter, as it was in the last window. */
struct before {
    bool there;
    bool has_moved; /* in this segment */
    double value;
    int64_t when_ns;
};

struct device {
    const struct wm_channel *channel; /* the first of its */
    enum wm_origin origin;            /* the worst of its channels' */
    enum part part;
    int number; /* of a GPU */
    size_t energy, power, utilization, memory;
};

/* What changes with each tick, and is taken back when writing it fails. */
struct progress {
    bool started;    /* there is a tick before this one */
    bool in_segment; /* there is a record after the last end of a segment */
    bool needs_end;  /* of the segment that somebody left open */
};

struct aipm {
    const char *path;
    const struct wm_run *run;
    const struct wm_channel *channels;
    size_t count;
    struct wm_out out;
    struct device *devices;
    size_t device_count;
    size_t tree_cpu, tree_memory, tree_private, tree_share, host_cpu, host_memory;
    struct progress progress, progress_saved;
    struct before *before, *before_saved; /* of each channel */
    bool has_metadata;
    bool is_appended;
};

static const char *const suffixes[] = { ".aipm", "/", WM_AIPM_FILE, NULL };

static int out_of_memory(const struct aipm *aipm, struct wm_error *err)
{
    return wm_fail(err, WM_ENOMEM, "%s: out of memory", wm_text_path(aipm->path));
}

static enum part part_of(const struct wm_channel *channel)
{
    switch (channel->device_kind) {
    case WM_DEVICE_CPU:
        return PART_PACKAGE;
    case WM_DEVICE_CPU_PART:
        if (strstr(channel->device, "uncore"))
            return PART_UNCORE;
        return strstr(channel->device, "core") ? PART_CORE : PART_OTHER;
    case WM_DEVICE_DRAM:
        return PART_DRAM;
    case WM_DEVICE_PLATFORM:
        return strstr(channel->device, "psys") ? PART_PSYS : PART_OTHER;
    case WM_DEVICE_GPU:
        return PART_GPU;
    case WM_DEVICE_HOST:
    case WM_DEVICE_TREE:
    case WM_DEVICE_OTHER:
        break;
    }
    return PART_OTHER;
}

/* "gpu3" is 3. */
static int gpu_number(const char *label)
{
    const char *end = NULL;
    uint64_t number;

    if (strncmp(label, "gpu", 3) == 0 && wm_text_u64(label + 3, &end, &number) && !*end &&
        number < 10000)
        return (int)number;
    return -1;
}

static struct device *find_device(struct aipm *aipm, const struct wm_channel *channel)
{
    int gpus = 0;

    for (size_t i = 0; i < aipm->device_count; i++) {
        struct device *device = &aipm->devices[i];
        gpus += device->part == PART_GPU;
        if (device->part == part_of(channel) &&
            strcmp(device->channel->device, channel->device) == 0)
            return device;
    }

    struct device *device = &aipm->devices[aipm->device_count++];
    int number = gpu_number(channel->label);
    *device = (struct device) {
        .channel = channel,
        .part = part_of(channel),
        .number = number >= 0 ? number : gpus,
        .energy = NONE,
        .power = NONE,
        .utilization = NONE,
        .memory = NONE,
    };
    return device;
}

static struct wm_energy_offer offer_of(const void *list, size_t index)
{
    const struct wm_channel *channel = &((const struct wm_channel *)list)[index];
    bool is_metered =
        strcmp(channel->metric, "energy") == 0 || strcmp(channel->metric, "power") == 0;

    return (struct wm_energy_offer) {
        .source = channel->source,
        .kind = is_metered ? channel->device_kind : WM_DEVICE_OTHER,
        .origin = channel->origin,
        .is_known = true,
    };
}

/* Whether another source counts for the same CPUs or memory, which must not count
 * twice. */
static bool is_second(const struct aipm *aipm, const struct wm_channel *channel)
{
    const struct wm_energy_offers offers = { aipm->channels, aipm->count, offer_of };
    struct wm_energy_choice choice;

    if (channel->device_kind != WM_DEVICE_CPU && channel->device_kind != WM_DEVICE_DRAM)
        return false;
    wm_energy_choose(&offers, channel->device_kind, &choice);
    return !choice.source || strcmp(channel->source, choice.source) != 0;
}

/* Where the index of a channel of its device is kept; NULL for one of no use here. */
static size_t *place_of(struct aipm *aipm, const struct wm_channel *channel)
{
    const char *metric = channel->metric;

    if (strcmp(metric, "energy") == 0)
        return &find_device(aipm, channel)->energy;
    if (strcmp(metric, "power") == 0)
        return &find_device(aipm, channel)->power;
    if (part_of(channel) != PART_GPU)
        return NULL;
    if (strcmp(metric, "utilization") == 0)
        return &find_device(aipm, channel)->utilization;
    if (strcmp(metric, "memory_used") == 0)
        return &find_device(aipm, channel)->memory;
    return NULL;
}

static void use_device_channel(struct aipm *aipm, size_t index)
{
    const struct wm_channel *channel = &aipm->channels[index];
    size_t *place = is_second(aipm, channel) ? NULL : place_of(aipm, channel);

    if (!place)
        return;
    *place = index;
    struct device *device = find_device(aipm, channel);
    if (channel->origin > device->origin)
        device->origin = channel->origin;
}

static void use_other_channel(struct aipm *aipm, size_t index)
{
    const struct {
        const char *label, *metric;
        size_t *place;
    } uses[] = {
        { "tree", "cpu_time", &aipm->tree_cpu },
        { "tree", "memory_total", &aipm->tree_memory },
        { "tree", "memory_private", &aipm->tree_private },
        { "tree", "cpu_share", &aipm->tree_share },
        { "host", "cpu_time", &aipm->host_cpu },
        { "host", "memory_used", &aipm->host_memory },
    };

    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (strcmp(aipm->channels[index].label, uses[i].label) == 0 &&
            strcmp(aipm->channels[index].metric, uses[i].metric) == 0)
            *uses[i].place = index;
    }
}

static void use_channels(struct aipm *aipm)
{
    aipm->tree_cpu = NONE;
    aipm->tree_memory = NONE;
    aipm->tree_private = NONE;
    aipm->tree_share = NONE;
    aipm->host_cpu = NONE;
    aipm->host_memory = NONE;
    for (size_t i = 0; i < aipm->count; i++) {
        enum wm_device_kind kind = aipm->channels[i].device_kind;
        if (part_of(&aipm->channels[i]) != PART_OTHER)
            use_device_channel(aipm, i);
        else if (kind == WM_DEVICE_HOST || kind == WM_DEVICE_TREE)
            use_other_channel(aipm, i);
    }
}

/* Whether wattmeter wrote the metadata of the folder that `path` lies in. */
static bool is_ours(const char *path)
{
    json_t *metadata = NULL;
    size_t length = 0;
    char *text = NULL;

    if (wm_beside_read(path, METADATA, &text, &length, NULL) == WM_OK && text)
        metadata = json_loadb(text, length, 0, NULL);
    bool ours = json_is_object(json_object_get(metadata, "wattmeter"));
    json_decref(metadata);
    free(text);
    return ours;
}

static int is_in_use(const char *path, struct wm_error *err)
{
    return wm_fail(err, WM_EEXIST, "%s: another wattmeter is recording to it",
                   wm_text_path(path));
}

/* Two that write to one file would write over each other. File systems without locks
 * are taken as they are. */
static int lock(int fd, const char *path, struct wm_error *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return is_in_use(path, err);
    return WM_OK;
}

/* Whether nobody is writing to it now. */
static int check_unused(const char *path, struct wm_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        return wm_fail_errno(err, wm_text_path(path));
    int status = lock(fd, path, err);
    close(fd);
    return status;
}

static int aipm_may_replace(const char *target, struct wm_error *err)
{
    if (is_ours(target))
        return check_unused(target, err);
    return wm_fail(err, WM_EEXIST,
                   "%s: was not made by wattmeter and is not replaced; --append adds to it",
                   wm_text_path(target));
}

/* Whether the last line of `length` bytes at the end of a file is whole, and the end
 * of a segment. */
static int look_at_end(struct aipm *aipm, off_t size, struct wm_error *err)
{
    char tail[sizeof(SEGMENT_END) - 1];
    size_t length = size < (off_t)sizeof(tail) ? (size_t)size : sizeof(tail);

    ssize_t got = pread(aipm->out.fd, tail, length, size - (off_t)length);
    if (got < 0)
        return wm_fail_errno(err, wm_text_path(aipm->path));
    if ((size_t)got < length || tail[length - 1] != '\n')
        return wm_fail(err, WM_EFORMAT,
                       "%s: its last line is cut off; nothing can be added behind it",
                       wm_text_path(aipm->path));
    aipm->progress.needs_end =
        length < sizeof(tail) || memcmp(tail, SEGMENT_END, sizeof(tail)) != 0;
    return WM_OK;
}

static int aipm_open(void *state, const char *target, const struct wm_run *run,
                     const struct wm_channel *channels, size_t count, struct wm_error *err)
{
    struct aipm *aipm = state;
    struct stat info;

    aipm->path = target;
    aipm->run = run;
    aipm->channels = channels;
    aipm->count = count;
    aipm->devices = calloc(count + 1, sizeof(*aipm->devices));
    aipm->before = calloc(count + 1, sizeof(*aipm->before));
    aipm->before_saved = calloc(count + 1, sizeof(*aipm->before_saved));
    if (!aipm->devices || !aipm->before || !aipm->before_saved)
        return out_of_memory(aipm, err);
    use_channels(aipm);

    int status = wm_out_open(&aipm->out, target, err);
    if (status == WM_OK)
        status = lock(aipm->out.fd, target, err);
    if (status < 0)
        return status;
    if (fstat(aipm->out.fd, &info) < 0)
        return wm_fail_errno(err, wm_text_path(target));
    if (info.st_size == 0)
        return WM_OK;
    aipm->is_appended = true;
    aipm->out.end = info.st_size;
    aipm->out.written = info.st_size;
    return look_at_end(aipm, info.st_size, err);
}

static const char *describe(const struct wm_run *run, char *text, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < run->note_count; i++) {
        if (run->notes[i].key && strcmp(run->notes[i].key, "description") == 0 &&
            run->notes[i].value)
            return run->notes[i].value;
    }
    text[0] = '\0';
    for (size_t i = 0; i < run->command_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? " " : "",
                                 run->command[i]);
    return text;
}

static char *metadata_text(const struct aipm *aipm)
{
    char date[WM_LOCALTIME_SIZE], description[512];
    char *run_text = NULL, *text = NULL;

    if (wm_run_to_json(aipm->run, &run_text, NULL) < 0)
        return NULL;
    wm_localtime_format(aipm->run->anchor_unix_ns, date);
    json_t *object =
        json_pack("{s:o,s:s,s:o}", "description",
                  wm_text_json(describe(aipm->run, description, sizeof(description))),
                  "date", date, "wattmeter", json_loads(run_text, 0, NULL));
    if (object)
        text = json_dumps(object, JSON_ENSURE_ASCII);
    json_decref(object);
    free(run_text);
    return text;
}

static bool has_metadata(const char *path)
{
    char *name = wm_beside_path(path, METADATA);

    bool has = name && access(name, F_OK) == 0;
    free(name);
    return has;
}

/* What others have put there stays. */
static int write_metadata(struct aipm *aipm, struct wm_error *err)
{
    int status = WM_OK;

    if (!has_metadata(aipm->path) || (!aipm->is_appended && is_ours(aipm->path))) {
        char *text = metadata_text(aipm);
        status = text ? wm_beside_write(aipm->path, METADATA, text, err)
                      : out_of_memory(aipm, err);
        free(text);
    }
    aipm->has_metadata = status == WM_OK;
    return status;
}

/* A record that is being put together. Numbers that are not known are left out. */
struct record {
    const struct aipm *aipm;
    const struct wm_tick *tick;
    char pid[16];
    json_t *cpu;
    bool failed; /* out of memory */
};

static void put(struct record *record, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        record->failed = true;
}

static void put_number(struct record *record, const char *key, double value)
{
    if (!isnan(value))
        put(record, record->cpu, key, json_real(value));
}

/* For the one process that stands for all of them. */
static void put_process(struct record *record, const char *key, double value)
{
    if (!isnan(value))
        put(record, record->cpu, key, json_pack("{s:f}", record->pid, value));
}

/* NAN where there is none. */
static double value_of(const struct record *record, size_t channel)
{
    if (channel == NONE || record->tick->readings[channel].state != WM_READING_OK ||
        !isfinite(record->tick->readings[channel].value))
        return NAN;
    return record->tick->readings[channel].value;
}

/* By how much a counter has grown since it was last seen, and in how many seconds.
 * NAN where that is not known. */
static double increase_of(const struct record *record, size_t channel, double *ret_seconds)
{
    double value = value_of(record, channel);

    if (isnan(value))
        return NAN;
    const struct before *before = &record->aipm->before[channel];
    int64_t when_ns = record->tick->readings[channel].when_ns;
    if (!before->there || value < before->value || when_ns <= before->when_ns)
        return NAN;
    *ret_seconds = (double)(when_ns - before->when_ns) / 1e9;
    return value - before->value;
}

/* Where the counter tells nothing (it is not there after all, was set back, or has not
 * moved yet and may be dead), what the device says of its power stands in. */
static double watts_of(const struct record *record, const struct device *device)
{
    double seconds = 0, joules = NAN;

    if (device->energy != NONE)
        joules = increase_of(record, device->energy, &seconds);
    if (isnan(joules) || (joules <= 0 && !record->aipm->before[device->energy].has_moved))
        return value_of(record, device->power);
    return joules / seconds;
}

/* All of them or none: a part would pass for the whole. */
static double sum_of_part(const struct record *record, enum part part)
{
    double sum = NAN;

    for (size_t i = 0; i < record->aipm->device_count; i++) {
        const struct device *device = &record->aipm->devices[i];
        if (device->part != part)
            continue;
        double watts = watts_of(record, device);
        if (isnan(watts))
            return NAN;
        sum = isnan(sum) ? watts : sum + watts;
    }
    return sum;
}

static double share_of_tree(const struct record *record)
{
    double seconds;
    double share = value_of(record, record->aipm->tree_share);

    if (!isnan(share))
        return share;
    double tree = increase_of(record, record->aipm->tree_cpu, &seconds);
    double host = increase_of(record, record->aipm->host_cpu, &seconds);
    if (isnan(tree) || isnan(host) || host <= 0)
        return NAN;
    return fmin(tree / host, 1);
}

static void put_cpu(struct record *record)
{
    const struct aipm *aipm = record->aipm;
    double seconds;
    double share = share_of_tree(record);
    double memory = value_of(record, aipm->tree_memory);
    double all_memory = value_of(record, aipm->host_memory);

    put_number(record, "total_mem_use", all_memory);
    for (enum part part = 0; part < PART_COUNT; part++)
        put_number(record, part_keys[part], sum_of_part(record, part));
    put_process(record, "per_process_cpu_uses", share);
    put_process(record, "absolute_cpu_time_per_pid",
                increase_of(record, aipm->tree_cpu, &seconds));
    put_process(record, "per_process_mem_use_abs", memory);
    if (all_memory > 0)
        put_process(record, "per_process_mem_use_percent", memory / all_memory);
    put_process(record, "per_process_mem_use_uss", value_of(record, aipm->tree_private));
    put_process(record, "rel_intel_power", share * sum_of_part(record, PART_PACKAGE));
    put_process(record, "per_process_cpu_power", share * sum_of_part(record, PART_CORE));
}

static json_t *number_or_null(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

/* One of the three metrics, of each GPU and of all: their sum, or their mean. The
 * keys have to be there, whatever is known. */
static void put_gpu_metric(struct record *record, json_t *object, const char *key,
                           double (*value)(const struct record *, const struct device *),
                           bool is_mean)
{
    json_t *each = json_object();
    char name[32];
    double sum = 0;
    int count = 0;

    for (size_t i = 0; i < record->aipm->device_count; i++) {
        const struct device *device = &record->aipm->devices[i];
        if (device->part != PART_GPU)
            continue;
        double number = value(record, device);
        snprintf(name, sizeof(name), "%d", device->number);
        put(record, each, name, number_or_null(number));
        sum += number;
        count++;
    }
    put(record, object, key, number_or_null(is_mean ? sum / count : sum));
    snprintf(name, sizeof(name), "per_gpu_%s", key);
    put(record, object, name, each);
}

static double gpu_memory(const struct record *record, const struct device *device)
{
    return value_of(record, device->memory);
}

static double gpu_percent(const struct record *record, const struct device *device)
{
    return 100 * value_of(record, device->utilization);
}

static json_t *gpu_metrics(struct record *record)
{
    json_t *gpu = json_object();

    put_gpu_metric(record, gpu, "nvidia_power", watts_of, false);
    put_gpu_metric(record, gpu, "nvidia_memory", gpu_memory, false);
    put_gpu_metric(record, gpu, "nvidia_use_rate", gpu_percent, true);
    return gpu;
}

static bool has_gpu(const struct aipm *aipm)
{
    for (size_t i = 0; i < aipm->device_count; i++) {
        if (aipm->devices[i].part == PART_GPU)
            return true;
    }
    return false;
}

/* {"cpu": "estimated"}, beside the metrics, where AIPowerMeter does not look: what of
 * them was not measured, by kind of device, and the worst of each kind. NULL where all
 * was. */
static json_t *origins_json(const struct aipm *aipm)
{
    enum wm_origin worst[WM_DEVICE_OTHER + 1] = { WM_MEASURED };
    json_t *origins = NULL;

    for (size_t i = 0; i < aipm->device_count; i++) {
        const struct device *device = &aipm->devices[i];
        enum wm_origin *known = &worst[device->channel->device_kind];
        if (device->origin > *known)
            *known = device->origin;
    }
    for (int kind = 0; kind <= WM_DEVICE_OTHER; kind++) {
        if (worst[kind] == WM_MEASURED)
            continue;
        if (!origins)
            origins = json_object();
        json_object_set_new(origins, wm_word(WM_WORDS_DEVICE_KIND, kind),
                            json_string(wm_word(WM_WORDS_ORIGIN, (int)worst[kind])));
    }
    return origins;
}

/* As a line, the caller's to free; NULL when out of memory. */
static char *record_text(const struct aipm *aipm, const struct wm_tick *tick)
{
    struct record record = { .aipm = aipm, .tick = tick, .cpu = json_object() };
    json_t *metrics = json_object(), *line = json_object();
    char date[WM_LOCALTIME_SIZE];
    char *text = NULL;

    snprintf(record.pid, sizeof(record.pid), "%d", aipm->run->pid > 0 ? aipm->run->pid : 1);
    wm_localtime_format(aipm->run->anchor_unix_ns - aipm->run->anchor_ns + tick->when_ns,
                        date);
    put_cpu(&record);
    put(&record, metrics, "cpu", record.cpu);
    if (has_gpu(aipm))
        put(&record, metrics, "gpu", gpu_metrics(&record));
    put(&record, line, "date", json_string(date));
    put(&record, line, "metrics", metrics);
    json_t *origins = origins_json(aipm);
    if (origins)
        put(&record, line, "origin", origins);
    if (!record.failed)
        text = json_dumps(line, 0);
    json_decref(line);
    return text;
}

static bool has_reading(const struct wm_tick *tick)
{
    for (size_t i = 0; i < tick->count; i++) {
        if (tick->readings[i].state == WM_READING_OK)
            return true;
    }
    return false;
}

static void end_segment(struct aipm *aipm)
{
    if (aipm->progress.in_segment)
        wm_out_text(&aipm->out, SEGMENT_END);
    aipm->progress.in_segment = false;
    aipm->progress.started = false;
    memset(aipm->before, 0, aipm->count * sizeof(*aipm->before));
}

static int put_record(struct aipm *aipm, const struct wm_tick *tick, struct wm_error *err)
{
    char *text = record_text(aipm, tick);

    if (!text)
        return out_of_memory(aipm, err);
    if (aipm->progress.needs_end)
        wm_out_text(&aipm->out, SEGMENT_END);
    wm_out_text(&aipm->out, text);
    wm_out_text(&aipm->out, "\n");
    aipm->progress.needs_end = false;
    aipm->progress.in_segment = true;
    free(text);
    return WM_OK;
}

static int put_tick(struct aipm *aipm, const struct wm_tick *tick, struct wm_error *err)
{
    int status = WM_OK;

    if (!has_reading(tick)) {
        end_segment(aipm);
        return WM_OK;
    }
    if (aipm->progress.started)
        status = put_record(aipm, tick, err);
    aipm->progress.started = true;
    for (size_t i = 0; i < tick->count; i++) {
        const struct wm_reading *reading = &tick->readings[i];
        struct before *before = &aipm->before[i];
        if (reading->state != WM_READING_OK || !isfinite(reading->value))
            continue;
        before->has_moved |= before->there && reading->value != before->value;
        before->there = true;
        before->value = reading->value;
        before->when_ns = reading->when_ns;
    }
    return status;
}

static int aipm_write(void *state, const struct wm_tick *ticks, size_t count,
                      struct wm_error *err)
{
    struct aipm *aipm = state;
    size_t size = aipm->count * sizeof(*aipm->before);
    int status = WM_OK;

    if (!aipm->has_metadata)
        status = write_metadata(aipm, err);
    memcpy(aipm->before_saved, aipm->before, size);
    aipm->progress_saved = aipm->progress;
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = put_tick(aipm, &ticks[i], err);
    if (status == WM_OK)
        status = wm_out_flush(&aipm->out, err);
    else
        wm_out_discard(&aipm->out);
    if (status < 0) {
        memcpy(aipm->before, aipm->before_saved, size);
        aipm->progress = aipm->progress_saved;
    }
    return status;
}

/* AIPowerMeter has no reasons. */
static int aipm_gap(void *state, const struct wm_gap *gap, struct wm_error *err)
{
    (void)state;
    (void)gap;
    (void)err;
    return WM_OK;
}

/* Nor results but what the target told of itself; the end of the segment says that
 * there is no more of it. */
static int aipm_finish(void *state, const struct wm_result *result, struct wm_error *err)
{
    struct aipm *aipm = state;

    struct progress before = aipm->progress;
    end_segment(aipm);
    int status = wm_out_flush(&aipm->out, err);
    if (status < 0)
        aipm->progress = before;
    if (status == WM_OK)
        status = wm_out_sync(&aipm->out, err);
    if (status == WM_OK && result)
        status = wm_aipm_write_results(aipm->path, aipm->run, result, err);
    return status;
}

static void aipm_close(void *state)
{
    struct aipm *aipm = state;

    wm_out_close(&aipm->out);
    free(aipm->devices);
    free(aipm->before);
    free(aipm->before_saved);
}

const struct wm_recorder_ops wm_recorder_aipm = {
    .name = "AIPowerMeter folder",
    .suffixes = suffixes,
    .file = WM_AIPM_FILE,
    .may_replace = aipm_may_replace,
    .can_append = true,
    .survives_kill = true,
    .state_size = sizeof(struct aipm),
    .open = aipm_open,
    .write = aipm_write,
    .gap = aipm_gap,
    .finish = aipm_finish,
    .close = aipm_close,
};
