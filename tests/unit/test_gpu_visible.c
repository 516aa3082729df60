/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu_visible.c - which GPUs a program sees with which mask.
 *
 * Results are written in the order of the mask: "2 0.1" is GPU 2 and
 * then MIG device or tile 1 of GPU 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/gpu/select/source_gpu_visible.h"
#include "test.h"

/* Behind the room that was asked for; must stay as it is. */
static const struct wm_visible_device canary = { 4711, 4712, 4713 };

static void describe(char *text, size_t size, const struct wm_visible_device *devices,
                     size_t count)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count && length < size; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s%zu", i ? " " : "",
                                   devices[i].gpu);
        if (devices[i].part != WM_VISIBLE_WHOLE && length < size)
            length +=
                (size_t)snprintf(text + length, size - length, ".%d", devices[i].part);
    }
}

/* An environment in the making; a mask that is NULL is not set. */
struct environment {
    char *entries[5]; /* the last one stays NULL */
    size_t count;
};

static void set(struct environment *environment, const char *name, const char *mask)
{
    if (!mask)
        return;
    size_t room = strlen(name) + strlen(mask) + 2;
    char *entry = malloc(room);

    assert_non_null(entry);
    snprintf(entry, room, "%s=%s", name, mask);
    environment->entries[environment->count++] = entry;
}

/* Asks one vendor's rules. The result keeps the devices until done() with it. */
static struct wm_visible ask(void (*rules)(struct wm_visible *),
                             const struct wm_visible_gpu *gpus, size_t count,
                             const struct environment *environment, unsigned driver)
{
    size_t room = wm_visible_room(gpus, count);
    struct wm_visible visible = {
        .gpus = gpus,
        .gpu_count = count,
        .environment = (const char *const *)environment->entries,
        .driver = driver,
        .devices = calloc(room + 1, sizeof(*visible.devices)),
    };

    assert_non_null(visible.devices);
    visible.devices[room] = canary;
    rules(&visible);
    assert_memory_equal(&visible.devices[room], &canary, sizeof(canary));
    return visible;
}

static void done(struct wm_visible *visible, struct environment *environment)
{
    free(visible->devices);
    for (size_t i = 0; i < environment->count; i++)
        free(environment->entries[i]);
}

/* `refused` is "word why", up to where it ends, or NULL. */
static void check(const char *mask, const struct wm_visible *visible, const char *result,
                  const char *refused)
{
    char text[256];

    print_message("  %s\n", mask ? mask : "(not set)");
    describe(text, sizeof(text), visible->devices, visible->count);
    assert_string_equal(text, result);

    assert_int_equal(visible->refused.text != NULL, refused != NULL);
    if (refused) {
        snprintf(text, sizeof(text), "%.*s %s", (int)visible->refused.length,
                 visible->refused.text, visible->refused.why);
        if (strncmp(text, refused, strlen(refused)) != 0)
            fail_msg("refused: %s; expected: %s", text, refused);
    }
}

struct cuda_masks {
    const char *visible_devices, *device_order;
    unsigned driver;
};

/* Returns how many devices are visible, and whether their order is in doubt. */
static size_t cuda(const struct wm_visible_gpu *gpus, size_t count,
                   const struct cuda_masks *masks, const char *result, const char *refused,
                   bool *ret_uncertain)
{
    struct environment environment = { .count = 0 };

    set(&environment, "CUDA_VISIBLE_DEVICES", masks->visible_devices);
    set(&environment, "CUDA_DEVICE_ORDER", masks->device_order);
    struct wm_visible visible =
        ask(wm_visible_cuda, gpus, count, &environment, masks->driver);
    if (visible.refused.text)
        assert_string_equal(visible.refused.variable, "CUDA_VISIBLE_DEVICES");
    check(masks->visible_devices, &visible, result, refused);
    *ret_uncertain = visible.order_reason != NULL;
    done(&visible, &environment);
    return visible.count;
}

/* Of one model, in PCI order; UUIDs as in PyTorch's tests. */
static const struct wm_visible_gpu alike[] = {
    { .uuid = "GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1", .model = "A100" },
    { .uuid = "GPU-9e8d35e3-a134-0fdd-0e01-23811fdbd293", .model = "A100" },
    { .uuid = "GPU-e429a63e-c61c-4795-b757-5132caeb8e70", .model = "A100" },
    { .uuid = "GPU-eee1dfbc-0a0f-6ad8-5ff6-dc942a8b9d98", .model = "A100" },
};

struct row {
    const char *mask;
    const char *result;
    const char *refused;
};

static void test_cuda(void **state)
{
    static const struct row rows[] = {
        { NULL, "0 1 2 3", NULL },
        { "", "", NULL },
        { "0", "0", NULL },
        { "1,3", "1 3", NULL },
        { "2,1", "2 1", NULL },
        { "3,2,1,0", "3 2 1 0", NULL },

        /* The list ends at the first bad word. */
        { "0,2,-1,1", "0 2", "-1 is negative" },
        { "-1", "", "-1 is negative" },
        { "7", "", "7 is past the last device" },
        { "4", "", "4 is past" },
        { "1,5,0", "1", "5 is past" },
        { "0,7,7", "0", "7 is past" },
        { "NoDevFiles", "", "NoDevFiles is neither" },
        { "all", "", "all is neither" },
        { "none", "", "none is neither" },
        { "void", "", "void is neither" },
        { "one,two,3", "", "one is neither" },
        { "3,2,two,one", "3 2", "two is neither" },
        { "0,", "0", NULL },
        { ",", "", " is empty" },
        { ",0", "", " is empty" },
        { "0,,1", "0", " is empty" },
        { " ", "", "  is neither" },
        { "0, ,1", "0", "  is neither" },

        /* Numbers as strtoul() reads them, to base 10. */
        { " 1, 3", "1 3", NULL },
        { "\t1 ,\n2 ", "1 2", NULL },
        { "2, +3, -0", "2 3 0", NULL },
        { "1gpu2,2ampere", "1 2", NULL },
        { "1;2", "1", NULL },
        { "0-2", "0", NULL },
        { "0 1", "0", NULL },
        { "0x1", "0", NULL },
        { "01,002", "1 2", NULL },
        { "010", "", "010 is past" },
        { "1.9", "1", NULL },
        { "+", "", "+ is neither" },
        { "-", "", "- is neither" },
        { "+-1", "", "+-1 is neither" },
        { "- 1", "", "- 1 is neither" },
        { "\xc2\xb2", "", "\xc2\xb2 is neither" },
        { "2147483648", "", "2147483648 is past" },
        { "4294967296", "", "4294967296 is past" },
        { "18446744073709551615", "", "18446744073709551615 is past" },
        { "18446744073709551616", "", "18446744073709551616 is past" },
        { "-18446744073709551615", "", "-18446744073709551615 is negative" },
        { "0,99999999999999999999999", "0", "99999999999999999999999 is past" },

        /* A device named twice hides all. */
        { "0,0", "", "0 names a device a second time" },
        { "3,1,1", "", "1 names" },
        { "0, 1, 2, 1", "", " 1 names" },
        { "0,-1,0", "0", "-1 is negative" },
        { "0,-0", "", "-0 names" },
        { "0,0,1", "", "0 names" },
        { "1,1junk", "", "1junk names" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct cuda_masks masks = { .visible_devices = rows[i].mask };
        bool uncertain;
        cuda(alike, ARRAY_LEN(alike), &masks, rows[i].result, rows[i].refused, &uncertain);
        assert_false(uncertain);
    }
}

static void test_cuda_uuids(void **state)
{
    static const struct row rows[] = {
        { "GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1", "0", NULL },
        { "GPU-9e8d35e3", "1", NULL },
        { "GPU-e4,GPU-9e8d35e3", "2 1", NULL },
        { "GPU-ee,GPU-99,GPU-9e,GPU-e4", "3 0 1 2", NULL },
        { "GPU-9e,", "1", NULL },
        { "GPU-123,GPU-9e", "", "GPU-123 fits no device" },
        { "GPU-9e,GPU-123,GPU-99", "1", "GPU-123 fits no" },
        { "GPU-9e,GPU-e,GPU-99", "1", "GPU-e fits several" },
        { "GPU-", "", "GPU- fits several" },
        { "GPU-9e8d35e3,GPU-99,GPU-9e8", "", "GPU-9e8 names a device a second" },
        { "GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f12", "", "GPU-9942190a-aa31-4ff1" },
        { "GPU-9942190A", "", "GPU-9942190A fits no" },
        { "gpu-9942190a", "", "gpu-9942190a is neither" },
        { "9942190a", "", "9942190a is past" },
        { " GPU-9e", "", " GPU-9e is neither" },
        { "GPU-9e, GPU-99", "1", " GPU-99 is no UUID" },
        { "GPU-9e ,GPU-99", "", "GPU-9e  fits no" },
        { "GPU-9e,,GPU-99", "1", " is empty" },
        { "MIG-9e8d35e3", "", "MIG-9e8d35e3 fits no" },
        { "MIG-GPU-9e8d35e3/1/0", "", "MIG-GPU-9e8d35e3/1/0 fits no" },

        /* The first word decides whether it is a list of numbers or of UUIDs. */
        { "GPU-9e, 2", "1", " 2 is no UUID" },
        { "GPU-9e,0", "1", "0 is no UUID" },
        { "2,GPU-9e", "2", "GPU-9e is a UUID in a list of numbers" },
        { "2,MIG-9e", "2", "MIG-9e is a UUID" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct cuda_masks masks = { .visible_devices = rows[i].mask };
        bool uncertain;
        cuda(alike, ARRAY_LEN(alike), &masks, rows[i].result, rows[i].refused, &uncertain);
    }
}

/* A short UUID is one if it fits nothing else, however short. */
static void test_cuda_few(void **state)
{
    static const struct wm_visible_gpu nameless[] = { { 0 }, { .uuid = "" } };
    const struct {
        const struct wm_visible_gpu *gpus;
        size_t count;
        struct row row;
    } rows[] = {
        { NULL, 0, { NULL, "", NULL } },
        { NULL, 0, { "", "", NULL } },
        { NULL, 0, { "0", "", "0 is past" } },
        { NULL, 0, { "GPU-", "", "GPU- fits no" } },
        { alike, 1, { "GPU-", "0", NULL } },
        { alike, 1, { "0,1", "0", "1 is past" } },
        { nameless, 2, { NULL, "0 1", NULL } },
        { nameless, 2, { "1,0", "1 0", NULL } },
        { nameless, 2, { "GPU-1", "", "GPU-1 fits no" } },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct cuda_masks masks = { .visible_devices = rows[i].row.mask };
        bool uncertain;
        cuda(rows[i].gpus, rows[i].count, &masks, rows[i].row.result, rows[i].row.refused,
             &uncertain);
    }
}

#define GPU(id, address, name, major, minor, count, mhz)                                   \
    {                                                                                      \
        .uuid = id, .pci = address, .model = name, .capability_major = major,              \
        .capability_minor = minor, .multiprocessors = count, .clock_mhz = mhz              \
    }

static void test_cuda_order(void **state)
{
    /* By speed 2 0 1 3, by PCI address 1 3 2 0. */
    static const struct wm_visible_gpu mixed[] = {
        GPU("GPU-a", "0001:3b:00.0", "V100", 7, 0, 80, 1530),
        GPU("GPU-b", "00000000:02:00.0", "P1000", 6, 1, 5, 1519),
        GPU("GPU-c", "0000:AF:00.0", "A4000", 8, 6, 48, 1560),
        GPU("GPU-d", "0000:3b:00.0", "GT 1030", 6, 1, 3, 1468),
    };
    /* Of one capability: multiprocessors times clock, then the address. */
    static const struct wm_visible_gpu pascal[] = {
        GPU("GPU-a", "0000:07:00.0", "1080", 6, 1, 20, 1733),
        GPU("GPU-b", "0000:09:00.0", "1080", 6, 1, 20, 1733),
        GPU("GPU-c", "0000:0b:00.0", "1080 Ti", 6, 1, 28, 1582),
        GPU("GPU-d", "0000:0d:00.0", "1070", 6, 1, 15, 1683),
        GPU("GPU-e", "0000:0e:00.0", "1080 OC", 6, 1, 20, 1800),
    };
    static const struct wm_visible_gpu clockless[] = {
        GPU("GPU-a", "0000:07:00.0", "1070", 6, 1, 15, 0),
        GPU("GPU-b", "0000:09:00.0", "1080", 6, 1, 20, 0),
    };
    static const struct wm_visible_gpu unknown[] = {
        GPU("GPU-a", "0000:02:00.0", "old", 0, 0, 0, 0),
        GPU("GPU-b", "0000:01:00.0", "new", 9, 0, 132, 1980),
        GPU("GPU-c", "0000:03:00.0", "new", 9, 0, 132, 1980),
    };
    /* What is no address stands behind, in the order given. */
    static const struct wm_visible_gpu addresses[] = {
        GPU("GPU-a", NULL, "A100", 8, 0, 0, 0),
        GPU("GPU-b", "0000:01:00.9", "A100", 8, 0, 0, 0),
        GPU("GPU-c", "0000:01:00.0 ", "A100", 8, 0, 0, 0),
        GPU("GPU-d", "0000:01:20.0", "A100", 8, 0, 0, 0),
        GPU("GPU-e", "123456789:01:00.0", "A100", 8, 0, 0, 0),
        GPU("GPU-f", "0000:101:00.0", "A100", 8, 0, 0, 0),
        GPU("GPU-g", "0000::00.0", "A100", 8, 0, 0, 0),
        GPU("GPU-h", "FFFFFFFF:ff:1f.7", "A100", 8, 0, 0, 0),
        GPU("GPU-i", "0000:01:00.1", "A100", 8, 0, 0, 0),
        GPU("GPU-j", "0000:01:00.0", "A100", 8, 0, 0, 0),
    };
    static const struct {
        const struct wm_visible_gpu *gpus;
        size_t count;
        const char *order;
        struct row row;
        bool uncertain;
    } rows[] = {
        { mixed, 4, NULL, { NULL, "2 0 1 3", NULL }, true },
        { mixed, 4, "FASTEST_FIRST", { NULL, "2 0 1 3", NULL }, true },
        { mixed, 4, "PCI_BUS_ID", { NULL, "1 3 2 0", NULL }, false },
        { mixed, 4, "", { NULL, "2 0 1 3", NULL }, true },
        { mixed, 4, "pci_bus_id", { NULL, "2 0 1 3", NULL }, true },
        { mixed, 4, "PCI_BUS_ID ", { NULL, "2 0 1 3", NULL }, true },
        { mixed, 4, NULL, { "0,3", "2 3", NULL }, true },
        { mixed, 4, "PCI_BUS_ID", { "0,3", "1 0", NULL }, false },
        { mixed, 4, NULL, { "GPU-a,GPU-d", "0 3", NULL }, false },
        { mixed, 4, NULL, { "", "", NULL }, false },
        { mixed, 4, NULL, { "NoDevFiles", "", "NoDevFiles is neither" }, false },
        { mixed, 4, NULL, { "1,1", "", "1 names" }, false },
        { mixed, 1, NULL, { "0", "0", NULL }, false },
        { pascal, 5, NULL, { NULL, "2 4 0 1 3", NULL }, true },
        { pascal, 5, "PCI_BUS_ID", { NULL, "0 1 2 3 4", NULL }, false },
        { pascal, 2, NULL, { NULL, "0 1", NULL }, false },
        { clockless, 2, NULL, { NULL, "1 0", NULL }, true },
        { unknown, 3, NULL, { NULL, "1 0 2", NULL }, true },
        { addresses, 10, NULL, { NULL, "9 8 7 0 1 2 3 4 5 6", NULL }, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct cuda_masks masks = { rows[i].row.mask, rows[i].order, 0 };
        bool uncertain;
        cuda(rows[i].gpus, rows[i].count, &masks, rows[i].row.result, rows[i].row.refused,
             &uncertain);
        assert_int_equal(uncertain, rows[i].uncertain);
    }
}

/* What a number means is told with each device. */
static void test_cuda_numbers(void **state)
{
    static const struct wm_visible_mig migs[] = { { "MIG-1", 1, 0 }, { "MIG-2", 1, 1 } };
    const struct wm_visible_gpu gpus[] = {
        { .uuid = "GPU-a",
          .model = "H100",
          .mig_mode = true,
          .migs = migs,
          .mig_count = 2 },
        { .uuid = "GPU-b", .model = "H100" },
        { .uuid = "GPU-c", .model = "H100" },
    };
    struct environment environment = { .count = 0 };
    (void)state;

    set(&environment, "CUDA_VISIBLE_DEVICES", "MIG-2,GPU-c,GPU-b");
    struct wm_visible visible = ask(wm_visible_cuda, gpus, 3, &environment, 0);
    assert_int_equal(visible.count, 3);
    assert_int_equal(visible.devices[0].number, WM_VISIBLE_NO_NUMBER);
    assert_int_equal(visible.devices[1].number, 1);
    assert_int_equal(visible.devices[2].number, 0);
    done(&visible, &environment);
}

static void test_cuda_mig(void **state)
{
    static const struct wm_visible_mig first[] = {
        { "MIG-aa000000-1111-5e09-8540-a6b389968c31", 1, 0 },
        { "MIG-ab000000-1111-5e09-8540-a6b389968c31", 1, 1 },
        { "MIG-ac000000-1111-5e09-8540-a6b389968c31", 2, 0 },
    };
    static const struct wm_visible_mig second[] = {
        { "MIG-ba000000-1111-5e09-8540-a6b389968c31", 1, 0 },
        { NULL, 13, 0 },
    };
    /* Two in MIG mode, one without MIG devices, one as usual, and one whose MIG
     * devices do not count because it is not in MIG mode. */
    const struct wm_visible_gpu gpus[] = {
        { .uuid = "GPU-1c20e77d-1c1a", .mig_mode = true, .migs = first, .mig_count = 3 },
        { .uuid = "GPU-2c20e77d-1c1a", .mig_mode = true, .migs = second, .mig_count = 2 },
        { .uuid = "GPU-3c20e77d-1c1a", .mig_mode = true },
        { .uuid = "GPU-4c20e77d-1c1a" },
        { .uuid = "GPU-5c20e77d-1c1a", .migs = second, .mig_count = 1 },
    };
    static const struct {
        struct row row;
        const char *newer; /* the result with a driver from 570 on */
    } rows[] = {
        { { NULL, "0.0", NULL }, "3 4 0.0 0.2 1.0 1.1" },
        { { "", "", NULL }, "" },

        /* By number: whole GPUs first, MIG devices after them. */
        { { "0", "3", NULL }, "3" },
        { { "1,0", "4 3", NULL }, "4 3" },
        { { "2", "0.0", NULL }, "0.0" },
        { { "3", "1.0", NULL }, "0.2" },
        { { "0,2", "0.0", NULL }, "3 0.0" },
        { { "3,2,1", "1.0", NULL }, "0.2 0.0 4" },
        { { "2,2", "", "2 names" }, "" },
        { { "18446744073709551615", "", "18446744073709551615 is past" }, "" },

        { { "MIG-aa", "0.0", NULL }, "0.0" },
        { { "MIG-ab000000-1111-5e09-8540-a6b389968c31", "0.1", NULL }, "0.1" },
        { { "MIG-ac,MIG-aa", "0.2", NULL }, "0.2 0.0" },
        { { "MIG-ba,MIG-aa", "1.0", NULL }, "1.0 0.0" },
        { { "MIG-b", "1.0", NULL }, "1.0" },
        { { "MIG-a", "", "MIG-a fits several" }, "" },
        { { "MIG-", "", "MIG- fits several" }, "" },
        { { "MIG-ff", "", "MIG-ff fits no" }, "" },
        { { "MIG-aa,MIG-ff,MIG-ba", "0.0", "MIG-ff fits no" }, "0.0" },
        { { "MIG-aa,MIG-aa", "", "MIG-aa names" }, "" },
        { { "MIG-aa,MIG-aa0", "", "MIG-aa0 names" }, "" },
        { { "mig-aa", "", "mig-aa is neither" }, "" },

        /* Two compute instances of one GPU instance: the driver shows one of them. */
        { { "MIG-aa,MIG-ab", "0.0", NULL }, "0.0 0.1" },
        { { "MIG-ab,MIG-ba,MIG-aa", "0.1", NULL }, "0.1 1.0 0.0" },

        { { "MIG-GPU-1c20e77d-1c1a/1/0", "0.0", NULL }, "0.0" },
        { { "MIG-GPU-1c20e77d/1/1", "0.1", NULL }, "0.1" },
        { { "MIG-GPU-1/2/0", "0.2", NULL }, "0.2" },
        { { "MIG-GPU-2/13/0", "1.1", NULL }, "1.1" },
        { { "MIG-GPU-2/13/0,MIG-aa", "1.1", NULL }, "1.1 0.0" },
        { { "MIG-GPU-1/1/0,MIG-aa", "", "MIG-aa names" }, "" },
        { { "MIG-GPU-1/3/0", "", "MIG-GPU-1/3/0 fits no" }, "" },
        { { "MIG-GPU-9/1/0", "", "MIG-GPU-9/1/0 fits no" }, "" },
        { { "MIG-GPU-3/1/0", "", "MIG-GPU-3/1/0 fits no" }, "" },
        { { "MIG-GPU-5/1/0", "", "MIG-GPU-5/1/0 fits no" }, "" },
        { { "MIG-GPU-/1/0", "", "MIG-GPU-/1/0 fits several" }, "" },
        { { "MIG-GPU-1", "", "MIG-GPU-1 is not MIG-GPU-<" }, "" },
        { { "MIG-GPU-1/1", "", "MIG-GPU-1/1 is not" }, "" },
        { { "MIG-GPU-1/1/", "", "MIG-GPU-1/1/ is not" }, "" },
        { { "MIG-GPU-1//0", "", "MIG-GPU-1//0 is not" }, "" },
        { { "MIG-GPU-1/1/0/0", "", "MIG-GPU-1/1/0/0 is not" }, "" },
        { { "MIG-GPU-1/1/0x", "", "MIG-GPU-1/1/0x is not" }, "" },
        { { "MIG-GPU-1/-1/0", "", "MIG-GPU-1/-1/0 is not" }, "" },
        { { "MIG-GPU-1/4294967297/0", "", "MIG-GPU-1/4294967297/0 fits no" }, "" },
        { { "MIG-GPU-1/99999999999999999999/0", "", "MIG-GPU-1/9" }, "" },

        /* A GPU in MIG mode is its first MIG device. */
        { { "GPU-1", "0.0", NULL }, "0.0" },
        { { "GPU-1,MIG-aa", "", "MIG-aa names" }, "" },
        { { "GPU-3", "", "GPU-3 has no MIG device" }, "" },
        { { "GPU-4,GPU-3,GPU-5", "3", "GPU-3 has no MIG" }, "3" },
        { { "GPU-5", "4", NULL }, "4" },
        { { "GPU-4,MIG-ba", "1.0", NULL }, "3 1.0" },
        { { "MIG-ba,GPU-4", "1.0", NULL }, "1.0 3" },
    };
    static const struct {
        unsigned version;
        bool newer;
    } drivers[] = { { 450, false }, { 569, false }, { 570, true }, { 0, true } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t d = 0; d < ARRAY_LEN(drivers); d++) {
            const struct cuda_masks masks = { rows[i].row.mask, "PCI_BUS_ID",
                                              drivers[d].version };
            bool uncertain;
            size_t count = cuda(gpus, ARRAY_LEN(gpus), &masks,
                                drivers[d].newer ? rows[i].newer : rows[i].row.result,
                                rows[i].row.refused, &uncertain);

            /* Numbers are in doubt, UUIDs are not. */
            bool by_number = !rows[i].row.mask || strchr("0123", rows[i].row.mask[0]);
            assert_int_equal(uncertain, by_number && count > 0);
        }
    }
}

static const struct wm_visible_gpu radeons[] = {
    { .uuid = "GPU-babababababababa" },
    { .uuid = "GPU-abbaabbaabbaabba" },
    { .uuid = "GPU-babaabbaabbababa" },
    { .uuid = "GPU-abbabababababba0" },
};

struct amd_masks {
    const char *rocr, *hip, *cuda, *ordinal;
};

static void amd(const char *shown, const struct amd_masks *masks, const char *result,
                const char *variable, const char *refused)
{
    struct environment environment = { .count = 0 };

    set(&environment, "ROCR_VISIBLE_DEVICES", masks->rocr);
    set(&environment, "HIP_VISIBLE_DEVICES", masks->hip);
    set(&environment, "CUDA_VISIBLE_DEVICES", masks->cuda);
    if (!masks->cuda)
        set(&environment, "GPU_DEVICE_ORDINAL", masks->ordinal);
    struct wm_visible visible =
        ask(wm_visible_amd, radeons, ARRAY_LEN(radeons), &environment, 0);
    if (refused)
        assert_string_equal(visible.refused.variable, variable);
    check(shown, &visible, result, refused);
    done(&visible, &environment);
}

static void test_rocr(void **state)
{
    static const struct row rows[] = {
        { NULL, "0 1 2 3", NULL },
        { "", "", NULL },
        { "-1", "", "-1 is negative" },
        { "GPU-XX", "", "GPU-XX fits no" },
        { "0,2", "0 2", NULL },
        { "3,GPU-BABABABABABABABA,4", "3 0", "4 is past" },
        { "1,GPU-ABBAABBAABBAABBA,GPU-XX", "1", "GPU-ABBAABBAABBAABBA names" },
        { "3,GPU-BABAABBA,GPU-XX", "3 2", "GPU-XX fits no" },
        { "gpu-babab, Gpu-ABBAB ", "0 3", NULL },
        { " 1 ,\t2", "1 2", NULL },
        { "0,", "0", NULL },
        { ",0", "", " is empty" },
        { "0, ,1", "0", "  is empty" },
        { "0,1,0,2", "0 1", "0 names" },
        { "0x1,+2,-0,03", "1 2 0 3", NULL },
        { "0x", "", "0x is neither" },
        { "08", "", "08 is neither" },
        { "1a", "", "1a is neither" },
        { "1 2", "", "1 2 is neither" },
        { "x", "", "x is neither" },
        { "4", "", "4 is past" },
        { "99999999999999999999", "", "99999999999999999999 is past" },
        { "-99999999999999999999", "", "-99999999999999999999 is negative" },
        { "GPU", "", "GPU is no UUID" },
        { "GPU-", "", "GPU- is no UUID" },
        { "GPU-b", "", "GPU-b fits several" },
        { "GPU-baba", "", "GPU-baba fits several" },
        { "GPU-babababababababa0", "", "GPU-babababababababa0 is no UUID" },
        { "G0", "", "G0 is no UUID" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct amd_masks masks = { .rocr = rows[i].mask };
        amd(rows[i].mask, &masks, rows[i].result, "ROCR_VISIBLE_DEVICES", rows[i].refused);
    }
}

static void test_hip(void **state)
{
    static const struct row rows[] = {
        { NULL, "0 1 2 3", NULL },
        { "", "0 1 2 3", NULL },
        { "0", "0", NULL },
        { "2,0", "2 0", NULL },
        { "0,0,1", "0 1", NULL },
        { "0,2,-1,1", "0 2", "-1 is neither" },
        { "0,4,1", "0", "4 is past" },
        { "0,", "0", NULL },
        { ",0", "", " is empty" },
        { " 0", "", " 0 is neither" },
        { "0 ", "", "0  is neither" },
        { "+1", "", "+1 is neither" },
        { "01", "", "01 is neither" },
        { "00", "", "00 is neither" },
        { "0x1", "", "0x1 is neither" },
        { "1a", "", "1a is neither" },
        { "4294967296", "", "4294967296 is past" },
        { "99999999999999999999", "", "99999999999999999999 is past" },
        { "GPU-abbaa,GPU-babaa", "1 2", NULL },
        { "GPU-ABBAA", "", "GPU-ABBAA fits no" },
        { "GPU-XX", "", "GPU-XX fits no" },
        { "GPU-baba", "0", NULL },
        { "2,GPU-baba", "2 0", NULL },
        { "3,GPU-abba", "3 1", NULL },
        { "xGPU-baba", "", "xGPU-baba is neither" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct amd_masks hip = { .hip = rows[i].mask };
        const struct amd_masks as_cuda = { .hip = "", .cuda = rows[i].mask };

        amd(rows[i].mask, &hip, rows[i].result, "HIP_VISIBLE_DEVICES", rows[i].refused);
        amd(rows[i].mask, &as_cuda, rows[i].result, "CUDA_VISIBLE_DEVICES",
            rows[i].refused);
    }
}

static void test_rocm_masks_together(void **state)
{
    static const struct {
        const char *name;
        struct amd_masks masks;
        const char *result;
        const char *variable, *refused;
    } rows[] = {
        { "HIP counts what ROCr left", { .rocr = "3,1", .hip = "1,0" }, "1 3", NULL, NULL },
        { "and no more", { .rocr = "1,2", .hip = "2" }, "", "HIP_VISIBLE_DEVICES", "2" },
        { "nothing left", { .rocr = "", .hip = "0" }, "", "HIP_VISIBLE_DEVICES", "0" },
        { "a UUID that ROCr hides",
          { .rocr = "1,2", .hip = "GPU-babab" },
          "",
          "HIP_VISIBLE_DEVICES",
          "GPU-babab fits no" },
        { "the first that fits is ROCr's first",
          { .rocr = "2,0", .hip = "GPU-baba" },
          "2",
          NULL,
          NULL },
        { "HIP before CUDA", { .hip = "1", .cuda = "2" }, "1", NULL, NULL },
        { "two bad words: the first",
          { .rocr = "1,x", .hip = "y" },
          "",
          "ROCR_VISIBLE_DEVICES",
          "x" },
        { "not HIP's", { .ordinal = "1" }, "0 1 2 3", NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        amd(rows[i].name, &rows[i].masks, rows[i].result, rows[i].variable,
            rows[i].refused);
}

static void test_level_zero(void **state)
{
    static const struct wm_visible_gpu tiled[] = { { .tiles = 4 }, { .tiles = 4 } };
    static const struct wm_visible_gpu plain[] = { { .tiles = 1 }, { 0 }, { .tiles = 1 } };
    static const struct wm_visible_gpu both[] = { { .tiles = 2 }, { 0 } };
    static const struct {
        const struct wm_visible_gpu *gpus;
        size_t count;
        const char *hierarchy;
        struct row row;
    } rows[] = {
        { tiled, 2, "COMPOSITE", { NULL, "0 1", NULL } },
        { tiled, 2, "COMPOSITE", { "", "0 1", NULL } },
        { tiled, 2, "COMPOSITE", { "default", "0 1", NULL } },
        { tiled, 2, "COMPOSITE", { "0, 1", "0 1", NULL } },
        { tiled, 2, "COMPOSITE", { "1", "1", NULL } },
        { tiled, 2, "COMPOSITE", { "1,0", "1 0", NULL } },
        { tiled, 2, "COMPOSITE", { "0.0", "0", NULL } },
        { tiled, 2, "COMPOSITE", { "1.1, 1.2", "1", NULL } },
        { tiled, 2, "COMPOSITE", { "0.2, 1.3, 1.0, 0.3", "0 1", NULL } },
        { tiled, 2, "COMPOSITE", { "0.1,0,0.2", "0", NULL } },
        { tiled, 2, "COMPOSITE", { "0.1,1,0.1", "0 1", NULL } },
        { tiled, 2, "COMPOSITE", { "0.", "0", NULL } },
        { tiled, 2, "COMPOSITE", { "0.1.", "0", NULL } },
        { tiled, 2, "COMPOSITE", { "0.4,1.3", "1", "0.4 is past the last tile" } },
        { tiled, 2, "COMPOSITE", { "2,1", "1", "2 is past" } },
        { tiled, 2, "COMPOSITE", { "2.0", "", "2.0 is past" } },
        { tiled, 2, "COMPOSITE", { "0.1.2,1", "1", "0.1.2 is not" } },
        { tiled, 2, "COMPOSITE", { "0.x", "", "0.x is not" } },
        { tiled, 2, "COMPOSITE", { "0.-1", "", "0.-1 is past the last tile" } },
        { tiled, 2, "COMPOSITE", { ".0", "", ".0 is not a number" } },
        { tiled, 2, "COMPOSITE", { "0x1.0x2,1a.3b", "1", NULL } },

        { tiled, 2, "FLAT", { NULL, "0.0 0.1 0.2 0.3 1.0 1.1 1.2 1.3", NULL } },
        { tiled, 2, "FLAT", { "0", "0.0", NULL } },
        { tiled, 2, "FLAT", { "0, 4", "0.0 1.0", NULL } },
        { tiled, 2, "FLAT", { "7, 2, 1", "1.3 0.2 0.1", NULL } },
        { tiled, 2, "FLAT", { "8", "", "8 is past" } },
        { tiled, 2, "FLAT", { "0.0", "", "0.0 names a tile" } },
        { tiled, 2, "FLAT", { "0.0,5,x,6", "1.1 1.2", "0.0 names a tile" } },
        { tiled, 2, "COMBINED", { "0, 4", "0.0 1.0", NULL } },
        { tiled, 2, NULL, { "0, 4", "0.0 1.0", NULL } },
        { tiled, 2, "flat", { "0, 4", "0.0 1.0", NULL } },
        { both, 2, NULL, { "2,1", "1 0.1", NULL } },
        { both, 2, "COMPOSITE", { "0.1,1.0", "0 1", NULL } },

        { plain, 3, NULL, { NULL, "0 1 2", NULL } },
        { plain, 3, NULL, { "2,0", "2 0", NULL } },
        { plain, 3, NULL, { "0.0,2.0", "0 2", NULL } },
        { plain, 3, NULL, { "0.1", "", "0.1 is past the last tile" } },
        { plain, 3, "FLAT", { "1", "1", NULL } },
        { plain, 3, "FLAT", { "0.0,1", "1", "0.0 names a tile" } },
        { plain, 3, "COMBINED", { "0.0,1", "1", "0.0 names a tile" } },
        { plain, 3, NULL, { "0,,1", "0 1", " is empty" } },
        { plain, 3, NULL, { "1,", "1", NULL } },
        { plain, 3, NULL, { ",", "", " is empty" } },
        { plain, 3, NULL, { "x,-1,1", "1", "x is not a number" } },
        { plain, 3, NULL, { "-1", "", "-1 is past" } },
        { plain, 3, NULL, { "99999999999999999999,0", "0", "99999999999999999999" } },
        { plain, 3, NULL, { " 1", "1", NULL } },
        { plain, 3, NULL, { "Default", "", "Default is not a number" } },
        { NULL, 0, NULL, { NULL, "", NULL } },
        { NULL, 0, "FLAT", { "0", "", "0 is past" } },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct environment environment = { .count = 0 };
        set(&environment, "ZE_AFFINITY_MASK", rows[i].row.mask);
        set(&environment, "ZE_FLAT_DEVICE_HIERARCHY", rows[i].hierarchy);
        struct wm_visible visible =
            ask(wm_visible_intel, rows[i].gpus, rows[i].count, &environment, 0);
        if (visible.refused.text)
            assert_string_equal(visible.refused.variable, "ZE_AFFINITY_MASK");
        check(rows[i].row.mask, &visible, rows[i].row.result, rows[i].row.refused);
        done(&visible, &environment);
    }
}

/* One mask for all: what the hostile texts below have in common. */
static void check_hostile(const char *name, const char *mask, const char *cuda_result,
                          const char *rocr_result, const char *level_zero_result)
{
    const struct {
        const char *variable;
        void (*rules)(struct wm_visible *);
        const char *result;
    } rows[] = { { "CUDA_VISIBLE_DEVICES", wm_visible_cuda, cuda_result },
                 { "ROCR_VISIBLE_DEVICES", wm_visible_amd, rocr_result },
                 { "ZE_AFFINITY_MASK", wm_visible_intel, level_zero_result } };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct environment environment = { .count = 0 };
        char text[64];

        print_message("  %s: %s\n", rows[i].variable, name);
        set(&environment, rows[i].variable, mask);
        struct wm_visible visible =
            ask(rows[i].rules, alike, ARRAY_LEN(alike), &environment, 0);
        const char *copy = environment.entries[0];
        describe(text, sizeof(text), visible.devices, visible.count);
        assert_string_equal(text, rows[i].result);
        assert_non_null(visible.refused.text);
        assert_true(visible.refused.text >= copy);
        assert_true(visible.refused.text + visible.refused.length <= copy + strlen(copy));
        done(&visible, &environment);
    }
}

static void test_hostile(void **state)
{
    enum { SIZE = 4096 };
    char *mask = malloc(SIZE + 1);
    (void)state;

    assert_non_null(mask);
    mask[SIZE] = '\0';
    memset(mask, ',', SIZE);
    check_hostile("only commas", mask, "", "", "");
    memset(mask, '9', SIZE);
    check_hostile("a long number", mask, "", "", "");
    memset(mask, ' ', SIZE);
    check_hostile("only blanks", mask, "", "", "");
    memset(mask, '-', SIZE);
    check_hostile("only signs", mask, "", "", "");
    memset(mask, '.', SIZE);
    check_hostile("only dots", mask, "", "", "");
    memset(mask, '/', SIZE);
    memcpy(mask, "MIG-GPU-", 8);
    check_hostile("only slashes", mask, "", "", "");
    memset(mask, 'a', SIZE);
    memcpy(mask, "GPU-", 4);
    check_hostile("a long UUID", mask, "", "", "");
    memset(mask, '0', SIZE);
    memcpy(mask, "3,", 2);
    memcpy(mask + SIZE - 2, ",x", 2);
    check_hostile("a long zero", mask, "3 0", "3 0", "3 0");
    for (int i = 0; i < SIZE; i++)
        mask[i] = (char)(1 + i % 255);
    check_hostile("every byte", mask, "", "", "");
    for (int i = 0; i < SIZE; i++)
        mask[i] = (char)(255 - i % 255);
    check_hostile("every byte, backwards", mask, "", "", "");
    free(mask);
}

static void test_many(void **state)
{
    enum { MANY = 300 };
    static struct wm_visible_gpu gpus[MANY];
    char mask[8 * MANY];
    struct environment environment = { .count = 0 };
    size_t length = 0;

    (void)state;
    for (int i = MANY - 1; i >= 0; i--)
        length += (size_t)snprintf(mask + length, sizeof(mask) - length, "%d,", i);
    set(&environment, "CUDA_VISIBLE_DEVICES", mask);
    set(&environment, "ZE_AFFINITY_MASK", mask);
    for (int k = 0; k < 2; k++) {
        struct wm_visible visible =
            ask(k ? wm_visible_intel : wm_visible_cuda, gpus, MANY, &environment, 0);
        assert_int_equal(visible.count, MANY);
        for (size_t i = 0; i < MANY; i++)
            assert_int_equal(visible.devices[i].gpu, MANY - 1 - i);
        free(visible.devices);
    }
    for (size_t i = 0; i < environment.count; i++)
        free(environment.entries[i]);
}

UNIT(gpu_visible)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda),
        cmocka_unit_test(test_cuda_uuids),
        cmocka_unit_test(test_cuda_few),
        cmocka_unit_test(test_cuda_order),
        cmocka_unit_test(test_cuda_numbers),
        cmocka_unit_test(test_cuda_mig),
        cmocka_unit_test(test_rocr),
        cmocka_unit_test(test_hip),
        cmocka_unit_test(test_rocm_masks_together),
        cmocka_unit_test(test_level_zero),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
