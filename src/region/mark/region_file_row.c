/* SPDX-License-Identifier: Apache-2.0 */
/* region_file_row.c - rows of gpu_tracker's sub-tracking file. */
#include "region/mark/region_file_row.h"

#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"

static size_t put_name(const struct wm_region_row *row, char *text)
{
    size_t length = 0;

    if (!wm_text_is_quoted(row->name, row->name_length)) {
        memcpy(text, row->name, row->name_length);
        return row->name_length;
    }
    text[length++] = '"';
    length += wm_text_double_quotes(text + length, row->name, row->name_length);
    text[length++] = '"';
    return length;
}

size_t wm_region_row_line(const struct wm_region_row *row, char *text)
{
    size_t length =
        (size_t)snprintf(text, WM_NUMBER_SIZE, "%lld,", (long long)row->process);

    length += put_name(row, text + length);
    memcpy(text + length, row->is_stop ? ",1," : ",0,", 3);
    length += 3;
    length += wm_number_format_float(row->when_s, text + length);
    memcpy(text + length, WM_REGION_FILE_LINE_END, strlen(WM_REGION_FILE_LINE_END));
    return length + strlen(WM_REGION_FILE_LINE_END);
}

void wm_region_row_bind(const struct wm_region_row *row, sqlite3_stmt *insert)
{
    sqlite3_bind_int64(insert, 1, row->process);
    sqlite3_bind_text(insert, 2, row->name, (int)row->name_length, SQLITE_STATIC);
    sqlite3_bind_int(insert, 3, row->is_stop);
    sqlite3_bind_double(insert, 4, row->when_s);
}
