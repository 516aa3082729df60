/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_gpu_tracker_report.c - a report in gpu_tracker's layouts, and the warnings that
 * gpu_tracker has no place for in them.
 *
 * The first objects of our JSON report have its structure and names already. Here its
 * numbers get gpu_tracker's types, and its keys get labels.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_array.h"
#include "base/base_text.h"
#include "base/text/base_json.h"
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"

/* Of numbers in the text. */
#define DECIMALS 3

/* From here on a double has no such decimals any more. */
#define MOST_DECIMAL 1e12

static const struct part {
    const char *key;
    bool is_of_gpus;
} parts[] = {
    { "max_ram", false },        { "max_gpu_ram", true },   { "cpu_utilization", false },
    { "gpu_utilization", true }, { "compute_time", false },
};

static const struct label {
    const char *key, *label;
    bool is_count; /* a whole number */
} labels[] = {
    { "max_ram", "Max RAM", false },
    { "unit", "Unit", false },
    { "system_capacity", "System capacity", false },
    { "system", "System", false },
    { "main", "Main", false },
    { "total_rss", "Total RSS", false },
    { "private_rss", "Private RSS", false },
    { "shared_rss", "Shared RSS", false },
    { "descendants", "Descendants", false },
    { "combined", "Combined", false },
    { "max_gpu_ram", "Max GPU RAM", false },
    { "cpu_utilization", "CPU utilization", false },
    { "system_core_count", "System core count", true },
    { "n_expected_cores", "Number of expected cores", true },
    { "max_sum_percent", "Max sum percent", false },
    { "max_hardware_percent", "Max hardware percent", false },
    { "mean_sum_percent", "Mean sum percent", false },
    { "mean_hardware_percent", "Mean hardware percent", false },
    { "main_n_threads", "Main number of threads", true },
    { "descendants_n_threads", "Descendants number of threads", true },
    { "combined_n_threads", "Combined number of threads", true },
    { "gpu_utilization", "GPU utilization", false },
    { "system_gpu_count", "System GPU count", true },
    { "n_expected_gpus", "Number of expected GPUs", true },
    { "gpu_percentages", "GPU percentages", false },
    { "compute_time", "Compute time", false },
    { "time", "Time", false },
};

static const struct label *find_label(const char *key)
{
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
        if (strcmp(labels[i].key, key) == 0)
            return &labels[i];
    }
    return NULL;
}

/* What is not known stays so, but that no GPU is there is known. */
static json_t *convert_leaf(const struct label *label, json_t *value, bool is_nothing)
{
    if (json_is_null(value) && is_nothing)
        return json_real(0);
    if (!json_is_number(value) || label->is_count)
        return json_incref(value);
    return json_real(json_number_value(value));
}

/* A new object; NULL when out of memory. */
static json_t *convert(json_t *object, bool is_nothing)
{
    json_t *converted = json_object(), *value;
    const char *key;

    json_object_foreach(object, key, value)
    {
        const struct label *label = find_label(key);
        if (!label)
            continue; /* of ours alone */
        json_t *own = json_is_object(value) ? convert(value, is_nothing)
                                            : convert_leaf(label, value, is_nothing);
        wm_json_set(&converted, key, own);
    }
    return converted;
}

/* In gpu_tracker's structure, from which its text is made as well. NULL when out of
 * memory. */
static json_t *make(const struct wm_report *report, const struct wm_units *units)
{
    static const struct wm_unit gigabytes = { "gigabytes", "GB", 1e9 };
    static const struct wm_unit hours = { "hours", "h", 3600 };
    const struct wm_units chosen = {
        .ram = units->ram ? units->ram : &gigabytes,
        .gpu_ram = units->gpu_ram ? units->gpu_ram : &gigabytes,
        .time = units->time ? units->time : &hours,
    };
    bool without_gpus = !wm_run_may_have_gpus(&report->run);
    json_t *ours = wm_view_json_usage(report, &chosen), *root = ours ? json_object() : NULL;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        wm_json_set(&root, parts[i].key,
                    convert(json_object_get(ours, parts[i].key),
                            parts[i].is_of_gpus && without_gpus));
    json_decref(ours);
    return root;
}

int wm_gpu_tracker_report_json(const struct wm_report *report, const struct wm_units *units,
                               FILE *out, struct wm_error *err)
{
    return wm_gpu_tracker_json(make(report, units), out, err);
}

/* Three decimals, less the zeros at their end, of which one stays, as Python prints a
 * rounded float. */
static void print_real(double value, FILE *out)
{
    char exact[WM_PYTHON_NUMBER_SIZE];

    if (fabs(value) >= MOST_DECIMAL) {
        wm_python_number(exact, value);
        fputs(exact, out);
        return;
    }
    const struct wm_quantity text = wm_view_fixed(value, DECIMALS);
    size_t length = strlen(text.text);
    for (int i = 1; i < DECIMALS && text.text[length - 1] == '0'; i++)
        length--;
    fwrite(text.text, 1, length, out);
}

static void print_leaf(json_t *value, FILE *out)
{
    if (json_is_string(value))
        fputs(json_string_value(value), out);
    else if (json_is_integer(value))
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        print_real(json_real_value(value), out);
    else
        fputs("n/a", out);
}

/* Each line but the very first begins with a line end. */
static void print_text(json_t *object, int indent, FILE *out)
{
    bool is_first = indent == 0;
    json_t *value;
    const char *key;

    json_object_foreach(object, key, value)
    {
        fprintf(out, "%s%*s%s:", is_first ? "" : "\n", indent, "", find_label(key)->label);
        is_first = false;
        if (json_is_object(value)) {
            print_text(value, indent + 3, out);
        } else {
            fputc(' ', out);
            print_leaf(value, out);
        }
    }
}

int wm_gpu_tracker_report_text(const struct wm_report *report, const struct wm_units *units,
                               FILE *out, struct wm_error *err)
{
    json_t *root = make(report, units);

    if (!root)
        return wm_fail_memory(err, NULL);
    print_text(root, 0, out);
    json_decref(root);
    return WM_OK;
}

/* Whether the report has this figure, and the figure has a reason. Intervals are ours
 * alone. */
static bool has_reason(const struct wm_report *report,
                       const struct wm_report_figure *figure)
{
    const char *path = figure->path;

    if (!path || !figure->why || wm_text_ends(path, "_low") || wm_text_ends(path, "_high"))
        return false;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t length = strlen(parts[i].key);
        if (strncmp(path, parts[i].key, length) == 0 && path[length] == '.')
            return !parts[i].is_of_gpus || wm_run_may_have_gpus(&report->run);
    }
    return false;
}

/* One line for each reason, at the first figure that has it. */
static void print_reason(const struct wm_report_figure *figures, size_t count, size_t index,
                         FILE *out)
{
    const struct wm_report_figure *figure = &figures[index];
    bool is_missing = figure->state == WM_REPORT_MISSING;
    size_t more = 0;

    for (size_t i = 0; i < count; i++) {
        bool is_same =
            figures[i].state == figure->state && strcmp(figures[i].why, figure->why) == 0;
        if (is_same && i < index)
            return;
        more += is_same && i > index;
    }
    fputs(figure->path, out);
    if (more > 0)
        fprintf(out, " and %zu more", more);
    fprintf(out, " %s: %s\n",
            !is_missing ? "may have been more"
            : more > 0  ? "are not known"
                        : "is not known",
            figure->why);
}

static int print_reasons(const struct wm_report *report, FILE *out, struct wm_error *err)
{
    struct wm_report_figure figure, *found = NULL;
    size_t count = 0, room = 0;
    int status = WM_OK;

    for (size_t i = 0; wm_report_figure_at(report, NULL, i, &figure) == WM_OK; i++) {
        if (!has_reason(report, &figure))
            continue;
        if (wm_array_reserve(&found, count, &room, sizeof(*found)) < 0) {
            status = wm_fail_memory(err, NULL);
            break;
        }
        found[count++] = figure;
    }
    for (size_t i = 0; i < count && status == WM_OK; i++)
        print_reason(found, count, i, out);
    free(found);
    return status;
}

static void print_simulated(const struct wm_report *report, FILE *out)
{
    size_t count = wm_report_count(report, WM_REPORT_GPU), simulated = 0;
    struct wm_report_device gpu;

    for (size_t i = 0; i < count; i++)
        simulated += wm_report_device(report, WM_REPORT_GPU, i, &gpu) == WM_OK &&
                     gpu.origin == WM_SIMULATED;
    if (simulated > 0)
        fprintf(out,
                "The GPU numbers are SIMULATED: the driver says of %zu of %zu GPUs that "
                "they are not real.\n",
                simulated, count);
}

static int print_warnings(const struct wm_report *report, const struct wm_units *units,
                          FILE *out, struct wm_error *err)
{
    const char *note;

    print_simulated(report, out);
    if (units->verbosity == 0)
        return WM_OK;
    int status = print_reasons(report, out, err);
    /* Its report has no energy. */
    for (size_t i = 0;
         (note = wm_report_text(report, WM_REPORT_OTHER_NOTES, i, NULL)) != NULL; i++)
        fprintf(out, "%s\n", note);
    return status;
}

const struct wm_print_format wm_gpu_tracker_print_warnings = { .report = print_warnings };
