/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/spec.h"

#include "base/str.h"
#include "shim/cpus.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char first_field[] = "yard-shim=1";

/* --- values --- */

/* Digits alone, nothing else: no sign, no space, no "0x". */
static bool read_number(const char **p, int base, uint64_t most, uint64_t *ret)
{
    char *end;
    unsigned long long value;

    if (**p < '0' || **p > '9')
        return false;
    errno = 0;
    value = strtoull(*p, &end, base);
    if (errno || value > most)
        return false;
    *p = end;
    *ret = value;
    return true;
}

static bool whole_number(const char *text, int base, uint64_t most, uint64_t *ret)
{
    return read_number(&text, base, most, ret) && *text == '\0';
}

/* "<a><separator><b>" */
static bool
two_numbers(const char *text, char separator, uint64_t most_a, uint64_t *ret_a, uint64_t *ret_b)
{
    return read_number(&text, 10, most_a, ret_a) && *text++ == separator &&
           whole_number(text, 10, UINT64_MAX, ret_b);
}

static int take_enter(struct shim_spec *spec, const char *value, struct err *e)
{
    uint64_t pid, start;

    if (!two_numbers(value, ' ', INT32_MAX, &pid, &start) || pid == 0)
        return err_set(e, ERR_INVALID, "enter: \"%.64s\" is not a process", value);
    spec->enter_pid = (pid_t)pid;
    spec->enter_start = start;
    return 0;
}

static int take_namespaces(struct shim_spec *spec, const char *value, struct err *e)
{
    if (strspn(value, "mnu") != strlen(value) || strlen(value) > 3 || !*value)
        return err_set(e, ERR_INVALID, "namespaces: \"%.64s\" is not of m, n and u", value);
    spec->namespaces = value;
    return 0;
}

static int take_grace(struct shim_spec *spec, const char *value, struct err *e)
{
    uint64_t ms;

    if (!whole_number(value, 10, INT32_MAX, &ms))
        return err_set(e, ERR_INVALID, "grace_ms: \"%.64s\" is not a time", value);
    spec->grace_ms = (int64_t)ms;
    return 0;
}

/* The highest id means "leave it" to setresuid and is nobody's. */
static int take_user(struct shim_spec *spec, const char *value, struct err *e)
{
    uint64_t uid, gid;

    if (!two_numbers(value, ':', UINT32_MAX - 1, &uid, &gid) || gid > UINT32_MAX - 1)
        return err_set(e, ERR_INVALID, "user: \"%.64s\" is not uid:gid", value);
    spec->has_user = true;
    spec->uid = (uid_t)uid;
    spec->gid = (gid_t)gid;
    return 0;
}

static int take_umask(struct shim_spec *spec, const char *value, struct err *e)
{
    uint64_t mask;

    if (!whole_number(value, 8, 0777, &mask))
        return err_set(e, ERR_INVALID, "umask: \"%.64s\" is not a mask", value);
    spec->umask = (mode_t)mask;
    return 0;
}

static int check_path(const char *value, struct err *e)
{
    if (value[0] != '/')
        return err_set(e, ERR_INVALID, "\"%.200s\" is not an absolute path", value);
    return 0;
}

static int check_variable(const char *value, struct err *e)
{
    const char *equals = strchr(value, '=');

    if (!equals || equals == value) /* the value may be a secret: not quoted */
        return err_set(e, ERR_INVALID, "an environment variable without a name");
    return 0;
}

static int check_cpus(const char *value, struct err *e)
{
    cpu_set_t set;

    return shim_cpus_parse(value, &set, e);
}

static int check_limit(const char *value, struct err *e)
{
    struct rlimit limit;
    int resource;

    return shim_limit_parse(value, &resource, &limit, e);
}

/* --- limits --- */

static const struct limit_name {
    const char *name;
    int resource;
} limit_names[] = {
    {"as", RLIMIT_AS},           {"core", RLIMIT_CORE},     {"fsize", RLIMIT_FSIZE},
    {"memlock", RLIMIT_MEMLOCK}, {"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC},
    {"stack", RLIMIT_STACK},
};

static bool read_limit_value(const char **p, rlim_t *ret)
{
    uint64_t value;

    if (str_starts(*p, "unlimited")) {
        *p += strlen("unlimited");
        *ret = RLIM_INFINITY;
        return true;
    }
    if (!read_number(p, 10, INT64_MAX, &value))
        return false;
    *ret = (rlim_t)value;
    return true;
}

int shim_limit_parse(const char *text,
                     int *ret_resource,
                     struct rlimit *ret_limit,
                     struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(limit_names); i++) {
        const char *p = text + strlen(limit_names[i].name);
        struct rlimit limit;

        if (!str_starts(text, limit_names[i].name) || *p++ != ' ')
            continue;
        if (!read_limit_value(&p, &limit.rlim_cur) || *p++ != ' ' ||
            !read_limit_value(&p, &limit.rlim_max) || *p)
            break;
        *ret_resource = limit_names[i].resource;
        *ret_limit = limit;
        return 0;
    }
    return err_set(e, ERR_INVALID, "limit: \"%.64s\" is not a limit", text);
}

/* --- fields --- */

/* What a key is: a list of texts, one text, or something to be read. */
static const struct key {
    const char *name;
    bool is_list;
    size_t offset; /* of the list or the text in struct shim_spec */
    int (*check)(const char *value, struct err *e);
    int (*take)(struct shim_spec *spec, const char *value, struct err *e);
} keys[] = {
    {"argv", true, offsetof(struct shim_spec, argv), NULL, NULL},
    {"env", true, offsetof(struct shim_spec, env), check_variable, NULL},
    {"cwd", false, offsetof(struct shim_spec, cwd), check_path, NULL},
    {"stdout", false, offsetof(struct shim_spec, stdout_path), check_path, NULL},
    {"stderr", false, offsetof(struct shim_spec, stderr_path), check_path, NULL},
    {"logs", false, offsetof(struct shim_spec, logs), check_path, NULL},
    {"cpus", false, offsetof(struct shim_spec, cpus), check_cpus, NULL},
    {"enter", false, 0, NULL, take_enter},
    {"namespaces", false, 0, NULL, take_namespaces},
    {"cgroup", true, offsetof(struct shim_spec, cgroups), check_path, NULL},
    {"memory", true, offsetof(struct shim_spec, memory), check_path, NULL},
    {"limit", true, offsetof(struct shim_spec, limits), check_limit, NULL},
    {"grace_ms", false, 0, NULL, take_grace},
    {"user", false, 0, NULL, take_user},
    {"umask", false, 0, NULL, take_umask},
};

struct parse {
    struct shim_spec *spec;
    size_t counts[ARRAY_SIZE(keys)];
};

/* The key of a field and its value; NULL for none that we know. */
static const struct key *key_of(const char *field, const char **ret_value)
{
    const char *equals = strchr(field, '=');

    for (size_t i = 0; equals && i < ARRAY_SIZE(keys); i++) {
        size_t len = strlen(keys[i].name);

        if (len == (size_t)(equals - field) && memcmp(field, keys[i].name, len) == 0) {
            *ret_value = equals + 1;
            return &keys[i];
        }
    }
    return NULL;
}

static const char *next_field(const char *field)
{
    return field + strlen(field) + 1;
}

/* First the fields are counted, so that the lists can be made; then they are taken. */
static int count_fields(struct parse *parse, const char *field, const char *end, struct err *e)
{
    for (; field < end; field = next_field(field)) {
        const char *value;
        const struct key *key = key_of(field, &value);

        if (!key)
            return err_set(e, ERR_INVALID, "the spec has a field this shim does not know");
        if (++parse->counts[key - keys] > 1 && !key->is_list)
            return err_set(e, ERR_INVALID, "the spec has \"%s\" twice", key->name);
    }
    return 0;
}

static void *member(struct shim_spec *spec, const struct key *key)
{
    return (char *)spec + key->offset;
}

static void make_lists(struct parse *parse, struct arena *arena)
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (keys[i].is_list) {
            *(const char ***)member(parse->spec, &keys[i]) =
                arena_alloc(arena, (parse->counts[i] + 1) * sizeof(char *));
            parse->counts[i] = 0;
        }
    }
}

static int take_field(struct parse *parse, const char *field, struct err *e)
{
    const char *value = NULL;
    const struct key *key = key_of(field, &value);

    if (key->check && key->check(value, e) < 0)
        return err_wrap(e, "%s", key->name);
    if (key->take)
        return key->take(parse->spec, value, e);
    if (key->is_list)
        (*(const char ***)member(parse->spec, key))[parse->counts[key - keys]++] = value;
    else
        *(const char **)member(parse->spec, key) = value;
    return 0;
}

static int check_whole(const struct shim_spec *spec, struct err *e)
{
    if (!spec->argv[0] || !spec->argv[0][0])
        return err_set(e, ERR_INVALID, "the spec has no command");
    if (!spec->cwd || !spec->stdout_path || !spec->stderr_path)
        return err_set(e, ERR_INVALID, "the spec lacks cwd, stdout or stderr");
    if (!spec->enter_pid != !spec->namespaces)
        return err_set(e, ERR_INVALID, "the spec has one of enter and namespaces alone");
    return 0;
}

int shim_spec_parse(const char *bytes,
                    size_t len,
                    struct arena *arena,
                    struct shim_spec *ret_spec,
                    struct err *e)
{
    struct shim_spec spec = {.grace_ms = SHIM_GRACE_MS, .umask = SHIM_UMASK};
    struct parse parse = {.spec = &spec};
    const char *end = bytes + len, *fields = bytes + sizeof(first_field);

    if (len > SHIM_MOST_SPEC_BYTES)
        return err_set(e, ERR_TOO_LARGE, "the spec is too large");
    if (len < sizeof(first_field) || end[-1] != '\0' || strcmp(bytes, first_field) != 0)
        return err_set(e, ERR_INVALID, "not a spec of version 1, or cut off");
    if (count_fields(&parse, fields, end, e) < 0)
        return -1;
    make_lists(&parse, arena);
    for (const char *field = fields; field < end; field = next_field(field)) {
        if (take_field(&parse, field, e) < 0)
            return -1;
    }
    if (check_whole(&spec, e) < 0)
        return -1;
    *ret_spec = spec;
    return 0;
}

/* --- writing --- */

static void put_text(struct str *out, const char *key, const char *value)
{
    if (!value)
        return;
    str_addf(out, "%s=%s", key, value);
    str_add_char(out, '\0');
}

static void put_list(struct str *out, const char *key, const char **values)
{
    for (; values && *values; values++)
        put_text(out, key, *values);
}

static void put_numbers(const struct shim_spec *spec, struct str *out)
{
    char text[64];

    if (spec->enter_pid) {
        snprintf(text, sizeof(text), "%d %" PRIu64, (int)spec->enter_pid, spec->enter_start);
        put_text(out, "enter", text);
    }
    snprintf(text, sizeof(text), "%" PRId64, spec->grace_ms);
    put_text(out, "grace_ms", text);
    snprintf(text, sizeof(text), "%u:%u", (unsigned int)spec->uid, (unsigned int)spec->gid);
    put_text(out, "user", spec->has_user ? text : NULL);
    snprintf(text, sizeof(text), "%03o", (unsigned int)spec->umask);
    put_text(out, "umask", text);
}

void shim_spec_format(const struct shim_spec *spec, struct str *out)
{
    str_add_len(out, first_field, sizeof(first_field));
    put_list(out, "argv", spec->argv);
    put_list(out, "env", spec->env);
    put_text(out, "cwd", spec->cwd);
    put_text(out, "stdout", spec->stdout_path);
    put_text(out, "stderr", spec->stderr_path);
    put_text(out, "logs", spec->logs);
    put_text(out, "cpus", spec->cpus);
    put_text(out, "namespaces", spec->enter_pid ? spec->namespaces : NULL);
    put_list(out, "cgroup", spec->cgroups);
    put_list(out, "memory", spec->memory);
    put_list(out, "limit", spec->limits);
    put_numbers(spec, out);
}
