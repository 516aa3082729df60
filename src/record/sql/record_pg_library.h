/* SPDX-License-Identifier: Apache-2.0 */
/* record_pg_library.h - libpq, opened when it is needed: with what it needs in
 * turn (TLS, Kerberos, LDAP) it would cost every command 4 ms and 5 MB. */
#ifndef WM_RECORD_PG_LIBRARY_H
#define WM_RECORD_PG_LIBRARY_H

#include <libpq-fe.h>

#include "base/base_error.h"

#define WM_LIBPQ_FUNCTIONS(FUNCTION)                                                       \
    FUNCTION(PQclear)                                                                      \
    FUNCTION(PQconnectPoll)                                                                \
    FUNCTION(PQconnectStartParams)                                                         \
    FUNCTION(PQconninfoFree)                                                               \
    FUNCTION(PQconninfoParse)                                                              \
    FUNCTION(PQconsumeInput)                                                               \
    FUNCTION(PQerrorMessage)                                                               \
    FUNCTION(PQfformat)                                                                    \
    FUNCTION(PQfinish)                                                                     \
    FUNCTION(PQflush)                                                                      \
    FUNCTION(PQfreemem)                                                                    \
    FUNCTION(PQftype)                                                                      \
    FUNCTION(PQgetResult)                                                                  \
    FUNCTION(PQgetisnull)                                                                  \
    FUNCTION(PQgetlength)                                                                  \
    FUNCTION(PQgetvalue)                                                                   \
    FUNCTION(PQisBusy)                                                                     \
    FUNCTION(PQntuples)                                                                    \
    FUNCTION(PQparameterStatus)                                                            \
    FUNCTION(PQputCopyData)                                                                \
    FUNCTION(PQputCopyEnd)                                                                 \
    FUNCTION(PQresultErrorField)                                                           \
    FUNCTION(PQresultStatus)                                                               \
    FUNCTION(PQsendQuery)                                                                  \
    FUNCTION(PQsendQueryParams)                                                            \
    FUNCTION(PQserverVersion)                                                              \
    FUNCTION(PQsetNoticeReceiver)                                                          \
    FUNCTION(PQsetSingleRowMode)                                                           \
    FUNCTION(PQsetnonblocking)                                                             \
    FUNCTION(PQsocket)                                                                     \
    FUNCTION(PQstatus)

/* Each function under its own name. */
struct wm_libpq {
#define WM_LIBPQ_MEMBER(name) __typeof__(name) *name;
    WM_LIBPQ_FUNCTIONS(WM_LIBPQ_MEMBER)
#undef WM_LIBPQ_MEMBER
};

/* It stays loaded: its libraries do not like to be unloaded. WM_ENODEV where it
 * is not installed. */
int wm_libpq_load(struct wm_libpq *ret_library, struct wm_error *err);

#endif
