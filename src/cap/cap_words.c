/* SPDX-License-Identifier: Apache-2.0 */
/* cap_words.c - what people write: "250W", "0=200W,1=80%", "cpu=120W". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"
#include "base/text/base_number.h"
#include "cap/cap_device.h"

/* Of one item, the device or the value of it. */
enum { WORD_SIZE = 128 };

enum amount_unit { WATTS, RATIO, DEFAULT, HERTZ };

/* What a value says before it is known of which device. */
struct amount {
    enum amount_unit unit;
    double number;
};

static const struct {
    const char *suffix;
    enum amount_unit unit;
    double times;
} units[] = {
    { "W", WATTS, 1 },     { "w", WATTS, 1 },     { "%", RATIO, 0.01 },
    { "MHz", HERTZ, 1e6 }, { "mhz", HERTZ, 1e6 }, { "GHz", HERTZ, 1e9 },
    { "ghz", HERTZ, 1e9 },
};

/* A bare number up to 1 is a fraction, as no GPU runs on a watt. */
static bool parse_amount(const char *word, struct amount *ret_amount)
{
    size_t length = strspn(word, "0123456789.");
    const char *suffix = wm_text_skip_blanks(word + length);
    double number;

    if (strcmp(word, "default") == 0) {
        *ret_amount = (struct amount) { DEFAULT, 1 };
        return true;
    }
    if (!wm_number_parse(word, length, &number))
        return false;
    if (!suffix[0]) {
        *ret_amount = (struct amount) { number <= 1 ? RATIO : WATTS, number };
        return true;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(suffix, units[i].suffix) == 0) {
            *ret_amount = (struct amount) { units[i].unit, number * units[i].times };
            return true;
        }
    }
    return false;
}

/* Takes the next of the items between commas, without blanks around it: 1, 0 past the last,
 * or WM_EINVAL for one that is too long or none. */
static int next_item(const char **words, char item[WORD_SIZE], struct wm_error *err)
{
    const char *start = wm_text_skip_blanks(*words);
    size_t length = strcspn(start, ",");

    if (!*words[0])
        return 0;
    *words = start + length + (start[length] == ',');
    if (start[length] == ',' && !**words)
        return wm_fail(err, WM_EINVAL, "there is nothing behind the last comma");
    while (length > 0 && (start[length - 1] == ' ' || start[length - 1] == '\t'))
        length--;
    if (length == 0 || length >= WORD_SIZE)
        return wm_fail(err, WM_EINVAL, "'%.40s' is no cap, such as 250W, 80%% or 0=200W",
                       start);
    memcpy(item, start, length);
    item[length] = '\0';
    return 1;
}

/* The list of settings that are asked for, each once. */
struct wishes {
    const struct wm_caps *caps;
    struct wm_cap_wish *list;
    size_t count;
};

static int add(struct wishes *wishes, size_t index, double value, struct wm_error *err)
{
    struct wm_cap_setting setting;

    for (size_t i = 0; i < wishes->count; i++) {
        if (wishes->list[i].index == index) {
            wm_caps_get(wishes->caps, index, &setting);
            return wm_fail(err, WM_EINVAL, "%s is named twice", setting.device);
        }
    }
    wishes->list[wishes->count++] = (struct wm_cap_wish) { index, value };
    return WM_OK;
}

/* What an amount comes to for that setting. */
static int resolve(const struct wm_caps *caps, size_t index, const struct amount *amount,
                   double *ret_value, struct wm_error *err)
{
    struct wm_cap_setting setting;

    wm_caps_get(caps, index, &setting);
    bool is_relative = amount->unit == RATIO || amount->unit == DEFAULT;
    if (is_relative && setting.default_value.state != WM_READING_OK)
        return wm_fail(err, WM_EINVAL,
                       "%s: its default is not known (%s): say how many watts",
                       setting.device, setting.default_value.why);
    /* Limits are set in whole milliwatts. */
    *ret_value = is_relative
                     ? round(amount->number * setting.default_value.number * 1e3) / 1e3
                     : amount->number;
    return WM_OK;
}

static int add_amount(struct wishes *wishes, size_t index, const struct amount *amount,
                      struct wm_error *err)
{
    double value = 0;

    int status = resolve(wishes->caps, index, amount, &value, err);
    if (status == WM_OK)
        status = wm_caps_check(wishes->caps, index, value, err);
    return status < 0 ? status : add(wishes, index, value, err);
}

/* What a word for devices means. */
struct devices {
    size_t numbers[1024]; /* of GPUs or of packages */
    size_t count;
    bool are_packages;
};

static int find_packages(const struct wm_caps *caps, const char *word,
                         struct devices *ret_devices, struct wm_error *err)
{
    size_t first = wm_caps_index(caps, WM_CAP_CPU_POWER, 0);
    struct wm_cap_setting setting;

    ret_devices->are_packages = true;
    for (size_t i = first; i < wm_caps_count(caps); i++) {
        wm_caps_get(caps, i, &setting);
        if (strcmp(word, "cpu") == 0 || strcmp(word, setting.device) == 0)
            ret_devices->numbers[ret_devices->count++] = i - first;
    }
    if (ret_devices->count > 0)
        return WM_OK;
    return wm_fail(
        err, first == wm_caps_count(caps) ? WM_ENODEV : WM_EINVAL, "%s: %s", word,
        first == wm_caps_count(caps) ? "no CPU package here has a power limit (powercap)"
                                     : "there is no such CPU package");
}

static int find_devices(const struct wm_caps *caps, const char *word,
                        struct devices *ret_devices, struct wm_error *err)
{
    const size_t room = sizeof(ret_devices->numbers) / sizeof(ret_devices->numbers[0]);

    *ret_devices = (struct devices) { 0 };
    if (strncmp(word, "cpu", 3) == 0)
        return find_packages(caps, word, ret_devices, err);
    if (wm_caps_gpu_count(caps) > room)
        return wm_fail(err, WM_EINVAL, "more than %zu GPUs", room);
    if (wm_caps_gpu_count(caps) == 0)
        return wm_fail(err, WM_ENODEV, "there is no GPU here; see wattmeter doctor");
    return wm_gpu_select(wm_caps_gpus(caps), word, NULL, ret_devices->numbers,
                         &ret_devices->count, NULL, err);
}

static int add_devices(struct wishes *wishes, const char *word, const struct amount *amount,
                       struct wm_error *err)
{
    struct devices devices;
    int status = find_devices(wishes->caps, word, &devices, err);

    if (status == WM_OK && devices.are_packages && amount->unit == HERTZ)
        return wm_fail(err, WM_EINVAL, "%s: only GPUs have clocks to set", word);
    for (size_t i = 0; status == WM_OK && i < devices.count; i++) {
        enum wm_cap_kind kind = devices.are_packages    ? WM_CAP_CPU_POWER
                                : amount->unit == HERTZ ? WM_CAP_GPU_CLOCK
                                                        : WM_CAP_GPU_POWER;
        status = add_amount(wishes, wm_caps_index(wishes->caps, kind, devices.numbers[i]),
                            amount, err);
    }
    return status;
}

/* Of all GPUs those that can have it: a machine may have one more that draws its desktop.
 */
static int add_all(struct wishes *wishes, const struct amount *amount, struct wm_error *err)
{
    enum wm_cap_kind kind = amount->unit == HERTZ ? WM_CAP_GPU_CLOCK : WM_CAP_GPU_POWER;
    size_t count = wm_caps_gpu_count(wishes->caps);
    struct wm_error why = { 0 };

    for (size_t i = 0; i < count; i++) {
        struct wm_cap_setting setting;
        size_t index = wm_caps_index(wishes->caps, kind, i);

        wm_caps_get(wishes->caps, index, &setting);
        const struct wm_gpu_value *needed =
            kind == WM_CAP_GPU_CLOCK ? &setting.maximum : &setting.value;
        if (needed->state == WM_READING_UNSUPPORTED && count > 1) {
            wm_fail(&why, WM_ENODEV, "%s: %s", setting.device, needed->why);
            continue;
        }
        int status = add_amount(wishes, index, amount, err);
        if (status < 0)
            return status;
    }
    if (wishes->count > 0)
        return WM_OK;
    return wm_fail(err, WM_ENODEV, "%s",
                   why.status < 0 ? why.text
                                  : "there is no GPU here; see wattmeter doctor");
}

static int add_item(struct wishes *wishes, char *item, bool is_alone, struct wm_error *err)
{
    char *equals = strchr(item, '=');
    const char *value = equals ? wm_text_skip_blanks(equals + 1) : item;
    struct amount amount;

    if (equals) {
        *equals = '\0';
        while (equals > item && (equals[-1] == ' ' || equals[-1] == '\t'))
            *--equals = '\0';
    }
    if (!parse_amount(value, &amount))
        return wm_fail(err, WM_EINVAL,
                       "'%s' is no cap, such as 250W, 80%%, 0.8, default or 1200MHz",
                       value);
    if (equals)
        return add_devices(wishes, item, &amount, err);
    if (!is_alone)
        return wm_fail(err, WM_EINVAL, "%s: of several caps each names its GPU: 0=%s", item,
                       item);
    return add_all(wishes, &amount, err);
}

int wm_caps_parse(const struct wm_caps *caps, const char *words,
                  struct wm_cap_wish *ret_wishes, size_t *ret_count, struct wm_error *err)
{
    struct wishes wishes = { .caps = caps };
    bool is_alone = !strchr(words, ',');
    char item[WORD_SIZE];
    int status;

    wishes.list = calloc(wm_caps_count(caps) + 1, sizeof(*wishes.list));
    if (!wishes.list)
        return wm_fail_memory(err, "caps");
    while ((status = next_item(&words, item, err)) > 0) {
        status = add_item(&wishes, item, is_alone, err);
        if (status < 0)
            break;
    }
    if (status == WM_OK && wishes.count == 0)
        status = wm_fail(err, WM_EINVAL, "no cap is given, such as 250W or 80%%");
    if (status == WM_OK) {
        memcpy(ret_wishes, wishes.list, wishes.count * sizeof(*ret_wishes));
        *ret_count = wishes.count;
    }
    free(wishes.list);
    return status;
}

static int select_item(struct wishes *wishes, const char *item, struct wm_error *err)
{
    struct devices devices;
    int status = find_devices(wishes->caps, item, &devices, err);

    for (size_t i = 0; status == WM_OK && i < devices.count; i++) {
        size_t number = devices.numbers[i];
        status =
            add(wishes,
                wm_caps_index(wishes->caps,
                              devices.are_packages ? WM_CAP_CPU_POWER : WM_CAP_GPU_POWER,
                              number),
                NAN, err);
        if (status == WM_OK && !devices.are_packages)
            status = add(wishes, wm_caps_index(wishes->caps, WM_CAP_GPU_CLOCK, number), NAN,
                         err);
    }
    return status;
}

int wm_caps_select(const struct wm_caps *caps, const char *words,
                   struct wm_cap_wish *ret_wishes, size_t *ret_count, struct wm_error *err)
{
    struct wishes wishes = { .caps = caps };
    char item[WORD_SIZE];
    int status = WM_OK;

    wishes.list = calloc(wm_caps_count(caps) + 1, sizeof(*wishes.list));
    if (!wishes.list)
        return wm_fail_memory(err, "caps");
    for (size_t i = 0; !words && i < wm_caps_count(caps); i++)
        add(&wishes, i, NAN, NULL);
    while (words && status >= 0 && (status = next_item(&words, item, err)) > 0)
        status = select_item(&wishes, item, err);
    if (status == WM_OK) {
        memcpy(ret_wishes, wishes.list, wishes.count * sizeof(*ret_wishes));
        *ret_count = wishes.count;
    }
    free(wishes.list);
    return status;
}
