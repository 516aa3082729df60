/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_text.c - a report for people: a label, the figure, and what to know of it
 * on each line, what is asked for most first.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "view/text/view_text_line.h"

#define MOST_PROCESSES 5

/* Of a name that somebody else chose. */
#define MOST_TEXT 256

static void print_command(const struct wm_text_view *view)
{
    const struct wm_run *run = &view->report->run;
    bool attached = run->mode && strcmp(run->mode, "run") != 0;
    int columns = view->units->verbosity > 0 ? WM_COMMAND_SIZE : wm_view_columns(view->out);

    if (!attached && run->command_count == 0)
        return;
    if (wm_run_is_of_all(run)) {
        wm_line_print(view, "Target", WM_RUN_OF_ALL, "");
        return;
    }
    fprintf(view->out, "%-14s", attached ? "Process" : "Command");
    if (attached)
        fprintf(view->out, run->command_count > 0 ? "%-14d" : "%d", (int)run->pid);
    wm_line_print_command(run, columns - (attached ? 28 : 14), view->out);
    fputc('\n', view->out);
}

static void print_exit(const struct wm_text_view *view)
{
    const struct wm_result *result = &view->report->result;
    char text[32];

    const bool has_failed = result->exit_signal > 0 || result->exit_status.number != 0;

    if (has_failed)
        wm_line_paint(view, WM_PAINT_RED);
    if (result->exit_signal > 0) {
        wm_line_signal(text, sizeof(text), result->exit_signal);
        wm_line_print(view, "Killed by", text, "");
    } else if (result->exit_status.known) {
        snprintf(text, sizeof(text), "%.0f", result->exit_status.number);
        wm_line_print(view, "Exit status", text, "");
    }
    if (has_failed)
        wm_line_paint(view, WM_PAINT_END);
}

static void add_start(const struct wm_text_view *view, struct wm_detail *detail)
{
    char start[40];

    wm_clock_rfc3339(view->report->start_unix_ns, start, sizeof(start));
    wm_line_add(detail, "", "from %.10s %.8s UTC", start, start + 11);
}

static bool has_descendants(const struct wm_report *report)
{
    return report->result.processes_seen > 1 ||
           (report->max_processes.known && report->max_processes.number > 1);
}

static void add_cpu_parts(const struct wm_text_view *view, struct wm_detail *detail)
{
    const struct wm_report *report = view->report;

    if (report->cpu_total.why) /* a note says why */
        wm_line_add(detail, "", "at least");
    if (has_descendants(report))
        wm_line_add(detail, "; ", "main %s, descendants %s%s",
                    wm_line_seconds(&report->cpu_main_time).text,
                    wm_line_at_least(&report->cpu_descendants_time),
                    wm_line_seconds(&report->cpu_descendants_time).text);
}

static bool has_no_cpu_time(const struct wm_report *report)
{
    return !report->cpu_total.known;
}

/* What the kernel counts of a command that has ended; -vv says why it is missing. */
static bool has_no_usage(const struct wm_report *report)
{
    return !report->result.usage.user_seconds.known;
}

static void add_cpu_use(const struct wm_text_view *view, struct wm_detail *detail)
{
    const struct wm_run *run = &view->report->run;
    const struct wm_percentages *use = &view->report->cpu_combined;
    double cores = run->expected_cores > 0 ? run->expected_cores : run->core_count;

    wm_line_add(detail, "", "%sof one core on average, peak %s",
                use->mean_sum.why ? "at least; " : "", wm_line_percent(&use->max_sum).text);
    if (use->mean_hardware.known)
        wm_line_add(detail, "; ", "%s of %g cores",
                    wm_line_percent(&use->mean_hardware).text, cores);
}

static void add_memory(const struct wm_text_view *view, struct wm_detail *detail)
{
    const struct wm_unit *unit = view->units->ram;
    const struct wm_rss *rss = &view->report->ram_combined;

    wm_line_add_most(detail, &rss->total);
    wm_line_add_between(detail, rss, unit);
    if (rss->private_.known || rss->shared.known)
        wm_line_add(detail, "; ", "private %s%s, shared %s%s",
                    wm_line_at_least(&rss->private_),
                    wm_line_bytes(&rss->private_, unit).text,
                    wm_line_at_least(&rss->shared), wm_line_bytes(&rss->shared, unit).text);
}

static void print_memory_parts(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_unit *unit = view->units->ram;
    struct wm_detail detail = { "" };

    if (!report->ram_combined.total.known || !has_descendants(report))
        return;
    wm_line_add(&detail, "", "main %s%s, descendants %s%s",
                wm_line_at_least(&report->ram_main.total),
                wm_line_bytes(&report->ram_main.total, unit).text,
                wm_line_at_least(&report->ram_descendants.total),
                wm_line_bytes(&report->ram_descendants.total, unit).text);
    wm_line_more(view, detail.text);
}

static void add_processes(const struct wm_text_view *view, struct wm_detail *detail)
{
    const struct wm_value *most = &view->report->max_processes;

    wm_line_add(detail, "", "peak");
    if (most->known)
        wm_line_add(detail, ", ", "in %s process%s", wm_line_count(most).text,
                    most->number == 1 ? "" : "es at once");
}

static void add_temperature(const struct wm_text_view *view, struct wm_detail *detail)
{
    wm_line_add(detail, "", "peak of the CPU, %s on average",
                wm_line_number(&view->report->cpu_temperature.mean, 1, " °C").text);
}

/* The lines that figures have, in the order of the report: what else stands in them, what
 * comes below them. A figure with a label that is not among them has a plain line behind
 * them. */
static const struct line {
    const char *key;
    bool (*is_left_out)(const struct wm_report *report);
    void (*add)(const struct wm_text_view *view, struct wm_detail *detail);
    void (*print_more)(const struct wm_text_view *view);
    const char *also; /* another figure in the same line, and the words around it */
    const char *before, *after;
} lines[] = {
    { "time", .add = add_start },
    { "cpu_time", .add = add_cpu_parts },
    { "user_time", has_no_usage, .also = "system_time", .before = "system " },
    { "cpu_use", has_no_cpu_time, .add = add_cpu_use },
    { "memory", .add = add_memory, .print_more = print_memory_parts },
    { "threads", .add = add_processes },
    { "voluntary_switches", has_no_usage, .also = "involuntary_switches",
      .before = "voluntary, ", .after = " involuntary" },
    { "minor_faults", has_no_usage, .also = "major_faults", .before = "minor, ",
      .after = " major" },
    { "read_bytes", has_no_usage, .also = "storage_read_bytes", .after = " from storage" },
    { "written_bytes", has_no_usage, .also = "storage_written_bytes",
      .after = " to storage" },
    { "gpu_memory", wm_line_has_no_gpu, .add = wm_line_add_gpu_memory },
    { "gpu_use", wm_line_has_no_gpu, .add = wm_line_add_gpu_use },
    { "gpu_energy", wm_line_has_no_gpu, .print_more = wm_line_gpus },
    { "cpu_energy", .print_more = wm_line_packages },
    { "dram_energy", wm_line_has_no_dram, .print_more = wm_line_dram },
    { "energy", wm_line_has_no_energy, .print_more = wm_line_whole },
    { "max_temperature", .add = add_temperature },
};

enum { LINES = sizeof(lines) / sizeof(lines[0]) };

/* Joules are printed with watt-hours, as on an electricity bill. */
static void add_joules(const struct wm_found *found, struct wm_detail *detail)
{
    if (wm_line_is_asymmetric(&found->value, &found->low, &found->high))
        wm_line_add(detail, "", "%s to %s", wm_line_joules(&found->low).text,
                    wm_line_joules(&found->high).text);
    else if (found->uncertainty.known)
        wm_line_add(detail, "", "±%s", wm_line_number(&found->uncertainty, 100, " %").text);
    wm_line_add(detail, "; ", "%s",
                wm_view_prefixed(found->value.number / 3600, "Wh").text);
}

/* Both figures are "at least" so much, or neither: a note says why. */
static void add_also(const struct wm_text_view *view, const struct line *line,
                     struct wm_detail *detail)
{
    const struct wm_figure_row *row = wm_figure_find(line->also);
    const struct wm_value value =
        wm_figure_of(row, WM_REPORT_RUN, view->report, view->report).value;

    if (value.why)
        wm_line_add(detail, "", "at least");
    wm_line_add(detail, "; ", "%s%s%s", line->before ? line->before : "",
                wm_line_figure(&value, row->unit, view->units).text,
                line->after ? line->after : "");
}

static void print_line(const struct wm_text_view *view, const struct wm_figure_row *row,
                       const struct line *line)
{
    const struct wm_found found =
        wm_figure_of(row, WM_REPORT_RUN, view->report, view->report);
    struct wm_detail detail = { "" };

    if (!found.value.known) {
        wm_line_missing(view, row->label, found.value.why);
        return;
    }
    if (row->unit == WM_UNIT_JOULES)
        add_joules(&found, &detail);
    if (line && line->add)
        line->add(view, &detail);
    if (line && line->also)
        add_also(view, line, &detail);
    wm_line_add_origin(&detail, found.origin);
    wm_line_print(view, row->label,
                  row->unit == WM_UNIT_JOULES
                      ? wm_line_joules(&found.value).text
                      : wm_line_figure(&found.value, row->unit, view->units).text,
                  detail.text);
}

static bool has_line(const struct wm_figure_row *row)
{
    for (size_t i = 0; i < LINES; i++) {
        if (row == wm_figure_find(lines[i].key))
            return true;
    }
    return false;
}

static void print_figures(const struct wm_text_view *view)
{
    const struct wm_figure_row *row;

    for (size_t i = 0; i < LINES; i++) {
        if (!lines[i].is_left_out || !lines[i].is_left_out(view->report))
            print_line(view, wm_figure_find(lines[i].key), &lines[i]);
        if (lines[i].print_more)
            lines[i].print_more(view);
    }
    for (size_t i = 0; (row = wm_figure_row(i)) != NULL; i++) {
        if (row->label && !has_line(row))
            print_line(view, row, NULL);
    }
}

/* What perf has counted, where somebody asked for it. */
static void print_events(const struct wm_text_view *view)
{
    const struct wm_result *result = &view->report->result;
    const char *label = "Events";

    for (size_t i = 0; i < WM_EVENTS; i++) {
        if (!result->events[i].known)
            continue;
        const struct wm_value count = wm_value_known(result->events[i].number);
        wm_line_print(view, label, wm_line_count(&count).text, wm_event_name(i));
        label = "";
    }
}

/* What else went on, without which the figures above may be misread. */
static void print_machine(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_run *run = &report->run;
    const struct wm_unit *unit = view->units->ram;
    struct wm_detail detail = { "" };
    char host[MOST_TEXT], model[MOST_TEXT];

    if (!run->host)
        return;
    wm_line_clean(host, sizeof(host), run->host);
    wm_line_clean(model, sizeof(model), run->cpu_model ? run->cpu_model : "");
    wm_line_print(view, "Machine", host, model);

    if (report->cpu_system.mean_hardware.known)
        wm_line_add(&detail, "", "CPU %s of %d cores",
                    wm_line_percent(&report->cpu_system.mean_hardware).text,
                    run->core_count);
    if (report->ram_system.known)
        wm_line_add(&detail, "; ", "memory peak %s of %s",
                    wm_line_bytes(&report->ram_system, unit).text,
                    wm_line_bytes(&report->ram_capacity, unit).text);
    wm_line_more(view, detail.text);
}

static void print_notes(const struct wm_text_view *view)
{
    const struct wm_run *run = &view->report->run;
    char key[MOST_TEXT], value[MOST_TEXT];
    struct wm_detail detail = { "" };

    for (size_t i = 0; i < run->note_count; i++) {
        wm_line_clean(key, sizeof(key), run->notes[i].key ? run->notes[i].key : "");
        wm_line_clean(value, sizeof(value), run->notes[i].value ? run->notes[i].value : "");
        wm_line_add(&detail, ", ", "%s=%s", key, value);
    }
    if (detail.text[0])
        wm_line_print(view, "Notes", detail.text, "");
}

static void print_processes(const struct wm_text_view *view)
{
    const struct wm_result *result = &view->report->result;
    char count[24];

    if (result->process_count < 2)
        return;
    snprintf(count, sizeof(count), "%llu", (unsigned long long)result->processes_seen);
    wm_line_print(view, "Processes", count, "seen; top by CPU time:");
    bool has_energy = view->report->cpu_energy.split.tree.known;
    fprintf(view->out, "%12s%13s%s%14s%10s  %s\n", "pid", "CPU time",
            has_energy ? "   CPU energy" : "", "memory", "threads", "name");
    for (size_t i = 0; i < result->process_count && i < MOST_PROCESSES; i++) {
        const struct wm_process_peak *process = &result->processes[i];
        char name[MOST_TEXT];
        wm_line_clean(name, sizeof(name), process->name);
        fprintf(view->out, "%12d", (int)process->pid);
        wm_view_right(view->out,
                      process->cpu_seconds.known
                          ? wm_view_duration(process->cpu_seconds.number, NULL).text
                          : "n/a",
                      13);
        if (has_energy)
            wm_view_right(view->out,
                          wm_line_joules(&view->report->process_energies[i]).text, 13);
        wm_view_right(
            view->out,
            process->max_memory_bytes.known
                ? wm_view_bytes(process->max_memory_bytes.number, view->units->ram).text
                : "n/a",
            14);
        fprintf(view->out, "%10d  %s\n", process->max_threads, name);
    }
}

/* What stands behind the label of a note, such as ": energy does not cover ...". */
static const char *behind_label(const char *note)
{
    const char *colon = strstr(note, ": ");

    return colon ? colon : note;
}

/* A note that is the same of many devices is printed once, for "gpu0 and 7 more". */
static void print_once(const struct wm_text_view *view, char *const *notes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *tail = behind_label(notes[i]);
        size_t before = 0, more = 0;

        for (size_t k = 0; k < count; k++) {
            bool is_same = strcmp(behind_label(notes[k]), tail) == 0;
            before += is_same && k < i;
            more += is_same && k > i;
        }
        if (before > 0)
            continue;
        char text[2048], others[32] = "";
        if (more > 0 && tail > notes[i])
            snprintf(others, sizeof(others), " and %zu more", more);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(tail - notes[i]), notes[i], others,
                 tail);
        wm_line_note(view, "note", WM_PAINT_YELLOW, text);
    }
}

static void print_remarks(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;

    print_once(view, report->remarks, report->remark_count);
    if (view->units->verbosity > 0)
        print_once(view, report->facts, report->fact_count);
}

/* As it was asked for: "100 ms". */
static void interval_text(char text[WM_QUANTITY_SIZE], int64_t ns)
{
    if (ns % WM_NS_PER_S == 0)
        snprintf(text, WM_QUANTITY_SIZE, "%lld s", (long long)(ns / WM_NS_PER_S));
    else if (ns % WM_NS_PER_MS == 0)
        snprintf(text, WM_QUANTITY_SIZE, "%lld ms", (long long)(ns / WM_NS_PER_MS));
    else
        snprintf(text, WM_QUANTITY_SIZE, "%lld µs", (long long)(ns / 1000));
}

/* What measuring took. */
static void print_overhead(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_result *result = &report->result;
    const bool is_known = report->complete && result->tool_cpu_seconds.known;
    struct wm_detail detail = { "" };
    char interval[WM_QUANTITY_SIZE];

    interval_text(interval, report->run.interval_ns);
    if (!is_known)
        wm_line_add(&detail, "", "n/a (%s)",
                    report->complete ? "the recording does not have it"
                                     : "the recording has no result");
    else
        wm_line_add(&detail, "", "%s CPU",
                    wm_view_duration(result->tool_cpu_seconds.number, NULL).text);
    if (is_known && result->tool_max_rss_bytes.known)
        wm_line_add(&detail, ", ", "%s",
                    wm_view_bytes(result->tool_max_rss_bytes.number, NULL).text);
    wm_line_add(&detail, "; ", "%llu sample%s at %s", (unsigned long long)result->ticks,
                result->ticks == 1 ? "" : "s", interval);
    if (is_known && result->late_ticks + result->missed_ticks > 0)
        wm_line_add(&detail, ", ", "%llu late, %llu missed",
                    (unsigned long long)result->late_ticks,
                    (unsigned long long)result->missed_ticks);
    wm_line_paint(view, WM_PAINT_FAINT);
    fprintf(view->out, "Overhead: %s\n", detail.text);
    wm_line_paint(view, WM_PAINT_END);
}

/* How the figures were had. */
static void print_sources(const struct wm_text_view *view)
{
    const struct wm_report *report = view->report;
    char text[512];

    if (report->run.version)
        wm_line_print(view, "Measured by", "wattmeter", report->run.version);
    if (report->cpu_method[0])
        wm_line_print(view, "CPU time by", report->cpu_method, "");
    for (size_t i = 0; i < report->run.source_count; i++) {
        const struct wm_source_status *source = &report->run.sources[i];
        wm_line_clean(text, sizeof(text), source->detail ? source->detail : "");
        wm_line_print(view, i == 0 ? "Sources" : "", source->name ? source->name : "",
                      text);
    }
}

/* What is there, but not for this user, is no more than a command away: on the machine
 * that it was found on. */
static void print_denied(const struct wm_text_view *view)
{
    const struct wm_run *run = &view->report->run;
    char text[1024];

    for (size_t i = 0; i < run->source_count; i++) {
        const struct wm_source_status *source = &run->sources[i];
        if (!source->remedy)
            continue;
        snprintf(text, sizeof(text),
                 "%s: %s. On %s this opens it:", source->name ? source->name : "a source",
                 source->denied   ? source->denied
                 : source->detail ? source->detail
                                  : "no permission",
                 run->host ? run->host : "that machine");
        wm_line_note(view, "Denied", WM_PAINT_YELLOW, text);
        wm_line_clean(text, sizeof(text), source->remedy);
        fprintf(view->out, "  %s\n", text);
    }
}

/* NULL for a figure that is known or is not one of the whole run. */
static const char *why_missing(const struct wm_report *report, size_t index)
{
    const struct wm_figure_row *row = wm_figure_row(index);
    const struct wm_figure_place *place = wm_figure_place(row, WM_REPORT_RUN);

    if (!place || place->only_known)
        return NULL;
    const struct wm_value value = wm_figure_of(row, WM_REPORT_RUN, report, report).value;
    return value.known ? NULL : value.why;
}

/* Every figure that is missing, and why: each reason once, with the figures it stops. */
static void print_reasons(const struct wm_text_view *view)
{
    for (size_t i = 0; wm_figure_row(i); i++) {
        const char *why = why_missing(view->report, i);
        char text[2048] = "";
        bool is_first = why != NULL;
        for (size_t k = 0; is_first && wm_figure_row(k); k++) {
            const char *other = why_missing(view->report, k);
            if (!other || strcmp(other, why) != 0)
                continue;
            is_first = k >= i;
            wm_text_list(text, sizeof(text), ", ", "%s", wm_figure_key(wm_figure_row(k)));
        }
        if (!is_first)
            continue;
        wm_text_list(text, sizeof(text), "", ": %s", why);
        wm_line_note(view, "n/a", WM_PAINT_FAINT, text);
    }
}

void wm_view_text(const struct wm_report *report, const struct wm_units *units, FILE *out)
{
    const struct wm_text_view view = { .report = report, .units = units, .out = out };

    print_command(&view);
    print_exit(&view);
    if (units->verbosity > 0) {
        print_figures(&view);
        print_events(&view);
        print_machine(&view);
        print_sources(&view);
    } else {
        wm_line_brief(&view);
        print_events(&view);
    }
    print_notes(&view);
    print_processes(&view);
    wm_line_regions(&view);
    print_denied(&view);
    if (units->verbosity == 0)
        wm_line_not_available(&view);
    print_remarks(&view);
    if (units->verbosity > 1)
        print_reasons(&view);
    print_overhead(&view);
}
