/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost.c - what energy comes to in money and CO2e, as text and as JSON. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "made_report.h"

static struct wm_device_energy psys[] = {
    {
        .name = (char[]) { "BAT\033[1m0" },
        .source = (char[]) { "battery" },
        .kind = WM_DEVICE_PLATFORM,
        .contains = WM_CONTAINS_PLATFORM,
        .sensor = WM_SENSOR_BATTERY,
        .figure = { .energy = KNOWN(5.4e6), .method = "integral of power" },
        .power = KNOWN(1500),
    },
    {
        .name = (char[]) { "other" },
        .source = (char[]) { "hwmon" },
        .kind = WM_DEVICE_OTHER,
        .figure = { .energy = KNOWN(3.6e5), .method = "counter" },
        .power = KNOWN(100),
    },
    {
        .name = (char[]) { "meter" },
        .source = (char[]) { "meter" },
        .kind = WM_DEVICE_PLATFORM,
        .contains = WM_CONTAINS_PLATFORM,
        .figure = { .energy = UNKNOWN("it was unplugged") },
        .power = UNKNOWN("it was unplugged"),
    },
};

/* Two kilowatt-hours, one of them the command's. */
static const struct wm_report measured = {
    .energy = SUM(7.2e6, 3.6e6, WM_MEASURED),
    .cover = { .has = { [WM_COST_CPU] = true, [WM_COST_DRAM] = true } },
};
static const struct wm_report estimated = {
    .energy = SUM(3.6e3, 1.8e3, WM_ESTIMATED),
    .cover = { .has = { [WM_COST_CPU] = true } },
};
static const struct wm_report simulated = {
    .energy = { .energy = KNOWN(3.6e6),
                .uncertainty = UNKNOWN("not told"),
                .split = { .tree = UNKNOWN("whose"),
                           .idle = UNKNOWN("whose"),
                           .rest = UNKNOWN("whose") },
                .origin = WM_SIMULATED },
    .cover = { .has = { [WM_COST_GPUS] = true } },
    .gpu_count = 0,
};
static const struct wm_report unknown = { .energy = NO_SUM("nothing measures it") };
static const struct wm_report platform = {
    .energy = SUM(3.6e6, 3.6e6, WM_MEASURED),
    .cover = { .has = { [WM_COST_CPU] = true } },
    .devices = psys,
    .device_count = ARRAY_LEN(psys),
};
static const struct wm_report rough = {
    .energy = { .energy = KNOWN(1.49),
                .uncertainty = KNOWN(0.5),
                .split = { .tree = KNOWN(0.001), .idle = KNOWN(1), .rest = KNOWN(0.489) } },
    .cover = { .has = { [WM_COST_CPU] = true } },
};
static const struct wm_report absurd = {
    .energy = SUM(1e308, 0, WM_MEASURED),
    .cover = { .has = { [WM_COST_CPU] = true } },
};

#define NOT_WHOLE "                            "

static const struct {
    const char *name;
    const struct wm_report *report;
    struct wm_report_style style;
    const char *text, *brief; /* from the first of the lines on; NULL: there is none */
} texts[] = {
    { "nothing is given", &measured, { 0 }, NULL, NULL },
    { "a PUE alone", &measured, { .pue = 1.5, .currency = "EUR" }, NULL, NULL },
    { "a price",
      &measured,
      { .price_per_kwh = 0.3, .currency = "EUR" },
      "Cost          0.600 EUR     ±5.00 %; at 0.300 EUR per kWh\n" NOT_WHOLE
      "0.300 EUR of the command; covers CPU, memory, not the whole machine\n",
      "Cost          0.60 EUR\n" },
    { "a price of no currency, and a PUE",
      &measured,
      { .price_per_kwh = 12, .pue = 1.25 },
      "Cost          30.0          ±5.00 %; at 12.0 per kWh, PUE 1.25\n" NOT_WHOLE
      "15.0 of the command; covers CPU, memory, not the whole machine\n",
      "Cost          30\n" },
    { "both, of little energy",
      &estimated,
      { .price_per_kwh = 0.3, .currency = "€", .carbon_g_per_kwh = 380, .pue = 1 },
      "Cost          0.000300 €    ±5.00 %; at 0.300 € per kWh; ESTIMATED\n" NOT_WHOLE
      "0.000150 € of the command; covers CPU, not the whole machine\n"
      "CO2e          380 mg        ±5.00 %; at 380 g per kWh; ESTIMATED\n" NOT_WHOLE
      "190 mg of the command; covers CPU, not the whole machine\n",
      "Cost          0.00030 €     estimated\n"
      "CO2e          380 mg        estimated\n" },
    { "nobody knows whose",
      &simulated,
      { .carbon_g_per_kwh = 2000 },
      "CO2e          2.00 kg       at 2000 g per kWh; SIMULATED\n" NOT_WHOLE
      "covers GPUs, not the whole machine\n",
      "CO2e          2.00 kg       simulated\n" },
    { "unknown energy",
      &unknown,
      { .price_per_kwh = 1, .carbon_g_per_kwh = 1 },
      "Cost          n/a           (nothing measures it)\n"
      "CO2e          n/a           (nothing measures it)\n",
      "Cost          n/a           as the energy is not known\n"
      "CO2e          n/a           as the energy is not known\n" },
    { "a battery and a meter",
      &platform,
      { .carbon_g_per_kwh = 100 },
      "CO2e          100 g         ±5.00 %; at 100 g per kWh\n" NOT_WHOLE
      "100 g of the command; covers CPU, not the whole machine\n" NOT_WHOLE
      "150 g by BAT?[1m0, of the platform\n",
      "CO2e          100 g\n" },
    { "hardly any energy, roughly known",
      &rough,
      { .price_per_kwh = 0.3, .currency = "EUR", .carbon_g_per_kwh = 400 },
      "Cost          under 0.000001 EUR  ±50.0 %; at 0.300 EUR per kWh\n" NOT_WHOLE
      "under 0.000001 EUR of the command; covers CPU, not the whole machine\n"
      "CO2e          166 µg        ±50.0 %; at 400 g per kWh\n" NOT_WHOLE
      "111 ng of the command; covers CPU, not the whole machine\n",
      "Cost          under 0.000001 EUR\n"
      "CO2e          about 170 µg\n" },
};

/* From the first line with either label to the last that belongs to them. */
static char *cut_out(char *text)
{
    char *cost = strstr(text, "\nCost "), *carbon = strstr(text, "\nCO2e ");
    char *from = cost ? cost : carbon;

    if (!from)
        return NULL;
    char *end = strchr((carbon ? carbon : cost) + 1, '\n');
    while (end[1] == ' ')
        end = strchr(end + 1, '\n');
    end[1] = '\0';
    return from + 1;
}

static void check_text(const char *name, const struct wm_report *report,
                       const struct wm_report_style *style, const char *expected)
{
    char *text = made_print(report, WM_FORMAT_TEXT, style);
    char *part = cut_out(text);

    if (!part != !expected || (part && strcmp(part, expected) != 0))
        fail_msg("%s:\n%s", name, part ? part : text);
    free(text);
}

static void test_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct wm_report_style style = texts[i].style;
        check_text(texts[i].name, texts[i].report, &style, texts[i].brief);
        style.verbosity = 1;
        check_text(texts[i].name, texts[i].report, &style, texts[i].text);
    }
}

/* The object at a key of the report's energy. */
static json_t *load(const struct wm_report *report, const struct wm_report_style *style)
{
    char *text = made_print(report, WM_FORMAT_JSON, style);
    json_t *root = json_loads(text, 0, NULL);

    assert_non_null(root);
    free(text);
    return root;
}

static json_t *part_of(json_t *root, const char *key)
{
    return json_object_get(json_object_get(root, "energy"), key);
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_number(value))
        fail_msg("%s is no number", key);
    return json_number_value(value);
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

static const struct wm_report_style both = {
    .price_per_kwh = 0.3,
    .currency = "EUR",
    .carbon_g_per_kwh = 380,
    .pue = 1.2,
};

static void test_json(void **state)
{
    json_t *root = load(&measured, &both);
    const json_t *cost = part_of(root, "cost"), *carbon = part_of(root, "co2e");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(cost, "currency")), "EUR");
    assert_near(number(cost, "amount"), 2 * 1.2 * 0.3);
    assert_near(number(cost, "attributed_tree"), 1.2 * 0.3);
    assert_near(number(cost, "uncertainty_percent"), 5);
    assert_near(number(cost, "pue"), 1.2);
    assert_near(number(cost, "price_per_kwh"), 0.3);
    assert_int_equal(json_array_size(json_object_get(cost, "platform")), 0);
    assert_null(json_object_get(cost, "origin"));

    assert_string_equal(json_string_value(json_object_get(carbon, "unit")), "grams");
    assert_near(number(carbon, "amount"), 2 * 1.2 * 380);
    assert_near(number(carbon, "attributed_tree"), 1.2 * 380);
    assert_near(number(carbon, "factor"), 380);

    /* The joules stay those of the machine. */
    assert_near(number(json_object_get(root, "energy"), "total"), 7.2e6);
    json_decref(root);
}

static void test_json_without_factors(void **state)
{
    static const struct wm_report_style styles[] = { { 0 },
                                                     { .pue = 2, .currency = "EUR" } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(styles); i++) {
        json_t *root = load(&measured, &styles[i]);
        assert_null(part_of(root, "cost"));
        assert_null(part_of(root, "co2e"));
        json_decref(root);
    }
}

static void test_json_labels(void **state)
{
    static const struct {
        const struct wm_report *report;
        const char *origin;
    } rows[] = { { &estimated, "estimated" }, { &simulated, "simulated" } };
    static const char *const keys[] = { "cost", "co2e" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *root = load(rows[i].report, &both);
        for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
            const json_t *part = part_of(root, keys[k]);
            assert_string_equal(json_string_value(json_object_get(part, "origin")),
                                rows[i].origin);
            assert_true(json_is_true(json_object_get(part, rows[i].origin)));
        }
        json_decref(root);
    }
}

static void assert_missing(json_t *root, const char *path, const char *why)
{
    const char *reason =
        json_string_value(json_object_get(json_object_get(root, "why"), path));
    const char *dot = strrchr(path, '.');
    char key[16];

    snprintf(key, sizeof(key), "%.*s", (int)(dot - path) - 7, path + 7);
    if (!json_is_null(json_object_get(part_of(root, key), dot + 1)) || !reason ||
        strcmp(reason, why) != 0)
        fail_msg("%s: %s", path, reason ? reason : "(no reason)");
}

static void test_json_unknown(void **state)
{
    const struct wm_report_style no_currency = { .price_per_kwh = 0.3 };
    json_t *root = load(&unknown, &both);

    (void)state;
    assert_missing(root, "energy.cost.amount", "nothing measures it");
    assert_missing(root, "energy.cost.attributed_tree", "nothing measures it");
    assert_missing(root, "energy.co2e.amount", "nothing measures it");
    json_decref(root);

    root = load(&simulated, &no_currency);
    assert_missing(root, "energy.cost.currency", "none was given");
    assert_missing(root, "energy.cost.attributed_tree", "whose");
    assert_missing(root, "energy.cost.uncertainty_percent", "not told");
    json_decref(root);

    root = load(&absurd, &both); /* more than a double holds is not known either */
    assert_true(json_is_null(json_object_get(part_of(root, "co2e"), "amount")) ||
                isfinite(number(part_of(root, "co2e"), "amount")));
    json_decref(root);
}

static void test_json_platform(void **state)
{
    json_t *root = load(&platform, &both);
    const json_t *array = json_object_get(part_of(root, "cost"), "platform");
    const json_t *why = json_object_get(root, "why");

    (void)state;
    assert_int_equal(json_array_size(array), 2);
    assert_near(number(json_array_get(array, 0), "amount"), 1.5 * 1.2 * 0.3);
    assert_true(json_is_null(json_object_get(json_array_get(array, 1), "amount")));
    assert_string_equal(
        json_string_value(json_object_get(why, "energy.cost.platform.1.amount")),
        "it was unplugged");
    json_decref(root);
}

UNIT(cost)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_without_factors),
        cmocka_unit_test(test_json_labels),
        cmocka_unit_test(test_json_unknown),
        cmocka_unit_test(test_json_platform),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
