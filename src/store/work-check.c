/* Are I2, I3 and I6 kept in the tables?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/work.h"

#include "store/store-internal.h"

/* Queries that count what must not be.  States are those of core/yard.h: an attempt below 3 is
 * live, a job from 3 on has ended, 3 with success. */
const struct store_invariant store_work_invariants[] = {
    {"I2: a job has at most one live attempt",
     "SELECT count(*) FROM (SELECT job_id FROM attempt WHERE state < 3 GROUP BY job_id"
     " HAVING count(*) > 1)"},
    {"I2: a live attempt is the last of its job, and the one it names",
     "SELECT count(*) FROM attempt a JOIN job_state j ON j.resource_id = a.job_id"
     " WHERE a.state < 3 AND (j.attempt_id <> a.id OR EXISTS (SELECT 1 FROM attempt b"
     " WHERE b.job_id = a.job_id AND b.number > a.number))"},
    {"I2: attempts of a job are numbered 1, 2, ...",
     "SELECT count(*) FROM (SELECT job_id FROM attempt GROUP BY job_id"
     " HAVING min(number) <> 1 OR max(number) <> count(*))"},
    {"I2: a job that waits or has ended has no live attempt",
     "SELECT count(*) FROM job_state j WHERE j.state IN (0, 3, 4) AND EXISTS"
     " (SELECT 1 FROM attempt a WHERE a.job_id = j.resource_id AND a.state < 3)"},
    {"I3: a job that ended has the time of its end",
     "SELECT count(*) FROM job_state WHERE state >= 3 AND ended_ms = 0"},
    {"I3: a job that succeeded has exit code 0 and no error",
     "SELECT count(*) FROM job_state WHERE state = 3"
     " AND (exit_code <> 0 OR coalesce(error_code, '') <> '')"},
    {"I3: a job that failed has a cause, and no exit code 0",
     "SELECT count(*) FROM job_state WHERE state = 4"
     " AND (exit_code = 0 OR coalesce(error_code, '') = '')"},
    {"I3: an attempt that ended has its result, one that lives has none",
     "SELECT count(*) FROM attempt WHERE (state = 3) <> (result IS NOT NULL)"},
    {"I6: a node is held by a live attempt that names it, or by none",
     "SELECT count(*) FROM node n WHERE n.attempt_id <> 0 AND NOT EXISTS"
     " (SELECT 1 FROM attempt a, json_each(a.nodes) h WHERE a.id = n.attempt_id"
     " AND a.state < 3 AND h.value = n.id)"},
    {"I6: a node is held by one attempt at most",
     "SELECT count(*) FROM (SELECT h.value FROM attempt a, json_each(a.nodes) h"
     " WHERE a.state < 3 GROUP BY h.value HAVING count(*) > 1)"},
    {"I6: an idle node is held by nobody",
     "SELECT count(*) FROM node WHERE state = 1 AND attempt_id <> 0"},
    {"every cluster and job has its state",
     "SELECT count(*) FROM resource r WHERE (r.kind = 'cluster' AND NOT EXISTS"
     " (SELECT 1 FROM cluster_state s WHERE s.resource_id = r.id)) OR (r.kind = 'job' AND"
     " NOT EXISTS (SELECT 1 FROM job_state s WHERE s.resource_id = r.id))"},
    {0},
};
