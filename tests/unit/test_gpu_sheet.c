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
                                      const struct wm_gpu_value *told,
                                      enum wm_gpu_process_field field)
{
    struct wm_gpu_value value;

    begin(sheet, WM_GPU_PROCESSES);
    wm_gpu_begin_list(sheet, WM_GPU_PROCESS_LIST);
    assert_int_equal(wm_gpu_add_row(sheet, WM_GPU_PROCESS_LIST, told), WM_OK);
    wm_gpu_end_list(sheet, WM_GPU_PROCESS_LIST, WM_READING_OK, NULL);
    end(sheet);
    assert_int_equal(wm_gpu_sheet_rows(sheet, WM_GPU_PROCESS_LIST, &value), 1);
    value = wm_gpu_sheet_cell(sheet, WM_GPU_PROCESS_LIST, 0, field);
    return value;
}

static void test_numbers(void **state)
{
    static const struct {
        const char *what;
        struct wm_gpu_value told;
        enum wm_reading_state state;
        const char *why;
    } cases[] = {
        { "known", { WM_READING_OK, 0.5, NULL, NULL, 0 }, WM_READING_OK, NULL },
        { "known, and a reason",
          { WM_READING_OK, 0.5, NULL, "x", 0 },
          WM_READING_OK,
          NULL },
        { "not told", { 0 }, WM_READING_UNSUPPORTED, "not reported by test" },
        { "none yet, and why",
          { WM_READING_NONE, 0, NULL, "in a second", 0 },
          WM_READING_NONE,
          "in a second" },
        { "failed", { WM_READING_FAILED, 0, NULL, "lost", 0 }, WM_READING_FAILED, "lost" },
        { "failed, not said why",
          { WM_READING_FAILED, 0, NULL, NULL, 0 },
          WM_READING_FAILED,
          "not reported by test" },
        { "a hostile reason",
          { WM_READING_DENIED, 0, NULL, "\x1b[2J", 0 },
          WM_READING_DENIED,
          "?[2J" },
        { "no number",
          { WM_READING_OK, NAN, NULL, NULL, 0 },
          WM_READING_FAILED,
          "what the driver reports is no number" },
        { "endless",
          { WM_READING_OK, INFINITY, NULL, NULL, 0 },
          WM_READING_FAILED,
          "what the driver reports is no number" },
    };
    struct wm_gpu_sheet *sheet = new_sheet();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wm_gpu_value told[WM_GPU_PROCESS_FIELDS] = { [WM_GPU_PROCESS_SM] =
                                                                      cases[i].told };

        print_message("  %s\n", cases[i].what);
        struct wm_gpu_value value = of_process(sheet, told, WM_GPU_PROCESS_SM);
        assert_int_equal(value.state, cases[i].state);
        if (cases[i].why)
            assert_string_equal(value.why, cases[i].why);
        else
            assert_float_equal(value.number, cases[i].told.number, 0);
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
        const struct wm_gpu_value told[WM_GPU_PROCESS_FIELDS] = {
            [WM_GPU_PROCESS_NAME] = wm_gpu_words(cases[i].told)
        };
        struct wm_gpu_value value;

        print_message("  %s\n", cases[i].what);
        begin(sheet, WM_GPU_GENERAL);
        wm_gpu_set_text(sheet, WM_GPU_NAME, cases[i].told);
        end(sheet);
        wm_gpu_sheet_get(sheet, WM_GPU_NAME, &value);
        struct wm_gpu_value process = of_process(sheet, told, WM_GPU_PROCESS_NAME);
        if (cases[i].name) {
            assert_string_equal(value.text, cases[i].name);
            assert_int_equal(strncmp(process.text, value.text, strlen(process.text)), 0);
            assert_true(strlen(process.text) > 90 || !strcmp(process.text, value.text));
        } else {
            assert_string_equal(value.why, "the driver reports an empty text");
            assert_string_equal(process.why, "not reported by test");
        }
    }

    const struct wm_gpu_value nameless[WM_GPU_PROCESS_FIELDS] = { 0 };
    struct wm_gpu_value none = of_process(sheet, nameless, WM_GPU_PROCESS_NAME);
    assert_string_equal(none.why, "not reported by test");
    wm_gpu_sheet_free(sheet);
}

UNIT(gpu_sheet)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
