/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_drm_names.c - amdgpu.ids and pci.ids, as they are and as they should never
 * be. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/gpu/drm/source_drm_names.h"

#define A63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A252 A63 A63 A63 A63
#define RX "744C,\tC8,\tAMD Radeon RX 7900 XTX\n"
#define ARC "8086  Intel Corporation\n\t56a0  DG2 [Arc A770]\n"

typedef bool finder(const char *list, const struct wm_drm_ids *ids, char *ret_name);

struct row {
    const char *list, *name; /* NULL: there is none */
};

static void check(finder *find, const struct wm_drm_ids *ids, const struct row *rows,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[WM_DRM_PRODUCT] = "untouched";

        print_message("  %.60s\n", rows[i].list);
        assert_int_equal(find(rows[i].list, ids, name), rows[i].name != NULL);
        assert_string_equal(name, rows[i].name ? rows[i].name : "untouched");
    }
}

static void test_amdgpu(void **state)
{
    static const struct row rows[] = {
        { RX, "AMD Radeon RX 7900 XTX" },
        { "744c, c8, Lower", "Lower" },
        { "744C,C8,Close", "Close" },
        { "# 744C,\tC8,\tA comment\n1.0.0\n\n744C,\tCC,\tXT\n" RX,
          "AMD Radeon RX 7900 XTX" },
        { A252 A252 "\n" RX, "AMD Radeon RX 7900 XTX" },
        { "744C,\tC8,\tFirst\n" RX, "First" },
        { "", NULL },
        { "\n\n", NULL },
        { "744C", NULL },
        { "744C,", NULL },
        { "744C,\tC8", NULL },
        { "744C,\tC8,", NULL },
        { "744C,\tC8,\t\n", NULL },
        { "744C\tC8\tName\n", NULL },
        { "0744C,\tC8,\tName\n", NULL },
        { "744C,\t0C8,\tName\n", NULL },
        { "0x744C,\tC8,\tName\n", NULL },
        { " 744C,\tC8,\tName\n", NULL },
        { "744C,\tC7,\tName\n744D,\tC8,\tName\n", NULL },
        { "744C,\tC8,\tesc\033[31m\n", NULL },
        { "744C,\tC8,\tname\r\n", NULL },
        { "744C,\tC8,\t\xc3\xa9\n", NULL },
        { "744C,\tC8,\t" A63 A63 "\n", NULL },
        { "744C,\tC8,\t" A252 "\n", NULL },
    };
    const struct wm_drm_ids ids = { 0x1002, 0x744c, 0xc8 },
                            other = { 0x8086, 0x744c, 0xc8 };
    static const struct row none = { RX, NULL };

    (void)state;
    check(wm_drm_find_in_amdgpu_ids, &ids, rows, ARRAY_LEN(rows));
    check(wm_drm_find_in_amdgpu_ids, &other, &none, 1);
}

static void test_pci(void **state)
{
    static const struct row rows[] = {
        { ARC, "Intel DG2 [Arc A770]" },
        { "# x\n\n1002  AMD\n\t56a0  Wrong\n" ARC, "Intel DG2 [Arc A770]" },
        { "8086  Intel\n\t1111  A\n\t\t56a0 56a0  Board\n# x\n\n\t56a0  B", "Intel B" },
        { "8086  Intel\n" A252 A252 "\n\t56a0  B", "Intel B" },
        { "", NULL },
        { "8086", NULL },
        { "8086  Intel\n", NULL },
        { "8086  Intel\n\t56a0", NULL },
        { "8086  Intel\n\t56a0 \n", NULL },
        { "8086  Intel\n\t56a0\tName\n", NULL },
        { "8086  Intel\n\t056a0  Name\n", NULL },
        { "8086  Intel\n\t\t56a0  Name\n", NULL },
        { "8086  Intel\n 56a0  Name\n", NULL },
        { "8086  Intel\n8087  Other\n\t56a0  Name\n", NULL },
        { "8086  Intel\nC 03  Display\n\t56a0  Name\n", NULL },
        { "\t56a0  Name\n8086  Intel\n", NULL },
        { "8086  Intel\n\t56a0  \x01\n", NULL },
        { "8086  Intel\n\t56a0  " A63 A63 "\n", NULL },
    };
    const struct wm_drm_ids ids = { .vendor = 0x8086, .device = 0x56a0 };
    const struct wm_drm_ids nobodys = { .vendor = 0x1234, .device = 1 };
    static const struct row bare = { "1234  Somebody\n\t0001  Card\n", "Card" };

    (void)state;
    check(wm_drm_find_in_pci_ids, &ids, rows, ARRAY_LEN(rows));
    check(wm_drm_find_in_pci_ids, &nobodys, &bare, 1);
}

/* The list of the vendor first, then one of two places. */
static void test_files(void **state)
{
    static const struct {
        struct wm_drm_ids ids;
        const char *name;
    } rows[] = {
        { { 0x1002, 0x744c, 0xc8 }, "AMD Radeon RX 7900 XTX" },
        { { 0x1002, 0x744c, 0x01 },
          "AMD Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]" },
        { { 0x8086, 0x56a0, 0x08 }, "Intel DG2 [Arc A770]" },
        { { 0x8086, 0x0000, 0 }, NULL },
    };
    char name[WM_DRM_PRODUCT];

    (void)state;
    assert_int_equal(setenv("WATTMETER_SHARE", test_source_path("tests/data/share"), 1), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(wm_drm_find_name(&rows[i].ids, name), rows[i].name != NULL);
        if (rows[i].name)
            assert_string_equal(name, rows[i].name);
    }
    assert_int_equal(setenv("WATTMETER_SHARE", "/dev/null", 1), 0);
    assert_false(wm_drm_find_name(&rows[0].ids, name));
}

UNIT(source_drm_names)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amdgpu),
        cmocka_unit_test(test_pci),
        cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
