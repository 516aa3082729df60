/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_help.c - --help, and which word may have been meant. */
#include "cmd.h"

#include <string.h>

#define COLUMNS 80
#define HELP_COLUMN 28

/* Prints `text` word by word; lines after the first begin at `indent`, where the
 * cursor stands already. */
static void print_wrapped(FILE *out, const char *text, int indent)
{
    int column = indent;

    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > COLUMNS) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* A name that leaves no blank before the help gets a separate line. */
static void print_column(FILE *out, const char *name, const char *help)
{
    if (strlen(name) + 2 > HELP_COLUMN)
        fprintf(out, "%s\n%*s", name, HELP_COLUMN, "");
    else
        fprintf(out, "%-*s", HELP_COLUMN, name);
    print_wrapped(out, help, HELP_COLUMN);
}

/* All of the command's; of a verb those that it takes. */
static void print_options(const struct cmd *cmd, const struct cmd_verb *verb, FILE *out)
{
    const struct cmd_option *o;
    char name[64];

    for (size_t i = 0; (o = cmd_option_at(cmd, i)) != NULL; i++) {
        char letter[] = { '-', o->letter, ',', ' ', '\0' };
        if (verb && !cmd_verb_takes(verb, o))
            continue;
        snprintf(name, sizeof(name), "  %s--%s%s%s", o->letter ? letter : "    ", o->name,
                 o->placeholder ? " " : "", o->placeholder ? o->placeholder : "");
        print_column(out, name, o->help);
    }
    print_column(out, "  -h, --help", "this text");
}

static void print_verb_help(const struct cmd *cmd, const struct cmd_verb *verb, FILE *out)
{
    fprintf(out, "usage: wattmeter %s %s [OPTIONS]%s%s\n", cmd->name, verb->name,
            verb->operands[0] ? " " : "", verb->operands);
    print_wrapped(out, verb->help, 0);
    fputc('\n', out);
    print_options(cmd, verb, out);
    fprintf(out, "\nwattmeter %s --help lists all that it can do.\n", cmd->name);
}

void cmd_print_help(const struct cmd *cmd, const char *first, FILE *out)
{
    const struct cmd_verb *asked = cmd_find_verb(cmd, first);
    char name[64];

    if (asked) {
        print_verb_help(cmd, asked, out);
        return;
    }
    fprintf(out, "usage: wattmeter %s [OPTIONS]%s%s\n%s\n\n", cmd->name,
            cmd->operands ? " " : "", cmd->operands ? cmd->operands : "", cmd->summary);

    for (const struct cmd_verb *verb = cmd->verbs; verb && verb->name; verb++) {
        snprintf(name, sizeof(name), "  %s %s", verb->name, verb->operands);
        print_column(out, name, verb->help);
    }
    if (cmd->verbs)
        fputc('\n', out);
    print_options(cmd, NULL, out);
    fprintf(out, "\nexample: %s\n", cmd->example);
}

void cmd_print_overview(const struct cmd *const table[], FILE *out)
{
    fprintf(out, "usage: wattmeter COMMAND [OPTIONS]\n"
                 "What a computation costs: time, CPU, memory, GPU, watts and joules.\n\n");
    for (size_t i = 0; table[i]; i++)
        fprintf(out, "  %-12s%s\n", table[i]->name, table[i]->summary);
    fprintf(out,
            "\n"
            "  wattmeter help COMMAND lists a command's options, wattmeter -V the "
            "version.\n\n"
            "example: %s\n",
            table[0]->example);
    fprintf(out,
            "\nOptions also from WATTMETER_INTERVAL=1s or ~/.config/wattmeter/config.\n");
}

/* Insertions, deletions, replacements and swaps of neighbours between two words
 * of less than MOST letters; the last are the most common slips of all. */
#define MOST 32

static size_t distance(const char *a, const char *b)
{
    size_t rows[3][MOST + 1] = { 0 };
    size_t length = strlen(b);

    if (strlen(a) > MOST || length > MOST)
        return MOST;
    for (size_t k = 0; k <= length; k++)
        rows[1][k] = k;
    for (size_t i = 1; a[i - 1]; i++) {
        const size_t *before = rows[(i + 2) % 3], *above = rows[i % 3];
        size_t *row = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= length; k++) {
            size_t best = above[k - 1] + (a[i - 1] != b[k - 1]);
            if (above[k] + 1 < best)
                best = above[k] + 1;
            if (row[k - 1] + 1 < best)
                best = row[k - 1] + 1;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                before[k - 2] + 1 < best)
                best = before[k - 2] + 1;
            row[k] = best;
        }
    }
    return rows[(strlen(a) + 1) % 3][length];
}

const char *cmd_nearest(const char *word,
                        const char *(*next)(const void *from, size_t index),
                        const void *from)
{
    const char *name, *nearest = NULL;
    size_t least = 3; /* more slips than two make another word */

    for (size_t i = 0; (name = next(from, i)) != NULL; i++) {
        size_t slips = distance(word, name);
        if (slips < least && slips < strlen(name) - 1) {
            least = slips;
            nearest = name;
        }
    }
    for (size_t i = 0; !nearest && strlen(word) > 2 && (name = next(from, i)) != NULL;
         i++) {
        if (strncmp(word, name, strlen(word)) == 0)
            nearest = name;
    }
    return nearest;
}
