/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_config.c - copies of a configuration, which outlive it. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_error.h"
#include "source/source_config.h"

static void check_text(const char *copy, const char *text)
{
    if (!text) {
        assert_null(copy);
        return;
    }
    assert_string_equal(copy, text);
    assert_ptr_not_equal(copy, text);
}

static void test_copy(void **state)
{
    static const struct {
        const char *name;
        struct wm_source_config config;
    } rows[] = {
        { "nothing", { 0 } },
        { "everything",
          { .procfs = "/proc",
            .sysfs = "/sys",
            .nvml = "/usr/lib/libnvidia-ml.so.1",
            .gpus = "0,card1",
            .pid = 42,
            .cpu_watts = "10:65" } },
        { "one text", { .nvml = "libnvidia-ml.so.1" } },
        { "empty texts", { .procfs = "", .sysfs = "", .nvml = "", .gpus = "", .pid = -1 } },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct wm_source_config *config = &rows[i].config;
        struct wm_source_config copy;

        print_message("  %s\n", rows[i].name);
        assert_int_equal(wm_source_config_copy(config, &copy, NULL), WM_OK);
        check_text(copy.procfs, config->procfs);
        check_text(copy.sysfs, config->sysfs);
        check_text(copy.nvml, config->nvml);
        check_text(copy.gpus, config->gpus);
        check_text(copy.cpu_watts, config->cpu_watts);
        assert_int_equal(copy.pid, config->pid);
        wm_source_config_release(&copy);
        assert_null(copy.procfs);
        wm_source_config_release(&copy);
    }
}

static void test_out_of_memory(void **state)
{
    const struct wm_source_config config = {
        .procfs = "a", .sysfs = "b", .nvml = "c", .gpus = "d", .pid = 1, .cpu_watts = "e"
    };
    struct wm_source_config copy = { .pid = 4711 };
    struct wm_error err;
    (void)state;

    for (long nth = 0; nth < 5; nth++) {
        test_fail_allocation(nth);
        assert_int_equal(wm_source_config_copy(&config, &copy, &err), WM_ENOMEM);
        test_fail_allocation(-1);
        assert_int_equal(err.status, WM_ENOMEM);
        assert_int_equal(copy.pid, 4711);
        assert_null(copy.procfs);
    }
    test_fail_allocation(5);
    assert_int_equal(wm_source_config_copy(&config, &copy, &err), WM_OK);
    test_fail_allocation(-1);
    wm_source_config_release(&copy);
}

UNIT(source_config)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
