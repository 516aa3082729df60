/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_value.c - typed values of options, with errors that name the wrong word. */
#include "cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Beyond it nanoseconds no longer fit. */
#define MOST_SECONDS 9e9

const char *cmd_shown(const char *word)
{
    return strstr(word, "://") ? "...://..." : word;
}

bool cmd_parse_count(const char *word, uint64_t *ret_count)
{
    char *end;

    if (word[0] < '0' || word[0] > '9')
        return false; /* strtoull() takes blanks and signs */
    errno = 0;
    unsigned long long value = strtoull(word, &end, 10);
    if (errno || *end)
        return false;
    *ret_count = value;
    return true;
}

/* The number that `word` begins with; NULL if it does not, else what follows.
 * strtod() alone would take signs, blanks, hexadecimal, "inf" and "nan". */
static const char *scan_number(const char *word, double *ret_number)
{
    size_t whole = strspn(word, "0123456789");
    size_t length = whole;

    if (word[whole] == '.')
        length += 1 + strspn(word + whole + 1, "0123456789");
    if (length == 0 || (length == 1 && whole == 0) || length > 30)
        return NULL;

    char digits[32];
    memcpy(digits, word, length);
    digits[length] = '\0';
    *ret_number = strtod(digits, NULL);
    return word + length;
}

bool cmd_parse_number(const char *word, double *ret_number)
{
    double number;
    const char *end = scan_number(word, &number);

    if (!end || *end)
        return false;
    *ret_number = number;
    return true;
}

bool cmd_parse_percent(const char *word, double *ret_percent)
{
    double number;
    const char *end = scan_number(word, &number);

    if (!end || strcmp(end, "%") != 0)
        return false;
    *ret_percent = number;
    return true;
}

bool cmd_parse_duration(const char *word, int64_t *ret_ns)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {
        { "", 1 },     { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 },
        { "min", 60 }, { "h", 3600 },  { "d", 86400 },
    };
    double number;
    const char *unit = scan_number(word, &number);

    for (size_t i = 0; unit && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].name) != 0)
            continue;
        if (number * units[i].seconds > MOST_SECONDS)
            return false;
        *ret_ns = (int64_t)(number * units[i].seconds * 1e9 + 0.5);
        return true;
    }
    return false;
}

/* A duration or a number as one double, so that ranges are compared alike. */
static bool parse_range_value(enum cmd_type type, const char *word, double *ret_value)
{
    int64_t ns;

    if (type != CMD_DURATION)
        return cmd_parse_number(word, ret_value);
    if (!cmd_parse_duration(word, &ns))
        return false;
    *ret_value = (double)ns;
    return true;
}

/* Whether the word is a value of its type, but out of range; none may have a sign. */
static bool is_out_of_range(const struct cmd_option *option, const char *word)
{
    double value, min = 0, max = 0;
    bool is_negative = option->min && word[0] == '-';

    if (!option->min || !parse_range_value(option->type, word + is_negative, &value))
        return false;
    parse_range_value(option->type, option->min, &min);
    parse_range_value(option->type, option->max, &max);
    return is_negative || value < min || value > max;
}

static bool set_flag(const char *word, bool *ret_flag)
{
    static const char *const yes[] = { "1", "yes", "true", "on" };
    static const char *const no[] = { "0", "no", "false", "off" };

    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (!word || strcmp(word, yes[i]) == 0) {
            *ret_flag = true;
            return true;
        }
        if (strcmp(word, no[i]) == 0) {
            *ret_flag = false;
            return true;
        }
    }
    return false;
}

static bool set_slot(const struct cmd_option *option, char *word, void *slot)
{
    switch (option->type) {
    case CMD_TEXT:
        if (cmd_option_is_flag(option))
            return set_flag(word, slot);
        *(const char **)slot = word;
        return word[0] != '\0';
    case CMD_TIMES: {
        bool is_given = false;
        bool is_word = set_flag(word, &is_given);
        *(int *)slot += is_given;
        return is_word;
    }
    case CMD_LIST: {
        struct cmd_list *list = slot;
        list->words[list->count++] = word;
        return word[0] != '\0';
    }
    case CMD_DURATION:
        return cmd_parse_duration(word, slot);
    case CMD_NUMBER:
        return cmd_parse_number(word, slot);
    case CMD_COUNT: {
        struct cmd_count *count = slot;
        count->given = true;
        return cmd_parse_count(word, &count->value);
    }
    }
    return false;
}

bool cmd_set_value(const struct cmd_option *option, char *word, char *args, char *problem,
                   size_t size)
{
    static const char *const kinds[] = {
        [CMD_TEXT] = "yes or no",
        [CMD_TIMES] = "yes or no",
        [CMD_LIST] = "anything",
        [CMD_DURATION] = "a duration, such as 100ms, 1.5s or 2min",
        [CMD_NUMBER] = "a number",
        [CMD_COUNT] = "a whole number",
    };

    bool is_set = set_slot(option, word, args + option->slot);
    if (is_out_of_range(option, word)) {
        snprintf(problem, size, "'%.60s' is out of range, which is %s to %s",
                 cmd_shown(word), option->min, option->max);
        return false;
    }
    if (!is_set) {
        if (word[0])
            snprintf(problem, size, "'%.60s' is not %s", cmd_shown(word),
                     kinds[option->type]);
        else
            snprintf(problem, size, "an empty word is not %s", option->placeholder);
        return false;
    }
    return true;
}
