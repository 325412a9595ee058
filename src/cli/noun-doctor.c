/* Is the installation in order, and does the yard keep its promises?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/daemon.h"
#include "cli/place.h"
#include "cli/rest.h"
#include "cli/term.h"

#include <errno.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    LEAST_FREE_MIB = 512,
    LEAST_CERTIFICATE_DAYS = 7, /* the daemon makes a new one 30 days before the end */
};

static void report(json_t *checks, const char *name, bool ok, const char *format, ...)
    PRINTF_LIKE(4, 5);
static void report(json_t *checks, const char *name, bool ok, const char *format, ...)
{
    auto_free char *detail = NULL;
    va_list args;

    va_start(args, format);
    detail = xvasprintf(format, args);
    va_end(args);
    json_array_append_new(
        checks, json_pack("{s:s, s:b, s:s}", "name", name, "ok", ok, "detail", detail));
}

static void check_program(json_t *checks)
{
    auto_free char *program = NULL;
    struct err e;

    if (daemon_program(&program, &e) < 0)
        report(checks, "program", false, "%s; install yardd beside yard", e.msg);
    else
        report(checks, "program", true, "%s", program);
}

static void check_folder(json_t *checks, const char *home)
{
    struct stat st;

    if (stat(home, &st) < 0 && errno == ENOENT)
        report(checks, "folder", true, "%s is not there yet; yard up makes it", home);
    else if (stat(home, &st) < 0 || !S_ISDIR(st.st_mode))
        report(checks, "folder", false, "%s is not a folder", home);
    else if (access(home, R_OK | W_OK | X_OK) < 0)
        report(checks, "folder", false, "%s is not writable for you", home);
    else if (st.st_mode & (S_IWGRP | S_IRWXO))
        report(checks, "folder", false, "%s is open to others; close it with: chmod 700 %s",
               home, home);
    else
        report(checks, "folder", true, "%s", home);
}

static void check_space(json_t *checks, const char *home)
{
    struct statvfs fs;
    unsigned long long free_mib;

    if (statvfs(home, &fs) < 0)
        return;
    free_mib = (unsigned long long)fs.f_bavail * fs.f_frsize >> 20;
    report(checks, "disk", free_mib >= LEAST_FREE_MIB, "%llu MiB are free under %s%s", free_mib,
           home, free_mib >= LEAST_FREE_MIB ? "" : "; make room");
}

static void check_clock(json_t *checks)
{
    /* A certificate made now must not be from the future tomorrow: 2024-01-01 is before any
     * release. */
    bool ok = clock_wall_ms() > 1704067200000;
    char buf[CLOCK_ISO_BYTES];

    report(checks, "clock", ok, "%s%s", clock_format_iso(clock_wall_ms(), buf),
           ok ? "" : " cannot be right; set the clock");
}

static void check_secret(json_t *checks, const char *name, const char *path)
{
    struct stat st;

    if (!path)
        return;
    if (stat(path, &st) < 0)
        report(checks, name, false, "%s cannot be read", path);
    else if (st.st_mode & (S_IRWXG | S_IRWXO))
        report(checks, name, false, "%s is open to others; close it with: chmod 600 %s", path,
               path);
    else
        report(checks, name, true, "%s is yours alone", path);
}

static void check_certificate(json_t *checks, const char *name, const char *path)
{
    FILE *file = path ? fopen(path, "re") : NULL;
    X509 *cert = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
    int days = 0, seconds = 0;

    if (file)
        fclose(file);
    if (!cert) {
        report(checks, name, false, "%s is not a certificate", path ? path : "(none)");
        return;
    }
    if (!ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)))
        days = -1;
    report(checks, name, days >= LEAST_CERTIFICATE_DAYS, "%s is valid for %d days", path, days);
    X509_free(cert);
}

static void
check_address(json_t *checks, const char *name, const json_t *status, const char *key)
{
    const char *url = json_string_value(json_object_get(status, key));
    const char *ca_file = json_string_value(json_object_get(status, "caFile"));
    bool ok = url && daemon_is_healthy(url, ca_file);

    report(checks, name, ok, "%s %s", url ? url : "(no address)",
           ok ? "answers" : "does not answer; see the log");
}

static void check_running(json_t *checks, const char *home)
{
    auto_json json_t *status = daemon_status(home);
    auto_free char *own = xasprintf("%s/tls/server.pem", home);

    if (!json_is_true(json_object_get(status, "running"))) {
        report(checks, "running", false, "no yard is running; start one with: yard up");
        return;
    }
    check_address(checks, "running", status, "apiUrl");
    check_address(checks, "page", status, "httpUrl");
    check_secret(checks, "token", json_string_value(json_object_get(status, "tokenFile")));
    check_certificate(checks, "authority",
                      json_string_value(json_object_get(status, "caFile")));
    if (access(own, F_OK) == 0) /* not there when somebody else's certificate is used */
        check_certificate(checks, "certificate", own);
}

/* What the yard says of itself: its invariants, its database. */
static void check_yard(json_t *checks, struct call *call)
{
    auto_json json_t *theirs = NULL;
    struct rest *rest;
    struct err e;

    if (call_rest(call, &rest, &e) < 0 ||
        rest_list(rest,
                  args_flag(call->args, "storage") ? "/yard/doctor?storage=true"
                                                   : "/yard/doctor",
                  &theirs, &e) < 0) {
        report(checks, "yard", false, "%s", e.msg);
        return;
    }
    json_array_extend(checks, theirs);
}

static void print_checks(const json_t *checks)
{
    bool colour = term_has_colour(stdout);
    const json_t *check;
    size_t i;

    json_array_foreach(checks, i, check)
    {
        bool ok = json_is_true(json_object_get(check, "ok"));
        const char *name = json_string_value(json_object_get(check, "name"));
        const char *detail = json_string_value(json_object_get(check, "detail"));
        auto_str line = {0};

        if (colour)
            fputs(ok ? "\x1b[32m" : "\x1b[31m", stdout);
        fputs(ok ? "ok  " : "BAD ", stdout);
        if (colour)
            fputs("\x1b[0m", stdout);
        str_addf(&line, " %s", name ? name : "");
        if (detail && *detail)
            str_addf(&line, ": %s", detail);
        str_add_char(&line, '\n');
        term_write(stdout, str_text(&line), line.len);
    }
}

static int doctor(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *checks = json_array();
    struct place *place = NULL;
    json_t *check;
    size_t i;
    bool local;

    (void)e;
    local = call_place(call, &place, NULL) < 0 || place->is_local;
    if (local) {
        check_program(checks);
        check_folder(checks, call->home);
        check_space(checks, call->home);
        check_clock(checks);
        check_running(checks, call->home);
    }
    if (place)
        check_yard(checks, call);
    json_array_foreach(checks, i, check)
    {
        if (!json_is_true(json_object_get(check, "ok")))
            call->exit_status = 1;
    }
    if (!call_wants_text(call))
        *ret_result = take_ptr(&checks);
    else
        print_checks(checks);
    return 0;
}

static const struct option_row storage = {
    .names = "--storage",
    .kind = OPTION_FLAG,
    .help = "Also compare all stored files with what is known of them. Reads every folder.",
};

const struct command doctor_commands[] = {
    {
        .path = "doctor",
        .summary = "Check the installation and the yard's invariants.",
        .examples = {{"Check everything.", "yard doctor"},
                     {"The data too.", "yard doctor --storage"},
                     {"What is wrong, for programs.", "yard doctor --query \"[?!ok]\""}},
        .options = OPTIONS(&storage),
        .run = doctor,
        .table = "{Name: name, Ok: ok, Detail: detail}",
    },
    {0},
};
