/* SPDX-License-Identifier: Apache-2.0 */
/* view_plot_ffmpeg.c - ffmpeg as a program that makes a film of pictures. */
#include "view/plot/view_plot_ffmpeg.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_error.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "base/base_utf8.h"

/* Used if PATH cannot be trusted. */
#define FFMPEG "/usr/bin/ffmpeg"

enum { LOWEST_PRIORITY = 19, WORDS_MOST = 48, PATIENCE_US = 100 * 1000 };

/* Players take the colours of a film that does not say which they are for those of a
 * television set, BT.709, and few play anything but yuv420p. */
static const char *const mp4_words[] = {
    "-vf",
    "scale=out_color_matrix=bt709:out_range=tv",
    "-pix_fmt",
    "yuv420p",
    "-c:v",
    "libx264",
    "-preset",
    "veryfast",
    "-crf",
    "20",
    "-colorspace",
    "bt709",
    "-color_primaries",
    "bt709",
    "-color_trc",
    "bt709",
    "-movflags",
    "+faststart",
    "-f",
    "mp4",
    NULL,
};

/* The palette is that of the first picture: one of all pictures would have all of them wait
 * in memory, and one for each would flicker. */
static const char *const gif_words[] = {
    "-filter_complex",
    "split[a][b];[a]trim=end_frame=1,palettegen=reserve_transparent=0[palette];"
    "[b]trim=start_frame=1,setpts=PTS-STARTPTS[seen];"
    "[seen][palette]paletteuse=dither=none:diff_mode=rectangle",
    "-f",
    "gif",
    NULL,
};

static size_t add_words(const char *const *from, const char **words, size_t count)
{
    for (; *from; from++)
        words[count++] = *from;
    return count;
}

static int spawn(const struct wm_plot_ffmpeg *ffmpeg, int their_end,
                 const char *const *words, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;

    int number = posix_spawn_file_actions_init(&actions);
    if (number != 0)
        return number;
    number = posix_spawn_file_actions_adddup2(&actions, their_end, STDIN_FILENO);
    if (number == 0)
        number = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
                                                  O_WRONLY, 0);
    if (number == 0)
        number = posix_spawn_file_actions_adddup2(&actions, ffmpeg->said, STDERR_FILENO);
    if (number == 0)
        number = posix_spawnp(ret_pid, wm_env_trusted("PATH", NULL) ? words[0] : FFMPEG,
                              &actions, NULL, (char *const *)words, wm_env_all());
    posix_spawn_file_actions_destroy(&actions);
    return number;
}

static int start(struct wm_plot_ffmpeg *ffmpeg, int their_end, const char *const *words,
                 struct wm_error *err)
{
    int number = spawn(ffmpeg, their_end, words, &ffmpeg->pid);

    if (number == ENOENT)
        return wm_fail(err, WM_ENODEV, "a film needs ffmpeg: apt install ffmpeg");
    errno = number;
    if (number != 0)
        return wm_fail_errno(err, "ffmpeg");
    /* It has no thread yet; those that it starts have the priority of this one. */
    setpriority(PRIO_PROCESS, (id_t)ffmpeg->pid, LOWEST_PRIORITY);
    return WM_OK;
}

static void close_all(struct wm_plot_ffmpeg *ffmpeg)
{
    if (ffmpeg->pictures >= 0)
        close(ffmpeg->pictures);
    if (ffmpeg->said >= 0)
        close(ffmpeg->said);
    ffmpeg->pictures = ffmpeg->said = -1;
}

int wm_plot_ffmpeg_start(enum wm_format format, int width, int height, double fps,
                         const char *path, struct wm_plot_ffmpeg *ret_ffmpeg,
                         struct wm_error *err)
{
    char size[32], rate[32], file[4096 + 8];
    const char *words[WORDS_MOST] = {
        "ffmpeg",     "-nostdin",    "-hide_banner",
        "-loglevel",  "error",       "-y",
        "-f",         "rawvideo",    "-pixel_format",
        "bgr0",       "-video_size", size,
        "-framerate", rate,          "-i",
        "pipe:0",     NULL,
    };
    const struct timeval patience = { .tv_usec = PATIENCE_US };
    struct wm_plot_ffmpeg ffmpeg = { .pid = -1, .pictures = -1 };
    int ends[2], status;

    snprintf(size, sizeof(size), "%dx%d", width, height);
    snprintf(rate, sizeof(rate), "%.6g", fps);
    if ((size_t)snprintf(file, sizeof(file), "file:%s", path) >= sizeof(file))
        return wm_fail(err, WM_EINVAL, "%s: is too long a name", wm_text_path(path));
    size_t count = 0;
    while (words[count])
        count++;
    count = add_words(format == WM_FORMAT_GIF ? gif_words : mp4_words, words, count);
    words[count] = file;

    ffmpeg.said = memfd_create("ffmpeg", MFD_CLOEXEC);
    if (ffmpeg.said < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        status = wm_fail_errno(err, "ffmpeg");
    } else {
        ffmpeg.pictures = ends[0];
        setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        status = start(&ffmpeg, ends[1], words, err);
        close(ends[1]);
    }
    if (status < 0)
        close_all(&ffmpeg);
    *ret_ffmpeg = ffmpeg;
    return status;
}

/* The last line of what it said. */
static int report_failure(const struct wm_plot_ffmpeg *ffmpeg, struct wm_error *err)
{
    char text[2048], line[400];
    off_t end = lseek(ffmpeg->said, 0, SEEK_END);
    off_t from = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;

    ssize_t length = pread(ffmpeg->said, text, sizeof(text) - 1, from);
    while (length > 0 && strchr("\r\n ", text[length - 1]))
        length--;
    text[length > 0 ? length : 0] = '\0';
    const char *newline = strrchr(text, '\n');
    wm_text_line(line, sizeof(line), newline ? newline + 1 : text);
    return wm_fail(err, WM_EIO, "ffmpeg: %.300s", line[0] ? line : "it ended too early");
}

ssize_t wm_plot_ffmpeg_take(struct wm_plot_ffmpeg *ffmpeg, const void *pixels, size_t size,
                            struct wm_error *err)
{
    ssize_t taken = send(ffmpeg->pictures, pixels, size, MSG_NOSIGNAL);

    if (taken >= 0)
        return taken;
    if (errno == EINTR || errno == EAGAIN)
        return 0;
    ffmpeg->is_gone = true;
    return wm_fail(err, WM_EIO, "ffmpeg: %s", wm_errno_text(errno));
}

int wm_plot_ffmpeg_end(struct wm_plot_ffmpeg *ffmpeg, int status, struct wm_error *err)
{
    int result = -1;

    if (status < 0)
        kill(ffmpeg->pid, SIGKILL);
    close(ffmpeg->pictures);
    ffmpeg->pictures = -1;
    while (waitpid(ffmpeg->pid, &result, 0) < 0) {
        if (errno == EINTR)
            continue;
        /* Nobody knows how it ended in a program that ignores SIGCHLD: by errors alone. */
        result = lseek(ffmpeg->said, 0, SEEK_END) > 0;
        break;
    }
    /* One that has ended by itself has said why; that nobody reads is no reason. */
    if ((status == WM_OK && result != 0) || (status == WM_EIO && ffmpeg->is_gone))
        status = report_failure(ffmpeg, err);
    close_all(ffmpeg);
    return status;
}
