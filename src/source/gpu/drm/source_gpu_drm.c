/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_drm.c - the inventory of GPUs of AMD and Intel, and others with a DRM driver,
 * from what the kernel itself reports. No library of a vendor is needed.
 */
#include "source/gpu/source_gpu_ops.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_text.h"
#include "source/gpu/drm/source_gpu_drm_look.h"
#include "source/gpu/source_drm_text.h"

struct drm {
    char sysfs[256], procfs[256];
    struct wm_drm_cards cards;
    struct wm_drm_board *boards; /* by the place of their card */
    char detail[512];
};

static bool read_hex(int dir, const char *folder, const char *name, uint64_t *ret_value)
{
    char path[64], text[32];

    snprintf(path, sizeof(path), "%s%s", folder, name);
    return wm_file_read_at(dir, path, text, sizeof(text)) > 0 &&
           wm_parse_drm_hex(text, ret_value) == WM_OK;
}

/* The maker of the PCI device in `folder` and what it is; what has no file of its own is in
 * its uevent. */
static bool read_pci(int dir, const char *folder, uint64_t *ret_vendor, uint64_t *ret_class)
{
    struct wm_drm_uevent uevent = { 0 };
    char path[64], text[2048];

    snprintf(path, sizeof(path), "%suevent", folder);
    if (wm_file_read_at(dir, path, text, sizeof(text)) > 0)
        wm_parse_drm_uevent(text, &uevent);
    *ret_vendor = uevent.vendor;
    *ret_class = uevent.class;
    bool has_vendor = read_hex(dir, folder, "vendor", ret_vendor) || uevent.has_ids;
    bool has_class = read_hex(dir, folder, "class", ret_class) || uevent.class != 0;
    return has_vendor || has_class;
}

/* Whether the PCI device in `folder` is a bridge of that vendor. */
static bool is_bridge_of(int dir, const char *folder, uint64_t vendor)
{
    uint64_t maker, class;

    return read_pci(dir, folder, &maker, &class) && maker == vendor && class >> 8 == 0x0604;
}

/* Many boards carry a switch, behind which the GPU has a link that is always at its
 * fastest. The board's link to the machine is that of the switch, two up. */
void wm_drm_find_link(struct wm_drm_card *card)
{
    uint64_t vendor, class;

    snprintf(card->link, sizeof(card->link), "device/");
    if (read_pci(card->dir, "device/", &vendor, &class) &&
        is_bridge_of(card->dir, "device/../", vendor) &&
        is_bridge_of(card->dir, "device/../../", vendor))
        snprintf(card->link, sizeof(card->link), "device/../../");
}

static int prepare(struct drm *drm, size_t place, struct wm_error *err)
{
    struct wm_drm_board *board = &drm->boards[place];
    size_t count = drm->cards.count;

    board->card = &drm->cards.cards[place];
    wm_drm_find_link(board->card);
    board->gpus = calloc(count, sizeof(*board->gpus));
    if (!board->gpus)
        return wm_fail_memory(err, "drm");
    for (size_t i = 0; i < count; i++)
        board->gpus[i].card = &drm->cards.cards[i];
    board->gpu = &board->gpus[place];
    board->gpu->wanted = true;
    int status = wm_drm_clients_init(&board->clients, drm->procfs, board->gpus, count, err);
    board->clients.fds_left /= (int)count;
    wm_text_list(drm->detail, sizeof(drm->detail), "; ", "%s: %s%s%s", board->card->label,
                 board->card->driver, board->card->slot[0] ? " at " : "",
                 board->card->slot);
    return status;
}

static int drm_open(void *state, const struct wm_source_config *config,
                    struct wm_error *err)
{
    struct drm *drm = state;

    if (strlen(config->sysfs) >= sizeof(drm->sysfs) ||
        strlen(config->procfs) >= sizeof(drm->procfs))
        return wm_fail(err, WM_EINVAL, "too long a path: %s or %s", config->sysfs,
                       config->procfs);
    snprintf(drm->sysfs, sizeof(drm->sysfs), "%s", config->sysfs);
    snprintf(drm->procfs, sizeof(drm->procfs), "%s", config->procfs);

    int status = wm_drm_cards_open(&drm->cards, drm->sysfs, err);
    if (status < 0)
        return status;
    drm->boards = calloc(drm->cards.count, sizeof(*drm->boards));
    if (!drm->boards)
        return wm_fail_memory(err, "drm");
    for (size_t i = 0; status == WM_OK && i < drm->cards.count; i++)
        status = prepare(drm, i, err);
    return status;
}

static size_t drm_count(const void *state)
{
    const struct drm *drm = state;

    return drm->cards.count;
}

static const char *drm_detail(const void *state)
{
    const struct drm *drm = state;

    return drm->detail;
}

/* A card that is gone leaves an empty folder behind for those who have it open. */
static bool is_gone(const struct wm_drm_board *board)
{
    return faccessat(board->card->dir, "device", F_OK, 0) != 0;
}

static void refresh_gone(struct wm_drm_look *look)
{
    const char *label = look->board->card->label;
    char why[64];

    snprintf(why, sizeof(why), "%s is gone", label);
    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        if (field != WM_GPU_INDEX && !wm_gpu_field_info(field)->fixed)
            wm_drm_look_missing(look, field, WM_READING_FAILED, "%s", why);
    }
    if (look->groups & WM_GPU_PROCESSES) {
        wm_gpu_begin_list(look->sheet, WM_GPU_PROCESS_LIST);
        wm_gpu_end_list(look->sheet, WM_GPU_PROCESS_LIST, WM_READING_FAILED, why);
    }
}

/* Fixed fields are asked each time too: a GPU that was asleep when they were asked
 * first may be awake, and most of them cost one small file. */
static void drm_refresh(void *state, size_t gpu, unsigned groups, bool all,
                        struct wm_gpu_sheet *sheet)
{
    struct drm *drm = state;
    struct wm_drm_look look = {
        .sysfs = drm->sysfs,
        .procfs = drm->procfs,
        .board = &drm->boards[gpu],
        .sheet = sheet,
        .groups = groups,
    };
    (void)all;

    if (is_gone(look.board)) {
        refresh_gone(&look);
        return;
    }
    wm_drm_card_turn(look.board->card);
    wm_drm_look_at_general(&look);
    wm_drm_look_at_files(&look);
    wm_drm_look_at_condition(&look);
    wm_drm_look_at_users(&look);
    wm_drm_look_finish(&look);
}

static int drm_set(void *state, size_t gpu, enum wm_gpu_field field, double value,
                   struct wm_error *err)
{
    struct drm *drm = state;
    struct wm_drm_card *card = drm->boards[gpu].card;

    if (field != WM_GPU_POWER_LIMIT)
        return wm_fail(err, WM_ENODEV, "only the power limit of %s can be set",
                       card->label);
    return wm_drm_card_set_limit(card, value, err);
}

static bool drm_changed(void *state)
{
    const struct drm *drm = state;

    return wm_drm_cards_changed(&drm->cards);
}

static void drm_close(void *state)
{
    struct drm *drm = state;

    for (size_t i = 0; drm->boards && i < drm->cards.count; i++) {
        wm_drm_clients_release(&drm->boards[i].clients);
        free(drm->boards[i].gpus);
    }
    free(drm->boards);
    wm_drm_cards_close(&drm->cards);
}

const struct wm_gpu_ops wm_gpu_drm = {
    .name = "drm",
    .state_size = sizeof(struct drm),
    .open = drm_open,
    .count = drm_count,
    .detail = drm_detail,
    .refresh = drm_refresh,
    .set = drm_set,
    .changed = drm_changed,
    .close = drm_close,
};
