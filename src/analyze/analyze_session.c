/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_session.c - the session in the report: time, memory, CPUs, and what went wrong.
 */
#include "analyze/analyze_build.h"

#include <stdio.h>
#include <string.h>

#include "record/run/record_writer.h"

/* Late ticks below this share are a scheduler's daily life. */
#define MOST_LATE 0.05

static void build_time(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    const struct wm_run *run = analysis->run;
    struct wm_report *report = builder->report;

    if (analysis->ticks == 0) {
        report->compute_time = wm_value_missing("no sample was taken");
        report->active_time = report->compute_time;
        report->start_unix_ns = run->anchor_unix_ns;
        return;
    }

    int64_t end_ns = report->complete ? report->result.end_ns : analysis->last_ns;
    report->compute_time = wm_value_known(wm_stats_seconds(analysis->first_ns, end_ns));
    report->segments = analysis->segments;
    report->active_time = analysis->segments > 0 ? wm_value_known(analysis->active_s)
                                                 : wm_value_missing("no sample was taken");
    report->start_unix_ns = run->anchor_unix_ns - run->anchor_ns + analysis->first_ns;
}

static struct wm_value max_of(struct wm_report_builder *builder, const char *source,
                              const char *label, const char *metric)
{
    return wm_build_max(builder, wm_analysis_find(builder->analysis, source, label, metric),
                        source);
}

static struct wm_rss rss_of(struct wm_report_builder *builder, const char *label)
{
    return (struct wm_rss) {
        .total = max_of(builder, "tree", label, "memory_total"),
        .private_ = max_of(builder, "tree", label, "memory_private"),
        .shared = max_of(builder, "tree", label, "memory_shared"),
        .low = max_of(builder, "tree", label, "memory_total_low"),
        .high = max_of(builder, "tree", label, "memory_total_high"),
    };
}

/* Ticks of a run that ended before the interval was over: one when the command has
 * just begun, one when it is gone. */
#define LOOKS_AT_ENDS 2

/* What is not known is no less than this; why it is not known is why it may be more. */
static void know_least(struct wm_value *value, const struct wm_value *least)
{
    if (!value->known && least->known)
        value->number = least->number;
    value->known |= least->known;
    wm_value_raise(value, least);
}

/* Above the interval of all samples there was a moment of which no more is known. */
static void raise_total(struct wm_rss *rss, const struct wm_value *least)
{
    know_least(&rss->total, least);
    wm_value_raise(&rss->low, least);
    if (rss->high.known && rss->total.number > rss->high.number)
        rss->low = rss->high = wm_value_missing("it was between two samples");
}

/* Of a total that is no bound itself: the ends of its interval are. */
static void raise_between(struct wm_rss *rss, const struct wm_value *total,
                          const struct wm_value *low, const struct wm_value *high)
{
    know_least(&rss->total, total);
    wm_value_raise(&rss->low, low->known ? low : total);
    wm_value_raise(&rss->high, high->known ? high : total);
}

static void raise_to(struct wm_rss *whole, const struct wm_rss *part)
{
    raise_between(whole, &part->total, &part->low, &part->high);
    wm_value_raise(&whole->private_, &part->private_);
    wm_value_raise(&whole->shared, &part->shared);
}

/* Any program has so much: a bound below it is as good as a figure. */
#define MEMORY_OF_ANY 4e6

/* The kernel's mark of a short command that is no larger than wattmeter itself says no
 * more than that. */
static void remark_bound(struct wm_report_builder *builder, double bytes)
{
    static const char text[] =
        "memory: the command ended before a sample saw it; it had no more than this";

    if (bytes > MEMORY_OF_ANY)
        wm_build_remark(builder, "%s", text);
    else
        wm_build_fact(builder, "%s", text);
}

static bool is_command(const struct wm_report *report)
{
    return !report->run.mode || strcmp(report->run.mode, "run") == 0;
}

static bool is_zero(const struct wm_value *value)
{
    return value->known && !(value->number > 0);
}

/* Only samples that came after its end have seen the command: a program without any memory
 * there is not. */
static bool is_unseen(const struct wm_report *report)
{
    return is_command(report) && report->result.processes_seen > 0 &&
           is_zero(&report->ram_combined.total);
}

static void forget_kinds(struct wm_report *report)
{
    const struct wm_value missing =
        wm_value_missing("no sample was taken between its start and its end");

    report->ram_main.private_ = report->ram_main.shared = missing;
    report->ram_descendants.private_ = report->ram_descendants.shared = missing;
    report->ram_combined.private_ = report->ram_combined.shared = missing;
}

/* Right after its begin a command has nothing of its own yet, unlike what ran before. */
static void forget_first_look(struct wm_report *report)
{
    if (report->complete && is_command(report) && report->result.ticks <= LOOKS_AT_ENDS &&
        !report->result.tree_peak.private_.known && report->result.processes_seen > 0)
        forget_kinds(report);
}

static void raise_to_peak(struct wm_rss *rss, const struct wm_memory_peak *peak)
{
    const struct wm_value total = wm_value_known(peak->total.number);
    const struct wm_value low = { .known = peak->low.known, .number = peak->low.number };
    const struct wm_value high = { .known = peak->high.known, .number = peak->high.number };
    const struct wm_value private_ = wm_value_known(peak->private_.number);
    const struct wm_value shared = wm_value_known(peak->shared.number);

    if (peak->total.known && total.number > 0)
        raise_between(rss, &total, &low, &high);
    if (peak->private_.known)
        wm_value_raise(&rss->private_, &private_);
    if (peak->shared.known)
        wm_value_raise(&rss->shared, &shared);
}

/* The kernel says how large the largest process was, though not which. Where none was seen
 * to be so large it is taken to be of the part that had the larger one, or where no
 * descendant was seen, of the one that worked more. */
static void give_to_part(struct wm_report *report, double bytes)
{
    const struct wm_result *result = &report->result;
    struct wm_rss *main = &report->ram_main, *others = &report->ram_descendants;
    bool has_seen = others->total.known && others->total.number > 0;
    bool is_others =
        has_seen ? others->total.number > main->total.number
                 : result->cpu_descendants_seconds.number > result->cpu_main_seconds.number;
    struct wm_rss *part = is_others ? others : main;

    if ((main->total.known && main->total.number >= bytes) ||
        (others->total.known && others->total.number >= bytes))
        return;
    const struct wm_value least = {
        .number = bytes,
        .known = true,
        .why = "the kernel's peak of one process, which was not seen to be so large",
    };
    raise_total(part, &least);
    part->total.why = least.why;
}

/* Descendants that have used CPU time, or were seen when they were dead, had memory. */
static void forget_unseen_descendants(struct wm_report *report)
{
    const struct wm_result *result = &report->result;
    struct wm_rss *others = &report->ram_descendants;
    const struct wm_value missing = wm_value_missing("no descendant lived at a sample");
    bool had_some = result->processes_seen > 1 ||
                    (result->processes_seen == 1 && !result->peak_rss_is_main &&
                     result->cpu_descendants_seconds.number > 0);

    if (!had_some || !is_zero(&others->private_) || !is_zero(&others->shared))
        return;
    if (is_zero(&others->total))
        others->total = missing;
    others->private_ = others->shared = others->low = others->high = missing;
}

/* What a part lacks the whole lacks, too; formats without parts have the whole. */
static void lack(const struct wm_analysis *analysis, const char *label, const char *metric,
                 const struct wm_value *part, struct wm_value *whole)
{
    bool has_part = wm_analysis_find(analysis, "tree", label, metric) != WM_NO_CHANNEL;

    if (has_part && whole->known && !whole->why)
        whole->why = part->why;
}

static void lack_part(struct wm_report_builder *builder, const char *label,
                      const struct wm_rss *part)
{
    const struct wm_analysis *analysis = builder->analysis;
    struct wm_rss *whole = &builder->report->ram_combined;

    lack(analysis, label, "memory_total", &part->total, &whole->total);
    lack(analysis, label, "memory_private", &part->private_, &whole->private_);
    lack(analysis, label, "memory_shared", &part->shared, &whole->shared);
}

/* What may be more has no upper end. */
static void open_interval(struct wm_rss *rss)
{
    if (rss->total.known && rss->total.why)
        rss->low = rss->high = wm_value_missing(rss->total.why);
}

/* Where the kernel says no more than that the process was never larger. */
static void raise_end(struct wm_report *report, struct wm_known bound)
{
    const struct wm_value most = { .known = bound.known, .number = bound.number };

    if (report->result.peak_rss_is_main && report->ram_combined.high.known)
        wm_value_raise(&report->ram_combined.high, &most);
}

/* The kernel saw the peak that may have been between two ticks. */
static void raise_to_kernels_peak(struct wm_report_builder *builder)
{
    struct wm_report *report = builder->report;
    struct wm_known peak = report->result.peak_rss_bytes;
    const struct wm_known bound = report->result.peak_rss_bound_bytes;

    if (!peak.known && bound.known && bound.number > 0 &&
        (report->result.ticks <= LOOKS_AT_ENDS || is_unseen(report))) {
        peak = bound;
        remark_bound(builder, bound.number);
    }
    if (!peak.known) {
        raise_end(report, bound);
        return;
    }
    const struct wm_value seen = wm_value_known(peak.number);
    raise_total(&report->ram_combined, &seen);
    if (report->result.peak_rss_is_main) {
        know_least(&report->ram_main.total, &seen);
        report->ram_main.total.why = NULL;
    } else if (report->result.tree_peak.total.known) {
        give_to_part(report, peak.number);
    }
    if (report->result.processes_seen == 1)
        report->ram_combined.total.why = NULL;
}

static void build_memory(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    struct wm_report *report = builder->report;

    report->ram_capacity = wm_build_last(
        builder, wm_analysis_find(analysis, "host", "host", "memory_total"), "host");
    report->ram_system = max_of(builder, "host", "host", "memory_used");
    report->ram_main = rss_of(builder, "main");
    report->ram_descendants = rss_of(builder, "descendants");
    report->ram_combined = rss_of(builder, "tree");

    forget_first_look(report);
    raise_to_peak(&report->ram_main, &report->result.main_peak);
    raise_to_peak(&report->ram_descendants, &report->result.descendants_peak);
    raise_to_peak(&report->ram_combined, &report->result.tree_peak);

    /* The tree has at least what one of its parts has, when its own is not known. */
    raise_to(&report->ram_combined, &report->ram_main);
    raise_to(&report->ram_combined, &report->ram_descendants);
    if (is_unseen(report))
        forget_kinds(report);
    raise_to_kernels_peak(builder);
    forget_unseen_descendants(report);
    lack_part(builder, "main", &report->ram_main);
    lack_part(builder, "descendants", &report->ram_descendants);
    open_interval(&report->ram_descendants);
    open_interval(&report->ram_combined);
}

/* `note`: why an exact one is the least it may be, or NULL. */
static struct wm_value cpu_time_of(struct wm_report_builder *builder, const char *label,
                                   struct wm_known exact, const char *note)
{
    size_t channel = wm_analysis_find(builder->analysis, "tracker", label, "cpu_time");

    if (exact.known)
        return (struct wm_value) {
            .number = exact.number,
            .known = true,
            .why = note && note[0] ? note : NULL,
        };
    if (channel == WM_NO_CHANNEL || builder->analysis->stats[channel].counter.count == 0)
        return wm_value_missing(wm_build_why(builder, channel, "tracker"));
    return wm_value_known(builder->analysis->stats[channel].counter.last);
}

static struct wm_value per_core(struct wm_value sum, double cores)
{
    if (!sum.known)
        return sum;
    if (cores <= 0)
        return wm_value_missing("the number of cores is unknown");
    sum.number /= cores;
    return sum;
}

/* `mean` and the highest window are in percent of one core. The highest window
 * cannot lie below the mean, whatever the two were measured with. */
static struct wm_percentages percentages(const struct wm_report_builder *builder,
                                         enum wm_cpu_part part, struct wm_value mean,
                                         double cores)
{
    const struct wm_known window = wm_window_max_value(&builder->analysis->cpu_max[part]);
    double most = 100.0 * builder->analysis->run->core_count;
    struct wm_value max;

    /* The clocks of CPU time and of time do not agree to the last microsecond. */
    if (most > 0 && mean.number > most)
        mean.number = most;
    /* Above a mean of 0 there is no peak, unless the mean is a lower bound: samples of a
     * recording that counted stolen time have more than its result. */
    max = mean;
    if (mean.known && window.known && window.number > mean.number &&
        (mean.number > 0 || mean.why))
        max.number = most > 0 && window.number > most ? most : window.number;
    return (struct wm_percentages) {
        .max_sum = max,
        .max_hardware = per_core(max, cores),
        .mean_sum = mean,
        .mean_hardware = per_core(mean, cores),
    };
}

static struct wm_value mean_percent(struct wm_value cpu_time, struct wm_value time)
{
    if (!cpu_time.known)
        return cpu_time;
    if (!time.known)
        return time;
    if (time.number <= 0)
        return wm_value_missing("no time passed between the first sample and the last");
    cpu_time.number = 100 * cpu_time.number / time.number;
    return cpu_time;
}

/* The host's counters move in steps, and a few steps make no rate. */
static struct wm_value system_mean_percent(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    size_t channel = wm_analysis_find(analysis, "host", "host", "cpu_time");

    if (channel == WM_NO_CHANNEL || analysis->stats[channel].counter.count == 0)
        return wm_value_missing(wm_build_why(builder, channel, "host"));

    const struct wm_counter_stats *counter = &analysis->stats[channel].counter;
    double seconds = wm_stats_seconds(counter->first_ns, counter->last_ns);
    if (seconds <= WM_SENSOR_PERIODS * (double)analysis->channels[channel].period_ns / 1e9)
        return wm_value_missing(
            "the run is shorter than three updates of the CPU counters");
    return wm_value_known(100 * counter->total / seconds);
}

/* The peak of all is at most the sum of the peaks of its parts. */
static void bound_peak(struct wm_report *report, double cores)
{
    const struct wm_value *main = &report->cpu_main.max_sum;
    const struct wm_value *others = &report->cpu_descendants.max_sum;
    struct wm_percentages *all = &report->cpu_combined;

    if (!main->known || !others->known || !all->max_sum.known)
        return;
    all->max_sum.number = fmax(fmin(all->max_sum.number, main->number + others->number),
                               all->mean_sum.number);
    all->max_hardware = per_core(all->max_sum, cores);
}

static void build_cpu(struct wm_report_builder *builder)
{
    const struct wm_run *run = builder->analysis->run;
    struct wm_report *report = builder->report;
    const struct wm_result *result = &report->result;
    double cores = run->expected_cores > 0 ? run->expected_cores : run->core_count;

    report->cpu_total =
        cpu_time_of(builder, "tree", result->cpu_total_seconds, result->cpu_note);
    report->cpu_main_time = cpu_time_of(builder, "main", result->cpu_main_seconds, NULL);
    report->cpu_descendants_time = cpu_time_of(
        builder, "descendants", result->cpu_descendants_seconds, result->cpu_note);
    snprintf(report->cpu_method, sizeof(report->cpu_method), "%s",
             result->cpu_method[0] ? result->cpu_method
                                   : "sampled until the recording ends");

    report->cpu_system = percentages(builder, WM_CPU_PART_SYSTEM,
                                     system_mean_percent(builder), run->core_count);
    report->cpu_main =
        percentages(builder, WM_CPU_PART_MAIN,
                    mean_percent(report->cpu_main_time, report->compute_time), cores);
    report->cpu_descendants = percentages(
        builder, WM_CPU_PART_DESCENDANTS,
        mean_percent(report->cpu_descendants_time, report->compute_time), cores);
    report->cpu_combined =
        percentages(builder, WM_CPU_PART_COMBINED,
                    mean_percent(report->cpu_total, report->compute_time), cores);
    bound_peak(report, cores);

    report->main_threads = max_of(builder, "tree", "main", "threads");
    report->descendants_threads = max_of(builder, "tree", "descendants", "threads");
    report->combined_threads = max_of(builder, "tree", "tree", "threads");
    report->max_processes = max_of(builder, "tree", "tree", "processes");
}

static void build_cpu_temperature(struct wm_report_builder *builder)
{
    const struct wm_analysis *analysis = builder->analysis;
    struct wm_spread *spread = &builder->report->cpu_temperature;

    if (analysis->cpu_temperature.count > 0) {
        spread->mean = wm_value_known(wm_gauge_mean(&analysis->cpu_temperature));
        spread->max = wm_value_known(analysis->cpu_temperature.max);
        return;
    }

    size_t sensor = WM_NO_CHANNEL;
    for (size_t i = 0; i < analysis->count && sensor == WM_NO_CHANNEL; i++) {
        if (analysis->stats[i].is_cpu_temperature)
            sensor = i;
    }
    spread->mean = wm_value_missing(wm_build_why(builder, sensor, "hwmon"));
    spread->max = spread->mean;
}

static void build_remarks(struct wm_report_builder *builder)
{
    const struct wm_report *report = builder->report;
    const struct wm_result *result = &report->result;

    if (!report->complete)
        wm_build_remark(builder,
                        "the recording ends without a result: %s; figures reach to its "
                        "last sample",
                        wm_writer_why_unfinished(&report->run));
    if (result->recording_trouble[0])
        wm_build_remark(builder, "recording: %s", result->recording_trouble);
    if (result->lost_ticks > 0)
        wm_build_remark(builder, "the recording lacks %llu of %llu samples",
                        (unsigned long long)result->lost_ticks,
                        (unsigned long long)result->ticks);
    if (report->run.gpu_remark)
        wm_build_remark(builder, "GPUs: %s", report->run.gpu_remark);
    if (report->run.regions_remark)
        wm_build_remark(builder, "regions: %s", report->run.regions_remark);
    if (result->regions_note[0])
        wm_build_remark(builder, "regions: %s", result->regions_note);
    if (result->survivors_note[0])
        wm_build_remark(builder, "%s", result->survivors_note);
    if (result->cpu_note[0])
        wm_build_remark(builder, "CPU time: %s", result->cpu_note);
    if (result->usage.note[0] && !result->survivors_note[0])
        wm_build_fact(builder,
                      "user and system time, context switches, page faults and bytes are "
                      "at least so much: %s",
                      result->usage.note);
    if (result->events_note[0])
        wm_build_remark(builder, "events: %s", result->events_note);
    if (result->memory_note[0])
        wm_build_remark(builder, "memory: %s", result->memory_note);
    if (result->metrics.note[0])
        wm_build_remark(builder, "metrics: %s", result->metrics.note);
    wm_build_silence(builder,
                     wm_analysis_find(builder->analysis, "tree", "tree", "memory_total"),
                     "memory of the tree");
    if ((double)result->late_ticks > MOST_LATE * (double)result->ticks)
        wm_build_remark(
            builder,
            "late samples: %llu of %llu; the machine was busy, or %s ms between "
            "samples is too short for it",
            (unsigned long long)result->late_ticks, (unsigned long long)result->ticks,
            wm_build_number((double)report->run.interval_ns / 1e6).text);
}

void wm_build_session(struct wm_report_builder *builder)
{
    build_time(builder);
    build_memory(builder);
    build_cpu(builder);
    build_cpu_temperature(builder);
    build_remarks(builder);
}
