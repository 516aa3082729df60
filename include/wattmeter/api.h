/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - marks the functions that the library exports; all others are hidden.
 *
 * A program works with each later library of the same SONAME. To make that so, numbers of
 * enums never change, and a struct with options begins with its size:
 *
 *     struct wm_tracker_options options = { .size = sizeof(options),
 *                                           .interval_ns = 1000000 };
 *
 * The library reads that much of it. Members that it does not know have to be 0, otherwise
 * it returns WM_EINVAL. A size of 0 stands for the struct of version 0.1. Structs that the
 * library fills in do not change.
 */
#ifndef WATTMETER_API_H
#define WATTMETER_API_H

#define WM_API __attribute__((visibility("default")))

#endif
