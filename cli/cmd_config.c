/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_config.c - the configuration file and the environment; the one file of the
 * command that asks for the latter. */
#include "cmd_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *trim(char *text)
{
    size_t length;

    text += strspn(text, " \t\r");
    length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* A '#' begins a comment at the start of a line or after a blank, so that it can
 * be part of a value. */
static void cut_comment(char *line)
{
    for (char *at = line; (at = strchr(at, '#')) != NULL; at++) {
        if (at == line || at[-1] == ' ' || at[-1] == '\t') {
            *at = '\0';
            return;
        }
    }
}

static int wrong(const char *what, const char **ret_problem)
{
    *ret_problem = what;
    return -1;
}

/* One line without its end: 1 and the setting, 0 for none, -1 and what is wrong. */
static int parse_line(struct cmd_config *config, char *line,
                      struct cmd_setting *ret_setting, const char **ret_problem)
{
    cut_comment(line);
    line = trim(line);
    if (line[0] == '\0')
        return 0;

    if (line[0] == '[') {
        char *end = strchr(line, ']');
        if (!end || end[1] != '\0')
            return wrong("a section is written as [command]", ret_problem);
        *end = '\0';
        config->section = trim(line + 1);
        return 0;
    }

    char *equals = strchr(line, '=');
    if (!equals)
        return wrong("there is no '=': a line is written as name = value", ret_problem);
    *equals = '\0';
    *ret_setting = (struct cmd_setting) {
        .section = config->section,
        .name = trim(line),
        .value = trim(equals + 1),
    };
    if (ret_setting->name[0] == '\0')
        return wrong("there is no name before the '='", ret_problem);
    if (ret_setting->value[0] == '\0')
        return wrong("there is no value after the '='", ret_problem);
    if (config->count++ == CMD_CONFIG_SETTINGS)
        return wrong("there are too many settings", ret_problem);
    return 1;
}

int cmd_config_next(struct cmd_config *config, struct cmd_setting *ret_setting,
                    const char **ret_problem)
{
    int found = 0;

    while (config->rest && found == 0) {
        char *line = config->rest, *end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        config->rest = end;
        config->line++;
        found = parse_line(config, line, ret_setting, ret_problem);
    }
    return found;
}

/* The path of the file; NULL without a home, or out of memory. */
static char *find_path(void)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char *path;
    int length;

    /* A relative path is to be ignored, says the XDG specification. */
    if (base && base[0] == '/')
        length = asprintf(&path, "%s/wattmeter/config", base);
    else if (home && home[0])
        length = asprintf(&path, "%s/.config/wattmeter/config", home);
    else
        return NULL;
    return length < 0 ? NULL : path;
}

/* NULL with errno. A pipe would hold us up for ever, and a device might have no end. */
static FILE *open_regular(const char *path, bool *ret_irregular)
{
    struct stat info;

    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    *ret_irregular = fstat(fd, &info) != 0 || !S_ISREG(info.st_mode);
    FILE *file = *ret_irregular ? NULL : fdopen(fd, "r");
    if (!file)
        close(fd);
    return file;
}

bool cmd_config_load(struct cmd_config *config, char *problem, size_t size)
{
    size_t length = 0;

    *config = (struct cmd_config) { .path = find_path() };
    if (!config->path)
        return true;
    bool irregular = false;
    FILE *file = open_regular(config->path, &irregular);
    if (irregular) {
        snprintf(problem, size, "%.200s: is not a regular file", config->path);
        return false;
    }

    /* A home that may not be entered, as after a change of the user, has no
     * settings for this one. */
    if (!file && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return true;

    config->text = calloc(1, CMD_CONFIG_LIMIT + 1);
    if (file && config->text)
        length = fread(config->text, 1, CMD_CONFIG_LIMIT, file);
    if (!file || !config->text || ferror(file)) {
        snprintf(problem, size, "%.200s: %s", config->path,
                 config->text ? strerror(errno) : "out of memory");
    } else if (fgetc(file) != EOF) {
        snprintf(problem, size, "%.200s: larger than %d bytes", config->path,
                 CMD_CONFIG_LIMIT);
    } else if (memchr(config->text, '\0', length)) {
        snprintf(problem, size, "%.200s:1: this is not a text", config->path);
    } else {
        config->rest = config->text;
        fclose(file);
        return true;
    }
    if (file)
        fclose(file);
    return false;
}

void cmd_config_release(struct cmd_config *config)
{
    free(config->text);
    free(config->path);
    *config = (struct cmd_config) { 0 };
}

/* What "EXPECTED_CORES=8" sets the option of that name to; NULL where it is another's. */
static char *value_of(char *variable, const char *name)
{
    for (; *name; name++, variable++) {
        if (*variable != (*name == '-' ? '_' : toupper((unsigned char)*name)))
            return NULL;
    }
    return *variable == '=' ? variable + 1 : NULL;
}

char *cmd_environment(const struct cmd_option *option, char *ret_name, size_t size)
{
    static const char prefix[] = "WATTMETER_";

    for (char **entry = environ; entry && *entry; entry++) {
        bool is_ours = **entry == *prefix && strncmp(*entry, prefix, strlen(prefix)) == 0;
        char *value = is_ours ? value_of(*entry + strlen(prefix), option->name) : NULL;
        if (!value)
            continue;
        snprintf(ret_name, size, "%.*s", (int)(value - 1 - *entry), *entry);
        return value[0] ? value : NULL;
    }
    return NULL;
}

const char *cmd_variable(const char *name)
{
    return getenv(name);
}
