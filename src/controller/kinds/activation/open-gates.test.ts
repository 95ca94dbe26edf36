import { expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { Store } from '../../../kube/store.ts';
import type { Cached } from '../../caches/caches.ts';
import { openGatesOf } from './open-gates.ts';

const OPENED = '2026-01-01T00:00:00Z';
const globex = publicId('Integration', 'acme', 'globex');

function activation(
  name: string,
  groupKey: string,
  more: { revoked?: boolean; since?: string; status?: 'False' } = {},
) {
  const { revoked, since, status = 'True' } = more;
  const effective = { type: 'Effective', status, lastTransitionTime: since };
  return objectOf<'Activation'>(
    name,
    { integration: 'globex', groupKey, ...(revoked === undefined ? {} : { revoked }) },
    since === undefined ? {} : { status: { conditions: [effective] } },
  );
}

/** The workspace `acme` with an integration. Records the index entries that were read. */
function setUp(...activations: Cached<'Activation'>[]) {
  const integration = (name: string, namespace = 'acme') =>
    objectOf<'Integration'>(name, { workspace: 'partner' }, { namespace });
  const integrations = [integration('globex'), integration('initech'), integration('globex', 'other')];
  const { context } = createTestContext({ Activation: activations, Integration: integrations }, { wallMs: 7 });
  const { store } = context.caches.Activation;
  const read: string[] = [];
  const eachByIndex = (index: string, entry: string) => {
    read.push(entry);
    return store.eachByIndex(index, entry);
  };
  const caches = { ...context.caches, Activation: { ...context.caches.Activation, store: { ...store, eachByIndex } } };
  const { set, remove } = store as unknown as Pick<Store<Cached<'Activation'>>, 'set' | 'remove'>;
  return {
    gates: openGatesOf({ caches, nowMs: context.nowMs }, 'acme'),
    read,
    put: (activation: Cached<'Activation'>) => set(`acme/${activation.metadata.name}`, activation),
    remove: (name: string) => remove(`acme/${name}`),
  };
}

test('a group key is open since its earliest Activation, and closed if one of its Activations is revoked', () => {
  const { gates } = setUp(
    activation('a', 'x', { since: '2026-02-01T00:00:00Z' }),
    activation('b', 'x', { since: OPENED }),
    activation('c', 'y'),
    activation('d', 'z'),
    activation('e', 'z', { revoked: true }),
    activation('f', 'pending', { since: OPENED, status: 'False' }),
  );
  expect(gates.get(globex)).toEqual([
    { groupKey: 'x', sinceMs: Date.parse(OPENED) },
    { groupKey: 'y', sinceMs: 7 },
    { groupKey: 'pending', sinceMs: 7 },
  ]);
});

test('only reads the Activations of the integration, and caches the result', () => {
  const { gates, read, remove } = setUp(activation('a', 'x'));
  expect(read).toEqual([]);
  const first = gates.get(globex);
  remove('a');
  expect(gates.get(globex)).toBe(first);
  expect(first).toHaveLength(1);
  expect(read).toEqual(['acme/globex']);
});

test('no group key is open for an integration without Activations, of another workspace, or that does not exist', () => {
  const { gates } = setUp(activation('a', 'x'));
  for (const [namespace, name] of [
    ['acme', 'initech'],
    ['other', 'globex'],
    ['acme', 'missing'],
  ] as const) {
    expect(gates.get(publicId('Integration', namespace, name)) ?? []).toEqual([]);
  }
});

test('reads each group key of an integration in a separate piece, once for all calls', () => {
  const { gates, read } = setUp(...Array.from({ length: 50 }, (_, i) => activation(`a${i}`, `customer/${i}`)));
  const [one, other] = [gates.load(globex), gates.load(globex)];
  let pieces = 0;
  while (!one.next().done && !other.next().done) pieces += 2;
  expect(pieces).toBe(50);
  expect(gates.get(globex)).toHaveLength(50);
  expect([...gates.load(globex)]).toEqual([]);
  expect(read).toEqual(['acme/globex']);
});

test('a group key that was always revoked by one of its Activations is not open if they change between two pieces', () => {
  const revoked = (name: string, is: boolean) => activation(name, 'x', { revoked: is });
  const { gates, put, remove } = setUp(
    revoked('a', false),
    revoked('b', true),
    activation('c', 'y'),
    activation('d', 'z'),
  );
  const steps = gates.load(globex);
  steps.next();
  put(revoked('a', true));
  put(revoked('b', false));
  remove('c');
  while (!steps.next().done);
  expect(gates.get(globex)?.map(({ groupKey }) => groupKey)).toEqual(['z']);
});

test('a group key that was always open is open, even if its Activation is replaced between two pieces', () => {
  const { gates, put, remove } = setUp(activation('a', 'x'), activation('b', 'y'));
  const steps = gates.load(globex);
  steps.next();
  put(activation('b2', 'y'));
  remove('b');
  while (!steps.next().done);
  expect(gates.get(globex)?.map(({ groupKey }) => groupKey)).toEqual(['x', 'y']);
});
