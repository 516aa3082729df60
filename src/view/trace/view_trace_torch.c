/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_trace_torch.c - reads a trace of PyTorch's profiler token by token: it may have
 * gigabytes, and only its first and last time stamp and two places in it matter.
 *
 * Its time stamps are in microseconds after `baseTimeNanoseconds` since 1970. Up to PyTorch
 * 2.2 that member is missing, and they are since 1970 themselves.
 */
#include "view/trace/view_trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_utf8.h"
#include "base/text/base_number.h"

enum { DEPTH_MOST = 256, TEXT_SIZE = 64, COPY_SIZE = 65536 };

enum token { END, BROKEN, OPEN, CLOSE, COLON, COMMA, TEXT, WORD };

/* Of an event. */
struct event {
    bool is_timed; /* no metadata */
    double ts, dur;
};

struct scan {
    FILE *in;
    off_t at;
    char brackets[DEPTH_MOST]; /* those that are open */
    size_t depth;
    char text[TEXT_SIZE];    /* the latest string or word; a long one is cut off */
    char keys[4][TEXT_SIZE]; /* the latest of each outer depth */
    bool is_in_events, has_list;
    struct event event;
};

static int next_byte(struct scan *scan)
{
    int c = getc_unlocked(scan->in);

    scan->at += c != EOF;
    return c;
}

static void add_byte(struct scan *scan, size_t *length, int c)
{
    if (*length + 1 < TEXT_SIZE)
        scan->text[(*length)++] = (char)c;
    scan->text[*length] = '\0';
}

static enum token read_string(struct scan *scan)
{
    size_t length = 0;
    int c;

    scan->text[0] = '\0';
    while ((c = next_byte(scan)) != '"') {
        if (c == '\\')
            c = next_byte(scan);
        if (c == EOF)
            return BROKEN;
        add_byte(scan, &length, c);
    }
    return TEXT;
}

static enum token read_word(struct scan *scan, int c)
{
    size_t length = 0;

    for (; c != EOF && !strchr(" \t\r\n,:[]{}\"", c); c = next_byte(scan))
        add_byte(scan, &length, c);
    if (c != EOF) {
        ungetc(c, scan->in);
        scan->at--;
    }
    return WORD;
}

static enum token close_bracket(struct scan *scan, char opened)
{
    if (scan->depth == 0 || scan->brackets[scan->depth - 1] != opened)
        return BROKEN;
    scan->depth--;
    return CLOSE;
}

static enum token next_token(struct scan *scan)
{
    int c = next_byte(scan);

    while (c == ' ' || c == '\t' || c == '\r' || c == '\n')
        c = next_byte(scan);
    switch (c) {
    case EOF:
        return scan->depth > 0 ? BROKEN : END;
    case '{':
    case '[':
        if (scan->depth == DEPTH_MOST)
            return BROKEN;
        scan->brackets[scan->depth++] = (char)c;
        return OPEN;
    case '}':
        return close_bracket(scan, '{');
    case ']':
        return close_bracket(scan, '[');
    case ':':
        return COLON;
    case ',':
        return COMMA;
    case '"':
        return read_string(scan);
    case '\0':
        return BROKEN;
    default:
        return read_word(scan, c);
    }
}

static bool is_key(const struct scan *scan, const char *key)
{
    return scan->depth < 4 && strcmp(scan->keys[scan->depth], key) == 0;
}

static void take_event(struct wm_torch *torch, const struct event *event)
{
    if (!event->is_timed || isnan(event->ts))
        return;
    torch->first_us = fmin(torch->first_us, event->ts);
    torch->last_us = fmax(torch->last_us, event->ts + event->dur);
}

/* false: a number is none. */
static bool take_word(struct wm_torch *torch, struct scan *scan)
{
    double number;
    char *end;

    if (scan->depth == 1 && is_key(scan, "baseTimeNanoseconds")) {
        errno = 0;
        torch->base_ns = strtoll(scan->text, &end, 10);
        return *end == '\0' && errno == 0 && torch->base_ns >= 0 &&
               torch->base_ns <= WM_TIME_MAX_NS;
    }
    bool is_ts = is_key(scan, "ts");
    if (!scan->is_in_events || scan->depth != 3 || (!is_ts && !is_key(scan, "dur")))
        return true;
    if (!wm_number_parse(scan->text, strlen(scan->text), &number))
        return false;
    *(is_ts ? &scan->event.ts : &scan->event.dur) = number;
    return true;
}

static void take_open(struct wm_torch *torch, struct scan *scan)
{
    if (scan->depth == 2 && strcmp(scan->keys[1], "traceEvents") == 0 &&
        scan->brackets[1] == '[') {
        scan->is_in_events = scan->has_list = true;
        torch->events_at = scan->at;
    }
    if (scan->is_in_events && scan->depth == 3) {
        scan->event = (struct event) { .is_timed = true, .ts = NAN };
        torch->has_events = true;
    }
}

static void take_close(struct wm_torch *torch, struct scan *scan)
{
    if (scan->is_in_events && scan->depth == 2)
        take_event(torch, &scan->event);
    scan->is_in_events = scan->is_in_events && scan->depth >= 2;
}

/* false: it is no JSON. */
static bool scan_all(struct wm_torch *torch, struct scan *scan)
{
    enum token token;
    bool is_good = true;

    while (is_good && (token = next_token(scan)) != END) {
        if (token == BROKEN)
            return false;
        if (token == OPEN)
            take_open(torch, scan);
        if (token == CLOSE)
            take_close(torch, scan);
        if (token == COLON && scan->depth < 4)
            memcpy(scan->keys[scan->depth], scan->text, TEXT_SIZE);
        if (token == TEXT && scan->depth == 3 && is_key(scan, "ph"))
            scan->event.is_timed = scan->event.is_timed && strcmp(scan->text, "M") != 0;
        if (token == WORD)
            is_good = take_word(torch, scan);
    }
    return is_good;
}

int wm_torch_open(struct wm_torch *torch, const char *path, struct wm_error *err)
{
    struct scan scan = { 0 };

    *torch = (struct wm_torch) { .path = path, .first_us = INFINITY, .last_us = -INFINITY };
    torch->file = fopen(path, "re");
    if (!torch->file)
        return wm_fail(err, WM_EIO, "%s: %s", wm_text_path(path), strerror(errno));
    int first = getc(torch->file);
    if (first == 0x1f)
        return wm_fail(err, WM_EFORMAT, "%s: is compressed; run: gunzip -k %s",
                       wm_text_path(path), wm_text_path(path));
    if (first != EOF)
        ungetc(first, torch->file);
    scan.in = torch->file;
    bool is_json = scan_all(torch, &scan);
    if (!is_json || !scan.has_list)
        return wm_fail(err, WM_EFORMAT, "%s: is no trace of PyTorch's profiler%s",
                       wm_text_path(path), is_json ? ": it has no traceEvents" : "");
    if (torch->first_us > torch->last_us)
        return wm_fail(err, WM_EFORMAT, "%s: has no events", wm_text_path(path));
    return WM_OK;
}

int wm_torch_check(const struct wm_torch *torch, const struct wm_recording *recording,
                   struct wm_error *err)
{
    const struct wm_run *run = wm_recording_run(recording);
    const struct wm_result *result = wm_recording_result(recording);
    double base_s = (double)(torch->base_ns - run->anchor_unix_ns) / 1e9;
    double first_s = base_s + torch->first_us / 1e6, last_s = base_s + torch->last_us / 1e6;
    double end_s = result ? (double)(result->end_ns - run->anchor_ns) / 1e9 : INFINITY;
    bool is_before = last_s < 0;

    if (!is_before && first_s <= end_s)
        return WM_OK;
    return wm_fail(err, WM_EFORMAT,
                   "%s: has no time in common with the run: it %s %.0f s %s",
                   wm_text_path(torch->path), is_before ? "ends" : "begins",
                   is_before ? -last_s : first_s - end_s,
                   is_before ? "before the run" : "after its end");
}

static int copy(struct wm_torch *torch, off_t length, FILE *out, struct wm_error *err)
{
    char buffer[COPY_SIZE];

    while (length != 0) {
        size_t most = length > 0 && length < COPY_SIZE ? (size_t)length : COPY_SIZE;
        size_t count = fread(buffer, 1, most, torch->file);
        if (count == 0)
            break;
        fwrite(buffer, 1, count, out);
        length -= length > 0 ? (off_t)count : 0;
    }
    return ferror(torch->file) || length > 0
               ? wm_fail(err, WM_EIO, "%s: cannot be read twice", wm_text_path(torch->path))
               : WM_OK;
}

int wm_torch_copy_head(struct wm_torch *torch, FILE *out, struct wm_error *err)
{
    if (fseeko(torch->file, 0, SEEK_SET) < 0)
        return wm_fail(err, WM_EIO, "%s: cannot be read twice", wm_text_path(torch->path));
    return copy(torch, torch->events_at, out, err);
}

int wm_torch_copy_rest(struct wm_torch *torch, FILE *out, struct wm_error *err)
{
    return copy(torch, -1, out, err);
}

void wm_torch_close(struct wm_torch *torch)
{
    if (torch->file)
        fclose(torch->file);
}
