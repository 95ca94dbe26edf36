import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KindName } from '../../../src/api/kinds/kinds.ts';
import { resourceOf } from '../../../src/kube/resource.ts';
import { eventually } from '../support/deadline.ts';
import { endpointOf, feed, feedOf, INTEGRATION, PACKAGE } from '../support/twins.ts';
import {
  activation,
  activationName,
  block,
  integration,
  kubectl,
  type Manifest,
  pkg,
  stream,
  subscription,
  tenant,
} from '../support/world.ts';
import { EVE, type Intrusion, KEY, openIntrusion, type Said } from './intrusion.ts';

let world: Intrusion;

beforeAll(async () => {
  world = await openIntrusion();
});

afterAll(() => world?.close());

describe('a Subscription without a grant', () => {
  /** The producer, integration, and stream, by the name of the probe. */
  const PROBES: Readonly<Record<string, readonly [string, string, string]>> = {
    'missing-integration': ['north', 'nobody', 'orders'],
    'foreign-integration': ['north', INTEGRATION, 'orders'],
    'revoked-integration': ['north', 'ended', 'orders'],
    'declined-integration': ['north', 'declined', 'orders'],
    'pending-integration': ['north', 'invited', 'orders'],
    'missing-stream': ['north', INTEGRATION, 'nothing'],
    'deprecated-stream': ['north', INTEGRATION, 'old'],
    'blocked-stream': ['north', INTEGRATION, 'refunds'],
    'no-producer': ['anna', INTEGRATION, 'orders'],
    'missing-producer': ['nowhere', INTEGRATION, 'orders'],
  };
  const probe = (name: string, more: object = {}): Manifest => {
    const [producer, to, from] = PROBES[name] as readonly [string, string, string];
    const manifest = subscription(
      'eve',
      producer,
      from,
      { url: world.receiver.urlOf('stolen') },
      { integration: to, ...more },
    );
    return { ...manifest, metadata: { ...manifest.metadata, name } };
  };
  const waiting = (name: string): Said => ['Subscription', name, 'eve', 'Ready', 'Unknown/WaitingForGrant'];
  const isGone = (name: string) =>
    eventually(`${name} is deleted`, async () => !(await world.observer.exists('Subscription', name, 'eve')));

  it('does not give any access, and cannot distinguish missing, foreign, revoked, blocked, and deprecated objects', async () => {
    const names = Object.keys(PROBES);
    await world.expectUntouched(() => world.put(...names.map(name => probe(name))), names.map(waiting));
    const statuses = await Promise.all(
      names.map(async name => world.statusOf('Subscription', name, (PROBES[name] ?? []).slice(0, 1))),
    );
    expect(statuses[0]).toContain('WaitingForGrant');
    expect(Object.fromEntries(names.map((name, n) => [name, statuses[n]]))).toEqual(
      Object.fromEntries(names.map(name => [name, statuses[0]])),
    );
    const events = await world.observer.events();
    expect(events.filter(event => names.some(name => event.startsWith(`Subscription/${name} `)))).toEqual([]);
  });

  it('is corrected if its own status claims that it was admitted', async () => {
    const name = 'foreign-integration';
    const at = '2020-01-01T00:00:00Z';
    const forged = (type: string, reason: string) => ({
      type,
      reason,
      status: 'True',
      message: 'forged',
      lastTransitionTime: at,
      observedGeneration: 1,
    });
    const status = {
      observedGeneration: 1,
      admittedAt: at,
      conditions: [forged('Ready', 'Admitted'), forged('Live', 'Live')],
    };
    const forge = () =>
      world.client.apply(
        resourceOf('Subscription'),
        { namespace: 'eve', name },
        { status },
        {
          fieldManager: 'eve',
          force: true,
          subresource: 'status',
        },
      );
    await world.expectUntouched(forge, [waiting(name), ['Subscription', name, 'eve', 'Live', 'False/NotAdmitted']]);
  });

  it('does not leave anything behind when it is deleted, with any deletionPolicy and finalizer', async () => {
    await world.expectUntouched(async () => {
      for (const [n, name] of Object.keys(PROBES).entries()) {
        await world.put(probe(name, { deletionPolicy: n % 2 === 0 ? 'Delete' : 'Retain' }));
        await world.observer.remove('Subscription', name, 'eve');
      }
      for (const name of Object.keys(PROBES)) await isGone(name);
    });
    await world.expectUntouched(async () => {
      const held = probe('foreign-integration');
      await world.put({
        ...held,
        metadata: { ...held.metadata, finalizers: ['example.com/held'] } as Manifest['metadata'],
      });
      await world.observer.until(waiting('foreign-integration'));
      await world.observer.remove('Subscription', 'foreign-integration', 'eve');
    });
    await kubectl(world.installed.cluster, [
      'patch',
      'subscription.sluice.dev/foreign-integration',
      '-n',
      'eve',
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":[]}}',
    ]);
    await isGone('foreign-integration');
  });

  it('does not count as the older Subscription of the pair', async () => {
    const older: Manifest = {
      ...feed(EVE, 'orders', world.receiver.urlOf),
      metadata: { name: 'older', namespace: 'eve' },
    };
    await world.put({ ...older, spec: { ...(older.spec as object), producer: 'north', integration: 'late' } });
    await world.observer.until(waiting('older'));
    const granted = subscription('anna', 'north', 'invoices', undefined, { integration: 'late', stream: 'orders' });
    await world.put(integration('north', 'late', { workspace: 'anna' }), granted);
    await world.observer.until(['Subscription', granted.metadata.name, 'anna', 'Live', 'True/Live']);
    await world.observer.until(waiting('older'));
    await world.observer.remove('Subscription', 'older', 'eve');
    await isGone('older');
    await world.expectDelivery();
  });
});

describe("names in eve's own objects refer to her own namespace", () => {
  /**
   * The same request for a name that only exists in north, and for a name that does not exist. The responses look the
   * same.
   */
  async function expectAlike(
    kind: KindName,
    [a, b]: readonly [Manifest, Manifest],
    condition: readonly [string, string],
  ) {
    const named = [a, b].map(({ metadata }) => metadata.name);
    await world.expectUntouched(
      () => world.put(a, b),
      named.map(name => [kind, name, 'eve', ...condition] as const),
    );
    const words = ['only-norths', 'nobodys', 'invoices', 'nothing', 'finance', 'anna', 'nowhere'];
    const [first, second] = await Promise.all(named.map(name => world.statusOf(kind, name, words)));
    expect(first).toBe(second);
    for (const name of named) await world.observer.remove(kind, name, 'eve');
    await world.idle();
  }

  it.each<[KindName, string, readonly [Manifest, Manifest], readonly [string, string]]>([
    [
      'Integration',
      'a workspace',
      [
        integration('eve', 'reach', { workspace: 'anna' }),
        integration('eve', 'reach-nowhere', { workspace: 'nowhere' }),
      ],
      ['Admitted', 'False/WorkspaceNotAdmitting'],
    ],
    [
      'Activation',
      'an integration',
      [activation('eve', 'only-norths', KEY), activation('eve', 'nobodys', KEY)],
      ['Ready', 'Unknown/WaitingForIntegration'],
    ],
    [
      'Block',
      'an integration',
      [
        block('eve', 'a', { integration: 'only-norths', target: { kind: 'CatalogStream', name: 'orders' } }),
        block('eve', 'b', { integration: 'nobodys', target: { kind: 'CatalogStream', name: 'orders' } }),
      ],
      ['Enforced', 'Unknown/WaitingForIntegration'],
    ],
    [
      'Block',
      'a stream',
      [
        block('eve', 'a', { integration: INTEGRATION, target: { kind: 'CatalogStream', name: 'invoices' } }),
        block('eve', 'b', { integration: INTEGRATION, target: { kind: 'CatalogStream', name: 'nothing' } }),
      ],
      ['Enforced', 'Unknown/WaitingForTarget'],
    ],
    [
      'Block',
      'a package',
      [
        block('eve', 'a', { integration: INTEGRATION, target: { kind: 'Package', name: 'finance' } }),
        block('eve', 'b', { integration: INTEGRATION, target: { kind: 'Package', name: 'nothing' } }),
      ],
      ['Enforced', 'Unknown/WaitingForTarget'],
    ],
    [
      'Package',
      'a stream',
      [pkg('eve', 'a', ['invoices']), pkg('eve', 'b', ['nothing'])],
      ['StreamsResolved', 'False/StreamsMissing'],
    ],
  ])('%s: %s', (kind, _what, manifests, condition) => expectAlike(kind, manifests, condition));

  const at = (name: string, type: string, is: string, kind: KindName): Said => [kind, name, 'eve', type, is];
  const target = { kind: 'CatalogStream', name: 'orders' };

  it.each<[string, () => Promise<unknown>, Said[], (() => Promise<unknown>)?]>([
    [
      'closes the group key of the same name',
      () => world.put(activation('eve', INTEGRATION, KEY, { revoked: true })),
      [at(activationName(INTEGRATION, KEY), 'Effective', 'False/Revoked', 'Activation')],
      () => world.put(activation('eve', INTEGRATION, KEY)),
    ],
    [
      'opens and closes group keys that look like paths',
      () =>
        world.put(
          activation('eve', INTEGRATION, `north/${INTEGRATION}/${KEY}`, { revoked: true }),
          activation('eve', INTEGRATION, `${INTEGRATION}/${KEY}`),
        ),
      [at(activationName(INTEGRATION, `${INTEGRATION}/${KEY}`), 'Effective', 'True/Routing', 'Activation')],
    ],
    [
      'blocks the stream and the package of the same names, and archives that',
      () =>
        world.put(
          block('eve', 'no-orders', { integration: INTEGRATION, target }),
          block('eve', 'no-refunds', { integration: INTEGRATION, target: { kind: 'Package', name: PACKAGE } }),
          { ...pkg('eve', PACKAGE, ['orders']), spec: { streams: ['orders'], archived: true } },
        ),
      [at(feedOf('orders'), 'Live', 'False/Blocked', 'Subscription')],
      () => kubectl(world.installed.cluster, ['delete', 'block', '--all', '-n', 'eve']),
    ],
    [
      "takes a header from a Secret that bears the name of anna's",
      () => {
        const headers = [
          { name: 'x-stolen', valueFrom: { secretKeyRef: { name: `${feedOf('refunds')}-signing`, key: 'secret' } } },
        ];
        const url = world.receiver.urlOf(endpointOf(EVE, 'refunds'));
        return world.put({
          ...feed(EVE, 'refunds', world.receiver.urlOf),
          spec: { producer: 'eve', integration: INTEGRATION, stream: 'refunds', endpoint: { url, headers } },
        });
      },
      [at(feedOf('refunds'), 'Live', 'False/WaitingForSecret', 'Subscription')],
    ],
  ])('%s', async (_what, act, says, undo) => {
    await world.expectUntouched(act, says);
    await undo?.();
    await world.idle();
  });

  it.each<[string, () => Manifest]>([
    ['Integration.workspace', () => integration('eve', 'x', { workspace: 'north/anna' })],
    [
      'Activation.integration',
      () => ({ ...activation('eve', 'x', KEY), spec: { integration: `north/${INTEGRATION}`, groupKey: KEY } }),
    ],
    ['Activation.groupKey with what ends it in Redis', () => activation('eve', INTEGRATION, `${KEY}\u0000int_x`)],
    ['Block.integration', () => block('eve', 'x', { integration: `north/${INTEGRATION}`, target })],
    [
      'Block.target.name',
      () => block('eve', 'x', { integration: INTEGRATION, target: { kind: 'CatalogStream', name: 'north/orders' } }),
    ],
    ['Package.streams', () => pkg('eve', 'x', ['north/orders'])],
    ['Subscription.producer', () => subscription('eve', 'north', 'x', undefined, { producer: 'north/orders' })],
    [
      'Subscription.integration',
      () => subscription('eve', 'north', 'x', undefined, { integration: `north/${INTEGRATION}` }),
    ],
    ['Subscription.stream', () => subscription('eve', 'north', 'x', undefined, { stream: 'north/orders' })],
    [
      'the name of a Secret',
      () =>
        subscription('eve', 'eve', 'orders', {
          url: 'https://example.com',
          headers: [{ name: 'x-a', valueFrom: { secretKeyRef: { name: 'anna/x', key: 'y' } } }],
        }),
    ],
    ["an address of Redis in a queue's name", () => stream('eve', 'x}:meta{')],
    ['Workspace.account, changed', () => ({ ...(tenant('eve')[2] as Manifest), spec: { account: 'north' } })],
    ['the name of a system namespace', () => tenant('kube-system')[2] as Manifest],
  ])('is refused if it references a foreign object: %s', async (_what, manifest) => {
    await world.expectUntouched(() => expect(world.put(manifest())).rejects.toThrow(/invalid|Invalid/));
  });
});
