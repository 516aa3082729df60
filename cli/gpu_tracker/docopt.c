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
    char *args;
    char *const *next; /* word */
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

static void set(struct parse *parse, size_t index, char *value)
{
    const struct cmd_option *option = &parse->grammar->options[index];
    void *slot = parse->args + option->slot;

    parse->given[index]++;
    if (option->type == CMD_FLAG) {
        *(bool *)slot = true;
    } else if (option->type == CMD_STRING) {
        *(const char **)slot = value;
    } else {
        struct cmd_list *list = slot;
        list->words[list->count++] = value;
    }
}

/* Where the next word is the value of the option, takes it. */
static bool take_value(struct parse *parse, const char *name, char **ret_value)
{
    char *word = *parse->next;

    if (!word)
        return wrong(parse, "%s requires argument", name);
    parse->next++;
    *ret_value = word;
    return true;
}

/* Whether `name` is all of an option's name, or else its beginning. */
static bool begins(const char *name, const char *part, size_t length, bool all)
{
    return strncmp(name, part, length) == 0 && (!all || !name[length]);
}

/* The options that part[0..length) may mean: how many, and the last of them. */
static size_t find_long(const struct parse *parse, const char *part, size_t length,
                        size_t *ret_index)
{
    const struct cmd_option *options = parse->grammar->options;
    size_t found = 0;

    for (int all = 1; all >= 0 && found == 0; all--) {
        for (size_t i = 0; options[i].name; i++) {
            if (!has_long(&options[i]) || !begins(options[i].name, part, length, all))
                continue;
            *ret_index = i;
            found++;
        }
    }
    return found;
}

static bool not_unique(struct parse *parse, const char *part, size_t length)
{
    char list[400] = "", name[40];
    size_t used = 0;

    for (const struct cmd_option *o = parse->grammar->options; o->name; o++) {
        if (has_long(o) && begins(o->name, part, length, false) && used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                     used > 0 ? ", " : "", shown(o, name));
    }
    return wrong(parse, "--%.*s is not a unique prefix: %s?", (int)length, part, list);
}

/* "--name", "--name=value", "--name" with the next word. False where docopt looks no
 * further; an option that it does not know only fits no usage. */
static bool parse_long(struct parse *parse)
{
    char *word = *parse->next++ + 2;
    size_t length = strcspn(word, "=");
    char *value = word[length] ? word + length + 1 : NULL;
    size_t index = 0;
    char name[40];

    size_t found = find_long(parse, word, length, &index);
    if (found > 1)
        return not_unique(parse, word, length);
    if (found == 0) {
        wrong(parse, "there is no option --%.60s", word);
        return true;
    }
    const struct cmd_option *option = &parse->grammar->options[index];
    if (option->type == CMD_FLAG && value)
        return wrong(parse, "%s must not have an argument", shown(option, name));
    if (option->type != CMD_FLAG && !value &&
        !take_value(parse, shown(option, name), &value))
        return false;
    set(parse, index, value);
    return true;
}

/* "-h", "-o file", "-ofile"; several flags in one word. */
static bool parse_letters(struct parse *parse)
{
    const struct cmd_option *options = parse->grammar->options;
    char *letter = *parse->next++ + 1;

    for (; *letter; letter++) {
        const char name[] = { '-', *letter, '\0' };
        size_t index = 0;

        while (options[index].name && options[index].letter != *letter)
            index++;
        if (!options[index].name) {
            wrong(parse, "there is no option %s", name);
        } else if (options[index].type == CMD_FLAG) {
            set(parse, index, NULL);
        } else {
            char *value = letter + 1;
            if (!*value && !take_value(parse, name, &value))
                return false;
            set(parse, index, value);
            return true;
        }
    }
    return true;
}

static void add_command(struct parse *parse, const char *word)
{
    if (parse->command_count < COMMANDS_MAX)
        parse->commands[parse->command_count++] = word;
}

static bool parse_words(struct parse *parse)
{
    bool going = true;

    while (going && *parse->next) {
        const char *word = *parse->next;
        if (strcmp(word, "--") == 0) {
            while (*parse->next)
                add_command(parse, *parse->next++);
        } else if (strncmp(word, "--", 2) == 0) {
            going = parse_long(parse);
        } else if (word[0] == '-' && word[1]) {
            going = parse_letters(parse);
        } else {
            add_command(parse, *parse->next++);
        }
    }
    return going;
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
        if (strlen(word) != length || memcmp(word, list, length) != 0)
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

enum docopt_outcome docopt_parse(const struct docopt_grammar *grammar, char *const words[],
                                 char *args, size_t *ret_usage, char *problem, size_t size)
{
    struct parse parse = {
        .grammar = grammar,
        .args = args,
        .next = words,
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
