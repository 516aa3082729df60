/* SPDX-License-Identifier: Apache-2.0 */
/* source_config.h - where a source looks when nobody says so. */
#ifndef WM_SOURCE_CONFIG_H
#define WM_SOURCE_CONFIG_H

#include "wattmeter/source.h"

/* `config`, which may be NULL, with what it leaves out taken from the environment
 * or the usual places. Borrows its texts and those of the environment. */
struct wm_source_config wm_source_config_complete(const struct wm_source_config *config);

#endif
