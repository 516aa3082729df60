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
    char problem[64] = "";

    if (size > CMD_CONFIG_LIMIT)
        return 0;
    config.text = fuzz_copy(data, size);

    if (!cmd_config_parse(&config, config.text, size, problem, sizeof(problem)))
        require(problem[0] >= '1' && problem[0] <= '9');
    require(config.count <= CMD_CONFIG_SETTINGS);
    for (size_t i = 0; i < config.count; i++) {
        const struct cmd_setting *setting = &config.settings[i];
        require(setting->name[0] && setting->value[0] && setting->line > 0);
        require(is_within(setting->name, config.text, size));
        require(is_within(setting->value, config.text, size));
        require(!setting->section || is_within(setting->section, config.text, size));
    }
    cmd_config_release(&config);
    return 0;
}
