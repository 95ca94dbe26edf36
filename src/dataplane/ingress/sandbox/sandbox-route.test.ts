import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { cursorOf } from '../../../core/ids/list-cursor.ts';
import type { SandboxOutcome } from '../../../part/sandbox/sandbox-store.ts';
import { startIngress } from '../testing/ingress-harness.ts';
import { QUEUE } from '../testing/memory-store.ts';
import type { SandboxDesk } from './sandbox-route.ts';

type Published = Parameters<SandboxDesk['publish']>;

let published: Published[];
let outcome: SandboxOutcome | Error;
let reports: unknown[];
let run: Awaited<ReturnType<typeof startIngress>>;
const desk: SandboxDesk = {
  publish: async (...args) => {
    published.push(args);
    if (outcome instanceof Error) throw outcome;
    return outcome;
  },
  report: async (...args) => {
    reports.push(args);
    const report = { runId: args[1], nextCursor: '000000000000001.orders' };
    return args[1] === 'known' ? (report as Awaited<ReturnType<SandboxDesk['report']>>) : undefined;
  },
};
beforeEach(async () => {
  published = [];
  reports = [];
  outcome = { answer: 'OK', ref: 'r' };
  run = await startIngress({}, desk);
});
afterEach(() => run.ingress.close());

const sandbox = (query = '') => `/events/sandbox/${run.store.tenant}/orders${query}`;
const production = (query = '') => `/events/${run.store.tenant}/orders${query}`;

test('stores an event in its run with its parameters, and not in production', async () => {
  const headers = { 'webhook-id': 'e1', 'x-sluice-group-key': 'a', 'content-type': 'text/plain' };
  const answer = await run.send({ path: sandbox('?sb_fail_code=503&sb_fail_count=2&runId=r1'), headers, body: 'x' });
  const path = `/events/sandbox/${run.store.tenant}/runs/r1`;
  expect([answer.status, answer.document]).toEqual([
    202,
    { id: 'e1', duplicate: false, groupKey: 'a', sandbox: true, runId: 'r1', run: path },
  ]);
  const [[tenant, queue, runId, , event] = []] = published;
  expect([tenant, queue, runId]).toEqual([run.store.tenant, 'orders', 'r1']);
  expect(event).toMatchObject({ id: 'e1', groupKey: 'a', simulation: { failCode: 503, failCount: 2 } });
  expect(run.store.stored).toEqual([]);
  const metrics = await run.registry.metrics();
  expect(metrics).toContain('sluice_sandbox_requests_total{code="202"} 1');
  expect(metrics).not.toMatch(/sluice_ingress_(requests|events)_total\{[^}]*\} [1-9]/);
});

test('a compressed body results in 415, as in production', async () => {
  const answer = await run.send({ path: sandbox(), headers: { 'content-encoding': 'gzip' }, body: 'x' });
  expect(answer).toMatchObject({ status: 415, headers: { 'accept-encoding': 'identity' } });
  expect(published).toEqual([]);
});

test('without a run id, each event gets a separate run', async () => {
  const answers = [await run.send({ path: sandbox() }), await run.send({ path: sandbox() })];
  const runs = answers.map(({ document }) => (document as { runId?: string }).runId ?? '');
  for (const each of runs) expect(each).toMatch(/^run_[0-9a-hjkmnp-tv-z]{26}$/);
  expect(new Set(runs).size).toBe(2);
  expect(published.map(([, , runId]) => runId)).toEqual(runs);
});

test('a workspace stores four events at a time, and the others are refused if they wait for too long', async () => {
  await run.ingress.close();
  run = await startIngress({ ingestTimeoutMs: 1_000 }, desk);
  const { promise: isReady, resolve: ready } = Promise.withResolvers<void>();
  const publishing = vi.spyOn(desk, 'publish').mockImplementation(async () => {
    await isReady;
    return { answer: 'OK', ref: 'r' };
  });
  const answers = Array.from({ length: 5 }, () => run.send({ path: sandbox() }));
  const refused = await Promise.race(answers);
  expect([refused.status, refused.document.code, refused.headers['retry-after']]).toEqual([429, 'rate_limited', '5']);
  expect(publishing).toHaveBeenCalledTimes(4);
  ready();
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(statuses.filter(status => status === 202)).toHaveLength(4);
  publishing.mockRestore();
});

describe('refused requests', () => {
  const body = 'x'.repeat(256 * 1024 + 1);
  test.each([
    ['no key', { headers: { 'x-api-key': '' } }],
    ['a wrong key', { headers: { 'x-api-key': 'sk_wrong' } }],
    ['a body that is too large', { body }],
    ['a group key with a control character', { headers: { 'x-sluice-group-key': 'a\tb' } }],
    ['no JSON in structured mode', { headers: { 'content-type': 'application/cloudevents+json' }, body: '{' }],
    ['another method', { method: 'PUT' as const }],
  ])('%s: refused as in production', async (_name, request) => {
    const [ours, theirs] = [
      await run.send({ ...request, path: sandbox() }),
      await run.send({ ...request, path: production() }),
    ];
    expect(theirs.status).toBeGreaterThanOrEqual(400);
    expect([ours.status, ours.document]).toEqual([theirs.status, theirs.document]);
    expect(published).toEqual([]);
  });

  test.each([
    [(path: string) => path.replace('/orders', '/unknown')],
    [(path: string) => path.replace('/orders', '/ORDERS')],
    [(path: string) => path.replace(/ten_\w+/, 'ten_0')],
  ])('an unknown path: refused as in production (%#)', async change => {
    const [ours, theirs] = [
      await run.send({ path: change(sandbox()) }),
      await run.send({ path: change(production()) }),
    ];
    expect([ours.status, ours.document]).toEqual([theirs.status, theirs.document]);
    expect([theirs.status, published]).toEqual([404, []]);
  });

  test('other query parameters are accepted, as in production', async () => {
    for (const path of [production('?utm_source=x'), sandbox('?utm_source=x&runId=r1')]) {
      const answer = await run.send({ path, headers: { 'x-sluice-group-key': 'a' }, body: 'x' });
      expect([path, answer.status]).toEqual([path, 202]);
    }
    expect([run.store.stored.length, published.length]).toEqual([1, 1]);
  });

  test.each(['sb_fail_code=200', 'sb_fail_count=21', 'runId=a%20b', 'RunID=a'])('%s: 422', async query => {
    const answer = await run.send({ path: sandbox(`?${query}`) });
    expect([answer.status, answer.document.code, published]).toEqual([422, 'invalid_request', []]);
  });

  test('production does not accept any of the three parameters, and does not store anything', async () => {
    for (const query of [
      'sb_fail_code=500',
      'sb_fail_count=',
      'runId',
      'RUNID=x',
      '%72unId=x',
      'a=1&runId=1&runId=2',
    ]) {
      const answer = await run.send({ path: production(`?${query}`) });
      expect([query, answer.status, answer.document.code]).toEqual([query, 400, 'sandbox_parameter']);
    }
    expect([run.store.stored, published]).toEqual([[], []]);
  });

  test.each([
    ['#runId=x', 400],
    ['?#runId=x', 400],
    ['#?sb_fail_code=500', 400],
    [';runId=x', 404],
    ['%3FrunId=x', 404],
    ['%23runId=x', 404],
    ['/runId=x', 404],
  ])('production does not store anything for %s after its path', async (spelled, status) => {
    const options = { port: run.port, method: 'POST', path: `${production()}${spelled}` };
    const answer = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { 'x-api-key': run.store.key, 'x-sluice-group-key': 'a' };
      httpRequest({ ...options, headers }, ({ statusCode }) => resolve(statusCode))
        .on('error', reject)
        .end('x');
    });
    expect([answer, run.store.stored, published]).toEqual([status, [], []]);
  });

  test('a stream that is closing, and a run or a workspace without capacity', async () => {
    // The configuration is cached.
    expect((await run.send({ path: sandbox() })).status).toBe(202);
    run.store.queues.set('orders', { ...QUEUE, state: 'closing' });
    expect((await run.send({ path: sandbox() })).document.code).toBe('stream_closing');
    run.store.queues.set('orders', QUEUE);
    run.clock.nowMs += 10_000;
    outcome = { answer: 'RUN_FULL' };
    expect((await run.send({ path: sandbox('?runId=a') })).document.code).toBe('sandbox_run_full');
    outcome = { answer: 'SPENT', untilMs: run.clock.nowMs + 61_500 };
    const spent = await run.send({ path: sandbox() });
    expect([spent.status, spent.document.code, spent.headers['retry-after']]).toEqual([429, 'sandbox_spent', '62']);
    outcome = new Error('Redis is unavailable');
    expect((await run.send({ path: sandbox() })).document.code).toBe('unavailable');
  });
});

test('no event is accepted while the memory of a Redis master is full, whatever the stream', async () => {
  await run.ingress.close();
  run = await startIngress({ memoryLookMs: 10 }, desk);
  let used = 81;
  const readMemory = async () => `used_memory:${used}\r\nmaxmemory:100\r\n`;
  Object.assign(run.store.memorySource, { masters: () => [{ name: 'another', readMemory }], masterOf: () => 'own' });
  expect((await run.send({ path: sandbox() })).status).toBe(202);
  used = 82;
  const full = await vi.waitFor(async () => {
    const answer = await run.send({ path: sandbox() });
    expect(answer.status).toBe(503);
    return answer;
  });
  expect([full.document.code, full.headers['retry-after']]).toEqual(['overloaded', '10']);
  const before = published.length;
  expect((await run.send({ path: sandbox(), body: 'x' })).status).toBe(503);
  expect(published).toHaveLength(before);
  // The stream is on another master.
  expect((await run.send({ path: production(), headers: { 'x-sluice-group-key': 'a' } })).status).toBe(202);
  used = 76;
  await vi.waitFor(async () => expect((await run.send({ path: sandbox() })).status).toBe(202));
});

describe('the report of a run', () => {
  const path = (name: string, query = '') => `/events/sandbox/${run.store.tenant}/runs/${name}${query}`;
  const get = (name: string, query?: string, headers: Record<string, string> = {}) =>
    run.send({ method: 'GET', path: path(name, query), headers });

  test('can be read using an ingress key of the workspace', async () => {
    const cursorAt = (position: string) => cursorOf(['run', run.store.tenant, 'known'], position);
    const answer = await get('known', `?limit=2&cursor=${cursorAt('000000000000000.orders')}`);
    expect([answer.status, answer.document, answer.headers['cache-control']]).toEqual([
      200,
      { runId: 'known', nextCursor: cursorAt('000000000000001.orders') },
      'no-store',
    ]);
    expect(reports).toEqual([[run.store.tenant, 'known', { limit: 2, cursor: '000000000000000.orders' }]]);
    expect((await get('known', '', { 'x-api-key': 'sk_wrong' })).status).toBe(401);
    expect((await get('known', '', { 'x-api-key': '' })).status).toBe(401);
  });

  test('is read after the other reports of the workspace, unless too many requests wait', async () => {
    const { promise: isReady, resolve: ready } = Promise.withResolvers<void>();
    const { report } = desk;
    const reading = vi.spyOn(desk, 'report').mockImplementation(async (...args) => {
      await isReady;
      return report(...args);
    });
    const answers = Array.from({ length: 18 }, () => get('known'));
    const refused = await Promise.race(answers);
    expect([refused.status, refused.document.code, refused.headers['retry-after']]).toEqual([429, 'rate_limited', '5']);
    expect(reading).toHaveBeenCalledTimes(1);
    ready();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses.filter(status => status === 200)).toHaveLength(17);
    reading.mockRestore();
  });

  test('is not found if there is no such run, and invalid parameters are reported', async () => {
    expect((await get('other')).document.code).toBe('unknown_run');
    expect((await get('a%20b')).document.code).toBe('unknown_run');
    expect(reports).toHaveLength(1);
    expect((await get('known', '?limits=5')).document).toMatchObject({
      code: 'invalid_request',
      errors: [
        { parameter: 'limits', detail: 'is not a parameter of this route; did you mean limit? known: limit, cursor' },
      ],
    });
    for (const query of ['?limit=0', '?limit=251', '?limit=x', '?cursor=x']) {
      expect([query, (await get('known', query)).status]).toEqual([query, 422]);
    }
    const ofAnother = cursorOf(['run', run.store.tenant, 'other'], '000000000000000.orders');
    for (const [query, parameter, detail] of [
      [`?cursor=${ofAnother}`, 'cursor', 'must be the nextCursor of the previous page of the same run'],
      ['?limit=1&limit=2', 'limit', 'may be given once'],
    ]) {
      const { status, document } = await get('known', query);
      expect([status, document]).toEqual([422, expect.objectContaining({ errors: [{ parameter, detail }] })]);
    }
    const another = await run.send({ method: 'GET', path: `/events/sandbox/ten_${'1'.repeat(20)}/runs/known` });
    expect(another.status).toBe(401);
    expect((await run.send({ method: 'POST', path: path('known') })).status).toBe(405);
  });
});

test('requests use points of the key separately from production', async () => {
  const limited = await startIngress({}, desk, { perKey: 2 });
  try {
    const report = { path: sandbox('').replace('/orders', '/runs/known'), method: 'GET' } as const;
    const ask = async (given: Parameters<typeof limited.send>[0]) => (await limited.send(given)).status;
    expect([await ask({}), await ask({}), await ask({})]).toEqual([202, 202, 429]);
    expect([await ask({ path: sandbox() }), await ask(report), await ask(report)]).toEqual([202, 200, 429]);
    expect([published.length, reports.length]).toEqual([1, 1]);
    const metrics = await limited.registry.metrics();
    expect(metrics).toContain('sluice_ingress_limited_total{limit="key"} 2');
    expect(metrics).toContain('sluice_sandbox_requests_total{code="429"} 1');
  } finally {
    await limited.ingress.close();
  }
});

test('production and the sandbox share the points of an address', async () => {
  const limited = await startIngress({}, desk, { perAddress: 3 });
  try {
    const statuses: number[] = [];
    for (const path of [sandbox(), production(), sandbox(), production(), sandbox()]) {
      statuses.push((await limited.send({ path })).status);
    }
    expect(statuses).toEqual([202, 202, 202, 429, 429]);
  } finally {
    await limited.ingress.close();
  }
});
