/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tracker_gpus.c - which GPUs are tracked: NVIDIA's where there are some, else AMD's,
 * else those of others; or what --gb and --guuids say. */
#include <stdlib.h>
#include <string.h>

#include "gpu_tracker/gpu_tracker.h"
#include "wattmeter/gpu.h"
#include "wattmeter/tracker.h"

/* What has been found out. A source that is not asked has WM_ENODEV and no text. */
struct search {
    const struct gpu_tracker_settings *settings;
    const struct cmd_streams *io;
    struct wm_tracker *tracker;
    struct wm_error nvidia, others;
};

static void warn(const struct search *search, const char *before, const char *after)
{
    if (!search->settings->disable_logs)
        gpu_tracker_warn(search->io, "%s%s", before, after);
}

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
    const struct gpu_tracker_settings *settings = search->settings;
    const struct wm_tracker_options options = {
        .interval_ns = (int64_t)(settings->sleep_seconds * 1e9 + 0.5),
        .expected_cores = settings->cores,
        .gpus = gpus,
        .own_process = true,
    };
    struct wm_error err;

    wm_tracker_free(search->tracker);
    search->tracker = NULL;
    if (wm_tracker_new(&options, &search->tracker, &err) < 0)
        return gpu_tracker_error(search->io, "%s", err.text);
    wm_tracker_add(search->tracker, "host", NULL);
    search->nvidia = add(search->tracker, nvidia, "nvml");
    search->others = add(search->tracker, others, "drm");
    return CMD_DONE;
}

static struct wm_gpus *open_inventory(const struct search *search)
{
    struct wm_gpus *gpus;
    struct wm_error err;

    if (wm_gpus_open(NULL, &gpus, &err) == WM_OK)
        return gpus;
    gpu_tracker_error(search->io, "%s", err.text);
    return NULL;
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

/* The first of the user's words that names no GPU, as the original says it. */
static int refuse_uuids(const struct search *search, const struct wm_gpus *gpus,
                        const char *why)
{
    size_t *chosen = calloc(wm_gpus_present(gpus) + 1, sizeof(*chosen));
    char *words = strdup(search->settings->gpu_uuids), *rest = words, *word = NULL;
    char *uuids = list(gpus, WM_GPU_UUID, NULL, ", ");
    size_t count;
    int status = WM_OK;

    while (chosen && words && status == WM_OK && (word = strsep(&rest, ",")) != NULL) {
        status = wm_gpu_select(gpus, word, NULL, chosen, &count, NULL, NULL);
        if (status == WM_OK && count == 0)
            status = WM_EINVAL; /* "none" */
    }
    if (word && uuids)
        gpu_tracker_error(search->io,
                          "GPU UUID of %s is not valid. Available UUIDs are: %s", word,
                          uuids);
    else
        gpu_tracker_error(search->io, "%s", why);
    free(uuids);
    free(words);
    free(chosen);
    return CMD_FAILED;
}

/* --guuids: of one brand, or whichever they are of. */
static int take_chosen(struct search *search, bool *ret_without_gpus)
{
    const char *brand = search->settings->brand, *uuids = search->settings->gpu_uuids;
    struct wm_error err = { .text = "" };
    size_t count = 0;

    struct wm_gpus *gpus = open_inventory(search);
    if (!gpus)
        return CMD_FAILED;
    *ret_without_gpus = wm_gpus_present(gpus) == 0;
    size_t *chosen = calloc(wm_gpus_present(gpus) + 1, sizeof(*chosen));
    int code = chosen ? CMD_DONE : gpu_tracker_error(search->io, "out of memory");
    if (code == CMD_DONE && !*ret_without_gpus) {
        int status = wm_gpu_select(gpus, uuids, NULL, chosen, &count, NULL, &err);
        if (status == WM_EINVAL || (status == WM_OK && count == 0))
            code = refuse_uuids(search, gpus, err.text);
    }
    free(chosen);
    wm_gpus_close(gpus);

    if (code == CMD_DONE)
        code = make_tracker(search, *ret_without_gpus ? NULL : uuids,
                            !brand || strcmp(brand, "nvidia") == 0,
                            !brand || strcmp(brand, "amd") == 0);

    /* A driver in trouble may have GPUs that it cannot name. */
    *ret_without_gpus = *ret_without_gpus && search->nvidia.status == WM_ENODEV &&
                        search->others.status == WM_ENODEV;
    if (code == CMD_DONE && *ret_without_gpus)
        warn(search, uuids, ": no GPU of --guuids is there.");
    return code;
}

/* AMD's GPUs, where the kernel knows such of several vendors; or, where it has none of
 * AMD's, all that it knows. */
static int take_others(struct search *search, bool *ret_are_amd)
{
    struct wm_gpus *gpus = open_inventory(search);
    if (!gpus)
        return CMD_FAILED;
    char *labels = list(gpus, WM_GPU_LABEL, "AMD", ",");
    wm_gpus_close(gpus);
    if (!labels)
        return gpu_tracker_error(search->io, "out of memory");
    *ret_are_amd = labels[0] != '\0';
    int code = make_tracker(search, *ret_are_amd ? labels : NULL, false, true);
    free(labels);
    return code;
}

static int take_brand(struct search *search, const char *brand, bool *ret_without_gpus)
{
    bool is_amd = strcmp(brand, "amd") == 0, found = true;

    int code =
        is_amd ? take_others(search, &found) : make_tracker(search, NULL, true, false);
    *ret_without_gpus = is_amd ? !found : search->nvidia.status == WM_ENODEV;
    if (code == CMD_DONE && *ret_without_gpus)
        code = gpu_tracker_error(search->io, "There is no GPU of the brand %s%s%s.", brand,
                                 is_amd ? "" : ": ", search->nvidia.text);
    return code;
}

/* NVIDIA first. A driver of theirs that is in trouble is theirs all the same: what its
 * GPUs do is not known, which is not to be taken for nothing. */
static int take_any(struct search *search, bool *ret_without_gpus)
{
    bool are_amd;

    int code = make_tracker(search, NULL, true, false);
    if (code != CMD_DONE || search->nvidia.status != WM_ENODEV)
        return code;
    const struct wm_error nvidia = search->nvidia;
    code = take_others(search, &are_amd);
    search->nvidia = nvidia;
    *ret_without_gpus = code == CMD_DONE && search->others.status == WM_ENODEV;
    return code;
}

static void tell(const struct search *search, bool without_gpus)
{
    const struct wm_error *const outcomes[] = { &search->nvidia, &search->others };
    char text[600];

    for (size_t i = 0; i < 2 && !without_gpus; i++) {
        if (outcomes[i]->status < 0 && outcomes[i]->status != WM_ENODEV)
            warn(search, outcomes[i]->text,
                 ". The GPU RAM and GPU utilization values are not known.");
    }
    if (!without_gpus)
        return;
    snprintf(text, sizeof(text), "%s%s%s", search->nvidia.text,
             search->nvidia.text[0] && search->others.text[0] ? "; " : "",
             search->others.text);
    warn(search, text,
         ". There is no GPU to profile, and the GPU RAM and GPU utilization values will "
         "remain 0.0.");
}

struct wm_tracker *gpu_tracker_new_tracker(const struct gpu_tracker_settings *settings,
                                           const struct cmd_streams *io,
                                           bool *ret_without_gpus)
{
    struct search search = { .settings = settings, .io = io };
    int code;

    *ret_without_gpus = false;
    if (settings->gpu_uuids)
        code = take_chosen(&search, ret_without_gpus);
    else if (settings->brand)
        code = take_brand(&search, settings->brand, ret_without_gpus);
    else
        code = take_any(&search, ret_without_gpus);
    if (code == CMD_DONE) {
        tell(&search, *ret_without_gpus);
        return search.tracker;
    }
    wm_tracker_free(search.tracker);
    return NULL;
}
