/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/tree.h"

#include "base/clock.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    AGE_MS = 1000,
};

/* Rows as "name", "name/" for a folder, "name=etag" for a file. */
static void list(struct tree *tree, struct node *folder, int64_t began_ms, const char *text)
{
    auto_listed rows = {0};

    tree_begin(folder, began_ms);
    for (const char *p = text; *p; p += strcspn(p, " "), p += *p == ' ') {
        size_t len = strcspn(p, " "), name_len = strcspn(p, " =/");
        struct listed row = {.name = xstrndup(p, name_len), .mtime_ns = 1};

        row.is_folder = p[name_len] == '/';
        if (p[name_len] == '=')
            row.etag = xstrndup(p + name_len + 1, len - name_len - 1);
        listed_add(&rows, &row);
    }
    tree_merge(tree, folder, &rows, began_ms);
}

static const char *names(struct node *folder, struct str *out)
{
    str_truncate(out, 0);
    for (size_t i = 0; i < folder->folder->count; i++)
        str_addf(out, "%s%s%s", i ? " " : "", folder->folder->children[i]->name,
                 folder->folder->children[i]->folder ? "/" : "");
    return str_text(out);
}

static void a_listing_is_what_is_there(void **state)
{
    struct tree tree;
    auto_str text = {0};
    struct node *root;

    (void)state;
    tree_init(&tree, false);
    root = tree.root;
    assert_false(tree_is_fresh(root, 0, AGE_MS));
    list(&tree, root, 1000, "b=1 a/ c=1 . .. a=9");
    assert_string_equal(names(root, &text), "a/ b c");
    assert_true(tree_is_fresh(root, 1999, AGE_MS));
    assert_false(tree_is_fresh(root, 2000, AGE_MS));
    list(&tree, root, 3000, "c=1 d=1");
    assert_string_equal(names(root, &text), "c d");
    tree_expire(root);
    assert_false(tree_is_fresh(root, 3000, AGE_MS));
    tree_done(&tree);
}

static void another_etag_is_another_node_in_a_container(void **state)
{
    struct tree tree;
    struct node *old, *new;

    (void)state;
    tree_init(&tree, false);
    list(&tree, tree.root, 1000, "file=1 same=1");
    old = node_ref(tree_find(&tree, tree.root, "file"));
    new = tree_find(&tree, tree.root, "same");
    list(&tree, tree.root, 2000, "file=2 same=1");
    assert_ptr_equal(tree_find(&tree, tree.root, "same"), new);
    assert_ptr_not_equal(tree_find(&tree, tree.root, "file"), old);
    assert_true(old->is_gone);
    assert_null(old->parent);
    node_unref(&tree, old, 1);
    tree_done(&tree);
}

static void a_file_of_a_share_changes_in_place(void **state)
{
    struct tree tree;
    struct node *node;

    (void)state;
    tree_init(&tree, true);
    list(&tree, tree.root, 1000, "file=1");
    node = tree_find(&tree, tree.root, "FILE"); /* names do not care for case */
    assert_int_equal(node->version, 1);
    list(&tree, tree.root, 2000, "file=2");
    assert_ptr_equal(tree_find(&tree, tree.root, "file"), node);
    assert_int_equal(node->version, 2);
    assert_string_equal(node->etag, "2");
    list(&tree, tree.root, 3000, "file=2");
    assert_int_equal(node->version, 2);
    tree_done(&tree);
}

static void what_this_mount_does_is_not_undone_by_an_older_listing(void **state)
{
    struct tree tree;
    auto_str text = {0};
    auto_listed rows = {0};
    struct node *root;
    int64_t now = clock_mono_ms();

    (void)state;
    tree_init(&tree, false);
    root = tree.root;
    list(&tree, root, now - 5000, "keep=1 remove=1 rename=1");
    tree_begin(root, now - 1000);
    listed_add(&rows, &(struct listed){.name = xstrdup("keep"), .etag = xstrdup("1")});
    listed_add(&rows, &(struct listed){.name = xstrdup("remove"), .etag = xstrdup("1")});
    listed_add(&rows, &(struct listed){.name = xstrdup("rename"), .etag = xstrdup("1")});
    tree_remove(&tree, tree_find(&tree, root, "remove"));
    tree_move(&tree, tree_find(&tree, root, "rename"), root, "renamed");
    tree_add(&tree, root, "made", false);
    tree_add(&tree, root, "folder", true);
    tree_merge(&tree, root, &rows, now);
    assert_string_equal(names(root, &text), "folder/ keep made renamed");
    /* What was made is stored by the next listing or gone; an empty folder is ours alone. */
    list(&tree, root, clock_mono_ms() + 1000, "keep=1 renamed=2");
    assert_string_equal(names(root, &text), "folder/ keep renamed");
    tree_done(&tree);
}

static void a_listing_that_expired_while_it_ran_is_not_fresh(void **state)
{
    struct tree tree;
    auto_listed rows = {0};

    (void)state;
    tree_init(&tree, false);
    tree_begin(tree.root, 1000);
    tree_expire(tree.root);
    tree_merge(&tree, tree.root, &rows, 1010);
    assert_false(tree_is_fresh(tree.root, 1010, AGE_MS));
    list(&tree, tree.root, 2000, "");
    assert_true(tree_is_fresh(tree.root, 2010, AGE_MS));
    tree_done(&tree);
}

static void a_slow_listing_is_believed_for_longer(void **state)
{
    struct tree tree;
    auto_listed rows = {0};

    (void)state;
    tree_init(&tree, false);
    tree_begin(tree.root, 0);
    tree_merge(&tree, tree.root, &rows, 500);
    assert_true(tree_is_fresh(tree.root, 4999, AGE_MS));
    assert_false(tree_is_fresh(tree.root, 5000, AGE_MS));
    tree_done(&tree);
}

static void paths_follow_moves_and_end_with_what_is_cut_off(void **state)
{
    struct tree tree;
    struct node *a, *b, *file;
    auto_str path = {0}, other = {0}, none = {0};

    (void)state;
    tree_init(&tree, false);
    a = tree_add(&tree, tree.root, "a", true);
    b = tree_add(&tree, tree.root, "b", true);
    file = node_ref(tree_add(&tree, a, "file", false));
    assert_true(tree_path(file, &path));
    assert_string_equal(str_text(&path), "a/file");
    tree_move(&tree, a, b, "c");
    assert_true(tree_path(file, &other));
    assert_string_equal(str_text(&other), "b/c/file");
    tree_remove(&tree, file);
    assert_false(tree_path(file, &none));
    node_unref(&tree, file, 1);
    tree_done(&tree);
}

static void a_move_replaces_what_is_there(void **state)
{
    struct tree tree;
    auto_str text = {0};
    struct node *from, *over;

    (void)state;
    tree_init(&tree, false);
    from = tree_add(&tree, tree.root, "from", false);
    over = node_ref(tree_add(&tree, tree.root, "to", false));
    tree_move(&tree, from, tree.root, "to");
    assert_string_equal(names(tree.root, &text), "to");
    assert_ptr_equal(tree_find(&tree, tree.root, "to"), from);
    assert_null(over->parent);
    node_unref(&tree, over, 1);
    tree_done(&tree);
}

static int freed;

static void count_free(void *context, struct node *node)
{
    (void)context;
    (void)node;
    freed++;
}

static void folders_that_nobody_uses_are_forgotten(void **state)
{
    struct tree tree;
    struct node *held;

    (void)state;
    tree_init(&tree, false);
    list(&tree, tree.root, 1000, "a/ b/ c/");
    tree.most_nodes = 10;
    list(&tree, tree_find(&tree, tree.root, "a"), 1000, "1=1 2=1 3=1");
    held = node_ref(tree_find(&tree, tree_find(&tree, tree.root, "a"), "2"));
    freed = 0;
    tree.on_free = count_free;
    list(&tree, tree_find(&tree, tree.root, "b"), 1000, "1=1 2=1 3=1");
    assert_int_equal(freed, 0);
    list(&tree, tree_find(&tree, tree.root, "c"), 1000, "1=1");
    assert_true(freed >= 2);
    /* What is held stays, and so does its folder. */
    assert_ptr_equal(tree_find(&tree, tree_find(&tree, tree.root, "a"), "2"), held);
    assert_false(tree_is_fresh(tree_find(&tree, tree.root, "a"), 1000, AGE_MS));
    assert_true(tree_is_fresh(tree_find(&tree, tree.root, "c"), 1000, AGE_MS));
    node_unref(&tree, held, 1);
    tree_done(&tree);
}

static void changes_of_a_folder_are_of_all_below_it(void **state)
{
    struct tree tree;
    struct node *folder, *file;

    (void)state;
    tree_init(&tree, false);
    folder = tree_add(&tree, tree.root, "folder", true);
    file = tree_add(&tree, folder, "file", false);
    assert_false(tree_is_changing(file));
    tree_begin_change(folder);
    tree_begin_change(file);
    assert_true(tree_is_changing(file));
    assert_false(tree_is_changing(tree.root));
    tree_end_change(&tree, file);
    assert_true(tree_is_changing(file));
    tree_end_change(&tree, folder);
    assert_false(tree_is_changing(file));
    tree_wait_for_changes(&tree, file);
    tree_done(&tree);
}

static void what_is_listed_again_was_not_gone(void **state)
{
    struct tree tree;
    struct node *node;

    (void)state;
    tree_init(&tree, false);
    list(&tree, tree.root, 1000, "file=1");
    node = tree_find(&tree, tree.root, "file");
    node->is_gone = true;
    list(&tree, tree.root, 2000, "file=1");
    assert_ptr_equal(tree_find(&tree, tree.root, "file"), node);
    assert_false(node->is_gone);
    tree_done(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listing_is_what_is_there),
        cmocka_unit_test(another_etag_is_another_node_in_a_container),
        cmocka_unit_test(a_file_of_a_share_changes_in_place),
        cmocka_unit_test(what_this_mount_does_is_not_undone_by_an_older_listing),
        cmocka_unit_test(a_listing_that_expired_while_it_ran_is_not_fresh),
        cmocka_unit_test(a_slow_listing_is_believed_for_longer),
        cmocka_unit_test(paths_follow_moves_and_end_with_what_is_cut_off),
        cmocka_unit_test(a_move_replaces_what_is_there),
        cmocka_unit_test(folders_that_nobody_uses_are_forgotten),
        cmocka_unit_test(changes_of_a_folder_are_of_all_below_it),
        cmocka_unit_test(what_is_listed_again_was_not_gone),
    };

    return cmocka_run_group_tests_name("mount/tree", tests, NULL, NULL);
}
