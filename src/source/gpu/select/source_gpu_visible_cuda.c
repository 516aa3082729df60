/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_gpu_visible_cuda.c - "2,0", "GPU-7c1f", "MIG-GPU-7c1f/1/0": CUDA's masks, read as
 * CUDA reads them.
 *
 * Its source is closed. Besides NVIDIA's manuals we follow what others found by
 * asking the driver:
 *   [manual]  https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/
 *             environment-variables.html
 *   [mig]     https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
 *             mig-device-names.html
 *   [pytorch] https://github.com/pytorch/pytorch/pull/92315, a parser with tests
 *             that "matches that of 525.60.13 driver"
 *   [nvitop]  https://github.com/XuehaiPan/nvitop/blob/main/nvitop/api/device.py,
 *             whose documented answers come from cuInit() itself
 *   [datadog] https://github.com/DataDog/datadog-agent/pull/36377
 */
#include <stdint.h>
#include <string.h>

#include "base/base_text.h"
#include "source/gpu/select/source_gpu_visible_mask.h"
#include "source/gpu/source_gpu_pci.h"

/* strtoul() it seems to be: blanks and a sign may come first, and what follows
 * the digits does not matter, so "1gpu2" is 1 [pytorch]. Base 10 is our guess:
 * of "0x1" and "010" nobody wrote what happens. */
static size_t find_cuda_number(const struct wm_visible *visible, struct wm_mask_word word,
                               const char **ret_why)
{
    const char *at = word.text + strspn(word.text, WM_BLANKS);
    bool negative = *at == '-';
    uint64_t number;

    if (wm_mask_begins(word, "GPU-") || wm_mask_begins(word, "MIG-"))
        return wm_mask_nowhere(ret_why, "is a UUID in a list of numbers");
    if (*at == '+' || *at == '-')
        at++;
    if (strspn(at, "0123456789") == 0)
        return wm_mask_nowhere(ret_why, "is neither a number nor a UUID");
    if (!wm_text_u64(at, NULL, &number))
        number = UINT64_MAX;
    if (negative && number > 0)
        return wm_mask_nowhere(ret_why, "is negative");
    return wm_mask_find_number(visible, number, ret_why);
}

/* A GPU in MIG mode is its first MIG device, we assume: it is so for one that
 * is named by number. */
static size_t find_cuda_gpu(const struct wm_visible *visible, struct wm_mask_word word,
                            const char **ret_why)
{
    size_t gpu = wm_mask_find_gpu(visible, word, strncmp, ret_why);
    size_t found = WM_NOWHERE;

    if (gpu == WM_NOWHERE)
        return WM_NOWHERE;
    for (size_t i = 0; i < visible->listed; i++) {
        const struct wm_visible_device *device = &visible->devices[i];
        if (device->gpu == gpu &&
            (found == WM_NOWHERE || device->part < visible->devices[found].part))
            found = i;
    }
    return found != WM_NOWHERE ? found : wm_mask_nowhere(ret_why, "has no MIG device");
}

/* NULL for a whole GPU. */
static const struct wm_visible_mig *mig_of(const struct wm_visible *visible,
                                           const struct wm_visible_device *device)
{
    return device->part >= 0 ? &visible->gpus[device->gpu].migs[device->part] : NULL;
}

/* "MIG-GPU-<uuid>/<GPU instance>/<compute instance>" */
static size_t find_cuda_instance(const struct wm_visible *visible, struct wm_mask_word word,
                                 const char **ret_why)
{
    const char *slash = memchr(word.text, '/', word.length);
    struct wm_mask_word uuid = { word.text + strlen("MIG-"), 0 };
    const char *end;
    uint64_t gpu_instance, compute_instance;

    if (!slash || !wm_text_u64(slash + 1, &end, &gpu_instance) || *end != '/' ||
        !wm_text_u64(end + 1, &end, &compute_instance) || end != word.text + word.length)
        return wm_mask_nowhere(ret_why, "is not MIG-GPU-<uuid>/<number>/<number>");
    uuid.length = (size_t)(slash - uuid.text);

    size_t gpu = wm_mask_find_gpu(visible, uuid, strncmp, ret_why);
    if (gpu == WM_NOWHERE)
        return WM_NOWHERE;
    for (size_t i = 0; i < visible->listed; i++) {
        const struct wm_visible_mig *mig = mig_of(visible, &visible->devices[i]);
        if (mig && visible->devices[i].gpu == gpu && mig->gpu_instance == gpu_instance &&
            mig->compute_instance == compute_instance)
            return i;
    }
    return wm_mask_nowhere(ret_why, "fits no device");
}

static size_t find_cuda_mig(const struct wm_visible *visible, struct wm_mask_word word,
                            const char **ret_why)
{
    size_t found = WM_NOWHERE;

    if (wm_mask_begins(word, "MIG-GPU-"))
        return find_cuda_instance(visible, word, ret_why);
    for (size_t i = 0; i < visible->listed; i++) {
        const struct wm_visible_mig *mig = mig_of(visible, &visible->devices[i]);
        if (!mig || !mig->uuid || strncmp(mig->uuid, word.text, word.length) != 0)
            continue;
        if (found != WM_NOWHERE)
            return wm_mask_nowhere(ret_why, "fits several devices");
        found = i;
    }
    return found != WM_NOWHERE ? found : wm_mask_nowhere(ret_why, "fits no device");
}

/* No blank may stand before it, as far as [pytorch] shows. We assume that GPUs and
 * MIG devices may be mixed. */
static size_t find_cuda_uuid(const struct wm_visible *visible, struct wm_mask_word word,
                             const char **ret_why)
{
    if (wm_mask_begins(word, "GPU-"))
        return find_cuda_gpu(visible, word, ret_why);
    if (wm_mask_begins(word, "MIG-"))
        return find_cuda_mig(visible, word, ret_why);
    return wm_mask_nowhere(ret_why, "is no UUID, in a list of UUIDs");
}

static bool is_fast_known(const struct wm_visible_gpu *gpus, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (gpus[i].capability_major == 0)
            return false;
    }
    return true;
}

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Negative where `a` is faster, as far as we can tell. */
static int compare_speed(const struct wm_visible_gpu *a, const struct wm_visible_gpu *b)
{
    const uint64_t pairs[][2] = {
        { a->capability_major, b->capability_major },
        { a->capability_minor, b->capability_minor },
        { (uint64_t)a->multiprocessors * a->clock_mhz,
          (uint64_t)b->multiprocessors * b->clock_mhz },
        { a->multiprocessors, b->multiprocessors },
    };
    int order = 0;

    for (size_t i = 0; order == 0 && i < sizeof(pairs) / sizeof(pairs[0]); i++)
        order = compare(pairs[i][1], pairs[i][0]);
    return order;
}

/* CUDA counts whole GPUs first, then one MIG device after the other [datadog];
 * at the end we keep those that have no number. */
static int group(const struct wm_visible_device *device)
{
    if (device->part == WM_VISIBLE_WHOLE)
        return 0;
    return device->number != WM_VISIBLE_NO_NUMBER ? 1 : 2;
}

static bool is_counted_before(const struct wm_visible *visible, bool fastest_first,
                              const struct wm_visible_device *a,
                              const struct wm_visible_device *b)
{
    const struct wm_visible_gpu *gpu_a = &visible->gpus[a->gpu],
                                *gpu_b = &visible->gpus[b->gpu];
    int order = group(a) - group(b);

    if (order == 0 && fastest_first)
        order = compare_speed(gpu_a, gpu_b);
    if (order == 0)
        order = compare(wm_pci_rank(gpu_a->pci), wm_pci_rank(gpu_b->pci));
    if (order == 0)
        order = compare(a->gpu, b->gpu);
    if (order == 0)
        order = a->part - b->part;
    return order < 0;
}

static void add_counted(struct wm_visible *visible, bool fastest_first,
                        struct wm_visible_device device)
{
    size_t i = visible->listed++;

    for (; i > 0 &&
           is_counted_before(visible, fastest_first, &device, &visible->devices[i - 1]);
         i--)
        visible->devices[i] = visible->devices[i - 1];
    visible->devices[i] = device;
}

static bool is_first_of_instance(const struct wm_visible_gpu *gpu, size_t mig)
{
    for (size_t i = 0; i < mig; i++) {
        if (gpu->migs[i].gpu_instance == gpu->migs[mig].gpu_instance)
            return false;
    }
    return true;
}

/* Before driver 570 a process could have one MIG device, and then nothing else;
 * since then one per GPU instance, and whole GPUs beside them [mig]. The [manual]
 * still has the older rule only. */
static bool has_single_mig(unsigned driver)
{
    return driver > 0 && driver < 570;
}

/* All that CUDA could show, numbered as it counts without a mask.
 *
 * FASTEST_FIRST is "from fastest to slowest using a simple heuristic" [manual],
 * and which one is not published. Ours: compute capability, then
 * multiprocessors times clock, then PCI address. It used to be another: up to
 * 2017 reports show the fastest moved to the front and the rest left alone
 * (https://github.com/ethereum-mining/ethminer/issues/283), later ones all
 * sorted (https://github.com/alephium/gpu-miner/issues/7). */
static void list_cuda(struct wm_visible *visible, bool fastest_first, bool single_mig)
{
    for (size_t g = 0; g < visible->gpu_count; g++) {
        const struct wm_visible_gpu *gpu = &visible->gpus[g];
        struct wm_visible_device device = { g, WM_VISIBLE_WHOLE, 0 };

        if (!gpu->mig_mode)
            add_counted(visible, fastest_first, device);
        for (size_t m = 0; gpu->mig_mode && m < gpu->mig_count; m++) {
            bool counts = single_mig ? m == 0 : is_first_of_instance(gpu, m);
            device.part = (int)m;
            device.number = counts ? 0 : WM_VISIBLE_NO_NUMBER;
            add_counted(visible, fastest_first, device);
        }
    }
    for (size_t i = 0; i < visible->listed; i++) {
        if (visible->devices[i].number != WM_VISIBLE_NO_NUMBER)
            visible->devices[i].number = i;
    }
}

/* If there is a MIG device among the chosen, it is all a process gets. */
static void keep_single_mig(struct wm_visible *visible)
{
    for (size_t i = 0; i < visible->count; i++) {
        if (visible->devices[i].part >= 0) {
            visible->devices[0] = visible->devices[i];
            visible->count = 1;
        }
    }
}

static bool is_one_model(const struct wm_visible_gpu *gpus, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!gpus[i].model || strcmp(gpus[i].model, gpus[0].model) != 0)
            return false;
    }
    return true;
}

/* NULL where the numbers of the devices are certain. */
static const char *cuda_doubt(const struct wm_visible *visible, bool by_pci)
{
    bool mig = false;

    for (size_t i = 0; i < visible->gpu_count; i++)
        mig |= visible->gpus[i].mig_mode;
    if (visible->listed > 1 && mig)
        return "there is a GPU in MIG mode, and how CUDA counts it is not documented";
    if (visible->listed > 1 && !by_pci && !is_one_model(visible->gpus, visible->gpu_count))
        return "the GPUs are not known to be of one model, CUDA_DEVICE_ORDER is not "
               "PCI_BUS_ID, and how CUDA finds the fastest is not documented";
    return NULL;
}

/* The manual does not say what a GPU listed twice does. Two sources do: none is
 * visible then, those before it included. [pytorch] tests "0, 1, 2, 1" and
 * the same with UUIDs; [nvitop] documents '0,0', for which it asks cuInit().
 * The first word decides whether the list is one of UUIDs; a word of the other kind ends
 * it [pytorch, nvitop]. */
void wm_visible_cuda(struct wm_visible *visible)
{
    const char *mask = wm_mask_variable(visible, "CUDA_VISIBLE_DEVICES");
    const char *order = wm_mask_variable(visible, "CUDA_DEVICE_ORDER");
    bool by_pci = order && strcmp(order, "PCI_BUS_ID") == 0;
    bool by_uuid = mask && (strncmp(mask, "GPU-", 4) == 0 || strncmp(mask, "MIG-", 4) == 0);
    const struct wm_mask_dialect dialect = {
        .variable = "CUDA_VISIBLE_DEVICES",
        .find = by_uuid ? find_cuda_uuid : find_cuda_number,
        .repeat = WM_REPEAT_HIDES_ALL,
    };

    list_cuda(visible, !by_pci && is_fast_known(visible->gpus, visible->gpu_count),
              has_single_mig(visible->driver));
    wm_mask_apply(visible, &dialect, mask);
    if (has_single_mig(visible->driver))
        keep_single_mig(visible);
    if (!by_uuid && visible->count > 0)
        visible->order_reason = cuda_doubt(visible, by_pci);
}
