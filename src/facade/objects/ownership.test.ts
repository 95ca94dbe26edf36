import { beforeEach, describe, expect, test } from 'vitest';
import type { KindName } from '../../api/kinds/kinds.ts';
import type { Owner } from '../../api/owner.ts';
import { publicId, tenantId } from '../../core/ids/ids.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Identity } from '../auth/identity.ts';
import type { Caches } from '../caches/caches.ts';
import { createOwnership } from './ownership.ts';

const ISSUER = 'https://login.example';
const person = (subject: string): Identity => ({
  issuer: ISSUER,
  subject,
  groups: [],
  client: undefined,
  scopes: new Set(),
});
const owner = (subject: string): Owner => ({ issuer: ISSUER, subject, role: 'Owner' });

type Objects = Readonly<Record<string, object>>;

/** Objects by `Kind/name`. Those in `late` only exist on the API server. */
function worldOf(objects: Objects, late: Objects = {}, points = Number.POSITIVE_INFINITY) {
  const findLive = async (kind: string, id: string) => {
    if (lookedFor.length >= points) throw new Refusal('rate_limited');
    lookedFor.push(`${kind} ${id}`);
    return late[id] ?? objects[id];
  };
  const caches = {
    get: (kind: string, { name }: { name: string }) => objects[`${kind}/${name}`],
    live: async (kind: string, { name }: { name: string }) => late[`${kind}/${name}`] ?? objects[`${kind}/${name}`],
    by: (kind: string, index: string, id: string) => {
      const found = objects[index === 'publicId' ? id : `${kind}/${index}/${id}`];
      return found === undefined ? [] : [found];
    },
    find: async (kind: KindName, id: string) => objects[id] ?? findLive(kind, id),
    findLive,
  };
  return createOwnership(caches as unknown as Caches);
}

/** The lookups on the API server, which the call pays for. */
const lookedFor: string[] = [];
beforeEach(() => void lookedFor.splice(0));

const account = (name: string, ...owners: string[]) => ({ metadata: { name }, spec: { owners: owners.map(owner) } });
const workspace = (name: string, ...owners: string[]) => ({
  metadata: { name },
  spec: { account: `${name}-pays`, owners: owners.map(owner) },
});
const integration = (recipient?: string) => ({
  metadata: { namespace: 'shop', name: 'int-1' },
  spec: { invitedEmail: 'bob@example.com', ...(recipient === undefined ? {} : { workspace: recipient }) },
});

const SHOP = tenantId('shop');
const INTEGRATION = publicId('Integration', 'shop', 'int-1');

async function codeOf(asked: Promise<unknown>): Promise<string> {
  const error: unknown = await asked.then(
    () => new Error('access was allowed'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof Refusal)) throw error;
  expect(error.facts).toEqual({});
  return error.code;
}

test('owners of the workspace and of its account have access; others have the same response as for a missing one', async () => {
  const ownership = worldOf({
    [SHOP]: workspace('shop', 'ada'),
    'Account/shop-pays': account('shop-pays', 'grace'),
  });
  expect((await ownership.tenant(person('ada'), SHOP)).name).toBe('shop');
  expect((await ownership.tenant(person('grace'), SHOP)).publicId).toBe(SHOP);
  expect(await codeOf(ownership.tenant(person('eve'), SHOP))).toBe('forbidden');
  expect(await codeOf(ownership.tenant(person('ada'), tenantId('nowhere')))).toBe('forbidden');
});

test('an account that another replica has just created is found', async () => {
  const ownership = worldOf({ [SHOP]: workspace('shop') }, { 'Account/shop-pays': account('shop-pays', 'ada') });
  expect((await ownership.tenant(person('ada'), SHOP)).name).toBe('shop');
});

test('an integration belongs to the owner of the receiving workspace, not to the producer', async () => {
  const ownership = worldOf({
    [INTEGRATION]: integration('globex'),
    'Workspace/globex': workspace('globex', 'bob'),
    'Workspace/shop': workspace('shop', 'ada'),
  });
  expect(await ownership.integration(person('bob'), INTEGRATION)).toMatchObject({
    producer: 'shop',
    name: 'int-1',
    recipient: { name: 'globex', publicId: tenantId('globex') },
  });
  expect(await codeOf(ownership.integration(person('ada'), INTEGRATION))).toBe('forbidden');
});

test('an integration that is not accepted has no owner; one that was just accepted is found', async () => {
  const workspaces = { 'Workspace/globex': workspace('globex', 'bob') };
  const pending = worldOf({ [INTEGRATION]: integration(), ...workspaces });
  expect(await codeOf(pending.integration(person('bob'), INTEGRATION))).toBe('forbidden');
  const accepted = worldOf({ [INTEGRATION]: integration(), ...workspaces }, { [INTEGRATION]: integration('globex') });
  expect((await accepted.integration(person('bob'), INTEGRATION)).recipient.name).toBe('globex');
});

test.each<[string, Objects]>([
  ['deleted', {}],
  ['granted to another workspace', { [INTEGRATION]: integration('acme') }],
])('after an integration was %s, a partner still reaches it through an admitted subscription', async (_, objects) => {
  const subscription = (namespace: string, admittedAt?: string) => ({
    [`Subscription/integrationId/${INTEGRATION}`]: {
      metadata: { namespace },
      spec: { producer: 'shop', integration: 'int-1' },
      status: { admittedAt },
    },
  });
  const workspaces = { 'Workspace/globex': workspace('globex', 'bob'), 'Workspace/acme': workspace('acme', 'eve') };
  const left = worldOf({ ...objects, ...workspaces, ...subscription('globex', '2026-01-01T00:00:00Z') });
  expect(await left.integration(person('bob'), INTEGRATION)).toMatchObject({
    publicId: INTEGRATION,
    producer: 'shop',
    name: 'int-1',
    object: { spec: { workspace: 'globex', revoked: true } },
    recipient: { name: 'globex' },
  });
  // Both cases cost the same.
  expect(lookedFor).toEqual([]);
  expect(await codeOf(left.integration(person('mallory'), INTEGRATION))).toBe('forbidden');
  const never = worldOf({ ...objects, ...workspaces, ...subscription('globex') });
  expect(await codeOf(never.integration(person('bob'), INTEGRATION))).toBe('forbidden');
});

test('an account belongs to its owners', async () => {
  const id = publicId('Account', '', 'shop-pays');
  const ownership = worldOf({ [id]: account('shop-pays', 'grace') });
  expect((await ownership.account(person('grace'), id)).name).toBe('shop-pays');
  expect(await codeOf(ownership.account(person('ada'), id))).toBe('forbidden');
});

describe('a foreign id costs one lookup', () => {
  const OBJECTS = {
    [SHOP]: workspace('shop', 'ada'),
    [INTEGRATION]: integration('bob'),
    'Workspace/bob': workspace('bob', 'bob'),
    acc_1: account('shop-pays', 'grace'),
  };

  test.each<[string, Objects, Objects, string]>([
    ['if it belongs to another person', OBJECTS, {}, '-'],
    ['if another person has just created it', { 'Workspace/bob': OBJECTS['Workspace/bob'] }, OBJECTS, ''],
    ['if it does not exist', {}, {}, ''],
    ['if it belongs to an open invitation', { ...OBJECTS, [INTEGRATION]: integration() }, {}, 'pending'],
  ])('%s', async (_, objects, late, suffix) => {
    const ownership = worldOf(objects, late);
    const eve = person('eve');
    expect(await codeOf(ownership.tenant(eve, SHOP))).toBe('forbidden');
    expect(await codeOf(ownership.integration(eve, INTEGRATION))).toBe('forbidden');
    expect(await codeOf(ownership.account(eve, 'acc_1'))).toBe('forbidden');
    // Cached objects do not require a lookup, so this uses an id that does not exist.
    const [other, own] = suffix === 'pending' ? ['-', ''] : [suffix, suffix];
    expect(lookedFor).toEqual([
      `Workspace ${SHOP}${other}`,
      `Integration ${INTEGRATION}${own}`,
      `Account acc_1${other}`,
    ]);
  });

  test('nothing is looked up without points', async () => {
    const spent = person('eve');
    for (const ownership of [worldOf(OBJECTS, {}, 0), worldOf({}, {}, 0), worldOf({}, OBJECTS, 0)]) {
      expect(await codeOf(ownership.tenant(spent, SHOP))).toBe('rate_limited');
      expect(await codeOf(ownership.integration(spent, INTEGRATION))).toBe('rate_limited');
      expect(await codeOf(ownership.account(spent, 'acc_1'))).toBe('rate_limited');
    }
    expect(lookedFor).toEqual([]);
  });

  test('objects of the caller do not cost anything', async () => {
    const ownership = worldOf(OBJECTS);
    await ownership.tenant(person('ada'), SHOP);
    await ownership.integration(person('bob'), INTEGRATION);
    await ownership.account(person('grace'), 'acc_1');
    expect(lookedFor).toEqual([]);
  });
});
