/* SPDX-License-Identifier: Apache-2.0 */
/* docopt.c - options first, then the usage that they fit. */
#include "gpu_tracker/docopt.h"

#include <stdarg.h>
#include <string.h>

enum {
    OPTIONS_MAX = 64,
    COMMANDS_MAX = 4, /* more words that are no options fit no usage */
};

struct parse {
    const struct docopt_grammar *grammar;
    char *const *words; /* the next one is words[at] */
    int count, at;
    char *args;
    unsigned given[OPTIONS_MAX];
    const char *commands[COMMANDS_MAX];
    size_t command_count;
    char *problem;
    size_t size;
};

static bool wrong(struct parse *parse, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The first thing that is wrong is the one that is told. */
static bool wrong(struct parse *parse, const char *format, ...)
{
    va_list args;

    if (!parse->problem[0]) {
        va_start(args, format);
        vsnprintf(parse->problem, parse->size, format, args);
        va_end(args);
    }
    return false;
}

static bool has_long(const struct cmd_option *option)
{
    return option->name[1] != '\0';
}

/* "--st", "-p" */
static const char *shown(const struct cmd_option *option, char text[40])
{
    snprintf(text, 40, "%s%.36s", has_long(option) ? "--" : "-", option->name);
    return text;
}

/* An option that is called `name` here. `value` is the rest of its word, or NULL. */
static bool take_option(struct parse *parse, size_t index, const char *name, char *value)
{
    const struct cmd_option *option = &parse->grammar->options[index];
    void *slot = parse->args + option->slot;

    parse->given[index]++;
    if (cmd_option_is_flag(option)) {
        *(bool *)slot = true;
        return true;
    }
    if (!value && parse->at == parse->count)
        return wrong(parse, "%s requires argument", name);
    if (!value)
        value = parse->words[parse->at++];
    if (option->type == CMD_TEXT) {
        *(const char **)slot = value;
    } else {
        struct cmd_list *list = slot;
        list->words[list->count++] = value;
    }
    return true;
}

static void add_command(struct parse *parse, const char *word)
{
    if (parse->command_count < COMMANDS_MAX)
        parse->commands[parse->command_count++] = word;
}

/* "--NAME" or "--NAME=VALUE", NAME cut off or not. False where docopt reads no further; an
 * option that it does not know only fits no usage. */
static bool take_long(struct parse *parse, char *word)
{
    const struct cmd_option *options = parse->grammar->options;
    size_t length = strcspn(word + 2, "="), index = 0, found = 0, used = 0;
    char *value = word[2 + length] ? word + 2 + length + 1 : NULL;
    char list[400], name[40];

    for (size_t i = 0; options[i].name; i++) {
        if (!has_long(&options[i]) || strncmp(options[i].name, word + 2, length) != 0 ||
            used >= sizeof(list))
            continue;
        index = i;
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                 found++ > 0 ? ", " : "", shown(&options[i], name));
        if (!options[i].name[length]) {
            found = 1;
            break;
        }
    }
    if (found > 1)
        return wrong(parse, "--%.*s is not a unique prefix: %s?", (int)length, word + 2,
                     list);
    if (found == 0) {
        wrong(parse, "there is no option %.62s", word);
        return true;
    }
    shown(&options[index], name);
    if (value && cmd_option_is_flag(&options[index]))
        return wrong(parse, "%s must not have an argument", name);
    return take_option(parse, index, name, value);
}

/* "-abVALUE" */
static bool take_letters(struct parse *parse, char *word)
{
    const struct cmd_option *options = parse->grammar->options;

    for (char *letter = word + 1; *letter; letter++) {
        const char name[] = { '-', *letter, '\0' };
        size_t index = 0;
        while (options[index].name && options[index].letter != *letter)
            index++;
        if (!options[index].name)
            wrong(parse, "there is no option %s", name);
        else if (cmd_option_is_flag(&options[index]))
            take_option(parse, index, name, NULL);
        else
            return take_option(parse, index, name, letter[1] ? letter + 1 : NULL);
    }
    return true;
}

static bool parse_words(struct parse *parse)
{
    bool is_fine = true;

    while (is_fine && parse->at < parse->count) {
        char *word = parse->words[parse->at];
        if (strcmp(word, "--") == 0)
            break;
        parse->at++;
        if (word[0] != '-' || !word[1])
            add_command(parse, word);
        else
            is_fine = word[1] == '-' ? take_long(parse, word) : take_letters(parse, word);
    }
    while (is_fine && parse->at < parse->count) /* a "--", and what is behind it */
        add_command(parse, parse->words[parse->at++]);
    return is_fine;
}

/* Whether `word` is one of `list`, whose words have blanks between them. */
static bool is_among(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t own = strcspn(at, " ");
        if (own == length && memcmp(at, word, length) == 0)
            return true;
        at += own;
    }
    return false;
}

/* What of `list` comes after the words that are no options; NULL where it does not begin
 * with them. */
static const char *after_commands(const struct parse *parse, const char *list)
{
    for (size_t i = 0; i < parse->command_count; i++) {
        size_t length = strcspn(list, " ");
        const char *word = parse->commands[i];
        if (length == 0 || strlen(word) != length || memcmp(word, list, length) != 0)
            return NULL;
        list += length;
        list += strspn(list, " ");
    }
    return list;
}

/* No usage has just these words. */
static bool wrong_commands(struct parse *parse)
{
    const struct docopt_usage *usages = parse->grammar->usages;
    const char *last = parse->commands[parse->command_count - 1];
    char next[128] = "";
    size_t used = 0;

    for (size_t i = 0; usages[i].commands; i++) {
        const char *rest = after_commands(parse, usages[i].commands);
        if (rest && used < sizeof(next))
            used += (size_t)snprintf(next + used, sizeof(next) - used, "%s%s",
                                     used > 0 ? ", " : "", rest);
    }
    if (used > 0)
        return wrong(parse, "'%.60s' needs one of these after it: %s", last, next);
    return wrong(parse, "'%.60s' is not understood", last);
}

static bool fits(struct parse *parse, const struct docopt_usage *usage)
{
    const struct cmd_option *options = parse->grammar->options;
    char name[40];

    for (size_t i = 0; options[i].name; i++) {
        const char *own = options[i].name;
        bool required = is_among(usage->required, own);
        if (parse->given[i] && !required && !is_among(usage->optional, own))
            return wrong(parse, "%s does not belong here", shown(&options[i], name));
        if (parse->given[i] > 1 && options[i].type != CMD_LIST)
            return wrong(parse, "%s is given twice", shown(&options[i], name));
    }
    for (size_t i = 0; options[i].name; i++) {
        if (!parse->given[i] && is_among(usage->required, options[i].name))
            return wrong(parse, "%s is missing", shown(&options[i], name));
    }
    return !parse->problem[0];
}

static bool is_given(const struct parse *parse, const char *name)
{
    for (size_t i = 0; parse->grammar->options[i].name; i++) {
        if (strcmp(parse->grammar->options[i].name, name) == 0)
            return parse->given[i] > 0;
    }
    return false;
}

enum docopt_outcome docopt_parse(const struct docopt_grammar *grammar, int count,
                                 char *const words[], char *args, size_t *ret_usage,
                                 char *problem, size_t size)
{
    struct parse parse = {
        .grammar = grammar,
        .words = words,
        .count = count,
        .at = 1,
        .args = args,
        .problem = problem,
        .size = size,
    };

    problem[0] = '\0';
    if (!parse_words(&parse))
        return DOCOPT_WRONG;
    if (is_given(&parse, "help"))
        return DOCOPT_HELP;
    if (is_given(&parse, "version"))
        return DOCOPT_VERSION;
    for (size_t i = 0; grammar->usages[i].commands; i++) {
        const char *rest = after_commands(&parse, grammar->usages[i].commands);
        if (!rest || *rest)
            continue;
        *ret_usage = i;
        return fits(&parse, &grammar->usages[i]) ? DOCOPT_FITS : DOCOPT_WRONG;
    }
    wrong_commands(&parse);
    return DOCOPT_WRONG;
}
