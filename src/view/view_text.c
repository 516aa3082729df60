/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_text.c - a report for people: a label, the figure, and what to know of it
 * on each line, what is asked for most first.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "view/view.h"
#include "view/view_columns.h"

#define LABEL_WIDTH 12
#define FIGURE_WIDTH 12
#define MOST_PROCESSES 5

/* Of a command line, or of a name that somebody else chose. */
#define MOST_TEXT 256

struct text_view {
    const struct wm_report *report;
    const struct wm_units *units;
    FILE *out;
};

/* One line of the report. Without a detail there are no blanks at its end. */
static void print_line(const struct text_view *view, const char *label, const char *figure,
                       const char *detail)
{
    wm_view_left(view->out, label, LABEL_WIDTH);
    fputs("  ", view->out);
    if (detail[0]) {
        wm_view_left(view->out, figure, FIGURE_WIDTH);
        fprintf(view->out, "  %s\n", detail);
    } else {
        fprintf(view->out, "%s\n", figure);
    }
}

/* More on the line before. */
static void print_more(const struct text_view *view, const char *detail)
{
    if (detail[0])
        fprintf(view->out, "%*s%s\n", LABEL_WIDTH + FIGURE_WIDTH + 4, "", detail);
}

/* A detail that is put together piece by piece; what does not fit is cut off. */
struct detail {
    char text[512];
};

static void add(struct detail *detail, const char *separator, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(struct detail *detail, const char *separator, const char *format, ...)
{
    size_t used = strlen(detail->text);
    va_list args;

    if (used > 0)
        used += (size_t)snprintf(detail->text + used, sizeof(detail->text) - used, "%s",
                                 separator);
    if (used >= sizeof(detail->text))
        return;
    va_start(args, format);
    vsnprintf(detail->text + used, sizeof(detail->text) - used, format, args);
    va_end(args);
}

static void add_origin(struct detail *detail, enum wm_origin origin)
{
    if (origin == WM_SIMULATED)
        add(detail, "; ", "SIMULATED");
    if (origin == WM_ESTIMATED)
        add(detail, "; ", "ESTIMATED");
}

static void print_missing(const struct text_view *view, const char *label, const char *why)
{
    struct detail detail = { "" };

    add(&detail, "", "(%s)", why);
    print_line(view, label, "n/a", detail.text);
}

/* Each of these gives the text of a value, "n/a" where it is missing. */
struct quantity {
    char text[WM_QUANTITY_SIZE];
};

static struct quantity bytes_text(const struct wm_value *value, const struct wm_unit *unit)
{
    struct quantity quantity = { "n/a" };

    if (value->known)
        wm_view_bytes(quantity.text, value->number, unit);
    return quantity;
}

static struct quantity seconds_text(const struct wm_value *value)
{
    struct quantity quantity = { "n/a" };

    if (value->known)
        wm_view_duration(quantity.text, value->number, NULL);
    return quantity;
}

static struct quantity number_text(const struct wm_value *value, double scale,
                                   const char *suffix)
{
    struct quantity quantity = { "n/a" };
    char number[WM_QUANTITY_SIZE];

    if (value->known) {
        wm_view_number(number, value->number * scale, 3);
        snprintf(quantity.text, sizeof(quantity.text), "%.30s%s", number, suffix);
    }
    return quantity;
}

static struct quantity percent_text(const struct wm_value *value)
{
    return number_text(value, 1, " %");
}

static struct quantity count_text(const struct wm_value *value)
{
    struct quantity quantity = { "n/a" };

    if (value->known)
        snprintf(quantity.text, sizeof(quantity.text), "%.0f", value->number);
    return quantity;
}

/* Names are anybody's: control characters could move the cursor or worse. */
static void clean(char *out, size_t size, const char *text)
{
    wm_text_utf8(out, size, text, strlen(text));
    for (unsigned char *at = (unsigned char *)out; *at; at++) {
        if (*at < 0x20 || *at == 0x7f)
            *at = '?';
        if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f)
            at[1] = 0xbf; /* an inverted question mark instead of a C1 control */
    }
}

/* A word as one would type it in a shell. */
static void add_word(char *line, size_t size, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789%+,-./:=@_";
    size_t used = strlen(line);
    bool quoted = word[0] == '\0' || word[strspn(word, plain)] != '\0';

    if (used > 0 && used + 1 < size)
        line[used++] = ' ';
    if (quoted && used + 1 < size)
        line[used++] = '\'';
    for (; *word && used + 5 < size; word++) {
        if (*word == '\'') {
            memcpy(line + used, "'\\''", 4);
            used += 4;
        } else {
            line[used++] = *word;
        }
    }
    if (quoted && used + 1 < size)
        line[used++] = '\'';
    line[used] = '\0';
}

static void print_command(const struct text_view *view)
{
    const struct wm_run *run = &view->report->run;
    bool attached = run->mode && strcmp(run->mode, "run") != 0;
    char line[MOST_TEXT] = "", cleaned[MOST_TEXT];

    for (size_t i = 0; i < run->command_count; i++)
        add_word(line, sizeof(line), run->command[i]);
    clean(cleaned, sizeof(cleaned), line);
    if (!attached) {
        if (cleaned[0])
            print_line(view, "Command", cleaned, "");
        return;
    }
    char pid[24];
    snprintf(pid, sizeof(pid), "%d", (int)run->pid);
    print_line(view, "Process", pid, cleaned);
}

static void print_exit(const struct text_view *view)
{
    const struct wm_result *result = &view->report->result;
    char text[32];

    if (result->exit_signal > 0) {
        snprintf(text, sizeof(text), "signal %d", result->exit_signal);
        print_line(view, "Killed by", text, "");
    } else if (result->exit_status >= 0) {
        snprintf(text, sizeof(text), "%d", result->exit_status);
        print_line(view, "Exit status", text, "");
    }
}

static void print_time(const struct text_view *view)
{
    const struct wm_report *report = view->report;
    char figure[WM_QUANTITY_SIZE], start[40];
    struct detail detail = { "" };

    if (!report->compute_time.known) {
        print_missing(view, "Time", report->compute_time.why);
        return;
    }
    wm_clock_rfc3339(report->start_unix_ns, start, sizeof(start));
    add(&detail, "", "from %.10s %.8s UTC", start, start + 11);
    wm_view_duration(figure, report->compute_time.number, view->units->time);
    print_line(view, "Time", figure, detail.text);
}

static bool has_descendants(const struct wm_report *report)
{
    return report->result.processes_seen > 1 ||
           (report->max_processes.known && report->max_processes.number > 1);
}

static void print_cpu(const struct text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_run *run = &report->run;
    const struct wm_percentages *use = &report->cpu_combined;
    double cores = run->expected_cores > 0 ? run->expected_cores : run->core_count;
    struct detail detail = { "" };

    if (!report->cpu_total.known) {
        print_missing(view, "CPU time", report->cpu_total.why);
        return;
    }
    if (has_descendants(report))
        add(&detail, "", "main %s, descendants %s",
            seconds_text(&report->cpu_main_time).text,
            seconds_text(&report->cpu_descendants_time).text);
    print_line(view, "CPU time", seconds_text(&report->cpu_total).text, detail.text);

    if (!use->mean_sum.known) {
        print_missing(view, "CPU use", use->mean_sum.why);
        return;
    }
    detail.text[0] = '\0';
    add(&detail, "", "of one core on average, %s at most",
        percent_text(&use->max_sum).text);
    if (use->mean_hardware.known)
        add(&detail, "; ", "%s of %g cores", percent_text(&use->mean_hardware).text, cores);
    print_line(view, "CPU use", percent_text(&use->mean_sum).text, detail.text);
}

static void print_memory(const struct text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_unit *unit = view->units->ram;
    const struct wm_rss *rss = &report->ram_combined;
    struct detail detail = { "at most" };

    if (!rss->total.known) {
        print_missing(view, "Memory", rss->total.why);
        return;
    }
    if (rss->private_.known || rss->shared.known)
        add(&detail, "; ", "private %s, shared %s", bytes_text(&rss->private_, unit).text,
            bytes_text(&rss->shared, unit).text);
    print_line(view, "Memory", bytes_text(&rss->total, unit).text, detail.text);
    if (!has_descendants(report))
        return;
    detail.text[0] = '\0';
    add(&detail, "", "main %s, descendants %s",
        bytes_text(&report->ram_main.total, unit).text,
        bytes_text(&report->ram_descendants.total, unit).text);
    print_more(view, detail.text);
}

static void print_threads(const struct text_view *view)
{
    const struct wm_report *report = view->report;
    struct detail detail = { "at most" };

    if (!report->combined_threads.known) {
        print_missing(view, "Threads", report->combined_threads.why);
        return;
    }
    if (report->max_processes.known)
        add(&detail, ", ", "in %s process%s", count_text(&report->max_processes).text,
            report->max_processes.number == 1 ? "" : "es at once");
    print_line(view, "Threads", count_text(&report->combined_threads).text, detail.text);
}

static void print_gpu_sums(const struct text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_unit *unit = view->units->gpu_ram;
    const struct wm_percentages *use = &report->gpu_percentages;
    char name[24];
    struct detail detail = { "" };

    snprintf(name, sizeof(name), "%zu GPU%s", report->gpu_count,
             report->gpu_count == 1 ? "" : "s");
    add(&detail, "", "at most; %s of %s in use on %s",
        bytes_text(&report->gpu_ram_system, unit).text,
        bytes_text(&report->gpu_ram_capacity, unit).text, name);
    add_origin(&detail, report->gpu_energy_origin);
    if (report->gpu_ram_combined.known)
        print_line(view, "GPU memory", bytes_text(&report->gpu_ram_combined, unit).text,
                   detail.text);
    else
        print_missing(view, "GPU memory", report->gpu_ram_combined.why);

    detail.text[0] = '\0';
    add(&detail, "", "of %s on average, %s at most", name,
        percent_text(&use->max_hardware).text);
    add_origin(&detail, report->gpu_energy_origin);
    if (use->mean_hardware.known)
        print_line(view, "GPU use", percent_text(&use->mean_hardware).text, detail.text);
    else
        print_missing(view, "GPU use", use->mean_hardware.why);
}

/* The joules, with the watt-hours that an electricity bill knows. */
static void print_energy_sum(const struct text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_value *energy = &report->gpu_energy;
    char joules[WM_QUANTITY_SIZE] = "n/a", watt_hours[WM_QUANTITY_SIZE];
    struct detail detail = { "" };

    if (energy->known) {
        wm_view_prefixed(joules, energy->number, "J");
        wm_view_prefixed(watt_hours, energy->number / 3600, "Wh");
        add(&detail, "", "%s", watt_hours);
    } else {
        add(&detail, "", "(%s)", energy->why);
    }
    add_origin(&detail, report->gpu_energy_origin);
    print_line(view, "GPU energy", joules, detail.text);
}

static void print_gpu(const struct text_view *view, const struct wm_gpu_usage *gpu)
{
    struct detail detail = { "" };
    char label[24], joules[WM_QUANTITY_SIZE] = "n/a", name[64];

    snprintf(label, sizeof(label), "  gpu%d", gpu->index);
    if (gpu->energy.known)
        wm_view_prefixed(joules, gpu->energy.number, "J");
    add(&detail, "", "%s on average, %s at most",
        number_text(&gpu->power.mean, 1, " W").text,
        number_text(&gpu->power.max, 1, " W").text);
    add(&detail, "; ", "busy %s", number_text(&gpu->utilization.mean, 100, " %").text);
    if (gpu->temperature.max.known)
        add(&detail, "; ", "%s at most", number_text(&gpu->temperature.max, 1, " °C").text);
    add_origin(&detail, gpu->origin);
    print_line(view, label, joules, detail.text);

    detail.text[0] = '\0';
    clean(name, sizeof(name), gpu->name);
    add(&detail, "", "%s", name);
    if (gpu->energy.known)
        add(&detail, "; ", "energy by %s", gpu->energy_method);
    else
        add(&detail, "; ", "energy n/a (%s)", gpu->energy.why);
    print_more(view, detail.text);
}

static void print_gpus(const struct text_view *view)
{
    const struct wm_report *report = view->report;

    if (report->gpu_count == 0) {
        print_missing(view, "GPU", report->gpu_energy.why);
        return;
    }
    print_gpu_sums(view);
    print_energy_sum(view);
    for (size_t i = 0; i < report->gpu_count; i++)
        print_gpu(view, &report->gpus[i]);
}

static void print_temperature(const struct text_view *view)
{
    const struct wm_spread *cpu = &view->report->cpu_temperature;
    struct detail detail = { "" };

    if (!cpu->max.known) {
        print_missing(view, "Temperature", cpu->max.why);
        return;
    }
    add(&detail, "", "of the CPU at most, %s on average",
        number_text(&cpu->mean, 1, " °C").text);
    print_line(view, "Temperature", number_text(&cpu->max, 1, " °C").text, detail.text);
}

/* What else went on, without which the figures above may be misread. */
static void print_machine(const struct text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_run *run = &report->run;
    const struct wm_unit *unit = view->units->ram;
    struct detail detail = { "" };
    char host[MOST_TEXT], model[MOST_TEXT];

    if (!run->host)
        return;
    clean(host, sizeof(host), run->host);
    clean(model, sizeof(model), run->cpu_model ? run->cpu_model : "");
    print_line(view, "Machine", host, model);

    if (report->cpu_system.mean_hardware.known)
        add(&detail, "", "CPU %s of %d cores",
            percent_text(&report->cpu_system.mean_hardware).text, run->core_count);
    if (report->ram_system.known)
        add(&detail, "; ", "memory %s of %s at most",
            bytes_text(&report->ram_system, unit).text,
            bytes_text(&report->ram_capacity, unit).text);
    print_more(view, detail.text);
}

static void print_notes(const struct text_view *view)
{
    const struct wm_run *run = &view->report->run;
    char key[MOST_TEXT], value[MOST_TEXT];
    struct detail detail = { "" };

    for (size_t i = 0; i < run->note_count; i++) {
        clean(key, sizeof(key), run->notes[i].key ? run->notes[i].key : "");
        clean(value, sizeof(value), run->notes[i].value ? run->notes[i].value : "");
        add(&detail, ", ", "%s=%s", key, value);
    }
    if (detail.text[0])
        print_line(view, "Notes", detail.text, "");
}

static void print_processes(const struct text_view *view)
{
    const struct wm_result *result = &view->report->result;
    char count[24];

    if (result->process_count < 2)
        return;
    snprintf(count, sizeof(count), "%llu", (unsigned long long)result->processes_seen);
    print_line(view, "Processes", count, "seen; the dearest:");
    fprintf(view->out, "%12s%13s%14s%10s  %s\n", "pid", "CPU time", "memory", "threads",
            "name");
    for (size_t i = 0; i < result->process_count && i < MOST_PROCESSES; i++) {
        const struct wm_process_peak *process = &result->processes[i];
        char cpu[WM_QUANTITY_SIZE], memory[WM_QUANTITY_SIZE], name[MOST_TEXT];
        wm_view_duration(cpu, process->cpu_seconds, NULL);
        wm_view_bytes(memory, process->max_memory_bytes, view->units->ram);
        clean(name, sizeof(name), process->name);
        fprintf(view->out, "%12d", (int)process->pid);
        wm_view_right(view->out, cpu, 13);
        wm_view_right(view->out, memory, 14);
        fprintf(view->out, "%10d  %s\n", process->max_threads, name);
    }
}

static void print_remarks(const struct text_view *view)
{
    const struct wm_report *report = view->report;
    char text[512];

    for (size_t i = 0; i < report->remark_count; i++) {
        clean(text, sizeof(text), report->remarks[i]);
        fprintf(view->out, "note: %s\n", text);
    }
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

/* What was spent on looking. */
static void print_tool(const struct text_view *view)
{
    const struct wm_report *report = view->report;
    const struct wm_result *result = &report->result;
    char cpu[WM_QUANTITY_SIZE], memory[WM_QUANTITY_SIZE], interval[WM_QUANTITY_SIZE];

    interval_text(interval, report->run.interval_ns);
    fputs("wattmeter", view->out);
    if (report->run.version)
        fprintf(view->out, " %s", report->run.version);
    if (report->complete) {
        wm_view_duration(cpu, result->tool_cpu_seconds, NULL);
        fprintf(view->out, " used %s of CPU time", cpu);
    }
    if (report->complete && result->tool_max_rss_bytes >= 0) {
        wm_view_bytes(memory, result->tool_max_rss_bytes, NULL);
        fprintf(view->out, " and %s", memory);
    }
    fprintf(view->out, "; %llu ticks, one every %s", (unsigned long long)result->ticks,
            interval);
    if (report->complete)
        fprintf(view->out, ", %llu late, %llu missed",
                (unsigned long long)result->late_ticks,
                (unsigned long long)result->missed_ticks);
    else
        fputs("; its own cost is n/a (it was killed)", view->out);
    fputc('\n', view->out);
}

void wm_view_text(const struct wm_report *report, const struct wm_units *units, FILE *out)
{
    const struct text_view view = { .report = report, .units = units, .out = out };

    print_command(&view);
    print_exit(&view);
    print_time(&view);
    print_cpu(&view);
    print_memory(&view);
    print_threads(&view);
    print_gpus(&view);
    print_missing(&view, "CPU energy", "no source of CPU energy is read");
    print_temperature(&view);
    print_machine(&view);
    print_notes(&view);
    print_processes(&view);
    print_remarks(&view);
    print_tool(&view);
}
