/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu.c - the inventory over two made-up backends, which tell what a plan
 * says, fail, hang, and run out of memory. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "source/gpu/select/source_gpu_select.h"
#include "source/gpu/source_gpu_ops.h"
#include "source/gpu/source_gpu_sheet.h"

#define EVERYTHING_AT_OPEN (WM_GPU_EVERYTHING & ~(unsigned)WM_GPU_THROUGHPUT)

/* What a backend does; its functions may look at it from their own threads. */
struct plan {
    int open_status;
    const char *open_text;
    size_t gpus;
    void (*refresh)(size_t gpu, unsigned groups, bool all, struct wm_gpu_sheet *sheet);
    bool open_hangs;
    bool is_silent;   /* no GPU says who it is */
    size_t gpu_hangs; /* its number + 1 */
    atomic_int changed, opened, closed, refreshed;
    atomic_int set_hangs;    /* likewise, when it is to set something */
    _Atomic double limit[4]; /* that was set, of each GPU */
};

static struct plan alpha, beta;

/* Where calls hang until it is opened. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate = PTHREAD_COND_INITIALIZER;
static bool gate_is_open;

static void hang(void)
{
    pthread_mutex_lock(&gate_lock);
    while (!gate_is_open)
        pthread_cond_wait(&gate, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static void set_gate(bool is_open)
{
    pthread_mutex_lock(&gate_lock);
    gate_is_open = is_open;
    pthread_cond_broadcast(&gate);
    pthread_mutex_unlock(&gate_lock);
}

struct state {
    struct plan *plan;
    char *memory;
};

static int open_plan(struct state *state, struct plan *plan, struct wm_error *err)
{
    if (plan->open_hangs)
        hang();
    state->plan = plan;
    plan->opened++;
    state->memory = malloc(16);
    if (!state->memory)
        return wm_fail(err, WM_ENOMEM, "fake: out of memory");
    if (plan->open_status < 0)
        return wm_fail(err, plan->open_status, "%s", plan->open_text);
    return WM_OK;
}

static int alpha_open(void *state, const struct wm_source_config *config,
                      struct wm_error *err)
{
    assert_non_null(config->procfs);
    assert_non_null(config->sysfs);
    return open_plan(state, &alpha, err);
}

static int beta_open(void *state, const struct wm_source_config *config,
                     struct wm_error *err)
{
    (void)config;
    return open_plan(state, &beta, err);
}

static size_t fake_count(const void *state)
{
    return ((const struct state *)state)->plan->gpus;
}

static const char *fake_detail(const void *state)
{
    (void)state;
    return "made up";
}

static void fake_refresh(void *state, size_t gpu, unsigned groups, bool all,
                         struct wm_gpu_sheet *sheet)
{
    static const char *const uuids[] = { "GPU-a0", "GPU-b1", "GPU-c2", "GPU-d3" };
    struct plan *plan = ((struct state *)state)->plan;

    plan->refreshed++;
    if (plan->is_silent)
        wm_gpu_set_missing(sheet, WM_GPU_UUID, WM_READING_FAILED, "is lost");
    else if (all)
        wm_gpu_set_text(sheet, WM_GPU_UUID, uuids[gpu % ARRAY_LEN(uuids)]);
    if (plan->refresh)
        plan->refresh(gpu, groups, all, sheet);
    if (plan->gpu_hangs == gpu + 1)
        hang();
}

static int fake_set(void *state, size_t gpu, enum wm_gpu_field field, double value,
                    struct wm_error *err)
{
    struct plan *plan = ((struct state *)state)->plan;

    if (field != WM_GPU_POWER_LIMIT || value > 400)
        return wm_fail(err, WM_EINVAL, "fake: refused");
    if (plan->set_hangs == (int)gpu + 1)
        hang();
    plan->limit[gpu] = value;
    return WM_OK;
}

static bool fake_changed(void *state)
{
    return ((struct state *)state)->plan->changed != 0;
}

static void fake_close(void *opaque)
{
    struct state *state = opaque;

    free(state->memory);
    if (state->plan)
        state->plan->closed++;
}

static const struct wm_gpu_ops alpha_ops = {
    .name = "alpha",
    .state_size = sizeof(struct state),
    .open = alpha_open,
    .count = fake_count,
    .detail = fake_detail,
    .refresh = fake_refresh,
    .set = fake_set,
    .changed = fake_changed,
    .close = fake_close,
};

/* As small as a backend may be. */
static const struct wm_gpu_ops beta_ops = {
    .name = "beta",
    .state_size = sizeof(struct state),
    .open = beta_open,
    .count = fake_count,
    .detail = fake_detail,
    .refresh = fake_refresh,
    .close = fake_close,
};

static const struct wm_gpu_ops *const backends[] = { &alpha_ops, &beta_ops };

static int try_open(const char *choice, struct wm_gpus **ret_gpus, struct wm_error *err)
{
    const struct wm_source_config config = { .gpus = choice };

    return wm_gpus_open_backends(backends, ARRAY_LEN(backends), &config, ret_gpus, err);
}

static struct wm_gpus *open_gpus(void)
{
    struct wm_gpus *gpus = NULL;
    struct wm_error err;

    if (try_open(NULL, &gpus, &err) < 0)
        fail_msg("%s", err.text);
    return gpus;
}

static void wait_until_equal(const atomic_int *one, int value)
{
    for (int i = 0; *one != value && i < 12000; i++)
        usleep(10 * 1000);
    assert_int_equal(*one, value);
}

/* A thread that has just come back from the driver may be the last one to close it. */
static void close_gpus(struct wm_gpus *gpus)
{
    wm_gpus_close(gpus);
    wait_until_equal(&alpha.closed, alpha.opened);
    wait_until_equal(&beta.closed, beta.opened);
}

static struct wm_gpu_value get(const struct wm_gpus *gpus, size_t gpu,
                               enum wm_gpu_field field)
{
    struct wm_gpu_value value;

    memset(&value, 0xa5, sizeof(value));
    wm_gpu_get(gpus, gpu, field, &value);
    assert_int_equal(value.why == NULL, value.state == WM_READING_OK);
    if (value.state != WM_READING_OK)
        assert_null(value.text);
    return value;
}

static void check_number(const struct wm_gpus *gpus, size_t gpu, enum wm_gpu_field field,
                         double number)
{
    struct wm_gpu_value value = get(gpus, gpu, field);

    if (value.state != WM_READING_OK)
        fail_msg("%s: %s", wm_gpu_field_info(field)->key, value.why);
    assert_true(fabs(value.number - number) < 1e-9);
}

static void check_text(const struct wm_gpus *gpus, size_t gpu, enum wm_gpu_field field,
                       const char *text)
{
    struct wm_gpu_value value = get(gpus, gpu, field);

    if (value.state != WM_READING_OK)
        fail_msg("%s: %s", wm_gpu_field_info(field)->key, value.why);
    assert_string_equal(value.text, text);
}

static void check_missing(const struct wm_gpus *gpus, size_t gpu, enum wm_gpu_field field,
                          enum wm_reading_state state, const char *why)
{
    struct wm_gpu_value value = get(gpus, gpu, field);

    assert_int_equal(value.state, state);
    if (!strstr(value.why, why))
        fail_msg("%s: '%s'", wm_gpu_field_info(field)->key, value.why);
}

static int reset(void **state)
{
    (void)state;
    memset(&alpha, 0, sizeof(alpha));
    memset(&beta, 0, sizeof(beta));
    set_gate(false);
    return 0;
}

#define LONG_TEXT                                                                          \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                     \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                     \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                     \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static void tell_texts(size_t gpu, unsigned groups, bool all, struct wm_gpu_sheet *sheet)
{
    (void)gpu, (void)groups, (void)all;
    wm_gpu_set_text(sheet, WM_GPU_NAME, "A \xe2\x82\xac GPU");
    wm_gpu_set_text(sheet, WM_GPU_SERIAL, "\x1b[31mred\x7f\n");
    wm_gpu_set_text(sheet, WM_GPU_UUID,
                    "GPU-\xff\xc3 \xc2\x9b"
                    "1\xef\xbf\xbd.");
    wm_gpu_set_text(sheet, WM_GPU_BIOS, LONG_TEXT "cut off");
    wm_gpu_set_text(sheet, WM_GPU_VENDOR, "");
    wm_gpu_set_text(sheet, WM_GPU_ARCHITECTURE, "\xed\xa0\x80");
    wm_gpu_set_number(sheet, WM_GPU_CORES, 16896);
    wm_gpu_set_number(sheet, WM_GPU_POWER_DRAW, NAN);
    wm_gpu_set_number(sheet, WM_GPU_ENERGY, INFINITY);
    wm_gpu_set_number(sheet, WM_GPU_DISPLAY_ACTIVE, 0);
    wm_gpu_set_missing(sheet, WM_GPU_POWER_LIMIT, WM_READING_DENIED, "not\tfor you");
    wm_gpu_set_missing(sheet, WM_GPU_FAN, WM_READING_UNSUPPORTED, LONG_TEXT LONG_TEXT);
}

static void test_values(void **state)
{
    (void)state;
    alpha.gpus = 1;
    alpha.refresh = tell_texts;
    struct wm_gpus *gpus = open_gpus();

    assert_int_equal(wm_gpus_count(gpus), 1);
    check_text(gpus, 0, WM_GPU_NAME, "A \xe2\x82\xac GPU");
    check_text(gpus, 0, WM_GPU_SERIAL, "?[31mred??");
    check_text(gpus, 0, WM_GPU_UUID, "GPU-?? ?1?.");
    check_text(gpus, 0, WM_GPU_BIOS, LONG_TEXT);
    check_text(gpus, 0, WM_GPU_ARCHITECTURE, "???");
    check_number(gpus, 0, WM_GPU_CORES, 16896);
    check_number(gpus, 0, WM_GPU_DISPLAY_ACTIVE, 0);
    check_missing(gpus, 0, WM_GPU_VENDOR, WM_READING_UNSUPPORTED, "empty");
    check_missing(gpus, 0, WM_GPU_POWER_DRAW, WM_READING_FAILED, "no number");
    check_missing(gpus, 0, WM_GPU_ENERGY, WM_READING_FAILED, "no number");
    check_missing(gpus, 0, WM_GPU_POWER_LIMIT, WM_READING_DENIED, "not?for you");
    check_missing(gpus, 0, WM_GPU_FAN, WM_READING_UNSUPPORTED, LONG_TEXT);
    check_missing(gpus, 0, WM_GPU_ECC_MODE, WM_READING_UNSUPPORTED,
                  "not reported by alpha");
    check_missing(gpus, 0, WM_GPU_PCI_SENT, WM_READING_NONE, "not asked");

    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_THROUGHPUT, NULL), 0);
    check_missing(gpus, 0, WM_GPU_PCI_SENT, WM_READING_UNSUPPORTED,
                  "not reported by alpha");
    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_EVERYTHING + 1, NULL), WM_EINVAL);
    close_gpus(gpus);
}

static void test_looked(void **state)
{
    static const struct {
        const char *what;
        int alpha_status;
        size_t alpha_gpus, beta_gpus;
        int status; /* of alpha in the end */
        const char *detail;
    } cases[] = {
        { "both have some", WM_OK, 2, 3, WM_OK, "made up" },
        { "one has none", WM_OK, 0, 1, WM_ENODEV, "made up" },
        { "none at all", WM_OK, 0, 0, WM_ENODEV, "made up" },
        { "no driver", WM_ENODEV, 1, 1, WM_ENODEV, "it says why" },
        { "no right to it", WM_EACCES, 1, 0, WM_EACCES, "it says why" },
        { "a broken driver", WM_EIO, 1, 2, WM_EIO, "it says why" },
        { "a driver that tells nonsense", WM_OK, SIZE_MAX, 1, WM_OK, "made up" },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("  %s\n", cases[i].what);
        reset(NULL);
        alpha.open_status = cases[i].alpha_status;
        alpha.open_text = "it says why";
        alpha.gpus = cases[i].alpha_gpus;
        beta.gpus = cases[i].beta_gpus;

        size_t told = alpha.gpus < 256 ? alpha.gpus : 256;
        size_t from_alpha = alpha.open_status < 0 ? 0 : told;
        struct wm_gpus *gpus = open_gpus();
        assert_int_equal(wm_gpus_present(gpus), from_alpha + beta.gpus);

        const struct wm_gpu_looked *looked = wm_gpus_looked(gpus, 0);
        assert_string_equal(looked->source, "alpha");
        assert_int_equal(looked->present, from_alpha);
        assert_int_equal(looked->status, cases[i].status);
        assert_string_equal(looked->detail, cases[i].detail);
        assert_string_equal(wm_gpus_looked(gpus, 1)->source, "beta");
        assert_int_equal(wm_gpus_looked(gpus, 1)->present, beta.gpus);
        assert_null(wm_gpus_looked(gpus, 2));
        close_gpus(gpus);
    }

    struct wm_gpus *gpus = NULL;
    struct wm_error err;
    reset(NULL);
    alpha.open_status = WM_ENOMEM;
    alpha.open_text = "no room";
    assert_int_equal(try_open(NULL, &gpus, &err), WM_ENOMEM);
    assert_string_equal(err.text, "no room");
    assert_null(gpus);
    assert_int_equal(alpha.opened + beta.opened, alpha.closed + beta.closed);
}

/* The second of each backend has a label of its own. */
static void tell_labels(size_t gpu, unsigned groups, bool all, struct wm_gpu_sheet *sheet)
{
    (void)groups;
    if (all && gpu == 1)
        wm_gpu_set_text(sheet, WM_GPU_LABEL, "card1");
}

static void test_choice(void **state)
{
    (void)state;
    struct wm_gpus *gpus = NULL;
    struct wm_error err;
    struct wm_gpu_value value;

    alpha.gpus = 2;
    beta.gpus = 1;
    alpha.refresh = tell_labels;
    beta.refresh = tell_labels;
    assert_int_equal(try_open("card1,2", &gpus, &err), WM_OK);
    assert_int_equal(wm_gpus_count(gpus), 2);
    assert_int_equal(wm_gpus_present(gpus), 3);
    check_number(gpus, 0, WM_GPU_INDEX, 1);
    check_text(gpus, 0, WM_GPU_SOURCE, "alpha");
    check_text(gpus, 0, WM_GPU_LABEL, "card1");
    check_number(gpus, 1, WM_GPU_INDEX, 2);
    check_text(gpus, 1, WM_GPU_SOURCE, "beta");
    check_text(gpus, 1, WM_GPU_LABEL, "gpu2");
    wm_gpus_get_any(gpus, 0, WM_GPU_UUID, &value);
    assert_string_equal(value.text, "GPU-a0");

    /* Those that were not chosen are not asked again. */
    int before = alpha.refreshed;
    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_POWER, NULL), 0);
    assert_int_equal(alpha.refreshed, before + 1);

    wm_gpus_keep_remark(gpus, strdup("first"));
    wm_gpus_keep_remark(gpus, strdup("second"));
    close_gpus(gpus);

    assert_int_equal(try_open("7", &gpus, &err), WM_EINVAL);
    assert_non_null(strstr(err.text, "7"));
    assert_int_equal(alpha.opened, alpha.closed);
}

/* Where it is certain that a GPU is not meant, it is not asked. */
static void test_choice_by_number(void **state)
{
    static const struct {
        const char *words;
        bool hangs; /* GPU 1 is waited for, */
        int asked;  /* and so many of alpha's are asked */
    } rows[] = {
        { "0", false, 1 },
        { "0,2", false, 1 },
        { "2", false, 0 },
        { "gpu0", true, 2 },
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        print_message("  %s\n", rows[i].words);
        reset(NULL);
        alpha.gpus = 2;
        alpha.gpu_hangs = 1 + 1;
        beta.gpus = 1;

        const struct wm_source_config config = { .gpus = rows[i].words };
        struct wm_gpus *gpus = NULL;
        int64_t begin_ns = wm_clock_monotonic_ns();
        assert_int_equal(
            wm_gpus_open_to_select(backends, ARRAY_LEN(backends), &config, &gpus, NULL),
            WM_OK);
        double took = (double)(wm_clock_monotonic_ns() - begin_ns) / 1e9;
        assert_int_equal(took > 1, rows[i].hangs);
        assert_int_equal(alpha.refreshed, rows[i].asked);
        assert_int_equal(wm_gpus_count(gpus), 3);
        set_gate(true);
        usleep(20 * 1000);
        wm_gpus_close(gpus);
    }

    print_message("  and what is chosen is asked everything\n");
    reset(NULL);
    alpha.gpus = 2;
    alpha.gpu_hangs = 1 + 1;
    struct wm_gpus *gpus = NULL;
    int64_t begin_ns = wm_clock_monotonic_ns();
    assert_int_equal(try_open("0", &gpus, NULL), WM_OK);
    assert_true(wm_clock_monotonic_ns() - begin_ns < WM_NS_PER_S);
    assert_int_equal(wm_gpus_count(gpus), 1);
    check_missing(gpus, 0, WM_GPU_ENERGY, WM_READING_UNSUPPORTED, "not reported by alpha");
    close_gpus(gpus);
}

/* One that does not answer can be looked at all the same. */
static void test_choice_of_silent(void **state)
{
    static const char *const words[] = { "1", "gpu1", "all", NULL };
    (void)state;

    alpha.is_silent = true;
    beta.gpus = 1;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct wm_gpus *gpus = NULL;
        size_t chosen[2], count = 0;

        alpha.gpus = 2;
        assert_int_equal(try_open(words[i], &gpus, NULL), WM_OK);
        size_t last = wm_gpus_count(gpus) == 1 ? 0 : 1;
        check_number(gpus, last, WM_GPU_INDEX, 1);
        check_missing(gpus, last, WM_GPU_UUID, WM_READING_FAILED, "is lost");
        assert_int_equal(wm_gpu_select(gpus, "0,1", NULL, chosen, &count, NULL, NULL),
                         WM_OK);
        assert_int_equal(count, 2);
        close_gpus(gpus);
    }
}

static atomic_int told_watts;

static void tell_power(size_t gpu, unsigned groups, bool all, struct wm_gpu_sheet *sheet)
{
    (void)gpu;
    if (all && (groups & WM_GPU_GENERAL))
        wm_gpu_set_text(sheet, WM_GPU_NAME, "fixed");
    if ((groups & WM_GPU_POWER) && told_watts >= 0)
        wm_gpu_set_number(sheet, WM_GPU_POWER_DRAW, told_watts);
    if (groups & WM_GPU_MEMORY)
        wm_gpu_set_number(sheet, WM_GPU_MEMORY_USED, told_watts);
}

static void test_refresh(void **state)
{
    (void)state;
    alpha.gpus = 1;
    alpha.refresh = tell_power;
    told_watts = 100;
    struct wm_gpus *gpus = open_gpus();
    check_number(gpus, 0, WM_GPU_POWER_DRAW, 100);
    check_number(gpus, 0, WM_GPU_MEMORY_USED, 100);

    print_message("  what is not asked stays\n");
    told_watts = 200;
    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_POWER, NULL), 0);
    check_number(gpus, 0, WM_GPU_POWER_DRAW, 200);
    check_number(gpus, 0, WM_GPU_MEMORY_USED, 100);

    print_message("  what is fixed stays\n");
    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_GENERAL, NULL), 0);
    check_text(gpus, 0, WM_GPU_NAME, "fixed");
    check_number(gpus, 0, WM_GPU_INDEX, 0);

    print_message("  what is told no more does not\n");
    told_watts = -1;
    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_POWER, NULL), 0);
    check_missing(gpus, 0, WM_GPU_POWER_DRAW, WM_READING_UNSUPPORTED,
                  "not reported by alpha");

    print_message("  GPUs that came are told of\n");
    alpha.changed = 1;
    assert_int_equal(wm_gpus_refresh(gpus, 0, NULL), 1);
    alpha.changed = 0;
    assert_int_equal(wm_gpus_refresh(gpus, 0, NULL), 0);
    close_gpus(gpus);
}

static void tell_processes(size_t gpu, unsigned groups, bool all,
                           struct wm_gpu_sheet *sheet)
{
    struct wm_gpu_value told[WM_GPU_PROCESS_FIELDS] = {
        [WM_GPU_PROCESS_DRIVER_PID] = wm_gpu_number(getpid()),
        [WM_GPU_PROCESS_TYPE] = wm_gpu_words("C"),
        [WM_GPU_PROCESS_MEMORY] = wm_gpu_number(1 << 20),
        [WM_GPU_PROCESS_SM] = wm_gpu_missing(WM_READING_DENIED, "for \aroot"),
        [WM_GPU_PROCESS_ENCODER] = wm_gpu_number(NAN),
        [WM_GPU_PROCESS_GPU_INSTANCE] = wm_gpu_not_partitioned(),
        [WM_GPU_PROCESS_COMPUTE_INSTANCE] = wm_gpu_number(3),
    };
    static const struct wm_gpu_value nothing[WM_GPU_PROCESS_FIELDS];
    (void)all;

    if (!(groups & WM_GPU_PROCESSES))
        return;
    switch (gpu) {
    case 0:
        wm_gpu_begin_list(sheet, WM_GPU_PROCESS_LIST);
        assert_int_equal(wm_gpu_add_row(sheet, WM_GPU_PROCESS_LIST, told), WM_OK);
        memcpy(told, nothing, sizeof(told));
        told[WM_GPU_PROCESS_DRIVER_PID] = wm_gpu_number(-7);
        told[WM_GPU_PROCESS_GPU_INSTANCE] = wm_gpu_number(1);
        assert_int_equal(wm_gpu_add_row(sheet, WM_GPU_PROCESS_LIST, told), WM_OK);
        wm_gpu_end_list(sheet, WM_GPU_PROCESS_LIST, WM_READING_OK, NULL);
        break;
    case 1: /* more than there may be */
        wm_gpu_begin_list(sheet, WM_GPU_PROCESS_LIST);
        told[WM_GPU_PROCESS_DRIVER_PID] = wm_gpu_number(0);
        for (size_t i = 0; i < WM_GPU_PROCESS_MAX; i++)
            assert_int_equal(wm_gpu_add_row(sheet, WM_GPU_PROCESS_LIST, told), WM_OK);
        assert_int_equal(wm_gpu_add_row(sheet, WM_GPU_PROCESS_LIST, told), WM_ENOMEM);
        wm_gpu_end_list(sheet, WM_GPU_PROCESS_LIST, WM_READING_OK, NULL);
        break;
    case 2: /* none, and why */
        wm_gpu_begin_list(sheet, WM_GPU_PROCESS_LIST);
        wm_gpu_end_list(sheet, WM_GPU_PROCESS_LIST, WM_READING_DENIED, "not for you");
        break;
    default: /* says nothing */
        break;
    }
}

static struct wm_gpu_value get_process(const struct wm_gpus *gpus, size_t gpu,
                                       size_t process, enum wm_gpu_process_field field)
{
    struct wm_gpu_value value;

    memset(&value, 0xa5, sizeof(value));
    wm_gpu_process_get(gpus, gpu, process, field, &value);
    assert_int_equal(value.why == NULL, value.state == WM_READING_OK);
    return value;
}

static void test_processes(void **state)
{
    (void)state;
    struct wm_gpu_value list;

    alpha.gpus = 4;
    alpha.refresh = tell_processes;
    struct wm_gpus *gpus = open_gpus();

    assert_int_equal(wm_gpu_process_count(gpus, 0, &list), 2);
    assert_int_equal(list.state, WM_READING_OK);
    assert_int_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_PID).number, getpid());
    assert_int_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_PARENT_PID).number, getppid());
    assert_string_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_NAME).text,
                        program_invocation_short_name);
    assert_int_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_USER).state, WM_READING_OK);
    assert_true(fabs(get_process(gpus, 0, 0, WM_GPU_PROCESS_CREATE_TIME).number -
                     (double)wm_clock_unix_ns() / 1e9) < 120);
    assert_int_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_DRIVER_PID).number, getpid());
    assert_string_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_TYPE).text, "C");
    assert_int_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_MEMORY).number, 1 << 20);
    assert_string_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_SM).why, "for ?root");
    assert_int_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_SM).state, WM_READING_DENIED);
    assert_int_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_ENCODER).state,
                     WM_READING_FAILED);
    assert_string_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_DECODER).why,
                        "not reported by alpha");
    assert_int_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_GPU_INSTANCE).state,
                     WM_READING_UNSUPPORTED);
    assert_int_equal(get_process(gpus, 0, 0, WM_GPU_PROCESS_COMPUTE_INSTANCE).number, 3);
    assert_int_equal(get_process(gpus, 0, 1, WM_GPU_PROCESS_PID).state,
                     WM_READING_UNSUPPORTED);
    assert_int_equal(get_process(gpus, 0, 1, WM_GPU_PROCESS_GPU_INSTANCE).number, 1);
    assert_string_equal(get_process(gpus, 0, 1, WM_GPU_PROCESS_TYPE).why,
                        "not reported by alpha");

    assert_int_equal(wm_gpu_process_count(gpus, 1, &list), WM_GPU_PROCESS_MAX);
    assert_int_equal(list.state, WM_READING_FAILED);
    assert_non_null(strstr(list.why, "more processes"));
    assert_int_equal(wm_gpu_process_count(gpus, 2, &list), 0);
    assert_int_equal(list.state, WM_READING_DENIED);
    assert_string_equal(list.why, "not for you");
    assert_int_equal(wm_gpu_process_count(gpus, 3, &list), 0);
    assert_int_equal(list.state, WM_READING_UNSUPPORTED);
    assert_string_equal(list.why, "not reported by alpha");
    assert_int_equal(wm_gpu_process_count(gpus, 3, NULL), 0);

    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_POWER, NULL), 0);
    assert_int_equal(wm_gpu_process_count(gpus, 0, NULL), 2);
    close_gpus(gpus);
}

enum { PARTS = 64 };

static void tell_migs(size_t gpu, unsigned groups, bool all, struct wm_gpu_sheet *sheet)
{
    (void)gpu, (void)all;
    if (!(groups & WM_GPU_GENERAL))
        return;
    wm_gpu_begin_list(sheet, WM_GPU_MIG_LIST);
    for (int i = 0; i < PARTS; i++) {
        char uuid[32];
        snprintf(uuid, sizeof(uuid), "MIG-%d\n", i);
        const struct wm_gpu_value told[WM_GPU_MIG_FIELDS] = {
            [WM_GPU_MIG_INDEX] = wm_gpu_number(i),
            [WM_GPU_MIG_UUID] = wm_gpu_words(uuid),
            [WM_GPU_MIG_GPU_INSTANCE] = wm_gpu_number(i),
            [WM_GPU_MIG_COMPUTE_INSTANCE] = wm_gpu_number(100 + i),
            [WM_GPU_MIG_MULTIPROCESSORS] = wm_gpu_number(14),
            [WM_GPU_MIG_MEMORY_USED] = wm_gpu_missing(WM_READING_FAILED, uuid),
        };
        if (wm_gpu_add_row(sheet, WM_GPU_MIG_LIST, told) < 0)
            break;
    }
    wm_gpu_end_list(sheet, WM_GPU_MIG_LIST, WM_READING_OK, NULL);
}

static void test_migs(void **state)
{
    (void)state;
    static const struct {
        enum wm_gpu_mig_field field;
        enum wm_reading_state state;
        double number;
        const char *text; /* or why */
    } expected[] = {
        { WM_GPU_MIG_INDEX, WM_READING_OK, 5, NULL },
        { WM_GPU_MIG_UUID, WM_READING_OK, 0, "MIG-5?" },
        { WM_GPU_MIG_NAME, WM_READING_UNSUPPORTED, 0, "not reported by alpha" },
        { WM_GPU_MIG_GPU_INSTANCE, WM_READING_OK, 5, NULL },
        { WM_GPU_MIG_COMPUTE_INSTANCE, WM_READING_OK, 105, NULL },
        { WM_GPU_MIG_MULTIPROCESSORS, WM_READING_OK, 14, NULL },
        { WM_GPU_MIG_MEMORY_TOTAL, WM_READING_UNSUPPORTED, 0, "not reported by alpha" },
        { WM_GPU_MIG_MEMORY_USED, WM_READING_FAILED, 0, "MIG-5?" },
    };

    alpha.gpus = 1;
    alpha.refresh = tell_migs;
    struct wm_gpus *gpus = open_gpus();
    assert_int_equal(wm_gpu_mig_count(gpus, 0), PARTS);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        struct wm_gpu_value value;
        wm_gpu_mig_get(gpus, 0, 5, expected[i].field, &value);
        assert_int_equal(value.state, expected[i].state);
        if (value.state != WM_READING_OK)
            assert_string_equal(value.why, expected[i].text);
        else if (expected[i].text)
            assert_string_equal(value.text, expected[i].text);
        else
            assert_true(value.number == expected[i].number);
    }

    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_GENERAL, NULL), 0);
    assert_int_equal(wm_gpus_mig_count_any(gpus, 0), PARTS);
    close_gpus(gpus);
}

static void tell_reasons(size_t gpu, unsigned groups, bool all, struct wm_gpu_sheet *sheet)
{
    (void)gpu, (void)all;
    if (!(groups & WM_GPU_PROCESSES))
        return;
    wm_gpu_begin_list(sheet, WM_GPU_PROCESS_LIST);
    for (int i = 0; i < 300; i++) {
        char why[300];
        snprintf(why, sizeof(why), "%0*d", i, i);
        const struct wm_gpu_value told[WM_GPU_PROCESS_FIELDS] = {
            [WM_GPU_PROCESS_MEMORY] = wm_gpu_missing(WM_READING_FAILED, why),
        };
        if (wm_gpu_add_row(sheet, WM_GPU_PROCESS_LIST, told) < 0)
            break;
    }
    wm_gpu_end_list(sheet, WM_GPU_PROCESS_LIST, WM_READING_OK, NULL);
}

static void test_many_reasons(void **state)
{
    (void)state;
    alpha.gpus = 1;
    alpha.refresh = tell_reasons;
    struct wm_gpus *gpus = open_gpus();

    assert_int_equal(wm_gpu_process_count(gpus, 0, NULL), 300);
    assert_string_equal(get_process(gpus, 0, 7, WM_GPU_PROCESS_MEMORY).why, "0000007");
    for (size_t i = 0; i < 300; i++)
        assert_true(strlen(get_process(gpus, 0, i, WM_GPU_PROCESS_MEMORY).why) < 256);
    assert_int_equal(strlen(get_process(gpus, 0, 299, WM_GPU_PROCESS_MEMORY).why), 255);
    close_gpus(gpus);
}

static void tell_before_hanging(size_t gpu, unsigned groups, bool all,
                                struct wm_gpu_sheet *sheet)
{
    (void)gpu, (void)all;
    if (groups & WM_GPU_GENERAL)
        wm_gpu_set_text(sheet, WM_GPU_NAME, "told in time");
    if (groups & WM_GPU_POWER)
        wm_gpu_set_number(sheet, WM_GPU_POWER_DRAW, 1);
}

static double seconds(int64_t since_ns)
{
    return (double)(wm_clock_monotonic_ns() - since_ns) / 1e9;
}

static void test_hanging_gpu(void **state)
{
    (void)state;
    struct wm_gpu_value list;

    alpha.gpus = 3;
    alpha.gpu_hangs = 1 + 1;
    alpha.refresh = tell_before_hanging;
    beta.gpus = 1;
    beta.refresh = tell_before_hanging;
    int64_t begin_ns = wm_clock_monotonic_ns();
    struct wm_gpus *gpus = open_gpus();
    assert_true(seconds(begin_ns) > WM_GPU_PATIENCE_S - 0.5);

    print_message("  what was told in time is there, the rest says why not\n");
    check_text(gpus, 1, WM_GPU_NAME, "told in time");
    check_number(gpus, 1, WM_GPU_INDEX, 1);
    check_text(gpus, 1, WM_GPU_LABEL, "gpu1");
    check_missing(gpus, 1, WM_GPU_CORES, WM_READING_FAILED, "has not answered for 5 s");
    check_missing(gpus, 1, WM_GPU_ENERGY, WM_READING_FAILED, "has not answered for 5 s");
    assert_int_equal(wm_gpu_process_count(gpus, 1, &list), 0);
    assert_int_equal(list.state, WM_READING_FAILED);
    check_missing(gpus, 1, WM_GPU_PCI_SENT, WM_READING_NONE, "not asked");

    print_message("  the others do not notice\n");
    for (size_t g = 0; g < 4; g += g == 0 ? 2 : 1) {
        check_number(gpus, g, WM_GPU_POWER_DRAW, 1);
        check_missing(gpus, g, WM_GPU_ENERGY, WM_READING_UNSUPPORTED, "not reported by");
    }

    print_message("  one that hangs since before is not waited for\n");
    begin_ns = wm_clock_monotonic_ns();
    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_POWER, NULL), 0);
    assert_true(seconds(begin_ns) < WM_GPU_PATIENCE_S);
    check_text(gpus, 1, WM_GPU_NAME, "told in time");
    check_missing(gpus, 1, WM_GPU_POWER_DRAW, WM_READING_FAILED, "has not answered for");
    struct wm_gpu_value late;
    wm_gpu_get(gpus, 1, WM_GPU_POWER_DRAW, &late);
    assert_int_equal(late.code, WM_NO_ANSWER);
    check_number(gpus, 2, WM_GPU_POWER_DRAW, 1);
    int before = alpha.refreshed;

    print_message("  when it is back all of it is asked\n");
    set_gate(true);
    wait_until_equal(&alpha.refreshed, before + 1); /* that one goes on at once */
    usleep(500 * 1000);
    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_POWER, NULL), 0);
    assert_int_equal(alpha.refreshed, before + 1 + 3);
    check_number(gpus, 1, WM_GPU_POWER_DRAW, 1);
    check_missing(gpus, 1, WM_GPU_CORES, WM_READING_UNSUPPORTED, "not reported by alpha");
    close_gpus(gpus);
}

static void hang_before_power(size_t gpu, unsigned groups, bool all,
                              struct wm_gpu_sheet *sheet)
{
    (void)gpu, (void)all;
    if (groups & WM_GPU_POWER)
        hang();
    if (groups & WM_GPU_GENERAL)
        wm_gpu_set_text(sheet, WM_GPU_NAME, "told in time");
    if (groups & WM_GPU_PCI)
        wm_gpu_set_text(sheet, WM_GPU_PCI_BUS_ID, "00000000:3B:00.0");
}

/* Whatever order a backend has, and however often it is asked again. */
static void test_identity_first(void **state)
{
    (void)state;
    alpha.gpus = 1;
    alpha.refresh = hang_before_power;
    struct wm_gpus *gpus = open_gpus();

    for (int i = 0; i < 2; i++) {
        check_text(gpus, 0, WM_GPU_UUID, "GPU-a0");
        check_text(gpus, 0, WM_GPU_NAME, "told in time");
        check_text(gpus, 0, WM_GPU_PCI_BUS_ID, "00000000:3B:00.0");
        check_missing(gpus, 0, WM_GPU_POWER_DRAW, WM_READING_FAILED, "has not answered");
        assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_EVERYTHING, NULL), 0);
    }
    set_gate(true);
    close_gpus(gpus);
}

static int64_t in_ms(int64_t ms)
{
    return wm_clock_monotonic_ns() + ms * WM_NS_PER_MS;
}

/* Only the GPU whose driver hangs is not set; and what has been given up may come yet. */
static void test_set(void **state)
{
    struct wm_error err;
    (void)state;

    alpha.gpus = 2;
    beta.gpus = 1;
    struct wm_gpus *gpus = open_gpus();
    assert_int_equal(wm_gpus_set(gpus, 1, WM_GPU_POWER_LIMIT, 250, in_ms(5000), &err),
                     WM_OK);
    assert_true(alpha.limit[1] == 250 && alpha.limit[0] == 0);
    assert_int_equal(wm_gpus_set(gpus, 0, WM_GPU_POWER_LIMIT, 500, in_ms(5000), &err),
                     WM_EINVAL);
    assert_string_equal(err.text, "fake: refused");
    assert_int_equal(wm_gpus_set(gpus, 2, WM_GPU_POWER_LIMIT, 250, in_ms(5000), &err),
                     WM_ENODEV);
    assert_string_equal(err.text, "beta can set nothing");

    alpha.set_hangs = 0 + 1;
    assert_int_equal(wm_gpus_set(gpus, 0, WM_GPU_POWER_LIMIT, 300, in_ms(100), &err),
                     WM_EIO);
    assert_string_equal(err.text, "the driver has not answered, and may yet do it");
    assert_int_equal(wm_gpus_set(gpus, 0, WM_GPU_POWER_LIMIT, 200, in_ms(100), &err),
                     WM_EIO);
    assert_non_null(strstr(err.text, "has not answered for"));
    assert_int_equal(wm_gpus_set(gpus, 1, WM_GPU_POWER_LIMIT, 200, in_ms(5000), &err),
                     WM_OK);
    assert_true(alpha.limit[1] == 200 && alpha.limit[0] == 0);
    alpha.set_hangs = 0;
    set_gate(true);
    for (int i = 0; alpha.limit[0] == 0 && i < 12000; i++)
        usleep(10 * 1000);
    assert_true(alpha.limit[0] == 300);
    assert_int_equal(wm_gpus_set(gpus, 0, WM_GPU_POWER_LIMIT, 350, in_ms(5000), &err),
                     WM_OK);
    assert_true(alpha.limit[0] == 350);
    close_gpus(gpus);
}

static void test_closed_while_hanging(void **state)
{
    (void)state;
    alpha.gpus = 2;
    alpha.refresh = tell_power;
    told_watts = 5;
    struct wm_gpus *gpus = open_gpus();

    alpha.gpu_hangs = 0 + 1;
    int64_t begin_ns = wm_clock_monotonic_ns();
    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_POWER | WM_GPU_GENERAL, NULL), 0);
    assert_true(seconds(begin_ns) > WM_GPU_PATIENCE_S - 0.5);
    check_number(gpus, 0, WM_GPU_POWER_DRAW, 5);
    check_text(gpus, 0, WM_GPU_NAME, "fixed");
    check_missing(gpus, 0, WM_GPU_POWER_LIMIT, WM_READING_FAILED, "has not answered");

    /* Its thread closes the backend when it comes back. */
    wm_gpus_close(gpus);
    assert_int_equal(alpha.closed, 0); /* the gate is closed: nothing waited for it */
    assert_int_equal(beta.closed, 1);
    set_gate(true);
    wait_until_equal(&alpha.closed, 1);
    usleep(50 * 1000);
}

static void test_hanging_open(void **state)
{
    (void)state;
    alpha.gpus = 1;
    alpha.open_hangs = true;
    beta.gpus = 1;
    beta.refresh = tell_before_hanging;

    int64_t begin_ns = wm_clock_monotonic_ns();
    struct wm_gpus *gpus = open_gpus();
    assert_true(seconds(begin_ns) > WM_GPU_PATIENCE_S - 1.5);
    assert_int_equal(wm_gpus_present(gpus), 1);
    check_number(gpus, 0, WM_GPU_POWER_DRAW, 1);
    assert_int_equal(wm_gpus_looked(gpus, 0)->status, WM_EIO);
    assert_non_null(strstr(wm_gpus_looked(gpus, 0)->detail, "has not answered for 4 s"));
    assert_int_equal(wm_gpus_looked(gpus, 0)->code, WM_NO_ANSWER);
    wm_gpus_close(gpus);
    assert_int_equal(alpha.closed, 0);
    set_gate(true);
    wait_until_equal(&alpha.closed, 1);
    usleep(50 * 1000);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    int status = WM_ENOMEM;

    for (long nth = 0; status == WM_ENOMEM; nth++) {
        struct wm_gpus *gpus = NULL;
        struct wm_error err = { 0 };

        reset(NULL);
        alpha.gpus = 1;
        alpha.refresh = tell_migs;
        beta.gpus = 1;
        test_fail_allocation(nth);
        status = try_open(NULL, &gpus, &err);
        test_fail_allocation(-1);
        if (status < 0) {
            assert_int_equal(status, WM_ENOMEM);
            assert_true(err.text[0] != '\0');
            assert_null(gpus);
        }
        wm_gpus_close(gpus);
        assert_int_equal(alpha.opened + beta.opened, alpha.closed + beta.closed);
        assert_true(nth < 1000);
    }
    assert_int_equal(status, WM_OK);
}

static void test_refresh_out_of_memory(void **state)
{
    (void)state;
    int status = WM_ENOMEM;

    alpha.gpus = 1;
    alpha.refresh = tell_power;
    for (long nth = 0; status == WM_ENOMEM; nth++) {
        struct wm_gpu_value list;
        struct wm_gpus *gpus = open_gpus();

        alpha.refresh = tell_reasons;
        test_fail_allocation(nth);
        status = wm_gpus_refresh(gpus, WM_GPU_PROCESSES, NULL);
        test_fail_allocation(-1);
        size_t count = wm_gpu_process_count(gpus, 0, &list);
        assert_int_equal(count == 300, list.state == WM_READING_OK);
        if (count < 300)
            assert_string_equal(list.why, "out of memory");
        if (status == WM_OK && count < 300)
            status = WM_ENOMEM; /* the backend had none: try with more of it */
        assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_PROCESSES, NULL), 0);
        assert_int_equal(wm_gpu_process_count(gpus, 0, &list), 300);
        close_gpus(gpus);
        alpha.refresh = tell_power;
        assert_true(nth < 100);
    }
}

static void test_no_threads(void **state)
{
    (void)state;
    struct wm_gpus *gpus = NULL;
    struct wm_error err = { 0 };

    alpha.gpus = 1;
    test_fail_threads(true);
    assert_true(try_open(NULL, &gpus, &err) < 0);
    test_fail_threads(false);
    assert_true(err.text[0] != '\0');
    assert_null(gpus);

    /* One whose thread hangs needs another one. */
    alpha.gpus = 2;
    alpha.refresh = tell_power;
    told_watts = 1;
    gpus = open_gpus();
    alpha.gpu_hangs = 0 + 1;
    test_fail_threads(true);
    assert_int_equal(wm_gpus_refresh(gpus, WM_GPU_POWER, &err), 0);
    test_fail_threads(false);
    check_number(gpus, 0, WM_GPU_POWER_DRAW, 1);
    check_missing(gpus, 1, WM_GPU_POWER_DRAW, WM_READING_FAILED, "has not answered");
    set_gate(true);
    close_gpus(gpus);
}

static const struct wm_gpu_field_info *gpu_field(int field)
{
    return wm_gpu_field_info((enum wm_gpu_field)field);
}

static const struct wm_gpu_field_info *process_field(int field)
{
    return wm_gpu_process_field_info((enum wm_gpu_process_field)field);
}

static const struct wm_gpu_field_info *mig_field(int field)
{
    return wm_gpu_mig_field_info((enum wm_gpu_mig_field)field);
}

/* What callers rely on for all fields: they can find each by its key, and what a process
 * does is asked again at every refresh. */
static void test_fields(void **state)
{
    static const struct {
        const struct wm_gpu_field_info *(*of)(int field);
        int count;
    } tables[] = {
        { gpu_field, WM_GPU_FIELDS },
        { process_field, WM_GPU_PROCESS_FIELDS },
        { mig_field, WM_GPU_MIG_FIELDS },
    };
    (void)state;

    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        for (int i = 0; i < tables[t].count; i++) {
            const struct wm_gpu_field_info *info = tables[t].of(i);
            bool is_number = info->type == WM_GPU_WHOLE || info->type == WM_GPU_REAL;

            assert_int_equal(*info->unit != '\0', is_number);
            assert_true(*info->label && *info->summary && info->asked_with);
            assert_false(info->fixed && tables[t].of == process_field);
            for (int k = 0; k < i; k++)
                assert_false(strcmp(tables[t].of(k)->group, info->group) == 0 &&
                             strcmp(tables[t].of(k)->key, info->key) == 0);
        }
        assert_null(tables[t].of(tables[t].count));
    }
}

UNIT(gpu)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test_setup(test_values, reset),
        cmocka_unit_test_setup(test_looked, reset),
        cmocka_unit_test_setup(test_choice, reset),
        cmocka_unit_test_setup(test_choice_by_number, reset),
        cmocka_unit_test_setup(test_choice_of_silent, reset),
        cmocka_unit_test_setup(test_refresh, reset),
        cmocka_unit_test_setup(test_processes, reset),
        cmocka_unit_test_setup(test_migs, reset),
        cmocka_unit_test_setup(test_many_reasons, reset),
        cmocka_unit_test_setup(test_hanging_gpu, reset),
        cmocka_unit_test_setup(test_identity_first, reset),
        cmocka_unit_test_setup(test_set, reset),
        cmocka_unit_test_setup(test_closed_while_hanging, reset),
        cmocka_unit_test_setup(test_hanging_open, reset),
        cmocka_unit_test_setup(test_out_of_memory, reset),
        cmocka_unit_test_setup(test_refresh_out_of_memory, reset),
        cmocka_unit_test_setup(test_no_threads, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
