import { request } from 'undici';
import { beforeAll, describe, expect, it } from 'vitest';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { queueLength } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample, type PostOptions, type Publication, type Sample } from '../support/publisher.ts';
import { INGRESS_KEY, PRODUCER, QUEUE } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { stream, tenant } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'] });

beforeAll(async () => {
  await world.observer.apply(stream(PRODUCER, QUEUE, { eventTypes: ['order.created'] }));
  await world.observer.until(['CatalogStream', QUEUE, PRODUCER, 'Ready', 'True/QueueReady']);
});

const TYPED = { 'x-sluice-event-type': 'order.created' };
const GOOD = makeSample('good', 'key', '{}');
const stored = () => queueLength(world, PRODUCER, QUEUE);

/** Expects a problem document (RFC 9457) that says what to do and does not contain any internal data. */
function expectProblem(answer: Publication, status: number, code: string): void {
  expect([answer.status, answer.body.code]).toEqual([status, code]);
  expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
  expect(answer.body).toMatchObject({ type: `/problems/${code}`, status });
  expect(answer.body.detail?.length).toBeGreaterThan(20);
  expect(JSON.stringify(answer.body)).not.toContain(INGRESS_KEY);
}

describe('ingress', () => {
  it.each<[string, Sample, PostOptions, number, string]>([
    ['an unknown queue', GOOD, { queue: 'nothing', headers: TYPED }, 404, 'unknown_queue'],
    ['a wrong key', GOOD, { key: 'not-the-key', headers: TYPED }, 401, 'unauthenticated'],
    ['no key', GOOD, { headers: { ...TYPED, authorization: '' } }, 401, 'unauthenticated'],
    [
      'a body that is too large',
      makeSample('large', 'key', Buffer.alloc(262_145)),
      { headers: TYPED },
      413,
      'body_too_large',
    ],
    ['an undeclared type', GOOD, { headers: { 'x-sluice-event-type': 'order.eaten' } }, 422, 'unknown_event_type'],
    ['no type where types are declared', GOOD, {}, 422, 'unknown_event_type'],
    ['sb_fail_code', GOOD, { query: '?sb_fail_code=500', headers: TYPED }, 400, 'sandbox_parameter'],
    ['sb_fail_count, even empty', GOOD, { query: '?sb_fail_count=', headers: TYPED }, 400, 'sandbox_parameter'],
    ['runId', GOOD, { query: '?x=1&runId=r', headers: TYPED }, 400, 'sandbox_parameter'],
    [
      'a group key that is too long',
      makeSample('long', 'k'.repeat(257), 'x'),
      { headers: TYPED },
      422,
      'invalid_context',
    ],
    [
      'a control character in the group key',
      makeSample('ctl', 'a\tb', 'x'),
      { headers: TYPED },
      422,
      'invalid_context',
    ],
  ])('refuses %s and stores nothing', async (_what, sample, options, status, code) => {
    const before = await stored();
    const answer = await world.publisher.post(sample, options);
    expectProblem(answer, status, code);
    if (status === 401) expect(answer.headers['www-authenticate']).toMatch(/^Bearer/);
    expect(await stored()).toBe(before);
  });

  it('refuses another workspace: the response does not reveal whether its key exists', async () => {
    for (const workspace of ['nobody', 'ada']) {
      const response = await request(`${world.sluice.ingressUrl}/events/${tenantId(workspace)}/${QUEUE}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${INGRESS_KEY}` },
        body: 'x',
      });
      expect(response.statusCode).toBe(401);
      await response.body.dump();
    }
  });

  it('accepts the largest body, and the same event once', async () => {
    const before = await stored();
    const largest = makeSample('largest', 'key', Buffer.alloc(262_144, 7));
    const first = await world.publisher.post(largest, { headers: TYPED });
    expect([first.status, first.body]).toEqual([202, { id: 'largest', duplicate: false, groupKey: 'key' }]);
    const second = await world.publisher.post(largest, { headers: TYPED });
    expect([second.status, second.body]).toEqual([202, { id: 'largest', duplicate: true, groupKey: 'key' }]);
    expect(await stored()).toBe(before + 1);
    const { receiver } = world;
    await eventually('the event is delivered', async () => receiver.delivered('ada').has('largest'));
    expect(receiver.attempts.find(({ id }) => id === 'largest')?.sha256).toBe(largest.sha256);
  });

  it('returns 503 with Retry-After while Redis is unavailable, and accepts events again afterwards', async () => {
    const before = await stored();
    await world.redis.kill('SIGKILL');
    for (let n = 0; n < 10; n++) {
      const answer = await world.publisher.post(GOOD, { headers: TYPED });
      expectProblem(answer, 503, 'unavailable');
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
      expect(answer.answeredMs - answer.sentMs).toBeLessThan(15_000);
    }
    // For a new key, ingress cannot determine whether the key is valid, so it does not report the key as invalid.
    expectProblem(await world.publisher.post(GOOD, { key: 'unseen', headers: TYPED }), 503, 'unavailable');
    await world.redis.restart();
    const { tookMs } = await eventually(
      'ingress accepts events',
      async () => (await world.publisher.post(GOOD, { headers: TYPED })).status === 202,
    );
    console.log(`Redis available again: 202 after ${Math.round(tookMs)} ms`);
    expect(await stored()).toBe(before + 1);
  });

  it('returns 503 without storing anything while Redis does not respond', async () => {
    const before = await stored();
    await world.redis.kill('SIGSTOP');
    const answer = await world.publisher.post(makeSample('asleep', 'key', 'x'), { headers: TYPED });
    await world.redis.kill('SIGCONT');
    expectProblem(answer, 503, 'unavailable');
    console.log(`Redis stopped: 503 after ${Math.round(answer.answeredMs - answer.sentMs)} ms`);
    expect(answer.answeredMs - answer.sentMs).toBeLessThan(15_000);
    // The event may have been stored. Sending the same id again never stores it twice.
    await eventually(
      'ingress accepts the event',
      async () => (await world.publisher.post(makeSample('asleep', 'key', 'x'), { headers: TYPED })).status === 202,
    );
    expect(await stored()).toBe(before + 1);
  });
});

describe('kubectl', () => {
  it.each<[string, object, string]>([
    ['a field that does not exist', stream(PRODUCER, 'bad', { retentions: '1h' }), 'retentions'],
    ['a retention that is too long', stream(PRODUCER, 'bad', { retention: '10000h' }), 'retention'],
    ['a name that is no queue', stream(PRODUCER, 'Bad.Name'), 'name'],
    ['a workspace that would take the system', tenant('kube-system')[2] as object, 'kube-'],
  ])('is refused %s, and the message contains the reason', async (_what, manifest, words) => {
    const strict = ['apply', '--server-side', '--validate=strict', '-f', '-'];
    const { code, stderr } = await world.cluster.kubectl(strict, { stdin: JSON.stringify(manifest) });
    expect(code).not.toBe(0);
    expect(stderr).toContain(words);
  });
});
