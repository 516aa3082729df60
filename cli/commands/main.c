/* SPDX-License-Identifier: Apache-2.0 */
/* commands/main.c - the program `wattmeter`. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "caps/caps.h"
#include "cmd.h"
#include "wattmeter/cap.h"

/* A file opened while one of the three is closed would take its place, and get
 * what is printed. A command that is run finds them as closed as we did. */
static void fill_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", O_RDWR | O_CLOEXEC);
    }
}

/* Most of what is large is for machines with many GPUs or threads, and hardly used. What
 * comes from the kernel is zero without being touched; the C library would fill
 * it with zeros, a page at a time, while a command waits for its start, if the end of its
 * heap had room for it. Folders' buffers are smaller. */
static void leave_memory_untouched(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 40 * 1024);
    mallopt(M_TOP_PAD, 32 * 1024);
#endif
}

int main(int argc, char **argv)
{
    const struct cmd_streams io = { .out = stdout, .chat = stderr };

    fill_streams();
    leave_memory_untouched();
    if (argc > 1 && strcmp(argv[1], WM_CAP_GUARDIAN) == 0)
        return wm_cap_guardian(argc, argv);
    /* `cap` repairs, and `run` asks for it when its command has begun. */
    if (argc > 1 && strcmp(argv[1], "cap") != 0 && strcmp(argv[1], "run") != 0)
        caps_offer_repair(io.chat);
    return cmd_main(cmd_table, argc, argv, &io);
}
