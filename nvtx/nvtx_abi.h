/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx_abi.h - the part of NVTX's published ABI (version 3) that an injection library
 * uses, declared here so that no build needs an NVIDIA header. That it is right is shown
 * by NVIDIA's own Python client, which tests/system/test_nvtx.py runs.
 */
#ifndef WM_NVTX_ABI_H
#define WM_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NVTX_TABLE_CALLBACKS = 1 };
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

/* Places in the tables of those two modules. */
enum nvtx_core {
    NVTX_RANGE_START_EX = 4,
    NVTX_RANGE_START_A,
    NVTX_RANGE_START_W,
    NVTX_RANGE_END,
    NVTX_RANGE_PUSH_EX,
    NVTX_RANGE_PUSH_A,
    NVTX_RANGE_PUSH_W,
    NVTX_RANGE_POP,
    NVTX_NAME_CATEGORY_A,
    NVTX_NAME_CATEGORY_W,
};

enum nvtx_core2 {
    NVTX_DOMAIN_RANGE_START_EX = 2,
    NVTX_DOMAIN_RANGE_END,
    NVTX_DOMAIN_RANGE_PUSH_EX,
    NVTX_DOMAIN_RANGE_POP,
    NVTX_DOMAIN_NAME_CATEGORY_A = 8,
    NVTX_DOMAIN_NAME_CATEGORY_W,
    NVTX_DOMAIN_REGISTER_STRING_A,
    NVTX_DOMAIN_REGISTER_STRING_W,
    NVTX_DOMAIN_CREATE_A,
    NVTX_DOMAIN_CREATE_W,
    NVTX_DOMAIN_DESTROY,
};

enum nvtx_message_type {
    NVTX_MESSAGE_ASCII = 1,
    NVTX_MESSAGE_UNICODE = 2,
    NVTX_MESSAGE_REGISTERED = 3,
};

struct nvtx_event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        const void *registered;
    } message;
};

/* Bytes of the first version, which all later ones begin with. */
#define NVTX_EVENT_SIZE (offsetof(struct nvtx_event, message) + sizeof(void *))

typedef void nvtx_function(void);

struct nvtx_callbacks {
    size_t size; /* of the struct */
    int (*module_functions)(int module, nvtx_function ****ret_table, unsigned *ret_count);
};

typedef const void *nvtx_get_table(uint32_t id);

#endif
