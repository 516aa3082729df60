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

/* One line without its end. NULL, or what is wrong with it. */
static const char *parse_line(struct cmd_config *config, char *line, unsigned number,
                              const char **section)
{
    cut_comment(line);
    line = trim(line);
    if (line[0] == '\0')
        return NULL;

    if (line[0] == '[') {
        char *end = strchr(line, ']');
        if (!end || end[1] != '\0')
            return "a section is written as [command]";
        *end = '\0';
        *section = trim(line + 1);
        return NULL;
    }

    char *equals = strchr(line, '=');
    if (!equals)
        return "there is no '=': a line is written as name = value";
    *equals = '\0';
    struct cmd_setting setting = {
        .section = *section,
        .name = trim(line),
        .value = trim(equals + 1),
        .line = number,
    };
    if (setting.name[0] == '\0')
        return "there is no name before the '='";
    if (setting.value[0] == '\0')
        return "there is no value after the '='";
    if (config->count == CMD_CONFIG_SETTINGS)
        return "there are too many settings";
    config->settings[config->count++] = setting;
    return NULL;
}

bool cmd_config_parse(struct cmd_config *config, char *text, size_t length, char *problem,
                      size_t size)
{
    const char *section = NULL, *wrong = NULL;
    unsigned number = 1;

    config->settings = calloc(CMD_CONFIG_SETTINGS, sizeof(*config->settings));
    if (!config->settings) {
        snprintf(problem, size, "1: out of memory");
        return false;
    }
    if (memchr(text, '\0', length)) {
        snprintf(problem, size, "1: this is not a text");
        return false;
    }

    for (char *line = text; line; number++) {
        char *end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        wrong = parse_line(config, line, number, &section);
        if (wrong) {
            snprintf(problem, size, "%u: %s", number, wrong);
            return false;
        }
        line = end;
    }
    return true;
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
    char wrong[128];
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
    } else if (!cmd_config_parse(config, config->text, length, wrong, sizeof(wrong))) {
        snprintf(problem, size, "%.200s:%s", config->path, wrong);
    } else {
        fclose(file);
        return true;
    }
    if (file)
        fclose(file);
    return false;
}

static bool has_option(const struct cmd *cmd, const char *name)
{
    const struct cmd_option *option;

    for (size_t i = 0; !cmd->run_words && (option = cmd_option_at(cmd, i)) != NULL; i++) {
        if (cmd_option_is(option, name, strlen(name)))
            return true;
    }
    return false;
}

bool cmd_config_check(const struct cmd_config *config, const struct cmd *const table[],
                      char *problem, size_t size)
{
    for (size_t i = 0; i < config->count; i++) {
        const struct cmd_setting *setting = &config->settings[i];
        bool found = false;

        if (setting->section && !cmd_find(table, setting->section)) {
            snprintf(problem, size, "%.200s:%u: there is no command '%.40s'", config->path,
                     setting->line, setting->section);
            return false;
        }
        for (size_t k = 0; table[k] && !found; k++) {
            bool meant = !setting->section || strcmp(setting->section, table[k]->name) == 0;
            found = meant && has_option(table[k], setting->name);
        }
        if (!found) {
            snprintf(problem, size, "%.200s:%u: there is no option '%.40s'%s%.40s",
                     config->path, setting->line, setting->name,
                     setting->section ? " of " : "",
                     setting->section ? setting->section : "");
            return false;
        }
    }
    return true;
}

void cmd_config_release(struct cmd_config *config)
{
    free(config->settings);
    free(config->text);
    free(config->path);
    *config = (struct cmd_config) { 0 };
}

char *cmd_environment(const struct cmd_option *option, char *ret_name, size_t size)
{
    snprintf(ret_name, size, "WATTMETER_%s", option->name);
    for (char *at = ret_name; *at; at++)
        *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
    char *value = getenv(ret_name);
    return value && value[0] ? value : NULL;
}

const char *cmd_variable(const char *name)
{
    return getenv(name);
}
