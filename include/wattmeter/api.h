/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - marks the functions that the library exports; all others are hidden. */
#ifndef WATTMETER_API_H
#define WATTMETER_API_H

#define WM_API __attribute__((visibility("default")))

#endif
