/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_channel.c - see source_gpu_channel.h. */
#include "source/source_gpu_channel.h"

#include <string.h>

static bool is_word(const char *text, const char *word, size_t length)
{
    return text && strncmp(text, word, length) == 0 && text[length] == '\0';
}

static bool is_metric(const char *word, size_t length)
{
    const struct wm_gpu_field_info *info;

    for (size_t i = 0; (info = wm_gpu_field_info((enum wm_gpu_field)i)) != NULL; i++) {
        if (is_word(info->metric, word, length))
            return true;
    }
    return false;
}

int wm_gpu_channels_check(const char *words, struct wm_error *err)
{
    for (const char *word = words; word;) {
        size_t length = strcspn(word, ",");
        if (!is_word("all", word, length) && !is_metric(word, length))
            return wm_fail(err, WM_EINVAL,
                           "'%.*s' is no channel of a GPU, as fan and clock_graphics are; "
                           "all: every one that there is",
                           length < 24 ? (int)length : 24, word);
        word = word[length] == ',' ? word + length + 1 : NULL;
    }
    return WM_OK;
}

bool wm_gpu_channels_name(const char *words, enum wm_gpu_field field)
{
    const struct wm_gpu_field_info *info = wm_gpu_field_info(field);

    for (const char *word = words; word && info->on_demand;) {
        size_t length = strcspn(word, ",");
        if (is_word("all", word, length) || is_word(info->metric, word, length))
            return true;
        word = word[length] == ',' ? word + length + 1 : NULL;
    }
    return false;
}

struct wm_channel wm_gpu_channel_of(enum wm_gpu_field field)
{
    const struct wm_gpu_field_info *info = wm_gpu_field_info(field);

    /* The reasons are words for people, and bits in a recording. */
    return (struct wm_channel) {
        .metric = info->metric,
        .unit = info->type == WM_GPU_TEXT ? "bits" : info->unit,
        .device_kind = WM_DEVICE_GPU,
        .kind = info->kind,
    };
}
