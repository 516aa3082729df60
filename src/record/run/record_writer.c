/* SPDX-License-Identifier: Apache-2.0 */
/* record_writer.c - the writer of a recording is known by its pid and when it started,
 * since the boot that the run names: no other process has both. */
#include "record/run/record_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "source/source_kernel_text.h"

static bool find_process(pid_t pid, struct wm_pid_stat *ret_stat)
{
    char path[32], text[1024];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    return wm_file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
           wm_parse_pid_stat(text, ret_stat) == WM_OK;
}

void wm_writer_note(struct wm_run *run)
{
    struct wm_pid_stat stat;

    run->writer_pid = 0;
    if (!find_process(getpid(), &stat))
        return;
    run->writer_pid = stat.pid;
    run->writer_start = stat.start_time;
}

static bool is_of_this_boot(const struct wm_run *run)
{
    char boot[64];

    return run->boot_id &&
           wm_file_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot,
                             sizeof(boot)) &&
           strcmp(boot, run->boot_id) == 0;
}

/* A zombie writes nothing any more. */
bool wm_writer_is_there(const struct wm_run *run)
{
    struct wm_pid_stat stat;

    return run->writer_pid > 0 && is_of_this_boot(run) &&
           find_process(run->writer_pid, &stat) && stat.start_time == run->writer_start &&
           stat.state != 'Z' && stat.state != 'X';
}

const char *wm_writer_why_unfinished(const struct wm_run *run)
{
    return wm_writer_is_there(run) ? "it is still being written"
                                   : "it is still being written, or wattmeter was killed";
}
