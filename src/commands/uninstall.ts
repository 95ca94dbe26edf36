import { ConfigError, readKubernetes } from '../config/config.ts';
import { connect, type KubeClient } from '../kube/client.ts';
import { isKubeError } from '../kube/kube-error.ts';
import { createLeaseStore, LEASE_NAME } from '../kube/lease.ts';
import { leaseNamespace } from '../kube/lease-namespace.ts';
import { createLogger } from '../telemetry/log.ts';
import { systemClock } from '../time/clock.ts';
import { type Command, parseCommandLine, print } from './command-line.ts';
import { listHeldObjects, removeFinalizers, removeRoleBindings } from './held-objects.ts';
import { takeLease } from './lease-takeover.ts';
import { findUndelivered } from './undelivered.ts';
import { describeNothing, nameOf, planUninstall } from './uninstall-plan.ts';
import { readUninstallSettings, type UninstallSettings } from './uninstall-settings.ts';

const USAGE = 'sluice uninstall [--ignore-undelivered]';

/**
 * Removes the Sluice finalizer from all custom resources of this installation. After that, the resources, their
 * namespaces, and their CustomResourceDefinitions can be deleted without a controller. Also removes the RoleBindings of
 * the controller. If there are undelivered events, nothing is changed and the exit code is 1.
 *
 * The objects themselves and the data in Redis are not changed. If a controller is installed later, it adds the
 * finalizers again.
 */
export const uninstall: Command = async (argv, env) => {
  const options = parseCommandLine(argv, { 'ignore-undelivered': { type: 'boolean', default: false } }, USAGE);
  const settings = readUninstallSettings(env);
  const { instance, namespace, redis, redisProblems } = settings;
  const log = createLogger({ level: 'silent' });
  const client = connect(readKubernetes(env));
  const { signal } = new AbortController();
  try {
    const all = await listHeldObjects(client, signal);
    const held = all.get(instance) ?? [];
    const name = { namespace: leaseNamespace(namespace, client.namespace), name: LEASE_NAME };
    const leases = createLeaseStore(client, name);
    const lease = await leases.get(signal);
    const isLeaseElsewhere = namespace === undefined && lease === undefined;
    const owner = lease?.instance;
    const isLeaseOfOther = owner !== undefined && owner !== instance;
    if (held.length === 0) {
      if (!isLeaseElsewhere && !isLeaseOfOther) await takeLease(leases, systemClock, signal, false);
      print(describeNothing(instance, all));
      if (isLeaseOfOther) print([leaseOfOther(name, owner)]);
      print(await unbind(client, settings, signal));
      return 0;
    }
    if (isLeaseElsewhere) throw new ConfigError(leaseMissing(name));
    if (isLeaseOfOther) throw new ConfigError(`SLUICE_INSTANCE, SLUICE_NAMESPACE: ${leaseOfOther(name, owner)}`);
    const undelivered = await findUndelivered(held, redis && { ...redis, instance }, redisProblems, log);
    const { proceeds, lines } = planUninstall(held, undelivered, options['ignore-undelivered']);
    print(lines);
    if (!proceeds) return 1;
    const renew = await takeLease(leases, systemClock, signal, true);
    print([`Finalizers removed: ${await removeFinalizers(client, instance, renew, signal)}`]);
    // The pods have the full time to stop from here on, however long the removal took.
    await renew('now');
    print(await unbind(client, settings, signal));
    return 0;
  } finally {
    await client.close();
  }
};

/** Returns the message for a namespace that has never had a leader. */
function leaseMissing({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `SLUICE_NAMESPACE: not set, and namespace ${namespace} has no Lease ${name}. Set SLUICE_NAMESPACE to the namespace of the controller even if the namespace was deleted`;
}

/** Returns the message for a Lease that is not taken over, because this would stop another installation. */
function leaseOfOther(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  owner: string,
): string {
  return `The Lease ${name} in namespace ${namespace} was not changed because it belongs to ${nameOf(owner)}. Set SLUICE_INSTANCE and SLUICE_NAMESPACE to the name and the namespace of the installation to remove. If its controller was renamed, delete the Lease.`;
}

/** Removes all controller RoleBindings. Returns the lines to print. */
async function unbind(
  client: KubeClient,
  { instance, secretsRole: role }: UninstallSettings,
  signal: AbortSignal,
): Promise<string[]> {
  if (role === undefined) return [];
  try {
    const removed = await removeRoleBindings(client, { instance, role }, signal);
    return removed === 0 ? [] : [`RoleBindings removed: ${removed}`];
  } catch (error) {
    if (!isKubeError(error, 403)) throw error;
    return [`RoleBindings with the name ${role} cannot be removed: ${error.message}`];
  }
}
