/* SPDX-License-Identifier: Apache-2.0 */
/* record_experiment.c - targets, names and model cards of experiments. */
#include "record/record_experiment.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "record/record_ops.h"

#define MOST_OF_A_MODEL 1e30

const char *wm_run_note(const struct wm_run *run, const char *key)
{
    for (size_t i = 0; i < run->note_count; i++) {
        if (run->notes[i].key && strcmp(run->notes[i].key, key) == 0)
            return run->notes[i].value;
    }
    return NULL;
}

double wm_run_batch(const struct wm_run *run)
{
    const char *batch = wm_run_note(run, "repeat.batch");

    return batch ? fmax(strtod(batch, NULL), 1) : 1;
}

static int wrong_name(const char *why, struct wm_error *err)
{
    return wm_fail(err, WM_EINVAL, "the name of an experiment %s", why);
}

int wm_experiment_check_name(const char *name, struct wm_error *err)
{
    char valid[4 * WM_EXPERIMENT_NAME_MAX];
    size_t length = strlen(name);

    if (length == 0 || length > WM_EXPERIMENT_NAME_MAX)
        return wrong_name("has 1 to 100 bytes", err);
    if (name[0] == '.' || name[0] == '-')
        return wrong_name("begins with neither '.' nor '-'", err);
    wm_text_utf8(valid, sizeof(valid), name, length);
    if (strcmp(valid, name) != 0)
        return wrong_name("is valid UTF-8", err);
    for (const unsigned char *at = (const unsigned char *)name; *at; at++) {
        if (*at == '/' || *at < 0x20 || *at == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0))
            return wrong_name("has neither '/' nor control characters in it", err);
    }
    return WM_OK;
}

bool wm_experiment_is_folder(const char *target)
{
    size_t length = strlen(target);
    struct stat info;

    if (wm_url_is_postgres(target))
        return false;
    return (length > 0 && target[length - 1] == '/') ||
           (length > 5 && strcmp(target + length - 5, ".aipm") == 0) ||
           (stat(target, &info) == 0 && S_ISDIR(info.st_mode));
}

/* NULL when out of memory. */
static char *recording_of(const char *target, const char *name)
{
    char *path;

    if (!wm_experiment_is_folder(target))
        return strdup(target);
    /* With the '/', which says that this one is a folder too. */
    return asprintf(&path, "%s/%s/", target, name) < 0 ? NULL : path;
}

int wm_experiment_make_place(const char *target, const char *name, char **ret_path,
                             struct wm_error *err)
{
    const struct wm_recorder_ops *ops = NULL;

    int status = wm_experiment_check_name(name, err);
    if (status < 0)
        return status;
    char *path = recording_of(target, name);
    status = path ? wm_recorder_format(path, false, &ops, err)
                  : wm_fail_memory(err, "experiment");
    if (status == WM_OK && !ops->can_append)
        status = wm_fail(err, WM_EINVAL,
                         "%s: a file of this format holds one run; experiments are kept in "
                         ".sqlite, in a folder (FOLDER/), or in postgresql://...",
                         wm_text_path(target));
    if (status == WM_OK && wm_experiment_is_folder(target) && mkdir(target, 0777) < 0 &&
        errno != EEXIST)
        status = wm_fail_errno(err, wm_text_path(target));
    if (status < 0)
        free(path);
    else
        *ret_path = path;
    return status;
}

/* The first of the names that is there: ours, then that of torchinfo, whose summaries
 * AIPowerMeter kept. 0: none is; -1: it is no such number. */
static double number_of(const json_t *card, const char *name, const char *other)
{
    const json_t *value = json_object_get(card, name);

    if (!value)
        value = json_object_get(card, other);
    if (!value || json_is_null(value))
        return 0;
    double number = json_number_value(value);
    return json_is_number(value) && number > 0 && number < MOST_OF_A_MODEL ? number : -1;
}

static bool is_size(const json_t *value)
{
    if (json_is_number(value))
        return json_number_value(value) > 0;
    if (!json_is_array(value))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!is_size(json_array_get(value, i)))
            return false;
    }
    return json_array_size(value) > 0;
}

static const char *wrong_member(const json_t *card)
{
    const json_t *size = json_object_get(card, "input_size");

    if (number_of(card, "parameters", "total_params") < 0)
        return "parameters";
    if (number_of(card, "macs", "total_mult_adds") < 0)
        return "macs";
    if (number_of(card, "flops", "") < 0)
        return "flops";
    if (number_of(card, "passes", "") < 0)
        return "passes";
    if (size && !json_is_null(size) && !is_size(size))
        return "input_size";
    return NULL;
}

int wm_model_card_load(const char *path, char **ret_text, struct wm_error *err)
{
    const char *shown = wm_text_path(path), *wrong;
    json_error_t error;
    char *text = NULL;
    size_t length = 0;

    int status = wm_file_slurp(path, WM_MODEL_CARD_MAX, &text, &length, err);
    if (status < 0)
        return status;
    json_t *card = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!card)
        return wm_fail(err, WM_EFORMAT, "%s: line %d: not JSON: %.100s", shown, error.line,
                       error.text);
    wrong = wrong_member(card);
    text = json_dumps(card, JSON_COMPACT);
    if (!json_is_object(card))
        status = wm_fail(err, WM_EFORMAT, "%s: not a JSON object", shown);
    else if (wrong)
        status = wm_fail(err, WM_EFORMAT, "%s: '%s' is not %s", shown, wrong,
                         strcmp(wrong, "input_size") == 0 ? "a list of sizes"
                                                          : "a number above 0");
    else if (!text)
        status = wm_fail_memory(err, shown);
    json_decref(card);
    if (status < 0)
        free(text);
    else
        *ret_text = text;
    return status;
}

struct wm_model_card wm_model_card_read(const char *text)
{
    json_t *object = json_loads(text, 0, NULL);
    double flops = number_of(object, "flops", "");
    double macs = number_of(object, "macs", "total_mult_adds");
    double passes = number_of(object, "passes", "");
    const struct wm_model_card card = {
        .parameters = fmax(number_of(object, "parameters", "total_params"), 0),
        .flops = flops > 0 ? flops : fmax(2 * macs, 0),
        .passes = passes > 0 ? passes : 1,
    };

    json_decref(object);
    return card;
}
