/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_drm_card.h - one graphics card in sysfs: who it is, and which files
 * tell what.
 */
#ifndef WM_SOURCE_DRM_CARD_H
#define WM_SOURCE_DRM_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_error.h"
#include "source/gpu/drm/source_drm_text.h"
#include "wattmeter/source.h"

/* Energy first: of all values a counter loses most by being late. */
enum wm_drm_metric {
    WM_DRM_ENERGY,
    WM_DRM_POWER,
    WM_DRM_UTILIZATION,
    WM_DRM_MEMORY_USED,
    WM_DRM_MEMORY_TOTAL,
    WM_DRM_TEMPERATURE,
    WM_DRM_MEMORY_TEMPERATURE,
    WM_DRM_METRICS,
};

/* How a card tells a metric. */
enum wm_drm_way {
    WM_DRM_NOT_AT_ALL,
    WM_DRM_BY_FILES,       /* a number, or the sum of several */
    WM_DRM_BY_GPU_METRICS, /* amdgpu's binary file */
    WM_DRM_BY_CLIENTS,     /* the sum over all that have the device open */
};

struct wm_drm_file {
    int fd;        /* or the negative errno value of opening it */
    int sign;      /* of its number in the sum */
    char name[96]; /* under the card's folder; for people */
};

enum { WM_DRM_PARTS = 4 };

struct wm_drm_card {
    long number, render; /* of card1 and renderD129; -1 where there is none */
    char label[16];      /* "card1" */
    char path[512];      /* of its folder in sysfs */
    char driver[32];
    char slot[32];     /* on PCI: "0000:03:00.0"; else empty */
    char identity[96]; /* unique among the cards, and the same after a reboot */
    char model[96];
    char hwmon[64];  /* "device/hwmon/hwmon3/"; empty where there is none */
    bool integrated; /* surely a part of a processor, whose power is its power */

    struct wm_drm_sensor {
        enum wm_drm_way way;
        struct wm_drm_file files[WM_DRM_PARTS];
        size_t file_count;
    } sensors[WM_DRM_METRICS];

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

enum wm_drm_verdict {
    WM_DRM_NO_GPU,    /* not one of ours */
    WM_DRM_MAYBE_GPU, /* if processes turn out to have counters for it */
    WM_DRM_IS_GPU,
};

/* Looks at card `number` in the folder `class_path`, class/drm of sysfs. Says in
 * `why` what is wrong with one that is no GPU. Close it in either case. */
enum wm_drm_verdict wm_drm_card_open(struct wm_drm_card *card, const char *class_path,
                                     long number, char *why, size_t why_size);
void wm_drm_card_close(struct wm_drm_card *card);

/* Whether the card's driver is known to count the time of its clients. */
bool wm_drm_card_counts_clients(const struct wm_drm_card *card);

/* Starts a new round of readings. */
void wm_drm_card_turn(struct wm_drm_card *card);

/* Reads a metric that comes by files or by gpu_metrics. Where the state is not
 * WM_READING_OK, `ret_err` says why. */
enum wm_reading_state wm_drm_card_read(struct wm_drm_card *card, enum wm_drm_metric metric,
                                       double *ret_value, struct wm_error *ret_err);

/* What amdgpu's gpu_metrics says in this round of readings; states and texts as
 * above. */
enum wm_reading_state wm_drm_card_metrics(struct wm_drm_card *card,
                                          const struct wm_gpu_metrics **ret_metrics,
                                          struct wm_error *ret_err);

/* The state of a reading whose file gave this errno value. */
enum wm_reading_state wm_drm_state_of(int number);

/* Of the sensors of a `kind` ("temp") in a folder of hwmon the number of the one
 * with the best label; labels[0..count) begin with the best, end with NULL or at
 * `count`, and "" is a sensor without a label. 0 where none will do. */
unsigned wm_drm_find_sensor(int dir, const char *folder, const char *kind,
                            const char *const *labels, size_t count);

/* More than any machine has. */
enum { WM_DRM_CARDS = 64 };

/* The numbers of "card0", "card1", ... in class/drm of sysfs, in ascending order;
 * connectors such as "card0-DP-1" stand beside them. WM_ENODEV: there is no such
 * folder. */
int wm_drm_list_cards(const char *class_path, long numbers[WM_DRM_CARDS], size_t *ret_count,
                      struct wm_error *err);

/* Makes the identities of cards[0..count) differ: the dies of one package may
 * share a serial number, but on PCI they do not share their place. */
void wm_drm_tell_apart(struct wm_drm_card *const *cards, size_t count);

/* Between source_drm_card.c, where cards are found, and source_drm_card_sensors.c,
 * where they are read; `dir` is the card's folder or one below it. */

/* Finds out how the card tells each metric, and opens the files for it. */
void wm_drm_card_open_sensors(struct wm_drm_card *card, int dir);

#endif
