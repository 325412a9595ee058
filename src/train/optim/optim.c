/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/optim.h"

#include "base/mem.h"
#include "base/str.h"

static const struct optim_info infos[OPTIM_KINDS] = {
    [OPTIM_SGD] = {.name = "sgd"},
    [OPTIM_MOMENTUM] = {.name = "momentum", .slots = 1, .slot_names = {"momentum"}},
    [OPTIM_RMSPROP] = {.name = "rmsprop",
                       .slots = 2,
                       .slot_names = {"rms", "momentum"},
                       .slot_begins = {1, 0}},
    [OPTIM_ADAM] = {.name = "adam", .slots = 2, .slot_names = {"adam_m", "adam_v"}},
    [OPTIM_ADAMW] = {.name = "adamw", .slots = 2, .slot_names = {"adam_m", "adam_v"}},
    [OPTIM_LARS] = {.name = "lars",
                    .slots = 1,
                    .slot_names = {"momentum"},
                    .needs_norms = true},
    [OPTIM_LAMB] = {.name = "lamb",
                    .slots = 2,
                    .slot_names = {"adam_m", "adam_v"},
                    .needs_norms = true},
};

const struct optim_info *optim_info(enum optim_kind kind)
{
    return &infos[kind];
}

int optim_parse(const char *name, enum optim_kind *ret_kind, struct err *e)
{
    auto_str names = {0};

    for (int kind = 0; kind < OPTIM_KINDS; kind++) {
        if (str_equal(infos[kind].name, name)) {
            *ret_kind = (enum optim_kind)kind;
            return 0;
        }
        str_addf(&names, "%s%s", kind ? ", " : "", infos[kind].name);
    }
    return err_set(e, ERR_INVALID, "there is no optimizer \"%.40s\"; there are %s", name,
                   str_text(&names));
}

void optim_defaults(struct optim_spec *spec, enum optim_kind kind)
{
    *spec = (struct optim_spec){
        .kind = kind,
        .momentum = 0.9F,
        .rmsprop_decay = 0.9F,
        .beta1 = 0.9F,
        .beta2 = 0.999F,
        .trust = 0.001F,
        .weight_decay = 0.00004F,
        .with_nesterov = kind == OPTIM_MOMENTUM, /* the original's momentum is Nesterov's */
        .loss_scale = 1,
        .scale_grows_after = 1000,
    };
    if (kind == OPTIM_RMSPROP)
        spec->epsilon = 1;
    else if (kind == OPTIM_LAMB)
        spec->epsilon = 1e-6F; /* as its authors have it */
    else if (kind == OPTIM_ADAM || kind == OPTIM_ADAMW)
        spec->epsilon = 1e-8F;
}
