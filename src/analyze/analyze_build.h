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

#include "analyze/analyze_state.h"
#include "base/text/base_number.h"

struct wm_report_builder {
    const struct wm_analysis *analysis;
    struct wm_report *report;
    bool failed; /* out of memory */
};

struct wm_value wm_value_known(double number);

/* `why` belongs to the report or is a constant. */
struct wm_value wm_value_missing(const char *why);

/* A part that is unknown leaves the sum unknown, for the same reason. */
void wm_value_add(struct wm_value *sum, const struct wm_value *part);

/* A highest value is no lower than that of a part, where both are known. */
void wm_value_raise(struct wm_value *whole, const struct wm_value *part);

/* A text that lives as long as the report. */
const char *wm_build_text(struct wm_report_builder *builder, const char *format, ...)
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

/* Ticks in which the channel told nothing; all, where there is none. */
uint64_t wm_build_missing_ticks(const struct wm_report_builder *builder, size_t channel);
const char *wm_build_how_many_lack(struct wm_report_builder *builder, size_t channel);

/* Whether a channel found nothing, and at times could not tell: then "none" would
 * say too much. `lacking` says how much is missing. */
bool wm_build_is_doubtful(const struct wm_report_builder *builder, size_t channel);
struct wm_value wm_build_none_found(struct wm_report_builder *builder, size_t channel,
                                    const char *lacking);

/* A device whose joules were counted. */
struct wm_figure_of {
    const char *label;
    const struct wm_channel *channel; /* any of its */
    size_t energy, power;             /* WM_NO_CHANNEL for what it lacks */
    const struct wm_energy *joules;
};

/* Its energy, and remarks on it. */
void wm_build_figure(struct wm_report_builder *builder, const struct wm_figure_of *device,
                     struct wm_energy_figure *figure);

/* Whose the energy was, as it was divided tick by tick; `why` where it is not known what
 * it would be divided by. */
void wm_build_split(const struct wm_share *divided, const struct wm_energy_figure *figure,
                    const char *why, struct wm_energy_split *split);
void wm_build_split_miss(struct wm_energy_split *split, const struct wm_value *missing);

/* What the baseline said of the device, and that its energy cannot be divided by it
 * where that cannot be right. */
void wm_build_baseline(struct wm_report_builder *builder, const struct wm_figure_of *device,
                       const struct wm_share *divided,
                       const struct wm_energy_figure *figure, struct wm_value *ret_idle,
                       struct wm_energy_split *split);

/* A sum over devices, or of such sums: it starts, each is added, it ends. What one of
 * them does not know is unknown in the sum. */
void wm_build_sum_start(struct wm_energy_sum *sum);
void wm_build_sum_add(struct wm_energy_sum *sum, const struct wm_energy_sum *part);
void wm_build_sum_add_gpu(struct wm_energy_sum *sum, const struct wm_gpu_usage *gpu);
void wm_build_sum_end(struct wm_energy_sum *sum);

/* Nothing of it is known. */
void wm_build_sum_miss(struct wm_energy_sum *sum, const char *why);

/* The energy of all that is no GPU, and of everything together; after
 * wm_build_gpus(). */
void wm_build_energy(struct wm_report_builder *builder);

/* The sums over all GPUs that the report has by now. */
void wm_build_gpu_sums(struct wm_report_builder *builder);

/* Everything in the report that speaks of GPUs. */
void wm_build_gpus(struct wm_report_builder *builder);

/* What regions cost; after wm_build_energy(). And what they take in the report. */
void wm_build_regions(struct wm_report_builder *builder);
void wm_region_report_release(struct wm_region_report *regions);

#endif
