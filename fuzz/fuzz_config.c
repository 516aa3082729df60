/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_config.c - the configuration file: any bytes are settings or a problem
 * with the number of its line, and settings stay within the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../cli/cmd_config.h"
#include "fuzz.h"

static int is_within(const char *word, const char *text, size_t length)
{
    return word >= text && word + strlen(word) <= text + length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cmd_config config = { 0 };
    struct cmd_setting setting;
    const char *problem = NULL;
    int found;

    if (size > CMD_CONFIG_LIMIT || memchr(data, '\0', size))
        return 0;
    config.text = fuzz_copy(data, size);
    config.rest = config.text;

    while ((found = cmd_config_next(&config, &setting, &problem)) > 0) {
        require(setting.name[0] && setting.value[0] && config.line > 0);
        require(config.count <= CMD_CONFIG_SETTINGS);
        require(is_within(setting.name, config.text, size));
        require(is_within(setting.value, config.text, size));
        require(!setting.section || is_within(setting.section, config.text, size));
    }
    require(found == 0 || (problem && config.line > 0));
    cmd_config_release(&config);
    return 0;
}
