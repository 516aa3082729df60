/* SPDX-License-Identifier: Apache-2.0 */
/* source_config.c - the environment variables and the usual places. */
#include "source/source_config.h"

#include <unistd.h>

#include "base/base_file.h"

struct wm_source_config wm_source_config_complete(const struct wm_source_config *config)
{
    struct wm_source_config full = { 0 };

    if (config)
        full = *config;
    if (!full.procfs)
        full.procfs = wm_env("WATTMETER_PROCFS", "/proc");
    if (!full.sysfs)
        full.sysfs = wm_env("WATTMETER_SYSFS", "/sys");
    if (!full.nvml)
        full.nvml = wm_env("WATTMETER_NVML", NULL);
    if (full.pid == 0)
        full.pid = getpid();
    return full;
}
