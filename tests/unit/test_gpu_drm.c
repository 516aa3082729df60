/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_drm.c - what GPUs of AMD and Intel say of themselves: whole machines, and
 * each file of them broken in turn. Who uses them is in test_gpu_drm_users.c. */
#include "test_gpu_drm_machines.h"

#include <errno.h>
#include <sys/stat.h>

static void test_machines(void **state)
{
    for (size_t m = 0; m < ARRAY_LEN(machines); m++) {
        static struct answers answers;
        bool seen[WM_GPU_FIELDS] = { [WM_GPU_INDEX] = true };
        char dir[300];
        struct gpu gpu;

        print_message("  %s\n", machines[m].name);
        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, m);
        assert_int_equal(mkdir(dir, 0755), 0);
        make_machine(dir, &machines[m]);
        open_gpu(dir, &gpu);
        assert_int_equal(wm_gpu_drm.count(gpu.state), 1);
        refresh(&gpu, WM_GPU_EVERYTHING);
        copy_answers(&gpu, &answers);

        for (size_t i = 0; i < MOST_FIELDS && machines[m].expected[i].field; i++) {
            const struct expected *expected = &machines[m].expected[i];
            const struct answer *answer = &answers.fields[expected->field];

            seen[expected->field] = true;
            if (answer->state != WM_READING_OK)
                fail_msg("%s: %s", key(expected->field), answer->why);
            if (expected->text ? strcmp(answer->text, expected->text) != 0 ||
                                     answer->number != expected->number
                               : !is_near(answer->number, expected->number))
                fail_msg("%s: %.17g '%s'", key(expected->field), answer->number,
                         answer->text);
        }
        for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
            const struct answer *answer = &answers.fields[field];
            if (!seen[field] && (answer->state != WM_READING_UNSUPPORTED ||
                                 strstr(answer->why, "not reported by")))
                fail_msg("%s: state %d, '%s'", key(field), answer->state, answer->why);
        }
        close_gpu(&gpu);
    }
}

/* Reasons a person reads. */
static void test_reasons(void **state)
{
    static const struct {
        size_t machine;
        enum wm_gpu_field field;
        const char *why;
    } cases[] = {
        { 1, WM_GPU_SERIAL,
          "amdgpu does not report it for this GPU: there is no "
          "card1/device/serial_number" },
        { 1, WM_GPU_FAN_SPEED,
          "amdgpu does not report it for this GPU: there is no "
          "card1/device/hwmon/hwmon3/fan1_input" },
        { 0, WM_GPU_TEMPERATURE_SLOWDOWN, "amdgpu does not report it for this GPU" },
        { 2, WM_GPU_PCI_LINK_WIDTH,
          "i915 does not report it for this GPU: there is no "
          "card0/device/../../current_link_width" },
        { 1, WM_GPU_CUDA_VERSION, "CUDA needs a GPU of NVIDIA" },
        { 2, WM_GPU_POWER_DRAW, "i915 counts energy alone; power is how fast that grows" },
        { 2, WM_GPU_MEMORY_USED, "i915 reports the memory of each process alone" },
        { 2, WM_GPU_UTILIZATION_ENCODER,
          "the driver does not distinguish encoding from decoding: one engine does both" },
        { 3, WM_GPU_PCI_LINK_GEN, "this GPU has no PCIe link of its own" },
        { 3, WM_GPU_PCI_LINK_WIDTH_MAX, "this GPU has no PCIe link of its own" },
        { 3, WM_GPU_THROTTLE,
          "i915 does not report it for this GPU: there is no card0/gt/gt0" },
        { 3, WM_GPU_FAN,
          "i915 does not report it for this GPU: there is no "
          "card0/device/hwmon/hwmon3/pwm1" },
        { 4, WM_GPU_POWER_LIMIT, "no power limit is set" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct answers answers;
        char dir[300];
        struct gpu gpu;

        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0755), 0);
        make_machine(dir, &machines[cases[i].machine]);
        open_gpu(dir, &gpu);
        refresh(&gpu, WM_GPU_EVERYTHING);
        copy_answers(&gpu, &answers);
        assert_string_equal(answers.fields[cases[i].field].why, cases[i].why);
        close_gpu(&gpu);
    }
}

/* gpu_metrics 1.3 with a reason that has no name yet. */
static const char metrics_news[120] = {
    [0] = 120, [2] = 1, [3] = 3, [112] = 1 << 4, [119] = (char)0x80,
};

/* One file says something else. */
static void test_values(void **state)
{
    static char padded[9000] = "ue: 1\nce: 40\n";
    static const struct {
        const char *what;
        size_t machine;
        struct file file;
        enum wm_gpu_field field;
        enum wm_reading_state state;
        double number;
        const char *text; /* or a part of the reason */
    } cases[] = {
        { "a fan that only its firmware controls",
          0,
          { .path = HW "pwm1_enable", .text = "0\n" },
          WM_GPU_FAN,
          WM_READING_OK,
          0.2,
          NULL },
        { "a fan that stands still",
          0,
          { .path = HW "pwm1", .text = "0\n" },
          WM_GPU_FAN,
          WM_READING_OK,
          0,
          NULL },
        { "a fan beyond its highest speed",
          0,
          { .path = HW "pwm1", .text = "256\n" },
          WM_GPU_FAN,
          WM_READING_FAILED,
          0,
          "faster than it can: 256 of 255" },
        { "more memory in use than there is",
          0,
          { .path = "device/mem_info_vram_used", .text = "25753026561\n" },
          WM_GPU_MEMORY_FREE,
          WM_READING_FAILED,
          0,
          "more memory is in use than there is" },
        { "a hexadecimal step",
          0,
          { .path = PROPERTIES,
            .text = "drm_render_minor 129\ngfx_target_version 90010\n" },
          WM_GPU_ARCHITECTURE,
          WM_READING_OK,
          0,
          "gfx90a" },
        { "no such version",
          0,
          { .path = PROPERTIES,
            .text = "drm_render_minor 129\ngfx_target_version 91600\n" },
          WM_GPU_ARCHITECTURE,
          WM_READING_UNSUPPORTED,
          0,
          "does not report it" },
        { "more units than compute units",
          0,
          { .path = PROPERTIES,
            .text = "drm_render_minor 129\nsimd_count 1\nsimd_per_cu 4\n" },
          WM_GPU_MULTIPROCESSORS,
          WM_READING_UNSUPPORTED,
          0,
          "does not report it" },
        { "a root port is no switch",
          0,
          { .path = "device/../../class", .text = "0x060000\n" },
          WM_GPU_PCI_LINK_GEN,
          WM_READING_UNSUPPORTED,
          0,
          "there is no card1/device/current_link_speed" },
        { "nor is the switch of another maker the card's",
          0,
          { .path = "device/../../vendor", .text = "0x10b5\n" },
          WM_GPU_PCI_LINK_WIDTH,
          WM_READING_UNSUPPORTED,
          0,
          "there is no card1/device/current_link_width" },
        { "a limit that is switched off",
          0,
          { .path = HW "power1_cap", .text = "0\n" },
          WM_GPU_POWER_LIMIT,
          WM_READING_UNSUPPORTED,
          0,
          "no power limit is set" },
        { "right, but endless",
          0,
          { .path = "device/ras/umc_err_count", .text = padded, .size = sizeof(padded) },
          WM_GPU_ECC_CORRECTED,
          WM_READING_FAILED,
          0,
          "too long to be true" },
        { "errors that cannot be counted now",
          0,
          { .path = "device/ras/umc_err_count", .text = "Query currently inaccessible\n" },
          WM_GPU_ECC_UNCORRECTED,
          WM_READING_FAILED,
          0,
          "makes no sense" },
        { "no error correction",
          0,
          { .path = "device/ras/features", .text = "feature mask: 0xfffe\n" },
          WM_GPU_ECC_MODE,
          WM_READING_OK,
          0,
          "Disabled" },
        { "levels without a star",
          0,
          { .path = "device/pp_dpm_vclk", .text = "0: 513Mhz \n" },
          WM_GPU_CLOCK_VIDEO,
          WM_READING_FAILED,
          0,
          "names no such level" },
        { "a reason without a name",
          0,
          { .path = "device/gpu_metrics",
            .text = metrics_news,
            .size = sizeof(metrics_news) },
          WM_GPU_THROTTLE,
          WM_READING_OK,
          WM_GPU_THROTTLE_POWER | WM_GPU_THROTTLE_OTHER,
          "spl, bit 63" },
        { "gpu_metrics of tomorrow",
          0,
          { .path = "device/gpu_metrics", .text = "\4\1\x63\1", .size = 4 },
          WM_GPU_THROTTLE,
          WM_READING_FAILED,
          0,
          "is not known" },
        { "a maker nobody knows",
          0,
          { .path = "device/vendor", .text = "0x1d17\n" },
          WM_GPU_VENDOR,
          WM_READING_OK,
          0,
          "0x1d17" },
        { "no display on either connector",
          0,
          { .path = "card1-DP-1/enabled", .text = "disabled\n" },
          WM_GPU_DISPLAY_ACTIVE,
          WM_READING_OK,
          0,
          NULL },
    };

    memset(padded + strlen(padded), '\n', sizeof(padded) - strlen(padded));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct answers answers;
        const struct answer *answer = &answers.fields[cases[i].field];
        char dir[300];
        struct gpu gpu;

        print_message("  %s\n", cases[i].what);
        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0755), 0);
        make_machine(dir, &machines[cases[i].machine]);
        write_file(dir, &machines[cases[i].machine], &cases[i].file);
        open_gpu(dir, &gpu);
        refresh(&gpu, WM_GPU_EVERYTHING);
        copy_answers(&gpu, &answers);
        close_gpu(&gpu);

        const char *text = answer->state == WM_READING_OK ? answer->text : answer->why;
        if (answer->state != cases[i].state || !is_near(answer->number, cases[i].number) ||
            (cases[i].text && !strstr(text, cases[i].text)))
            fail_msg("state %d, %.17g '%s'", answer->state, answer->number, text);
    }
}

/* Ways in which a file can be broken. */
enum damage { MISSING, EMPTY, BINARY, HUGE_FILE, NEGATIVE, GARBAGE, UNREADABLE, DAMAGES };

static const char *const damage_names[DAMAGES] = {
    "missing", "empty", "binary", "huge", "negative", "garbage", "unreadable",
};

static void damage_file(const char *dir, const char *path, enum damage damage)
{
    static const char binary[] = { 0x12, 0, (char)0xff, '\n', 0x1b, '[', '2', 'J' };
    static char huge[70 * 1024];
    char full[1024];

    snprintf(full, sizeof(full), "%s/%s", dir, path);
    switch (damage) {
    case MISSING:
        assert_int_equal(unlink(full), 0);
        break;
    case EMPTY:
        write_bytes(dir, path, "", 0);
        break;
    case BINARY:
        write_bytes(dir, path, binary, sizeof(binary));
        break;
    case HUGE_FILE:
        memset(huge, '9', sizeof(huge));
        write_bytes(dir, path, huge, sizeof(huge));
        break;
    case NEGATIVE:
        write_bytes(dir, path, "-70000000\n", 10);
        break;
    case GARBAGE:
        write_bytes(dir, path, "12 \xc3\xa9t\xc3\xa9\n7\n", 11);
        break;
    default:
        assert_int_equal(chmod(full, 0), 0);
        break;
    }
}

static bool is_fed(const struct file *file, enum wm_gpu_field field, bool *ret_first)
{
    *ret_first = file->feeds[0] == field;
    for (size_t i = 0; i < ARRAY_LEN(file->feeds) && file->feeds[i]; i++) {
        if (file->feeds[i] == field)
            return true;
    }
    return false;
}

static bool is_same(const struct answer *a, const struct answer *b)
{
    return a->state == b->state && a->number == b->number && strcmp(a->text, b->text) == 0;
}

/* A broken file costs its own fields, which then have no value or the one that
 * another file tells, and no other field. */
static void check_damage(const struct file *file, const struct answers *good,
                         const struct answers *now, enum damage damage)
{
    const char *what = damage_names[damage];

    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        const struct answer *answer = &now->fields[field];
        bool first;

        if (is_same(&good->fields[field], answer))
            continue;
        if (!is_fed(file, field, &first))
            fail_msg("%s %s changes %s: state %d, %.17g '%s' '%s'", what, file->path,
                     key(field), answer->state, answer->number, answer->text, answer->why);
        if (answer->state != WM_READING_OK)
            continue;
        /* A name may be anything that can be shown. */
        if (damage == NEGATIVE && strstr(answer->text, "-70000000"))
            continue;
        if (!file->instead)
            fail_msg("%s %s makes up %s: %.17g '%s'", what, file->path, key(field),
                     answer->number, answer->text);
        if (first &&
            (answer->text[0] ? strcmp(answer->text, file->instead) != 0
                             : !is_near(answer->number, strtod(file->instead, NULL))))
            fail_msg("%s %s: %s is %.17g '%s'", what, file->path, key(field),
                     answer->number, answer->text);
    }
}

static void test_broken_files(void **state)
{
    enum { NOBODY = 65534 };
    bool is_root = geteuid() == 0;

    assert_int_equal(chmod(*state, 0755), 0);
    for (size_t m = 0; m < ARRAY_LEN(machines); m++) {
        const struct machine *machine = &machines[m];
        static struct answers good, now;
        char dir[300], path[256];
        struct gpu gpu;

        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, m);
        assert_int_equal(mkdir(dir, 0755), 0);
        make_machine(dir, machine);
        open_gpu(dir, &gpu);
        refresh(&gpu, WM_GPU_EVERYTHING);
        copy_answers(&gpu, &good);
        close_gpu(&gpu);

        for (size_t i = 0; i < MOST_FILES && machine->files[i].path; i++) {
            for (enum damage damage = 0; damage < DAMAGES; damage++) {
                place(machine, &machine->files[i], path, sizeof(path));
                damage_file(dir, path, damage);
                if (is_root && damage == UNREADABLE)
                    assert_int_equal(seteuid(NOBODY), 0);
                open_gpu(dir, &gpu);
                refresh(&gpu, WM_GPU_EVERYTHING);
                if (is_root)
                    assert_int_equal(seteuid(0), 0);
                copy_answers(&gpu, &now);
                check_damage(&machine->files[i], &good, &now, damage);
                close_gpu(&gpu);

                char full[1024];
                snprintf(full, sizeof(full), "%s/%s", dir, path);
                assert_true(unlink(full) == 0 || errno == ENOENT);
                write_file(dir, machine, &machine->files[i]);
            }
        }
    }
}

/* A GPU that sleeps is asked for nothing that wakes it. */
static void test_asleep(void **state)
{
    static const enum wm_gpu_field kept[] = {
        WM_GPU_NAME,       WM_GPU_UUID,         WM_GPU_SERIAL,      WM_GPU_BIOS,
        WM_GPU_VENDOR,     WM_GPU_MEMORY_TOTAL, WM_GPU_MEMORY_USED, WM_GPU_MEMORY_FREE,
        WM_GPU_PCI_BUS_ID, WM_GPU_ECC_MODE,
    };
    static const enum wm_gpu_field stale[] = {
        WM_GPU_UTILIZATION_GPU,
        WM_GPU_UTILIZATION_MEMORY,
        WM_GPU_FAN,
        WM_GPU_FAN_SPEED,
        WM_GPU_TEMPERATURE,
        WM_GPU_TEMPERATURE_HOTSPOT,
        WM_GPU_PERFORMANCE,
        WM_GPU_PCI_LINK_GEN,
        WM_GPU_PCI_LINK_WIDTH,
        WM_GPU_PCI_REPLAYS,
        WM_GPU_CLOCK_GRAPHICS,
        WM_GPU_CLOCK_GRAPHICS_MAX,
        WM_GPU_THROTTLE,
        WM_GPU_POWER_DRAW,
        WM_GPU_POWER_INSTANT,
        WM_GPU_POWER_LIMIT,
        WM_GPU_ENERGY,
        WM_GPU_ECC_CORRECTED,
    };
    static struct answers answers;
    const char *dir = *state;
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    test_write_file(dir, "sys/class/drm/card1/device/power/runtime_status", "suspended\n");
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        if (answers.fields[kept[i]].state != WM_READING_OK)
            fail_msg("%s: %s", key(kept[i]), answers.fields[kept[i]].why);
    }
    for (size_t i = 0; i < ARRAY_LEN(stale); i++) {
        const struct answer *answer = &answers.fields[stale[i]];
        if (answer->state != WM_READING_STALE || !strstr(answer->why, "is asleep"))
            fail_msg("%s: state %d, '%s'", key(stale[i]), answer->state, answer->why);
    }
    /* What it never has, it does not have asleep either. */
    assert_int_equal(answers.fields[WM_GPU_CLOCK_SM].state, WM_READING_UNSUPPORTED);

    test_write_file(dir, "sys/class/drm/card1/device/power/runtime_status", "active\n");
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    for (size_t i = 0; i < ARRAY_LEN(stale); i++) {
        if (answers.fields[stale[i]].state != WM_READING_OK)
            fail_msg("%s: %s", key(stale[i]), answers.fields[stale[i]].why);
    }
    close_gpu(&gpu);
}

/* What is not asked for stays as it was. */
static void test_groups(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_MEMORY);
    copy_answers(&gpu, &answers);
    for (enum wm_gpu_field field = 0; field < WM_GPU_FIELDS; field++) {
        bool asked = wm_gpu_field_info(field)->asked_with == WM_GPU_MEMORY;
        if (asked == (answers.fields[field].state == WM_READING_NONE))
            fail_msg("%s: state %d", key(field), answers.fields[field].state);
    }
    close_gpu(&gpu);
}

/* Cards come, go, and come back under their old number; one that is gone says so. */
static void test_changes(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    char from[300], to[300];
    struct wm_gpu_value list;
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    open_gpu(dir, &gpu);
    assert_string_equal(wm_gpu_drm.detail(gpu.state), "card1: amdgpu at 0000:03:00.0");
    assert_false(wm_gpu_drm.changed(gpu.state));
    test_write_file(dir, "sys/class/drm/card1-DP-2/status", "connected\n");
    assert_false(wm_gpu_drm.changed(gpu.state));
    test_write_file(dir, "sys/class/drm/card2/dev", "226:2\n");
    assert_true(wm_gpu_drm.changed(gpu.state));

    snprintf(from, sizeof(from), "%s/sys/class/drm/card2", dir);
    snprintf(to, sizeof(to), "%s/sys/elsewhere", dir);
    assert_int_equal(rename(from, to), 0);
    assert_false(wm_gpu_drm.changed(gpu.state));

    refresh(&gpu, WM_GPU_EVERYTHING);
    snprintf(from, sizeof(from), "%s/sys/class/drm/card1", dir);
    snprintf(to, sizeof(to), "%s/sys/class/drm/gone", dir);
    assert_int_equal(rename(from, to), 0);
    assert_true(wm_gpu_drm.changed(gpu.state));
    test_write_file(dir, "sys/class/drm/card1/dev", "226:1\n");
    assert_true(wm_gpu_drm.changed(gpu.state));

    snprintf(to, sizeof(to), "%s/sys/class/drm/gone/device", dir);
    assert_int_equal(unlink(to), 0);
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    assert_int_equal(answers.fields[WM_GPU_TEMPERATURE].state, WM_READING_FAILED);
    assert_string_equal(answers.fields[WM_GPU_TEMPERATURE].why, "card1 is gone");
    assert_string_equal(answers.fields[WM_GPU_NAME].text, "AMD GPU 1002:744c");
    assert_int_equal(wm_gpu_sheet_rows(gpu.sheet, WM_GPU_PROCESS_LIST, &list), 0);
    assert_int_equal(list.state, WM_READING_FAILED);
    close_gpu(&gpu);
}

/* Machines without a GPU of ours, and trees of which nothing is right. */
static void test_nothing_there(void **state)
{
    static const struct {
        const char *name;
        struct file files[4];
        const char *why;
    } cases[] = {
        { "no folder", { { "proc/2/comm", "x", 0, { 0 }, NULL } }, "there is no" },
        { "no cards",
          { { "sys/class/drm/version", "drm 1.1.0\n", 0, { 0 }, NULL } },
          "which has no cards" },
        { "only connectors",
          { { "sys/class/drm/card0-DP-1/status", "x", 0, { 0 }, NULL },
            { "sys/class/drm/renderD128/dev", "x", 0, { 0 }, NULL },
            { "sys/class/drm/cardigan/dev", "x", 0, { 0 }, NULL } },
          "which has no cards" },
        { "a display",
          { { "sys/class/drm/card0/device/uevent", "DRIVER=ast\n", 0, { 0 }, NULL } },
          "card0: ast, without counters" },
        { "NVIDIA's",
          { { "sys/class/drm/card0/device/uevent", "DRIVER=nvidia\n", 0, { 0 }, NULL } },
          "left to NVML" },
        { "nobody knows it",
          { { "sys/class/drm/card0/device/uevent",
              "DRIVER=virtio_gpu\n",
              0,
              { 0 },
              NULL } },
          "card0: virtio_gpu, without counters" },
        { "no driver",
          { { "sys/class/drm/card0/device/uevent", "\1\2\3", 0, { 0 }, NULL } },
          "card0: no driver" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_error err = { 0 };
        struct gpu gpu;
        char dir[300];

        print_message("  %s\n", cases[i].name);
        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, i);
        assert_int_equal(mkdir(dir, 0755), 0);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].files) && cases[i].files[k].path; k++)
            test_write_file(dir, cases[i].files[k].path, cases[i].files[k].text);
        assert_int_equal(try_open(dir, &gpu, &err), WM_ENODEV);
        if (!strstr(err.text, cases[i].why))
            fail_msg("%s", err.text);
        close_gpu(&gpu);
    }
}

static void test_out_of_memory(void **state)
{
    const char *dir = *state;
    struct wm_error err;
    struct gpu gpu;
    int status;

    make_machine(dir, &machines[0]);
    for (long nth = 0;; nth++) {
        char sysfs[300], procfs[300];
        const struct wm_source_config config = { .sysfs = sysfs, .procfs = procfs };

        snprintf(sysfs, sizeof(sysfs), "%s/sys", dir);
        snprintf(procfs, sizeof(procfs), "%s/proc", dir);
        gpu = (struct gpu) { .state = calloc(1, wm_gpu_drm.state_size) };
        test_fail_allocation(nth);
        status = wm_gpu_drm.open(gpu.state, &config, &err);
        test_fail_allocation(-1);
        wm_gpu_drm.close(gpu.state);
        free(gpu.state);
        if (status == WM_OK)
            break;
        assert_true(status == WM_ENOMEM || status == WM_ENODEV);
        assert_true(nth < 100);
    }
}

UNIT(gpu_drm)
{
#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(test_##name, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        TEST(machines),     TEST(reasons),       TEST(values),
        TEST(broken_files), TEST(asleep),        TEST(groups),
        TEST(changes),      TEST(nothing_there), TEST(out_of_memory),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
