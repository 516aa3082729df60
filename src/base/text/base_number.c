/* SPDX-License-Identifier: Apache-2.0 */
/* base_number.c - doubles as text and back, with '.' whatever the locale. */
#include "base/text/base_number.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Doubles hold every whole number up to here, and ten to the power of up to 22. */
#define EXACT_MAX (UINT64_C(1) << 53)
#define EXACT_POWER_MAX 22

/* The number of digits that always fit into 64 bits, as does ten to that power. */
#define WHOLE_DIGITS 19

/* The longest number worth reading: the largest double with all its digits. */
#define LONGEST 400

static const double powers[EXACT_POWER_MAX + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Writes `scaled` / 10^decimals without trailing zeros. */
static size_t format_fixed(int64_t scaled, int decimals, char *text)
{
    char digits[WM_NUMBER_SIZE];
    bool negative = scaled < 0;
    size_t length = 0;

    while (decimals > 0 && scaled % 10 == 0) {
        scaled /= 10;
        decimals--;
    }
    int count = snprintf(digits, sizeof(digits), "%0*lld", decimals + 1,
                         negative ? -(long long)scaled : (long long)scaled);
    if (negative)
        text[length++] = '-';
    for (int i = 0; i < count; i++) {
        if (i == count - decimals)
            text[length++] = '.';
        text[length++] = digits[i];
    }
    text[length] = '\0';
    return length;
}

/* Nearly all readings are whole or have up to nine decimals, and for those two
 * multiplications do what printf() and strtod() need a microsecond for. With at
 * most 15 digits the quotient of two exact numbers is the double nearest to the
 * decimal number, and no other text as short reads back the same. */
static size_t format_short(double value, char *text)
{
    for (int decimals = 0; decimals <= 9; decimals += 3) {
        double scaled = value * powers[decimals];
        if (fabs(scaled) >= 1e15)
            break;
        long long whole = llround(scaled);
        if ((double)whole / powers[decimals] == value)
            return format_fixed(whole, decimals, text);
    }
    return 0;
}

/* The locale's decimal point may be any string; nothing else that printf()
 * writes here is outside of this set. */
size_t wm_number_put_point(char *text)
{
    size_t length = 0;
    bool in_point = false;

    for (const char *c = text; *c; c++) {
        bool plain = is_digit(*c) || *c == '-' || *c == '+' || *c == 'e' || *c == ' ';
        if (plain)
            text[length++] = *c;
        else if (!in_point)
            text[length++] = '.';
        in_point = !plain;
    }
    text[length] = '\0';
    return length;
}

size_t wm_number_format(double value, char text[WM_NUMBER_SIZE])
{
    text[0] = '\0';
    if (!isfinite(value))
        return 0;

    size_t length = format_short(value, text);
    double again = length > 0 ? value : NAN;
    for (int digits = 15; digits <= 17 && again != value; digits++) {
        snprintf(text, WM_NUMBER_SIZE, "%.*g", digits, value);
        length = wm_number_put_point(text);
        if (!wm_number_parse(text, length, &again))
            again = NAN;
    }
    return length;
}

size_t wm_number_format_float(double value, char text[WM_NUMBER_SIZE])
{
    size_t length = wm_number_format(value, text);

    if (length > 0 && strcspn(text, ".e") == length) {
        memcpy(text + length, ".0", sizeof(".0"));
        length += strlen(".0");
    }
    return length;
}

/* strtod() wants the locale's decimal point, and printf() knows it. */
static bool parse_slowly(const char *text, size_t length, double *ret_value)
{
    char half[16], local[LONGEST + sizeof(half)];
    const char *point = memchr(text, '.', length);

    if (!point) {
        memcpy(local, text, length);
        local[length] = '\0';
    } else {
        size_t whole = (size_t)(point - text);
        int size = snprintf(half, sizeof(half), "%.1f", 0.5);
        if (size < 3 || (size_t)size >= sizeof(half))
            return false;
        size_t point_size = (size_t)size - 2;
        memcpy(local, text, whole);
        memcpy(local + whole, half + 1, point_size);
        memcpy(local + whole + point_size, point + 1, length - whole - 1);
        local[length - 1 + point_size] = '\0';
    }

    char *end = local;
    double value = strtod(local, &end);
    if (*end != '\0' || !isfinite(value))
        return false;
    *ret_value = value;
    return true;
}

/* The double nearest to mantissa / 10^decimals, as strtod() finds it, for what other
 * programs write with all 17 digits; neither is 0. The quotient has 62 bits at least, and
 * its last one also stands for all that is left over, so it is rounded once. False where
 * the compiler has no such wide numbers. */
static bool divide(uint64_t mantissa, int decimals, double *ret_value)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    uint64_t divisor = (uint64_t)powers[decimals];
    int up = __builtin_clzll(mantissa), down = __builtin_clzll(divisor);

    wide dividend = (wide)(mantissa << up) << 63;
    divisor <<= down;
    uint64_t quotient = (uint64_t)(dividend / divisor);
    quotient |= (wide)quotient * divisor != dividend;
    *ret_value = ldexp((double)quotient, down - up - 63);
    return true;
#else
    (void)mantissa, (void)decimals, (void)ret_value;
    return false;
#endif
}

/* A number as it is written: mantissa * 10^power. */
struct decimal {
    uint64_t mantissa;
    bool fits; /* `mantissa` holds all of its digits, and not their lowest bits */
    int power;
};

static const char *take_digits(const char *c, const char *end, uint64_t *number)
{
    uint64_t taken = *number;

    for (; c < end && is_digit(*c); c++)
        taken = taken * 10 + (uint64_t)(*c - '0');
    *number = taken;
    return c;
}

/* Where the digits and the point among them end; NULL without a digit. */
static const char *take_mantissa(const char *c, const char *end, struct decimal *ret)
{
    const char *start = c;

    c = take_digits(c, end, &ret->mantissa);
    long digits = c - start;
    if (c < end && *c == '.') {
        const char *fraction = ++c;
        c = take_digits(c, end, &ret->mantissa);
        ret->power = (int)(fraction - c);
        digits += c - fraction;
    }
    if (digits == 0)
        return NULL;
    for (; digits > WHOLE_DIGITS && (*start == '0' || *start == '.'); start++)
        digits -= *start == '0';
    ret->fits = digits <= WHOLE_DIGITS;
    return c;
}

/* Where what stands behind the 'e' ends; NULL where it is no exponent. */
static const char *take_exponent(const char *c, const char *end, int *power)
{
    bool down = c < end && *c == '-';
    int exponent = 0;

    c += c < end && (*c == '-' || *c == '+');
    if (c == end)
        return NULL;
    for (; c < end && is_digit(*c); c++) {
        if (exponent < LONGEST * 10)
            exponent = exponent * 10 + (*c - '0');
    }
    *power += down ? -exponent : exponent;
    return c;
}

/* False where that takes the slow way. */
static bool evaluate(const struct decimal *decimal, double *ret_value)
{
    int power = decimal->power;

    if (!decimal->fits || FLT_EVAL_METHOD != 0)
        return false;
    if (decimal->mantissa > EXACT_MAX || abs(power) > EXACT_POWER_MAX)
        return power <= 0 && power >= -WHOLE_DIGITS &&
               divide(decimal->mantissa, -power, ret_value);
    /* Both are exact, so their product or quotient is the nearest double. */
    double value = (double)decimal->mantissa;
    *ret_value = power < 0 ? value / powers[-power] : value * powers[power];
    return true;
}

bool wm_number_parse(const char *text, size_t length, double *ret_value)
{
    const char *c = text, *end = text + length;
    struct decimal decimal = { 0 };
    double value;

    if (length == 0 || length > LONGEST)
        return false;
    bool negative = *c == '-';
    c = take_mantissa(c + (negative || *c == '+'), end, &decimal);
    if (c && c < end && (*c == 'e' || *c == 'E'))
        c = take_exponent(c + 1, end, &decimal.power);
    if (c != end)
        return false;
    if (!evaluate(&decimal, &value))
        return parse_slowly(text, length, ret_value);
    *ret_value = negative ? -value : value;
    return true;
}
