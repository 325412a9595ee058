/* events.h - TensorBoard's event files: scalars by step.
 *
 * A file is called events.out.tfevents.<seconds>.<host>; it is a row of TFRecords
 * (record/tfrecord.h) of tf.Event messages: the first says "brain.Event:2", then one per step
 * with Summary values {tag, simple_value}.  Appended and flushed every events_flush_s, so that
 * a watcher sees them soon.  Rank 0 writes.
 *
 * Tags: loss, total_loss, learning_rate, images_per_second, top_1_accuracy, top_5_accuracy,
 * eval/top_1_accuracy, eval/top_5_accuracy, loss_scale.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_EVENTS_H
#define TRAIN_REPORT_EVENTS_H

#include "base/err.h"

#include <stdint.h>

struct events; /* opaque */

/* Makes the folder. */
int events_open(const char *folder, struct events **ret_events, struct err *e);
void events_free(struct events *events); /* flushes */

struct events_scalar {
    const char *tag;
    float value; /* NaN: left out */
};
int events_add(struct events *events,
               int64_t step,
               const struct events_scalar *scalars,
               int count,
               struct err *e);
int events_flush(struct events *events, struct err *e);

#endif
