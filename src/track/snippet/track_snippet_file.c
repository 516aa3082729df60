/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_file.c - columns, and rows of comma-separated values (RFC 4180, but for
 * the line's end). */
#include "track/snippet/track_snippet_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/analyze_stats.h"
#include "base/text/base_out.h"

#define JOULES_PER_KWH 3.6e6

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What a cell has. */
enum content {
    ELAPSED,
    JOULES,
    KWH,
    UNCERTAINTY,
    METHOD,
    ORIGIN,
    UTILIZATION,
    UTILIZATION_PERCENT,
    TEMPERATURE,
    POWER,
    FINISHED,
    NAME,
};

/* Of what; a device's own cells are of the device. */
enum whose { ALL, CPU, DRAM, GPU };

struct column {
    const char *name; /* of a device: what follows its label */
    enum content content;
    enum whose whose;
};

static const struct column snippet_columns[] = {
    { "elapsed_s", ELAPSED, ALL },
    { "cpu_energy_J", JOULES, CPU },
    { "dram_energy_J", JOULES, DRAM },
    { "gpu_energy_J", JOULES, GPU },
    { "cpu_uncertainty_J", UNCERTAINTY, CPU },
    { "dram_uncertainty_J", UNCERTAINTY, DRAM },
    { "gpu_uncertainty_J", UNCERTAINTY, GPU },
    { "cpu_method", METHOD, CPU },
    { "dram_method", METHOD, DRAM },
    { "gpu_method", METHOD, GPU },
    { "cpu_origin", ORIGIN, CPU },
    { "dram_origin", ORIGIN, DRAM },
    { "gpu_origin", ORIGIN, GPU },
    { "finished", FINISHED, ALL },
    { "name", NAME, ALL },
};

static const struct column seed_snippet_columns[] = {
    { NULL, ELAPSED, ALL },
    { NULL, KWH, CPU },
    { NULL, KWH, GPU },
};

static const struct column series_columns[] = {
    { "elapsed_s", ELAPSED, ALL },
    { "cpu_energy_J", JOULES, CPU },
    { "dram_energy_J", JOULES, DRAM },
    { "gpu_energy_J", JOULES, GPU },
    { "cpu_utilization_ratio", UTILIZATION, CPU },
    { "cpu_temperature_celsius", TEMPERATURE, CPU },
    { "gpu_utilization_ratio", UTILIZATION, GPU },
    { "gpu_temperature_celsius", TEMPERATURE, GPU },
    { "gpu_power_W", POWER, GPU },
    { "cpu_origin", ORIGIN, CPU },
    { "dram_origin", ORIGIN, DRAM },
    { "gpu_origin", ORIGIN, GPU },
};

static const struct column seed_series_columns[] = {
    { NULL, ELAPSED, ALL },     { NULL, KWH, CPU },   { NULL, UTILIZATION_PERCENT, CPU },
    { NULL, TEMPERATURE, CPU }, { NULL, KWH, GPU },   { NULL, UTILIZATION_PERCENT, GPU },
    { NULL, TEMPERATURE, GPU }, { NULL, POWER, GPU },
};

/* Of each device; those behind the first are of GPUs. */
static const struct column device_columns[] = {
    { "_energy_J", JOULES, ALL },
    { "_utilization_ratio", UTILIZATION, ALL },
    { "_temperature_celsius", TEMPERATURE, ALL },
    { "_power_W", POWER, ALL },
};

static const struct layout {
    const struct column *columns;
    size_t count;
    bool has_header;
    size_t device_count; /* how many of a device's columns there are: none, energy, all */
} layouts[] = {
    [WM_METER_SNIPPETS] = { snippet_columns, COUNT(snippet_columns), true, 1 },
    [WM_METER_SNIPPETS_SEED] = { seed_snippet_columns, COUNT(seed_snippet_columns), false,
                                 0 },
    [WM_METER_SERIES] = { series_columns, COUNT(series_columns), true,
                          COUNT(device_columns) },
    [WM_METER_SERIES_SEED] = { seed_series_columns, COUNT(seed_series_columns), false, 0 },
};

struct wm_meter_file {
    const struct layout *layout;
    const struct wm_meter_inputs *inputs;
    struct wm_out out;
    char *path;
    bool is_made;         /* by us: it goes away when it comes to nothing */
    uint64_t lost;        /* rows */
    struct wm_error loss; /* of the first of them */
};

/* How many columns the device has. */
static size_t count_columns(const struct layout *layout, const struct wm_meter_input *input)
{
    if (layout->device_count > 1 && input->told.kind != WM_DEVICE_GPU)
        return 1;
    return layout->device_count;
}

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
    const char *label = inputs->list[index].told.label;

    for (size_t i = 0; i < COUNT(sums); i++) {
        if (is_same_label(label, sums[i]))
            return true;
    }
    for (size_t i = 0; i < index; i++) {
        if (is_same_label(label, inputs->list[i].told.label))
            return true;
    }
    return false;
}

static void print_device_column(FILE *out, const struct wm_meter_inputs *inputs,
                                size_t index, const char *end)
{
    const struct wm_meter_device *device = &inputs->list[index].told;

    fputc(',', out);
    if (is_taken(inputs, index)) {
        print_label(out, device->source);
        fputc('_', out);
    }
    print_label(out, device->label);
    fputs(end, out);
}

static void print_header(FILE *out, const struct layout *layout,
                         const struct wm_meter_inputs *inputs)
{
    for (size_t i = 0; i < layout->count; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", layout->columns[i].name);
    for (size_t i = 0; i < inputs->count; i++) {
        for (size_t c = 0; c < count_columns(layout, &inputs->list[i]); c++)
            print_device_column(out, inputs, i, device_columns[c].name);
    }
    fputc('\n', out);
}

/* The first line with its end, or NULL where there is none; the caller frees it. */
static int make_header(const struct wm_meter_file *file, char **ret_header,
                       struct wm_error *err)
{
    char *text = NULL;
    size_t length;

    if (!file->layout->has_header) {
        *ret_header = NULL;
        return WM_OK;
    }
    FILE *out = open_memstream(&text, &length);
    if (out)
        print_header(out, file->layout, file->inputs);
    if (!out || fclose(out) != 0) {
        free(text);
        return wm_fail(err, WM_ENOMEM, "meter: out of memory");
    }
    *ret_header = text;
    return WM_OK;
}

/* The file is there after this. */
static int make_file(struct wm_meter_file *file, enum wm_record_mode mode,
                     struct wm_error *err)
{
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
    int fd = open(file->path, flags | O_EXCL, 0666);

    file->is_made = fd >= 0;
    if (fd >= 0)
        close(fd);
    if (fd < 0 && (errno != EEXIST || mode == WM_RECORD_NEW))
        return wm_fail_errno(err, file->path);
    return WM_OK;
}

static int check_header(const struct wm_meter_file *file, const char *header,
                        struct wm_error *err)
{
    size_t length = strlen(header);
    char *there = malloc(length);

    if (!there)
        return wm_fail(err, WM_ENOMEM, "%s: out of memory", file->path);
    bool is_same = pread(file->out.fd, there, length, 0) == (ssize_t)length &&
                   memcmp(there, header, length) == 0;
    free(there);
    if (!is_same)
        return wm_fail(err, WM_EEXIST, "%.180s: its columns are not those it would get",
                       file->path);
    return WM_OK;
}

/* A row that was torn when its writer was killed stays what it is, in a line of its
 * own. */
static int go_on(struct wm_meter_file *file, off_t size, const char *header,
                 struct wm_error *err)
{
    char last;

    if (header) {
        int status = check_header(file, header, err);
        if (status < 0)
            return status;
    }
    file->out.end = file->out.written = size;
    if (pread(file->out.fd, &last, 1, size - 1) != 1)
        return wm_fail_errno(err, file->path);
    if (last == '\n')
        return WM_OK;
    wm_out_text(&file->out, "\n");
    return wm_out_flush(&file->out, err);
}

/* Each of two writers would write over the other's rows. */
static int lock_file(const struct wm_meter_file *file, struct wm_error *err)
{
    if (flock(file->out.fd, LOCK_EX | LOCK_NB) == 0)
        return WM_OK;
    if (errno == EWOULDBLOCK)
        return wm_fail(err, WM_EEXIST, "%.200s: another meter writes to it", file->path);
    return wm_fail_errno(err, file->path);
}

static int open_file(struct wm_meter_file *file, enum wm_record_mode mode,
                     const char *header, struct wm_error *err)
{
    struct stat info;

    int status = make_file(file, mode, err);
    if (status == WM_OK)
        status = wm_out_open(&file->out, file->path, err);
    if (status < 0)
        return status;
    if (fstat(file->out.fd, &info) < 0)
        return wm_fail_errno(err, file->path);
    if (!S_ISREG(info.st_mode))
        return wm_fail(err, WM_EINVAL, "%.200s: not a regular file", file->path);
    status = lock_file(file, err);
    if (status < 0)
        return status;
    if (mode == WM_RECORD_APPEND && info.st_size > 0)
        return go_on(file, info.st_size, header, err);
    if (ftruncate(file->out.fd, 0) < 0)
        return wm_fail_errno(err, file->path);
    wm_out_text(&file->out, header ? header : "");
    return wm_out_flush(&file->out, err);
}

static void release(struct wm_meter_file *file)
{
    wm_out_close(&file->out);
    free(file->path);
    free(file);
}

void wm_meter_file_abandon(struct wm_meter_file *file)
{
    if (!file)
        return;
    if (file->is_made)
        unlink(file->path);
    release(file);
}

int wm_meter_file_open(const char *path, enum wm_record_mode mode,
                       enum wm_meter_layout layout, const struct wm_meter_inputs *inputs,
                       struct wm_meter_file **ret_file, struct wm_error *err)
{
    struct wm_meter_file *file = calloc(1, sizeof(*file));
    char *header = NULL;

    if (file)
        file->path = strdup(path);
    if (!file || !file->path) {
        free(file);
        return wm_fail(err, WM_ENOMEM, "%.200s: out of memory", path);
    }
    file->layout = &layouts[layout];
    file->inputs = inputs;
    int status = make_header(file, &header, err);
    if (status == WM_OK)
        status = open_file(file, mode, header, err);
    free(header);
    if (status < 0) {
        wm_meter_file_abandon(file);
        return status;
    }
    *ret_file = file;
    return WM_OK;
}

int wm_meter_file_close(struct wm_meter_file *file, struct wm_error *err)
{
    int status = WM_OK;

    if (!file)
        return WM_OK;
    if (file->lost > 0)
        status = wm_fail(err, WM_EIO, "%" PRIu64 " rows are missing: %.200s", file->lost,
                         file->loss.text);
    release(file);
    return status;
}

static void put_text(struct wm_out *out, const char *text)
{
    wm_out_cell(out, text, strlen(text));
}

static void put_reading(struct wm_out *out, const struct wm_reading *reading, double factor)
{
    if (wm_stats_usable(reading))
        wm_out_number(out, reading->value * factor);
}

static void put_joules(struct wm_out *out, const struct wm_meter_energy *energy,
                       double joules)
{
    if (energy->state == WM_READING_OK)
        wm_out_number(out, joules);
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

/* Exactly those that belong to the content are looked at; the others may be NULL. */
static void put_cell(struct wm_out *out, enum content content,
                     const struct wm_meter_row *row, const struct wm_meter_energy *energy,
                     const struct wm_meter_gauges *gauges)
{
    switch (content) {
    case ELAPSED:
        wm_out_number(out, row->reading.elapsed_s);
        break;
    case JOULES:
        put_joules(out, energy, energy->joules);
        break;
    case KWH:
        put_joules(out, energy, energy->joules * (1 / JOULES_PER_KWH));
        break;
    case UNCERTAINTY:
        put_joules(out, energy, energy->uncertainty);
        break;
    case METHOD:
        put_text(out, wm_meter_method_name(energy->method));
        break;
    case ORIGIN:
        put_text(out, origin_name(energy));
        break;
    case UTILIZATION:
        put_reading(out, &gauges->utilization, 1);
        break;
    case UTILIZATION_PERCENT:
        put_reading(out, &gauges->utilization, 100);
        break;
    case TEMPERATURE:
        put_reading(out, &gauges->temperature, 1);
        break;
    case POWER:
        put_reading(out, &gauges->power, 1);
        break;
    case FINISHED:
        put_text(out, row->is_finished ? "yes" : "no");
        break;
    case NAME:
        put_text(out, row->name);
        break;
    }
}

static void put_row(struct wm_meter_file *file, const struct wm_meter_row *row)
{
    const struct wm_meter_reading *reading = &row->reading;
    const struct wm_meter_energy *const energies[] = {
        [CPU] = &reading->cpu, [DRAM] = &reading->dram, [GPU] = &reading->gpu
    };
    const struct wm_meter_gauges *const gauges[] = { [CPU] = &row->cpu, [GPU] = &row->gpu };
    const struct layout *layout = file->layout;

    for (size_t i = 0; i < layout->count; i++) {
        const struct column *column = &layout->columns[i];
        wm_out_text(&file->out, i > 0 ? "," : "");
        put_cell(&file->out, column->content, row, energies[column->whose],
                 gauges[column->whose]);
    }
    for (size_t i = 0; i < file->inputs->count; i++) {
        size_t count = count_columns(layout, &file->inputs->list[i]);
        for (size_t c = 0; c < count; c++) {
            wm_out_text(&file->out, ",");
            put_cell(&file->out, device_columns[c].content, row, &row->devices[i],
                     row->gauges ? &row->gauges[i] : NULL);
        }
    }
}

int wm_meter_file_write(struct wm_meter_file *file, const struct wm_meter_row *row,
                        struct wm_error *err)
{
    struct wm_error why;

    put_row(file, row);
    wm_out_text(&file->out, "\n");
    int status = wm_out_flush(&file->out, &why);
    if (status == WM_OK)
        return WM_OK;
    if (file->lost++ == 0)
        file->loss = why;
    return wm_fail(err, WM_EIO, "%s", why.text);
}
