/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - writing a report to a file or to the screen. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd_config.h"

#define MEMORY_UNITS "bytes kilobytes megabytes gigabytes terabytes"
#define TIME_UNITS "seconds minutes hours days"

const struct cmd_option output_options[] = {
    { .letter = 'o',
      .name = "output",
      .slot = offsetof(struct output_args, path),
      .placeholder = "FILE",
      .help = "write the report to FILE; -: to standard output" },
    { .name = "json",
      .slot = offsetof(struct output_args, json),
      .help = "print the report as JSON, on standard output unless -o is given" },
    { .name = "overwrite",
      .slot = offsetof(struct output_args, overwrite),
      .help = "replace files that exist" },
    { 0 },
};

const struct cmd_option output_unit_options[] = {
    { .letter = 'v',
      .name = "verbose",
      .type = CMD_TIMES,
      .slot = offsetof(struct output_args, style.verbosity),
      .help = "show every figure and how it was obtained; -vv: also why others are "
              "missing" },
    { .name = "ram-unit",
      .slot = offsetof(struct output_args, style.ram_unit),
      .placeholder = "UNIT",
      .help = "unit of memory: bytes, kilobytes ... terabytes",
      .words = MEMORY_UNITS },
    { .name = "gpu-ram-unit",
      .slot = offsetof(struct output_args, style.gpu_ram_unit),
      .placeholder = "UNIT",
      .help = "unit of GPU memory",
      .words = MEMORY_UNITS },
    { .name = "time-unit",
      .slot = offsetof(struct output_args, style.time_unit),
      .placeholder = "UNIT",
      .help = "unit of time: seconds, minutes, hours or days",
      .words = TIME_UNITS },
    { 0 },
};

const struct cmd_option output_carbon_options[] = {
    { .name = "carbon",
      .type = CMD_NUMBER,
      .slot = offsetof(struct output_args, style.carbon_g_per_kwh),
      .placeholder = "GRAMS",
      .help = "CO2e of a kWh, in grams; 0: do not compute CO2e (0)",
      .min = "0",
      .max = "100000" },
    { .name = "pue",
      .type = CMD_NUMBER,
      .slot = offsetof(struct output_args, style.pue),
      .placeholder = "RATIO",
      .help = "power usage effectiveness of the data centre: multiplies cost and CO2e (1)",
      .min = "1",
      .max = "100" },
    { 0 },
};

const struct cmd_option output_price_options[] = {
    { .name = "price",
      .type = CMD_NUMBER,
      .slot = offsetof(struct output_args, style.price_per_kwh),
      .placeholder = "AMOUNT",
      .help = "price of a kWh; 0: do not compute the cost (0)",
      .min = "0",
      .max = "1000000" },
    { .name = "currency",
      .slot = offsetof(struct output_args, style.currency),
      .placeholder = "NAME",
      .help = "currency of the price: EUR" },
    { 0 },
};

const char *output_session_path(const char *word)
{
    const char *sign = strchr(word, '=');
    const char *scheme = strstr(word, "://");

    if (!sign || sign == word || (scheme && scheme < sign) || access(word, F_OK) == 0)
        return word;
    return sign + 1;
}

size_t output_run(const struct cmd_count *run)
{
    return run->given ? (size_t)run->value : WM_LAST_RUN;
}

void output_note_run(const char *name, const char *path, const struct cmd_count *run,
                     const struct cmd_streams *io)
{
    struct wm_recording *recording;
    struct stat info;

    /* A database has the runs of all programs, and a folder is one run. */
    if (run->given || stat(path, &info) < 0 || !S_ISREG(info.st_mode) ||
        wm_recording_open(path, WM_LAST_RUN, &recording, NULL) < 0)
        return;
    size_t count = wm_recording_run_count(recording);
    wm_recording_close(recording);
    if (count > 1)
        fprintf(io->chat,
                "wattmeter %s: run %zu of 0 to %zu, the newest; --run N chooses another, "
                "'wattmeter compare' summarizes all\n",
                name, count - 1, count - 1);
}

int output_fail(struct wm_error *err, int status, const char *format, ...)
{
    va_list words;

    va_start(words, format);
    vsnprintf(err->text, sizeof(err->text), format, words);
    va_end(words);
    return err->status = status;
}

int output_failure(const char *name, const struct wm_error *err,
                   const struct cmd_streams *io)
{
    fprintf(io->chat, "wattmeter %s: %s\n", name, err->text);
    return err->status == WM_EINVAL ? CMD_MISUSED : CMD_FAILED;
}

int output_target_failure(const char *name, const char *path, enum wm_record_mode mode,
                          const char *append, const struct wm_error *err,
                          const struct cmd_streams *io)
{
    if (!path || err->status != WM_EEXIST || mode != WM_RECORD_NEW)
        return output_failure(name, err, io);
    fprintf(io->chat, "wattmeter %s: %s: exists already; --overwrite replaces it%s\n", name,
            path, append);
    return CMD_FAILED;
}

int output_misused(const char *name, const struct cmd_streams *io, const char *format, ...)
{
    va_list args;

    fprintf(io->chat, "wattmeter %s: ", name);
    va_start(args, format);
    vfprintf(io->chat, format, args);
    va_end(args);
    fputc('\n', io->chat);
    return CMD_MISUSED;
}

bool output_is_standard(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

bool output_has_place(const struct output_args *args)
{
    return args->path || args->fd.given;
}

/* The descriptor that is open already and gets the report, or -1. */
static int open_descriptor(const struct output_args *args)
{
    if (args->fd.given)
        return args->fd.value <= INT_MAX ? (int)args->fd.value : -1;
    return output_is_standard(args->path) ? STDOUT_FILENO : -1;
}

bool output_is_to_stdout(const struct output_args *args)
{
    return output_has_place(args) ? open_descriptor(args) == STDOUT_FILENO : args->json;
}

static bool refuse(const char *path, const char *why, char ret_problem[OUTPUT_PROBLEM_SIZE])
{
    snprintf(ret_problem, OUTPUT_PROBLEM_SIZE, "--output: %s: %s", path, why);
    return false;
}

/* The part of a path before its last name; memory of the caller. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

bool output_is_writable(const char *path, bool overwrite,
                        char ret_problem[OUTPUT_PROBLEM_SIZE])
{
    struct stat info;

    if (path[0] == '\0')
        return refuse("''", "is no file", ret_problem);
    if (output_is_standard(path))
        return true;
    if (strstr(path, "://")) /* not to be repeated: it may hold a password */
        return refuse("a URL", "is no file", ret_problem);
    if (stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return refuse(path, "is a folder", ret_problem);
        if (S_ISREG(info.st_mode) && !overwrite)
            return refuse(path, "exists already; --overwrite replaces it", ret_problem);
        return access(path, W_OK) == 0 || refuse(path, strerror(errno), ret_problem);
    }
    if (errno != ENOENT)
        return refuse(path, strerror(errno), ret_problem);
    if (lstat(path, &info) == 0)
        return refuse(path, "is a link to a file that does not exist", ret_problem);

    char *folder = folder_of(path);
    if (!folder)
        return refuse(path, "out of memory", ret_problem);
    bool good = access(folder, W_OK | X_OK) == 0;
    if (!good)
        refuse(folder, strerror(errno), ret_problem);
    free(folder);
    return good;
}

/* From here on the command that is run does not get the descriptor: whoever reads the
 * report from a pipe shall not wait for what the command leaves behind. */
static int check_descriptor(const char *name, const struct output_args *args,
                            const struct cmd_streams *io)
{
    unsigned long long number = args->fd.value;
    int fd = open_descriptor(args), flags = fcntl(fd, F_GETFL);

    if (args->path)
        return output_misused(name, io, "--output and --output-fd exclude each other");
    if (flags < 0)
        return output_misused(name, io, "--output-fd: descriptor %llu is not open", number);
    if ((flags & O_ACCMODE) == O_RDONLY)
        return output_misused(
            name, io, "--output-fd: descriptor %llu is not open for writing", number);
    if (fd > STDERR_FILENO)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return CMD_DONE;
}

int output_check(const char *name, const struct output_args *args,
                 const struct cmd_streams *io)
{
    char problem[OUTPUT_PROBLEM_SIZE];
    struct wm_error err;

    if (wm_report_style_check(&args->style, &err) < 0)
        return output_failure(name, &err, io);
    if (args->fd.given)
        return check_descriptor(name, args, io);
    if (!args->path || output_is_writable(args->path, args->overwrite, problem))
        return CMD_DONE;
    fprintf(io->chat, "wattmeter %s: %s\n", name, problem);
    return CMD_FAILED;
}

static bool is_same(const char *path, const char *other)
{
    struct stat one, two;

    return stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

/* The last name of a path. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool output_is_same_file(const char *path, const char *other)
{
    if (is_same(path, other))
        return true;
    if (strcmp(name_of(path), name_of(other)) != 0)
        return false;
    char *folder = folder_of(path), *other_folder = folder_of(other);
    bool same = folder && other_folder && is_same(folder, other_folder);
    free(folder);
    free(other_folder);
    return same;
}

int output_check_twice(const char *name, const struct cmd_list *paths,
                       const struct cmd_streams *io)
{
    for (size_t i = 1; i < paths->count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (!output_is_same_file(paths->words[k], paths->words[i]))
                continue;
            return output_misused(name, io, "%s: is given twice", paths->words[i]);
        }
    }
    return CMD_DONE;
}

int output_check_input(const char *name, const struct output_args *args, const char *input,
                       const struct cmd_streams *io)
{
    if (!args->path || output_is_standard(args->path) ||
        !output_is_same_file(args->path, input))
        return CMD_DONE;
    return output_misused(name, io, "--output: %s: is what is to be read", args->path);
}

int output_find_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    int index = 0;

    for (const char *at = words; *at; index++) {
        size_t own = strcspn(at, " ");
        if (own == length && strncmp(at, word, own) == 0)
            return index;
        at += own + strspn(at + own, " ");
    }
    return -1;
}

int output_find_format(const char *name, const struct output_args *args, const char *format,
                       const char *words, const struct cmd_streams *io,
                       enum wm_format *ret_format)
{
    if (format && args->json)
        return output_misused(name, io, "--json and --format exclude each other");
    if (format && output_find_word(words, format) < 0)
        return output_misused(name, io, "--format: there is no '%s'; there are: %s",
                              cmd_shown(format), words);
    *ret_format = format       ? (enum wm_format)wm_format_find(format)
                  : args->json ? WM_FORMAT_JSON
                               : WM_FORMAT_TEXT;
    return CMD_DONE;
}

bool output_adds_line_end(const struct output_args *args, enum wm_format format)
{
    return format >= WM_FORMAT_GPU_TRACKER && format <= WM_FORMAT_GPU_TRACKER_JSON &&
           !args->path;
}

/* Opens the place, which was checked, for writing; NULL, with errno, when it cannot. A
 * file that came into being since then is left alone, and devices and pipes cannot be
 * replaced. `ret_made`: there was none before. */
static FILE *open_output(const struct output_args *args, bool *ret_made)
{
    int descriptor = open_descriptor(args);
    struct stat info;

    *ret_made = false;
    if (descriptor >= 0) {
        int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        return copy < 0 ? NULL : fdopen(copy, "w");
    }
    bool there = stat(args->path, &info) == 0;
    bool replace = args->overwrite || (there && !S_ISREG(info.st_mode));

    int fd = open(args->path, O_WRONLY | O_CREAT | O_CLOEXEC | (replace ? O_TRUNC : O_EXCL),
                  0666);
    if (fd < 0)
        return NULL;
    FILE *file = fdopen(fd, "w");
    if (!file)
        close(fd);
    *ret_made = !there;
    return file;
}

/* What is wrong is the place. */
static int name_place(const struct output_args *args, struct wm_error *err)
{
    struct wm_error why = *err;

    snprintf(err->text, sizeof(err->text), "%s: %.120s",
             args->path ? args->path : "--output-fd", why.text);
    return err->status;
}

int output_to_file(const struct output_args *args, output_printer *print, const void *found,
                   struct wm_error *err)
{
    bool made = false, is_written = false;
    int status = WM_OK;

    FILE *file = open_output(args, &made);
    if (file) {
        status = print(found, file, err);
        is_written = !ferror(file) && fflush(file) == 0;
    }
    /* Closing does not tell of what an earlier write did not take. */
    if (!file || ((fclose(file) != 0 || !is_written) && status >= 0)) {
        status = output_fail(err, WM_EIO, "%s", strerror(errno));
        is_written = false;
    }
    if (status >= 0)
        return WM_OK;
    if (made)
        unlink(args->path);
    return is_written ? status : name_place(args, err);
}

int output_print(const char *name, const struct output_args *args, output_printer *print,
                 const void *found, const struct cmd_streams *io)
{
    struct wm_error err;

    int status = output_has_place(args) ? output_to_file(args, print, found, &err)
                                        : print(found, io->out, &err);
    return status < 0 ? output_failure(name, &err, io) : CMD_DONE;
}

/* https://no-color.org, and what cannot move a cursor has no colours either. */
static bool is_colourful(FILE *stream)
{
    const char *no = cmd_variable("NO_COLOR"), *terminal = cmd_variable("TERM");

    return isatty(fileno(stream)) && !(no && no[0]) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

int output_report_print(const void *found, FILE *out, struct wm_error *err)
{
    const struct output_report *report = found;

    return wm_report_print(report->report, report->format, report->style, out, err);
}

int output_write(const char *name, const struct output_args *args,
                 const struct wm_report *report, FILE *screen, const struct cmd_streams *io)
{
    FILE *stream = args->json ? io->out : screen;
    struct wm_report_style style = args->style;
    const struct output_report printed = {
        .report = report,
        .format = args->json ? WM_FORMAT_JSON : WM_FORMAT_TEXT,
        .style = &style,
    };
    struct wm_error err;

    style.for_terminal = !output_has_place(args) && stream && is_colourful(stream);

    if (output_has_place(args)) {
        if (output_to_file(args, output_report_print, &printed, &err) == WM_OK)
            return CMD_DONE;
        fprintf(io->chat, "wattmeter %s: %s; this is the report:\n", name, err.text);
        output_report_print(&printed, io->chat, &err);
        return CMD_FAILED;
    }
    if (!stream)
        return CMD_DONE;
    if (output_report_print(&printed, stream, &err) < 0) {
        fprintf(io->chat, "wattmeter %s: %s\n", name, err.text);
        return CMD_FAILED;
    }
    return CMD_DONE;
}
