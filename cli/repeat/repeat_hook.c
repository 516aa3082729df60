/* SPDX-License-Identifier: Apache-2.0 */
/* repeat_hook.c - runs a command of the user's between measured ones. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output.h"
#include "repeat/repeat.h"

static int start(char *const argv[], bool show_output, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;

    int number = posix_spawn_file_actions_init(&actions);
    if (number != 0)
        return number;
    number =
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && number == 0 && !show_output; fd++)
        number = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
    if (number == 0)
        number = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return number;
}

int repeat_hook(const char *option, char *const argv[], bool show_output,
                const struct cmd_streams *io)
{
    int status = 0;
    pid_t pid;

    if (!argv)
        return CMD_DONE;
    int number = start(argv, show_output, &pid);
    if (number != 0) {
        fprintf(io->chat, "wattmeter run: --%s: %s: %s\n", option, argv[0],
                strerror(number));
        return CMD_FAILED;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status == 0)
        return CMD_DONE;
    if (!measure_is_interrupted())
        fprintf(io->chat, "wattmeter run: --%s: %s ended with %s %d%s\n", option, argv[0],
                WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                show_output ? "" : "; --show-output shows what it prints");
    return CMD_FAILED;
}
