/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm_card.h - the graphics cards in sysfs: who each of them is, and what its
 * files tell, for the source that measures and for the inventory.
 */
#ifndef WM_SOURCE_DRM_CARD_H
#define WM_SOURCE_DRM_CARD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "source/gpu/drm/source_drm_gpu_metrics.h"
#include "source/gpu/drm/source_drm_names.h"
#include "wattmeter/source.h"

/* A file below a card's folder. */
struct wm_drm_file {
    int fd; /* descriptor, the negative errno value of opening it, or the one below */
    char name[96]; /* for people too */
};

enum { WM_DRM_BY_PATH = INT_MIN }; /* it is opened at each reading */

/* What a number is multiplied by, and the range beyond which it is no measurement. */
struct wm_drm_range {
    double unit;
    int64_t min, max;
    const char *zero; /* what 0 means, behind the card's name where a blank is in front;
                         NULL where it is a number like others */
};

/* How a card reports a metric. */
struct wm_drm_way {
    enum {
        WM_DRM_NOT_AT_ALL,
        WM_DRM_BY_FILES,       /* a number, or the sum of two */
        WM_DRM_BY_GPU_METRICS, /* amdgpu's binary file */
        WM_DRM_BY_CLIENTS,     /* the sum over all that have the device open */
    } by;
    const struct wm_drm_range *range;
    struct wm_drm_file files[2];
    size_t file_count;
    bool is_difference; /* of the two */
    bool wakes;         /* a card that is asleep, and so leaves it alone */
};

struct wm_drm_card {
    char label[16];  /* "card1" */
    char render[16]; /* "renderD129"; empty where there is none */
    char path[512];  /* of its folder in sysfs */
    int dir;         /* descriptor of the folder, or -1 */
    char driver[32];
    char slot[32];     /* on PCI: "0000:03:00.0"; else empty */
    char identity[96]; /* unique among the cards, and the same after a reboot */
    char model[WM_DRM_PRODUCT];
    char hwmon[64];  /* "device/hwmon/hwmon3/"; empty where there is none */
    char link[24];   /* folder of the PCI device whose link is the board's, if asked for */
    bool integrated; /* surely a part of a processor, whose power is its power */
    bool has_serial; /* `identity` is the GPU's serial number */
    bool has_second; /* its sensor measures a second die, too */

    /* Why a GPU has no joules of its own: "its power is that of the CPU package". Empty if
     * it has. */
    char elsewhere[64];
    const struct wm_drm_card *first_die; /* the card that measures this one, or NULL */

    struct wm_drm_way ways[WM_DRM_METRICS];
    struct wm_drm_file metrics_file; /* gpu_metrics */
    struct wm_drm_file sleep_file;   /* power/runtime_status */

    /* Since the last wm_drm_card_turn(): */
    bool asleep;
    bool metrics_read;
    int metrics_status; /* of enum wm_status; text in metrics_err */
    enum wm_reading_state metrics_state;
    struct wm_error metrics_err;
    struct wm_gpu_metrics metrics;
};

/* More than any machine has. */
enum { WM_DRM_CARDS = 64 };

/* The cards that are a GPU, in the order of their numbers. All zero can be
 * closed. */
struct wm_drm_cards {
    char class_path[280];
    struct wm_drm_card *cards;
    size_t count;
    uint64_t seen;     /* a sum over all there were, to see that one has come or gone */
    char skipped[160]; /* those that are not read, and why */
};

/* Whether there is any card: WM_ENODEV if not. */
int wm_drm_cards_look(const char *sysfs, struct wm_error *err);

int wm_drm_cards_open(struct wm_drm_cards *cards, const char *sysfs, struct wm_error *err);
void wm_drm_cards_close(struct wm_drm_cards *cards);

/* Whether one has come or gone. */
bool wm_drm_cards_changed(const struct wm_drm_cards *cards);

/* Whether the card's driver counts the time of its clients. */
bool wm_drm_card_counts_clients(const struct wm_drm_card *card);

bool wm_drm_card_has_driver(const struct wm_drm_card *card, const char *driver);

/* The highest limit of its power that its driver tells; 0: none, or it is asleep. */
double wm_drm_card_most_watts(const struct wm_drm_card *card);

/* Starts a new round of readings. */
void wm_drm_card_turn(struct wm_drm_card *card);

/* Of the functions below `ret_err` says why where the state is not WM_READING_OK. */

/* Reads a metric that comes by files or by gpu_metrics. */
enum wm_reading_state wm_drm_card_read(struct wm_drm_card *card, enum wm_drm_metric metric,
                                       double *ret_value, struct wm_error *ret_err);

/* Whether card->metrics is what amdgpu's gpu_metrics says in this round of readings. */
enum wm_reading_state wm_drm_card_metrics(struct wm_drm_card *card,
                                          struct wm_error *ret_err);

/* Reads a file that fits into text[0..size), and leaves it alone where it `wakes` a card
 * that is asleep. WM_READING_NONE: there is no such file. */
enum wm_reading_state wm_drm_card_text(const struct wm_drm_card *card, const char *name,
                                       bool wakes, char *text, size_t size,
                                       struct wm_error *ret_err);

/* The reason why a text that was read is not what stands in such a file: FAILED. */
enum wm_reading_state wm_drm_card_refuse(const struct wm_drm_card *card, const char *name,
                                         const char *text, struct wm_error *ret_err);

/* A whole number in min..max. */
enum wm_reading_state wm_drm_card_number(const struct wm_drm_card *card, const char *name,
                                         int64_t min, int64_t max, double *ret_number,
                                         struct wm_error *ret_err);

enum wm_reading_state wm_drm_read_way(const struct wm_drm_card *card,
                                      const struct wm_drm_way *way, double *ret_value,
                                      struct wm_error *ret_err);

struct wm_drm_file wm_drm_by_path(const char *name);
void wm_drm_close_way(struct wm_drm_way *way);

/* Writes the file that WM_GPU_POWER_LIMIT is read from. */
int wm_drm_card_set_limit(const struct wm_drm_card *card, double watts,
                          struct wm_error *err);

extern const char wm_drm_not_measured[]; /* of a power of 0 W */

/* Finds out how the card reports each metric, and opens the files for it. */
void wm_drm_card_open_ways(struct wm_drm_card *card);
void wm_drm_card_close_ways(struct wm_drm_card *card);

#endif
