import { expect, test } from 'vitest';
import { type ComparisonDeps, compareTenant } from './comparison.ts';

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
