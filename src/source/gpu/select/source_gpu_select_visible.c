/* SPDX-License-Identifier: Apache-2.0 */
/* source_gpu_select_visible.c - puts the GPUs of a machine before the three vendors' rules,
 * each with its own GPUs in the order in which its driver counts. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_error.h"
#include "base/base_text.h"
#include "source/gpu/select/source_gpu_select.h"
#include "source/gpu/select/source_gpu_visible.h"
#include "source/gpu/source_gpu_pci.h"
#include "source/gpu/source_gpu_sysfs.h"

/* Room for what is to be said about the choice. */
enum { REMARK_SIZE = 1024 };

/* The GPUs of one vendor. */
struct view {
    const struct wm_gpus *gpus;
    struct member {
        size_t index; /* among all GPUs */
        uint64_t key; /* the driver counts in the order of these */
        char uuid[WM_ROCM_UUID_SIZE];
    } * members;
    struct wm_visible_gpu *seen;
    struct wm_visible_mig *migs; /* of all of them */
    size_t mig_room, mig_count;
    uint64_t nodes[WM_KFD_NODES]; /* PCI addresses of amdkfd's, once they are asked for */
    size_t node_count;
    struct wm_visible visible;
    const char *order_reason; /* why the order of the keys may not be the driver's */
};

struct vendor {
    bool (*owns)(const struct wm_gpus *gpus, size_t index);
    uint64_t (*key)(struct view *view, uint64_t rank);
    void (*describe)(struct view *view, size_t i);
    void (*apply)(struct wm_visible *visible);
};

static unsigned number_of(const struct wm_gpu_value *value)
{
    if (value->state != WM_READING_OK || !(value->number >= 0 && value->number < 1e9))
        return 0;
    return (unsigned)value->number;
}

static unsigned number(const struct view *view, size_t i, enum wm_gpu_field field)
{
    struct wm_gpu_value value;

    wm_gpus_get_any(view->gpus, view->members[i].index, field, &value);
    return number_of(&value);
}

static const char *text(const struct view *view, size_t i, enum wm_gpu_field field)
{
    return wm_gpu_text(view->gpus, view->members[i].index, field);
}

static bool has_text(const struct wm_gpus *gpus, size_t index, enum wm_gpu_field field,
                     const char *wanted)
{
    const char *value = wm_gpu_text(gpus, index, field);

    return value && strcmp(value, wanted) == 0;
}

static bool is_nvidia(const struct wm_gpus *gpus, size_t index)
{
    return has_text(gpus, index, WM_GPU_SOURCE, "nvml");
}

static bool is_amd(const struct wm_gpus *gpus, size_t index)
{
    return has_text(gpus, index, WM_GPU_KERNEL_DRIVER, "amdgpu");
}

static bool is_intel(const struct wm_gpus *gpus, size_t index)
{
    return has_text(gpus, index, WM_GPU_KERNEL_DRIVER, "i915") ||
           has_text(gpus, index, WM_GPU_KERNEL_DRIVER, "xe");
}

void wm_gpu_rocm_uuid(const struct wm_gpus *gpus, size_t index,
                      char ret_uuid[WM_ROCM_UUID_SIZE])
{
    const char *id = is_amd(gpus, index) ? wm_gpu_text(gpus, index, WM_GPU_UUID) : NULL;

    ret_uuid[0] = '\0';
    if (id && strlen(id) == 16 && strspn(id, "0123456789abcdef") == 16)
        snprintf(ret_uuid, WM_ROCM_UUID_SIZE, "GPU-%s", id);
}

/* The version that a text begins with: 9 and 0 of "9.0", 535 and 129 of
 * "535.129.03". */
static void take_version(const char *version, unsigned *ret_major, unsigned *ret_minor)
{
    uint64_t major = 0, minor = 0;
    const char *end = "";

    if (!version || !wm_text_u64(version, &end, &major) ||
        (*end == '.' && !wm_text_u64(end + 1, NULL, &minor)) || major > 1 << 20 ||
        minor > 1 << 20)
        major = minor = 0;
    *ret_major = (unsigned)major;
    *ret_minor = (unsigned)minor;
}

/* NVML's order, which is theirs here. */
static uint64_t cuda_key(struct view *view, uint64_t rank)
{
    (void)view, (void)rank;
    return 0;
}

static struct wm_visible_mig mig_of(const struct wm_gpus *gpus, size_t index, size_t mig)
{
    struct wm_gpu_value uuid, gpu_instance, compute_instance;

    wm_gpus_mig_get_any(gpus, index, mig, WM_GPU_MIG_UUID, &uuid);
    wm_gpus_mig_get_any(gpus, index, mig, WM_GPU_MIG_GPU_INSTANCE, &gpu_instance);
    wm_gpus_mig_get_any(gpus, index, mig, WM_GPU_MIG_COMPUTE_INSTANCE, &compute_instance);
    return (struct wm_visible_mig) {
        .uuid = uuid.state == WM_READING_OK ? uuid.text : NULL,
        .gpu_instance = number_of(&gpu_instance),
        .compute_instance = number_of(&compute_instance),
    };
}

static void describe_cuda(struct view *view, size_t i)
{
    struct wm_visible_gpu *gpu = &view->seen[i];
    struct wm_gpu_value clock;
    unsigned minor;
    size_t index = view->members[i].index, count = wm_gpus_mig_count_any(view->gpus, index);

    gpu->uuid = text(view, i, WM_GPU_UUID);
    gpu->pci = text(view, i, WM_GPU_PCI_BUS_ID);
    gpu->model = text(view, i, WM_GPU_NAME);
    take_version(text(view, i, WM_GPU_COMPUTE_CAPABILITY), &gpu->capability_major,
                 &gpu->capability_minor);
    if (view->visible.driver == 0)
        take_version(text(view, i, WM_GPU_DRIVER_VERSION), &view->visible.driver, &minor);
    gpu->multiprocessors = number(view, i, WM_GPU_MULTIPROCESSORS);
    wm_gpus_get_any(view->gpus, index, WM_GPU_CLOCK_SM_MAX, &clock);
    clock.number /= 1e6;
    gpu->clock_mhz = number_of(&clock);
    gpu->mig_mode = has_text(view->gpus, index, WM_GPU_MIG_MODE, "Enabled");

    gpu->migs = view->migs + view->mig_count;
    for (; gpu->mig_count < count && view->mig_count < view->mig_room; gpu->mig_count++)
        view->migs[view->mig_count++] = mig_of(view->gpus, index, gpu->mig_count);
}

static uint64_t amd_key(struct view *view, uint64_t rank)
{
    uint64_t node = 0;

    if (view->node_count == 0)
        view->node_count = wm_kfd_nodes(wm_gpus_sysfs(view->gpus), view->nodes);
    while (node < view->node_count && view->nodes[node] != rank)
        node++;
    return node;
}

/* Nodes that are more or others than the cards are parts of a GPU, or GPUs without a
 * card. */
static void describe_amd(struct view *view, size_t i)
{
    struct member *member = &view->members[i];

    wm_gpu_rocm_uuid(view->gpus, member->index, member->uuid);
    view->seen[i].uuid = member->uuid;
    if (member->key == view->node_count || view->node_count != view->visible.gpu_count)
        view->order_reason = "the order of amdkfd's nodes is not known";
}

/* Discrete ones first, and an integrated one is always at the same address. */
static uint64_t intel_key(struct view *view, uint64_t rank)
{
    const uint64_t integrated = 2 << 3, last = UINT64_C(1) << 63;

    (void)view;
    return rank == integrated ? last : rank;
}

static void describe_intel(struct view *view, size_t i)
{
    const char *label = text(view, i, WM_GPU_LABEL);

    if (label)
        view->seen[i].tiles = wm_sysfs_tiles(wm_gpus_sysfs(view->gpus), label);
}

static const struct vendor vendors[] = {
    { is_nvidia, cuda_key, describe_cuda, wm_visible_cuda },
    { is_amd, amd_key, describe_amd, wm_visible_amd },
    { is_intel, intel_key, describe_intel, wm_visible_intel },
};

static void release(struct view *view)
{
    free(view->members);
    free(view->seen);
    free(view->migs);
    free(view->visible.devices);
}

static int compare_members(const void *left, const void *right)
{
    const struct member *a = left, *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

/* Finds the vendor's GPUs, and what their order and their rules depend on. */
static int look(struct view *view, const struct vendor *vendor)
{
    size_t present = wm_gpus_present(view->gpus);

    view->members = calloc(present, sizeof(*view->members));
    view->seen = calloc(present, sizeof(*view->seen));
    if (!view->members || !view->seen)
        return WM_ENOMEM;
    for (size_t i = 0; i < present; i++) {
        if (!vendor->owns(view->gpus, i))
            continue;
        uint64_t rank = wm_pci_rank(wm_gpu_text(view->gpus, i, WM_GPU_PCI_BUS_ID));
        view->members[view->visible.gpu_count++] =
            (struct member) { .index = i, .key = vendor->key(view, rank) };
        view->mig_room += wm_gpus_mig_count_any(view->gpus, i);
    }
    qsort(view->members, view->visible.gpu_count, sizeof(*view->members), compare_members);

    view->migs = calloc(view->mig_room + 1, sizeof(*view->migs));
    if (!view->migs)
        return WM_ENOMEM;
    for (size_t i = 0; i < view->visible.gpu_count; i++)
        vendor->describe(view, i);
    view->visible.gpus = view->seen;
    view->visible.devices = calloc(wm_visible_room(view->seen, view->visible.gpu_count) + 1,
                                   sizeof(*view->visible.devices));
    return view->visible.devices ? WM_OK : WM_ENOMEM;
}

static const char *doubt(const struct view *view)
{
    return view->order_reason ? view->order_reason : view->visible.order_reason;
}

/* How many of the view's GPUs are among the visible devices; of several parts of one the
 * first counts. `placed` GPUs have a place already. */
static size_t choose(const struct view *view, struct wm_gpu_place *places, size_t placed)
{
    size_t left = 0;

    for (size_t i = 0; i < view->visible.count; i++) {
        struct wm_gpu_place *place =
            &places[view->members[view->visible.devices[i].gpu].index];
        if (place->place == 0)
            *place = (struct wm_gpu_place) { placed + ++left, i, doubt(view) };
    }
    return left;
}

static void explain(const struct view *view, size_t left, char remark[REMARK_SIZE])
{
    enum { SHOWN = 48 };
    const struct wm_visible_refusal *refused = &view->visible.refused;
    const char *reason = doubt(view);
    size_t count = view->visible.gpu_count;

    if (refused->text) {
        size_t length = refused->length < SHOWN ? refused->length : SHOWN;
        wm_text_list(remark, REMARK_SIZE, "; ", "%s: '%.*s' %s; GPUs left: %zu of %zu",
                     refused->variable, (int)length, refused->text, refused->why, left,
                     count);
    }

    /* Where all are visible, or none, their order does not matter to us. */
    if (reason && left > 0 && left < count)
        wm_text_list(remark, REMARK_SIZE, "; ",
                     "a number in the mask may mean another GPU: %s", reason);
}

static int choose_of(const struct vendor *vendor, const struct wm_gpus *gpus,
                     const char *const *environment, struct wm_gpu_place *places,
                     size_t *placed, char remark[REMARK_SIZE])
{
    struct view view = { .gpus = gpus, .visible.environment = environment };

    int status = look(&view, vendor);
    if (status == WM_OK && view.visible.gpu_count > 0) {
        vendor->apply(&view.visible);
        size_t left = choose(&view, places, *placed);
        explain(&view, left, remark);
        *placed += left;
    }
    release(&view);
    return status;
}

/* A GPU that no variable speaks of is there for every program. */
static bool is_free(const struct wm_gpus *gpus, size_t index)
{
    for (size_t v = 0; v < sizeof(vendors) / sizeof(vendors[0]); v++) {
        if (vendors[v].owns(gpus, index))
            return false;
    }
    return true;
}

int wm_gpu_select_visible(const struct wm_gpus *gpus, const char *const *environment,
                          struct wm_gpu_place *places, char **ret_remark,
                          struct wm_error *err)
{
    size_t present = wm_gpus_present(gpus), placed = 0;
    char remark[REMARK_SIZE] = "";
    int status = WM_OK;

    for (size_t v = 0;
         v < sizeof(vendors) / sizeof(vendors[0]) && status == WM_OK && present > 0; v++)
        status = choose_of(&vendors[v], gpus, environment, places, &placed, remark);
    for (size_t i = 0; i < present; i++) {
        if (is_free(gpus, i))
            places[i] = (struct wm_gpu_place) {
                ++placed, 0, "how programs count the GPUs of this driver is not known"
            };
    }

    size_t length = strlen(remark);
    char *copy = length > 0 ? malloc(REMARK_SIZE) : NULL;
    if (status < 0 || (length > 0 && !copy)) {
        free(copy);
        return wm_fail_memory(err, "choosing GPUs");
    }
    if (copy)
        wm_text_utf8(copy, REMARK_SIZE, remark, length);
    *ret_remark = copy;
    return WM_OK;
}
