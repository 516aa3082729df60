/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze_energy.h - the joules of one device, from its energy counter, its power,
 * or both, one tick at a time.
 *
 *     struct wm_energy energy = { 0 };
 *     energy.counter_sensor = wm_sensor_of(channel);
 *     wm_energy_add(&energy, tick->when_ns, &counter, &power);     each tick
 *     wm_energy_result(&energy, &result);
 *
 * The counter is believed as long as it behaves. What it does not cover (it was
 * missing, went backwards, jumped by more than the GPU can draw, or stood still
 * for long and never made up for it) is filled in with the integral of power; a
 * counter that never moves while power is drawn is not believed at all. That it
 * shows nothing new between two ticks means nothing: sensors are slower than
 * ticks.
 *
 * What a sensor shows is always of some time ago. Of the counter's first step only
 * the part after the start counts, and after its last step the power goes on to
 * the end. That is a guess, but the joules of a counter that never goes backwards are
 * never fewer than at an earlier tick.
 *
 * Readings have their own times, before or after their tick, as drivers are slow and some
 * counters are read seldom. The joules are still those from the first tick to the last:
 * power at the ends covers the time between a reading and its tick.
 */
#ifndef WM_ANALYZE_ENERGY_H
#define WM_ANALYZE_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/base_number.h"
#include "wattmeter/source.h"

/*
 * What is known of the sensors behind joules and watts: how often
 * they have something new, how much of the time they see, and how far they are off.
 *
 *     struct wm_sensor sensor = wm_sensor_of(channel);
 *     struct wm_sensor_pace pace = { 0 };
 *     wm_sensor_pace_add(&pace, reading);                     each tick
 *     double period_s = wm_sensor_period_s(&sensor, &pace);
 */

/* The sensor of a channel of energy or power. What its source does not know is assumed,
 * and its period is the channel's where it has none of its own. */
struct wm_sensor wm_sensor_of(const struct wm_channel *channel);

/* Whether its readings carry the time that they are of, so that they lag by nothing. */
static inline bool wm_sensor_is_dated(const struct wm_sensor *sensor)
{
    return sensor->kind == WM_SENSOR_METER;
}

/* The part of the time that goes into its values, 0 to 1. */
double wm_sensor_seen(const struct wm_sensor *sensor, double period_s);

/* How often a value was seen to change. All zero is the right start. */
struct wm_sensor_pace {
    bool started;
    double value;
    int64_t first_ns, last_ns, change_ns;
    uint64_t polls, changes;
    double sum_s, square_s; /* of the times from one change to the next */

    /* Of a counter: the longest that it stood still before it moved on, and the most that
     * a period can be, as two changes followed each other so soon; 0: not known. */
    double standstill_s, most_s;
    double change_poll_s; /* time from the reading before the last change to it */
};

/* Readings that have no value, or that stand for an earlier one, are left out. */
void wm_sensor_pace_add(struct wm_sensor_pace *pace, const struct wm_reading *reading);

/* The same of a counter. One that stands still has nothing new, whatever the load is: its
 * period is no shorter than that. */
void wm_sensor_pace_count(struct wm_sensor_pace *pace, const struct wm_reading *reading);

/* The same of a gauge. If its period is unknown, the time that it stands still is taken for
 * its period. */
void wm_sensor_pace_show(struct wm_sensor_pace *pace, const struct wm_sensor *sensor,
                         const struct wm_reading *reading);

/* Its period was seen to be no longer than that; 0: it was not. */
void wm_sensor_pace_bound(struct wm_sensor_pace *pace, double most_s);

/* Time between two readings of it; 0: there were not two. */
double wm_sensor_pace_poll_s(const struct wm_sensor_pace *pace);

/* Whether readings came often enough to see the period, and showed it clearly, or
 * showed that it is shorter than published, or longer. */
bool wm_sensor_is_measured(const struct wm_sensor *sensor,
                           const struct wm_sensor_pace *pace);

/* What was measured, else what was published; 0: neither. */
double wm_sensor_period_s(const struct wm_sensor *sensor,
                          const struct wm_sensor_pace *pace);

/* The same, however long a counter has stood still meanwhile. */
double wm_sensor_beat_s(const struct wm_sensor *sensor, const struct wm_sensor_pace *pace);

/* Jumps of the counter that were too high for the power seen until then. A
 * sensor of power may lag behind a rising load, so they are judged later. */
#define WM_ENERGY_SUSPECTS 16

struct wm_energy_suspect {
    double watts;     /* the power that the jump implies */
    double joules;    /* of the jump */
    double fill;      /* J by the integral of power in that time */
    double seconds;   /* length of the jump */
    double covered_s; /* how much of it the integral covers */
};

/* Where counting begins. The counter stands then for a moment of up to a period ago. */
struct wm_energy_start {
    int64_t from_ns; /* the first reading */
    bool is_first;   /* of all: what is counted begins with the first tick */
    double early_s;  /* if so: how long before it the reading was; below 0: after it */
    double stamp_s;  /* the uncertainty of the reading's time */
    struct wm_known power; /* at the first reading */
    uint64_t steps;        /* how often it has increased since then */
    double step;           /* by how much it increased at first */
    int64_t step_ns;       /* when the first increase was seen */
    double tick_s;         /* time since the reading before the first increase */
};

/* The time at an end of what is counted for which nothing is shown. */
struct wm_energy_edge {
    double lag_s;  /* how long ago what is shown was */
    double blur_s; /* how far off this may be */
    double watts;  /* assumed for that time */
    double step;   /* W by which power changes there, if readings carry their own time */

    double cut_s;   /* how long before that end the reading was; below 0: after it */
    double joules;  /* between the reading and the end, by power */
    double stamp_s; /* the uncertainty of the reading's time */
};

/* Readings that carry the time that they are of: those at an end of a run, the outermost
 * first. */
enum { WM_ENERGY_READINGS = 3 };
struct wm_energy_reading {
    int64_t when_ns;
    double watts;
};

/* What powers differ by is noise up to so much of them. */
#define WM_ENERGY_NOISE 0.035

/* A load may be in step with up to so many periods of the sensor. */
enum { WM_ENERGY_ORDERS = 8 };

/* Differences of readings that are `order` apart, which make `order` sequences: the sum of
 * all changes up and down, without noise, and the sum of their squares. */
struct wm_energy_differences {
    double from[WM_ENERGY_ORDERS];
    double watts, squares;
};

/* How far powers that follow each other differ. */
struct wm_energy_variation {
    bool started;
    double last;
    int64_t last_ns;
    uint64_t count; /* of differences */
    double squares; /* sum of theirs */

    /* Of all powers but the first, which is of the time before: their spread around that
     * first one, how far they went up and down, and the highest and lowest that two
     * readings in a row show. */
    double first;
    double sum, sum_squares;
    double least, most;
    double recent[WM_ENERGY_ORDERS];

    /* By order: those one apart first. */
    struct wm_energy_differences differences[WM_ENERGY_ORDERS];
    double highest_pair, lowest_pair;
};

/* How joules grow between two readings of a counter that is not read at each tick, as
 * reading it is expensive: they follow power. What the next reading shows beyond that is
 * added in proportion to power over about as long again, as it was not drawn in one moment.
 */
struct wm_energy_shape {
    double told, integral; /* at the last reading: J, and J by power */
    double ratio;          /* of the counter's joules to those of power */
    double left;           /* J that the last reading showed beyond `told`, */
    double span;           /* to be added while power makes this many J */
};

/* All zero, but for the sensors and the driver, is the right start. */
struct wm_energy {
    struct wm_sensor counter_sensor, power_sensor;
    bool has_driver; /* readings are a driver's answers, which may take long */
    struct wm_sensor_pace counter_pace, power_pace;
    struct wm_energy_variation counter_variation, power_variation;

    bool started;
    int64_t first_ns, last_ns; /* of the ticks */

    /* Power, and its integral over the time in which it was there. */
    bool powered; /* at the last tick */
    double power, first_power, max_power;
    int64_t power_ns;
    struct wm_energy_reading power_before; /* the one before the last, if `is_joined` */
    bool is_joined;
    double early_s; /* how long before the first tick the first one was, as above */
    double integral, covered_s;
    double hole_s;    /* the rest of the time */
    double bridged_s; /* of the covered time, what gaps between dated readings are */

    struct wm_energy_reading first_readings[WM_ENERGY_READINGS],
        last_readings[WM_ENERGY_READINGS];
    size_t reading_count; /* as many as that at most */

    /* The counter, and what was filled in for it. */
    bool counted; /* it has been seen */
    bool present; /* at the last tick */
    double count;
    int64_t poll_ns;                    /* when it was last seen */
    double stamp_s;                     /* how far off that may be */
    double poll_joules, poll_covered_s; /* the integral of power at that time, as below */
    int64_t change_ns;                  /* when it was last seen to change */
    double total;                       /* of its increases and of the fillings */
    double filled_s;                    /* how much of the time was filled in */
    double missing_s;                   /* how much of the time could not be filled in */
    uint64_t changes, resets, implausible, stalls;
    bool stalled; /* seen to stand still for long, and not to move since */

    /* Of what is counted since the start, or since the last filling. */
    struct wm_energy_start start;
    struct wm_known beside;       /* see wm_energy_set_beside() */
    double rate;                  /* power by the last step */
    double change_tick_s;         /* time since the reading before the last step */
    struct wm_known change_power; /* at the last step */

    /* The period of the counter as seen: no longer than that, if not 0; and the time for
     * which readings in a row showed nothing new. */
    double bound_s, quiet_s;
    double longest_s; /* from one change to the next */

    /* The most that results have said since it last went backwards, `told` also of a device
     * without a counter. */
    double shown, told;
    double ahead; /* what the sensor has not shown yet, an estimate; 0 if its counter is not
                   * read at each tick, as power then fills in */
    bool has_stood;
    bool stands; /* at the last tick power was read and the counter was not */
    struct wm_energy_shape shape;

    /* From the reading in which the counter last changed, or from the start: the time to
     * the last tick, and the integral of power to its last reading with the part of the
     * time that it covers. */
    double since_s, since_integral, since_covered_s;

    struct wm_energy_suspect suspects[WM_ENERGY_SUSPECTS];
    size_t suspect_count;

    /* The utilization of the device: for how much of the time it is known, and how much of
     * that the device was busy. */
    struct wm_known busy;
    double busy_known_s, busy_s;
    double partly_busy_s; /* and for how much it was neither always busy nor never */

    /* For how long it has not moved, and between what it was; after the first second, in
     * which it may be in part that of the time before, however far it moves. */
    double settled_s, least_busy, most_busy;
};

/* What the figure rests on. */
enum wm_energy_method {
    WM_ENERGY_UNKNOWN,
    WM_ENERGY_COUNTER,
    WM_ENERGY_COUNTER_FILLED, /* with the integral of power where it has gaps */
    WM_ENERGY_INTEGRAL,
};

struct wm_energy_result {
    enum wm_energy_method method;
    double joules;
    double told;   /* the joules without what is extrapolated at the end */
    double raised; /* of the joules: so as not to be fewer than at an earlier tick */
    double frozen; /* joules that a counter may hide that does not move at the end */
    struct wm_energy_edge start, end;
    double span_s;            /* from the first tick to the last */
    double missing_s;         /* how much of it the figure leaves out */
    double filled_s;          /* how much of it has the integral instead of the counter */
    double period_s;          /* period of the sensor, or its window: the longer */
    bool is_short;            /* fewer than three of these */
    bool stuck;               /* while power was drawn the counter never moved, or */
                              /* stood still until the end */
    uint64_t resets;          /* of the counter */
    uint64_t implausible;     /* jumps of the counter */
    uint64_t stalls;          /* of the counter that it did not make up for */
    bool checked;             /* counter and integral were both there */
    double counter, integral; /* the two figures for the same time */
    double gap;               /* how far the two differ, relative to the counter */
};

/* A power that the sensor's device cannot draw, by the highest limit that its driver
 * reports or by what any board can. Readings above it are ignored. */
double wm_energy_impossible_watts(const struct wm_sensor *sensor);

/* A utilization that moves by no more than its own step of a percent does not move. */
#define WM_ENERGY_EVEN 0.0101

/* How sure it is that a device was busy for a part of the time only, 0 to 1: what is told
 * in percent may be one beside none, or beside all. */
double wm_energy_partly_busy(double busy);

/* The part of the time in which the device had something to do; from the next
 * wm_energy_add() on. It is taken to be of the last second before a tick at most. */
void wm_energy_set_busy(struct wm_energy *energy, struct wm_known ratio);

/* The power that is drawn now, for the ends of what is counted; from the next
 * wm_energy_add() on. Unlike the power that is given there it is not integrated, and the
 * counter is not judged by it. */
void wm_energy_set_beside(struct wm_energy *energy, struct wm_known watts);

/* NULL for what the device does not offer. */
void wm_energy_add(struct wm_energy *energy, int64_t when_ns,
                   const struct wm_reading *counter, const struct wm_reading *power);

/* Of the sensor that the joules come from: how often it has something new, as it was
 * measured or published; 0: not known. */
double wm_energy_period_s(const struct wm_energy *energy);

/* Whether its counter should have moved by now, and may be slower than it is known to be:
 * its next step may be of all the time since the last one. */
bool wm_energy_is_late(const struct wm_energy *energy);

void wm_energy_result(const struct wm_energy *energy, struct wm_energy_result *ret_result);

/* The part of the time that a figure may leave out. With more missing its uncertainty is
 * unknown: it is a lower bound. */
#define WM_MOST_MISSING 0.1

/* Less time that is missing or filled in is the jitter of ticks and calls. */
#define WM_LEAST_MISSING_S 1e-3

/* Whether there is a figure: one that leaves out nearly all of the time is none. */
bool wm_energy_is_known(const struct wm_energy_result *result);

#endif
