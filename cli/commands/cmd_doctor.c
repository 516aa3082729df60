/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor.c - `wattmeter doctor`: what can be measured here, and why not. */
#include <unistd.h>

#include "output.h"
#include "wattmeter/doctor.h"

struct doctor_args {
    bool json;
    int64_t duration_ns;
};

static const struct cmd_option doctor_options[] = {
    { .name = "json",
      .slot = offsetof(struct doctor_args, json),
      .help = "print the results as JSON" },
    { .name = "duration",
      .type = CMD_DURATION,
      .slot = offsetof(struct doctor_args, duration_ns),
      .placeholder = "TIME",
      .help = "how long to observe the values (3s)",
      .min = "10ms",
      .max = "1h" },
    { 0 },
};
static const struct cmd_option *const options[] = { doctor_options, NULL };

static int run_doctor(const void *opaque, const struct cmd_streams *io)
{
    const struct doctor_args *args = opaque;
    enum wm_format format = args->json ? WM_FORMAT_JSON : WM_FORMAT_TEXT;
    int64_t duration_ns = args->duration_ns ? args->duration_ns : WM_DOCTOR_DURATION_NS;
    struct wm_doctor *doctor;
    struct wm_error err;

    if (isatty(fileno(io->chat)) && duration_ns >= INT64_C(1000000000))
        fprintf(io->chat, "watching how often values change, %.3g s ...\n",
                (double)duration_ns / 1e9);
    if (wm_doctor_examine(NULL, duration_ns, &doctor, &err) < 0)
        return output_failure("doctor", &err, io);

    int status = wm_doctor_print(doctor, format, io->out, &err);
    int code = wm_doctor_can_measure(doctor) ? CMD_DONE : CMD_FAILED;
    wm_doctor_free(doctor);
    return status < 0 ? output_failure("doctor", &err, io) : code;
}

const struct cmd cmd_doctor = {
    .name = "doctor",
    .summary = "Check which sensors work on this machine and how to fix the rest.",
    .details = "Checks whether each source is available and readable, and measures how "
               "often its values change. If a permission is missing, it prints the command "
               "that grants it. It changes nothing. The exit status is 1 only if no sensor "
               "works.",
    .example = "wattmeter doctor",
    .options = options,
    .args_size = sizeof(struct doctor_args),
    .run = run_doctor,
};
