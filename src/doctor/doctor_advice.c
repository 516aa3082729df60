/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_advice.c - see doctor_advice.h. */
#include "doctor/doctor_advice.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/text/base_text.h"

/* A command that is being put together. */
struct line {
    char *text;
    size_t length, size;
    bool is_whole;
};

static void put(struct line *line, const char *bytes, size_t count)
{
    if (count >= line->size - line->length)
        line->is_whole = false;
    if (!line->is_whole)
        return;
    memcpy(line->text + line->length, bytes, count);
    line->length += count;
    line->text[line->length] = '\0';
}

/* Nobody can type control characters or what is no UTF-8, and a word that begins
 * with '-' would be an option. */
static bool can_be_typed(const char *word)
{
    char copy[WM_ADVICE_SIZE];

    for (const char *c = word; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    }
    wm_text_utf8(copy, sizeof(copy), word, strlen(word));
    return word[0] && word[0] != '-' && strcmp(copy, word) == 0;
}

static void put_word(struct line *line, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_./:@%+,-";
    size_t length = strlen(word);

    line->is_whole &= can_be_typed(word);
    if (strspn(word, plain) == length) {
        put(line, word, length);
        return;
    }
    put(line, "'", 1);
    for (const char *c = word; *c; c++) {
        if (*c == '\'')
            put(line, "'\\''", 4);
        else
            put(line, c, 1);
    }
    put(line, "'", 1);
}

static void put_command(struct line *line, const char *format, va_list words)
{
    const char *word;

    while ((word = strstr(format, "%s")) != NULL) {
        put(line, format, (size_t)(word - format));
        put_word(line, va_arg(words, const char *));
        format = word + 2;
    }
    put(line, format, strlen(format));
}

static bool is_given(const struct wm_advice *advice, const char *command)
{
    for (size_t i = 0; i < advice->count; i++) {
        if (advice->list[i].command && strcmp(advice->list[i].command, command) == 0)
            return true;
    }
    return false;
}

void wm_advice_add(struct wm_advice *advice, const char *problem, const char *command, ...)
{
    va_list words;

    if (advice->count == WM_ADVICE_MAX)
        return;
    char *text = advice->texts[advice->count].problem;
    struct line line = { .text = advice->texts[advice->count].command,
                         .size = WM_ADVICE_SIZE,
                         .is_whole = command != NULL };

    wm_text_utf8(text, WM_ADVICE_SIZE, problem, strlen(problem));
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    }
    va_start(words, command);
    if (command)
        put_command(&line, command, words);
    va_end(words);
    if (line.is_whole && is_given(advice, line.text))
        return;
    advice->list[advice->count++] =
        (struct wm_doctor_advice) { text, line.is_whole ? line.text : NULL };
}
