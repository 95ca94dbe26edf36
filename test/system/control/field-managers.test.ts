import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KindName } from '../../../src/api/kinds/kinds.ts';
import { publicId } from '../../../src/core/ids/ids.ts';
import { activationObjectName, blockObjectName, subscriptionObjectName } from '../../../src/core/ids/object-names.ts';
import { connect, type KubeClient } from '../../../src/kube/client.ts';
import type { KubeError } from '../../../src/kube/kube-error.ts';
import { resourceOf } from '../../../src/kube/resource.ts';
import { createRandom } from '../../support/random.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from '../rest/support/facade-world.ts';
import type { Problem, Reply, RestClient } from '../support/rest-client.ts';
import { apply, integration, stream, waitForAll } from '../support/world.ts';
import { type Managed, ownersOf, trespasses } from './field-ownership.ts';

const SEED = Number(process.env['SEED'] || 20_261_121);
const WRITES = 60;
const ARGOCD = 'argocd';
const isRest = (manager: string) => manager.startsWith('sluice-facade');
const isArgo = (manager: string) => manager === ARGOCD;

/** Returns one of these values, or undefined if it is included. */
type Choose = <T>(...from: readonly T[]) => T;

/** A call, and the spec fields it guarantees on success. Undefined means that the field is absent. */
interface Call {
  readonly what: string;
  readonly send: () => Promise<Reply>;
  readonly promises: Readonly<Record<string, unknown>>;
  /** On success, the object no longer exists. */
  readonly removes?: boolean;
}

/** An object written by both managers, and how it is written. */
interface Shared {
  readonly kind: KindName;
  readonly name: string;
  readonly namespace?: string;
  /** @param spec the current spec, or undefined if the object does not exist */
  readonly rest: (choose: Choose, spec: Readonly<Record<string, unknown>> | undefined) => Call;
  /** The fields specified by argocd. Undefined fields are not specified. */
  readonly argo: (choose: Choose) => Readonly<Record<string, unknown>>;
}

let world: FacadeWorld;
let client: KubeClient;
let owner: RestClient;
let ada: RestClient;
let shop: string;

beforeAll(async () => {
  world = await openFacadeWorld();
  const sluice = await world.start();
  ({ shop = '' } = await makeTenants(world, { shop: 'owner', ada: 'ada' }));
  const { cluster } = world.installation;
  client = connect({ kubeconfig: cluster.kubeconfig });
  await apply(cluster, [...['carts', 'stock', 'fed'].map(name => stream('shop', name)), integration('shop', 'ada')]);
  await waitForAll(cluster, 'catalogstream', 'shop');
  await waitForAll(cluster, 'integration', 'shop');
  [owner, ada] = await Promise.all([world.as(sluice, 'owner'), world.as(sluice, 'ada')]);
});

afterAll(async () => {
  await client?.close();
  await world?.stop();
});

const cat = (name: string) => publicId('CatalogStream', 'shop', name);
const grantee = publicId('Integration', 'shop', 'ada');
const mixed = () => `/waas/producer/${shop}/packages/${publicId('Package', 'shop', 'mixed')}`;
const blocked = () => `/waas/producer/${shop}/integrations/${grantee}/blocks/streams/${cat('stock')}`;
const orNone = (values: readonly string[]) => (values.length === 0 ? undefined : values);
const SUBSCRIPTION = subscriptionObjectName('shop', 'ada', 'fed');
const URLS = ['https://a.example/hook', 'https://b.example/hook'] as const;
const LISTS: readonly (readonly string[] | undefined)[] = [['carts'], ['stock'], ['carts', 'stock'], undefined];
const TEXTS = ['one', 'two', undefined] as const;
const sha256Of = (digit: string) => digit.repeat(64);

const SHARED: readonly Shared[] = [
  {
    kind: 'CatalogStream',
    namespace: 'shop',
    name: 'orders',
    rest: choose => {
      const description = choose(...TEXTS);
      const eventTypes = choose(['a'], ['a', 'b'], []);
      const payloadSchema = choose(...TEXTS);
      const isPublic = choose(true, false, undefined);
      const body = { producerTenantPublicId: shop, name: 'orders', description, eventTypes, payloadSchema, isPublic };
      return {
        what: 'PUT',
        send: () => owner.put('/waas/streams', body),
        promises: { description, eventTypes: orNone(eventTypes), payloadSchema, public: isPublic ?? false },
      };
    },
    argo: choose => ({
      description: choose(...TEXTS),
      eventTypes: choose(['a'], ['b'], undefined),
      payloadSchema: choose(...TEXTS),
      public: choose(true, false, undefined),
      retention: choose('2h', '3h', undefined),
    }),
  },
  {
    kind: 'Package',
    namespace: 'shop',
    name: 'mixed',
    rest: (choose, spec) => {
      if (spec === undefined) {
        const send = () => owner.post(`/waas/producer/${shop}/packages`, { name: 'mixed' });
        return { what: 'create', send, promises: { name: 'mixed' } };
      }
      const streams = (spec['streams'] as readonly string[] | undefined) ?? [];
      const member = choose('carts', 'stock');
      const description = choose(...TEXTS);
      const displayName = choose('Mixed', 'Much mixed');
      return choose<Call>(
        {
          what: 'rename',
          send: () => owner.put(mixed(), { name: displayName, description }),
          promises: { displayName, description },
        },
        {
          what: `add ${member}`,
          send: () => owner.post(`${mixed()}/streams`, { catalogEntryPublicId: cat(member) }),
          promises: { streams: streams.includes(member) ? streams : [...streams, member].toSorted() },
        },
        {
          what: `take ${member}`,
          send: () => owner.remove(`${mixed()}/streams/${cat(member)}`),
          promises: streams.includes(member) ? { streams: streams.filter(name => name !== member) } : {},
        },
      );
    },
    argo: choose => ({
      displayName: choose('Mixed', 'Of Git', undefined),
      description: choose(...TEXTS),
      streams: choose(...LISTS),
    }),
  },
  {
    kind: 'Activation',
    namespace: 'shop',
    name: activationObjectName('shop', 'ada', 'key'),
    rest: (choose, spec) => {
      const body = { producerTenantPublicId: shop, groupKey: 'key', integrationPublicId: grantee };
      const pair = { integration: 'ada', groupKey: 'key' };
      return choose<Call>(
        {
          what: 'activate',
          send: () => owner.post('/waas/activations', body),
          promises: { ...pair, revoked: [false, undefined] },
        },
        {
          what: 'deactivate',
          send: () => owner.remove('/waas/activations', body),
          promises: spec === undefined ? {} : { ...pair, revoked: true },
        },
      );
    },
    argo: choose => ({ integration: 'ada', groupKey: 'key', revoked: choose(true, false, undefined) }),
  },
  {
    kind: 'Block',
    namespace: 'shop',
    name: blockObjectName('shop', 'ada', 'CatalogStream', 'stock'),
    rest: choose =>
      choose<Call>(
        {
          what: 'block',
          send: () => owner.post(blocked()),
          promises: { integration: 'ada', target: { kind: 'CatalogStream', name: 'stock' } },
        },
        { what: 'unblock', send: () => owner.remove(blocked()), promises: {}, removes: true },
      ),
    argo: choose => ({
      integration: 'ada',
      target: { kind: 'CatalogStream', name: 'stock' },
      onUnblock: choose('Continue', 'SkipToNow', undefined),
    }),
  },
  {
    kind: 'Subscription',
    namespace: 'ada',
    name: SUBSCRIPTION,
    rest: (choose, spec) => {
      const path = `/waas/integrations/${grantee}/subscriptions`;
      if (spec === undefined) {
        return { what: 'subscribe', send: () => ada.post(path, { catalogEntryPublicId: cat('fed') }), promises: {} };
      }
      const url = choose(...URLS, undefined);
      const timeoutSeconds = choose(5, 6, undefined);
      const suspended = choose(true, undefined);
      const endpoint =
        url === undefined ? undefined : { url, ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }) };
      return {
        what: `PUT ${JSON.stringify({ endpoint: endpoint ?? null, suspended })}`,
        send: () =>
          ada.put(`${path}/${publicId('Subscription', 'ada', SUBSCRIPTION)}`, {
            endpoint: endpoint ?? null,
            suspended,
          }),
        promises: { endpoint, suspended },
      };
    },
    argo: choose => ({
      producer: 'shop',
      integration: 'ada',
      stream: 'fed',
      deletionPolicy: choose('Retain', 'Delete', undefined),
      suspended: choose(true, false, undefined),
      endpoint: choose(
        undefined,
        { url: choose(...URLS) },
        { url: choose(...URLS), maxPerSecond: choose(7, 8) },
        { url: choose(...URLS), timeoutSeconds: choose(5, 7) },
      ),
    }),
  },
  {
    kind: 'Workspace',
    name: 'shop',
    rest: (choose, spec) => {
      const keys = (spec?.['ingressKeys'] ?? []) as readonly { readonly id: string }[];
      const path = `/waas/producer/${shop}/ingress-keys`;
      const free = ['a', 'b', 'c', 'd'].filter(id => !keys.some(key => key.id === id));
      const id = choose('a', 'b', 'c', 'd');
      const [next] = free;
      return choose<Call>(
        {
          what: 'enable',
          send: () => owner.post('/waas/enable-producer', { producerTenantPublicId: shop }),
          promises: { producer: true },
        },
        { what: `drop ${id}`, send: () => owner.remove(`${path}/${id}`), promises: {} },
        next === undefined
          ? { what: 'drop a', send: () => owner.remove(`${path}/a`), promises: {} }
          : { what: `make ${next}`, send: () => owner.post(path, { id: next }), promises: {} },
      );
    },
    argo: choose => ({
      producer: choose(true, false, undefined),
      ingressKeys: choose(
        undefined,
        [{ id: 'a', sha256: sha256Of('a') }],
        [
          { id: 'b', sha256: sha256Of('b') },
          { id: 'c', sha256: sha256Of(choose('c', 'd')) },
        ],
      ),
    }),
  },
];

const without = (spec: object) => Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined));

/** `revoked` of an activation that is not revoked is either false or absent. */
function isAsPromised(field: string, is: unknown, promised: unknown): boolean {
  if (field === 'revoked' && Array.isArray(promised)) return promised.includes(is);
  return isDeepStrictEqual(is, promised);
}

/** Returns whether two objects have the same spec and the same managers. */
const isSame = (a: Managed | undefined, b: Managed | undefined) =>
  isDeepStrictEqual(a?.spec, b?.spec) && trespasses(a, b, () => false).length === 0;

/** Returns what is wrong with a refusal. REST must mention argocd and a field owned by argocd. */
function wrongInRefusal({ body }: Problem, before: Managed | undefined): string[] {
  if (body.code === 'managed_elsewhere')
    return ownersOf(before as Managed, 'target').includes(ARGOCD) ? [] : ['not its'];
  if (body.code !== 'field_managed') return [`refused with ${body.code}: ${body.detail}`];
  return (body.errors ?? []).flatMap(({ pointer = '', detail }) => {
    const field = /^\/spec\/(\w+)/.exec(pointer)?.[1] ?? '';
    const theirs = before !== undefined && ownersOf(before, field).includes(ARGOCD);
    if (!theirs) return [`${field} is not argocd's`];
    return detail.includes(`${field}`) && detail.includes(ARGOCD) ? [] : [`does not name it: ${detail}`];
  });
}

test.each(SHARED.map(shared => [shared.kind, shared] as const))(
  "REST and argocd can write one %s in turn without taking over each other's fields",
  async (kind, { name, namespace, rest, argo }) => {
    const random = createRandom(SEED);
    const choose: Choose = (...from) => from[Math.floor(random() * from.length)] as never;
    const at = namespace === undefined ? { name } : { name, namespace };
    const look = () => client.get<Managed>(resourceOf(kind), at);
    const counts: Record<string, number> = {};
    const count = (what: string) => (counts[what] = (counts[what] ?? 0) + 1);
    const history: string[] = [];
    for (let n = 0; n < WRITES; n++) {
      const before = await look();
      const faults: string[] = [];
      if (n % 2 === 0) {
        const { what, send, promises, removes } = rest(choose, before?.spec);
        const reply = (await send()) as Problem;
        const after = await look();
        count(`rest ${reply.status}`);
        history.push(`${n}. REST ${what}: ${reply.status} ${reply.body?.detail ?? ''}`);
        faults.push(...trespasses(before, after, isRest));
        if ([200, 201, 204].includes(reply.status)) {
          for (const [field, value] of Object.entries(promises)) {
            if (!isAsPromised(field, after?.spec[field], value)) {
              faults.push(`${field} is ${JSON.stringify(after?.spec[field])}, promised was ${JSON.stringify(value)}`);
            }
          }
          if (removes && after !== undefined) faults.push('it is still there');
        } else if (reply.status === 409) {
          faults.push(...wrongInRefusal(reply, before));
          if (!isSame(before, after)) faults.push('refused, and written all the same');
        } else faults.push(`answered ${JSON.stringify(reply.body)}`);
      } else {
        const spec = without(argo(choose));
        const refusal = await client.apply(resourceOf(kind), at, { spec }, { fieldManager: ARGOCD }).then(
          () => undefined,
          (error: unknown) => error as KubeError,
        );
        const after = await look();
        count(`argocd ${refusal === undefined ? 'applied' : 'refused'}`);
        history.push(`${n}. argocd ${JSON.stringify(spec)}: ${refusal?.message.slice(0, 200) ?? 'applied'}`);
        faults.push(...trespasses(before, after, isArgo));
        if (refusal === undefined) {
          for (const [field, value] of Object.entries(spec)) {
            if (!isDeepStrictEqual(ownersOf(after as Managed, field).includes(ARGOCD), true))
              faults.push(`${field} is not its`);
            if (field !== 'endpoint' && field !== 'ingressKeys' && !isDeepStrictEqual(after?.spec[field], value)) {
              faults.push(`${field} is ${JSON.stringify(after?.spec[field])}`);
            }
          }
        } else {
          if (!refusal.conflictManagers?.some(isRest)) faults.push(`refused for another reason: ${String(refusal)}`);
          if (!isSame(before, after)) faults.push('refused, and written all the same');
        }
      }
      expect(faults, `SEED=${SEED}, ${JSON.stringify(before?.spec)}\n${history.slice(-6).join('\n')}`).toEqual([]);
    }
    console.log(`${kind}: SEED=${SEED} ${JSON.stringify(counts)}`);
    // Both managers were accepted, and REST was refused. Otherwise, the test would not check anything.
    expect(Object.keys(counts)).toEqual(expect.arrayContaining(['argocd applied', 'rest 409']));
    expect((counts['rest 200'] ?? 0) + (counts['rest 201'] ?? 0) + (counts['rest 204'] ?? 0)).toBeGreaterThan(0);
  },
);
