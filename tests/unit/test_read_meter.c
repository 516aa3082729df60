/* SPDX-License-Identifier: Apache-2.0 */
/* test_read_meter.c - CSV files of external meters, and joining one to a
 * recording. A new case is a new row. */
#include "test_record_fixture.h"

#include <unistd.h>

#include "record/record_stats.h"

#define OMEGA                                                                              \
    "wattmetre-read on /dev/ttyUSB0\n#timestamp,#frame_is_ok,#U1,#current1,#activepow1,"   \
    "#activepow2\n"

/* The ticks of a recording and the integral of its channel `index`. */
struct found {
    size_t ticks;
    int64_t first_ns;
    struct wm_gauge_stats gauge;
    char trouble[256];
};

static int read_all(struct wm_recording *recording, size_t index, struct found *ret_found,
                    struct wm_error *err)
{
    struct found found = { 0 };
    struct wm_tick tick;
    int64_t last_ns = -1;
    int status;

    while ((status = wm_recording_next(recording, &tick, err)) > 0) {
        assert_true(tick.when_ns > last_ns);
        last_ns = tick.when_ns;
        if (found.ticks++ == 0)
            found.first_ns = tick.when_ns;
        wm_gauge_add(&found.gauge, &tick.readings[index]);
    }
    const struct wm_result *result = wm_recording_result(recording);
    if (result)
        snprintf(found.trouble, sizeof(found.trouble), "%s", result->recording_trouble);
    *ret_found = found;
    return status;
}

static void test_good(void **state)
{
    static const struct {
        const char *what, *text;
        size_t channels, ticks;
        int64_t first_ns;
        double joules; /* of the first channel */
        const char *trouble;
    } cases[] = {
        { "time and watts", "time,all_W\n100,10\n101,20\n102,30\n", 1, 3,
          INT64_C(100000000000), 40, "" },
        { "a unit behind the name", "timestamp,power_W\n100.5,10\n101.5,20\n", 1, 2,
          INT64_C(100500000000), 15, "" },
        { "other units", "timestamp_ms,power_kW\n1000,1\n2000,3\n", 1, 2,
          INT64_C(1000000000), 2000, "" },
        { "milliwatts and nanoseconds", "time_ns,power_mW\n1,500\n1000000001,500\n", 1, 2,
          1, 0.5, "" },
        { "quotes, blanks, CR LF", "\"time\", P_W\r\n\"100\",\"1\"\r\n101 , 1\r\n", 1, 2,
          INT64_C(100000000000), 1, "" },
        { "other columns",
          "n,volts_V,time,a_W,note,b_W\n1,230,100,1,x,9\n2,230,101,1,y,9\n", 2, 2,
          INT64_C(100000000000), 1, "" },
        { "dates", "time,a_W\n2026-11-21 08:48:21.5,1\n2026-11-21T08:48:22.5,1\n", 1, 2,
          INT64_C(1795250901500000000), 1, "" },
        { "dates with a zone",
          "time,a_W\n2026-11-21T08:48:21Z,1\n2026-11-21T09:48:22+01:00,1\n2026-11-21 "
          "00:48:23-0800,1\n",
          1, 3, INT64_C(1795250901000000000), 2, "" },
        { "microseconds since 1970 are kept",
          "time,a_W\n1795250901.123456,1\n1795250902.123456,1\n", 1, 2,
          INT64_C(1795250901123456000), 1, "" },
        { "powers of ten", "time,a_W\n1500,1\n1501,1e1\n", 1, 2, INT64_C(1500000000000),
          5.5, "" },
        { "omegawatt", OMEGA "100.00,true,230,1,10,1\n100.01,true,230,1,10,1\n", 2, 2,
          INT64_C(100000000000), 0.1, "" },
        { "omegawatt with a bad frame",
          OMEGA "100,true,230,1,10,1\n101,false,0,0,999,1\n102,true,230,1,10,1\n", 2, 2,
          INT64_C(100000000000), 20, "marks 1 of its readings" },
        { "a torn last line", "time,a_W\n100,10\n101,20\n102,3", 1, 2,
          INT64_C(100000000000), 15, "" },
        { "a hole", "time,a_W\n100,1\n101,1\n102,1\n110,1\n111,1\n", 1, 6,
          INT64_C(100000000000), 3, "" },
        { "three periods are no hole", "time,a_W\n100,1\n101,1\n102,1\n105,1\n", 1, 4,
          INT64_C(100000000000), 5, "" },
        { "an empty cell", "time,a_W\n100,1\n101,1\n102,\n103,1\n104,1\n", 1, 5,
          INT64_C(100000000000), 4, "" },
        { "an empty cell at first", "time,a_W\n100,\n101,1\n102,1\n", 1, 3,
          INT64_C(100000000000), 1, "" },
        { "an empty cell at last", "time,a_W\n100,1\n101,1\n102,\n", 1, 3,
          INT64_C(100000000000), 1, "" },
        { "every third", "time,a_W\n100,1\n101,1\n102,NaN\n103,1\n104,1\n105,NaN\n106,1\n",
          1, 7, INT64_C(100000000000), 6,
          "line 4: column 'a_W': 'NaN' is no power (rows and values left out: 2)" },
        { "one column, and not its neighbour",
          "time,a_W,b_mW\n100,1,1\n101,,1\n102,1,1\n103,1,1\n", 2, 4, INT64_C(100000000000),
          3, "" },
        { "less than nothing", "time,a_W\n100,1\n101,-1\n102,1\n103,1\n", 1, 4,
          INT64_C(100000000000), 3, "line 3: column 'a_W': '-1' is no power" },
        { "a unit behind the number", "time,a_W\n100,1\n101,1 W\n102,1\n", 1, 3,
          INT64_C(100000000000), 2, "'1 W' is no power" },
        { "a hole in one column",
          "time,a_W\n100,1\n101,1\n102,\n103,\n104,\n105,1\n106,1\n", 1, 8,
          INT64_C(100000000000), 2, "" },
        { "marked as UTF-8", "\xef\xbb\xbftime,a_W\n100,1\n101,1\n", 1, 2,
          INT64_C(100000000000), 1, "" },
        { "comments", "# a\n# b, c\n# time and W\ntime,a_W\n100,1\n# d\n101,1\n", 1, 2,
          INT64_C(100000000000), 1, "" },
        { "one in quotes", "time,a_W\n100,1\n\"101\",\"1,5\"\n102,1\n", 1, 3,
          INT64_C(100000000000), 2, "line 3: column 'a_W': '1,5' is no power" },
        { "a name in quotes", "\"time\",\"all, of it_W\"\n100,1\n101,1\n", 1, 2,
          INT64_C(100000000000), 1, "" },
        { "two columns of one name", "time,plug_W,plug_W\n100,1,7\n101,1,7\n", 2, 2,
          INT64_C(100000000000), 1, "" },
        { "no numbers",
          "time,a_W\n100,1\n101,NaN\n102,inf\n103,0x10\n104,1e999\n105,1\n106,1\n", 1, 8,
          INT64_C(100000000000), 1, "'NaN' is no power (rows and values left out: 4)" },
        { "rows that cannot be read",
          "time,a_W\n100,1\nhello\n101,1,1\n,1\n-5,1\n99e99,1\n101,1\n", 1, 2,
          INT64_C(100000000000), 1, "line 3" },
        { "a clock that was set back", "time,a_W\n100,1\n101,1\n50,1\n51,1\n102,1\n", 1, 3,
          INT64_C(100000000000), 2,
          "line 4: is not later than the one before (rows and values left out: 2)" },
        { "the same time twice", "time,a_W\n100,1\n100,5\n101,1\n", 1, 2,
          INT64_C(100000000000), 1, "line 3" },
        { "a line of words before the header", "a meter\ntime,a_W\n100,1\n101,1\n", 1, 2,
          INT64_C(100000000000), 1, "" },
        { "blank lines", "time,a_W\n\n100,1\n  \n101,1\n", 1, 2, INT64_C(100000000000), 1,
          "" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_recording *recording = NULL;
        struct wm_error err = { 0 };
        struct found found;
        print_message("  %s\n", cases[i].what);
        test_write_file(*state, "m.csv", cases[i].text);
        assert_ok(
            wm_recording_open(fixture_path(state, "m.csv"), WM_LAST_RUN, &recording, &err));
        const struct wm_channel *channel = wm_recording_channel(recording, 0);
        assert_int_equal(wm_recording_channel_count(recording), cases[i].channels);
        assert_string_equal(channel->label, cases[i].channels > 1 ? "meter1" : "meter");
        assert_int_equal(channel->device_kind, WM_DEVICE_PLATFORM);
        assert_ok(read_all(recording, 0, &found, &err));
        assert_false(wm_recording_result(recording)->tool_cpu_seconds.known);
        assert_false(wm_recording_result(recording)->tool_max_rss_bytes.known);
        assert_int_equal(found.ticks, cases[i].ticks);
        assert_int_equal(found.first_ns, cases[i].first_ns);
        assert_int_equal(wm_recording_run(recording)->anchor_unix_ns, cases[i].first_ns);
        assert_near(found.gauge.integral, cases[i].joules, 1e-9 * (1 + cases[i].joules));
        if (cases[i].trouble[0] ? !strstr(found.trouble, cases[i].trouble)
                                : found.trouble[0] != '\0')
            fail_msg("trouble: '%s'", found.trouble);
        wm_recording_close(recording);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *what, *text, *complains_of;
    } cases[] = {
        { "empty", "", "empty" },
        { "text", "hello\n", "not a recording" },
        { "no time", "power_W\n1\n", "not a recording" },
        { "no watts", "time,volts\n1,2\n", "no header with a time and watts" },
        { "megawatts", "# of all\ntime,a,power_MW\n1,2,3\n",
          "no header with a time and watts" },
        { "energy", "time,kWh\n1,2\n", "no header with a time and watts" },
        { "watts of what unit", "time,power\n1,2\n", "no header with a time and watts" },
        { "lines of words before a header", "a meter\nof mine\ntime,a_W\n1,2\n",
          "no header with a time and watts" },
        { "semicolons", "time;a_W\n100;1\n102;1\n", "not a recording" },
        { "tabs", "time\ta_W\n100\t1\n102\t1\n", "not a recording" },
        { "a decimal comma", "time;a_W\n100,5;1,5\n101,5;1,5\n",
          "no header with a time and watts" },
        { "a unit that is no end of a name", "time,power (W)\n1,2\n",
          "no header with a time and watts" },
        { "words far before the omegawatt's", "a\nb\n#timestamp,#frame_is_ok,#activepow1\n",
          "not a recording" },
        { "a time in powers of ten", "time,a_W\n1.5e3,1\n", "'1.5e3' is no time" },
        { "ends of lines of old spreadsheets", "time,W\r100,1\r101,1\r", "meter's CSV" },
        { "a unit that is none", "time,power_X\n1,2\n", "no header with a time and watts" },
        { "no header", "100,10\n101,10\n", "not a recording of wattmeter" },
        { "numbers alone", "1\n2\n", "not a recording of wattmeter" },
        { "UTF-16", "\xff\xfet\0i\0m\0e\0", "is in UTF-16; save it as UTF-8" },
        { "a date of another kind", "when,time,a_W\n1,21.11.2026 08:48:21,1\n",
          "line 2: column 'time': '21.11.2026 08:48:21' is no time" },
        { "milliseconds without a unit", "time,a_W\n1795250901123,1\n",
          "'1795250901123' is no time" },
        { "rows of another width", "time,a_W\n1,1,1\n", "line 2: not as many cells" },
        { "a header alone", "time,a_W\n", "holds no reading" },
        { "a quote that swallows rows", "time,a_W\n100,1\n\"101,1\n102,1\n103,1\n",
          "m.csv:3: a quote that is not closed" },
        { "a torn row alone", "time,a_W\n100,1", "holds no reading" },
        { "rows that are none", "time,a_W\nx,y\n\xff\xfe\n",
          "line 2: column 'time': 'x' is no time" },
        { "names for a terminal", "time\x1b[31m,W\nx,y\n", "not a recording" },
        { "cells for a terminal", "time,a_W\n\x1b[31m,1\n", "'?[31m' is no time" },
        { "omegawatt of bad frames", OMEGA "100,false,230,1,10,1\n", "holds no reading" },
        { "nothing but separators", ",,,,,,\n,,,,,\n", "not a recording" },
        { "binary",
          "\x7f"
          "ELF\x01\x02\x03",
          "not a recording" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_recording *recording = NULL;
        struct wm_error err = { 0 };
        print_message("  %s\n", cases[i].what);
        test_write_file(*state, "m.csv", cases[i].text);
        int status =
            wm_recording_open(fixture_path(state, "m.csv"), WM_LAST_RUN, &recording, &err);
        assert_int_equal(status, WM_EFORMAT);
        if (!strstr(err.text, cases[i].complains_of))
            fail_msg("%s", err.text);
    }
}

/* A header, then a line that is too long, or a NUL in a row. */
static void test_hostile_rows(void **state)
{
    struct wm_recording *recording = NULL;
    struct wm_error err = { 0 };
    enum { LENGTH = (1 << 20) + 100 };
    static char text[LENGTH + 64];

    size_t used = (size_t)sprintf(text, "time,a_W\n100,1\n101,1\n");
    memset(text + used, '7', LENGTH);
    strcpy(text + used + LENGTH, "\n");
    test_write_file(*state, "m.csv", text);
    assert_int_equal(
        wm_recording_open(fixture_path(state, "m.csv"), WM_LAST_RUN, &recording, &err),
        WM_EFORMAT);
    assert_non_null(strstr(err.text, "m.csv:4: a line longer than 1 MiB"));

    static const char nul[] = "100,1\n101,1\0,2\n102,1\n";
    FILE *file = fopen(fixture_path(state, "m.csv"), "w");
    assert_non_null(file);
    assert_true(fprintf(file, "time,a_W\n# %4096s\n", "") > 4096);
    assert_int_equal(fwrite(nul, 1, sizeof(nul) - 1, file), sizeof(nul) - 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(
        wm_recording_open(fixture_path(state, "m.csv"), WM_LAST_RUN, &recording, &err),
        WM_EFORMAT);
    assert_non_null(strstr(err.text, "m.csv:4: a NUL byte"));
}

/* The fixture's ticks come every 0.1 s from 1795247379.215924301 on. */
static void test_join(void **state)
{
    static const struct {
        const char *what;
        double from_s, step_s; /* of the meter, from the first tick on */
        int rows, without;     /* a row that is left out; -1: none */
        size_t joined;         /* of 21 ticks */
        double first, joules;
        const char *trouble;
    } cases[] = {
        { "before and after", -1, 0.05, 100, -1, 21, 120, 2 * (120 + 140) / 2.0, "" },
        { "slower than the ticks", -1, 1, 6, -1, 21, 120, 260, "" },
        { "from the middle on", 1.05, 0.1, 100, -1, 10, 130.5, 0, "" },
        { "up to the middle", -2, 0.1, 31, -1, 11, 120, 0, "" },
        { "one row is missing", -1, 0.2, 40, 10, 21, 120, 260, "" },
        { "long before", -1000, 0.5, 100, -1, 0, 0, 0, "no reading that can be used" },
        { "long after", 1000, 0.5, 100, -1, 0, 0, 0, "no reading that can be used" },
        { "slower than the run", -1, 3.1, 2, -1, 21, 120, 260, "" },
        { "much slower", -10, 20, 2, -1, 21, 120, 260, "" },
        { "backwards", 2.05, -0.05, 60, -1, 0, 0, 0,
          "not later than the one before (rows and values left out: 59)" },
    };
    const char *path = fixture_path(state, "a.sqlite");

    record_fixture(path, WM_RECORD_NEW, 21);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_recording *recording = NULL;
        struct wm_error err = { 0 };
        struct found found;
        char text[8192];
        size_t used = (size_t)sprintf(text, "time_ns,power_W\n");
        print_message("  %s\n", cases[i].what);
        for (int row = 0; row < cases[i].rows; row++) {
            double after_s = cases[i].from_s + row * cases[i].step_s;
            if (row == cases[i].without)
                continue;
            used += (size_t)sprintf(text + used, "%lld,%.9f\n",
                                    1795247379215924301 + llround(after_s * 1e9),
                                    120 + 10 * after_s);
        }
        test_write_file(*state, "m.csv", text);
        assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
        assert_ok(wm_recording_join_meter(recording, fixture_path(state, "m.csv"), 0,
                                          &recording, &err));
        size_t count = wm_recording_channel_count(recording);
        assert_int_equal(count, FIXTURE_CHANNELS + 1);
        assert_string_equal(wm_recording_channel(recording, count - 1)->label, "meter");
        assert_string_equal(wm_recording_channel(recording, 0)->label, "main");
        assert_ok(read_all(recording, count - 1, &found, &err));
        assert_int_equal(found.ticks, 21);
        assert_int_equal(found.gauge.count, cases[i].joined);
        if (cases[i].joined > 0)
            assert_near(found.gauge.min, cases[i].first, 1e-6);
        if (cases[i].joules > 0)
            assert_near(found.gauge.integral, cases[i].joules, 1e-5);
        if (cases[i].trouble[0] ? !strstr(found.trouble, cases[i].trouble)
                                : found.trouble[0] != '\0')
            fail_msg("trouble: '%s'", found.trouble);
        wm_recording_close(recording);
    }
}

/* The meter's readings keep their own times, so that their steps show; the ends of the
 * recording are on the line between two of them. */
static void test_join_times(void **state)
{
    static const struct {
        const char *what;
        double step_s;
        size_t ticks;
        double times[6]; /* of the readings that differ, after the first tick */
        double period_s;
    } cases[] = {
        { "a few in the run", 0.5, 21, { 0, 0.25, 0.75, 1.25, 1.75, 2 }, 0.5 },
        { "three at most", 0.7, 21, { 0, 0.25, 0.95, 1.65, 2 }, 0.7 },
        { "one in the run", 5, 21, { 0, 0.25, 2 }, 5 },
        { "one tick", 0.5, 1, { 0 }, 0.5 },
    };
    const char *path = fixture_path(state, "a.csv");

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wm_recording *recording = NULL;
        struct wm_error err = { 0 };
        struct wm_tick tick;
        char text[4096];
        size_t used = (size_t)sprintf(text, "time_ns,power_W\n"), seen = 0;
        int64_t last_ns = -1, first_ns = -1;
        print_message("  %s\n", cases[i].what);
        for (int row = -2; row < 6; row++)
            used += (size_t)sprintf(text + used, "%lld,%d\n",
                                    1795247379215924301 + 250000000 +
                                        llround(row * cases[i].step_s * 1e9),
                                    100 + row);
        test_write_file(*state, "m.csv", text);
        record_fixture(path, i > 0 ? WM_RECORD_OVERWRITE : WM_RECORD_NEW, cases[i].ticks);
        assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
        assert_ok(wm_recording_join_meter(recording, fixture_path(state, "m.csv"), 0,
                                          &recording, &err));
        const struct wm_channel *channel =
            wm_recording_channel(recording, FIXTURE_CHANNELS);
        assert_near((double)channel->period_ns / 1e9, cases[i].period_s, 1e-9);
        while (wm_recording_next(recording, &tick, &err) > 0) {
            const struct wm_reading *reading = &tick.readings[FIXTURE_CHANNELS];
            if (first_ns < 0)
                first_ns = tick.when_ns;
            assert_int_equal(reading->state, WM_READING_OK);
            assert_true(reading->when_ns <= tick.when_ns && reading->when_ns >= last_ns);
            if (reading->when_ns == last_ns)
                continue;
            assert_true(seen < ARRAY_LEN(cases[i].times));
            assert_near((double)(reading->when_ns - first_ns) / 1e9, cases[i].times[seen],
                        1e-6);
            last_ns = reading->when_ns;
            seen++;
        }
        assert_true(seen == ARRAY_LEN(cases[i].times) || cases[i].times[seen] == 0);
        wm_recording_close(recording);
    }
}

/* What is not a meter is refused, and the recording is still the caller's. */
static void test_join_refused(void **state)
{
    static const struct {
        const char *what, *name, *text, *complains_of;
    } cases[] = {
        { "nothing there", "no.csv", NULL, "No such file" },
        { "another recording", "a.sqlite", NULL, "not the CSV file of a meter" },
        { "text", "t.csv", "hello\n", "not a recording" },
        { "no unit", "u.csv", "time,power\n1,1\n", "no header with a time and watts" },
    };
    const char *path = fixture_path(state, "a.sqlite");
    struct wm_recording *recording = NULL, *joined = NULL;
    struct wm_error err = { 0 };
    struct wm_tick tick;

    record_fixture(path, WM_RECORD_NEW, 3);
    assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        if (cases[i].text)
            test_write_file(*state, cases[i].name, cases[i].text);
        assert_true(wm_recording_join_meter(recording, fixture_path(state, cases[i].name),
                                            0, &joined, &err) < 0);
        if (!strstr(err.text, cases[i].complains_of))
            fail_msg("%s", err.text);
    }
    test_write_file(*state, "m.csv", "time,a_W\n1,1\n2,1\n");
    assert_int_equal(wm_recording_next(recording, &tick, &err), 1);
    assert_int_equal(
        wm_recording_join_meter(recording, fixture_path(state, "m.csv"), 0, &joined, &err),
        WM_EINVAL);
    wm_recording_close(recording);
    assert_null(joined);
}

static void test_no_memory(void **state)
{
    const char *path = fixture_path(state, "a.csv"), *meter = fixture_path(state, "m.csv");
    struct wm_error err = { 0 };
    int status = WM_ENOMEM;

    record_fixture(path, WM_RECORD_NEW, 3);
    test_write_file(*state, "m.csv", OMEGA "100,true,230,1,10,1\n101,true,230,1,10,1\n");
    for (long nth = 0; status == WM_ENOMEM; nth++) {
        struct wm_recording *recording = NULL;
        struct found found;
        assert_true(nth < 1000);
        assert_ok(wm_recording_open(path, WM_LAST_RUN, &recording, &err));
        test_fail_allocation(nth);
        status = wm_recording_join_meter(recording, meter, 0, &recording, &err);
        if (status == WM_OK)
            status = read_all(recording, 0, &found, &err);
        test_fail_allocation(-1);
        assert_true(status == WM_OK || status == WM_ENOMEM);
        wm_recording_close(recording);
    }
    assert_ok(status);
}

UNIT(read_meter)
{
#define WITH_DIR(test)                                                                     \
    cmocka_unit_test_setup_teardown(test, test_make_dir_utc, test_remove_dir)
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_good),       WITH_DIR(test_refused),      WITH_DIR(test_hostile_rows),
        WITH_DIR(test_join),       WITH_DIR(test_join_refused), WITH_DIR(test_no_memory),
        WITH_DIR(test_join_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
