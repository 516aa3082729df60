/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nvml_scenario.c - reads a scenario. A misspelt key would make a test
 * pass that tests nothing, so whatever is not understood is refused.
 */
#include "fake_nvml_scenario.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GPUS_MAX = 4096 };

static const struct {
    int code;
    const char *name;
    const char *text;
} errors[] = {
    { 0, "SUCCESS", "Success" },
    { 1, "UNINITIALIZED", "Uninitialized" },
    { 2, "INVALID_ARGUMENT", "Invalid Argument" },
    { 3, "NOT_SUPPORTED", "Not Supported" },
    { 4, "NO_PERMISSION", "Insufficient Permissions" },
    { 6, "NOT_FOUND", "Not Found" },
    { 7, "INSUFFICIENT_SIZE", "Insufficient Size" },
    { 9, "DRIVER_NOT_LOADED", "Driver Not Loaded" },
    { 10, "TIMEOUT", "Timeout" },
    { 13, "FUNCTION_NOT_FOUND", "Function Not Found" },
    { 15, "GPU_IS_LOST", "GPU is lost" },
    { 16, "RESET_REQUIRED", "GPU requires restart" },
    { 18, "LIB_RM_VERSION_MISMATCH", "Driver/library version mismatch" },
    { 20, "MEMORY", "Insufficient Memory" },
    { 21, "NO_DATA", "No data" },
    { 25, "ARGUMENT_VERSION_MISMATCH", "Argument version mismatch" },
    { 26, "DEPRECATED", "Deprecated" },
    { 28, "GPU_NOT_FOUND", "GPU not found" },
    { 999, "UNKNOWN", "Unknown Error" },
};

enum { ERROR_COUNT = sizeof(errors) / sizeof(errors[0]) };

const char *fake_error_text(int code)
{
    for (size_t i = 0; i < ERROR_COUNT; i++) {
        if (errors[i].code == code)
            return errors[i].text;
    }
    return "Unknown Error";
}

/* Where in the scenario we are, for the message when it is wrong. */
struct place {
    const char *file;
    char path[128];
};

static struct place inside(const struct place *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static struct place inside(const struct place *place, const char *format, ...)
{
    struct place inner = *place;
    size_t length = strlen(inner.path);
    va_list args;

    va_start(args, format);
    vsnprintf(inner.path + length, sizeof(inner.path) - length, format, args);
    va_end(args);
    return inner;
}

static bool refuse(const struct place *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Always false, which is what the caller then returns. */
static bool refuse(const struct place *place, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "fake NVML: %s: %s: ", place->file,
            place->path[0] ? place->path : "top level");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}

/* "!" at the end of `format` refuses keys that it does not name. */
static bool unpack(const struct place *place, json_t *json, const char *format, ...)
{
    json_error_t error = { 0 };
    va_list args;

    va_start(args, format);
    int status = json_vunpack_ex(json, &error, 0, format, args);
    va_end(args);
    return status == 0 || refuse(place, "%s", error.text);
}

static bool copy_text(const struct place *place, char *out, size_t size, const char *text)
{
    int length = snprintf(out, size, "%s", text);
    return (size_t)length < size || refuse(place, "'%s' is too long", text);
}

/* A curve is a number, a list of points, or an object that says more. */

static bool set_constant(struct curve *curve, double value)
{
    curve->points = calloc(1, sizeof(*curve->points));
    if (!curve->points)
        return false;
    curve->points[0].value = value;
    curve->count = 1;
    return true;
}

static bool set_points(struct curve *curve, const struct place *place, json_t *json)
{
    double before = 0;

    if (!json_is_array(json) || json_array_size(json) == 0)
        return refuse(place, "points are a list of [seconds, value]");
    curve->points = calloc(json_array_size(json), sizeof(*curve->points));
    if (!curve->points)
        return false;

    for (size_t i = 0; i < json_array_size(json); i++) {
        struct place here = inside(place, "[%zu]", i);
        struct curve_point *point = &curve->points[i];

        if (!unpack(&here, json_array_get(json, i), "[FF!]", &point->time, &point->value))
            return false;
        if (point->time < before)
            return refuse(&here, "time goes back to %g s", point->time);
        before = point->time;
        curve->count++;
    }
    return true;
}

static bool set_square(struct curve *curve, const struct place *place, json_t *json)
{
    const char *shape = NULL;
    double low = 0, high = 0, period = 0, duty = 0.5;

    if (!unpack(place, json, "{ss, sF, sF, sF, s?F !}", "shape", &shape, "low", &low,
                "high", &high, "period", &period, "duty", &duty))
        return false;
    if (period <= 0 || duty <= 0 || duty >= 1)
        return refuse(place, "a square needs a period above 0 and a duty within 0 and 1");
    curve->points = calloc(2, sizeof(*curve->points));
    if (!curve->points)
        return false;

    curve->points[0] = (struct curve_point) { 0, high };
    curve->points[1] = (struct curve_point) { duty * period, low };
    curve->count = 2;
    curve->steps = true;
    curve->repeat = period;
    return true;
}

static bool set_shape(struct curve *curve, const struct place *place, json_t *json)
{
    const char *shape = "linear";
    json_t *points = NULL;

    if (!unpack(place, json, "{s?s}", "shape", &shape))
        return false;
    if (strcmp(shape, "square") == 0)
        return set_square(curve, place, json);
    if (strcmp(shape, "step") != 0 && strcmp(shape, "linear") != 0)
        return refuse(place, "shape '%s' is none of linear, step, square", shape);

    struct place here = inside(place, ".points");
    if (!unpack(place, json, "{s?s, so, s?F !}", "shape", &shape, "points", &points,
                "repeat", &curve->repeat) ||
        !set_points(curve, &here, points))
        return false;
    curve->steps = strcmp(shape, "step") == 0;
    if (curve->repeat < 0 ||
        (curve->repeat > 0 && curve->repeat < curve->points[curve->count - 1].time))
        return refuse(place, "repeats after %g s, before the last point", curve->repeat);
    return true;
}

static bool parse_curve(const struct place *gpu, const char *key, json_t *json,
                        double otherwise, double lowest, struct curve *curve)
{
    struct place place = inside(gpu, ".%s", key);
    bool done = false;

    if (!json)
        done = set_constant(curve, otherwise);
    else if (json_is_number(json))
        done = set_constant(curve, json_number_value(json));
    else if (json_is_array(json))
        done = set_points(curve, &place, json);
    else if (json_is_object(json))
        done = set_shape(curve, &place, json);
    else
        refuse(&place, "is a number, a list of points or an object");

    for (size_t i = 0; done && i < curve->count; i++) {
        if (curve->points[i].value < lowest)
            return refuse(&place, "%g is below %g", curve->points[i].value, lowest);
    }
    return done;
}

static bool parse_energy(const struct place *gpu, json_t *json, struct fake_energy *energy)
{
    static const char *const modes[] = {
        [FAKE_ENERGY_COUNTER] = "counter",
        [FAKE_ENERGY_ABSENT] = "absent",
        [FAKE_ENERGY_STUCK] = "stuck",
    };
    struct place place = inside(gpu, ".energy");
    const char *mode = "counter";
    double period_ms = 0;

    *energy = (struct fake_energy) { .reset_at = -1 };
    if (!json)
        return true;
    if (!unpack(&place, json, "{s?s, s?F, s?F, s?F, s?F !}", "mode", &mode, "start",
                &energy->start, "wrap", &energy->wrap, "reset_at", &energy->reset_at,
                "period_ms", &period_ms))
        return false;
    if (energy->start < 0 || energy->wrap < 0 || period_ms < 0)
        return refuse(&place, "start, wrap and period_ms are not below 0");
    energy->period = period_ms / 1e3;

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(mode, modes[i]) == 0) {
            energy->mode = (enum fake_energy_mode)i;
            return true;
        }
    }
    return refuse(&place, "mode '%s' is none of counter, absent, stuck", mode);
}

static bool parse_process(const struct place *place, json_t *json,
                          struct fake_process *process)
{
    json_t *memory = NULL;
    json_int_t pid = 0;

    process->tree = true;
    if (!json_is_string(json) || strcmp(json_string_value(json), "tree") != 0) {
        process->tree = json_object_get(json, "tree_of") != NULL;
        if (!unpack(place, json, "{sI, s?o !}", process->tree ? "tree_of" : "pid", &pid,
                    "memory", &memory))
            return false;
    }
    if (pid < 0 || pid > UINT32_MAX)
        return refuse(place, "pids are 0 to %u", UINT32_MAX);

    process->pid = (pid_t)(uint32_t)pid;
    if (process->tree && pid == 0) {
        /* The process that loaded us is a tracker, and its child the launcher
         * that it starts a command from; neither of them computes. */
        process->pid = getpid();
        process->from_depth = 2;
    }

    if (json_is_null(memory))
        process->memory = FAKE_MEMORY_UNKNOWN;
    else if (json_is_number(memory))
        process->memory = FAKE_MEMORY_GIVEN;
    else if (memory)
        return refuse(place, "memory is a number of bytes or null");
    process->memory_bytes = json_number_value(memory);
    return process->memory_bytes >= 0 || refuse(place, "memory is below 0");
}

/* A single entry needs no list around it. */
static bool parse_processes(const struct place *gpu, json_t *json,
                            struct nvmlDevice_st *device)
{
    size_t count = json_is_array(json) ? json_array_size(json) : 1;

    if (!json || count == 0)
        return true;
    device->processes = calloc(count, sizeof(*device->processes));
    if (!device->processes)
        return false;

    for (size_t i = 0; i < count; i++) {
        struct place place = inside(gpu, ".processes[%zu]", i);
        json_t *entry = json_is_array(json) ? json_array_get(json, i) : json;

        if (!parse_process(&place, entry, &device->processes[i]))
            return false;
        device->process_count++;
    }
    return true;
}

static bool parse_gpu(const struct place *place, json_t *json, unsigned index,
                      struct nvmlDevice_st *gpu)
{
    const char *name = "SIMULATED H100", *uuid = NULL;
    char default_uuid[64];
    json_t *memory_used = NULL, *utilization = NULL, *temperature = NULL, *power = NULL;
    json_t *energy = NULL, *processes = NULL;
    int count = 1, process_entry = 24;
    double power_period_ms = 0;

    gpu->index = index;
    gpu->memory_total = 80.0 * (1 << 30);
    gpu->memory_reserved = 512.0 * (1 << 20);
    gpu->power_limit = 700;
    gpu->lost_at = -1;
    snprintf(default_uuid, sizeof(default_uuid), "GPU-%08x-51a1-4ed0-8000-000000000000",
             index);

    if (!unpack(
            place, json,
            "{s?i, s?s, s?s, s?F, s?F, s?o, s?o, s?o, s?o, s?F, s?F, s?o, s?o, s?i, s?F !}",
            "count", &count, "name", &name, "uuid", &uuid, "memory_total",
            &gpu->memory_total, "memory_reserved", &gpu->memory_reserved, "memory_used",
            &memory_used, "utilization", &utilization, "temperature", &temperature, "power",
            &power, "power_period_ms", &power_period_ms, "power_limit", &gpu->power_limit,
            "energy", &energy, "processes", &processes, "process_entry", &process_entry,
            "lost_at", &gpu->lost_at))
        return false;
    if (count != 1 && uuid)
        return refuse(place, "%d GPUs cannot share one uuid", count);
    if (process_entry != 16 && process_entry != 24 && process_entry != 32)
        return refuse(place, "process_entry is none of 16, 24, 32");
    if (gpu->memory_total < 0 || gpu->memory_reserved < 0 || gpu->power_limit < 0 ||
        power_period_ms < 0)
        return refuse(place, "memory, power_limit and power_period_ms are not below 0");
    gpu->power_period = power_period_ms / 1e3;
    gpu->process_entry = (unsigned)process_entry;

    return copy_text(place, gpu->name, sizeof(gpu->name), name) &&
           copy_text(place, gpu->uuid, sizeof(gpu->uuid), uuid ? uuid : default_uuid) &&
           parse_curve(place, "memory_used", memory_used, 2.0 * (1 << 30), 0,
                       &gpu->memory_used) &&
           parse_curve(place, "utilization", utilization, 0.5, 0, &gpu->utilization) &&
           parse_curve(place, "temperature", temperature, 45, -273, &gpu->temperature) &&
           parse_curve(place, "power", power, 250, 0, &gpu->power) &&
           parse_energy(place, energy, &gpu->energy) &&
           parse_processes(place, processes, gpu);
}

/* How many GPUs one entry stands for. */
static size_t count_of(json_t *json)
{
    json_int_t count = 1;

    json_unpack(json, "{s?I}", "count", &count);
    return count < 0 || count > GPUS_MAX ? GPUS_MAX + 1 : (size_t)count;
}

static bool parse_gpus(struct fake_scenario *scenario, const struct place *root,
                       json_t *json)
{
    struct place list = inside(root, "gpus");
    size_t total = 0;

    if (!json_is_array(json))
        return refuse(&list, "is a list of objects");
    for (size_t i = 0; i < json_array_size(json); i++)
        total += count_of(json_array_get(json, i));
    if (total > GPUS_MAX)
        return refuse(&list, "count is below 0, or all of them above %d", GPUS_MAX);
    scenario->gpus = calloc(total + 1, sizeof(*scenario->gpus));
    if (!scenario->gpus)
        return false;

    for (size_t i = 0; i < json_array_size(json); i++) {
        struct place place = inside(&list, "[%zu]", i);
        json_t *entry = json_array_get(json, i);

        for (size_t n = count_of(entry); n > 0; n--) {
            unsigned index = (unsigned)scenario->gpu_count++;
            if (!parse_gpu(&place, entry, index, &scenario->gpus[index]))
                return false;
        }
    }
    return true;
}

static bool parse_error(const struct place *place, json_t *json, int *ret_code)
{
    *ret_code = (int)json_integer_value(json);
    if (!json || json_is_integer(json))
        return true;
    if (!json_is_string(json))
        return refuse(place, "error is a number or a name such as NOT_SUPPORTED");

    for (size_t i = 0; i < ERROR_COUNT; i++) {
        if (strcmp(json_string_value(json), errors[i].name) == 0) {
            *ret_code = errors[i].code;
            return true;
        }
    }
    return refuse(place, "there is no error called %s", json_string_value(json));
}

static bool parse_fault(const struct place *place, json_t *json, struct fake_fault *fault)
{
    const char *call = NULL;
    json_t *error = NULL;

    *fault = (struct fake_fault) { .gpu = -1, .to = INFINITY };
    if (!unpack(place, json, "{ss, s?i, s?F, s?F, s?o, s?F !}", "call", &call, "gpu",
                &fault->gpu, "from", &fault->from, "to", &fault->to, "error", &error,
                "delay_ms", &fault->delay_ms))
        return false;
    if (!error && fault->delay_ms <= 0)
        return refuse(place, "has neither an error nor a delay_ms");
    return copy_text(place, fault->call, sizeof(fault->call), call) &&
           parse_error(place, error, &fault->error);
}

static bool parse_faults(struct fake_scenario *scenario, const struct place *root,
                         json_t *json)
{
    struct place list = inside(root, "faults");

    if (!json)
        return true;
    if (!json_is_array(json))
        return refuse(&list, "is a list of objects");
    scenario->faults = calloc(json_array_size(json) + 1, sizeof(*scenario->faults));
    if (!scenario->faults)
        return false;

    for (size_t i = 0; i < json_array_size(json); i++) {
        struct place place = inside(&list, "[%zu]", i);
        if (!parse_fault(&place, json_array_get(json, i), &scenario->faults[i]))
            return false;
        scenario->fault_count++;
    }
    return true;
}

static bool parse_scenario(struct fake_scenario *scenario, const struct place *root,
                           json_t *json)
{
    const char *driver = "550.54.15", *nvml = "12.550.54.15";
    json_t *gpus = NULL, *faults = NULL;
    json_int_t start_ns = 0;
    struct timespec now;

    scenario->cuda_version = 12040;
    if (!unpack(root, json, "{s?s, s?s, s?i, s?I, so, s?o !}", "driver_version", &driver,
                "nvml_version", &nvml, "cuda_version", &scenario->cuda_version,
                "start_monotonic_ns", &start_ns, "gpus", &gpus, "faults", &faults))
        return false;

    clock_gettime(CLOCK_MONOTONIC, &now);
    scenario->start_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (start_ns > 0)
        scenario->start_ns = start_ns;
    return copy_text(root, scenario->driver_version, sizeof(scenario->driver_version),
                     driver) &&
           copy_text(root, scenario->nvml_version, sizeof(scenario->nvml_version), nvml) &&
           parse_gpus(scenario, root, gpus) && parse_faults(scenario, root, faults);
}

struct fake_scenario *fake_scenario_load(const char *path)
{
    struct fake_scenario *scenario = calloc(1, sizeof(*scenario));
    struct place root = { .file = path ? path : "built-in scenario" };
    json_error_t error = { 0 };
    bool done = false;

    json_t *json = path ? json_load_file(path, JSON_REJECT_DUPLICATES, &error)
                        : json_loads("{\"gpus\": [{}]}", 0, &error);
    if (!json) {
        struct place line = inside(&root, "line %d, column %d", error.line, error.column);
        refuse(&line, "%s", error.text);
    } else if (scenario) {
        done = parse_scenario(scenario, &root, json);
    }
    json_decref(json);

    if (!done) {
        fake_scenario_free(scenario);
        return NULL;
    }
    return scenario;
}

static void free_gpu(struct nvmlDevice_st *gpu)
{
    free(gpu->memory_used.points);
    free(gpu->utilization.points);
    free(gpu->temperature.points);
    free(gpu->power.points);
    free(gpu->processes);
}

void fake_scenario_free(struct fake_scenario *scenario)
{
    if (!scenario)
        return;
    for (size_t i = 0; i < scenario->gpu_count; i++)
        free_gpu(&scenario->gpus[i]);
    free(scenario->gpus);
    free(scenario->faults);
    free(scenario);
}
