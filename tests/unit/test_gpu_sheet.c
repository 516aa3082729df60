/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_sheet.c - what becomes of the values, texts and reasons that a backend
 * tells of one GPU. How sheet, threads and inventory play together is in
 * test_gpu.c. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "source/gpu/source_gpu_sheet.h"

static struct wm_gpu_sheet *new_sheet(void)
{
    struct wm_gpu_sheet *sheet = NULL;

    assert_int_equal(wm_gpu_sheet_new("test", &sheet, NULL), WM_OK);
    return sheet;
}

static void begin(struct wm_gpu_sheet *sheet, unsigned groups)
{
    bool all;

    wm_gpu_sheet_ask(sheet, groups);
    assert_int_equal(wm_gpu_sheet_begin(sheet, &all), groups);
}

static void end(struct wm_gpu_sheet *sheet)
{
    wm_gpu_sheet_end(sheet);
    wm_gpu_sheet_collect(sheet, "late");
}

static struct wm_gpu_value of_process(struct wm_gpu_sheet *sheet,
                                      const struct wm_gpu_process_told *told,
                                      enum wm_gpu_process_field field)
{
    struct wm_gpu_value value;

    begin(sheet, WM_GPU_PROCESSES);
    wm_gpu_begin_processes(sheet);
    assert_int_equal(wm_gpu_add_process(sheet, told), WM_OK);
    wm_gpu_end_processes(sheet, WM_READING_OK, NULL);
    end(sheet);
    assert_int_equal(wm_gpu_sheet_process_count(sheet, &value), 1);
    wm_gpu_sheet_process_get(sheet, 0, field, &value);
    return value;
}

static void test_numbers(void **state)
{
    static const struct {
        const char *what;
        struct wm_gpu_number told;
        enum wm_reading_state state;
        const char *why;
    } cases[] = {
        { "known", { WM_READING_OK, 0.5, NULL }, WM_READING_OK, NULL },
        { "known, and a reason", { WM_READING_OK, 0.5, "x" }, WM_READING_OK, NULL },
        { "not told", { 0 }, WM_READING_UNSUPPORTED, "not told by test" },
        { "none yet, and why",
          { WM_READING_NONE, 0, "in a second" },
          WM_READING_NONE,
          "in a second" },
        { "failed", { WM_READING_FAILED, 0, "lost" }, WM_READING_FAILED, "lost" },
        { "failed, not said why",
          { WM_READING_FAILED, 0, NULL },
          WM_READING_FAILED,
          "not told by test" },
        { "a hostile reason",
          { WM_READING_DENIED, 0, "\x1b[2J" },
          WM_READING_DENIED,
          "?[2J" },
        { "no number",
          { WM_READING_OK, NAN, NULL },
          WM_READING_FAILED,
          "what the driver tells is no number" },
        { "endless",
          { WM_READING_OK, INFINITY, NULL },
          WM_READING_FAILED,
          "what the driver tells is no number" },
    };
    struct wm_gpu_sheet *sheet = new_sheet();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_gpu_process_told told = { .pid = 1, .sm = cases[i].told };

        print_message("  %s\n", cases[i].what);
        struct wm_gpu_value value = of_process(sheet, &told, WM_GPU_PROCESS_SM);
        assert_int_equal(value.state, cases[i].state);
        if (cases[i].why)
            assert_string_equal(value.why, cases[i].why);
        else
            assert_float_equal(value.number, cases[i].told.value, 0);
    }
    wm_gpu_sheet_free(sheet);
}

static void test_instances(void **state)
{
    static const struct {
        int instance;
        const char *why; /* NULL: it is known */
    } cases[] = {
        { 0, NULL },
        { 7, NULL },
        { WM_GPU_NOT_PARTITIONED, "the GPU is not partitioned" },
        { WM_GPU_INSTANCE_NOT_TOLD, "not told by test" },
    };
    struct wm_gpu_sheet *sheet = new_sheet();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_gpu_process_told told = { .pid = 1,
                                                  .gpu_instance = cases[i].instance };
        struct wm_gpu_value value = of_process(sheet, &told, WM_GPU_PROCESS_GPU_INSTANCE);

        assert_int_equal(value.state,
                         cases[i].why ? WM_READING_UNSUPPORTED : WM_READING_OK);
        if (cases[i].why)
            assert_string_equal(value.why, cases[i].why);
        else
            assert_int_equal(value.number, cases[i].instance);
    }
    wm_gpu_sheet_free(sheet);
}

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

/* As the name of the GPU and, cut earlier, of a process. */
static void test_names(void **state)
{
    static const struct {
        const char *what, *told;
        const char *name; /* NULL: not told */
    } cases[] = {
        { "plain", "Tesla V100", "Tesla V100" },
        { "not ASCII", "Gr\xc3\xbc\xc3\x9f \xe2\x84\xa2",
          "Gr\xc3\xbc\xc3\x9f \xe2\x84\xa2" },
        { "a control character", "a\x1b[31m\n", "a?[31m?" },
        { "one of C1",
          "a\xc2\x9b"
          "31m",
          "a?31m" },
        { "broken", "a\xff\xc3*", "a??*" },
        { "cut within a character", HUNDRED HUNDRED TEN TEN TEN TEN TEN "1234\xe2\x84\xa2",
          HUNDRED HUNDRED TEN TEN TEN TEN TEN "1234" },
        { "empty", "", NULL },
    };
    struct wm_gpu_sheet *sheet = new_sheet();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_gpu_process_told told = { .pid = 1, .name = cases[i].told };
        struct wm_gpu_value value;

        print_message("  %s\n", cases[i].what);
        begin(sheet, WM_GPU_GENERAL);
        wm_gpu_set_text(sheet, WM_GPU_NAME, cases[i].told);
        end(sheet);
        wm_gpu_sheet_get(sheet, WM_GPU_NAME, &value);
        struct wm_gpu_value process = of_process(sheet, &told, WM_GPU_PROCESS_NAME);
        if (cases[i].name) {
            assert_string_equal(value.text, cases[i].name);
            assert_int_equal(strncmp(process.text, value.text, strlen(process.text)), 0);
            assert_true(strlen(process.text) > 90 || !strcmp(process.text, value.text));
        } else {
            assert_string_equal(value.why, "the driver tells an empty text");
            assert_string_equal(process.why, "not told by test");
        }
    }

    const struct wm_gpu_process_told nameless = { .pid = 1 };
    struct wm_gpu_value none = of_process(sheet, &nameless, WM_GPU_PROCESS_NAME);
    assert_string_equal(none.why, "not told by test");
    wm_gpu_sheet_free(sheet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_instances),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
