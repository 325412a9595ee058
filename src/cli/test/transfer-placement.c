/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-placement.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/storage-address.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define U "http://127.0.0.1:10000/acc/"

enum {
    FILE_ = 0,
    FOLDER = 1,
    TO_FOLDER = 2, /* there is a folder at the destination */
    FLAT = 4,      /* not recursive */
    NO_SUBDIR = 8,
};

static void things_go_where_azcopy_puts_them(void **state)
{
    static const struct row {
        const char *source, *destination;
        int how;
        const char *path;           /* of something found; NULL = the single file */
        const char *from, *to_root; /* where it is found, the root of the destination */
        const char *target;         /* NULL = refused */
    } rows[] = {
        /* up */
        {"dir", U "c", FOLDER, "a/b", "dir", "", "dir/a/b"},
        {"dir/", U "c", FOLDER, "a", "dir/", "", "dir/a"},
        {"x/dir", U "c/d", FOLDER, "a", "x/dir", "d", "dir/a"},
        {"/x/dir", U "c/", FOLDER, "a", "/x/dir", "", "dir/a"},
        {".", U "c", FOLDER, "a", ".", "", "a"},
        {"./", U "c/d", FOLDER, "a", "./", "d", "a"},
        {"..", U "c", FOLDER, "a", "..", "", "a"},
        {"/", U "c", FOLDER, "a", "/", "", "a"},
        {"dir/.", U "c", FOLDER, "a", "dir/.", "", "a"},
        {"dir/*", U "c", 0, "a/b", "dir/", "", "a/b"},
        {"dir/*", U "c", FLAT, "a", "dir/", "", "a"},
        {"dir", U "c", FOLDER | NO_SUBDIR, "a", "dir", "", "a"},
        {"dir", U "c", FOLDER | FLAT, "a", NULL, NULL, NULL},
        {"dir/a.txt", U "c", FILE_, NULL, "dir", "", "a.txt"},
        {"a.txt", U "c/", FILE_, NULL, ".", "", "a.txt"},
        {"a.txt", U "c/b", FILE_, NULL, ".", "", "b"},
        {"a.txt", U "c/d/", FILE_, NULL, ".", "d", "a.txt"},
        {"a.txt", U "c/d/e", FILE_, NULL, ".", "d", "e"},
        {"a.txt", U "c/d", FILE_ | TO_FOLDER, NULL, ".", "d", "a.txt"},
        {"/a.txt", U "c", FILE_, NULL, "/", "", "a.txt"},
        /* down */
        {U "c", "here", FOLDER, "a/b", "", "here", "c/a/b"},
        {U "c/d", "here", FOLDER, "a", "d", "here", "d/a"},
        {U "c/*", "here", 0, "a", "", "here", "a"},
        {U "c/d/*", "here", 0, "a", "d", "here", "a"},
        {U "c/d/a.txt", "here", FILE_, NULL, "d", ".", "here"},
        {U "c/d/a.txt", "here/", FILE_, NULL, "d", "here/", "a.txt"},
        {U "c/a.txt", "here", FILE_ | TO_FOLDER, NULL, "", "here", "a.txt"},
        {U "c/a.txt", "/x/y", FILE_, NULL, "", "/x", "y"},
        {U "c/a.txt", "/y", FILE_, NULL, "", "/", "y"},
        {U "c", "here", FOLDER | FLAT, "a", NULL, NULL, NULL},
        /* across */
        {U "c/d", U "e", FOLDER, "a", "d", "", "d/a"},
        {U "c", U "e/f", FOLDER, "a", "", "f", "c/a"},
        {"dir", U "c/*", FOLDER, "a", NULL, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *r = &rows[i];
        auto_address from = {0}, to = {0};
        auto_placement p = {0};
        auto_free char *target = NULL;
        struct placement_ask ask = {
            .source = &from,
            .destination = &to,
            .source_is_folder = r->how & FOLDER,
            .destination_is_folder = r->how & TO_FOLDER,
            .is_recursive = !(r->how & FLAT),
            .is_subdir = !(r->how & NO_SUBDIR),
        };

        assert_int_equal(address_parse(r->source, &from, NULL), 0);
        assert_int_equal(address_parse(r->destination, &to, NULL), 0);
        if ((placement_find(&ask, &p, NULL) == 0) != (r->target != NULL))
            fail_msg("%s to %s was taken or refused wrongly", r->source, r->destination);
        if (!r->target)
            continue;
        target = placement_target(&p, r->path ? r->path : p.single);
        if (!str_equal(p.source_root, r->from) || !str_equal(p.destination_root, r->to_root) ||
            !str_equal(target, r->target))
            fail_msg("%s to %s: from \"%s\" to \"%s\" as \"%s\"", r->source, r->destination,
                     p.source_root, p.destination_root, target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(things_go_where_azcopy_puts_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
