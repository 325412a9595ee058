/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *checked(void *p)
{
    if (!p) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

void *xmalloc(size_t size)
{
    return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
    return checked(realloc(p, size ? size : 1));
}

void *xreallocarray(void *p, size_t count, size_t size)
{
    return checked(reallocarray(p, count ? count : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
    return checked(strdup(s));
}

char *xstrndup(const char *s, size_t len)
{
    return checked(strndup(s, len));
}

char *xvasprintf(const char *format, va_list args)
{
    char *text = NULL;

    if (vasprintf(&text, format, args) < 0)
        checked(NULL);
    return text;
}

char *xasprintf(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    return text;
}

void mem_free_ptr(void *p)
{
    free(*(void **)p);
}

void mem_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

void *mem_take(void *p)
{
    void **holder = p;
    void *held = *holder;

    *holder = NULL;
    return held;
}

int take_fd(int *fd)
{
    int held = *fd;

    *fd = -1;
    return held;
}

/* An arena is a chain of chunks, newest first.  A request that does not fit gets a chunk of its
 * own. */
struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(max_align_t) char bytes[];
};

struct deferred {
    struct deferred *next;
    void (*fn)(void *p);
    void *p;
};

struct arena {
    struct chunk *chunks;
    struct deferred *deferred;
};

enum {
    /* With the head 1032, the largest size that malloc keeps at hand for each thread: most
     * requests need two or three, and larger ones would be cut and merged anew each time. */
    CHUNK_BYTES = 1000,
};

struct arena *arena_new(void)
{
    return xcalloc(1, sizeof(struct arena));
}

void arena_free(struct arena *arena)
{
    if (!arena)
        return;
    for (struct deferred *d = arena->deferred; d; d = d->next)
        d->fn(d->p);
    for (struct chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(arena);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t align = _Alignof(max_align_t);
    struct chunk *c = arena->chunks;
    void *p;

    size = (size + align - 1) / align * align;
    if (!c || c->size - c->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;

        c = xmalloc(sizeof(*c) + room);
        c->next = arena->chunks;
        c->used = 0;
        c->size = room;
        arena->chunks = c;
    }
    p = c->bytes + c->used;
    c->used += size;
    return memset(p, 0, size);
}

char *arena_strndup(struct arena *arena, const char *s, size_t len)
{
    char *copy = arena_alloc(arena, len + 1);

    memcpy(copy, s, len);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *s)
{
    return arena_strndup(arena, s, strlen(s));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    char start[256];
    va_list args;
    char *text;
    int len;

    va_start(args, format);
    len = vsnprintf(start, sizeof(start), format, args);
    va_end(args);
    if (len < 0)
        abort(); /* a format that cannot be */
    if ((size_t)len < sizeof(start))
        return arena_strndup(arena, start, (size_t)len);
    text = arena_alloc(arena, (size_t)len + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)len + 1, format, args);
    va_end(args);
    return text;
}

void arena_defer(struct arena *arena, void (*fn)(void *p), void *p)
{
    struct deferred *d = arena_alloc(arena, sizeof(*d));

    d->fn = fn;
    d->p = p;
    d->next = arena->deferred;
    arena->deferred = d;
}
