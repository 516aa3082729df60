/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_recording_sqlite.c - hostile databases; tests/data/recordings has seeds.
 * SQLite wants a file with a name, because it looks for others beside it. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "fuzz_recording.h"

static char folder[] = "/tmp/wattmeter-fuzz-XXXXXX";
static char path[64], wal[64], shm[64];

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

static void make_folder(void)
{
    require(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/a.sqlite", folder);
    snprintf(wal, sizeof(wal), "%s/a.sqlite-wal", folder);
    snprintf(shm, sizeof(shm), "%s/a.sqlite-shm", folder);
    atexit(remove_folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (path[0] == '\0')
        make_folder();

    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
    fuzz_recording(path);
    unlink(wal);
    unlink(shm);
    return 0;
}
