/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_member.h - structs as JSON objects and back, by tables of their members.
 *
 *     static const struct wm_member members[] = {
 *         { .key = "name", .slot = offsetof(struct thing, name), .type = WM_MEMBER_STRING
 * },
 *     };
 *     static const struct wm_members things = { members, 1, sizeof(struct thing) };
 *
 *     json_t *object = wm_members_json(&things, &thing);
 *     int status = wm_members_read(&things, object, "thing", &other, err);
 *     wm_members_release(&things, &other);
 *
 * So a key is written and read in one way, and adding a member is adding a line.
 */
#ifndef WM_RECORD_MEMBER_H
#define WM_RECORD_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/base_error.h"

/* Both may be NULL. */
struct wm_pair {
    char *key;
    char *value;
};

struct wm_members;

enum wm_member_type {
    WM_MEMBER_STRING, /* char *; null when NULL */
    WM_MEMBER_TEXT,   /* char[size]; "" when empty */
    WM_MEMBER_INT,    /* int and pid_t */
    WM_MEMBER_TIME,   /* int64_t, nanoseconds */
    WM_MEMBER_UINT64,
    WM_MEMBER_DOUBLE,
    WM_MEMBER_KNOWN, /* struct wm_known, null in JSON where it is not */
    WM_MEMBER_BOOL,
    /* Their number is a size_t at `count`. */
    WM_MEMBER_STRINGS, /* char **, none of them NULL */
    WM_MEMBER_PAIRS,   /* struct wm_pair * */
    WM_MEMBER_STRUCTS, /* of the kind `of` */
};

struct wm_member {
    const char *key;
    enum wm_member_type type;
    size_t slot, count;
    size_t size; /* of a WM_MEMBER_TEXT */
    const struct wm_members *of;

    bool is_whole;    /* of a WM_MEMBER_KNOWN: it has no fraction */
    bool is_optional; /* of a WM_MEMBER_STRING: left out, rather than null */
};

struct wm_members {
    const struct wm_member *all;
    size_t count;
    size_t size; /* of the struct */
};

/* A new object; NULL when out of memory. */
json_t *wm_members_json(const struct wm_members *members, const void *base);

/* Into a struct that is all zero. What is missing or null is zero. WM_EFORMAT names the key
 * that is wrong, or `key` where the value is no object. The release is due whatever this
 * returns. */
int wm_members_read(const struct wm_members *members, const json_t *object, const char *key,
                    void *base, struct wm_error *err);

/* Into a struct that is all zero, with copies of what the members point to. The release is
 * due whatever this returns. */
int wm_members_copy(const struct wm_members *members, const void *base, void *ret_copy,
                    struct wm_error *err);

/* Frees what the members point to. */
void wm_members_release(const struct wm_members *members, void *base);

#endif
