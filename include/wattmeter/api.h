/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - marks what the library exports; everything else in it is hidden. */
#ifndef WATTMETER_API_H
#define WATTMETER_API_H

#define WM_API __attribute__((visibility("default")))

#endif
