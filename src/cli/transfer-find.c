/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-find.h"

#include "base/mem.h"
#include "cli/table.h"
#include "cli/transfer-run.h"
#include "cli/transfer-side.h"

#include <string.h>

struct finding {
    struct run *run;
    struct find *find;
};

static char mark[] = "known";

static int see(void *context, const char *path, const struct facts *facts, struct err *e)
{
    struct finding *finding = context;
    struct find *find = finding->find;
    auto_free char *target = NULL;

    (void)e;
    if (!(facts->is_folder ? filter_takes_folder : filter_takes)(&find->filter, path))
        return 0;
    target = find->removes ? xstrdup(path) : placement_target(&find->placement, path);
    if (facts->is_folder && find->removes) {
        if (find->folders)
            table_set(find->folders, target, mark);
        return 0;
    }
    if (find->targets && !facts->is_folder)
        table_set(find->targets, target, mark);
    return run_add(finding->run, item_new(find->removes      ? ITEM_REMOVE
                                          : facts->is_folder ? ITEM_FOLDER
                                                             : ITEM_COPY,
                                          path, target, facts));
}

static void pass(void *context, const char *path, const char *why)
{
    struct finding *finding = context;

    run_pass(finding->run, path, why);
}

static int find_single(struct finding *finding, struct port *port, struct err *e)
{
    const char *path = finding->find->placement.single;
    struct facts facts = {0};
    bool is_there;

    if (port->side->ops->look(port, path, &facts, &is_there, e) < 0)
        return -1;
    if (!is_there) {
        auto_free char *shown = side_show(port->side, path);

        return err_set(e, ERR_NOT_FOUND, "there is no \"%.300s\"", shown);
    }
    return see(finding, path, &facts, e) < 0 ? -1 : 0;
}

int find_all(struct run *run, void *context, struct err *e)
{
    struct find *find = context;
    struct finding finding = {.run = run, .find = find};
    struct side_walk walk = {
        .is_recursive = find->is_recursive,
        .follows_links = find->follows_links,
        .pattern = find->pattern,
        .see = see,
        .context = &finding,
        .pass = pass,
    };
    struct port_config config;
    struct port port;
    int rc;

    run_port_config(run, &config);
    if (port_open(find->side, &config, &port, e) < 0)
        return -1;
    if (find->placement.single)
        rc = find_single(&finding, &port, e);
    else
        rc = find->side->ops->walk(&port, &walk, e);
    port_close(&port);
    return rc;
}
