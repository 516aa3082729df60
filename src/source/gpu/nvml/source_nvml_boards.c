/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_boards.c - see source_nvml_boards.h. */
#include "source/gpu/nvml/source_nvml_boards.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/base_clock.h"
#include "base/base_guard.h"
#include "source/gpu/nvml/source_gpu_nvml.h"

/* A GPU that sleeps takes a second or two to wake up for the first call, and the
 * driver may wake one at a time. The doctor waits for four seconds in all. */
#define IDENTITY_NS (5 * WM_NS_PER_S / 2)
#define DETAILS_NS WM_NS_PER_S

/* How often it is checked whether a GPU hangs, so that the next one is asked. */
#define LOOK_NS (50 * WM_NS_PER_MS)

/* The owner reads what a call writes once it has collected the answer. */
struct entry {
    atomic_int asked; /* enum nvml_question; of the next call */
    enum nvml_question answered;
    struct nvml_board board;
    enum nvml_question collected; /* the owner's */
};

/* Whoever is last frees it: the owner, or the thread that hangs. */
struct nvml_boards {
    struct nvml_library library;
    struct wm_guard *guard; /* the owner's; NULL: no call is under way */
    bool is_kept;           /* the guard is done with it, the owner is not */
    unsigned starts;        /* shutdowns that it takes beside the library's own */
    size_t count;
    struct entry *entries;
};

static void free_boards(struct nvml_boards *boards)
{
    for (unsigned i = 0; i < boards->starts; i++)
        boards->library.api.shutdown();
    nvml_library_close(&boards->library);
    free(boards->entries);
    free(boards);
}

static void release(void *context)
{
    struct nvml_boards *boards = context;

    if (!boards->is_kept)
        free_boards(boards);
}

int nvml_boards_open(const char *name, struct nvml_boards **ret_boards,
                     struct wm_error *err)
{
    struct nvml_boards *boards = calloc(1, sizeof(*boards));
    unsigned count = 0;

    if (!boards)
        return wm_fail(err, WM_ENOMEM, "out of memory for NVML");
    int status = nvml_library_open(&boards->library, name, err);
    if (status == WM_OK)
        status = nvml_library_count(&boards->library, &count, err);
    if (status == WM_OK) {
        boards->count = count;
        boards->entries = calloc(count, sizeof(*boards->entries));
        if (!boards->entries)
            status = wm_fail(err, WM_ENOMEM, "out of memory for %u GPUs", count);
    }
    if (status < 0) {
        free_boards(boards);
        return status;
    }
    *ret_boards = boards;
    return WM_OK;
}

const struct nvml_library *nvml_boards_library(const struct nvml_boards *boards)
{
    return &boards->library;
}

size_t nvml_boards_count(const struct nvml_boards *boards)
{
    return boards->count;
}

/* Not by the index: NVML counts in PCI order, CUDA by default does not, and both
 * change when a board is moved. */
static void identify(const struct nvml_api *api, unsigned index, struct nvml_board *board)
{
    char *id = board->id.text;

    board->status = api->device_at(index, &board->handle);
    if (board->status == NVML_SUCCESS)
        board->status = nvml_identity(api, board->handle, id, sizeof(board->id.text));
    if (board->status != NVML_SUCCESS)
        id[0] = '\0';
}

/* No board comes near; what says so does not know. */
#define IMPOSSIBLE_WATTS 100e3

/* Not the limit that is set, which somebody may raise in the middle of a run. */
static double most_watts(const struct nvml_api *api, nvml_device device)
{
    struct nvml_values values = { .api = api, .device = device };
    const struct nvml_answer *most = nvml_ask(&values, WM_GPU_POWER_LIMIT_MAX);
    bool is_known = most->status == NVML_SUCCESS && most->number < IMPOSSIBLE_WATTS;

    return is_known ? most->number : 0;
}

static void describe(const struct nvml_api *api, struct nvml_board *board)
{
    if (api->name && api->name(board->handle, board->name, sizeof(board->name)) != 0)
        board->name[0] = '\0';
    nvml_clean_text(board->name, sizeof(board->name));
    nvml_power_read(&board->power, api, board->handle);
    board->is_module = nvml_is_module(api, board->handle, board->name);
    board->most_watts = most_watts(api, board->handle);
}

static void ask(void *context, size_t unit)
{
    struct nvml_boards *boards = context;
    struct entry *entry = &boards->entries[unit];
    enum nvml_question question = (enum nvml_question)atomic_load(&entry->asked);

    if (entry->answered >= question)
        return;
    if (question == NVML_IDENTITY)
        identify(&boards->library.api, (unsigned)unit, &entry->board);
    else
        describe(&boards->library.api, &entry->board);
    entry->answered = question;
}

static bool is_busy(const struct nvml_boards *boards, size_t index)
{
    return boards->guard && wm_guard_busy_since(boards->guard, index) != 0;
}

/* Only of a GPU that has answered all that came before. */
static void ask_all(struct nvml_boards *boards, enum nvml_question question,
                    const bool *which)
{
    for (size_t i = 0; i < boards->count; i++) {
        struct entry *entry = &boards->entries[i];
        if (entry->collected + 1 == question && (!which || which[i]))
            atomic_store(&entry->asked, question);
    }
}

/* Returns how many have answered anew; `ret_left` of those that were asked have not yet. */
static size_t collect(struct nvml_boards *boards, enum nvml_question question,
                      const bool *which, size_t *ret_left)
{
    size_t collected = 0, left = 0;

    for (size_t i = 0; i < boards->count; i++) {
        struct entry *entry = &boards->entries[i];
        if ((which && !which[i]) || entry->collected + 1 != question)
            continue;
        if (!wm_guard_take(boards->guard, i) || entry->answered < question) {
            left++;
            continue;
        }
        entry->collected = question;
        collected++;
    }
    *ret_left = left;
    return collected;
}

/* Nothing tells when a call comes back that was given up, and rounds of the other GPUs
 * alone end at once. */
static void sleep_until(int64_t when_ns)
{
    const struct timespec when = { when_ns / WM_NS_PER_S, when_ns % WM_NS_PER_S };

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

/* Keeps the guard, and with it a thread, only for a call that is under way. */
static void release_guard(struct nvml_boards *boards)
{
    for (size_t i = 0; i < boards->count; i++) {
        if (is_busy(boards, i))
            return;
    }
    boards->is_kept = true;
    wm_guard_close(boards->guard, INT64_MAX);
    boards->guard = NULL;
    boards->is_kept = false;
}

int nvml_boards_ask(struct nvml_boards *boards, enum nvml_question question,
                    const bool *which, struct wm_error *err)
{
    int64_t patience_ns = question == NVML_IDENTITY ? IDENTITY_NS : DETAILS_NS;
    int64_t now_ns = wm_clock_monotonic_ns(), heard_ns = now_ns;
    size_t left = 1;
    int status = WM_OK;

    if (!boards->guard)
        status = wm_guard_new(boards->count, ask, release, boards, &boards->guard, err);
    if (status < 0)
        return status;
    ask_all(boards, question, which);
    while (left > 0 && now_ns - heard_ns < patience_ns) {
        status = wm_guard_start(boards->guard, err);
        if (status < 0)
            break;
        int64_t look_ns = now_ns + LOOK_NS;
        wm_guard_wait(boards->guard, look_ns);
        size_t collected = collect(boards, question, which, &left);
        if (left > 0 && collected == 0)
            sleep_until(look_ns);
        now_ns = wm_clock_monotonic_ns();
        if (collected > 0)
            heard_ns = now_ns;
    }
    release_guard(boards);
    return status < 0 ? status : WM_OK;
}

const struct nvml_board *nvml_board(const struct nvml_boards *boards, size_t index,
                                    enum nvml_question question)
{
    const struct entry *entry = &boards->entries[index];

    return entry->collected >= question ? &entry->board : NULL;
}

void nvml_boards_close(struct nvml_boards *boards, unsigned starts)
{
    if (!boards)
        return;
    boards->starts = starts;
    if (boards->guard)
        release_guard(boards);
    if (boards->guard)
        wm_guard_close(boards->guard, 0);
    else
        free_boards(boards);
}
