/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_drm.c - the inventory of GPUs of AMD and Intel, and others with a DRM driver,
 * from what the kernel itself tells. No library of a vendor is needed.
 */
#include "source/gpu/source_gpu_ops.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "source/gpu/drm/source_gpu_drm_look.h"
#include "source/gpu/drm/source_gpu_drm_text.h"

/* How long to search for users of cards that are perhaps no GPU, as in most virtual
 * machines. */
#define SEARCH_PERHAPS_NS WM_NS_PER_MS

struct drm {
    char sysfs[256], procfs[256];
    char class_path[280];

    long numbers[WM_DRM_CARDS]; /* of all cards, GPUs or not */
    uint64_t inodes[WM_DRM_CARDS];
    size_t number_count;

    struct wm_drm_board *boards; /* of cards that are a GPU or may be one */
    enum wm_drm_verdict verdicts[WM_DRM_CARDS];
    size_t board_count;

    size_t gpus[WM_DRM_CARDS]; /* places of the boards that are one */
    size_t gpu_count;

    char skipped[160]; /* cards that are no GPUs, and why */
    char detail[512];
};

static void append(char *list, size_t size, const char *text)
{
    size_t length = strlen(list);

    snprintf(list + length, size - length, "%s%s", length > 0 ? "; " : "", text);
}

/* A card that was taken away and came back under its number has another one. */
static uint64_t inode_of(const struct drm *drm, long number)
{
    char path[320];
    struct stat status;

    snprintf(path, sizeof(path), "%s/card%ld/.", drm->class_path, number);
    return stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

static int find_cards(struct drm *drm, struct wm_error *err)
{
    char why[96];

    int status = wm_drm_list_cards(drm->class_path, drm->numbers, &drm->number_count, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < drm->number_count; i++) {
        struct wm_drm_board *board = &drm->boards[drm->board_count];
        drm->inodes[i] = inode_of(drm, drm->numbers[i]);
        enum wm_drm_verdict verdict = wm_drm_card_open(&board->card, drm->class_path,
                                                       drm->numbers[i], why, sizeof(why));
        if (verdict == WM_DRM_NO_GPU) {
            wm_drm_card_close(&board->card);
            append(drm->skipped, sizeof(drm->skipped), why);
            continue;
        }
        board->dir = -1;
        drm->verdicts[drm->board_count++] = verdict;
    }
    return WM_OK;
}

static void tell_apart(struct drm *drm)
{
    struct wm_drm_card *cards[WM_DRM_CARDS];

    for (size_t i = 0; i < drm->board_count; i++)
        cards[i] = &drm->boards[i].card;
    wm_drm_tell_apart(cards, drm->board_count);
}

/* Whether the PCI device in `folder` is a bridge of that vendor. */
static bool is_bridge_of(int dir, const char *folder, uint64_t vendor)
{
    char path[64], text[32];
    uint64_t maker, class;

    snprintf(path, sizeof(path), "%svendor", folder);
    if (wm_file_read_at(dir, path, text, sizeof(text)) <= 0 ||
        wm_parse_drm_hex(text, &maker) < 0 || maker != vendor)
        return false;
    snprintf(path, sizeof(path), "%sclass", folder);
    return wm_file_read_at(dir, path, text, sizeof(text)) > 0 &&
           wm_parse_drm_hex(text, &class) == WM_OK && class >> 8 == 0x0604;
}

/* Many boards carry a switch, behind which the GPU has a link that is always at its
 * fastest. The board's link to the machine is that of the switch, two up. */
static void find_link(struct wm_drm_board *board)
{
    char text[32];
    uint64_t vendor;

    snprintf(board->link, sizeof(board->link), "device/");
    if (wm_file_read_at(board->dir, "device/vendor", text, sizeof(text)) > 0 &&
        wm_parse_drm_hex(text, &vendor) == WM_OK &&
        is_bridge_of(board->dir, "device/../", vendor) &&
        is_bridge_of(board->dir, "device/../../", vendor))
        snprintf(board->link, sizeof(board->link), "device/../../");
}

static int prepare(struct drm *drm, size_t place, struct wm_error *err)
{
    struct wm_drm_board *board = &drm->boards[place];

    board->place = place;
    board->dir = open(board->card.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    find_link(board);
    board->uses = calloc(WM_DRM_CLIENTS, sizeof(*board->uses));
    board->gpus = calloc(drm->board_count, sizeof(*board->gpus));
    if (!board->uses || !board->gpus)
        return wm_fail(err, WM_ENOMEM, "drm: out of memory");
    for (size_t i = 0; i < drm->board_count; i++) {
        board->gpus[i] = wm_drm_gpu_of(&drm->boards[i].card);
        board->gpus[i].wanted = i == place;
    }
    int status = wm_drm_clients_init(&board->clients, drm->procfs, board->gpus,
                                     drm->board_count, err);
    board->clients.fds_left /= (int)drm->board_count;
    return status;
}

/* A card of unknown kind is a GPU if somebody has counters for it. */
static bool is_gpu(struct drm *drm, size_t place)
{
    struct wm_drm_board *board = &drm->boards[place];
    char why[96];

    if (drm->verdicts[place] == WM_DRM_IS_GPU)
        return true;
    wm_drm_clients_search(&board->clients, SEARCH_PERHAPS_NS);
    if (board->gpus[place].counts_engines)
        return true;
    snprintf(why, sizeof(why), "%s: %s, without counters", board->card.label,
             board->card.driver);
    append(drm->skipped, sizeof(drm->skipped), why);
    return false;
}

static void describe(struct drm *drm)
{
    char text[160];

    for (size_t i = 0; i < drm->gpu_count; i++) {
        const struct wm_drm_card *card = &drm->boards[drm->gpus[i]].card;
        snprintf(text, sizeof(text), "%s: %s%s%s", card->label, card->driver,
                 card->slot[0] ? " at " : "", card->slot);
        append(drm->detail, sizeof(drm->detail), text);
    }
}

static int drm_open(void *state, const struct wm_source_config *config,
                    struct wm_error *err)
{
    struct drm *drm = state;

    if ((size_t)snprintf(drm->sysfs, sizeof(drm->sysfs), "%s", config->sysfs) >=
        sizeof(drm->sysfs))
        return wm_fail(err, WM_EINVAL, "too long a path: %s", config->sysfs);
    if ((size_t)snprintf(drm->procfs, sizeof(drm->procfs), "%s", config->procfs) >=
        sizeof(drm->procfs))
        return wm_fail(err, WM_EINVAL, "too long a path: %s", config->procfs);
    snprintf(drm->class_path, sizeof(drm->class_path), "%s/class/drm", drm->sysfs);

    drm->boards = calloc(WM_DRM_CARDS, sizeof(*drm->boards));
    if (!drm->boards)
        return wm_fail(err, WM_ENOMEM, "drm: out of memory");
    int status = find_cards(drm, err);
    if (status < 0)
        return status;
    tell_apart(drm);
    for (size_t i = 0; i < drm->board_count; i++) {
        status = prepare(drm, i, err);
        if (status < 0)
            return status;
        if (is_gpu(drm, i))
            drm->gpus[drm->gpu_count++] = i;
    }
    if (drm->gpu_count == 0)
        return wm_fail(
            err, WM_ENODEV, "no DRM GPU with readable counters: looked in %s (%s)",
            drm->class_path, drm->skipped[0] ? drm->skipped : "which has no cards");
    describe(drm);
    return WM_OK;
}

static size_t drm_count(const void *state)
{
    const struct drm *drm = state;

    return drm->gpu_count;
}

static const char *drm_detail(const void *state)
{
    const struct drm *drm = state;

    return drm->detail;
}

/* A card that is gone leaves an empty folder behind for those who have it open. */
static bool is_gone(const struct wm_drm_board *board)
{
    return board->dir < 0 || faccessat(board->dir, "device", F_OK, 0) != 0;
}

static void refresh_gone(struct wm_drm_look *look)
{
    const char *label = look->board->card.label;
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
        .board = &drm->boards[drm->gpus[gpu]],
        .sheet = sheet,
        .groups = groups,
    };
    (void)all;

    if (is_gone(look.board)) {
        refresh_gone(&look);
        return;
    }
    wm_drm_card_turn(&look.board->card);
    wm_drm_look_at_general(&look);
    wm_drm_look_at_files(&look);
    wm_drm_look_at_condition(&look);
    wm_drm_look_at_users(&look);
    wm_drm_look_finish(&look);
}

static bool drm_changed(void *state)
{
    const struct drm *drm = state;
    long numbers[WM_DRM_CARDS];
    size_t count = 0;

    if (wm_drm_list_cards(drm->class_path, numbers, &count, NULL) < 0)
        return true;
    if (count != drm->number_count)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] != drm->numbers[i] || inode_of(drm, numbers[i]) != drm->inodes[i])
            return true;
    }
    return false;
}

static void drm_close(void *state)
{
    struct drm *drm = state;

    for (size_t i = 0; i < drm->board_count; i++) {
        struct wm_drm_board *board = &drm->boards[i];
        wm_drm_clients_release(&board->clients);
        free(board->gpus);
        free(board->uses);
        if (board->dir >= 0)
            close(board->dir);
        wm_drm_card_close(&board->card);
    }
    free(drm->boards);
}

const struct wm_gpu_ops wm_gpu_drm = {
    .name = "drm",
    .state_size = sizeof(struct drm),
    .open = drm_open,
    .count = drm_count,
    .detail = drm_detail,
    .refresh = drm_refresh,
    .changed = drm_changed,
    .close = drm_close,
};
