/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx_injection.c - the ranges of a program that uses NVTX become regions, without a
 * change of it.
 *
 * The NVTX headers that are compiled into a program load the library that
 * NVTX_INJECTION64_PATH names when the program makes its first NVTX call, and take the
 * functions that InitializeInjectionNvtx2() puts into their tables. A range that is pushed
 * is a region on the thread's stack; one that is started is a region by itself. It is
 * called as the range is, after its domain and before its category: "NCCL: ncclAllReduce
 * [ring]".
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "wattmeter/region.h"

/*
 * The part of NVTX's published ABI (version 3) that is used here, declared so that no build
 * needs an NVIDIA header. That it is right is shown by NVIDIA's own Python client, which
 * tests/system/test_nvtx.py runs.
 */

enum { NVTX_TABLE_CALLBACKS = 1 };
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

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

enum { NAME_ROOM = WM_REGION_NAME_MAX + 1 };

/* What NVTX's calls answer when they have nothing better. */
enum { NO_LEVEL = -2 };

struct category {
    struct category *next;
    uint32_t number;
    char name[];
};

/* A registered string, as a range of that name is called. */
struct text {
    struct text *next;
    char *name; /* without a domain; a part of `full` */
    char full[];
};

struct domain {
    _Atomic(struct category *) categories; /* the latest name first */
    struct text *texts;
    char name[]; /* empty: the default domain */
};

/* Ranges are pushed and popped domain by domain, and regions are not. One that is popped
 * while a later one of another domain is open ends with that. */
struct frame {
    struct domain *domain;
    bool is_popped;
};

struct stack {
    struct frame *frames;
    size_t depth, room;
};

static struct domain *default_domain;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is registered */
static pthread_key_t stack_key;
static _Thread_local struct stack *own_stack;

static struct domain *domain_of(void *handle)
{
    return handle ? handle : default_domain;
}

/* UTF-8 of a wide text, cut off between two characters where it is too long. */
static void narrow(const wchar_t *wide, char *text, size_t size)
{
    size_t length = 0;

    for (; *wide; wide++) {
        uint32_t code = (uint32_t)*wide;
        char bytes[4];
        size_t count = 0;

        if (code >= 0x110000 || (code >= 0xd800 && code < 0xe000))
            code = 0xfffd;
        if (code < 0x80) {
            bytes[count++] = (char)code;
        } else {
            size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
            static const unsigned char leads[] = { 0, 0xc0, 0xe0, 0xf0 };
            bytes[count++] = (char)(leads[more] | code >> 6 * more);
            while (more-- > 0)
                bytes[count++] = (char)(0x80 | (code >> 6 * more & 0x3f));
        }
        if (length + count >= size)
            break;
        memcpy(text + length, bytes, count);
        length += count;
    }
    text[length] = '\0';
}

static const char *category_name(struct domain *domain, uint32_t number)
{
    struct category *category = atomic_load(&domain->categories);

    while (category && category->number != number)
        category = category->next;
    return category ? category->name : NULL;
}

/* Under the lock. Those that are there stay: a range may be using one. */
static void add_category(struct domain *domain, uint32_t number, const char *name)
{
    size_t size = strlen(name) + 1;
    struct category *category = malloc(sizeof(*category) + size);

    if (!category)
        return;
    category->number = number;
    memcpy(category->name, name, size);
    category->next = atomic_load(&domain->categories);
    atomic_store(&domain->categories, category);
}

/* A text that is there already, or written to `room`. */
static const char *message_of(const struct nvtx_event *event, char room[NAME_ROOM])
{
    if (event->message_type == NVTX_MESSAGE_ASCII && event->message.ascii)
        return event->message.ascii;
    if (event->message_type == NVTX_MESSAGE_REGISTERED && event->message.registered)
        return ((const struct text *)event->message.registered)->name;
    if (event->message_type != NVTX_MESSAGE_UNICODE || !event->message.unicode)
        return "";
    narrow(event->message.unicode, room, NAME_ROOM);
    return room;
}

/* The name of a range; a text that is there already, or written to `room`. */
static const char *range_name(struct domain *domain, const struct nvtx_event *event,
                              char room[NAME_ROOM])
{
    char message[NAME_ROOM], number[16], category[NAME_ROOM] = "";

    if (!event || event->size < NVTX_EVENT_SIZE)
        return domain->name;
    if (event->category == 0 && event->message_type == NVTX_MESSAGE_REGISTERED &&
        event->message.registered)
        return ((const struct text *)event->message.registered)->full;
    if (event->category == 0 && !domain->name[0])
        return message_of(event, room);

    if (event->category != 0) {
        const char *name = category_name(domain, event->category);
        snprintf(number, sizeof(number), "%u", event->category);
        snprintf(category, sizeof(category), " [%s]", name ? name : number);
    }
    snprintf(room, NAME_ROOM, "%s%s%s%s", domain->name, domain->name[0] ? ": " : "",
             message_of(event, message), category);
    return room;
}

static void free_stack(void *opaque)
{
    struct stack *stack = opaque;

    own_stack = NULL;
    free(stack->frames);
    free(stack);
}

static struct stack *thread_stack(void)
{
    if (!own_stack) {
        own_stack = calloc(1, sizeof(*own_stack));
        if (own_stack)
            pthread_setspecific(stack_key, own_stack);
    }
    return own_stack;
}

static int level_of(const struct stack *stack, const struct domain *domain, size_t depth)
{
    int level = 0;

    for (size_t i = 0; i < depth; i++)
        level += stack->frames[i].domain == domain && !stack->frames[i].is_popped;
    return level;
}

/* PyTorch's emit_nvtx numbers the calls, "aten::mm, seq = 4, op_id = 7, sizes = [[2]]", so
 * that no two of an operator would be of one name. */
static const char *without_number(const char *name, char room[NAME_ROOM])
{
    const char *end = name ? strstr(name, ", op_id = ") : NULL;

    if (!end)
        return name;
    const char *sequence = strstr(name, ", seq = ");
    if (sequence && sequence < end)
        end = sequence;
    size_t length = (size_t)(end - name);
    if (length >= NAME_ROOM)
        return name;
    memmove(room, name, length);
    room[length] = '\0';
    return room;
}

static int push(struct domain *domain, const char *name)
{
    char shortened[NAME_ROOM];
    struct stack *stack = thread_stack();

    if (!stack)
        return NO_LEVEL;
    if (stack->depth == stack->room) {
        size_t room = stack->room > 0 ? 2 * stack->room : 32;
        struct frame *frames = realloc(stack->frames, room * sizeof(*frames));
        if (!frames)
            return NO_LEVEL;
        stack->frames = frames;
        stack->room = room;
    }
    int level = level_of(stack, domain, stack->depth);
    stack->frames[stack->depth++] = (struct frame) { .domain = domain };
    wm_region_begin(without_number(name, shortened));
    return level;
}

static int pop(struct domain *domain)
{
    struct stack *stack = thread_stack();
    size_t i = stack ? stack->depth : 0;

    while (i > 0 &&
           (stack->frames[i - 1].domain != domain || stack->frames[i - 1].is_popped))
        i--;
    if (i == 0)
        return NO_LEVEL;
    stack->frames[i - 1].is_popped = true;
    int level = level_of(stack, domain, i - 1);
    while (stack->depth > 0 && stack->frames[stack->depth - 1].is_popped) {
        stack->depth--;
        wm_region_end();
    }
    return level;
}

/* A child has none of its parent's regions open. */
static void forget_stack(void)
{
    if (own_stack)
        own_stack->depth = 0;
}

static uint64_t domain_range_start_ex(void *handle, const struct nvtx_event *event)
{
    char room[NAME_ROOM];

    return wm_region_start(range_name(domain_of(handle), event, room));
}

static void domain_range_end(void *handle, uint64_t range)
{
    (void)handle;
    wm_region_stop(range);
}

static int domain_range_push_ex(void *handle, const struct nvtx_event *event)
{
    char room[NAME_ROOM];
    struct domain *domain = domain_of(handle);

    return push(domain, range_name(domain, event, room));
}

static int domain_range_pop(void *handle)
{
    return pop(domain_of(handle));
}

static uint64_t range_start_ex(const struct nvtx_event *event)
{
    return domain_range_start_ex(NULL, event);
}

static uint64_t range_start_w(const wchar_t *name)
{
    char text[NAME_ROOM];

    narrow(name ? name : L"", text, sizeof(text));
    return wm_region_start(text);
}

static int range_push_ex(const struct nvtx_event *event)
{
    return domain_range_push_ex(NULL, event);
}

static int range_push_a(const char *name)
{
    return push(default_domain, name);
}

static int range_push_w(const wchar_t *name)
{
    char text[NAME_ROOM];

    narrow(name ? name : L"", text, sizeof(text));
    return push(default_domain, text);
}

static int range_pop(void)
{
    return pop(default_domain);
}

static void domain_name_category_a(void *handle, uint32_t number, const char *name)
{
    struct domain *domain = domain_of(handle);

    if (!name)
        name = "";
    pthread_mutex_lock(&lock);
    const char *known = category_name(domain, number);
    if (!known || strcmp(known, name) != 0)
        add_category(domain, number, name);
    pthread_mutex_unlock(&lock);
}

static void domain_name_category_w(void *handle, uint32_t number, const wchar_t *name)
{
    char text[NAME_ROOM];

    narrow(name ? name : L"", text, sizeof(text));
    domain_name_category_a(handle, number, text);
}

static void name_category_a(uint32_t number, const char *name)
{
    domain_name_category_a(NULL, number, name);
}

static void name_category_w(uint32_t number, const wchar_t *name)
{
    domain_name_category_w(NULL, number, name);
}

static void *domain_register_string_a(void *handle, const char *name)
{
    struct domain *domain = domain_of(handle);
    size_t size = strlen(domain->name) + strlen(": ") + strlen(name ? name : "") + 1;
    struct text *text = malloc(sizeof(*text) + size);

    if (!text)
        return NULL;
    int prefix =
        snprintf(text->full, size, "%s%s", domain->name, domain->name[0] ? ": " : "");
    text->name = text->full + prefix;
    snprintf(text->name, size - (size_t)prefix, "%s", name ? name : "");
    pthread_mutex_lock(&lock);
    text->next = domain->texts;
    domain->texts = text;
    pthread_mutex_unlock(&lock);
    return text;
}

static void *domain_register_string_w(void *handle, const wchar_t *name)
{
    char text[NAME_ROOM];

    narrow(name ? name : L"", text, sizeof(text));
    return domain_register_string_a(handle, text);
}

static void *domain_create_a(const char *name)
{
    size_t size = strlen(name ? name : "") + 1;
    struct domain *domain = calloc(1, sizeof(*domain) + size);

    if (domain)
        memcpy(domain->name, name ? name : "", size);
    return domain;
}

static void *domain_create_w(const wchar_t *name)
{
    char text[NAME_ROOM];

    narrow(name ? name : L"", text, sizeof(text));
    return domain_create_a(text);
}

static void domain_destroy(void *handle)
{
    struct domain *domain = handle;

    if (!domain)
        return;
    for (struct category *c = atomic_load(&domain->categories), *next; c; c = next) {
        next = c->next;
        free(c);
    }
    for (struct text *t = domain->texts, *next; t; t = next) {
        next = t->next;
        free(t);
    }
    free(domain);
}

#define FUNCTION(function) ((nvtx_function *)(function))

/* By their places in the tables of those two modules. */
static nvtx_function *const core[] = {
    [4] = FUNCTION(range_start_ex),   [5] = FUNCTION(wm_region_start),
    [6] = FUNCTION(range_start_w),    [7] = FUNCTION(wm_region_stop),
    [8] = FUNCTION(range_push_ex),    [9] = FUNCTION(range_push_a),
    [10] = FUNCTION(range_push_w),    [11] = FUNCTION(range_pop),
    [12] = FUNCTION(name_category_a), [13] = FUNCTION(name_category_w),
};

static nvtx_function *const core2[] = {
    [2] = FUNCTION(domain_range_start_ex),     [3] = FUNCTION(domain_range_end),
    [4] = FUNCTION(domain_range_push_ex),      [5] = FUNCTION(domain_range_pop),
    [8] = FUNCTION(domain_name_category_a),    [9] = FUNCTION(domain_name_category_w),
    [10] = FUNCTION(domain_register_string_a), [11] = FUNCTION(domain_register_string_w),
    [12] = FUNCTION(domain_create_a),          [13] = FUNCTION(domain_create_w),
    [14] = FUNCTION(domain_destroy),
};

static bool fill(const struct nvtx_callbacks *callbacks, int module,
                 nvtx_function *const *functions, size_t count)
{
    nvtx_function ***table = NULL;
    unsigned size = 0;

    if (!callbacks->module_functions(module, &table, &size) || !table)
        return false;
    for (size_t i = 0; i < count && i < size; i++) {
        if (functions[i] && table[i])
            *table[i] = functions[i];
    }
    return true;
}

static void make_once(void)
{
    if (pthread_key_create(&stack_key, free_stack) != 0 ||
        pthread_atfork(NULL, NULL, forget_stack) != 0)
        return;
    default_domain = domain_create_a("");
}

/* Called once by each module of the program that has NVTX compiled in. */
__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(nvtx_get_table *get_table);

int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_once);
    const struct nvtx_callbacks *callbacks = get_table(NVTX_TABLE_CALLBACKS);
    if (!default_domain || !callbacks || callbacks->size < sizeof(*callbacks))
        return 0;
    return fill(callbacks, NVTX_MODULE_CORE, core, sizeof(core) / sizeof(core[0])) &&
           fill(callbacks, NVTX_MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]));
}
