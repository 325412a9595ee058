/* launch-shell.c - texts that bash reads.
 *
 * What comes from a user is either handed on as it is, where it is a command of theirs, or
 * quoted whole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/launch-internal.h"

#include "base/str.h"

#include <string.h>

void shell_quote(struct str *out, const char *text)
{
    str_add_char(out, '\'');
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            str_add(out, "'\\''");
        else
            str_add_char(out, *p);
    }
    str_add_char(out, '\'');
}

/* An interactive bash, because only such a one gets past the first lines of most ~/.bashrc; it
 * complains about the missing terminal, so its errors go nowhere until it has started.  It then
 * makes room for a plain one: interactive shells ignore TERM. */
const char *shell_with_rc(struct arena *arena, const char *command)
{
    auto_str out = {0};

    str_add(&out, "exec 9>&2 2>/dev/null; exec bash -ic 'exec 2>&9 9>&-; unset HISTFILE; exec "
                  "bash -c \"$1\" bash' bash ");
    shell_quote(&out, command);
    return arena_strdup(arena, str_text(&out));
}

void shell_path(struct str *out, const char *path)
{
    str_add_char(out, '"');
    for (const char *p = path; *p; p++) {
        if (strchr("\"\\`", *p))
            str_add_char(out, '\\');
        str_add_char(out, *p);
    }
    str_add_char(out, '"');
}

/* Today's distributions have no "python" any more. */
const char *shell_python(struct arena *arena, const json_t *settings, const char *args)
{
    const char *interpreter =
        json_string_value(json_object_get(settings, "pythonInterpreterPath"));
    const char *script = json_string_value(json_object_get(settings, "pythonScriptFilePath"));
    const char *arguments = json_string_value(json_object_get(settings, args));
    auto_str out = {0};

    if (interpreter)
        shell_path(&out, interpreter);
    else
        str_add(&out, "\"$(command -v python || command -v python3 || echo python)\"");
    str_add_char(&out, ' ');
    shell_path(&out, script ? script : "");
    if (arguments && *arguments)
        str_addf(&out, " %s", arguments);
    return arena_strdup(arena, str_text(&out));
}
