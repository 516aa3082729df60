/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_columns.c - headers and rows. Each header stands beside the function that
 * writes its row. */
#include "track/snippet/track_snippet_columns.h"

#include <stdio.h>
#include <stdlib.h>

#define JOULES_PER_KWH 3.6e6

/* Labels are names of columns too. */
static char plain(char letter)
{
    bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                    (letter >= '0' && letter <= '9');

    return is_plain ? letter : '_';
}

static void print_label(FILE *out, const char *label)
{
    for (; *label; label++)
        fputc(plain(*label), out);
}

static bool is_same_label(const char *one, const char *other)
{
    while (*one && *other && plain(*one) == plain(*other)) {
        one++;
        other++;
    }
    return !*one && !*other;
}

/* Whether the columns of a sum, or of a device before it, have its name. */
static bool is_taken(const struct wm_meter_inputs *inputs, size_t index)
{
    static const char *const sums[] = { "cpu", "dram", "gpu" };
    const char *label = wm_meter_input(inputs, index)->told.label;

    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        if (is_same_label(label, sums[i]))
            return true;
    }
    for (size_t i = 0; i < index; i++) {
        if (is_same_label(label, wm_meter_input(inputs, i)->told.label))
            return true;
    }
    return false;
}

static void print_column(FILE *out, const struct wm_meter_inputs *inputs, size_t index,
                         const char *end)
{
    const struct wm_meter_device *device = &wm_meter_input(inputs, index)->told;

    fputc(',', out);
    if (is_taken(inputs, index)) {
        print_label(out, device->source);
        fputc('_', out);
    }
    print_label(out, device->label);
    fputs(end, out);
}

static void print_snippet_columns(FILE *out, const struct wm_meter_inputs *inputs)
{
    fputs("elapsed_s,cpu_energy_J,dram_energy_J,gpu_energy_J,"
          "cpu_uncertainty_J,dram_uncertainty_J,gpu_uncertainty_J,"
          "cpu_method,dram_method,gpu_method,cpu_origin,dram_origin,gpu_origin,"
          "finished,name",
          out);
    for (size_t i = 0; i < wm_meter_inputs_count(inputs); i++)
        print_column(out, inputs, i, "_energy_J");
}

static void print_series_columns(FILE *out, const struct wm_meter_inputs *inputs)
{
    fputs("elapsed_s,cpu_energy_J,dram_energy_J,gpu_energy_J,cpu_utilization_ratio,"
          "cpu_temperature_celsius,gpu_utilization_ratio,gpu_temperature_celsius,"
          "gpu_power_W,cpu_origin,dram_origin,gpu_origin",
          out);
    for (size_t i = 0; i < wm_meter_inputs_count(inputs); i++) {
        print_column(out, inputs, i, "_energy_J");
        if (wm_meter_input(inputs, i)->told.kind != WM_DEVICE_GPU)
            continue;
        print_column(out, inputs, i, "_utilization_ratio");
        print_column(out, inputs, i, "_temperature_celsius");
        print_column(out, inputs, i, "_power_W");
    }
}

static int make_header(const struct wm_meter_inputs *inputs,
                       void (*print)(FILE *out, const struct wm_meter_inputs *inputs),
                       char **ret_header, struct wm_error *err)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    if (!out)
        return wm_fail(err, WM_ENOMEM, "meter: out of memory");
    print(out, inputs);
    if (fclose(out) != 0) {
        free(text);
        return wm_fail(err, WM_ENOMEM, "meter: out of memory");
    }
    *ret_header = text;
    return WM_OK;
}

int wm_meter_snippet_header(const struct wm_meter_inputs *inputs, char **ret_header,
                            struct wm_error *err)
{
    return make_header(inputs, print_snippet_columns, ret_header, err);
}

int wm_meter_series_header(const struct wm_meter_inputs *inputs, char **ret_header,
                           struct wm_error *err)
{
    return make_header(inputs, print_series_columns, ret_header, err);
}

static struct wm_meter_cell joules(const struct wm_meter_energy *energy)
{
    return (struct wm_meter_cell) { energy->state == WM_READING_OK, energy->joules };
}

static struct wm_meter_cell uncertainty(const struct wm_meter_energy *energy)
{
    return (struct wm_meter_cell) { energy->state == WM_READING_OK, energy->uncertainty };
}

static struct wm_meter_cell scaled(struct wm_meter_cell cell, double factor)
{
    return (struct wm_meter_cell) { cell.is_known, cell.value * factor };
}

static struct wm_meter_cell kwh(const struct wm_meter_energy *energy)
{
    return scaled(joules(energy), 1 / JOULES_PER_KWH);
}

static struct wm_meter_cell known(double value)
{
    return (struct wm_meter_cell) { true, value };
}

static const char *origin_name(const struct wm_meter_energy *energy)
{
    static const char *const names[] = {
        [WM_MEASURED] = "measured",
        [WM_ESTIMATED] = "estimated",
        [WM_SIMULATED] = "simulated",
    };

    return energy->state == WM_READING_OK ? names[energy->origin] : "";
}

static void put_energies(struct wm_meter_table *table,
                         const struct wm_meter_reading *reading)
{
    wm_meter_table_number(table, known(reading->elapsed_s));
    wm_meter_table_number(table, joules(&reading->cpu));
    wm_meter_table_number(table, joules(&reading->dram));
    wm_meter_table_number(table, joules(&reading->gpu));
}

static void put_origins(struct wm_meter_table *table,
                        const struct wm_meter_reading *reading)
{
    wm_meter_table_text(table, origin_name(&reading->cpu));
    wm_meter_table_text(table, origin_name(&reading->dram));
    wm_meter_table_text(table, origin_name(&reading->gpu));
}

int wm_meter_snippet_write(struct wm_meter_table *table, const char *name, bool is_finished,
                           const struct wm_meter_reading *reading,
                           const struct wm_meter_energy *devices, size_t count,
                           struct wm_error *err)
{
    put_energies(table, reading);
    wm_meter_table_number(table, uncertainty(&reading->cpu));
    wm_meter_table_number(table, uncertainty(&reading->dram));
    wm_meter_table_number(table, uncertainty(&reading->gpu));
    wm_meter_table_text(table, wm_meter_method_name(reading->cpu.method));
    wm_meter_table_text(table, wm_meter_method_name(reading->dram.method));
    wm_meter_table_text(table, wm_meter_method_name(reading->gpu.method));
    put_origins(table, reading);
    wm_meter_table_text(table, is_finished ? "yes" : "no");
    wm_meter_table_text(table, name);
    for (size_t i = 0; i < count; i++)
        wm_meter_table_number(table, joules(&devices[i]));
    return wm_meter_table_end_row(table, err);
}

static void put_gauges(struct wm_meter_table *table, const struct wm_meter_gauges *gauges)
{
    wm_meter_table_number(table, gauges->utilization);
    wm_meter_table_number(table, gauges->temperature);
    wm_meter_table_number(table, gauges->power);
}

int wm_meter_series_write(struct wm_meter_table *table,
                          const struct wm_meter_inputs *inputs,
                          const struct wm_meter_row *row, struct wm_error *err)
{
    put_energies(table, &row->reading);
    wm_meter_table_number(table, row->cpu.utilization);
    wm_meter_table_number(table, row->cpu.temperature);
    put_gauges(table, &row->gpu);
    put_origins(table, &row->reading);
    for (size_t i = 0; i < wm_meter_inputs_count(inputs); i++) {
        wm_meter_table_number(table, joules(&row->devices[i]));
        if (wm_meter_input(inputs, i)->told.kind == WM_DEVICE_GPU)
            put_gauges(table, &row->gauges[i]);
    }
    return wm_meter_table_end_row(table, err);
}

int wm_meter_snippet_write_seed(struct wm_meter_table *table,
                                const struct wm_meter_reading *reading,
                                struct wm_error *err)
{
    wm_meter_table_number(table, known(reading->elapsed_s));
    wm_meter_table_number(table, kwh(&reading->cpu));
    wm_meter_table_number(table, kwh(&reading->gpu));
    return wm_meter_table_end_row(table, err);
}

int wm_meter_series_write_seed(struct wm_meter_table *table, const struct wm_meter_row *row,
                               struct wm_error *err)
{
    wm_meter_table_number(table, known(row->reading.elapsed_s));
    wm_meter_table_number(table, kwh(&row->reading.cpu));
    wm_meter_table_number(table, scaled(row->cpu.utilization, 100));
    wm_meter_table_number(table, row->cpu.temperature);
    wm_meter_table_number(table, kwh(&row->reading.gpu));
    wm_meter_table_number(table, scaled(row->gpu.utilization, 100));
    wm_meter_table_number(table, row->gpu.temperature);
    wm_meter_table_number(table, row->gpu.power);
    return wm_meter_table_end_row(table, err);
}
