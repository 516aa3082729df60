/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - made-up sessions, from which tests have reports made.
 *
 *     static const struct series load = { HOST("load1", "count", WM_GAUGE, 0),
 *                                         { 0.5, MISSING, 1 } };
 *
 * Ticks are one step apart and begin at SESSION_START_NS; each series has its
 * value of every tick.
 */
#ifndef WM_TEST_SESSION_H
#define WM_TEST_SESSION_H

#include <math.h>

#include "analyze/analyze.h"
#include "test.h"

#define SESSION_START_NS INT64_C(5000000000)
#define SESSION_TICKS 6
#define SECOND_NS INT64_C(1000000000)

/* A reading that failed. */
#define MISSING NAN

struct series {
    struct wm_channel channel;
    double values[SESSION_TICKS];
};

struct session {
    struct wm_run run;
    const struct series *series;
    size_t series_count;
    size_t ticks;
    int64_t step_ns;
    const struct wm_gap *gaps;
    size_t gap_count;
    const struct wm_result *result; /* NULL: the writer was killed */
    const struct wm_region_edge *edges;
    size_t edge_count;
    const struct wm_region_path *paths;
};

#define TRACKER(label_, metric_, unit_, kind_)                                             \
    {                                                                                      \
        .source = "tracker", .device = label_, .label = label_, .metric = metric_,         \
        .unit = unit_, .device_kind = WM_DEVICE_TREE, .kind = kind_                        \
    }
#define TREE(label_, metric_, unit_)                                                       \
    {                                                                                      \
        .source = "tree", .device = label_, .label = label_, .metric = metric_,            \
        .unit = unit_, .device_kind = WM_DEVICE_TREE, .kind = WM_GAUGE                     \
    }
#define HOST(metric_, unit_, kind_, period_)                                               \
    {                                                                                      \
        .source = "host", .device = "host", .label = "host", .metric = metric_,            \
        .unit = unit_, .device_kind = WM_DEVICE_HOST, .kind = kind_, .period_ns = period_  \
    }
#define CPU_SENSOR(label_)                                                                 \
    {                                                                                      \
        .source = "hwmon", .device = label_, .label = label_, .metric = "temperature",     \
        .unit = "celsius", .device_kind = WM_DEVICE_CPU, .kind = WM_GAUGE                  \
    }
#define GPU(index_, metric_, unit_, kind_, origin_)                                        \
    {                                                                                      \
        .source = "nvml", .device = "GPU-0000" index_, .label = "gpu" index_,              \
        .model = "NVIDIA H100", .metric = metric_, .unit = unit_,                          \
        .device_kind = WM_DEVICE_GPU, .kind = kind_, .origin = origin_,                    \
        .period_ns = 100000000, .sensor = {                                                \
            .kind = WM_SENSOR_BUILT_IN,                                                    \
            .window_s = (origin_) == WM_SIMULATED ? 0 : 0.025,                             \
            .gain = (origin_) == WM_SIMULATED ? 0 : 0.07,                                  \
            .offset = (origin_) == WM_SIMULATED ? 0 : 11,                                  \
            .text = "H100: 25 of each 100 ms"                                              \
        }                                                                                  \
    }
#define TREE_ON_GPU(index_)                                                                \
    {                                                                                      \
        .source = "tracker", .device = "GPU-0000" index_, .label = "gpu" index_,           \
        .metric = "tree_memory_used", .unit = "B", .device_kind = WM_DEVICE_GPU,           \
        .kind = WM_GAUGE                                                                   \
    }

static inline const struct wm_region_path *session_path(const void *context, uint32_t path)
{
    return &((const struct wm_region_path *)context)[path];
}

static inline void session_feed_regions(const struct session *session,
                                        struct wm_regions *regions)
{
    const struct wm_region_paths paths = { session_path, session->paths };

    for (size_t i = 0; i < session->edge_count; i++)
        assert_int_equal(wm_regions_edge(regions, &session->edges[i],
                                         session->edges[i].thread / 2, &paths),
                         WM_OK);
    if (session->edge_count > 0)
        wm_regions_complete(regions, INT64_MAX);
}

static inline void session_feed(const struct session *session, struct wm_analysis *analysis)
{
    struct wm_reading readings[32];

    for (size_t i = 0; i < session->ticks; i++) {
        int64_t when_ns = SESSION_START_NS + (int64_t)i * session->step_ns;
        for (size_t k = 0; k < session->series_count; k++) {
            double value = session->series[k].values[i];
            readings[k] = (struct wm_reading) {
                .when_ns = when_ns,
                .value = value,
                .state = isnan(value) ? WM_READING_FAILED : WM_READING_OK,
            };
        }
        struct wm_tick tick = { when_ns, readings, session->series_count };
        wm_analysis_tick(analysis, &tick);
    }
    for (size_t i = 0; i < session->gap_count; i++)
        wm_analysis_gap(analysis, &session->gaps[i]);
}

static inline int session_try_report(const struct session *session,
                                     struct wm_report **ret_report, struct wm_error *err)
{
    struct wm_channel channels[32];
    struct wm_analysis *analysis;
    struct wm_regions *regions = NULL;

    assert_true(session->series_count <= ARRAY_LEN(channels));
    assert_true(session->ticks <= SESSION_TICKS);
    for (size_t i = 0; i < session->series_count; i++)
        channels[i] = session->series[i].channel;

    int status =
        wm_analysis_new(&session->run, channels, session->series_count, &analysis, err);
    if (status < 0)
        return status;
    if (session->edge_count > 0)
        status = wm_analysis_regions_start(analysis, &regions, err);
    if (status == WM_OK) {
        session_feed(session, analysis);
        session_feed_regions(session, regions);
        status = wm_analysis_report(analysis, session->result, ret_report, err);
    }
    wm_analysis_free(analysis);
    return status;
}

/* The caller frees it. */
static inline struct wm_report *session_report(const struct session *session)
{
    struct wm_report *report = NULL;
    struct wm_error err = { 0 };

    if (session_try_report(session, &report, &err) < 0)
        fail_msg("%s", err.text);
    return report;
}

#endif
