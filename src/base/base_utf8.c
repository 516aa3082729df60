/* SPDX-License-Identifier: Apache-2.0 */
/* base_utf8.c - text on its way into a recording. */
#include "base/base_utf8.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_text.h"

enum { SHOWN_PATH_MAX = 150 };

bool wm_url_is_postgres(const char *target)
{
    static const char *const schemes[] = { "postgresql://", "postgres://" };

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strncmp(target, schemes[i], strlen(schemes[i])) == 0)
            return true;
    }
    return false;
}

char *wm_text_copy(const char *text)
{
    size_t length = strlen(text);
    size_t room = 3 * length + 1; /* each byte may become U+FFFD */
    char *copy = malloc(room);

    if (copy)
        wm_text_utf8(copy, room, text, length);
    return copy;
}

const char *wm_text_path(const char *path)
{
    size_t length = strlen(path);

    if (wm_url_is_postgres(path))
        return WM_URL_HIDDEN;
    return length > SHOWN_PATH_MAX ? path + length - SHOWN_PATH_MAX : path;
}
