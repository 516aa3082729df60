/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_main.c - from words to the arguments of a command: the command line first, then
 * the environment, then the configuration file. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "cmd_config.h"
#include "wattmeter/version.h"

/* Where an option can be set: what is later counts more. A setting of this very command
 * counts more than one of all, wherever it stands. */
enum given { IN_FILE_FOR_ALL = 1, IN_FILE, IN_ENVIRONMENT, IN_COMMAND_LINE };

/* What an option was set to last, and where: what counts less is then left alone. */
struct last_given {
    enum given given;
    const char *value; /* borrowed; NULL for a flag on the command line */
};

/* What is known while a command line is taken apart. */
struct parse {
    const struct cmd *cmd;
    const struct cmd_streams *io;
    char *args;
    struct last_given *last; /* option by option */
    bool help;
};

static int misused(const struct parse *parse, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int misused(const struct parse *parse, const char *format, ...)
{
    va_list args;

    fprintf(parse->io->chat, "wattmeter %s: ", parse->cmd->name);
    va_start(args, format);
    vfprintf(parse->io->chat, format, args);
    va_end(args);
    fputc('\n', parse->io->chat);
    return CMD_MISUSED;
}

static const char *option_name(const void *cmd, size_t index)
{
    const struct cmd_option *option = cmd_option_at(cmd, index);

    return option ? option->name : NULL;
}

/* `help` is none of the table, and a word that may be meant like the others. */
static const char *command_name(const void *table, size_t index)
{
    const struct cmd *const *commands = table;

    if (index == 0)
        return "help";
    return commands[index - 1] ? commands[index - 1]->name : NULL;
}

/* The first command that has an option called so, or NULL. */
static const char *command_with(const char *option)
{
    for (size_t i = 0; cmd_table[i]; i++) {
        const char *name;
        for (size_t k = 0; (name = option_name(cmd_table[i], k)) != NULL; k++) {
            if (strcmp(name, option) == 0)
                return cmd_table[i]->name;
        }
    }
    return NULL;
}

static int unknown_option(const struct parse *parse, const char *word)
{
    char name[64];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    bool is_long = strncmp(name, "--", 2) == 0;
    const char *other = is_long ? command_with(name + 2) : NULL;
    const char *nearest = is_long ? cmd_nearest(name + 2, option_name, parse->cmd) : NULL;
    if (other)
        return misused(parse,
                       "there is no option '%s'; 'wattmeter %s' has it; see 'wattmeter %s "
                       "--help'",
                       name, other, parse->cmd->name);
    if (nearest)
        return misused(parse, "there is no option '%s'; did you mean '--%s'?", name,
                       nearest);
    return misused(parse, "there is no option '%s'; see 'wattmeter %s --help'", name,
                   parse->cmd->name);
}

/* A second value would drop the first without a word. */
static bool is_other_value(const struct last_given *before, const struct cmd_option *option,
                           const char *value, enum given given)
{
    return given == IN_COMMAND_LINE && before->given == given && value &&
           option->type != CMD_LIST && strcmp(before->value, value) != 0;
}

/* `value` is NULL for a flag on the command line, `where` what messages call the place. */
static int set_option(const struct parse *parse, size_t index, char *value,
                      enum given given, const char *where)
{
    const struct cmd_option *option = cmd_option_at(parse->cmd, index);
    struct last_given *last = &parse->last[index];
    char problem[160];

    if (last->given > given)
        return CMD_DONE;
    if (is_other_value(last, option, value, given))
        return misused(parse, "%s is given twice: '%.60s' and '%.60s'", where,
                       cmd_shown(last->value), cmd_shown(value));
    if (last->given < given && option->type == CMD_LIST)
        ((struct cmd_list *)(void *)(parse->args + option->slot))->count = 0;
    if (last->given < given && option->type == CMD_TIMES)
        *(int *)(void *)(parse->args + option->slot) = 0;
    if (!cmd_set_value(option, value, parse->args, problem, sizeof(problem)))
        return misused(parse, "%s: %s", where, problem);
    *last = (struct last_given) { given, value };
    return CMD_DONE;
}

static int set_word(const struct parse *parse, size_t index, char *value)
{
    char where[64];

    snprintf(where, sizeof(where), "--%s", cmd_option_at(parse->cmd, index)->name);
    return set_option(parse, index, value, IN_COMMAND_LINE, where);
}

/* "--name", "--name=value", or "--name" with the next word. */
static int parse_long(struct parse *parse, char ***next)
{
    char *word = *(*next)++;
    size_t length = strcspn(word + 2, "=");
    char *value = word[2 + length] ? word + 2 + length + 1 : NULL;
    const struct cmd_option *o;

    if (strcmp(word, "--help") == 0) {
        parse->help = true;
        return CMD_DONE;
    }
    for (size_t i = 0; (o = cmd_option_at(parse->cmd, i)) != NULL; i++) {
        if (!cmd_option_is(o, word + 2, length))
            continue;
        if (cmd_option_is_flag(o) && value)
            return misused(parse, "--%s takes no value", o->name);
        if (!cmd_option_is_flag(o) && !value) {
            if (!**next)
                return misused(parse, "--%s needs %s", o->name, o->placeholder);
            value = *(*next)++;
        }
        return set_word(parse, i, value);
    }
    return unknown_option(parse, word);
}

/* "-q", "-i 100ms", "-i100ms", and several flags in one word. */
static int parse_letters(struct parse *parse, char ***next)
{
    char *word = *(*next)++;

    for (char *letter = word + 1; *letter; letter++) {
        const struct cmd_option *o;
        size_t index = 0;

        if (*letter == 'h') {
            parse->help = true;
            return CMD_DONE;
        }
        while ((o = cmd_option_at(parse->cmd, index)) != NULL && o->letter != *letter)
            index++;
        if (!o)
            return unknown_option(parse, word);
        if (!cmd_option_is_flag(o)) {
            char *value = letter[1] ? letter + 1 : **next;
            if (!value)
                return misused(parse, "-%c needs %s", o->letter, o->placeholder);
            if (!letter[1])
                (*next)++;
            return set_word(parse, index, value);
        }
        int code = set_word(parse, index, NULL);
        if (code != CMD_DONE)
            return code;
    }
    return CMD_DONE;
}

static int check_operands(const struct parse *parse, const struct cmd_list *operands)
{
    const struct cmd *cmd = parse->cmd;
    bool is_empty = operands->count == 0 && !cmd->verbs;

    if (operands->count < cmd->operands_min)
        return misused(parse, "%s%s; usage: wattmeter %s [OPTIONS] %s",
                       is_empty ? "nothing to " : "too few words",
                       is_empty ? cmd->name : "", cmd->name, cmd->operands);
    if (operands->count > cmd->operands_max)
        return misused(parse, "'%.60s' is one word too many",
                       cmd_shown(operands->words[cmd->operands_max]));
    return CMD_DONE;
}

/* What environment and file set for the others is passed over. */
static int check_verb(const struct parse *parse, const char *name)
{
    const struct cmd_verb *verb = cmd_find_verb(parse->cmd, name);
    const struct cmd_option *o;

    for (size_t i = 0; verb && (o = cmd_option_at(parse->cmd, i)) != NULL; i++) {
        if (parse->last[i].given == IN_COMMAND_LINE && !cmd_verb_takes(verb, o))
            return misused(parse, "there is no --%s with %s", o->name, verb->name);
    }
    return CMD_DONE;
}

/* `words` ends with NULL. */
static int parse_words(struct parse *parse, char **words, struct cmd_list *operands)
{
    bool options = true;
    int code = CMD_DONE;

    while (*words && code == CMD_DONE && !parse->help) {
        if (options && strcmp(*words, "--") == 0) {
            options = false;
            words++;
        } else if (options && strncmp(*words, "--", 2) == 0) {
            code = parse_long(parse, &words);
        } else if (options && words[0][0] == '-' && words[0][1]) {
            code = parse_letters(parse, &words);
        } else {
            operands->words[operands->count++] = *words++;
            options = options && !parse->cmd->runs_command;
        }
    }
    if (code != CMD_DONE || parse->help)
        return code;
    code = check_operands(parse, operands);
    return code == CMD_DONE ? check_verb(parse, operands->words[0]) : code;
}

static int parse_environment(const struct parse *parse)
{
    const struct cmd_option *o;
    int code = CMD_DONE;
    char name[64];

    for (size_t i = 0; code == CMD_DONE && (o = cmd_option_at(parse->cmd, i)) != NULL;
         i++) {
        char *value = cmd_environment(o, name, sizeof(name));
        if (value)
            code = set_option(parse, i, value, IN_ENVIRONMENT, name);
    }
    return code;
}

/* The number of an option that can be set in the file; SIZE_MAX: no such option. */
static size_t find_option(const struct cmd *cmd, const char *name)
{
    const struct cmd_option *option;

    for (size_t i = 0; !cmd->run_words && (option = cmd_option_at(cmd, i)) != NULL; i++) {
        if (strcmp(option->name, name) == 0)
            return i;
    }
    return SIZE_MAX;
}

/* A setting has to be one that a command in `table` has, if not this one. */
static int take_setting(const struct parse *parse, const struct cmd *const table[],
                        const struct cmd_setting *setting, const char *where)
{
    const char *section = setting->section;
    bool is_known = false;

    if (section && !cmd_find(table, section))
        return misused(parse, "%s: there is no command '%.40s'", where, section);
    for (size_t i = 0; table[i]; i++) {
        size_t index = section && strcmp(section, table[i]->name) != 0
                           ? SIZE_MAX
                           : find_option(table[i], setting->name);
        char place[320];
        if (index == SIZE_MAX)
            continue;
        is_known = true;
        snprintf(place, sizeof(place), "%s: %s", where, setting->name);
        int code = table[i] == parse->cmd
                       ? set_option(parse, index, setting->value,
                                    section ? IN_FILE : IN_FILE_FOR_ALL, place)
                       : CMD_DONE;
        if (code != CMD_DONE)
            return code;
    }
    if (is_known)
        return CMD_DONE;
    return misused(parse, "%s: there is no option '%.40s'%s%.40s", where, setting->name,
                   section ? " of " : "", section ? section : "");
}

static int parse_config_file(const struct parse *parse, const struct cmd *const table[],
                             struct cmd_config *config)
{
    struct cmd_setting setting;
    char where[256], problem[320];
    const char *wrong;
    int code = CMD_DONE, found = 0;

    if (!cmd_config_load(config, problem, sizeof(problem)))
        return misused(parse, "%s", problem);
    while (code == CMD_DONE && (found = cmd_config_next(config, &setting, &wrong)) != 0) {
        snprintf(where, sizeof(where), "%.200s:%u", config->path, config->line);
        code = found < 0 ? misused(parse, "%s: %s", where, wrong)
                         : take_setting(parse, table, &setting, where);
    }
    return code;
}

static int run_parsed(struct parse *parse, const struct cmd *const table[], char **words,
                      struct cmd_list *operands)
{
    struct cmd_config config = { 0 };

    int code = parse_words(parse, words, operands);
    if (code == CMD_DONE && parse->help) {
        cmd_print_help(parse->cmd, operands->words[0], parse->io->out);
        return CMD_DONE;
    }
    if (code == CMD_DONE)
        code = parse_environment(parse);
    if (code == CMD_DONE)
        code = parse_config_file(parse, table, &config);
    if (code == CMD_DONE) {
        if (parse->cmd->operands)
            memcpy(parse->args + parse->cmd->operands_slot, operands, sizeof(*operands));
        code = parse->cmd->run(parse->args, parse->io);
    }
    cmd_config_release(&config);
    return code;
}

static size_t count_options(const struct cmd *cmd)
{
    size_t count = 0;

    while (cmd_option_at(cmd, count))
        count++;
    return count;
}

/* Each list gets room for all the words that there can be; words[0..room) are
 * left for the operands. */
static void place_lists(const struct parse *parse, char **words, size_t room)
{
    const struct cmd_option *o;

    for (size_t i = 0; (o = cmd_option_at(parse->cmd, i)) != NULL; i++) {
        if (o->type != CMD_LIST)
            continue;
        words += room;
        memcpy(parse->args + o->slot, &(struct cmd_list) { .words = words },
               sizeof(struct cmd_list));
    }
}

static int run(const struct cmd *cmd, const struct cmd *const table[], int argc,
               char **argv, const struct cmd_streams *io)
{
    size_t options = count_options(cmd);
    size_t room = (size_t)argc + CMD_CONFIG_SETTINGS + 1;
    struct parse parse = { .cmd = cmd, .io = io };
    struct cmd_list operands = { .words = calloc(room * (options + 1), sizeof(char *)) };
    int code = CMD_FAILED;

    parse.args = calloc(1, cmd->args_size);
    parse.last = calloc(options + 1, sizeof(*parse.last));
    if (!operands.words || !parse.args || !parse.last) {
        fprintf(io->chat, "wattmeter %s: out of memory\n", cmd->name);
    } else {
        place_lists(&parse, operands.words, room);
        code = run_parsed(&parse, table, argv, &operands);
    }
    free(operands.words);
    free(parse.args);
    free(parse.last);
    return code;
}

/* The options that need no command. */
static const char *own_option_name(const void *from, size_t index)
{
    static const char *const names[] = { "--help", "--version", NULL };

    (void)from;
    return names[index];
}

static int unknown_own_option(const char *word, FILE *chat)
{
    const char *nearest = cmd_nearest(word, own_option_name, NULL);

    word = cmd_shown(word);
    if (nearest)
        fprintf(chat, "wattmeter: there is no option '%.60s'; did you mean '%s'?\n", word,
                nearest);
    else
        fprintf(chat,
                "wattmeter: '%.60s' stands before the command; options come after it\n",
                word);
    return CMD_MISUSED;
}

static int unknown_command(const struct cmd *const table[], const char *word, FILE *chat)
{
    const char *nearest = cmd_nearest(word, command_name, table);

    if (word[0] == '-')
        return unknown_own_option(word, chat);
    word = cmd_shown(word);
    if (nearest)
        fprintf(chat, "wattmeter: there is no command '%.60s'; did you mean '%s'?\n", word,
                nearest);
    else
        fprintf(chat, "wattmeter: there is no command '%.60s'; see 'wattmeter --help'\n",
                word);
    return CMD_MISUSED;
}

/* argv[0] is the command's name. */
static int run_named(const struct cmd *const table[], int argc, char **argv,
                     const struct cmd_streams *io)
{
    const struct cmd *cmd = cmd_find(table, argv[0]);

    if (!cmd)
        return unknown_command(table, argv[0], io->chat);
    if (cmd->run_words)
        return cmd->run_words(argc, argv, io);
    return run(cmd, table, argc - 1, argv + 1, io);
}

static bool is_either(const char *word, const char *name, const char *other)
{
    return strcmp(word, name) == 0 || strcmp(word, other) == 0;
}

static bool asks_for_help(const char *word)
{
    return is_either(word, "--help", "-h");
}

/* `help COMMAND` is `COMMAND --help`; argv[0] is the word after `help`, if there is one. */
static int help(const struct cmd *const table[], int argc, char **argv,
                const struct cmd_streams *io)
{
    char option[] = "--help";

    if (argc == 0 || asks_for_help(argv[0]) || strcmp(argv[0], "help") == 0) {
        cmd_print_overview(table, io->out);
        return CMD_DONE;
    }
    if (argc == 1)
        return run_named(table, 2, (char *[]) { argv[0], option, NULL }, io);
    fprintf(io->chat, "wattmeter help: '%.60s' is one word too many\n", cmd_shown(argv[1]));
    return CMD_MISUSED;
}

static int dispatch(const struct cmd *const table[], int argc, char **argv,
                    const struct cmd_streams *io)
{
    if (argc < 2) {
        cmd_print_overview(table, io->chat);
        return CMD_MISUSED;
    }
    if (strcmp(argv[1], "help") == 0)
        return help(table, argc - 2, argv + 2, io);
    if (asks_for_help(argv[1]))
        return help(table, 0, NULL, io);
    if (is_either(argv[1], "--version", "-V")) {
        fprintf(io->out, "wattmeter %s\n", wm_version());
        return CMD_DONE;
    }
    return run_named(table, argc - 1, argv + 1, io);
}

/* Set-user-ID would give the user's command rights that the user does not have. */
static bool is_set_id(const struct cmd_streams *io)
{
    if (getuid() == geteuid() && getgid() == getegid())
        return false;
    fprintf(io->chat,
            "wattmeter: refuses to run set-user-ID or set-group-ID; remove the bit "
            "(chmod ug-s); 'wattmeter doctor' shows how to give access to sensors\n");
    return true;
}

int cmd_main(const struct cmd *const table[], int argc, char **argv,
             const struct cmd_streams *io)
{
    if (is_set_id(io))
        return CMD_FAILED;
    int code = dispatch(table, argc, argv, io);

    /* A full disk must not look like success. */
    if ((fflush(io->out) != 0 || ferror(io->out)) && code == CMD_DONE) {
        fprintf(io->chat, "wattmeter: could not write the output\n");
        code = CMD_FAILED;
    }
    return code;
}
