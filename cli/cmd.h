/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd.h - what a subcommand is.
 *
 * To add one: write cmd_<name>.c around a `const struct cmd` and add a line to
 * the table in commands.c. Parsing, the environment, the configuration file,
 * --help, the man page and completion come from the tables, so none of them can
 * drift from what the command accepts. docs/add-a-command.md walks through it.
 */
#ifndef WM_CMD_H
#define WM_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What an option or operand is, and what its slot in the arguments holds. */
enum cmd_type {
    CMD_TEXT,     /* const char *: as typed; NULL when not given. Without a placeholder
                   * it is a flag, bool: given or not */
    CMD_TIMES,    /* int: a flag that counts, as in -vv */
    CMD_LIST,     /* struct cmd_list: each use adds a word */
    CMD_DURATION, /* int64_t: nanoseconds, of "100ms", "2min", "0.5" (seconds) */
    CMD_NUMBER,   /* double */
    CMD_COUNT,    /* struct cmd_count: a whole number */
};

/* Words, in the order in which they were given. The words are borrowed. */
struct cmd_list {
    char **words;
    size_t count;
};

struct cmd_count {
    uint64_t value;
    bool given; /* since 0 is a number like any other */
};

struct cmd_option {
    char letter; /* as in -n; 0 for none */
    const char *name;
    enum cmd_type type;
    size_t slot;             /* offset of the result in the command's arguments */
    const char *placeholder; /* of the value; NULL of a flag */
    const char *help;
    const char *min, *max; /* of a duration or a number, as typed; both or neither */
    const char *words;     /* what completion offers, with blanks between them */
};

/* Results go to `out`, everything said to a person goes to `chat`: a pipe sees
 * the first, and a test can look at either. */
struct cmd_streams {
    FILE *out;
    FILE *chat;
};

/* The exit status of the process. `run` and `attach` know others. */
enum { CMD_DONE = 0, CMD_FAILED = 1, CMD_MISUSED = 2 };

/* What a command can do whose first operand says which. */
struct cmd_verb {
    const char *name;
    const char *operands; /* after it */
    const char *help;
    const char *options; /* names of those that it takes, with blanks between them; NULL:
                          * all of the command's */
};

struct cmd {
    const char *name;
    const char *summary; /* one line */
    const char *details; /* for the man page: paragraphs, an empty line between two */
    const char *example; /* a whole command line, and what it does after " # " */

    /* Words that are no options go into the struct cmd_list at this slot. */
    const char *operands; /* as in the synopsis: "RECORDING"; NULL: there are none */
    size_t operands_slot;
    size_t operands_min, operands_max;

    const struct cmd_verb *verbs; /* ends with a zeroed entry; NULL: there are none */

    /* The first operand begins somebody else's command line, in which nothing
     * is an option of ours. */
    bool runs_command;

    const struct cmd_option *const *options; /* tables that each end with a zeroed
                                              * entry; ends with NULL */
    size_t args_size; /* run() gets this many bytes, zeroed and then filled in */
    int (*run)(const void *args, const struct cmd_streams *io);

    /* In place of run(), another tool's command line, which it parses:
     * gets its words, the command's name first, ending with NULL. Neither environment nor
     * configuration file have a say, and a program of the command's name is this command.
     * The options are for the man page and completion; one whose name is a single letter
     * has that letter alone. */
    int (*run_words)(int count, char *const words[], const struct cmd_streams *io);
};

/* Every command there is, ends with NULL; in commands.c. */
extern const struct cmd *const cmd_table[];

/* Finds argv[1] in `table` (NULL-terminated), parses the rest and runs it. */
int cmd_main(const struct cmd *const table[], int argc, char **argv,
             const struct cmd_streams *io);

/* The command called `name`; NULL if there is none. */
const struct cmd *cmd_find(const struct cmd *const table[], const char *name);

/* Option number `index` of all the tables of a command; NULL past the last. */
const struct cmd_option *cmd_option_at(const struct cmd *cmd, size_t index);

/* The verb of a command that is called so; NULL: there is none, or `name` is NULL. */
const struct cmd_verb *cmd_find_verb(const struct cmd *cmd, const char *name);

/* Whether an option of the command is one of the verb's, too. */
bool cmd_verb_takes(const struct cmd_verb *verb, const struct cmd_option *option);

bool cmd_option_is_flag(const struct cmd_option *option);

/* Whether the option is called name[0..length). */
bool cmd_option_is(const struct cmd_option *option, const char *name, size_t length);

/* What the tables say, for people; 80 columns wide. */

/* `wattmeter --help`. */
void cmd_print_overview(const struct cmd *const table[], FILE *out);

/* `wattmeter run --help`; of a verb alone where `first`, the first operand, is one. It may
 * be NULL. */
void cmd_print_help(const struct cmd *cmd, const char *first, FILE *out);

/* Of the names that `next` gives, the one most like `word`; NULL when none is
 * near. `next` gives NULL past the last. */
const char *cmd_nearest(const char *word,
                        const char *(*next)(const void *from, size_t index),
                        const void *from);

/* The values of options: from a word to what the slot holds. */

/* What messages call a word that stands in the wrong place: a URL, which may hold a
 * password, is not repeated. */
const char *cmd_shown(const char *word);

/* Nanoseconds in "100ms", "1.5s", "2min", "1h" or "0.5" (seconds); false for
 * anything else, and for what is longer than some decades. */
bool cmd_parse_duration(const char *word, int64_t *ret_ns);

/* A decimal number without sign, exponent and blanks. */
bool cmd_parse_number(const char *word, double *ret_number);

/* Such a number with a percent sign behind it: "5%" is 5. */
bool cmd_parse_percent(const char *word, double *ret_percent);

bool cmd_parse_count(const char *word, uint64_t *ret_count);

/* Puts `word` into the slot of `option` in `args`; its list has room. False when
 * it is not what the option takes, and then `problem` says why: "'5x' is not a
 * duration, such as 100ms or 2min". `word` is NULL for a flag on the command
 * line; elsewhere flags are words too. */
bool cmd_set_value(const struct cmd_option *option, char *word, char *args, char *problem,
                   size_t size);

#endif
