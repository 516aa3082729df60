/* SPDX-License-Identifier: Apache-2.0 */
/* view_repeat_json.c - repeated commands for programs: the structure of hyperfine's export,
 * so that what reads that reads this, with more in it. */
#include <math.h>
#include <string.h>

#include "base/text/base_json.h"
#include "record/record_channel.h"
#include "view/view.h"

static json_t *numbers_json(const double *numbers, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        wm_json_add(&array, json_real(numbers[i]));
    return array;
}

static json_t *codes_json(const struct wm_repeat_one *one)
{
    json_t *array = json_array();

    for (size_t i = 0; i < one->time_count; i++)
        wm_json_add(&array, json_integer(one->exit_codes[i]));
    return array;
}

/* Of each sample; null where it is not known. */
static json_t *values_json(const struct wm_repeat_one *one, enum wm_repeat_metric metric)
{
    json_t *array = json_array();

    for (size_t i = 0; i < one->sample_count; i++) {
        struct wm_known value = one->samples[i].values[metric];
        wm_json_add(&array, wm_json_known(value.known, value.number));
    }
    return array;
}

static json_t *parameters_json(const struct wm_repeat_one *one)
{
    json_t *object = json_object();

    for (size_t i = 0; one->parameters[i]; i += 2)
        wm_json_set(&object, one->parameters[i], wm_text_json(one->parameters[i + 1]));
    return object;
}

static void put(json_t **object, const char *key, const char *suffix, json_t *value)
{
    char name[64];

    snprintf(name, sizeof(name), "%s%s", key, suffix);
    wm_json_set(object, name, value);
}

/* "energy_mean" and so on; hyperfine's own keys are those of the time. */
static void put_metric(json_t **object, const struct wm_repeat_one *one,
                       enum wm_repeat_metric metric)
{
    const struct wm_repeat_summary sum = wm_repeat_summary(one, metric);
    const char *key = wm_repeat_kind(metric)->key;
    bool is_known = sum.of.count > 0;

    put(object, key, "_low", wm_json_known(sum.has_interval, sum.low));
    put(object, key, "_high", wm_json_known(sum.has_interval, sum.high));
    if (metric == WM_REPEAT_TIME)
        return;
    put(object, key, "_mean", wm_json_known(is_known, sum.of.mean));
    put(object, key, "_stddev", wm_json_known(sum.of.count > 1, sum.of.std));
    put(object, key, "_median", wm_json_known(is_known, sum.of.median));
    put(object, key, "_min", wm_json_known(is_known, sum.of.min));
    put(object, key, "_max", wm_json_known(is_known, sum.of.max));
    put(object, key, "_values", values_json(one, metric));
    if (is_known && one->origin[metric] != WM_MEASURED)
        put(object, key, "_origin",
            json_string(wm_word(WM_WORDS_ORIGIN, (int)one->origin[metric])));
    if (!is_known && one->why[metric])
        put(object, key, "_why", json_string(one->why[metric]));
}

static json_t *memory_json(const struct wm_repeat_one *one)
{
    json_t *array = json_array();

    for (size_t i = 0; i < one->sample_count; i++) {
        struct wm_known value = one->samples[i].values[WM_REPEAT_MEMORY];
        wm_json_add(&array,
                    value.known ? json_integer((json_int_t)value.number) : json_null());
    }
    return array;
}

static json_t *result_json(const struct wm_repeat *repeat, const struct wm_repeat_one *one)
{
    const struct wm_repeat_summary time = wm_repeat_summary(one, WM_REPEAT_TIME);
    const struct wm_repeat_summary user = wm_repeat_summary(one, WM_REPEAT_USER);
    const struct wm_repeat_summary system = wm_repeat_summary(one, WM_REPEAT_SYSTEM);
    json_t *object = json_object();

    wm_json_set(&object, "command", wm_text_json(one->name));
    wm_json_set(&object, "mean", json_real(time.of.mean));
    wm_json_set(&object, "stddev", wm_json_known(time.of.count > 1, time.of.std));
    wm_json_set(&object, "median", json_real(time.of.median));
    wm_json_set(&object, "user", wm_json_known(user.of.count > 0, user.of.mean));
    wm_json_set(&object, "system", wm_json_known(system.of.count > 0, system.of.mean));
    wm_json_set(&object, "min", json_real(time.of.min));
    wm_json_set(&object, "max", json_real(time.of.max));
    wm_json_set(&object, "times", numbers_json(one->times, one->time_count));
    wm_json_set(&object, "memory_usage_byte", memory_json(one));
    wm_json_set(&object, "exit_codes", codes_json(one));
    if (one->parameters[0])
        wm_json_set(&object, "parameters", parameters_json(one));
    wm_json_set(&object, "command_line", wm_text_json(one->command));
    wm_json_set(&object, "repeats", json_integer((json_int_t)one->sample_count));
    wm_json_set(&object, "runs_per_repeat", json_integer((json_int_t)wm_repeat_runs(one)));
    for (enum wm_repeat_metric m = 0; m < WM_REPEAT_METRICS; m++) {
        if (!wm_repeat_is_left_out(repeat, m))
            put_metric(&object, one, m);
    }
    return object;
}

static json_t *ratio_json(const struct wm_runs_ratio *ratio, const char *metric)
{
    bool is_tested = ratio->verdict != WM_RUNS_NOT_TESTED;
    json_t *object = json_object();

    wm_json_set(&object, "metric", json_string(metric));
    wm_json_set(&object, "ratio",
                wm_json_known(ratio->ratio > 0 && isfinite(ratio->ratio), ratio->ratio));
    wm_json_set(&object, "low",
                wm_json_known(is_tested && isfinite(ratio->low), ratio->low));
    wm_json_set(&object, "high",
                wm_json_known(is_tested && isfinite(ratio->high), ratio->high));
    wm_json_set(&object, "pairs", json_integer((json_int_t)ratio->count));
    wm_json_set(&object, "verdict", json_string(wm_runs_verdicts[ratio->verdict]));
    return object;
}

static json_t *comparisons_json(const struct wm_repeat *repeat)
{
    json_t *array = json_array();

    for (size_t i = 0; i < repeat->count; i++) {
        for (enum wm_repeat_metric m = 0; m < WM_REPEAT_METRICS; m++) {
            const struct wm_repeat_kind *kind = wm_repeat_kind(m);
            struct wm_runs_ratio ratio = wm_repeat_ratio(repeat, i, m);
            if (i == repeat->options.reference || !wm_repeat_is_compared(m))
                continue;
            enum wm_origin origin = wm_repeat_ratio_origin(repeat, i, m);
            json_t *object = ratio_json(&ratio, kind->key);
            if (origin != WM_MEASURED)
                wm_json_set(&object, "origin",
                            json_string(wm_word(WM_WORDS_ORIGIN, (int)origin)));
            wm_json_set(&object, "command", wm_text_json(repeat->commands[i].name));
            wm_json_set(&object, "reference",
                        wm_text_json(repeat->commands[repeat->options.reference].name));
            wm_json_add(&array, object);
        }
    }
    return array;
}

json_t *wm_view_repeat_json(const struct wm_repeat *repeat)
{
    json_t *root = json_object(), *results = json_array(), *notes = json_array();
    const char *note;
    char seed[24], load[WM_REPEAT_NOTE_SIZE];

    for (size_t i = 0; i < repeat->count; i++) {
        if (repeat->commands[i].sample_count > 0)
            wm_json_add(&results, result_json(repeat, &repeat->commands[i]));
    }
    for (size_t i = 0; (note = wm_remarks_get(&repeat->remarks, i)) != NULL; i++)
        wm_json_add(&notes, wm_text_json(note));
    if (wm_repeat_load_note(repeat, load))
        wm_json_add(&notes, json_string(load));
    wm_json_set(&root, "results", results);
    wm_json_set(&root, "comparisons", comparisons_json(repeat));
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)repeat->options.seed);
    wm_json_set(&root, "seed", json_string(seed));
    wm_json_set(&root, "notes", notes);
    return root;
}
