/* SPDX-License-Identifier: Apache-2.0 */
/* compat_gpu_tracker_gpus.c - a tracker as gpu_tracker makes it: what it refuses, and which
 * GPUs it tracks, NVIDIA's where there are some, else AMD's, else those of others; or what
 * its user chose. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_error.h"
#include "base/base_options.h"
#include "base/base_text.h"
#include "base/text/base_number.h"
#include "compat/gpu_tracker/compat_gpu_tracker_print.h"
#include "wattmeter/gpu.h"
#include "wattmeter/tracker.h"

#define LEAST_SLEEP_S 0.1

/* What has been found out. A source that is not asked has WM_ENODEV and no text. */
struct search {
    const struct wm_tracker_options *options;
    FILE *said;
    struct wm_tracker *tracker;
    bool without_gpus;
    struct wm_error nvidia, others, failure;
};

static struct wm_error add(struct wm_tracker *tracker, bool is_wanted, const char *source)
{
    struct wm_error err = { .status = WM_ENODEV };

    if (is_wanted)
        err.status = wm_tracker_add(tracker, source, &err);
    return err;
}

/* A tracker for the machine, and for those of `gpus` (NULL: of all) that these sources
 * have. */
static int make_tracker(struct search *search, const char *gpus, bool nvidia, bool others)
{
    struct wm_tracker_options options = *search->options;

    options.gpus = gpus;
    wm_tracker_free(search->tracker);
    search->tracker = NULL;
    int status = wm_tracker_new(&options, &search->tracker, &search->failure);
    if (status < 0)
        return status;
    wm_tracker_add(search->tracker, "host", NULL);
    search->nvidia = add(search->tracker, nvidia, "nvml");
    search->others = add(search->tracker, others, "drm");
    return WM_OK;
}

static const char *text_of(const struct wm_gpus *gpus, size_t gpu, enum wm_gpu_field field)
{
    struct wm_gpu_value value;

    wm_gpu_get(gpus, gpu, field, &value);
    return value.state == WM_READING_OK && value.text ? value.text : "";
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The texts that the GPUs of `vendor`, or of all where that is NULL, have in `field`,
 * sorted, with `separator` between them: the caller's to free; NULL when out of memory. */
static char *list(const struct wm_gpus *gpus, enum wm_gpu_field field, const char *vendor,
                  const char *separator)
{
    size_t count = wm_gpus_count(gpus), found = 0, size = 1, used = 0;
    const char **texts = calloc(count + 1, sizeof(*texts));

    for (size_t i = 0; texts && i < count; i++) {
        const char *text = text_of(gpus, i, field);
        if (vendor && strcmp(text_of(gpus, i, WM_GPU_VENDOR), vendor) != 0)
            continue;
        texts[found++] = text;
        size += strlen(text) + strlen(separator);
    }
    char *joined = texts ? calloc(1, size) : NULL;
    if (joined && found > 0)
        qsort(texts, found, sizeof(*texts), by_text);
    for (size_t i = 0; joined && i < found; i++)
        used += (size_t)snprintf(joined + used, size - used, "%s%s", i ? separator : "",
                                 texts[i]);
    free(texts);
    return joined;
}

/* Says which of the user's words is the first that names no GPU, as the original does. The
 * list of what there is may be longer than a struct wm_error holds. */
static int refuse_words(struct search *search, const struct wm_gpus *gpus)
{
    size_t *chosen = calloc(wm_gpus_present(gpus) + 1, sizeof(*chosen));
    char *words = strdup(search->options->gpus), *rest = words, *word = NULL;
    char *uuids = list(gpus, WM_GPU_UUID, NULL, ", ");
    int status = WM_OK;
    size_t count;

    while (chosen && words && status == WM_OK && (word = strsep(&rest, ",")) != NULL) {
        status = wm_gpu_select(gpus, word, NULL, chosen, &count, NULL, NULL);
        if (status == WM_OK && count == 0)
            status = WM_EINVAL; /* "none" */
    }
    if (word && uuids) {
        fprintf(search->said, "GPU UUID of %s is not valid. Available UUIDs are: %s\n",
                word, uuids);
        search->failure.text[0] = '\0';
    }
    free(uuids);
    free(words);
    free(chosen);
    return WM_EINVAL;
}

static int check_words(struct search *search, const struct wm_gpus *gpus)
{
    size_t *chosen = calloc(wm_gpus_present(gpus) + 1, sizeof(*chosen)), count = 0;

    if (!chosen)
        return wm_fail_memory(&search->failure, NULL);
    int status = wm_gpu_select(gpus, search->options->gpus, NULL, chosen, &count, NULL,
                               &search->failure);
    free(chosen);
    if (status == WM_EINVAL || (status == WM_OK && count == 0))
        return refuse_words(search, gpus);
    return WM_OK;
}

/* Those that the user chose: of one brand, or whichever they are of. */
static int take_chosen(struct search *search, const char *brand)
{
    const char *words = search->options->gpus;
    struct wm_gpus *gpus;

    int status = wm_gpus_open(NULL, &gpus, &search->failure);
    if (status < 0)
        return status;
    bool is_any = wm_gpus_present(gpus) > 0;
    if (is_any)
        status = check_words(search, gpus);
    wm_gpus_close(gpus);
    if (status == WM_OK)
        status = make_tracker(search, is_any ? words : NULL,
                              !brand || strcmp(brand, "nvidia") == 0,
                              !brand || strcmp(brand, "amd") == 0);

    /* A driver in trouble may have GPUs that it cannot name. */
    search->without_gpus =
        !is_any && search->nvidia.status == WM_ENODEV && search->others.status == WM_ENODEV;
    return status;
}

/* AMD's GPUs, where the kernel knows such of several vendors; or, where it has none of
 * AMD's, all that it knows. */
static int take_others(struct search *search, bool *ret_are_amd)
{
    struct wm_gpus *gpus;

    int status = wm_gpus_open(NULL, &gpus, &search->failure);
    if (status < 0)
        return status;
    char *labels = list(gpus, WM_GPU_LABEL, "AMD", ",");
    wm_gpus_close(gpus);
    if (!labels)
        return wm_fail_memory(&search->failure, NULL);
    *ret_are_amd = labels[0] != '\0';
    status = make_tracker(search, *ret_are_amd ? labels : NULL, false, true);
    free(labels);
    return status;
}

static int take_brand(struct search *search, const char *brand)
{
    bool is_amd = strcmp(brand, "amd") == 0, found = true;

    int status =
        is_amd ? take_others(search, &found) : make_tracker(search, NULL, true, false);
    if (status < 0 || (is_amd ? found : search->nvidia.status != WM_ENODEV))
        return status;
    return wm_fail(&search->failure, WM_ENODEV, "There is no GPU of the brand %s%s%s.",
                   brand, is_amd ? "" : ": ", search->nvidia.text);
}

/* NVIDIA first. A driver of theirs that is in trouble is theirs all the same: what its
 * GPUs do is not known, which is not to be taken for nothing. */
static int take_any(struct search *search)
{
    bool are_amd;

    int status = make_tracker(search, NULL, true, false);
    if (status < 0 || search->nvidia.status != WM_ENODEV)
        return status;
    search->others = add(search->tracker, true, "drm");
    search->without_gpus = search->others.status == WM_ENODEV;
    if (search->without_gpus)
        return WM_OK;
    const struct wm_error nvidia = search->nvidia;
    status = take_others(search, &are_amd);
    search->nvidia = nvidia;
    return status;
}

static void print_warnings(const struct search *search)
{
    const struct wm_error *const outcomes[] = { &search->nvidia, &search->others };
    const bool both = search->nvidia.text[0] && search->others.text[0];

    if (search->without_gpus && search->options->gpus)
        fprintf(search->said, "%s: there is no such GPU.\n", search->options->gpus);

    for (size_t i = 0; i < 2 && !search->without_gpus; i++) {
        if (outcomes[i]->status < 0 && outcomes[i]->status != WM_ENODEV)
            fprintf(search->said,
                    "%s. The GPU RAM and GPU utilization values are not known.\n",
                    outcomes[i]->text);
    }
    if (search->without_gpus)
        fprintf(search->said,
                "%s%s%s. There is no GPU to profile, and the GPU RAM and GPU utilization "
                "values will remain 0.0.\n",
                search->nvidia.text, both ? "; " : "", search->others.text);
}

/* `text` is NULL for the default. */
static int set_sleep(const char *text, int64_t *ret_interval_ns, FILE *said)
{
    char shown[WM_PYTHON_NUMBER_SIZE];
    double seconds = 1;

    if (text && !wm_number_parse(text, strlen(text), &seconds))
        seconds = NAN;
    else
        wm_python_number(shown, seconds);
    if (!(seconds >= LEAST_SLEEP_S)) {
        fprintf(said, "Sleep time of %s is invalid. Must be at least 0.1 seconds.\n",
                isnan(seconds) ? text : shown);
        return WM_EINVAL;
    }
    if (seconds > (double)WM_INTERVAL_MAX_NS / 1e9) {
        fprintf(said, "Sleep time of %s is invalid. Must be at most 3600 seconds.\n", text);
        return WM_EINVAL;
    }
    *ret_interval_ns = (int64_t)(seconds * 1e9 + 0.5);
    return WM_OK;
}

static int check_unit(const char *unit, const char *what, bool is_time, FILE *said)
{
    const struct wm_report_style style = {
        .ram_unit = is_time ? NULL : unit,
        .time_unit = is_time ? unit : NULL,
    };

    if (wm_report_style_check(&style, NULL) == WM_OK)
        return WM_OK;
    fprintf(said, "\"%s\" is not a valid %s unit. Valid values are %s\n", unit, what,
            is_time ? "days, hours, minutes, seconds"
                    : "bytes, gigabytes, kilobytes, megabytes, terabytes");
    return WM_EINVAL;
}

/* In the order of the original. */
static int check(const struct search *search, const struct wm_gpu_tracker_options *own)
{
    const char *file = own->tracking_file, *brand = own->brand;

    if (check_unit(own->ram_unit, "RAM", false, search->said) < 0 ||
        check_unit(own->gpu_ram_unit, "GPU RAM", false, search->said) < 0 ||
        check_unit(own->time_unit, "time", true, search->said) < 0)
        return WM_EINVAL;
    /* A name is more than its suffix. */
    if (file && (!file[0] ||
                 (!wm_text_ends(file + 1, ".csv") && !wm_text_ends(file + 1, ".sqlite"))))
        fprintf(search->said,
                "Invalid file name: \"%s\". Valid file extensions are \".csv\" and "
                "\".sqlite\".\n",
                file);
    else if (brand && strcmp(brand, "nvidia") != 0 && strcmp(brand, "amd") != 0)
        fprintf(search->said,
                "\"%s\" is not a valid GPU brand. Supported values are \"nvidia\" and "
                "\"amd\".\n",
                brand);
    else if (search->options->gpus && !search->options->gpus[0])
        fputs(
            "gpu_uuids is not None but the set is empty. Please provide a set of at least "
            "one GPU UUID.\n",
            search->said);
    else
        return WM_OK;
    return WM_EINVAL;
}

static int record(struct search *search, const struct wm_gpu_tracker_options *own)
{
    char *target;

    if (!own->tracking_file)
        return WM_OK;
    if (asprintf(&target, "gpu-tracker:%s,%s,%s:%s",
                 own->ram_unit ? own->ram_unit : "gigabytes",
                 own->gpu_ram_unit ? own->gpu_ram_unit : "gigabytes",
                 own->time_unit ? own->time_unit : "hours", own->tracking_file) < 0)
        return wm_fail_memory(&search->failure, NULL);
    int status = wm_tracker_record(search->tracker, target,
                                   own->overwrite ? WM_RECORD_OVERWRITE : WM_RECORD_NEW,
                                   &search->failure);
    free(target);
    if (status != WM_EEXIST)
        return status;
    fprintf(
        search->said,
        "File %s already exists. Set overwrite to True to overwrite the existing file.\n",
        own->tracking_file);
    search->failure.text[0] = '\0';
    return status;
}

static int take_gpus(struct search *search, const char *brand)
{
    if (search->options->gpus)
        return take_chosen(search, brand);
    return brand ? take_brand(search, brand) : take_any(search);
}

int wm_tracker_new_as_gpu_tracker(const struct wm_tracker_options *options,
                                  const struct wm_gpu_tracker_options *given, FILE *said,
                                  struct wm_tracker **ret_tracker)
{
    struct wm_tracker_options tracker;
    struct wm_gpu_tracker_options own;
    struct search search = { .options = &tracker, .said = said };

    int status = wm_options_read(options, &tracker, sizeof(tracker), &search.failure);
    if (status == WM_OK)
        status = wm_options_read(given, &own, sizeof(own), &search.failure);
    if (status == WM_OK)
        status = set_sleep(own.sleep_time, &tracker.interval_ns, said);
    if (status == WM_OK)
        status = check(&search, &own);
    if (status == WM_OK)
        status = take_gpus(&search, own.brand);
    if (status == WM_OK)
        status = record(&search, &own);
    if (status < 0) {
        if (search.failure.text[0])
            fprintf(said, "%s\n", search.failure.text);
        wm_tracker_free(search.tracker);
        return status;
    }
    print_warnings(&search);
    *ret_tracker = search.tracker;
    return WM_OK;
}
