/* SPDX-License-Identifier: Apache-2.0 */
/* source_config.c - the environment variables and the usual places, and copies. */
#include "source/source_config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_options.h"

int wm_source_config_complete(const struct wm_source_config *config,
                              struct wm_source_config *ret_full, struct wm_error *err)
{
    struct wm_source_config full;

    int status = wm_options_read(config, &full, sizeof(full), err);
    if (status < 0)
        return status;
    if (!full.procfs)
        full.procfs = wm_env_trusted("WATTMETER_PROCFS", "/proc");
    if (!full.sysfs)
        full.sysfs = wm_env_trusted("WATTMETER_SYSFS", "/sys");
    if (!full.nvml)
        full.nvml = wm_env_trusted("WATTMETER_NVML", NULL);
    if (full.pid == 0)
        full.pid = getpid();
    *ret_full = full;
    return WM_OK;
}

static bool copy_text(const char *text, const char **ret_copy)
{
    *ret_copy = text ? strdup(text) : NULL;
    return *ret_copy || !text;
}

int wm_source_config_copy(const struct wm_source_config *config,
                          struct wm_source_config *ret_copy, struct wm_error *err)
{
    struct wm_source_config copy = { .pid = config->pid };

    if (!copy_text(config->procfs, &copy.procfs) ||
        !copy_text(config->sysfs, &copy.sysfs) || !copy_text(config->nvml, &copy.nvml) ||
        !copy_text(config->gpus, &copy.gpus) ||
        !copy_text(config->channels, &copy.channels) ||
        !copy_text(config->cpu_watts, &copy.cpu_watts)) {
        wm_source_config_release(&copy);
        return wm_fail_memory(err, NULL);
    }
    *ret_copy = copy;
    return WM_OK;
}

void wm_source_config_release(struct wm_source_config *copy)
{
    free((void *)copy->procfs);
    free((void *)copy->sysfs);
    free((void *)copy->nvml);
    free((void *)copy->gpus);
    free((void *)copy->channels);
    free((void *)copy->cpu_watts);
    *copy = (struct wm_source_config) { 0 };
}
