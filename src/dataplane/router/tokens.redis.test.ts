import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { tokensOf } from '../../core/events/tokens.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { inboxMember } from '../../redis/inbox-store.ts';
import { accountKeys, inboxKeys, integrationKeys, queueKeys } from '../../redis/keys.ts';
import { readBalance } from '../../redis/ledger-store.ts';
import { createTenant, type IntegrationShort, QUEUE, START_MS } from '../../redis/testing/tenant.ts';
import { createLogger } from '../../telemetry/log.ts';
import { type QueueRouterDeps, routeQueue } from './queue.ts';

const HOUR_MS = 3_600_000;
const KIB_16 = 16_384;
let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => redis.close());

/** A producer on an account with so many tokens; null: Redis does not know the account. */
async function start(included: number | null, integrations: Readonly<Record<string, IntegrationShort>> = { x: {} }) {
  const t = createTenant(redis);
  const alarms: string[] = [];
  const held: string[] = [];
  const topUp = (tokens: number, plan = 'Free') => t.control.setAccount(1, t.account, plan, tokens);
  if (included !== null) await topUp(included);
  const routes = (more = integrations) => ({ ...t.routes(more, { maxBytes: 100_000_000 }), plan: 'Free' as const });
  await t.apply(routes());
  for (const name of Object.keys(integrations)) await t.activate(name, 'k');
  const trimmed = new Map<string, number>();
  const deps: QueueRouterDeps = {
    queues: t.queues,
    inboxes: t.inboxes,
    ledger: t.ledger,
    owner: 'A',
    nowMs: t.nowMs,
    signal: new AbortController().signal,
    alarm: slot => alarms.push(slot),
    lower: async () => {},
    onBatch: () => {},
    onHeld: cause => held.push(cause),
  };
  const run = (more: Partial<QueueRouterDeps> = {}) => routeQueue({ ...deps, ...more }, t.queue, trimmed);
  const inbox = async (name: string) =>
    Number(await redis.call('zcard', inboxKeys(t.nameOf(name), `sub_${name}`, 'inc1').pending));
  const used = async () => (await readBalance(redis, t.account))?.usedTokens;
  const charged = async (name: string) =>
    Number(await redis.call('hget', integrationKeys(t.nameOf(name)).ledger, t.account));
  const reserved = () => redis.readHash(accountKeys(t.account).hold);
  return { t, deps, alarms, held, topUp, routes, run, inbox, used, charged, reserved };
}

describe('an account that enforces its tokens', () => {
  test('routes while it has some, pays for each integration, and reserves nothing in the end', async () => {
    const { t, run, inbox, used, charged, reserved, alarms } = await start(100, { x: {}, y: {} });
    await t.ingest(['k', 'k', 'other']);
    await t.ingest(['k'], 'b'.repeat(KIB_16 + 1));
    expect(await run()).toBe(START_MS + HOUR_MS + 1);
    expect([await inbox('x'), await inbox('y')]).toEqual([3, 3]);
    expect([await charged('x'), await charged('y'), await used()]).toEqual([4, 4, 8]);
    expect(await reserved()).toEqual({});
    expect(alarms).toEqual([]);
  });

  test('goes up to the first event that is not paid for by everyone; then it holds, says so, and looks again', async () => {
    const { t, run, inbox, used, alarms, held, reserved } = await start(5, { x: {}, y: {} });
    const ids = (await t.ingest(['k', 'k', 'k', 'k'])).map(({ id }) => id);
    expect(await run()).toBe(START_MS + 30_000);
    expect([await inbox('x'), await inbox('y'), await used()]).toEqual([2, 2, 4]);
    expect(await redis.call('hget', queueKeys(t.tenant, QUEUE).meta, 'cur')).toBe(ids[1]);
    expect(alarms).toEqual([`a:${t.account}`]);
    expect(held).toEqual(['SHORT']);
    expect(await reserved()).toEqual({});
    expect((await readBalance(redis, t.account))?.shortages).toEqual([
      { queue: `${t.tenant}:${QUEUE}`, tokens: 2, atMs: START_MS },
    ]);
    // Another router may take it at once.
    expect(await run({ owner: 'B' })).toBe(START_MS + 30_000);
  });

  test('topped up, it goes on where it stopped, in order, and says that it does', async () => {
    const { t, run, topUp, inbox, used, alarms } = await start(0);
    const accepted = (await t.ingest(['k', 'k', 'k'])).map(({ id }) => id);
    await run();
    await t.ingest(['k']);
    expect([await inbox('x'), await used()]).toEqual([0, 0]);
    await topUp(4);
    expect(await run()).toBe(START_MS + HOUR_MS + 1);
    const log = (await redis.call('xrange', inboxKeys(t.nameOf('x'), 'sub_x', 'inc1').log, '-', '+')) as [string][];
    expect(log.map(([id]) => id).slice(0, 3)).toEqual(accepted);
    expect([log.length, await used()]).toEqual([4, 4]);
    expect(alarms).toEqual([`a:${t.account}`, `a:${t.account}`]);
  });

  test('moved to a plan that only counts, it goes on without a look at its tokens', async () => {
    const { t, run, topUp, inbox } = await start(0);
    await t.ingest(['k', 'k']);
    await run();
    await topUp(0, 'Metered');
    await run();
    expect(await inbox('x')).toBe(2);
  });

  test('missing is closed: nothing is routed for an account that Redis does not know', async () => {
    const { t, run, inbox, alarms, held, topUp } = await start(null);
    await t.ingest(['k']);
    expect(await run()).toBe(START_MS + 30_000);
    expect([await inbox('x'), held, alarms]).toEqual([0, ['CLOSED'], [`a:${t.account}`]]);
    await topUp(1);
    await run();
    expect(await inbox('x')).toBe(1);
  });

  test('what goes to nobody need not wait', async () => {
    const { t, run } = await start(0);
    await t.ingest(['other', 'other']);
    expect(await run()).toBe(START_MS + HOUR_MS + 1);
    const [, last] = await t.ingest(['other', 'k', 'other']);
    expect(await run()).toBe(START_MS + 30_000);
    expect(await redis.call('hget', queueKeys(t.tenant, QUEUE).meta, 'cur')).not.toBe(last?.id);
  });

  test('who takes nothing now costs nothing: its tokens keep nobody else waiting', async () => {
    const { t, run, inbox } = await start(2, { x: {}, y: { sub: { route: 'paused' } }, z: { state: 'pending' } });
    await t.ingest(['k', 'k']);
    await run();
    expect(await inbox('x')).toBe(2);
    expect(await redis.readHash(queueKeys(t.tenant, QUEUE).behind)).toEqual({ [inboxMember(t.inboxOf('y'))]: '0-0' });
  });

  test('the catch-up waits for tokens, too, and the main pass goes on', async () => {
    const { t, run, routes, topUp, inbox } = await start(1, { x: { sub: { route: 'paused' } }, y: {} });
    await t.ingest(['k'], 'b'.repeat(2 * KIB_16));
    await topUp(4);
    await run();
    expect([await inbox('x'), await inbox('y')]).toEqual([0, 1]);
    await topUp(3);
    await t.apply(routes({ x: {}, y: {} }));
    await t.control.wake(1, t.tenant, QUEUE, [t.inboxOf('x')]);
    await t.deactivate('x', 'k');
    await t.activate('x', 'k');
    await t.ingest(['other']);
    expect(await run()).toBe(START_MS + 30_000);
    expect([await inbox('x'), await inbox('y')]).toEqual([0, 1]);
    // Asleep until then: ingress wakes it for what it stores.
    expect(await redis.call('hget', queueKeys(t.tenant, QUEUE).meta, 'until')).toBe('0');
    await topUp(4);
    await run();
    expect([await inbox('x'), await inbox('y')]).toEqual([1, 1]);
  });

  test('waits a second, without an alarm, while other queues hold what is left', async () => {
    const { t, run, alarms, held, inbox } = await start(3);
    await t.ledger.reserve(t.account, START_MS, {
      queue: 'ten_2:orders',
      epoch: 1,
      need: 1,
      amount: 3,
      integrations: [],
      closely: false,
    });
    await t.ingest(['k']);
    expect(await run()).toBe(START_MS + 1_000);
    expect([held, alarms]).toEqual([['BUSY'], []]);
    await t.ledger.fold(t.account, new Map(), { queue: 'ten_2:orders', epoch: 1 });
    await run();
    expect(await inbox('x')).toBe(1);
  });

  test('a batch that was charged and never folded is counted, and not paid for twice', async () => {
    const { t, deps, run, used, charged, inbox, reserved } = await start(4, { x: {}, y: {} });
    await t.ingest(['k', 'k']);
    // Dies after the inboxes took it.
    const ledger = { ...deps.ledger, fold: () => Promise.reject(new Error('dead')) };
    await expect(run({ ledger })).rejects.toThrow('dead');
    expect([await used(), Object.keys(await reserved())]).toEqual([0, [`${t.tenant}:${QUEUE}`]]);
    await t.queues.release(await t.own('A'));
    // Nothing is left of the account, and nothing more is needed: it does not wait.
    expect(await run({ owner: 'B' })).toBe(START_MS + HOUR_MS + 1);
    expect([await charged('x'), await charged('y'), await used()]).toEqual([2, 2, 4]);
    expect([await inbox('x'), await inbox('y'), await reserved()]).toEqual([2, 2, {}]);
  });

  test('an inbox that charged and did not answer is counted when it is asked again', async () => {
    const { t, deps, run, used, inbox, reserved } = await start(2, { x: {}, y: {} });
    await t.ingest(['k']);
    let lost = 1;
    const route: typeof deps.inboxes.route = async (...args) => {
      const reply = await deps.inboxes.route(...args);
      if (args[0].sub === 'sub_x' && lost-- > 0) throw new Error('answer lost');
      return reply;
    };
    // It did not answer; caught up at once, because the same run looks again.
    await run({ inboxes: { ...deps.inboxes, route } });
    t.clock.ms += 1_000;
    await run();
    expect([await inbox('x'), await inbox('y'), await used(), await reserved()]).toEqual([1, 1, 2, {}]);
  });
});

test('an account that only counts is told after each batch, in one command more, and reserves nothing', async () => {
  const { t, deps, run, topUp, used, routes } = await start(0);
  await topUp(0, 'Metered');
  await t.apply({ ...routes(), plan: 'Metered' });
  await t.ingest(['k', 'k', 'k']);
  const calls: string[] = [];
  const ledger: QueueRouterDeps['ledger'] = {
    reserve: (...args) => (calls.push('reserve'), deps.ledger.reserve(...args)),
    survey: (...args) => (calls.push('survey'), deps.ledger.survey(...args)),
    fold: (...args) => (calls.push('fold'), deps.ledger.fold(...args)),
  };
  await run({ ledger, batchEvents: 2 });
  expect([calls, await used()]).toEqual([['fold', 'fold'], 3]);
});

test('every size of body: what is charged is what an independent count says', async () => {
  const sizes = [0, 1, 16_383, 16_384, 16_385, 32_768, 262_144];
  const { t, run, used, charged } = await start(1_000, { x: {}, y: {} });
  for (const size of sizes) await t.ingest(['k'], 'b'.repeat(size));
  await run();
  const count = [1, 1, 1, 1, 2, 2, 16].reduce((a, b) => a + b, 0);
  expect(sizes.map(tokensOf).reduce((a, b) => a + b, 0)).toBe(count);
  expect([await charged('x'), await charged('y'), await used()]).toEqual([count, count, 2 * count]);
  const traffic = await redis.readHash(queueKeys(t.tenant, QUEUE).traffic(Math.floor(START_MS / HOUR_MS)));
  expect(traffic.tokens).toBe(String(2 * count));
});

test('what waits for tokens until retention ends is counted as expired for each that had not got it', async () => {
  const { t, run, topUp, inbox } = await start(0, { x: {}, y: {} });
  await t.ingest(['k', 'k']);
  await run();
  t.clock.ms += HOUR_MS + 1;
  await topUp(10);
  const [young] = await t.ingest(['k']);
  let expired = 0;
  expect(await run({ onExpired: neverRouted => (expired += neverRouted) })).toBe(
    Number(young?.id.split('-')[0]) + HOUR_MS + 1,
  );
  expect([expired, await inbox('x'), await inbox('y')]).toEqual([4, 1, 1]);
  expect(await redis.readHash(queueKeys(t.tenant, QUEUE).expired)).toEqual({
    [inboxMember(t.inboxOf('x'))]: '2',
    [inboxMember(t.inboxOf('y'))]: '2',
  });
});
