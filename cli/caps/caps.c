/* SPDX-License-Identifier: Apache-2.0 */
/* caps.c - a session of caps around a command. */
#include "caps/caps.h"

#include <stdlib.h>
#include <string.h>

#include "output.h"

void caps_text(enum wm_cap_kind kind, const struct wm_gpu_value *value,
               char text[CAPS_TEXT])
{
    if (value->state != WM_READING_OK)
        snprintf(text, CAPS_TEXT, "n/a");
    else if (kind == WM_CAP_GPU_CLOCK)
        snprintf(text, CAPS_TEXT, "%.5g MHz", value->number / 1e6);
    else
        snprintf(text, CAPS_TEXT, "%.5g W", value->number);
}

static void add_note(struct caps_held *held, const char *format, const char *device,
                     const char *cap, const char *before)
{
    size_t length = strlen(held->note);

    if (length > 0 && length + 2 < sizeof(held->note))
        length += (size_t)snprintf(held->note + length, sizeof(held->note) - length, ", ");
    snprintf(held->note + length, sizeof(held->note) - length, format, device, cap, before);
}

/* Reports the requested cap, and the cap in force if it differs. */
static int set_one(const struct wm_cap_wish *wish, struct caps_held *held,
                   struct wm_error *err)
{
    const struct wm_gpu_value wanted = { .state = WM_READING_OK, .number = wish->value };
    struct wm_cap_setting before, after;
    char cap[CAPS_TEXT], old[CAPS_TEXT], enforced[CAPS_TEXT];

    wm_caps_get(held->caps, wish->index, &before);
    caps_text(before.kind, &before.value, old);
    int status = wm_cap_session_set(held->session, wish->index, wish->value, err);
    if (status < 0)
        return status;
    wm_caps_get(held->caps, wish->index, &after);
    caps_text(after.kind, &wanted, cap);
    caps_text(after.kind, &after.enforced, enforced);
    if (after.kind == WM_CAP_GPU_CLOCK)
        add_note(held, "%s up to %s", after.device, cap, "");
    else if (after.enforced.state == WM_READING_OK && strcmp(enforced, cap) != 0)
        add_note(held, "%s %s asked for, %s enforced", after.device, cap, enforced);
    else
        add_note(held, "%s %s (was %s)", after.device, cap, old);
    return status;
}

static int set_all(const char *words, const char *program, struct caps_held *held,
                   struct wm_error *err)
{
    struct wm_cap_wish *wishes = calloc(wm_caps_count(held->caps) + 1, sizeof(*wishes));
    size_t count = 0;

    if (!wishes)
        return output_fail(err, WM_ENOMEM, "out of memory");
    int status = wm_caps_parse(held->caps, words, wishes, &count, err);
    if (status == WM_OK)
        status = wm_cap_session_begin(held->caps, program, NULL, &held->session, err);
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = set_one(&wishes[i], held, err);
    free(wishes);
    return status;
}

int caps_begin(const char *name, const char *words, const char *program,
               const struct cmd_streams *io, struct caps_held *held)
{
    struct wm_error err;
    int status = wm_caps_open(NULL, &held->caps, &err);

    if (status == WM_OK)
        status = set_all(words, program, held, &err);
    if (status >= 0)
        return CMD_DONE;
    caps_end(name, io, held);
    return output_failure(name, &err, io);
}

int caps_end(const char *name, const struct cmd_streams *io, struct caps_held *held)
{
    struct wm_error err;
    int code = CMD_DONE;

    if (wm_cap_session_end(held->session, &err) < 0) {
        output_failure(name, &err, io);
        code = CMD_FAILED;
    }
    wm_caps_close(held->caps);
    *held = (struct caps_held) { 0 };
    return code;
}

void caps_offer_repair(FILE *chat)
{
    char text[512];

    if (wm_caps_left_behind(text, sizeof(text)) > 0)
        fprintf(chat,
                "wattmeter: a session that was killed has left %s; wattmeter cap restore "
                "puts it back\n",
                text);
    if (wm_caps_left_by_others(text, sizeof(text)) > 0)
        fprintf(chat, "wattmeter: another user's session that was killed has left %s\n",
                text);
}
