import { KINDS, type KindName } from '../../../src/api/kinds/kinds.ts';
import { createPolicyWatch, type PolicyProbe } from '../../../src/kube/access/policy-watch.ts';
import { connect, type KubeClient } from '../../../src/kube/client.ts';
import { KubeError } from '../../../src/kube/kube-error.ts';
import type { AnyObject, ObjectName } from '../../../src/kube/object.ts';
import { NAMESPACES, resourceOf } from '../../../src/kube/resource.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { systemClock } from '../../../src/time/clock.ts';
import { ensureBinaries } from '../../support/kubernetes/binaries.ts';
import { kubectlFor } from '../../support/kubernetes/kubectl.ts';
import { applyPermissions, kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

export const OWNERS = [{ issuer: 'https://login.example.com', subject: 'ada', role: 'Owner' }];

/** A valid spec for each kind. Some of them have the maximum size. */
export const SPECS: Readonly<Record<KindName, object>> = {
  Account: { owners: OWNERS },
  Workspace: { account: 'ada' },
  CatalogStream: { public: true, payloadSchema: JSON.stringify({ description: 'x'.repeat(100_000) }) },
  Package: { displayName: 'All', streams: Array.from({ length: 500 }, (_, n) => `stream-${n}`) },
  Integration: { workspace: 'ada' },
  Activation: { integration: 'ada', groupKey: 'shop-1' },
  Block: { integration: 'ada', target: { kind: 'Package', name: 'all' } },
  Subscription: { producer: 'ada', integration: 'bob', stream: 'orders' },
};

export const KIND_NAMES = Object.keys(KINDS) as KindName[];

/** An API server that can be used as an administrator or as a service account of Sluice, with a namespace. */
export interface Accounts {
  readonly admin: KubeClient;
  readonly facade: KubeClient;
  readonly controller: KubeClient;
  readonly namespace: string;
  /**
   * A service account in the namespace with this role's ClusterRole, which is not affected by any admission
   * policy.
   */
  readonly unlimited: (role: 'controller' | 'facade') => Promise<KubeClient>;
  /** Returns a name that no object of this kind uses. */
  readonly fresh: (kind: KindName) => ObjectName;
  /** Creates an object as an administrator. */
  readonly make: (kind: KindName, spec?: object, metadata?: object) => Promise<AnyObject>;
  readonly close: () => Promise<void>;
}

/** @param name of the namespace, followed by the id of this process */
export async function openAccounts(kubeconfig: string, name: string): Promise<Accounts> {
  const namespace = `${name}-${process.pid}`;
  const folder = await temporaryFolder(name);
  const { kubectl: binary } = await ensureBinaries(['kubectl']);
  const cluster = { kubectl: kubectlFor({ binary, kubeconfig, cache: folder.path }) };
  await applyPermissions(cluster);
  const admin = connect({ kubeconfig });
  const facade = connect({ kubeconfig: await kubeconfigOf(cluster, 'sluice-facade') });
  const controller = connect({ kubeconfig: await kubeconfigOf(cluster, 'sluice-controller') });
  await admin.create(NAMESPACES, { name: namespace }, {});
  let count = 0;
  const fresh = (kind: KindName): ObjectName => ({
    name: `${namespace}-${++count}`,
    ...(KINDS[kind].scope === 'Cluster' ? {} : { namespace }),
  });
  const opened: KubeClient[] = [admin, facade, controller];
  const bindings: string[] = [];
  async function unlimited(role: 'controller' | 'facade'): Promise<KubeClient> {
    const account = `sluice-${role}`;
    const binding = `${namespace}-${role}`;
    await cluster.kubectl(['create', 'serviceaccount', account, '-n', namespace]);
    const subject = `--serviceaccount=${namespace}:${account}`;
    for (const granted of [account, ...(role === 'controller' ? ['sluice-workspace-secrets'] : [])]) {
      await cluster.kubectl([
        'create',
        'clusterrolebinding',
        `${binding}-${granted}`,
        `--clusterrole=${granted}`,
        subject,
      ]);
      bindings.push(`${binding}-${granted}`);
    }
    const client = connect({ kubeconfig: await kubeconfigOf(cluster, account, namespace) });
    opened.push(client);
    return client;
  }
  return {
    admin,
    facade,
    controller,
    namespace,
    unlimited,
    fresh,
    make: (kind, spec = SPECS[kind], metadata = {}) =>
      admin.apply(resourceOf(kind), fresh(kind), { metadata, spec }, { fieldManager: 'admin' }),
    close: async () => {
      for (const kind of ['Workspace', 'Account'] as const) {
        for (let n = 1; n <= count; n++) await admin.remove(resourceOf(kind), { name: `${namespace}-${n}` });
      }
      await admin.remove(NAMESPACES, { name: namespace });
      for (const name of bindings) await cluster.kubectl(['delete', 'clusterrolebinding', name]);
      await Promise.all(opened.map(client => client.close()));
      await folder.remove();
    },
  };
}

/** Applies an object using server-side apply with force, so a refusal is never caused by a conflict. */
export function applying(client: KubeClient, kind: KindName, name: ObjectName, body: object): Promise<AnyObject> {
  return client.apply(resourceOf(kind), name, body, { fieldManager: 'test', force: true });
}

/**
 * Returns the status and message of a refusal: `403 …`.
 * @throws if the request was not refused
 */
export async function refusal(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => new Error('not refused'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof KubeError)) throw error;
  return `${error.status} ${error.detail}`;
}

/** Returns whether the API server accepts a dry run that an admission policy should deny. */
export async function isUnlimited(client: KubeClient, probe: PolicyProbe): Promise<boolean> {
  const stop = new AbortController();
  const result = Promise.withResolvers<boolean>();
  const log = createLogger({ level: 'silent' });
  const running = createPolicyWatch({ client, probe, onResult: result.resolve, clock: systemClock, log }).run(
    stop.signal,
  );
  const unlimited = await result.promise;
  stop.abort();
  await running;
  return unlimited;
}
