/* SPDX-License-Identifier: Apache-2.0 */
/* source_drm_gpu_metrics.c - finds the few fields we want in each revision. */
#include "source/gpu/drm/source_drm_gpu_metrics.h"

#include <stdint.h>
#include <string.h>

/* A field: where it starts, how many bytes it has, and what one unit of it is.
 * Width 0: this revision has no such field, or states no unit for it. */
struct field {
    uint16_t offset;
    uint8_t width;
    double unit;
};

#define AT(offset, width, unit)                                                            \
    {                                                                                      \
        offset, width, unit                                                                \
    }

#define PERCENT 1e-2
#define CENTI_PERCENT 1e-4
#define CENTI 1e-2
#define MILLI 1e-3
#define ENERGY_UNIT (1.0 / 65536) /* "15.259uJ (2^-16)" */

#define FIELDS_1_1                                                                         \
    .power = AT(22, 2, 1), .utilization = AT(16, 2, PERCENT), .edge = AT(4, 2, 1),         \
    .hottest = AT(6, 2, 1), .memory = AT(8, 2, 1)
#define FIELDS_1_4                                                                         \
    .power = AT(10, 2, 1), .utilization = AT(12, 2, PERCENT), .hottest = AT(4, 2, 1),      \
    .memory = AT(6, 2, 1)

/* The structs do not only grow, so that each revision is a line of its own.
 *
 * Revisions 1.0 to 1.3 do not state the unit of the energy. For data centre GPUs
 * it is 2^-16 J (see smu13_driver_if_aldebaran.h of the kernel); for the 32-bit
 * counters of consumer cards nobody says, and newer drivers mark them as invalid.
 * Only the drivers of the former fill in the time stamp of the firmware, so the
 * energy is taken where that stamp is.
 *
 * Nor do 2.0 to 2.3 state units: for the power of one and the same processor
 * (Renoir) it was W or mW, by the version of its firmware. hwmon has those
 * figures too, in units that are fixed. */
static const struct layout {
    uint8_t format, content;
    uint16_t size;
    bool integrated;
    struct field energy, stamp, power, utilization, edge, hottest, memory;
    struct field throttle; /* the form that is the same for all chips */
} layouts[] = {
    { 1, 0, 80, .power = AT(34, 2, 1), .utilization = AT(28, 2, PERCENT),
      .edge = AT(16, 2, 1), .hottest = AT(18, 2, 1), .memory = AT(20, 2, 1) },
    { 1, 1, 96, FIELDS_1_1 },
    { 1, 2, 104, FIELDS_1_1, .energy = AT(24, 8, ENERGY_UNIT), .stamp = AT(96, 8, 1) },
    { 1, 3, 120, FIELDS_1_1, .energy = AT(24, 8, ENERGY_UNIT), .stamp = AT(96, 8, 1),
      .throttle = AT(112, 8, 1) },
    { 1, 4, 288, FIELDS_1_4, .energy = AT(24, 8, ENERGY_UNIT) },
    { 1, 5, 360, FIELDS_1_4, .energy = AT(88, 8, ENERGY_UNIT) },
    /* Kernels have had two forms of 1.6; this part is the same in both. */
    { 1, 6, 312, FIELDS_1_4, .energy = AT(16, 8, ENERGY_UNIT) },
    { 1, 6, 1664, FIELDS_1_4, .energy = AT(16, 8, ENERGY_UNIT) },
    { 1, 7, 2208, FIELDS_1_4, .energy = AT(24, 8, ENERGY_UNIT) },
    { 1, 8, 3872, FIELDS_1_4, .energy = AT(24, 8, ENERGY_UNIT) },
    { 2, 0, 120, .integrated = true },
    { 2, 1, 120, .integrated = true },
    { 2, 2, 128, .integrated = true, .throttle = AT(120, 8, 1) },
    { 2, 3, 152, .integrated = true, .throttle = AT(120, 8, 1) },
    { 2, 4, 168, .integrated = true, .power = AT(40, 2, MILLI),
      .utilization = AT(28, 2, CENTI_PERCENT), .edge = AT(4, 2, CENTI),
      .throttle = AT(120, 8, 1) },
    { 3, 0, 264, .integrated = true, .power = AT(112, 4, MILLI) },
};

/* The drivers fill a struct with ones before they write what they know. */
static bool read_field(const unsigned char *bytes, const struct field *field,
                       uint64_t *ret_raw)
{
    const unsigned char *at = bytes + field->offset;
    uint16_t narrow;
    uint32_t wide;

    switch (field->width) {
    case 2:
        memcpy(&narrow, at, sizeof(narrow));
        *ret_raw = narrow;
        return narrow != UINT16_MAX;
    case 4:
        memcpy(&wide, at, sizeof(wide));
        *ret_raw = wide;
        return wide != UINT32_MAX;
    case 8:
        memcpy(ret_raw, at, sizeof(*ret_raw));
        return *ret_raw != UINT64_MAX;
    default:
        return false;
    }
}

static const struct layout *find_layout(const unsigned char *bytes, size_t size)
{
    uint16_t stated;

    if (size < 4)
        return NULL;
    memcpy(&stated, bytes, sizeof(stated));
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        const struct layout *layout = &layouts[i];
        if (layout->format == bytes[2] && layout->content == bytes[3] &&
            layout->size == stated && layout->size == size)
            return layout;
    }
    return NULL;
}

/* Some drivers mark an energy that they lack with 32 bits of ones. */
static bool read_energy(const unsigned char *bytes, const struct layout *layout,
                        uint64_t *ret_raw)
{
    uint64_t raw;

    if (layout->stamp.width > 0 && !read_field(bytes, &layout->stamp, &raw))
        return false;
    return read_field(bytes, &layout->energy, ret_raw) && *ret_raw != UINT32_MAX;
}

static void take(const unsigned char *bytes, const struct field *field,
                 enum wm_drm_metric metric, struct wm_gpu_metrics *metrics)
{
    uint64_t raw;

    if (metrics->has[metric] || !read_field(bytes, field, &raw))
        return;
    metrics->values[metric] = (double)raw * field->unit;
    metrics->has[metric] = true;
}

int wm_parse_gpu_metrics(const void *bytes, size_t size, struct wm_gpu_metrics *ret_metrics)
{
    const struct layout *layout = find_layout(bytes, size);
    uint64_t raw;

    if (!layout)
        return WM_EFORMAT;
    *ret_metrics = (struct wm_gpu_metrics) { .integrated = layout->integrated };
    bool has_energy = read_energy(bytes, layout, &raw);
    ret_metrics->is_second_die = has_energy && raw == 0;
    if (has_energy && raw != 0)
        take(bytes, &layout->energy, WM_DRM_ENERGY, ret_metrics);
    take(bytes, &layout->power, WM_DRM_POWER, ret_metrics);
    take(bytes, &layout->utilization, WM_DRM_UTILIZATION, ret_metrics);
    take(bytes, &layout->edge, WM_DRM_TEMPERATURE, ret_metrics);
    take(bytes, &layout->hottest, WM_DRM_TEMPERATURE, ret_metrics);
    take(bytes, &layout->memory, WM_DRM_MEMORY_TEMPERATURE, ret_metrics);
    ret_metrics->has_throttle = read_field(bytes, &layout->throttle, &raw);
    ret_metrics->throttle = ret_metrics->has_throttle ? raw : 0;
    return WM_OK;
}
