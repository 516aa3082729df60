/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_kernel_text.c - parsers of /proc. A tick calls them once per process,
 * so they go over the text once and parse no field that they do not need.
 */
#include "source/source_kernel_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/base_text.h"

/* The kernel ends each number with a blank or a newline. One that ends with
 * the text was cut off, and is not the number it seems to be. */
static bool ends_number(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Reads the number at `*at`, after blanks, and moves `*at` past it. */
static bool take_u64(const char **at, uint64_t *ret_value)
{
    const char *end;
    uint64_t value;

    if (!wm_text_u64(wm_text_skip_blanks(*at), &end, &value) || !ends_number(*end))
        return false;
    *at = end;
    *ret_value = value;
    return true;
}

static bool take_pid(const char **at, pid_t *ret_pid)
{
    uint64_t value;

    if (!take_u64(at, &value) || value > INT32_MAX)
        return false;
    *ret_pid = (pid_t)value;
    return true;
}

/* Moves `*at` past `count` words, whatever is in them. */
static bool skip_words(const char **at, size_t count)
{
    const char *word = *at;

    while (count-- > 0) {
        word = wm_text_skip_blanks(word);
        size_t length = strcspn(word, " \t\n");
        if (length == 0)
            return false;
        word += length;
    }
    *at = word;
    return true;
}

/* The start of the next line, or NULL past the last one. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : NULL;
}

/* What stands behind `name` on the first line that begins with it, or NULL. */
static const char *find_line(const char *text, const char *name)
{
    size_t length = strlen(name);

    while (text && strncmp(text, name, length) != 0)
        text = next_line(text);
    return text ? text + length : NULL;
}

int wm_parse_pid_stat(const char *text, struct wm_pid_stat *ret_stat)
{
    struct wm_pid_stat stat;
    const char *at = text;

    if (!take_pid(&at, &stat.pid) || stat.pid == 0)
        return WM_EFORMAT;

    /* A program may name itself ") R 1 (", with newlines too, and the kernel
     * writes that as it is. Behind the name there are only numbers and the
     * state, so the last parenthesis is the one that closes it. */
    const char *open = at + 1;
    const char *close = strrchr(at, ')');
    if (*open != '(' || !close || close[1] != ' ')
        return WM_EFORMAT;
    wm_text_utf8(stat.comm, sizeof(stat.comm), open + 1, (size_t)(close - open - 1));

    stat.state = close[2];
    if (stat.state <= ' ' || close[3] != ' ')
        return WM_EFORMAT;
    at = close + 3;

    enum {
        PGRP_TO_FLAGS = 5,
        MAJFLT_TO_CMAJFLT = 2,
        PRIORITY_AND_NICE = 2,
        ITREALVALUE = 1,
        VSIZE_TO_ENDCODE = 5,
        KSTKESP_TO_BLOCKED = 4,
    };
    if (!take_pid(&at, &stat.ppid) || !skip_words(&at, PGRP_TO_FLAGS) ||
        !take_u64(&at, &stat.minflt) || !take_u64(&at, &stat.cminflt) ||
        !skip_words(&at, MAJFLT_TO_CMAJFLT) || !take_u64(&at, &stat.utime) ||
        !take_u64(&at, &stat.stime) || !take_u64(&at, &stat.cutime) ||
        !take_u64(&at, &stat.cstime) || !skip_words(&at, PRIORITY_AND_NICE) ||
        !take_u64(&at, &stat.threads) || !skip_words(&at, ITREALVALUE) ||
        !take_u64(&at, &stat.start_time))
        return WM_EFORMAT;
    if (!skip_words(&at, VSIZE_TO_ENDCODE) || !take_u64(&at, &stat.start_stack))
        stat.start_stack = 0;
    if (!skip_words(&at, KSTKESP_TO_BLOCKED) || !take_u64(&at, &stat.ignored))
        stat.ignored = 0;

    *ret_stat = stat;
    return WM_OK;
}

int wm_parse_statm(const char *text, struct wm_statm *ret_statm)
{
    struct wm_statm statm;

    if (!take_u64(&text, &statm.size) || !take_u64(&text, &statm.resident) ||
        !take_u64(&text, &statm.shared))
        return WM_EFORMAT;
    *ret_statm = statm;
    return WM_OK;
}

/* The number of a line "Name:   123 kB", from behind the colon, in bytes. */
static bool parse_kb(const char *at, uint64_t *ret_bytes)
{
    uint64_t kib;

    if (!take_u64(&at, &kib))
        return false;
    at = wm_text_skip_blanks(at);
    if (strncmp(at, "kB", 2) != 0 || (at[2] != '\n' && at[2] != '\0'))
        return false;
    return !__builtin_mul_overflow(kib, 1024, ret_bytes);
}

struct kb_field {
    const char *name;
    size_t length;
};

#define KB_FIELD(name)                                                                     \
    {                                                                                      \
        name, sizeof(name) - 1                                                             \
    }

static size_t find_field(const char *line, const struct kb_field *fields, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (strncmp(line, fields[i].name, fields[i].length) == 0 &&
            line[fields[i].length] == ':')
            break;
    }
    return i;
}

/* Goes over "Name:  123 kB" lines until those in `wanted` (bit i is fields[i])
 * have been found. values[] of fields that are not there stay as they are. */
static int parse_kb_lines(const char *text, const struct kb_field *fields, size_t count,
                          unsigned wanted, uint64_t *values, unsigned *ret_found)
{
    unsigned found = 0;

    for (const char *line = text; line && *line; line = next_line(line)) {
        size_t i = find_field(line, fields, count);
        if (i == count)
            continue;
        if (!parse_kb(line + fields[i].length + 1, &values[i]))
            return WM_EFORMAT;
        found |= 1U << i;
        if ((found & wanted) == wanted)
            break;
    }
    *ret_found = found;
    return WM_OK;
}

int wm_parse_smaps_rollup(const char *text, struct wm_smaps_rollup *ret_rollup)
{
    enum { RSS, PSS, CLEAN, DIRTY, COUNT, ALL = (1 << COUNT) - 1 };
    static const struct kb_field fields[COUNT] = {
        [RSS] = KB_FIELD("Rss"),
        [PSS] = KB_FIELD("Pss"),
        [CLEAN] = KB_FIELD("Private_Clean"),
        [DIRTY] = KB_FIELD("Private_Dirty"),
    };
    uint64_t bytes[COUNT];
    unsigned found;

    if (parse_kb_lines(text, fields, COUNT, ALL, bytes, &found) < 0 || found != ALL)
        return WM_EFORMAT;
    *ret_rollup =
        (struct wm_smaps_rollup) { bytes[RSS], bytes[PSS], bytes[CLEAN], bytes[DIRTY] };
    return WM_OK;
}

int wm_parse_meminfo(const char *text, struct wm_meminfo *ret_meminfo)
{
    enum { TOTAL, AVAILABLE, FREE, BUFFERS, CACHED, COUNT };
    static const struct kb_field fields[COUNT] = {
        [TOTAL] = KB_FIELD("MemTotal"), [AVAILABLE] = KB_FIELD("MemAvailable"),
        [FREE] = KB_FIELD("MemFree"),   [BUFFERS] = KB_FIELD("Buffers"),
        [CACHED] = KB_FIELD("Cached"),
    };
    const unsigned modern = 1U << TOTAL | 1U << AVAILABLE;
    const unsigned old = 1U << TOTAL | 1U << FREE | 1U << BUFFERS | 1U << CACHED;
    uint64_t bytes[COUNT];
    uint64_t available;
    unsigned found;

    if (parse_kb_lines(text, fields, COUNT, modern, bytes, &found) < 0)
        return WM_EFORMAT;

    /* MemAvailable came with Linux 3.14; some containers' /proc leaves it out. */
    if ((found & modern) == modern)
        available = bytes[AVAILABLE];
    else if ((found & old) != old ||
             __builtin_add_overflow(bytes[FREE], bytes[BUFFERS], &available) ||
             __builtin_add_overflow(available, bytes[CACHED], &available))
        return WM_EFORMAT;
    if (available > bytes[TOTAL])
        return WM_EFORMAT;

    *ret_meminfo = (struct wm_meminfo) { .total = bytes[TOTAL], .available = available };
    return WM_OK;
}

int wm_parse_status_kb(const char *text, const char *name, uint64_t *ret_bytes)
{
    const struct kb_field field = { name, strlen(name) };
    uint64_t bytes;
    unsigned found;

    if (parse_kb_lines(text, &field, 1, 1, &bytes, &found) < 0)
        return WM_EFORMAT;
    if (!found)
        return WM_ENOENT;
    *ret_bytes = bytes;
    return WM_OK;
}

int wm_parse_status_numbers(const char *text, const char *name, uint64_t *numbers,
                            size_t room, size_t *ret_count)
{
    const char *at = find_line(text, name);
    size_t count = 0;

    if (!at)
        return WM_ENOENT;
    while (*(at = wm_text_skip_blanks(at)) != '\n') {
        uint64_t number;
        if (!take_u64(&at, &number))
            return WM_EFORMAT;
        if (count < room)
            numbers[count] = number;
        count++;
    }
    if (count == 0)
        return WM_EFORMAT;
    *ret_count = count;
    return WM_OK;
}

/* The rest of a "cpu" line: user nice system idle iowait irq softirq steal
 * guest guest_nice, of which old kernels write the first four or more. */
static bool take_busy(const char *at, struct wm_proc_stat *ret_stat)
{
    enum { IDLE = 3, IOWAIT = 4, IRQ = 5, SOFTIRQ = 6, STEAL = 7, REQUIRED = 4 };
    struct wm_proc_stat stat = { 0 };

    for (int field = 0; field <= STEAL; field++) {
        uint64_t ticks;
        if (*at == '\n' && field >= REQUIRED)
            break;
        if (!take_u64(&at, &ticks))
            return false;
        if (field == IDLE || field == IOWAIT)
            continue;
        if (field == STEAL)
            stat.stolen = ticks;
        if (__builtin_add_overflow(stat.busy, ticks, &stat.busy))
            return false;
        if (field == IRQ || field == SOFTIRQ)
            stat.interrupts += ticks;
    }
    *ret_stat = stat;
    return true;
}

static bool parse_cpu_line(const char *line, struct wm_cpu_ticks *ret_cpu)
{
    const char *at = line + strlen("cpu");
    struct wm_proc_stat stat;
    uint64_t number;

    if (!wm_text_u64(at, &at, &number) || number > UINT32_MAX || *at != ' ')
        return false;
    ret_cpu->cpu = (uint32_t)number;
    if (!take_busy(at, &stat))
        return false;
    ret_cpu->busy = stat.busy;
    return true;
}

int wm_parse_proc_stat(const char *text, struct wm_cpu_ticks *cpus, size_t room,
                       struct wm_proc_stat *ret_stat)
{
    struct wm_proc_stat stat;
    const char *line = text;
    uint64_t next_cpu = 0;

    if (strncmp(line, "cpu ", 4) != 0 || !take_busy(line + 4, &stat))
        return WM_EFORMAT;

    for (line = next_line(line); line && strncmp(line, "cpu", 3) == 0;
         line = next_line(line)) {
        struct wm_cpu_ticks cpu;
        if (!parse_cpu_line(line, &cpu) || cpu.cpu < next_cpu)
            return WM_EFORMAT;
        next_cpu = (uint64_t)cpu.cpu + 1;
        if (stat.cpu_count < room)
            cpus[stat.cpu_count] = cpu;
        stat.cpu_count++;
    }

    /* The line of interrupts in between may have thousands of numbers. */
    line = find_line(line, "processes ");
    if (!line || !take_u64(&line, &stat.forks))
        return WM_EFORMAT;

    *ret_stat = stat;
    return WM_OK;
}

int wm_parse_boot_time(const char *text, uint64_t *ret_seconds)
{
    const char *at = find_line(text, "btime ");

    return at && take_u64(&at, ret_seconds) ? WM_OK : WM_EFORMAT;
}

int wm_parse_loadavg(const char *text, struct wm_loadavg *ret_loadavg)
{
    struct wm_loadavg loadavg;
    uint64_t whole, hundredths;
    const char *fraction, *at;

    /* Always two digits behind the point, and a point in any locale. */
    if (!wm_text_u64(text, &fraction, &whole) || *fraction != '.' ||
        !wm_text_u64(fraction + 1, &at, &hundredths) || at - fraction != 3 || *at != ' ')
        return WM_EFORMAT;
    loadavg.load1 = (double)whole + (double)hundredths / 1e2;

    enum { LOAD5_LOAD15_AND_RUNNABLE = 3 };
    if (!skip_words(&at, LOAD5_LOAD15_AND_RUNNABLE) || !take_pid(&at, &loadavg.last_pid))
        return WM_EFORMAT;

    *ret_loadavg = loadavg;
    return WM_OK;
}

int wm_parse_pid_list(const char *text, pid_t *pids, size_t room, size_t *ret_count)
{
    size_t count = 0;

    for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
        pid_t pid;
        if (!take_pid(&text, &pid) || pid == 0)
            return WM_EFORMAT;
        if (count < room)
            pids[count] = pid;
        count++;
    }
    *ret_count = count;
    return WM_OK;
}

/* Of one list, "10-11" or "8"; as many CPUs as the kernel can be built for. */
static bool take_cpu_range(const char **at, uint64_t *ret_first, uint64_t *ret_last)
{
    const uint64_t most = 65535;

    if (!wm_text_u64(*at, at, ret_first))
        return false;
    *ret_last = *ret_first;
    if (**at == '-' && !wm_text_u64(*at + 1, at, ret_last))
        return false;
    return *ret_first <= *ret_last && *ret_last <= most;
}

int wm_parse_cpu_list(const char *text, uint32_t *cpus, size_t room, size_t *ret_count)
{
    uint64_t first, last, next = 0;
    size_t count = 0;

    while (*text != '\0' && *text != '\n') {
        if (!take_cpu_range(&text, &first, &last) || first < next)
            return WM_EFORMAT;
        next = last + 1;
        for (uint64_t cpu = first; cpu <= last; cpu++, count++) {
            if (count < room)
                cpus[count] = (uint32_t)cpu;
        }
        if (*text == ',' && text[1] >= '0' && text[1] <= '9')
            text++;
        else if (*text != '\n')
            return WM_EFORMAT;
    }
    /* A list without its newline was cut. */
    if (*text != '\n' || text[1] != '\0')
        return WM_EFORMAT;
    *ret_count = count;
    return WM_OK;
}

/* The value of a line such as "cpu family\t: 6", or NULL for another key. */
static const char *value_of(const char *line, const char *key)
{
    size_t length = strlen(key);

    if (strncmp(line, key, length) != 0)
        return NULL;
    line = wm_text_skip_blanks(line + length);
    return *line == ':' ? wm_text_skip_blanks(line + 1) : NULL;
}

static bool has_word(const char *line, const char *word)
{
    const char *end = line + strcspn(line, "\n");

    while (line < end) {
        size_t length = strcspn(line, " \t\n");
        if (length == strlen(word) && strncmp(line, word, length) == 0)
            return true;
        line += length;
        line += strspn(line, " \t");
    }
    return false;
}

int wm_parse_cpuinfo(const char *text, struct wm_cpuinfo *ret_cpuinfo)
{
    struct wm_cpuinfo info = { .vendor = "" };
    const char *value, *line = text;

    if (!value_of(text, "processor"))
        return WM_EFORMAT;
    while (line && *line != '\0' && *line != '\n') {
        if ((value = value_of(line, "vendor_id")))
            wm_text_line(info.vendor, sizeof(info.vendor), value);
        else if ((value = value_of(line, "model name")))
            wm_text_line(info.name, sizeof(info.name), value);
        else if ((value = value_of(line, "cpu family")))
            take_u64(&value, &info.family);
        else if ((value = value_of(line, "model")))
            take_u64(&value, &info.model);
        else if ((value = value_of(line, "stepping")))
            take_u64(&value, &info.stepping);
        else if ((value = value_of(line, "flags"))) {
            info.has_sgx = has_word(value, "sgx");
            info.is_guest = has_word(value, "hypervisor");
        } else if (value_of(line, "CPU implementer"))
            info.is_arm = true;
        line = next_line(line);
    }
    *ret_cpuinfo = info;
    return WM_OK;
}
