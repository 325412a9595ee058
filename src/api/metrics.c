/* Figures for Prometheus: counted without locks, written on demand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "base/clock.h"
#include "base/fs.h"
#include "db/writer.h"
#include "http/server.h"
#include "store/work.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Upper bounds of the latency buckets in microseconds; the last is infinity. */
static const long bounds_us[METRIC_BUCKETS - 1] = {100,   250,   500,    1000,   2500,   5000,
                                                   10000, 50000, 100000, 500000, 1000000};

void metrics_count(struct call *call, int status)
{
    struct api *api = call->api;
    int64_t us = clock_mono_us() - call->started_us;
    size_t bucket = 0;

    while (bucket < METRIC_BUCKETS - 1 && us > bounds_us[bucket])
        bucket++;
    api->latency[bucket]++;
    api->latency_us_total += (unsigned long long)us;
    if (status == 401)
        api->refused[0]++;
    else if (status == 403)
        api->refused[1]++;
    else if (status == 421)
        api->refused[2]++;
    if (call->route && status >= 100 && status < 600) {
        size_t row = (size_t)(call->route - api_routes);

        api->counts[row * METRIC_CLASSES + (size_t)(status / 100)]++;
    }
}

static void head(struct str *out, const char *name, const char *type, const char *help)
{
    str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
one(struct str *out, const char *name, const char *type, const char *help, double value)
{
    head(out, name, type, help);
    str_addf(out, "%s %.17g\n", name, value);
}

static void add_requests(struct str *out, struct api *api)
{
    head(out, "yard_requests_total", "counter", "Requests by operation and class of status.");
    for (size_t i = 0; i < api_route_count; i++) {
        for (size_t class = 1; class < METRIC_CLASSES; class ++) {
            unsigned long long n = api->counts[i * METRIC_CLASSES + class];

            if (n)
                str_addf(out, "yard_requests_total{operation=\"%s\",status=\"%zuxx\"} %llu\n",
                         api_routes[i].operation_id, class, n);
        }
    }
    head(out, "yard_refused_total", "counter", "Requests refused before a handler, by status.");
    str_addf(out, "yard_refused_total{status=\"401\"} %llu\n", api->refused[0]);
    str_addf(out, "yard_refused_total{status=\"403\"} %llu\n", api->refused[1]);
    str_addf(out, "yard_refused_total{status=\"421\"} %llu\n", api->refused[2]);
}

static void add_latency(struct str *out, struct api *api)
{
    unsigned long long sum = 0;

    head(out, "yard_request_seconds", "histogram", "From the head of a request to its reply.");
    for (size_t i = 0; i < METRIC_BUCKETS; i++) {
        sum += api->latency[i];
        if (i < METRIC_BUCKETS - 1)
            str_addf(out, "yard_request_seconds_bucket{le=\"%g\"} %llu\n",
                     (double)bounds_us[i] / 1e6, sum);
        else
            str_addf(out, "yard_request_seconds_bucket{le=\"+Inf\"} %llu\n", sum);
    }
    str_addf(out, "yard_request_seconds_sum %g\nyard_request_seconds_count %llu\n",
             (double)api->latency_us_total / 1e6, sum);
}

static double resident_bytes(void)
{
    auto_str text = {0};
    long pages = 0;

    if (fs_read("/proc/self/statm", 4096, &text, NULL) == 0) {
        const char *second = strchr(str_text(&text), ' ');

        pages = second ? strtol(second, NULL, 10) : 0;
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* What has not ended; what has is in the job lists. */
static void add_work(struct str *out, struct api *api)
{
    struct work_counts counts = {0};
    auto_reader reader = {0};

    if (store_pool_take(api->config.pool, &reader, NULL) < 0 ||
        store_count_work(reader.db, &counts, NULL) < 0)
        return;
    head(out, "yard_jobs", "gauge", "Jobs that have not ended, by state.");
    for (int state = JOB_QUEUED; state < JOB_SUCCEEDED; state++)
        str_addf(out, "yard_jobs{state=\"%s\"} %lld\n", job_state_name((enum job_state)state),
                 (long long)counts.jobs[state]);
    head(out, "yard_nodes", "gauge", "Nodes of all clusters, by state.");
    for (int state = NODE_CREATING; state < NODE_GONE; state++)
        str_addf(out, "yard_nodes{state=\"%s\"} %lld\n",
                 node_state_name((enum node_state)state), (long long)counts.nodes[state]);
    one(out, "yard_queue_oldest_seconds", "gauge",
        "How long the first of the queue has waited.",
        counts.oldest_queued_ms ? (double)(clock_wall_ms() - counts.oldest_queued_ms) / 1e3
                                : 0);
}

void handle_metrics(struct call *call)
{
    struct api *api = call->api;
    struct db_writer_counts writes;
    struct http_counts http = {0};
    struct stat file = {0};
    auto_str out = {0};

    control_writer_counts(api->config.control, &writes);
    if (api->server)
        http_server_counts(api->server, &http);
    if (stat(api->config.db_path, &file) < 0)
        file.st_size = 0;
    add_requests(&out, api);
    add_latency(&out, api);
    add_work(&out, api);
    one(&out, "yard_connections_open", "gauge", "Connections now.",
        (double)http.connections_open);
    one(&out, "yard_connections_total", "counter", "Connections taken.",
        (double)http.connections_total);
    one(&out, "yard_malformed_total", "counter", "Requests refused by the parser.",
        (double)http.rejected_total);
    one(&out, "yard_commits_total", "counter", "Commits, each with one fsync.",
        (double)writes.commits);
    one(&out, "yard_writes_total", "counter", "Changes handed to the writer.",
        (double)writes.writes);
    one(&out, "yard_writes_refused_total", "counter", "Changes that were refused.",
        (double)writes.refused);
    one(&out, "yard_database_bytes", "gauge", "Size of the database file.",
        (double)file.st_size);
    one(&out, "yard_start_time_seconds", "gauge", "When the service started, since 1970.",
        (double)api->started_ms / 1e3);
    one(&out, "process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
    reply_text(call, 200, "text/plain; version=0.0.4; charset=utf-8", str_text(&out));
}
