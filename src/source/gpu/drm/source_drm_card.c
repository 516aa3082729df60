/* SPDX-License-Identifier: Apache-2.0 */
/* source_drm_card.c - which graphics cards there are, and who each of them is. */
#include "source/gpu/drm/source_drm_card.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "source/gpu/drm/source_drm_names.h"
#include "source/gpu/source_drm_text.h"
#include "source/gpu/source_gpu_pci.h"

/* Drivers whose fdinfo has engine counters. */
static const char *const counting[] = {
    "amdgpu", "etnaviv", "i915", "msm", "panfrost", "panthor", "v3d", "xe",
};

/* A serial number that the GPU carries from machine to machine, as amdgpu has
 * it: 16 hexadecimal digits. */
static bool read_serial(int dir, char *identity, size_t size)
{
    char line[64];

    wm_file_read_line(dir, "device/unique_id", line, sizeof(line));
    size_t length = strlen(line);
    if (length < 8 || length > 32 || strspn(line, "0123456789abcdefABCDEF") != length ||
        strspn(line, "0") == length)
        return false;
    snprintf(identity, size, "%s", line);
    return true;
}

/* An APU whose gpu_metrics are those of a GPU that stands alone: MI300A. */
static bool is_like_discrete(const struct wm_drm_uevent *uevent)
{
    return uevent->has_ids && uevent->vendor == 0x1002 && uevent->device == 0x74a0;
}

/* What the board says of itself, else what the machine's lists have, else the numbers. */
static void name_model(struct wm_drm_card *card, const struct wm_drm_uevent *uevent)
{
    struct wm_drm_ids ids = { .vendor = uevent->vendor, .device = uevent->device };
    const char *vendor = wm_drm_vendor(uevent->vendor);
    uint64_t revision;
    char text[16];

    wm_file_read_line(card->dir, "device/product_name", card->model, sizeof(card->model));
    wm_file_read_line(card->dir, "device/revision", text, sizeof(text));
    if (wm_parse_drm_hex(text, &revision) == WM_OK)
        ids.revision = (uint8_t)revision;
    if (card->model[0] || (uevent->has_ids && wm_drm_find_name(&ids, card->model)))
        return;
    if (uevent->has_ids)
        snprintf(card->model, sizeof(card->model), "%s%sGPU %04x:%04x",
                 vendor ? vendor : "", vendor ? " " : "", uevent->vendor, uevent->device);
    else
        snprintf(card->model, sizeof(card->model), "%s GPU", card->driver);
}

static void identify(struct wm_drm_card *card)
{
    int dir = card->dir;
    struct wm_drm_uevent uevent = { 0 };
    char text[2048], device[64];

    if (wm_file_read_at(dir, "device/uevent", text, sizeof(text)) > 0)
        wm_parse_drm_uevent(text, &uevent);
    if (!uevent.driver[0])
        wm_file_link_name(dir, "device/driver", uevent.driver, sizeof(uevent.driver));
    wm_file_link_name(dir, "device", device, sizeof(device));
    if (wm_pci_rank(uevent.slot) == UINT64_MAX)
        snprintf(uevent.slot, sizeof(uevent.slot), "%.31s",
                 wm_pci_rank(device) == UINT64_MAX ? "" : device);

    memcpy(card->driver, uevent.driver, sizeof(card->driver));
    memcpy(card->slot, uevent.slot, sizeof(card->slot));
    card->integrated = is_like_discrete(&uevent);
    card->has_serial = read_serial(dir, card->identity, sizeof(card->identity));
    if (!card->has_serial)
        snprintf(card->identity, sizeof(card->identity), "%s",
                 card->slot[0] ? card->slot
                 : device[0]   ? device
                               : card->label);

    name_model(card, &uevent);
}

static void find_render(struct wm_drm_card *card)
{
    struct dirent *entry;
    unsigned number;

    DIR *folder = wm_file_open_folder(card->dir, "device/drm");
    if (!folder)
        return;
    while ((entry = readdir(folder)) != NULL) {
        if (wm_parse_drm_node(entry->d_name, "renderD", &number) == WM_OK)
            snprintf(card->render, sizeof(card->render), "renderD%u", number);
    }
    closedir(folder);
}

bool wm_drm_card_counts_clients(const struct wm_drm_card *card)
{
    for (size_t i = 0; i < sizeof(counting) / sizeof(counting[0]); i++) {
        if (wm_drm_card_has_driver(card, counting[i]))
            return true;
    }
    return false;
}

bool wm_drm_card_has_driver(const struct wm_drm_card *card, const char *driver)
{
    return strcmp(card->driver, driver) == 0;
}

/* Opens the files of the card. Why it is no GPU of ours, or NULL: one that only shows
 * pictures, or whose driver we do not know, has nothing to read. */
static const char *open_files(struct wm_drm_card *card)
{
    if (card->dir < 0)
        return "no folder";
    identify(card);
    if (!card->driver[0])
        return "no driver";
    if (strncmp(card->driver, "nvidia", 6) == 0)
        return "left to NVML";
    find_render(card);
    wm_drm_card_open_ways(card);
    bool has_counters = wm_drm_card_counts_clients(card);
    for (size_t i = 0; i < WM_DRM_METRICS; i++)
        has_counters |= card->ways[i].by == WM_DRM_BY_FILES ||
                        card->ways[i].by == WM_DRM_BY_GPU_METRICS;
    return has_counters ? NULL : "without counters";
}

static void close_card(struct wm_drm_card *card)
{
    wm_drm_card_close_ways(card);
    if (card->dir >= 0)
        close(card->dir);
}

static void open_card(struct wm_drm_cards *cards, unsigned number)
{
    struct wm_drm_card *card = &cards->cards[cards->count];

    *card = (struct wm_drm_card) {
        .metrics_file.fd = -ENOENT,
        .sleep_file.fd = -ENOENT,
    };
    snprintf(card->label, sizeof(card->label), "card%u", number);
    snprintf(card->path, sizeof(card->path), "%s/%s", cards->class_path, card->label);
    card->dir = open(card->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *why = open_files(card);
    cards->count += why == NULL;
    if (!why)
        return;
    wm_text_list(cards->skipped, sizeof(cards->skipped), "; ", "%s: %s%s%s", card->label,
                 card->driver, card->driver[0] ? ", " : "", why);
    close_card(card);
}

static int compare_numbers(const void *left, const void *right)
{
    unsigned a = *(const unsigned *)left, b = *(const unsigned *)right;

    return a < b ? -1 : a > b;
}

/* Why none of them is read. */
static int cards_fail(const struct wm_drm_cards *cards, struct wm_error *err)
{
    return wm_fail(err, WM_ENODEV, "no DRM GPU with readable counters: looked in %s (%s)",
                   cards->class_path,
                   cards->skipped[0] ? cards->skipped : "which has no cards");
}

/* The numbers of "card0", "card1", ... in ascending order; connectors such as "card0-DP-1"
 * stand beside them. */
static int list_cards(const struct wm_drm_cards *cards, unsigned numbers[WM_DRM_CARDS],
                      size_t *ret_count, struct wm_error *err)
{
    struct dirent *entry;
    size_t count = 0;

    DIR *folder = opendir(cards->class_path);
    if (!folder && (errno == ENOENT || errno == ENOTDIR))
        return wm_fail(err, WM_ENODEV, "no DRM GPU with readable counters: there is no %s",
                       cards->class_path);
    if (!folder)
        return wm_fail_errno(err, cards->class_path);
    while ((entry = readdir(folder)) != NULL && count < WM_DRM_CARDS) {
        if (wm_parse_drm_node(entry->d_name, "card", &numbers[count]) == WM_OK)
            count++;
    }
    closedir(folder);
    if (count == 0)
        return cards_fail(cards, err);
    qsort(numbers, count, sizeof(*numbers), compare_numbers);
    *ret_count = count;
    return WM_OK;
}

/* A card that was taken away and came back under its number has another inode. */
static uint64_t sum_of(const struct wm_drm_cards *cards, const unsigned *numbers,
                       size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        struct stat status = { .st_ino = 0 };
        char path[320];

        snprintf(path, sizeof(path), "%s/card%u/.", cards->class_path, numbers[i]);
        stat(path, &status);
        sum = (sum * 65537 + numbers[i]) * 65537 + (uint64_t)status.st_ino;
    }
    return sum;
}

bool wm_drm_cards_changed(const struct wm_drm_cards *cards)
{
    unsigned numbers[WM_DRM_CARDS];
    size_t count = 0;

    return list_cards(cards, numbers, &count, NULL) < 0 ||
           sum_of(cards, numbers, count) != cards->seen;
}

/* Makes the identities differ: the dies of one package may share a serial number, but on
 * PCI they do not share their place. */
static void tell_apart(struct wm_drm_cards *cards)
{
    for (size_t i = 1; i < cards->count; i++) {
        struct wm_drm_card *card = &cards->cards[i];
        bool equal = false;

        for (size_t k = 0; k < i; k++)
            equal |= strcmp(cards->cards[k].identity, card->identity) == 0;
        if (!equal)
            continue;
        const char *other = card->slot[0] ? card->slot : card->label;
        if (strcmp(card->identity, other) == 0)
            other = card->label;
        snprintf(card->identity, sizeof(card->identity), "%s", other);
    }
}

static bool is_serial_of(const struct wm_drm_card *card, const struct wm_drm_card *other)
{
    return card->has_serial && other->has_serial &&
           strcmp(card->identity, other->identity) == 0;
}

/* Whether serial numbers are those of packages, and not of dies: some have the same. */
static bool has_package_serials(const struct wm_drm_cards *cards)
{
    for (size_t i = 1; i < cards->count; i++)
        for (size_t k = 0; k < i; k++)
            if (is_serial_of(&cards->cards[i], &cards->cards[k]))
                return true;
    return false;
}

/* The first die of the package that a second die is on. Dies of a package have the same
 * serial number; if the driver does not report it, they are neighbours. */
static struct wm_drm_card *find_first_die(struct wm_drm_cards *cards, size_t second)
{
    const struct wm_drm_card *card = &cards->cards[second];
    bool by_serial = card->has_serial && has_package_serials(cards);
    struct wm_drm_card *beside = NULL;

    for (size_t i = 0; i < cards->count; i++) {
        struct wm_drm_card *other = &cards->cards[i];
        if (!other->metrics.has[WM_DRM_ENERGY] || strcmp(other->model, card->model) != 0)
            continue;
        if (is_serial_of(card, other))
            return other;
        if (!by_serial && !other->has_second &&
            (i + 1 == second || (i == second + 1 && !beside)))
            beside = other;
    }
    return beside;
}

/* Finds the cards whose power another device measures. */
static void find_elsewhere(struct wm_drm_cards *cards)
{
    struct wm_error err;
    double watts;

    for (size_t i = 0; i < cards->count; i++) {
        struct wm_drm_card *card = &cards->cards[i], *first;
        if (card->integrated)
            snprintf(card->elsewhere, sizeof(card->elsewhere),
                     "its power is that of the CPU package");
        if (!card->metrics.is_second_die ||
            wm_drm_card_read(card, WM_DRM_POWER, &watts, &err) == WM_READING_OK ||
            !(first = find_first_die(cards, i)))
            continue;
        first->has_second = true;
        card->first_die = first;
        snprintf(card->elsewhere, sizeof(card->elsewhere),
                 "its power is in that of %s, on the same package", first->label);
    }
}

static int find_numbers(struct wm_drm_cards *cards, const char *sysfs,
                        unsigned numbers[WM_DRM_CARDS], size_t *ret_count,
                        struct wm_error *err)
{
    const size_t size = sizeof(cards->class_path);

    if ((size_t)snprintf(cards->class_path, size, "%s/class/drm", sysfs) >= size)
        return wm_fail(err, WM_EINVAL, "too long a path: %s", sysfs);
    return list_cards(cards, numbers, ret_count, err);
}

int wm_drm_cards_look(const char *sysfs, struct wm_error *err)
{
    struct wm_drm_cards cards = { .count = 0 };
    unsigned numbers[WM_DRM_CARDS];
    size_t count;

    return find_numbers(&cards, sysfs, numbers, &count, err);
}

int wm_drm_cards_open(struct wm_drm_cards *cards, const char *sysfs, struct wm_error *err)
{
    unsigned numbers[WM_DRM_CARDS];
    size_t count = 0;

    int status = find_numbers(cards, sysfs, numbers, &count, err);
    if (status < 0)
        return status;
    cards->cards = calloc(count, sizeof(*cards->cards));
    if (!cards->cards)
        return wm_fail_memory(err, "drm");
    cards->seen = sum_of(cards, numbers, count);
    for (size_t i = 0; i < count; i++)
        open_card(cards, numbers[i]);
    find_elsewhere(cards);
    tell_apart(cards);
    return cards->count > 0 ? WM_OK : cards_fail(cards, err);
}

void wm_drm_cards_close(struct wm_drm_cards *cards)
{
    for (size_t i = 0; i < cards->count; i++)
        close_card(&cards->cards[i]);
    free(cards->cards);
}
