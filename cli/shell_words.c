/* SPDX-License-Identifier: Apache-2.0 */
/* shell_words.c - quotes and backslashes, as POSIX has them (Shell Command Language, 2.2).
 */
#include "shell_words.h"

#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\n\v\f\r"

/* Where the text is read from and the words are written to: these never overtake. */
struct split {
    const char *from;
    char *to;
    const char *problem;
};

static bool fail(struct split *split, const char *problem)
{
    split->problem = problem;
    return false;
}

/* Behind a backslash; before a line end it joins the two lines. */
static bool take_escaped(struct split *split)
{
    if (!*split->from)
        return fail(split, "there is nothing behind the backslash at its end");
    if (*split->from != '\n')
        *split->to++ = *split->from;
    split->from++;
    return true;
}

static bool take_single(struct split *split)
{
    while (*split->from && *split->from != '\'')
        *split->to++ = *split->from++;
    if (!*split->from)
        return fail(split, "a single quote is not closed");
    split->from++;
    return true;
}

/* In double quotes a backslash is one only before these. */
static bool take_double(struct split *split)
{
    while (*split->from && *split->from != '"') {
        if (split->from[0] == '\\' && split->from[1] &&
            strchr("$`\"\\\n", split->from[1])) {
            split->from++;
            take_escaped(split);
        } else {
            *split->to++ = *split->from++;
        }
    }
    if (!*split->from)
        return fail(split, "a double quote is not closed");
    split->from++;
    return true;
}

static bool take_word(struct split *split)
{
    bool taken = true;

    while (taken && *split->from && !strchr(BLANKS, *split->from)) {
        char c = *split->from++;
        if (c == '\\')
            taken = take_escaped(split);
        else if (c == '\'')
            taken = take_single(split);
        else if (c == '"')
            taken = take_double(split);
        else
            *split->to++ = c;
    }
    *split->to++ = '\0';
    return taken;
}

/* A line end behind a backslash separates no words, and is none. */
static const char *skip_blanks(const char *text)
{
    for (;;) {
        text += strspn(text, BLANKS);
        if (text[0] != '\\' || text[1] != '\n')
            return text;
        text += 2;
    }
}

bool shell_words_split(const char *text, char ***ret_words, size_t *ret_count,
                       const char **ret_problem)
{
    size_t most = strlen(text) / 2 + 1; /* each word but the last has a blank behind it */
    size_t count = 0;

    char **words = malloc((most + 1) * sizeof(*words) + strlen(text) + 1);
    if (!words) {
        *ret_problem = "out of memory";
        return false;
    }
    struct split split = { .from = skip_blanks(text), .to = (char *)(words + most + 1) };
    while (*split.from && !split.problem) {
        words[count++] = split.to;
        take_word(&split);
        split.from = skip_blanks(split.from);
    }
    words[count] = NULL;
    if (split.problem) {
        free(words);
        *ret_problem = split.problem;
        return false;
    }
    *ret_words = words;
    *ret_count = count;
    return true;
}
