/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tracker_pickle.c - pickles. They are Python's own, so our package for Python writes
 * and reads them, where it is installed. */
#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_tracker/gpu_tracker.h"

#define NOT_INSTALLED 77
#define TEXT_OF(number) #number
#define STATUS_TEXT(number) TEXT_OF(number)

/* Nothing is imported from the working directory, where anything may lie. */
static const char script[] =
    "import sys\n"
    "sys.path = [path for path in sys.path if path]\n"
    "try:\n"
    "    from wattmeter.compat.gpu_tracker._command import main\n"
    "except ImportError:\n"
    "    sys.exit(" STATUS_TEXT(NOT_INSTALLED) ")\n"
                                               "sys.exit(main(sys.argv[1:]))\n";

/* The one beside this program, as in a virtual environment; or the usual one. */
static const char *find_python(char path[4096])
{
    static const char name[] = "python3";
    ssize_t length = readlink("/proc/self/exe", path, 4096 - sizeof(name));

    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length <= 0)
        return name;
    memcpy(path + length, name, sizeof(name));
    return access(path, X_OK) == 0 ? path : name;
}

bool gpu_tracker_python(const struct cmd_streams *io, const char **words, int *ret_code)
{
    char path[4096];
    int status = 0;
    pid_t pid;

    words[0] = find_python(path);
    words[1] = "-c";
    words[2] = script;
    fflush(io->out);
    fflush(io->chat);
    if (posix_spawnp(&pid, words[0], NULL, NULL, (char *const *)words, environ) != 0)
        return false;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return false;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_INSTALLED)
        return false;
    *ret_code = status == 0 ? CMD_DONE : CMD_FAILED;
    return true;
}

bool gpu_tracker_pickle(const struct gpu_tracker_output *output,
                        const struct cmd_streams *io, const char **words, int *ret_code)
{
    if (!output->pickle)
        return false;
    if (gpu_tracker_python(io, words, ret_code))
        return true;
    gpu_tracker_warn(io, "A pickle is for Python alone, and the package wattmeter of "
                         "Python's, which writes it, is not there. The results are "
                         "written as JSON instead, which sub-track compare reads.");
    return false;
}
