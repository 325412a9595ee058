// SPDX-License-Identifier: Apache-2.0
// Drives a yard with @azure/storage-file-share as npm has it.  Usage: node storage_share.cjs SCENARIO
//
// The environment is as in storage_blob.cjs.
"use strict";

const assert = require("node:assert/strict");
const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const { Readable } = require("node:stream");
const {
  FileSASPermissions, ShareClient, ShareFileClient, ShareSASPermissions, ShareServiceClient,
  StorageSharedKeyCredential,
} = require("@azure/storage-file-share");

const { YARD_STORAGE, YARD_FOLDER } = process.env;
const options = { retryOptions: { maxTries: 1 } };
const service = ShareServiceClient.fromConnectionString(YARD_STORAGE, options);
const inAnHour = () => new Date(Date.now() + 3600 * 1000);

async function newShare() {
  const made = service.getShareClient("js" + crypto.randomBytes(8).toString("hex"));
  await made.create({ metadata: { by: "js" }, quota: 5 });
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

async function shares() {
  const share = await newShare();
  assert.deepEqual(await refusal(share.create()), [409, "ShareAlreadyExists"]);
  assert.equal((await share.createIfNotExists()).succeeded, false);
  let properties = await share.getProperties();
  assert.deepEqual([properties.quota, properties.metadata], [5, { by: "js" }]);
  await share.setQuota(6);
  await share.setMetadata({ a: "1" });
  properties = await share.getProperties();
  assert.deepEqual([properties.quota, properties.metadata], [6, { a: "1" }]);
  const listed = service.listShares({ prefix: share.name, includeMetadata: true });
  assert.deepEqual(await collect(listed, (s) => [s.name, s.metadata.a]), [[share.name, "1"]]);
  assert.ok((await share.getStatistics()).shareUsageBytes >= 0);
  const kept = await service.getProperties();
  await service.setProperties({ ...kept, cors: [] });
  await share.delete();
  assert.equal(await share.exists(), false);
}

async function directories() {
  const share = await newShare();
  const top = share.getDirectoryClient("top");
  await top.create({ metadata: { a: "1" } });
  assert.deepEqual(await refusal(top.create()), [409, "ResourceAlreadyExists"]);
  const sub = top.getDirectoryClient("sub ü %");
  await sub.create();
  assert.deepEqual((await top.getProperties()).metadata, { a: "1" });
  await top.setMetadata({ b: "2" });
  assert.deepEqual((await top.getProperties()).metadata, { b: "2" });
  assert.deepEqual(await refusal(top.delete()), [409, "DirectoryNotEmpty"]);
  assert.deepEqual(await refusal(share.getDirectoryClient("no/parent").create()), [404, "ParentNotFound"]);
  await sub.getFileClient("f").uploadData(Buffer.from("1"));
  // The client that rename() gives back has lost the account from its address: one more is made.
  await sub.rename("top/moved");
  const moved = share.getDirectoryClient("top/moved");
  assert.equal((await moved.getFileClient("f").downloadToBuffer()).toString(), "1");
  assert.equal(await sub.exists(), false);
  await moved.deleteFile("f");
  await moved.delete();
  await top.delete();
}

async function files() {
  const share = await newShare();
  const root = share.rootDirectoryClient;
  const up = path.join(YARD_FOLDER, "up.bin");
  const down = path.join(YARD_FOLDER, "down.bin");
  const data = crypto.randomBytes(9 * 1024 * 1024 + 7);
  fs.writeFileSync(up, data);
  const file = root.getFileClient("ü %+#;=& b.bin");
  await file.uploadFile(up, {
    concurrency: 3, metadata: { k: "v" }, fileHttpHeaders: { fileContentType: "image/x" },
  });
  await file.downloadToFile(down);
  assert.ok(fs.readFileSync(down).equals(data));
  assert.ok((await file.downloadToBuffer(1000, 5000)).equals(data.subarray(1000, 6000)));
  let properties = await file.getProperties();
  assert.equal(properties.contentType, "image/x");
  assert.deepEqual(properties.metadata, { k: "v" });
  assert.equal(properties.contentLength, data.length);
  assert.ok(properties.fileLastWriteOn instanceof Date && properties.fileId && properties.fileAttributes);

  const streamed = root.getFileClient("streamed");
  await streamed.uploadStream(Readable.from([data]), data.length, 1 << 20, 2);
  assert.ok((await streamed.downloadToBuffer()).equals(data));
  await streamed.uploadData(Buffer.alloc(0));
  assert.equal((await streamed.getProperties()).contentLength, 0);
  await streamed.setMetadata({ n: "1" });
  await streamed.setHttpHeaders({ fileContentType: "text/x" });
  properties = await streamed.getProperties();
  assert.deepEqual([properties.metadata, properties.contentType], [{ n: "1" }, "text/x"]);
  await streamed.delete();
  assert.deepEqual(await refusal(streamed.getProperties()), [404, "ResourceNotFound"]);
  assert.deepEqual(await refusal(share.getDirectoryClient("missing").getFileClient("f").create(1)),
    [404, "ParentNotFound"]);
}

async function ranges() {
  const share = await newShare();
  const file = share.rootDirectoryClient.getFileClient("sparse");
  await file.create(1 << 20);
  await file.uploadRange(Buffer.alloc(4096, "A"), 4096, 4096);
  await file.uploadRange("BB", 65536, 2);
  const wanted = Buffer.alloc(1 << 20);
  wanted.fill("A", 4096, 8192).fill("B", 65536, 65538);
  assert.ok((await file.downloadToBuffer()).equals(wanted));
  const { rangeList } = await file.getRangeList();
  assert.equal(rangeList[0].start, 4096);
  await file.clearRange(4096, 4096);
  wanted.fill(0, 4096, 8192);
  assert.ok((await file.downloadToBuffer()).equals(wanted));
  await file.resize(65538);
  assert.ok((await file.downloadToBuffer()).equals(wanted.subarray(0, 65538)));
  const source = share.rootDirectoryClient.getFileClient("source");
  await source.uploadData(Buffer.from("0123456789"));
  const sas = await source.generateSasUrl({
    permissions: FileSASPermissions.parse("r"), expiresOn: inAnHour(),
  });
  await file.uploadRangeFromURL(sas, 2, 0, 4);
  assert.equal((await file.downloadToBuffer(0, 4)).toString(), "2345");
  const copy = share.rootDirectoryClient.getFileClient("copy");
  assert.equal((await copy.startCopyFromURL(source.url)).copyStatus, "success");
  assert.equal((await copy.downloadToBuffer()).toString(), "0123456789");
  await copy.rename("renamed ü");
  const renamed = share.rootDirectoryClient.getFileClient("renamed ü");
  assert.equal((await renamed.downloadToBuffer()).toString(), "0123456789");
}

async function lists() {
  const share = await newShare();
  const root = share.rootDirectoryClient;
  const names = ["a.txt", "b ü", "c%", "d+", "e;f", "漢字", "it's", "#1", "&x"];
  await root.createSubdirectory("folder");
  for (const name of names) await root.getFileClient(name).uploadData(Buffer.from("xy"));
  const seen = await collect(root.listFilesAndDirectories(), (i) => `${i.kind} ${i.name}`);
  assert.deepEqual(new Set(seen), new Set(["directory folder", ...names.map((n) => `file ${n}`)]));
  let count = 0;
  for await (const page of root.listFilesAndDirectories({
    includeTimestamps: true, includeEtag: true, includeAttributes: true, includePermissionKey: true,
    includeExtendedInfo: true,
  }).byPage({ maxPageSize: 4 })) {
    const { fileItems, directoryItems } = page.segment;
    assert.ok(fileItems.length + directoryItems.length <= 4);
    count += fileItems.length + directoryItems.length;
    for (const item of fileItems) {
      assert.equal(item.properties.contentLength, 2);
      assert.ok(item.properties.etag && item.properties.lastWriteTime && item.fileId);
    }
  }
  assert.equal(count, names.length + 1);
  const few = root.listFilesAndDirectories({ prefix: "b" });
  assert.deepEqual(await collect(few, (i) => i.name), ["b ü"]);
}

async function handles() {
  const share = await newShare();
  const root = share.rootDirectoryClient;
  const { fileClient: file } = await root.createFile("f", 10);
  assert.deepEqual(await collect(root.listHandles({ recursive: true }), (h) => h), []);
  assert.deepEqual(await collect(file.listHandles(), (h) => h), []);
  assert.equal((await root.forceCloseAllHandles()).closedHandlesCount, 0);
  const { filePermissionKey } = await share.createPermission("O:BAG:BAD:(A;;FA;;;SY)");
  assert.equal((await share.getPermission(filePermissionKey)).permission, "O:BAG:BAD:(A;;FA;;;SY)");
  await file.setProperties({
    filePermissionKey, fileAttributes: undefined, creationTime: new Date("2020-01-02"),
  });
  assert.equal((await file.getProperties()).fileCreatedOn.toISOString().slice(0, 10), "2020-01-02");
  const lease = file.getShareLeaseClient();
  await lease.acquireLease(-1);
  assert.equal((await refusal(file.delete()))[0], 412);
  await lease.releaseLease();
  await file.delete();
}

async function signatures() {
  const share = await newShare();
  await share.rootDirectoryClient.getFileClient("f ü").uploadData(Buffer.from("1"));
  const url = await share.generateSasUrl({
    permissions: ShareSASPermissions.parse("rl"), expiresOn: inAnHour(),
  });
  const there = new ShareClient(url, undefined, options);
  assert.deepEqual(await collect(there.rootDirectoryClient.listFilesAndDirectories(), (i) => i.name),
    ["f ü"]);
  assert.deepEqual(await refusal(there.rootDirectoryClient.createFile("x", 1)),
    [403, "AuthorizationPermissionMismatch"]);
  const one = await share.rootDirectoryClient.getFileClient("f ü").generateSasUrl({
    permissions: FileSASPermissions.parse("r"), expiresOn: inAnHour() });
  const file = new ShareFileClient(one, undefined, options);
  assert.equal((await file.downloadToBuffer()).toString(), "1");
  assert.deepEqual(await refusal(file.delete()), [403, "AuthorizationPermissionMismatch"]);
  await share.setAccessPolicy([{ id: "readers", accessPolicy: { permissions: "r", expiresOn: inAnHour() } }]);
  const named = new ShareFileClient(await share.rootDirectoryClient.getFileClient("f ü").generateSasUrl({
    identifier: "readers" }), undefined, options);
  assert.equal((await named.downloadToBuffer()).toString(), "1");
  await share.setAccessPolicy();
  assert.deepEqual(await refusal(named.download()), [403, "AuthenticationFailed"]);
  const wrong = new StorageSharedKeyCredential(service.accountName, Buffer.alloc(64).toString("base64"));
  assert.deepEqual(await refusal(new ShareServiceClient(service.url, wrong, options).getProperties()),
    [403, "AuthenticationFailed"]);
}

const scenarios = { shares, directories, files, ranges, lists, handles, signatures };

scenarios[process.argv[2]]().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
