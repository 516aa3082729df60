/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_visible_mask.c - a mask, word by word, and what of a list it leaves. */
#include "source/gpu/select/source_gpu_visible_mask.h"

#include <string.h>

size_t wm_mask_nowhere(const char **ret_why, const char *why)
{
    *ret_why = why;
    return WM_NOWHERE;
}

bool wm_mask_begins(struct wm_mask_word word, const char *beginning)
{
    return strncmp(word.text, beginning, strlen(beginning)) == 0;
}

size_t wm_mask_find_number(const struct wm_visible *visible, uint64_t number,
                           const char **ret_why)
{
    for (size_t i = 0; i < visible->listed; i++) {
        size_t own = visible->devices[i].number;
        if (own != WM_VISIBLE_NO_NUMBER && own == number)
            return i;
    }
    return wm_mask_nowhere(ret_why, "is past the last device");
}

void wm_mask_add(struct wm_visible *visible, size_t gpu, int part, size_t number)
{
    visible->devices[visible->listed++] = (struct wm_visible_device) { gpu, part, number };
}

static void choose(struct wm_visible *visible, size_t place)
{
    struct wm_visible_device device = visible->devices[place];

    visible->devices[place] = visible->devices[visible->count];
    visible->devices[visible->count++] = device;
}

static void choose_all(struct wm_visible *visible)
{
    while (visible->count < visible->listed &&
           visible->devices[visible->count].number != WM_VISIBLE_NO_NUMBER)
        visible->count++;
}

/* Chooses what the word means; false where it ends the mask. */
static bool take(struct wm_visible *visible, const struct wm_mask_dialect *dialect,
                 struct wm_mask_word word)
{
    const char *why = "is empty";
    size_t place = word.length ? dialect->find(visible, word, &why) : WM_NOWHERE;

    if (place != WM_NOWHERE && place >= visible->count) {
        choose(visible, place);
        return true;
    }
    if (place != WM_NOWHERE) {
        if (dialect->repeat == WM_REPEAT_IS_NOTHING)
            return true;
        if (dialect->repeat == WM_REPEAT_HIDES_ALL)
            visible->count = 0;
        why = "names a device a second time";
    }
    if (!visible->refused.text)
        visible->refused =
            (struct wm_visible_refusal) { dialect->variable, word.text, word.length, why };
    return dialect->passes_over;
}

void wm_mask_apply(struct wm_visible *visible, const struct wm_mask_dialect *dialect,
                   const char *mask)
{
    if (!mask)
        choose_all(visible);
    for (const char *rest = mask; rest && *rest;) {
        struct wm_mask_word word = { rest, strcspn(rest, ",") };

        rest += word.length + (rest[word.length] == ',');
        if (!take(visible, dialect, word))
            return;
    }
}

const char *wm_mask_variable(const struct wm_visible *visible, const char *name)
{
    size_t length = strlen(name);

    for (const char *const *entry = visible->environment; entry && *entry; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    }
    return NULL;
}

size_t wm_visible_room(const struct wm_visible_gpu *gpus, size_t count)
{
    size_t room = 0;

    for (size_t i = 0; i < count; i++)
        room += 1 + gpus[i].mig_count + gpus[i].tiles;
    return room;
}

size_t wm_mask_find_gpu(const struct wm_visible *visible, struct wm_mask_word word,
                        int (*differ)(const char *, const char *, size_t),
                        const char **ret_why)
{
    size_t found = WM_NOWHERE;

    for (size_t i = 0; i < visible->gpu_count; i++) {
        const char *uuid = visible->gpus[i].uuid;
        if (!uuid || differ(uuid, word.text, word.length) != 0)
            continue;
        if (found != WM_NOWHERE)
            return wm_mask_nowhere(ret_why, "fits several devices");
        found = i;
    }
    return found != WM_NOWHERE ? found : wm_mask_nowhere(ret_why, "fits no device");
}
