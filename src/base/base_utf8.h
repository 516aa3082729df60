/* SPDX-License-Identifier: Apache-2.0 */
/* base_utf8.h - text on its way into a recording, where all of it is UTF-8, as names of
 * processes and devices are but bytes; and what a recording is called. */
#ifndef WM_BASE_UTF8_H
#define WM_BASE_UTF8_H

#include <stdbool.h>

/* A copy that is valid UTF-8, the caller's to free; NULL when out of memory. */
char *wm_text_copy(const char *text);

/* Whether `target` is the URL of a PostgreSQL database, and what a message calls one, as it
 * may have a password in it. */
bool wm_url_is_postgres(const char *target);
#define WM_URL_HIDDEN "postgresql://..."

/* What a message calls the file at `path`: the path, or the end of a long one, which
 * would leave no room for the reason. Points into `path`; a URL, which may have a
 * password in it, is not shown. */
const char *wm_text_path(const char *path);

#endif
