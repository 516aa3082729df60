/* SPDX-License-Identifier: Apache-2.0 */
/* cap_change.c - journal, change, read back; and the other way round. In this order a kill
 * at any moment leaves either nothing changed or an entry that says what was there. */
#include "cap/cap_change.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_text.h"

/* Limits are read back as they were set, but for the last digit of a driver's unit. */
static bool is_same(double one, double other)
{
    return fabs(one - other) <= 0.5;
}

/* What a driver has rounded is known only once it was read back. Between the two we may be
 * killed: then what is near is ours. Drivers round to watts, some to five. */
static bool is_near(double one, double other)
{
    return fabs(one - other) <= fmax(5, 0.02 * fabs(other));
}

static bool is_ours(const struct wm_cap_entry *entry, double now)
{
    if (!isnan(entry->read_back))
        return is_same(now, entry->read_back);
    /* Or we were killed before the driver was asked. */
    return is_near(now, entry->set) || is_same(now, entry->before);
}

/* What is set now. Of clocks no driver says it, and NAN is what wattmeter has not set. */
static int read_now(const struct wm_caps *caps, size_t index, double *ret_now,
                    struct wm_error *err)
{
    struct wm_cap_setting setting;

    wm_caps_get(caps, index, &setting);
    if (setting.kind == WM_CAP_GPU_CLOCK) {
        *ret_now = setting.value.state == WM_READING_OK ? setting.value.number : NAN;
        return WM_OK;
    }
    if (setting.value.state != WM_READING_OK)
        return wm_fail(err,
                       setting.value.state == WM_READING_UNSUPPORTED ? WM_ENODEV : WM_EIO,
                       "%s: %s", setting.device, setting.value.why);
    *ret_now = setting.value.number;
    return WM_OK;
}

static int fail_by_another(const struct wm_cap_entry *entry, double now,
                           struct wm_error *err)
{
    char text[WM_CAP_TEXT_SIZE];

    wm_cap_text(entry->kind, now, text);
    return wm_fail(err, WM_ECANCELED,
                   "%s: somebody else has set %s meanwhile; it is left alone",
                   entry->device, text);
}

/* Fills in what was there. `old` is the journal's entry of an earlier change, or NULL. A
 * limit of clocks is gone with a restart of the machine. */
static void begin_entry(const struct wm_caps *caps, size_t index, double now,
                        const struct wm_cap_entry *old, struct wm_cap_entry *entry)
{
    struct wm_cap_setting setting;

    wm_caps_get(caps, index, &setting);
    snprintf(entry->identity, sizeof(entry->identity), "%s", setting.identity);
    snprintf(entry->device, sizeof(entry->device), "%s", setting.device);
    wm_cap_boot(entry->boot);
    entry->kind = setting.kind;
    entry->earlier = entry->before = now;
    if (old && (setting.kind == WM_CAP_GPU_CLOCK ? strcmp(old->boot, entry->boot) == 0
                                                 : is_ours(old, now)))
        entry->earlier = old->earlier;
}

/* Whether it can be read that nothing has changed. */
static bool is_unchanged(struct wm_caps *caps, size_t index, double before)
{
    double now;

    return wm_caps_refresh(caps, NULL) == WM_OK &&
           read_now(caps, index, &now, NULL) == WM_OK && is_same(now, before);
}

/* Where the driver refused, what was there is there. One that has not answered may yet do
 * it: then the entry stays. */
static void take_back_entry(bool found, const struct wm_cap_entry *old,
                            const struct wm_cap_entry *entry)
{
    if (found)
        wm_cap_journal_write(old, NULL);
    else
        wm_cap_journal_remove(entry, NULL);
}

/* The journal knows what is in force even where that cannot be read any more. */
static int read_back(struct wm_caps *caps, size_t index, struct wm_cap_entry *entry,
                     struct wm_error *err)
{
    double now;
    int status = wm_caps_refresh(caps, err);

    if (status == WM_OK)
        status = read_now(caps, index, &now, err);
    if (status < 0)
        return status;
    entry->read_back = now;
    return wm_cap_journal_write(entry, err);
}

int wm_cap_change(struct wm_caps *caps, size_t index, double value,
                  struct wm_cap_entry *entry, struct wm_error *err)
{
    struct wm_cap_entry old, next = *entry;
    struct wm_cap_setting setting;
    bool is_first = !entry->identity[0];
    double now;

    int status = wm_caps_refresh(caps, err);
    if (status == WM_OK && !isnan(value))
        status = wm_caps_check(caps, index, value, err);
    if (status == WM_OK)
        status = read_now(caps, index, &now, err);
    if (status < 0)
        return status;
    wm_caps_get(caps, index, &setting);
    int found =
        wm_cap_journal_read(setting.identity, setting.kind, entry->is_session, &old, err);
    if (found < 0)
        return found;
    if (!is_first && setting.kind != WM_CAP_GPU_CLOCK && !is_ours(entry, now))
        return fail_by_another(entry, now, err);

    begin_entry(caps, index, now, found > 0 ? &old : NULL, &next);
    next.set = value;
    next.read_back = NAN;
    status = wm_cap_journal_write(&next, err);
    if (status < 0)
        return status;
    status = wm_caps_write(caps, index, value, wm_caps_patience(), err);
    if (status < 0) {
        if (status != WM_EIO || is_unchanged(caps, index, now))
            take_back_entry(found > 0, &old, &next);
        return status;
    }
    *entry = next;
    return read_back(caps, index, entry, err);
}

static int write_earlier(struct wm_caps *caps, size_t index,
                         const struct wm_cap_entry *entry, int64_t deadline_ns,
                         struct wm_error *err)
{
    double now;
    char wanted[WM_CAP_TEXT_SIZE], text[WM_CAP_TEXT_SIZE];

    int status = wm_caps_write(caps, index, entry->earlier, deadline_ns, err);
    if (status == WM_OK)
        status = wm_caps_refresh_until(caps, deadline_ns, err);
    if (status == WM_OK)
        status = read_now(caps, index, &now, err);
    if (status < 0 || entry->kind == WM_CAP_GPU_CLOCK || is_near(now, entry->earlier))
        return status;
    wm_cap_text(entry->kind, entry->earlier, wanted);
    wm_cap_text(entry->kind, now, text);
    return wm_fail(err, WM_EIO, "%s: %s was put back, but %s is in force", entry->device,
                   wanted, text);
}

int wm_cap_put_back(struct wm_caps *caps, const struct wm_cap_entry *entry,
                    int64_t deadline_ns, enum wm_cap_restored *ret_restored,
                    struct wm_error *err)
{
    size_t index = wm_caps_find(caps, entry->kind, entry->identity);
    enum wm_cap_restored restored = WM_CAP_PUT_BACK;
    double now;

    if (index == wm_caps_count(caps))
        return wm_fail(err, WM_ENODEV, "%s (%s) is not here any more", entry->device,
                       entry->identity);
    int status = read_now(caps, index, &now, err);
    if (status < 0)
        return status;
    bool is_read = entry->kind != WM_CAP_GPU_CLOCK;
    if (is_read && is_same(now, entry->earlier))
        restored = WM_CAP_BACK;
    else if (is_read && !is_ours(entry, now))
        restored = WM_CAP_BY_ANOTHER;
    else
        status = write_earlier(caps, index, entry, deadline_ns, err);
    if (status == WM_OK)
        status = wm_cap_journal_remove(entry, err);
    if (status == WM_OK)
        *ret_restored = restored;
    return status;
}

/* Entries of a session that is over, and of no session; whoever lives holds the lock. */
static int restore(struct wm_caps *caps, const struct wm_cap_setting *setting,
                   bool is_session, enum wm_cap_restored *ret_restored,
                   struct wm_error *err)
{
    struct wm_cap_entry entry;

    int found =
        wm_cap_journal_read(setting->identity, setting->kind, is_session, &entry, err);
    if (found <= 0)
        return found;
    int status = wm_cap_put_back(caps, &entry, wm_caps_patience(), ret_restored, err);
    return status < 0 ? status : wm_caps_refresh(caps, err);
}

/* Takes the lock of a device, and reads what is there. */
static int take(struct wm_caps *caps, size_t index, int *ret_fd, struct wm_error *err)
{
    struct wm_cap_setting setting;
    int fd;

    wm_caps_get(caps, index, &setting);
    int status =
        wm_cap_lock(setting.identity, setting.device, getpid(), "wattmeter cap", &fd, err);
    if (status < 0)
        return status;
    status = wm_caps_refresh(caps, err);
    if (status < 0)
        close(fd);
    else
        *ret_fd = fd;
    return status;
}

/* What a session has left behind is put back first, so that it is not taken for what was
 * there before us. */
static int change_alone(struct wm_caps *caps, size_t index, double value,
                        struct wm_error *err)
{
    struct wm_cap_entry entry = { .command = "wattmeter cap" };
    enum wm_cap_restored restored;
    struct wm_cap_setting setting;
    int fd;

    int status = take(caps, index, &fd, err);
    if (status < 0)
        return status;
    wm_caps_get(caps, index, &setting);
    status = restore(caps, &setting, true, &restored, err);
    if (status == WM_OK)
        status = wm_cap_change(caps, index, value, &entry, err);
    close(fd);
    return status;
}

int wm_caps_set(struct wm_caps *caps, const struct wm_cap_wish *wish, struct wm_error *err)
{
    int status = wm_caps_check(caps, wish->index, wish->value, err);

    return status < 0 ? status : change_alone(caps, wish->index, wish->value, err);
}

int wm_caps_reset(struct wm_caps *caps, size_t index, struct wm_error *err)
{
    struct wm_cap_setting setting;

    wm_caps_get(caps, index, &setting);
    if (setting.kind == WM_CAP_GPU_CLOCK)
        return change_alone(caps, index, NAN, err);
    if (setting.default_value.state != WM_READING_OK)
        return wm_fail(err, WM_ENODEV, "%s: its default is not known: %s", setting.device,
                       setting.default_value.why);
    return change_alone(caps, index, setting.default_value.number, err);
}

int wm_caps_restore(struct wm_caps *caps, size_t index, enum wm_cap_restored *ret_restored,
                    double *ret_value, struct wm_error *err)
{
    enum wm_cap_restored restored = WM_CAP_NOTHING;
    struct wm_cap_setting setting;
    double now = NAN;
    int fd;

    int status = take(caps, index, &fd, err);
    if (status < 0)
        return status;
    for (int is_session = 1; is_session >= 0 && status == WM_OK; is_session--) {
        wm_caps_get(caps, index, &setting);
        status = restore(caps, &setting, is_session, &restored, err);
    }
    close(fd);
    if (status < 0)
        return status;
    read_now(caps, index, &now, NULL);
    if (ret_value)
        *ret_value = now;
    *ret_restored = restored;
    return WM_OK;
}

struct left_behind {
    char *text;
    size_t size;
    bool of_others; /* who has to put it back themselves */
    int count;
};

static void look_at_entry(void *context, const struct wm_cap_entry *entry)
{
    struct left_behind *left = context;
    char set[WM_CAP_TEXT_SIZE], earlier[WM_CAP_TEXT_SIZE], who[32] = "";

    if (!entry->is_session || wm_cap_is_locked(entry->identity))
        return;
    wm_cap_text(entry->kind, entry->set, set);
    wm_cap_text(entry->kind, entry->earlier, earlier);
    if (left->of_others && entry->user != 0)
        snprintf(who, sizeof(who), " -u '#%lu'", (unsigned long)entry->user);
    wm_text_list(left->text, left->size, ", ", "%s at %s (before: %s%s%s%s)", entry->device,
                 set, earlier, left->of_others ? "; sudo" : "", who,
                 left->of_others ? " wattmeter cap restore puts it back" : "");
    left->count++;
}

int wm_caps_left_behind(char *text, size_t size)
{
    struct left_behind left = { .text = text, .size = size };

    text[0] = '\0';
    wm_cap_journal_each(look_at_entry, &left);
    return left.count > 0;
}

int wm_caps_left_by_others(char *text, size_t size)
{
    struct left_behind left = { .text = text, .size = size, .of_others = true };

    text[0] = '\0';
    wm_cap_journal_each_of_root(look_at_entry, &left);
    wm_cap_journal_each_of_users(look_at_entry, &left);
    return left.count > 0;
}
