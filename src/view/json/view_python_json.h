/* SPDX-License-Identifier: Apache-2.0 */
/* view_python_json.h - JSON as Python's json.dumps(..., indent=1) writes it; for src/view
 * alone. */
#ifndef WM_VIEW_PYTHON_JSON_H
#define WM_VIEW_PYTHON_JSON_H

#include <jansson.h>
#include <stdio.h>

#define WM_PYTHON_NUMBER_SIZE 48

/* What Python's repr() makes of a finite float: 1.0, 16.376, 2.867e-05, 1e+16. */
void wm_view_python_number(char text[WM_PYTHON_NUMBER_SIZE], double value);

/* Without a line end, as there. Whether `out` took it all, it knows itself. */
void wm_view_python_json(const json_t *root, FILE *out);

#endif
