/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_recording_csv.c - hostile CSV files; tests/data/recordings has seeds. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];

    int fd = memfd_create("recording", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    fuzz_recording(path);
    close(fd);
    return 0;
}
