/* SPDX-License-Identifier: Apache-2.0 */
/* base_utf8.h - text on its way into a recording, where all of it is UTF-8;
 * names of processes and devices are but bytes. */
#ifndef WM_BASE_UTF8_H
#define WM_BASE_UTF8_H

/* A copy that is valid UTF-8, the caller's to free; NULL when out of memory. */
char *wm_text_copy(const char *text);

/* What a message calls the file at `path`: the path, or the end of a long one,
 * which would leave no room for the reason. Points into `path`; a URL, which may have a
 * password in it, is not told. */
const char *wm_text_path(const char *path);

#endif
