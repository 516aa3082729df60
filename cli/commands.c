/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - every command there is, in the order of --help. */
#include "cmd.h"

extern const struct cmd cmd_run;
extern const struct cmd cmd_attach;
extern const struct cmd cmd_watch;
extern const struct cmd cmd_cap;
extern const struct cmd cmd_info;
extern const struct cmd cmd_doctor;
extern const struct cmd cmd_list;
extern const struct cmd cmd_report;
extern const struct cmd cmd_export;
extern const struct cmd cmd_plot;
extern const struct cmd cmd_analyze;
extern const struct cmd cmd_compare;
extern const struct cmd cmd_combine;
extern const struct cmd cmd_experiment;
extern const struct cmd cmd_gpu_tracker;

/* A line for each: clang-format would fill the lines. */
/* clang-format off */
const struct cmd *const cmd_table[] = {
    &cmd_run,
    &cmd_attach,
    &cmd_watch,
    &cmd_cap,
    &cmd_info,
    &cmd_doctor,
    &cmd_list,
    &cmd_report,
    &cmd_export,
    &cmd_plot,
    &cmd_analyze,
    &cmd_compare,
    &cmd_combine,
    &cmd_experiment,
    &cmd_gpu_tracker,
    NULL,
};
/* clang-format on */
