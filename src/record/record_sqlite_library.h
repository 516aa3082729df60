/* SPDX-License-Identifier: Apache-2.0 */
/* record_sqlite_library.h - SQLite is at home in base/base_sqlite.h. */
#ifndef WM_RECORD_SQLITE_LIBRARY_H
#define WM_RECORD_SQLITE_LIBRARY_H

#include "base/base_sqlite.h"

#endif
