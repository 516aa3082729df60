/* SPDX-License-Identifier: Apache-2.0 */
/* test_docopt.c - words by docopt's rules: a grammar like gpu_tracker's. */
#include "gpu_tracker/docopt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

struct args {
    bool help, version, overwrite;
    const char *execute, *output, *st, *stf, *stat;
    struct cmd_list paths;
};

#define TEXT(letter_, name_)                                                               \
    {                                                                                      \
        .letter = letter_, .name = #name_, .slot = offsetof(struct args, name_),           \
        .placeholder = "X"                                                                 \
    }
#define FLAG(letter_, name_)                                                               \
    {                                                                                      \
        .letter = letter_, .name = #name_, .slot = offsetof(struct args, name_)            \
    }

static const struct cmd_option options[] = {
    FLAG('h', help),
    FLAG('v', version),
    TEXT('e', execute),
    TEXT('o', output),
    TEXT(0, st),
    FLAG(0, overwrite),
    TEXT(0, stf),
    { .letter = 'p',
      .name = "p",
      .type = CMD_LIST,
      .slot = offsetof(struct args, paths),
      .placeholder = "X" },
    TEXT(0, stat),
    { 0 },
};
static const struct docopt_usage usages[] = {
    { "", "execute", "output st overwrite" },
    { "sub-track combine", "stf", "p" },
    { "sub-track compare", "", "output stat" },
    { 0 },
};
static const struct docopt_grammar grammar = { options, usages };

enum { WORDS = 16 };

static void print_text(FILE *out, const char *name, const char *text)
{
    if (text)
        fprintf(out, " %s=%s", name, text);
}

/* The number of the usage and what was set; "help", "version", or the problem. `line` has
 * words with '|' between them. */
static char *parse(const char *line)
{
    char *copy = strdup(line), *rest = copy, *words[WORDS + 2] = { "gpu-tracker" },
         *list[WORDS];
    struct args args = { .paths = { .words = list } };
    char problem[512], *shown = NULL;
    size_t usage = 99, size;
    FILE *out = open_memstream(&shown, &size);

    assert_non_null(out);
    int count = 1;
    for (; count <= WORDS && rest && *line; count++)
        words[count] = strsep(&rest, "|");
    switch (docopt_parse(&grammar, count, words, (char *)&args, &usage, problem,
                         sizeof(problem))) {
    case DOCOPT_HELP:
        fputs("help", out);
        break;
    case DOCOPT_VERSION:
        fputs("version", out);
        break;
    case DOCOPT_WRONG:
        fputs(problem, out);
        break;
    case DOCOPT_FITS:
        fprintf(out, "%zu%s", usage, args.overwrite ? " overwrite" : "");
        print_text(out, "execute", args.execute);
        print_text(out, "output", args.output);
        print_text(out, "st", args.st);
        print_text(out, "stf", args.stf);
        print_text(out, "stat", args.stat);
        for (size_t i = 0; i < args.paths.count; i++)
            print_text(out, "p", args.paths.words[i]);
    }
    fclose(out);
    free(copy);
    return shown;
}

static void test_words(void **state)
{
    static const struct {
        const char *line, *expected;
    } rows[] = {
        { "-e|ls -l", "0 execute=ls -l" },
        { "-els", "0 execute=ls" },
        { "-e=ls", "0 execute==ls" },
        { "--execute=ls", "0 execute=ls" },
        { "--execute|ls", "0 execute=ls" },
        { "--execute=", "0 execute=" },
        { "--execute=a=b", "0 execute=a=b" },
        { "--exec=ls|--over", "0 overwrite execute=ls" },
        { "--e|ls|--ov|--ou|x", "0 overwrite execute=ls output=x" },
        { "-e|-o|-o|-e", "0 execute=-o output=-e" },
        { "--execute|--st", "0 execute=--st" },
        { "-e|--", "0 execute=--" },
        { "--st=1|-e|x", "0 execute=x st=1" },
        { "-e|x|--st|1", "0 execute=x st=1" },
        { "-e|", "0 execute=" },
        { "sub-track|combine|--stf=a|-p|b|-pc", "1 stf=a p=b p=c" },
        { "sub-track|combine|--stf=a", "1 stf=a" },
        { "--stf|a|sub-track|-p|b|combine", "1 stf=a p=b" },
        { "sub-track|compare", "2" },
        { "sub-track|compare|--sta=max|-o|f", "2 output=f stat=max" },
        { "-h", "help" },
        { "--help", "help" },
        { "--h", "help" },
        { "-hv", "help" },
        { "-vh", "help" },
        { "-e|x|x|-h", "help" },
        { "--zzz|-h", "help" },
        { "-v", "version" },
        { "--ver", "version" },
        { "sub-track|nothing|-v", "version" },

        { "", "--execute is missing" },
        { "--st=1", "--execute is missing" },
        { "x", "'x' is not understood" },
        { "-e|ls|-l", "there is no option -l" },
        { "-e|ls|x", "'x' is not understood" },
        { "-e|ls|", "'' is not understood" },
        { "sub-track|compare|", "'' is not understood" },
        { "sub-track||compare", "'compare' is not understood" },
        { "-e|ls|-", "'-' is not understood" },
        { "-e|ls|--", "'--' is not understood" },
        { "-e|ls|--|-h", "'-h' is not understood" },
        { "-e|a|-e|b", "--execute is given twice" },
        { "-e|a|--exec=b", "--execute is given twice" },
        { "-e|a|--overwrite|--overwrite", "--overwrite is given twice" },
        { "-e", "-e requires argument" },
        { "-e|x|-o", "-o requires argument" },
        { "--execute", "--execute requires argument" },
        { "--exec", "--execute requires argument" },
        { "-h|--st", "--st requires argument" },
        { "--s=1|-e|x", "--s is not a unique prefix: --st, --stf, --stat?" },
        { "--o", "--o is not a unique prefix: --output, --overwrite?" },
        { "--=x",
          "-- is not a unique prefix: --help, --version, --execute, --output, --st, "
          "--overwrite, --stf, --stat?" },
        { "--overwrite=1|-e|x", "--overwrite must not have an argument" },
        { "--help=1", "--help must not have an argument" },
        { "--over=", "--overwrite must not have an argument" },
        { "--stx=1|-e|x", "there is no option --stx=1" },
        { "--p=x|sub-track|combine|--stf=a", "there is no option --p=x" },
        { "-zh|--o", "there is no option -z" },
        { "--stf=a|-e|x", "--stf does not belong here" },
        { "-e|x|-p|a", "-p does not belong here" },
        { "sub-track", "'sub-track' needs one of these after it: combine, compare" },
        { "sub-track|split", "'split' is not understood" },
        { "combine|sub-track|--stf=a", "'sub-track' is not understood" },
        { "sub-trac|combine|--stf=a", "'combine' is not understood" },
        { "sub-track|combine|x|--stf=a", "'x' is not understood" },
        { "sub-track|combine|a|b|c|d|e", "'b' is not understood" },
        { "sub-track|combine", "--stf is missing" },
        { "sub-track|combine|--stf=a|-o|x", "--output does not belong here" },
        { "sub-track|compare|--stat=a|--stat=b", "--stat is given twice" },
        { "sub-track|compare|-e|x", "--execute does not belong here" },
        { "sub-track|compare|-p", "-p requires argument" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *shown = parse(rows[i].line);
        if (strcmp(shown, rows[i].expected) != 0)
            fail_msg("'%s': %s, not %s", rows[i].line, shown, rows[i].expected);
        free(shown);
    }
}

UNIT(docopt)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_words) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
