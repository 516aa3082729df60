/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plot.c - `wattmeter plot`: recordings as figures and films. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"
#include "module.h"
#include "output.h"
#include "wattmeter/plot.h"

struct plot_args {
    struct output_args output; /* but its style */
    const char *kind, *by, *format, *layout, *from, *to, *title, *size, *font, *style;
    struct cmd_list channels;
    struct cmd_count run;
    double dpi, fps, speed;
    int64_t window_ns;
    bool fits, without_regions, without_title, without_legend;
    struct cmd_list recordings;
};

enum { LOWEST_PRIORITY = 19 };

#define PLOT(member) offsetof(struct plot_args, member)

/* In the order of enum wm_plot_kind. */
#define KINDS "time energy regions caps repeats flame"
#define FORMATS "svg png pdf mp4 gif"
#define STYLES "light dark"
#define MEASURES "energy time"

static const struct cmd_option plot_options[] = {
    { .letter = 'o',
      .name = "output",
      .slot = PLOT(output.path),
      .placeholder = "FILE",
      .help = "the figure: .svg, .png or .pdf, -: standard output; or the film: .mp4 or "
              ".gif" },
    { .name = "overwrite",
      .slot = PLOT(output.overwrite),
      .help = "replace a file that exists" },
    { .name = "format",
      .slot = PLOT(format),
      .placeholder = "FORMAT",
      .help = "svg, png, pdf, mp4 or gif (by the suffix of FILE)",
      .words = FORMATS },
    { .name = "kind",
      .slot = PLOT(kind),
      .placeholder = "KIND",
      .help = "time, energy, regions, flame or repeats of recordings (time), or caps of "
              "tables of `cap profile`",
      .words = KINDS },
    { .name = "by",
      .slot = PLOT(by),
      .placeholder = "MEASURE",
      .help = "energy or time of --kind regions or flame (energy if all devices have it)",
      .words = MEASURES },
    { .name = "channels",
      .type = CMD_LIST,
      .slot = PLOT(channels),
      .placeholder = "NAMES",
      .help = "panels, devices, metrics of the recording or the program, or columns: "
              "power,gpu0" },
    { .name = "layout",
      .slot = PLOT(layout),
      .placeholder = "PANELS",
      .help = "power,memory/clocks: below each other with ',', beside with '/', two axes "
              "with '+'" },
    { .name = "from",
      .slot = PLOT(from),
      .placeholder = "TIME",
      .help = "start at TIME: seconds after the start, or 2026-11-21T08:48:21Z" },
    { .name = "to", .slot = PLOT(to), .placeholder = "TIME", .help = "end at TIME" },
    OUTPUT_RUN_OPTION(PLOT(run)),
    { .name = "fit",
      .slot = PLOT(fits),
      .help = "fit the axes of power, use and memory to their values, not from 0" },
    { .name = "no-regions",
      .slot = PLOT(without_regions),
      .help = "draw no bands of regions" },
    { .name = "title",
      .slot = PLOT(title),
      .placeholder = "TEXT",
      .help = "the title (the command that was measured)" },
    { .name = "no-title", .slot = PLOT(without_title), .help = "draw no title" },
    { .name = "no-legend", .slot = PLOT(without_legend), .help = "draw no legend" },
    { .name = "style",
      .slot = PLOT(style),
      .placeholder = "STYLE",
      .help = "light, or dark: light text and lines on a dark ground (light)",
      .words = STYLES },
    { .name = "font",
      .slot = PLOT(font),
      .placeholder = "NAME,PT",
      .help = "the font and its size in points (DejaVu Sans,9; in millimetres 7)" },
    { .name = "size",
      .slot = PLOT(size),
      .placeholder = "SIZE",
      .help = "column or page of a journal, 89x60mm, or pixels, of a figure at 96 dpi "
              "(960x720)" },
    { .name = "dpi",
      .type = CMD_NUMBER,
      .slot = PLOT(dpi),
      .placeholder = "DPI",
      .help = "resolution of a PNG (96; in millimetres 300) or a film (150)",
      .min = "10",
      .max = "1200" },
    { .name = "fps",
      .type = CMD_NUMBER,
      .slot = PLOT(fps),
      .placeholder = "N",
      .help = "pictures per second of a film (30)",
      .min = "1",
      .max = "240" },
    { .name = "speed",
      .type = CMD_NUMBER,
      .slot = PLOT(speed),
      .placeholder = "N",
      .help = "seconds of RECORDING per second of a film (1)",
      .min = "0.001",
      .max = "1000000" },
    { .name = "window",
      .type = CMD_DURATION,
      .slot = PLOT(window_ns),
      .placeholder = "TIME",
      .help = "how much of RECORDING a film shows at once (20s, times --speed)",
      .min = "100ms",
      .max = "8760h" },
    { 0 },
};
static const struct cmd_option *const options[] = { plot_options, NULL };

static int find_style(const struct plot_args *args, struct wm_plot_request *request,
                      const struct cmd_streams *io)
{
    int style = args->style ? output_find_word(STYLES, args->style) : 0;

    if (style < 0)
        return output_misused("plot", io, "--style: '%s' is none of " STYLES,
                              cmd_shown(args->style));
    request->is_dark = style == 1;
    return CMD_DONE;
}

static int find_kind(const struct plot_args *args, struct wm_plot_request *request,
                     const struct cmd_streams *io)
{
    int kind = args->kind ? output_find_word(KINDS, args->kind) : WM_PLOT_TIME;

    if (kind < 0)
        return output_misused("plot", io, "--kind: '%s' is none of " KINDS,
                              cmd_shown(args->kind));
    request->kind = (enum wm_plot_kind)kind;
    int measure = args->by ? output_find_word(MEASURES, args->by) : 0;
    if (measure < 0)
        return output_misused("plot", io, "--by: '%s' is none of " MEASURES,
                              cmd_shown(args->by));
    request->by_time = measure == 1;
    request->by_energy = args->by && measure == 0;
    return CMD_DONE;
}

static bool is_film(const struct wm_plot_request *request)
{
    return request->format == WM_FORMAT_MP4 || request->format == WM_FORMAT_GIF;
}

static int check_film(const struct plot_args *args, const struct wm_plot_request *request,
                      const struct cmd_streams *io)
{
    if (!is_film(request)) {
        const char *option = args->fps > 0         ? "fps"
                             : args->speed > 0     ? "speed"
                             : args->window_ns > 0 ? "window"
                                                   : NULL;
        return option ? output_misused("plot", io, "--%s: is for films", option) : CMD_DONE;
    }
    if (request->kind != WM_PLOT_TIME)
        return output_misused("plot", io, "--kind %s: is no film", args->kind);
    if (strcmp(args->output.path, "-") == 0)
        return output_misused("plot", io, "--output: a film needs a file");
    return CMD_DONE;
}

static int find_format(const struct plot_args *args, struct wm_plot_request *request,
                       const struct cmd_streams *io)
{
    const char *dot = strrchr(args->output.path, '.');
    const char *word = args->format ? args->format : dot ? dot + 1 : "";
    bool is_known = output_find_word(FORMATS, word) >= 0;

    if (!is_known && args->format)
        return output_misused("plot", io, "--format: '%s' is none of " FORMATS,
                              cmd_shown(args->format));
    if (!is_known)
        return output_misused("plot", io,
                              "--output: the suffix of '%s' is none of " FORMATS
                              "; --format says which it is",
                              cmd_shown(args->output.path));
    request->format = (enum wm_format)wm_format_find(word);
    if (args->dpi > 0 && request->format != WM_FORMAT_PNG && !is_film(request))
        return output_misused("plot", io, "--dpi: is for png and films");
    return check_film(args, request, io);
}

static int check_output(const struct plot_args *args, const struct cmd_streams *io)
{
    int code = CMD_DONE;

    if (!args->output.path)
        return output_misused("plot", io, "--output FILE is missing");
    for (size_t i = 0; i < args->recordings.count && code == CMD_DONE; i++)
        code = output_check_input("plot", &args->output,
                                  output_session_path(args->recordings.words[i]), io);
    return code == CMD_DONE ? output_check("plot", &args->output, io) : code;
}

/* The parts of a list with commas, without the blanks around them, in the words
 * themselves. */
static const char **split(const struct cmd_list *list, size_t *ret_count)
{
    size_t room = 1, count = 0;

    for (size_t i = 0; i < list->count; i++) {
        room++;
        for (const char *at = list->words[i]; *at; at++)
            room += *at == ',';
    }
    const char **parts = calloc(room, sizeof(*parts));
    for (size_t i = 0; i < list->count && parts; i++) {
        char *rest = list->words[i], *part;
        while ((part = strsep(&rest, ",")) != NULL) {
            part += strspn(part, " ");
            for (size_t end = strlen(part); end > 0 && part[end - 1] == ' '; end--)
                part[end - 1] = '\0';
            if (part[0])
                parts[count++] = part;
        }
    }
    *ret_count = count;
    return parts;
}

/* NAME=RECORDING, or the recording alone. */
static struct wm_plot_input *find_inputs(const struct plot_args *args)
{
    const struct cmd_list *words = &args->recordings;
    struct wm_plot_input *inputs = calloc(words->count, sizeof(*inputs));

    for (size_t i = 0; i < words->count && inputs; i++) {
        char *word = words->words[i];
        const char *path = output_session_path(word);
        inputs[i] = (struct wm_plot_input) { .path = path, .run = output_run(&args->run) };
        if (path > word) {
            word[path - word - 1] = '\0';
            inputs[i].name = word;
        }
    }
    return inputs;
}

static void note_runs(const struct plot_args *args, const struct wm_plot_input *inputs,
                      const struct cmd_streams *io)
{
    for (size_t i = 0; i < args->recordings.count; i++)
        output_note_run("plot", inputs[i].path, &args->run, io);
}

/* A figure that was drawn. */
struct drawn {
    char *bytes;
    size_t size;
};

static int print_drawn(const void *found, FILE *out, struct wm_error *err)
{
    const struct drawn *drawn = found;

    (void)err;
    fwrite(drawn->bytes, 1, drawn->size, out);
    return WM_OK; /* what the file did not take is seen when it is closed */
}

/* In memory, so that no file is touched unless all went well. */
static int draw(const struct plot_args *args, const struct wm_plot_module *module,
                const struct wm_plot_request *request, const struct cmd_streams *io)
{
    struct drawn drawn = { 0 };
    struct wm_error err = { .status = WM_ENOMEM, .text = "out of memory" };
    int status = WM_ENOMEM;

    FILE *memory = open_memstream(&drawn.bytes, &drawn.size);
    if (memory)
        status = module->write(request, memory, &err);
    if (memory && fclose(memory) != 0 && status >= 0)
        status = WM_ENOMEM;
    int code = status < 0 ? output_failure("plot", &err, io)
                          : output_print("plot", &args->output, print_drawn, &drawn, io);
    free(drawn.bytes);
    return code;
}

/* The progress of a film, which a terminal shows once it takes longer than a second. */
struct progress {
    FILE *err;
    double start, last; /* seconds; 0: nothing was shown yet */
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int report_progress(void *context, size_t done, size_t total)
{
    struct progress *progress = context;
    double time = now(), took = time - progress->start;

    if (took < 1 || (time - progress->last < 0.2 && done < total) ||
        !isatty(fileno(progress->err)))
        return 0;
    progress->last = time;
    fprintf(progress->err, "\rwattmeter plot: picture %zu of %zu, %.0f a second \x1b[K",
            done, total, (double)done / took);
    fflush(progress->err);
    return 0;
}

static int shoot(const struct plot_args *args, const struct wm_plot_module *module,
                 const struct wm_plot_request *request, const struct cmd_streams *io)
{
    struct progress progress = { .err = io->chat, .start = now() };
    const struct wm_plot_film film = {
        .path = args->output.path,
        .overwrite = args->output.overwrite,
        .fps = args->fps,
        .speed = args->speed,
        .window = (double)args->window_ns / 1e9,
        .progress = report_progress,
        .context = &progress,
    };
    struct wm_error err;

    /* The module's threads and ffmpeg set it; this thread only reads and passes on. */
    setpriority(PRIO_PROCESS, 0, LOWEST_PRIORITY);
    int status = module->film(request, &film, &err);
    if (progress.last > 0)
        fprintf(io->chat, "\r\x1b[K");
    return status < 0 ? output_failure("plot", &err, io) : CMD_DONE;
}

static const struct module_need need = {
    .command = "plot",
    .library = "wattmeter-plot.so",
    .symbol = "wm_plot_module",
    .what = "cairo and pango",
    .packages = "libcairo2 libpangocairo-1.0-0",
};

static int run_plot(const void *opaque, const struct cmd_streams *io)
{
    const struct plot_args *args = opaque;
    struct wm_plot_request request = {
        .input_count = args->recordings.count,
        .layout = args->layout,
        .from = args->from,
        .to = args->to,
        .title = args->without_title ? "" : args->title,
        .fits = args->fits,
        .without_regions = args->without_regions,
        .without_legend = args->without_legend,
        .size = args->size,
        .font = args->font,
        .dpi = args->dpi,
    };
    const struct wm_plot_module *module = NULL;

    int code = check_output(args, io);
    if (code == CMD_DONE)
        code = find_kind(args, &request, io);
    if (code == CMD_DONE)
        code = find_style(args, &request, io);
    if (code == CMD_DONE)
        code = find_format(args, &request, io);
    if (code == CMD_DONE && !(module = module_load(&need, io)))
        code = CMD_FAILED;
    if (code != CMD_DONE)
        return code;

    char *names = NULL;
    size_t names_size = 0;
    struct wm_plot_input *inputs = find_inputs(args);
    const char **channels = split(&args->channels, &request.channel_count);
    request.inputs = inputs;
    request.channels = channels;
    request.names = open_memstream(&names, &names_size);
    request.stop = interrupt_catch();
    if (inputs && channels && request.names) {
        if (request.kind != WM_PLOT_REPEATS && request.kind != WM_PLOT_CAPS)
            note_runs(args, inputs, io);
        code = (is_film(&request) ? shoot : draw)(args, module, &request, io);
    } else {
        fprintf(io->chat, "wattmeter plot: out of memory\n");
        code = CMD_FAILED;
    }
    if (request.names && fclose(request.names) == 0)
        fputs(names, io->chat);
    free(names);
    free(inputs);
    free(channels);
    return interrupt_end(code);
}

const struct cmd cmd_plot = {
    .name = "plot",
    .summary = "Draw recordings: figures and films.",
    .details = "A figure has panels over one time axis: power, utilisation, memory, "
               "temperature and clocks, if RECORDING has them. Each device has one colour, "
               "and bands show the outermost regions of the program. A change that lasted "
               "for one sample is visible at every width. Several recordings are drawn "
               "over each other, each from its start; NAME=RECORDING names one.\n"
               "\n"
               "--kind energy shows energy over time: a point for each recording, and "
               "arrows from each to the next. --kind regions has a bar for each region: "
               "its energy without the regions inside, or its time if the energy of a "
               "device is not known. "
               "--kind flame has regions above the regions around them, as wide as their "
               "energy or time; in a browser the SVG shows figures under the mouse. --kind "
               "repeats needs recordings by `run --repeat` or with several runs. It has a "
               "panel for each metric, with a box for each command and a point for each "
               "run.\n"
               "\n"
               "A film follows the newest sample: it shows the last 20 seconds, and its "
               "axes move along. ffmpeg makes the film from the pictures.\n"
               "\n"
               "cairo and pango are needed (Debian's libcairo2 and libpangocairo-1.0-0), "
               "and ffmpeg for a film.",
    .example = "wattmeter plot run.sqlite -o run.svg",
    .operands = "[NAME=]RECORDING...",
    .operands_slot = PLOT(recordings),
    .operands_min = 1,
    .operands_max = 64,
    .options = options,
    .args_size = sizeof(struct plot_args),
    .run = run_plot,
};
