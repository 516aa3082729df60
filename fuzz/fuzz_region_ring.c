/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_region_ring.c - rings that a broken program left behind.
 *
 * The input is the slots of a ring with a sound head; where its first byte is odd, 24
 * bytes before them are written over the head's numbers. The second half of them is
 * there only after the first was drained.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "region/drain/region_inbox.h"
#include "region/region_ring.h"

struct seen {
    int64_t last_ns;
    int gone;
};

static int take(void *context, const struct wm_region_event *event)
{
    struct seen *seen = context;

    require(seen->gone == 0 && event->thread == 3 && event->when_ns >= seen->last_ns);
    seen->last_ns = event->when_ns;
    if (event->kind == WM_REGION_BEGINS || event->kind == WM_REGION_STARTS)
        require(strlen(event->name) <= WM_REGION_NAME_MAX);
    if (event->kind == WM_REGION_GONE)
        seen->gone++;
    require(event->who->pid >= 0);
    return 0;
}

static int make_ring(const struct wm_region_inbox *inbox, const struct wm_ring *head,
                     const uint8_t *slots, size_t size)
{
    char path[WM_RING_PATH_SIZE];

    snprintf(path, sizeof(path), "%s/3", wm_region_inbox_path(inbox));
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    require(fd >= 0);
    require(posix_fallocate(fd, 0, (off_t)wm_ring_bytes(WM_RING_CAPACITY_MIN)) == 0);
    require(pwrite(fd, head, sizeof(*head), 0) == (ssize_t)sizeof(*head));
    require(pwrite(fd, slots, size, WM_RING_EVENTS_AT) == (ssize_t)size);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wm_region_inbox *inbox = NULL;
    struct wm_ring head = {
        .magic = WM_RING_MAGIC,
        .version = WM_RING_VERSION,
        .size = WM_RING_CAPACITY_MIN,
        .capacity = WM_RING_CAPACITY_MIN,
    };
    int64_t complete_ns = 0;
    uint64_t numbers[3];
    bool is_wild = size > sizeof(numbers) && data[0] % 2 != 0;
    size_t most = WM_RING_CAPACITY_MIN * sizeof(struct wm_ring_event);

    if (size == 0)
        return 0;
    data++;
    size--;
    if (is_wild) {
        memcpy(numbers, data, sizeof(numbers));
        data += sizeof(numbers);
        size -= sizeof(numbers);
        head.pid = (int32_t)numbers[0];
        head.size = numbers[1];
        head.capacity = numbers[2];
    }
    if (size > most)
        size = most;
    uint64_t slots = size / sizeof(struct wm_ring_event);
    uint64_t last = is_wild ? numbers[0] : slots * WM_RING_UNIT;
    head.sequence = is_wild ? last : slots / 2 * WM_RING_UNIT;

    require(wm_region_inbox_new(&inbox, NULL) == WM_OK);
    require(wm_region_inbox_open(inbox, NULL) == WM_OK);
    struct seen seen = { 0 };
    int fd = make_ring(inbox, &head, data, size);
    require(wm_region_inbox_drain(inbox, false, INT64_MAX, take, &seen, &complete_ns,
                                  NULL) == WM_OK);
    require(pwrite(fd, &last, sizeof(last), offsetof(struct wm_ring, sequence)) ==
            (ssize_t)sizeof(last));
    require(wm_region_inbox_drain(inbox, true, INT64_MAX, take, &seen, &complete_ns,
                                  NULL) == WM_OK);
    close(fd);
    wm_region_inbox_free(inbox);
    return 0;
}
