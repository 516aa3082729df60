/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_sheet.h - what one GPU says: filled in by its backend through
 * source_gpu_ops.h, in a thread that may hang, and read by the owner of the inventory.
 *
 *     wm_gpu_sheet_ask(sheet, groups);             the owner
 *
 *     groups = wm_gpu_sheet_begin(sheet, &all);    the thread
 *     ops->refresh(state, gpu, groups, all, sheet);
 *     wm_gpu_sheet_end(sheet);
 *
 *     wm_gpu_sheet_collect(sheet, late);           the owner, without waiting for it
 *     wm_gpu_sheet_get(sheet, field, &value);
 *
 * The owner sees what was there when it collected, and no other moment: the
 * thread may go on as it likes. Texts and lists that were got are good until the
 * next wm_gpu_sheet_collect().
 */
#ifndef WM_SOURCE_GPU_SHEET_H
#define WM_SOURCE_GPU_SHEET_H

#include "source/gpu/source_gpu_ops.h"

/* Of a text with its NUL; longer ones are cut. */
#define WM_GPU_TEXT_SIZE 256

/* More processes than these are left out, and the list says that it is not whole. */
#define WM_GPU_PROCESS_MAX 65536

/* Copies what fits of `text` as valid UTF-8, with '?' for what is none and for
 * control characters, which would reach the terminal. */
void wm_gpu_clean(char *out, size_t size, const char *text);

/* `source` is a constant: the name of the backend. */
int wm_gpu_sheet_new(const char *source, struct wm_gpu_sheet **ret_sheet,
                     struct wm_error *err);

/* Accepts NULL. */
void wm_gpu_sheet_free(struct wm_gpu_sheet *sheet);

/* What the next call shall ask. Groups of which not all fixed fields are known,
 * for the driver hung, are asked again with them. */
void wm_gpu_sheet_ask(struct wm_gpu_sheet *sheet, unsigned groups);

/* Whether that has not begun yet. */
bool wm_gpu_sheet_is_asked(struct wm_gpu_sheet *sheet);

/* Takes over what is to be asked; 0 where that is nothing. */
unsigned wm_gpu_sheet_begin(struct wm_gpu_sheet *sheet, bool *ret_all);

/* What was asked and not reported since is "not reported by <source>" from here on. */
void wm_gpu_sheet_end(struct wm_gpu_sheet *sheet);

/* Shows what has been reported. What was asked and has not been told, nor declared
 * missing by wm_gpu_sheet_end(), is WM_READING_FAILED for the reason `late`. */
void wm_gpu_sheet_collect(struct wm_gpu_sheet *sheet, const char *late);

void wm_gpu_sheet_get(const struct wm_gpu_sheet *sheet, enum wm_gpu_field field,
                      struct wm_gpu_value *ret_value);

/* Whether the last collect made another list of processes of it. */
bool wm_gpu_sheet_is_listed_anew(const struct wm_gpu_sheet *sheet);

/* How many rows the list has, and in `ret_list` whether these are all. */
size_t wm_gpu_sheet_rows(const struct wm_gpu_sheet *sheet, enum wm_gpu_list list,
                         struct wm_gpu_value *ret_list);

/* `field` is of enum wm_gpu_process_field or enum wm_gpu_mig_field. */
struct wm_gpu_value wm_gpu_sheet_cell(const struct wm_gpu_sheet *sheet,
                                      enum wm_gpu_list list, size_t row, size_t field);

#endif
