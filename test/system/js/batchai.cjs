// SPDX-License-Identifier: Apache-2.0
// Drives a yard with @azure/arm-batchai as npm has it.  Usage: node batchai.cjs SCENARIO
//
// What to talk to comes from the environment: YARD_URL, YARD_TOKEN, YARD_SUBSCRIPTION,
// YARD_GROUP; whom to trust from node's own NODE_EXTRA_CA_CERTS.  Exits with 0 when every
// assertion held, and prints what was seen as one JSON object.
"use strict";

const assert = require("node:assert/strict");
const { BatchAIManagementClient } = require("@azure/arm-batchai");

const { YARD_URL, YARD_TOKEN, YARD_SUBSCRIPTION, YARD_GROUP } = process.env;

const credential = {
  async getToken() {
    return { token: YARD_TOKEN, expiresOnTimestamp: Date.now() + 3600 * 1000 };
  },
};

function connect(token = credential) {
  return new BatchAIManagementClient(token, YARD_SUBSCRIPTION, {
    baseUri: YARD_URL,
    // The client waits that long before every poll, the first included; 30 s is its default.
    longRunningOperationRetryTimeout: 0,
    noRetryPolicy: true,
  });
}

async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    return { status: error.statusCode, code: error.code, message: error.message };
  }
  assert.fail("the call should have been refused");
}

const plain = (resource) => JSON.parse(JSON.stringify(resource));
const names = (list) => list.map((item) => item.name);

async function workspaces({ workspaces: all }) {
  const made = await all.create(YARD_GROUP, "js", { location: "eastus", tags: { a: "1" } });
  assert.equal(made.name, "js");
  assert.equal(made.type, "Microsoft.BatchAI/workspaces");
  assert.equal(made.location, "eastus");
  assert.equal(made.provisioningState, "succeeded");
  assert.deepEqual(made.tags, { a: "1" });
  assert.ok(made.creationTime instanceof Date && !isNaN(made.creationTime));
  assert.deepEqual(plain(await all.get(YARD_GROUP, "js")), plain(made));
  assert.ok((await all.list()).some((one) => one.id === made.id));
  assert.deepEqual(names(await all.listByResourceGroup(YARD_GROUP)), ["js"]);

  const changed = await all.update(YARD_GROUP, "js", { tags: { b: "2" } });
  assert.deepEqual(changed.tags, { b: "2" });
  assert.deepEqual((await all.get(YARD_GROUP, "js")).tags, { b: "2" });

  await all.deleteMethod(YARD_GROUP, "js");
  const gone = await refusal(all.get(YARD_GROUP, "js"));
  assert.deepEqual(names(await all.listByResourceGroup(YARD_GROUP)), []);
  return { made: plain(made), gone };
}

async function experiments({ workspaces: parents, experiments: all }) {
  await parents.create(YARD_GROUP, "parent", { location: "eastus" });
  const made = await all.create(YARD_GROUP, "parent", "e");
  assert.equal(made.name, "e");
  assert.equal(made.type, "Microsoft.BatchAI/workspaces/experiments");
  assert.equal(made.provisioningState, "succeeded");
  assert.deepEqual(plain(await all.get(YARD_GROUP, "parent", "e")), plain(made));
  assert.deepEqual(names(await all.listByWorkspace(YARD_GROUP, "parent")), ["e"]);

  await all.deleteMethod(YARD_GROUP, "parent", "e");
  const gone = await refusal(all.get(YARD_GROUP, "parent", "e"));
  assert.deepEqual(names(await all.listByWorkspace(YARD_GROUP, "parent")), []);

  // With its workspace an experiment goes too.
  await all.create(YARD_GROUP, "parent", "inside");
  await parents.deleteMethod(YARD_GROUP, "parent");
  const orphan = await refusal(all.get(YARD_GROUP, "parent", "inside"));
  return { made: plain(made), gone, orphan };
}

async function polling({ workspaces: all }) {
  await all.create(YARD_GROUP, "polled", { location: "eastus" });
  const poller = await all.beginDeleteMethod(YARD_GROUP, "polled");
  const first = poller.getInitialResponse();
  assert.equal(first.status, 202);
  await poller.pollUntilFinished();
  assert.ok(poller.isFinished());
  // The state of a poll can be taken elsewhere and continued.
  await all.create(YARD_GROUP, "polled", { location: "eastus" });
  const second = await all.beginDeleteMethod(YARD_GROUP, "polled");
  const moved = connect().restoreLROPoller(second.getPollState());
  await moved.pollUntilFinished();
  return {
    asyncOperation: first.headers.get("azure-asyncoperation"),
    location: first.headers.get("location"),
    retryAfter: first.headers.get("retry-after"),
  };
}

async function pages({ workspaces: all }) {
  const wanted = ["p0", "p1", "p2", "p3", "p4"];
  for (const name of wanted) await all.create(YARD_GROUP, name, { location: "eastus" });
  const options = { workspacesListByResourceGroupOptions: { maxResults: 2 } };
  const sizes = [];
  const seen = [];
  for (let page = await all.listByResourceGroup(YARD_GROUP, options); ; ) {
    sizes.push(page.length);
    seen.push(...names(page));
    if (!page.nextLink) break;
    page = await all.listByResourceGroupNext(page.nextLink);
  }
  assert.deepEqual(seen, wanted);
  for (const name of wanted) await all.deleteMethod(YARD_GROUP, name);
  return { sizes };
}

async function refusals({ workspaces: all, experiments }) {
  const stranger = connect({ getToken: async () => ({ token: "wrong", expiresOnTimestamp: Date.now() + 1e6 }) });
  await all.create(YARD_GROUP, "stays", { location: "eastus" });
  const seen = {
    noGroup: await refusal(all.create("no-such-group", "w", { location: "eastus" })),
    noWorkspace: await refusal(experiments.create(YARD_GROUP, "nothing", "e")),
    moved: await refusal(all.create(YARD_GROUP, "stays", { location: "westus" })),
    badToken: await refusal(stranger.workspaces.list()),
  };
  await all.deleteMethod(YARD_GROUP, "stays");
  return seen;
}

const user = { adminUserName: "u", adminUserPassword: "p" };

async function until(question) {
  for (let end = Date.now() + 50000; Date.now() < end; ) {
    const answer = await question();
    if (answer) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`${question} never came true`);
}

// The main life: a cluster grows, a job runs on it, its files are read, everything goes again.
async function life({ workspaces: parents, experiments, clusters, jobs }) {
  const { YARD_ACCOUNT: accountName, YARD_KEY: accountKey } = process.env;
  await parents.create(YARD_GROUP, "life", { location: "eastus" });
  await experiments.create(YARD_GROUP, "life", "e");
  const cluster = await clusters.create(YARD_GROUP, "life", "c", {
    vmSize: "STANDARD_D1",
    scaleSettings: { manual: { targetNodeCount: 1 } },
    userAccountSettings: user,
    nodeSetup: {
      mountVolumes: {
        azureFileShares: [
          {
            accountName,
            azureFileUrl: `https://${accountName}.file.core.windows.net/share`,
            credentials: { accountKey },
            relativeMountPath: "afs",
          },
        ],
      },
    },
  });
  assert.equal(cluster.type, "Microsoft.BatchAI/workspaces/clusters");
  assert.equal(cluster.provisioningState, "succeeded");
  assert.equal(cluster.userAccountSettings.adminUserPassword, undefined);
  const grown = await until(async () => {
    const now = await clusters.get(YARD_GROUP, "life", "c");
    return now.nodeStateCounts.idleNodeCount === 1 && now;
  });
  assert.equal(grown.currentNodeCount, 1);
  assert.deepEqual(names(await clusters.listByWorkspace(YARD_GROUP, "life")), ["c"]);
  await clusters.listRemoteLoginInformation(YARD_GROUP, "life", "c");

  const parameters = {
    cluster: { id: cluster.id },
    nodeCount: 1,
    stdOutErrPathPrefix: "$AZ_BATCHAI_MOUNT_ROOT/afs",
    customToolkitSettings: { commandLine: "echo from javascript; exit 3" },
    secrets: [{ name: "S", value: "hidden" }],
  };
  const submitted = await jobs.create(YARD_GROUP, "life", "e", "j", parameters);
  assert.equal(submitted.toolType, "custom");
  assert.equal(submitted.secrets[0].value, undefined);
  const ended = await until(async () => {
    const now = await jobs.get(YARD_GROUP, "life", "e", "j");
    return ["succeeded", "failed"].includes(now.executionState) && now;
  });
  assert.equal(ended.executionState, "failed");
  assert.equal(ended.executionInfo.exitCode, 3);
  assert.equal(ended.executionInfo.errors[0].code, "JobFailed");
  const files = [];
  const options = { outputdirectoryid: "stdouterr", maxResults: 1 };
  let page = await jobs.listOutputFiles(YARD_GROUP, "life", "e", "j", options);
  for (;;) {
    files.push(...page);
    if (!page.nextLink) break;
    page = await jobs.listOutputFilesNext(page.nextLink);
  }
  await jobs.create(YARD_GROUP, "life", "e", "long", {
    ...parameters,
    customToolkitSettings: { commandLine: "sleep 600" },
  });
  await until(async () => (await jobs.get(YARD_GROUP, "life", "e", "long")).executionState === "running");
  await jobs.terminate(YARD_GROUP, "life", "e", "long");
  const stopped = await jobs.get(YARD_GROUP, "life", "e", "long");
  assert.equal(stopped.executionInfo.errors[0].code, "JobTerminated");
  assert.deepEqual(names(await jobs.listByExperiment(YARD_GROUP, "life", "e")), ["j", "long"]);
  await jobs.deleteMethod(YARD_GROUP, "life", "e", "j");
  const gone = await refusal(jobs.get(YARD_GROUP, "life", "e", "j"));

  const resized = await clusters.update(YARD_GROUP, "life", "c", {
    scaleSettings: { autoScale: { minimumNodeCount: 0, maximumNodeCount: 2 } },
  });
  assert.equal(resized.scaleSettings.manual, undefined);
  assert.equal(resized.scaleSettings.autoScale.maximumNodeCount, 2);
  await clusters.deleteMethod(YARD_GROUP, "life", "c");
  const noCluster = await refusal(clusters.get(YARD_GROUP, "life", "c"));
  await parents.deleteMethod(YARD_GROUP, "life");
  return { gone, noCluster, files: names(files), link: files.find((f) => f.name === "stdout.txt").downloadUrl };
}

async function fileServers({ workspaces: parents, fileServers: all }) {
  await parents.create(YARD_GROUP, "files", { location: "eastus" });
  const made = await all.create(YARD_GROUP, "files", "nfs", {
    vmSize: "STANDARD_D1",
    sshConfiguration: { userAccountSettings: user },
    dataDisks: { diskSizeInGB: 10, diskCount: 2, storageAccountType: "Standard_LRS" },
  });
  assert.equal(made.type, "Microsoft.BatchAI/workspaces/fileservers");
  assert.equal(made.mountSettings.mountPoint, "/data");
  assert.deepEqual(plain(await all.get(YARD_GROUP, "files", "nfs")), plain(made));
  assert.deepEqual(names(await all.listByWorkspace(YARD_GROUP, "files")), ["nfs"]);
  await all.deleteMethod(YARD_GROUP, "files", "nfs");
  const gone = await refusal(all.get(YARD_GROUP, "files", "nfs"));
  await parents.deleteMethod(YARD_GROUP, "files");
  return { made: plain(made), gone };
}

const scenarios = { workspaces, experiments, polling, pages, refusals, life, fileServers };

scenarios[process.argv[2]](connect()).then(
  (seen) => console.log(JSON.stringify(seen)),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
