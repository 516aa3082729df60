/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_drm_users.c - the processes on GPUs of AMD and Intel, from their fdinfo. */
#include "test_gpu_drm_machines.h"

/* A made-up client in /proc. */
static void write_client(const char *dir, int pid, int number, const char *text)
{
    char path[64];

    snprintf(path, sizeof(path), "proc/%d/fdinfo/%d", pid, number);
    test_write_file(dir, path, text);
}

#define AMD_CLIENT(id, kib, engines)                                                       \
    "drm-driver:\tamdgpu\ndrm-client-id:\t" #id "\ndrm-pdev:\t0000:03:00.0\n"              \
    "drm-memory-vram:\t" #kib " KiB\n" engines
#define XE_CLIENT(id, cycles, clock)                                                       \
    "drm-driver:\txe\ndrm-client-id:\t" #id "\ndrm-pdev:\t0000:03:00.0\n"                  \
    "drm-resident-vram0:\t2048 KiB\ndrm-cycles-ccs:\t" #cycles                             \
    "\ndrm-total-cycles-ccs:\t" #clock "\ndrm-engine-capacity-ccs:\t2\n"

static size_t count_processes(const struct gpu *gpu, struct wm_gpu_value *ret_list)
{
    return wm_gpu_sheet_rows(gpu->sheet, WM_GPU_PROCESS_LIST, ret_list);
}

/* Its place in the list, or SIZE_MAX where it is not listed. */
static size_t find_process(const struct gpu *gpu, pid_t pid)
{
    struct wm_gpu_value list;
    size_t count = wm_gpu_sheet_rows(gpu->sheet, WM_GPU_PROCESS_LIST, &list);

    for (size_t i = 0; i < count; i++) {
        if ((pid_t)wm_gpu_sheet_cell(gpu->sheet, WM_GPU_PROCESS_LIST, i,
                                     WM_GPU_PROCESS_DRIVER_PID)
                .number == pid)
            return i;
    }
    return SIZE_MAX;
}

/* What is said of a process that is listed. */
static struct wm_gpu_value told(const struct gpu *gpu, pid_t pid,
                                enum wm_gpu_process_field field)
{
    struct wm_gpu_value value;
    size_t place = find_process(gpu, pid);

    assert_int_not_equal(place, SIZE_MAX);
    value = wm_gpu_sheet_cell(gpu->sheet, WM_GPU_PROCESS_LIST, place, field);
    return value;
}

static double told_number(const struct gpu *gpu, pid_t pid, enum wm_gpu_process_field field)
{
    struct wm_gpu_value value = told(gpu, pid, field);

    if (value.state != WM_READING_OK)
        fail_msg("%s of %d: %s", wm_gpu_process_field_info(field)->key, (int)pid,
                 value.why);
    return value.number;
}

static void test_processes(void **state)
{
    static const struct {
        pid_t pid;
        const char *type;
        double memory, gpu_time;
    } expected[] = {
        { 100, "C+G", 3 * 1024.0 * 1024, 3.5 },
        { 200, "C", 1024.0 * 1024, 0.25 },
        { 300, NULL, 512 * 1024.0, 0 },
        { 400, NULL, 4096, 1 },
    };
    const char *dir = *state;
    struct wm_gpu_value list;
    struct gpu gpu;
    char path[300];

    make_machine(dir, &machines[0]);
    write_client(dir, 100, 4,
                 AMD_CLIENT(1, 1024,
                            "drm-engine-gfx:\t2000000000 ns\n"
                            "drm-engine-dec:\t1000000000 ns\n"));
    write_client(dir, 100, 5, AMD_CLIENT(2, 2048, "drm-engine-compute:\t500000000 ns\n"));
    /* A fork has the same client, which is its parent's. */
    write_client(dir, 101, 5, AMD_CLIENT(2, 2048, "drm-engine-compute:\t500000000 ns\n"));
    write_client(dir, 200, 0, AMD_CLIENT(3, 1024, "drm-engine-compute:\t250000000 ns\n"));
    write_client(dir, 300, 9, AMD_CLIENT(4, 512, ""));
    write_client(dir, 400, 3, AMD_CLIENT(5, 4, "drm-engine-enc:\t1000000000 ns\n"));
    write_client(dir, 500, 3, "drm-driver:\tamdgpu\ndrm-pdev:\t0000:04:00.0\n");
    write_client(dir, 600, 3, "drm-driver:");
    open_gpu(dir, &gpu);

    refresh(&gpu, WM_GPU_MEMORY);
    assert_int_equal(count_processes(&gpu, &list), 0);
    assert_int_equal(list.state, WM_READING_NONE);

    refresh(&gpu, WM_GPU_PROCESSES);
    assert_int_equal(count_processes(&gpu, &list), ARRAY_LEN(expected));
    assert_int_equal(list.state, WM_READING_OK);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        pid_t pid = expected[i].pid;
        assert_int_equal(find_process(&gpu, pid), i);
        struct wm_gpu_value type = told(&gpu, pid, WM_GPU_PROCESS_TYPE);

        assert_int_equal(type.state == WM_READING_OK, expected[i].type != NULL);
        if (expected[i].type)
            assert_string_equal(type.text, expected[i].type);
        assert_true(told_number(&gpu, pid, WM_GPU_PROCESS_MEMORY) == expected[i].memory);
        assert_true(
            is_near(told_number(&gpu, pid, WM_GPU_PROCESS_GPU_TIME), expected[i].gpu_time));
        assert_true(told_number(&gpu, pid, WM_GPU_PROCESS_SM) == 0);
        assert_int_not_equal(told(&gpu, pid, WM_GPU_PROCESS_GPU_INSTANCE).state,
                             WM_READING_OK);
    }

    /* One vanishes with all it had open, one closes a client. */
    test_write_file(dir, "proc/200/fdinfo/0", "");
    snprintf(path, sizeof(path), "%s/proc/200/fdinfo/0", dir);
    assert_int_equal(unlink(path), 0);
    test_write_file(dir, "proc/100/fdinfo/4", "");
    refresh(&gpu, WM_GPU_PROCESSES);
    assert_int_equal(count_processes(&gpu, &list), 3);
    assert_int_equal(find_process(&gpu, 200), SIZE_MAX);
    assert_string_equal(told(&gpu, 100, WM_GPU_PROCESS_TYPE).text, "C");
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_MEMORY) == 2 * 1024.0 * 1024);
    close_gpu(&gpu);
}

/* Shares of the time come from two looks at the engines. */
static void test_shares(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    write_client(dir, 100, 4,
                 AMD_CLIENT(1, 1024,
                            "drm-engine-gfx:\t1000 ns\n"
                            "drm-engine-enc:\t1000 ns\n"));
    write_client(dir, 200, 4,
                 AMD_CLIENT(2, 1024,
                            "drm-engine-gfx:\t1000 ns\n"
                            "drm-engine-dec:\t1000 ns\n"));
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_EVERYTHING);
    usleep(20 * 1000);
    write_client(dir, 100, 4,
                 AMD_CLIENT(1, 1024,
                            "drm-engine-gfx:\t1000 ns\n"
                            "drm-engine-enc:\t900000000000 ns\n"));
    write_client(dir, 200, 4,
                 AMD_CLIENT(2, 1024,
                            "drm-engine-gfx:\t2001000 ns\n"
                            "drm-engine-dec:\t1000 ns\n"));
    refresh(&gpu, WM_GPU_UTILIZATION | WM_GPU_PROCESSES);
    copy_answers(&gpu, &answers);
    assert_true(answers.fields[WM_GPU_UTILIZATION_ENCODER].number == 1);
    assert_true(answers.fields[WM_GPU_UTILIZATION_DECODER].number == 0);
    assert_true(answers.fields[WM_GPU_UTILIZATION_GPU].number == 0.37); /* the driver's */

    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_SM) == 1);
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_ENCODER) == 1);
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_DECODER) == 0);
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_SM) > 0);
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_SM) <= 0.1);
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_ENCODER) == 0);
    close_gpu(&gpu);
}

/* An old amdgpu wrote percentages: nobody knows what they are of, and they are not
 * 0. */
static void test_percentages(void **state)
{
    static const enum wm_gpu_process_field fields[] = { WM_GPU_PROCESS_SM,
                                                        WM_GPU_PROCESS_ENCODER,
                                                        WM_GPU_PROCESS_DECODER,
                                                        WM_GPU_PROCESS_GPU_TIME };
    const char *dir = *state;
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    write_client(dir, 100, 4, AMD_CLIENT(1, 1024, "drm-engine-gfx0:\t12.50 %\n"));
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_PROCESSES);
    usleep(20 * 1000);
    refresh(&gpu, WM_GPU_PROCESSES);
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_MEMORY) == 1024 * 1024);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        struct wm_gpu_value value = told(&gpu, 100, fields[i]);
        assert_int_equal(value.state, WM_READING_UNSUPPORTED);
        assert_string_equal(value.why, "the driver does not count the time of processes");
    }
    close_gpu(&gpu);
}

/* Drivers of Intel: no encoder of its own, and with xe cycles instead of time. */
static void test_cycles(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct gpu gpu;

    make_machine(dir, &machines[4]);
    write_client(dir, 100, 4, XE_CLIENT(1, 1000, 5000));
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_EVERYTHING);
    usleep(12 * 1000);
    write_client(dir, 100, 4, XE_CLIENT(1, 1500, 6000));
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    assert_true(answers.fields[WM_GPU_UTILIZATION_GPU].number == 0.25);

    assert_string_equal(told(&gpu, 100, WM_GPU_PROCESS_TYPE).text, "C");
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_MEMORY) == 2 * 1024.0 * 1024);
    assert_true(told_number(&gpu, 100, WM_GPU_PROCESS_SM) == 0.25);
    assert_string_equal(told(&gpu, 100, WM_GPU_PROCESS_GPU_TIME).why,
                        "the driver counts cycles of the engines, not time");
    assert_int_equal(told(&gpu, 100, WM_GPU_PROCESS_ENCODER).state, WM_READING_UNSUPPORTED);
    close_gpu(&gpu);
}

/* In a container one sees some of the processes: the list is there, and says so. */
static void test_part_of_the_processes(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct wm_gpu_value list;
    struct gpu gpu;

    make_machine(dir, &machines[2]);
    test_write_file(dir, "proc/2/comm", "sh\n");
    write_client(dir, 100, 4,
                 "drm-driver:\ti915\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\n"
                 "drm-engine-render:\t5 ns\n");
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    assert_int_equal(answers.fields[WM_GPU_UTILIZATION_GPU].state, WM_READING_DENIED);
    assert_non_null(
        strstr(answers.fields[WM_GPU_UTILIZATION_GPU].why, "; the others make it 0 %"));
    assert_int_equal(count_processes(&gpu, &list), 1);
    assert_int_equal(list.state, WM_READING_DENIED);
    assert_non_null(strstr(list.why, "does not show all processes"));
    assert_string_equal(told(&gpu, 100, WM_GPU_PROCESS_TYPE).text, "G");
    assert_int_equal(told(&gpu, 100, WM_GPU_PROCESS_MEMORY).state, WM_READING_UNSUPPORTED);
    close_gpu(&gpu);
}

/* There is no share of the time yet of a process that has just come. */
static void test_newcomer(void **state)
{
    const char *dir = *state;
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    write_client(dir, 100, 4, AMD_CLIENT(1, 1024, "drm-engine-gfx:\t1000 ns\n"));
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_PROCESSES);
    write_client(dir, 200, 4, AMD_CLIENT(2, 1024, "drm-engine-gfx:\t1000 ns\n"));
    for (int i = 0; i < 1000 && find_process(&gpu, 200) == SIZE_MAX; i++) {
        usleep(10 * 1000);
        refresh(&gpu, WM_GPU_PROCESSES);
    }

    struct wm_gpu_value share = told(&gpu, 200, WM_GPU_PROCESS_SM);
    assert_int_equal(share.state, WM_READING_FAILED);
    assert_string_equal(share.why, "a share of the time needs two readings, 10 ms apart");
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_GPU_TIME) > 0);
    close_gpu(&gpu);
}

/* A GPU that is not on PCI. */
static void test_platform(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct gpu gpu;

    test_write_file(dir, "sys/class/drm/card3/device/uevent", "DRIVER=v3d\n");
    test_write_file(dir, "sys/class/drm/card3/device/drm/renderD130/dev", "226:130\n");
    test_write_file(dir, "proc/2/comm", "kthreadd\n");
    write_client(dir, 100, 4,
                 "drm-driver:\tv3d\ndrm-client-id:\t1\ndrm-engine-render:\t7 ns\n");
    open_gpu(dir, &gpu);
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    assert_string_equal(answers.fields[WM_GPU_NAME].text, "v3d GPU");
    assert_string_equal(answers.fields[WM_GPU_KERNEL_DRIVER].text, "v3d");
    assert_string_equal(answers.fields[WM_GPU_PCI_BUS].why, "this GPU is not on PCI");
    assert_string_equal(answers.fields[WM_GPU_PCI_LINK_GEN].why, "this GPU is not on PCI");
    assert_int_equal(answers.fields[WM_GPU_UTILIZATION_GPU].state, WM_READING_OK);
    assert_int_equal(find_process(&gpu, 100), 0);
    close_gpu(&gpu);
}

static void test_two_cards(void **state)
{
    static struct answers answers;
    const char *dir = *state;
    struct machine second = machines[0];
    struct gpu gpu;

    make_machine(dir, &machines[0]);
    second.card = "card2";
    second.device = "pci0000:00/0000:00:01.2/0000:09:00.0";
    second.files[0] = (struct file) {
        .path = "device/uevent",
        .text = "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:09:00.0\n",
    };
    for (size_t i = 0; i < MOST_FILES && second.files[i].path; i++) {
        if (strstr(second.files[i].path, "../"))
            second.files[i].path = "device/extra";
    }
    make_machine(dir, &second);
    write_client(dir, 100, 4, AMD_CLIENT(1, 1024, "drm-engine-gfx:\t1000 ns\n"));
    write_client(dir, 200, 4,
                 "drm-driver:\tamdgpu\ndrm-client-id:\t1\n"
                 "drm-pdev:\t0000:09:00.0\ndrm-memory-vram:\t7 KiB\n");
    open_gpu(dir, &gpu);
    assert_int_equal(wm_gpu_drm.count(gpu.state), 2);
    refresh(&gpu, WM_GPU_EVERYTHING);
    assert_int_equal(find_process(&gpu, 100), 0);
    assert_int_equal(find_process(&gpu, 200), SIZE_MAX);
    gpu.index = 1;
    refresh(&gpu, WM_GPU_EVERYTHING);
    copy_answers(&gpu, &answers);
    assert_int_equal(find_process(&gpu, 100), SIZE_MAX);
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_MEMORY) == 7 * 1024);
    assert_true(told_number(&gpu, 200, WM_GPU_PROCESS_GPU_TIME) == 0);
    /* They share a serial number, as dies of one package do. */
    assert_string_equal(answers.fields[WM_GPU_UUID].text, "0000:09:00.0");
    close_gpu(&gpu);
}

UNIT(gpu_drm_users)
{
#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(test_##name, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        TEST(processes),   TEST(shares),   TEST(cycles),   TEST(part_of_the_processes),
        TEST(percentages), TEST(newcomer), TEST(platform), TEST(two_cards),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
