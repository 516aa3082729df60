/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_track_shares.c - what a tree has of the GPUs, out of what their drivers tell of
 * processes. This file has the sources in the place of source.c, and the namespace
 * that we are in.
 */
#include "test.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "source/source_ops.h"
#include "source/tree/source_pidns.h"
#include "source/tree/source_tree.h"
#include "track/account/track_processes.h"
#include "track/account/track_shares.h"

#define GPU_CHANNEL(source_, device_)                                                      \
    {                                                                                      \
        .source = source_, .device = device_, .label = device_, .metric = "power",         \
        .unit = "W", .device_kind = WM_DEVICE_GPU                                          \
    }

struct wm_source {
    struct wm_channel channels[2];
    size_t count;
    struct wm_gpu_process processes[4];
    size_t process_count;
};

/* Two GPUs of one source, one of the other. */
static struct wm_source first, second;
static bool is_inner;

size_t wm_source_channel_count(const struct wm_source *source)
{
    return source->count;
}

const struct wm_channel *wm_source_channel(const struct wm_source *source, size_t index)
{
    return &source->channels[index];
}

size_t wm_source_gpu_processes(const struct wm_source *source,
                               const struct wm_gpu_process **ret_processes)
{
    *ret_processes = source->processes;
    return source->process_count;
}

bool wm_pidns_is_inner(void)
{
    return is_inner;
}

int wm_pidns_open(const char *procfs, const char *own, struct wm_pidns **ret_pidns,
                  struct wm_error *err)
{
    (void)procfs, (void)own, (void)err;
    *ret_pidns = NULL;
    return WM_OK;
}

void wm_pidns_close(struct wm_pidns *pidns)
{
    (void)pidns;
}

void wm_pidns_find(struct wm_pidns *pidns, pid_t told, struct wm_pidns_process *ret_process)
{
    (void)pidns, (void)told, (void)ret_process;
    fail_msg("there is no outer /proc here");
}

/* Pids of the tree (this process alone), and of none. */
enum { MEMBER = -1, STRANGER = 0x3fffffff, UNTOLD = 0 };

struct told {
    const char *device;
    int pid; /* one of the above */
    double bytes;
    enum wm_reading_state state;
    double ratio;
    enum wm_reading_state ratio_state;
    const char *why;
};

#define OK WM_READING_OK
#define NONE WM_READING_NONE
#define UNSUPPORTED WM_READING_UNSUPPORTED
#define DENIED WM_READING_DENIED
#define FAILED WM_READING_FAILED
#define STALE WM_READING_STALE

/* A value, or the state and a part of the reason. */
struct expected {
    double value;
    enum wm_reading_state state;
    const char *why;
};

static void tell(struct wm_source *source, const struct told *told, size_t room)
{
    source->process_count = 0;
    for (size_t i = 0; i < room && told[i].device; i++)
        source->processes[source->process_count++] = (struct wm_gpu_process) {
            .device = told[i].device,
            .pid = told[i].pid == MEMBER ? getpid() : told[i].pid,
            .memory_bytes = told[i].bytes,
            .state = told[i].state,
            .sm_ratio = told[i].ratio,
            .sm_state = told[i].ratio_state,
            .why = told[i].why,
        };
}

static void check(struct wm_shares *shares, const char *device, const char *metric,
                  const struct expected *expected)
{
    struct wm_channel channels[16];
    struct wm_reading readings[16];
    size_t count = wm_shares_channels(shares, NULL), i = 0;

    assert_in_range(count, 1, ARRAY_LEN(channels));
    assert_int_equal(wm_shares_channels(shares, channels), count);
    wm_shares_read(shares, 4711, readings);
    while (i < count && (strcmp(channels[i].device, device) != 0 ||
                         strcmp(channels[i].metric, metric) != 0))
        i++;
    assert_in_range(i, 0, count - 1);
    assert_string_equal(channels[i].source, "tracker");
    assert_int_equal(readings[i].when_ns, 4711);
    const char *why = wm_shares_why(shares, i);
    if (readings[i].state != expected->state)
        fail_msg("%s of %s: state %d", metric, device, readings[i].state);
    if (expected->state != OK && (!why || !strstr(why, expected->why)))
        fail_msg("%s of %s: %s", metric, device, why ? why : "(no reason)");
    if (expected->state == OK && (why || fabs(readings[i].value - expected->value) > 1e-9))
        fail_msg("%s of %s: %g", metric, device, readings[i].value);
}

static struct wm_shares *new_shares(struct wm_tree *tree)
{
    struct wm_shares *shares = NULL;

    first = (struct wm_source) {
        { GPU_CHANNEL("one", "GPU-a"), GPU_CHANNEL("one", "GPU-b") }, 2, { { 0 } }, 0
    };
    second = (struct wm_source) { { GPU_CHANNEL("other", "GPU-c") }, 1, { { 0 } }, 0 };
    assert_int_equal(wm_shares_new(&shares, NULL), WM_OK);
    assert_int_equal(wm_shares_channels(shares, NULL), 0);
    wm_shares_add_source(shares, &first);
    wm_shares_add_source(shares, &second);
    assert_int_equal(wm_shares_channels(shares, NULL), 3 + 3 * 2);
    assert_int_equal(wm_shares_set_target(shares, tree, getpid(), true, NULL), WM_OK);
    return shares;
}

static void test_shares(void **state)
{
    static const char inner[] = "another pid namespace";
    static const struct {
        const char *name;
        bool is_inner;
        struct told one[4], other[4];
        struct expected memory[3], use[3]; /* of GPU-a, GPU-b and GPU-c */
        struct expected tree;              /* memory on all of them */
    } rows[] = {
        { "nobody",
          false,
          { { 0 } },
          { { 0 } },
          { { 0, OK, NULL }, { 0, OK, NULL }, { 0, OK, NULL } },
          { { 0, OK, NULL }, { 0, OK, NULL }, { 0, OK, NULL } },
          { 0, OK, NULL } },
        { "of the tree, and not",
          false,
          { { "GPU-a", MEMBER, 5, OK, 0.5, OK, NULL },
            { "GPU-a", STRANGER, 7, OK, 0.3, OK, NULL },
            { "GPU-b", STRANGER, 9, FAILED, 1, DENIED, NULL } },
          { { "GPU-c", MEMBER, 3, OK, 0.25, OK, NULL },
            { "GPU-c", MEMBER, 4, OK, 0.5, OK, NULL } },
          { { 5, OK, NULL }, { 0, OK, NULL }, { 7, OK, NULL } },
          { { 0.5, OK, NULL }, { 0, OK, NULL }, { 0.75, OK, NULL } },
          { 12, OK, NULL } },
        { "more than all the time",
          false,
          { { "GPU-a", MEMBER, 1, OK, 0.7, OK, NULL },
            { "GPU-a", MEMBER, 1, OK, 0.7, OK, NULL } },
          { { 0 } },
          { { 2, OK, NULL }, { 0, OK, NULL }, { 0, OK, NULL } },
          { { 1, OK, NULL }, { 0, OK, NULL }, { 0, OK, NULL } },
          { 2, OK, NULL } },
        { "a GPU that is not ours",
          false,
          { { "GPU-x", MEMBER, 1, OK, 0.7, OK, NULL } },
          { { 0 } },
          { { 0, OK, NULL }, { 0, OK, NULL }, { 0, OK, NULL } },
          { { 0, OK, NULL }, { 0, OK, NULL }, { 0, OK, NULL } },
          { 0, OK, NULL } },
        { "one knows its memory, one its use",
          false,
          { { "GPU-a", MEMBER, 5, OK, 0, UNSUPPORTED, NULL },
            { "GPU-b", MEMBER, 0, DENIED, 0.5, OK, NULL } },
          { { "GPU-c", MEMBER, 5, OK, 0, NONE, NULL } },
          { { 5, OK, NULL }, { 0, DENIED, "does not show this user" }, { 5, OK, NULL } },
          { { 0, UNSUPPORTED, "does not report what each process uses" },
            { 0.5, OK, NULL },
            { 0, NONE, "yet" } },
          { 0, DENIED, "does not show this user" } },
        { "GPUs that will not tell",
          false,
          { { "GPU-a", UNTOLD, 0, FAILED, 0, FAILED, NULL },
            { "GPU-b", UNTOLD, 0, STALE, 0, STALE, NULL } },
          { { "GPU-c", UNTOLD, 0, UNSUPPORTED, 0, UNSUPPORTED, NULL } },
          { { 0, FAILED, "could not report" },
            { 0, STALE, "did not answer" },
            { 0, UNSUPPORTED, "does not report the memory" } },
          { { 0, FAILED, "could not report" },
            { 0, STALE, "did not answer" },
            { 0, UNSUPPORTED, "does not report what" } },
          { 0, FAILED, "could not report" } },
        { "the reason is told on",
          false,
          { { "GPU-a", MEMBER, 5, OK, 0.5, OK, NULL },
            { "GPU-a", UNTOLD, 0, FAILED, 0, FAILED, "GPU is lost" },
            { "GPU-b", UNTOLD, 0, STALE, 0, STALE, "no thread could be made" } },
          { { 0 } },
          { { 0, FAILED, "GPU is lost" },
            { 0, STALE, "no thread could be made" },
            { 0, OK, NULL } },
          { { 0, FAILED, "GPU is lost" },
            { 0, STALE, "no thread could be made" },
            { 0, OK, NULL } },
          { 0, FAILED, "GPU is lost" } },
        { "in a container: the reasons are the same",
          true,
          { { "GPU-a", UNTOLD, 0, FAILED, 0, FAILED, NULL },
            { "GPU-b", UNTOLD, 0, DENIED, 0, DENIED, NULL } },
          { { "GPU-c", UNTOLD, 0, UNSUPPORTED, 0, UNSUPPORTED, NULL } },
          { { 0, FAILED, "could not report" },
            { 0, DENIED, "does not show this user" },
            { 0, UNSUPPORTED, "does not report the memory" } },
          { { 0, FAILED, "could not report" },
            { 0, DENIED, "does not show this user" },
            { 0, UNSUPPORTED, "does not report what" } },
          { 0, FAILED, "could not report" } },
        { "in a container: numbers that are not ours",
          true,
          { { "GPU-a", STRANGER, 5, OK, 0.5, OK, NULL } },
          { { 0 } },
          { { 0, UNSUPPORTED, inner }, { 0, UNSUPPORTED, inner }, { 0, OK, NULL } },
          { { 0, UNSUPPORTED, inner }, { 0, UNSUPPORTED, inner }, { 0, OK, NULL } },
          { 0, UNSUPPORTED, inner } },
        { "in a container: a driver with our numbers",
          true,
          { { "GPU-a", STRANGER, 5, OK, 0.5, OK, NULL },
            { "GPU-b", MEMBER, 6, OK, 0.25, OK, NULL } },
          { { 0 } },
          { { 0, OK, NULL }, { 6, OK, NULL }, { 0, OK, NULL } },
          { { 0, OK, NULL }, { 0.25, OK, NULL }, { 0, OK, NULL } },
          { 6, OK, NULL } },
        { "in a container: our numbers of one driver say nothing of another's",
          true,
          { { "GPU-a", STRANGER, 5, OK, 0.5, OK, NULL } },
          { { "GPU-c", MEMBER, 6, OK, 0.25, OK, NULL } },
          { { 0, UNSUPPORTED, inner }, { 0, UNSUPPORTED, inner }, { 6, OK, NULL } },
          { { 0, UNSUPPORTED, inner }, { 0, UNSUPPORTED, inner }, { 0.25, OK, NULL } },
          { 0, UNSUPPORTED, inner } },
    };
    static const char *const devices[] = { "GPU-a", "GPU-b", "GPU-c" };
    struct wm_tree *tree = NULL;
    struct wm_error err = { 0 };
    (void)state;

    assert_int_equal(wm_tree_open("/proc", getpid(), &tree, &err), WM_OK);
    wm_tree_refresh(tree);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        print_message("  %s\n", rows[i].name);
        is_inner = rows[i].is_inner;
        struct wm_shares *shares = new_shares(tree);

        tell(&first, rows[i].one, ARRAY_LEN(rows[i].one));
        tell(&second, rows[i].other, ARRAY_LEN(rows[i].other));
        for (size_t d = 0; d < ARRAY_LEN(devices); d++) {
            check(shares, devices[d], "tree_memory_used", &rows[i].memory[d]);
            check(shares, devices[d], "tree_utilization", &rows[i].use[d]);
        }
        check(shares, "tree", "gpu_memory", &rows[i].tree);
        check(shares, "main", "gpu_memory", &rows[i].tree);
        wm_shares_free(shares);
    }
    wm_tree_close(tree);
}

/* Without a GPU there is nothing to tell. */
static void test_no_gpu(void **state)
{
    struct wm_shares *shares = NULL;
    struct wm_reading untouched = { .when_ns = 4711 };
    (void)state;

    first = (struct wm_source) { .count = 0 };
    assert_int_equal(wm_shares_new(&shares, NULL), WM_OK);
    wm_shares_add_source(shares, &first);
    wm_shares_read(shares, 1, &untouched);
    assert_int_equal(untouched.when_ns, 4711);
    assert_int_equal(wm_shares_channels(shares, NULL), 0);
    wm_shares_free(shares);
    wm_shares_free(NULL);

    test_fail_allocation(0);
    assert_int_equal(wm_shares_new(&shares, NULL), WM_ENOMEM);
    test_fail_allocation(-1);
}

/* Of each process of the tree, from one reading to the next; two entries of one are one. */
static void test_uses(void **state)
{
    static const struct told one[] = { { "GPU-a", MEMBER, 5, OK, 0.5, OK, NULL },
                                       { "GPU-a", STRANGER, 7, OK, 0.3, OK, NULL },
                                       { "GPU-b", MEMBER, 0, DENIED, 0, NONE, NULL } };
    static const struct told other[] = { { "GPU-c", MEMBER, 3, OK, 0.25, OK, NULL },
                                         { "GPU-c", MEMBER, 4, OK, 0.5, OK, NULL } };
    struct wm_reading readings[9];
    struct wm_tree *tree = NULL;
    size_t count = 1;
    (void)state;

    is_inner = false;
    assert_int_equal(wm_tree_open("/proc", getpid(), &tree, NULL), WM_OK);
    struct wm_shares *shares = new_shares(tree);
    tell(&first, one, ARRAY_LEN(one));
    tell(&second, other, ARRAY_LEN(other));
    wm_shares_read(shares, 1 * WM_NS_PER_S, readings);
    wm_shares_uses(shares, &count);
    assert_int_equal(count, 0); /* nobody wanted them */
    assert_int_equal(wm_shares_keep_uses(shares, NULL), WM_OK);
    wm_shares_read(shares, 2 * WM_NS_PER_S, readings);
    wm_shares_read(shares, 4 * WM_NS_PER_S, readings);
    const struct wm_share_use *uses = wm_shares_uses(shares, &count);
    assert_int_equal(count, 3);
    assert_true(uses[0].pid == getpid() && uses[0].gpu == 0 && uses[0].is_there);
    assert_true(uses[0].use == 0.5 && uses[0].memory_bytes == 5 && uses[0].use_s == 1.5);
    assert_true(isnan(uses[1].use) && isnan(uses[1].memory_bytes) && uses[1].use_s == 0);
    assert_true(uses[2].use == 0.75 && uses[2].memory_bytes == 7 && uses[2].use_s == 2.25);
    assert_true(wm_shares_use_s(shares, 0) == 1.5 && wm_shares_use_s(shares, 2) == 2.25);
    assert_string_equal(wm_shares_gpu(shares, 2), "GPU-c");
    assert_null(wm_shares_gpu(shares, 3));
    second.process_count = 0; /* it left the GPU, and goes on */
    wm_shares_read(shares, 5 * WM_NS_PER_S, readings);
    uses = wm_shares_uses(shares, &count);
    assert_true(count == 3 && !uses[2].is_there && uses[2].use_s == 2.25);
    wm_shares_free(shares);
    wm_tree_close(tree);
}

/* The joules are the report's, and the watts what has been added to them since. */
static void test_processes(void **state)
{
    static const struct told one[] = { { "GPU-a", MEMBER, 5, OK, 0.5, OK, NULL } };
    struct wm_gpu_usage gpu = { .uuid = "GPU-a",
                                .figure.energy = { .number = 100, .known = true },
                                .split.tree = { .number = 100, .known = true } };
    struct wm_report report = { .gpus = &gpu,
                                .gpu_count = 1,
                                .compute_time = { .number = 1, .known = true } };
    struct wm_track_processes *processes = NULL;
    struct wm_tracker_process list[4] = { { 0 } };
    struct wm_reading readings[9];
    struct wm_tree *tree = NULL;
    size_t count = 0;
    (void)state;

    is_inner = false;
    report.cpu_energy.split.tree = (struct wm_value) { .number = 8, .known = true };
    report.cpu_total = (struct wm_value) { .number = 1000, .known = true };
    assert_int_equal(wm_tree_open("/proc", getpid(), &tree, NULL), WM_OK);
    wm_tree_refresh(tree);
    struct wm_shares *shares = new_shares(tree);
    tell(&first, one, ARRAY_LEN(one));
    assert_int_equal(wm_shares_keep_uses(shares, NULL), WM_OK);
    wm_shares_read(shares, 1 * WM_NS_PER_S, readings);
    wm_shares_read(shares, 2 * WM_NS_PER_S, readings);
    assert_int_equal(wm_track_processes_new(&processes, NULL), WM_OK);

    wm_track_processes_list(processes, tree, shares, &report, list, 0, &count);
    assert_int_equal(count, 1); /* and nothing else is taken from it */
    wm_track_processes_list(processes, tree, shares, &report, list, 4, &count);
    assert_int_equal(count, 1);
    assert_true(list[0].pid == getpid() && list[0].user == (uid_t)-1);
    wm_track_processes_identify(processes, tree, list);
    assert_true(list[0].user == geteuid());
    assert_true(strstr(list[0].command, "unit") && list[0].state == 'R');
    const struct wm_known cpu_s = { true, list[0].cpu_s };
    const struct wm_value share = wm_report_energy_of(&report, &cpu_s);
    assert_true(list[0].energy_j == share.number + 100);
    assert_true(list[0].gpus == 1 && list[0].gpu_use == 0.5 &&
                list[0].gpu_memory_bytes == 5);
    assert_true(isnan(list[0].power_w)); /* since what? */

    gpu.split.tree.number += 60;
    gpu.figure.energy.number += 60;
    report.compute_time.number += 2;
    report.cpu_energy.split.tree.number += 1e9;
    wm_shares_read(shares, 3 * WM_NS_PER_S, readings);
    wm_track_processes_list(processes, tree, shares, &report, list, 4, &count);
    assert_true(list[0].power_w == 30); /* all of the GPU's, and no CPU time since */

    gpu.split.tree.number += 200; /* of earlier times: the GPU took but 80 */
    gpu.figure.energy.number += 80;
    report.compute_time.number += 2;
    wm_shares_read(shares, 4 * WM_NS_PER_S, readings);
    wm_track_processes_list(processes, tree, shares, &report, list, 4, &count);
    assert_true(list[0].power_w == 40);

    gpu.split.tree.known = false; /* for as long as joules are not known, watts are not 0 */
    for (int i = 0; i < 2; i++) {
        report.compute_time.number += 1;
        wm_shares_read(shares, (5 + i) * WM_NS_PER_S, readings);
        wm_track_processes_list(processes, tree, shares, &report, list, 4, &count);
        assert_true(isnan(list[0].power_w));
        gpu.split.tree.known = true;
    }

    report.cpu_total = (struct wm_value) { .why = "no reason" };
    wm_track_processes_list(processes, tree, shares, &report, list, 4, &count);
    assert_true(isnan(list[0].power_w) && isnan(list[0].energy_j));
    wm_track_processes_list(processes, tree, shares, NULL, list, 4, &count);
    assert_true(count == 1 && isnan(list[0].energy_j));
    wm_track_processes_free(processes);
    wm_shares_free(shares);
    wm_tree_close(tree);
}

UNIT(track_shares)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_no_gpu),
        cmocka_unit_test(test_uses),
        cmocka_unit_test(test_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
