/* jmespath_compliance.c - run the JMESPath specification's own cases.
 *
 * usage: jmespath-compliance FILE.json ...
 *
 * A file is a list of {"given": document, "cases": [{"expression", and "result", "error" or
 * "bench"}]}. A result must be equal as JSON, 1 and 1.0 being the same; an error must be of the
 * kind named, whether it shows when parsing or when searching; a bench case must only work.
 *
 * Prints each case that fails, then the count.  Exit status 1 when one failed or none was
 * found.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/str.h"
#include "cli/jmespath.h"

#include <stdio.h>

struct tally {
    size_t passed, failed;
};

static bool equal(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *inner;
    size_t i;

    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (!json_is_array(a) && !json_is_object(a))
        return json_equal(a, b);
    if (json_array_size(a) != json_array_size(b) || json_object_size(a) != json_object_size(b))
        return false;
    json_array_foreach(a, i, inner) if (!equal(inner, json_array_get(b, i))) return false;
    json_object_foreach((json_t *)a, key, inner)
    {
        const json_t *other = json_object_get(b, key);

        if (!other || !equal(inner, other))
            return false;
    }
    return true;
}

static int search(const char *expression, json_t *given, json_t **ret_value, struct err *e)
{
    autoptr(jmespath) path = NULL;

    if (jmespath_parse(expression, &path, e) < 0)
        return -1;
    return jmespath_search(path, given, ret_value, e);
}

/* Did it come out as the case wants?  *got says what came out. */
static bool is_as_wanted(const json_t *one, json_t *given, struct str *got)
{
    const char *error = json_string_value(json_object_get(one, "error"));
    json_t *result = json_object_get(one, "result");
    auto_json json_t *value = NULL;
    struct err e = {0};

    if (search(json_string_value(json_object_get(one, "expression")), given, &value, &e) < 0) {
        str_addf(got, "%s: %s", err_reason_of(&e), e.msg);
        return error && str_equal(error, err_reason_of(&e));
    }
    json_write(got, value);
    return !error && (!result || equal(value, result));
}

static void run_case(const char *file, const json_t *one, json_t *given, struct tally *tally)
{
    auto_str got = {0};

    if (is_as_wanted(one, given, &got)) {
        tally->passed++;
        return;
    }
    tally->failed++;
    auto_free char *wanted = json_canonical(one);
    printf("%s: %s\n    got %s\n", file, wanted, str_text(&got));
}

static int run_file(const char *file, struct tally *tally)
{
    json_error_t where;
    auto_json json_t *groups = json_load_file(file, 0, &where);
    json_t *group, *one;
    size_t i, j;

    if (!json_is_array(groups)) {
        fprintf(stderr, "%s: no list of cases: %s\n", file, where.text);
        return -1;
    }
    json_array_foreach(groups, i, group)
        json_array_foreach(json_object_get(group, "cases"), j, one)
            run_case(file, one, json_object_get(group, "given"), tally);
    return 0;
}

int main(int argc, char **argv)
{
    struct tally tally = {0};

    for (int i = 1; i < argc; i++)
        if (run_file(argv[i], &tally) < 0)
            return 1;
    printf("%zu passed, %zu failed\n", tally.passed, tally.failed);
    return tally.failed > 0 || tally.passed == 0;
}
