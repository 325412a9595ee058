/* container.h - the container of a job on a node, by podman or docker.
 *
 * One container for a node and a job, started before the preparation and removed at the end;
 * tasks and ssh sessions are executed in it.  It has the node's network, host name and folders.
 * podman runs inside the node, so that it finds all its mounts.  docker's containers are made
 * by a daemon outside: they get the folders by their names on the host, and the host's network.
 *
 * An image that is on this machine is not fetched again, unless it was fetched with credentials
 * that this job does not show: then the registry is asked (admit.h).  It is named by a
 * registry's name for it; places on this machine ("oci:...") are refused.  A token lies in a
 * folder of the attempt's while the image is fetched, and nowhere else.
 *
 * For errands: blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_CONTAINER_H
#define ENGINE_LOCAL_CONTAINER_H

#include "base/err.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct box; /* the runtime; opaque */
struct errands;

struct box *box_new(void);
void box_free(struct box *box);

struct container {
    const char *name;        /* NULL = none */
    const char *const *exec; /* argv up to the command to execute in it, NULL-ended */
    int64_t pid;             /* of its first process; 0 = not known */
};

/* A folder on the host and where the container sees it. */
struct container_folder {
    const char *from, *to;
    bool is_read_only;
};

struct container_wish {
    int keeper_fd; /* of the node; negative = on the host as it is */
    const char *name;
    const char *image;
    const char *user, *password, *server; /* of the registry; NULL */
    const char *folder;                   /* for the registry's token; not seen by the node */
    const char *images;                   /* where admit.h keeps its notes */
    const char *root;                     /* AZ_BATCHAI_ROOT */
    const char *work_folder;              /* absolute */
    const char *shm_size;                 /* "16gb"; NULL */
    const char *gpus;                     /* "0,1"; "" */
    const char *cpus;                     /* "0-3"; "" */
    const char *cgroup_parent;            /* NULL */
    bool has_ssh;                         /* the node's ssh configuration is at /etc/ssh/box */
    const struct container_folder *folders; /* for docker, and where there is no namespace */
    size_t folder_count;
    int64_t pull_ms;
    struct errands *errands;
    const atomic_bool *is_cancelled;
};

struct container_failure {
    char code[64], message[512], info[512];
};

/* Fetch the image when it is not there: may take long, and is the same for all nodes.  Of the
 * wish, what is about the image counts. */
int container_fetch(struct box *box,
                    const struct container_wish *wish,
                    struct arena *arena,
                    struct container_failure *ret_failure);
/* Remove what is left of an earlier try, and start.  The results are in the arena. */
int container_start(struct box *box,
                    const struct container_wish *wish,
                    struct arena *arena,
                    struct container *ret_container,
                    struct container_failure *ret_failure);
/* The container of an attempt that is taken up again: its name and how to get into it. */
int container_recall(struct box *box,
                     int keeper_fd,
                     const char *name,
                     struct arena *arena,
                     struct container *ret_container,
                     struct err *e);
/* Stop it at once, and remove it; one that is not there is fine. */
int container_remove(struct box *box, int keeper_fd, const char *name, struct err *e);
/* A shell's line that goes into the container: for sshd.  Appended. */
struct str;
void container_enter_script(const struct container *container, struct str *out);

#endif
