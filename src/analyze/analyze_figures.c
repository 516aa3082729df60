/* SPDX-License-Identifier: Apache-2.0 */
/* analyze_figures.c - the table of figures. One more is one more row. */
#include "analyze/analyze_figures.h"

#include <math.h>
#include <string.h>

static struct wm_value expected_cores(const void *of)
{
    const struct wm_run *run = &((const struct wm_report *)of)->run;

    return wm_value_known(run->expected_cores > 0 ? run->expected_cores : run->core_count);
}

static const char no_result[] = "the recording ends without a result";

static struct wm_value tool_interval(const void *of)
{
    return wm_value_known((double)((const struct wm_report *)of)->run.interval_ns / 1e9);
}

/* What is known of the tool where its cost is. */
static struct wm_value known_of_tool(const struct wm_report *report, double value)
{
    if (!report->complete)
        return wm_value_missing(no_result);
    return !report->result.tool_cpu_seconds.known
               ? wm_value_missing("the recording does not have it")
               : wm_value_known(value);
}

static struct wm_value tool_late_ticks(const void *of)
{
    const struct wm_report *report = of;

    return known_of_tool(report, (double)report->result.late_ticks);
}

static struct wm_value tool_missed_ticks(const void *of)
{
    const struct wm_report *report = of;

    return known_of_tool(report, (double)report->result.missed_ticks);
}

static struct wm_value tool_cpu_seconds(const void *of)
{
    const struct wm_report *report = of;

    return known_of_tool(report, report->result.tool_cpu_seconds.number);
}

static struct wm_value tool_max_rss(const void *of)
{
    const struct wm_report *report = of;
    const struct wm_known *peak = &report->result.tool_max_rss_bytes;
    struct wm_value value = known_of_tool(report, peak->number);

    return value.known && !peak->known
               ? wm_value_missing("it cannot be separated from the program's own")
               : value;
}

static struct wm_value processes_seen(const void *of)
{
    const struct wm_report *report = of;

    if (!report->complete)
        return wm_value_missing(no_result);
    if (report->result.processes_seen == 0 && !report->max_processes.known)
        return wm_value_missing(report->max_processes.why);
    return wm_value_known((double)report->result.processes_seen);
}

static struct wm_value region_time(const void *of)
{
    return ((const struct wm_region_spending *)of)->time;
}

#define BETWEEN(type, inside)                                                              \
    .uncertainty = offsetof(type, inside uncertainty), .low = offsetof(type, inside low),  \
    .high = offsetof(type, inside high)
#define RUN(member) .value = offsetof(struct wm_report, member)
#define RUN_ORIGIN(member) .origin = offsetof(struct wm_report, member)
#define RUN_SUM(member)                                                                    \
    RUN(member.energy), BETWEEN(struct wm_report, member.), RUN_ORIGIN(member.origin)
/* A power that is an energy divided by time. */
#define POWER_OF(type, sum)                                                                \
    .low = offsetof(type, sum.low), .high = offsetof(type, sum.high),                      \
    .range_of = offsetof(type, sum.energy)
#define NUMBER(kind_, member) .kind = kind_, .number = offsetof(struct wm_report, member)
#define OF_RESULT(member) NUMBER(WM_FIGURE_UINT64, result.member), .needs_result = true
#define USAGE(member) NUMBER(WM_FIGURE_USAGE, result.usage.member)
#define REGION(member)                                                                     \
    .value = offsetof(struct wm_region_spending, member.value),                            \
    .uncertainty = offsetof(struct wm_region_spending, member.uncertainty)
#define GPU(member)                                                                        \
    .value = offsetof(struct wm_gpu_usage, member),                                        \
    .origin = offsetof(struct wm_gpu_usage, origin)
#define DEVICE(member)                                                                     \
    .value = offsetof(struct wm_device_energy, member),                                    \
    .origin = offsetof(struct wm_device_energy, origin)

/* A figure that is of the run alone, and is called there as in its JSON. */
#define ONE(unit_, path_, ...)                                                             \
    {                                                                                      \
        .unit = unit_, .run = { path_, __VA_ARGS__ }                                       \
    }
#define PERCENT(path_, member) ONE(WM_UNIT_PERCENT, path_, RUN(member))
#define RAM(path_, member) ONE(WM_UNIT_RAM, path_, RUN(member))
#define BOUND(path_, member) ONE(WM_UNIT_RAM, path_, RUN(member), .only_known = true)
#define RUN_BETWEEN(rss)                                                                   \
    RUN(rss.total), .low = offsetof(struct wm_report, rss.low),                            \
                    .high = offsetof(struct wm_report, rss.high)
#define GPU_RAM(path_, member)                                                             \
    ONE(WM_UNIT_GPU_RAM, path_, RUN(member), RUN_ORIGIN(gpu_energy.origin))

#define EVENT(id, name)                                                                    \
    { .key = name,                                                                         \
      .unit = WM_UNIT_COUNT,                                                               \
      .run = { "events." name, NUMBER(WM_FIGURE_EVENT, result.events[WM_EVENT_##id]),      \
               .only_known = true } },

/* In the order in which JSON and comparisons have them. */
/* clang-format off */
static const struct wm_figure_row rows[] = {
    RAM("max_ram.system_capacity", ram_capacity),
    RAM("max_ram.system", ram_system),
    RAM("max_ram.main.total_rss", ram_main.total),
    RAM("max_ram.main.private_rss", ram_main.private_),
    RAM("max_ram.main.shared_rss", ram_main.shared),
    { .unit = WM_UNIT_RAM,
      .run = { "max_ram.descendants.total_rss", RUN_BETWEEN(ram_descendants) } },
    BOUND("max_ram.descendants.total_rss_low", ram_descendants.low),
    BOUND("max_ram.descendants.total_rss_high", ram_descendants.high),
    RAM("max_ram.descendants.private_rss", ram_descendants.private_),
    RAM("max_ram.descendants.shared_rss", ram_descendants.shared),
    { .key = "memory", .unit = WM_UNIT_RAM, .label = "Memory",
      .run = { "max_ram.combined.total_rss", RUN_BETWEEN(ram_combined) },
      .is_compared = true, .is_headline = true },
    BOUND("max_ram.combined.total_rss_low", ram_combined.low),
    BOUND("max_ram.combined.total_rss_high", ram_combined.high),
    RAM("max_ram.combined.private_rss", ram_combined.private_),
    RAM("max_ram.combined.shared_rss", ram_combined.shared),

    GPU_RAM("max_gpu_ram.system_capacity", gpu_ram_capacity),
    GPU_RAM("max_gpu_ram.system", gpu_ram_system),
    GPU_RAM("max_gpu_ram.main", gpu_ram_main),
    GPU_RAM("max_gpu_ram.descendants", gpu_ram_descendants),
    { .key = "gpu_memory", .unit = WM_UNIT_GPU_RAM, .label = "GPU memory",
      .run = { "max_gpu_ram.combined", RUN(gpu_ram_combined),
               RUN_ORIGIN(gpu_energy.origin) },
      .is_compared = true },

    ONE(WM_UNIT_COUNT, "cpu_utilization.system_core_count", NUMBER(WM_FIGURE_INT, run.core_count)),
    ONE(WM_UNIT_COUNT, "cpu_utilization.n_expected_cores", .compute = expected_cores),
    PERCENT("cpu_utilization.system.max_sum_percent", cpu_system.max_sum),
    PERCENT("cpu_utilization.system.max_hardware_percent", cpu_system.max_hardware),
    PERCENT("cpu_utilization.system.mean_sum_percent", cpu_system.mean_sum),
    PERCENT("cpu_utilization.system.mean_hardware_percent", cpu_system.mean_hardware),
    PERCENT("cpu_utilization.main.max_sum_percent", cpu_main.max_sum),
    PERCENT("cpu_utilization.main.max_hardware_percent", cpu_main.max_hardware),
    PERCENT("cpu_utilization.main.mean_sum_percent", cpu_main.mean_sum),
    PERCENT("cpu_utilization.main.mean_hardware_percent", cpu_main.mean_hardware),
    PERCENT("cpu_utilization.descendants.max_sum_percent", cpu_descendants.max_sum),
    PERCENT("cpu_utilization.descendants.max_hardware_percent",
            cpu_descendants.max_hardware),
    PERCENT("cpu_utilization.descendants.mean_sum_percent", cpu_descendants.mean_sum),
    PERCENT("cpu_utilization.descendants.mean_hardware_percent",
            cpu_descendants.mean_hardware),
    PERCENT("cpu_utilization.combined.max_sum_percent", cpu_combined.max_sum),
    PERCENT("cpu_utilization.combined.max_hardware_percent", cpu_combined.max_hardware),
    { .key = "cpu_use", .unit = WM_UNIT_PERCENT, .label = "CPU use",
      .run = { "cpu_utilization.combined.mean_sum_percent", RUN(cpu_combined.mean_sum) },
      .is_compared = true },
    PERCENT("cpu_utilization.combined.mean_hardware_percent", cpu_combined.mean_hardware),
    ONE(WM_UNIT_COUNT, "cpu_utilization.main_n_threads", RUN(main_threads)),
    ONE(WM_UNIT_COUNT, "cpu_utilization.descendants_n_threads", RUN(descendants_threads)),
    { .key = "threads", .unit = WM_UNIT_COUNT, .label = "Threads",
      .run = { "cpu_utilization.combined_n_threads", RUN(combined_threads) } },

    ONE(WM_UNIT_COUNT, "gpu_utilization.system_gpu_count", NUMBER(WM_FIGURE_INT, run.gpu_count)),
    ONE(WM_UNIT_COUNT, "gpu_utilization.n_expected_gpus", NUMBER(WM_FIGURE_INT, run.expected_gpu_count)),
    ONE(WM_UNIT_PERCENT, "gpu_utilization.gpu_percentages.max_sum_percent",
        RUN(gpu_percentages.max_sum), RUN_ORIGIN(gpu_energy.origin)),
    ONE(WM_UNIT_PERCENT, "gpu_utilization.gpu_percentages.max_hardware_percent",
        RUN(gpu_percentages.max_hardware), RUN_ORIGIN(gpu_energy.origin)),
    ONE(WM_UNIT_PERCENT, "gpu_utilization.gpu_percentages.mean_sum_percent",
        RUN(gpu_percentages.mean_sum), RUN_ORIGIN(gpu_energy.origin)),
    { .key = "gpu_use", .unit = WM_UNIT_PERCENT, .label = "GPU use",
      .run = { "gpu_utilization.gpu_percentages.mean_hardware_percent",
               RUN(gpu_percentages.mean_hardware), RUN_ORIGIN(gpu_energy.origin) },
      .is_compared = true },

    { .key = "time", .unit = WM_UNIT_TIME, .label = "Time",
      .run = { "compute_time.time", RUN(compute_time) },
      .region = { "time", .compute = region_time },
      .inclusive_heading = "inclusive", .exclusive_heading = "exclusive",
      .is_compared = true, .is_headline = true },
    { .key = "cpu_time", .unit = WM_UNIT_SECONDS, .label = "CPU time",
      .run = { "cpu_time.total", RUN(cpu_total) },
      .region = { "cpu_time", "cpu_time_uncertainty_percent", REGION(cpu_time) },
      .exclusive_heading = "CPU",
      .is_compared = true, .is_headline = true },
    ONE(WM_UNIT_SECONDS, "cpu_time.main", RUN(cpu_main_time)),
    ONE(WM_UNIT_SECONDS, "cpu_time.descendants", RUN(cpu_descendants_time)),
    { .key = "user_time", .unit = WM_UNIT_SECONDS, .label = "User time",
      .run = { "cpu_time.user", USAGE(user_seconds) } },
    { .key = "system_time", .unit = WM_UNIT_SECONDS,
      .run = { "cpu_time.system", USAGE(system_seconds) } },

    { .key = "voluntary_switches", .unit = WM_UNIT_COUNT, .label = "Switches",
      .run = { "context_switches.voluntary", USAGE(voluntary_switches) } },
    { .key = "involuntary_switches", .unit = WM_UNIT_COUNT,
      .run = { "context_switches.involuntary", USAGE(involuntary_switches) } },
    { .key = "minor_faults", .unit = WM_UNIT_COUNT, .label = "Page faults",
      .run = { "page_faults.minor", USAGE(minor_faults) } },
    { .key = "major_faults", .unit = WM_UNIT_COUNT,
      .run = { "page_faults.major", USAGE(major_faults) } },
    { .key = "read_bytes", .unit = WM_UNIT_BYTES, .label = "Read",
      .run = { "io.read", USAGE(read_bytes) } },
    { .key = "written_bytes", .unit = WM_UNIT_BYTES, .label = "Written",
      .run = { "io.written", USAGE(written_bytes) } },
    { .key = "storage_read_bytes", .unit = WM_UNIT_BYTES,
      .run = { "io.storage_read", USAGE(storage_read_bytes) } },
    { .key = "storage_written_bytes", .unit = WM_UNIT_BYTES,
      .run = { "io.storage_written", USAGE(storage_written_bytes) } },

    WM_EVENT_LIST(EVENT)

    { .key = "energy", .unit = WM_UNIT_JOULES, .label = "Energy",
      .run = { "energy.total", "uncertainty_percent", .tells_origin = true,
               RUN_SUM(energy) },
      .region = { "energy.total", "uncertainty_percent", .tells_origin = true,
                  REGION(energy) },
      .gpu = { GPU(figure.energy), BETWEEN(struct wm_gpu_usage, figure.) },
      .device = { DEVICE(figure.energy), BETWEEN(struct wm_device_energy, figure.) },
      .inclusive_heading = "incl. J", .exclusive_heading = "J",
      .is_compared = true, .is_headline = true },
    { .key = "cpu_energy", .unit = WM_UNIT_JOULES, .label = "CPU energy",
      .run = { "energy.cpu.total", "uncertainty_percent", .tells_origin = true,
               RUN_SUM(cpu_energy) },
      .region = { "energy.cpu.energy", "uncertainty_percent", .only_known = true,
                  REGION(cpu_energy) },
      .is_compared = true, .is_detail = true },
    { .key = "dram_energy", .unit = WM_UNIT_JOULES, .label = "RAM energy",
      .run = { RUN_SUM(dram_energy) },
      .region = { "energy.dram.energy", "uncertainty_percent", .only_known = true,
                  REGION(dram_energy) },
      .is_compared = true, .is_detail = true },
    { .key = "gpu_energy", .unit = WM_UNIT_JOULES, .label = "GPU energy",
      .run = { RUN_SUM(gpu_energy) },
      .region = { "energy.gpus.energy", "uncertainty_percent", .only_known = true,
                  REGION(gpu_energy) },
      .is_compared = true },
    { .key = "tree_energy", .unit = WM_UNIT_JOULES,
      .run = { "energy.attributed.tree", RUN(energy.split.tree), RUN_ORIGIN(energy.origin),
               .uncertainty = offsetof(struct wm_report, energy.split.tree_uncertainty) },
      .region = { "energy.tree.energy", "uncertainty_percent", .only_known = true,
                  REGION(tree_energy) },
      .gpu = { GPU(split.tree),
               .uncertainty = offsetof(struct wm_gpu_usage, split.tree_uncertainty) },
      .device = { DEVICE(split.tree), .uncertainty = offsetof(struct wm_device_energy,
                                                              split.tree_uncertainty) },
      .is_compared = true, .is_detail = true },
    { .key = "idle_energy", .unit = WM_UNIT_JOULES,
      .run = { "energy.attributed.idle", RUN(energy.split.idle),
               RUN_ORIGIN(energy.origin) },
      .gpu = { GPU(split.idle) }, .device = { DEVICE(split.idle) } },
    { .key = "rest_energy", .unit = WM_UNIT_JOULES,
      .run = { "energy.attributed.rest", RUN(energy.split.rest),
               RUN_ORIGIN(energy.origin) },
      .gpu = { GPU(split.rest) }, .device = { DEVICE(split.rest) } },
    { .key = "power", .unit = WM_UNIT_WATTS,
      .run = { "energy.power.mean", RUN(power.mean), RUN_ORIGIN(energy.origin),
               POWER_OF(struct wm_report, energy) },
      .gpu = { "power.mean", GPU(power.mean) },
      .device = { "power", DEVICE(power),
                  POWER_OF(struct wm_device_energy, figure) } },
    { .key = "max_power", .unit = WM_UNIT_WATTS,
      .run = { "energy.power.max", RUN(power.max), RUN_ORIGIN(energy.origin) },
      .gpu = { "power.max", GPU(power.max) } },
    { .key = "idle_power", .unit = WM_UNIT_WATTS,
      .gpu = { GPU(idle_power) }, .device = { DEVICE(idle_power) } },

    { .key = "utilization", .unit = WM_UNIT_RATIO,
      .gpu = { "utilization.mean", GPU(utilization.mean) } },
    { .key = "max_utilization", .unit = WM_UNIT_RATIO,
      .gpu = { "utilization.max", GPU(utilization.max) } },
    { .key = "mean_memory", .unit = WM_UNIT_BYTES,
      .gpu = { "memory.mean", GPU(memory.mean) } },
    { .key = "max_memory", .unit = WM_UNIT_BYTES,
      .gpu = { "memory.max", GPU(memory.max) } },
    { .key = "memory_capacity", .unit = WM_UNIT_BYTES,
      .gpu = { "memory.capacity", GPU(memory_capacity) } },
    { .key = "tree_memory", .unit = WM_UNIT_BYTES,
      .gpu = { "memory.tree_max", GPU(tree_memory_max) } },

    { .key = "temperature", .unit = WM_UNIT_CELSIUS,
      .run = { "temperature.cpu.mean", RUN(cpu_temperature.mean) },
      .gpu = { "temperature.mean", GPU(temperature.mean) } },
    { .key = "max_temperature", .unit = WM_UNIT_CELSIUS, .label = "Temperature",
      .run = { "temperature.cpu.max", RUN(cpu_temperature.max) },
      .gpu = { "temperature.max", GPU(temperature.max) } },

    ONE(WM_UNIT_COUNT, "processes.seen", .compute = processes_seen),
    ONE(WM_UNIT_COUNT, "processes.max_at_once", RUN(max_processes)),

    /* JSON has them where there are regions. */
    { .key = "region_threads", .unit = WM_UNIT_COUNT, .run = { NUMBER(WM_FIGURE_SIZE, regions.threads) } },
    { .key = "region_processes", .unit = WM_UNIT_COUNT,
      .run = { NUMBER(WM_FIGURE_SIZE, regions.processes) } },
    { .key = "lost_calls", .unit = WM_UNIT_COUNT, .run = { OF_RESULT(lost_regions) } },
    { .key = "stray_ends", .unit = WM_UNIT_COUNT, .run = { OF_RESULT(stray_regions) } },
    { .key = "dropped_events", .unit = WM_UNIT_COUNT, .run = { OF_RESULT(dropped_regions) } },

    ONE(WM_UNIT_SECONDS, "tool.interval", .compute = tool_interval),
    ONE(WM_UNIT_COUNT, "tool.ticks", NUMBER(WM_FIGURE_UINT64, result.ticks)),
    ONE(WM_UNIT_COUNT, "tool.late_ticks", .compute = tool_late_ticks),
    ONE(WM_UNIT_COUNT, "tool.missed_ticks", .compute = tool_missed_ticks),
    ONE(WM_UNIT_SECONDS, "tool.cpu_seconds", .compute = tool_cpu_seconds),
    ONE(WM_UNIT_BYTES, "tool.max_rss", .compute = tool_max_rss),
};
/* clang-format on */

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct wm_figure_row *wm_figure_row(size_t index)
{
    return index < ROWS ? &rows[index] : NULL;
}

const char *wm_figure_key(const struct wm_figure_row *row)
{
    return row->key ? row->key : row->run.path;
}

const struct wm_figure_row *wm_figure_find(const char *key)
{
    for (size_t i = 0; i < ROWS; i++) {
        const char *path = rows[i].run.path;
        if (strcmp(wm_figure_key(&rows[i]), key) == 0 || (path && strcmp(path, key) == 0))
            return &rows[i];
    }
    return NULL;
}

const struct wm_figure_place *wm_figure_place(const struct wm_figure_row *row,
                                              enum wm_report_kind kind)
{
    const struct wm_figure_place *const places[] = {
        [WM_REPORT_RUN] = &row->run,       [WM_REPORT_GPU] = &row->gpu,
        [WM_REPORT_DEVICE] = &row->device, [WM_REPORT_REGION] = &row->region,
        [WM_REPORT_PATH] = &row->region,   [WM_REPORT_REST] = &row->region,
    };
    const struct wm_figure_place *place = places[kind];

    return place->value || place->compute || place->kind ? place : NULL;
}

static const struct wm_value *value_at(const void *of, size_t offset)
{
    return (const void *)((const char *)of + offset);
}

static struct wm_value number_at(const struct wm_figure_place *place, const void *of)
{
    const void *at = (const char *)of + place->number;

    switch (place->kind) {
    case WM_FIGURE_INT:
        return wm_value_known(*(const int *)at);
    case WM_FIGURE_SIZE:
        return wm_value_known((double)*(const size_t *)at);
    default:
        return wm_value_known((double)*(const uint64_t *)at);
    }
}

static const char *why_no_usage(const struct wm_report *report)
{
    const struct wm_usage *usage = &report->result.usage;

    if (!report->complete)
        return no_result;
    if (report->run.mode && strcmp(report->run.mode, "run") != 0)
        return "only a command that wattmeter started has it";
    return usage->user_seconds.known ? usage->io_note : "the recording does not have it";
}

static struct wm_value usage_of(const struct wm_report *report,
                                const struct wm_known *known)
{
    const char *note = report->result.usage.note;

    if (!known->known)
        return wm_value_missing(why_no_usage(report));
    return (struct wm_value) { known->number, true, note[0] ? note : NULL };
}

static struct wm_value event_of(const struct wm_report *report,
                                const struct wm_known *known)
{
    if (known->known)
        return wm_value_known(known->number);
    return wm_value_missing(report->result.events_note[0] ? report->result.events_note
                                                          : "it was not counted");
}

static struct wm_value find_value(const struct wm_figure_place *place,
                                  const struct wm_report *report, const void *of)
{
    if (place->compute)
        return place->compute(of);
    if (place->needs_result && !report->complete)
        return wm_value_missing(no_result);
    if (place->kind == WM_FIGURE_USAGE)
        return usage_of(report, (const void *)((const char *)of + place->number));
    if (place->kind == WM_FIGURE_EVENT)
        return event_of(report, (const void *)((const char *)of + place->number));
    return place->kind ? number_at(place, of) : *value_at(of, place->value);
}

/* The ends of the range lie where they lie for the whole, in proportion. */
static void scale_range(struct wm_found *found, const struct wm_value *whole)
{
    const double factor = found->value.number / whole->number;

    found->low.number *= factor;
    found->high.number *= factor;
    found->low.known &= isfinite(factor);
}

struct wm_found wm_figure_of(const struct wm_figure_row *row, enum wm_report_kind kind,
                             const struct wm_report *report, const void *of)
{
    const struct wm_figure_place *place = wm_figure_place(row, kind);
    struct wm_found found = { .origin = WM_MEASURED };
    const void *origin_of = of;
    size_t origin = place->origin;

    /* What a region used was measured as that of the run was. */
    if (place == &row->region) {
        origin_of = report;
        origin = row->run.origin;
    }
    found.value = find_value(place, report, of);
    if (place->uncertainty)
        found.uncertainty = *value_at(of, place->uncertainty);
    if (place->low) {
        found.low = *value_at(of, place->low);
        found.high = *value_at(of, place->high);
    }
    if (place->range_of)
        scale_range(&found, value_at(of, place->range_of));
    if (origin)
        memcpy(&found.origin, (const char *)origin_of + origin, sizeof(found.origin));
    return found;
}
