/* mem.h - allocation that cannot fail, locals that free themselves, arenas.
 *
 * Out of memory aborts: there is no way back that is tested.  Sizes that come from outside are
 * bounded by the caller before they reach these functions.
 *
 * A local is freed when it leaves its scope:
 *     auto_free char *path = xasprintf("%s/spool", dir);
 *     autoptr(job) job = job_new();          -- job_free() at the end of the scope
 *     return take_ptr(&job);                 -- the one sign of a hand-over
 *
 * An arena holds everything that dies with a request or a parsed document.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/err.h"

#include <stddef.h>
#include <stdlib.h>

#define ARRAY_SIZE(a)                 (sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t size);
/* realloc(p, count * size) with the product checked. */
void *xreallocarray(void *p, size_t count, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
char *xasprintf(const char *format, ...) PRINTF_LIKE(1, 2);
char *xvasprintf(const char *format, va_list args) PRINTF_LIKE(1, 0);

void mem_free_ptr(void *p); /* p is a pointer to the pointer to free */
void mem_close_fd(int *fd); /* closes unless negative */

#define auto_free  __attribute__((cleanup(mem_free_ptr)))
#define auto_close __attribute__((cleanup(mem_close_fd)))

/* DEFINE_AUTOPTR(job) makes autoptr(job) call job_free at the end of a scope. */
#define DEFINE_AUTOPTR(type)                                                                   \
    static inline void type##_autofree(struct type **p)                                        \
    {                                                                                          \
        type##_free(*p);                                                                       \
    }
/* "unused": such a variable may exist for its cleanup alone. */
#define autoptr(type) __attribute__((cleanup(type##_autofree), unused)) struct type *

/* Hand over what a cleanup variable holds: returns it and leaves NULL behind. */
#define take_ptr(p) ((__typeof__(*(p)))mem_take((void *)(p)))
void *mem_take(void *p);
int take_fd(int *fd); /* the same for a descriptor; leaves -1 behind */

struct arena; /* opaque */

struct arena *arena_new(void);
void arena_free(struct arena *arena);
/* Zeroed, aligned for any type; freed with the arena. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strdup(struct arena *arena, const char *s);
char *arena_strndup(struct arena *arena, const char *s, size_t len);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
/* Run fn(p) when the arena is freed: for a foreign object that lives as long. */
void arena_defer(struct arena *arena, void (*fn)(void *p), void *p);

DEFINE_AUTOPTR(arena)

#endif
