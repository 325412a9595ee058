/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-ends.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-account.h"
#include "cli/storage-verb.h"
#include "cli/storage-wire.h"
#include "cli/transfer-options.h"

#include <string.h>
#include <unistd.h>

void end_close(struct end *end)
{
    address_done(&end->address);
    storage_account_free(end->account);
    end->account = NULL;
}

void ends_close(struct ends *ends)
{
    end_close(&ends->from);
    end_close(&ends->to);
}

static int open_wire(struct call *call,
                     const struct storage_account *account,
                     enum storage_service service,
                     struct wire **ret_wire,
                     struct err *e)
{
    struct wire_config config = {
        .account = account,
        .service = service,
        .patience_ms = WIRE_PATIENCE_MS,
        .trace = storage_trace(call),
    };

    return wire_new(&config, ret_wire, e);
}

static const char *container_query(enum storage_service service)
{
    return service == STORAGE_FILE ? "restype=share" : "restype=container";
}

/* 1 there, 0 not, -1 failed or not allowed to know. */
static int has_container(struct call *call,
                         const struct end *end,
                         enum storage_service service,
                         struct err *e)
{
    autoptr(wire) wire = NULL;
    struct wire_request request = {
        .method = "HEAD",
        .container = end->address.container,
        .query = container_query(service),
    };

    if (open_wire(call, end->account, service, &wire, e) < 0)
        return -1;
    if (wire_call(wire, &request, NULL, e) == 0)
        return 1;
    return wire_is_missing(wire) ? 0 : -1;
}

/* Container or share?  Only a name was given: the one that is there. */
static int find_service(struct call *call, struct end *end, struct err *e)
{
    struct address *a = &end->address;

    if (!*a->container) {
        a->service = STORAGE_BLOB;
        return 0;
    }
    if (!end->account->endpoints[STORAGE_FILE] ||
        has_container(call, end, STORAGE_BLOB, NULL) == 1) {
        a->service = STORAGE_BLOB;
        return 0;
    }
    if (has_container(call, end, STORAGE_FILE, NULL) == 1) {
        a->service = STORAGE_FILE;
        return 0;
    }
    return err_set(e, ERR_NOT_FOUND, "the account \"%s\" has no container or share \"%.64s\"",
                   a->account, a->container);
}

int end_open(struct call *call,
             const char *text,
             enum storage_service service,
             const char *sas,
             bool is_remote,
             struct end *ret_end,
             struct err *e)
{
    struct address *a = &ret_end->address;

    if ((is_remote ? address_parse_remote : address_parse)(text, a, e) < 0)
        return -1;
    if (a->is_local) {
        ret_end->kind = SIDE_LOCAL;
        return 0;
    }
    if (service != STORAGE_UNKNOWN)
        a->service = service;
    if (sas && !a->sas)
        a->sas = xstrdup(sas + (*sas == '?'));
    if (storage_account_of_address(call, a, &ret_end->account, e) < 0)
        return -1;
    if (a->service == STORAGE_UNKNOWN && !a->endpoint && find_service(call, ret_end, e) < 0)
        return -1;
    if (a->service == STORAGE_UNKNOWN && !is_remote)
        return err_set(e, ERR_INVALID,
                       "%.200s does not tell whether it has blobs or files; add --from-to, for "
                       "example LocalBlob",
                       a->endpoint);
    ret_end->kind = a->service == STORAGE_FILE ? SIDE_FILE : SIDE_BLOB;
    return 0;
}

/* --- two of them --- */

static enum storage_service word_service(const char *word)
{
    return str_starts(word, "Blob")   ? STORAGE_BLOB
           : str_starts(word, "File") ? STORAGE_FILE
                                      : STORAGE_UNKNOWN;
}

/* "LocalBlob": what the first and the second word say. */
static void read_from_to(const char *text, enum storage_service *from, enum storage_service *to)
{
    *from = *to = STORAGE_UNKNOWN;
    if (!text)
        return;
    *from = word_service(text);
    *to = word_service(text + (str_starts(text, "Local") ? 5 : 4));
}

static int fits_from_to(const struct ends *ends, const char *from_to, struct err *e)
{
    bool from_local = str_starts(from_to, "Local"), to_local = str_ends(from_to, "Local");

    if (ends->from.address.is_local == from_local && ends->to.address.is_local == to_local)
        return 0;
    return args_fail(e, "--from-to", "--from-to %s does not fit what is copied", from_to);
}

int ends_open(struct call *call,
              const char *source,
              const char *destination,
              const char *from_to,
              struct ends *ret_ends,
              struct err *e)
{
    enum storage_service from, to;

    read_from_to(from_to, &from, &to);
    if (end_open(call, source, from, args_get(call->args, "source-sas"), false, &ret_ends->from,
                 e) < 0 ||
        end_open(call, destination, to, args_get(call->args, "destination-sas"), false,
                 &ret_ends->to, e) < 0)
        return -1;
    if (ret_ends->from.address.is_local && ret_ends->to.address.is_local)
        return args_fail(e, NULL, "both are on this machine: one of them must be a URL");
    if (from_to && fits_from_to(ret_ends, from_to, e) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        const struct address *a = i ? &ret_ends->to.address : &ret_ends->from.address;

        if (!a->is_local && !*a->container)
            return args_fail(e, NULL, "%.200s is a whole account: name a container in it",
                             a->endpoint);
    }
    return 0;
}

int end_side(const struct end *end, const char *root, struct side **ret_side, struct err *e)
{
    if (end->kind == SIDE_LOCAL)
        return side_new_local(root, ret_side, e);
    *ret_side = side_new_remote(end->kind, end->account, end->address.container, root);
    return 0;
}

/* --- what is there --- */

static int see_one(void *context, const char *path, const struct facts *facts, struct err *e)
{
    (void)path;
    (void)facts;
    (void)e;
    *(bool *)context = true;
    return 1;
}

/* A blob of that name is a file; names below it make it a folder. */
static int look_at(const struct end *end,
                   struct port *port,
                   bool *ret_is_there,
                   bool *ret_is_folder,
                   struct err *e)
{
    struct side_walk walk = {.see = see_one, .context = ret_is_there, .is_recursive = true};
    struct facts facts = {0};
    bool is_root = end->kind == SIDE_BLOB && !*end->address.path;

    if (!is_root && port->side->ops->look(port, "", &facts, ret_is_there, e) < 0)
        return -1;
    if (!is_root && *ret_is_there) {
        *ret_is_folder = facts.is_folder;
        return 0;
    }
    *ret_is_folder = *ret_is_there = is_root;
    if (end->kind != SIDE_BLOB || is_root)
        return 0;
    if (port->side->ops->walk(port, &walk, e) < 0)
        return -1;
    *ret_is_folder = *ret_is_there;
    return 0;
}

int end_look(struct call *call,
             const struct end *end,
             bool *ret_is_there,
             bool *ret_is_folder,
             struct err *e)
{
    autoptr(side) side = NULL;
    struct transfer_options options;
    struct port_config config = {
        .options = &options,
        .patience_ms = WIRE_PATIENCE_MS,
        .trace = storage_trace(call),
    };
    struct port port;
    int rc;

    transfer_options_init(&options);
    if (end_side(end, end->address.path, &side, e) < 0 ||
        port_open(side, &config, &port, e) < 0)
        return -1;
    rc = look_at(end, &port, ret_is_there, ret_is_folder, e);
    port_close(&port);
    return rc;
}

int end_need_container(struct call *call, const struct end *end, struct err *e)
{
    enum storage_service service = end->address.service;
    autoptr(wire) wire = NULL;
    struct wire_request request = {
        .method = "PUT",
        .container = end->address.container,
        .query = container_query(service),
    };

    if (end->kind == SIDE_LOCAL)
        return 0;
    /* Who may not ask finds out when the first file goes. */
    if (has_container(call, end, service, e) != 0)
        return 0;
    if (open_wire(call, end->account, service, &wire, e) < 0)
        return -1;
    if (wire_call(wire, &request, NULL, e) < 0 && !str_ends(wire_code(wire), "AlreadyExists"))
        return err_wrap(e, "the %s \"%s\" is missing and could not be made",
                        service == STORAGE_FILE ? "share" : "container",
                        end->address.container);
    call_say(call, "NOTE: there was no %s \"%s\": made it.",
             service == STORAGE_FILE ? "share" : "container", end->address.container);
    return 0;
}

char *end_text(const struct end *end)
{
    const struct address *a = &end->address;
    auto_str text = {0};

    if (a->is_local) {
        auto_free char *here = a->path[0] == '/' ? NULL : getcwd(NULL, 0);
        bool has_slash = str_ends(a->path, "/");

        return xasprintf("%s%s%s%s%s", here ? here : "", here ? "/" : "", a->path,
                         a->pattern && !has_slash ? "/" : "", a->pattern ? a->pattern : "");
    }
    str_add(&text, end->account->endpoints[a->service]);
    str_add_char(&text, '/');
    text_percent_path(&text, a->container);
    if (*a->path || a->pattern || a->ends_in_slash)
        str_add_char(&text, '/');
    text_percent_path(&text, a->path);
    if (*a->path && (a->pattern || a->ends_in_slash))
        str_add_char(&text, '/');
    if (a->pattern)
        str_add(&text, a->pattern);
    return str_take(&text);
}
