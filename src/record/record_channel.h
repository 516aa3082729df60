/* SPDX-License-Identifier: Apache-2.0 */
/* record_channel.h - channels and gaps as they stand in a recording, and the
 * set of channels that a reader has found there. */
#ifndef WM_RECORD_CHANNEL_H
#define WM_RECORD_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/base_error.h"
#include "record/record_column.h"
#include "record/run/record_run.h"
#include "wattmeter/source.h"

/* A time in which a channel had no value. */
struct wm_gap {
    size_t channel;
    int64_t from_ns; /* the first tick without a value */
    int64_t to_ns;   /* the last one */
    enum wm_reading_state state;
    char why[96];
};

/* Enumerations are stored as words, which a person can read and a later
 * version may add to. */
enum wm_word_list {
    WM_WORDS_DEVICE_KIND,
    WM_WORDS_KIND,
    WM_WORDS_ORIGIN,
    WM_WORDS_STATE,
    WM_WORDS_SENSOR,
    WM_WORDS_CONTAINS,
};

const char *wm_word(enum wm_word_list list, int value);

/* Whether there is such a word, and what it stands for; `word` may be NULL. */
bool wm_word_value(enum wm_word_list list, const char *word, int *ret_value);

/* The number in the label of a GPU, "gpu12". False, with nothing written, where there is
 * none. */
bool wm_channel_gpu_number(const struct wm_channel *channel, int *ret_number);

/* A compact JSON array of objects, the caller's to free. */
int wm_channels_to_json(const struct wm_channel *channels, const struct wm_columns *columns,
                        char **ret_text, struct wm_error *err);

/* A gap as a JSON object, which names its column; NULL when out of memory. */
json_t *wm_gap_json(const struct wm_gap *gap, const struct wm_columns *columns);

/* What a column of a recording holds. */
struct wm_column_use {
    const char *name;
    bool is_clock;
    size_t index; /* of the channel, or of the clock in `columns` */
};

/* The channels of a recording. All strings belong to it. */
struct wm_channel_set {
    struct wm_channel *channels;
    size_t count, room;
    struct wm_columns columns;
    struct wm_column_use *uses; /* sorted by name, once the set is sealed */
    size_t use_count;
};

/* Makes room for `room` channels. wm_channel_set_release() is due whatever this
 * and the functions below return. */
int wm_channel_set_init(struct wm_channel_set *set, size_t room, struct wm_error *err);

void wm_channel_set_release(struct wm_channel_set *set);

/* The texts by which a file describes a channel, any of which may be NULL: its column and
 * that of its clock, source, device, label, model, metric, unit, and the words for its kind
 * of device, kind and origin. */
enum { WM_CHANNEL_TEXTS = 11 };

/* Adds a channel, as a file describes it; all is checked and copied. `sensor` is the JSON
 * object of its sensor. WM_EFORMAT if it is NULL: only drafts of format 1 lack it. */
int wm_channel_set_add(struct wm_channel_set *set,
                       const char *const texts[WM_CHANNEL_TEXTS], int64_t period_ns,
                       const char *sensor, struct wm_error *err);

/* Fails if a column is used twice. After the last wm_channel_set_add(). */
int wm_channel_set_seal(struct wm_channel_set *set, struct wm_error *err);

/* The set that wm_channels_to_json() described, sealed. */
int wm_channel_set_from_json(struct wm_channel_set *set, const char *text,
                             struct wm_error *err);

/* What that column holds; NULL when it is nothing of ours. */
const struct wm_column_use *wm_channel_set_find(const struct wm_channel_set *set,
                                                const char *column);

/* A gap as a file describes it: the texts may be NULL. False, with nothing
 * written, where that makes no sense. */
bool wm_gap_init(struct wm_gap *ret_gap, size_t channel, int64_t from_ns, int64_t to_ns,
                 const char *state, const char *why);

/* A gap as wm_gap_json() described it. False where it is none, or one of a
 * channel that is not in the set. */
bool wm_gap_from_json(const struct wm_channel_set *set, const json_t *object,
                      struct wm_gap *ret_gap);

#endif
