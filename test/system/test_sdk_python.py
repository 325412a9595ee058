# SPDX-License-Identifier: Apache-2.0
"""The Azure SDK for Python as Debian ships it, against a yard, over TLS.

Nothing of the SDK is patched: it gets a base URL, the yard's certificate authority and a
credential, which is all that a user of it would change.
"""
import base64
import datetime
import hashlib
import hmac
import time
import urllib.parse

import pytest

pytest.importorskip("azure.mgmt.batchai", reason="python3-azure is not installed")

import azure.storage.blob as blob
import azure.storage.fileshare as fileshare
from azure.core.credentials import AccessToken
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
    ServiceRequestError,
)
from azure.identity import ClientSecretCredential
from azure.mgmt.batchai import BatchAI
from azure.mgmt.batchai.models import (
    ExperimentsListByWorkspaceOptions,
    WorkspaceCreateParameters,
    WorkspacesListByResourceGroupOptions,
    WorkspacesListOptions,
    WorkspaceUpdateParameters,
)
from azure.mgmt.resource import ResourceManagementClient, SubscriptionClient
from azure.mgmt.storage import StorageManagementClient

WHEN = datetime.datetime(2034, 1, 1, tzinfo=datetime.timezone.utc)
SINCE = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)


class StaticToken:
    """The simplest credential: a token that somebody wrote down."""

    def __init__(self, token):
        self.token = token

    def get_token(self, *scopes, **options):
        return AccessToken(self.token, int(time.time()) + 3600)


class Clients:
    """One client of each kind, with the same credential."""

    def __init__(self, yard, credential):
        options = {"base_url": yard.api_url, "connection_verify": yard.ca_file, "retry_total": 0}
        subscription = yard.subscription_id
        self.resource = ResourceManagementClient(credential, subscription, **options)
        self.subscription = SubscriptionClient(credential, **options)
        self.storage = StorageManagementClient(credential, subscription, **options)
        self.batchai = BatchAI(credential, subscription, **options)


def secret_credential(yard, name, **body):
    made = yard.rest("PUT", f"/yard/tokens/{name}", json={"role": "contributor", **body})
    assert made.status_code == 200, made.text
    client = made.json()
    return ClientSecretCredential(
        client["tenantId"], client["clientId"], client["clientSecret"],
        authority=yard.api_url, instance_discovery=False, connection_verify=yard.ca_file,
    )


@pytest.fixture(scope="module", params=["static token", "client secret"])
def clients(request, yard):
    """Both ways to sign in: everything below runs with each of them."""
    if request.param == "static token":
        return Clients(yard, StaticToken(yard.token))
    return Clients(yard, secret_credential(yard, "sdk"))


@pytest.fixture(scope="module")
def static(yard):
    return Clients(yard, StaticToken(yard.token))


@pytest.fixture
def group(static):
    """A group of the test's own, gone afterwards."""
    name = f"group-{time.monotonic_ns()}"
    static.resource.resource_groups.create_or_update(name, {"location": "eastus"})
    yield name
    if static.resource.resource_groups.check_existence(name):
        static.resource.resource_groups.begin_delete(name).result()


@pytest.fixture
def account(static, group):
    return make_account(static, group).name


def account_name():
    return f"acct{time.monotonic_ns()}"[:24]


def make_account(clients, group, **more):
    parameters = {"sku": {"name": "Standard_LRS"}, "kind": "StorageV2", "location": "eastus", **more}
    return clients.storage.storage_accounts.begin_create(group, account_name(), parameters).result()


def make_workspace(clients, group, name, **more):
    parameters = WorkspaceCreateParameters(location="eastus", **more)
    return clients.batchai.workspaces.begin_create(group, name, parameters).result()


# -- the SDK itself -------------------------------------------------------------------------------


def test_the_sdk_is_debians_own():
    for module in (BatchAI, ResourceManagementClient, StorageManagementClient, ClientSecretCredential):
        assert __import__(module.__module__, fromlist=["x"]).__file__.startswith(
            "/usr/lib/python3/dist-packages/"
        )


def test_the_certificate_is_really_checked(yard):
    stranger = BatchAI(
        StaticToken(yard.token), yard.subscription_id, base_url=yard.api_url, retry_total=0
    )
    with pytest.raises(ServiceRequestError, match="CERTIFICATE_VERIFY_FAILED"):
        list(stranger.workspaces.list())


def test_the_authority_can_come_from_the_environment(yard, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(yard.ca_file))
    client = BatchAI(StaticToken(yard.token), yard.subscription_id, base_url=yard.api_url)
    assert isinstance(list(client.workspaces.list()), list)


# -- Microsoft.Resources --------------------------------------------------------------------------


def test_subscriptions_tenants_and_locations(yard, clients):
    ids = [s.subscription_id for s in clients.subscription.subscriptions.list()]
    assert yard.subscription_id in ids
    ours = clients.subscription.subscriptions.get(yard.subscription_id)
    assert ours.state == "Enabled" and ours.id == yard.subscription and ours.display_name
    assert [t.tenant_id for t in clients.subscription.tenants.list()] == [yard.tenant_id]
    locations = list(clients.subscription.subscriptions.list_locations(yard.subscription_id))
    assert {"eastus", "northeurope", "westus2"} <= {place.name for place in locations}
    assert all(place.display_name for place in locations)


def test_resource_group_from_creation_to_deletion(yard, clients):
    groups = clients.resource.resource_groups
    name = f"life-{time.monotonic_ns()}"
    assert groups.check_existence(name) is False
    made = groups.create_or_update(name, {"location": "East US", "tags": {"team": "a"}})
    assert made.name == name and made.location == "eastus" and made.tags == {"team": "a"}
    assert made.id == f"{yard.subscription}/resourceGroups/{name}"
    assert made.type == "Microsoft.Resources/resourceGroups"
    assert made.properties.provisioning_state == "Succeeded"
    assert groups.check_existence(name) is True
    assert groups.get(name).as_dict() == made.as_dict()
    assert groups.get(name.upper()).name == name  # ids know no case
    assert name in [g.name for g in groups.list()]

    assert groups.update(name, {"tags": {"team": "b", "cost": "7"}}).tags == {"team": "b", "cost": "7"}
    assert groups.get(name).tags == {"team": "b", "cost": "7"}

    groups.begin_delete(name).result()
    assert groups.check_existence(name) is False
    with pytest.raises(ResourceNotFoundError) as caught:
        groups.get(name)
    assert caught.value.error.code == "ResourceGroupNotFound"


def test_resource_groups_are_filtered_by_tag(static, group):
    groups = static.resource.resource_groups
    other = groups.create_or_update(group + "-x", {"location": "eastus", "tags": {"env": "prod"}})
    groups.update(group, {"tags": {"env": group}})
    by_value = groups.list(filter=f"tagName eq 'env' and tagValue eq '{group}'")
    assert [g.name for g in by_value] == [group]
    assert {group, other.name} <= {g.name for g in groups.list(filter="tagName eq 'env'")}
    assert group not in [g.name for g in groups.list(filter="tagName eq 'nothing has this'")]
    groups.begin_delete(other.name).result()


def test_deleting_a_group_takes_everything_in_it(static, group):
    account = make_account(static, group)
    make_workspace(static, group, "w")
    static.batchai.experiments.begin_create(group, "w", "e").result()
    seen = {r.type for r in static.resource.resources.list_by_resource_group(group)}
    assert seen == {
        "Microsoft.Storage/storageAccounts",
        "Microsoft.BatchAI/workspaces",
        "Microsoft.BatchAI/workspaces/experiments",
    }

    poller = static.resource.resource_groups.begin_delete(group)
    poller.result()
    assert poller.done() and poller.status() == "Succeeded"

    for gone in (
        lambda: static.storage.storage_accounts.get_properties(group, account.name),
        lambda: static.batchai.workspaces.get(group, "w"),
        lambda: static.batchai.experiments.get(group, "w", "e"),
    ):
        with pytest.raises(ResourceNotFoundError) as caught:
            gone()
        assert caught.value.error.code == "ResourceGroupNotFound"
    assert account.name not in [a.name for a in static.storage.storage_accounts.list()]
    # The name is free again, and the new account is a new one.
    assert static.storage.storage_accounts.check_name_availability({"name": account.name}).name_available


def test_resources_are_listed_with_filters(static, group, account):
    make_workspace(static, group, "w", tags={"who": group})
    everything = list(static.resource.resources.list())
    assert {account, "w"} <= {r.name for r in everything}
    of_type = static.resource.resources.list_by_resource_group(
        group, filter="resourceType eq 'Microsoft.Storage/storageAccounts'"
    )
    assert [r.name for r in of_type] == [account]
    tagged = static.resource.resources.list(filter=f"tagName eq 'who' and tagValue eq '{group}'")
    assert [r.name for r in tagged] == ["w"]
    named = static.resource.resources.list(filter=f"name eq '{account}'")
    assert [r.name for r in named] == [account]
    none = static.resource.resources.list(filter="resourceType eq 'Microsoft.Compute/virtualMachines'")
    assert list(none) == []


def test_providers_are_registered(yard, clients):
    names = {p.namespace for p in clients.resource.providers.list()}
    assert {"Microsoft.BatchAI", "Microsoft.Storage", "Microsoft.Resources"} == names
    provider = clients.resource.providers.get("microsoft.batchai")
    assert provider.namespace == "Microsoft.BatchAI" and provider.registration_state == "Registered"
    types = {t.resource_type: t.api_versions for t in provider.resource_types}
    assert "2018-05-01" in types["workspaces"] and "2018-05-01" in types["workspaces/experiments"]
    assert clients.resource.providers.register("Microsoft.Storage").registration_state == "Registered"
    with pytest.raises(ResourceNotFoundError) as caught:
        clients.resource.providers.get("Microsoft.Nothing")
    assert caught.value.error.code == "InvalidResourceNamespace"


# -- Microsoft.Storage ----------------------------------------------------------------------------


def test_storage_account_from_creation_to_deletion(yard, clients, group):
    accounts = clients.storage.storage_accounts
    name = account_name()
    assert accounts.check_name_availability({"name": name}).name_available is True
    made = accounts.begin_create(group, name, {
        "sku": {"name": "Premium_LRS"}, "kind": "StorageV2", "location": "West US 2",
        "tags": {"a": "1"}, "properties": {"accessTier": "Hot", "minimumTlsVersion": "TLS1_2"},
    }).result()
    assert made.name == name and made.location == "westus2" and made.tags == {"a": "1"}
    assert made.id == (
        f"{yard.subscription}/resourceGroups/{group}/providers/Microsoft.Storage/storageAccounts/{name}"
    )
    assert made.sku.name == "Premium_LRS" and made.sku.tier == "Premium" and made.kind == "StorageV2"
    assert made.provisioning_state == "Succeeded" and made.creation_time is not None
    assert made.access_tier == "Hot" and made.minimum_tls_version == "TLS1_2"
    assert made.enable_https_traffic_only is True

    taken = accounts.check_name_availability({"name": name})
    assert taken.name_available is False and taken.reason == "AlreadyExists" and name in taken.message
    assert accounts.get_properties(group, name).as_dict() == made.as_dict()
    assert name in [a.name for a in accounts.list()]
    assert [a.name for a in accounts.list_by_resource_group(group)] == [name]

    changed = accounts.update(group, name, {"tags": {"b": "2"}, "properties": {"accessTier": "Cool"}})
    assert changed.tags == {"b": "2"} and changed.access_tier == "Cool"
    assert changed.minimum_tls_version == "TLS1_2"  # what was not named stays
    assert accounts.get_properties(group, name).as_dict() == changed.as_dict()

    accounts.delete(group, name)
    with pytest.raises(ResourceNotFoundError) as caught:
        accounts.get_properties(group, name)
    assert caught.value.error.code == "ResourceNotFound"
    assert list(accounts.list_by_resource_group(group)) == []
    accounts.delete(group, name)  # again: nothing to do, no error


def test_bad_account_names_are_not_available(static):
    for name in ("ab", "x" * 25, "UpperCase", "with-hyphen"):
        answer = static.storage.storage_accounts.check_name_availability({"name": name})
        assert answer.name_available is False and answer.reason == "AccountNameInvalid"


def test_account_names_are_unique_over_all_groups(static, group, account):
    other = group + "-2"
    static.resource.resource_groups.create_or_update(other, {"location": "eastus"})
    with pytest.raises(ResourceExistsError) as caught:
        static.storage.storage_accounts.begin_create(other, account, {
            "sku": {"name": "Standard_LRS"}, "kind": "StorageV2", "location": "eastus",
        })
    assert caught.value.error.code == "StorageAccountAlreadyTaken"
    assert list(static.storage.storage_accounts.list_by_resource_group(other)) == []
    static.resource.resource_groups.begin_delete(other).result()


def test_regenerating_a_key_changes_that_key_alone(clients, group):
    accounts = clients.storage.storage_accounts
    name = make_account(clients, group).name
    before = accounts.list_keys(group, name).keys
    assert [k.key_name for k in before] == ["key1", "key2"]
    assert before[0].value != before[1].value and all(k.permissions.upper() == "FULL" for k in before)
    assert all(len(base64.b64decode(k.value)) == 64 for k in before)

    after = accounts.regenerate_key(group, name, {"key_name": "key1"}).keys
    assert after[0].value != before[0].value and after[1].value == before[1].value
    last = accounts.regenerate_key(group, name, {"key_name": "key2"}).keys
    assert last[0].value == after[0].value and last[1].value != before[1].value
    assert [k.value for k in accounts.list_keys(group, name).keys] == [k.value for k in last]
    with pytest.raises(HttpResponseError) as caught:
        accounts.regenerate_key(group, name, {"key_name": "key3"})
    assert caught.value.status_code == 400
    assert [k.value for k in accounts.list_keys(group, name).keys] == [k.value for k in last]


# -- shared access signatures ---------------------------------------------------------------------


def sign(key, lines):
    mac = hmac.new(base64.b64decode(key), "\n".join(lines).encode(), hashlib.sha256)
    return base64.b64encode(mac.digest()).decode()


def sign_account(key, account, sas):
    names = ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv", "ses")
    return sign(key, [account, *(sas.get(n, "") for n in names), ""])


def sign_blob(key, resource, sas):
    names = ("si", "sip", "spr", "sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct")
    return sign(key, [*(sas.get(n, "") for n in ("sp", "st", "se")), resource,
                      *(sas.get(n, "") for n in names)])


def sign_file(key, resource, sas):
    names = ("si", "sip", "spr", "sv", "rscc", "rscd", "rsce", "rscl", "rsct")
    return sign(key, [*(sas.get(n, "") for n in ("sp", "st", "se")), resource,
                      *(sas.get(n, "") for n in names)])


def parse(token):
    return dict(urllib.parse.parse_qsl(token, strict_parsing=True))


def test_the_signing_of_this_file_agrees_with_known_vectors():
    """Vectors of the storage protocol, made with the emulator's public key."""
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    name = "devstoreaccount1"
    times = {"st": "2024-01-01T00:00:00Z", "se": "2034-01-01T00:00:00Z", "sv": "2021-12-02"}
    whole = {"sp": "rwdlac", "ss": "bf", "srt": "sco", "spr": "https,http", **times}
    assert sign_account(key, name, whole) == "Gpq4SOqL3zHG9aZtycx0+oYuAljr59HRexMbgaXp2Lw="
    one = sign_blob(key, f"/blob/{name}/con/dir/a b.txt", {"sp": "rcw", "sr": "b", **times})
    assert one == "IXprF9w6yUisjulu6nQwmkMg8qdJUC3VgOgb1+4J+aA="
    container = sign_blob(key, f"/blob/{name}/con", {"sp": "rcwl", "sr": "c", **times})
    assert container == "997uFaId5PbPRTrJnJItgf1/ydMxtbj81ApCeAGkZxM="
    file = sign_file(key, f"/file/{name}/shr/d/f.txt", {"sp": "rcw", "sr": "f", **times})
    assert file == "LhiBPT0+JKoqJDo9r6DqCOw3E4y5Hmt4+XsEXFOdMz8="


def test_account_sas_is_what_the_storage_sdk_makes(clients, group):
    accounts = clients.storage.storage_accounts
    name = make_account(clients, group).name
    keys = {k.key_name: k.value for k in accounts.list_keys(group, name).keys}

    for services, module, key_name in (("b", blob, "key1"), ("f", fileshare, "key2")):
        given = accounts.list_account_sas(group, name, {
            "services": services, "resource_types": "sco", "permissions": "rwdlac",
            "key_to_sign": key_name, "shared_access_start_time": SINCE,
            "shared_access_expiry_time": WHEN, "protocols": "https",
            "ip_address_or_range": "10.0.0.1-10.0.0.9",
        }).account_sas_token
        expected = module.generate_account_sas(
            name, keys[key_name], resource_types="sco", permission="rwdlac", expiry=WHEN,
            start=SINCE, ip="10.0.0.1-10.0.0.9", protocol="https",
        )
        assert parse(given) == parse(expected)

    # Services that no single library of the SDK signs for, and the shortest form of all.
    both = parse(accounts.list_account_sas(group, name, {
        "services": "bqtf", "resource_types": "s", "permissions": "l",
        "shared_access_expiry_time": WHEN,
    }).account_sas_token)
    assert both["sig"] == sign_account(keys["key1"], name, both) and "st" not in both


def test_service_sas_is_what_the_storage_sdk_makes(clients, group):
    accounts = clients.storage.storage_accounts
    name = make_account(clients, group).name
    keys = {k.key_name: k.value for k in accounts.list_keys(group, name).keys}
    times = {"shared_access_start_time": SINCE, "shared_access_expiry_time": WHEN}

    def ask(resource, kind, permissions, **more):
        return parse(accounts.list_service_sas(group, name, {
            "canonicalized_resource": resource, "resource": kind, "permissions": permissions,
            **times, **more,
        }).service_sas_token)

    given = ask(f"/blob/{name}/con", "c", "rl")
    expected = blob.generate_container_sas(
        name, "con", account_key=keys["key1"], permission="rl", expiry=WHEN, start=SINCE
    )
    assert given == parse(expected)

    given = ask(f"/blob/{name}/con/dir/a b.txt", "b", "rcw", key_to_sign="key2",
                content_type="text/plain", cache_control="no-store", protocols="https,http")
    expected = blob.generate_blob_sas(
        name, "con", "dir/a b.txt", account_key=keys["key2"], permission="rcw", expiry=WHEN,
        start=SINCE, content_type="text/plain", cache_control="no-store", protocol="https,http",
    )
    assert given == parse(expected)

    given = ask(f"/file/{name}/shr/d/f.txt", "f", "rcw")
    expected = fileshare.generate_file_sas(
        name, "shr", ["d", "f.txt"], keys["key1"], permission="rcw", expiry=WHEN, start=SINCE
    )
    assert given == parse(expected)

    with pytest.raises(HttpResponseError) as caught:
        ask("/blob/somebodyelse/con", "c", "r")
    assert caught.value.status_code == 400 and "canonicalizedResource" in caught.value.message


# -- Microsoft.BatchAI ----------------------------------------------------------------------------


def test_batchai_operations_and_usages(clients):
    names = {o.name for o in clients.batchai.operations.list()}
    assert {"Microsoft.BatchAI/workspaces/read", "Microsoft.BatchAI/workspaces/experiments/write"} <= names
    operation = next(o for o in clients.batchai.operations.list())
    assert operation.display.provider and operation.display.operation and operation.display.resource
    usages = list(clients.batchai.usages.list("eastus"))
    assert usages and all(u.limit > 0 and u.current_value == 0 and u.unit == "Count" for u in usages)
    assert all(u.name.value and u.name.localized_value for u in usages)


def test_workspace_from_creation_to_deletion(yard, clients, group):
    workspaces = clients.batchai.workspaces
    poller = workspaces.begin_create(
        group, "first", WorkspaceCreateParameters(location="northeurope", tags={"a": "1"})
    )
    made = poller.result()
    assert poller.done() and made.name == "first" and made.location == "northeurope"
    assert made.type == "Microsoft.BatchAI/workspaces" and made.tags == {"a": "1"}
    assert made.id == (
        f"{yard.subscription}/resourceGroups/{group}/providers/Microsoft.BatchAI/workspaces/first"
    )
    assert made.provisioning_state == "succeeded"
    assert made.creation_time == made.provisioning_state_transition_time
    age = datetime.datetime.now(datetime.timezone.utc) - made.creation_time
    assert abs(age.total_seconds()) < 60

    assert workspaces.get(group, "first").as_dict() == made.as_dict()
    assert made.id in [w.id for w in workspaces.list()]
    assert [w.name for w in workspaces.list_by_resource_group(group)] == ["first"]
    changed = workspaces.update(group, "first", WorkspaceUpdateParameters(tags={"b": "2"}))
    assert changed.tags == {"b": "2"} and workspaces.get(group, "first").tags == {"b": "2"}

    clients.batchai.experiments.begin_create(group, "first", "inside").result()
    poller = workspaces.begin_delete(group, "first")
    poller.result()
    assert poller.done() and poller.status() == "Succeeded"
    with pytest.raises(ResourceNotFoundError) as caught:
        workspaces.get(group, "first")
    assert caught.value.error.code == "WorkspaceNotFound"
    assert caught.value.error.message == "The specified workspace first is not found"
    with pytest.raises(ResourceNotFoundError) as caught:
        clients.batchai.experiments.get(group, "first", "inside")
    assert caught.value.error.code == "WorkspaceNotFound"
    assert list(workspaces.list_by_resource_group(group)) == []
    workspaces.begin_delete(group, "first").result()  # again: nothing to do, no error


def test_experiment_from_creation_to_deletion(clients, group):
    make_workspace(clients, group, "w")
    experiments = clients.batchai.experiments
    made = experiments.begin_create(group, "w", "e").result()
    assert made.name == "e" and made.type == "Microsoft.BatchAI/workspaces/experiments"
    assert made.provisioning_state == "succeeded" and made.creation_time is not None
    assert experiments.get(group, "w", "e").as_dict() == made.as_dict()
    assert [e.name for e in experiments.list_by_workspace(group, "w")] == ["e"]
    again = experiments.begin_create(group, "w", "e").result()
    assert again.as_dict() == made.as_dict()  # repeated, nothing changes

    experiments.begin_delete(group, "w", "e").result()
    with pytest.raises(ResourceNotFoundError) as caught:
        experiments.get(group, "w", "e")
    assert caught.value.error.code == "ExperimentNotFound"
    assert list(experiments.list_by_workspace(group, "w")) == []
    assert clients.batchai.workspaces.get(group, "w").name == "w"


def test_lists_come_in_pages(static, group):
    names = [f"w{i}" for i in range(5)]
    for name in names:
        make_workspace(static, group, name)
        static.batchai.experiments.begin_create(group, "w0", f"e{name}").result()
    listings = {
        "by group": static.batchai.workspaces.list_by_resource_group(
            group, WorkspacesListByResourceGroupOptions(max_results=2)),
        "experiments": static.batchai.experiments.list_by_workspace(
            group, "w0", ExperimentsListByWorkspaceOptions(max_results=2)),
        "resources": static.resource.resources.list_by_resource_group(
            group, top=2, filter="resourceType eq 'Microsoft.BatchAI/workspaces'"),
    }
    for what, listing in listings.items():
        pages = [[item.name for item in page] for page in listing.by_page()]
        assert [len(page) for page in pages] == [2, 2, 1], what
        assert [n.removeprefix("e") for page in pages for n in page] == names, what
    # A page that is just full is the last one.
    exact = static.batchai.workspaces.list_by_resource_group(
        group, WorkspacesListByResourceGroupOptions(max_results=5))
    assert [len(list(page)) for page in exact.by_page()] == [5]
    of_all = static.batchai.workspaces.list(WorkspacesListOptions(max_results=1))
    assert set(names) <= {w.name for w in of_all}


# -- errors as the SDK's exceptions ---------------------------------------------------------------


def test_missing_parents_are_named(static, group):
    for call, code in (
        (lambda: static.batchai.workspaces.get("no-such-group", "w"), "ResourceGroupNotFound"),
        (lambda: make_workspace(static, "no-such-group", "w"), "ResourceGroupNotFound"),
        (lambda: static.batchai.experiments.begin_create(group, "nothing", "e"), "WorkspaceNotFound"),
        (lambda: list(static.batchai.experiments.list_by_workspace(group, "nothing")), "WorkspaceNotFound"),
        (lambda: static.storage.storage_accounts.list_keys(group, "nothinghere"), "ResourceNotFound"),
        (lambda: static.resource.resource_groups.begin_delete("no-such-group"), "ResourceGroupNotFound"),
    ):
        with pytest.raises(ResourceNotFoundError) as caught:
            call()
        assert caught.value.error.code == code and caught.value.status_code == 404


def test_moving_a_resource_is_a_conflict(static, group):
    make_workspace(static, group, "w")
    with pytest.raises(ResourceExistsError) as caught:
        static.batchai.workspaces.begin_create(group, "w", WorkspaceCreateParameters(location="westus"))
    assert caught.value.status_code == 409 and caught.value.error.code == "InvalidResourceLocation"
    with pytest.raises(HttpResponseError) as caught:
        static.resource.resource_groups.create_or_update(group, {"location": "westus"})
    assert caught.value.status_code == 409
    assert caught.value.error.code == "InvalidResourceGroupLocation"


def test_a_wrong_token_is_an_authentication_error(yard):
    with pytest.raises(ClientAuthenticationError) as caught:
        list(Clients(yard, StaticToken("wrong")).batchai.workspaces.list())
    assert caught.value.status_code == 401
    assert caught.value.error.code == "InvalidAuthenticationToken"


def test_a_wrong_secret_is_an_authentication_error(yard):
    made = yard.rest("PUT", "/yard/tokens/wrong-secret", json={"role": "reader"}).json()
    credential = ClientSecretCredential(
        made["tenantId"], made["clientId"], "not the secret",
        authority=yard.api_url, instance_discovery=False, connection_verify=yard.ca_file,
    )
    with pytest.raises(ClientAuthenticationError, match="client id or its secret is wrong"):
        credential.get_token("https://management.azure.com/.default")


def test_a_reader_may_read_and_no_more(yard, static, group):
    make_workspace(static, group, "w")
    reader = Clients(yard, secret_credential(yard, "sdk-reader", role="reader"))
    assert reader.batchai.workspaces.get(group, "w").name == "w"
    with pytest.raises(HttpResponseError) as caught:
        reader.batchai.workspaces.update(group, "w", WorkspaceUpdateParameters(tags={"x": "y"}))
    assert caught.value.status_code == 403 and caught.value.error.code == "AuthorizationFailed"
    with pytest.raises(HttpResponseError) as caught:
        make_account(reader, group)
    assert caught.value.status_code == 403
    assert static.batchai.workspaces.get(group, "w").tags is None


def test_a_revoked_client_is_out_at_once(yard):
    clients = Clients(yard, secret_credential(yard, "sdk-revoked"))
    list(clients.batchai.workspaces.list())
    assert yard.rest("DELETE", "/yard/tokens/sdk-revoked").status_code == 200
    with pytest.raises(ClientAuthenticationError):
        list(clients.batchai.workspaces.list())
