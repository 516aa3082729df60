/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_nvml_boards.h - who the GPUs of NVML are. Each is asked where it can be given
 * up (base_guard.h), so that one that hangs costs itself and none of the others.
 *
 *     struct nvml_boards *boards;
 *     int status = nvml_boards_open(NULL, &boards, err);
 *     if (status == WM_OK)
 *         status = nvml_boards_ask(boards, NVML_IDENTITY, NULL, err);
 *     board = nvml_board(boards, index, NVML_IDENTITY);
 */
#ifndef WM_SOURCE_NVML_BOARDS_H
#define WM_SOURCE_NVML_BOARDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/base_error.h"
#include "source/gpu/nvml/source_nvml_abi.h"
#include "source/gpu/nvml/source_nvml_library.h"
#include "source/gpu/nvml/source_nvml_power.h"
#include "source/gpu/select/source_gpu_choice.h"

/* NVML, started, and its GPUs. */
struct nvml_boards;

/* What is asked, in this order. */
enum nvml_question { NVML_NO_QUESTION, NVML_IDENTITY, NVML_DETAILS };

struct nvml_board {
    /* NVML_IDENTITY. */
    nvml_device handle;
    int status; /* NVML_SUCCESS: it has an identity */
    struct wm_gpu_id id;

    /* NVML_DETAILS, of a board that has one. */
    char name[NVML_NAME_SIZE]; /* empty where it has none */
    struct nvml_power power;
    bool is_module;    /* nvml_is_module() */
    double most_watts; /* the highest limit that it can be set to; 0: not known */
};

/* Starts the library `name`, or the loader's where that is NULL, and counts the
 * GPUs: there is at least one. */
int nvml_boards_open(const char *name, struct nvml_boards **ret_boards,
                     struct wm_error *err);

/* As long as the boards are open. */
const struct nvml_library *nvml_boards_library(const struct nvml_boards *boards);
size_t nvml_boards_count(const struct nvml_boards *boards);

/* Asks all GPUs, or those in which[0..count), and waits as long as one answers now and
 * then. Fails only where no thread could be made. */
int nvml_boards_ask(struct nvml_boards *boards, enum nvml_question question,
                    const bool *which, struct wm_error *err);

/* What a GPU has answered; NULL where it has not. */
const struct nvml_board *nvml_board(const struct nvml_boards *boards, size_t index,
                                    enum nvml_question question);

/* Shuts NVML down, `starts` times more than it was started here; where a GPU still
 * hangs, when that has come back. Accepts NULL. */
void nvml_boards_close(struct nvml_boards *boards, unsigned starts);

#endif
