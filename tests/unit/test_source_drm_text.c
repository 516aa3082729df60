/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_drm_text.c - what graphics drivers write, and what they should
 * never write. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "source/gpu/drm/source_drm_gpu_metrics.h"
#include "source/gpu/source_drm_text.h"

static void test_number(void **state)
{
    static const struct {
        const char *text;
        int status;
        int64_t value;
    } cases[] = {
        { "0\n", WM_OK, 0 },
        { "112500000\n", WM_OK, 112500000 },
        { "42", WM_OK, 42 },
        { "-5000\n", WM_OK, -5000 },
        { "9223372036854775807\n", WM_OK, INT64_MAX },
        { "-9223372036854775808\n", WM_OK, INT64_MIN },
        { "", WM_EFORMAT, 0 },
        { "\n", WM_EFORMAT, 0 },
        { "-\n", WM_EFORMAT, 0 },
        { "+5\n", WM_EFORMAT, 0 },
        { " 5\n", WM_EFORMAT, 0 },
        { "5 \n", WM_EFORMAT, 0 },
        { "5\n\n", WM_EFORMAT, 0 },
        { "5\n6\n", WM_EFORMAT, 0 },
        { "5 W\n", WM_EFORMAT, 0 },
        { "5.5\n", WM_EFORMAT, 0 },
        { "0x5\n", WM_EFORMAT, 0 },
        { "1e3\n", WM_EFORMAT, 0 },
        { "[N/A]\n", WM_EFORMAT, 0 },
        { "9223372036854775808\n", WM_EFORMAT, 0 },
        { "-9223372036854775809\n", WM_EFORMAT, 0 },
        { "99999999999999999999\n", WM_EFORMAT, 0 },
        { "\xff\xfe\n", WM_EFORMAT, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t value = 77;

        print_message("  %zu\n", i);
        assert_int_equal(wm_parse_sysfs_number(cases[i].text, &value), cases[i].status);
        assert_true(value == (cases[i].status == WM_OK ? cases[i].value : 77));
    }
}

static void test_uevent(void **state)
{
    static const struct {
        const char *what, *text;
        int status;
        const char *driver, *slot;
        bool has_ids;
        unsigned vendor, device;
    } cases[] = {
        { "a card",
          "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SUBSYS_ID=1EAE:7901\n"
          "PCI_SLOT_NAME=0000:03:00.0\nMODALIAS=pci:v00001002d0000744Csv\n",
          WM_OK, "amdgpu", "0000:03:00.0", true, 0x1002, 0x744c },
        { "small letters and few digits", "PCI_ID=a:bc\n", WM_OK, "", "", true, 0xa, 0xbc },
        { "not on PCI", "DRIVER=panfrost\nOF_NAME=gpu\n", WM_OK, "panfrost", "", false, 0,
          0 },
        { "no driver", "PCI_SLOT_NAME=0000:00:02.0\n", WM_OK, "", "0000:00:02.0", false, 0,
          0 },
        { "empty values", "DRIVER=\nPCI_SLOT_NAME=\nPCI_ID=\n", WM_OK, "", "", false, 0,
          0 },
        { "keys that only begin alike", "DRIVERS=xe\nPCI_SLOT=1\nPCI_IDS=1:2\nADRIVER=xe\n",
          WM_OK, "", "", false, 0, 0 },
        { "a driver longer than any",
          "DRIVER=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", WM_OK, "",
          "", false, 0, 0 },
        { "a driver with a blank", "DRIVER=amd gpu\n", WM_OK, "", "", false, 0, 0 },
        { "a driver of other bytes", "DRIVER=\xc3\xa4\x01\n", WM_OK, "", "", false, 0, 0 },
        { "ids that are too long", "PCI_ID=11002:744C\n", WM_OK, "", "", false, 0, 0 },
        { "ids with a tail", "PCI_ID=1002:744Cx\n", WM_OK, "", "", false, 0, 0 },
        { "half of the ids", "PCI_ID=1002:\n", WM_OK, "", "", false, 0, 0 },
        { "ids that are no numbers", "PCI_ID=zz:yy\n", WM_OK, "", "", false, 0, 0 },
        { "ids, and once more not", "PCI_ID=1:2\nPCI_ID=3:4:5\n", WM_OK, "", "", true, 1,
          2 },
        { "cut off in the last line", "DRIVER=xe\nPCI_SLOT_NAME=0000:0", WM_OK, "xe", "",
          false, 0, 0 },
        { "empty", "", WM_EFORMAT, NULL, NULL, false, 0, 0 },
        { "one unfinished line", "DRIVER=xe", WM_EFORMAT, NULL, NULL, false, 0, 0 },
        { "another file", "nothing of the kind\n\n", WM_EFORMAT, NULL, NULL, false, 0, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_drm_uevent uevent;

        print_message("  %s\n", cases[i].what);
        memset(&uevent, 0x55, sizeof(uevent));
        assert_int_equal(wm_parse_drm_uevent(cases[i].text, &uevent), cases[i].status);
        if (cases[i].status != WM_OK) {
            assert_int_equal(uevent.driver[0], 0x55);
            continue;
        }
        assert_string_equal(uevent.driver, cases[i].driver);
        assert_string_equal(uevent.slot, cases[i].slot);
        assert_int_equal(uevent.has_ids, cases[i].has_ids);
        assert_int_equal(uevent.vendor, cases[i].vendor);
        assert_int_equal(uevent.device, cases[i].device);
    }
}

static void test_uevent_of_pci(void **state)
{
    static const struct {
        const char *what, *text;
        unsigned class, sub_vendor, sub_device;
    } cases[] = {
        { "a bridge", "PCI_CLASS=60400\nPCI_ID=8086:4FA0\n", 0x60400, 0, 0 },
        { "a board", "PCI_CLASS=30000\nPCI_SUBSYS_ID=1EAE:7901\n", 0x30000, 0x1eae,
          0x7901 },
        { "too long", "PCI_CLASS=1060400\nPCI_SUBSYS_ID=11EAE:7901\n", 0, 0, 0 },
        { "with a tail", "PCI_CLASS=60400x\nPCI_SUBSYS_ID=1EAE:7901:1\n", 0, 0, 0 },
        { "empty", "PCI_CLASS=\nPCI_SUBSYS_ID=\n", 0, 0, 0 },
        { "negative", "PCI_CLASS=-1\nPCI_SUBSYS_ID=-1:-1\n", 0, 0, 0 },
        { "cut off", "DRIVER=xe\nPCI_CLASS=604", 0, 0, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_drm_uevent uevent;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_drm_uevent(cases[i].text, &uevent), WM_OK);
        assert_int_equal(uevent.class, cases[i].class);
        assert_int_equal(uevent.sub_vendor, cases[i].sub_vendor);
        assert_int_equal(uevent.sub_device, cases[i].sub_device);
    }
}

#define DRM "drm-driver:\tamdgpu\n"
#define NONE UINT64_C(0x5eed5eed) /* not told; no case has it as its value */

static void test_memory(void **state)
{
    static const struct {
        const char *what, *text;
        uint64_t bytes[WM_DRM_MEMORY_COUNT];
    } cases[] = {
        { "bytes, KiB and MiB",
          DRM "drm-resident-vram:\t1048576\ndrm-resident-gtt:\t192 KiB\n"
              "drm-resident-system:\t3 MiB\n",
          { 1048576, 192 << 10, 3 << 20 } },
        { "the old key of amdgpu, with its odd blanks",
          DRM "drm-memory-vram:\t1984704 KiB\ndrm-memory-gtt: \t252368 KiB\n"
              "drm-memory-cpu: \t7 KiB\n",
          { 1984704ull << 10, 252368ull << 10, NONE } },
        { "resident before total and the old key, in any order",
          DRM "drm-total-vram:\t9 MiB\ndrm-memory-vram:\t8 MiB\ndrm-resident-vram:\t1 MiB\n"
              "drm-resident-gtt:\t2 MiB\ndrm-memory-gtt:\t8 MiB\ndrm-total-gtt:\t9 MiB\n",
          { 1 << 20, 2 << 20, NONE } },
        { "the old key before total",
          DRM "drm-total-vram:\t9 MiB\ndrm-memory-vram:\t8 MiB\n",
          { 8 << 20, NONE, NONE } },
        { "nothing but total",
          DRM "drm-total-memory:\t290 MiB\n",
          { NONE, NONE, 290 << 20 } },
        { "shared, active and purgeable are no more memory",
          DRM
          "drm-resident-vram:\t1 KiB\ndrm-shared-vram:\t1 KiB\n"
          "drm-active-vram:\t1 KiB\ndrm-purgeable-vram:\t1 KiB\namd-evicted-vram:\t1 KiB\n",
          { 1024, NONE, NONE } },
        { "two tiles",
          DRM "drm-resident-vram0:\t1 KiB\ndrm-resident-vram1:\t2 KiB\n",
          { 3 << 10, NONE, NONE } },
        { "i915 with memory of its own",
          DRM "drm-resident-system0:\t2 KiB\ndrm-resident-local0:\t512 MiB\n"
              "drm-resident-stolen-local0:\t8 MiB\n",
          { 512 << 20, NONE, (8 << 20) + 2048 } },
        { "i915 in a processor that calls stolen memory local",
          DRM "drm-resident-system0:\t4 KiB\ndrm-resident-stolen-local0:\t1 KiB\n",
          { NONE, NONE, 5 << 10 } },
        { "nothing in use is not nothing told",
          DRM "drm-resident-vram:\t0\n",
          { 0, NONE, NONE } },
        { "regions of another kind",
          DRM "drm-resident-gds:\t4\ndrm-resident-doorbell:\t8\ndrm-memory-:\t8\n",
          { NONE, NONE, NONE } },
        { "values that are none",
          DRM "drm-resident-vram:\t-1\ndrm-resident-vram:\t\ndrm-resident-vram:\t1.5 KiB\n"
              "drm-resident-vram:\tx\ndrm-resident-vram:\t0x10\n",
          { NONE, NONE, NONE } },
        { "units that are none",
          DRM "drm-resident-vram:\t1 GiB\ndrm-resident-vram:\t1 kB\n"
              "drm-resident-vram:\t1 KiB more\ndrm-resident-vram:\t1 KiBs\n",
          { NONE, NONE, NONE } },
        { "more than 64 bits",
          DRM "drm-resident-vram:\t18446744073709551616\n"
              "drm-resident-gtt:\t18446744073709551615 KiB\n",
          { NONE, NONE, NONE } },
        { "a sum of more than 64 bits stays where it is",
          DRM "drm-resident-vram0:\t18446744073709551614\ndrm-resident-vram1:\t9\n",
          { UINT64_MAX, NONE, NONE } },
        { "cut off within the number",
          DRM "drm-resident-gtt:\t1 KiB\ndrm-resident-vram:\t19",
          { NONE, 1024, NONE } },
        { "no colon, no value, no key",
          DRM "drm-resident-vram 5\ndrm-resident-vram:\n:5\n:\n",
          { NONE, NONE, NONE } },
        { "a name longer than any",
          DRM "drm-resident-vramaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:\t5\n",
          { NONE, NONE, NONE } },
        { "a name with a blank", DRM "drm-resident-vr am:\t5\n", { NONE, NONE, NONE } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_drm_fdinfo fdinfo;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_drm_fdinfo(cases[i].text, &fdinfo), WM_OK);
        for (size_t k = 0; k < WM_DRM_MEMORY_COUNT; k++) {
            bool told = cases[i].bytes[k] != NONE;
            assert_int_equal(fdinfo.has_memory[k], told);
            assert_true(fdinfo.memory_bytes[k] == (told ? cases[i].bytes[k] : 0));
        }
    }
}

static void test_engines(void **state)
{
    static const struct {
        const char *what, *text;
        struct wm_drm_engine engines[3];
        bool otherwise;
    } cases[] = {
        { "nanoseconds and capacity",
          DRM "drm-engine-render:\t346249 ns\ndrm-engine-capacity-video:\t2\n"
              "drm-engine-video:\t0 ns\n",
          { { "render", WM_DRM_BUSY_NS, 346249, 0, 0, 1 },
            { "video", WM_DRM_BUSY_NS, 0, 0, 0, 2 } },
          false },
        { "cycles of xe",
          DRM "drm-cycles-rcs:\t28257900\ndrm-total-cycles-rcs:\t7655183225\n"
              "drm-total-cycles-ccs:\t7655183225\ndrm-engine-capacity-ccs:\t4\n",
          { { "rcs", WM_DRM_CYCLES | WM_DRM_TOTAL_CYCLES, 0, 28257900, 7655183225, 1 },
            { "ccs", WM_DRM_TOTAL_CYCLES, 0, 0, 7655183225, 4 } },
          false },
        { "both, of panfrost",
          DRM "drm-engine-fragment:\t1846584880 ns\ndrm-cycles-fragment:\t1424359409\n"
              "drm-maxfreq-fragment:\t799999987 Hz\ndrm-curfreq-fragment:\t799999987 Hz\n",
          { { "fragment", WM_DRM_BUSY_NS | WM_DRM_CYCLES, 1846584880, 1424359409, 0, 1 } },
          false },
        { "a name with a hyphen",
          DRM "drm-engine-video-enhance:\t7 ns\n",
          { { "video-enhance", WM_DRM_BUSY_NS, 7, 0, 0, 1 } },
          false },
        { "the largest number",
          DRM "drm-engine-gfx:\t18446744073709551615 ns\n",
          { { "gfx", WM_DRM_BUSY_NS, UINT64_MAX, 0, 0, 1 } },
          false },
        { "the last of two values",
          DRM "drm-engine-gfx:\t1 ns\ndrm-engine-gfx:\t2 ns\n",
          { { "gfx", WM_DRM_BUSY_NS, 2, 0, 0, 1 } },
          false },
        { "percent, as old amdgpu wrote",
          DRM "drm-engine-gfx0:\t12.50 %\n",
          { { .name = "" } },
          true },
        { "another unit, and none",
          DRM "drm-engine-gfx:\t5 us\ndrm-engine-gfx:\t5\n",
          { { .name = "" } },
          true },
        { "a unit for cycles", DRM "drm-cycles-rcs:\t5 ns\n", { { .name = "" } }, false },
        { "no engines of a kind",
          DRM "drm-engine-capacity-video:\t0\n",
          { { .name = "" } },
          false },
        { "negative and too large",
          DRM "drm-engine-gfx:\t-5 ns\ndrm-engine-gfx:\t18446744073709551616 ns\n",
          { { .name = "" } },
          true },
        { "no name",
          DRM "drm-engine-:\t5 ns\ndrm-cycles-:\t5\n",
          { { .name = "" } },
          false },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_drm_fdinfo fdinfo;
        size_t count = 0;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(wm_parse_drm_fdinfo(cases[i].text, &fdinfo), WM_OK);
        for (; count < 3 && cases[i].engines[count].name[0]; count++) {
            const struct wm_drm_engine *engine = &fdinfo.engines[count];
            const struct wm_drm_engine *expected = &cases[i].engines[count];
            assert_string_equal(engine->name, expected->name);
            assert_int_equal(engine->present, expected->present);
            assert_true(engine->busy_ns == expected->busy_ns);
            assert_true(engine->cycles == expected->cycles);
            assert_true(engine->total_cycles == expected->total_cycles);
            assert_true(engine->capacity == expected->capacity);
        }
        assert_int_equal(fdinfo.engine_count, count);
        assert_int_equal(fdinfo.counts_otherwise, cases[i].otherwise);
    }
}

static void test_client(void **state)
{
    static const struct {
        const char *what, *text;
        int status;
        const char *driver, *slot;
        bool has_client;
        uint64_t client;
    } cases[] = {
        { "what the kernel writes",
          "pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t614\ndrm-driver:\ti915\n"
          "drm-client-id:\t39\ndrm-pdev:\t0000:00:02.0\ndrm-client-name:\ta b c\n",
          WM_OK, "i915", "0000:00:02.0", true, 39 },
        { "blanks in the place of a tab", "drm-driver:  xe\ndrm-client-id: 7\n", WM_OK,
          "xe", "", true, 7 },
        { "not on PCI", "drm-driver:\tpanfrost\ndrm-client-id:\t14\n", WM_OK, "panfrost",
          "", true, 14 },
        { "no client", "drm-driver:\tv3d\n", WM_OK, "v3d", "", false, 0 },
        { "a client that is none", DRM "drm-client-id:\t-1\n", WM_OK, "amdgpu", "", false,
          0 },
        { "a client, and once more not", DRM "drm-client-id:\t5\ndrm-client-id:\t6x\n",
          WM_OK, "amdgpu", "", true, 5 },
        { "a client too large", DRM "drm-client-id:\t18446744073709551616\n", WM_OK,
          "amdgpu", "", false, 0 },
        { "a place with blanks", DRM "drm-pdev:\t0000 03\n", WM_OK, "amdgpu", "", false,
          0 },
        { "another file", "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1234\n", WM_ENOENT, NULL,
          NULL, false, 0 },
        { "empty", "", WM_ENOENT, NULL, NULL, false, 0 },
        { "an empty driver", "drm-driver:\t\ndrm-client-id:\t4\n", WM_ENOENT, NULL, NULL,
          false, 0 },
        { "a driver longer than any",
          "drm-driver:\taaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", WM_ENOENT, NULL,
          NULL, false, 0 },
        { "the longest driver", "drm-driver:\taaaaaaaaaabbbbbbbbbbccccccccccd\n", WM_OK,
          "aaaaaaaaaabbbbbbbbbbccccccccccd", "", false, 0 },
        { "a driver longer by one", "drm-driver:\taaaaaaaaaabbbbbbbbbbccccccccccdd\n",
          WM_ENOENT, NULL, NULL, false, 0 },
        { "a driver cut off", "drm-driver:\tamdg", WM_ENOENT, NULL, NULL, false, 0 },
        { "the key within another", "xdrm-driver:\txe\n", WM_ENOENT, NULL, NULL, false, 0 },
        { "no driver", "drm-client-id:\t4\ndrm-resident-vram:\t5\n", WM_ENOENT, NULL, NULL,
          false, 0 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_drm_fdinfo fdinfo;

        print_message("  %s\n", cases[i].what);
        memset(&fdinfo, 0x55, sizeof(fdinfo));
        assert_int_equal(wm_parse_drm_fdinfo(cases[i].text, &fdinfo), cases[i].status);
        if (cases[i].status != WM_OK) {
            assert_int_equal(fdinfo.driver[0], 0x55);
            continue;
        }
        assert_string_equal(fdinfo.driver, cases[i].driver);
        assert_string_equal(fdinfo.slot, cases[i].slot);
        assert_int_equal(fdinfo.has_client, cases[i].has_client);
        assert_true(fdinfo.client == cases[i].client);
    }
}

/* More kinds of engines than there is room for: the first come, and nothing else breaks. */
static void test_too_many(void **state)
{
    char text[16384] = DRM "drm-client-id:\t5\n";
    struct wm_drm_fdinfo fdinfo;
    size_t length = strlen(text);
    (void)state;

    for (int i = 0; i < 40; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length,
                                   "drm-engine-e%d:\t%d ns\ndrm-resident-vram%d:\t1\n"
                                   "drm-resident-other%d:\t1\n",
                                   i, i, i, i);
    assert_int_equal(wm_parse_drm_fdinfo(text, &fdinfo), WM_OK);
    assert_int_equal(fdinfo.engine_count, WM_DRM_ENGINES);
    assert_string_equal(fdinfo.engines[WM_DRM_ENGINES - 1].name, "e15");
    assert_true(fdinfo.memory_bytes[WM_DRM_LOCAL] == 40);
    assert_true(fdinfo.client == 5);
}

/* Bytes of a gpu_metrics file: a header, ones, and a few fields. */
struct table {
    unsigned size, format, content;
    struct {
        unsigned offset, width;
        uint64_t value;
    } fields[6];
};

static size_t make_table(const struct table *table, unsigned char *bytes)
{
    uint16_t size = (uint16_t)table->size;

    memset(bytes, 0xff, WM_GPU_METRICS_SIZE);
    memcpy(bytes, &size, sizeof(size));
    bytes[2] = (unsigned char)table->format;
    bytes[3] = (unsigned char)table->content;
    for (size_t i = 0; i < ARRAY_LEN(table->fields); i++)
        memcpy(bytes + table->fields[i].offset, &table->fields[i].value,
               table->fields[i].width);
    return table->size;
}

/* What gpu_metrics should say; what is not `present` is 0. */
struct said {
    bool integrated;
    unsigned present;
    double energy, power, utilization, temperature, memory_temperature;
    uint64_t throttle;
};

enum {
    HAS_ENERGY = 1 << WM_DRM_ENERGY,
    HAS_POWER = 1 << WM_DRM_POWER,
    HAS_UTILIZATION = 1 << WM_DRM_UTILIZATION,
    HAS_TEMPERATURE = 1 << WM_DRM_TEMPERATURE,
    HAS_MEMORY_TEMPERATURE = 1 << WM_DRM_MEMORY_TEMPERATURE,
    HAS_THROTTLE = 1 << WM_DRM_METRICS,
};

static unsigned present_in(const struct wm_gpu_metrics *metrics)
{
    unsigned present = metrics->has_throttle ? HAS_THROTTLE : 0;

    for (size_t i = 0; i < WM_DRM_METRICS; i++)
        present |= metrics->has[i] ? 1U << i : 0;
    return present;
}

#define ALL_1 (HAS_POWER | HAS_UTILIZATION | HAS_TEMPERATURE | HAS_MEMORY_TEMPERATURE)

static void test_gpu_metrics(void **state)
{
    static const struct {
        const char *what;
        struct table table;
        struct said expected;
    } cases[] = {
        { "1.0, whose energy has no known unit",
          { 80,
            1,
            0,
            { { 16, 2, 54 },
              { 20, 2, 70 },
              { 28, 2, 37 },
              { 34, 2, 112 },
              { 36, 4, 5000 } } },
          { false, ALL_1, 0, 112, 0.37, 54, 70, 0 } },
        { "1.1, likewise",
          { 96,
            1,
            1,
            { { 4, 2, 54 },
              { 8, 2, 70 },
              { 16, 2, 37 },
              { 22, 2, 112 },
              { 24, 8, 5000 } } },
          { false, ALL_1, 0, 112, 0.37, 54, 70, 0 } },
        { "1.2 without the firmware's time stamp",
          { 104,
            1,
            2,
            { { 4, 2, 54 },
              { 8, 2, 70 },
              { 16, 2, 37 },
              { 22, 2, 112 },
              { 24, 8, 65536 } } },
          { false, ALL_1, 0, 112, 0.37, 54, 70, 0 } },
        { "1.2 with it",
          { 104,
            1,
            2,
            { { 4, 2, 54 },
              { 8, 2, 70 },
              { 16, 2, 37 },
              { 22, 2, 112 },
              { 24, 8, 65536 },
              { 96, 8, 1 } } },
          { false, ALL_1 | HAS_ENERGY, 1, 112, 0.37, 54, 70, 0 } },
        { "1.3, more than 32 bits of energy",
          { 120,
            1,
            3,
            { { 4, 2, 45 },
              { 8, 2, 49 },
              { 16, 2, 88 },
              { 22, 2, 237 },
              { 24, 8, 3435973836800 },
              { 96, 8, 98765432100 } } },
          { false, ALL_1 | HAS_ENERGY, 52428800, 237, 0.88, 45, 49, 0 } },
        { "1.3, an energy marked as invalid",
          { 120,
            1,
            3,
            { { 4, 2, 45 },
              { 8, 2, 49 },
              { 16, 2, 0 },
              { 22, 2, 237 },
              { 24, 8, UINT32_MAX },
              { 96, 8, 1 } } },
          { false, ALL_1, 0, 237, 0, 45, 49, 0 } },
        { "1.3, a counter that never counted",
          { 120,
            1,
            3,
            { { 4, 2, 45 },
              { 8, 2, 49 },
              { 16, 2, 0 },
              { 22, 2, 237 },
              { 24, 8, 0 },
              { 96, 8, 1 } } },
          { false, ALL_1, 0, 237, 0, 45, 49, 0 } },
        { "1.3, only the hottest spot",
          { 120, 1, 3, { { 6, 2, 61 } } },
          { false, HAS_TEMPERATURE, 0, 0, 0, 61, 0, 0 } },
        { "1.3, nothing but ones", { 120, 1, 3, { { 0 } } }, { 0 } },
        { "1.3, held back by two of its limits",
          { 120, 1, 3, { { 112, 8, 1 | UINT64_C(1) << 36 } } },
          { .present = HAS_THROTTLE, .throttle = 1 | UINT64_C(1) << 36 } },
        { "1.3, held back by nothing",
          { 120, 1, 3, { { 112, 8, 0 } } },
          { .present = HAS_THROTTLE } },
        { "1.4",
          { 288,
            1,
            4,
            { { 4, 2, 61 },
              { 6, 2, 49 },
              { 10, 2, 750 },
              { 12, 2, 100 },
              { 24, 8, 131072 } } },
          { false, ALL_1 | HAS_ENERGY, 2, 750, 1, 61, 49, 0 } },
        { "1.5",
          { 360,
            1,
            5,
            { { 4, 2, 61 },
              { 6, 2, 49 },
              { 10, 2, 750 },
              { 12, 2, 100 },
              { 88, 8, 131072 } } },
          { false, ALL_1 | HAS_ENERGY, 2, 750, 1, 61, 49, 0 } },
        { "1.6, the short form",
          { 312, 1, 6, { { 10, 2, 750 }, { 16, 8, 131072 } } },
          { false, HAS_POWER | HAS_ENERGY, 2, 750, 0, 0, 0, 0 } },
        { "1.6, the long form",
          { 1664, 1, 6, { { 10, 2, 750 }, { 16, 8, 131072 } } },
          { false, HAS_POWER | HAS_ENERGY, 2, 750, 0, 0, 0, 0 } },
        { "1.7",
          { 2208, 1, 7, { { 10, 2, 750 }, { 24, 8, 131072 } } },
          { false, HAS_POWER | HAS_ENERGY, 2, 750, 0, 0, 0, 0 } },
        { "1.8",
          { 3872, 1, 8, { { 10, 2, 750 }, { 24, 8, 131072 } } },
          { false, HAS_POWER | HAS_ENERGY, 2, 750, 0, 0, 0, 0 } },
        { "2.0, without units",
          { 120, 2, 0, { { 16, 2, 4800 }, { 40, 2, 23 }, { 44, 2, 14000 } } },
          { .integrated = true } },
        { "2.1",
          { 120, 2, 1, { { 4, 2, 4800 }, { 40, 2, 14000 } } },
          { .integrated = true } },
        { "2.2",
          { 128, 2, 2, { { 4, 2, 4800 }, { 40, 2, 14000 } } },
          { .integrated = true } },
        { "2.3",
          { 152, 2, 3, { { 4, 2, 4800 }, { 40, 2, 14000 } } },
          { .integrated = true } },
        { "2.4, with units",
          { 168, 2, 4, { { 4, 2, 4825 }, { 28, 2, 2350 }, { 40, 2, 14250 } } },
          { true, HAS_POWER | HAS_UTILIZATION | HAS_TEMPERATURE, 0, 14.25, 0.235, 48.25, 0,
            0 } },
        { "2.2, held back",
          { 128, 2, 2, { { 120, 8, 1 << 5 } } },
          { .integrated = true, .present = HAS_THROTTLE, .throttle = 1 << 5 } },
        { "2.3, held back",
          { 152, 2, 3, { { 120, 8, 1 << 5 } } },
          { .integrated = true, .present = HAS_THROTTLE, .throttle = 1 << 5 } },
        { "2.4, held back",
          { 168, 2, 4, { { 120, 8, 1 << 5 } } },
          { .integrated = true, .present = HAS_THROTTLE, .throttle = 1 << 5 } },
        { "3.0, a power of more than 16 bits",
          { 264, 3, 0, { { 4, 2, 4825 }, { 42, 2, 23 }, { 112, 4, 119750 } } },
          { true, HAS_POWER, 0, 119.75, 0, 0, 0, 0 } },
        { "3.0, no power", { 264, 3, 0, { { 42, 2, 23 } } }, { .integrated = true } },
    };
    unsigned char bytes[WM_GPU_METRICS_SIZE];
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct said *expected = &cases[i].expected;
        struct wm_gpu_metrics metrics;

        print_message("  %s\n", cases[i].what);
        size_t size = make_table(&cases[i].table, bytes);
        assert_int_equal(wm_parse_gpu_metrics(bytes, size, &metrics), WM_OK);
        assert_int_equal(metrics.integrated, expected->integrated);
        assert_int_equal(present_in(&metrics), expected->present);
        const double values[WM_DRM_METRICS] = {
            [WM_DRM_ENERGY] = expected->energy,
            [WM_DRM_POWER] = expected->power,
            [WM_DRM_UTILIZATION] = expected->utilization,
            [WM_DRM_TEMPERATURE] = expected->temperature,
            [WM_DRM_MEMORY_TEMPERATURE] = expected->memory_temperature,
        };
        for (size_t k = 0; k < WM_DRM_METRICS; k++)
            assert_true(fabs(metrics.values[k] - values[k]) < 1e-9);
        assert_true(metrics.throttle == expected->throttle);

        /* One byte more or less, in the file or in what it says of itself. */
        memset(&metrics, 0x55, sizeof(metrics));
        const struct wm_gpu_metrics untouched = metrics;
        assert_int_equal(wm_parse_gpu_metrics(bytes, size - 1, &metrics), WM_EFORMAT);
        assert_int_equal(wm_parse_gpu_metrics(bytes, size + 1, &metrics), WM_EFORMAT);
        bytes[0]++;
        assert_int_equal(wm_parse_gpu_metrics(bytes, size, &metrics), WM_EFORMAT);
        assert_int_equal(wm_parse_gpu_metrics(bytes, size + 1, &metrics), WM_EFORMAT);
        assert_memory_equal(&metrics, &untouched, sizeof(metrics));
    }
}

static void test_gpu_metrics_unknown(void **state)
{
    static const struct table cases[] = {
        { 120, 0, 0, { { 0 } } },     { 120, 1, 9, { { 0 } } }, { 80, 1, 3, { { 0 } } },
        { 120, 1, 4, { { 0 } } },     { 96, 1, 0, { { 0 } } },  { 168, 2, 5, { { 0 } } },
        { 256, 3, 0, { { 0 } } },     { 264, 3, 1, { { 0 } } }, { 120, 4, 0, { { 0 } } },
        { 120, 255, 255, { { 0 } } }, { 4, 1, 3, { { 0 } } },
    };
    unsigned char bytes[WM_GPU_METRICS_SIZE];
    struct wm_gpu_metrics metrics;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %u.%u of %u bytes\n", cases[i].format, cases[i].content,
                      cases[i].size);
        size_t size = make_table(&cases[i], bytes);
        assert_int_equal(wm_parse_gpu_metrics(bytes, size, &metrics), WM_EFORMAT);
    }
    for (size_t size = 0; size < 4; size++)
        assert_int_equal(wm_parse_gpu_metrics(bytes, size, &metrics), WM_EFORMAT);
}

UNIT(source_drm_text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number),
        cmocka_unit_test(test_uevent),
        cmocka_unit_test(test_uevent_of_pci),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_engines),
        cmocka_unit_test(test_client),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_gpu_metrics),
        cmocka_unit_test(test_gpu_metrics_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
