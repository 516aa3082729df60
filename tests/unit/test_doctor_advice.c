/* SPDX-License-Identifier: Apache-2.0 */
/* test_doctor_advice.c - which command is advised, and that it can be typed as it
 * stands. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/doctor.h"

/* A word in quotes that is as long as it may be, and one that is longer. */
static char longest[WM_ADVICE_SIZE], too_long[WM_ADVICE_SIZE];

static void test_commands(void **state)
{
    static const struct {
        const char *name;
        const char *word;
        const char *command; /* NULL: none */
    } rows[] = {
        { "plain", "/sys/class/hwmon/hwmon3/temp1_input",
          "cat /sys/class/hwmon/hwmon3/temp1_input   # now" },
        { "every plain sign", "/a_b.c:d@e%f+g,h-i", "cat /a_b.c:d@e%f+g,h-i   # now" },
        { "blank", "/my dir/x", "cat '/my dir/x'   # now" },
        { "quote", "/it's/x", "cat '/it'\\''s/x'   # now" },
        { "only a quote", "'", "cat ''\\'''   # now" },
        { "what a shell would execute", "/$(reboot)`x`;&|<>*?[]{}!#~\"\\",
          "cat '/$(reboot)`x`;&|<>*?[]{}!#~\"\\'   # now" },
        { "a percent sign and an s", "/%s", "cat /%s   # now" },
        { "UTF-8", "/home/j\303\266rg", "cat '/home/j\303\266rg'   # now" },
        { "as long as fits", longest, "*" },
        { "longer", too_long, NULL },
        { "empty", "", NULL },
        { "an option", "-rf", NULL },
        { "newline", "/a\nreboot", NULL },
        { "escape", "/a\033[2J", NULL },
        { "delete", "/a\177", NULL },
        { "not UTF-8", "/a\377", NULL },
        { "cut UTF-8", "/a\303", NULL },
    };
    static struct wm_advice advice;
    (void)state;

    memset(longest, ' ', sizeof(longest) - 1 - strlen("cat ''   # now"));
    memset(too_long, ' ', sizeof(longest) - 1 - strlen("cat ''   # no"));
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        const char *expected = rows[r].command;
        advice.count = 0;
        wm_advice_add(&advice, "it may not be read", "cat %s   # now", rows[r].word);
        assert_int_equal(advice.count, 1);
        const char *command = advice.list[0].command;
        assert_string_equal(advice.list[0].problem, "it may not be read");
        if (!command != !expected ||
            (expected && expected[0] != '*' && strcmp(command, expected) != 0))
            fail_msg("%s: %s", rows[r].name, command ? command : "no command");
        if (expected && expected[0] == '*')
            assert_int_equal(strlen(command), WM_ADVICE_SIZE - 1);
    }
}

static void test_list(void **state)
{
    static struct wm_advice advice;
    char name[16], text[2 * WM_ADVICE_SIZE];
    (void)state;

    wm_advice_add(&advice, "one", "sudo x");
    wm_advice_add(&advice, "the same command solves two", "sudo x");
    assert_int_equal(advice.count, 1);
    wm_advice_add(&advice, "no command\n\033[2J \377", NULL);
    wm_advice_add(&advice, "nor here", NULL);
    assert_int_equal(advice.count, 3);
    assert_string_equal(advice.list[1].problem, "no command??[2J ?");
    assert_null(advice.list[1].command);

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    wm_advice_add(&advice, text, "sudo %s %s", "a", text);
    assert_int_equal(strlen(advice.list[3].problem), WM_ADVICE_SIZE - 1);
    assert_null(advice.list[3].command);

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "%d", i);
        wm_advice_add(&advice, name, "sudo %s", name);
    }
    assert_int_equal(advice.count, WM_ADVICE_MAX);
    assert_string_equal(advice.list[WM_ADVICE_MAX - 1].command, "sudo 3");
}

static void test_capability(void **state)
{
    static const struct {
        const char *program, *word; /* as it is written in the command; NULL: no command */
    } rows[] = {
        { "/usr/bin/wattmeter", "/usr/bin/wattmeter" },
        { "/wattmeter", "/wattmeter" },
        { "/opt/my tools/wattmeter", "'/opt/my tools/wattmeter'" },
        { "", NULL }, /* not known, or cut */
        { "/usr/bin/python3.11", NULL },
        { "/usr/bin/wattmeter (deleted)", NULL },
        { "/usr/bin/wattmeter2", NULL },
        { "/usr/bin/wattmeter/python3", NULL },
        { "/usr/bin/mywattmeter", NULL },
        { "/usr/\nbin/wattmeter", NULL },
        { "wattmeter", NULL },
    };
    static struct wm_advice advice;
    char group[WM_PERMISSION_NAME_SIZE], expected[WM_ADVICE_SIZE];
    (void)state;

    wm_permission_group(group, sizeof(group));
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        const char *word = rows[r].word;
        snprintf(expected, sizeof(expected),
                 "sudo chgrp %s %s && sudo chmod o= %s && sudo setcap cap_x+ep %s", group,
                 word ? word : "", word ? word : "", word ? word : "");
        advice.count = 0;
        wm_permission_capability(&advice, "why", "cap_x+ep", rows[r].program);
        assert_int_equal(advice.count, 1);
        const char *command = advice.list[0].command;
        if (!command != !word || (command && strcmp(command, expected)))
            fail_msg("%s: %s", rows[r].program, command ? command : "no command");
    }
}

static void test_paranoid(void **state)
{
    static const struct {
        const char *text;
        int level;
        bool is_paranoid;
    } rows[] = {
        { "3\n", 2, true },  { "2\n", 2, false },  { "2\n", 1, true },
        { "0\n", 0, false }, { "1\n", 0, true },   { "-1\n", 0, false },
        { "\n", 0, false },  { "x\n", -1, false }, { "99999999999999999999\n", 0, false },
    };
    const char *dir = *state;
    char long_name[1024];

    assert_false(wm_permission_is_paranoid(dir, -1));
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        test_write_file(dir, "sys/kernel/perf_event_paranoid", rows[r].text);
        if (wm_permission_is_paranoid(dir, rows[r].level) != rows[r].is_paranoid)
            fail_msg("row %zu", r);
    }
    memset(long_name, '/', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_false(wm_permission_is_paranoid(long_name, 0));
}

/* Whether the advice is about what not everybody ought to know. */
static bool is_counter(const char *source_name, const struct wm_doctor_advice *advice)
{
    return advice->command &&
           (strcmp(source_name, "rapl") == 0 || strstr(advice->problem, "energy1_input") ||
            strstr(advice->problem, "hwmon5/power") ||
            strstr(advice->problem, "device/power"));
}

/* What `advise` says as a user who is not root; the test may be. */
static void check_advice_as_nobody(const char *dir, const char *source_name,
                                   enum wm_health health, int perf_errno, size_t count,
                                   const char *problem, const char *command)
{
    char procfs[256], sysfs[256];

    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static struct wm_advice advice;
        const struct wm_doctor_source source = { .name = source_name, .health = health };

        snprintf(procfs, sizeof(procfs), "%s/proc", dir);
        snprintf(sysfs, sizeof(sysfs), "%s/sys", dir);
        const struct wm_source_config config = { .procfs = procfs, .sysfs = sysfs };
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        wm_advise(&source, &config, perf_errno, &advice);
        bool right = advice.count == count;
        for (size_t i = 0; i < advice.count; i++)
            right &= !is_counter(source_name, &advice.list[i]) ||
                     !strstr(advice.list[i].command, "chmod");
        if (right && count > 0)
            right =
                strstr(advice.list[0].problem, problem) &&
                (command ? advice.list[0].command && strstr(advice.list[0].command, command)
                         : !advice.list[0].command);
        if (!right)
            fprintf(stderr, "# %s: %zu: %s / %s\n", source_name, advice.count,
                    advice.count ? advice.list[0].problem : "",
                    advice.count && advice.list[0].command ? advice.list[0].command : "");
        _exit(right ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void make_private(const char *dir, const char *path, mode_t mode)
{
    char full[1024];

    snprintf(full, sizeof(full), "%s/%s", dir, path);
    assert_int_equal(chmod(full, mode), 0);
}

static void test_advice(void **state)
{
    const char *dir = *state;

    assert_int_equal(chmod(dir, 0755), 0);
    check_advice_as_nobody(dir, "hwmon", WM_HEALTH_ABSENT, 0, 0, "", NULL);
    check_advice_as_nobody(dir, "nvml", WM_HEALTH_ABSENT, 0, 0, "", NULL);
    check_advice_as_nobody(dir, "drm", WM_HEALTH_ABSENT, 0, 0, "", NULL);
    check_advice_as_nobody(dir, "drm", WM_HEALTH_DENIED, 0, 1, "belong to others", NULL);
    check_advice_as_nobody(dir, "tracker", WM_HEALTH_GOOD, 0, 0, "", NULL);
    check_advice_as_nobody(dir, "tracker", WM_HEALTH_PARTLY, 1, 1, "containers", "PERFMON");
    test_write_file(dir, "proc/sys/kernel/perf_event_paranoid", "3\n");
    check_advice_as_nobody(dir, "tracker", WM_HEALTH_PARTLY, 13, 1, "forbids perf counters",
                           "sudo sysctl kernel.perf_event_paranoid=2");
    test_write_file(dir, "proc/sys/kernel/perf_event_paranoid", "-1 or so\n");
    check_advice_as_nobody(dir, "tracker", WM_HEALTH_PARTLY, 38, 1, "containers",
                           "PERFMON");

    test_write_file(dir, "sys/class/hwmon/hwmon3/temp1_input", "45000\n");
    test_write_file(dir, "sys/class/hwmon/hwmon3/temp2_input", "1\n");
    check_advice_as_nobody(dir, "hwmon", WM_HEALTH_GOOD, 0, 0, "", NULL);
    make_private(dir, "sys/class/hwmon/hwmon3/temp2_input", 0000);
    check_advice_as_nobody(dir, "hwmon", WM_HEALTH_PARTLY, 0, 1,
                           "hwmon3/temp2_input may not be read", "sudo chmod o+r ");

    test_write_file(dir, "sys/class/drm/card1/device/hwmon/hwmon4/power1_average", "1\n");
    check_advice_as_nobody(dir, "drm", WM_HEALTH_GOOD, 0, 0, "", NULL);
    make_private(dir, "sys/class/drm/card1/device/hwmon/hwmon4/power1_average", 0000);
    check_advice_as_nobody(dir, "drm", WM_HEALTH_DENIED, 0, 1,
                           "hwmon4/power1_average may not be read", "sudo chmod o+r ");

    test_write_file(dir, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x8086\n");
    test_write_file(dir, "sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
    test_write_file(dir, "sys/bus/pci/devices/0000:02:00.1/vendor", "0x10de\n");
    test_write_file(dir, "sys/bus/pci/devices/0000:02:00.1/class", "0x040300\n");
    check_advice_as_nobody(dir, "nvml", WM_HEALTH_ABSENT, 0, 0, "", NULL);
    test_write_file(dir, "sys/bus/pci/devices/0000:02:00.0/vendor", "0x10de\n");
    test_write_file(dir, "sys/bus/pci/devices/0000:02:00.0/class", "0x030200\n");
    check_advice_as_nobody(dir, "nvml", WM_HEALTH_ABSENT, 0, 1, "on the PCI bus",
                           "modprobe nvidia");
    test_write_file(dir, "proc/driver/nvidia/version", "NVRM\n");
    check_advice_as_nobody(dir, "nvml", WM_HEALTH_ABSENT, 0, 1, "container", "--gpus all");
    check_advice_as_nobody(dir, "nvml", WM_HEALTH_GOOD, 0, 0, "", NULL);
    check_advice_as_nobody(dir, "nvml", WM_HEALTH_DENIED, 0, 1, "refuses this user",
                           "--gpus all");
}

/* Counters that tell what others compute are never advised to be opened to all. */
static void test_advice_on_counters(void **state)
{
    static const char *const sensors[] = { "energy1_input", "power1_input",
                                           "power1_average", "device/power2_average" };
    const char *dir = *state;
    char path[128], command[400];

    assert_int_equal(chmod(dir, 0755), 0);
    for (size_t i = 0; i < ARRAY_LEN(sensors); i++) {
        snprintf(path, sizeof(path), "sys/class/hwmon/hwmon5/%s", sensors[i]);
        test_write_file(dir, path, "1\n");
        check_advice_as_nobody(dir, "hwmon", WM_HEALTH_GOOD, 0, 0, "", NULL);
        snprintf(command, sizeof(command), " %s/%s   # until", dir, path);
        make_private(dir, path, 0000);
        check_advice_as_nobody(dir, "hwmon", WM_HEALTH_PARTLY, 0, 1, "may not be read",
                               command);
        make_private(dir, path, 0444);
    }

    test_write_file(dir, "sys/class/powercap/intel-rapl:0/energy_uj", "1\n");
    test_write_file(dir, "sys/class/powercap/intel-rapl:0:0/energy_uj", "1\n");
    check_advice_as_nobody(dir, "rapl", WM_HEALTH_GOOD, 0, 0, "", NULL);
    check_advice_as_nobody(dir, "rapl", WM_HEALTH_BROKEN, 0, 0, "", NULL);
    make_private(dir, "sys/class/powercap/intel-rapl:0:0/energy_uj", 0000);
    check_advice_as_nobody(dir, "rapl", WM_HEALTH_GOOD, 0, 0, "", NULL);
    snprintf(command, sizeof(command), " %s/sys/class/powercap/*:*/energy_uj   # until",
             dir);
    check_advice_as_nobody(dir, "rapl", WM_HEALTH_DENIED, 0, 1, "rapl-permissions.sh",
                           command);

    /* Perf events as well, where there are such of energy. */
    test_write_file(dir, "proc/sys/kernel/perf_event_paranoid", "2\n");
    check_advice_as_nobody(dir, "rapl", WM_HEALTH_DENIED, 0, 1, "for root alone", command);
    test_write_file(dir, "sys/bus/event_source/devices/power/type", "23\n");
    check_advice_as_nobody(dir, "rapl", WM_HEALTH_DENIED, 0, 2, "for root alone", command);
    make_private(dir, "sys/class/powercap/intel-rapl:0:0/energy_uj", 0444);
    check_advice_as_nobody(dir, "rapl", WM_HEALTH_DENIED, 0, 1, "to every user",
                           "sudo sysctl kernel.perf_event_paranoid=0");
    test_write_file(dir, "proc/sys/kernel/perf_event_paranoid", "0\n");
    check_advice_as_nobody(dir, "rapl", WM_HEALTH_DENIED, 0, 0, "", NULL);
}

/* Names that a shell or glob(3) would take for something else. */
static void test_advice_in_a_strange_place(void **state)
{
    char dir[256], expected[512];

    assert_int_equal(chmod(*state, 0755), 0);
    snprintf(dir, sizeof(dir), "%s/it's [a] *\\", (const char *)*state);
    assert_int_equal(mkdir(dir, 0755), 0);
    test_write_file(dir, "sys/class/hwmon/hwmon3/temp1_input", "45000\n");
    make_private(dir, "sys/class/hwmon/hwmon3/temp1_input", 0);
    snprintf(expected, sizeof(expected),
             "sudo chmod o+r '%s/it'\\''s [a] *\\/sys/class/hwmon/hwmon3/temp1_input'  ",
             (const char *)*state);
    check_advice_as_nobody(dir, "hwmon", WM_HEALTH_DENIED, 0, 1, "may not be read",
                           expected);
}

/* A hostile tree: more denied files than are listed, names that would not fit, and a
 * folder in place of a file. */
static void test_advice_is_bounded(void **state)
{
    const char *dir = *state;
    char path[600], name[200];

    assert_int_equal(chmod(dir, 0755), 0);
    test_write_file(dir, "sys/class/hwmon/hwmon0/temp1_input/x", "1\n");
    make_private(dir, "sys/class/hwmon/hwmon0/temp1_input", 0);
    check_advice_as_nobody(dir, "hwmon", WM_HEALTH_GOOD, 0, 0, "", NULL);

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (int i = 2; i < 20; i++) {
        snprintf(path, sizeof(path), "sys/class/hwmon/hwmon0/temp%d_input", i);
        test_write_file(dir, path, "1\n");
        make_private(dir, path, 0);
    }
    snprintf(path, sizeof(path), "sys/class/hwmon/hwmon%s/temp1_input", name);
    test_write_file(dir, path, "1\n");
    make_private(dir, path, 0);
    check_advice_as_nobody(dir, "hwmon", WM_HEALTH_DENIED, 0, WM_ADVICE_MAX,
                           "may not be read", "chmod");
}

UNIT(doctor_advice)
{
#define IN_FOLDER(test)                                                                    \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_capability),
        IN_FOLDER(test_paranoid),
        IN_FOLDER(test_advice),
        IN_FOLDER(test_advice_on_counters),
        IN_FOLDER(test_advice_in_a_strange_place),
        IN_FOLDER(test_advice_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
