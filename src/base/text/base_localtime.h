/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_localtime.h - local time without a zone, as other tools write it. Which
 * moment that is, only the zone of the process (TZ) can tell.
 */
#ifndef WM_BASE_LOCALTIME_H
#define WM_BASE_LOCALTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WM_LOCALTIME_SIZE = 32 };

/* "2026-11-21 08:48:21.123456", with the fraction or without, and with a 'T' or a
 * blank in the middle; nothing else, and years from 1971 to 2099 alone. An hour
 * that comes twice, when daylight saving time ends, is the first of the two that
 * is not before `after_ns`. Only on success is `ret_unix_ns` written. */
bool wm_localtime_parse(const char *text, size_t length, int64_t after_ns,
                        int64_t *ret_unix_ns);

/* The same with a zone behind it ("Z", "+01:00", "-0800"), which then counts; or
 * without, as above. */
bool wm_localtime_parse_zoned(const char *text, size_t length, int64_t after_ns,
                              int64_t *ret_unix_ns);

/* The same form, with a fraction of six digits. */
void wm_localtime_format(int64_t unix_ns, char text[WM_LOCALTIME_SIZE]);

/* What the zone is called at that time: "+0100 (CET)". */
void wm_localtime_zone(int64_t unix_ns, char text[WM_LOCALTIME_SIZE]);

#endif
