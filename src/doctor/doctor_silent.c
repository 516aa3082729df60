/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_silent.c - see doctor_silent.h. */
#include "doctor/doctor_silent.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base_text.h"

static const char prefix[] = "gpu";

/* The number in "gpu2"; false for labels of another kind. */
static bool read_number(const char *label, uint64_t *ret_number)
{
    const char *end;

    return strncmp(label, prefix, strlen(prefix)) == 0 &&
           wm_text_u64(label + strlen(prefix), &end, ret_number) && *end == '\0';
}

/* Marks the numbers that answer; false where GPUs are not told by numbers. */
static bool mark(const struct wm_source *source, bool *answers, size_t count)
{
    bool are_numbered = false;

    for (size_t i = 0; i < wm_source_channel_count(source); i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        uint64_t number;

        if (channel->device_kind != WM_DEVICE_GPU)
            continue;
        if (!read_number(channel->label, &number))
            return false;
        are_numbered = true;
        if (number < count)
            answers[number] = true;
    }
    return are_numbered;
}

int wm_silent_find(const struct wm_source *source, const char *gpus,
                   struct wm_silent *ret_silent, struct wm_error *err)
{
    size_t count = wm_source_device_count(source);

    if (count == 0 || (gpus && strcmp(gpus, "all") != 0))
        return WM_OK;
    bool *answers = calloc(count, sizeof(*answers));
    ret_silent->texts = calloc(count, sizeof(*ret_silent->texts));
    ret_silent->labels = calloc(count, sizeof(*ret_silent->labels));
    if (!answers || !ret_silent->texts || !ret_silent->labels) {
        free(answers);
        return wm_fail(err, WM_ENOMEM, "doctor: out of memory");
    }

    bool are_numbered = mark(source, answers, count);
    for (size_t i = 0; i < count && are_numbered; i++) {
        size_t place = ret_silent->count;
        if (answers[i])
            continue;
        snprintf(ret_silent->texts[place], sizeof(ret_silent->texts[place]), "%s%u", prefix,
                 (unsigned)i);
        ret_silent->labels[place] = ret_silent->texts[place];
        ret_silent->count++;
    }
    free(answers);
    return WM_OK;
}

void wm_silent_release(struct wm_silent *silent)
{
    free(silent->labels);
    free(silent->texts);
    *silent = (struct wm_silent) { 0 };
}
