import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { KubeError } from '../../kube/kube-error.ts';
import type { NamespaceAccess } from '../../kube/namespace-watch.ts';
import type { NamespacedViews } from '../../kube/namespaced-views.ts';
import { createStore } from '../../kube/store.ts';
import type { Caches } from '../caches/caches.ts';
import type { SecretObject } from '../caches/secret-caches.ts';
import { SecretsUnreadableError } from '../engine/outcome.ts';
import { createSecretAccess } from './secret-access.ts';

const USER = 'system:serviceaccount:sluice-system:sluice-controller';
const ROLE = 'sluice-workspace-secrets';
const REFUSED = new KubeError({ call: 'PATCH rolebindings', status: 403, reason: 'Forbidden', detail: 'may not bind' });

/** Starts with the workspace `acme`, whose namespace returns the responses specified by `access`. */
function start(access: NamespaceAccess) {
  const state = {
    access,
    grants: true,
    isSilent: false,
    refusal: undefined as Error | undefined,
    failure: undefined as Error | undefined,
  };
  const bound: object[] = [];
  const asked: string[] = [];
  const handlers = new Set<(namespace: string) => void>();
  const turn = (to: NamespaceAccess) => {
    state.access = to;
    for (const handler of handlers) handler('acme');
  };
  const views = {
    access: () => state.access,
    wasRead: () => state.access === 'readable',
    isCurrent: () => state.access === 'readable' && state.failure === undefined,
    failure: () => state.failure,
    onAccess: (handler: (namespace: string) => void) => {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    open: (namespace: string) => asked.push(`open ${namespace}`),
    close: (namespace: string) => asked.push(`close ${namespace}`),
    retry: async () => {
      if (state.grants) turn('readable');
    },
  } as unknown as NamespacedViews<SecretObject>;
  const client = {
    create: async () => ({ status: { userInfo: { username: USER } } }),
    apply: async (_resource: object, name: object, body: object) => {
      if (state.isSilent) await new Promise(() => {});
      if (state.refusal !== undefined) throw state.refusal;
      bound.push({ ...name, ...body });
    },
    remove: async (_resource: object, { name }: { name: string }) => {
      asked.push(`unbind ${name}`);
      if (state.refusal !== undefined) throw state.refusal;
      return true;
    },
  };
  const clock = createManualClock();
  const watched = { store: createStore(), subscribe: () => () => {} };
  const subscriptions = createStore<object>({ namespace: () => ['acme'] });
  const caches = {
    Workspace: watched,
    namespaces: watched,
    ingressKeys: watched,
    Subscription: { store: subscriptions },
  };
  const deps = { client, views, caches, role: ROLE, clock } as unknown as Parameters<typeof createSecretAccess>[0] & {
    readonly caches: Pick<Caches, 'Workspace'>;
  };
  const secretAccess = createSecretAccess(deps);
  turn(access);
  return { state, bound, asked, clock, turn, subscriptions, secretAccess };
}

test('only binds the role to its own service account if access is refused', async () => {
  const { bound, secretAccess, state } = start('forbidden');
  await secretAccess.ensure('acme');
  expect(bound).toEqual([
    {
      namespace: 'acme',
      name: ROLE,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: ROLE },
      subjects: [{ kind: 'ServiceAccount', namespace: 'sluice-system', name: 'sluice-controller' }],
    },
  ]);
  expect(state.access).toBe('readable');
  await secretAccess.ensure('acme');
  expect(bound).toHaveLength(1);
});

test('a binding has 5 s to take effect before the refusal is reported', async () => {
  const { clock, secretAccess, state } = start('forbidden');
  state.grants = false;
  await expect(secretAccess.ensure('acme')).rejects.toMatchObject({ reason: 'CacheBehind' });
  expect(() => secretAccess.assertRead('acme')).toThrow(/CacheBehind/);
  await clock.advance(5_000);
  await expect(secretAccess.ensure('acme')).rejects.toThrow(SecretsUnreadableError);
  expect(() => secretAccess.assertRead('acme')).toThrow(`binds the ClusterRole ${ROLE} to ${USER}`);
});

test('a controller that is not allowed to bind immediately reports which RoleBinding to add', async () => {
  const { secretAccess, state, asked } = start('forbidden');
  state.refusal = REFUSED;
  await expect(secretAccess.ensure('acme')).rejects.toThrow(
    /cannot read the Secrets of namespace acme: .*may not bind\. Add a RoleBinding to this namespace/,
  );
  // The administrator has created the binding, and then removes it.
  await secretAccess.revoke('acme');
  expect(asked).toEqual(['close acme', `unbind ${ROLE}`]);
});

test('routes are only held back until the Secrets have been read', () => {
  for (const access of ['closed', 'readable'] as const) start(access).secretAccess.assertRead('acme');
  expect(() => start('pending').secretAccess.assertRead('acme')).toThrow(/CacheBehind/);
});

test.each(['pending', 'readable'] as const)(
  'if the API server fails to list the Secrets, this is reported (%s)',
  access => {
    const { secretAccess, state } = start(access);
    state.failure = new KubeError({ call: 'GET secrets', status: 500, reason: 'InternalError', detail: 'broken' });
    expect(() => secretAccess.assertRead('acme')).toThrow(
      expect.objectContaining({
        name: 'SecretsUnreadableError',
        reason: 'ReconcileFailed',
        message:
          'Sluice cannot read the Secrets of namespace acme: GET secrets: 500 InternalError: broken. It keeps trying',
      }),
    );
  },
);

test('a new leader binds all roles for which access is refused, and never fails', async () => {
  const { secretAccess, state, bound } = start('forbidden');
  await secretAccess.ensureAll();
  expect([bound.length, state.access]).toEqual([1, 'readable']);
  const refused = start('forbidden');
  refused.state.refusal = REFUSED;
  await refused.secretAccess.ensureAll();
  expect(refused.state.access).toBe('forbidden');
});

test('a new leader does not wait for long if the API server does not respond', async () => {
  const { secretAccess, state, clock } = start('forbidden');
  state.isSilent = true;
  let isDone = false;
  void secretAccess.ensureAll().then(() => (isDone = true));
  await clock.advance(9_999);
  expect(isDone).toBe(false);
  await clock.advance(1);
  expect([isDone, clock.pendingTimers()]).toEqual([true, 0]);
});

test('a namespace that has never been read says why', () => {
  for (const access of ['pending', 'readable'] as const) {
    const { secretAccess, state } = start(access);
    expect(secretAccess.unread('acme')).toEqual(access === 'pending' ? {} : undefined);
    state.failure = new KubeError({ call: 'GET secrets', status: 500, reason: 'InternalError', detail: 'broken' });
    expect(secretAccess.unread('acme')?.why).toEqual(
      access === 'pending'
        ? 'Sluice cannot read the Secrets of namespace acme: GET secrets: 500 InternalError: broken. It keeps trying'
        : undefined,
    );
  }
  expect(start('forbidden').secretAccess.unread('acme')?.why).toBe(
    `Sluice cannot read the Secrets of namespace acme. Add a RoleBinding to this namespace that binds the ClusterRole ${ROLE} to the user of the controller`,
  );
  expect(start('closed').secretAccess.unread('acme')?.why).toBe(
    'Sluice only reads the Secrets of workspaces, and namespace acme does not belong to a Workspace',
  );
});

test('an access that changes enqueues the producers whose deliveries need these Secrets', () => {
  const { secretAccess, subscriptions, turn } = start('pending');
  const added: string[] = [];
  for (const source of secretAccess.producers) source.subscribe(name => added.push(name));
  const endpoint = { headers: [{ name: 'x-a', valueFrom: { secretKeyRef: { name: 'token', key: 'a' } } }] };
  const put = (name: string, spec: object) => subscriptions.set(name, { metadata: { namespace: 'acme' }, spec });
  put('orders', { producer: 'globex', endpoint });
  put('returns', { producer: 'globex', endpoint });
  put('plain', { producer: 'initech' });
  turn('readable');
  expect(added).toEqual(['globex']);
});
