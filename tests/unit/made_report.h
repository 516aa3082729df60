/* SPDX-License-Identifier: Apache-2.0 */
/* made_report.h - a report put together by hand, so that what views make of it can be
 * said to the last digit. */
#ifndef WM_TEST_MADE_REPORT_H
#define WM_TEST_MADE_REPORT_H

#include "analyze/analyze_report.h"
#include "test.h"

#define KNOWN(number_)                                                                     \
    {                                                                                      \
        .number = number_, .known = true                                                   \
    }
#define UNKNOWN(why_)                                                                      \
    {                                                                                      \
        .why = why_                                                                        \
    }

/* 3.6 MJ are a kilowatt-hour. */
#define SUM(joules_, tree_, origin_)                                                       \
    {                                                                                      \
        .energy = KNOWN(joules_), .uncertainty = KNOWN(0.05),                              \
        .split = { .tree = KNOWN(tree_),                                                   \
                   .idle = KNOWN(0),                                                       \
                   .rest = KNOWN((joules_) - (tree_)) },                                   \
        .origin = origin_                                                                  \
    }
#define NO_SUM(why_)                                                                       \
    {                                                                                      \
        .energy = UNKNOWN(why_), .uncertainty = UNKNOWN(why_), .split = {                  \
            .tree = UNKNOWN(why_),                                                         \
            .idle = UNKNOWN(why_),                                                         \
            .rest = UNKNOWN(why_)                                                          \
        }                                                                                  \
    }

/* Prints as text or JSON; the caller frees it. */
static inline char *made_print(const struct wm_report *report, enum wm_format format,
                               const struct wm_report_style *style)
{
    struct wm_error err = { 0 };
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    if (wm_report_print(report, format, style, out, &err) < 0)
        fail_msg("%s", err.text);
    fclose(out);
    return text;
}

#endif
