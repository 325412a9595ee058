/* pool.c - pools: oneDNN's, with the places of the maxima kept between the two passes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/plan.h"

static bool is_max(const struct op *op)
{
    return op->kind == OP_MAX_POOL || op->kind == OP_MAX_POOL_GRAD;
}

int plan_pool(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct place *x = touch(p, op->in[0], n);
    dnnl_memory_desc_t y, workspace;
    struct action *a;

    if (shim_same_form(&x->md, tensor_of(p, op->out[0])->dim, &y, e) < 0 ||
        shim_pool_forward(p->engine, &op->attrs.pool, is_max(op),
                          p->head.graph->backward_end > 0, &x->md, &y, &p->descs[n], e) < 0)
        return -1;
    a = add_primitive(p, n, p->descs[n], true, e);
    if (!a)
        return -1;
    add_arg(a, DNNL_ARG_SRC, x);
    add_arg(a, DNNL_ARG_DST, put(p, op->out[0], &y, n));
    workspace = shim_query(p->descs[n], dnnl_query_workspace_md);
    if (shim_bytes(&workspace) == 0)
        return 0;
    p->workspaces[n] = scratch(p, &workspace, n);
    add_arg(a, DNNL_ARG_WORKSPACE, p->workspaces[n]);
    return 0;
}

int plan_pool_grad(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    const struct op *forward = &p->head.graph->ops[op->forward];
    const dnnl_memory_desc_t *as_x = layout_of(p, forward->in[0]);
    const dnnl_memory_desc_t *as_y = layout_of(p, forward->out[0]);
    struct place *dy = in_layout(p, op->in[0], as_y, n, e);
    struct place *workspace = p->workspaces[op->forward];
    dnnl_primitive_desc_t pd;
    struct action *a;

    if (!dy || shim_pool_backward(p->engine, &op->attrs.pool, is_max(op), as_x, as_y,
                                  p->descs[op->forward], &pd, e) < 0)
        return -1;
    a = add_primitive(p, n, pd, false, e);
    if (!a)
        return -1;
    touch_place(p, dy, n);
    add_arg(a, DNNL_ARG_DIFF_DST, dy);
    add_arg(a, DNNL_ARG_DIFF_SRC, put(p, op->out[0], as_x, n));
    if (workspace) {
        touch_place(p, workspace, n);
        add_arg(a, DNNL_ARG_WORKSPACE, workspace);
    }
    return 0;
}
