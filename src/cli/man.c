/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/man.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/help.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Append text so that roff shows it as it is: no requests, no hyphens that cannot be copied. */
static void add_roff(struct str *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        str_add(out, "\\&");
    for (; *text; text++) {
        if (*text == '\\')
            str_add(out, "\\e");
        else if (*text == '-')
            str_add(out, "\\-");
        else
            str_add_char(out, *text);
    }
}

static void add_option(struct str *out, const struct option_row *row)
{
    auto_str title = {0}, text = {0};

    help_option_title(&title, row);
    help_option_text(&text, row);
    if (row->required)
        str_add(&text, " Required.");
    str_add(out, ".TP\n.B ");
    add_roff(out, str_text(&title));
    str_add(out, "\n");
    add_roff(out, str_text(&text));
    str_add(out, "\n");
}

static void add_command(struct str *out, const struct command *command)
{
    const struct option_row *row;

    str_addf(out, ".SS yard ");
    add_roff(out, command->path);
    str_add(out, "\n");
    add_roff(out, command->summary);
    str_add(out, "\n");
    for (size_t i = 0; (row = command_option_at(command, i)) != global_option_at(0); i++)
        add_option(out, row);
    for (size_t i = 0; i < ARRAY_SIZE(command->examples) && command->examples[i].what; i++) {
        str_add(out, ".PP\n");
        add_roff(out, command->examples[i].what);
        str_add(out, "\n.PP\n.RS 4\n.nf\n");
        add_roff(out, command->examples[i].how);
        str_add(out, "\n.fi\n.RE\n");
    }
}

static void see_child(void *context, const char *word, const char *summary, bool is_group)
{
    struct str *out = context;

    str_add(out, ".TP\n.B ");
    add_roff(out, word);
    str_add(out, "\n");
    add_roff(out, summary);
    if (is_group)
        str_addf(out, " See \\fByard\\-%s\\fR(1).", word);
    str_add(out, "\n");
}

static void add_files(struct str *out)
{
    str_add(out,
            ".SH EXIT STATUS\n0 when all went well, 1 on a failure, 2 when the command line "
            "is wrong, 3 when a resource is missing (or, for status, the yard).\n"
            ".SH ENVIRONMENT\n"
            ".TP\n.B YARD_HOME\nThe data folder; default ~/.trainyard.\n"
            ".TP\n.B YARD_URL, YARD_TOKEN, YARD_CA_FILE\nA yard to use instead of the one "
            "on the data folder: address, token, certificate of its authority.\n"
            ".TP\n.B NO_COLOR\nNo colours on the terminal.\n"
            ".SH FILES\n"
            ".TP\n.B $YARD_HOME/cli.ini\nDefaults and the remote yard.\n");
}

static bool is_on_page(const struct command *command, const char *path)
{
    size_t len = strlen(path);

    if (command->hidden)
        return false;
    if (!len)
        return !strchr(command->path, ' ');
    return str_starts(command->path, path) && command->path[len] == ' ';
}

void man_page(struct str *out, const char *path)
{
    const struct group *group = group_find(path);
    const struct command *command;
    const struct option_row *row;

    str_addf(out, ".TH YARD%s", *path ? "\\-" : "");
    for (const char *p = path; *p; p++)
        str_add_char(out, (char)toupper((unsigned char)*p));
    str_addf(out, " 1 \"\" \"Trainyard %s\" \"Trainyard\"\n.SH NAME\nyard%s%s \\- ",
             YARD_VERSION, *path ? "\\-" : "", path);
    add_roff(out, group ? group->summary : "your own training service, from the command line");
    str_addf(out, "\n.SH SYNOPSIS\n.B yard%s%s\n.I COMMAND\n[options]\n", *path ? " " : "",
             path);
    if (!group) {
        str_add(out, ".SH COMMANDS\n");
        command_children("", see_child, out);
    }
    str_add(out, group ? ".SH COMMANDS\n" : ".SH DETAILS\n");
    for (size_t i = 0; (command = command_at(i)); i++) {
        if (is_on_page(command, path))
            add_command(out, command);
    }
    str_add(out, ".SH GLOBAL OPTIONS\n");
    for (size_t i = 0; (row = global_option_at(i)); i++)
        add_option(out, row);
    add_files(out);
}

static int write_page(const char *folder, const char *path, struct err *e)
{
    auto_free char *file = xasprintf("%s/yard%s%s.1", folder, *path ? "-" : "", path);
    auto_str page = {0};

    man_page(&page, path);
    return fs_write_durably(file, str_text(&page), page.len, 0644, e);
}

int man_write(const char *folder, struct err *e)
{
    const struct group *group;

    if (fs_make_folders(folder, 0755, e) < 0 || write_page(folder, "", e) < 0)
        return -1;
    for (size_t i = 0; (group = group_at(i)); i++) {
        if (!strchr(group->path, ' ') && write_page(folder, group->path, e) < 0)
            return -1;
    }
    return 0;
}
