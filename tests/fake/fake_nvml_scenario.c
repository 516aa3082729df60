/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nvml_scenario.c - reads a scenario: its GPUs, and what goes wrong. */
#include "fake_nvml_scenario.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_nvml_json.h"

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

        if (count_of(entry) != 1 && json_object_get(entry, "uuid"))
            return refuse(&place, "several GPUs cannot share one uuid");
        for (size_t n = count_of(entry); n > 0; n--) {
            unsigned index = (unsigned)scenario->gpu_count++;
            if (!fake_gpu_parse(&place, entry, index, &scenario->gpus[index]))
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
    if (!unpack(place, json, "{ss, s?i, s?F, s?F, s?o, s?F, s?F !}", "call", &call, "gpu",
                &fault->gpu, "from", &fault->from, "to", &fault->to, "error", &error,
                "delay_ms", &fault->delay_ms, "cpu_ms", &fault->cpu_ms))
        return false;
    if (!error && fault->delay_ms <= 0 && fault->cpu_ms <= 0)
        return refuse(place, "has neither an error nor a delay_ms nor a cpu_ms");
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

static bool parse_unloaded(struct fake_scenario *scenario, const struct place *root,
                           json_t *json)
{
    struct place place = inside(root, "unloaded");

    if (!json)
        return true;
    if (!unpack(&place, json, "[FF!]", &scenario->unloaded_from, &scenario->unloaded_to))
        return false;
    return scenario->unloaded_from < scenario->unloaded_to ||
           refuse(&place, "ends before it begins");
}

static bool check_order(const struct fake_scenario *scenario, const struct place *root)
{
    for (size_t i = 1; i < scenario->gpu_count; i++) {
        struct place place = inside(root, "gpus, number %zu", i);
        const struct nvmlDevice_st *gpu = &scenario->gpus[i];

        if (gpu->appears_at < gpu[-1].appears_at)
            return refuse(&place, "appears before the one above it");
    }
    return true;
}

static bool parse_scenario(struct fake_scenario *scenario, const struct place *root,
                           json_t *json)
{
    const char *driver = "550.54.15", *nvml = "12.550.54.15", *settings = "";
    json_t *gpus = NULL, *faults = NULL, *unloaded = NULL;
    json_int_t start_ns = 0;
    struct timespec now;

    scenario->cuda_version = 12040;
    if (!unpack(root, json, "{s?s, s?s, s?i, s?I, s?o, so, s?o, s?s !}", "driver_version",
                &driver, "nvml_version", &nvml, "cuda_version", &scenario->cuda_version,
                "start_monotonic_ns", &start_ns, "unloaded", &unloaded, "gpus", &gpus,
                "faults", &faults, "settings", &settings))
        return false;

    clock_gettime(CLOCK_MONOTONIC, &now);
    scenario->start_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    scenario->start_given = start_ns > 0;
    if (scenario->start_given)
        scenario->start_ns = start_ns;
    return copy_text(root, scenario->driver_version, sizeof(scenario->driver_version),
                     driver) &&
           copy_text(root, scenario->nvml_version, sizeof(scenario->nvml_version), nvml) &&
           copy_text(root, scenario->settings, sizeof(scenario->settings), settings) &&
           parse_unloaded(scenario, root, unloaded) && parse_gpus(scenario, root, gpus) &&
           check_order(scenario, root) && parse_faults(scenario, root, faults);
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

void fake_scenario_free(struct fake_scenario *scenario)
{
    if (!scenario)
        return;
    for (size_t i = 0; i < scenario->gpu_count; i++)
        fake_gpu_clear(&scenario->gpus[i]);
    free(scenario->gpus);
    free(scenario->faults);
    free(scenario);
}
