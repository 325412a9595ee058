/* work.h - clusters and jobs, wired into the house: the engine, and where volumes lie on this
 * machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_WORK_H
#define DAEMON_WORK_H

#include "base/err.h"

struct control_config;
struct engine;
struct engine_events;
struct home;
struct loop;
struct settings;
struct volume;

/* The members of the config that have to do with clusters and jobs, callbacks aside.  Strings
 * are those of the settings, or in the hands of the caller (*ret_file_servers). */
int work_configure(const struct settings *settings,
                   const struct home *home,
                   struct control_config *config,
                   char **ret_file_servers,
                   struct err *e);
int work_make_engine(const struct settings *settings,
                     const struct home *home,
                     struct loop *loop,
                     const struct engine_events *events,
                     struct engine **ret_engine,
                     struct err *e);
/* The tree of a share or container; caller frees. */
int work_volume_folder(const struct home *home,
                       const struct volume *volume,
                       char **ret_path,
                       struct err *e);

#endif
