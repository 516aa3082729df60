/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_info.c - `wattmeter info`: GPU properties and live values. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"
#include "output.h"
#include "wattmeter/gpu.h"

#define NS_PER_S INT64_C(1000000000)

/* Between two attempts to find the GPUs anew: it may start a driver each time. */
#define RETRY_NS (10 * NS_PER_S)

struct info_args {
    struct output_args output;
    bool brief, visible;
    int64_t watch_ns;
    struct cmd_list gpus;
};

#define INFO(member) offsetof(struct info_args, member)

static const struct cmd_option info_options[] = {
    { .letter = 'b', .name = "brief", .slot = INFO(brief), .help = "one line per GPU" },
    { .name = "visible",
      .slot = INFO(visible),
      .help = "only the GPUs that CUDA_VISIBLE_DEVICES and similar variables leave" },
    { .letter = 'w',
      .name = "watch",
      .type = CMD_DURATION,
      .slot = INFO(watch_ns),
      .placeholder = "TIME",
      .help = "repeat every TIME, 100ms to 1d, until Ctrl-C",
      .min = "100ms",
      .max = "1d" },
    { 0 },
};
static const struct cmd_option *const options[] = { info_options, output_options, NULL };

/* What is under way. */
struct info {
    const struct info_args *args;
    const struct cmd_streams *io;
    const volatile sig_atomic_t *stop; /* not 0: a signal says that it is enough */
    char *words;                       /* which GPUs, as gpu.h wants them; NULL is all */
    struct wm_gpus *gpus;
    int64_t retry_ns; /* before it they are not looked for anew */
    FILE *out;
    bool screen;     /* redrawn in place */
    bool has_failed; /* while watching */
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* False when a signal says that it is enough. */
static bool wait_until(int64_t deadline_ns, const volatile sig_atomic_t *stop)
{
    sigset_t block, before;

    /* A signal between the look at `stop` and the wait would be missed. */
    sigfillset(&block);
    sigprocmask(SIG_BLOCK, &block, &before);
    for (int64_t left; !*stop && (left = deadline_ns - now_ns()) > 0;) {
        const struct timespec time = { .tv_sec = left / NS_PER_S,
                                       .tv_nsec = left % NS_PER_S };
        ppoll(NULL, 0, &time, &before);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return !*stop;
}

/* The operands as one list: "0 1,3" is "0,1,3". The caller's; NULL also without
 * operands. */
static char *join(const struct cmd_list *list)
{
    size_t size = 1;
    char *words, *end;

    for (size_t i = 0; i < list->count; i++)
        size += strlen(list->words[i]) + 1;
    if (list->count == 0 || !(words = malloc(size)))
        return NULL;
    end = words;
    for (size_t i = 0; i < list->count; i++)
        end += snprintf(end, size - (size_t)(end - words), "%s%s", i ? "," : "",
                        list->words[i]);
    return words;
}

static enum wm_format format_of(const struct info_args *args)
{
    if (args->output.json)
        return args->watch_ns ? WM_FORMAT_JSON_LINE : WM_FORMAT_JSON;
    return args->brief ? WM_FORMAT_BRIEF : WM_FORMAT_TEXT;
}

/* The throughput of PCIe takes the driver long, so it is left out where it is not
 * shown or would be most of what the GPU is asked. */
static unsigned groups_of(const struct info_args *args)
{
    bool brief = args->brief && !args->output.json;
    bool often = args->watch_ns && args->watch_ns < NS_PER_S;

    return brief || often ? WM_GPU_EVERYTHING & ~(unsigned)WM_GPU_THROUGHPUT
                          : WM_GPU_EVERYTHING;
}

static int open_gpus(struct info *info, struct wm_error *err)
{
    const struct wm_source_config config = { .gpus = info->words };
    struct wm_gpus *gpus;

    int status = wm_gpus_open(&config, &gpus, err);
    if (status < 0)
        return status;
    wm_gpus_close(info->gpus);
    info->gpus = gpus;
    if (groups_of(info->args) & WM_GPU_THROUGHPUT) /* the one that open leaves out */
        status = wm_gpus_refresh(gpus, WM_GPU_THROUGHPUT, err);
    return status < 0 ? status : WM_OK;
}

/* Asks again. GPUs that came are found by opening anew; where that fails, since a
 * chosen one has gone, those there were say so themselves. */
static int refresh(struct info *info, struct wm_error *err)
{
    int status = wm_gpus_refresh(info->gpus, groups_of(info->args), err);

    if (status == 1 && now_ns() >= info->retry_ns && open_gpus(info, err) < 0)
        info->retry_ns = now_ns() + RETRY_NS;
    return status < 0 ? status : WM_OK;
}

/* What was not asked for and should be known all the same. */
static void tell_remarks(const struct info *info)
{
    size_t count, *chosen = calloc(wm_gpus_present(info->gpus) + 1, sizeof(*chosen));
    const char *remark = NULL;

    if (chosen && info->args->visible &&
        wm_gpu_select(info->gpus, info->words, NULL, chosen, &count, &remark, NULL) ==
            WM_OK &&
        remark)
        fprintf(info->io->chat, "wattmeter info: note: %s\n", remark);
    free(chosen);
}

static void print_time(FILE *out)
{
    time_t now = time(NULL);
    struct tm parts;
    char text[40];

    if (gmtime_r(&now, &parts) &&
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts))
        fprintf(out, "%s\n", text);
}

/* In place: as many lines as fit, of which none is wrapped, in one write, so that
 * nothing flickers. */
static int print_screen(struct info *info, struct wm_error *err)
{
    struct winsize window;
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);

    if (!memory)
        return output_fail(err, WM_ENOMEM, "out of memory");
    print_time(memory);
    int status = wm_gpus_print(info->gpus, format_of(info->args), memory, err);
    if (fclose(memory) != 0 && status == WM_OK)
        status = output_fail(err, WM_ENOMEM, "out of memory");
    if (status == WM_OK) {
        bool known =
            ioctl(fileno(info->out), TIOCGWINSZ, &window) == 0 && window.ws_row > 1;
        char *end = text;
        for (int rows = known ? window.ws_row - 1 : 24; rows > 0 && *end; rows--) {
            end += strcspn(end, "\n");
            end += *end == '\n';
        }
        fprintf(info->out, "\033[?7l\033[H\033[J%.*s\033[?7h", (int)(end - text), text);
        fflush(info->out);
    }
    free(text);
    return status;
}

static int print(struct info *info, bool first, struct wm_error *err)
{
    const struct info_args *args = info->args;

    if (info->screen)
        return print_screen(info, err);
    if (args->watch_ns && !args->output.json) {
        fputs(first ? "" : "\n", info->out);
        print_time(info->out);
    }
    return wm_gpus_print(info->gpus, format_of(args), info->out, err);
}

static int watch(struct info *info, struct wm_error *err)
{
    int64_t every_ns = info->args->watch_ns, next_ns = now_ns();
    int status = print(info, true, err);

    while (status == WM_OK && !ferror(info->out)) {
        int64_t late_ns = now_ns() - next_ns;
        next_ns += (late_ns / every_ns + 1) * every_ns; /* those missed are left out */
        if (!wait_until(next_ns, info->stop))
            return WM_OK;
        status = refresh(info, err);
        if (status >= 0)
            status = print(info, false, err);
    }
    return status;
}

/* What has been seen by then stays where watching fails. */
static int show(const void *found, FILE *out, struct wm_error *err)
{
    struct info *info = *(struct info *const *)found;
    const struct info_args *args = info->args;

    info->out = out;
    info->screen = args->watch_ns && !args->output.json && isatty(fileno(out));
    if (!args->watch_ns)
        return print(info, true, err);
    info->has_failed = watch(info, err) < 0;
    if (info->has_failed)
        output_failure("info", err, info->io);
    return WM_OK;
}

static int run(struct info *info)
{
    struct wm_error err;

    if (open_gpus(info, &err) < 0)
        return output_failure("info", &err, info->io);
    tell_remarks(info);
    int code = output_print("info", &info->args->output, show, &info, info->io);
    return info->has_failed ? CMD_FAILED : code;
}

static int run_info(const void *opaque, const struct cmd_streams *io)
{
    const struct info_args *args = opaque;
    struct info info = { .args = args, .io = io };

    if (args->visible && args->gpus.count > 0)
        return output_misused("info", io, "--visible and '%.60s' exclude each other",
                              args->gpus.words[0]);
    int code = output_check("info", &args->output, io);
    if (code != CMD_DONE)
        return code;
    if (args->watch_ns)
        info.stop = interrupt_catch();

    info.words = args->visible ? strdup("visible") : join(&args->gpus);
    if (!info.words && (args->visible || args->gpus.count > 0)) {
        fputs("wattmeter info: out of memory\n", io->chat);
        return CMD_FAILED;
    }
    code = run(&info);
    wm_gpus_close(info.gpus);
    free(info.words);
    return args->watch_ns ? interrupt_end(code) : code;
}

const struct cmd cmd_info = {
    .name = "info",
    .summary = "Show GPU properties and live values.",
    .details = "Shows all values that the drivers report: memory, use, temperatures, PCI, "
               "clocks, power, processes and more. Missing values are n/a, with the "
               "reasons at the end of each GPU. GPU is an index, a UUID or its beginning, "
               "a label or a PCI address; without one all GPUs are shown.\n"
               "\n"
               "Without a GPU it prints where it searched, with exit status 0. --watch "
               "redraws a terminal in place, as far as the values fit (try --brief). "
               "Elsewhere it prints one report after the other, each with its time; with "
               "--json each is one object per line. Ctrl-C ends it with exit status 0.",
    .example = "wattmeter info --brief --watch 1s",
    .operands = "[GPU...]",
    .operands_slot = INFO(gpus),
    .operands_max = (size_t)-1,
    .options = options,
    .args_size = sizeof(struct info_args),
    .run = run_info,
};
