/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_doc.c - the program `wattmeter-doc`, which is used by the build alone: it
 * prints man pages and shell completion from the tables of the commands.
 *
 *     wattmeter-doc man          wattmeter.1
 *     wattmeter-doc man run      wattmeter-run.1
 *     wattmeter-doc bash FILE    completion for bash, with cli/completion.bash
 */
#include <ctype.h>
#include <string.h>

#include "cmd.h"
#include "wattmeter/version.h"

/* Text in roff. A hyphen would become a dash that cannot be pasted into a shell,
 * and a line that begins with a dot a request. */
static void print_roff(const char *text)
{
    for (bool line_start = true; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        line_start = *text == '\n';
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '\n' && text[1] == '\n')
            fputs("\n.PP", stdout), text++, fputc('\n', stdout);
        else
            fputc(*text, stdout);
    }
}

static void print_line(const char *before, const char *text, const char *after)
{
    fputs(before, stdout);
    print_roff(text);
    fputs(after, stdout);
}

static void print_title(const char *name)
{
    fputs(".TH ", stdout);
    for (const char *at = name; *at; at++)
        fputc(toupper((unsigned char)*at), stdout);
    printf(" 1 \"\" \"wattmeter %s\" \"User Commands\"\n", WM_VERSION);
}

/* Whether there is more than a letter. */
static bool has_name(const struct cmd_option *option)
{
    return option->name[1] != '\0';
}

/* "-i TIME, --interval TIME" */
static void print_option(const struct cmd_option *option)
{
    fputs(".TP\n", stdout);
    if (option->letter)
        printf("\\fB\\-%c\\fR%s", option->letter, has_name(option) ? ", " : "");
    if (has_name(option))
        print_line("\\fB\\-\\-", option->name, "\\fR");
    if (option->placeholder)
        print_line(" \\fI", option->placeholder, "\\fR");
    print_line("\n", option->help, ".\n");
}

/* Where an option may stand besides the command line. */
static void print_settings(void)
{
    fputs(".SH ENVIRONMENT\n", stdout);
    print_roff(
        "Each option can be set by a variable: --interval by WATTMETER_INTERVAL, "
        "--expected-cores by WATTMETER_EXPECTED_CORES. Flags take yes or no. The command "
        "line counts more than the environment, and that more than the file.\n");
    fputs(".SH FILES\n.TP\n", stdout);
    print_line("\\fI", "$XDG_CONFIG_HOME/wattmeter/config", "\\fR\n");
    print_roff(
        "Otherwise ~/.config/wattmeter/config. Lines of the form name = value; a line "
        "[run] begins what is for that command alone; # begins a comment.\n");
}

static void print_command_page(const struct cmd *cmd)
{
    const struct cmd_option *option;
    char name[64];

    snprintf(name, sizeof(name), "wattmeter-%s", cmd->name);
    print_title(name);
    print_line(".SH NAME\n", name, " \\- ");
    fputc(tolower((unsigned char)cmd->summary[0]), stdout);
    printf("%.*s\n", (int)strlen(cmd->summary) - 2, cmd->summary + 1);

    print_line(".SH SYNOPSIS\n\\fBwattmeter ", cmd->name, "\\fR ");
    fputs("[OPTIONS]", stdout);
    if (cmd->operands)
        print_line(" ", cmd->operands, "");
    print_line("\n.SH DESCRIPTION\n", cmd->summary, "\n.PP\n");
    print_line("", cmd->details, "\n");
    for (const struct cmd_verb *verb = cmd->verbs; verb && verb->name; verb++) {
        print_line(".TP\n\\fB", verb->name, "\\fR \\fI");
        print_line("", verb->operands, "\\fR\n");
        print_line("", verb->help, ".\n");
    }
    fputs(".SH OPTIONS\n", stdout);
    for (size_t i = 0; (option = cmd_option_at(cmd, i)) != NULL; i++)
        print_option(option);
    if (!cmd->run_words)
        print_settings();
    print_line(".SH EXAMPLE\n.EX\n", cmd->example, "\n.EE\n");
    fputs(".SH SEE ALSO\n\\fBwattmeter\\fR(1)\n", stdout);
}

static void print_overview_page(const struct cmd *const table[])
{
    print_title("wattmeter");
    print_roff("");
    fputs(".SH NAME\nwattmeter \\- what a computation costs: time, CPU, memory, GPU, watts "
          "and "
          "joules\n.SH SYNOPSIS\n\\fBwattmeter\\fR \\fICOMMAND\\fR [OPTIONS]\n"
          ".br\n\\fBwattmeter help\\fR [\\fICOMMAND\\fR]\n"
          ".br\n\\fBwattmeter \\-V\\fR | \\fB\\-\\-version\\fR\n.SH COMMANDS\n",
          stdout);
    for (size_t i = 0; table[i]; i++) {
        print_line(".TP\n\\fB", table[i]->name, "\\fR\n");
        print_line("", table[i]->summary, "\n");
    }
    print_settings();
    fputs(".SH EXIT STATUS\n0 when all went well, 1 when something failed, 2 when an "
          "option is "
          "wrong; \\fBrun\\fR gives the status of its command.\n.SH SEE ALSO\n",
          stdout);
    for (size_t i = 0; table[i]; i++) {
        print_line("\\fBwattmeter\\-", table[i]->name, "\\fR(1)");
        fputs(table[i + 1] ? ",\n" : "\n", stdout);
    }
}

/* What the word after the option is, as cli/completion.bash knows it. */
static const char *kind_of(const struct cmd_option *option)
{
    if (cmd_option_is_flag(option))
        return "flag";
    if (option->words)
        return "words";
    return strncmp(option->placeholder, "FILE", 4) == 0 ? "file" : "value";
}

static void print_rows(const struct cmd *cmd)
{
    const struct cmd_option *option;

    printf("%s command%s\n", cmd->name, cmd->runs_command ? " runs" : "");
    for (const struct cmd_verb *verb = cmd->verbs; verb && verb->name; verb++)
        printf("%s verb %s\n", cmd->name, verb->name);
    for (size_t i = 0; (option = cmd_option_at(cmd, i)) != NULL; i++) {
        const char *words = option->words ? option->words : "";
        if (option->letter)
            printf("%s -%c %s %s\n", cmd->name, option->letter, kind_of(option), words);
        if (has_name(option))
            printf("%s --%s %s %s\n", cmd->name, option->name, kind_of(option), words);
    }
    if (!cmd->run_words)
        printf("%s --help flag\n", cmd->name);
}

/* The rows of all commands, and the script that looks them up; false: it cannot be read. */
static bool print_bash(const struct cmd *const table[], const char *script)
{
    FILE *file = fopen(script, "r");
    int c;

    if (!file)
        return false;
    fputs("_wattmeter_rows='", stdout);
    for (size_t i = 0; table[i]; i++)
        print_rows(table[i]);
    fputs("'\n", stdout);
    while ((c = getc(file)) != EOF)
        putchar(c);
    return fclose(file) == 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const struct cmd *cmd = argc > 2 ? cmd_find(cmd_table, argv[2]) : NULL;

    if (strcmp(what, "man") == 0 && argc == 2) {
        print_overview_page(cmd_table);
    } else if (strcmp(what, "man") == 0 && cmd) {
        print_command_page(cmd);
    } else if (strcmp(what, "bash") == 0 && argc == 3) {
        if (!print_bash(cmd_table, argv[2]))
            return CMD_FAILED;
    } else {
        fputs("usage: wattmeter-doc man [COMMAND] | bash SCRIPT\n", stderr);
        return CMD_MISUSED;
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? CMD_DONE : CMD_FAILED;
}
