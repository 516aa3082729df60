/* SPDX-License-Identifier: Apache-2.0 */
/* repeat_commands.c - makes command lines of templates, each with all values of the
 * parameters. */
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "repeat/repeat.h"
#include "shell_words.h"

enum { MOST_COMMANDS = 1000, MOST_VALUES = 1000 };

/* "n=1,2,4" or "n=1..8", taken apart. */
struct parameter {
    char *name;
    char *values[MOST_VALUES];
    size_t count;
    bool is_used;
};

/* What command lines are made of. A template is a text, or the words of the operands. */
struct maker {
    const struct repeat_args *args;
    const struct cmd_streams *io;
    struct parameter *parameters;
    size_t parameter_count;
    size_t chosen[REPEAT_MOST_PARAMETERS]; /* the value of each */
};

static int misused(const struct maker *maker, const char *what, const char *why)
{
    return output_misused("run", maker->io, "%s: %s", cmd_shown(what), why);
}

static int out_of_memory(const struct maker *maker)
{
    fputs("wattmeter run: out of memory\n", maker->io->chat);
    return CMD_FAILED;
}

static bool add_value(struct parameter *parameter, char *value)
{
    if (!value || parameter->count == MOST_VALUES) {
        free(value);
        return false;
    }
    parameter->values[parameter->count++] = value;
    return true;
}

/* "1..8"; false: it is no range. */
static bool parse_range(const char *text, long *ret_first, long *ret_last)
{
    char *end;

    *ret_first = strtol(text, &end, 10);
    if (end == text || strncmp(end, "..", 2) != 0)
        return false;
    const char *second = end + 2;
    *ret_last = strtol(second, &end, 10);
    return end != second && !*end;
}

static int add_range(const struct maker *maker, const char *word,
                     struct parameter *parameter, long first, long last)
{
    if (last < first || last - first >= MOST_VALUES)
        return misused(maker, word, "--parameter-list: a range has 1 to 1000 numbers");
    for (long number = first; number <= last; number++) {
        char *value = NULL;
        if (asprintf(&value, "%ld", number) < 0 || !add_value(parameter, value))
            return out_of_memory(maker);
    }
    return CMD_DONE;
}

static int add_parameter(struct maker *maker, const char *word)
{
    struct parameter *parameter = &maker->parameters[maker->parameter_count];
    const char *text = strchr(word, '=');
    long first, last;

    if (!text || text == word || !text[1])
        return misused(maker, word, "--parameter-list: it is no NAME=a,b,c");
    maker->parameter_count++;
    parameter->name = strndup(word, (size_t)(text - word));
    if (!parameter->name)
        return out_of_memory(maker);
    for (size_t i = 0; i + 1 < maker->parameter_count; i++)
        if (strcmp(maker->parameters[i].name, parameter->name) == 0)
            return misused(maker, word, "--parameter-list: the name is given twice");
    if (parse_range(++text, &first, &last))
        return add_range(maker, word, parameter, first, last);
    for (;; text++) {
        size_t length = strcspn(text, ",");
        if (!add_value(parameter, strndup(text, length)))
            return misused(maker, word, "--parameter-list: there are too many values");
        text += length;
        if (!*text)
            return CMD_DONE;
    }
}

static int add_parameters(struct maker *maker)
{
    const struct cmd_list *words = &maker->args->parameters;
    int code = CMD_DONE;

    if (words->count > REPEAT_MOST_PARAMETERS)
        return misused(maker, words->words[REPEAT_MOST_PARAMETERS],
                       "--parameter-list: there are too many parameters");
    maker->parameters = calloc(words->count + 1, sizeof(*maker->parameters));
    if (!maker->parameters)
        return out_of_memory(maker);
    for (size_t i = 0; i < words->count && code == CMD_DONE; i++)
        code = add_parameter(maker, words->words[i]);
    return code;
}

static void release_maker(struct maker *maker)
{
    for (size_t p = 0; p < maker->parameter_count; p++) {
        free(maker->parameters[p].name);
        for (size_t v = 0; v < maker->parameters[p].count; v++)
            free(maker->parameters[p].values[v]);
    }
    free(maker->parameters);
}

/* The parameter whose place "{name}" begins at `text`. */
static struct parameter *parameter_at(struct maker *maker, const char *text,
                                      size_t *ret_index)
{
    for (size_t i = 0; i < maker->parameter_count; i++) {
        const char *name = maker->parameters[i].name;
        size_t length = strlen(name);
        *ret_index = i;
        if (text[0] == '{' && strncmp(text + 1, name, length) == 0 &&
            text[1 + length] == '}')
            return &maker->parameters[i];
    }
    return NULL;
}

/* The text with the values that are chosen; NULL when out of memory. */
static char *fill_in(struct maker *maker, const char *text)
{
    char *filled = NULL;
    size_t size = 0, index;
    FILE *out = open_memstream(&filled, &size);

    while (out && *text) {
        struct parameter *parameter = parameter_at(maker, text, &index);
        if (!parameter) {
            fputc(*text++, out);
            continue;
        }
        parameter->is_used = true;
        fputs(parameter->values[maker->chosen[index]], out);
        text += strlen(parameter->name) + 2;
    }
    if (!out || fclose(out) != 0) {
        free(filled);
        return NULL;
    }
    return filled;
}

void repeat_free_words(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

static char **fill_in_words(struct maker *maker, char *const words[], size_t count)
{
    char **filled = calloc(count + 1, sizeof(*filled));

    for (size_t i = 0; filled && i < count; i++) {
        filled[i] = fill_in(maker, words[i]);
        if (!filled[i]) {
            repeat_free_words(filled);
            return NULL;
        }
    }
    return filled;
}

char **repeat_shell_words(const char *shell, const char *text)
{
    const char *problem;
    char **split = NULL, **words = NULL;
    size_t count = 0;

    if (!shell_words_split(shell, &split, &count, &problem))
        return NULL;
    words = calloc(count + 3, sizeof(*words));
    for (size_t i = 0; words && i < count + 2; i++) {
        words[i] = strdup(i < count ? split[i] : i == count ? "-c" : text);
        if (!words[i]) {
            repeat_free_words(words);
            words = NULL;
        }
    }
    free(split);
    return words;
}

/* The words of a text: what a shell would make of it, without starting one, or a shell that
 * gets it. */
static int make_words(struct maker *maker, const char *text, char ***ret_words)
{
    const char *problem = NULL;
    char **split = NULL;
    size_t count = 0;

    if (maker->args->shell) {
        char *filled = fill_in(maker, text);
        *ret_words = filled ? repeat_shell_words(maker->args->shell, filled) : NULL;
        free(filled);
        return *ret_words ? CMD_DONE : out_of_memory(maker);
    }
    if (!shell_words_split(text, &split, &count, &problem))
        return misused(maker, text, problem);
    if (count > 0)
        *ret_words = fill_in_words(maker, split, count);
    free(split);
    if (count == 0)
        return output_misused("run", maker->io, "there is no command in '%s'", text);
    return *ret_words ? CMD_DONE : out_of_memory(maker);
}

/* Words as one text, quoted as a shell would need it where `quotes` is set. */
static char *join(char *const words[], size_t count, bool quotes)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; out && i < count; i++) {
        bool quoted = quotes && (!words[i][0] || strpbrk(words[i], " \t\n\"'\\$|&;<>()*?"));
        fputs(i > 0 ? " " : "", out);
        fputs(quoted ? "'" : "", out);
        for (const char *c = words[i]; *c; c++) {
            if (quoted && *c == '\'')
                fputs("'\\'", out);
            fputc(*c, out);
        }
        fputs(quoted ? "'" : "", out);
    }
    if (!out || fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* The operands: one is a text like the commands of --vs, several are words. */
static int make_operands(struct maker *maker, struct repeat_command *command)
{
    const struct cmd_list *words = &maker->args->command;

    char *text = words->count == 1 ? strdup(words->words[0])
                                   : join(words->words, words->count, !maker->args->shell);
    int code = text ? CMD_DONE : out_of_memory(maker);
    if (text && (words->count == 1 || maker->args->shell)) {
        code = make_words(maker, text, &command->argv);
    } else if (text) {
        command->argv = fill_in_words(maker, words->words, words->count);
        code = command->argv ? CMD_DONE : out_of_memory(maker);
    }
    command->line = text ? fill_in(maker, text) : NULL;
    free(text);
    return code;
}

/* Each is given once for all commands, or once for each. */
static int make_hooks(struct maker *maker, size_t index, struct repeat_command *command)
{
    int code = CMD_DONE;

    for (size_t when = 0; when < REPEAT_HOOKS && code == CMD_DONE; when++) {
        const struct cmd_list *list = &maker->args->hooks[when];
        if (list->count > 0)
            code = make_words(maker, list->words[list->count == 1 ? 0 : index],
                              &command->hooks[when]);
    }
    return code;
}

/* What tells the commands of -L apart: "loc=C n=2"; the caller's. */
static char *name_values(const struct maker *maker)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; out && i < maker->parameter_count; i++)
        fprintf(out, "%s%s=%s", i > 0 ? " " : "", maker->parameters[i].name,
                maker->parameters[i].values[maker->chosen[i]]);
    if (!out || fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static size_t count_templates(const struct repeat_args *args)
{
    return 1 + args->vs.count + (args->reference != NULL);
}

static char *make_name(struct maker *maker, size_t index, const char *line)
{
    if (index < maker->args->names.count)
        return fill_in(maker, maker->args->names.words[index]);
    if (maker->parameter_count > 0 && count_templates(maker->args) == 1)
        return name_values(maker);
    return strdup(line);
}

static int add_to_command(struct maker *maker, size_t index, struct repeat_command *command)
{
    int code = make_hooks(maker, index, command);

    command->name = make_name(maker, index, command->line);
    for (size_t i = 0; i < maker->parameter_count; i++) {
        const struct parameter *parameter = &maker->parameters[i];
        command->parameters[2 * i] = strdup(parameter->name);
        command->parameters[2 * i + 1] = strdup(parameter->values[maker->chosen[i]]);
    }
    return code == CMD_DONE && !command->name ? out_of_memory(maker) : code;
}

/* The texts of the commands: --reference, the operands (NULL), and each --vs. */
static const char *template_at(const struct repeat_args *args, size_t index)
{
    if (args->reference && index-- == 0)
        return args->reference;
    return index == 0 ? NULL : args->vs.words[index - 1];
}

static int make_command(struct maker *maker, size_t index, struct repeat_commands *commands)
{
    struct repeat_command *command = &commands->all[commands->count];
    const char *text = template_at(maker->args, index);

    if (commands->count == MOST_COMMANDS)
        return output_misused("run", maker->io, "there are more than %d commands",
                              MOST_COMMANDS);
    commands->count++;
    int code =
        text ? make_words(maker, text, &command->argv) : make_operands(maker, command);
    if (text)
        command->line = fill_in(maker, text);
    if (code == CMD_DONE && !command->line)
        code = out_of_memory(maker);
    return code == CMD_DONE ? add_to_command(maker, index, command) : code;
}

/* The next values; false when all have had their turn. */
static bool choose_next(struct maker *maker)
{
    for (size_t i = maker->parameter_count; i-- > 0;) {
        if (++maker->chosen[i] < maker->parameters[i].count)
            return true;
        maker->chosen[i] = 0;
    }
    return false;
}

static int make_all(struct maker *maker, struct repeat_commands *commands)
{
    int code = CMD_DONE;

    for (size_t i = 0; i < count_templates(maker->args) && code == CMD_DONE; i++) {
        do
            code = make_command(maker, i, commands);
        while (code == CMD_DONE && choose_next(maker));
    }
    for (size_t i = 0; i < maker->parameter_count && code == CMD_DONE; i++) {
        if (!maker->parameters[i].is_used)
            code = output_misused("run", maker->io,
                                  "--parameter-list: no command has a place for {%s}",
                                  maker->parameters[i].name);
    }
    return code;
}

static int check_counts(const struct repeat_args *args, const struct cmd_streams *io)
{
    size_t count = count_templates(args);

    if (args->names.count > count)
        return output_misused("run", io, "there are %zu names for %zu commands",
                              args->names.count, count);
    for (enum repeat_when when = 0; when < REPEAT_HOOKS; when++) {
        if (args->hooks[when].count > 1 && args->hooks[when].count != count)
            return output_misused("run", io,
                                  "--%s is given once for all commands, or for each",
                                  repeat_hook_name(when));
    }
    return CMD_DONE;
}

int repeat_make_commands(const struct repeat_args *args, const struct cmd_streams *io,
                         struct repeat_commands *commands)
{
    struct maker maker = { .args = args, .io = io };

    int code = check_counts(args, io);
    if (code != CMD_DONE)
        return code;
    commands->all = calloc(MOST_COMMANDS, sizeof(*commands->all));
    code = commands->all ? add_parameters(&maker) : out_of_memory(&maker);
    if (code == CMD_DONE)
        code = make_all(&maker, commands);
    release_maker(&maker);
    return code;
}

void repeat_release_commands(struct repeat_commands *commands)
{
    for (size_t i = 0; i < commands->count; i++) {
        struct repeat_command *command = &commands->all[i];
        repeat_free_words(command->argv);
        for (size_t when = 0; when < REPEAT_HOOKS; when++)
            repeat_free_words(command->hooks[when]);
        free(command->line);
        free(command->name);
        for (size_t p = 0; command->parameters[p]; p++)
            free(command->parameters[p]);
    }
    free(commands->all);
}
