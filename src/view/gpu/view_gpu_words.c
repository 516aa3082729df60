/* SPDX-License-Identifier: Apache-2.0 */
/* view_gpu_words.c - values of GPUs in words. */
#include "view/gpu/view_gpu.h"

#include <stdint.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "source/gpu/select/source_gpu_select.h"

struct wm_words wm_words_number(double number, int decimals, const char *suffix)
{
    struct wm_words text;

    snprintf(text.text, sizeof(text.text), "%s%s", wm_view_fixed(number, decimals).text,
             suffix);
    return text;
}

struct wm_words wm_words_time(double unix_s)
{
    struct wm_words text = { "" };

    if (!(unix_s >= 0 && unix_s < 9e9)) { /* past it nanoseconds do not fit */
        snprintf(text.text, sizeof(text.text), "n/a");
        return text;
    }
    wm_clock_rfc3339((int64_t)(unix_s * 1e9), text.text, sizeof(text.text));
    text.text[strcspn(text.text, "T")] = ' ';
    text.text[strcspn(text.text, ".Z")] = '\0';
    return text;
}

struct wm_words wm_words_value(const struct wm_gpu_field_info *info,
                               const struct wm_gpu_value *value, bool with_unit)
{
    static const struct {
        const char *unit;
        double scale;
        int decimals;
        const char *suffix;
    } units[] = {
        { "B", 1 / WM_MIB, 2, " MiB" }, { "Hz", 1e-6, 1, " MHz" }, { "W", 1, 2, " W" },
        { "celsius", 1, 2, "C" },       { "ratio", 100, 2, "%" },  { "rpm", 1, 0, " rpm" },
        { "B/s", 1e-6, 2, " MB/s" },    { "J", 1, 2, " J" },       { "count", 1, 0, "" },
    };
    struct wm_words text = { "" };

    if (info->type == WM_GPU_TEXT) {
        wm_text_utf8(text.text, sizeof(text.text), value->text, strlen(value->text));
        return text;
    }
    if (info->type == WM_GPU_YES_NO) {
        snprintf(text.text, sizeof(text.text), "%s", value->number != 0 ? "Yes" : "No");
        return text;
    }
    for (size_t i = 0; i < WM_COUNT(units); i++) {
        if (strcmp(units[i].unit, info->unit) == 0)
            return wm_words_number(value->number * units[i].scale, units[i].decimals,
                                   with_unit ? units[i].suffix : "");
    }
    snprintf(text.text, sizeof(text.text), "%s",
             wm_view_duration(value->number, NULL).text);
    return text;
}

struct wm_gpu_value wm_gpu_view_get(const struct wm_gpu_view *view, enum wm_gpu_field field)
{
    return wm_gpu_table_get(WM_GPU_TABLE_GPU, view->gpus, view->gpu, 0, field);
}

struct wm_words wm_words_field(const struct wm_gpu_view *view, enum wm_gpu_field field,
                               bool with_unit)
{
    struct wm_gpu_value value = wm_gpu_view_get(view, field);
    struct wm_words text = { "n/a" };

    return value.state == WM_READING_OK
               ? wm_words_value(wm_gpu_field_info(field), &value, with_unit)
               : text;
}

/* Of any GPU of the machine, shown or not. */
static bool is_simulated(const struct wm_gpu_view *view, size_t index)
{
    struct wm_gpu_value value;

    wm_gpus_get_any(view->gpus, index, WM_GPU_SIMULATED, &value);
    return value.state == WM_READING_OK && value.number != 0;
}

/* Its source is known of every GPU, whether it answers or not. */
static bool has_source(const struct wm_gpu_view *view, size_t index, const char *source)
{
    struct wm_gpu_value value;

    wm_gpus_get_any(view->gpus, index, WM_GPU_SOURCE, &value);
    return value.state == WM_READING_OK && strcmp(value.text, source) == 0;
}

bool wm_gpu_view_simulated(const struct wm_gpu_view *view)
{
    struct wm_gpu_value value = wm_gpu_view_get(view, WM_GPU_SIMULATED),
                        source = wm_gpu_view_get(view, WM_GPU_SOURCE);

    if (value.state == WM_READING_OK || source.state != WM_READING_OK)
        return value.state == WM_READING_OK && value.number != 0;
    for (size_t i = 0; i < wm_gpus_present(view->gpus); i++) {
        if (has_source(view, i, source.text) && is_simulated(view, i))
            return true;
    }
    return false;
}
