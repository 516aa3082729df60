/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_pci.c - "0000:3b:00.0" as a number. */
#include "source/gpu/source_gpu_pci.h"

#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"

/* The digits before `separator`, which must follow unless it is the end. */
static bool take_hex(const char **text, const char *end, char separator,
                     uint64_t *ret_value)
{
    size_t length = strspn(*text, "0123456789abcdefABCDEF");
    const char *behind = *text + length;

    if (length == 0 || length > 8 || behind > end)
        return false;
    if (separator ? behind == end || *behind != separator : behind != end)
        return false;
    *ret_value = strtoul(*text, NULL, 16);
    *text = behind + (separator != '\0');
    return true;
}

bool wm_pci_parse(const char *text, size_t length, uint64_t *ret_number,
                  bool *ret_has_domain)
{
    const char *end = text + length;
    uint64_t domain = 0, bus, device, function;

    if (!take_hex(&text, end, ':', &bus))
        return false;
    bool has_domain = memchr(text, ':', (size_t)(end - text)) != NULL;
    if (has_domain) {
        domain = bus;
        if (!take_hex(&text, end, ':', &bus))
            return false;
    }
    if (!take_hex(&text, end, '.', &device) || !take_hex(&text, end, '\0', &function) ||
        bus > 0xff || device > 0x1f || function > 7)
        return false;
    *ret_number = domain << WM_PCI_LOCAL_BITS | bus << 8 | device << 3 | function;
    *ret_has_domain = has_domain;
    return true;
}

uint64_t wm_pci_rank(const char *text)
{
    uint64_t number;
    bool has_domain;

    if (!text || !wm_pci_parse(text, strlen(text), &number, &has_domain) || !has_domain)
        return UINT64_MAX;
    return number;
}

bool wm_pci_is_asleep(int fd)
{
    char text[32];

    return fd >= 0 && wm_file_reread(fd, text, sizeof(text)) > 0 &&
           strcmp(text, "suspended\n") == 0;
}
