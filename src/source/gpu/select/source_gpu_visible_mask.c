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

size_t wm_mask_find_number(const struct wm_mask_list *list, uint64_t number,
                           const char **ret_why)
{
    for (size_t i = 0; i < list->count; i++) {
        size_t own = list->devices[i].number;
        if (own != WM_VISIBLE_NO_NUMBER && own == number)
            return i;
    }
    return wm_mask_nowhere(ret_why, "is past the last device");
}

void wm_mask_add(struct wm_mask_list *list, size_t gpu, int part, size_t number)
{
    list->devices[list->count++] = (struct wm_visible_device) { gpu, part, number };
}

static void choose(struct wm_mask_list *list, size_t place)
{
    struct wm_visible_device device = list->devices[place];

    list->devices[place] = list->devices[list->chosen];
    list->devices[list->chosen++] = device;
}

void wm_mask_choose_all(struct wm_mask_list *list)
{
    while (list->chosen < list->count &&
           list->devices[list->chosen].number != WM_VISIBLE_NO_NUMBER)
        list->chosen++;
}

static void refuse(struct wm_visible *visible, const struct wm_mask_dialect *dialect,
                   struct wm_mask_word word, size_t position, const char *why)
{
    if (!visible->refused.text)
        visible->refused = (struct wm_visible_refusal) { dialect->variable, word.text,
                                                         word.length, position, why };
}

void wm_mask_apply(struct wm_mask_list *list, const struct wm_mask_dialect *dialect,
                   const char *mask, struct wm_visible *visible)
{
    const char *rest = mask;

    for (size_t position = 0; *rest; position++) {
        struct wm_mask_word word = { rest, strcspn(rest, ",") };
        const char *why = "is empty";
        size_t place = word.length ? dialect->find(list, word, &why) : WM_NOWHERE;

        rest += word.length + (rest[word.length] == ',');
        if (place != WM_NOWHERE && place >= list->chosen) {
            choose(list, place);
            continue;
        }
        if (place != WM_NOWHERE) {
            if (dialect->repeat == WM_REPEAT_IS_NOTHING)
                continue;
            if (dialect->repeat == WM_REPEAT_HIDES_ALL)
                list->chosen = 0;
            why = "names a device a second time";
        }
        refuse(visible, dialect, word, position, why);
        if (!dialect->passes_over)
            return;
    }
}

size_t wm_visible_room(const struct wm_visible_gpu *gpus, size_t count)
{
    size_t room = 0;

    for (size_t i = 0; i < count; i++)
        room += 1 + gpus[i].mig_count + gpus[i].tiles;
    return room;
}

size_t wm_mask_find_gpu(const struct wm_mask_list *list, struct wm_mask_word word,
                        int (*differ)(const char *, const char *, size_t),
                        const char **ret_why)
{
    size_t found = WM_NOWHERE;

    for (size_t i = 0; i < list->gpu_count; i++) {
        const char *uuid = list->gpus[i].uuid;
        if (!uuid || differ(uuid, word.text, word.length) != 0)
            continue;
        if (found != WM_NOWHERE)
            return wm_mask_nowhere(ret_why, "fits several devices");
        found = i;
    }
    return found != WM_NOWHERE ? found : wm_mask_nowhere(ret_why, "fits no device");
}
