import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ensureBinaries } from '../../support/kubernetes/binaries.ts';
import { type Kubectl, kubectlFor } from '../../support/kubernetes/kubectl.ts';
import { applyPermissions } from '../../support/kubernetes/permissions.ts';
import { type TemporaryFolder, temporaryFolder } from '../../support/temporary-folder.ts';
import { eventually } from '../support/deadline.ts';
import { type Authorizer, openAuthorizer, type Subject } from '../support/rights.ts';

const RUN = `rbac-${process.pid}`;
/** The tenant's own namespace, and a namespace of another tenant. */
const OWN = `${RUN}-own`;
const OTHER = `${RUN}-other`;

const serviceAccount = (name: string): Subject => ({
  user: `system:serviceaccount:sluice-system:${name}`,
  groups: ['system:serviceaccounts', 'system:serviceaccounts:sluice-system'],
});
const EDITOR = `${RUN}-editor`;
const KEEPER = `${RUN}-keeper`;
const VIEWER = `${RUN}-viewer`;
const PLATFORM = `${RUN}-platform`;

const OURS = ['accounts', 'workspaces', 'catalogstreams', 'packages', 'integrations', 'activations', 'blocks'].concat(
  'subscriptions',
);
const RBAC = 'rbac.authorization.k8s.io';
/** All of our resources, and all Kubernetes resources that are worth protecting. */
const RESOURCES = OURS.flatMap(plural => [`${plural}.sluice.dev`, `${plural}.sluice.dev/status`]).concat(
  ['secrets', 'configmaps', 'events', 'namespaces', 'namespaces/finalize', 'pods', 'pods/exec', 'services', 'nodes'],
  ['serviceaccounts', 'serviceaccounts/token', 'persistentvolumes'],
  ['deployments.apps', 'events.events.k8s.io', 'leases.coordination.k8s.io'],
  ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'].map(plural => `${plural}.${RBAC}`),
  ['customresourcedefinitions.apiextensions.k8s.io', 'certificatesigningrequests.certificates.k8s.io'],
  ['validatingadmissionpolicies', 'validatingadmissionpolicybindings', 'mutatingwebhookconfigurations'].map(
    plural => `${plural}.admissionregistration.k8s.io`,
  ),
);
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
/** Verbs supported by only few resources, and the affected resources. */
const ESCALATIONS = ['bind', 'escalate', 'impersonate'];
const ESCALATED = ['users', 'groups', 'serviceaccounts', `roles.${RBAC}`, `clusterroles.${RBAC}`];
const READ = 'get list watch';
const ALL = 'get list watch create update patch delete deletecollection';

let folder: TemporaryFolder;
let kubectl: Kubectl;
let authorizer: Authorizer;

async function succeed(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await kubectl(args);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

beforeAll(async () => {
  folder = await temporaryFolder('rbac');
  const { kubectl: binary } = await ensureBinaries(['kubectl']);
  kubectl = kubectlFor({ binary, kubeconfig: inject('kubeconfig'), cache: folder.path });
  await applyPermissions({ kubectl });
  for (const namespace of [OWN, OTHER]) {
    await succeed(['create', 'namespace', namespace]);
    await succeed(['label', 'namespace', namespace, `sluice.dev/workspace=${namespace}`]);
  }
  const bind = (role: string, user: string) => [`--clusterrole=${role}`, `--user=${user}`, `--namespace=${OWN}`];
  await succeed(['create', 'rolebinding', 'editor', ...bind('sluice-tenant-edit', EDITOR)]);
  await succeed(['create', 'rolebinding', 'keeper', ...bind('sluice-tenant-secrets', KEEPER)]);
  await succeed(['create', 'rolebinding', 'viewer', ...bind('sluice-tenant-view', VIEWER)]);
  await succeed(['create', 'clusterrolebinding', RUN, '--clusterrole=sluice-admin', `--user=${PLATFORM}`]);
  authorizer = openAuthorizer(inject('kubeconfig'));
  // The authorizer receives each kind of binding using a separate watch.
  const has: readonly (readonly [user: string, resource: string, namespace?: string])[] = [
    [EDITOR, 'blocks.sluice.dev', OWN],
    [KEEPER, 'secrets', OWN],
    [VIEWER, 'blocks.sluice.dev', OWN],
    [PLATFORM, 'accounts.sluice.dev'],
  ];
  for (const [user, resource, namespace] of has) {
    const known = () => authorizer.may({ user }, { verb: 'list', resource, namespace });
    await eventually(`the binding of ${user} is in effect`, known, { withinMs: 45_000 });
  }
});

afterAll(async () => {
  await authorizer?.close();
  await kubectl(['delete', 'clusterrolebinding', RUN]);
  await kubectl(['delete', 'namespace', OWN, OTHER, '--wait=false']);
  await folder.remove();
});

/** Returns the allowed combinations of these verbs and resources. */
async function rightsOf(subject: Subject, namespace?: string): Promise<Record<string, string>> {
  const where = namespace === undefined ? {} : { namespace };
  return {
    ...(await authorizer.rightsOf(subject, { resources: ESCALATED, verbs: ESCALATIONS, ...where })),
    ...(await authorizer.rightsOf(subject, { resources: RESOURCES, verbs: VERBS, ...where })),
  };
}

const each = (kinds: readonly string[], verbs: string, subresource = '') =>
  Object.fromEntries(kinds.map(kind => [`${kind}.sluice.dev${subresource}`, verbs]));

const TENANT_KINDS = OURS.slice(2);

describe('the controller', () => {
  const everywhere = {
    ...each(OURS, READ),
    ...each(OURS, 'patch', '/status'),
    ...each(['accounts', 'workspaces', 'catalogstreams', 'packages', 'subscriptions'], `${READ} patch`),
    ...each(['activations'], `${READ} delete`),
    namespaces: `${READ} create`,
    secrets: `${READ} create patch`,
    events: 'create patch',
  };

  it('has exactly these permissions in every namespace', async () => {
    expect(await rightsOf(serviceAccount('sluice-controller'))).toEqual(everywhere);
    expect(await rightsOf(serviceAccount('sluice-controller'), OWN)).toEqual(everywhere);
  });

  it('can only read the CustomResourceDefinitions of Sluice', async () => {
    const may = (verb: string, name: string) =>
      authorizer.may(serviceAccount('sluice-controller'), {
        verb,
        resource: 'customresourcedefinitions.apiextensions.k8s.io',
        name,
      });
    for (const plural of OURS) expect(await may('get', `${plural}.sluice.dev`)).toBe(true);
    expect(await may('get', 'certificates.cert-manager.io')).toBe(false);
    expect(await may('patch', 'accounts.sluice.dev')).toBe(false);
  });

  it('can write one Lease in its own namespace, and list all Leases with the same name', async () => {
    const leases = 'leases.coordination.k8s.io';
    const rights = await rightsOf(serviceAccount('sluice-controller'), 'sluice-system');
    expect(rights).toEqual({ ...everywhere, [leases]: 'create' });
    const mayHave = (name: string, namespace?: string) =>
      Promise.all(
        VERBS.map(verb =>
          authorizer.may(serviceAccount('sluice-controller'), {
            verb,
            resource: leases,
            ...(namespace === undefined ? {} : { namespace }),
            name,
          }),
        ),
      ).then(allowed => VERBS.filter((_, index) => allowed[index]));
    expect(await mayHave('sluice-controller', 'sluice-system')).toEqual(['get', 'list', 'create', 'update']);
    expect(await mayHave('another', 'sluice-system')).toEqual(['create']);
    expect(await mayHave('sluice-controller')).toEqual(['list']);
    expect(await mayHave('another')).toEqual([]);
  });
});

it('the facade can only write the kinds, and no statuses, Secrets, or namespaces', async () => {
  const everywhere = {
    ...each(OURS, `${READ} create patch`),
    ...each(['blocks', 'subscriptions'], `${READ} create patch delete`),
  };
  for (const namespace of [undefined, OWN, 'sluice-system']) {
    expect(await rightsOf(serviceAccount('sluice-facade'), namespace)).toEqual(everywhere);
  }
});

describe.each(['sluice-ingress', 'sluice-dispatcher'])('%s', name => {
  it('has no permissions, and its pods do not receive a token', async () => {
    for (const namespace of [undefined, OWN, 'sluice-system']) {
      expect(await rightsOf(serviceAccount(name), namespace)).toEqual({});
    }
    const mounted = ['-n', 'sluice-system', '-o', 'jsonpath={.automountServiceAccountToken}'];
    expect(await succeed(['get', 'serviceaccount', name, ...mounted])).toBe('false');
  });
});

describe('sluice-tenant-edit', () => {
  it('can do everything with the kinds in its namespace (except for statuses), and nothing with Secrets', async () => {
    const rights = { ...each(TENANT_KINDS, ALL), events: READ };
    expect(await rightsOf({ user: EDITOR }, OWN)).toEqual(rights);
  });

  it('has no permissions in other namespaces, or for cluster-scoped kinds', async () => {
    expect(await rightsOf({ user: EDITOR }, OTHER)).toEqual({});
    expect(await rightsOf({ user: EDITOR })).toEqual({});
  });

  it('applies to kubectl', async () => {
    const stream = (namespace: string) => ({
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'CatalogStream',
      metadata: { name: 'orders', namespace },
      spec: {},
    });
    const apply = (namespace: string, ...args: string[]) =>
      kubectl(['apply', '--server-side', `--as=${EDITOR}`, ...args, '-f', '-'], {
        stdin: JSON.stringify(stream(namespace)),
      });
    expect(await apply(OWN)).toMatchObject({ code: 0 });
    expect((await apply(OTHER)).stderr).toContain(`cannot patch resource "catalogstreams"`);
    expect((await apply(OWN, '--subresource=status')).stderr).toContain(
      'cannot patch resource "catalogstreams/status"',
    );
    expect(await kubectl(['get', 'waas', '-n', OWN, `--as=${EDITOR}`])).toMatchObject({ code: 0, stderr: '' });
    expect((await kubectl(['get', 'waas-admin', `--as=${EDITOR}`])).stderr).toContain(
      'cannot list resource "accounts"',
    );
  });
});

describe('sluice-tenant-secrets', () => {
  it('can do everything with the Secrets in its namespace, and nothing else', async () => {
    expect(await rightsOf({ user: KEEPER }, OWN)).toEqual({ secrets: ALL });
    expect(await rightsOf({ user: KEEPER }, OTHER)).toEqual({});
    expect(await rightsOf({ user: KEEPER })).toEqual({});
  });
});

describe('sluice-tenant-view', () => {
  it('can read its namespace, except for Integrations and Secrets', async () => {
    const readable = TENANT_KINDS.filter(plural => plural !== 'integrations');
    expect(await rightsOf({ user: VIEWER }, OWN)).toEqual({ ...each(readable, READ), events: READ });
  });

  it('has no permissions in other namespaces', async () => {
    expect(await rightsOf({ user: VIEWER }, OTHER)).toEqual({});
    expect(await rightsOf({ user: VIEWER })).toEqual({});
  });

  it('can read its namespace with kubectl, and nothing else', async () => {
    const stream = { apiVersion: 'sluice.dev/v1alpha1', kind: 'CatalogStream', metadata: { name: 'seen' }, spec: {} };
    const stored = await kubectl(['apply', '--server-side', '-n', OWN, '-f', '-'], { stdin: JSON.stringify(stream) });
    expect(stored.code).toBe(0);
    const { stdout, stderr } = await kubectl(['get', 'waas', '-n', OWN, `--as=${VIEWER}`]);
    expect(stdout).toContain('catalogstream.sluice.dev/seen');
    expect(stderr).toContain('cannot list resource "integrations"');
  });
});

describe('sluice-admin', () => {
  it('can do everything with workspaces and accounts and bind roles, and nothing with objects of tenants', async () => {
    const rights = {
      ...each(['accounts', 'workspaces'], ALL),
      events: READ,
      [`rolebindings.${RBAC}`]: `${READ} create update patch`,
    };
    expect(await rightsOf({ user: PLATFORM })).toEqual(rights);
    expect(await rightsOf({ user: PLATFORM }, OWN)).toEqual(rights);
  });

  it('can only bind the three roles of tenants', async () => {
    const bind = (role: string) =>
      kubectl(['create', 'rolebinding', role, `--clusterrole=${role}`, '--user=new', '-n', OTHER, `--as=${PLATFORM}`]);
    for (const role of ['sluice-tenant-edit', 'sluice-tenant-secrets', 'sluice-tenant-view']) {
      expect(await bind(role)).toMatchObject({ code: 0 });
    }
    for (const role of ['cluster-admin', 'system:auth-delegator', 'sluice-facade', 'sluice-controller']) {
      expect((await bind(role)).stderr).toContain('attempting to grant RBAC permissions not currently held');
    }
    const patch = (subjects: string) => ['--type=merge', `--patch={"subjects":${subjects}}`, `--as=${PLATFORM}`];
    const taken = ['patch', 'rolebinding', 'sluice-tenant-edit', '-n', OTHER, ...patch('[]')];
    expect(await kubectl(taken)).toMatchObject({ code: 0 });
  });

  it('can only create workspaces with a prefix, with the policy in docs/permissions.md', async () => {
    const page = await readFile(join(import.meta.dirname, '..', '..', '..', 'docs', 'permissions.md'), 'utf8');
    const [, policy = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
    const create = (name: string, ...as: string[]) => {
      const workspace = { apiVersion: 'sluice.dev/v1alpha1', kind: 'Workspace', metadata: { name } };
      const stdin = JSON.stringify({ ...workspace, spec: { account: 'acme' } });
      return kubectl(['create', '-f', '-', '--dry-run=server', ...as], { stdin });
    };
    expect(await create('redis-operator', `--as=${PLATFORM}`)).toMatchObject({ code: 0 });
    try {
      expect(await kubectl(['apply', '-f', '-'], { stdin: policy })).toMatchObject({ code: 0 });
      const isRefused = async () => (await create('redis-operator', `--as=${PLATFORM}`)).stderr;
      await expect
        .poll(isRefused, { timeout: 45_000, interval: 250 })
        .toContain('the name of a Workspace must start with ws-');
      expect(await create('ws-acme', `--as=${PLATFORM}`)).toMatchObject({ code: 0 });
      expect(await create('redis-operator')).toMatchObject({ code: 0 });
    } finally {
      await kubectl(['delete', '-f', '-'], { stdin: policy });
    }
  });
});
