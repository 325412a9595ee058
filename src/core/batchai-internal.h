/* batchai-internal.h - bodies read by tables: what batchai-*.c share.
 *
 * A shape is a table of the members that an object may have.  shape_read walks it: it takes
 * what the table names, checks each value, fills in what has a default, parts off the secrets,
 * and drops everything else (clients send members of older versions, and what they were
 * answered). What a table cannot say (one of two, the sum of three) is a function of the
 * table's row.
 *
 * Errors name the place, "properties.mountVolumes.azureFileShares[1].azureFileUrl", and say
 * what would be right.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BATCHAI_INTERNAL_H
#define CORE_BATCHAI_INTERNAL_H

#include "base/err.h"
#include "base/str.h"

#include <jansson.h>
#include <stdint.h>

struct vmsizes;

/* Where in the body we are. */
struct reader {
    struct str path;    /* "properties.secrets[0]", for people */
    struct str pointer; /* "/secrets/0", for the secrets */
    json_t *secrets;    /* pointer -> text */
    struct err *e;
};

enum shape_kind {
    SHAPE_TEXT,
    SHAPE_SECRET, /* a text that goes to the reader's secrets */
    SHAPE_INT,
    SHAPE_WORD, /* one of `words`, in whatever case; kept as the table spells it */
    SHAPE_OBJECT,
    SHAPE_LIST,   /* of objects */
    SHAPE_TEXTS,  /* a list of texts */
    SHAPE_REFUSED /* `hint` says what to give instead */
};

struct shape {
    const char *name; /* NULL ends a table */
    enum shape_kind kind;
    bool is_required;
    bool may_be_empty;   /* a text of no bytes is one */
    bool is_always;      /* an object that is not there is read as an empty one */
    int64_t least, most; /* of an integer; most bytes of a text (0 = SHAPE_MOST_TEXT); most
                            elements of a list (0 = SHAPE_MOST_LIST) */
    const char *const *words;
    const struct shape *members; /* of an object, or of the elements of a list */
    /* Of a text (of each of the texts): why it cannot be taken, with what can; NULL = it can.
     */
    const char *(*problem)(const char *text);
    /* Of the object (of each element): what concerns several members.  May change them. */
    int (*check)(struct reader *r, json_t *kept);
    const char *otherwise; /* of a text or word that is not there; NULL = it stays away */
    const char *hint;      /* what to give: "the path of the script" */
};

enum {
    SHAPE_MOST_TEXT = 4096,
    SHAPE_MOST_COMMAND = 65536, /* one argument of a program holds 128 KiB */
    SHAPE_MOST_LIST = 1000,
    SHAPE_MOST_NODES = 10000, /* of a cluster */
    SHAPE_MOST_GANG = 1000,   /* of a job: a variable with all addresses must fit an exec */
    SHAPE_MOST_PROCESSES = 16000,
};

/* Read the "properties" of a body.  *ret_kept is a new reference. */
int shape_read_body(struct reader *r,
                    const json_t *body,
                    const struct shape *members,
                    json_t **ret_kept);
void reader_done(struct reader *r);

/* Fail at a member of where the reader is (NULL = there itself).  Return -1. */
int reader_fail(struct reader *r, const char *member, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Clang and gcc as in err.h: failing always returns -1. */
#define reader_fail(...) err_always_fails(reader_fail(__VA_ARGS__))

/* Members of a kept object; NULL or 0 when they are not there. */
const char *shape_text(const json_t *object, const char *name);
int shape_int(const json_t *object, const char *name);

/* --- problems of texts --- */

const char *value_single_line(const char *text);   /* no control characters */
const char *value_node_path(const char *text);     /* "/..." or "$AZ_BATCHAI_..." */
const char *value_beneath(const char *text);       /* relative, no "." and "..": "a/b" */
const char *value_server_folder(const char *text); /* the same, a leading "/" is fine */
const char *value_variable_name(const char *text); /* of the environment */
const char *value_directory_id(const char *text);  /* part of such a name */
const char *value_image(const char *text);         /* of a container */
const char *value_registry(const char *text);      /* URL or host */
const char *value_user_name(const char *text);     /* an account on a node */
const char *value_registry_user(const char *text);
const char *value_ssh_key(const char *text);
const char *value_mode(const char *text);          /* "0777" */
const char *value_size(const char *text);          /* "16gb" */
const char *value_address_range(const char *text); /* "10.0.0.0/8", "*" */
const char *value_resource_id(const char *text);   /* any */
const char *value_cluster_id(const char *text);
const char *value_file_server_id(const char *text);
const char *value_account(const char *text);
const char *value_container(const char *text); /* of blobs, or a share */
const char *value_share_url(const char *text);

/* The parts of a share's URL, borrowed from it; false when it is none. */
struct share_url {
    const char *account, *share;
    size_t account_len, share_len;
};
bool share_url_parse(const char *url, struct share_url *ret_url);

/* --- tables that several bodies have --- */

extern const struct shape SHAPE_MOUNT_VOLUMES[];
int volumes_check(struct reader *r, json_t *mount_volumes);

extern const struct shape SHAPE_VARIABLES[]; /* EnvironmentVariable */
extern const struct shape SHAPE_SECRETS[];   /* EnvironmentVariableWithSecretValue */
/* Of an object with environmentVariables and secrets: each name once. */
int variables_check(struct reader *r, const json_t *kept);

extern const struct shape SHAPE_USER_ACCOUNT[];
int user_account_check(struct reader *r, json_t *account);
extern const struct shape SHAPE_RESOURCE_ID[];
/* Of an object with vmSize: is it in the catalogue? */
int size_check(struct reader *r, const json_t *kept, const struct vmsizes *sizes);

/* "7.00:00:00", as hand-written files have it, or ISO 8601. */
int duration_read(const char *text, int64_t *ret_ms, bool *ret_is_iso, struct err *e);
char *duration_iso(int64_t ms); /* caller frees */

#endif
