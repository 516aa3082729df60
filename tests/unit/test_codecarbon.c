/* SPDX-License-Identifier: Apache-2.0 */
/* test_codecarbon.c - rows of CodeCarbon's emissions.csv, and the files they go to. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base_file.h"
#include "compat/codecarbon/compat_codecarbon.h"
#include "made_report.h"

/* What CodeCarbon 3.3.2, 2.8.4 and 2.1.4 write. */
#define FIRST_OF_ALL                                                                       \
    "emissions,emissions_rate,cpu_power,gpu_power,ram_power,"                              \
    "cpu_energy,gpu_energy,ram_energy,energy_consumed,"
#define PLACE                                                                              \
    "country_name,country_iso_code,region,cloud_provider,cloud_region,os,"                 \
    "python_version,"
#define MACHINE                                                                            \
    "cpu_count,cpu_model,gpu_count,gpu_model,longitude,latitude,"                          \
    "ram_total_size,tracking_mode,"
#define VERSION_3_3                                                                        \
    "timestamp,project_name,run_id,experiment_id,duration," FIRST_OF_ALL                   \
    "water_consumed," PLACE "codecarbon_version," MACHINE                                  \
    "cpu_utilization_percent,gpu_utilization_percent,ram_utilization_percent,ram_used_gb," \
    "on_cloud,pue,wue"
#define VERSION_2_8                                                                        \
    "timestamp,project_name,run_id,experiment_id,duration," FIRST_OF_ALL PLACE             \
    "codecarbon_version," MACHINE "on_cloud,pue"
#define VERSION_2_1                                                                        \
    "timestamp,project_name,run_id,duration," FIRST_OF_ALL PLACE MACHINE "on_cloud"

static struct wm_pair notes[] = {
    { (char[]) { "experiment_id" }, (char[]) { "e-1" } },
    { (char[]) { "project_name" }, (char[]) { "a \"b\", c\nd" } },
};
static struct wm_gpu_usage gpus[] = {
    { .name = (char[]) { "NVIDIA H100" } },
    { .name = (char[]) { "NVIDIA A100" } },
    { .name = (char[]) { "NVIDIA H100" } },
};

/* A hundred seconds; 2 kWh, of which the CPU took one, a GPU three quarters and
 * memory the rest. */
static const struct wm_report full = {
    .run = {
        .id = (char[]) { "0b1a9f6e-8d7c-4a55-9d34-1f2e3d4c5b6a" },
        .version = (char[]) { "0.1.0" },
        .kernel = (char[]) { "Linux 6.1.0" },
        .cpu_model = (char[]) { "AMD EPYC" },
        .core_count = 2,
        .notes = notes,
        .note_count = ARRAY_LEN(notes),
    },
    .compute_time = KNOWN(100),
    .start_unix_ns = INT64_C(1795252211999000000),
    .ram_capacity = KNOWN(8589934592),
    .cpu_system = { .mean_hardware = KNOWN(12.5) },
    .gpu_percentages = { .mean_hardware = KNOWN(50) },
    .gpus = gpus,
    .gpu_count = ARRAY_LEN(gpus),
    .energy = SUM(7.2e6, 3.6e6, WM_SIMULATED),
    .cpu_energy = SUM(3.6e6, 0, WM_MEASURED),
    .dram_energy = SUM(0.9e6, 0, WM_MEASURED),
    .gpu_energy = SUM(2.7e6, 0, WM_SIMULATED),
};
static const struct wm_report empty = {
    .compute_time = UNKNOWN("no tick"),
    .ram_capacity = UNKNOWN("no source"),
    .energy = NO_SUM("no source"),
    .cpu_energy = NO_SUM("no source"),
    .dram_energy = NO_SUM("no source"),
    .gpu_energy = NO_SUM("no source"),
};

static const struct wm_tariff no_tariff;
static const struct wm_tariff tariff = { .carbon = 500, .pue = 1.5 };

static const struct {
    const char *name;
    const struct wm_report *report;
    const struct wm_tariff *tariff;
    const char *header;
    const char *row;
} rows[] = {
    { "all that is known", &full, &tariff, NULL,
      "2026-11-21T09:11:51,\"a \"\"b\"\", c\nd\",0b1a9f6e-8d7c-4a55-9d34-1f2e3d4c5b6a,e-1,"
      "100,1.5,0.015,54000,40500,13500,1.5,1.125,0.375,3,,,,,,,Linux 6.1.0,,"
      "wattmeter 0.1.0 (simulated),2,AMD EPYC,3,\"2 x NVIDIA H100, 1 x NVIDIA A100\",,,8,"
      "machine,12.5,50,,,,1.5,\n" },
    { "without factors", &full, &no_tariff, NULL,
      "2026-11-21T09:11:51,\"a \"\"b\"\", c\nd\",0b1a9f6e-8d7c-4a55-9d34-1f2e3d4c5b6a,e-1,"
      "100,,,36000,27000,9000,1,0.75,0.25,2,,,,,,,Linux 6.1.0,,"
      "wattmeter 0.1.0 (simulated),2,AMD EPYC,3,\"2 x NVIDIA H100, 1 x NVIDIA A100\",,,8,"
      "machine,12.5,50,,,,1,\n" },
    { "nothing is known", &empty, &tariff, NULL,
      ",wattmeter,,,,,,,,,,,,,,,,,,,,,wattmeter,,,,,,,,machine,,,,,,1.5,\n" },
    { "an old header", &empty, &tariff, VERSION_2_1,
      ",wattmeter,,,,,,,,,,,,,,,,,,,,,,,,,,machine,\n" },
};

static void test_rows(void **state)
{
    (void)state;
    setenv("TZ", "UTC0", 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *header = rows[i].header;
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        assert_non_null(out);
        wm_codecarbon_row(rows[i].report, rows[i].tariff, header,
                          header ? strlen(header) : 0, out);
        fclose(out);
        if (strcmp(text, rows[i].row) != 0)
            fail_msg("%s:\n%s", rows[i].name, text);
        free(text);
    }
}

/* As many cells as there are columns, in whatever order. */
static void test_order(void **state)
{
    static const char header[] = "wue,run_id,pue,on_cloud,emissions";
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    assert_non_null(out);
    wm_codecarbon_row(&full, &tariff, header, strlen(header), out);
    fclose(out);
    assert_string_equal(text, ",0b1a9f6e-8d7c-4a55-9d34-1f2e3d4c5b6a,1.5,,1.5\n");
    free(text);
}

static void test_headers(void **state)
{
    static const struct {
        const char *header;
        bool good;
    } headers[] = {
        { VERSION_3_3, true },
        { VERSION_2_8, true },
        { VERSION_2_1, true },
        { "pue," VERSION_2_1, true },
        { VERSION_2_1 ",wue", true },
        { "", false },
        { ",", false },
        { "timestamp", false },
        { VERSION_2_1 ",", false },
        { "," VERSION_2_1, false },
        { VERSION_2_1 ",on_cloud", false },
        { VERSION_2_1 ",ON_CLOUD", false },
        { VERSION_2_1 ",colour", false },
        { VERSION_2_1 ", pue", false },
        { VERSION_2_1 ",\"pue\"", false },
        { "\357\273\277" VERSION_2_1, false },
        { VERSION_2_8 "x", false },
        { "project_name,run_id,duration," FIRST_OF_ALL PLACE MACHINE "on_cloud", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        if (wm_codecarbon_is_header(headers[i].header, strlen(headers[i].header)) !=
            headers[i].good)
            fail_msg("'%s'", headers[i].header);
    }
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    wm_codecarbon_header(out);
    fclose(out);
    assert_string_equal(text, VERSION_3_3 "\n");
    free(text);
}

#define EMPTY_3_3 ",wattmeter,,,,,,,,,,,,,,,,,,,,,wattmeter,,,,,,,,machine,,,,,,1,\n"
#define EMPTY_2_8 ",wattmeter,,,,,,,,,,,,,,,,,,,,wattmeter,,,,,,,,machine,,1\n"

static const struct {
    const char *name;
    const char *before; /* NULL: there is no file */
    enum wm_record_mode mode;
    int status;
    const char *after; /* NULL: as before */
} files[] = {
    { "new", NULL, WM_RECORD_NEW, WM_OK, VERSION_3_3 "\n" EMPTY_3_3 },
    { "new to append to", NULL, WM_RECORD_APPEND, WM_OK, VERSION_3_3 "\n" EMPTY_3_3 },
    { "new to overwrite", NULL, WM_RECORD_OVERWRITE, WM_OK, VERSION_3_3 "\n" EMPTY_3_3 },
    { "there", VERSION_3_3 "\nrow\n", WM_RECORD_NEW, WM_EEXIST, NULL },
    { "there, and empty", "", WM_RECORD_NEW, WM_EEXIST, NULL },
    { "overwritten", "anything", WM_RECORD_OVERWRITE, WM_OK, VERSION_3_3 "\n" EMPTY_3_3 },
    { "one more", VERSION_3_3 "\nrow\n", WM_RECORD_APPEND, WM_OK,
      VERSION_3_3 "\nrow\n" EMPTY_3_3 },
    { "one more of an older version", VERSION_2_8 "\nrow\n", WM_RECORD_APPEND, WM_OK,
      VERSION_2_8 "\nrow\n" EMPTY_2_8 },
    { "of Windows", VERSION_2_8 "\r\nrow\r\n", WM_RECORD_APPEND, WM_OK,
      VERSION_2_8 "\r\nrow\r\n" EMPTY_2_8 },
    { "cut off", VERSION_2_8 "\nro", WM_RECORD_APPEND, WM_OK,
      VERSION_2_8 "\nro\n" EMPTY_2_8 },
    { "a header alone, cut off", VERSION_2_8, WM_RECORD_APPEND, WM_OK,
      VERSION_2_8 "\n" EMPTY_2_8 },
    { "empty", "", WM_RECORD_APPEND, WM_OK, VERSION_3_3 "\n" EMPTY_3_3 },
    { "something else", "a,b\n1,2\n", WM_RECORD_APPEND, WM_EINVAL, NULL },
    { "half a header", "timestamp,project_name\n", WM_RECORD_APPEND, WM_EINVAL, NULL },
    { "an empty line", "\n", WM_RECORD_APPEND, WM_EINVAL, NULL },
    { "a column more", VERSION_3_3 ",x\n", WM_RECORD_APPEND, WM_EINVAL, NULL },
};

static void check_file(const char *name, const char *path, const char *expected)
{
    struct wm_error err = { 0 };
    size_t length = 0;
    char *text;

    if (!expected) {
        assert_int_equal(access(path, F_OK), -1);
        return;
    }
    if (wm_file_slurp(path, 1 << 20, &text, &length, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    if (strcmp(text, expected) != 0)
        fail_msg("%s:\n%s", name, text);
    free(text);
}

static void test_files(void **state)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/emissions.csv", (const char *)*state);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct wm_error err = { 0 };
        unlink(path);
        if (files[i].before)
            test_write_file(*state, "emissions.csv", files[i].before);
        int status = wm_report_write_codecarbon(&empty, path, files[i].mode, NULL, &err);
        if (status != files[i].status)
            fail_msg("%s: %d, %s", files[i].name, status, err.text);
        check_file(files[i].name, path, files[i].after ? files[i].after : files[i].before);
    }
}

static void test_refused(void **state)
{
    static char line[8192];
    const struct wm_report_style wrong = { .pue = 0.5 };
    char path[256];
    struct wm_error err;

    snprintf(path, sizeof(path), "%s/x.csv", (const char *)*state);
    assert_int_equal(wm_report_write_codecarbon(&empty, path, WM_RECORD_NEW, &wrong, &err),
                     WM_EINVAL);
    assert_int_equal(access(path, F_OK), -1);

    memset(line, 'x', sizeof(line) - 1);
    test_write_file(*state, "x.csv", line);
    assert_int_equal(wm_report_write_codecarbon(&empty, path, WM_RECORD_APPEND, NULL, &err),
                     WM_EINVAL);
    assert_non_null(strstr(err.text, "too long"));

    snprintf(path, sizeof(path), "%s/none/x.csv", (const char *)*state);
    assert_int_equal(wm_report_write_codecarbon(&empty, path, WM_RECORD_NEW, NULL, &err),
                     WM_ENOENT);
    assert_int_equal(
        wm_report_write_codecarbon(&empty, "/dev/full", WM_RECORD_APPEND, NULL, &err),
        WM_EINVAL);
    assert_int_equal(
        wm_report_write_codecarbon(&empty, *state, WM_RECORD_APPEND, NULL, &err),
        WM_EINVAL);
}

/* A link leads to the file that rows are added to; it is not what gets replaced. */
static void test_link(void **state)
{
    char path[256];
    struct wm_error err;

    test_write_file(*state, "real.csv", VERSION_2_8 "\n");
    snprintf(path, sizeof(path), "%s/link.csv", (const char *)*state);
    assert_int_equal(symlink("real.csv", path), 0);
    assert_int_equal(
        wm_report_write_codecarbon(&empty, path, WM_RECORD_OVERWRITE, NULL, &err),
        WM_EINVAL);
    assert_int_equal(wm_report_write_codecarbon(&empty, path, WM_RECORD_APPEND, NULL, &err),
                     WM_OK);
    check_file("link", path, VERSION_2_8 "\n" EMPTY_2_8);
}

/* Of a row that does not fit nothing stays. */
static void test_no_space(void **state)
{
    static const char before[] = VERSION_2_8 "\nro";
    const struct rlimit tight = { sizeof(before) + 10, RLIM_INFINITY };
    char path[256], fresh[256];
    struct rlimit old;
    struct wm_error err;

    test_write_file(*state, "space.csv", before);
    snprintf(path, sizeof(path), "%s/space.csv", (const char *)*state);
    snprintf(fresh, sizeof(fresh), "%s/fresh.csv", (const char *)*state);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    int added = wm_report_write_codecarbon(&empty, path, WM_RECORD_APPEND, NULL, &err);
    int made = wm_report_write_codecarbon(&empty, fresh, WM_RECORD_NEW, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);

    assert_true(added < 0 && made < 0);
    check_file("no space", path, before);
    check_file("no space", fresh, NULL);
}

/* What cannot be written leaves everything as it was. */
static void test_out_of_memory(void **state)
{
    static const char before[] = VERSION_2_8 "\nrow\n";
    char path[256];
    int status;

    snprintf(path, sizeof(path), "%s/memory.csv", (const char *)*state);
    test_write_file(*state, "memory.csv", before);
    for (long nth = 0;; nth++) {
        test_fail_allocation(nth);
        status = wm_report_write_codecarbon(&empty, path, WM_RECORD_APPEND, NULL, NULL);
        test_fail_allocation(-1);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        check_file("out of memory", path, before);
        assert_true(nth < 100);
    }
    check_file("with memory", path, VERSION_2_8 "\nrow\n" EMPTY_2_8);
}

#define IN_FOLDER(test)                                                                    \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)

UNIT(codecarbon)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_order),
        cmocka_unit_test(test_headers), IN_FOLDER(test_files),
        IN_FOLDER(test_refused),        IN_FOLDER(test_link),
        IN_FOLDER(test_no_space),       IN_FOLDER(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
