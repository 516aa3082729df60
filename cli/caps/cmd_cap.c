/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_cap.c - `wattmeter cap`: power caps, shown, set, and put back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "caps/cap_search.h"
#include "caps/caps.h"
#include "output.h"
#include "wattmeter/cap.h"

struct cap_args {
    struct cap_search_args search;
    struct cmd_list words;
};

static const struct cmd_option *const options[] = { cap_search_options, output_options,
                                                    NULL };

static const struct cmd_verb verbs[] = {
    { "show", "", "show set, enforced and settable caps, and the power drawn", "json" },
    { "set", "CAPS", "set caps until the next change: 250W, 80%, 0=200W,1=default",
      "json" },
    { "reset", "[DEVICES]", "set the default: all GPUs, or 0,card1,cpu", "json" },
    { "restore", "[DEVICES]", "restore the values from before wattmeter's changes",
      "json" },
    { "profile", "-- COMMAND [ARG...]", "find the best cap for a command", NULL },
    { "fit", "TABLE", "find the best cap in a CSV table of cap_w, seconds and joules",
      "objective max-slowdown price hourly format output json overwrite" },
    { 0 },
};

/* What a verb works with. */
struct work {
    const struct cap_args *args;
    struct wm_caps *caps;
    FILE *out;                  /* of lines for people; with --json stderr */
    struct wm_cap_wish *wishes; /* room for all */
    size_t count;
    const struct cmd_streams *io;
};

/* The mean of what CPU packages draw takes two readings, this far apart. */
static const struct timespec between = { 0, 200 * 1000 * 1000 };

static int do_show(struct work *work, struct wm_error *err)
{
    nanosleep(&between, NULL);
    int status = wm_caps_refresh(work->caps, err);
    if (status == WM_OK && !work->args->search.output.json)
        status = wm_caps_print(work->caps, WM_FORMAT_TEXT, work->out, err);
    return status;
}

/* Reports the new value and the previous one. */
static void say_change(const struct work *work, size_t index, double wanted,
                       const char *before)
{
    struct wm_gpu_value asked = { .state = WM_READING_OK, .number = wanted };
    struct wm_cap_setting setting;
    char cap[CAPS_TEXT], enforced[CAPS_TEXT], drawn[CAPS_TEXT];

    wm_caps_get(work->caps, index, &setting);
    caps_text(setting.kind, &asked, cap);
    caps_text(setting.kind, &setting.enforced, enforced);
    caps_text(WM_CAP_GPU_POWER, &setting.drawn, drawn);
    if (setting.kind == WM_CAP_GPU_CLOCK) {
        fprintf(work->out, "%s: clocks up to %s\n", setting.device,
                isnan(wanted) ? "the highest" : cap);
        return;
    }
    fprintf(work->out, "%s: %s (was %s; drawn now: %s)\n", setting.device, cap, before,
            drawn);
    if (setting.enforced.state == WM_READING_OK && strcmp(cap, enforced) != 0)
        fprintf(work->out, "note: %s: %s was asked for, %s is enforced\n", setting.device,
                cap, enforced);
    if (setting.is_forgotten)
        fprintf(work->out,
                "note: %s: the driver forgets it when no program uses the GPU any more; "
                "nvidia-smi -pm 1 keeps it\n",
                setting.device);
}

static int do_set(struct work *work, struct wm_error *err)
{
    int status = wm_caps_parse(work->caps, work->args->words.words[1], work->wishes,
                               &work->count, err);

    for (size_t i = 0; i < work->count && status == WM_OK; i++) {
        struct wm_cap_setting before;
        char old[CAPS_TEXT];

        wm_caps_get(work->caps, work->wishes[i].index, &before);
        caps_text(before.kind, &before.value, old);
        status = wm_caps_set(work->caps, &work->wishes[i], err);
        if (status == WM_OK)
            say_change(work, work->wishes[i].index, work->wishes[i].value, old);
    }
    return status;
}

static const char *devices_of(const struct work *work)
{
    const struct cmd_list *words = &work->args->words;

    return words->count > 1 ? words->words[1] : NULL;
}

/* Whether `reset` means it: all GPUs' power that can be set, where none is named. */
static bool is_to_reset(const struct work *work, const struct wm_cap_setting *setting)
{
    if (setting->kind == WM_CAP_GPU_CLOCK)
        return false;
    return devices_of(work) ||
           (setting->kind == WM_CAP_GPU_POWER && setting->value.state == WM_READING_OK);
}

static int do_reset(struct work *work, struct wm_error *err)
{
    size_t said = 0;
    int status =
        wm_caps_select(work->caps, devices_of(work), work->wishes, &work->count, err);

    for (size_t i = 0; i < work->count && status == WM_OK; i++) {
        struct wm_cap_setting before;
        char old[CAPS_TEXT];

        wm_caps_get(work->caps, work->wishes[i].index, &before);
        if (!is_to_reset(work, &before))
            continue;
        caps_text(before.kind, &before.value, old);
        double otherwise = before.default_value.number;
        status = wm_caps_reset(work->caps, work->wishes[i].index, err);
        if (status == WM_OK)
            say_change(work, work->wishes[i].index, otherwise, old);
        said++;
    }
    if (said == 0 && status == WM_OK)
        fprintf(work->out, "nothing to reset\n");
    return status;
}

static const char *const outcomes[] = {
    [WM_CAP_NOTHING] = NULL,
    [WM_CAP_PUT_BACK] = "put back",
    [WM_CAP_BACK] = "was there again already",
    [WM_CAP_BY_ANOTHER] = "somebody else has set it since; it is left alone",
};

/* What is in the journal of devices that are not here. */
static int check_rest(struct wm_error *err)
{
    char text[160];

    if (wm_caps_left_behind(text, sizeof(text)) == 0)
        return WM_OK;
    return output_fail(err, WM_ENODEV, "still in the journal: %s: not here any more", text);
}

/* One that is held, or not here any more, does not keep the others from being restored. */
static int do_restore(struct work *work, struct wm_error *err)
{
    int result =
        wm_caps_select(work->caps, devices_of(work), work->wishes, &work->count, err);
    size_t said = 0;

    for (size_t i = 0; i < work->count; i++) {
        enum wm_cap_restored restored = WM_CAP_NOTHING;
        struct wm_cap_setting setting;
        struct wm_gpu_value now = { .state = WM_READING_OK };
        struct wm_error why;
        char text[CAPS_TEXT];

        int status = wm_caps_restore(work->caps, work->wishes[i].index, &restored,
                                     &now.number, &why);
        if (status < 0 && result == WM_OK) {
            *err = why;
            result = status;
        }
        if (status < 0 || !outcomes[restored])
            continue;
        wm_caps_get(work->caps, work->wishes[i].index, &setting);
        caps_text(setting.kind, &now, text);
        fprintf(work->out, "%s: %s: %s\n", setting.device,
                setting.kind == WM_CAP_GPU_CLOCK ? "no limit of clocks" : text,
                outcomes[restored]);
        said++;
    }
    if (result == WM_OK && !devices_of(work))
        result = check_rest(err);
    if (said == 0 && result == WM_OK)
        fprintf(work->out, "nothing to put back\n");
    return result;
}

/* In the order of the first of `verbs`. */
static const struct {
    size_t words_min, words_max; /* with the verb itself */
    int (*run)(struct work *work, struct wm_error *err);
} actions[] = {
    { 1, 1, do_show },
    { 2, 2, do_set },
    { 1, 2, do_reset },
    { 1, 2, do_restore },
};

enum { VERB_COUNT = sizeof(actions) / sizeof(actions[0]) };

static int run_verb(size_t verb, struct work *work, struct wm_error *err)
{
    int status = wm_caps_open(NULL, &work->caps, err);

    if (status < 0)
        return status;
    work->wishes = calloc(wm_caps_count(work->caps) + 1, sizeof(*work->wishes));
    status = work->wishes ? actions[verb].run(work, err)
                          : output_fail(err, WM_ENOMEM, "out of memory");
    if (status == WM_OK && work->args->search.output.json)
        status = wm_caps_print(work->caps, WM_FORMAT_JSON, work->io->out, err);
    free(work->wishes);
    wm_caps_close(work->caps);
    return status;
}

/* `profile` and `fit`. */
static int run_search(const struct cap_args *args, const struct cmd_streams *io)
{
    const struct cmd_list *words = &args->words;
    bool is_fit = strcmp(words->words[0], "fit") == 0;

    if (is_fit && words->count == 2)
        return cap_fit(&args->search, words->words[1], io);
    if (!is_fit && args->search.replay && words->count == 1)
        return cap_replay(&args->search, io);
    if (!is_fit && !args->search.replay && words->count > 1)
        return cap_profile(&args->search, words->words + 1, io);
    return output_misused("cap", io, "usage: wattmeter cap %s",
                          is_fit ? "fit TABLE"
                                 : "profile [OPTION...] -- COMMAND [ARG...], or --replay "
                                   "TABLE");
}

static int run_cap(const void *opaque, const struct cmd_streams *io)
{
    const struct cap_args *args = opaque;
    struct work work = { .args = args,
                         .io = io,
                         .out = args->search.output.json ? io->chat : io->out };
    const struct cmd_list *words = &args->words;
    struct wm_error err = { 0 };
    size_t verb = 0;

    if (strcmp(words->words[0], "profile") == 0 || strcmp(words->words[0], "fit") == 0)
        return run_search(args, io);
    while (verb < VERB_COUNT && strcmp(words->words[0], verbs[verb].name) != 0)
        verb++;
    if (verb == VERB_COUNT)
        return output_misused("cap", io,
                              "it can show, set, reset, restore, profile, fit, not %s",
                              cmd_shown(words->words[0]));
    if (words->count < actions[verb].words_min || words->count > actions[verb].words_max)
        return output_misused("cap", io, "usage: wattmeter cap %s%s%s", verbs[verb].name,
                              verbs[verb].operands[0] ? " " : "", verbs[verb].operands);
    int status = run_verb(verb, &work, &err);
    return status < 0 ? output_failure("cap", &err, io) : CMD_DONE;
}

const struct cmd cmd_cap = {
    .name = "cap",
    .summary = "Show and set power caps, and restore the previous ones.",
    .details = "CAPS is 250W (all GPUs), 80% or 0.8 (of the default), default, or one for "
               "each device: 0=200W,1=80%,cpu=120W. A GPU is named by its number, "
               "identity, label or PCI address; cpu is all CPU packages, cpu_package0 one. "
               "MHz sets the highest clock of a GPU: 0=1200MHz.\n"
               "\n"
               "wattmeter writes the previous value to a journal before it changes a cap, "
               "and restore sets it again. Use it after set, after a power failure, or if "
               "a session (run --cap) was killed together with its guardian. It leaves "
               "values alone that another program has set since. Each device has one "
               "writer at a time. A second writer is refused; the message names the "
               "holder.\n"
               "\n"
               "profile runs a command under a few caps in turn and shows which one is "
               "best by the objective. It measures GPU energy and time of a unit of work: "
               "a call of the region of --unit, or the whole command, run repeatedly. Its "
               "options stand before --. The previous caps are always restored. With "
               "--unit the command is ended (SIGTERM) when the result is certain enough. "
               "If no cap has an effect, profile stops after two measurements with a "
               "message. The report goes to standard error. With --json, --format csv or "
               "-o - it goes to standard output. fit answers from a table, with a model "
               "that also predicts other caps. profile --replay reads its measurements "
               "from a table.\n"
               "\n"
               "A cap of an NVIDIA GPU needs the capability CAP_SYS_ADMIN, the others need "
               "write access to a file in /sys; root has both. The exit status is 0, or 1 "
               "if something failed, or 2 for invalid caps. profile also exits with 1 if "
               "the command failed or ended too early, and with 127 if there is no such "
               "command. After Ctrl-C it dies of the signal.",
    .example = "sudo wattmeter cap set 0=200W,1=80%",
    .verbs = verbs,
    .operands = "VERB [CAPS|DEVICES|TABLE|-- COMMAND]",
    .operands_slot = offsetof(struct cap_args, words),
    .operands_min = 1,
    .operands_max = (size_t)-1,
    .options = options,
    .args_size = sizeof(struct cap_args),
    .run = run_cap,
};
