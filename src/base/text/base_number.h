/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_number.h - doubles as text and back, with '.' whatever the locale.
 *
 * printf() and strtod() obey the locale of the host program, which may well
 * write 0,5; what is in a file may not depend on that.
 */
#ifndef WM_BASE_NUMBER_H
#define WM_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

/* A number that may not be known, as in a struct that is all zero. */
struct wm_known {
    bool known;
    double number;
};

/* Enough for every number that is written here. */
#define WM_NUMBER_SIZE 32

/* The text of at most 17 digits that reads back as the same number, as few of
 * them as that takes. Returns its length. Minus zero is written as 0; infinity
 * and NaN give an empty text. */
size_t wm_number_format(double value, char text[WM_NUMBER_SIZE]);

/* The same as Python prints a float: with a point or an exponent, be it whole or not. */
size_t wm_number_format_float(double value, char text[WM_NUMBER_SIZE]);

/* Puts '.' in place of the locale's decimal point in a number that printf() wrote. Returns
 * the length. */
size_t wm_number_put_point(char *text);

/* Whether text[0..length) is nothing but one decimal number within the range
 * of a double, and which: no blanks, no hexadecimal, no "inf". Only then is
 * `ret_value` written. */
bool wm_number_parse(const char *text, size_t length, double *ret_value);

#endif
