/* How clusters, jobs and file servers are printed: as az prints the models of the SDK.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-verb.h"

#define TIMES                                                                                  \
    "creationTime provisioningStateTransitionTime allocationStateTransitionTime "              \
    "executionStateTransitionTime startTime endTime lastModified"

/* Members of what may be mounted, on clusters and on jobs. */
#define VOLUME_PARTS                                                                           \
    {.at = "mountVolumes",                                                                     \
     .members = "azureBlobFileSystems azureFileShares fileServers unmanagedFileSystems"},      \
        {.at = "azureFileShares",                                                              \
         .members = "accountName azureFileUrl credentials directoryMode fileMode "             \
                    "relativeMountPath"},                                                      \
        {.at = "azureBlobFileSystems",                                                         \
         .members = "accountName containerName credentials mountOptions relativeMountPath"},   \
        {.at = "fileServers",                                                                  \
         .members = "fileServer mountOptions relativeMountPath sourceDirectory"},              \
        {.at = "unmanagedFileSystems", .members = "mountCommand relativeMountPath"},           \
        {.at = "azureFileShares/credentials",                                                  \
         .members = "accountKey accountKeySecretReference"},                                   \
    {                                                                                          \
        .at = "azureBlobFileSystems/credentials",                                              \
        .members = "accountKey accountKeySecretReference"                                      \
    }

#define COMMON_PARTS                                                                           \
    {.at = "environmentVariables", .members = "name value"},                                   \
        {.at = "secrets", .members = "name value valueSecretReference"},                       \
        {.at = "errors", .members = "code details message"},                                   \
    {                                                                                          \
        .at = "userAccountSettings",                                                           \
        .members = "adminUserName adminUserPassword adminUserSshPublicKey"                     \
    }

static const struct shape_part cluster_parts[] = {
    {.at = "scaleSettings", .members = "autoScale manual"},
    {.at = "scaleSettings/autoScale",
     .members = "initialNodeCount maximumNodeCount minimumNodeCount"},
    {.at = "scaleSettings/manual", .members = "nodeDeallocationOption targetNodeCount"},
    {.at = "virtualMachineConfiguration", .members = "imageReference"},
    {.at = "imageReference", .members = "offer publisher sku version virtualMachineImageId"},
    {.at = "nodeSetup", .members = "mountVolumes performanceCountersSettings setupTask"},
    {.at = "setupTask",
     .members = "commandLine environmentVariables secrets stdOutErrPathPrefix "
                "stdOutErrPathSuffix"},
    {.at = "nodeStateCounts",
     .members = "idleNodeCount leavingNodeCount preparingNodeCount runningNodeCount "
                "unusableNodeCount"},
    VOLUME_PARTS,
    COMMON_PARTS,
    {0},
};
const struct shape batchai_cluster_shape = {
    .flat = true,
    .members = "allocationState allocationStateTransitionTime creationTime currentNodeCount "
               "errors id name nodeSetup nodeStateCounts provisioningState "
               "provisioningStateTransitionTime resourceGroup scaleSettings subnet type "
               "userAccountSettings virtualMachineConfiguration vmPriority vmSize",
    .times = TIMES,
    .parts = cluster_parts,
};
const char batchai_cluster_table[] =
    "{Name: name, \"Resource Group\": resourceGroup, Workspace: idParts.workspaces, "
    "\"VM Size\": vmSize, State: provisioningState == 'deleting' && 'deleting' || "
    "allocationState, Idle: nodeStateCounts.idleNodeCount, Running: "
    "nodeStateCounts.runningNodeCount, Preparing: nodeStateCounts.preparingNodeCount, "
    "Leaving: nodeStateCounts.leavingNodeCount, Unusable: nodeStateCounts.unusableNodeCount}";

#define SCRIPT "commandLineArgs pythonInterpreterPath pythonScriptFilePath"
static const struct shape_part job_parts[] = {
    {.at = "caffe2Settings", .members = SCRIPT},
    {.at = "caffeSettings", .members = "configFilePath processCount " SCRIPT},
    {.at = "chainerSettings", .members = "processCount " SCRIPT},
    {.at = "cntkSettings", .members = "configFilePath languageType processCount " SCRIPT},
    {.at = "customMpiSettings", .members = "commandLine processCount"},
    {.at = "customToolkitSettings", .members = "commandLine"},
    {.at = "horovodSettings", .members = "processCount " SCRIPT},
    {.at = "pyTorchSettings", .members = "communicationBackend processCount " SCRIPT},
    {.at = "tensorFlowSettings",
     .members = "masterCommandLineArgs parameterServerCommandLineArgs parameterServerCount "
                "pythonInterpreterPath pythonScriptFilePath workerCommandLineArgs workerCount"},
    {.at = "constraints", .members = "maxWallClockTime"},
    {.at = "containerSettings", .members = "imageSourceRegistry shmSize"},
    {.at = "imageSourceRegistry", .members = "credentials image serverUrl"},
    {.at = "imageSourceRegistry/credentials",
     .members = "password passwordSecretReference username"},
    {.at = "executionInfo", .members = "endTime errors exitCode startTime"},
    {.at = "inputDirectories", .members = "id path"},
    {.at = "outputDirectories", .members = "id pathPrefix pathSuffix"},
    {.at = "jobPreparation", .members = "commandLine"},
    VOLUME_PARTS,
    COMMON_PARTS,
    {0},
};
const struct shape batchai_job_shape = {
    .flat = true,
    .members =
        "caffe2Settings caffeSettings chainerSettings cluster cntkSettings constraints "
        "containerSettings creationTime customMpiSettings customToolkitSettings "
        "environmentVariables executionInfo executionState executionStateTransitionTime "
        "horovodSettings id inputDirectories jobOutputDirectoryPathSegment jobPreparation "
        "mountVolumes name nodeCount outputDirectories provisioningState "
        "provisioningStateTransitionTime pyTorchSettings resourceGroup schedulingPriority "
        "secrets stdOutErrPathPrefix tensorFlowSettings toolType type",
    .times = TIMES,
    .durations = "maxWallClockTime",
    .parts = job_parts,
};
const char batchai_job_table[] =
    "{Name: name, Cluster: cluster.idParts.clusters, \"Cluster RG\": "
    "cluster.idParts.resourceGroups, \"Cluster Workspace\": cluster.idParts.workspaces, Tool: "
    "toolType, Nodes: nodeCount, State: provisioningState == 'deleting' && 'deleting' || "
    "executionState, \"Exit code\": executionInfo.exitCode}";

static const struct shape_part server_parts[] = {
    {.at = "dataDisks",
     .members = "cachingType diskCount diskSizeInGb storageAccountType",
     .renames = "diskSizeInGB=diskSizeInGb"},
    {.at = "mountSettings",
     .members = "fileServerInternalIp fileServerPublicIp mountPoint",
     .renames = "fileServerPublicIP=fileServerPublicIp "
                "fileServerInternalIP=fileServerInternalIp"},
    {.at = "sshConfiguration",
     .members = "publicIpsToAllow userAccountSettings",
     .renames = "publicIPsToAllow=publicIpsToAllow"},
    COMMON_PARTS,
    {0},
};
const struct shape batchai_server_shape = {
    .flat = true,
    .members = "creationTime dataDisks id mountSettings name provisioningState "
               "provisioningStateTransitionTime resourceGroup sshConfiguration subnet type "
               "vmSize",
    .times = TIMES,
    .parts = server_parts,
};
const char batchai_server_table[] =
    "{Name: name, \"Resource Group\": resourceGroup, Size: vmSize, Disks: join(' ', "
    "[to_string(dataDisks.diskCount), 'x', to_string(dataDisks.diskSizeInGb), 'Gb']), "
    "\"Public IP\": mountSettings.fileServerPublicIp, \"Internal IP\": "
    "mountSettings.fileServerInternalIp, \"Mount Point\": mountSettings.mountPoint}";

const struct shape batchai_file_shape = {
    .flat = true,
    .members = "contentLength downloadUrl fileType lastModified name",
    .times = TIMES,
};
const char batchai_file_table[] =
    "{Name: name, Type: fileType, Size: contentLength, Modified: lastModified}";
const char batchai_node_table[] = "{ID: nodeId, IP: ipAddress, \"SSH Port\": port}";
