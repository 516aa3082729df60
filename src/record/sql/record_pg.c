/* SPDX-License-Identifier: Apache-2.0 */
/* record_pg.c - a connection to PostgreSQL on which nothing takes for ever. */
#include "record/sql/record_pg.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_sqlite.h"
#include "base/text/base_text.h"
#include "base/text/base_url.h"

enum {
    SHOWN_SIZE = 96,
    REASON_SIZE = 140,
    SLICE_MS = 50,       /* how often `give_up` is looked at while waiting */
    SERVER_MIN = 100000, /* PostgreSQL 10 */
};

/* The server's own limits, so that it does not hold locks for one that has been
 * cut off, and a table that somebody has locked is told in good time. */
static const char session[] = "SET lock_timeout = '5s';"
                              "SET statement_timeout = 0;"
                              "SET idle_in_transaction_session_timeout = 0;"
                              "SET client_min_messages = error";

int wm_pg_fail(const struct wm_pg *pg, int status, const char *text, struct wm_error *err)
{
    return wm_fail(err, status, "%s: %s", pg->shown ? pg->shown : WM_URL_HIDDEN, text);
}

static int out_of_memory(const struct wm_pg *pg, struct wm_error *err)
{
    return wm_pg_fail(pg, WM_ENOMEM, "out of memory", err);
}

static const char *option(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword; options++) {
        if (strcmp(options->keyword, keyword) == 0 && options->val && options->val[0])
            return options->val;
    }
    return NULL;
}

/* In one line and of a length that leaves room for the reason. */
static char *make_shown(const PQconninfoOption *options)
{
    const char *host = option(options, "host"), *user = option(options, "user");
    const char *port = option(options, "port"), *name = option(options, "dbname");
    const char *service = option(options, "service");
    char text[SHOWN_SIZE], *shown = malloc(SHOWN_SIZE);
    bool is_socket = host && (host[0] == '/' || host[0] == '@');

    if (!host)
        host = option(options, "hostaddr");
    if (!shown)
        return NULL;
    snprintf(text, sizeof(text), "postgresql://%s%s%s%s%s/%s%s%s%s", user ? user : "",
             user ? "@" : "", host && !is_socket ? host : "", port ? ":" : "",
             port ? port : "", name && !strchr(name, '@') ? name : "",
             is_socket ? "?host=" : "", is_socket ? host : "", service ? "?service" : "");
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    }
    wm_text_utf8(shown, SHOWN_SIZE, text, strlen(text));
    return shown;
}

/* Where a password has a '/' or '@' in it that is not written as %2F or %40,
 * libpq takes parts of it for the port or the host. */
static bool is_plausible(const PQconninfoOption *options)
{
    const char *host = option(options, "host"), *port = option(options, "port");

    return (!port || port[strspn(port, "0123456789,")] == '\0') &&
           (!host || host[0] == '/' || host[0] == '@' || !strchr(host, '@'));
}

char *wm_pg_shown(const char *url)
{
    struct wm_libpq library;

    if (wm_libpq_load(&library, NULL) < 0)
        return strdup(WM_URL_HIDDEN);
    PQconninfoOption *options = library.PQconninfoParse(url, NULL);
    char *shown =
        options && is_plausible(options) ? make_shown(options) : strdup(WM_URL_HIDDEN);
    library.PQconninfoFree(options);
    return shown;
}

/* libpq's reason why a URL is wrong quotes from it, passwords too; what stands
 * before the quotation is safe. */
static int check_url(const struct wm_pg *pg, const char *url, struct wm_error *err)
{
    char *message = NULL, reason[REASON_SIZE] = "";

    PQconninfoOption *options = pg->library.PQconninfoParse(url, &message);
    if (message)
        wm_text_line(reason, sizeof(reason), message);
    pg->library.PQfreemem(message);
    if (options) {
        bool plausible = is_plausible(options);
        pg->library.PQconninfoFree(options);
        return plausible ? WM_OK
                         : wm_fail(err, WM_EINVAL,
                                   WM_URL_HIDDEN ": no port or host; / and @ in a password "
                                                 "are written %%2F and %%40");
    }
    size_t length = strcspn(reason, "\"");
    while (length > 0 && (reason[length - 1] == ' ' || reason[length - 1] == ':'))
        length--;
    return wm_fail(err, WM_EINVAL, WM_URL_HIDDEN ": not the URL of a database: %.*s",
                   (int)length, reason);
}

/* The first line without what the reader knows anyway. */
static const char *plain_reason(char reason[REASON_SIZE], const char *message)
{
    static const char *const noise[] = { "failed: ", "FATAL:  ", "ERROR:  " };

    wm_text_line(reason, REASON_SIZE, message);
    const char *text = reason;
    for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++) {
        const char *found = strstr(text, noise[i]);
        if (found && (found == text || i == 0))
            text = found + strlen(noise[i]);
    }
    return text[0] ? text : "the server would not say why";
}

static int connection_failure(const struct wm_pg *pg, struct wm_error *err)
{
    char reason[REASON_SIZE];

    return wm_pg_fail(
        pg, WM_EIO, plain_reason(reason, pg->library.PQerrorMessage(pg->connection)), err);
}

static int result_failure(const struct wm_pg *pg, const PGresult *result,
                          struct wm_error *err)
{
    const char *code =
        result ? pg->library.PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *message =
        result ? pg->library.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    char reason[REASON_SIZE];
    int status = WM_EIO;

    if (!message)
        return connection_failure(pg, err);
    if (code && strcmp(code, "42501") == 0) /* insufficient_privilege */
        status = WM_EACCES;
    wm_text_line(reason, sizeof(reason), message);
    return wm_pg_fail(pg, status, reason, err);
}

/* Waits until the socket is ready, somebody gives up or the time is over. */
static int wait_for(const struct wm_pg *pg, short events, int64_t deadline_ns,
                    struct wm_error *err)
{
    for (;;) {
        struct pollfd ready = { .fd = pg->library.PQsocket(pg->connection),
                                .events = events };
        if (ready.fd < 0)
            return connection_failure(pg, err);
        int count = poll(&ready, 1, SLICE_MS);
        if (count > 0)
            return WM_OK;
        if (count < 0 && errno != EINTR)
            return wm_fail_errno(err, pg->shown);
        if (pg->give_up && atomic_load(pg->give_up))
            return wm_pg_fail(pg, WM_EIO, "given up", err);
        if (wm_clock_monotonic_ns() >= deadline_ns)
            return wm_pg_fail(pg, WM_EIO, "the server does not answer", err);
    }
}

static int connect_to(struct wm_pg *pg, const char *url, struct wm_error *err)
{
    /* What stands before the URL is a default that it may change. */
    static const char *const keywords[] = {
        "fallback_application_name",
        "tcp_user_timeout",
        "keepalives_idle",
        "keepalives_interval",
        "keepalives_count",
        "connect_timeout",
        "dbname",
        "client_encoding",
        NULL,
    };
    const char *const values[] = { "wattmeter", "10000", "10",   "5", "3",
                                   "10",        url,     "UTF8", NULL };
    int64_t deadline_ns = wm_clock_monotonic_ns() + pg->patience_ns;

    pg->connection = pg->library.PQconnectStartParams(keywords, values, 1);
    if (!pg->connection)
        return out_of_memory(pg, err);
    if (pg->library.PQstatus(pg->connection) == CONNECTION_BAD)
        return connection_failure(pg, err);

    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (next != PGRES_POLLING_OK) {
        int status = wait_for(pg, next == PGRES_POLLING_WRITING ? POLLOUT : POLLIN,
                              deadline_ns, err);
        if (status < 0)
            return status;
        next = pg->library.PQconnectPoll(pg->connection);
        if (next == PGRES_POLLING_FAILED)
            return connection_failure(pg, err);
    }
    if (pg->library.PQsetnonblocking(pg->connection, 1) < 0)
        return connection_failure(pg, err);
    return WM_OK;
}

static int check_server(struct wm_pg *pg, struct wm_error *err)
{
    const char *encoding = pg->library.PQparameterStatus(pg->connection, "server_encoding");
    char text[REASON_SIZE];

    if (pg->library.PQserverVersion(pg->connection) < SERVER_MIN)
        return wm_pg_fail(pg, WM_EFORMAT, "needs PostgreSQL 10 or newer", err);
    if (!encoding || strcmp(encoding, "UTF8") == 0)
        return WM_OK;
    snprintf(text, sizeof(text), "its encoding is %.20s; a recording needs UTF8", encoding);
    return wm_pg_fail(pg, WM_EFORMAT, text, err);
}

/* Notices have no place to go to: the library never prints. */
static void drop_notice(void *context, const PGresult *result)
{
    (void)context, (void)result;
}

int wm_pg_open(struct wm_pg *pg, const char *url, const atomic_bool *give_up,
               struct wm_error *err)
{
    *pg = (struct wm_pg) { .give_up = give_up, .patience_ns = WM_PG_PATIENCE_NS };
    int status = wm_libpq_load(&pg->library, err);
    if (status == WM_OK) /* what SQL is put together with */
        status = wm_sqlite_load(err);
    if (status == WM_OK)
        status = check_url(pg, url, err);
    if (status < 0)
        return status;
    pg->shown = wm_pg_shown(url);
    if (!pg->shown)
        return out_of_memory(pg, err);

    status = connect_to(pg, url, err);
    if (status == WM_OK)
        pg->library.PQsetNoticeReceiver(pg->connection, drop_notice, NULL);
    if (status == WM_OK)
        status = check_server(pg, err);
    return status < 0 ? status : wm_pg_exec(pg, session, err);
}

void wm_pg_close(struct wm_pg *pg)
{
    if (pg->connection)
        pg->library.PQfinish(pg->connection);
    free(pg->shown);
    *pg = (struct wm_pg) { 0 };
}

/* Sends what waits in memory. */
static int flush(struct wm_pg *pg, struct wm_error *err)
{
    int64_t deadline_ns = wm_clock_monotonic_ns() + pg->patience_ns;
    int left;

    while ((left = pg->library.PQflush(pg->connection)) > 0) {
        int status = wait_for(pg, POLLIN | POLLOUT, deadline_ns, err);
        if (status < 0)
            return status;
        if (!pg->library.PQconsumeInput(pg->connection))
            return connection_failure(pg, err);
    }
    return left < 0 ? connection_failure(pg, err) : WM_OK;
}

/* The next result, NULL after the last. */
static int take_result(struct wm_pg *pg, PGresult **ret_result, struct wm_error *err)
{
    int64_t deadline_ns = wm_clock_monotonic_ns() + pg->patience_ns;

    int status = flush(pg, err);
    while (status == WM_OK && pg->library.PQisBusy(pg->connection)) {
        status = wait_for(pg, POLLIN, deadline_ns, err);
        if (status == WM_OK && !pg->library.PQconsumeInput(pg->connection))
            status = connection_failure(pg, err);
    }
    if (status == WM_OK)
        *ret_result = pg->library.PQgetResult(pg->connection);
    return status;
}

/* Takes results up to the last; `ret_kept`, unless NULL, gets that one. */
static int take_all(struct wm_pg *pg, PGresult **ret_kept, struct wm_error *err)
{
    PGresult *kept = NULL, *result = NULL;
    int status;

    while ((status = take_result(pg, &result, err)) == WM_OK && result) {
        ExecStatusType kind = pg->library.PQresultStatus(result);
        pg->library.PQclear(kept);
        kept = result;
        if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK) {
            status = result_failure(pg, result, err);
            break;
        }
    }
    if (status == WM_OK && !kept)
        status = connection_failure(pg, err);
    if (status < 0 || !ret_kept)
        pg->library.PQclear(kept);
    else
        *ret_kept = kept;
    return status;
}

int wm_pg_exec(struct wm_pg *pg, const char *sql, struct wm_error *err)
{
    if (!pg->library.PQsendQuery(pg->connection, sql))
        return connection_failure(pg, err);
    return take_all(pg, NULL, err);
}

static int send_query(struct wm_pg *pg, const char *sql, const char *const *texts,
                      int count, int format, struct wm_error *err)
{
    if (!pg->library.PQsendQueryParams(pg->connection, sql, count, NULL, texts, NULL, NULL,
                                       format))
        return connection_failure(pg, err);
    return WM_OK;
}

int wm_pg_query(struct wm_pg *pg, const char *sql, const char *const *texts, int count,
                struct wm_pg_rows *ret_rows, struct wm_error *err)
{
    PGresult *result = NULL;

    int status = send_query(pg, sql, texts, count, 0, err);
    if (status == WM_OK)
        status = take_all(pg, &result, err);
    if (status == WM_OK)
        *ret_rows = (struct wm_pg_rows) { pg, result };
    return status;
}

int wm_pg_run(struct wm_pg *pg, const char *sql, const char *const *texts, int count,
              struct wm_error *err)
{
    int status = send_query(pg, sql, texts, count, 0, err);

    return status < 0 ? status : take_all(pg, NULL, err);
}

int wm_pg_send(struct wm_pg *pg, const char *sql, const char *const *texts, int count,
               struct wm_error *err)
{
    int status = send_query(pg, sql, texts, count, 1, err);

    if (status == WM_OK && !pg->library.PQsetSingleRowMode(pg->connection))
        status = connection_failure(pg, err);
    return status;
}

int wm_pg_next(struct wm_pg *pg, struct wm_pg_rows *ret_row, struct wm_error *err)
{
    PGresult *result = NULL;

    int status = take_result(pg, &result, err);
    if (status < 0)
        return status;
    if (!result)
        return 0;
    switch (pg->library.PQresultStatus(result)) {
    case PGRES_SINGLE_TUPLE:
        *ret_row = (struct wm_pg_rows) { pg, result };
        return 1;
    case PGRES_TUPLES_OK: /* the end of the rows, once more without one */
        pg->library.PQclear(result);
        status = take_result(pg, &result, err);
        pg->library.PQclear(status < 0 ? NULL : result);
        return status;
    default:
        status = result_failure(pg, result, err);
        pg->library.PQclear(result);
        return status;
    }
}

void wm_pg_rows_free(struct wm_pg_rows *rows)
{
    if (rows->result)
        rows->pg->library.PQclear(rows->result);
    *rows = (struct wm_pg_rows) { 0 };
}

int wm_pg_rows_count(const struct wm_pg_rows *rows)
{
    return rows->pg->library.PQntuples(rows->result);
}

const char *wm_pg_rows_text(const struct wm_pg_rows *rows, int row, int column)
{
    const struct wm_libpq *library = &rows->pg->library;

    return library->PQgetisnull(rows->result, row, column)
               ? NULL
               : library->PQgetvalue(rows->result, row, column);
}

int64_t wm_pg_rows_number(const struct wm_pg_rows *rows, int row, int column,
                          int64_t otherwise)
{
    const char *text = wm_pg_rows_text(rows, row, column), *end;
    int64_t value;

    return text && wm_text_i64(text, &end, &value) && !*end ? value : otherwise;
}

bool wm_pg_rows_bits(const struct wm_pg_rows *rows, int column, Oid type,
                     uint64_t *ret_bits)
{
    const struct wm_libpq *library = &rows->pg->library;
    const char *bytes = wm_pg_rows_text(rows, 0, column);
    uint64_t bits;

    if (!bytes || library->PQftype(rows->result, column) != type ||
        library->PQfformat(rows->result, column) != 1 ||
        library->PQgetlength(rows->result, 0, column) != (int)sizeof(bits))
        return false;
    memcpy(&bits, bytes, sizeof(bits));
    *ret_bits = be64toh(bits);
    return true;
}

int wm_pg_copy_begin(struct wm_pg *pg, const char *sql, struct wm_error *err)
{
    PGresult *result = NULL;
    int status;

    if (!pg->library.PQsendQuery(pg->connection, sql))
        return connection_failure(pg, err);
    while ((status = take_result(pg, &result, err)) == WM_OK &&
           pg->library.PQresultStatus(result) == PGRES_COMMAND_OK)
        pg->library.PQclear(result);
    if (status < 0)
        return status;
    if (pg->library.PQresultStatus(result) != PGRES_COPY_IN)
        status = result_failure(pg, result, err);
    pg->library.PQclear(result);
    return status;
}

int wm_pg_copy(struct wm_pg *pg, const char *bytes, size_t length, struct wm_error *err)
{
    int taken;

    while ((taken = pg->library.PQputCopyData(pg->connection, bytes, (int)length)) == 0) {
        int status = flush(pg, err);
        if (status < 0)
            return status;
    }
    return taken < 0 ? connection_failure(pg, err) : WM_OK;
}

int wm_pg_copy_end(struct wm_pg *pg, struct wm_error *err)
{
    int taken;

    while ((taken = pg->library.PQputCopyEnd(pg->connection, NULL)) == 0) {
        int status = flush(pg, err);
        if (status < 0)
            return status;
    }
    return taken < 0 ? connection_failure(pg, err) : take_all(pg, NULL, err);
}
