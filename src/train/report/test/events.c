/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/events.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/record/proto.h"
#include "train/record/tfrecord.h"

#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The one event file of a folder; removes both. */
static void read_file(const char *folder, struct str *out)
{
    auto_free char *pattern = xasprintf("%s/events.out.tfevents.*", folder);
    glob_t found = {0};

    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_int_equal(fs_read(found.gl_pathv[0], 1 << 20, out, NULL), 0);
    unlink(found.gl_pathv[0]);
    globfree(&found);
    rmdir(folder);
}

/* Field `number` of a message, which must be there. */
static struct proto_field field(const uint8_t *bytes, size_t len, int number)
{
    const uint8_t *at = bytes;
    struct proto_field f;

    while (proto_next(&at, bytes + len, &f, NULL) > 0)
        if (f.number == number)
            return f;
    fail_msg("no field %d", number);
    return f;
}

static void scalars_come_back(void **state)
{
    char folder[] = "/tmp/yard-events-XXXXXX";
    const struct events_scalar scalars[] = {{"loss", 2.5F}, {"lost", NAN}, {"rate", 0.5F}};
    struct events *events;
    struct proto_field f, value;
    auto_str file = {0};
    const void *data;
    size_t len, next;
    float number;
    int values = 0;

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(events_open(folder, &events, NULL), 0);
    assert_int_equal(events_add(events, 7, scalars, 3, NULL), 0);
    events_free(events);
    read_file(folder, &file);
    assert_int_equal(tfrecord_at(file.data, file.len, 0, &data, &len, &next, NULL), 0);
    f = field(data, len, 3);
    assert_int_equal(f.len, 13);
    assert_memory_equal(f.bytes, "brain.Event:2", 13);
    assert_int_equal(tfrecord_at(file.data, file.len, next, &data, &len, &next, NULL), 0);
    assert_int_equal(next, file.len);
    assert_int_equal(field(data, len, 2).value, 7);
    f = field(data, len, 5);
    for (const uint8_t *at = f.bytes; proto_next(&at, f.bytes + f.len, &value, NULL) > 0;)
        values++;
    assert_int_equal(values, 2); /* what is not a number is left out */
    value = field(f.bytes, f.len, 1);
    assert_memory_equal(field(value.bytes, value.len, 1).bytes, "loss", 4);
    memcpy(&number, &(uint32_t){(uint32_t)field(value.bytes, value.len, 2).value}, 4);
    assert_float_equal(number, 2.5F, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
