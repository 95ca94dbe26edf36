import fc from 'fast-check';
import { expect, test } from 'vitest';
import { publicId } from '../../../core/ids/ids.ts';
import { createStore } from '../../../kube/store.ts';
import type { Cached } from '../../caches/cached.ts';
import { INDEXES } from '../../caches/indexes.ts';
import type { Route } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { activationEntry, pairOf, pairStatus } from './activation-views.ts';
import { ACTIVATION_ROUTES } from './activations.ts';

type Activation = Cached<'Activation'>;

const route = ACTIVATION_ROUTES.find(({ operation }) => operation === 'listActivations');

function activation(name: string, spec: object): Activation {
  const metadata = { namespace: 'shop', name, uid: name, resourceVersion: '1' };
  return { metadata, spec } as unknown as Activation;
}

interface Page {
  readonly data: readonly { readonly groupKey: string }[];
  readonly nextCursor: string | null;
}

async function list(objects: readonly Activation[], query: object): Promise<Page> {
  const store = createStore(INDEXES.Activation);
  for (const each of objects) store.set(`shop/${each.metadata.name}`, each);
  const by = (_kind: string, index: string, value: string) => store.byIndex(index, value);
  const find = async () => ({ metadata: { namespace: 'shop' } });
  const caches = { by, find, list: (kind: string, namespace: string) => by(kind, 'namespace', namespace) };
  const call = { tenant: { name: 'shop' }, query } as unknown as Parameters<Route['handle']>[1];
  return (await route?.handle({ caches } as unknown as Facade, call))?.body as Page;
}

const objects = fc
  .array(
    fc.record({
      integration: fc.constantFrom('ada', 'bob'),
      groupKey: fc.constantFrom('a', 'b', 'c', 'd'),
      revoked: fc.constantFrom(undefined, true, false),
    }),
    { maxLength: 20 },
  )
  .map(specs => specs.map((spec, n) => activation(`act-${n}`, spec)));

test('the pages contain each pair with the status once, with all of its objects', async () => {
  const choices = {
    status: fc.constantFrom(undefined, 'Active', 'Revoked', 'all'),
    integration: fc.constantFrom(undefined, 'ada'),
    groupKey: fc.constantFrom(undefined, 'b'),
    limit: fc.integer({ min: 1, max: 3 }),
  };
  await fc.assert(
    fc.asyncProperty(objects, fc.record(choices), async (stored, { integration, ...query }) => {
      const id = integration && publicId('Integration', 'shop', integration);
      const seen: unknown[] = [];
      let cursor: string | undefined;
      do {
        const page = await list(stored, { ...query, integration: id, cursor });
        seen.push(...page.data);
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      const { groupKey, status = 'Active' } = query;
      const asked = stored.filter(
        ({ spec }) =>
          (integration === undefined || spec.integration === integration) &&
          (groupKey === undefined || spec.groupKey === groupKey),
      );
      const pairs = [...Map.groupBy(asked, pairOf)].toSorted(([a], [b]) => (a < b ? -1 : 1));
      const wanted = pairs.filter(([, pair]) => status === 'all' || pairStatus(pair) === status);
      expect(seen).toEqual(wanted.map(([, [first, ...rest]]) => activationEntry([first as Activation, ...rest])));
    }),
  );
});

test.each(['Active', 'Revoked', 'all'])('a page of status %s reads each object once', async status => {
  let read = 0;
  const many = Array.from({ length: 1_000 }, (_, n) =>
    activation(`act-${n}`, {
      integration: 'ada',
      get groupKey() {
        read++;
        return `key-${n}`;
      },
      revoked: n % 100 === 0,
    }),
  );
  await list([], { status });
  read = 0;
  const { data } = await list(many, { status, limit: 10 });
  expect(data).toHaveLength(10);
  // The store reads each key once, for its index.
  expect(read).toBeLessThan(2.1 * many.length);
});
