/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_gpu_text.c - the GPUs of a machine for people.
 *
 * First come igpu's blocks, with its labels, order and alignment, so that who
 * reads its output reads ours; then what igpu does not ask for, in the same
 * style. What is missing is n/a, and why stands in one place at the end.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "view/gpu/view_gpu.h"

#define BAR_WIDTH 25
#define MEMORY_WIDTH 10

/* How a line shows its field. */
enum form {
    PLAIN,
    SHARE, /* memory, with what part it is of the other field */
    BAR,
    OF_MOST,   /* "1911.0 MHz (Max: 1911.0)", with the other field */
    OF_LANES,  /* "16x (Max: 16x)" */
    OF_MEMORY, /* "12.00 MiB of 256.00 MiB" */
};

struct line {
    enum wm_gpu_field field;
    enum form form;
    enum wm_gpu_field other; /* of those that have two */
};

struct block {
    const char *title; /* NULL: no title and no indent */
    int label_width;   /* igpu's, which is one more than the longest label has */
    bool ours;         /* one "n/a" does for the block when nothing in it is known */
    const struct line *lines;
    size_t count;
};

static bool has(const struct wm_gpu_view *view, enum wm_gpu_field field)
{
    return wm_gpu_view_get(view, field).state == WM_READING_OK;
}

static bool has_other(const struct line *line)
{
    return line->form == OF_MOST || line->form == OF_LANES || line->form == OF_MEMORY;
}

static void print_share(const struct wm_gpu_view *view, const struct line *line)
{
    struct wm_gpu_value part = wm_gpu_view_get(view, line->field),
                        whole = wm_gpu_view_get(view, line->other);

    wm_view_right(view->out, wm_words_field(view, line->field, false).text, MEMORY_WIDTH);
    if (part.state != WM_READING_OK)
        return;
    fputs(" MiB", view->out);
    if (whole.state == WM_READING_OK && whole.number > 0) {
        fputs(" (", view->out);
        wm_view_right(view->out,
                      wm_words_number(part.number / whole.number * 100, 2, "").text, 6);
        fputs("%)", view->out);
    }
}

/* One place for each full 4 %. */
static void print_bar(const struct wm_gpu_view *view, const struct line *line)
{
    static const char full[] = "|||||||||||||||||||||||||";
    struct wm_gpu_value value = wm_gpu_view_get(view, line->field);

    if (value.state == WM_READING_OK) {
        /* 0.28 is a little less than 28 %, and shall have its seven places. */
        double places = floor(value.number * BAR_WIDTH + 1e-9);
        int length = places > BAR_WIDTH ? BAR_WIDTH : (int)fmax(places, 0);
        fprintf(view->out, "[%-*.*s] ", BAR_WIDTH, length, full);
    }
    fputs(wm_words_field(view, line->field, true).text, view->out);
}

static void print_of_most(const struct wm_gpu_view *view, const struct line *line)
{
    const char *suffix = line->form == OF_LANES ? "x" : "";
    bool known = has(view, line->field), most = has(view, line->other);

    fprintf(view->out, "%s%s", wm_words_field(view, line->field, true).text,
            known ? suffix : "");
    if (known || most) /* the unit once, but once at least */
        fprintf(view->out, " (Max: %s%s)", wm_words_field(view, line->other, !known).text,
                most ? suffix : "");
}

static void print_line(const struct wm_gpu_view *view, const struct block *block,
                       const struct line *line)
{
    fputs(block->title ? "    " : "", view->out);
    wm_view_left(view->out, wm_gpu_field_info(line->field)->label, block->label_width);
    fputs(": ", view->out);
    switch (line->form) {
    case PLAIN:
        fputs(wm_words_field(view, line->field, true).text, view->out);
        break;
    case SHARE:
        print_share(view, line);
        break;
    case BAR:
        print_bar(view, line);
        break;
    case OF_MOST:
    case OF_LANES:
        print_of_most(view, line);
        break;
    case OF_MEMORY:
        fputs(wm_words_field(view, line->field, true).text, view->out);
        if (has(view, line->field) || has(view, line->other))
            fprintf(view->out, " of %s", wm_words_field(view, line->other, true).text);
        break;
    }
    fputc('\n', view->out);
}

/* A line for each, whatever its length. */
/* clang-format off */
static const struct line general_lines[] = {
    { WM_GPU_INDEX, PLAIN, 0 },
    { WM_GPU_NAME, PLAIN, 0 },
    { WM_GPU_SERIAL, PLAIN, 0 },
    { WM_GPU_UUID, PLAIN, 0 },
    { WM_GPU_BIOS, PLAIN, 0 },
};
static const struct line memory_lines[] = {
    { WM_GPU_MEMORY_TOTAL, SHARE, WM_GPU_MEMORY_TOTAL },
    { WM_GPU_MEMORY_USED, SHARE, WM_GPU_MEMORY_TOTAL },
    { WM_GPU_MEMORY_FREE, SHARE, WM_GPU_MEMORY_TOTAL },
};
static const struct line utilization_lines[] = {
    { WM_GPU_PERFORMANCE, PLAIN, 0 },
    { WM_GPU_TEMPERATURE, PLAIN, 0 },
    { WM_GPU_UTILIZATION_GPU, BAR, 0 },
    { WM_GPU_UTILIZATION_MEMORY, BAR, 0 },
    { WM_GPU_FAN, BAR, 0 },
};
static const struct line pci_lines[] = {
    { WM_GPU_PCI_BUS, PLAIN, 0 },
    { WM_GPU_PCI_BUS_ID, PLAIN, 0 },
    { WM_GPU_PCI_DEVICE, PLAIN, 0 },
    { WM_GPU_PCI_DEVICE_ID, PLAIN, 0 },
    { WM_GPU_PCI_SUB_SYSTEM_ID, PLAIN, 0 },
    { WM_GPU_PCI_LINK_GEN, OF_MOST, WM_GPU_PCI_LINK_GEN_MAX },
    { WM_GPU_PCI_LINK_WIDTH, OF_LANES, WM_GPU_PCI_LINK_WIDTH_MAX },
};
static const struct line clock_lines[] = {
    { WM_GPU_CLOCK_GRAPHICS, OF_MOST, WM_GPU_CLOCK_GRAPHICS_MAX },
    { WM_GPU_CLOCK_SM, OF_MOST, WM_GPU_CLOCK_SM_MAX },
    { WM_GPU_CLOCK_MEMORY, OF_MOST, WM_GPU_CLOCK_MEMORY_MAX },
};
static const struct line power_lines[] = {
    { WM_GPU_POWER_MANAGEMENT, PLAIN, 0 },
    { WM_GPU_POWER_DRAW, PLAIN, 0 },
    { WM_GPU_POWER_LIMIT, PLAIN, 0 },
    { WM_GPU_POWER_LIMIT_MIN, PLAIN, 0 },
    { WM_GPU_POWER_LIMIT_MAX, PLAIN, 0 },
};
static const struct line device_lines[] = {
    { WM_GPU_LABEL, PLAIN, 0 },
    { WM_GPU_VENDOR, PLAIN, 0 },
    { WM_GPU_ARCHITECTURE, PLAIN, 0 },
    { WM_GPU_COMPUTE_CAPABILITY, PLAIN, 0 },
    { WM_GPU_CORES, PLAIN, 0 },
    { WM_GPU_MULTIPROCESSORS, PLAIN, 0 },
    { WM_GPU_COMPUTE_MODE, PLAIN, 0 },
    { WM_GPU_PERSISTENCE, PLAIN, 0 },
    { WM_GPU_MIG_MODE, PLAIN, 0 },
    { WM_GPU_MIG_MODE_PENDING, PLAIN, 0 },
    { WM_GPU_DISPLAY_ACTIVE, PLAIN, 0 },
    { WM_GPU_SIMULATED, PLAIN, 0 },
};
static const struct line driver_lines[] = {
    { WM_GPU_SOURCE, PLAIN, 0 },
    { WM_GPU_KERNEL_DRIVER, PLAIN, 0 },
    { WM_GPU_DRIVER_VERSION, PLAIN, 0 },
    { WM_GPU_NVML_VERSION, PLAIN, 0 },
    { WM_GPU_CUDA_VERSION, PLAIN, 0 },
};
static const struct line more_memory_lines[] = {
    { WM_GPU_MEMORY_RESERVED, PLAIN, 0 },
    { WM_GPU_MEMORY_BAR1_USED, OF_MEMORY, WM_GPU_MEMORY_BAR1_TOTAL },
    { WM_GPU_MEMORY_SHARED_USED, OF_MEMORY, WM_GPU_MEMORY_SHARED_TOTAL },
};
static const struct line cooling_lines[] = {
    { WM_GPU_TEMPERATURE_MEMORY, PLAIN, 0 },
    { WM_GPU_TEMPERATURE_HOTSPOT, PLAIN, 0 },
    { WM_GPU_TEMPERATURE_SLOWDOWN, PLAIN, 0 },
    { WM_GPU_TEMPERATURE_SHUTDOWN, PLAIN, 0 },
    { WM_GPU_FAN_SPEED, PLAIN, 0 },
};
static const struct line video_lines[] = {
    { WM_GPU_UTILIZATION_ENCODER, BAR, 0 },
    { WM_GPU_UTILIZATION_DECODER, BAR, 0 },
};
static const struct line more_clock_lines[] = {
    { WM_GPU_CLOCK_VIDEO, OF_MOST, WM_GPU_CLOCK_VIDEO_MAX },
    { WM_GPU_THROTTLE, PLAIN, 0 },
};
static const struct line more_power_lines[] = {
    { WM_GPU_POWER_INSTANT, PLAIN, 0 },
    { WM_GPU_POWER_AVERAGE, PLAIN, 0 },
    { WM_GPU_POWER_SCOPE, PLAIN, 0 },
    { WM_GPU_POWER_LIMIT_DEFAULT, PLAIN, 0 },
    { WM_GPU_POWER_LIMIT_ENFORCED, PLAIN, 0 },
    { WM_GPU_ENERGY, PLAIN, 0 },
};
static const struct line more_pci_lines[] = {
    { WM_GPU_PCI_SENT, PLAIN, 0 },
    { WM_GPU_PCI_RECEIVED, PLAIN, 0 },
    { WM_GPU_PCI_REPLAYS, PLAIN, 0 },
};
static const struct line ecc_lines[] = {
    { WM_GPU_ECC_MODE, PLAIN, 0 },
    { WM_GPU_ECC_MODE_PENDING, PLAIN, 0 },
    { WM_GPU_ECC_CORRECTED, PLAIN, 0 },
    { WM_GPU_ECC_UNCORRECTED, PLAIN, 0 },
    { WM_GPU_ECC_CORRECTED_LIFETIME, PLAIN, 0 },
    { WM_GPU_ECC_UNCORRECTED_LIFETIME, PLAIN, 0 },
};
static const struct line nvlink_lines[] = {
    { WM_GPU_NVLINK_LINKS, PLAIN, 0 },
    { WM_GPU_NVLINK_SENT, PLAIN, 0 },
    { WM_GPU_NVLINK_RECEIVED, PLAIN, 0 },
};

#define LINES(table) table, WM_COUNT(table)
static const struct block igpu_blocks[] = {
    { NULL, 13, false, LINES(general_lines) },
    { "GPU MEMORY", 6, false, LINES(memory_lines) },
    { "GPU UTILIZATION", 12, false, LINES(utilization_lines) },
    { "PCI INFO", 14, false, LINES(pci_lines) },
    { "GPU CLOCK", 9, false, LINES(clock_lines) },
    { "POWER INFO", 11, false, LINES(power_lines) },
};
static const struct block our_blocks[] = {
    { "DEVICE", 14, true, LINES(device_lines) },
    { "DRIVER", 14, true, LINES(driver_lines) },
    { "MORE MEMORY", 12, true, LINES(more_memory_lines) },
    { "COOLING", 13, true, LINES(cooling_lines) },
    { "VIDEO", 8, true, LINES(video_lines) },
    { "MORE CLOCKS", 9, true, LINES(more_clock_lines) },
    { "MORE POWER", 15, true, LINES(more_power_lines) },
    { "MORE PCI", 9, true, LINES(more_pci_lines) },
    { "ECC", 18, true, LINES(ecc_lines) },
    { "NVLINK", 9, true, LINES(nvlink_lines) },
};
/* clang-format on */

static bool knows_nothing(const struct wm_gpu_view *view, const struct block *block)
{
    for (size_t i = 0; i < block->count; i++) {
        const struct line *line = &block->lines[i];
        if (has(view, line->field) || (has_other(line) && has(view, line->other)))
            return false;
    }
    return true;
}

static void print_block(const struct wm_gpu_view *view, const struct block *block)
{
    if (block->ours && knows_nothing(view, block)) {
        fprintf(view->out, "%s: n/a\n", block->title);
        return;
    }
    if (block->title)
        fprintf(view->out, "%s:\n", block->title);
    for (size_t i = 0; i < block->count; i++)
        print_line(view, block, &block->lines[i]);
}

/* Above the driver's number, where the GPUs are those that a program sees. */
static void print_seen_as(const struct wm_gpu_view *view)
{
    struct wm_gpu_value value;

    wm_gpu_seen_as(view->gpus, view->gpu, &value);
    if (value.state == WM_READING_OK)
        fprintf(view->out, "SEEN AS      : %.0f\n", value.number);
    else if (value.state != WM_READING_NONE)
        fprintf(view->out, "SEEN AS      : n/a (%s)\n", value.why);
}

static void print_gpu(const struct wm_gpu_view *view)
{
    if (wm_gpu_view_simulated(view))
        fputs("SIMULATED: the driver says that this GPU is not real\n", view->out);
    print_seen_as(view);
    for (size_t i = 0; i < WM_COUNT(igpu_blocks); i++) {
        print_block(view, &igpu_blocks[i]);
        fputc('\n', view->out);
    }
    wm_gpu_list_print_processes(view);
    for (size_t i = 0; i < WM_COUNT(our_blocks); i++) {
        fputc('\n', view->out);
        print_block(view, &our_blocks[i]);
    }
    wm_gpu_list_print_migs(view);
    wm_gpu_view_print_why(view);
}

void wm_view_gpu_text(const struct wm_gpus *gpus, FILE *out)
{
    size_t count = wm_gpus_count(gpus);

    if (count == 0) {
        wm_gpu_view_print_none(gpus, out);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct wm_gpu_view view = { .gpus = gpus, .gpu = i, .out = out };
        if (i > 0)
            fputs("\n\n", out);
        print_gpu(&view);
    }
    wm_gpu_view_print_broken(gpus, out);
}
