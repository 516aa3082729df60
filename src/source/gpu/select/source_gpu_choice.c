/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_choice.c - "0,GPU-7c1f" and what else people write for --gpu. */
#include "source/gpu/select/source_gpu_choice.h"

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

/* Takes the next word of a comma list; `rest` becomes NULL behind the last. */
static struct word next_word(const char **rest)
{
    size_t length = strcspn(*rest, ",");
    struct word word = trimmed(*rest, length);

    *rest = (*rest)[length] == ',' ? *rest + length + 1 : NULL;
    return word;
}

static bool is_number(struct word word)
{
    return strspn(word.text, "0123456789") >= word.length;
}

/* What the words are about, and how they are found. */
struct choice {
    const struct wm_gpu_id *gpus;
    size_t count;
    wm_gpu_find *find;
    const void *context;
};

static size_t find_identity(const struct choice *choice, struct word word)
{
    for (size_t i = 0; i < choice->count; i++) {
        const char *id = choice->gpus[i].text;
        if (strncmp(id, word.text, word.length) == 0 && id[word.length] == '\0')
            return i;
    }
    return WM_GPU_FITS_NONE;
}

/* The place that a word is the number of. */
static size_t scan_place(struct word word, size_t count)
{
    uint64_t place;

    if (word.length == 0 || !is_number(word) || !wm_text_u64(word.text, NULL, &place) ||
        place >= count)
        return WM_GPU_FITS_NONE;
    return (size_t)place;
}

/* An identity may consist of digits, and may be the beginning of another one. */
static size_t find_word(const struct choice *choice, struct word word,
                        const char **ret_problem)
{
    size_t place = find_identity(choice, word);
    uint64_t number;

    if (place != WM_GPU_FITS_NONE)
        return place;
    if (is_number(word)) {
        *ret_problem = "is not the number of a GPU";
        return wm_text_u64(word.text, NULL, &number) && number < choice->count
                   ? (size_t)number
                   : WM_GPU_FITS_NONE;
    }
    place = choice->find(choice->context, word.text, word.length);
    *ret_problem =
        place == WM_GPU_FITS_SEVERAL ? "fits several GPUs" : "is no GPU of this machine";
    return place;
}

static int choose(const struct choice *choice, struct word word, bool *chosen,
                  struct wm_error *err)
{
    const char *problem = "names no GPU";
    size_t place = word.length > 0 ? find_word(choice, word, &problem) : WM_GPU_FITS_NONE;

    if (place >= choice->count)
        return fail_word(word, problem, choice->gpus, choice->count, err);
    chosen[place] = true;
    return WM_OK;
}

int wm_gpu_choice(const char *words, const struct wm_gpu_id *gpus, size_t count,
                  wm_gpu_find *find, const void *context, bool *chosen,
                  struct wm_error *err)
{
    const struct choice choice = { gpus, count, find, context };
    bool all = !words || strcmp(words, "all") == 0;

    for (size_t i = 0; i < count; i++)
        chosen[i] = all;
    if (all)
        return WM_OK;

    for (const char *rest = words; rest;) {
        int status = choose(&choice, next_word(&rest), chosen, err);
        if (status < 0)
            return status;
    }
    return WM_OK;
}

bool wm_gpu_choice_places(const char *words, size_t count, bool *ret_places)
{
    bool are_places = words != NULL;

    for (size_t i = 0; i < count; i++)
        ret_places[i] = false;
    for (const char *rest = words; rest && are_places;) {
        size_t place = scan_place(next_word(&rest), count);

        are_places = place != WM_GPU_FITS_NONE;
        if (are_places)
            ret_places[place] = true;
    }
    return are_places;
}
