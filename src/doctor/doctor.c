/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - opens every source, looks at it often, and says how it is. */
#include "wattmeter/doctor.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base_clock.h"
#include "base/base_error.h"
#include "doctor/doctor_advice.h"
#include "doctor/doctor_pace.h"
#include "source/source_config.h"
#include "track/track_account.h"

/* Sensors change every 10 ms at best; this is as often as they can be asked
 * without being a load themselves. */
#define LOOK_NS (2 * WM_NS_PER_MS)

/* Over less than this nobody can say that a counter is dead. */
#define DEAD_AFTER_NS WM_NS_PER_S

/* What is known of one source. */
struct patient {
    struct wm_doctor_source finding;
    struct wm_source *source; /* NULL where it could not be opened */
    struct wm_doctor_channel *channels;
    struct wm_reading *readings;
    struct wm_pace *paces; /* one per channel */
    size_t looks;
    int64_t asking_ns;         /* what all looks took */
    int64_t first_ns, last_ns; /* when they were */
    char detail[sizeof(((struct wm_error *)0)->text)];
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

static int admit(struct patient *patient, const char *name,
                 const struct wm_source_config *config, struct wm_error *err)
{
    struct wm_error why = { 0 };

    patient->finding.name = name;
    patient->finding.summary = wm_source_summary(name);
    int status = wm_source_open(name, config, &patient->source, &why);
    if (status == WM_ENOMEM)
        return wm_fail(err, WM_ENOMEM, "%s", why.text);
    if (status < 0) {
        patient->finding.health = health_of_status(status);
        memcpy(patient->detail, why.text, sizeof(patient->detail));
        patient->finding.detail = patient->detail;
        return WM_OK;
    }

    size_t count = wm_source_channel_count(patient->source);
    patient->channels = calloc(count + 1, sizeof(*patient->channels));
    patient->readings = calloc(count + 1, sizeof(*patient->readings));
    patient->paces = calloc(count + 1, sizeof(*patient->paces));
    if (!patient->channels || !patient->readings || !patient->paces)
        return wm_fail(err, WM_ENOMEM, "doctor: out of memory");
    for (size_t i = 0; i < count; i++)
        patient->channels[i].channel = wm_source_channel(patient->source, i);
    patient->finding.channels = patient->channels;
    patient->finding.channel_count = count;
    patient->finding.detail = wm_source_detail(patient->source);
    return WM_OK;
}

static void look(struct patient *patient)
{
    size_t count = patient->finding.channel_count;
    int64_t begun_ns = wm_clock_monotonic_ns();

    if (wm_source_read(patient->source, patient->readings, count, NULL) < 0) {
        for (size_t i = 0; i < count; i++)
            patient->readings[i] = (struct wm_reading) { begun_ns, 0, WM_READING_FAILED };
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

static void look_for(struct wm_doctor *doctor, int64_t duration_ns)
{
    const struct timespec rest = { 0, LOOK_NS };
    int64_t end_ns = wm_clock_monotonic_ns() + duration_ns;

    do {
        for (size_t i = 0; i < doctor->count; i++) {
            if (doctor->patients[i].source)
                look(&doctor->patients[i]);
        }
        nanosleep(&rest, NULL);
    } while (wm_clock_monotonic_ns() < end_ns);
}

static void conclude_channel(const struct patient *patient, size_t index)
{
    struct wm_doctor_channel *channel = &patient->channels[index];
    const struct wm_pace *pace = &patient->paces[index];

    channel->state = patient->readings[index].state;
    channel->value = patient->readings[index].value;
    channel->changes = pace->changes;
    channel->period_s = wm_pace_period_s(pace);
    if (channel->state != WM_READING_OK) {
        channel->why = wm_source_why(patient->source, index);
        if (!channel->why)
            channel->why = "it gave no reason";
        return;
    }
    channel->dead = channel->channel->kind == WM_COUNTER &&
                    strcmp(channel->channel->unit, "J") == 0 && pace->changes == 0 &&
                    patient->last_ns - patient->first_ns >= DEAD_AFTER_NS;
}

static void conclude(struct patient *patient)
{
    struct wm_doctor_source *finding = &patient->finding;
    size_t good = 0, bad = 0, denied = 0;

    for (size_t i = 0; i < finding->channel_count; i++) {
        conclude_channel(patient, i);
        const struct wm_doctor_channel *channel = &patient->channels[i];
        good += channel->state == WM_READING_OK && !channel->dead;
        denied += channel->state == WM_READING_DENIED;
        /* What a device never had is no illness. */
        bad += channel->dead || (channel->state != WM_READING_OK &&
                                 channel->state != WM_READING_UNSUPPORTED);
    }
    if (good > 0)
        finding->health = bad > 0 ? WM_HEALTH_PARTLY : WM_HEALTH_GOOD;
    else
        finding->health = denied > 0 ? WM_HEALTH_DENIED : WM_HEALTH_BROKEN;
    finding->read_s = (double)patient->asking_ns / 1e9 / (double)patient->looks;
    if (patient->looks > 1)
        finding->look_s = (double)(patient->last_ns - patient->first_ns) / 1e9 /
                          (double)(patient->looks - 1);
}

/* The tracker is no source, but how exactly it counts CPU time depends on what
 * the machine allows as well. */
static int examine_tracker(struct patient *patient)
{
    int perf_errno = wm_account_check(&patient->finding.detail);

    patient->finding.name = "tracker";
    patient->finding.summary = "CPU time of a command and all that it starts";
    patient->finding.health = perf_errno == 0 ? WM_HEALTH_GOOD : WM_HEALTH_PARTLY;
    return perf_errno;
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

static int examine(struct wm_doctor *doctor, const struct wm_source_config *config,
                   int64_t duration_ns, struct wm_error *err)
{
    const char *name;

    for (size_t i = 0; (name = wm_source_name(i)) != NULL; i++) {
        int status = admit(&doctor->patients[doctor->count++], name, config, err);
        if (status < 0)
            return status;
    }
    look_for(doctor, duration_ns);

    const struct wm_source_config full = wm_source_config_complete(config);
    for (size_t i = 0; i < doctor->count; i++) {
        if (doctor->patients[i].source)
            conclude(&doctor->patients[i]);
        take_advice(&doctor->patients[i], &full, 0);
    }
    struct patient *tracker = &doctor->patients[doctor->count++];
    take_advice(tracker, &full, examine_tracker(tracker));
    return WM_OK;
}

int wm_doctor_examine(const struct wm_source_config *config, int64_t duration_ns,
                      struct wm_doctor **ret_doctor, struct wm_error *err)
{
    size_t count = 1; /* the tracker */

    while (wm_source_name(count - 1))
        count++;
    struct wm_doctor *doctor = calloc(1, sizeof(*doctor));
    if (doctor)
        doctor->patients = calloc(count, sizeof(*doctor->patients));
    if (!doctor || !doctor->patients) {
        wm_doctor_free(doctor);
        return wm_fail(err, WM_ENOMEM, "doctor: out of memory");
    }

    int status =
        examine(doctor, config, duration_ns ? duration_ns : WM_DOCTOR_DURATION_NS, err);
    if (status < 0) {
        wm_doctor_free(doctor);
        return status;
    }
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
