/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_choice.c - "0,GPU-7c1f" and what else people write for --gpu. */
#include "source/source_gpu_choice.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base_text.h"

struct word {
    const char *text; /* not ended by a NUL */
    size_t length;
};

/* How much of a word a message repeats. */
enum { WORD_SHOWN = 48 };

static int shown(struct word word)
{
    return word.length < WORD_SHOWN ? (int)word.length : WORD_SHOWN;
}

/* "0 (GPU-7c1f...), 1 (GPU-93ab...)", as many as fit, and how many did not. */
static void list_gpus(const struct wm_gpu_id *gpus, size_t count, char *text, size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char entry[128];
        const char *id = gpus[i].text[0] ? gpus[i].text : "does not answer";
        int added = snprintf(entry, sizeof(entry), "%s%zu (%s)", i ? ", " : "", i, id);
        size_t tail = sizeof(" and 9999 more");

        if (length + (size_t)added + tail > size) {
            snprintf(text + length, size - length, " and %zu more", count - i);
            return;
        }
        memcpy(text + length, entry, (size_t)added + 1);
        length += (size_t)added;
    }
}

static int fail_word(struct word word, const char *problem, const struct wm_gpu_id *gpus,
                     size_t count, struct wm_error *err)
{
    char list[160];

    list_gpus(gpus, count, list, sizeof(list));
    return wm_fail(err, WM_EINVAL, "'%.*s' %s; GPUs here: %s", shown(word), word.text,
                   problem, list);
}

static struct word trimmed(const char *text, size_t length)
{
    while (length > 0 && text[0] == ' ')
        text++, length--;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return (struct word) { text, length };
}

static bool is_number(struct word word)
{
    return strspn(word.text, "0123456789") >= word.length;
}

static int choose_number(struct word word, const struct wm_gpu_id *gpus, size_t count,
                         bool *chosen, struct wm_error *err)
{
    uint64_t place = 0;

    if (!wm_text_u64(word.text, NULL, &place) || place >= count)
        return fail_word(word, "is not the number of a GPU", gpus, count, err);
    if (!gpus[place].text[0])
        return wm_fail(err, WM_EIO, "GPU %.*s is there, but does not answer", shown(word),
                       word.text);
    chosen[place] = true;
    return WM_OK;
}

static int choose_id(struct word word, const struct wm_gpu_id *gpus, size_t count,
                     bool *chosen, struct wm_error *err)
{
    size_t found = count;
    bool several = false;

    for (size_t i = 0; i < count; i++) {
        if (strncmp(gpus[i].text, word.text, word.length) != 0)
            continue;
        several = found < count;
        found = i;
        if (gpus[i].text[word.length] == '\0') {
            several = false; /* exact, whatever else begins like it */
            break;
        }
    }
    if (several)
        return fail_word(word, "fits several GPUs", gpus, count, err);
    if (found == count)
        return fail_word(word, "is no GPU of this machine", gpus, count, err);
    chosen[found] = true;
    return WM_OK;
}

bool wm_gpu_choice_is_none(const char *words)
{
    return words && strcmp(words, "none") == 0;
}

int wm_gpu_choice(const char *words, const struct wm_gpu_id *gpus, size_t count,
                  bool *chosen, struct wm_error *err)
{
    bool all = !words || strcmp(words, "all") == 0;

    for (size_t i = 0; i < count; i++)
        chosen[i] = all && gpus[i].text[0];
    if (all)
        return WM_OK;

    for (const char *rest = words; rest;) {
        size_t length = strcspn(rest, ",");
        struct word word = trimmed(rest, length);
        int status;

        if (word.length == 0)
            status = fail_word(word, "names no GPU", gpus, count, err);
        else if (is_number(word))
            status = choose_number(word, gpus, count, chosen, err);
        else
            status = choose_id(word, gpus, count, chosen, err);
        if (status < 0)
            return status;
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return WM_OK;
}
