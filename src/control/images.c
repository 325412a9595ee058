/* The image map.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/control-internal.h"

#include "store/work.h"

static int apply_map(struct control_change *change, struct db *db, struct err *e)
{
    const struct control_image *image = change->request;
    bool found;

    if (store_map_image(db, image->image, image->target, &found, e) < 0)
        return -1;
    if (image->target || found)
        return 0;
    err_set(e, ERR_NOT_FOUND, "the image \"%.100s\" is not mapped", image->image);
    return err_reason(e, "ImageNotFound");
}

void control_map_image(struct control *control,
                       struct control_change *change,
                       const char *image,
                       const char *target)
{
    struct control_image *kept = arena_alloc(change->arena, sizeof(*kept));

    kept->image = arena_strdup(change->arena, image);
    kept->target = target ? arena_strdup(change->arena, target) : NULL;
    change->request = kept;
    change->apply = apply_map;
    control_submit(control, change);
}
