/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program `wattmeter`. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cmd.h"

/* A file opened while one of the three is closed would take its place, and get
 * what is printed. A command that is run finds them as closed as we did. */
static void fill_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", O_RDWR | O_CLOEXEC);
    }
}

int main(int argc, char **argv)
{
    const struct cmd_streams io = { .out = stdout, .chat = stderr };

    fill_streams();
    return cmd_main(cmd_table, argc, argv, &io);
}
