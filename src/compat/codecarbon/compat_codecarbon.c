/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat_codecarbon.c - the columns of CodeCarbon's emissions.csv, and what a report
 * has to say in them.
 *
 * The names, units and meanings are those of CodeCarbon 3.3, whose energy and power
 * include the data centre's share (PUE). A cell of something unknown is empty, which
 * pandas reads as NaN; CodeCarbon itself would write 0 there.
 */
#include "compat/codecarbon/compat_codecarbon.h"

#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/text/base_localtime.h"
#include "base/text/base_number.h"
#include "record/record_experiment.h"

#define BYTES_PER_GIB 1073741824.0

/* Of a text in a cell. */
#define MOST_TEXT 256

struct row {
    const struct wm_report *report;
    const struct wm_tariff *tariff;
    FILE *out;
};

static void put_number(const struct row *row, const struct wm_value *value, double scale)
{
    char text[WM_NUMBER_SIZE];

    if (value->known && wm_number_format(value->number * scale, text) > 0)
        fputs(text, row->out);
}

static void put_text(const struct row *row, const char *text)
{
    char valid[MOST_TEXT], quoted[2 * MOST_TEXT];

    size_t length =
        wm_text_utf8(valid, sizeof(valid), text ? text : "", text ? strlen(text) : 0);
    const char *quote = wm_text_is_quoted(valid, length) ? "\"" : "";
    length = wm_text_double_quotes(quoted, valid, length);
    fprintf(row->out, "%s%.*s%s", quote, (int)length, quoted, quote);
}

/* Local time of the end, without its fraction. */
static void put_timestamp(const struct row *row)
{
    const struct wm_value *time = &row->report->compute_time;
    char text[WM_LOCALTIME_SIZE];

    if (!time->known || row->report->start_unix_ns <= 0 ||
        row->report->start_unix_ns > WM_TIME_MAX_NS)
        return;
    wm_localtime_format(row->report->start_unix_ns + (int64_t)(time->number * 1e9), text);
    fprintf(row->out, "%.10sT%.8s", text, text + 11);
}

static void put_project(const struct row *row)
{
    const char *name = wm_run_note(&row->report->run, "project_name");

    put_text(row, name ? name : "wattmeter");
}

/* It is the first member of the report, and so has no offset. */
static void put_run(const struct row *row)
{
    put_text(row, row->report->run.id);
}

static void put_experiment(const struct row *row)
{
    put_text(row, wm_run_note(&row->report->run, "experiment_id"));
}

static struct wm_value emissions_kg(const struct row *row)
{
    if (row->tariff->carbon <= 0)
        return (struct wm_value) { .known = false };
    return wm_tariff_amount(row->tariff, &row->report->energy.energy,
                            row->tariff->carbon / 1000);
}

static void put_emissions(const struct row *row)
{
    const struct wm_value kg = emissions_kg(row);

    put_number(row, &kg, 1);
}

/* `value` is something of the whole run. */
static void put_per_second(const struct row *row, const struct wm_value *value,
                           double scale)
{
    const struct wm_value *time = &row->report->compute_time;

    if (time->known && time->number > 0)
        put_number(row, value, scale / time->number);
}

static void put_rate(const struct row *row)
{
    const struct wm_value kg = emissions_kg(row);

    put_per_second(row, &kg, 1);
}

/* A part of the time is missing, and nobody knows how much was used then. */
static bool is_incomplete(const struct wm_energy_sum *sum)
{
    return sum->energy.known && sum->energy.number > 0 && !sum->uncertainty.known;
}

static void put_power(const struct row *row, const struct wm_energy_sum *sum)
{
    const struct wm_value watts = { .known = true, .number = sum->watts };

    /* While it was known. */
    if (is_incomplete(sum)) {
        put_number(row, &watts, wm_tariff_pue(row->tariff));
        return;
    }
    put_per_second(row, &sum->energy, wm_tariff_pue(row->tariff));
}

static void put_energy(const struct row *row, const struct wm_energy_sum *sum)
{
    const struct wm_value kwh = wm_tariff_amount(row->tariff, &sum->energy, 1);

    put_number(row, &kwh, 1);
}

/* Who wrote the row, and the one place where it can say what it was not measured. */
static void put_version(const struct row *row)
{
    static const char *const origins[] = {
        [WM_MEASURED] = "",
        [WM_ESTIMATED] = " (estimated)",
        [WM_SIMULATED] = " (simulated)",
    };
    const struct wm_report *report = row->report;

    fputs("wattmeter", row->out);
    if (report->run.version) {
        fputc(' ', row->out);
        put_text(row, report->run.version);
    }
    if (report->energy.energy.known)
        fputs(origins[report->energy.origin], row->out);
    if (is_incomplete(&report->energy))
        fputs(" (incomplete)", row->out);
}

static void put_cpu_count(const struct row *row)
{
    if (row->report->run.core_count > 0)
        fprintf(row->out, "%d", row->report->run.core_count);
}

static void put_gpu_count(const struct row *row)
{
    if (row->report->gpu_count > 0)
        fprintf(row->out, "%zu", row->report->gpu_count);
}

static bool same_name(const struct wm_gpu_usage *gpu, const struct wm_gpu_usage *other)
{
    return strcmp(gpu->name ? gpu->name : "", other->name ? other->name : "") == 0;
}

/* "2 x NVIDIA H100": each model where it comes first. */
static void put_gpu_model(const struct row *row)
{
    const struct wm_report *report = row->report;
    char text[MOST_TEXT] = "";

    for (size_t i = 0; i < report->gpu_count; i++) {
        const struct wm_gpu_usage *gpu = &report->gpus[i];
        size_t count = 0, before = 0;
        for (size_t k = 0; k < report->gpu_count; k++) {
            count += same_name(gpu, &report->gpus[k]);
            before += k < i && same_name(gpu, &report->gpus[k]);
        }
        if (before == 0)
            wm_text_list(text, sizeof(text), ", ", "%zu x %s", count,
                         gpu->name ? gpu->name : "GPU");
    }
    put_text(row, text);
}

/* Of CodeCarbon's two modes the one that counts whole devices. */
static void put_mode(const struct row *row)
{
    fputs("machine", row->out);
}

static void put_pue(const struct row *row)
{
    const struct wm_value pue = { .number = wm_tariff_pue(row->tariff), .known = true };

    put_number(row, &pue, 1);
}

#define REPORT(member) offsetof(struct wm_report, member)

static const struct column {
    const char *name;
    bool newer; /* than CodeCarbon 2.1 */

    /* What stands in it: of these, which are offsets in the report, the one that is not 0,
     * or what put() puts there; nothing: we do not know it. */
    size_t number, text, energy, power;
    void (*put)(const struct row *row);
    double scale; /* of the number; 0: 1 */
} columns[] = {
    { "timestamp", false, .put = put_timestamp },
    { "project_name", false, .put = put_project },
    { "run_id", false, .put = put_run },
    { "experiment_id", true, .put = put_experiment },
    { "duration", false, .number = REPORT(compute_time) },
    { "emissions", false, .put = put_emissions },
    { "emissions_rate", false, .put = put_rate },
    { "cpu_power", false, .power = REPORT(cpu_energy) },
    { "gpu_power", false, .power = REPORT(gpu_energy) },
    { "ram_power", false, .power = REPORT(dram_energy) },
    { "cpu_energy", false, .energy = REPORT(cpu_energy) },
    { "gpu_energy", false, .energy = REPORT(gpu_energy) },
    { "ram_energy", false, .energy = REPORT(dram_energy) },
    { "energy_consumed", false, .energy = REPORT(energy) },
    { "water_consumed", true, .put = NULL },
    { "country_name", false, .put = NULL },
    { "country_iso_code", false, .put = NULL },
    { "region", false, .put = NULL },
    { "cloud_provider", false, .put = NULL },
    { "cloud_region", false, .put = NULL },
    { "os", false, .text = REPORT(run.kernel) },
    { "python_version", false, .put = NULL },
    { "codecarbon_version", true, .put = put_version },
    { "cpu_count", false, .put = put_cpu_count },
    { "cpu_model", false, .text = REPORT(run.cpu_model) },
    { "gpu_count", false, .put = put_gpu_count },
    { "gpu_model", false, .put = put_gpu_model },
    { "longitude", false, .put = NULL },
    { "latitude", false, .put = NULL },
    { "ram_total_size", false, .number = REPORT(ram_capacity), .scale = 1 / BYTES_PER_GIB },
    { "tracking_mode", false, .put = put_mode },
    { "cpu_utilization_percent", true, .number = REPORT(cpu_system.mean_hardware) },
    { "gpu_utilization_percent", true, .number = REPORT(gpu_percentages.mean_hardware) },
    { "ram_utilization_percent", true, .put = NULL },
    { "ram_used_gb", true, .put = NULL },
    { "on_cloud", false, .put = NULL },
    { "pue", true, .put = put_pue },
    { "wue", true, .put = NULL },
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* COLUMNS where there is no such name. */
static size_t find_column(const char *name, size_t length)
{
    size_t i = 0;

    while (i < COLUMNS && (strlen(columns[i].name) != length ||
                           memcmp(columns[i].name, name, length) != 0))
        i++;
    return i;
}

/* The cell at `from` and where the next one begins; past the end, `ret_next` is
 * length + 1. */
static size_t scan_cell(const char *header, size_t length, size_t from, size_t *ret_next)
{
    const char *comma = memchr(header + from, ',', length - from);
    size_t end = comma ? (size_t)(comma - header) : length;

    *ret_next = end + 1;
    return find_column(header + from, end - from);
}

bool wm_codecarbon_is_header(const char *header, size_t length)
{
    bool found[COLUMNS] = { false };

    for (size_t at = 0; at <= length;) {
        size_t index = scan_cell(header, length, at, &at);
        if (index == COLUMNS || found[index])
            return false;
        found[index] = true;
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!found[i] && !columns[i].newer)
            return false;
    }
    return true;
}

void wm_codecarbon_header(FILE *out)
{
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", columns[i].name);
    fputc('\n', out);
}

static void put_cell(const struct row *row, size_t index, bool first)
{
    const struct column *column = &columns[index];
    const char *report = (const char *)row->report;

    if (!first)
        fputc(',', row->out);
    if (index >= COLUMNS)
        return;
    if (column->put)
        column->put(row);
    if (column->number)
        put_number(row, (const void *)(report + column->number),
                   column->scale > 0 ? column->scale : 1);
    if (column->text)
        put_text(row, *(char *const *)(const void *)(report + column->text));
    if (column->energy)
        put_energy(row, (const void *)(report + column->energy));
    if (column->power)
        put_power(row, (const void *)(report + column->power));
}

void wm_codecarbon_row(const struct wm_report *report, const struct wm_tariff *tariff,
                       const char *header, size_t length, FILE *out)
{
    const struct row row = { report, tariff, out };

    for (size_t i = 0; !header && i < COLUMNS; i++)
        put_cell(&row, i, i == 0);
    for (size_t at = 0; header && at <= length;) {
        bool first = at == 0;
        put_cell(&row, scan_cell(header, length, at, &at), first);
    }
    fputc('\n', out);
}
