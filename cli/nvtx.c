/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.c - where the library is: beside the command in the build folder, or installed. */
#include "nvtx.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char variable[] = "NVTX_INJECTION64_PATH";
static const char library[] = "libwattmeter-nvtx.so";

static bool find_beside(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size);

    if (length <= 0 || (size_t)length >= size)
        return false;
    while (length > 0 && path[length - 1] != '/')
        length--;
    if ((size_t)length + sizeof(library) > size)
        return false;
    memcpy(path + length, library, sizeof(library));
    return access(path, R_OK) == 0;
}

static bool find_installed(char *path, size_t size)
{
    int length = snprintf(path, size, "%s/%s", CMD_LIBRARY_FOLDER, library);

    return length > 0 && (size_t)length < size && access(path, R_OK) == 0;
}

int nvtx_inject(const char *command, const struct cmd_streams *io)
{
    const char *other = getenv(variable);
    char path[4096];

    if (!find_beside(path, sizeof(path)) && !find_installed(path, sizeof(path))) {
        fprintf(
            io->chat,
            "wattmeter %s: --nvtx: there is no %s, neither beside wattmeter nor in %s\n",
            command, library, CMD_LIBRARY_FOLDER);
        return CMD_FAILED;
    }

    /* Ours is there already in a run inside a run. */
    if (other && other[0] && strcmp(other, path) != 0) {
        fprintf(io->chat,
                "wattmeter %s: --nvtx: %s names another tool already: %s; a program has "
                "room for one\n",
                command, variable, other);
        return CMD_MISUSED;
    }
    if (setenv(variable, path, 1) == 0)
        return CMD_DONE;
    fprintf(io->chat, "wattmeter %s: --nvtx: out of memory\n", command);
    return CMD_FAILED;
}
