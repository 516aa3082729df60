/* SPDX-License-Identifier: Apache-2.0 */
/* source_nvml_pace.c - see source_nvml_pace.h. */
#include "source/gpu/nvml/source_nvml_pace.h"

#include "base/base_clock.h"

/* The budget of each kind of call is 0.0625 % of a core over all GPUs: with one GPU a call
 * is made again after 1,600 times the CPU time that it takes. On an H200 all that is asked
 * at every sample takes 0.4 to 0.6 % of a core at 10 Hz, of 0.7 %. */
#define TIMES 1600

/* A counter is read at least so often. NVML's has 64 bits of mJ and does not wrap; one of
 * 32 bits would in 100 minutes at 700 W. */
#define LONGEST_NS (60 * WM_NS_PER_S)

/* A call that takes less CPU time than this needs no limit. */
#define CHEAP_NS 50000

/* The first call may have to start something in the driver: the next one is made within
 * this time, to learn the usual cost. */
#define FIRST_NS WM_NS_PER_S

/* The smoothed cost follows a new one by this part. */
#define SMOOTH 4

/* One of so many cheap calls is timed, as timing costs, too. */
enum { CHEAP_CALLS = 16 };

int64_t nvml_pace_begin(const struct nvml_pace *pace)
{
    bool is_of_interest =
        pace->calls < 2 || nvml_pace_costs(pace) || pace->calls % CHEAP_CALLS == 0;

    return is_of_interest ? wm_clock_thread_cpu_ns() : -1;
}

void nvml_pace_end(struct nvml_pace *pace, int64_t now_ns, int64_t begun_ns)
{
    if (begun_ns < 0)
        pace->calls++;
    else
        nvml_pace_note(pace, now_ns, wm_clock_thread_cpu_ns() - begun_ns);
}

bool nvml_pace_costs(const struct nvml_pace *pace)
{
    return pace->cost_ns >= CHEAP_NS;
}

bool nvml_pace_is_due(const struct nvml_pace *pace, int64_t now_ns, bool is_end)
{
    return is_end || now_ns >= pace->due_ns;
}

void nvml_pace_note(struct nvml_pace *pace, int64_t now_ns, int64_t cpu_ns)
{
    int64_t gpus = pace->gpus > 0 ? (int64_t)pace->gpus : 1;
    int64_t longest_ns = LONGEST_NS;

    if (pace->calls < 2)
        pace->cost_ns = cpu_ns;
    else
        pace->cost_ns += (cpu_ns - pace->cost_ns) / SMOOTH;
    if (pace->calls++ == 0)
        longest_ns = FIRST_NS * gpus < LONGEST_NS ? FIRST_NS * gpus : LONGEST_NS;
    int64_t pause_ns = nvml_pace_costs(pace) ? TIMES * gpus * pace->cost_ns : 0;
    pace->due_ns = now_ns + (pause_ns < longest_ns ? pause_ns : longest_ns);
}
