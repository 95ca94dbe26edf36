import { expect, it } from 'vitest';
import { readBalance } from '../../../src/accounts/balance.ts';
import { RunReport } from '../../../src/api/sandbox.ts';
import { publicId } from '../../../src/core/ids/ids.ts';
import { connectRedis } from '../../../src/redis/client.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { eventually } from '../support/deadline.ts';
import { INGRESS_KEY, PRODUCER, QUEUE } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';

const TENANT = publicId('Workspace', '', PRODUCER);
const ADA = publicId('Integration', PRODUCER, 'ada');
/** In production, this takes 75 hours. */
const SCHEDULE = ['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'];

const world = useSmallWorld({
  partners: ['ada'],
  separateRoles: 'as one',
  groupKeys: ['key'],
  endpoint: { retrySchedule: SCHEDULE, headers: [{ name: 'x-team', value: 'of-ada' }] },
});

const auth = { authorization: `Bearer ${INGRESS_KEY}` };

async function publish(query: string, id: string, groupKey = 'key') {
  const headers = { ...auth, 'webhook-id': id, 'x-sluice-group-key': groupKey, 'content-type': 'text/plain' };
  const url = `${world.sluice.ingressUrl}/events/sandbox/${TENANT}/${QUEUE}${query}`;
  const response = await fetch(url, { method: 'POST', headers, body: `body of ${id}` });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function read(run: string) {
  const response = await fetch(`${world.sluice.ingressUrl}/events/sandbox/${TENANT}/runs/${run}`, { headers: auth });
  expect(response.status).toBe(200);
  return RunReport.parse(await response.json());
}

async function ended(run: string) {
  const look = async () => {
    const report = await read(run);
    // The last accepted event may not have been routed yet when the others have ended.
    const isRouted = report.data.every(({ integrations }) =>
      integrations.every(({ verdict }) => verdict !== 'waiting'),
    );
    return isRouted && report.totals.pending === 0 && report.totals.deliveries > 0 && report;
  };
  return (await eventually(`run ${run} ends`, look)).value;
}

it('runs 75 hours of retries in seconds without calling the endpoint, charging tokens, or counting in production', async () => {
  const redis = await connectRedis(world.redis.url, createLogger({ level: 'silent' }));
  const account = publicId('Account', '', PRODUCER);
  const production = async () => ({
    attempts: world.receiver.attempts.length,
    tokens: (await readBalance(redis, account))?.usedTokens,
    routed: await world.sluice.metric('sluice_ingress_routed_total'),
    accepted: await world.sluice.metric('sluice_ingress_events_total', { result: 'accepted' }),
    made: await world.sluice.metric('sluice_dispatcher_attempts_total'),
    keys: ((await redis.callAll('KEYS', '*')).flat() as string[]).filter(key => /^\{[qita]:/.test(key)).toSorted(),
  });
  // The dispatcher creates these two keys when it first checks the stream, even if there are no events.
  const isServed = ({ keys }: { keys: string[] }) =>
    [/:ready:/, /:grants$/].every(made => keys.some(key => made.test(key)));
  const served = async () => {
    const now = await production();
    return isServed(now) && now;
  };
  const { value: before } = await eventually('a dispatcher has checked the stream', served);

  expect(await publish('?runId=long&sb_fail_code=503', 'dies')).toEqual({
    status: 202,
    body: {
      id: 'dies',
      duplicate: false,
      groupKey: expect.any(String),
      sandbox: true,
      runId: 'long',
      run: `/events/sandbox/${TENANT}/runs/long`,
    },
  });
  expect((await publish('?runId=long&sb_fail_count=1', 'behind')).status).toBe(202);
  expect((await publish('?runId=long', 'elsewhere', 'closed')).status).toBe(202);
  const report = await ended('long');
  expect(report.totals).toMatchObject({ events: 3, deliveries: 2, delivered: 1, dead: 1, tokens: 2 });
  const [dies, behind, elsewhere] = report.data.map(({ integrations }) => integrations[0]);
  expect(dies).toMatchObject({ integrationPublicId: ADA, verdict: 'routed', delivery: { state: 'dead' } });
  expect(dies?.delivery?.attempts.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => '503'));
  expect(dies?.delivery?.expected?.attempts).toHaveLength(10);
  const hours = (dies?.delivery?.expected?.attempts ?? []).reduce((sum, { delayMs }) => sum + delayMs, 0) / 3_600_000;
  expect(Math.round(hours)).toBe(76);
  expect(behind?.delivery?.attempts.map(({ status }) => status)).toEqual(['500', '200']);
  // The later event of the key waits until the first event has ended.
  const last = dies?.delivery?.attempts.at(-1)?.at ?? '';
  expect((behind?.delivery?.attempts[0]?.at ?? '') >= last).toBe(true);
  expect(elsewhere).toMatchObject({ verdict: 'not_routed', reason: 'not_activated', delivery: null });
  const headers = new Map(dies?.delivery?.headers?.map(({ name, value }) => [name, value]));
  expect([headers.get('webhook-id'), headers.get('webhook-signature'), headers.get('x-team')]).toEqual([
    'dies',
    'v1,…',
    '…',
  ]);
  expect(await production()).toEqual(before);
  expect(await world.sluice.metric('sluice_sandbox_requests_total', { code: '202' })).toBe(3);
  await redis.close();
}, 180_000);

it('continues after its process was killed', async () => {
  // Each event takes two seconds, one after another.
  for (const id of ['1', '2', '3']) expect((await publish('?runId=killed&sb_fail_count=6', id)).status).toBe(202);
  await world.sluice.restart();
  const { totals } = await ended('killed');
  expect(totals).toMatchObject({ events: 3, deliveries: 3, delivered: 3 });
}, 120_000);

it('refuses the same requests as production, which does not accept sandbox parameters', async () => {
  expect((await publish('?sb_fail_code=200', 'bad')).status).toBe(422);
  expect((await publish('?runId=', 'bad')).status).toBe(422);
  const url = `${world.sluice.ingressUrl}/events/${TENANT}/${QUEUE}?runId=`;
  const refused = await fetch(url, { method: 'POST', headers: auth, body: 'x' });
  expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([400, 'sandbox_parameter']);
  const unknown = await fetch(`${world.sluice.ingressUrl}/events/sandbox/${TENANT}/runs/none`, { headers: auth });
  expect(unknown.status).toBe(404);
  const keyless = await fetch(`${world.sluice.ingressUrl}/events/sandbox/${TENANT}/runs/long`);
  expect(keyless.status).toBe(401);
});
