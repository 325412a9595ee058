// SPDX-License-Identifier: Apache-2.0
// Drives a yard with @azure/storage-blob as npm has it.  Usage: node storage_blob.cjs SCENARIO
//
// What to talk to comes from the environment: YARD_STORAGE (a connection string), YARD_FOLDER (for
// files) and YARD_TOKEN; whom to trust from node's own NODE_EXTRA_CA_CERTS.  Exits with 0 when every
// assertion held.
"use strict";

const assert = require("node:assert/strict");
const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const { Readable } = require("node:stream");
const {
  BlobBatchClient, BlobClient, BlobServiceClient, ContainerClient, ContainerSASPermissions,
  AccountSASPermissions, BlobSASPermissions, SASProtocol, StorageSharedKeyCredential,
  generateBlobSASQueryParameters,
} = require("@azure/storage-blob");

const { YARD_STORAGE, YARD_FOLDER, YARD_TOKEN } = process.env;
const options = { retryOptions: { maxTries: 1 } };
const service = BlobServiceClient.fromConnectionString(YARD_STORAGE, options);
const isSecure = service.url.startsWith("https:");
const inAnHour = () => new Date(Date.now() + 3600 * 1000);

async function newContainer() {
  const made = service.getContainerClient("js" + crypto.randomBytes(8).toString("hex"));
  await made.create({ metadata: { by: "js" } });
  return made;
}

async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    // An answer to HEAD has no body to take the code from.
    return [error.statusCode, error.code ?? error.details?.errorCode];
  }
  assert.fail("the call should have been refused");
}

async function collect(pages, pick) {
  const all = [];
  for await (const item of pages) all.push(pick(item));
  return all;
}

async function containers() {
  const con = await newContainer();
  assert.equal((await con.createIfNotExists()).succeeded, false);
  assert.deepEqual(await refusal(con.create()), [409, "ContainerAlreadyExists"]);
  const properties = await con.getProperties();
  assert.deepEqual(properties.metadata, { by: "js" });
  assert.match(properties.etag, /^"0x[0-9A-F]{15,}"$/);
  await con.setMetadata({ a: "1", a_b: "2", ab: "3" });
  assert.deepEqual((await con.getProperties()).metadata, { a: "1", a_b: "2", ab: "3" });
  const listed = service.listContainers({ prefix: con.containerName, includeMetadata: true });
  assert.deepEqual(await collect(listed, (c) => [c.name, c.metadata.a]), [[con.containerName, "1"]]);
  const info = await service.getAccountInfo();
  assert.equal(info.accountKind, "StorageV2");
  const kept = await service.getProperties();
  await service.setProperties({ ...kept, cors: [] });
  await con.delete();
  assert.equal(await con.exists(), false);
}

async function files() {
  const con = await newContainer();
  const up = path.join(YARD_FOLDER, "up.bin");
  const down = path.join(YARD_FOLDER, "down.bin");
  const data = crypto.randomBytes(9 * 1024 * 1024 + 7);
  fs.writeFileSync(up, data);
  const blob = con.getBlockBlobClient("dir/ü %+?#.bin");
  const steps = [];
  await blob.uploadFile(up, {
    blockSize: 1024 * 1024, maxSingleShotSize: 1024, concurrency: 4,
    onProgress: (p) => steps.push(p.loadedBytes), blobHTTPHeaders: { blobContentType: "image/x" },
    metadata: { k: "v" }, tags: { t: "1" },
  });
  assert.equal(steps.at(-1), data.length);
  await blob.downloadToFile(down);
  assert.ok(fs.readFileSync(down).equals(data));
  assert.ok((await blob.downloadToBuffer(0, undefined, { blockSize: 1 << 20, concurrency: 5 })).equals(data));
  assert.ok((await blob.downloadToBuffer(1000, 5000)).equals(data.subarray(1000, 6000)));
  const properties = await blob.getProperties();
  assert.equal(properties.contentType, "image/x");
  assert.deepEqual(properties.metadata, { k: "v" });
  assert.deepEqual((await blob.getTags()).tags, { t: "1" });

  await blob.uploadStream(Readable.from([data.subarray(0, 100), data.subarray(100)]), 1 << 20, 3);
  const got = await blob.download(10, 20, { rangeGetContentMD5: true });
  const part = Buffer.concat(await got.readableStreamBody.toArray());
  assert.ok(part.equals(data.subarray(10, 30)));
  assert.equal(Buffer.from(got.contentMD5).toString("hex"), crypto.createHash("md5").update(part).digest("hex"));

  const whole = con.getBlockBlobClient("whole");
  await whole.uploadData(data); // one request
  assert.ok((await whole.downloadToBuffer()).equals(data));
  assert.deepEqual((await whole.getBlockList("committed")).committedBlocks ?? [], []);
  await whole.upload("", 0);
  assert.equal((await whole.download()).contentLength, 0);
}

async function lists() {
  const con = await newContainer();
  const names = ["a b", "dir/1", "dir/2", "dir/sub/3", "e//f", "per%cent", "plus+", "q?x", "ü/漢", "🚂"];
  const inOrder = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  for (const name of names) {
    await con.getBlockBlobClient(name).upload("x", 1, { metadata: { n: encodeURIComponent(name) }, tags: { t: "1" } });
  }
  assert.deepEqual(await collect(con.listBlobsFlat(), (b) => b.name), inOrder);
  const pages = [];
  for await (const page of con.listBlobsFlat({ includeMetadata: true, includeTags: true }).byPage({ maxPageSize: 3 })) {
    pages.push(page.segment.blobItems.map((b) => b.name));
    for (const b of page.segment.blobItems) {
      assert.equal(b.metadata.n, encodeURIComponent(b.name));
      assert.deepEqual(b.tags, { t: "1" });
      assert.equal(b.properties.contentLength, 1);
    }
  }
  assert.deepEqual(pages.map((p) => p.length), [3, 3, 3, 1]);
  assert.deepEqual(pages.flat(), inOrder);
  // A page can be fetched by whoever has the token of the page before.
  const first = (await con.listBlobsFlat().byPage({ maxPageSize: 4 }).next()).value;
  const rest = con.listBlobsFlat().byPage({ continuationToken: first.continuationToken });
  assert.deepEqual((await rest.next()).value.segment.blobItems.map((b) => b.name), inOrder.slice(4));

  const seen = await collect(con.listBlobsByHierarchy("/"), (i) => `${i.kind} ${i.name}`);
  assert.deepEqual(new Set(seen), new Set([
    "blob a b", "prefix dir/", "prefix e/", "blob per%cent", "blob plus+", "blob q?x", "prefix ü/", "blob 🚂",
  ]));
  const sizes = [];
  for await (const page of con.listBlobsByHierarchy("/", { prefix: "dir/" }).byPage({ maxPageSize: 2 })) {
    sizes.push((page.segment.blobPrefixes || []).length + page.segment.blobItems.length);
  }
  assert.deepEqual(sizes, [2, 1]);
}

async function batches() {
  const con = await newContainer();
  const blobs = ["a", "b ü", "c%"].map((name) => con.getBlockBlobClient(name));
  for (const blob of blobs) await blob.upload("x", 1);
  const batch = service.getBlobBatchClient();
  const tiered = await batch.setBlobsAccessTier(blobs, "Cool");
  assert.equal(tiered.subResponsesSucceededCount, 3);
  const gone = await batch.deleteBlobs([...blobs, con.getBlockBlobClient("missing")]);
  assert.equal(gone.subResponsesSucceededCount, 3);
  assert.deepEqual(gone.subResponses.map((r) => r.status), [202, 202, 202, 404]);
  assert.equal(gone.subResponses[3].errorCode, "BlobNotFound");
  // The same by a container's own batch client, and with a signature in place of the key.
  await blobs[0].upload("x", 1);
  const scoped = con.getBlobBatchClient();
  assert.equal((await scoped.deleteBlobs([blobs[0]])).subResponsesSucceededCount, 1);
  assert.ok(scoped instanceof BlobBatchClient);
}

async function copies() {
  const con = await newContainer();
  const source = con.getBlockBlobClient("source");
  await source.upload("content", 7, { metadata: { m: "1" } });
  const sas = await source.generateSasUrl({
    permissions: BlobSASPermissions.parse("r"), expiresOn: inAnHour(),
  });
  const sync = con.getBlockBlobClient("sync");
  assert.equal((await sync.syncCopyFromURL(sas)).copyStatus, "success");
  assert.equal((await sync.downloadToBuffer()).toString(), "content");
  const poller = await con.getBlobClient("async").beginCopyFromURL(source.url, { intervalInMs: 1 });
  assert.equal((await poller.pollUntilDone()).copyStatus, "success");
  const taken = con.getBlockBlobClient("taken");
  await taken.syncUploadFromURL(sas);
  assert.equal((await taken.downloadToBuffer()).toString(), "content");
  await taken.stageBlockFromURL(btoa("0001"), sas, 1, 3);
  await taken.commitBlockList([btoa("0001")]);
  assert.equal((await taken.downloadToBuffer()).toString(), "ont");
  const [status] = await refusal(sync.syncCopyFromURL("http://169.254.169.254/latest/meta-data"));
  assert.ok([400, 403, 404].includes(status));
}

async function kinds() {
  const con = await newContainer();
  const log = con.getAppendBlobClient("log");
  await log.createIfNotExists();
  await log.appendBlock("one\n", 4);
  await log.appendBlock("two\n", 4, { conditions: { appendPosition: 4 } });
  assert.deepEqual(await refusal(log.appendBlock("x", 1, { conditions: { appendPosition: 4 } })),
    [412, "AppendPositionConditionNotMet"]);
  assert.equal((await log.downloadToBuffer()).toString(), "one\ntwo\n");
  const disk = con.getPageBlobClient("disk");
  await disk.create(2048);
  await disk.uploadPages(Buffer.alloc(512, "A"), 512, 512);
  assert.deepEqual((await disk.getPageRanges(0, 2048)).pageRange, [{ offset: 512, count: 511 }]);
  await disk.clearPages(512, 512);
  assert.ok((await disk.downloadToBuffer()).equals(Buffer.alloc(2048)));

  const blob = con.getBlockBlobClient("b");
  await blob.upload("1", 1);
  const { snapshot } = await blob.createSnapshot();
  await blob.upload("2", 1);
  assert.equal((await blob.withSnapshot(snapshot).downloadToBuffer()).toString(), "1");
  assert.deepEqual(await refusal(blob.delete()), [409, "SnapshotsPresent"]);
  await blob.setAccessTier("Cool");
  assert.equal((await blob.getProperties()).accessTier, "Cool");
  await blob.setHTTPHeaders({ blobContentType: "text/x", blobCacheControl: "no-store" });
  assert.equal((await blob.getProperties()).cacheControl, "no-store");
  await blob.delete({ deleteSnapshots: "include" });
}

async function leases() {
  const con = await newContainer();
  const blob = con.getBlockBlobClient("b");
  const { etag } = await blob.upload("1", 1);
  const lease = blob.getBlobLeaseClient();
  await lease.acquireLease(15);
  assert.deepEqual(await refusal(blob.upload("2", 1)), [412, "LeaseIdMissing"]);
  assert.deepEqual(await refusal(con.getBlockBlobClient("b").getBlobLeaseClient().acquireLease(15)),
    [409, "LeaseAlreadyPresent"]);
  await lease.renewLease();
  await blob.upload("2", 1, { conditions: { leaseId: lease.leaseId } });
  await lease.changeLease(crypto.randomUUID());
  await lease.releaseLease();
  assert.deepEqual(await refusal(blob.delete({ conditions: { ifMatch: etag } })), [412, "ConditionNotMet"]);
  assert.deepEqual(await refusal(blob.upload("3", 1, { conditions: { ifNoneMatch: "*" } })),
    [409, "BlobAlreadyExists"]);
  const own = con.getBlobLeaseClient();
  await own.acquireLease(-1);
  assert.deepEqual(await refusal(con.delete()), [412, "LeaseIdMissing"]);
  await own.breakLease(0);
  await con.delete();
}

async function signatures() {
  const con = await newContainer();
  const name = "dir/ü b";
  await con.getBlockBlobClient(name).upload("1", 1);
  const url = await con.generateSasUrl({
    permissions: ContainerSASPermissions.parse("rl"), expiresOn: inAnHour(),
  });
  const there = new ContainerClient(url, undefined, options);
  assert.deepEqual(await collect(there.listBlobsFlat(), (b) => b.name), [name]);
  assert.deepEqual(await refusal(there.getBlockBlobClient("x").upload("1", 1)),
    [403, "AuthorizationPermissionMismatch"]);
  const late = await con.generateSasUrl({
    permissions: ContainerSASPermissions.parse("rl"), expiresOn: new Date(Date.now() - 1000),
  });
  assert.deepEqual(await refusal(new ContainerClient(late, undefined, options).getProperties()),
    [403, "AuthenticationFailed"]);
  const all = service.generateAccountSasUrl(inAnHour(), AccountSASPermissions.parse("rl"), "sco");
  const reader = new BlobServiceClient(all, undefined, options);
  assert.ok((await collect(reader.listContainers(), (c) => c.name)).includes(con.containerName));
  const strict = await con.getBlobClient(name).generateSasUrl({
    permissions: BlobSASPermissions.parse("r"), expiresOn: inAnHour(), protocol: SASProtocol.Https, contentType: "text/x",
  });
  const blob = new BlobClient(strict, undefined, options);
  if (isSecure) assert.equal((await blob.download()).contentType, "text/x");
  else assert.deepEqual(await refusal(blob.download()), [403, "AuthorizationProtocolMismatch"]);

  await con.setAccessPolicy(undefined, [{ id: "readers", accessPolicy: { permissions: "r", expiresOn: inAnHour() } }]);
  assert.equal((await con.getAccessPolicy()).signedIdentifiers[0].id, "readers");
  const named = new BlobClient(await con.getBlobClient(name).generateSasUrl({ identifier: "readers" }), undefined, options);
  assert.equal((await named.downloadToBuffer()).toString(), "1");
  await con.setAccessPolicy();
  assert.deepEqual(await refusal(named.download()), [403, "AuthenticationFailed"]);

  const wrong = new StorageSharedKeyCredential(service.accountName, Buffer.alloc(64).toString("base64"));
  const stranger = new BlobServiceClient(service.url, wrong, options);
  assert.deepEqual(await refusal(stranger.getProperties()), [403, "AuthenticationFailed"]);
}

// The SDK sends tokens over TLS only.
async function tokens() {
  const credential = { getToken: async () => ({ token: YARD_TOKEN, expiresOnTimestamp: Date.now() + 1e6 }) };
  const ours = new BlobServiceClient(service.url, credential, options);
  const con = await newContainer();
  await con.getBlockBlobClient("b").upload("1", 1);
  assert.equal((await ours.getContainerClient(con.containerName).getBlobClient("b").downloadToBuffer()).toString(),
    "1");
  const key = await ours.getUserDelegationKey(new Date(Date.now() - 1000), inAnHour());
  const sas = generateBlobSASQueryParameters({
    containerName: con.containerName, blobName: "b", permissions: BlobSASPermissions.parse("r"), expiresOn: inAnHour(),
  }, key, service.accountName);
  const blob = new BlobClient(`${con.getBlobClient("b").url}?${sas}`, undefined, options);
  assert.equal((await blob.downloadToBuffer()).toString(), "1");
  assert.deepEqual(await refusal(blob.delete()), [403, "AuthorizationPermissionMismatch"]);
}

const scenarios = { containers, files, lists, batches, copies, kinds, leases, signatures, tokens };

scenarios[process.argv[2]]().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
