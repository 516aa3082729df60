/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_watch.c - `wattmeter watch`: a session in the terminal while it goes on.
 *
 * This thread measures, as `run` and `attach` do. Another one draws: a terminal that is
 * slow delays no sample.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "cmd_config.h"
#include "measure.h"
#include "module.h"
#include "wattmeter/watch.h"

struct watch_args {
    struct measure_args measure;
    int64_t refresh_ns, window_ns;
    struct cmd_list words;
};

static const struct cmd_option watch_options[] = {
    { .name = "refresh",
      .type = CMD_DURATION,
      .slot = offsetof(struct watch_args, refresh_ns),
      .placeholder = "TIME",
      .help = "time between two pictures (200ms)",
      .min = "20ms",
      .max = "1h" },
    { .name = "window",
      .type = CMD_DURATION,
      .slot = offsetof(struct watch_args, window_ns),
      .placeholder = "TIME",
      .help = "the time range of the chart at first (20s)",
      .min = "1s",
      .max = "24h" },
    { 0 },
};

static const struct cmd_option *const options[] = { watch_options, measure_options, NULL };

#define REFRESH_NS INT64_C(200000000)
#define WINDOW_NS INT64_C(20000000000)
#define NEWS_NS INT64_C(1000000000)

/* A key is obeyed so late at most where samples are rarer. */
enum { LONGEST_WAIT_MS = 200, FIRST_PROCESS = 1 };

/* What is drawn, and by whom. */
struct view {
    const struct wm_watch_module *module;
    struct wm_watch_request request;
    struct wm_tracker *tracker;
    struct wm_watch *watch;
    struct wm_recording *live;
    struct wm_tracker_process *processes;
    size_t room;
    int64_t told_ns; /* when it was last told the news */
    double told_s;   /* the time of the report in them */
    struct wm_error err;
    int status;
    atomic_bool is_over; /* nothing is drawn any more, or shall be */
    pthread_t thread;
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* All processes, as many as there are. */
static size_t find_processes(struct view *view, const struct wm_report *report)
{
    size_t count;

    wm_tracker_processes(view->tracker, report, view->processes, view->room, &count);
    if (count <= view->room)
        return count;
    struct wm_tracker_process *grown =
        realloc(view->processes, 2 * count * sizeof(*view->processes));
    if (!grown)
        return 0;
    view->processes = grown;
    view->room = 2 * count;
    return find_processes(view, report);
}

static void tell_report(struct view *view, const struct wm_report *report,
                        struct wm_watch_news *news)
{
    wm_report_figure(report, NULL, "energy", &news->energy);
    wm_report_figure(report, NULL, "tree_energy", &news->target_energy);
    wm_report_figure(report, NULL, "cpu_time", &news->target_cpu_time);
    news->process_count = find_processes(view, report);
    news->processes = view->processes;
    view->module->tell(view->watch, news);
}

/* Once a second: figures with joules that change five times a second cannot be read. A
 * report without a new sample has no news. */
static void tell_news(struct view *view)
{
    const int64_t when_ns = now_ns();
    struct wm_watch_news news = { 0 };
    struct wm_report_figure time;
    struct wm_report *report;

    if (view->told_ns > 0 && when_ns - view->told_ns < NEWS_NS)
        return;
    if (wm_tracker_report(view->tracker, &report, NULL) < 0)
        return;
    wm_report_figure(report, NULL, "time", &time);
    news.time_s = time.value;
    bool is_new = view->told_ns == 0 || news.time_s > view->told_s;
    if (time.state != WM_REPORT_MISSING && is_new) {
        tell_report(view, report, &news);
        view->told_s = news.time_s;
    }
    if (time.state != WM_REPORT_MISSING)
        view->told_ns = when_ns;
    wm_report_free(report);
}

static void *show(void *context)
{
    struct view *view = context;

    view->status = view->module->open(&view->request, &view->watch, &view->err);
    while (view->status == WM_OK && !atomic_load(&view->is_over)) {
        /* Drivers that are late have none yet. */
        if (!view->live && wm_tracker_live(view->tracker, &view->live, NULL) == WM_OK)
            view->status = view->module->begin(view->watch, view->live, &view->err);
        if (view->live)
            tell_news(view);
        if (!view->module->turn(view->watch))
            break;
    }
    view->module->close(view->watch);
    free(view->processes);
    atomic_store(&view->is_over, true);
    return NULL;
}

/* Signals are for the thread that measures. */
static int start_view(struct view *view)
{
    sigset_t all, before;

    view->request.wake = eventfd(0, EFD_CLOEXEC);
    if (view->request.wake < 0)
        return -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(&view->thread, NULL, show, view);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure != 0)
        close(view->request.wake);
    return failure == 0 ? 0 : -1;
}

static void stop_view(struct view *view, const struct cmd_streams *io)
{
    const uint64_t one = 1;

    atomic_store(&view->is_over, true);
    while (write(view->request.wake, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    pthread_join(view->thread, NULL);
    close(view->request.wake);
    if (view->status < 0)
        output_failure("watch", &view->err, io);
}

/* What the command writes to the terminal would be written over the view: it is kept, and
 * shown when the view has ended. */
struct kept {
    int fd; /* -1: nothing is kept */
    off_t shown;
    int terminal;
};

static void show_kept(struct kept *kept)
{
    char bytes[4096];
    ssize_t length;

    while (kept->fd >= 0 &&
           (length = pread(kept->fd, bytes, sizeof(bytes), kept->shown)) > 0) {
        ssize_t written = write(kept->terminal, bytes, (size_t)length);
        if (written <= 0)
            break;
        kept->shown += written;
    }
}

/* The command's own descriptors, and ours again. */
static int start_command(struct wm_tracker *tracker, char *const words[], struct kept *kept,
                         struct wm_error *err)
{
    int ours[3];

    FILE *file = tmpfile();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    kept->fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;
    if (file)
        fclose(file);
    for (int i = 0; i < 3; i++) {
        ours[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
        if (isatty(i))
            dup2(i == STDIN_FILENO || kept->fd < 0 ? null : kept->fd, i);
    }
    int status =
        wm_tracker_start(tracker, &(struct wm_tracker_target) { .argv = words }, err);
    for (int i = 0; i < 3; i++) {
        if (ours[i] >= 0)
            dup2(ours[i], i);
        close(ours[i]);
    }
    close(null);
    return status;
}

/* What is watched: a command, a process, or, where nothing is named, all that run. */
struct subject {
    bool is_command;
    pid_t pid;
    char *title;
};

static char *join(const struct cmd_list *words)
{
    char *text = NULL;
    size_t size;

    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < words->count && out; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", words->words[i]);
    return out && fclose(out) == 0 ? text : NULL;
}

static int find_subject(const struct watch_args *args, const struct cmd_streams *io,
                        struct subject *ret_subject)
{
    const struct cmd_list *words = &args->words;
    struct subject subject = { .pid = FIRST_PROCESS };
    uint64_t pid = 0;
    int length;

    if (words->count == 0) {
        subject.title = strdup("all processes");
    } else if (words->count == 1 && cmd_parse_count(words->words[0], &pid)) {
        if (pid == 0 || pid > INT_MAX)
            return output_misused("watch", io, "'%.60s' is not the number of a process",
                                  cmd_shown(words->words[0]));
        subject.pid = (pid_t)pid;
        length = asprintf(&subject.title, "process %d", subject.pid);
        subject.title = length < 0 ? NULL : subject.title;
    } else {
        subject.is_command = true;
        subject.pid = 0;
        subject.title = join(words);
    }
    if (!subject.title) {
        fprintf(io->chat, "wattmeter watch: out of memory\n");
        return CMD_FAILED;
    }
    *ret_subject = subject;
    return CMD_DONE;
}

static int start(const struct watch_args *args, const struct subject *subject,
                 struct wm_tracker *tracker, struct kept *kept,
                 const struct cmd_streams *io)
{
    const struct wm_tracker_target target = { .pids = &subject->pid, .pid_count = 1 };
    struct wm_error err;

    measure_catch_signals();
    if (subject->is_command) {
        if (start_command(tracker, args->words.words, kept, &err) < 0)
            return measure_start_failure("watch", &err, io);
        measure_forward_signals(tracker);
        measure_release_streams(false);
    } else if (wm_tracker_start(tracker, &target, &err) < 0) {
        return output_failure("watch", &err, io);
    }
    return CMD_DONE;
}

/* Until the target has ended, or the user has had enough of what goes on without us. */
static void follow(const struct subject *subject, struct view *view, struct kept *kept,
                   const struct cmd_streams *io)
{
    struct wm_tracker *tracker = view->tracker;
    int state = WM_TRACKER_RUNNING, polls_alone = 0;
    struct wm_error err;

    while (state == WM_TRACKER_RUNNING) {
        state = wm_tracker_poll(tracker, LONGEST_WAIT_MS, &err);
        bool is_over = atomic_load(&view->is_over);
        if (is_over)
            show_kept(kept);
        if (!subject->is_command && (is_over || measure_is_interrupted()))
            break;
        if (measure_is_interrupted() && wm_tracker_exit_code(tracker) >= 0)
            break;
        if (is_over && state == WM_TRACKER_RUNNING && ++polls_alone == 2 &&
            isatty(fileno(io->chat)))
            fprintf(io->chat,
                    "wattmeter watch: still measuring process %d; Ctrl-C ends it\n",
                    (int)wm_tracker_pid(tracker));
    }
    stop_view(view, io);
    show_kept(kept);
    if (state < 0)
        output_failure("watch", &err, io);
}

static int watch(const struct watch_args *args, const struct subject *subject,
                 struct view *view, const struct cmd_streams *io, int *ret_signal)
{
    struct kept kept = { .fd = -1, .terminal = view->request.terminal };

    int code = start(args, subject, view->tracker, &kept, io);
    if (code == CMD_DONE && start_view(view) < 0) {
        fprintf(io->chat, "wattmeter watch: no thread for the view: %s\n", strerror(errno));
        atomic_store(&view->is_over, true);
        code = CMD_FAILED;
    }
    if (code == CMD_DONE) {
        follow(subject, view, &kept, io);
        code = measure_finish("watch", &args->measure, io, view->tracker);
        *ret_signal = wm_tracker_exit_signal(view->tracker);
        int exit_code = wm_tracker_exit_code(view->tracker);
        if (subject->is_command && exit_code != CMD_DONE)
            code = exit_code < 0 ? CMD_FAILED : exit_code;
    }
    if (kept.fd >= 0)
        close(kept.fd);
    return code;
}

static const struct module_need need = {
    .command = "watch",
    .library = "wattmeter-watch.so",
    .symbol = "wm_watch_module",
    .what = "ncurses",
    .packages = "libncursesw6",
};

/* A terminal that can show it, before anything is started. */
static int prepare_view(const struct watch_args *args, const struct subject *subject,
                        const struct cmd_streams *io, struct view *view)
{
    const char *no_colour = cmd_variable("NO_COLOR"), *where = args->measure.record;
    struct wm_error err;

    view->request = (struct wm_watch_request) {
        .terminal = open("/dev/tty", O_RDWR | O_CLOEXEC),
        .title = subject->title,
        .where = where && strstr(where, "://") ? "a database" : where,
        .refresh_ns = args->refresh_ns > 0 ? args->refresh_ns : REFRESH_NS,
        .window_ns = args->window_ns > 0 ? args->window_ns : WINDOW_NS,
        .without_colour = no_colour && no_colour[0],
    };
    if (view->request.terminal < 0) {
        fprintf(io->chat, "wattmeter watch: there is no terminal; 'wattmeter run' and "
                          "'wattmeter attach' need none\n");
        return CMD_FAILED;
    }
    view->module = module_load(&need, io);
    if (!view->module)
        return CMD_FAILED;
    if (view->module->check(view->request.terminal, &err) < 0)
        return output_failure("watch", &err, io);
    return CMD_DONE;
}

static int run_watch(const void *opaque, const struct cmd_streams *io)
{
    const struct watch_args *args = opaque;
    struct measure_args measure = args->measure;
    struct view view = { .request.terminal = -1 };
    struct subject subject = { .pid = FIRST_PROCESS };
    char channels[1024];
    int signal_number = 0;

    /* The panel of clocks needs this channel too. */
    if (!measure.channels)
        measure.channels = "clock_graphics";
    else if (snprintf(channels, sizeof(channels), "clock_graphics,%s", measure.channels) <
             (int)sizeof(channels))
        measure.channels = strcmp(measure.channels, "all") == 0 ? "all" : channels;
    int code = find_subject(args, io, &subject);
    if (code != CMD_DONE)
        return code;
    code = prepare_view(args, &subject, io, &view);
    if (code == CMD_DONE)
        code = measure_prepare("watch", &measure, subject.pid, io, &view.tracker);
    if (code == CMD_DONE) {
        code = watch(args, &subject, &view, io, &signal_number);
        wm_tracker_free(view.tracker);
    }
    if (view.request.terminal >= 0)
        close(view.request.terminal);
    free(subject.title);
    return measure_end(signal_number, code);
}

const struct cmd cmd_watch = {
    .name = "watch",
    .summary = "Watch the machine, a process or a command in the terminal.",
    .details =
        "Power, use, memory and temperature of the CPUs and GPUs over the last seconds, "
        "the "
        "joules so far, and the processes with their watts and joules: of all that run, of "
        "PID and what it starts, or of COMMAND. When it ends, the report follows, as of "
        "'wattmeter attach' and 'wattmeter run'.\n"
        "\n"
        "Keys, htop's where htop has them: q or F10 ends the view, h or F1 shows help, Esc "
        "leaves help, questions, filter, tree and the chosen process. Tab shows the next "
        "panel, + and - change the window, z fits the axis to the values, left and right "
        "choose a line, x hides it, a shows all, c hides the charts, space holds the "
        "picture. Up, down, PgUp, PgDn, Home, End and the mouse choose a process, / or F4 "
        "filters, t or F5 shows the tree, s or F6 sorts by the next column, W, P, M, T, N "
        "by power, CPU, memory, time, PID, I the other way round, k or F9 sends a signal "
        "and asks first.\n"
        "\n"
        "What COMMAND writes to the terminal is shown when the view has ended; its input "
        "is empty, for the keys are the view's. q ends the view alone: COMMAND goes on, "
        "and so does its measuring.\n"
        "\n"
        "A separate thread takes the samples, so that a slow terminal delays none. ncurses "
        "is needed (Debian's libncursesw6). 24-bit colour needs COLORTERM=truecolor and "
        "the terminal's '-direct' entry in terminfo (Debian's ncurses-term).",
    .example = "wattmeter watch --record run.sqlite -- python3 train.py",
    .operands = "[PID | [--] COMMAND [ARG...]]",
    .operands_slot = offsetof(struct watch_args, words),
    .operands_min = 0,
    .operands_max = (size_t)-1,
    .runs_command = true,
    .options = options,
    .args_size = sizeof(struct watch_args),
    .run = run_watch,
};
