/* SPDX-License-Identifier: Apache-2.0 */
/* docopt.c - options first, then the usage that they fit. */
#include "gpu_tracker/docopt.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

enum {
    OPTIONS_MAX = 64,
    COMMANDS_MAX = 4, /* more words that are no options fit no usage */
    LONG = 256, /* and the number of an option: what getopt_long() gives for its name */
};

struct parse {
    const struct docopt_grammar *grammar;
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

static void set(struct parse *parse, size_t index, char *value)
{
    const struct cmd_option *option = &parse->grammar->options[index];
    void *slot = parse->args + option->slot;

    parse->given[index]++;
    if (cmd_option_is_flag(option)) {
        *(bool *)slot = true;
    } else if (option->type == CMD_TEXT) {
        *(const char **)slot = value;
    } else {
        struct cmd_list *list = slot;
        list->words[list->count++] = value;
    }
}

static void add_command(struct parse *parse, const char *word)
{
    if (parse->command_count < COMMANDS_MAX)
        parse->commands[parse->command_count++] = word;
}

/* The options that part[0..length) may mean, as a list: how many. */
static size_t list_long(const struct parse *parse, const char *part, size_t length,
                        char *list, size_t size)
{
    size_t used = 0, found = 0;
    char name[40];

    for (const struct cmd_option *o = parse->grammar->options; o->name; o++) {
        if (!has_long(o) || strncmp(o->name, part, length) != 0 || used >= size)
            continue;
        used += (size_t)snprintf(list + used, size - used, "%s%s", found > 0 ? ", " : "",
                                 shown(o, name));
        found++;
    }
    return found;
}

/* What getopt_long() has found wrong in `word`. False where docopt looks no further; an
 * option that it does not know only fits no usage. */
static bool complain(struct parse *parse, bool lacks_value, const char *word)
{
    const char letter[] = { '-', (char)optopt, '\0' };
    char list[400], name[40];
    bool is_long = strncmp(word, "--", 2) == 0;

    if (is_long && optopt >= LONG) {
        shown(&parse->grammar->options[optopt - LONG], name);
        return wrong(parse,
                     lacks_value ? "%s requires argument" : "%s must not have an argument",
                     name);
    }
    if (lacks_value)
        return wrong(parse, "%s requires argument", letter);
    size_t length = is_long ? strcspn(word + 2, "=") : 0;
    if (is_long && list_long(parse, word + 2, length, list, sizeof(list)) > 1)
        return wrong(parse, "--%.*s is not a unique prefix: %s?", (int)length, word + 2,
                     list);
    wrong(parse, "there is no option %.62s", is_long ? word : letter);
    return true;
}

/* The options as getopt_long() wants them; `letters` has two places for each, and four. */
static void describe(const struct cmd_option *options, struct option *longs, char *letters)
{
    letters = stpcpy(letters, "-:"); /* words that are no options come in their places */
    for (int i = 0; options[i].name; i++) {
        bool has_value = !cmd_option_is_flag(&options[i]);
        if (has_long(&options[i]))
            *longs++ = (struct option) { options[i].name,
                                         has_value ? required_argument : no_argument, NULL,
                                         LONG + i };
        if (options[i].letter)
            *letters++ = options[i].letter;
        if (options[i].letter && has_value)
            *letters++ = ':';
    }
    *letters = '\0';
}

static size_t find_option(const struct cmd_option *options, int code)
{
    size_t index = 0;

    if (code >= LONG)
        return (size_t)(code - LONG);
    while (options[index].letter != code)
        index++;
    return index;
}

static bool parse_words(struct parse *parse, int count, char *const words[])
{
    const struct cmd_option *options = parse->grammar->options;
    struct option longs[OPTIONS_MAX + 1] = { 0 };
    char letters[2 * OPTIONS_MAX + 4];
    int code, at = 1;

    describe(options, longs, letters);
    optind = 0; /* of any parsing before */
    opterr = 0;
    while ((code = getopt_long(count, words, letters, longs, NULL)) != -1) {
        if (code == 1)
            add_command(parse, optarg);
        else if (code != ':' && code != '?')
            set(parse, find_option(options, code), optarg);
        else if (!complain(parse, code == ':', words[at]))
            return false;
        at = optind;
    }
    while (at < count) /* a "--", and what is behind it */
        add_command(parse, words[at++]);
    return true;
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
        .args = args,
        .problem = problem,
        .size = size,
    };

    problem[0] = '\0';
    if (!parse_words(&parse, count, words))
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
