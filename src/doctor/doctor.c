/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - opens every source, reads it often, and reports its health. */
#include "doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "base/text/base_remarks.h"
#include "source/set/source_set.h"
#include "source/source_config.h"
#include "source/source_traits.h"
#include "track/account/track_account.h"

/* How long an opening is waited for: as long as `wattmeter info` does. */
#define OPEN_S 4

/* Sensors change every 10 ms at best; this is as often as they can be asked
 * without being a load themselves. */
#define LOOK_NS (2 * WM_NS_PER_MS)

/* Readings that show two times between changes, from which a period is taken. */
enum { LOOKS_LEAST = 4 };

/* Over less than this nobody can say that a counter is dead. */
#define DEAD_AFTER_NS WM_NS_PER_S

/* What stands for the tracker in the place of a source's name. */
#define TRACKER "tracker"

/* What is known of one source. */
struct patient {
    struct wm_doctor_source finding;
    struct wm_source *source; /* the set's; NULL where it could not be opened */
    struct wm_doctor_channel *channels;
    struct wm_reading *readings;
    struct wm_pace *paces;    /* one per channel */
    struct wm_remarks silent; /* labels of GPUs that do not answer: "gpu2" */
    size_t looks;
    int64_t asking_ns;         /* time of all readings */
    int64_t first_ns, last_ns; /* when they were */
    struct wm_error failure;   /* of opening it or of the last reading; else without text */
    struct wm_advice advice;
};

struct wm_doctor {
    struct patient *patients;
    size_t count;
};

const char *wm_health_name(enum wm_health health)
{
    static const char *const names[] = {
        [WM_HEALTH_GOOD] = "good",     [WM_HEALTH_PARTLY] = "partly",
        [WM_HEALTH_ABSENT] = "absent", [WM_HEALTH_DENIED] = "denied",
        [WM_HEALTH_BROKEN] = "broken",
    };

    return (size_t)health < sizeof(names) / sizeof(names[0]) ? names[health] : "unknown";
}

static enum wm_health health_of_status(int status)
{
    switch (status) {
    case WM_ENODEV:
        return WM_HEALTH_ABSENT;
    case WM_EACCES:
        return WM_HEALTH_DENIED;
    default:
        return WM_HEALTH_BROKEN;
    }
}

/* Errors name their source, as they are mostly told alone. Here the name stands
 * before them anyway. */
static const char *without_name(const char *text, const char *name)
{
    size_t length = strlen(name);

    while (strncmp(text, name, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2;
    return text;
}

void wm_pace_note(struct wm_pace *pace, int64_t when_ns, double value)
{
    if (pace->begun && value != pace->value) {
        /* When the value before the first change came up, nobody saw. */
        if (pace->changes > 0 && pace->kept < WM_PACE_KEPT)
            pace->between_ns[pace->kept++] = when_ns - pace->changed_ns;
        pace->changes++;
        pace->changed_ns = when_ns;
    }
    if (!pace->begun)
        pace->begun_ns = when_ns;
    pace->begun = true;
    pace->seen_ns = when_ns;
    pace->value = value;
}

int64_t wm_pace_watched_ns(const struct wm_pace *pace)
{
    return pace->seen_ns - pace->begun_ns;
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

double wm_pace_period_s(const struct wm_pace *pace)
{
    int64_t sorted[WM_PACE_KEPT];

    if (pace->kept < 2)
        return 0;
    memcpy(sorted, pace->between_ns, pace->kept * sizeof(*sorted));
    qsort(sorted, pace->kept, sizeof(*sorted), compare);
    return (double)(sorted[(pace->kept - 1) / 2] + sorted[pace->kept / 2]) / 2e9;
}

static bool has_gpu(const struct wm_source *source, const char *label)
{
    for (size_t i = 0; i < wm_source_channel_count(source); i++) {
        const struct wm_channel *channel = wm_source_channel(source, i);
        if (channel->device_kind == WM_DEVICE_GPU && strcmp(channel->label, label) == 0)
            return true;
    }
    return false;
}

/* GPUs that the driver counts but that would not say who they are, and so have no
 * channel to show it. Finds none where only some GPUs were asked for, nor where none is
 * known by its number. */
static int find_silent(struct patient *patient, const char *gpus, struct wm_error *err)
{
    size_t count = wm_source_device_count(patient->source);

    if (gpus && strcmp(gpus, "all") != 0)
        return WM_OK;
    for (size_t i = 0; i < count; i++) {
        char label[16];
        snprintf(label, sizeof(label), "gpu%u", (unsigned)i);
        if (!has_gpu(patient->source, label) &&
            wm_remarks_add(&patient->silent, "%s", label) < 0)
            return wm_fail_memory(err, "doctor");
    }
    if (patient->silent.count < count) {
        patient->finding.silent = (const char *const *)patient->silent.all;
        patient->finding.silent_count = patient->silent.count;
    }
    return WM_OK;
}

static int admit(struct patient *patient, const char *name,
                 const struct wm_source_config *config, struct wm_error *err)
{
    patient->finding.name = name;
    patient->finding.summary = wm_source_summary(name);
    int status =
        wm_source_open_within(name, config, OPEN_S, &patient->source, &patient->failure);
    if (status == WM_ENOMEM)
        return wm_fail(err, WM_ENOMEM, "%s", patient->failure.text);
    if (status < 0) {
        patient->finding.health = health_of_status(status);
        patient->finding.detail = without_name(patient->failure.text, name);
        return WM_OK;
    }

    size_t count = wm_source_channel_count(patient->source);
    patient->channels = calloc(count + 1, sizeof(*patient->channels));
    patient->readings = calloc(count + 1, sizeof(*patient->readings));
    patient->paces = calloc(count + 1, sizeof(*patient->paces));
    if (!patient->channels || !patient->readings || !patient->paces)
        return wm_fail_memory(err, "doctor");
    for (size_t i = 0; i < count; i++)
        patient->channels[i].channel = wm_source_channel(patient->source, i);
    patient->finding.channels = patient->channels;
    patient->finding.channel_count = count;
    if (wm_source_detail(patient->source))
        patient->finding.detail = without_name(wm_source_detail(patient->source), name);

    return find_silent(patient, config->gpus, err);
}

static void look(struct patient *patient)
{
    size_t count = patient->finding.channel_count;
    int64_t begun_ns = wm_clock_monotonic_ns();

    if (wm_source_read(patient->source, patient->readings, count, &patient->failure) < 0) {
        for (size_t i = 0; i < count; i++)
            patient->readings[i] = (struct wm_reading) { begun_ns, 0, WM_READING_FAILED };
    } else {
        patient->failure.text[0] = '\0';
    }
    patient->last_ns = wm_clock_monotonic_ns();
    patient->asking_ns += patient->last_ns - begun_ns;
    if (patient->looks++ == 0)
        patient->first_ns = begun_ns;

    for (size_t i = 0; i < count; i++) {
        const struct wm_reading *reading = &patient->readings[i];
        if (reading->state == WM_READING_OK)
            wm_pace_note(&patient->paces[i], reading->when_ns, reading->value);
    }
}

static void look_once(struct wm_doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        if (doctor->patients[i].source)
            look(&doctor->patients[i]);
    }
}

/* From the first to the last reading of each of them is all of the duration, and more on
 * a machine that is too busy for as many readings as a period takes to be seen. */
static void look_for(struct wm_doctor *doctor, int64_t duration_ns)
{
    const struct timespec rest = { 0, LOOK_NS };

    look_once(doctor);
    int64_t now_ns, end_ns = wm_clock_monotonic_ns() + duration_ns;
    int looks = 1;
    do {
        nanosleep(&rest, NULL);
        now_ns = wm_clock_monotonic_ns();
        look_once(doctor);
    } while (++looks < LOOKS_LEAST || now_ns < end_ns);
}

static bool is_dead(const struct wm_channel *channel, const struct wm_pace *pace)
{
    return channel->kind == WM_COUNTER && strcmp(channel->unit, "J") == 0 &&
           pace->changes == 0 && wm_pace_watched_ns(pace) >= DEAD_AFTER_NS;
}

static void conclude_channel(const struct patient *patient, size_t index)
{
    struct wm_doctor_channel *channel = &patient->channels[index];
    const struct wm_pace *pace = &patient->paces[index];

    channel->state = patient->readings[index].state;
    channel->value = patient->readings[index].value;
    channel->changes = pace->changes;
    channel->period_s = wm_pace_period_s(pace);
    if (channel->state == WM_READING_OK) {
        channel->dead = is_dead(channel->channel, pace);
        return;
    }
    const char *why = wm_source_why(patient->source, index);
    if (patient->failure.text[0])
        why = patient->failure.text;
    channel->why = why ? without_name(why, patient->finding.name) : "it gave no reason";
}

/* What a device never had is no illness, and where there is nothing else there is
 * nothing to measure; nor is what takes longer than it was looked at. */
static enum wm_health judge(const struct wm_doctor_source *finding)
{
    size_t good = 0, denied = 0, pending = 0, bad = finding->silent_count;

    for (size_t i = 0; i < finding->channel_count; i++) {
        const struct wm_doctor_channel *channel = &finding->channels[i];
        if (channel->state == WM_READING_UNSUPPORTED)
            continue;
        if (channel->state == WM_READING_OK && !channel->dead)
            good++;
        else if (channel->state == WM_READING_NONE)
            pending++;
        else
            bad++;
        denied += channel->state == WM_READING_DENIED;
    }
    if (good > 0 && bad + pending == 0)
        return WM_HEALTH_GOOD;
    if (good + pending > 0)
        return WM_HEALTH_PARTLY;
    if (denied > 0)
        return WM_HEALTH_DENIED;
    return bad > 0 ? WM_HEALTH_BROKEN : WM_HEALTH_ABSENT;
}

static void conclude(struct patient *patient)
{
    struct wm_doctor_source *finding = &patient->finding;

    for (size_t i = 0; i < finding->channel_count; i++)
        conclude_channel(patient, i);
    finding->health = judge(finding);
    finding->read_s = (double)patient->asking_ns / 1e9 / (double)patient->looks;
    finding->look_s =
        (double)(patient->last_ns - patient->first_ns) / 1e9 / (double)(patient->looks - 1);
}

/* The tracker is no source, but how exactly it counts CPU time depends on what
 * the machine allows as well. */
static int examine_tracker(struct patient *patient)
{
    int perf_errno = wm_account_check(&patient->finding.detail);

    patient->finding.name = TRACKER;
    patient->finding.summary = "CPU time of a command and all that it starts";
    patient->finding.health = perf_errno == 0 ? WM_HEALTH_GOOD : WM_HEALTH_PARTLY;
    return perf_errno;
}

static bool lacks_some(const struct wm_doctor_source *source)
{
    for (size_t i = 0; i < source->channel_count; i++) {
        if (source->channels[i].state == WM_READING_DENIED)
            return true;
    }
    return source->health == WM_HEALTH_DENIED;
}

/* A task's own counters are allowed up to level 2. */
static void advise_tracker(const struct wm_source_config *config, int perf_errno,
                           struct wm_advice *advice)
{
    if (perf_errno == 0)
        return;
    if (wm_permission_is_paranoid(config->procfs, 2))
        wm_advice_add(
            advice,
            "this kernel forbids perf counters to all but root, so that CPU time of "
            "short-lived children may be missed",
            "sudo sysctl kernel.perf_event_paranoid=2");
    else
        wm_advice_add(
            advice,
            "perf counters are forbidden here, as containers do, so that CPU time of "
            "short-lived children may be missed",
            "docker run --cap-add PERFMON --security-opt seccomp=unconfined ...");
}

void wm_advise(const struct wm_doctor_source *source, const struct wm_source_config *config,
               int perf_errno, struct wm_advice *ret_advice)
{
    const struct wm_source_case asked = {
        .config = config,
        .is_absent = source->health == WM_HEALTH_ABSENT,
        .is_denied = source->health == WM_HEALTH_DENIED,
        .lacks_some = lacks_some(source),
        .advice = ret_advice,
    };

    ret_advice->count = 0;
    wm_source_advise(source->name, &asked);
    if (strcmp(source->name, TRACKER) == 0)
        advise_tracker(config, perf_errno, ret_advice);
}

static void take_advice(struct patient *patient, const struct wm_source_config *config,
                        int perf_errno)
{
    wm_advise(&patient->finding, config, perf_errno, &patient->advice);
    patient->finding.advice = patient->advice.list;
    patient->finding.advice_count = patient->advice.count;

    /* A sensor that could not be opened has no channel to show it. */
    if (patient->advice.count > 0 && patient->finding.health == WM_HEALTH_GOOD)
        patient->finding.health = WM_HEALTH_PARTLY;
}

static int admit_all(struct wm_doctor *doctor, const struct wm_source_config *config,
                     struct wm_error *err)
{
    int status = WM_OK;
    size_t count = 0;

    while (wm_source_name(count))
        count++;
    doctor->patients = calloc(count + 1, sizeof(*doctor->patients)); /* the tracker */
    if (!doctor->patients)
        return wm_fail_memory(err, "doctor");
    for (size_t i = 0; i < count && status == WM_OK; i++)
        status = admit(&doctor->patients[doctor->count++], wm_source_name(i), config, err);
    return status;
}

static void examine(struct wm_doctor *doctor, const struct wm_source_config *config,
                    int64_t duration_ns)
{
    look_for(doctor, duration_ns);
    for (size_t i = 0; i < doctor->count; i++) {
        if (doctor->patients[i].source)
            conclude(&doctor->patients[i]);
        take_advice(&doctor->patients[i], config, 0);
    }
    struct patient *tracker = &doctor->patients[doctor->count++];
    take_advice(tracker, config, examine_tracker(tracker));
}

int wm_doctor_examine(const struct wm_source_config *config, int64_t duration_ns,
                      struct wm_doctor **ret_doctor, struct wm_error *err)
{
    struct wm_source_config full;
    int status = wm_source_config_complete(config, &full, err);

    if (status < 0)
        return status;
    struct wm_doctor *doctor = calloc(1, sizeof(*doctor));
    if (!doctor)
        return wm_fail_memory(err, "doctor");
    status = admit_all(doctor, &full, err);
    if (status < 0) {
        wm_doctor_free(doctor);
        return status;
    }
    examine(doctor, &full, duration_ns ? duration_ns : WM_DOCTOR_DURATION_NS);
    *ret_doctor = doctor;
    return WM_OK;
}

void wm_doctor_free(struct wm_doctor *doctor)
{
    if (!doctor)
        return;
    for (size_t i = 0; i < doctor->count; i++) {
        struct patient *patient = &doctor->patients[i];
        wm_source_close(patient->source);
        free(patient->channels);
        free(patient->readings);
        free(patient->paces);
        wm_remarks_release(&patient->silent);
    }
    free(doctor->patients);
    free(doctor);
}

const struct wm_doctor_source *wm_doctor_source(const struct wm_doctor *doctor,
                                                size_t index)
{
    return index < doctor->count ? &doctor->patients[index].finding : NULL;
}

bool wm_doctor_can_measure(const struct wm_doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        enum wm_health health = doctor->patients[i].finding.health;
        if (doctor->patients[i].source &&
            (health == WM_HEALTH_GOOD || health == WM_HEALTH_PARTLY))
            return true;
    }
    return false;
}
