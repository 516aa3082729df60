/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_drm_clients.c - who uses a GPU, in small trees that stand for
 * /proc: shared, inherited, closed, reused and hidden descriptors. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "source/gpu/drm/source_drm_clients.h"

#define A "0000:03:00.0"
#define B "0000:04:00.0"
#define WHOLE_ROUND INT64_MAX

enum { GPUS = 2 };

/* Two GPUs, on the places A and B, and a search through a scratch folder. */
struct fixture {
    const char *dir;
    struct wm_drm_card cards[GPUS];
    struct wm_drm_gpu gpus[GPUS];
    struct wm_drm_clients clients;
};

static void start(struct fixture *fixture, const char *dir)
{
    static const char *const slots[GPUS] = { A, B };

    memset(fixture, 0, sizeof(*fixture));
    fixture->dir = dir;
    for (int i = 0; i < GPUS; i++) {
        struct wm_drm_card *card = &fixture->cards[i];
        snprintf(card->label, sizeof(card->label), "card%d", i);
        snprintf(card->render, sizeof(card->render), "renderD%d", 128 + i);
        snprintf(card->identity, sizeof(card->identity), "%s", slots[i]);
        snprintf(card->driver, sizeof(card->driver), "xe");
        snprintf(card->slot, sizeof(card->slot), "%s", slots[i]);
        fixture->gpus[i] = (struct wm_drm_gpu) { .card = card, .wanted = true };
    }
    assert_int_equal(wm_drm_clients_init(&fixture->clients, dir, fixture->gpus, GPUS, NULL),
                     WM_OK);
}

static void set_driver(struct fixture *fixture, int gpu, const char *driver)
{
    struct wm_drm_card *card = &fixture->cards[gpu];

    snprintf(card->driver, sizeof(card->driver), "%s", driver);
}

static void search(struct fixture *fixture)
{
    wm_drm_clients_search(&fixture->clients, WHOLE_ROUND);
    wm_drm_clients_read(&fixture->clients);
}

static void stop(struct fixture *fixture)
{
    wm_drm_clients_release(&fixture->clients);
}

static void write_fdinfo(const char *dir, int pid, int number, const char *text)
{
    char path[64];

    snprintf(path, sizeof(path), "%d/fdinfo/%d", pid, number);
    test_write_file(dir, path, text);
}

static void write_link(const char *dir, int pid, int number, const char *target)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%d", dir, pid);
    assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
    snprintf(path, sizeof(path), "%s/%d/fd", dir, pid);
    assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
    snprintf(path, sizeof(path), "%s/%d/fd/%d", dir, pid, number);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

static void remove_fdinfo(const char *dir, int pid, int number)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%d/fdinfo/%d", dir, pid, number);
    assert_int_equal(unlink(path), 0);
}

static const char *client_text(const char *slot, int id, int kib)
{
    static char text[256];

    snprintf(text, sizeof(text),
             "pos:\t0\ndrm-driver:\txe\ndrm-client-id:\t%d\ndrm-pdev:\t%s\n"
             "drm-resident-vram0:\t%d KiB\ndrm-engine-rcs:\t0 ns\n",
             id, slot, kib);
    return text;
}

static void write_client(const char *dir, int pid, int number, const char *slot, int id,
                         int kib)
{
    write_link(dir, pid, number, "/dev/dri/renderD128");
    write_fdinfo(dir, pid, number, client_text(slot, id, kib));
}

/* Memory of a process on a GPU in KiB; -1 where it is not in the list. */
static double kib_of(const struct fixture *fixture, const char *slot, pid_t pid)
{
    for (size_t i = 0; i < fixture->clients.process_count; i++) {
        const struct wm_gpu_process *process = &fixture->clients.processes[i];
        if (strcmp(process->device, slot) == 0 && process->pid == pid) {
            assert_int_equal(process->state, WM_READING_OK);
            return process->memory_bytes / 1024;
        }
    }
    return -1;
}

struct seen {
    int pid, number;
    const char *slot;
    int id, kib;
};

static void test_sharing(void **state)
{
    static const struct {
        const char *what;
        struct seen descriptors[8];
        struct seen processes[5];
    } cases[] = {
        { "one", { { 10, 4, A, 1, 5 } }, { { 10, 0, A, 0, 5 } } },
        { "descriptor 0", { { 10, 0, A, 1, 5 } }, { { 10, 0, A, 0, 5 } } },
        { "dup()",
          { { 10, 4, A, 1, 5 }, { 10, 5, A, 1, 5 }, { 10, 90, A, 1, 5 } },
          { { 10, 0, A, 0, 5 } } },
        { "fork(), and passed on to an older process",
          { { 20, 4, A, 1, 5 }, { 30, 4, A, 1, 5 }, { 9, 6, A, 1, 5 } },
          { { 9, 0, A, 0, 5 } } },
        { "two of one process",
          { { 10, 4, A, 1, 5 }, { 10, 5, A, 2, 7 } },
          { { 10, 0, A, 0, 12 } } },
        { "inherited, and one of its own",
          { { 10, 4, A, 1, 5 }, { 11, 4, A, 1, 5 }, { 11, 5, A, 2, 7 } },
          { { 10, 0, A, 0, 5 }, { 11, 0, A, 0, 7 } } },
        { "the same number on two GPUs",
          { { 10, 4, A, 1, 5 }, { 10, 5, B, 1, 7 } },
          { { 10, 0, A, 0, 5 }, { 10, 0, B, 0, 7 } } },
        { "a GPU that is not ours", { { 10, 4, "0000:09:00.0", 1, 5 } }, { { 0 } } },
        { "nothing in use", { { 10, 4, A, 1, 0 } }, { { 10, 0, A, 0, 0 } } },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture fixture;
        size_t count = 0;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        for (const struct seen *d = cases[i].descriptors; d->pid; d++)
            write_client(*state, d->pid, d->number, d->slot, d->id, d->kib);
        start(&fixture, *state);
        search(&fixture);
        search(&fixture); /* a second round changes nothing */
        for (const struct seen *p = cases[i].processes; p->pid; p++, count++)
            assert_true(kib_of(&fixture, p->slot, p->pid) == p->kib);
        assert_int_equal(fixture.clients.process_count, count);
        stop(&fixture);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* Descriptors that are no DRM device, and processes that have none. */
static void test_others(void **state)
{
    const char *dir = *state;
    struct fixture fixture;

    write_link(dir, 10, 3, "socket:[1184]");
    write_fdinfo(dir, 10, 3, client_text(A, 1, 5)); /* so that looking would show */
    write_link(dir, 10, 4, "/dev/null");
    write_fdinfo(dir, 10, 4, client_text(A, 2, 5));
    write_link(dir, 10, 5, "/dev/dri/renderD999");
    write_fdinfo(dir, 10, 5, "pos:\t0\nflags:\t02\n");
    test_write_file(dir, "11/comm", "kworker\n");
    test_write_file(dir, "12", "a file where a process should be\n");
    test_write_file(dir, "13/fdinfo/x", client_text(A, 3, 5));
    test_write_file(dir, "self/fdinfo/4", client_text(A, 4, 5));
    test_write_file(dir, "14/fdinfo/5/in/the/way", "");
    write_link(dir, 15, 6, "/dev/dri/card0");
    write_fdinfo(dir, 15, 6, "");
    start(&fixture, dir);
    search(&fixture);
    assert_int_equal(fixture.clients.client_end, 0);
    assert_int_equal(fixture.clients.handle_count, 0);
    assert_int_equal(fixture.clients.process_count, 0);

    /* A tree without links: every fdinfo is looked at. */
    write_fdinfo(dir, 16, 7, client_text(A, 5, 5));
    search(&fixture);
    assert_true(kib_of(&fixture, A, 16) == 5);
    stop(&fixture);
}

/* The holder goes, and the next one takes its place in the same reading. A file
 * of /proc that has lost its descriptor can be read no more; here it is emptied. */
static void test_hand_over(void **state)
{
    const char *dir = *state;
    struct fixture fixture;

    write_client(dir, 30, 4, A, 1, 5);
    write_client(dir, 10, 4, A, 1, 5);
    write_client(dir, 20, 4, A, 1, 5);
    write_client(dir, 20, 5, A, 1, 5);
    for (int pid = 40; pid < 50; pid++)
        write_client(dir, pid, 4, A, 1, 5);
    start(&fixture, dir);
    search(&fixture);
    assert_true(kib_of(&fixture, A, 10) == 5);
    assert_int_equal(fixture.clients.handle_count, 14);

    /* Those that do not hold it go unseen until the next round. */
    for (int pid = 40; pid < 50; pid++)
        remove_fdinfo(dir, pid, 4);
    search(&fixture);
    assert_int_equal(fixture.clients.handle_count, 4);

    write_fdinfo(dir, 10, 4, "");
    wm_drm_clients_read(&fixture.clients);
    assert_true(kib_of(&fixture, A, 20) == 5);
    assert_int_equal(fixture.clients.process_count, 1);

    /* Two at once, one of them with another descriptor left. */
    write_fdinfo(dir, 20, 4, "");
    write_fdinfo(dir, 20, 5, client_text(A, 9, 5));
    wm_drm_clients_read(&fixture.clients);
    assert_true(kib_of(&fixture, A, 30) == 5);
    assert_int_equal(fixture.clients.process_count, 1);

    search(&fixture); /* finds what stands there now */
    assert_true(kib_of(&fixture, A, 20) == 5);
    assert_int_equal(fixture.clients.process_count, 2);

    write_fdinfo(dir, 30, 4, "");
    write_fdinfo(dir, 20, 5, "");
    wm_drm_clients_read(&fixture.clients);
    assert_int_equal(fixture.clients.process_count, 0);
    assert_int_equal(fixture.clients.client_end, 0);
    assert_int_equal(fixture.clients.handle_count, 0);

    /* The lowest pid is the next, wherever it stands in the folder. */
    for (int pid = 50; pid < 60; pid++)
        write_client(dir, pid, 4, A, 8, 3);
    search(&fixture);
    for (int pid = 50; pid < 60; pid++) {
        assert_true(kib_of(&fixture, A, pid) == 3);
        write_fdinfo(dir, pid, 4, "");
        wm_drm_clients_read(&fixture.clients);
    }
    assert_int_equal(fixture.clients.process_count, 0);

    /* An older process gets hold of a client that is known. */
    write_client(dir, 20, 4, A, 3, 7);
    search(&fixture);
    write_client(dir, 5, 8, A, 3, 7);
    search(&fixture);
    assert_true(kib_of(&fixture, A, 5) == 7);
    assert_int_equal(fixture.clients.process_count, 1);
    stop(&fixture);
}

/* A descriptor is closed and its number given to another client. */
static void test_reuse(void **state)
{
    const char *dir = *state;
    struct fixture fixture;

    write_client(dir, 10, 4, A, 1, 5);
    write_client(dir, 11, 4, A, 1, 5);
    start(&fixture, dir);
    search(&fixture);

    write_client(dir, 11, 4, A, 2, 6); /* not the one that is being read */
    search(&fixture);
    assert_true(kib_of(&fixture, A, 10) == 5);
    assert_true(kib_of(&fixture, A, 11) == 6);
    assert_int_equal(fixture.clients.handle_count, 2);

    write_client(dir, 10, 4, B, 1, 7); /* the one that is, and the same id */
    wm_drm_clients_read(&fixture.clients);
    assert_true(kib_of(&fixture, A, 10) == -1);
    search(&fixture);
    assert_true(kib_of(&fixture, B, 10) == 7);
    assert_int_equal(fixture.clients.process_count, 2);
    stop(&fixture);
}

/* Clients without a number are told apart by their descriptors. */
static void test_no_id(void **state)
{
    static const char text[] =
        "drm-driver:\txe\ndrm-pdev:\t" A "\ndrm-resident-vram:\t1 KiB\n";
    const char *dir = *state;
    struct fixture fixture;

    write_fdinfo(dir, 10, 4, text);
    write_fdinfo(dir, 10, 5, text);
    start(&fixture, dir);
    search(&fixture);
    search(&fixture);
    assert_true(kib_of(&fixture, A, 10) == 2);
    assert_int_equal(fixture.clients.client_end, 2);
    stop(&fixture);
}

/* A GPU without a place on PCI. */
static void test_platform(void **state)
{
    static const char text[] =
        "drm-driver:\tpanfrost\ndrm-client-id:\t%d\ndrm-resident-memory:\t1 KiB\n";
    const char *dir = *state;
    struct fixture fixture;
    char path[256];

    for (int id = 1; id <= 4; id++) {
        snprintf(path, sizeof(path), text, id);
        write_fdinfo(dir, 10, 3 + id, path);
    }
    write_link(dir, 10, 4, "/dev/dri/renderD129"); /* of the second */
    write_link(dir, 10, 5, "/dev/dri/card1");
    write_link(dir, 10, 6, "/dev/dri/by-another-name"); /* the first with the driver */
    write_link(dir, 10, 7, "/dev/dri/renderD4294967425");
    start(&fixture, dir);
    for (int i = 0; i < GPUS; i++) {
        fixture.cards[i].slot[0] = '\0';
        set_driver(&fixture, i, "panfrost");
    }
    search(&fixture);
    assert_true(kib_of(&fixture, B, 10) == 2);
    assert_true(kib_of(&fixture, A, 10) == 2);

    /* A driver that nobody has. */
    set_driver(&fixture, 0, "etnaviv");
    set_driver(&fixture, 1, "etnaviv");
    write_link(dir, 10, 8, "/dev/dri/by-another-name");
    snprintf(path, sizeof(path), text, 9);
    write_fdinfo(dir, 10, 8, path);
    search(&fixture);
    assert_int_equal(fixture.clients.client_end, 4);
    stop(&fixture);
}

static void test_memory(void **state)
{
    static const struct {
        const char *what, *regions;
        bool shares_memory;
        double kib; /* -1: not told */
    } cases[] = {
        { "a GPU with memory of its own",
          "drm-resident-vram:\t5 KiB\ndrm-resident-gtt:\t7 KiB\n", false, 5 },
        { "an APU", "drm-resident-vram:\t5 KiB\ndrm-resident-gtt:\t7 KiB\n", true, 12 },
        { "a GPU that has only the machine's",
          "drm-resident-system:\t5 KiB\ndrm-resident-gtt:\t7 KiB\ndrm-resident-stolen:\t1 "
          "KiB\n",
          false, 13 },
        { "a sum of more than 64 bits",
          "drm-resident-system:\t18446744073709551615\ndrm-resident-gtt:\t7 KiB\n", false,
          18014398509481984.0 },
        { "none", "", false, -1 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture fixture;
        char text[256];

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        snprintf(text, sizeof(text),
                 "drm-driver:\txe\ndrm-pdev:\t" A "\ndrm-client-id:\t1\n%s",
                 cases[i].regions);
        write_fdinfo(*state, 10, 4, text);
        start(&fixture, *state);
        fixture.cards[0].integrated = cases[i].shares_memory;
        search(&fixture);
        assert_int_equal(fixture.clients.process_count, 1);
        assert_int_equal(fixture.gpus[0].counts_memory, cases[i].kib >= 0);
        if (cases[i].kib >= 0)
            assert_true(kib_of(&fixture, A, 10) == cases[i].kib);
        else
            assert_int_equal(fixture.clients.processes[0].state, WM_READING_UNSUPPORTED);
        assert_true(fixture.gpus[0].memory_bytes ==
                    (cases[i].kib >= 0 ? cases[i].kib * 1024 : 0));
        stop(&fixture);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

static void next_window(struct fixture *fixture)
{
    usleep(WM_DRM_WINDOW_NS / 1000 + 1000);
    wm_drm_clients_read(&fixture->clients);
    assert_true(fixture->gpus[0].has_utilization);
    assert_true(fixture->gpus[0].utilization >= 0 && fixture->gpus[0].utilization <= 1);
}

/* xe counts in cycles of the engine's own clock, so that what comes out does not
 * depend on when the test runs. */
static void test_cycles(void **state)
{
    static const struct {
        const char *what;
        uint64_t rcs, vcs, total; /* of the one client; two engines of kind vcs */
        double utilization;
    } steps[] = {
        { "what was before is not counted", 1000, 0, 10000, 0 },
        { "half", 1500, 0, 11000, 0.5 },
        { "idle", 1500, 0, 12000, 0 },
        { "the busiest kind, by its number of engines", 1600, 1500, 13000, 0.75 },
        { "a step back", 1100, 1500, 14000, 0 },
        { "and not yet there again", 1550, 1500, 15000, 0 },
        { "caught up", 1700, 1500, 16000, 0.1 },
        { "the clock stands", 1800, 1500, 16000, 0 },
        { "more than there is", 9000, 1500, 17000, 1 },
        { "the GPU was reset", 10, 0, 100, 0 },
        { "and goes on", 35, 0, 200, 0.25 },
        { "no number a counter can have", UINT64_MAX, 0, 300, 0 },
        { "and goes on from where it was", 60, 0, 400, 0.25 },
    };
    const char *dir = *state;
    struct fixture fixture;
    char text[512];

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        print_message("  %s\n", steps[i].what);
        snprintf(text, sizeof(text),
                 "drm-driver:\txe\ndrm-pdev:\t" A "\ndrm-client-id:\t1\n"
                 "drm-cycles-rcs:\t%llu\ndrm-total-cycles-rcs:\t%llu\n"
                 "drm-cycles-vcs:\t%llu\ndrm-total-cycles-vcs:\t%llu\n"
                 "drm-engine-capacity-vcs:\t2\n",
                 (unsigned long long)steps[i].rcs, (unsigned long long)steps[i].total,
                 (unsigned long long)steps[i].vcs, (unsigned long long)steps[i].total);
        write_fdinfo(dir, 10, 4, text);
        if (i == 0) {
            start(&fixture, dir);
            wm_drm_clients_search(&fixture.clients, WHOLE_ROUND);
        }
        next_window(&fixture);
        assert_true(fabs(fixture.gpus[0].utilization - steps[i].utilization) < 1e-9);
        assert_true(fixture.gpus[0].counts_engines);
        assert_true(fixture.gpus[1].utilization == 0);
    }
    stop(&fixture);
}

static void write_busy(const char *dir, int pid, int id, uint64_t render_ns,
                       uint64_t copy_ns)
{
    char text[512];

    snprintf(text, sizeof(text),
             "drm-driver:\txe\ndrm-pdev:\t" A "\ndrm-client-id:\t%d\n"
             "drm-engine-render:\t%llu ns\ndrm-engine-copy:\t%llu ns\n",
             id, (unsigned long long)render_ns, (unsigned long long)copy_ns);
    write_fdinfo(dir, pid, 4, text);
}

/* Nanoseconds are a share of the time between two readings of one client. */
static void test_nanoseconds(void **state)
{
    const char *dir = *state;
    struct fixture fixture;
    const struct wm_drm_client *clients;

    write_busy(dir, 10, 1, 5000000000, 0);
    write_busy(dir, 20, 2, 0, 9000000000);
    start(&fixture, dir);
    clients = fixture.clients.clients;
    wm_drm_clients_search(&fixture.clients, WHOLE_ROUND);
    assert_false(fixture.gpus[0].has_utilization); /* a ratio needs a window */
    next_window(&fixture);
    next_window(&fixture);
    assert_true(fixture.gpus[0].utilization == 0);

    /* Work of two clients on one kind of engines adds up. */
    int64_t before_ns = clients[0].base_ns;
    write_busy(dir, 10, 1, 5002000000, 0);
    write_busy(dir, 20, 2, 3000000, 9001000000);
    next_window(&fixture);
    double span_ns = (double)(clients[0].base_ns - before_ns);
    assert_true(span_ns >= WM_DRM_WINDOW_NS);
    assert_true(fabs(fixture.gpus[0].utilization - 5e6 / span_ns) < 0.05 * 5e6 / span_ns);

    /* Within the window the last value stands. */
    double last = fixture.gpus[0].utilization;
    write_busy(dir, 10, 1, 5900000000, 0);
    wm_drm_clients_read(&fixture.clients);
    assert_true(fixture.gpus[0].utilization == last ||
                clients[0].base_ns - before_ns > 2 * WM_DRM_WINDOW_NS);

    /* A client that comes with a long past, and one that goes. */
    next_window(&fixture);
    write_busy(dir, 30, 3, 70000000000, 0);
    write_fdinfo(dir, 10, 4, "");
    search(&fixture);
    next_window(&fixture);
    next_window(&fixture);
    assert_true(fixture.gpus[0].utilization == 0);

    /* A kind of engines that amdgpu names from its first use on. */
    write_fdinfo(dir, 30, 4,
                 "drm-driver:\txe\ndrm-pdev:\t" A "\ndrm-client-id:\t3\n"
                 "drm-engine-render:\t70000000000 ns\ndrm-engine-dma:\t900000000000 ns\n");
    next_window(&fixture);
    assert_true(fixture.gpus[0].utilization == 1);
    next_window(&fixture);
    assert_true(fixture.gpus[0].utilization == 0);
    stop(&fixture);
}

static void write_cycles(const char *dir, int pid, int number, const char *slot, int id,
                         int rcs, int vcs, int total)
{
    char text[512];

    snprintf(text, sizeof(text),
             "drm-driver:\txe\ndrm-pdev:\t%s\ndrm-client-id:\t%d\n"
             "drm-cycles-rcs:\t%d\ndrm-total-cycles-rcs:\t%d\n"
             "drm-cycles-vcs:\t%d\ndrm-total-cycles-vcs:\t%d\n"
             "drm-engine-capacity-vcs:\t2\n",
             slot, id, rcs, total, vcs, total);
    write_fdinfo(dir, pid, number, text);
}

/* A client counts from when it is found, but for less than a window that would be
 * noise. */
static void test_newcomer(void **state)
{
    const char *dir = *state;
    struct fixture fixture;

    write_cycles(dir, 10, 4, A, 1, 0, 0, 1000);
    start(&fixture, dir);
    wm_drm_clients_search(&fixture.clients, WHOLE_ROUND);
    for (int i = 1; i <= 3; i++) {
        write_cycles(dir, 10, 4, A, 1, 250 * i, 0, 1000 * (i + 1));
        next_window(&fixture);
        assert_true(fabs(fixture.gpus[0].utilization - 0.25) < 1e-9);
    }

    usleep(WM_DRM_WINDOW_NS / 1000 + 1000);
    write_cycles(dir, 11, 4, A, 2, 0, 0, 1000);
    int64_t begin_ns = wm_clock_monotonic_ns();
    wm_drm_clients_search(&fixture.clients, WHOLE_ROUND);
    write_cycles(dir, 11, 4, A, 2, 500, 0, 2000);
    wm_drm_clients_read(&fixture.clients);
    if (wm_clock_monotonic_ns() - begin_ns < WM_DRM_WINDOW_NS)
        assert_true(fixture.gpus[0].utilization == 0);
    write_cycles(dir, 11, 4, A, 2, 1000, 0, 3000);
    next_window(&fixture);
    assert_true(fabs(fixture.gpus[0].utilization - 0.5) < 1e-9);
    stop(&fixture);
}

/* "A 10=0.5, B 10=none": what the processes have of the GPUs. */
static const char *share_text(const struct fixture *fixture)
{
    static const char *const states[] = {
        [WM_READING_NONE] = "none",     [WM_READING_UNSUPPORTED] = "unsupported",
        [WM_READING_DENIED] = "denied", [WM_READING_FAILED] = "failed",
        [WM_READING_STALE] = "stale",
    };
    static char text[256];
    int length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < GPUS * fixture->clients.process_count; i++) {
        size_t gpu = i / fixture->clients.process_count;
        const struct wm_gpu_process *process =
            &fixture->clients.processes[i % fixture->clients.process_count];
        char number[32];

        if (strcmp(process->device, fixture->cards[gpu].identity) != 0)
            continue;
        snprintf(number, sizeof(number), "%g", process->sm_ratio);
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%s%c %d=%s",
                           length > 0 ? ", " : "", 'A' + (int)gpu, process->pid,
                           process->sm_state == WM_READING_OK ? number
                                                              : states[process->sm_state]);
    }
    return text;
}

/* What a process has of the kind of engines it keeps busiest, in a window of 1000
 * cycles; there are two engines of kind vcs. */
static void test_shares(void **state)
{
    static const struct {
        const char *what;
        struct {
            int pid, number;
            const char *slot;
            int id, rcs, vcs;
        } clients[4];
        const char *first, *expected;
    } cases[] = {
        { "half", { { 10, 4, A, 1, 500, 0 } }, "A 10=none", "A 10=0.5" },
        { "nothing", { { 10, 4, A, 1, 0, 0 } }, "A 10=none", "A 10=0" },
        { "more than there is", { { 10, 4, A, 1, 1100, 0 } }, "A 10=none", "A 10=1" },
        { "of the busiest kind", { { 10, 4, A, 1, 200, 900 } }, "A 10=none", "A 10=0.45" },
        { "of the kind with fewer engines",
          { { 10, 4, A, 1, 500, 900 } },
          "A 10=none",
          "A 10=0.5" },
        { "all engines of a kind", { { 10, 4, A, 1, 0, 2000 } }, "A 10=none", "A 10=1" },
        { "two clients add up",
          { { 10, 4, A, 1, 300, 0 }, { 10, 5, A, 2, 400, 0 } },
          "A 10=none",
          "A 10=0.7" },
        { "not on engines of two kinds",
          { { 10, 4, A, 1, 300, 0 }, { 10, 5, A, 2, 0, 400 } },
          "A 10=none",
          "A 10=0.3" },
        { "one client with two descriptors",
          { { 10, 4, A, 1, 300, 0 }, { 10, 5, A, 1, 300, 0 } },
          "A 10=none",
          "A 10=0.3" },
        { "and in two processes",
          { { 10, 4, A, 1, 300, 0 }, { 11, 4, A, 1, 300, 0 } },
          "A 10=none",
          "A 10=0.3" },
        { "two GPUs",
          { { 10, 4, A, 1, 300, 0 }, { 10, 5, B, 1, 200, 0 } },
          "A 10=none, B 10=none",
          "A 10=0.3, B 10=0.2" },
        { "no more than the GPU has in all",
          { { 10, 4, A, 1, 300, 0 }, { 10, 5, A, 2, 300, 0 }, { 10, 6, A, 3, 500, 0 } },
          "A 10=none",
          "A 10=1" },
        { "none that count",
          { { 10, 4, A, 1, -1, 0 } },
          "A 10=unsupported",
          "A 10=unsupported" },
        { "one that counts and one that does not",
          { { 10, 4, A, 1, 250, 0 }, { 10, 5, A, 2, -1, 0 } },
          "A 10=none",
          "A 10=0.25" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture fixture;

        print_message("  %s\n", cases[i].what);
        assert_int_equal(test_make_dir(state), 0);
        for (int now = 0; now <= 2; now++) {
            for (size_t k = 0; cases[i].clients[k].pid; k++) {
                int rcs = cases[i].clients[k].rcs, vcs = cases[i].clients[k].vcs;
                const char *slot = cases[i].clients[k].slot;
                char text[128];

                write_cycles(*state, cases[i].clients[k].pid, cases[i].clients[k].number,
                             slot, cases[i].clients[k].id, 7000 + now * rcs,
                             9000 + now * vcs, 50000 + now * 1000);
                snprintf(text, sizeof(text),
                         "drm-driver:\txe\ndrm-pdev:\t%s\ndrm-client-id:\t%d\n", slot,
                         cases[i].clients[k].id);
                if (rcs < 0)
                    write_fdinfo(*state, cases[i].clients[k].pid,
                                 cases[i].clients[k].number, text);
            }
            if (now == 0) {
                int64_t begin_ns = wm_clock_monotonic_ns();
                start(&fixture, *state);
                search(&fixture);
                if (wm_clock_monotonic_ns() - begin_ns < WM_DRM_WINDOW_NS)
                    assert_string_equal(share_text(&fixture), cases[i].first);
                continue;
            }
            next_window(&fixture);
            assert_string_equal(share_text(&fixture), cases[i].expected);
        }
        stop(&fixture);
        assert_int_equal(test_remove_dir(state), 0);
    }
}

/* amdgpu names an engine from its first use on; other drivers name them all. */
static void test_engines_not_used_yet(void **state)
{
    const char *dir = *state;
    struct fixture fixture;

    write_fdinfo(dir, 10, 4, "drm-driver:\tamdgpu\ndrm-pdev:\t" A "\ndrm-client-id:\t1\n");
    write_fdinfo(dir, 10, 5, "drm-driver:\txe\ndrm-pdev:\t" B "\ndrm-client-id:\t1\n");
    start(&fixture, dir);
    set_driver(&fixture, 0, "amdgpu");
    search(&fixture);
    next_window(&fixture);
    assert_string_equal(share_text(&fixture), "A 10=0, B 10=unsupported");

    write_fdinfo(dir, 10, 4,
                 "drm-driver:\tamdgpu\ndrm-pdev:\t" A "\ndrm-client-id:\t1\n"
                 "drm-engine-compute:\t900000000000 ns\n");
    next_window(&fixture);
    assert_string_equal(share_text(&fixture), "A 10=1, B 10=unsupported");
    stop(&fixture);

    /* An old amdgpu that wrote percentages. */
    write_fdinfo(dir, 10, 4,
                 "drm-driver:\tamdgpu\ndrm-pdev:\t" A "\ndrm-client-id:\t1\n"
                 "drm-engine-gfx0:\t12.50 %\n");
    start(&fixture, dir);
    set_driver(&fixture, 0, "amdgpu");
    search(&fixture);
    next_window(&fixture);
    assert_string_equal(share_text(&fixture), "A 10=unsupported, B 10=unsupported");
    stop(&fixture);
}

/* Users of a GPU whose driver tells nothing of them. */
static void test_silent(void **state)
{
    const char *dir = *state;
    struct fixture fixture;

    write_link(dir, 10, 4, "/dev/dri/renderD128");
    write_fdinfo(dir, 10, 4, "pos:\t0\nflags:\t02100002\n");
    start(&fixture, dir);
    search(&fixture);
    assert_true(fixture.gpus[0].is_silent);
    assert_false(fixture.gpus[1].is_silent);
    assert_int_equal(fixture.clients.process_count, 1);
    assert_int_equal(fixture.clients.processes[0].pid, 0);
    assert_string_equal(fixture.clients.processes[0].device, A);
    assert_int_equal(fixture.clients.processes[0].state, WM_READING_UNSUPPORTED);
    assert_int_equal(fixture.clients.processes[0].sm_state, WM_READING_UNSUPPORTED);

    write_client(dir, 11, 4, A, 1, 5); /* it does tell of somebody */
    search(&fixture);
    assert_int_equal(fixture.clients.process_count, 1);
    assert_true(kib_of(&fixture, A, 11) == 5);

    write_fdinfo(dir, 10, 4, "");
    write_fdinfo(dir, 11, 4, "");
    remove_fdinfo(dir, 10, 4);
    search(&fixture);
    assert_false(fixture.gpus[0].is_silent);
    stop(&fixture);
}

static enum wm_reading_state limit_of(const struct fixture *fixture, const char *expected)
{
    struct wm_error err = { 0 };

    enum wm_reading_state state =
        wm_drm_clients_limit(&fixture->clients, &fixture->gpus[0], &err);
    if (!strstr(err.text, expected))
        fail_msg("'%s' instead of '%s'", err.text, expected);
    return state;
}

static void test_limit(void **state)
{
    const char *dir = *state;
    struct fixture fixture;

    write_client(dir, 10, 4, A, 1, 5);
    start(&fixture, dir);
    wm_drm_clients_search(&fixture.clients, 0); /* one step */
    assert_int_equal(limit_of(&fixture, "read yet"), WM_READING_NONE);
    wm_drm_clients_read(&fixture.clients);
    if (fixture.clients.search.completed == 0) { /* as on any but a very slow machine */
        size_t count = fixture.clients.process_count; /* what is found, and two marks */
        assert_in_range(count, GPUS, GPUS + 1);
        assert_int_equal(fixture.clients.processes[count - 1].pid, 0);
        assert_int_equal(fixture.clients.processes[count - 1].state, WM_READING_NONE);
    }
    search(&fixture);
    assert_int_equal(limit_of(&fixture, "does not show all"), WM_READING_DENIED);
    assert_int_equal(fixture.clients.process_count, 1); /* ours are known all the same */
    stop(&fixture);

    test_write_file(dir, "2/comm", "kthreadd\n");
    start(&fixture, dir);
    search(&fixture);
    assert_int_equal(limit_of(&fixture, ""), WM_READING_OK);
    stop(&fixture);

    char nowhere[256];
    snprintf(nowhere, sizeof(nowhere), "%s/nowhere", dir);
    start(&fixture, nowhere);
    search(&fixture);
    assert_int_equal(limit_of(&fixture, "nowhere: No such file"), WM_READING_FAILED);
    assert_int_equal(fixture.clients.process_count, GPUS);
    assert_int_equal(fixture.clients.processes[1].pid, 0);
    assert_int_equal(fixture.clients.processes[1].state, WM_READING_FAILED);
    stop(&fixture);
}

static void test_denied(void **state)
{
    const char *dir = *state;
    struct fixture fixture;
    char path[256];

    if (geteuid() == 0) {
        print_message("  root may read everything\n");
        skip();
    }
    test_write_file(dir, "2/comm", "kthreadd\n");
    write_client(dir, 10, 4, A, 1, 5);
    write_client(dir, 11, 4, A, 2, 5);
    snprintf(path, sizeof(path), "%s/11/fdinfo", dir);
    assert_int_equal(chmod(path, 0), 0);
    start(&fixture, dir);
    search(&fixture);
    assert_int_equal(limit_of(&fixture, "the GPU use of 1 process may"), WM_READING_DENIED);
    assert_int_equal(fixture.clients.process_count, 1);
    assert_true(kib_of(&fixture, A, 10) == 5);
    stop(&fixture);
    assert_int_equal(chmod(path, 0700), 0);

    /* The folder may be listed, and the files not. */
    snprintf(path, sizeof(path), "%s/11/fdinfo/4", dir);
    assert_int_equal(chmod(path, 0), 0);
    start(&fixture, dir);
    search(&fixture);
    assert_int_equal(fixture.clients.process_count, 1);
    stop(&fixture);
}

/* More clients than there is room for. */
static void test_full(void **state)
{
    const char *dir = *state;
    struct fixture fixture;

    for (int i = 0; i < WM_DRM_CLIENTS; i++)
        write_fdinfo(dir, 10 + i / 64, 4 + i % 64, client_text(A, i, 1));
    start(&fixture, dir);
    search(&fixture);
    assert_int_equal(fixture.gpus[0].client_count, WM_DRM_CLIENTS);
    assert_int_equal(limit_of(&fixture, "does not show all"), WM_READING_DENIED);

    write_fdinfo(dir, 99, 4, client_text(A, WM_DRM_CLIENTS, 1));
    search(&fixture);
    assert_int_equal(fixture.gpus[0].client_count, WM_DRM_CLIENTS);
    assert_int_equal(limit_of(&fixture, "more processes"), WM_READING_FAILED);
    assert_true(kib_of(&fixture, A, 99) == -1);
    const struct wm_gpu_process *last =
        &fixture.clients.processes[fixture.clients.process_count - 1];
    assert_int_equal(last->pid, 0);
    assert_int_equal(last->state, WM_READING_FAILED);
    assert_string_equal(last->why, "more processes use GPUs than can be followed");

    write_fdinfo(dir, 10, 4, ""); /* one goes, and there is room */
    wm_drm_clients_read(&fixture.clients);
    search(&fixture);
    search(&fixture);
    assert_true(kib_of(&fixture, A, 99) == 1);
    assert_int_equal(limit_of(&fixture, "does not show all"), WM_READING_DENIED);
    stop(&fixture);
}

/* Files that are opened each time, where few may be kept open. */
static void test_few_files(void **state)
{
    const char *dir = *state;
    struct fixture fixture;
    struct rlimit before, few;

    for (int i = 0; i < 6; i++)
        write_client(dir, 10 + i, 4, A, i, 1 + i);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 32;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    start(&fixture, dir);
    search(&fixture);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(fixture.clients.fds_left, 0);
    for (int i = 0; i < 6; i++)
        assert_true(kib_of(&fixture, A, 10 + i) == 1 + i);
    for (int i = 0; i < 6; i++)
        write_client(dir, 10 + i, 4, A, i, 20 + i);
    wm_drm_clients_read(&fixture.clients);
    for (int i = 0; i < 6; i++)
        assert_true(kib_of(&fixture, A, 10 + i) == 20 + i);
    for (int i = 0; i < 6; i++)
        write_fdinfo(dir, 10 + i, 4, "");
    wm_drm_clients_read(&fixture.clients);
    assert_int_equal(fixture.clients.process_count, 0);
    assert_int_equal(fixture.clients.fds_left, 4);
    stop(&fixture);
}

/* Clients of a GPU that nobody asks for are not followed. */
static void test_unwanted(void **state)
{
    const char *dir = *state;
    struct fixture fixture;

    write_client(dir, 10, 4, A, 1, 5);
    write_client(dir, 10, 5, B, 1, 7);
    write_client(dir, 11, 5, B, 1, 7);
    start(&fixture, dir);
    fixture.gpus[1].wanted = false;
    search(&fixture);
    assert_int_equal(fixture.clients.process_count, 1);
    assert_int_equal(fixture.clients.handle_count, 1);
    wm_drm_clients_search(&fixture.clients, WHOLE_ROUND);
    assert_int_equal(fixture.clients.handle_count, 1);
    stop(&fixture);
}

static void test_no_allocation(void **state)
{
    const char *dir = *state;
    struct fixture fixture;

    for (int i = 0; i < 20; i++)
        write_client(dir, 10 + i, 4, A, i, 5);
    start(&fixture, dir);
    test_fail_allocation(-1);
    for (int i = 0; i < 3; i++)
        search(&fixture);
    assert_int_equal(test_fail_allocation(-1), 0);
    assert_int_equal(fixture.clients.process_count, 20);
    stop(&fixture);
}

static void ignore(void *context, pid_t pid, int number, const char *node)
{
    (void)context, (void)pid, (void)number, (void)node;
}

static void waste_1_ms(void *context, pid_t pid, int number, const char *node)
{
    int64_t begin_ns = wm_clock_monotonic_ns();
    int64_t *calls = context;

    ignore(NULL, pid, number, node);
    ++*calls;
    while (wm_clock_monotonic_ns() - begin_ns < WM_NS_PER_MS)
        continue;
}

/* However often it gets its turn, the search takes a hundredth of the time. One
 * round here would take 200 ms. Calls of a known length are counted, since on a
 * busy machine the time they seem to take says little. */
static void test_share(void **state)
{
    const char *dir = *state;
    struct wm_drm_search walk;
    int64_t calls = 0;

    for (int i = 0; i < 200; i++)
        write_client(dir, 10 + i / 5, 4 + i % 5, A, i, 5);
    assert_int_equal(wm_drm_search_init(&walk, dir, NULL), WM_OK);
    int64_t begin_ns = wm_clock_monotonic_ns();
    int64_t now_ns = begin_ns;
    while (calls == 0 || now_ns - begin_ns < WM_NS_PER_S / 2) {
        assert_false(wm_drm_search_turn(&walk, waste_1_ms, &calls));
        now_ns = wm_clock_monotonic_ns();
    }
    assert_in_range(calls, 1, (now_ns - begin_ns) / (100 * WM_NS_PER_MS) + 1);

    /* Where it is cheap, it gets round. */
    while (!wm_drm_search_turn(&walk, ignore, NULL))
        assert_true(wm_clock_monotonic_ns() - now_ns < 60 * WM_NS_PER_S);
    assert_int_equal(walk.completed, 1);
    wm_drm_search_release(&walk);
}

static void test_allocation_failures(void **state)
{
    struct wm_drm_gpu gpus[GPUS] = { 0 };
    const char *dir = *state;
    long step;

    for (step = 0; step < 20; step++) {
        struct wm_drm_clients clients;
        struct wm_error err = { 0 };

        test_fail_allocation(step);
        int status = wm_drm_clients_init(&clients, dir, gpus, GPUS, &err);
        test_fail_allocation(-1);
        wm_drm_clients_release(&clients);
        if (status == WM_OK)
            break;
        assert_int_equal(status, WM_ENOMEM);
        assert_non_null(strstr(err.text, "out of memory"));
    }
    assert_int_equal(step, 6);

    struct wm_drm_clients nothing = { 0 };
    wm_drm_clients_release(&nothing);
}

UNIT(source_drm_clients)
{
#define IN_SCRATCH(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sharing),
        IN_SCRATCH(test_others),
        IN_SCRATCH(test_hand_over),
        IN_SCRATCH(test_reuse),
        IN_SCRATCH(test_no_id),
        IN_SCRATCH(test_platform),
        cmocka_unit_test(test_memory),
        IN_SCRATCH(test_cycles),
        IN_SCRATCH(test_nanoseconds),
        IN_SCRATCH(test_newcomer),
        cmocka_unit_test(test_shares),
        IN_SCRATCH(test_engines_not_used_yet),
        IN_SCRATCH(test_silent),
        IN_SCRATCH(test_limit),
        IN_SCRATCH(test_denied),
        IN_SCRATCH(test_full),
        IN_SCRATCH(test_few_files),
        IN_SCRATCH(test_unwanted),
        IN_SCRATCH(test_no_allocation),
        IN_SCRATCH(test_share),
        IN_SCRATCH(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
