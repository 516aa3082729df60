/* SPDX-License-Identifier: Apache-2.0 */
/* record_csv.h - the layout of our CSV files, for the writer and the reader;
 * docs/recordings.md explains it. */
#ifndef WM_RECORD_CSV_H
#define WM_RECORD_CSV_H

/* gpu_tracker's nine static columns; ours follow in the same row. */
#define WM_CSV_STATIC                                                                      \
    "ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,"         \
    "system_core_count,n_expected_cores,system_gpu_count,n_expected_gpus"

#define WM_CSV_STATIC_OURS                                                                 \
    ",wattmeter_format,wattmeter_run,wattmeter_channels,wattmeter_gaps_and_result"

/* Where those four stand in the row. */
enum {
    WM_CSV_FORMAT = 9,
    WM_CSV_RUN,
    WM_CSV_CHANNELS,
    WM_CSV_STATE,
    WM_CSV_STATIC_COUNT,
};

/* The longest line, without its end. */
#define WM_CSV_LINE_MAX ((size_t)1 << 20)

#endif
