/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program `wattmeter`. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

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

/* Warns of a session of caps that was killed with its guardian. */
static void offer_repair(FILE *chat)
{
    char text[512];

    if (wm_caps_left_behind(text, sizeof(text)) > 0)
        fprintf(chat,
                "wattmeter: a session that was killed has left %s; wattmeter cap restore "
                "puts it back\n",
                text);
    if (wm_caps_left_by_others(text, sizeof(text)) > 0)
        fprintf(chat, "wattmeter: another user's session that was killed has left %s\n",
                text);
}

/* Most of what is large is for machines with many GPUs or threads, and hardly used. What
 * comes from the kernel is zero without being touched; the C library would fill
 * it with zeros, a page at a time, while a command waits for its start, if the end of its
 * heap had room for it. Folders' buffers are smaller. */
static void leave_memory_untouched(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 40 * 1024);
    mallopt(M_TOP_PAD, 16 * 1024);
#endif
}

int main(int argc, char **argv)
{
    const struct cmd_streams io = { .out = stdout, .chat = stderr };

    fill_streams();
    leave_memory_untouched();
    if (argc > 1 && strcmp(argv[1], WM_CAP_GUARDIAN) == 0)
        return wm_cap_guardian(argc, argv);
    if (argc > 1 && strcmp(argv[1], "cap") != 0)
        offer_repair(io.chat);
    return cmd_main(cmd_table, argc, argv, &io);
}
