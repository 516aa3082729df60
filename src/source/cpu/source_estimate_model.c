/* SPDX-License-Identifier: Apache-2.0 */
/* source_estimate_model.c - the choice of a model, and its integral over time. */
#include "source/cpu/source_estimate_model.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "base/text/base_number.h"
#include "source/cpu/source_rapl_total.h"

#define WINDOW_S 0.5

/* Kernels count the time of a CPU late: a clock tick as a rule, up to a second
 * where CPUs are left alone (nohz_full). */
#define LATE_S 1.0

/* No machine comes near. */
#define MOST_WATTS 100e3

/* A package that is limited to less or more is not what we take it for. */
#define LEAST_LIMIT_WATTS 1.0
#define MOST_LIMIT_WATTS 2000.0

static const double loads[WM_CPU_LOADS] = { 0, 0.1, 0.5, 1 };

/* What CPUs draw of their limit at those loads: "Building an AWS EC2 Carbon Emissions
 * Dataset", Benjamin Davy, Teads, 2021, measured by RAPL under stress-ng. */
static const double teads[WM_CPU_LOADS] = { 0.12, 0.32, 0.75, 1.02 };

static void set_line(struct wm_cpu_model *model, double idle_watts, double max_watts)
{
    for (size_t i = 0; i < WM_CPU_LOADS; i++)
        model->watts[i] = idle_watts + (max_watts - idle_watts) * loads[i];
}

static int choose_given(const char *text, struct wm_cpu_model *model, struct wm_error *err)
{
    const char *colon = strchr(text, ':');
    double idle, max;

    if (!colon || !wm_number_parse(text, (size_t)(colon - text), &idle) ||
        !wm_number_parse(colon + 1, strlen(colon + 1), &max))
        return wm_fail(err, WM_EINVAL,
                       "'%.40s' is not IDLE:MAX, the watts of the CPU at rest and when "
                       "busy: 10:65",
                       text);
    if (idle < 0 || max <= 0 || max > MOST_WATTS)
        return wm_fail(err, WM_EINVAL,
                       "'%.40s': the CPU's watts are more than 0 and at most %.0f", text,
                       MOST_WATTS);
    if (idle > max)
        return wm_fail(err, WM_EINVAL, "'%.40s': the CPU draws more at rest than when busy",
                       text);
    set_line(model, idle, max);
    snprintf(model->text, sizeof(model->text), "%.5g to %.5g W by load, as given", idle,
             max);
    return WM_OK;
}

static bool read_line(int dir, const char *zone, const char *name, char *line, size_t size)
{
    char path[300];

    return (size_t)snprintf(path, sizeof(path), "%s/%s", zone, name) < sizeof(path) &&
           wm_file_read_line(dir, path, line, size);
}

static bool read_watts(int dir, const char *zone, const char *name, double *ret_watts)
{
    char line[64];
    const char *end;
    uint64_t microwatts;

    if (!read_line(dir, zone, name, line, sizeof(line)) ||
        !wm_text_u64(line, &end, &microwatts) || *end != '\0')
        return false;
    *ret_watts = (double)microwatts / 1e6;
    return *ret_watts >= LEAST_LIMIT_WATTS && *ret_watts <= MOST_LIMIT_WATTS;
}

/* The limit of a package in the long run, which everybody may read, unlike its
 * counter. As made (max_power) if it is told, else as set. */
static bool read_limit(int dir, const char *zone, double *ret_watts)
{
    char name[64];

    return read_line(dir, zone, "constraint_0_name", name, sizeof(name)) &&
           strcmp(name, "long_term") == 0 &&
           (read_watts(dir, zone, "constraint_0_max_power_uw", ret_watts) ||
            read_watts(dir, zone, "constraint_0_power_limit_uw", ret_watts));
}

/* The zone of a package: "intel-rapl:1", whose name is "package-1". Its parts have
 * another colon, and "intel-rapl-mmio:0" is the same package again. */
static bool is_package(int dir, const char *zone)
{
    static const char prefix[] = "intel-rapl:";
    char name[64];

    return strncmp(zone, prefix, strlen(prefix)) == 0 &&
           !strchr(zone + strlen(prefix), ':') &&
           read_line(dir, zone, "name", name, sizeof(name)) &&
           strncmp(name, "package-", strlen("package-")) == 0;
}

/* False where there are no packages or where one does not report. */
static bool add_limits(const char *sysfs, double *ret_watts, size_t *ret_count)
{
    char path[512];
    struct dirent *entry;
    double sum = 0, watts;
    size_t count = 0, silent = 0;

    snprintf(path, sizeof(path), "%s/class/powercap", sysfs);
    DIR *folder = opendir(path);
    if (!folder)
        return false;
    while ((entry = readdir(folder)) != NULL) {
        if (!is_package(dirfd(folder), entry->d_name))
            continue;
        count++;
        if (read_limit(dirfd(folder), entry->d_name, &watts))
            sum += watts;
        else
            silent++;
    }
    closedir(folder);
    *ret_watts = sum;
    *ret_count = count;
    return count > 0 && silent == 0;
}

/* A guest may see the limit of a host of which it has a few CPUs only. */
static bool choose_limit(const struct wm_cpu_model_inputs *inputs,
                         struct wm_cpu_model *model)
{
    double watts;
    size_t count;

    if (inputs->cpuinfo.is_guest || !add_limits(inputs->sysfs, &watts, &count))
        return false;
    for (size_t i = 0; i < WM_CPU_LOADS; i++)
        model->watts[i] = watts * teads[i];
    snprintf(model->text, sizeof(model->text),
             "%.5g to %.5g W by load, Teads' curve for a power limit of %.5g W (%zu "
             "package%s)",
             model->watts[0], model->watts[WM_CPU_LOADS - 1], watts, count,
             count == 1 ? "" : "s");
    return true;
}

static void choose_coefficients(const struct wm_cpu_model_inputs *inputs,
                                struct wm_cpu_model *model)
{
    const struct wm_cpu_coefficients *of = wm_cpu_coefficients(&inputs->cpuinfo);
    double count = (double)inputs->cpu_count;

    set_line(model, count * of->idle_watts, count * of->max_watts);
    model->has_memory = true;
    snprintf(model->text, sizeof(model->text),
             "%zu vCPU x %.2f-%.2f W by load, memory included, Cloud Carbon Footprint's "
             "coefficients for %s",
             inputs->cpu_count, of->idle_watts, of->max_watts, of->name);
}

int wm_cpu_model_choose(const struct wm_cpu_model_inputs *inputs,
                        struct wm_cpu_model *ret_model, struct wm_error *err)
{
    struct wm_cpu_model model = { .cpu_count = inputs->cpu_count };

    if (inputs->cpu_watts) {
        int status = choose_given(inputs->cpu_watts, &model, err);
        if (status < 0)
            return status;
    } else if (!choose_limit(inputs, &model)) {
        choose_coefficients(inputs, &model);
    }
    *ret_model = model;
    return WM_OK;
}

double wm_cpu_model_watts(const struct wm_cpu_model *model, double load)
{
    size_t i = 1;

    while (i + 1 < WM_CPU_LOADS && load > loads[i])
        i++;
    double part = (load - loads[i - 1]) / (loads[i] - loads[i - 1]);
    return model->watts[i - 1] + part * (model->watts[i] - model->watts[i - 1]);
}

static void begin_window(struct wm_cpu_estimate *estimate, int64_t when_ns, double busy_s)
{
    estimate->window_ns = when_ns;
    estimate->window_busy_s = busy_s;
    estimate->window_joules = estimate->joules;
}

static void begin(struct wm_cpu_estimate *estimate, int64_t when_ns, double busy_s)
{
    estimate->start_j = wm_total_beginning(estimate->start_j);
    estimate->joules = estimate->start_j;
    estimate->seen_ns = when_ns;
    estimate->seen_joules = estimate->joules;
    estimate->is_lost = false;
    begin_window(estimate, when_ns, busy_s);
}

void wm_cpu_estimate_start(struct wm_cpu_estimate *estimate,
                           const struct wm_cpu_model *model, int64_t when_ns, double busy_s)
{
    *estimate = (struct wm_cpu_estimate) { .model = model };
    begin(estimate, when_ns, busy_s);
}

int wm_cpu_estimate_add(struct wm_cpu_estimate *estimate, int64_t when_ns, double busy_s,
                        size_t cpu_count, double *ret_joules, struct wm_error *err)
{
    double seconds = (double)(when_ns - estimate->window_ns) / (double)WM_NS_PER_S;
    double busy = busy_s - estimate->window_busy_s;
    /* CPUs that came online since the model was chosen add to the time there is. */
    double cpus = fmax((double)cpu_count, (double)estimate->model->cpu_count);
    double room = cpus * fmax(seconds, 0);

    if (busy < -cpus * LATE_S || busy > room + cpus * LATE_S) {
        begin_window(estimate, when_ns, busy_s);
        estimate->is_lost = true;
        return wm_fail(err, WM_EIO,
                       "the CPUs' busy time went from %.2f to %.2f s in %.2f s",
                       busy_s - busy, busy_s, seconds);
    }

    if (estimate->is_lost) {
        begin(estimate, when_ns, busy_s);
        *ret_joules = estimate->joules;
        return WM_OK;
    }

    /* What was counted late is used in the windows that follow. */
    busy = fmin(fmax(busy, 0), room);
    double watts = wm_cpu_model_watts(estimate->model, room > 0 ? busy / room : 0);
    double joules = estimate->window_joules + fmax(seconds, 0) * watts;
    /* A counter never falls, though the busy time may by a clock tick. */
    estimate->joules = fmax(estimate->joules, joules);
    if (seconds >= WINDOW_S)
        begin_window(estimate, when_ns, estimate->window_busy_s + busy);
    estimate->seen_ns = when_ns;
    estimate->seen_joules = estimate->joules;
    *ret_joules = estimate->joules;
    return WM_OK;
}

double wm_cpu_estimate_rest(struct wm_cpu_estimate *estimate, int64_t when_ns)
{
    double seconds = (double)(when_ns - estimate->seen_ns) / (double)WM_NS_PER_S;
    double joules = fmax(seconds, 0) * wm_cpu_model_watts(estimate->model, 0);

    estimate->joules = fmax(estimate->joules, estimate->seen_joules + joules);
    return estimate->joules;
}
