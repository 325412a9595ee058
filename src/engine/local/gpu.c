/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/gpu.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gpus {
    int count;
    pthread_mutex_t lock;
    bool is_used[GPU_MOST]; /* guarded */
};

/* NVML's functions return 0 for success; these two are all that is wanted of it. */
typedef int nvml_plain_fn(void);
typedef int nvml_count_fn(unsigned *count);

static int count_by_nvml(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    nvml_plain_fn *init, *shutdown;
    nvml_count_fn *count;
    unsigned found = 0;

    if (!library)
        return -1;
    /* POSIX's way to make a function of a pointer to data, which C knows none for. */
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&shutdown = dlsym(library, "nvmlShutdown");
    *(void **)&count = dlsym(library, "nvmlDeviceGetCount_v2");
    if (init && shutdown && count && init() == 0) {
        if (count(&found) != 0)
            found = 0;
        shutdown();
    }
    dlclose(library);
    return (int)found;
}

static int count_by_files(void)
{
    char path[32];
    int count = 0;

    for (; count < GPU_MOST; count++) {
        snprintf(path, sizeof(path), "/dev/nvidia%d", count);
        if (access(path, F_OK) < 0)
            break;
    }
    return count;
}

struct gpus *gpus_new(void)
{
    struct gpus *gpus = xcalloc(1, sizeof(*gpus));

    gpus->count = count_by_nvml();
    if (gpus->count < 0)
        gpus->count = count_by_files();
    if (gpus->count > GPU_MOST)
        gpus->count = GPU_MOST;
    pthread_mutex_init(&gpus->lock, NULL);
    return gpus;
}

void gpus_free(struct gpus *gpus)
{
    if (!gpus)
        return;
    pthread_mutex_destroy(&gpus->lock);
    free(gpus);
}

int gpus_count(const struct gpus *gpus)
{
    return gpus->count;
}

static int count_free(const struct gpus *gpus)
{
    int free_count = 0;

    for (int i = 0; i < gpus->count; i++)
        free_count += !gpus->is_used[i];
    return free_count;
}

int gpus_take(struct gpus *gpus, int count, char ret_list[GPU_LIST_BYTES], struct err *e)
{
    int left;

    ret_list[0] = '\0';
    pthread_mutex_lock(&gpus->lock);
    left = count_free(gpus);
    for (int i = 0; left >= count && i < gpus->count && count > 0; i++) {
        size_t len = strlen(ret_list);

        if (gpus->is_used[i])
            continue;
        gpus->is_used[i] = true;
        snprintf(ret_list + len, GPU_LIST_BYTES - len, "%s%d", len ? "," : "", i);
        count--;
        left--;
    }
    pthread_mutex_unlock(&gpus->lock);
    if (count > 0)
        return err_set(e, ERR_NO_SPACE, "%d GPUs are wanted and %d are free", count, left);
    return 0;
}

static void set_used(struct gpus *gpus, const char *list, bool is_used)
{
    char *end;

    pthread_mutex_lock(&gpus->lock);
    while (*list) {
        long index = strtol(list, &end, 10);

        if (end == list)
            break;
        if (index >= 0 && index < GPU_MOST)
            gpus->is_used[index] = is_used;
        list = *end == ',' ? end + 1 : end;
    }
    pthread_mutex_unlock(&gpus->lock);
}

void gpus_claim(struct gpus *gpus, const char *list)
{
    set_used(gpus, list, true);
}

void gpus_give(struct gpus *gpus, const char *list)
{
    set_used(gpus, list, false);
}
