// Does one thing to a scale set with the Azure SDK for JavaScript, and prints the result as JSON.
//
//     node scale_sets.mjs login [TENANT] | create | list | delete ID | restart ID
//
// The login is that of DefaultAzureCredential: `fairwarning azure-setup --sdk` sets its variables.
// With a TENANT it is that of ClientSecretCredential.

import { ComputeManagementClient } from "@azure/arm-compute";
import { ResourceManagementClient } from "@azure/arm-resources";
import { ClientSecretCredential, DefaultAzureCredential } from "@azure/identity";

const GROUP = "myResourceGroup";
const SET = "pool";
const [verb, ...rest] = process.argv.slice(2);
const url = process.env.AZURE_AUTHORITY_HOST;
const subscription = process.env.AZURE_SUBSCRIPTION_ID;
const credential = verb === "login" && rest.length ? credentialOf(rest[0]) : new DefaultAzureCredential();
const options = { endpoint: url, credentialScopes: [`${url}/.default`] };
const compute = new ComputeManagementClient(credential, subscription, options);
const resources = new ResourceManagementClient(credential, subscription, options);
const sets = compute.virtualMachineScaleSets;

const model = {
  location: "westeurope",
  sku: { name: "Standard_D2s_v5", tier: "Standard", capacity: 3 },
  upgradePolicy: { mode: "Manual" },
  virtualMachineProfile: {
    storageProfile: {
      imageReference: { publisher: "Canonical", offer: "UbuntuServer", sku: "18.04-LTS", version: "latest" },
      osDisk: { createOption: "FromImage", managedDisk: { storageAccountType: "Standard_LRS" } },
    },
    osProfile: { computerNamePrefix: "pool", adminUsername: "ada" },
    scheduledEventsProfile: { terminateNotificationProfile: { enable: true, notBeforeTimeout: "PT5M" } },
  },
};

const verbs = {
  async login() {
    const names = [];
    for await (const each of resources.resourceGroups.list()) names.push(each.name);
    return names;
  },
  async create() {
    await resources.resourceGroups.createOrUpdate(GROUP, { location: "westeurope" });
    const made = await sets.createOrUpdate(GROUP, SET, model);
    const { terminateNotificationProfile } = made.virtualMachineProfile.scheduledEventsProfile;
    return {
      state: made.provisioningState,
      capacity: made.sku.capacity,
      enable: terminateNotificationProfile.enable,
      notice: terminateNotificationProfile.notBeforeTimeout,
    };
  },
  async list() {
    const found = [];
    for await (const each of compute.virtualMachineScaleSetVMs.list(GROUP, SET)) found.push(each.instanceId);
    return found.sort();
  },
  async delete(id) {
    await sets.deleteInstances(GROUP, SET, { instanceIds: [id] });
    return id;
  },
  async restart(id) {
    await sets.restart(GROUP, SET, { vmInstanceIDs: { instanceIds: [id] } });
    return id;
  },
};

function credentialOf(tenant) {
  const { AZURE_CLIENT_ID, AZURE_CLIENT_SECRET } = process.env;
  const options = { authorityHost: url, disableInstanceDiscovery: true };
  return new ClientSecretCredential(tenant, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET, options);
}

try {
  console.log(JSON.stringify(await verbs[verb](...rest)));
} catch (error) {
  console.error(`ERROR: ${error.message.replaceAll(/\s+/g, " ")}`);
  process.exit(1);
}
