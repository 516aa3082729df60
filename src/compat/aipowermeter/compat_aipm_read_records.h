/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_aipm_read_records.h - the lines of an AIPowerMeter file, one record after the
 * other, of all of it or of one of its runs.
 *
 * The last run of a file is all of it, as AIPowerMeter has it. What stands before each
 * end of a recording segment is a run as well, where there is more than one of them.
 */
#ifndef WM_COMPAT_AIPM_READ_RECORDS_H
#define WM_COMPAT_AIPM_READ_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/base_lines.h"

/* In place of a run's number: all that the file holds. */
#define WM_AIPM_WHOLE ((size_t)-1)

struct wm_aipm_record {
    json_t *line; /* owns all of it, and is the caller's */
    const json_t *metrics;
    int64_t date_ns; /* since 1970 */
    const char *why; /* why it begins a segment, by what stands before it; or NULL */
};

/* All zero is a closed one. */
struct wm_aipm_records {
    const char *path; /* for messages */
    struct wm_lines lines;
    size_t chosen; /* which run is read, or WM_AIPM_WHOLE */
    size_t part;   /* the run that the file has come to, */
    bool in_part;  /* and whether there was anything of it */
    bool in_rest;  /* behind the last whole line */
    bool has_date;
    int64_t date_ns; /* of the last record */
    const char *why; /* of the next one */
    uint64_t bad_lines;
    size_t first_bad_line;
    bool is_torn; /* its last line is */
};

/* Whether a file that begins with these bytes is AIPowerMeter's. */
bool wm_aipm_recognises(const char *head, size_t length);

/* `path` outlives it. All of the file is read, until a run is chosen. */
int wm_aipm_records_open(struct wm_aipm_records *records, const char *path,
                         size_t *ret_run_count, struct wm_error *err);

void wm_aipm_records_close(struct wm_aipm_records *records);

/* 1 and the next record; 0 past the last one. */
int wm_aipm_records_next(struct wm_aipm_records *records, struct wm_aipm_record *ret_record,
                         struct wm_error *err);

/* Back to the first, with no trouble noted yet. */
int wm_aipm_records_rewind(struct wm_aipm_records *records, struct wm_error *err);

/* Past the last record of a run: when the first one of the run behind it was written;
 * INT64_MAX where there is none. */
int wm_aipm_records_next_run(struct wm_aipm_records *records, int64_t *ret_date_ns,
                             struct wm_error *err);

#endif
