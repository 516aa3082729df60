/* SPDX-License-Identifier: Apache-2.0 */
/* cmd.c - looking things up in the tables of commands. */
#include "cmd.h"

#include <string.h>

const struct cmd *cmd_find(const struct cmd *const table[], const char *name)
{
    for (size_t i = 0; table[i]; i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}

const struct cmd_option *cmd_option_at(const struct cmd *cmd, size_t index)
{
    for (size_t i = 0; cmd->options[i]; i++) {
        for (const struct cmd_option *o = cmd->options[i]; o->name; o++) {
            if (index-- == 0)
                return o;
        }
    }
    return NULL;
}

const struct cmd_verb *cmd_find_verb(const struct cmd *cmd, const char *name)
{
    for (const struct cmd_verb *verb = cmd->verbs; name && verb && verb->name; verb++) {
        if (strcmp(verb->name, name) == 0)
            return verb;
    }
    return NULL;
}

bool cmd_verb_takes(const struct cmd_verb *verb, const struct cmd_option *option)
{
    const char *word = verb->options;

    while (word && *word) {
        size_t length = strcspn(word, " ");
        if (cmd_option_is(option, word, length))
            return true;
        word += length + strspn(word + length, " ");
    }
    return !verb->options;
}

bool cmd_option_is_flag(const struct cmd_option *option)
{
    return !option->placeholder;
}

bool cmd_option_is(const struct cmd_option *option, const char *name, size_t length)
{
    return strlen(option->name) == length && memcmp(option->name, name, length) == 0;
}
