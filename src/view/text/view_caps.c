/* SPDX-License-Identifier: Apache-2.0 */
/* view_caps.c - what is capped and how, for people and for programs. */
#include "base/text/base_json.h"
#include "view/view.h"
#include "wattmeter/cap.h"

enum { CELL = 40 };

static void watts_cell(const struct wm_gpu_value *value, char cell[CELL])
{
    if (value->state == WM_READING_OK)
        snprintf(cell, CELL, "%.4g W", value->number);
    else
        snprintf(cell, CELL, "n/a");
}

static void range_cell(const struct wm_cap_setting *setting, char cell[CELL])
{
    bool has_minimum = setting->minimum.state == WM_READING_OK;

    if (setting->maximum.state != WM_READING_OK)
        snprintf(cell, CELL, "n/a");
    else if (has_minimum)
        snprintf(cell, CELL, "%.4g to %.4g W", setting->minimum.number,
                 setting->maximum.number);
    else
        snprintf(cell, CELL, "up to %.4g W", setting->maximum.number);
}

static void print_row(const struct wm_cap_setting *setting, FILE *out)
{
    char value[CELL], enforced[CELL], otherwise[CELL], range[CELL], drawn[CELL];

    watts_cell(&setting->value, value);
    watts_cell(&setting->enforced, enforced);
    watts_cell(&setting->default_value, otherwise);
    range_cell(setting, range);
    watts_cell(&setting->drawn, drawn);
    fprintf(out, "%-14s%-10s%-10s%-10s%-17s%-10s%s\n", setting->device, value, enforced,
            otherwise, range, drawn, setting->name);
}

/* A board may draw a little more for moments; this is more than its rounding. */
static bool is_above(const struct wm_gpu_value *drawn, const struct wm_gpu_value *cap)
{
    return drawn->state == WM_READING_OK && cap->state == WM_READING_OK &&
           drawn->number > 1.01 * cap->number;
}

/* Of clocks the driver says nothing that could be shown. */
static void print_clock(const struct wm_cap_setting *setting, FILE *out)
{
    if (setting->value.state == WM_READING_OK)
        fprintf(out, "note: %s: clocks up to %.6g MHz, set by wattmeter\n", setting->device,
                setting->value.number / 1e6);
}

static void print_remarks(const struct wm_cap_setting *setting, FILE *out)
{
    const struct wm_gpu_value *cap = &setting->value, *enforced = &setting->enforced;

    if (cap->state != WM_READING_OK)
        fprintf(out, "n/a: %s: %s\n", setting->device, cap->why);
    else if (enforced->state == WM_READING_OK && enforced->number + 0.5 < cap->number)
        fprintf(out, "note: %s: %.4g W is set, but %.4g W is enforced\n", setting->device,
                cap->number, enforced->number);
    if (is_above(&setting->drawn, cap))
        fprintf(out, "note: %s: it draws %.4g W, above its cap of %.4g W\n",
                setting->device, setting->drawn.number, cap->number);
}

static void print_text(const struct wm_caps *caps, FILE *out)
{
    struct wm_cap_setting setting;
    size_t count = wm_caps_count(caps);

    if (count == 0) {
        fprintf(out, "nothing here can be capped; see wattmeter doctor\n");
        return;
    }
    fprintf(out, "%-14s%-10s%-10s%-10s%-17s%-10s%s\n", "DEVICE", "CAP", "ENFORCED",
            "DEFAULT", "SETTABLE", "DRAWN", "NAME");
    for (size_t i = 0; i < count; i++) {
        wm_caps_get(caps, i, &setting);
        if (setting.kind != WM_CAP_GPU_CLOCK)
            print_row(&setting, out);
    }
    for (size_t i = 0; i < count; i++) {
        wm_caps_get(caps, i, &setting);
        if (setting.kind == WM_CAP_GPU_CLOCK)
            print_clock(&setting, out);
        else
            print_remarks(&setting, out);
    }
}

static void set_value(json_t **json, json_t **why, const char *key,
                      const struct wm_gpu_value *value)
{
    bool is_known = value->state == WM_READING_OK;

    wm_json_set(json, key, wm_json_known(is_known, is_known ? value->number : 0));
    if (!is_known)
        wm_json_set(why, key, wm_text_json(value->why));
}

static json_t *setting_json(const struct wm_cap_setting *setting)
{
    json_t *json = json_object(), *why = json_object();

    wm_json_set(&json, "device", wm_text_json(setting->device));
    wm_json_set(&json, "name", wm_text_json(setting->name));
    wm_json_set(&json, "identity", wm_text_json(setting->identity));
    wm_json_set(&json, "kind", json_string(wm_cap_kind_name(setting->kind)));
    wm_json_set(&json, "unit", json_string(setting->kind == WM_CAP_GPU_CLOCK ? "Hz" : "W"));
    set_value(&json, &why, "value", &setting->value);
    set_value(&json, &why, "enforced", &setting->enforced);
    set_value(&json, &why, "default", &setting->default_value);
    set_value(&json, &why, "minimum", &setting->minimum);
    set_value(&json, &why, "maximum", &setting->maximum);
    set_value(&json, &why, "drawn_watts", &setting->drawn);
    wm_json_set(&json, "why", why);
    return json;
}

static json_t *caps_json(const struct wm_caps *caps)
{
    json_t *json = json_object(), *list = json_array();
    struct wm_cap_setting setting;

    for (size_t i = 0; i < wm_caps_count(caps); i++) {
        wm_caps_get(caps, i, &setting);
        wm_json_add(&list, setting_json(&setting));
    }
    wm_json_set(&json, "caps", list);
    return json;
}

int wm_caps_print(const struct wm_caps *caps, enum wm_format format, FILE *out,
                  struct wm_error *err)
{
    int status = wm_view_check(format, WM_VIEW_PLAIN, err);

    if (status < 0)
        return status;
    if (format == WM_FORMAT_JSON)
        status = wm_view_dump(caps_json(caps), JSON_INDENT(2), out, err);
    else
        print_text(caps, out);
    return status == WM_OK ? wm_view_flush(out, "the caps", err) : status;
}
