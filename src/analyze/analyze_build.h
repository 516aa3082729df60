/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_build.h - filling in a report: values with their reasons, and remarks;
 * for src/analyze alone.
 *
 * A builder that has run out of memory says so once, at its end; until then its
 * functions go on and give texts that can be used.
 */
#ifndef WM_ANALYZE_BUILD_H
#define WM_ANALYZE_BUILD_H

#include "analyze/analyze_report.h"
#include "analyze/analyze_state.h"
#include "base/text/base_number.h"

struct wm_report_builder {
    const struct wm_analysis *analysis;
    struct wm_report *report;
    bool failed;    /* out of memory */
    bool is_energy; /* remarks and facts are of energy */
};

/* A text that lives as long as the report. */
const char *wm_build_text(struct wm_report_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What is worth knowing of how a figure was obtained, but no warning. */
void wm_build_fact(struct wm_report_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void wm_build_remark(struct wm_report_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A number for a text: three significant digits, and '.' in every locale. */
struct wm_number_text {
    char text[WM_NUMBER_SIZE];
};
struct wm_number_text wm_build_number(double value);

/* "s" unless it is one. */
const char *wm_plural(uint64_t count);

/* A remark on the times when this channel was stale, `what` being its name there.
 * One that was stale throughout shows no value, and its reason there. */
void wm_build_silence(struct wm_report_builder *builder, size_t channel, const char *what);

/* Why there is no number from this channel; WM_NO_CHANNEL where `source` has no
 * such channel, or is not there. */
const char *wm_build_why(struct wm_report_builder *builder, size_t channel,
                         const char *source);

/* The highest, the last and the mean value of a gauge. */
struct wm_value wm_build_max(struct wm_report_builder *builder, size_t channel,
                             const char *source);
struct wm_value wm_build_last(struct wm_report_builder *builder, size_t channel,
                              const char *source);
struct wm_spread wm_build_spread(struct wm_report_builder *builder, size_t channel,
                                 const char *source);

/* Ticks in which the channel reported nothing; all, where there is none. */
uint64_t wm_build_missing_ticks(const struct wm_report_builder *builder, size_t channel);
const char *wm_build_how_many_lack(struct wm_report_builder *builder, size_t channel);

/* Whether a channel found nothing, and at times could not report: then "none" would
 * say too much. `lacking` says how much is missing. */
bool wm_build_is_doubtful(const struct wm_report_builder *builder, size_t channel);
struct wm_value wm_build_none_found(struct wm_report_builder *builder, size_t channel,
                                    const char *lacking);

/* Energy in a report: of one device, whose it was, and sums over devices. */

/* The energy of a device, remarks on it, whose it was as it was divided tick by tick, and
 * what the baseline said of the device: the energy cannot be divided by one that cannot be
 * right. `why` is said where it is not known what it would be divided by, and `unfit`,
 * unless it is NULL, in place of whatever was found. */
void wm_build_device(struct wm_report_builder *builder,
                     const struct wm_device_stats *device, const char *why,
                     const char *unfit, struct wm_energy_figure *figure,
                     struct wm_energy_split *split, struct wm_value *ret_idle);

/* A figure as a sum of one. */
struct wm_energy_sum wm_build_sum_of(const struct wm_energy_figure *figure,
                                     const struct wm_energy_split *split,
                                     enum wm_origin origin);

/* A sum over devices, or of such sums: it starts, each is added, it ends. What one of
 * them does not know is unknown in the sum. */
void wm_build_sum_start(struct wm_energy_sum *sum);
void wm_build_sum_add(struct wm_energy_sum *sum, const struct wm_energy_sum *part);
void wm_build_sum_end(struct wm_energy_sum *sum);

/* A sum that lacks one of its parts is the least that it may be. */
void wm_build_sum_lack(struct wm_energy_sum *sum, const char *why);

/* Nothing of it is known. */
void wm_build_sum_miss(struct wm_energy_sum *sum, const char *why);

/* The parts of a report, in the order in which they are made: each is a file of its own,
 * and a later one may read what an earlier one has filled in. */

/* Time, memory, CPU time and use, and remarks on the session. */
void wm_build_session(struct wm_report_builder *builder);

/* All that speaks of GPUs. */
void wm_build_gpus(struct wm_report_builder *builder);

/* The energy of all that is no GPU, and of everything together. */
void wm_build_energy(struct wm_report_builder *builder);

/* What regions cost. */
void wm_build_regions(struct wm_report_builder *builder);

/* What all timepoints come to. */
void wm_build_overall(struct wm_regions *regions, struct wm_usage_report *usage);

/* The names of the regions, but for what they cost; the caller's. WM_ENOMEM is the only
 * failure. */
int wm_regions_usages(struct wm_regions *regions, struct wm_region_usage **ret_usages,
                      size_t *ret_count);

#endif
