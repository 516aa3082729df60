/* SPDX-License-Identifier: Apache-2.0 */
/* record_pg.c - a connection to PostgreSQL on which nothing takes for ever. */
#include "record/sql/record_pg.h"

#include <dlfcn.h>
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_clock.h"
#include "base/base_text.h"
#include "base/base_utf8.h"

/* Libpq is opened when it is needed: with what it needs in turn (TLS, Kerberos, LDAP) it
 * would cost every command 4 ms and 5 MB. */
#define WM_LIBPQ_FUNCTIONS(FUNCTION)                                                       \
    FUNCTION(PQclear)                                                                      \
    FUNCTION(PQconnectPoll)                                                                \
    FUNCTION(PQconnectStartParams)                                                         \
    FUNCTION(PQconninfoFree)                                                               \
    FUNCTION(PQconninfoParse)                                                              \
    FUNCTION(PQconsumeInput)                                                               \
    FUNCTION(PQerrorMessage)                                                               \
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
    FUNCTION(PQserverVersion)                                                              \
    FUNCTION(PQsetNoticeReceiver)                                                          \
    FUNCTION(PQsetnonblocking)                                                             \
    FUNCTION(PQsocket)                                                                     \
    FUNCTION(PQstatus)

/* Each function under its own name. */
struct wm_libpq {
#define WM_LIBPQ_MEMBER(name) __typeof__(name) *name;
    WM_LIBPQ_FUNCTIONS(WM_LIBPQ_MEMBER)
#undef WM_LIBPQ_MEMBER
};

/* The servers' limits: a row has to fit into a page, whose header it shares with a bit for
 * each column; and the columns of a table. */
enum { ROW_COLUMNS_MAX = 1001, TABLE_COLUMNS_MAX = 1600 };

/* Rows that are asked for at a time. */
#define ROWS_AT_ONCE 256

/* The types that are known, by the number that PostgreSQL has for them. */
enum { TYPE_BOOL = 16, TYPE_INT8 = 20, TYPE_INT4 = 23, TYPE_FLOAT8 = 701 };

struct wm_pg {
    struct wm_db db;
    struct wm_libpq library;
    PGconn *connection;
    int64_t patience_ns;
    char *shown;                /* what messages call the database */
    const atomic_bool *give_up; /* whoever sets it ends all waiting; may be NULL */
    int cursors;                /* number of cursors that were opened */
    bool has_cursors;           /* cursors may be open */
};

static const struct symbol {
    const char *name;
    size_t slot;
} symbols[] = {
#define SYMBOL(name) { #name, offsetof(struct wm_libpq, name) },
    WM_LIBPQ_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

/* It stays loaded: its libraries do not like to be unloaded. */
static int load_library(struct wm_libpq *ret_library, struct wm_error *err)
{
    struct wm_libpq library;

    void *handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        return wm_fail(err, WM_ENODEV,
                       WM_URL_HIDDEN ": libpq.so.5 is not installed (Debian: libpq5)");
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (!address) {
            dlclose(handle);
            return wm_fail(err, WM_ENODEV, WM_URL_HIDDEN ": libpq.so.5 has no %s",
                           symbols[i].name);
        }
        memcpy((char *)&library + symbols[i].slot, &address, sizeof(address));
    }
    dlclose(handle);
    *ret_library = library;
    return WM_OK;
}

enum {
    SHOWN_SIZE = 96,
    REASON_SIZE = 140,
    SLICE_MS = 50,       /* how often `give_up` is looked at while waiting */
    SERVER_MIN = 100000, /* PostgreSQL 10 */
};

/* The server's own limits, so that it does not hold locks for one that has been
 * cut off, and a table that somebody has locked is reported in good time. */
static const char session[] = "SET lock_timeout = '5s';"
                              "SET statement_timeout = 0;"
                              "SET idle_in_transaction_session_timeout = 0;"
                              "SET client_min_messages = error;"
                              "SET standard_conforming_strings = on;"
                              "SET search_path = " WM_PG_SCHEMA;

static int fail(const struct wm_pg *pg, int status, const char *text, struct wm_error *err)
{
    return wm_fail(err, status, "%s: %s", pg->shown ? pg->shown : WM_URL_HIDDEN, text);
}

static int out_of_memory(const struct wm_pg *pg, struct wm_error *err)
{
    return fail(pg, WM_ENOMEM, "out of memory", err);
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

    if (load_library(&library, NULL) < 0)
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

/* The first line without the server, which the reader knows. In any language the server's
 * own reason stands behind a colon and two blanks ("FATAL:  "), the system's behind the
 * last colon. */
static const char *plain_reason(char reason[REASON_SIZE], const char *message)
{
    const char *text = reason;

    wm_text_line(reason, REASON_SIZE, message);
    for (const char *c = reason; *c; c++) {
        if (c[0] != ':' || c[1] != ' ')
            continue;
        text = c + 2;
        if (c[2] == ' ')
            return c + 3;
    }
    return text[0] ? text : "the server would not say why";
}

static int connection_failure(const struct wm_pg *pg, struct wm_error *err)
{
    char reason[REASON_SIZE];

    return fail(pg, WM_EIO,
                plain_reason(reason, pg->library.PQerrorMessage(pg->connection)), err);
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
    return fail(pg, status, reason, err);
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
            return fail(pg, WM_EIO, "given up", err);
        if (wm_clock_monotonic_ns() >= deadline_ns)
            return fail(pg, WM_EIO, "the server does not answer", err);
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
        return fail(pg, WM_EFORMAT, "needs PostgreSQL 10 or newer", err);
    if (!encoding || strcmp(encoding, "UTF8") == 0)
        return WM_OK;
    snprintf(text, sizeof(text), "its encoding is %.20s; a recording needs UTF8", encoding);
    return fail(pg, WM_EFORMAT, text, err);
}

/* Notices have no place to go to: the library never prints. */
static void drop_notice(void *context, const PGresult *result)
{
    (void)context, (void)result;
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

/* Runs statements; `ret_kept`, unless NULL, gets the result of the last. */
static int run(struct wm_pg *pg, const char *sql, PGresult **ret_kept, struct wm_error *err)
{
    if (!pg->library.PQsendQuery(pg->connection, sql))
        return connection_failure(pg, err);
    return take_all(pg, ret_kept, err);
}

/* A table that a cursor has read from cannot be changed before that is closed. */
static int pg_exec(const struct wm_db *db, const char *sql, struct wm_error *err)
{
    struct wm_pg *pg = db->handle;
    int status = pg->has_cursors ? run(pg, "CLOSE ALL", NULL, err) : WM_OK;

    pg->has_cursors = false;
    return status < 0 ? status : run(pg, sql, NULL, err);
}

/* By a cursor, as there may be more rows than memory. In binary, which keeps every double
 * as it is. */
static int pg_query(const struct wm_db *db, const char *sql, struct wm_db_rows *ret_rows,
                    struct wm_error *err)
{
    struct wm_pg *pg = db->handle;
    int cursor = ++pg->cursors;
    PGresult *result = NULL;

    pg->has_cursors = true;

    char *text =
        sqlite3_mprintf("DECLARE c%d BINARY NO SCROLL CURSOR FOR %s; FETCH %d FROM c%d",
                        cursor, sql, ROWS_AT_ONCE, cursor);
    int status = text ? run(pg, text, &result, err) : out_of_memory(pg, err);
    sqlite3_free(text);
    if (status == WM_OK)
        *ret_rows =
            (struct wm_db_rows) { .db = db, .result = result, .row = -1, .cursor = cursor };
    return status;
}

static int pg_next(struct wm_db_rows *rows, struct wm_error *err)
{
    struct wm_pg *pg = rows->db->handle;
    PGresult *result = NULL;
    char sql[64];

    int count = pg->library.PQntuples(rows->result);
    if (++rows->row < count)
        return 1;
    if (count < ROWS_AT_ONCE)
        return 0;
    snprintf(sql, sizeof(sql), "FETCH %d FROM c%d", ROWS_AT_ONCE, rows->cursor);
    int status = run(pg, sql, &result, err);
    if (status < 0)
        return status;
    pg->library.PQclear(rows->result);
    rows->result = result;
    rows->row = 0;
    return pg->library.PQntuples(result) > 0;
}

static const char *pg_text(const struct wm_db_rows *rows, int column)
{
    const struct wm_pg *pg = rows->db->handle;

    return pg->library.PQgetisnull(rows->result, rows->row, column)
               ? NULL
               : pg->library.PQgetvalue(rows->result, rows->row, column);
}

/* The most significant byte comes first. */
static int64_t bits_at(const struct wm_db_rows *rows, int column)
{
    const struct wm_pg *pg = rows->db->handle;
    const char *bytes = pg->library.PQgetvalue(rows->result, rows->row, column);
    int length = pg->library.PQgetlength(rows->result, rows->row, column);
    uint64_t bits = length > 0 && bytes[0] < 0 ? UINT64_MAX : 0;

    for (int i = 0; i < length; i++)
        bits = bits << 8 | (unsigned char)bytes[i];
    return (int64_t)bits;
}

static enum wm_db_cell pg_integer(const struct wm_db_rows *rows, int column, int64_t *ret)
{
    const struct wm_pg *pg = rows->db->handle;
    Oid type = pg->library.PQftype(rows->result, column);

    if (pg->library.PQgetisnull(rows->result, rows->row, column))
        return WM_DB_NULL;
    if (type != TYPE_INT8 && type != TYPE_INT4 && type != TYPE_BOOL)
        return WM_DB_WRONG;
    *ret = bits_at(rows, column);
    return WM_DB_OK;
}

static enum wm_db_cell pg_number(const struct wm_db_rows *rows, int column, double *ret)
{
    const struct wm_pg *pg = rows->db->handle;

    if (pg->library.PQgetisnull(rows->result, rows->row, column))
        return WM_DB_NULL;
    if (pg->library.PQftype(rows->result, column) != TYPE_FLOAT8)
        return WM_DB_WRONG;
    int64_t bits = bits_at(rows, column);
    memcpy(ret, &bits, sizeof(*ret));
    return WM_DB_OK;
}

static void pg_end(struct wm_db_rows *rows)
{
    if (rows->result) {
        const struct wm_pg *pg = rows->db->handle;
        pg->library.PQclear(rows->result);
    }
    *rows = (struct wm_db_rows) { 0 };
}

static const struct wm_db_ops pg_ops = {
    .exec = pg_exec,
    .query = pg_query,
    .next = pg_next,
    .text = pg_text,
    .integer = pg_integer,
    .number = pg_number,
    .end = pg_end,
};

/* In a connection that does not block all of it waits in memory, and take_all() sends it.
 */
int wm_pg_copy(struct wm_pg *pg, const char *sql, const char *text, size_t length,
               struct wm_error *err)
{
    PGresult *result = NULL;

    if (!pg->library.PQsendQuery(pg->connection, sql))
        return connection_failure(pg, err);
    int status = take_result(pg, &result, err);
    if (status == WM_OK && pg->library.PQresultStatus(result) != PGRES_COPY_IN)
        status = result_failure(pg, result, err);
    pg->library.PQclear(result);
    if (status < 0)
        return status;
    if (pg->library.PQputCopyData(pg->connection, text, (int)length) <= 0 ||
        pg->library.PQputCopyEnd(pg->connection, NULL) <= 0)
        return connection_failure(pg, err);
    return take_all(pg, NULL, err);
}

const struct wm_db *wm_pg_db(const struct wm_pg *pg)
{
    return &pg->db;
}

static int open_pg(struct wm_pg *pg, const char *url, struct wm_error *err)
{
    int status = wm_sqlite_load(err); /* what SQL is put together with */

    if (status == WM_OK)
        status = check_url(pg, url, err);
    if (status < 0)
        return status;
    pg->shown = wm_pg_shown(url);
    if (!pg->shown)
        return out_of_memory(pg, err);
    pg->db = (struct wm_db) {
        .ops = &pg_ops,
        .dialect = &wm_dialect_postgres,
        .handle = pg,
        .shown = pg->shown,
        .row_max = ROW_COLUMNS_MAX,
        .width_max = TABLE_COLUMNS_MAX,
    };
    status = connect_to(pg, url, err);
    if (status == WM_OK)
        pg->library.PQsetNoticeReceiver(pg->connection, drop_notice, NULL);
    if (status == WM_OK)
        status = check_server(pg, err);
    return status < 0 ? status : run(pg, session, NULL, err);
}

int wm_pg_open(const char *url, const atomic_bool *give_up, struct wm_pg **ret_pg,
               struct wm_error *err)
{
    struct wm_pg *pg = calloc(1, sizeof(*pg));

    if (!pg)
        return wm_fail(err, WM_ENOMEM, WM_URL_HIDDEN ": out of memory");
    pg->give_up = give_up;
    pg->patience_ns = WM_PG_PATIENCE_NS;
    int status = load_library(&pg->library, err);
    if (status == WM_OK)
        status = open_pg(pg, url, err);
    if (status < 0)
        wm_pg_close(pg);
    else
        *ret_pg = pg;
    return status;
}

void wm_pg_close(struct wm_pg *pg)
{
    if (!pg)
        return;
    if (pg->connection)
        pg->library.PQfinish(pg->connection);
    free(pg->shown);
    free(pg);
}

/* WM_EFORMAT unless it is one that we know. Drafts, which no released version wrote, lack
 * some columns. */
static int check_version(const struct wm_db *db, struct wm_error *err)
{
    int64_t version = 0;

    int status = wm_db_number(db, &version, err,
                              "SELECT max(version) FROM recording_format WHERE 2 ="
                              " (SELECT count(*) FROM pg_catalog.pg_attribute WHERE"
                              " NOT attisdropped AND ((attrelid = to_regclass('channel')"
                              " AND attname = 'sensor') OR (attname = 'cpu_ns'"
                              " AND attrelid = to_regclass('region_call'))))");
    if (status < 0 || (version >= 1 && version <= WM_RECORDING_FORMAT))
        return status;
    if (version < 1)
        return wm_fail(err, WM_EFORMAT, "%s: recorded before version 0.1.0", db->shown);
    return wm_fail(err, WM_EFORMAT,
                   "%s: made by a newer wattmeter (format %lld, this one knows up to %d)",
                   db->shown, (long long)version, WM_RECORDING_FORMAT);
}

int wm_pg_check_format(const struct wm_pg *pg, bool *ret_is_there, struct wm_error *err)
{
    const struct wm_db *db = &pg->db;
    int64_t relations = 0, has_format = 0;

    int status = wm_db_number(db, &relations, err,
                              "SELECT count(*) FROM pg_catalog.pg_class"
                              " WHERE relnamespace = to_regnamespace('" WM_PG_SCHEMA "')");
    if (status == WM_OK)
        status = wm_db_number(db, &has_format, err,
                              "SELECT count(*) FROM pg_catalog.pg_class WHERE"
                              " relkind = 'r' AND oid = to_regclass('recording_format')");
    if (status < 0)
        return status;
    *ret_is_there = has_format > 0;
    if (relations > 0 && !*ret_is_there)
        return fail(pg, WM_EFORMAT, "its schema " WM_PG_SCHEMA " holds something else",
                    err);
    return *ret_is_there ? check_version(db, err) : WM_OK;
}

/* The reader of a recording. */

struct postgres_reader {
    struct wm_sql_reader reader;
    struct wm_pg *pg;
};

/* A server may have to sort before it gives the first row. */
#define SORT_PATIENCE_NS (INT64_C(120) * 1000 * 1000 * 1000)

/* One look at all tables, so that a writer that goes on does not show in one
 * and not in the other. */
static int postgres_open(void *state, const char *path, size_t run_index,
                         struct wm_error *err)
{
    struct postgres_reader *postgres = state;
    bool is_there = false;

    int status = wm_pg_open(path, NULL, &postgres->pg, err);
    if (status < 0)
        return status;
    postgres->pg->patience_ns = SORT_PATIENCE_NS;
    postgres->reader.db = postgres->pg->db;
    postgres->reader.most_calls = INT64_MAX - 1;
    status =
        run(postgres->pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, err);
    if (status == WM_OK)
        status = wm_pg_check_format(postgres->pg, &is_there, err);
    if (status == WM_OK && !is_there)
        status = fail(postgres->pg, WM_EFORMAT, "holds no recording of wattmeter", err);
    return status < 0 ? status : wm_sql_reader_open(&postgres->reader, run_index, err);
}

static void postgres_close(void *state)
{
    struct postgres_reader *postgres = state;

    wm_sql_reader_release(&postgres->reader);
    wm_pg_close(postgres->pg);
}

const struct wm_reader_ops wm_reader_postgres = {
    .name = "PostgreSQL",
    .is_target = wm_url_is_postgres,
    .state_size = sizeof(struct postgres_reader),
    .open = postgres_open,
    .next = wm_sql_reader_next,
    .regions = wm_sql_reader_regions,
    .calls = wm_sql_reader_calls,
    .close = postgres_close,
};
