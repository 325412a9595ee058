/* Subnets of yards on one machine: needs root.  SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/net.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/local/folder.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void make_home(char home[64])
{
    auto_free char *nodes = NULL;

    snprintf(home, 64, "/tmp/yard-net-XXXXXX");
    assert_non_null(mkdtemp(home));
    nodes = xasprintf("%s/nodes", home);
    assert_int_equal(mkdir(nodes, 0755), 0);
}

static struct net *open_net(const char *home)
{
    struct net *net = NULL;
    struct err e = {0};

    if (net_new(home, NULL, &net, &e) < 0)
        fail_msg("%s", e.msg);
    return net;
}

/* How many subnets are said to be this yard's. */
static int count_claims(const char *home)
{
    DIR *dir = opendir("/run/trainyard");
    struct dirent *entry;
    int count = 0;

    while (dir && (entry = readdir(dir))) {
        auto_free char *path = xasprintf("/run/trainyard/%s", entry->d_name);
        auto_str text = {0};

        count +=
            fs_read(path, 4096, &text, NULL) == 0 && str_equal(str_text(&text), home) ? 1 : 0;
    }
    if (dir)
        closedir(dir);
    return count;
}

static void claim_goes_with_the_yard(void **state)
{
    char home[64];
    struct net *net;

    (void)state;
    make_home(home);
    net = open_net(home);
    assert_int_equal(count_claims(home), 1);
    net_free(net);
    assert_int_equal(count_claims(home), 0);
    net = open_net(home); /* the subnet is kept, and claimed again */
    assert_int_equal(count_claims(home), 1);
    net_free(net);
    folder_remove(home, NULL);
}

static void claim_stays_while_nodes_live(void **state)
{
    auto_free char *node = NULL;
    char home[64];

    (void)state;
    make_home(home);
    node = xasprintf("%s/nodes/tvm-1-1", home);
    assert_int_equal(mkdir(node, 0755), 0);
    net_free(open_net(home));
    assert_int_equal(count_claims(home), 1);
    assert_int_equal(rmdir(node), 0);
    net_free(open_net(home));
    assert_int_equal(count_claims(home), 0);
    folder_remove(home, NULL);
}

static void claim_of_a_yard_that_is_gone_is_swept(void **state)
{
    char gone[64], home[64];
    struct net *dead;

    (void)state;
    make_home(gone);
    make_home(home);
    dead = open_net(gone);
    folder_remove(gone, NULL);
    assert_int_equal(count_claims(gone), 1);
    net_free(open_net(home));
    assert_int_equal(count_claims(gone), 0);
    net_free(dead);
    folder_remove(home, NULL);
}

static void kept_subnet_of_another_is_left_to_it(void **state)
{
    char home[64], other[64];
    struct net *first, *second;
    auto_free char *from = NULL, *to = NULL;
    auto_str text = {0};

    (void)state;
    make_home(home);
    make_home(other);
    first = open_net(home);
    from = xasprintf("%s/nodes/.subnet", home);
    to = xasprintf("%s/nodes/.subnet", other);
    assert_int_equal(fs_read(from, 64, &text, NULL), 0);
    assert_int_equal(folder_write(to, text.data, text.len, 0600, NULL), 0);
    second = open_net(other);
    assert_int_not_equal(net_gateway(first).s_addr, net_gateway(second).s_addr);
    net_free(second);
    net_free(first);
    folder_remove(home, NULL);
    folder_remove(other, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claim_goes_with_the_yard),
        cmocka_unit_test(claim_stays_while_nodes_live),
        cmocka_unit_test(claim_of_a_yard_that_is_gone_is_swept),
        cmocka_unit_test(kept_subnet_of_another_is_left_to_it),
    };

    if (geteuid() != 0) {
        puts("skipped: subnets need root");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
