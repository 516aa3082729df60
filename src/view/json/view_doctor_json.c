/* SPDX-License-Identifier: Apache-2.0 */
/* view_doctor_json.c - an examination, for programs. Jansson passes a part that
 * failed on as NULL, and so the whole is NULL where memory was short. */
#include <jansson.h>

#include "base/base_error.h"
#include "base/text/base_json.h"
#include "record/record_channel.h"
#include "view/view.h"

static json_t *channel_json(const struct wm_doctor_source *source,
                            const struct wm_doctor_channel *channel)
{
    return json_pack(
        "{s:o, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:I, s:o, s:b}",               /**/
        "label", wm_text_json(channel->channel->label),                          /**/
        "device", wm_text_json(channel->channel->device),                        /**/
        "metric", wm_text_json(channel->channel->metric),                        /**/
        "unit", channel->channel->unit,                                          /**/
        "origin", wm_word(WM_WORDS_ORIGIN, (int)channel->channel->origin),       /**/
        "state", wm_word(WM_WORDS_STATE, (int)channel->state),                   /**/
        "why", wm_text_json(channel->why),                                       /**/
        "value", wm_json_known(channel->state == WM_READING_OK, channel->value), /**/
        "changes", (json_int_t)channel->changes,                                 /**/
        "period_seconds",
        wm_json_known(wm_view_doctor_sees(source, channel->period_s), channel->period_s),
        "dead", (int)channel->dead);
}

static json_t *channels_json(const struct wm_doctor_source *source)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < source->channel_count; i++)
        wm_json_add(&list, channel_json(source, &source->channels[i]));
    return list;
}

static json_t *silent_json(const struct wm_doctor_source *source)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < source->silent_count; i++)
        wm_json_add(&list, wm_text_json(source->silent[i]));
    return list;
}

static json_t *advice_json(const struct wm_doctor_source *source)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < source->advice_count; i++)
        wm_json_add(&list, json_pack("{s:o, s:o}", "problem",
                                     wm_text_json(source->advice[i].problem), "command",
                                     wm_text_json(source->advice[i].command)));
    return list;
}

static json_t *source_json(const struct wm_doctor_source *source)
{
    bool looked = source->look_s > 0;

    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}",       /**/
                     "name", source->name,                                  /**/
                     "health", wm_health_name(source->health),              /**/
                     "summary", source->summary,                            /**/
                     "detail", wm_text_json(source->detail),                /**/
                     "read_seconds", wm_json_known(looked, source->read_s), /**/
                     "look_seconds", wm_json_known(looked, source->look_s), /**/
                     "channels", channels_json(source),                     /**/
                     "silent", silent_json(source),                         /**/
                     "advice", advice_json(source));
}

json_t *wm_view_doctor_json(const struct wm_doctor *doctor)
{
    const struct wm_doctor_source *source;
    json_t *sources = json_array();

    for (size_t i = 0; sources && (source = wm_doctor_source(doctor, i)) != NULL; i++)
        wm_json_add(&sources, source_json(source));
    return json_pack("{s:b, s:o}", "can_measure", (int)wm_doctor_can_measure(doctor),
                     "sources", sources);
}
