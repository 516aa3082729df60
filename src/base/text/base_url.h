/* SPDX-License-Identifier: Apache-2.0 */
/* base_url.h - recordings that are named by a URL instead of a file. */
#ifndef WM_BASE_URL_H
#define WM_BASE_URL_H

#include <stdbool.h>

/* What a message calls a URL that may have a password in it. */
#define WM_URL_HIDDEN "postgresql://..."

/* Whether `target` is the URL of a PostgreSQL database. */
bool wm_url_is_postgres(const char *target);

#endif
