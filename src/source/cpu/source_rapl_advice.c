/* SPDX-License-Identifier: Apache-2.0 */
/* source_rapl_advice.c - what keeps the CPUs' energy counters from being read. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "source/cpu/source_rapl.h"
#include "source/source_advice.h"

enum { PATH_SIZE = 512 };

/* As it is installed beside the program; false where it is not. */
static bool find_script(const char *program, char *path, size_t size)
{
    const char *name = strrchr(program, '/');
    const char *folder = name ? memrchr(program, '/', (size_t)(name - program)) : NULL;

    if (!folder)
        return false;
    int length = snprintf(path, size, "%.*s/share/wattmeter/rapl-permissions.sh",
                          (int)(folder - program), program);
    return length < (int)size && access(path, R_OK) == 0;
}

/* To this user or a group, never to all: who reads the counters closely can learn
 * what others compute. */
static void advise_powercap(const struct wm_source_case *asked, const char *program)
{
    static const char problem[] =
        "the energy counters of the CPU in powercap are for root alone, as they tell much "
        "of what is computed; rapl-permissions.sh opens them to a group for good";
    char script[PATH_SIZE], user[WM_PERMISSION_NAME_SIZE];

    if (!wm_permission_is_refused(asked->config->sysfs, "class/powercap/*:*/energy_uj"))
        return;
    wm_permission_user(user, sizeof(user));
    if (wm_file_is_same(asked->config->sysfs, "/sys") &&
        find_script(program, script, sizeof(script)))
        wm_advice_add(asked->advice, problem, "sudo sh %s --user %s   # then log in again",
                      script, user);
    wm_advice_add(asked->advice, problem,
                  "sudo chown %s %s/class/powercap/*:*/energy_uj   # until the next start",
                  user, asked->config->sysfs);
}

/* The capability is for one program; the level of the whole kernel, which opens the
 * counters to everybody, is told only where there is no such program. */
static void advise_perf(const struct wm_source_case *asked, const char *program)
{
    char pmu[PATH_SIZE];

    if (snprintf(pmu, sizeof(pmu), "%s/bus/event_source/devices/power/type",
                 asked->config->sysfs) >= PATH_SIZE ||
        access(pmu, F_OK) != 0 || !wm_permission_is_paranoid(asked->config->procfs, 0))
        return;
    if (wm_permission_is_ours(program))
        wm_permission_capability(
            asked->advice,
            "this kernel keeps the perf events of the whole machine, energy among them, "
            "for root and programs with CAP_PERFMON",
            "cap_perfmon+ep", program);
    else
        wm_advice_add(
            asked->advice,
            "this kernel keeps the perf events of the whole machine, energy among "
            "them, for root; this opens them to every user",
            "sudo sysctl kernel.perf_event_paranoid=0");
}

void wm_rapl_advise(const struct wm_source_case *asked)
{
    char program[WM_ADVICE_SIZE];

    if (!asked->lacks_some)
        return;
    wm_permission_program(program, sizeof(program));
    advise_powercap(asked, program);
    advise_perf(asked, program);
    if (asked->advice->count == 0 && wm_permission_is_refused("/dev", "cpu/*/msr"))
        wm_advice_add(asked->advice,
                      "the energy counters of the CPU can be read by /dev/cpu/*/msr only, "
                      "which is for root and programs with CAP_SYS_RAWIO",
                      NULL);
}
