/* SPDX-License-Identifier: Apache-2.0 */
/* view_repeat_table.c - repeated commands as a Markdown table and as CSV. */
#include <stdio.h>
#include <string.h>

#include "base/base_text.h"
#include "record/record_channel.h"
#include "view/text/view_text_line.h"
#include "view/view.h"

enum { NAME_SIZE = 1024 };

/* The command as a cell of a Markdown table, where "|" would end it. */
static void put_cell(const char *name, FILE *out)
{
    char clean[NAME_SIZE];

    wm_line_clean(clean, sizeof(clean), name);
    fputc('`', out);
    for (const char *c = clean; *c; c++) {
        if (*c == '|')
            fputc('\\', out);
        fputc(*c, out);
    }
    fputc('`', out);
}

static bool has_energy(const struct wm_repeat *repeat)
{
    bool has = false;

    for (size_t i = 0; i < repeat->count; i++)
        has |= wm_repeat_summary(&repeat->commands[i], WM_REPEAT_ENERGY).of.count > 0;
    return has;
}

static void put_energy_cell(const struct wm_repeat_one *one, FILE *out)
{
    const struct wm_repeat_summary sum = wm_repeat_summary(one, WM_REPEAT_ENERGY);

    if (sum.of.count == 0) {
        fputs(" n/a |", out);
        return;
    }
    fprintf(out, " %s", wm_view_number(sum.of.mean, 4).text);
    if (sum.has_interval || sum.of.count > 1)
        fprintf(out, " ± %s",
                wm_view_number(sum.has_interval ? (sum.high - sum.low) / 2 : sum.of.std, 2)
                    .text);
    if (one->origin[WM_REPEAT_ENERGY] != WM_MEASURED)
        fprintf(out, " (%s)", wm_word(WM_WORDS_ORIGIN, (int)one->origin[WM_REPEAT_ENERGY]));
    fputs(" |", out);
}

static void put_row(const struct wm_repeat *repeat, size_t index, bool with_energy,
                    FILE *out)
{
    const struct wm_repeat_one *one = &repeat->commands[index];
    const struct wm_repeat_summary time = wm_repeat_summary(one, WM_REPEAT_TIME);
    const struct wm_repeat_one *reference = &repeat->commands[repeat->options.reference];
    double unit = wm_repeat_summary(reference, WM_REPEAT_TIME).of.mean;

    fputs("| ", out);
    put_cell(one->name, out);
    fprintf(out, " | %s", wm_view_fixed(1e3 * time.of.mean, 1).text);
    if (time.of.count > 1)
        fprintf(out, " ± %s", wm_view_fixed(1e3 * time.of.std, 1).text);
    fprintf(out, " | %s | %s |", wm_view_fixed(1e3 * time.of.min, 1).text,
            wm_view_fixed(1e3 * time.of.max, 1).text);
    if (with_energy)
        put_energy_cell(one, out);
    fprintf(out, " %s |\n", unit > 0 ? wm_view_fixed(time.of.mean / unit, 2).text : "n/a");
}

void wm_view_repeat_markdown(const struct wm_repeat *repeat, FILE *out)
{
    bool with_energy = has_energy(repeat);

    fprintf(out, "| Command | Mean [ms] | Min [ms] | Max [ms] |%s Relative |\n",
            with_energy ? " Energy [J] |" : "");
    fprintf(out, "|:---|---:|---:|---:|%s---:|\n", with_energy ? "---:|" : "");
    for (size_t i = 0; i < repeat->count; i++) {
        if (repeat->commands[i].sample_count > 0)
            put_row(repeat, i, with_energy, out);
    }
}

static void put_csv_text(const char *text, FILE *out)
{
    char clean[NAME_SIZE], quoted[2 * NAME_SIZE];

    wm_line_clean(clean, sizeof(clean), text);
    size_t length = strlen(clean);
    const char *quote = wm_text_is_quoted(clean, length) ? "\"" : "";
    length = wm_text_double_quotes(quoted, clean, length);
    fprintf(out, "%s%.*s%s", quote, (int)length, quoted, quote);
}

static void put_csv_number(bool is_known, double number, FILE *out)
{
    char text[WM_NUMBER_SIZE];

    fputc(',', out);
    if (is_known && wm_number_format(number, text) > 0)
        fputs(text, out);
}

static void put_csv_row(const struct wm_repeat *repeat, const struct wm_repeat_one *one,
                        FILE *out)
{
    const struct wm_repeat_summary time = wm_repeat_summary(one, WM_REPEAT_TIME);
    const struct wm_repeat_summary user = wm_repeat_summary(one, WM_REPEAT_USER);
    const struct wm_repeat_summary system = wm_repeat_summary(one, WM_REPEAT_SYSTEM);

    put_csv_text(one->name, out);
    put_csv_number(true, time.of.mean, out);
    put_csv_number(time.of.count > 1, time.of.std, out);
    put_csv_number(true, time.of.median, out);
    put_csv_number(user.of.count > 0, user.of.mean, out);
    put_csv_number(system.of.count > 0, system.of.mean, out);
    put_csv_number(true, time.of.min, out);
    put_csv_number(true, time.of.max, out);
    for (enum wm_repeat_metric m = WM_REPEAT_CPU_TIME; m < WM_REPEAT_METRICS; m++) {
        const struct wm_repeat_summary sum = wm_repeat_summary(one, m);
        if (wm_repeat_is_left_out(repeat, m))
            continue;
        put_csv_number(sum.of.count > 0, sum.of.mean, out);
        put_csv_number(sum.of.count > 1, sum.of.std, out);
        put_csv_number(sum.has_interval, sum.low, out);
        put_csv_number(sum.has_interval, sum.high, out);
    }
    fprintf(out, ",%s",
            wm_repeat_summary(one, WM_REPEAT_ENERGY).of.count > 0
                ? wm_word(WM_WORDS_ORIGIN, (int)one->origin[WM_REPEAT_ENERGY])
                : "");
    for (size_t i = 0; one->parameters[i]; i += 2) {
        fputc(',', out);
        put_csv_text(one->parameters[i + 1], out);
    }
    fputc('\n', out);
}

/* The columns of hyperfine's export come first; parameters are last, as there. */
void wm_view_repeat_csv(const struct wm_repeat *repeat, FILE *out)
{
    fputs("command,mean,stddev,median,user,system,min,max", out);
    for (enum wm_repeat_metric m = WM_REPEAT_CPU_TIME; m < WM_REPEAT_METRICS; m++) {
        const char *key = wm_repeat_kind(m)->key;
        if (!wm_repeat_is_left_out(repeat, m))
            fprintf(out, ",%s_mean,%s_stddev,%s_low,%s_high", key, key, key, key);
    }
    fputs(",energy_origin", out);
    for (size_t i = 0; repeat->count > 0 && repeat->commands[0].parameters[i]; i += 2) {
        fputs(",parameter_", out);
        put_csv_text(repeat->commands[0].parameters[i], out);
    }
    fputc('\n', out);
    for (size_t i = 0; i < repeat->count; i++) {
        if (repeat->commands[i].sample_count > 0)
            put_csv_row(repeat, &repeat->commands[i], out);
    }
}
