/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_battery.c - batteries, from small trees that stand for /sys. */
#include "test.h"
#include "test_sensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wattmeter/source.h"

enum { MAX_BATTERIES = 8 };

/* "BAT0/status" below the class. */
static void write_supply(const char *dir, const char *name, const char *text)
{
    char path[320];

    snprintf(path, sizeof(path), "class/power_supply/%s", name);
    test_write_file(dir, path, text);
}

static struct wm_source *open_battery(const char *sysfs)
{
    const struct wm_source_config config = { .sysfs = sysfs };
    struct wm_source *source = NULL;
    struct wm_error err;

    if (wm_source_open("battery", &config, &source, &err) < 0)
        fail_msg("%s", err.text);
    return source;
}

static void check_reading(struct wm_source *source, enum wm_reading_state state,
                          double watts, const char *why)
{
    struct wm_reading reading;

    test_fail_allocation(-1);
    assert_int_equal(wm_source_read(source, &reading, 1, NULL), WM_OK);
    assert_int_equal(test_fail_allocation(-1), 0);
    assert_int_equal(reading.state, state);
    assert_true(reading.when_ns > 0);
    assert_int_equal(wm_source_why(source, 0) == NULL, why == NULL);
    if (why)
        assert_non_null(strstr(wm_source_why(source, 0), why));
    else
        assert_true(fabs(reading.value - watts) < 1e-9);
}

#define OK WM_READING_OK
#define FAILED WM_READING_FAILED

/* A battery that tells its power. */
static void test_power(void **state)
{
    static const struct {
        const char *what;
        const char *status, *power;
        enum wm_reading_state state;
        double watts;
        const char *why;
    } steps[] = {
        { "in use", "Discharging\n", "9876000\n", OK, 9.876, NULL },
        { "negative", "Discharging\n", "-9876000\n", OK, 9.876, NULL },
        { "no newline", "Discharging", "9876000", OK, 9.876, NULL },
        { "full", "Full\n", "0\n", FAILED, 0, "not in use: Full" },
        { "charging", "Charging\n", "45000000\n", FAILED, 0, "not in use: Charging" },
        { "held", "Not charging\n", "0\n", FAILED, 0, "not in use: Not charging" },
        { "unknown", "Unknown\n", "5000000\n", FAILED, 0, "not in use: Unknown" },
        { "another case", "discharging\n", "5000000\n", FAILED, 0, "not in use" },
        { "no status", "", "9876000\n", FAILED, 0, "not in use: " },
        { "binary status", "\xff\xfe\x01", "9876000\n", FAILED, 0, "not in use: ?" },
        { "a long status", "Discharging and then some more words", "9876000\n", FAILED, 0,
          "not in use: Discharging and" },
        { "no watts", "Discharging\n", "0\n", FAILED, 0, "reports 0 W" },
        { "no power", "Discharging\n", "", FAILED, 0, "power_now: '' is no number" },
        { "garbage", "Discharging\n", "9.8 W\n", FAILED, 0, "power_now: '9.8 W'" },
        { "two signs", "Discharging\n", "--5\n", FAILED, 0, "'--5' is no number" },
        { "all ones", "Discharging\n", "4294967295000\n", FAILED, 0, "W is no battery" },
        { "the least", "Discharging\n", "-9223372036854775808\n", FAILED, 0, "is no" },
        { "huge", "Discharging\n", "99999999999999999999\n", FAILED, 0, "'999" },
        { "again", "Discharging\n", "1000000\n", OK, 1, NULL },
    };
    const char *dir = *state;

    write_supply(dir, "BAT0/type", "Battery\n");
    write_supply(dir, "BAT0/status", "");
    write_supply(dir, "BAT0/power_now", "");
    /* They differ from the power, which is what counts. */
    write_supply(dir, "BAT0/current_now", "1000000\n");
    write_supply(dir, "BAT0/voltage_now", "1000000\n");
    struct wm_source *source = open_battery(dir);
    const struct wm_channel *channel = wm_source_channel(source, 0);
    assert_int_equal(wm_source_channel_count(source), 1);
    assert_string_equal(channel->source, "battery");
    assert_string_equal(channel->device, "BAT0");
    assert_string_equal(channel->label, "BAT0");
    assert_string_equal(channel->metric, "power");
    assert_string_equal(channel->unit, "W");
    assert_described(channel);
    assert_int_equal(channel->device_kind, WM_DEVICE_PLATFORM);
    assert_int_equal(channel->kind, WM_GAUGE);
    assert_int_equal(channel->origin, WM_MEASURED);

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        print_message("  %s\n", steps[i].what);
        write_supply(dir, "BAT0/status", steps[i].status);
        write_supply(dir, "BAT0/power_now", steps[i].power);
        check_reading(source, steps[i].state, steps[i].watts, steps[i].why);
    }
    wm_source_close(source);
}

/* A battery that tells current and voltage. */
static void test_product(void **state)
{
    static const struct {
        const char *what;
        const char *current, *voltage;
        enum wm_reading_state state;
        double watts;
        const char *why;
    } steps[] = {
        { "in use", "1500000\n", "11400000\n", OK, 17.1, NULL },
        { "negative", "-1500000\n", "11400000\n", OK, 17.1, NULL },
        { "no current", "0\n", "11400000\n", FAILED, 0, "reports 0 W" },
        { "empty current", "", "11400000\n", FAILED, 0, "current_now: '' is no number" },
        { "empty voltage", "1500000\n", "", FAILED, 0, "voltage_now: '' is no number" },
        { "garbage", "1500000\n", "11.4\n", FAILED, 0, "voltage_now: '11.4'" },
        { "huge", "9223372036854775807\n", "9223372036854775807\n", FAILED, 0,
          "W is no battery" },
    };
    const char *dir = *state;

    write_supply(dir, "max170xx/type", "Battery\n");
    write_supply(dir, "max170xx/scope", "System\n");
    write_supply(dir, "max170xx/status", "Discharging\n");
    write_supply(dir, "max170xx/current_now", "");
    write_supply(dir, "max170xx/voltage_now", "");
    struct wm_source *source = open_battery(dir);
    assert_string_equal(wm_source_channel(source, 0)->label, "max170xx");
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        print_message("  %s\n", steps[i].what);
        write_supply(dir, "max170xx/current_now", steps[i].current);
        write_supply(dir, "max170xx/voltage_now", steps[i].voltage);
        check_reading(source, steps[i].state, steps[i].watts, steps[i].why);
    }
    wm_source_close(source);
}

/* What is not there costs the reading, and says which file it was. */
static void test_missing(void **state)
{
    static const char *const names[] = { "status", "power_now", "current_now",
                                         "voltage_now" };
    static const struct {
        const char *what;
        const char *texts[4];
        enum wm_reading_state state;
        const char *why;
    } cases[] = {
        { "nothing but a type", { NULL }, WM_READING_UNSUPPORTED, "status: No such" },
        { "no power at all",
          { "Discharging\n" },
          WM_READING_UNSUPPORTED,
          "power_now: No such" },
        { "only a voltage",
          { "Discharging\n", NULL, NULL, "11400000\n" },
          WM_READING_UNSUPPORTED,
          "power_now: No such" },
        { "only a current",
          { "Discharging\n", NULL, "1500000\n", NULL },
          WM_READING_UNSUPPORTED,
          "voltage_now: No such" },
        { "only a power", { "Discharging\n", "1500000\n" }, OK, NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        write_supply(*state, "BAT0/type", "Battery\n");
        for (size_t n = 0; n < ARRAY_LEN(names); n++) {
            char path[64];
            snprintf(path, sizeof(path), "BAT0/%s", names[n]);
            if (cases[i].texts[n])
                write_supply(*state, path, cases[i].texts[n]);
        }
        struct wm_source *source = open_battery(*state);
        check_reading(source, cases[i].state, 1.5, cases[i].why);
        wm_source_close(source);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* One in use and one that waits, as in some laptops; the order lasts. */
static void test_two(void **state)
{
    const char *dir = *state;
    struct wm_reading readings[2];

    for (int i = 1; i >= 0; i--) {
        char path[32];
        snprintf(path, sizeof(path), "BAT%d/type", i);
        write_supply(dir, path, "Battery\n");
        snprintf(path, sizeof(path), "BAT%d/status", i);
        write_supply(dir, path, i ? "Not charging\n" : "Discharging\n");
        snprintf(path, sizeof(path), "BAT%d/power_now", i);
        write_supply(dir, path, i ? "0\n" : "7000000\n");
    }
    struct wm_source *source = open_battery(dir);
    assert_int_equal(wm_source_channel_count(source), 2);
    assert_string_equal(wm_source_channel(source, 0)->device, "BAT0");
    assert_string_equal(wm_source_channel(source, 1)->device, "BAT1");
    assert_int_equal(wm_source_read(source, readings, 2, NULL), WM_OK);
    assert_int_equal(readings[0].state, OK);
    assert_true(fabs(readings[0].value - 7) < 1e-9);
    assert_int_equal(readings[1].state, FAILED);

    /* The first is empty, and the second takes over. */
    write_supply(dir, "BAT0/status", "Unknown\n");
    write_supply(dir, "BAT1/status", "Discharging\n");
    write_supply(dir, "BAT1/power_now", "6000000\n");
    assert_int_equal(wm_source_read(source, readings, 2, NULL), WM_OK);
    assert_int_equal(readings[0].state, FAILED);
    assert_int_equal(readings[1].state, OK);
    assert_true(fabs(readings[1].value - 6) < 1e-9);
    wm_source_close(source);
}

static void test_none(void **state)
{
    static const struct {
        const char *what;
        const char *names[2], *texts[2];
    } cases[] = {
        { "nothing", { NULL }, { NULL } },
        { "mains", { "AC/type" }, { "Mains\n" } },
        { "no type", { "BAT0/status" }, { "Discharging\n" } },
        { "an empty type", { "BAT0/type" }, { "" } },
        { "nearly a battery", { "BAT0/type" }, { "Battery2\n" } },
        { "a mouse",
          { "hidpp_battery_0/type", "hidpp_battery_0/scope" },
          { "Battery\n", "Device\n" } },
        { "a file where a battery should be", { "BAT0" }, { "Battery\n" } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_source *source = NULL;
        struct wm_error err = { 0 };

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        for (size_t n = 0; n < 2 && cases[i].names[n]; n++)
            write_supply(*state, cases[i].names[n], cases[i].texts[n]);
        const struct wm_source_config config = { .sysfs = *state };
        assert_int_equal(wm_source_open("battery", &config, &source, &err), WM_ENODEV);
        assert_null(source);
        assert_non_null(strstr(err.text, "no battery"));
        assert_int_equal(test_remove_dir(state), 0);
    }
}

static void test_long_path(void **state)
{
    char path[1024];
    const struct wm_source_config config = { .sysfs = path };
    struct wm_source *source = NULL;
    struct wm_error err = { 0 };
    (void)state;

    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(wm_source_open("battery", &config, &source, &err), WM_EINVAL);
    assert_non_null(strstr(err.text, "too long a path"));
}

static void test_many(void **state)
{
    const char *dir = *state;
    struct wm_reading readings[MAX_BATTERIES];

    for (int i = 0; i < MAX_BATTERIES + 3; i++) {
        char path[32];
        snprintf(path, sizeof(path), "BAT%d/type", i);
        write_supply(dir, path, "Battery\n");
    }
    struct wm_source *source = open_battery(dir);
    assert_int_equal(wm_source_channel_count(source), MAX_BATTERIES);
    assert_int_equal(wm_source_read(source, readings, MAX_BATTERIES, NULL), WM_OK);
    wm_source_close(source);
}

static void test_no_permission(void **state)
{
    const char *dir = *state;
    char path[512];

    if (geteuid() == 0) {
        print_message("  root may read everything\n");
        skip();
    }
    write_supply(dir, "BAT0/type", "Battery\n");
    write_supply(dir, "BAT0/status", "Discharging\n");
    write_supply(dir, "BAT0/power_now", "1000000\n");
    snprintf(path, sizeof(path), "%s/class/power_supply/BAT0/power_now", dir);
    assert_int_equal(chmod(path, 0), 0);
    struct wm_source *source = open_battery(dir);
    check_reading(source, WM_READING_DENIED, 0, "power_now: Permission denied");
    wm_source_close(source);
}

UNIT(source_battery)
{
#define IN_SCRATCH(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(test_power),         IN_SCRATCH(test_product),
        cmocka_unit_test(test_missing), IN_SCRATCH(test_two),
        cmocka_unit_test(test_none),    cmocka_unit_test(test_long_path),
        IN_SCRATCH(test_many),          IN_SCRATCH(test_no_permission),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
