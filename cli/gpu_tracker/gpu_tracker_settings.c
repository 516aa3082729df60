/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tracker_settings.c - how to track: the file that --tconfig names, which has the
 * keyword arguments of gpu_tracker's Tracker, and the options, which count more. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "gpu_tracker/gpu_tracker.h"
#include "wattmeter/tracker.h"

#define MOST_CORES 1000000
#define SETTING(member) offsetof(struct gpu_tracker_settings, member)
#define OPTION(member) offsetof(struct gpu_tracker_args, member)

enum key_type {
    KEY_TEXT,
    KEY_SLEEP,
    KEY_CORES,
    KEY_UUIDS,
    KEY_FLAG,
    KEY_NOT_HERE, /* of a tracker inside a Python program, */
    KEY_NO_USE,   /* or of how the original works */
};

static const struct key {
    const char *name;
    enum key_type type;
    bool may_be_null;
    size_t slot;
    size_t option; /* what counts more: a text, or that of a flag; 0: there is none */
} keys[] = {
    { "sleep_time", KEY_SLEEP, false, SETTING(own.sleep_time), OPTION(sleep_time) },
    { "ram_unit", KEY_TEXT, false, SETTING(own.ram_unit), OPTION(ram_unit) },
    { "gpu_ram_unit", KEY_TEXT, false, SETTING(own.gpu_ram_unit), OPTION(gpu_ram_unit) },
    { "time_unit", KEY_TEXT, false, SETTING(own.time_unit), OPTION(time_unit) },
    { "n_expected_cores", KEY_CORES, true, SETTING(tracker.expected_cores), OPTION(cores) },
    { "gpu_uuids", KEY_UUIDS, true, SETTING(tracker.gpus), OPTION(gpu_uuids) },
    { "disable_logs", KEY_FLAG, false, SETTING(disable_logs), OPTION(disable_logs) },
    { "gpu_brand", KEY_TEXT, true, SETTING(own.brand), OPTION(brand) },
    { "tracking_file", KEY_TEXT, true, SETTING(own.tracking_file), OPTION(tracking_file) },
    { "overwrite", KEY_FLAG, false, SETTING(own.overwrite), OPTION(overwrite) },
    { .name = "process_id", .type = KEY_NOT_HERE },
    { .name = "resource_usage_file", .type = KEY_NO_USE },
    { .name = "n_join_attempts", .type = KEY_NO_USE },
    { .name = "join_timeout", .type = KEY_NO_USE },
};

/* All of the file, or as much of it as there is room for; -1 with errno. It may be a pipe,
 * as a shell's <(...) is; one that nobody writes to is empty. */
static ssize_t read_config(const char *path, char *text, size_t size)
{
    size_t used = 0;
    ssize_t got = 1;

    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fcntl(fd, F_SETFL, 0) < 0)
        got = -1;
    while (got > 0 && used < size) {
        got = read(fd, text + used, size - used);
        used += got > 0 ? (size_t)got : 0;
    }
    int trouble = errno;
    close(fd);
    errno = trouble;
    return got < 0 ? -1 : (ssize_t)used;
}

/* An editor may have put a byte order mark in front. */
static json_t *parse_config(const char *path, const char *text, size_t length,
                            const struct cmd_streams *io)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t skip =
        length >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0 ? strlen(mark) : 0;
    json_error_t error;

    if (length == skip) {
        gpu_tracker_error(io, "%s: is empty; a JSON object is expected", path);
        return NULL;
    }
    json_t *config = json_loadb(text + skip, length - skip, 0, &error);
    if (!config)
        gpu_tracker_error(io, "%s:%d: not JSON: %s", path, error.line, error.text);
    else if (!json_is_object(config))
        gpu_tracker_error(io, "%s: not a JSON object", path);
    if (json_is_object(config))
        return config;
    json_decref(config);
    return NULL;
}

json_t *gpu_tracker_load_config(const char *path, const struct cmd_streams *io)
{
    enum { SIZE_MOST = 1024 * 1024 };
    char *text = malloc(SIZE_MOST);
    ssize_t length = text ? read_config(path, text, SIZE_MOST) : -1;
    json_t *config = NULL;

    if (length == SIZE_MOST)
        gpu_tracker_error(io, "%s: has 1 MiB or more, which no settings need", path);
    else if (length >= 0)
        config = parse_config(path, text, (size_t)length, io);
    else if (errno == EISDIR)
        gpu_tracker_error(io, "%s: is a folder; a file with JSON is expected", path);
    else
        gpu_tracker_error(io, "%s: %s", path, strerror(errno));
    free(text);
    return config;
}

static int set_cores(double *cores, const char *text, const struct cmd_streams *io)
{
    uint64_t count;

    if (!cmd_parse_count(text, &count) || count < 1 || count > MOST_CORES)
        return gpu_tracker_error(io,
                                 "Number of expected cores of %s is invalid. Must be a "
                                 "whole number of at least 1.",
                                 text);
    *cores = (double)count;
    return CMD_DONE;
}

/* A list of texts with commas between them; the caller's to free, NULL where it is none
 * or memory runs out. */
static char *join(const json_t *list)
{
    size_t room = 1, index;
    json_t *word;

    json_array_foreach(list, index, word)
    {
        if (!json_is_string(word))
            return NULL;
        room += json_string_length(word) + 1;
    }
    char *text = calloc(1, room), *at = text;
    json_array_foreach(list, index, word)
    {
        if (at)
            at += snprintf(at, room - (size_t)(at - text), "%s%s", index > 0 ? "," : "",
                           json_string_value(word));
    }
    return text;
}

static int wrong(const struct gpu_tracker_settings *settings, const struct key *key,
                 const char *what, const struct cmd_streams *io)
{
    return gpu_tracker_error(io, "%s: %s %s.", settings->config_path, key->name, what);
}

/* `text`, which is taken over, stands in the configuration from here on. */
static int keep(const struct key *key, struct gpu_tracker_settings *settings, char *text,
                const struct cmd_streams *io)
{
    json_t *value = json_stringn_nocheck(text, strlen(text));

    free(text);
    if (json_object_set_new(settings->config, key->name, value) < 0)
        return gpu_tracker_error(io, "out of memory");
    *(const char **)((char *)settings + key->slot) = json_string_value(value);
    return CMD_DONE;
}

static int take_uuids(const struct key *key, struct gpu_tracker_settings *settings,
                      const json_t *value, const struct cmd_streams *io)
{
    char *text = json_is_array(value)    ? join(value)
                 : json_is_string(value) ? strdup(json_string_value(value))
                                         : NULL;

    if (!text)
        return wrong(settings, key,
                     "is not a list of texts, nor a text with commas between them", io);
    return keep(key, settings, text, io);
}

/* A number as text, the caller's to free, since it is checked in that form. */
static char *number_text(const json_t *value)
{
    if (json_is_string(value))
        return strdup(json_string_value(value));
    return json_is_number(value)
               ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))
               : NULL;
}

static int take_number(const struct key *key, struct gpu_tracker_settings *settings,
                       const json_t *value, const struct cmd_streams *io)
{
    char *text = number_text(value);

    if (!text)
        return wrong(settings, key, "is not a number", io);
    if (key->type == KEY_SLEEP)
        return keep(key, settings, text, io);
    int code = set_cores(&settings->tracker.expected_cores, text, io);
    free(text);
    return code;
}

static int take_key(const struct key *key, struct gpu_tracker_settings *settings,
                    const json_t *value, const struct cmd_streams *io)
{
    void *slot = (char *)settings + key->slot;

    if (key->may_be_null && json_is_null(value))
        return CMD_DONE;
    switch (key->type) {
    case KEY_TEXT:
        if (!json_is_string(value))
            return wrong(settings, key, "is not a text", io);
        *(const char **)slot = json_string_value(value);
        return CMD_DONE;
    case KEY_FLAG:
        if (!json_is_boolean(value))
            return wrong(settings, key, "is neither true nor false", io);
        *(bool *)slot = json_is_true(value);
        return CMD_DONE;
    case KEY_SLEEP:
    case KEY_CORES:
        return take_number(key, settings, value, io);
    case KEY_UUIDS:
        return take_uuids(key, settings, value, io);
    case KEY_NOT_HERE:
        return wrong(settings, key, "cannot be set: the command is what is tracked", io);
    case KEY_NO_USE:
        break;
    }
    return CMD_DONE;
}

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    }
    return NULL;
}

/* The options in place of what the file says. */
static int add_options(json_t *config, const struct gpu_tracker_args *args,
                       const struct cmd_streams *io)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const void *place = (const char *)args + keys[i].option;
        bool is_flag = keys[i].type == KEY_FLAG;
        const char *text = is_flag ? NULL : *(const char *const *)place;
        if (!keys[i].option || (is_flag ? !*(const bool *)place : !text))
            continue;
        json_t *value = is_flag ? json_true() : json_stringn_nocheck(text, strlen(text));
        if (json_object_set_new(config, keys[i].name, value) < 0)
            return gpu_tracker_error(io, "out of memory");
    }
    return CMD_DONE;
}

static int take_config(struct gpu_tracker_settings *settings, const struct cmd_streams *io)
{
    const char *name;
    json_t *value;
    int code = CMD_DONE;

    json_object_foreach(settings->config, name, value)
    {
        const struct key *key = find_key(name);
        if (!key)
            return gpu_tracker_error(io, "%s: there is no setting \"%s\".",
                                     settings->config_path, name);
        code = take_key(key, settings, value, io);
        if (code != CMD_DONE)
            return code;
    }
    return code;
}

int gpu_tracker_settings_of(const struct gpu_tracker_args *args,
                            const struct cmd_streams *io,
                            struct gpu_tracker_settings *ret_settings)
{
    *ret_settings = (struct gpu_tracker_settings) {
        .tracker = { .own_process = true },
        .config_path = args->tconfig,
        .config =
            args->tconfig ? gpu_tracker_load_config(args->tconfig, io) : json_object(),
    };
    int code =
        ret_settings->config ? add_options(ret_settings->config, args, io) : CMD_FAILED;
    return code == CMD_DONE ? take_config(ret_settings, io) : code;
}
