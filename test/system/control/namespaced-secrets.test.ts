import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, type KubeClient } from '../../../src/kube/client.ts';
import { ROLE_BINDINGS, SECRETS } from '../../../src/kube/resource.ts';
import { applyPermissions, kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import type { Sluice } from '../../support/sluice.ts';
import { refusal } from '../support/accounts.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { makeSample } from '../support/publisher.ts';
import { type Authorizer, openAuthorizer } from '../support/rights.ts';
import { PRODUCER, QUEUE, type Running, SUBSCRIPTION, settle } from '../support/small-world.ts';
import { apply, integration, kubectl, stream, subscription, tenant } from '../support/world.ts';

// The controller has the permissions in config/rbac with the component, so it can only access Secrets using
// RoleBindings.
const ROLE = 'sluice-workspace-secrets';
const ROOT = join(import.meta.dirname, '..', '..', '..');
const RIGHTS = join(ROOT, 'config/components/namespaced-secrets/rights.yaml');
const HEADER = { name: 'endpoint', key: 'token' };
const ACCOUNT = { kind: 'ServiceAccount', namespace: 'sluice-system', name: 'sluice-controller' };
const CONTROLLER = { user: 'system:serviceaccount:sluice-system:sluice-controller' };

let installed: Installation;
let world: Running;
let controller: Sluice;
/** A client with the controller's token. */
let client: KubeClient;
let authorizer: Authorizer;

async function startController(): Promise<void> {
  const kubeconfig = await kubeconfigOf(installed.cluster, 'sluice-controller');
  controller = await installed.start({ role: 'controller', kubeconfig, env: { SLUICE_SECRETS_ROLE: ROLE } });
}

const bindings = (namespace: string) =>
  kubectl(installed.cluster, ['get', 'rolebinding', '-n', namespace, '-o', 'jsonpath={.items[*].metadata.name}']);
const ready = (workspace: string, is = 'True/NamespaceReady') =>
  world.observer.until(['Workspace', workspace, undefined, 'Ready', is]);

beforeAll(async () => {
  installed = await install();
  authorizer = openAuthorizer(installed.cluster.kubeconfig);
  await applyPermissions(installed.cluster);
  await kubectl(installed.cluster, ['apply', '--server-side', '-f', RIGHTS]);
  await kubectl(installed.cluster, ['delete', 'clusterrolebinding', ROLE]);
  client = connect({ kubeconfig: await kubeconfigOf(installed.cluster, 'sluice-controller') });
  // An installation's state before it switches to this access: a workspace with its Secrets.
  await apply(installed.cluster, [
    ...tenant('ada'),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: HEADER.name, namespace: 'ada' },
      stringData: { [HEADER.key]: 'Bearer one' },
    },
  ]);
  await startController();
  const [ingress] = await Promise.all(
    (['ingress', 'dispatcher'] as const).map(role => installed.start({ role, kubeconfig: '/nowhere' })),
  );
  const headers = [{ name: 'Authorization', valueFrom: { secretKeyRef: HEADER } }];
  world = await settle(installed, { partners: ['ada'], groupKeys: ['key'], endpoint: { headers } });
  publish = world.publisherOf(ingress as Sluice).publish;
});

let publish: (sample: ReturnType<typeof makeSample>) => Promise<unknown>;

afterAll(async () => {
  await client?.close();
  await authorizer?.close();
  await world?.close();
  await installed?.stop();
});

async function arrives(id: string, authorization: string): Promise<void> {
  await publish(makeSample(id, 'key', id));
  await world.receiver.arrival(id, 'ada');
  const attempt = world.receiver.attempts.findLast(each => each.id === id);
  expect(attempt?.headers['authorization']).toBe(authorization);
}

it('an event that requires Secrets of two namespaces is delivered', async () => {
  await arrives('first', 'Bearer one');
  expect([await bindings(PRODUCER), await bindings('ada')]).toEqual([ROLE, ROLE]);
  const mirrored = await client.get(SECRETS, { namespace: 'ada', name: `${SUBSCRIPTION}-signing` });
  expect(mirrored).toMatchObject({ type: 'sluice.dev/signing' });
});

it('a changed Secret is used, and a signing secret is restored', async () => {
  const change = { stringData: { [HEADER.key]: 'Bearer two' } };
  const patch = ['patch', 'secret', HEADER.name, '-n', 'ada', '--type=merge', '-p', JSON.stringify(change)];
  await kubectl(installed.cluster, patch);
  let count = 0;
  const isNew = async () => {
    const id = `second.${count++}`;
    await publish(makeSample(id, 'key', id));
    await world.receiver.arrival(id, 'ada');
    return world.receiver.attempts.findLast(each => each.id === id)?.headers['authorization'] === 'Bearer two';
  };
  await eventually('the new value is used', isNew, { everyMs: 200 });
  const signing = { namespace: 'ada', name: `${SUBSCRIPTION}-signing` };
  const uid = (await client.get(SECRETS, signing))?.metadata.uid;
  await kubectl(installed.cluster, ['delete', 'secret', signing.name, '-n', 'ada']);
  const isBack = async () => ![undefined, uid].includes((await client.get(SECRETS, signing))?.metadata.uid);
  await eventually('the Secret is restored', isBack);
});

it('the controller cannot read Secrets in other namespaces, or bind itself there', async () => {
  await kubectl(installed.cluster, ['create', 'namespace', 'elsewhere']);
  await kubectl(installed.cluster, ['create', 'secret', 'generic', 'theirs', '-n', 'elsewhere', '--from-literal=a=b']);
  const theirs = { namespace: 'elsewhere', name: 'theirs' };
  expect(await refusal(client.get(SECRETS, theirs))).toMatch(/^403 .*cannot get resource "secrets"/);
  expect(await refusal(client.list(SECRETS, object => object))).toMatch(/^403 .*at the cluster scope/);
  const bind = (namespace: string, name: string, role: string, subject: object = ACCOUNT) => {
    const roleRef = { apiGroup: ROLE_BINDINGS.group, kind: 'ClusterRole', name: role };
    const options = { fieldManager: 'test', force: true };
    return refusal(client.apply(ROLE_BINDINGS, { namespace, name }, { roleRef, subjects: [subject] }, options));
  };
  expect(await bind('elsewhere', ROLE, ROLE)).toMatch(
    /^403 .*only bind roles in namespaces with the sluice.dev.workspace=/,
  );
  expect(await bind('elsewhere', 'another', ROLE)).toMatch(/^403 .*cannot (create|patch) resource "rolebindings"/);
  const other = { ...ACCOUNT, name: 'sluice-facade' };
  expect(await bind('ada', ROLE, ROLE, other)).toMatch(/^403 .*only bind roles to its own service account/);
  await kubectl(installed.cluster, ['label', 'namespace', 'elsewhere', 'sluice.dev/workspace=elsewhere']);
  expect(await bind('elsewhere', ROLE, 'cluster-admin')).toMatch(/^403 /);
});

it('a deleted binding is created again while the controller is running', async () => {
  await kubectl(installed.cluster, ['delete', 'rolebinding', ROLE, '-n', 'ada']);
  await eventually('the binding is restored', async () => (await bindings('ada')) === ROLE);
  await arrives('meanwhile-bound', 'Bearer two');
});

it('a deleted binding is created again by the next leader', async () => {
  await kubectl(installed.cluster, ['delete', 'rolebinding', ROLE, '-n', 'ada']);
  await controller.stop();
  await startController();
  await eventually('the binding is restored', async () => (await bindings('ada')) === ROLE);
  await arrives('after', 'Bearer two');
});

it('deleting a workspace removes its binding', async () => {
  await apply(installed.cluster, tenant('short'));
  await ready('short');
  expect(await bindings('short')).toBe(ROLE);
  await world.observer.remove('Workspace', 'short');
  await world.observer.untilGone(['Workspace', 'short', undefined]);
  expect(await bindings('short')).toBe('');
});

it('a workspace without a RoleBinding reports this, and others continue to work', async () => {
  await kubectl(installed.cluster, ['delete', 'clusterrolebinding', 'sluice-controller-bindings']);
  // The authorizer learns of it by a watch.
  const bind = { verb: 'create', resource: 'rolebindings.rbac.authorization.k8s.io', namespace: 'ada' };
  const isRevoked = async () => !(await authorizer.may(CONTROLLER, bind));
  await eventually('the right is gone', isRevoked);
  const queue = [stream('alone', QUEUE), integration('alone', 'ada'), subscription('ada', 'alone', QUEUE, undefined)];
  await apply(installed.cluster, [...tenant('alone'), ...queue]);
  await ready('alone', 'False/SecretsForbidden');
  const messageOf = (type: string, ...object: string[]) =>
    kubectl(installed.cluster, ['get', ...object, '-o', `jsonpath={.status.conditions[?(@.type=="${type}")].message}`]);
  expect(await messageOf('Ready', 'workspace', 'alone')).toMatch(
    /cannot read the Secrets of namespace alone: .*binds the ClusterRole sluice-workspace-secrets to system:serviceaccount:sluice-system:sluice-controller$/s,
  );
  // As a partner, it has a header from a Secret that does not exist.
  const endpoint = { url: 'https://alone.example/', headers: [{ name: 'x-a', valueFrom: { secretKeyRef: HEADER } }] };
  await apply(installed.cluster, [integration(PRODUCER, 'alone'), subscription('alone', PRODUCER, QUEUE, endpoint)]);
  const waiting = ['Subscription', SUBSCRIPTION, 'alone', 'Live', 'False/WaitingForSecret'] as const;
  await world.observer.until([...waiting]);
  const whyWaiting = () => messageOf('Live', 'subscription', SUBSCRIPTION, '-n', 'alone');
  expect(await whyWaiting()).toMatch(
    /: Sluice cannot read the Secrets of namespace alone\. Add a RoleBinding .*controller \(header x-a, Secret endpoint, key token\)$/,
  );
  // A new leader reports this when it starts.
  await controller.stop();
  await startController();
  await apply(installed.cluster, [stream(PRODUCER, 'another')]);
  await world.observer.until(['CatalogStream', 'another', PRODUCER, 'Ready', 'True/QueueReady']);
  await arrives('meanwhile', 'Bearer two');
  await ready('alone', 'False/SecretsForbidden');
  // This does not have to wait for the Secrets of the producer.
  await world.observer.remove('Subscription', `alone-${QUEUE}`, 'ada');
  await world.observer.untilGone(['Subscription', `alone-${QUEUE}`, 'ada'], 30_000);
  expect((await world.observer.events()).filter(event => event.includes('FinalizerRemoved'))).toEqual([]);

  const binding = ['create', 'rolebinding', ROLE, '-n', 'alone', `--clusterrole=${ROLE}`];
  await kubectl(installed.cluster, [...binding, '--serviceaccount=sluice-system:sluice-controller']);
  await ready('alone');
  await world.observer.until(['CatalogStream', QUEUE, 'alone', 'Ready', 'True/QueueReady']);
  const isMissing = async () => (await whyWaiting()).includes('the Secret does not exist in this namespace');
  await eventually('the Secret is reported as missing', isMissing, { withinMs: 30_000 });
});

it('sluice uninstall only removes the bindings of its own installation', async () => {
  await controller.stop();
  const jobFile = join(ROOT, 'config/uninstall/job.yaml');
  await kubectl(installed.cluster, ['apply', '--server-side', '-f', jobFile]);
  await kubectl(installed.cluster, ['create', 'namespace', 'theirs']);
  await kubectl(installed.cluster, [
    'label',
    'namespace',
    'theirs',
    'sluice.dev/instance=blue',
    'sluice.dev/workspace=theirs',
  ]);
  const bind = ['create', 'rolebinding', ROLE, '-n', 'theirs', `--clusterrole=${ROLE}`];
  await kubectl(installed.cluster, [...bind, '--serviceaccount=theirs:sluice-controller']);
  const bound = async () => {
    const names = ['get', 'rolebindings', '--all-namespaces', `--field-selector=metadata.name=${ROLE}`];
    return (await kubectl(installed.cluster, [...names, '-o', 'jsonpath={.items[*].metadata.namespace}'])).split(' ');
  };
  const before = await bound();
  expect(before).toEqual(expect.arrayContaining([PRODUCER, 'ada', 'alone', 'theirs']));
  const env = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    KUBECONFIG: await kubeconfigOf(installed.cluster, 'sluice-uninstall'),
    SLUICE_NAMESPACE: 'sluice-system',
    SLUICE_REDIS_URL: installed.redis.url,
    // The Job always has this variable, since an installation may have used RoleBindings before.
    SLUICE_SECRETS_ROLE: /name: SLUICE_SECRETS_ROLE\n *value: (\S+)/.exec(await readFile(jobFile, 'utf8'))?.[1],
  };
  const uninstall = promisify(execFile)(join(ROOT, 'bin', 'sluice'), ['uninstall', '--ignore-undelivered'], { env });
  expect((await uninstall).stdout).toContain(`RoleBindings removed: ${before.length - 1}`);
  expect(await bound()).toEqual(['theirs']);
});
