/* SPDX-License-Identifier: Apache-2.0 */
/* base_url.c - recordings that are named by a URL instead of a file. */
#include "base/text/base_url.h"

#include <string.h>

bool wm_url_is_postgres(const char *target)
{
    static const char *const schemes[] = { "postgresql://", "postgres://" };

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strncmp(target, schemes[i], strlen(schemes[i])) == 0)
            return true;
    }
    return false;
}
