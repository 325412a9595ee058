/* SPDX-License-Identifier: Apache-2.0 */
#include "train/run/backends.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/backend/backend.h"
#include "train/backend/onednn/onednn.h"
#include "train/backend/probe.h"
#include "train/backend/ref/ref.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static const struct backend_ops *const built_in[] = {
#ifdef YARD_HAS_ONEDNN
    &backend_onednn,
#endif
    &backend_ref,
};

typedef const struct backend_ops *entry_fn(int abi);
typedef int cards_fn(void);

static const char file_name[] = "yardbench-cuda.so";

/* Beside the program, or in ../lib/yardbench; NULL when it is in neither.  Caller frees. */
static char *find_file(void)
{
    static const char *const places[] = {"", "../lib/yardbench/"};
    char program[4096];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    char *slash;

    if (len <= 0)
        return NULL;
    program[len] = '\0';
    slash = strrchr(program, '/');
    *slash = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        auto_free char *path = xasprintf("%s/%s%s", program, places[i], file_name);

        if (access(path, R_OK) == 0)
            return take_ptr(&path);
    }
    return NULL;
}

/* The file stays open to the end: its code is in use. */
static int open_file(void **ret_file, struct err *e)
{
    auto_free char *path = find_file();
    void *file;

    if (!path)
        return err_set(e, ERR_NOT_FOUND,
                       "there is no %s beside the program: the CUDA backend is not installed",
                       file_name);
    file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        return err_set(e, ERR_NOT_FOUND, "could not load the CUDA backend: %.300s", dlerror());
    *ret_file = file;
    return 0;
}

/* How many cards it sees is told on the side, for those who can do without. */
static int find_cuda(const struct backend_ops **ret_ops, int *ret_cards, struct err *e)
{
    const struct backend_ops *ops;
    entry_fn *entry;
    cards_fn *cards;
    void *file;

    if (open_file(&file, e) < 0)
        return -1;
    *(void **)&entry = dlsym(file, "yardbench_backend");
    ops = entry ? entry(BACKEND_ABI) : NULL;
    if (!ops || ops->abi != BACKEND_ABI)
        return err_set(e, ERR_CONFLICT, "%s is of another version (abi %d is needed)",
                       file_name, BACKEND_ABI);
    *(void **)&cards = dlsym(file, "yardbench_cards");
    *ret_cards = cards ? cards() : 0;
    *ret_ops = ops;
    return 0;
}

int backends_probe(const struct probe_ops **ret_probe, struct err *e)
{
    const struct probe_ops *probe;
    probe_entry_fn *entry;
    void *file;

    if (open_file(&file, e) < 0)
        return -1;
    *(void **)&entry = dlsym(file, "yardbench_probe");
    probe = entry ? entry(PROBE_ABI) : NULL;
    if (!probe || probe->abi != PROBE_ABI)
        return err_set(e, ERR_CONFLICT, "%s cannot measure cards (abi %d is needed)", file_name,
                       PROBE_ABI);
    *ret_probe = probe;
    return 0;
}

static int find_built_in(const char *name, const struct backend_ops **ret_ops, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(built_in); i++) {
        if (!name || str_equal(built_in[i]->name, name)) {
            *ret_ops = built_in[i];
            return 0;
        }
    }
    return err_set(e, ERR_NOT_FOUND, "this yardbench was built without the backend \"%s\"",
                   name);
}

int backends_find(const char *name,
                  const char *device,
                  const struct backend_ops **ret_ops,
                  struct err *e)
{
    const struct backend_ops *cuda;
    int cards;

    if (!str_equal(name, "auto"))
        return str_equal(name, "cuda") ? find_cuda(ret_ops, &cards, e)
                                       : find_built_in(name, ret_ops, e);
    if (device && str_equal_nocase(device, "gpu")) /* what is missing, device_open says */
        return find_cuda(ret_ops, &cards, e);
    if (!device && find_cuda(&cuda, &cards, NULL) == 0 && cards > 0) {
        *ret_ops = cuda;
        return 0;
    }
    return find_built_in(NULL, ret_ops, e);
}

char *backends_cache_dir(void)
{
    const char *own = getenv("YARDBENCH_CACHE"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");

    if (own && *own)
        return xstrdup(own);
    if (cache && *cache)
        return xasprintf("%s/yardbench", cache);
    return home && *home ? xasprintf("%s/.cache/yardbench", home) : NULL;
}

void backends_print(FILE *out)
{
    const struct backend_ops *cuda;
    struct err e;
    int cards;

    for (size_t i = 0; i < ARRAY_SIZE(built_in); i++)
        fprintf(out, "backend %s: %s\n", built_in[i]->name, built_in[i]->summary);
#ifndef YARD_HAS_ONEDNN
    fprintf(out, "backend onednn: not built in\n");
#endif
    if (find_cuda(&cuda, &cards, &e) == 0)
        fprintf(out, "backend cuda: %s, %d card%s here\n", cuda->summary, cards,
                cards == 1 ? "" : "s");
    else
        fprintf(out, "backend cuda: %s\n", e.msg);
}
