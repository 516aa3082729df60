/* SPDX-License-Identifier: Apache-2.0 */
/* view_cap_answer.c - what a search of the best cap has found, for people and for programs.
 */
#include <math.h>
#include <string.h>

#include "base/text/base_json.h"
#include "base/text/base_number.h"
#include "view/view.h"
#include "wattmeter/cap_search.h"

enum { CAP_WIDTH = 11, FIGURE_WIDTH = 12 };

/* In watts, or of a clock in megahertz. */
static struct wm_quantity cap_text(const struct wm_cap_answer *answer, double cap)
{
    struct wm_quantity text = { "" };
    char number[WM_NUMBER_SIZE];

    wm_number_format(answer->plan.is_clock ? cap / 1e6 : cap, number);
    snprintf(text.text, sizeof(text.text), "%s %s", number,
             answer->plan.is_clock ? "MHz" : "W");
    return text;
}

/* "+3.1 %" */
static struct wm_quantity change_text(double ratio)
{
    struct wm_quantity text = { "" };

    snprintf(text.text, sizeof(text.text), "%s%.40s %%", ratio < 0 ? "-" : "+",
             wm_view_fixed(100 * fabs(ratio), 1).text);
    return text;
}

/* "12.3 % (11.8 to 12.7)" */
static void print_ratio(const struct wm_cap_estimate *ratio, FILE *out)
{
    fprintf(out, "%s %% (%s to %s)", wm_view_fixed(100 * ratio->value, 1).text,
            wm_view_fixed(100 * ratio->low, 1).text,
            wm_view_fixed(100 * ratio->high, 1).text);
}

static const struct wm_cap_point *default_of(const struct wm_cap_answer *answer)
{
    return &answer->curve[answer->count - 1];
}

/* A line for each cap that was measured. */
static void print_table(const struct wm_cap_answer *answer, FILE *out)
{
    const struct wm_cap_point *usual = default_of(answer);

    fprintf(out, "%-*s%*s%*s%*s%*s%*s%*s\n", CAP_WIDTH, "cap", FIGURE_WIDTH, "drew",
            FIGURE_WIDTH, "time/unit", FIGURE_WIDTH, "energy/unit", 10, "time", 10,
            "energy", 9, "windows");
    for (size_t i = 0; i < answer->count; i++) {
        const struct wm_cap_point *point = &answer->curve[i];
        double seconds = point->measured_seconds, joules = point->measured_joules;
        if (point->windows == 0)
            continue;
        fprintf(out, "%-*s%*s%*s%*s%*s%*s%*zu%s\n", CAP_WIDTH,
                cap_text(answer, point->cap).text, FIGURE_WIDTH,
                wm_view_prefixed(joules / seconds, "W").text, FIGURE_WIDTH,
                wm_view_prefixed(seconds, "s").text, FIGURE_WIDTH,
                wm_view_prefixed(joules, "J").text, 10,
                change_text(seconds / usual->measured_seconds - 1).text, 10,
                change_text(joules / usual->measured_joules - 1).text, 9, point->windows,
                point == usual                     ? "  default"
                : point->cap == answer->choice.cap ? "  <- best"
                                                   : "");
    }
}

static const char *const reasons[] = {
    [WM_CAP_FOUND] = "measured",
    [WM_CAP_PREDICTED] = "predicted by the model, not measured",
    [WM_CAP_BEST_MEASURED] = "the best measured; the model is not sure of a better one",
    [WM_CAP_NEVER_BINDS] = "no cap has an effect: this work draws less than the lowest cap",
    [WM_CAP_NO_GAIN] = "no cap is better than the default limit by more than the noise",
};

static const char *const reason_names[] = {
    [WM_CAP_FOUND] = "found",
    [WM_CAP_PREDICTED] = "predicted",
    [WM_CAP_BEST_MEASURED] = "best_measured",
    [WM_CAP_NEVER_BINDS] = "never_binds",
    [WM_CAP_NO_GAIN] = "no_gain",
};

static bool proposes_nothing(const struct wm_cap_answer *answer)
{
    return answer->reason == WM_CAP_NEVER_BINDS || answer->reason == WM_CAP_NO_GAIN;
}

static void print_choice(const struct wm_cap_answer *answer, FILE *out)
{
    fprintf(out, "\nbest for %s", wm_cap_objective_name(answer->plan.objective));
    if (answer->plan.max_slowdown > 0)
        fprintf(out, " at most %s slower", wm_view_percent(answer->plan.max_slowdown).text);
    if (proposes_nothing(answer)) {
        fprintf(out, ": none; %s\n", reasons[answer->reason]);
        return;
    }
    fprintf(out, ": %s, %s\n  energy saved  ", cap_text(answer, answer->choice.cap).text,
            reasons[answer->reason]);
    print_ratio(&answer->choice.saving, out);
    fprintf(out, "\n  slowdown      ");
    print_ratio(&answer->choice.slowdown, out);
    if (answer->choice.gain.low <= 0) {
        fprintf(out, "\n  gain          ");
        print_ratio(&answer->choice.gain, out);
        fprintf(out, ", which may be noise");
    }
    fprintf(out, "\n");
}

static void print_others(const struct wm_cap_answer *answer, FILE *out)
{
    for (size_t i = 0; i < WM_CAP_OBJECTIVES; i++) {
        const struct wm_cap_choice *other = &answer->of[i];
        if (i == (size_t)answer->plan.objective)
            continue;
        fprintf(out, "  for %-10s%s: %s energy, %s time\n", wm_cap_objective_name(i),
                cap_text(answer, other->cap).text, change_text(-other->saving.value).text,
                change_text(other->slowdown.value).text);
    }
}

static void print_text(const struct wm_cap_answer *answer, FILE *out)
{
    print_table(answer, out);
    print_choice(answer, out);
    if (answer->reason != WM_CAP_NEVER_BINDS)
        print_others(answer, out);
    fprintf(out, "intervals are of 95 %%; one measurement is off by about %s\n",
            wm_view_percent(answer->noise).text);
}

static void print_cell(double number, char end, FILE *out)
{
    char text[WM_NUMBER_SIZE];

    wm_number_format(number, text);
    fprintf(out, "%s%c", text, end);
}

static void print_estimate(const struct wm_cap_estimate *estimate, char end, FILE *out)
{
    print_cell(estimate->value, ',', out);
    print_cell(estimate->low, ',', out);
    print_cell(estimate->high, end, out);
}

static void print_csv(const struct wm_cap_answer *answer, FILE *out)
{
    fprintf(out,
            "%s,windows,seconds,joules,model_seconds,model_seconds_low,model_seconds_high,"
            "model_joules,model_joules_low,model_joules_high,objective,objective_low,"
            "objective_high,is_choice\n",
            answer->plan.is_clock ? "cap_hz" : "cap_w");
    for (size_t i = 0; i < answer->count; i++) {
        const struct wm_cap_point *point = &answer->curve[i];
        bool is_known = point->windows > 0;
        print_cell(point->cap, ',', out);
        fprintf(out, "%zu,", point->windows);
        print_cell(is_known ? point->measured_seconds : NAN, ',', out);
        print_cell(is_known ? point->measured_joules : NAN, ',', out);
        print_estimate(&point->seconds, ',', out);
        print_estimate(&point->joules, ',', out);
        print_estimate(&point->objective, ',', out);
        fprintf(out, "%d\n", point->cap == answer->choice.cap);
    }
}

static json_t *estimate_json(const struct wm_cap_estimate *estimate)
{
    json_t *object = json_object();

    wm_json_set(&object, "value", json_real(estimate->value));
    wm_json_set(&object, "low", json_real(estimate->low));
    wm_json_set(&object, "high", json_real(estimate->high));
    return object;
}

static json_t *choice_json(const struct wm_cap_choice *choice)
{
    json_t *object = json_object();

    wm_json_set(&object, "cap", json_real(choice->cap));
    wm_json_set(&object, "windows", json_integer((json_int_t)choice->windows));
    wm_json_set(&object, "energy_saved", estimate_json(&choice->saving));
    wm_json_set(&object, "slowdown", estimate_json(&choice->slowdown));
    wm_json_set(&object, "objective_gained", estimate_json(&choice->gain));
    return object;
}

static json_t *point_json(const struct wm_cap_point *point)
{
    json_t *object = json_object();
    bool is_known = point->windows > 0;

    wm_json_set(&object, "cap", json_real(point->cap));
    wm_json_set(&object, "windows", json_integer((json_int_t)point->windows));
    wm_json_set(&object, "seconds", wm_json_known(is_known, point->measured_seconds));
    wm_json_set(&object, "joules", wm_json_known(is_known, point->measured_joules));
    wm_json_set(&object, "model_seconds", estimate_json(&point->seconds));
    wm_json_set(&object, "model_joules", estimate_json(&point->joules));
    wm_json_set(&object, "objective", estimate_json(&point->objective));
    return object;
}

static json_t *answer_json(const struct wm_cap_answer *answer)
{
    json_t *root = json_object(), *others = json_object(), *curve = json_array();
    const struct wm_cap_plan *plan = &answer->plan;

    wm_json_set(&root, "cap_unit", json_string(plan->is_clock ? "Hz" : "W"));
    wm_json_set(&root, "objective", json_string(wm_cap_objective_name(plan->objective)));
    wm_json_set(&root, "max_slowdown",
                wm_json_known(plan->max_slowdown > 0, plan->max_slowdown));
    wm_json_set(&root, "default", json_real(plan->maximum));
    wm_json_set(&root, "lowest", json_real(plan->minimum));
    wm_json_set(&root, "reason", json_string(reason_names[answer->reason]));
    wm_json_set(&root, "why", json_string(reasons[answer->reason]));
    wm_json_set(&root, "choice",
                proposes_nothing(answer) ? json_null() : choice_json(&answer->choice));
    for (size_t i = 0; i < WM_CAP_OBJECTIVES; i++)
        wm_json_set(&others, wm_cap_objective_name(i), choice_json(&answer->of[i]));
    wm_json_set(&root, "by_objective", others);
    wm_json_set(&root, "noise", json_real(answer->noise));
    for (size_t i = 0; i < answer->count; i++)
        wm_json_add(&curve, point_json(&answer->curve[i]));
    wm_json_set(&root, "curve", curve);
    return root;
}

int wm_cap_answer_print(const struct wm_cap_answer *answer, enum wm_format format,
                        FILE *out, struct wm_error *err)
{
    int status = wm_view_check(format, WM_VIEW_PLAIN | WM_VIEW_FORMAT(WM_FORMAT_CSV), err);

    if (status < 0)
        return status;
    if (format == WM_FORMAT_JSON)
        status = wm_view_dump(answer_json(answer), JSON_INDENT(2), out, err);
    else if (format == WM_FORMAT_CSV)
        print_csv(answer, out);
    else
        print_text(answer, out);
    return status == WM_OK ? wm_view_flush(out, "the caps", err) : status;
}
