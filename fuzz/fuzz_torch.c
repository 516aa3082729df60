/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_torch.c - hostile traces of PyTorch's profiler; tests/data/torch has seeds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "view/trace/view_trace.h"

/* What is copied is the whole of it, with a place in it for more. */
static void copy(struct wm_torch *torch, const uint8_t *data, size_t size)
{
    char *bytes = NULL;
    size_t length = 0;
    struct wm_error err;

    FILE *out = open_memstream(&bytes, &length);
    require(out && wm_torch_copy_head(torch, out, &err) == WM_OK && fflush(out) == 0);
    require(length == (size_t)torch->events_at && length > 0 && bytes[length - 1] == '[');
    require(wm_torch_copy_rest(torch, out, &err) == WM_OK && fclose(out) == 0);
    require(length == size && memcmp(bytes, data, size) == 0);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wm_torch torch;
    struct wm_error err;
    char path[64];

    int fd = memfd_create("torch.json", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int status = wm_torch_open(&torch, path, &err);
    require(status == WM_OK || status == WM_EFORMAT);
    if (status == WM_OK) {
        require(torch.has_events && torch.first_us <= torch.last_us && torch.base_ns >= 0);
        copy(&torch, data, size);
    }
    wm_torch_close(&torch);
    close(fd);
    return 0;
}
