/* SPDX-License-Identifier: Apache-2.0 */
/* track_snippet_file.c - columns, and rows of comma-separated values (RFC 4180, but for
 * the line's end). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/base_number.h"
#include "base/text/base_out.h"
#include "record/record_stats.h"
#include "track/snippet/track_snippet.h"

#define JOULES_PER_KWH 3.6e6

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Room for the name of a device's column. */
enum { NAME_SIZE = 128 };

/* What a cell has. */
enum content {
    ELAPSED,
    JOULES,
    UNCERTAINTY,
    METHOD,
    ORIGIN,
    UTILIZATION,
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
    double scale; /* of a number; 0: it stands as it is */
};

static const struct column snippet_columns[] = {
    { "elapsed_s", ELAPSED, ALL, 0 },
    { "cpu_energy_J", JOULES, CPU, 0 },
    { "dram_energy_J", JOULES, DRAM, 0 },
    { "gpu_energy_J", JOULES, GPU, 0 },
    { "cpu_uncertainty_J", UNCERTAINTY, CPU, 0 },
    { "dram_uncertainty_J", UNCERTAINTY, DRAM, 0 },
    { "gpu_uncertainty_J", UNCERTAINTY, GPU, 0 },
    { "cpu_method", METHOD, CPU, 0 },
    { "dram_method", METHOD, DRAM, 0 },
    { "gpu_method", METHOD, GPU, 0 },
    { "cpu_origin", ORIGIN, CPU, 0 },
    { "dram_origin", ORIGIN, DRAM, 0 },
    { "gpu_origin", ORIGIN, GPU, 0 },
    { "finished", FINISHED, ALL, 0 },
    { "name", NAME, ALL, 0 },
};

static const struct column series_columns[] = {
    { "elapsed_s", ELAPSED, ALL, 0 },
    { "cpu_energy_J", JOULES, CPU, 0 },
    { "dram_energy_J", JOULES, DRAM, 0 },
    { "gpu_energy_J", JOULES, GPU, 0 },
    { "cpu_utilization_ratio", UTILIZATION, CPU, 0 },
    { "cpu_temperature_celsius", TEMPERATURE, CPU, 0 },
    { "gpu_utilization_ratio", UTILIZATION, GPU, 0 },
    { "gpu_temperature_celsius", TEMPERATURE, GPU, 0 },
    { "gpu_power_W", POWER, GPU, 0 },
    { "cpu_origin", ORIGIN, CPU, 0 },
    { "dram_origin", ORIGIN, DRAM, 0 },
    { "gpu_origin", ORIGIN, GPU, 0 },
};

/* The thesis' tool has columns and units of its own, and no header. */
static const struct column seed_snippet_columns[] = {
    { NULL, ELAPSED, ALL, 0 },
    { NULL, JOULES, CPU, 1 / JOULES_PER_KWH },
    { NULL, JOULES, GPU, 1 / JOULES_PER_KWH },
};

static const struct column seed_series_columns[] = {
    { NULL, ELAPSED, ALL, 0 },
    { NULL, JOULES, CPU, 1 / JOULES_PER_KWH },
    { NULL, UTILIZATION, CPU, 100 },
    { NULL, TEMPERATURE, CPU, 0 },
    { NULL, JOULES, GPU, 1 / JOULES_PER_KWH },
    { NULL, UTILIZATION, GPU, 100 },
    { NULL, TEMPERATURE, GPU, 0 },
    { NULL, POWER, GPU, 0 },
};

/* Of each device; those behind the first are of GPUs. */
static const struct column device_columns[] = {
    { "_energy_J", JOULES, ALL, 0 },
    { "_utilization_ratio", UTILIZATION, ALL, 0 },
    { "_temperature_celsius", TEMPERATURE, ALL, 0 },
    { "_power_W", POWER, ALL, 0 },
};

static const struct layout {
    const struct column *columns;
    size_t count;
    size_t device_count; /* how many of a device's columns there are: none, energy, all */
    bool has_header;
} layouts[2][2] = {
    /* of a series or not, in the format of the thesis' tool or not */
    { { snippet_columns, COUNT(snippet_columns), 1, true },
      { seed_snippet_columns, COUNT(seed_snippet_columns), 0, false } },
    { { series_columns, COUNT(series_columns), COUNT(device_columns), true },
      { seed_series_columns, COUNT(seed_series_columns), 0, false } },
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
static void plain_name(const char *label, char name[NAME_SIZE])
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_";

    snprintf(name, NAME_SIZE, "%s", label);
    for (char *at = name; *(at += strspn(at, plain));)
        *at = '_';
}

/* Whether the columns of a sum, or of a device before it, have its name. */
static bool is_taken(const struct wm_meter_inputs *inputs, size_t index, const char *name)
{
    bool is_taken =
        strcmp(name, "cpu") == 0 || strcmp(name, "dram") == 0 || strcmp(name, "gpu") == 0;

    for (size_t i = 0; i < index && !is_taken; i++) {
        char other[NAME_SIZE];
        plain_name(inputs->list[i].told.label, other);
        is_taken = strcmp(name, other) == 0;
    }
    return is_taken;
}

static void print_device_column(FILE *out, const struct wm_meter_inputs *inputs,
                                size_t index, const char *end)
{
    const struct wm_meter_device *device = &inputs->list[index].told;
    char name[NAME_SIZE], source[NAME_SIZE] = "";

    plain_name(device->label, name);
    if (is_taken(inputs, index, name))
        plain_name(device->source, source);
    fprintf(out, ",%s%s%s%s", source, source[0] ? "_" : "", name, end);
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

/* The first line with its end, empty where there is none; the caller frees it. */
static int make_header(const struct wm_meter_file *file, char **ret_header,
                       struct wm_error *err)
{
    char *text = NULL;
    size_t length;

    FILE *out = open_memstream(&text, &length);
    if (out && file->layout->has_header)
        print_header(out, file->layout, file->inputs);
    if (!out || fclose(out) != 0) {
        free(text);
        return wm_fail_memory(err, "meter");
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

/* Each of two writers would write over the other's rows. */
static int lock_file(const struct wm_meter_file *file, off_t *ret_size,
                     struct wm_error *err)
{
    struct stat info;

    if (flock(file->out.fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return wm_fail(err, WM_EEXIST, "%.200s: another meter writes to it", file->path);
    if (fstat(file->out.fd, &info) < 0)
        return wm_fail_errno(err, file->path);
    if (!S_ISREG(info.st_mode))
        return wm_fail(err, WM_EINVAL, "%.200s: not a regular file", file->path);
    *ret_size = info.st_size;
    return WM_OK;
}

/* A row that was torn when its writer was killed stays what it is, in a line of its
 * own. */
static int go_on(struct wm_meter_file *file, off_t size, const char *header,
                 struct wm_error *err)
{
    size_t length = strlen(header);
    char *there = calloc(1, length + 1), last;

    if (!there)
        return wm_fail_memory(err, file->path);
    bool is_same = pread(file->out.fd, there, length, 0) == (ssize_t)length &&
                   memcmp(there, header, length) == 0;
    free(there);
    if (!is_same)
        return wm_fail(err, WM_EEXIST, "%.180s: its columns are not those it would get",
                       file->path);
    file->out.end = file->out.written = size;
    if (pread(file->out.fd, &last, 1, size - 1) != 1)
        return wm_fail_errno(err, file->path);
    wm_out_text(&file->out, last == '\n' ? "" : "\n");
    return wm_out_flush(&file->out, err);
}

static int open_file(struct wm_meter_file *file, enum wm_record_mode mode,
                     const char *header, struct wm_error *err)
{
    off_t size = 0;

    int status = make_file(file, mode, err);
    if (status == WM_OK)
        status = wm_out_open(&file->out, file->path, err);
    if (status == WM_OK)
        status = lock_file(file, &size, err);
    if (status < 0)
        return status;
    if (mode == WM_RECORD_APPEND && size > 0)
        return go_on(file, size, header, err);
    if (ftruncate(file->out.fd, 0) < 0)
        return wm_fail_errno(err, file->path);
    wm_out_text(&file->out, header);
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

int wm_meter_file_open(const struct wm_meter *meter, const char *path, bool is_series,
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
    file->layout = &layouts[is_series][meter->seed_format];
    file->inputs = &meter->inputs;
    int status = make_header(file, &header, err);
    if (status == WM_OK)
        status = open_file(file, meter->mode, header, err);
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

static struct wm_known gauge(const struct wm_reading *reading)
{
    return (struct wm_known) { wm_stats_usable(reading), reading->value };
}

static const char *origin_name(enum wm_origin origin)
{
    static const char *const names[] = {
        [WM_MEASURED] = "measured",
        [WM_ESTIMATED] = "estimated",
        [WM_SIMULATED] = "simulated",
    };

    return names[origin];
}

/* Exactly those that belong to the content are looked at; the others may be NULL. An empty
 * cell stands for what is not known. */
static void put_cell(struct wm_out *out, const struct column *column,
                     const struct wm_snippet *snippet, const struct wm_meter_energy *energy,
                     const struct wm_meter_gauges *gauges)
{
    bool is_known = energy && energy->state == WM_READING_OK;
    struct wm_known number = { 0 };
    const char *text = "";

    switch (column->content) {
    case ELAPSED:
        number = (struct wm_known) { true, snippet->told.elapsed_s };
        break;
    case JOULES:
        number = (struct wm_known) { is_known, energy->joules };
        break;
    case UNCERTAINTY:
        number = (struct wm_known) { is_known, energy->uncertainty };
        break;
    case METHOD:
        text = is_known ? wm_meter_method_name(energy->method) : "";
        break;
    case ORIGIN:
        text = is_known ? origin_name(energy->origin) : "";
        break;
    case UTILIZATION:
        number = gauge(&gauges->utilization);
        break;
    case TEMPERATURE:
        number = gauge(&gauges->temperature);
        break;
    case POWER:
        number = gauge(&gauges->power);
        break;
    case FINISHED:
        text = snippet->is_finished ? "yes" : "no";
        break;
    case NAME:
        text = snippet->name;
        break;
    }
    if (number.known)
        wm_out_number(out,
                      column->scale > 0 ? number.number * column->scale : number.number);
    wm_out_cell(out, text, strlen(text));
}

static void put_row(struct wm_meter_file *file, const struct wm_snippet *snippet)
{
    const struct wm_meter_reading *told = &snippet->told;
    const struct wm_meter_energy *const energies[] = {
        [CPU] = &told->cpu, [DRAM] = &told->dram, [GPU] = &told->gpu
    };
    const struct wm_meter_gauges *const gauges[] = {
        [CPU] = &snippet->cpu, [GPU] = &snippet->gpu
    };
    const struct layout *layout = file->layout;

    for (size_t i = 0; i < layout->count; i++) {
        const struct column *column = &layout->columns[i];
        wm_out_text(&file->out, i > 0 ? "," : "");
        put_cell(&file->out, column, snippet, energies[column->whose],
                 gauges[column->whose]);
    }
    for (size_t i = 0; i < file->inputs->count; i++) {
        size_t count = count_columns(layout, &file->inputs->list[i]);
        for (size_t c = 0; c < count; c++) {
            wm_out_text(&file->out, ",");
            put_cell(&file->out, &device_columns[c], snippet, &snippet->spans[i].told,
                     &snippet->spans[i].gauges);
        }
    }
}

int wm_meter_file_write(struct wm_meter_file *file, const struct wm_snippet *snippet,
                        struct wm_error *err)
{
    struct wm_error why;

    put_row(file, snippet);
    wm_out_text(&file->out, "\n");
    int status = wm_out_flush(&file->out, &why);
    if (status == WM_OK)
        return WM_OK;
    if (file->lost++ == 0)
        file->loss = why;
    return wm_fail(err, WM_EIO, "%s", why.text);
}
