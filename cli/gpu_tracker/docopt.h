/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docopt.h - command lines by the rules of Python's docopt, which the command lines of
 * other tools that we offer were made with.
 *
 * Options stand anywhere; a long one may be cut off as long as it is still the only one;
 * its value follows '=' or is the next word, that of a letter the rest of the word or the
 * next one. A command line fits when it has the commands of one usage, all options that
 * this requires and no others, and none twice but a CMD_LIST.
 */
#ifndef WM_DOCOPT_H
#define WM_DOCOPT_H

#include "cmd.h"

/* Words with blanks between them; options by their names, without dashes. */
struct docopt_usage {
    const char *commands; /* "sub-track combine"; "" for none */
    const char *required;
    const char *optional;
};

struct docopt_grammar {
    const struct cmd_option *options;  /* flags, strings and lists; ends zeroed. A name of
                                        * one letter is none: there is the letter alone */
    const struct docopt_usage *usages; /* ends zeroed */
};

enum docopt_outcome {
    DOCOPT_FITS,
    DOCOPT_HELP,    /* the option "help" is among the words, */
    DOCOPT_VERSION, /* or "version"; whatever else there is */
    DOCOPT_WRONG,
};

/* Fills in `args`, whose lists have room for all words, of which the first one is the name
 * of the command, as in main(). `ret_usage` is the number of the usage that fits; `problem`
 * says in one line why none does. */
enum docopt_outcome docopt_parse(const struct docopt_grammar *grammar, int count,
                                 char *const words[], char *args, size_t *ret_usage,
                                 char *problem, size_t size);

#endif
