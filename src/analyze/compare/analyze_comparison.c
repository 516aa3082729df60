/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_comparison.c - reads the sessions of a comparison, whatever they are stored in.
 */
#include "analyze/compare/analyze_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/analyze_build.h"
#include "base/base_array.h"
#include "base/base_file.h"
#include "base/base_options.h"
#include "base/base_text.h"
#include "base/base_utf8.h"
#include "record/record.h"
#include "record/record_experiment.h"
#include "record/record_read.h"
#include "record/run/record_writer.h"
#include "wattmeter/report.h"

struct wm_comparison {
    struct wm_compare_session *sessions;
    size_t count, room;
    char **files; /* what they are called that were added */
    size_t file_count, file_room;

    struct wm_compare *compare;
    enum wm_format format;
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
    for (size_t i = 0; i < session->count; i++)
        wm_report_free(session->runs[i].report);
    free(session->runs);
    free(session->name);
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
    for (size_t i = 0; i < comparison->file_count; i++)
        free(comparison->files[i]);
    free(comparison->sessions);
    free(comparison->files);
    free(comparison);
}

/* It may be that less was done, and no less needed. */
static void remark_end(struct wm_report_builder *builder, const char *name)
{
    const struct wm_report *report = builder->report;
    const struct wm_result *result = &report->result;

    if (report->is_foreign)
        return;
    if (!report->complete)
        wm_build_remark(builder, "session \"%s\" is a recording without a result: %s", name,
                        wm_writer_why_unfinished(&report->run));
    else if (result->exit_signal > 0)
        wm_build_remark(builder, "session \"%s\": signal %d ended the command", name,
                        result->exit_signal);
    else if (result->exit_status.known && result->exit_status.number > 0)
        wm_build_remark(builder, "session \"%s\": the command ended with status %d", name,
                        (int)result->exit_status.number);
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
           !wm_report_is_json(path);
}

static int check_pickle(const char *path, struct wm_error *err)
{
    if (!is_pickle(path))
        return WM_OK;
    return wm_fail(err, WM_EFORMAT,
                   "%.90s: a pickle is a program, and is not read; make JSON of it: "
                   "gpu-tracker sub-track analyze --tf=... --stf=... --format=json "
                   "--output=FILE",
                   wm_text_path(path));
}

/* 1 as well of what is no recording. The segments of an AIPowerMeter folder are one run; a
 * database has those of all programs. */
static size_t count_runs(const char *path)
{
    struct wm_recording *recording;
    struct stat found;

    if (wm_recording_is_url(path) || (stat(path, &found) == 0 && S_ISDIR(found.st_mode)) ||
        wm_recording_open_any(path, WM_LAST_RUN, &recording, NULL) < 0)
        return 1;
    size_t count = wm_recording_run_count(recording);
    wm_recording_close(recording);
    return count;
}

static const char *note_of(const struct wm_compare_run *run, const char *key)
{
    return wm_run_note(&run->report->run, key);
}

/* A run by `run --repeat` says which command it is of. */
static const char *command_of(const struct wm_compare_run *run)
{
    const char *command = note_of(run, "repeat.command");

    return command ? command : "";
}

static struct wm_compare_run run_of(struct wm_report *report)
{
    struct wm_compare_run run = { .report = report };

    run.batch = wm_run_batch(&report->run);
    run.seed = note_of(&run, "repeat.seed");
    run.round = note_of(&run, "repeat.round");
    return run;
}

/* Which of the commands of its file, from 1; 0: not told. */
static unsigned long place_of(const struct wm_compare_run *run)
{
    const char *place = note_of(run, "repeat.place");

    return place ? strtoul(place, NULL, 10) : 0;
}

/* The session of the newest file that has the runs of the command of this one; a new one
 * has no runs. NULL: out of memory. */
static struct wm_compare_session *session_for(struct wm_comparison *comparison,
                                              const struct wm_compare_run *run)
{
    size_t at = comparison->count;

    for (size_t i = comparison->count; i > 0; i--) {
        struct wm_compare_session *session = &comparison->sessions[i - 1];
        if (session->file != comparison->file_count)
            break;
        if (strcmp(command_of(&session->runs[0]), command_of(run)) == 0)
            return session;
        if (place_of(&session->runs[0]) > place_of(run))
            at = i - 1;
    }
    if (wm_array_reserve(&comparison->sessions, comparison->count, &comparison->room,
                         sizeof(*comparison->sessions)) < 0)
        return NULL;
    struct wm_compare_session *session = &comparison->sessions[at];
    memmove(session + 1, session, (comparison->count++ - at) * sizeof(*session));
    *session = (struct wm_compare_session) { .file = comparison->file_count };
    return session;
}

static bool is_of_one_command(const struct wm_run *one, const struct wm_run *other)
{
    bool is_same = one->command_count == other->command_count;

    for (size_t i = 0; is_same && i < one->command_count; i++)
        is_same = strcmp(one->command[i], other->command[i]) == 0;
    return is_same;
}

static void remark_commands(struct wm_report_builder *builder, const char *name,
                            const struct wm_compare_session *session)
{
    if (!is_of_one_command(&session->runs[0].report->run, &builder->report->run))
        wm_build_remark(builder,
                        "session \"%s\" has runs of several commands, which are taken for "
                        "repeats; --run %s=N takes one",
                        name, name);
}

/* A run that only showed how many runs a batch needs is followed by that batch. */
static bool is_trial(const struct wm_compare_run *run, const struct wm_compare_run *next)
{
    return wm_compare_is_pair(run, next) && run->batch != next->batch;
}

/* The report is taken over in any case. */
static int add_run(struct wm_comparison *comparison, const char *name,
                   struct wm_report *report)
{
    const struct wm_compare_run run = run_of(report);
    struct wm_report_builder builder = { .report = report };
    struct wm_compare_session *session = session_for(comparison, &run);
    struct wm_compare_run *runs = NULL;

    if (session)
        runs = realloc(session->runs, (session->count + 1) * sizeof(*runs));
    if (!runs) {
        wm_report_free(report);
        return WM_ENOMEM;
    }
    session->runs = runs;
    if (session->count > 0 && is_trial(&runs[session->count - 1], &run))
        wm_report_free(runs[--session->count].report);
    runs[session->count++] = run;
    remark_end(&builder, name);
    remark_commands(&builder, name, session);
    return builder.failed ? WM_ENOMEM : WM_OK;
}

/* Reads a run, in the units of the first of all. */
static int load_run(struct wm_comparison *comparison, const char *name,
                    const struct wm_analysis_input *input, struct wm_error *err)
{
    struct wm_report *report;

    int status = wm_report_from_files(input, &report, err);
    if (status < 0)
        return status;
    const struct wm_static_data *units =
        comparison->count > 0 ? &comparison->sessions[0].runs[0].report->usage.machine
                              : &report->usage.machine;
    status = wm_compare_convert(report, units, wm_text_path(input->tracking), err);
    if (status < 0) {
        wm_report_free(report);
        return status;
    }
    return add_run(comparison, name, report) < 0 ? wm_fail_memory(err, "comparison")
                                                 : WM_OK;
}

static int load(struct wm_comparison *comparison, const char *name,
                const struct wm_analysis_input *input, struct wm_error *err)
{
    struct wm_analysis_input one = *input;
    size_t count = 1;
    int status = check_pickle(input->tracking, err);

    if (status == WM_OK && input->run == WM_ALL_RUNS) {
        /* Calls of files are those of one run. */
        count = input->sub_tracking_count > 0 ? 1 : count_runs(input->tracking);
        one.run = WM_LAST_RUN;
    }
    for (size_t i = 0; i < count && status == WM_OK; i++) {
        if (count > 1)
            one.run = i;
        status = load_run(comparison, name, &one, err);
    }
    return status;
}

/* A run of `run --repeat` that was stopped, or whose recorder was, or that failed and by
 * that ended them all; or the one that a full disk did not take as a whole. */
static bool is_broken_off(const struct wm_compare_run *run)
{
    const struct wm_result *result = &run->report->result;
    bool has_failed = result->exit_signal > 0 ||
                      (result->exit_status.known && result->exit_status.number > 0);

    return run->round && (!run->report->complete || result->is_broken_off ||
                          result->recording_trouble[0] ||
                          (has_failed && !note_of(run, "repeat.failures")));
}

/* Returns how many there were. */
static size_t drop_broken_off(struct wm_compare_session *session)
{
    size_t kept = 0, count = session->count;

    for (size_t i = 0; i < count; i++) {
        if (is_broken_off(&session->runs[i]))
            wm_report_free(session->runs[i].report);
        else
            session->runs[kept++] = session->runs[i];
    }
    session->count = kept;
    return count - kept;
}

static int remark_broken_off(const struct wm_compare_session *session, const char *name,
                             size_t dropped)
{
    struct wm_report_builder builder = {
        .report = session->runs[session->count - 1].report,
    };

    wm_build_remark(&builder,
                    dropped == 1 ? "session \"%s\": %zu run was broken off, or not "
                                   "recorded as a whole, and does not count"
                                 : "session \"%s\": %zu runs were broken off, or not "
                                   "recorded as a whole, and do not count",
                    name, dropped);
    return builder.failed ? WM_ENOMEM : WM_OK;
}

/* What was broken off is no repeat, and a command without another run no session. */
static int keep_repeats(struct wm_comparison *comparison, const char *name,
                        struct wm_error *err)
{
    size_t kept = 0, dropped = 0, begin = comparison->count;

    while (begin > 0 && comparison->sessions[begin - 1].file == comparison->file_count)
        begin--;
    kept = begin;
    for (size_t i = begin; i < comparison->count; i++) {
        struct wm_compare_session *session = &comparison->sessions[i];
        dropped += drop_broken_off(session);
        if (session->count == 0)
            release_session(session);
        else
            comparison->sessions[kept++] = *session;
    }
    comparison->count = kept;
    if (kept == begin)
        return wm_fail(
            err, WM_EFORMAT,
            "%.100s: all of its runs were broken off, or not recorded as a whole", name);
    if (dropped > 0 &&
        remark_broken_off(&comparison->sessions[kept - 1], name, dropped) < 0)
        return wm_fail_memory(err, "comparison");
    return WM_OK;
}

static bool has_file(const struct wm_comparison *comparison, const char *name)
{
    for (size_t i = 0; i < comparison->file_count; i++) {
        if (strcmp(comparison->files[i], name) == 0)
            return true;
    }
    return false;
}

static void drop_newest_file(struct wm_comparison *comparison)
{
    while (comparison->count > 0 &&
           comparison->sessions[comparison->count - 1].file == comparison->file_count)
        release_session(&comparison->sessions[--comparison->count]);
}

int wm_comparison_add(struct wm_comparison *comparison, const char *name,
                      const struct wm_analysis_input *input, struct wm_error *err)
{
    struct wm_analysis_input own;
    int status = wm_options_read(input, &own, sizeof(own), err);

    if (status < 0)
        return status;
    char *shown = wm_recorder_shown(name);
    forget_run(comparison);
    if (!shown || wm_array_reserve(&comparison->files, comparison->file_count,
                                   &comparison->file_room, sizeof(shown)) < 0)
        status = wm_fail_memory(err, "comparison");
    else if (has_file(comparison, shown))
        status = wm_fail(err, WM_EINVAL, "two sessions are called \"%.100s\"", shown);
    if (status == WM_OK)
        status = load(comparison, shown, &own, err);
    if (status == WM_OK && own.run == WM_ALL_RUNS)
        status = keep_repeats(comparison, shown, err);
    if (status < 0) {
        drop_newest_file(comparison);
        free(shown);
        return status;
    }
    comparison->files[comparison->file_count++] = shown;
    return WM_OK;
}

static bool is_as_gpu_tracker(enum wm_format format)
{
    return format >= WM_FORMAT_GPU_TRACKER && format <= WM_FORMAT_GPU_TRACKER_JSON;
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

static int watch(struct wm_comparison *comparison, const char *metric, struct wm_error *err)
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
    return wm_fail(err, WM_EINVAL,
                   chosen < wm_compare_items()
                       ? "more \"%.30s\" is no regression; these metrics can be watched: %s"
                       : "there is no metric \"%.30s\"; there are %s",
                   metric, known);
}

static int take_options(struct wm_comparison *comparison,
                        const struct wm_comparison_options *options,
                        enum wm_block_figure *ret_statistic, struct wm_error *err)
{
    const char *statistic = options->statistic ? options->statistic : "mean";

    comparison->format = options->format;
    comparison->watched = 0;
    if (!(options->threshold <= 1))
        return wm_fail(err, WM_EINVAL, "a threshold is a ratio from 0 to 1");
    for (size_t i = 0; i < options->metric_count; i++) {
        if (watch(comparison, options->metrics[i], err) < 0)
            return WM_EINVAL;
    }
    return find_statistic(statistic, is_as_gpu_tracker(options->format), ret_statistic,
                          err);
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
    if (worst->has_untested) {
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

static size_t sessions_of(const struct wm_comparison *comparison, size_t file)
{
    size_t count = 0;

    for (size_t i = 0; i < comparison->count; i++)
        count += comparison->sessions[i].file == file;
    return count;
}

/* A file of several commands is as many sessions, which have their names. */
static int name_sessions(struct wm_comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++) {
        struct wm_compare_session *session = &comparison->sessions[i];
        const char *file = comparison->files[session->file];
        const char *command = command_of(&session->runs[0]);
        bool is_one = sessions_of(comparison, session->file) == 1;
        free(session->name);
        session->name = is_one                        ? strdup(file)
                        : comparison->file_count == 1 ? strdup(command)
                                                      : join_words(file, command, NULL);
        if (!session->name)
            return WM_ENOMEM;
    }
    return WM_OK;
}

/* The commands of one file are compared with the first of them; those of several each with
 * its like in the first file, or with the first there is. */
static void find_references(struct wm_comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++) {
        struct wm_compare_session *session = &comparison->sessions[i];
        const char *command = command_of(&session->runs[0]);
        session->reference = session->file == 0 && comparison->file_count > 1 ? i : 0;
        for (size_t r = 0; session->file > 0 && r < i; r++) {
            const struct wm_compare_session *other = &comparison->sessions[r];
            if (other->file == 0 && strcmp(command_of(&other->runs[0]), command) == 0)
                session->reference = r;
        }
    }
}

int wm_comparison_run(struct wm_comparison *comparison,
                      const struct wm_comparison_options *given,
                      struct wm_comparison_result *ret_result, struct wm_error *err)
{
    enum wm_block_figure statistic = WM_BLOCK_MEAN;
    struct wm_comparison_options options;

    forget_run(comparison);
    int status = wm_options_read(given, &options, sizeof(options), err);
    if (status == WM_OK)
        status = take_options(comparison, &options, &statistic, err);
    if (status == WM_OK && name_sessions(comparison) < 0)
        status = wm_fail_memory(err, "comparison");
    find_references(comparison);
    if (status == WM_OK)
        status =
            wm_compare_new(comparison->sessions, comparison->count, statistic,
                           is_as_gpu_tracker(options.format), &comparison->compare, err);
    if (status == WM_OK && options.threshold != 0)
        comparison->compare->threshold = fmax(options.threshold, 0);
    if (status == WM_OK && name_worst(comparison) < 0)
        status = wm_fail_memory(err, "comparison");
    if (status < 0)
        forget_run(comparison);
    else if (ret_result)
        *ret_result = wm_comparison_result(comparison);
    return status;
}

struct wm_comparison_result wm_comparison_result(const struct wm_comparison *comparison)
{
    return (struct wm_comparison_result) {
        .sessions = comparison->count,
        .worst = comparison->worst.change,
        .worst_figure = comparison->worst_figure,
        .untested = comparison->untested,
    };
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

enum wm_format wm_comparison_format(const struct wm_comparison *comparison)
{
    return comparison->format;
}
