import { expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../test/support/controller/test-context.ts';
import { type ComparisonDeps, compareTenant } from './comparison.ts';
import { openGroupKeys } from './gate-comparison.ts';

/**
 * Compares a tenant whose routes are outdated.
 * @param later the routes in Redis after they have been compared
 */
async function compare(stored: object, later: object): Promise<string[]> {
  const enqueued: string[] = [];
  const answers = [stored, later];
  const deps = {
    tenants: { stored: () => answers.shift(), isCurrent: async () => false },
    isPaused: () => false,
    enqueueTenant: (name: string) => void enqueued.push(name),
  } as unknown as ComparisonDeps;
  expect(await compareTenant(deps, 'shop', new Set())).toEqual([]);
  return enqueued;
}

const routesOf = () => ({ routes: { payer: 'shop', queues: {}, integrations: {} } });

test('a tenant whose routes are outdated is applied again', async () => {
  const stored = routesOf();
  expect(await compare(stored, stored)).toEqual(['shop']);
});

test('a tenant that was applied during the comparison is not applied again', async () => {
  expect(await compare(routesOf(), routesOf())).toEqual([]);
});

test('looks at each group key of an integration in a separate piece, even if none of them is open', () => {
  const activations = Array.from({ length: 20 }, (_, i) =>
    objectOf<'Activation'>(`a${i}`, {
      integration: 'globex',
      groupKey: `customer/${i >> 1}`,
      revoked: i !== 6 && i !== 7,
    }),
  );
  const { context } = createTestContext({ Activation: activations });
  const steps = openGroupKeys(context.caches, 'acme', 'globex');
  let pieces = 0;
  let last = steps.next();
  for (; !last.done; last = steps.next()) pieces++;
  expect(pieces).toBe(10);
  expect(last.value).toEqual(['customer/3']);
});
