import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ObjectOf } from '../../../src/api/kinds/kinds.ts';
import { hashIngressKey } from '../../../src/core/ids/ingress-key.ts';
import { connect, type KubeClient } from '../../../src/kube/client.ts';
import { resourceOf } from '../../../src/kube/resource.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/client.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import type { Problem, Reply, RestClient } from '../support/rest-client.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from './support/facade-world.ts';

interface MadeKey {
  readonly id: string;
  readonly key: string;
}

let world: FacadeWorld;
let redis: RedisClient;
let client: KubeClient;
let first: Sluice;
let second: Sluice;
/** The same person using two replicas of the facade. */
let ada: RestClient;
let elsewhere: RestClient;
let eve: RestClient;
let shop: string;
let other: string;

beforeAll(async () => {
  world = await openFacadeWorld();
  [first, second] = await Promise.all([world.start(), world.start({ role: 'facade' })]);
  client = connect({ kubeconfig: world.installation.cluster.kubeconfig });
  redis = await connectRedis(world.installation.redis.url, createLogger({ level: 'silent' }));
  ({ shop = '', other = '' } = await makeTenants(world, { shop: 'ada', other: 'eve' }));
  [ada, elsewhere, eve] = await Promise.all([world.as(first, 'ada'), world.as(second, 'ada'), world.as(first, 'eve')]);
  await eventually('the workspaces are owned', async () => {
    const answers = await Promise.all([keysOf(ada, shop), keysOf(elsewhere, shop), keysOf(eve, other)]);
    return answers.every(({ status }) => status === 200);
  });
});
afterAll(async () => {
  await redis?.close();
  await client?.close();
  await world?.stop();
});

const codeOf = ({ body }: Reply) => (body as Problem['body']).code;
const keysOf = (client: RestClient, tenant: string) =>
  client.get<{ data: MadeKey[] }>(`/waas/producer/${tenant}/ingress-keys`);
const makeKey = (client: RestClient, key: string, body?: object, tenant = shop) =>
  client.call<MadeKey>('POST', `/waas/producer/${tenant}/ingress-keys`, body, { 'idempotency-key': key });
const idsOf = async () => (await keysOf(ada, shop)).body.data.map(({ id }) => id);

/** Repeats a call until the first call is no longer in progress. */
async function untilAnswered(call: () => Promise<Reply<MadeKey>>): Promise<Reply<MadeKey>> {
  const { value } = await eventually('the call has completed', async () => {
    const answer = await call();
    if (answer.status !== 409) return answer;
    expect(codeOf(answer)).toBe('idempotency_in_progress');
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    return false;
  });
  return value;
}

test('an ingress key is created once for an Idempotency-Key, even by concurrent calls on two replicas, and the response is repeated', async () => {
  const calls = Array.from({ length: 10 }, (_, n) => () => makeKey(n % 2 === 0 ? ada : elsewhere, 'onboarding'));
  const [made, ...others] = (await Promise.all(calls.map(untilAnswered))) as [Reply<MadeKey>, ...Reply<MadeKey>[]];
  expect(expectDeclared('createIngressKey', made).status).toBe(201);
  for (const each of others) {
    expect([each.status, each.body]).toEqual([made.status, made.body]);
    expect(each.headers.get('location')).toBe(made.headers.get('location'));
  }
  const { id, key } = made.body;
  expect(await idsOf()).toEqual([id]);
  expect((await ada.remove(`/waas/producer/${shop}/ingress-keys/${id}`)).status).toBe(204);
  expect((await makeKey(elsewhere, 'onboarding')).body).toEqual(made.body);
  // The call was repeated without creating anything.
  expect(await idsOf()).toEqual([]);
  expect(await storedText()).not.toContain(key);
});

test('the same Idempotency-Key with another body is a conflict, but not in another workspace or without a body', async () => {
  const made = await makeKey(ada, 'once', { id: 'first' });
  expect(made.status).toBe(201);
  const conflict = await makeKey(elsewhere, 'once', { id: 'second' });
  expect([conflict.status, codeOf(conflict)]).toEqual([422, 'idempotency_conflict']);
  expect((await makeKey(eve, 'once', { id: 'second' }, other)).status).toBe(201);
  expect((await makeKey(elsewhere, 'once', { id: 'first' })).body).toEqual(made.body);
  expect(await idsOf()).toEqual(['first']);
});

test('a refused call releases its Idempotency-Key', async () => {
  const taken = await makeKey(ada, 'refused', { id: 'first' });
  expect([taken.status, codeOf(taken)]).toEqual([409, 'ingress_key_exists']);
  expect((await makeKey(ada, 'refused', { id: 'third' })).status).toBe(201);
});

test('each call without an Idempotency-Key creates a key', async () => {
  const path = `/waas/producer/${shop}/ingress-keys`;
  const [one, two] = [await ada.post<MadeKey>(path), await ada.post<MadeKey>(path)];
  expect([one.status, two.status]).toEqual([201, 201]);
  expect(one.body.id).not.toBe(two.body.id);
});

test('a call whose replica crashed is completed by another replica with the same Idempotency-Key', async () => {
  const before = await idsOf();
  // No controller applies the new key, so the call waits.
  await first.kill('SIGKILL');
  const dying = makeKey(elsewhere, 'interrupted').catch(() => undefined);
  const { value: added } = await eventually('the key is added', async () =>
    (await storedKeys()).find(({ id }) => !before.includes(id)),
  );
  await second.kill('SIGKILL');
  await dying;
  const third = await world.start();
  const again = await world.as(third, 'ada');
  await eventually('the workspace is owned', async () => (await keysOf(again, shop)).status === 200);
  const busy = await makeKey(again, 'interrupted');
  expect([busy.status, codeOf(busy)]).toEqual([409, 'idempotency_in_progress']);
  await endTurns();
  // Until the new controller leads, the calls return 503, release the key, and can be repeated immediately.
  const { value: made } = await eventually(
    'the call is completed',
    async () => {
      const answer = await makeKey(again, 'interrupted');
      expect([201, 503]).toContain(answer.status);
      return answer.status === 201 && answer;
    },
    { everyMs: 500 },
  );
  expect(made.body.id).toBe(added.id);
  expect(hashIngressKey(made.body.key)).toBe(added.sha256);
  expect((await makeKey(again, 'interrupted')).body).toEqual(made.body);
  expect(await storedKeys()).toHaveLength(before.length + 1);
});

async function storedKeys(): Promise<readonly { readonly id: string; readonly sha256: string }[]> {
  const workspace = await client.get<ObjectOf<'Workspace'>>(resourceOf('Workspace'), { name: 'shop' });
  return workspace?.spec.ingressKeys ?? [];
}

/** Returns the hashes containing the calls of the account. */
const callsOf = async () => (await redis.call('keys', `{o:shop}:call:*`)) as string[];

async function storedText(): Promise<string> {
  const calls = await callsOf();
  expect(calls.length).toBeGreaterThan(0);
  return JSON.stringify(await Promise.all(calls.map(key => redis.readHash(key))));
}

/** Waits for the time after which calls without a response can be taken over. */
async function endTurns(): Promise<void> {
  for (const key of await callsOf()) {
    if ((await redis.readHash(key)).answer === undefined) await redis.call('hset', key, 'untilMs', '0');
  }
}
