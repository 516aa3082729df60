/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_comparison.c - reads the sessions of a comparison, whatever they are stored in.
 */
#include "analyze/compare/analyze_compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/text/base_text.h"
#include "base/text/base_utf8.h"
#include "record/record.h"
#include "record/run/record_writer.h"
#include "wattmeter/report.h"

struct wm_comparison {
    struct wm_compare_session *sessions;
    size_t count;

    struct wm_compare *compare;
    enum wm_comparison_format format;
    uint64_t watched; /* a bit, 1 << item, for each; 0: all that matter */
    struct wm_compare_worst worst;
    char *worst_figure, *untested;
};

int wm_comparison_new(struct wm_comparison **ret_comparison, struct wm_error *err)
{
    struct wm_comparison *comparison = calloc(1, sizeof(*comparison));

    if (!comparison)
        return wm_fail_memory(err, "comparison");
    *ret_comparison = comparison;
    return WM_OK;
}

static void release_session(struct wm_compare_session *session)
{
    free(session->name);
    wm_block_analysis_free(session->analysis);
}

static void forget_run(struct wm_comparison *comparison)
{
    wm_compare_free(comparison->compare);
    free(comparison->worst_figure);
    free(comparison->untested);
    comparison->compare = NULL;
    comparison->worst_figure = NULL;
    comparison->untested = NULL;
    comparison->worst = (struct wm_compare_worst) { 0 };
}

void wm_comparison_free(struct wm_comparison *comparison)
{
    if (!comparison)
        return;
    forget_run(comparison);
    for (size_t i = 0; i < comparison->count; i++)
        release_session(&comparison->sessions[i]);
    free(comparison->sessions);
    free(comparison);
}

/* It may be that less was done, and no less needed. */
static int remark_end(struct wm_compare_session *session)
{
    struct wm_remarks *remarks = &session->analysis->remarks;
    const struct wm_report *report = session->analysis->report;
    const struct wm_result *result = &report->result;

    if (!report->complete)
        return wm_remarks_add(remarks, "session \"%s\" is a recording without a result: %s",
                              session->name, wm_writer_why_unfinished(&report->run));
    if (result->exit_signal > 0)
        return wm_remarks_add(remarks, "session \"%s\": signal %d ended the command",
                              session->name, result->exit_signal);
    if (result->exit_status.known && result->exit_status.number > 0)
        return wm_remarks_add(remarks, "session \"%s\": the command ended with status %d",
                              session->name, (int)result->exit_status.number);
    return WM_OK;
}

static int analyze(struct wm_compare_session *session,
                   const struct wm_analysis_input *input, struct wm_error *err)
{
    int status = wm_block_analysis_read(input, true, &session->analysis, err);

    if (status == WM_OK && session->analysis->report && remark_end(session) < 0)
        status = wm_fail_memory(err, "comparison");
    return status;
}

/* Python's pickles of protocol 2 and later begin with its number; earlier ones look like
 * any text, but are called so. */
static bool is_pickle(const char *path)
{
    const char *dot = strrchr(path, '.');
    char head[2];
    size_t length;

    /* What is no file may be the URL of a recording, or the folder of one. */
    if (wm_file_head(path, head, sizeof(head), &length, NULL) < 0 || length == 0)
        return false;
    if (length == 2 && (unsigned char)head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)
        return true;
    return dot && (strcmp(dot, ".pkl") == 0 || strcmp(dot, ".pickle") == 0) &&
           !wm_block_analysis_is_json(path);
}

static int load(struct wm_compare_session *session, const struct wm_analysis_input *input,
                struct wm_error *err)
{
    if (is_pickle(input->tracking))
        return wm_fail(err, WM_EFORMAT,
                       "%.90s: a pickle is a program, and is not read; make JSON of it: "
                       "gpu-tracker sub-track analyze --tf=... --stf=... --format=json "
                       "--output=FILE",
                       wm_text_path(input->tracking));
    return analyze(session, input, err);
}

static bool has_session(const struct wm_comparison *comparison, const char *name)
{
    for (size_t i = 0; i < comparison->count; i++) {
        if (strcmp(comparison->sessions[i].name, name) == 0)
            return true;
    }
    return false;
}

static int make_room(struct wm_comparison *comparison)
{
    struct wm_compare_session *sessions = realloc(
        comparison->sessions, (comparison->count + 1) * sizeof(*comparison->sessions));

    if (!sessions)
        return WM_ENOMEM;
    comparison->sessions = sessions;
    return WM_OK;
}

int wm_comparison_add_session(struct wm_comparison *comparison, const char *name,
                              const struct wm_analysis_input *input, struct wm_error *err)
{
    struct wm_compare_session session = { .name = wm_recorder_shown(name) };

    forget_run(comparison);
    if (!session.name || make_room(comparison) < 0) {
        release_session(&session);
        return wm_fail_memory(err, "comparison");
    }
    int status = WM_OK;
    if (has_session(comparison, session.name))
        status =
            wm_fail(err, WM_EINVAL, "two sessions are called \"%.100s\"", session.name);
    if (status == WM_OK)
        status = load(&session, input, err);
    if (status == WM_OK) {
        const struct wm_block_analysis *first =
            comparison->count > 0 ? comparison->sessions[0].analysis : session.analysis;
        status = wm_compare_convert(session.analysis, &first->static_data,
                                    wm_text_path(input->tracking), err);
    }
    if (status < 0)
        release_session(&session);
    else
        comparison->sessions[comparison->count++] = session;
    return status;
}

int wm_comparison_add(struct wm_comparison *comparison, const char *name, const char *path,
                      struct wm_error *err)
{
    const struct wm_analysis_input input = { .tracking = path, .run = WM_LAST_RUN };

    return wm_comparison_add_session(comparison, name, &input, err);
}

static int find_statistic(const char *word, bool as_gpu_tracker,
                          enum wm_block_figure *ret_statistic, struct wm_error *err)
{
    size_t count = as_gpu_tracker ? WM_BLOCK_STATISTICS : WM_BLOCK_TOTAL + 1;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(wm_block_figure_names[i], word) == 0) {
            *ret_statistic = (enum wm_block_figure)i;
            return WM_OK;
        }
    }
    if (as_gpu_tracker)
        return wm_fail(err, WM_EINVAL,
                       "Invalid summary statistic '%.60s'. Valid values are min max mean "
                       "std.",
                       word);
    return wm_fail(err, WM_EINVAL,
                   "there is no statistic \"%.60s\"; there are min, max, mean, std, total",
                   word);
}

int wm_comparison_watch(struct wm_comparison *comparison, const char *metric,
                        struct wm_error *err)
{
    unsigned chosen = wm_compare_item(metric);
    char known[400] = "";

    if (chosen < wm_compare_items() && wm_compare_item_matters(chosen)) {
        comparison->watched |= UINT64_C(1) << chosen;
        return WM_OK;
    }
    for (unsigned item = 0; item < wm_compare_items(); item++) {
        if (wm_compare_item_matters(item))
            wm_text_list(known, sizeof(known), ", ", "%s", wm_compare_item_name(item));
    }
    return wm_fail(err, WM_EINVAL, "there is no metric \"%.30s\"; there are %s", metric,
                   known);
}

/* "after: my-code-block: time", less what is NULL; the caller's. */
static char *join_words(const char *session, const char *label, const char *item)
{
    size_t size = strlen(session) + (label ? strlen(label) : 0) +
                  (item ? strlen(item) : 0) + sizeof(": : ");
    char *text = malloc(size);

    if (!text)
        return NULL;
    snprintf(text, size, "%s%s%s%s%s", session, label ? ": " : "", label ? label : "",
             item ? ": " : "", item ? item : "");
    wm_text_clean(text);
    return text;
}

static int name_worst(struct wm_comparison *comparison)
{
    const struct wm_compare_worst *worst = &comparison->worst;
    const struct wm_compare *compare = comparison->compare;

    if (wm_compare_find_worst(compare, comparison->watched, &comparison->worst) < 0)
        return WM_ENOMEM;
    if (worst->untested > 0) {
        bool is_chosen = worst->untested_item < wm_compare_items();
        comparison->untested =
            join_words(compare->sessions[worst->untested].name, NULL,
                       is_chosen ? wm_compare_item_name(worst->untested_item) : NULL);
        if (!comparison->untested)
            return WM_ENOMEM;
    }
    if (worst->change <= 0)
        return WM_OK;
    const char *label = worst->group == WM_COMPARE_OVERALL
                            ? "overall"
                            : compare->groups[worst->group].label;
    comparison->worst_figure = join_words(compare->sessions[worst->session].name, label,
                                          wm_compare_item_name(worst->item));
    return comparison->worst_figure ? WM_OK : WM_ENOMEM;
}

int wm_comparison_run(struct wm_comparison *comparison, const char *statistic,
                      enum wm_comparison_format format, struct wm_error *err)
{
    bool as_gpu_tracker = format >= WM_COMPARISON_GPU_TRACKER_TEXT;
    enum wm_block_figure chosen = WM_BLOCK_MEAN;

    forget_run(comparison);
    comparison->format = format;
    int status = find_statistic(statistic, as_gpu_tracker, &chosen, err);
    if (status == WM_OK)
        status = wm_compare_new(comparison->sessions, comparison->count, chosen,
                                as_gpu_tracker, &comparison->compare, err);
    if (status == WM_OK && name_worst(comparison) < 0)
        status = wm_fail_memory(err, "comparison");
    if (status < 0)
        forget_run(comparison);
    return status;
}

double wm_comparison_worst(const struct wm_comparison *comparison)
{
    return comparison->worst.change;
}

const char *wm_comparison_worst_figure(const struct wm_comparison *comparison)
{
    return comparison->worst_figure;
}

const char *wm_comparison_untested(const struct wm_comparison *comparison)
{
    return comparison->untested;
}

const char *wm_comparison_remark(const struct wm_comparison *comparison, size_t index)
{
    const struct wm_compare *compare = comparison->compare;

    return compare ? wm_remarks_get(&compare->remarks, index) : NULL;
}

const struct wm_compare *wm_comparison_compare(const struct wm_comparison *comparison)
{
    return comparison->compare;
}

enum wm_comparison_format wm_comparison_format(const struct wm_comparison *comparison)
{
    return comparison->format;
}
