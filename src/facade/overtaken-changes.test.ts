import { expect, test } from 'vitest';
import { createKeyRing } from '../core/delivery/key-ring.ts';
import { PACKAGE_ROUTES } from './resources/packages/packages.ts';
import { STREAM_ROUTES } from './resources/streams/streams.ts';
import { SIGNING_SECRET_ROUTES } from './resources/subscriptions/signing-secrets.ts';
import { SUBSCRIPTION_ROUTES } from './resources/subscriptions/subscriptions.ts';

interface Stored {
  readonly metadata: object;
  readonly spec: object;
}

const ROUTES = [...STREAM_ROUTES, ...PACKAGE_ROUTES, ...SUBSCRIPTION_ROUTES, ...SIGNING_SECRET_ROUTES];
const metadata = { name: 'orders', namespace: 'shop', uid: 'u', resourceVersion: '1' };
const KEYS = createKeyRing([{ name: 'root.key', secret: new Uint8Array(32).fill(1) }]);
const grant = { metadata: { name: 'ada', namespace: 'shop' }, spec: { workspace: 'ada' } };

/** A facade in which another call changes each object to `later` before the controller has applied it. */
function overtaken(before: Stored | undefined, later: object, status: object = {}) {
  const merged = (object: Stored, spec: object): Stored => ({ ...object, spec: { ...object.spec, ...spec } });
  return {
    wallMs: () => 0,
    headerSeals: {},
    keys: KEYS,
    caches: {
      by: () => [],
      find: async () => before,
      get: () => undefined,
      live: async (kind: string) => (kind === 'Integration' ? grant : before),
    },
    writer: {
      edit: (attempt: () => Promise<unknown>) => attempt(),
      apply: async (_kind: string, _name: object, { spec }: { spec: object }) =>
        merged(before ?? { metadata, spec: {} }, spec),
      waitFor: async (_kind: string, applied: Stored) => ({ ...merged(applied, later), ...status }),
    },
  };
}

async function call(operation: string, facade: object, body: object): Promise<Record<string, unknown>> {
  const route = ROUTES.find(each => each.operation === operation);
  if (route === undefined) throw new Error(`no route is called ${operation}`);
  const integration = { producer: 'shop', name: 'ada', object: grant, recipient: { name: 'ada' } };
  const request = { tenant: { name: 'shop', publicId: 'ten_1' }, integration, params: {}, body };
  const answer = await route.handle(facade as never, request as never);
  return answer.body as Record<string, unknown>;
}

test.each([true, false])('a stream is returned with its own status if a later call changes it: %s', async isPublic => {
  const facade = overtaken(undefined, { public: !isPublic });
  const { status } = await call('applyStream', facade, { name: 'Orders', isPublic });
  expect(status).toBe(isPublic ? 'Published' : 'Deprecated');
});

test('a package is returned with its own name if a later call renames it', async () => {
  const made = await call('createPackage', overtaken(undefined, { displayName: 'Other' }), { name: 'Orders' });
  expect(made['name']).toBe('Orders');
  const facade = overtaken({ metadata, spec: { name: 'Orders' } }, { displayName: 'Other', description: 'other' });
  const renamed = await call('updatePackage', facade, { name: 'Mine', description: 'mine' });
  expect(renamed).toMatchObject({ name: 'Mine', description: 'mine' });
});

test.each<[string, object, boolean]>([
  ['pauses it differently', { suspended: false }, true],
  ['gives it an endpoint', { endpoint: { url: 'https://other.example/' } }, true],
  ['changes nothing of it', {}, false],
])('a change of a subscription is refused as superseded if a later call %s: %s', async (_what, later, refused) => {
  const spec = { producer: 'shop', integration: 'ada', stream: 'orders', ordering: 'None' };
  const facade = overtaken({ metadata: { ...metadata, namespace: 'ada' }, spec }, later);
  const answer = call('changeSubscription', facade, { suspended: true });
  if (refused) await expect(answer).rejects.toMatchObject({ code: 'superseded' });
  else expect((await answer)['suspended']).toBe(true);
});

test.each<[string, number, number, boolean]>([
  ['rotates it again', 3, 3, true],
  ['asks for another rotation that is not in use yet', 3, 2, false],
  ['changes nothing of it', 2, 2, false],
])(
  'a rotation of a secret is refused as superseded if a later call %s: %s',
  async (_what, wanted, recorded, refused) => {
    const spec = { producer: 'shop', integration: 'ada', stream: 'orders', endpoint: { secretVersion: 1 } };
    const signing = { salt: 'a-salt', key: KEYS.first().id };
    const before = {
      metadata: { ...metadata, namespace: 'ada' },
      spec,
      status: { signing: { ...signing, version: 1 } },
    };
    const later = { endpoint: { secretVersion: wanted } };
    const facade = overtaken(before, later, { status: { signing: { ...signing, version: recorded } } });
    const answer = call('rotateSigningSecret', facade, { secretVersion: 2 });
    if (refused) await expect(answer).rejects.toMatchObject({ code: 'superseded' });
    else expect((await answer)['secretVersion']).toBe(2);
  },
);
