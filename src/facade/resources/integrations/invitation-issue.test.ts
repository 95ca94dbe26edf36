import { expect, test } from 'vitest';
import { invitedIntegrationName } from '../../../core/ids/invitation-names.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';
import { inviteByAddress } from './invitation-issue.ts';

const secret = new Uint8Array(32).fill(7);
const nameOf = (number: number) => invitedIntegrationName(secret, 'shop', 'ada@example.com', number);
const integration = (name: string, spec: object) => ({ metadata: { name, namespace: 'shop' }, spec });

/** Invites the address, with closed integrations of these numbers. Those in `unseen` are not in the cache yet. */
async function invite(closed: readonly number[], unseen: readonly number[] = []) {
  const revoked = (numbers: readonly number[]) =>
    new Map(numbers.map(number => [nameOf(number), integration(nameOf(number), { revoked: true })]));
  const cached = revoked(closed);
  const stored = revoked([...closed, ...unseen]);
  let looked = 0;
  let read = 0;
  const facade = {
    keys: { oldest: () => ({ secret }) },
    wallMs: () => 0,
    mails: { holdOf: async () => undefined },
    caches: {
      by: () => [...cached.values()],
      get: (kind: string, { name }: { name: string }) => {
        if (kind === 'Integration') looked++;
        return kind === 'Integration' ? cached.get(name) : undefined;
      },
      live: async (_kind: string, { name }: { name: string }) => {
        read++;
        return stored.get(name);
      },
    },
    writer: {
      edit: (attempt: () => unknown) => attempt(),
      apply: async (_kind: string, { name }: { name: string }, { spec }: { spec: object }) => integration(name, spec),
    },
  } as unknown as Facade;
  const owned = { name: 'shop', workspace: { spec: { account: 'shop' } } } as OwnedTenant;
  const { integration: invited, made } = await inviteByAddress(facade, owned, 'Ada@example.com');
  return { name: invited.metadata.name, made, looked, read };
}

const numbers = (count: number) => Array.from({ length: count }, (_, number) => number);

test.each([0, 1, 2, 3, 4, 7, 8, 100])('after %d closed integrations, the name has this number', async count => {
  expect(await invite(numbers(count))).toMatchObject({ name: nameOf(count), made: true, read: 1 });
});

test('the number is found without trying those of all closed integrations', async () => {
  const { name, looked } = await invite(numbers(500));
  expect(name).toBe(nameOf(500));
  expect(looked).toBeLessThan(30);
});

test('an integration that was deleted or is not in the cache yet never causes the name of a closed one', async () => {
  const rest = numbers(20).filter(number => number !== 5);
  expect([nameOf(5), nameOf(20)]).toContain((await invite(rest)).name);
  expect(await invite(numbers(20), [20, 21])).toMatchObject({ name: nameOf(22), made: true, read: 3 });
});
