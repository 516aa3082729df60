/* SPDX-License-Identifier: Apache-2.0 */
/* track_run.c - who, where, when, with what: gathered once per session. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base_clock.h"
#include "base/base_file.h"
#include "base/base_text.h"
#include "record/run/record_writer.h"
#include "track/track_state.h"
#include "wattmeter/version.h"

/* What is kept of the environment, so that the recordings of many processes
 * and nodes can be put together later: the launchers' variables that say which
 * part of a job this is, and those that choose GPUs. A '*' stands for the rest. */
static const char *const kept_variables[] = {
    "SLURM_*",
    "OMPI_COMM_WORLD_*",
    "PMI_*",
    "PMIX_*",
    "MPI_LOCAL*",
    "PALS_*",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "ROLE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_*",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
};

/* A recording is passed around; some launchers put credentials in there. */
static const char *const secret_words[] = { "JWT", "TOKEN", "SECRET", "PASSWORD", "KEY" };

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static int no_memory(struct wm_error *err)
{
    return wm_fail_memory(err, "describing the run");
}

/* `ret_copy` is replaced; the old text is given back. */
static int set_text(char **ret_copy, const char *text, struct wm_error *err)
{
    size_t room = 3 * strlen(text) + 1; /* each bad byte becomes three */
    char *copy = malloc(room);

    if (!copy)
        return no_memory(err);
    wm_text_utf8(copy, room, text, strlen(text));
    free(*ret_copy);
    *ret_copy = copy;
    return WM_OK;
}

static int add_pair(struct wm_pair **pairs, size_t *count, const char *key,
                    const char *value, struct wm_error *err)
{
    struct wm_pair *grown = realloc(*pairs, (*count + 1) * sizeof(**pairs));
    if (!grown)
        return no_memory(err);
    *pairs = grown;

    struct wm_pair pair = { 0 };
    int status = set_text(&pair.key, key, err);
    if (status == WM_OK)
        status = set_text(&pair.value, value, err);
    if (status == WM_OK)
        grown[(*count)++] = pair;
    else
        free(pair.key);
    return status;
}

static bool matches(const char *name, size_t length, const char *pattern)
{
    size_t fixed = strcspn(pattern, "*");

    return (pattern[fixed] == '*' ? length > fixed : length == fixed) &&
           strncmp(name, pattern, fixed) == 0;
}

static bool is_kept(const char *name, size_t length)
{
    size_t i = 0;

    while (i < ARRAY_LEN(kept_variables) && !matches(name, length, kept_variables[i]))
        i++;
    if (i == ARRAY_LEN(kept_variables))
        return false;
    for (i = 0; i < ARRAY_LEN(secret_words); i++) {
        if (memmem(name, length, secret_words[i], strlen(secret_words[i])))
            return false;
    }
    return true;
}

static int keep_environment(struct wm_run *run, char *const *all, struct wm_error *err)
{
    for (char *const *entry = all; entry && *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        char name[128];

        if ((*entry)[length] != '=' || length >= sizeof(name) || !is_kept(*entry, length))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)length, *entry);
        int status = add_pair(&run->environment, &run->environment_count, name,
                              *entry + length + 1, err);
        if (status < 0)
            return status;
    }
    return WM_OK;
}

/* A random UUID (RFC 9562, version 4). */
static void make_id(char text[37])
{
    uint8_t b[16] = { 0 };

    if (getrandom(b, sizeof(b), 0) != sizeof(b)) {
        int64_t now_ns = wm_clock_unix_ns();
        pid_t pid = getpid();
        memcpy(b, &now_ns, sizeof(now_ns));
        memcpy(b + sizeof(now_ns), &pid, sizeof(pid));
    }
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    snprintf(text, 37,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
             b[13], b[14], b[15]);
}

/* "model name" of x86, "Model" of some ARM boards; nothing elsewhere. */
static void find_cpu_model(char *model, size_t size)
{
    static const char *const keys[] = { "model name", "Model", "cpu" };
    char text[8192];

    model[0] = '\0';
    if (wm_file_read_at(AT_FDCWD, "/proc/cpuinfo", text, sizeof(text)) <= 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        for (const char *line = text; line; line = strchr(line, '\n')) {
            line += *line == '\n';
            if (strncmp(line, keys[i], strlen(keys[i])) != 0)
                continue;
            const char *rest = line + strlen(keys[i]);
            rest += strspn(rest, " \t");
            if (*rest != ':')
                continue;
            wm_text_line(model, size, rest + 1);
            return;
        }
    }
}

/* What wm_run_read_facts() reads, as long as it may be. */
enum {
    ID_SIZE = 37,
    BOOT_SIZE = 64,
    MODEL_SIZE = 512,
    KERNEL_SIZE = sizeof(struct utsname),
    HOST_SIZE = sizeof(((struct utsname *)NULL)->nodename),
};

/* `ret_text` is replaced by an empty one, to which set_fact() may give that many bytes. */
static int make_room(char **ret_text, size_t size, struct wm_error *err)
{
    char *room = calloc(3, size); /* each bad byte becomes three */

    if (!room)
        return no_memory(err);
    free(*ret_text);
    *ret_text = room;
    return WM_OK;
}

static void set_fact(char *room, size_t size, const char *text)
{
    wm_text_utf8(room, 3 * size, text, strnlen(text, size - 1));
}

int wm_run_describe(struct wm_run *run, char *const *environment, struct wm_error *err)
{
    const struct {
        char **text;
        size_t size;
    } facts[] = {
        { &run->id, ID_SIZE },        { &run->version, sizeof(WM_VERSION) },
        { &run->host, HOST_SIZE },    { &run->kernel, KERNEL_SIZE },
        { &run->boot_id, BOOT_SIZE }, { &run->cpu_model, MODEL_SIZE },
    };
    int status = WM_OK;

    for (size_t i = 0; i < ARRAY_LEN(facts) && status == WM_OK; i++)
        status = make_room(facts[i].text, facts[i].size, err);
    if (status == WM_OK)
        status = keep_environment(run, environment ? environment : wm_env_all(), err);

    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    run->core_count = cores > 0 ? (int)cores : 1;
    if (run->expected_cores <= 0)
        run->expected_cores = run->core_count;
    run->anchor_ns = wm_clock_monotonic_ns();
    run->anchor_unix_ns = wm_clock_unix_ns();
    return status;
}

void wm_run_read_facts(struct wm_run *run)
{
    char id[ID_SIZE], kernel[KERNEL_SIZE], boot[BOOT_SIZE] = "", model[MODEL_SIZE];
    struct utsname name = { 0 };

    uname(&name);
    snprintf(kernel, sizeof(kernel), "%s %s %s", name.sysname, name.release, name.machine);
    make_id(id);
    wm_file_read_line(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
    find_cpu_model(model, sizeof(model));
    set_fact(run->id, sizeof(id), id);
    set_fact(run->version, sizeof(WM_VERSION), WM_VERSION);
    set_fact(run->host, HOST_SIZE, name.nodename);
    set_fact(run->kernel, sizeof(kernel), kernel);
    set_fact(run->boot_id, sizeof(boot), boot);
    set_fact(run->cpu_model, sizeof(model), model);
    wm_writer_note(run);
}

int wm_run_set_command(struct wm_run *run, char *const argv[], struct wm_error *err)
{
    size_t count = 0;

    while (argv[count])
        count++;
    run->command = calloc(count ? count : 1, sizeof(*run->command));
    if (!run->command)
        return no_memory(err);
    for (; run->command_count < count; run->command_count++) {
        int status =
            set_text(&run->command[run->command_count], argv[run->command_count], err);
        if (status < 0)
            return status;
    }
    return WM_OK;
}

int wm_run_set_command_of(struct wm_run *run, const char *procfs, pid_t pid,
                          struct wm_error *err)
{
    enum { ARGUMENT_MAX = 1024 };
    char path[512], *text = NULL;
    char *argv[ARGUMENT_MAX + 1] = { 0 };
    size_t length = 0, count = 0;

    snprintf(path, sizeof(path), "%s/%d/cmdline", procfs, (int)pid);
    int status = wm_file_slurp(path, 1 << 22, &text, &length, err);
    if (status < 0)
        return status;
    for (char *at = text; at < text + length && count < ARGUMENT_MAX; at += strlen(at) + 1)
        argv[count++] = at;
    status = wm_run_set_command(run, argv, err);
    free(text);
    return status;
}

int wm_run_add_note(struct wm_run *run, const char *key, const char *value,
                    struct wm_error *err)
{
    return add_pair(&run->notes, &run->note_count, key, value, err);
}

static void forget_text(char **text)
{
    free(*text);
    *text = NULL;
}

static void forget_pairs(struct wm_pair **pairs, size_t *count)
{
    for (size_t i = 0; i < *count; i++) {
        free((*pairs)[i].key);
        free((*pairs)[i].value);
    }
    free(*pairs);
    *pairs = NULL;
    *count = 0;
}

void wm_run_forget_target(struct wm_run *run)
{
    for (size_t i = 0; i < run->command_count; i++)
        free(run->command[i]);
    free(run->command);
    run->command = NULL;
    run->command_count = 0;
    forget_pairs(&run->notes, &run->note_count);
    forget_pairs(&run->environment, &run->environment_count);
    forget_text(&run->mode);
    forget_text(&run->regions_remark);
}

int wm_run_set_regions_remark(struct wm_run *run, const char *remark, struct wm_error *err)
{
    return set_text(&run->regions_remark, remark, err);
}

int wm_run_add_gpu_remark(struct wm_run *run, const char *remark, struct wm_error *err)
{
    const char *before = run->gpu_remark ? run->gpu_remark : "";
    char *both = NULL;

    if (asprintf(&both, "%s%s%s", before, before[0] ? "; " : "", remark) < 0)
        return no_memory(err);
    int status = set_text(&run->gpu_remark, both, err);
    free(both);
    return status;
}
