import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Credentials, openCredentials } from '../../../../src/kube/credentials/credentials.ts';
import { systemClock } from '../../../../src/time/clock.ts';
import { ensureBinaries } from '../../../support/kubernetes/binaries.ts';
import { type Kubectl, kubectlFor } from '../../../support/kubernetes/kubectl.ts';
import { applyPermissions, kubeconfigOf } from '../../../support/kubernetes/permissions.ts';
import { type TemporaryFolder, temporaryFolder } from '../../../support/temporary-folder.ts';
import { eventually } from '../../support/deadline.ts';
import { type Attempt, bindingOf, bindings, inNamespace, refusedBy, type Targets, TENANT_ROLES } from './attempt.ts';
import { foreignBindings, otherBindings } from './bindings.ts';
import { namespaces, secrets } from './objects.ts';
import { identities, rolesAndPolicies } from './rights.ts';

const RUN = `escalation-${process.pid}`;
const WORKSPACE = `${RUN}-workspace`;
const FORMER = `${RUN}-former`;
const UNLABELLED = `${RUN}-unlabelled`;
/** A namespace with the label of a different namespace. */
const MISLABELLED = `${RUN}-mislabelled`;
/** The namespace of the service account that is bound to `sluice-admin`, and the name of both. */
const PLATFORM = `${RUN}-platform`;

const TARGETS: Targets = {
  workspace: WORKSPACE,
  former: FORMER,
  unlabelled: UNLABELLED,
  foreign: ['kube-system', 'kube-public', 'default', 'sluice-system', UNLABELLED, MISLABELLED, FORMER, PLATFORM],
  user: `system:serviceaccount:${PLATFORM}:platform`,
  subject: { kind: 'ServiceAccount', name: 'platform', namespace: PLATFORM },
};
const EVE = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'eve' };

const ATTEMPTS = [foreignBindings, otherBindings, rolesAndPolicies, identities, namespaces, secrets].flatMap(make =>
  make(TARGETS),
);

let folder: TemporaryFolder;
let kubectl: Kubectl;
let credentials: Credentials;

async function succeed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await kubectl(args);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** Sends a request using the token of the platform administrator. */
async function send({ method, path, body, patch = 'merge', headers = {} }: Omit<Attempt, 'title'>) {
  const access = await credentials.access();
  const type = { merge: 'application/merge-patch+json', json: 'application/json-patch+json' } as const;
  const patchType = patch === 'apply' ? 'application/apply-patch+yaml' : type[patch];
  const answer = await request(credentials.server + path, {
    method,
    dispatcher: access.calls,
    headers: {
      ...access.headers,
      ...headers,
      'content-type': method === 'PATCH' ? patchType : 'application/json',
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, message: (JSON.parse(text) as { message?: string }).message ?? '' };
}

const readTreasure = (namespace: string) => send({ method: 'GET', path: inNamespace(namespace, 'secrets/treasure') });

beforeAll(async () => {
  folder = await temporaryFolder('escalation');
  const { kubectl: binary } = await ensureBinaries(['kubectl']);
  kubectl = kubectlFor({ binary, kubeconfig: inject('kubeconfig'), cache: folder.path });
  await applyPermissions({ kubectl });
  for (const namespace of [WORKSPACE, FORMER, UNLABELLED, MISLABELLED, PLATFORM]) {
    await succeed('create', 'namespace', namespace);
  }
  const label = (namespace: string, value: string) => succeed('label', 'namespace', namespace, value);
  for (const namespace of [WORKSPACE, FORMER]) await label(namespace, `sluice.dev/workspace=${namespace}`);
  await label(MISLABELLED, `sluice.dev/workspace=${WORKSPACE}`);
  for (const namespace of [...TARGETS.foreign, WORKSPACE]) {
    await succeed('create', 'secret', 'generic', 'treasure', '--from-literal=key=gold', '-n', namespace);
  }
  await succeed('create', 'rolebinding', 'viewers', '--clusterrole=sluice-tenant-view', '--user=eve', '-n', WORKSPACE);
  const older = ['--clusterrole=sluice-tenant-secrets', '--user=mallory', '--user=bob'];
  await succeed('create', 'rolebinding', 'older', ...older, '-n', FORMER);
  await label(FORMER, 'sluice.dev/workspace-');
  await succeed('create', 'serviceaccount', 'platform', '-n', PLATFORM);
  const admin = `--serviceaccount=${PLATFORM}:platform`;
  await succeed('create', 'clusterrolebinding', RUN, '--clusterrole=sluice-admin', admin);
  const kubeconfig = await kubeconfigOf({ kubectl }, 'platform', PLATFORM);
  credentials = openCredentials({ kubeconfig }, systemClock.nowMs);
  const workspaces = { method: 'GET', path: '/apis/sluice.dev/v1alpha1/workspaces' } as const;
  const isBound = async () => (await send(workspaces)).status === 200;
  await eventually('the role binding is in effect', isBound, { withinMs: 45_000 });
});

afterAll(async () => {
  await credentials?.close();
  await kubectl(['delete', 'clusterrolebinding', RUN]);
  for (const namespace of ['kube-system', 'kube-public', 'default', 'sluice-system']) {
    await kubectl(['delete', 'secret', 'treasure', '-n', namespace]);
  }
  const created = [WORKSPACE, FORMER, UNLABELLED, MISLABELLED, PLATFORM];
  await kubectl(['delete', 'namespace', ...created, '--wait=false']);
  await kubectl(['delete', 'workspaces.sluice.dev', WORKSPACE, UNLABELLED, '--ignore-not-found']);
  await folder.remove();
});

describe('an administrator of the platform cannot', () => {
  it.each(ATTEMPTS)('$title', async attempt => {
    const { status, message } = await send(attempt);
    expect(message).toMatch(refusedBy(attempt));
    expect([400, 403, 422]).toContain(status);
  });

  it('read a Secret outside of workspaces after all of these attempts', async () => {
    expect(ATTEMPTS.length).toBeGreaterThanOrEqual(100);
    for (const namespace of TARGETS.foreign) expect((await readTreasure(namespace)).status).toBe(403);
    const known = await succeed('get', 'rolebindings', '-A', '-o', 'jsonpath={.items[*].metadata.name}');
    expect(known.split(' ')).not.toContain('mine');
  });

  it('read the Secrets of a namespace by creating a Workspace with its name, because the namespace is not labeled', async () => {
    const workspace = {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'Workspace',
      metadata: { name: UNLABELLED },
      spec: { account: 'ada' },
    };
    const path = '/apis/sluice.dev/v1alpha1/workspaces';
    expect(await send({ method: 'POST', path, body: workspace })).toMatchObject({ status: 201 });
    const bound = await send({
      method: 'POST',
      path: bindings(UNLABELLED),
      body: bindingOf('sluice-tenant-secrets', TARGETS.subject),
    });
    expect(bound).toMatchObject({ status: 403, message: expect.stringContaining('create a Workspace') });
    expect((await readTreasure(UNLABELLED)).status).toBe(403);
  });
});

describe('an administrator of the platform can', () => {
  it.each(TENANT_ROLES)('bind %s in a workspace, change the subjects, and remove them', async role => {
    const created = { method: 'POST', path: bindings(WORKSPACE), body: bindingOf(role, EVE, role) } as const;
    expect(await send(created)).toMatchObject({ status: 201 });
    for (const subjects of [[EVE, TARGETS.subject], []]) {
      const path = bindings(WORKSPACE, role);
      expect(await send({ method: 'PATCH', path, body: { subjects } })).toMatchObject({ status: 200 });
    }
  });

  it('manage accounts and workspaces', async () => {
    const path = '/apis/sluice.dev/v1alpha1/workspaces';
    const body = { apiVersion: 'sluice.dev/v1alpha1', kind: 'Workspace', metadata: { name: WORKSPACE } };
    const spec = { account: 'ada' };
    expect(await send({ method: 'POST', path, body: { ...body, spec } })).toMatchObject({ status: 201 });
    expect(await send({ method: 'DELETE', path: `${path}/${WORKSPACE}` })).toMatchObject({ status: 200 });
    expect(await send({ method: 'GET', path: '/apis/sluice.dev/v1alpha1/accounts' })).toMatchObject({ status: 200 });
  });

  it('give itself access to the Secrets of a workspace, and nowhere else', async () => {
    const body = bindingOf('sluice-tenant-secrets', TARGETS.subject, 'own');
    expect(await send({ method: 'POST', path: bindings(WORKSPACE), body })).toMatchObject({ status: 201 });
    await expect.poll(async () => (await readTreasure(WORKSPACE)).status, { timeout: 45_000 }).toBe(200);
    for (const namespace of TARGETS.foreign) expect((await readTreasure(namespace)).status).toBe(403);
    // The account now has the permissions of these roles, but only in the workspace.
    const others: readonly Attempt[] = foreignBindings(TARGETS);
    for (const attempt of others) expect((await send(attempt)).status).toBe(403);
  });

  it('remove subjects from a binding in a namespace that is no longer a workspace', async () => {
    const path = bindings(FORMER, 'older');
    const bob = { ...EVE, name: 'bob' };
    for (const subjects of [[bob], []]) {
      expect(await send({ method: 'PATCH', path, body: { subjects } })).toMatchObject({ status: 200 });
    }
    expect((await send({ method: 'PATCH', path, body: { subjects: [bob] } })).status).toBe(403);
  });
});

describe('an administrator of the cluster', () => {
  const bind = (role: string, namespace: string) =>
    kubectl(['create', 'rolebinding', `by-admin-${role}`, `--clusterrole=${role}`, '--user=eve', '-n', namespace]);

  it('can bind any other role anywhere', async () => {
    for (const namespace of [UNLABELLED, WORKSPACE]) {
      for (const role of ['view', 'sluice-admin']) expect(await bind(role, namespace)).toMatchObject({ code: 0 });
    }
  });

  it('cannot bind the roles for tenants outside of workspaces, and receives the reason', async () => {
    for (const role of TENANT_ROLES) {
      const { code, stderr } = await bind(role, UNLABELLED);
      expect(code).toBe(1);
      expect(stderr).toContain('sluice.dev/workspace=<name of the namespace>');
      expect(await bind(role, WORKSPACE)).toMatchObject({ code: 0 });
    }
  });

  it('can bind a role for tenants in the whole cluster', async () => {
    const name = `${RUN}-auditor`;
    const args = ['create', 'clusterrolebinding', name, '--clusterrole=sluice-tenant-view', '--user=auditor'];
    expect(await kubectl(args)).toMatchObject({ code: 0 });
    await succeed('delete', 'clusterrolebinding', name);
  });
});
