/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_select.c - "0,GPU-7c1f,card1,3b:00.0": what people call a GPU, over those of
 * all vendors. */
#include "source/gpu/select/source_gpu_select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "source/gpu/select/source_gpu_choice.h"
#include "source/gpu/source_gpu_pci.h"

const char *wm_gpu_text(const struct wm_gpus *gpus, size_t index, enum wm_gpu_field field)
{
    struct wm_gpu_value value;

    wm_gpus_get_any(gpus, index, field, &value);
    return value.state == WM_READING_OK ? value.text : NULL;
}

/* Whether the text is word[0..length), or only begins so. */
static bool is_word(const char *text, const char *word, size_t length)
{
    return text && strncmp(text, word, length) == 0 && text[length] == '\0';
}

static bool begins(const char *text, const char *word, size_t length)
{
    return text && strncmp(text, word, length) == 0;
}

static bool has_label(const struct wm_gpus *gpus, size_t index, const char *word,
                      size_t length)
{
    return is_word(wm_gpu_text(gpus, index, WM_GPU_LABEL), word, length);
}

/* The domain may be left out. */
static bool has_address(const struct wm_gpus *gpus, size_t index, const char *word,
                        size_t length)
{
    uint64_t rank = wm_pci_rank(wm_gpu_text(gpus, index, WM_GPU_PCI_BUS_ID));
    uint64_t wanted;
    bool has_domain;

    if (rank == UINT64_MAX || !wm_pci_parse(word, length, &wanted, &has_domain))
        return false;
    return has_domain ? rank == wanted : (rank & ((1 << WM_PCI_LOCAL_BITS) - 1)) == wanted;
}

static bool begins_identity(const struct wm_gpus *gpus, size_t index, const char *word,
                            size_t length)
{
    char rocm[WM_ROCM_UUID_SIZE];

    wm_gpu_rocm_uuid(gpus, index, rocm);
    return begins(wm_gpu_text(gpus, index, WM_GPU_UUID), word, length) ||
           begins(rocm, word, length);
}

static bool is_number(const struct wm_gpu_value *value, uint64_t number)
{
    return value->state == WM_READING_OK && value->number == (double)number;
}

/* As older drivers name it: "MIG-GPU-<uuid>/<GPU instance>/<compute instance>". */
static bool is_instance(const struct wm_gpus *gpus, size_t index, size_t mig,
                        const char *word, size_t length)
{
    const char *uuid = word + strlen("MIG-"), *slash = memchr(word, '/', length), *end;
    uint64_t gpu_instance, compute_instance;
    struct wm_gpu_value value;

    if (!slash || !wm_text_u64(slash + 1, &end, &gpu_instance) || *end != '/' ||
        !wm_text_u64(end + 1, &end, &compute_instance) || end != word + length ||
        !begins(wm_gpu_text(gpus, index, WM_GPU_UUID), uuid, (size_t)(slash - uuid)))
        return false;
    wm_gpus_mig_get_any(gpus, index, mig, WM_GPU_MIG_GPU_INSTANCE, &value);
    if (!is_number(&value, gpu_instance))
        return false;
    wm_gpus_mig_get_any(gpus, index, mig, WM_GPU_MIG_COMPUTE_INSTANCE, &value);
    return is_number(&value, compute_instance);
}

static bool has_mig(const struct wm_gpus *gpus, size_t index, const char *word,
                    size_t length)
{
    if (!begins(word, "MIG-", strlen("MIG-")))
        return false;
    for (size_t mig = 0; mig < wm_gpus_mig_count_any(gpus, index); mig++) {
        struct wm_gpu_value uuid;

        wm_gpus_mig_get_any(gpus, index, mig, WM_GPU_MIG_UUID, &uuid);
        if (uuid.state == WM_READING_OK && begins(uuid.text, word, length))
            return true;
        if (is_instance(gpus, index, mig, word, length))
            return true;
    }
    return false;
}

/* Whether it is one of NVIDIA's that does not say who it is, and the word an identity
 * of theirs. */
static bool may_be(const struct wm_gpus *gpus, size_t index, const char *word,
                   size_t length)
{
    size_t prefix = strlen("GPU-");
    const char *source = wm_gpu_text(gpus, index, WM_GPU_SOURCE);

    return length > prefix &&
           (begins(word, "GPU-", prefix) || begins(word, "MIG-", prefix)) &&
           is_word(source, "nvml", strlen("nvml")) &&
           !wm_gpu_text(gpus, index, WM_GPU_UUID);
}

/* One way of naming after the other, so that what is a label or an address is not
 * taken for the beginning of an identity. */
static size_t find(const void *context, const char *word, size_t length)
{
    static bool (*const ways[])(const struct wm_gpus *, size_t, const char *,
                                size_t) = { has_label, has_address, has_mig,
                                            begins_identity };
    const struct wm_gpus *gpus = context;
    size_t found = WM_GPU_FITS_NONE;

    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
        for (size_t i = 0; i < wm_gpus_present(gpus); i++) {
            if (!ways[way](gpus, i, word, length))
                continue;
            if (found != WM_GPU_FITS_NONE)
                return WM_GPU_FITS_SEVERAL;
            found = i;
        }
        if (found != WM_GPU_FITS_NONE)
            return found;
    }

    /* An identity is what scripts use; that its GPU is lost makes it no mistake. */
    for (size_t i = 0; i < wm_gpus_present(gpus); i++) {
        if (may_be(gpus, i, word, length))
            return i;
    }
    return WM_GPU_FITS_NONE;
}

/* "nvml: no NVIDIA driver; drm: ...": where no GPU was found. */
static int fail_no_gpu(const struct wm_gpus *gpus, const char *words, struct wm_error *err)
{
    const struct wm_gpu_looked *looked;
    char where[200] = "";

    for (size_t i = 0; (looked = wm_gpus_looked(gpus, i)) != NULL; i++)
        wm_text_list(where, sizeof(where), "; ", "%s: %s", looked->source,
                     looked->detail ? looked->detail : "nothing");
    return wm_fail(err, WM_EINVAL, "'%.24s': there is no GPU here (%s)", words, where);
}

/* A driver that is there and does not answer, or NULL. The GPUs of those before it
 * are counted: their numbers do not depend on it. */
static const struct wm_gpu_looked *in_trouble(const struct wm_gpus *gpus, size_t *ret_sure)
{
    const struct wm_gpu_looked *looked;

    *ret_sure = 0;
    for (size_t i = 0; (looked = wm_gpus_looked(gpus, i)) != NULL; i++) {
        if (looked->status != WM_OK && looked->status != WM_ENODEV)
            return looked;
        *ret_sure += looked->present;
    }
    return NULL;
}

/* Whether one of the words is a number, and not below `sure`. */
static bool has_number(const char *words, size_t sure)
{
    for (const char *word = words; word; word = strchr(word, ',')) {
        const char *end;
        uint64_t number;

        word += strspn(word, ", ");
        if (wm_text_u64(word, &end, &number) && (*end == '\0' || strchr(", ", *end)) &&
            number >= sure)
            return true;
    }
    return false;
}

/* While a driver is in trouble nobody can say that a word is wrong, nor which GPU
 * a number means. */
static int choose(const struct wm_gpus *gpus, const char *words,
                  const struct wm_gpu_id *ids, bool *chosen, struct wm_error *err)
{
    size_t present = wm_gpus_present(gpus);
    bool all = !words || strcmp(words, "all") == 0;
    int status;

    if (words && strcmp(words, "none") == 0)
        return WM_OK;
    if (present == 0 && !all)
        status = fail_no_gpu(gpus, words, err);
    else
        status = wm_gpu_choice(words, ids, present, find, gpus, chosen, err);

    size_t sure;
    const struct wm_gpu_looked *trouble = in_trouble(gpus, &sure);
    if (!all && trouble && (status == WM_EINVAL || has_number(words, sure)))
        return wm_fail(err, trouble->status, "the GPUs cannot be chosen: %s: %s",
                       trouble->source, trouble->detail ? trouble->detail : "in trouble");
    return status;
}

static size_t list_chosen(const bool *chosen, size_t present, size_t *ret_list)
{
    size_t count = 0;

    for (size_t i = 0; i < present; i++) {
        if (chosen[i])
            ret_list[count++] = i;
    }
    return count;
}

static size_t list_places(const struct wm_gpu_place *places, size_t present,
                          size_t *ret_list)
{
    size_t count = 0;

    for (size_t i = 0; i < present; i++) {
        if (places[i].place > 0)
            ret_list[places[i].place - 1] = i;
        count += places[i].place > 0;
    }
    return count;
}

unsigned wm_gpu_select_groups(const char *words)
{
    /* Clocks decide in which order CUDA counts. */
    unsigned order = strcmp(words, "visible") == 0 ? WM_GPU_CLOCKS : 0;

    return WM_GPU_GENERAL | WM_GPU_PCI | order;
}

int wm_gpu_select_numbers(const struct wm_gpus *gpus, const char *words, size_t *ret_chosen,
                          size_t *ret_count, struct wm_error *err)
{
    size_t present = wm_gpus_present(gpus), sure;
    bool *chosen = calloc(present + 1, sizeof(*chosen));

    if (!chosen)
        return wm_fail_memory(err, "choosing GPUs");
    bool is_certain = wm_gpu_choice_places(words, present, chosen) &&
                      !(in_trouble(gpus, &sure) && has_number(words, sure));
    if (is_certain)
        *ret_count = list_chosen(chosen, present, ret_chosen);
    free(chosen);
    return is_certain;
}

/* By words that name GPUs. */
static int select_named(const struct wm_gpus *gpus, const char *words, size_t *ret_chosen,
                        size_t *ret_count, struct wm_error *err)
{
    size_t present = wm_gpus_present(gpus);
    struct wm_gpu_id *ids = calloc(present + 1, sizeof(*ids));
    bool *chosen = calloc(present + 1, sizeof(*chosen));
    int status;

    if (!ids || !chosen) {
        status = wm_fail_memory(err, "choosing GPUs");
        goto out;
    }
    for (size_t i = 0; i < present; i++) {
        const char *uuid = wm_gpu_text(gpus, i, WM_GPU_UUID);
        snprintf(ids[i].text, sizeof(ids[i].text), "%s", uuid ? uuid : "");
    }
    status = choose(gpus, words, ids, chosen, err);
    if (status >= 0)
        *ret_count = list_chosen(chosen, present, ret_chosen);

out:
    free(chosen);
    free(ids);
    return status;
}

int wm_gpu_select_places(const struct wm_gpus *gpus, const char *words,
                         const char *const *environment, struct wm_gpu_place *places,
                         size_t *ret_chosen, size_t *ret_count, const char **ret_remark,
                         struct wm_error *err)
{
    char *remark = NULL;
    int status;

    if (!words || strcmp(words, "visible") != 0) {
        status = select_named(gpus, words, ret_chosen, ret_count, err);
    } else {
        status = wm_gpu_select_visible(
            gpus, environment ? environment : (const char *const *)wm_env_all(), places,
            &remark, err);
        if (status >= 0)
            *ret_count = list_places(places, wm_gpus_present(gpus), ret_chosen);
    }
    if (status >= 0 && ret_remark) {
        *ret_remark = remark;
        wm_gpus_keep_remark(gpus, remark);
    } else {
        free(remark);
    }
    return status;
}

int wm_gpu_select(const struct wm_gpus *gpus, const char *words,
                  const char *const *environment, size_t *ret_chosen, size_t *ret_count,
                  const char **ret_remark, struct wm_error *err)
{
    struct wm_gpu_place *places = calloc(wm_gpus_present(gpus) + 1, sizeof(*places));

    if (!places)
        return wm_fail_memory(err, "choosing GPUs");
    int status = wm_gpu_select_places(gpus, words, environment, places, ret_chosen,
                                      ret_count, ret_remark, err);
    free(places);
    return status;
}
