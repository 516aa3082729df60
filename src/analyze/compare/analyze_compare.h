/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_compare.h - sessions side by side: which of their blocks are the same, by how
 * much each figure differs from that of the first session, and whether that is more than
 * noise. Nothing here reads a file.
 */
#ifndef WM_ANALYZE_COMPARE_H
#define WM_ANALYZE_COMPARE_H

#include <stdint.h>

#include "analyze/analyze_figures.h"
#include "analyze/region/analyze_block_analysis.h"
#include "base/text/base_number.h"
#include "base/text/base_remarks.h"
#include "wattmeter/comparison.h"

/* What is compared has numbers: the measurements theirs, then come the compared figures of
 * analyze_figures.h in their order, the time first. */
enum {
    WM_COMPARE_TIME = WM_MEASUREMENT_COUNT,
    WM_COMPARE_MOST_FIGURES = 16,
};

/* How many there are. */
unsigned wm_compare_items(void);

/* The number of a name; wm_compare_items() where there is none such. */
unsigned wm_compare_item(const char *name);

struct wm_compare_session {
    char *name;
    struct wm_block_analysis *analysis; /* with its report, where it is a recording */
};

/* A block of each session, or NULL where a session has none. */
struct wm_compare_group {
    char *label; /* "tmp.py:7 -> tmp.py:9" */
    const struct wm_region_usage **blocks;
};

struct wm_compare {
    const struct wm_compare_session *sessions; /* borrowed */
    size_t session_count;
    enum wm_block_figure statistic;
    bool as_gpu_tracker; /* which has 0 where no GPU was measured */
    struct wm_compare_group *groups;
    size_t group_count, group_room;
    struct wm_remarks remarks;
};

/* Blocks that belong together have one name, or names that differ by the number of the line
 * after their last colon. `as_gpu_tracker`: by gpu_tracker's rules and in its words, which
 * is WM_EINVAL where sessions have different blocks. */
int wm_compare_new(const struct wm_compare_session *sessions, size_t count,
                   enum wm_block_figure statistic, bool as_gpu_tracker,
                   struct wm_compare **ret_compare, struct wm_error *err);

/* Accepts NULL. */
void wm_compare_free(struct wm_compare *compare);

/* The two ways to match; for wm_compare_new(). Both add groups and remarks. */
int wm_compare_match(struct wm_compare *compare, struct wm_error *err);
int wm_compare_match_gpu_tracker(struct wm_compare *compare, struct wm_error *err);

/* Whether each session has a block of the group. */
bool wm_compare_is_in_all(const struct wm_compare *compare,
                          const struct wm_compare_group *group);

enum wm_compare_verdict {
    WM_COMPARE_NOT_TESTED,
    WM_COMPARE_WITHIN, /* the noise */
    WM_COMPARE_BEYOND,
};

/* A figure of one session beside that of the first. */
struct wm_compare_cell {
    struct wm_known value;
    const char *lacks; /* why it may be more; NULL: it is known as a whole */
    enum wm_origin origin;
    struct wm_known off;    /* what that may be off, with 95 % confidence */
    struct wm_known change; /* relative to the first, which has none; infinite where that */
                            /* is 0 */
    struct wm_known noise;  /* half the 95 % interval of the difference, where it was */
                            /* tested */
    enum wm_compare_verdict verdict;
    const char *why; /* it was not tested; NULL for the first */
};

/* Of all timepoints. */
#define WM_COMPARE_OVERALL SIZE_MAX

/* A cell for each session. */
void wm_compare_cells(const struct wm_compare *compare, size_t group, unsigned item,
                      struct wm_compare_cell *ret_cells);

/* "main_ram", "time", "tree_energy". */
const char *wm_compare_item_name(unsigned item);

/* The row of a figure; NULL of a measurement. */
const struct wm_figure_row *wm_compare_item_row(unsigned item);

/* Whether more of it is worse: time, CPU time, energy, and the memory of the program. */
bool wm_compare_item_matters(unsigned item);

/* The largest increase of what matters beyond the noise, or of the time of a session. */
struct wm_compare_worst {
    double change; /* 0: there is none */
    size_t session, group;
    unsigned item;
    size_t untested; /* the first session of which nothing could be tested; 0: none */
    unsigned untested_item; /* where it was chosen; wm_compare_items(): nothing of all */
};

/* `chosen` has a bit, 1 << item, for each that counts; 0: all that matter. Each that is
 * chosen has to be one that can be tested. */
int wm_compare_find_worst(const struct wm_compare *compare, uint64_t chosen,
                          struct wm_compare_worst *ret_worst);

/* Of a comparison, for its views; NULL before wm_comparison_run(). */
const struct wm_compare *wm_comparison_compare(const struct wm_comparison *comparison);

enum wm_comparison_format wm_comparison_format(const struct wm_comparison *comparison);

/* "bytes" to "terabytes", powers of 1000, in bytes; 0 for any other word. */
double wm_compare_unit_size(const char *unit);

/* Gives memory in the units of another session. WM_EFORMAT for a unit that is none. */
int wm_compare_convert(struct wm_block_analysis *results,
                       const struct wm_static_data *units, const char *name,
                       struct wm_error *err);

#endif
