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

const char *repeat_hook_name(enum repeat_when when)
{
    static const char *const names[] = {
        [REPEAT_SETUP] = "setup",
        [REPEAT_PREPARE] = "prepare",
        [REPEAT_CONCLUDE] = "conclude",
        [REPEAT_CLEANUP] = "cleanup",
    };

    return names[when];
}

int repeat_hook(const struct repeat_work *work, size_t command, enum repeat_when when)
{
    char *const *argv = work->commands.all[command].hooks[when];
    bool show_output = work->args->show_output;
    FILE *chat = work->io->chat;
    int status = 0;
    pid_t pid;

    if (!argv)
        return CMD_DONE;
    int number = start(argv, show_output, &pid);
    if (number != 0) {
        fprintf(chat, "wattmeter run: --%s: %s: %s\n", repeat_hook_name(when), argv[0],
                strerror(number));
        return CMD_FAILED;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status == 0)
        return CMD_DONE;
    if (!measure_is_interrupted())
        fprintf(chat, "wattmeter run: --%s: %s ended with %s %d%s\n",
                repeat_hook_name(when), argv[0], WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                show_output ? "" : "; --show-output shows what it prints");
    return CMD_FAILED;
}
