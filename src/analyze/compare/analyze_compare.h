/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_compare.h - sessions side by side: which of their blocks are the same, and by how
 * much each figure differs. A session is one run, or several of the same, which are its
 * repeats; what differs by more than those do is told (analyze_runs.h). Nothing here reads
 * a file.
 */
#ifndef WM_ANALYZE_COMPARE_H
#define WM_ANALYZE_COMPARE_H

#include <stdint.h>

#include "analyze/analyze_figures.h"
#include "analyze/analyze_report.h"
#include "analyze/compare/analyze_runs.h"
#include "base/text/base_number.h"
#include "base/text/base_remarks.h"
#include "wattmeter/comparison.h"

/* What is compared has numbers: the measurements theirs, then come the compared figures of
 * analyze_figures.h in their order. */
enum {
    WM_COMPARE_FIGURES = WM_MEASUREMENT_COUNT,
    WM_COMPARE_MOST_FIGURES = 16,
};

/* How many there are. */
unsigned wm_compare_items(void);

/* The number of a name; wm_compare_items() where there is none such. */
unsigned wm_compare_item(const char *name);

/* The item at that place where people read them: in the order of the report. */
unsigned wm_compare_item_at(unsigned place);

/* The tests whose 95 % intervals hold together: each is corrected for the number of those
 * in its family. */
enum wm_compare_family {
    WM_COMPARE_HEADLINES, /* of whole runs: time, CPU time, energy and memory */
    WM_COMPARE_OTHERS,    /* GPUs and use, and whatever is of a region */
    WM_COMPARE_DETAILS,   /* shown with -v alone */
    WM_COMPARE_FAMILIES,
};

/* "headlines", "others", "details". */
extern const char *const wm_compare_families[];

/* Whether a figure of whole runs is a headline. */
bool wm_compare_is_headline(const char *key);

/* The headlines of that number of sessions beside their reference. They all count, known or
 * not, so that an interval does not depend on what else was measured. */
size_t wm_compare_headlines(size_t sessions);

/* One run of a session. */
struct wm_compare_run {
    struct wm_report *report;
    double batch;             /* of so many runs back to back */
    const char *seed, *round; /* of `run --repeat`, which make pairs; NULL */
};

struct wm_compare_session {
    char *name;
    struct wm_compare_run *runs; /* one at least */
    size_t count;
    size_t file;      /* sessions of one file may be pairs of runs */
    size_t reference; /* the session that it is compared with; itself: none */
    size_t first;     /* of its runs among those of all sessions; by wm_compare_new() */
};

/* A block of each run, or NULL where a run has none. */
struct wm_compare_group {
    char *label; /* "tmp.py:7 -> tmp.py:9" */
    const struct wm_region_usage **blocks;
};

struct wm_compare {
    struct wm_compare_session *sessions; /* but for the array they are borrowed */
    size_t session_count, run_count;
    enum wm_block_figure statistic;
    double threshold;    /* a smaller difference counts as none; a ratio */
    bool as_gpu_tracker; /* which has 0 where no GPU was measured, and the newest runs */
    bool is_native;      /* all runs are of our recordings */
    struct wm_compare_group *groups;
    size_t group_count, group_room;
    struct wm_remarks remarks;
    size_t tests[WM_COMPARE_FAMILIES];
    bool has_tests;  /* there is one at least */
    double *scratch; /* four values for each run */
};

/* Blocks that belong together have one name, or names that differ by the number of the line
 * after their last colon. A difference counts from 1 % on. `as_gpu_tracker`: by
 * gpu_tracker's rules and in its words, which is WM_EINVAL where sessions have different
 * blocks. */
int wm_compare_new(const struct wm_compare_session *sessions, size_t count,
                   enum wm_block_figure statistic, bool as_gpu_tracker,
                   struct wm_compare **ret_compare, struct wm_error *err);

/* Accepts NULL. */
void wm_compare_free(struct wm_compare *compare);

/* The two ways to match; for wm_compare_new(). Both add groups and remarks. */
int wm_compare_match(struct wm_compare *compare, struct wm_error *err);
int wm_compare_match_gpu_tracker(struct wm_compare *compare, struct wm_error *err);

/* A run of all, and its session. */
const struct wm_compare_run *wm_compare_run_of(const struct wm_compare *compare,
                                               size_t run);
const struct wm_compare_session *wm_compare_session_of(const struct wm_compare *compare,
                                                       size_t run);

/* The newest run of a session. */
const struct wm_report *wm_compare_newest(const struct wm_compare_session *session);

/* Whether `run --repeat` made both in one round, if they are of one file. */
bool wm_compare_is_pair(const struct wm_compare_run *one,
                        const struct wm_compare_run *other);

/* Whether a run of the session has a block of the group. */
bool wm_compare_has(const struct wm_compare *compare, const struct wm_compare_group *group,
                    size_t session);

/* A figure of one session beside that of its reference. */
struct wm_compare_cell {
    struct wm_known value; /* the median of its runs */
    size_t runs;           /* that have it */
    const char *lacks;     /* why it may be more; NULL: it is known as a whole */
    enum wm_origin origin;
    struct wm_known off;     /* what that may be off, with 95 % confidence */
    struct wm_known change;  /* relative to the reference; infinite where that is 0 */
    struct wm_runs_ratio to; /* the reference; not tested for that itself */
    bool is_paired;
};

/* Of all timepoints. */
#define WM_COMPARE_OVERALL SIZE_MAX

/* A cell for each session. Not from two threads at once. */
void wm_compare_cells(const struct wm_compare *compare, size_t group, unsigned item,
                      struct wm_compare_cell *ret_cells);

/* The values of the runs of a session, NAN where one has none. Returns how many are
 * known. */
size_t wm_compare_values(const struct wm_compare *compare,
                         const struct wm_compare_session *session, size_t group,
                         unsigned item, double *ret_values);

/* For wm_compare_new(): counts the tests of each family. */
int wm_compare_count_tests(struct wm_compare *compare);

/* The cores that other programs kept busy during a run; NAN: not known. */
double wm_compare_load(const struct wm_report *report);

/* Whether that number of busy cores of the machine disturbs what is measured. */
bool wm_compare_is_load(double cores, struct wm_known of);

/* "main_ram", "time", "tree_energy". */
const char *wm_compare_item_name(unsigned item);

/* The row of a figure; NULL of a measurement. */
const struct wm_figure_row *wm_compare_item_row(unsigned item);

/* Whether more of it is worse: of times, energy, and the memory of the program. */
bool wm_compare_item_matters(unsigned item);

/* The family of its tests. */
enum wm_compare_family wm_compare_family_of(const struct wm_compare *compare, size_t group,
                                            unsigned item);

/* Whether it is among the figures that most people want. */
bool wm_compare_item_is_main(const struct wm_compare *compare, unsigned item);

/* The increase, of what matters, that is the largest for certain. */
struct wm_compare_worst {
    double change; /* at least: the lower end of its interval; 0: there is none */
    size_t session, group;
    unsigned item;
    bool has_untested;      /* there is a session of which nothing could be tested */
    size_t untested;        /* the first such */
    unsigned untested_item; /* where it was chosen; wm_compare_items(): nothing of all */
};

/* `chosen` has a bit, 1 << item, for each that counts; 0: all main ones. Each that is
 * chosen has to be one that can be tested. */
int wm_compare_find_worst(const struct wm_compare *compare, uint64_t chosen,
                          struct wm_compare_worst *ret_worst);

/* The result of the last run of a comparison. */
struct wm_comparison_result wm_comparison_result(const struct wm_comparison *comparison);

/* Of a comparison, for its views; NULL before wm_comparison_run(). */
const struct wm_compare *wm_comparison_compare(const struct wm_comparison *comparison);

enum wm_format wm_comparison_format(const struct wm_comparison *comparison);

/* "bytes" to "terabytes", powers of 1000, in bytes; 0 for any other word. */
double wm_compare_unit_size(const char *unit);

/* Gives memory in the units of another session. WM_EFORMAT for a unit that is none. */
int wm_compare_convert(struct wm_report *report, const struct wm_static_data *units,
                       const char *name, struct wm_error *err);

#endif
