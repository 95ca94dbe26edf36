import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OpenApiDocument } from '../../../src/facade/openapi.ts';
import { ROUTES } from '../../../src/facade/routes.ts';
import type { Sluice } from '../../support/sluice.ts';
import { createExchanger, type Received, renderRequest, type Sent, type Tokens } from './contract/exchange.ts';
import { createIdPool } from './contract/id-pool.ts';
import { createJudge } from './contract/judge.ts';
import { type Aim, FAMILIES, operationsOf, type Plan, planRequests } from './contract/requests.ts';
import { INVITATIONS, makeSpecimens, readInvitationTokens, type Specimens } from './contract/specimens.ts';
import { type FacadeWorld, openFacadeWorld } from './support/facade-world.ts';

/** The number of requests. `make test-api` uses more of them. */
const REQUESTS = Number(process.env['REQUESTS'] || 2_000);
const SEED = Number(process.env['SEED'] || 20_260_104);
const AT_ONCE = 16;
/** The number of times that a request is repeated if its change was stored, but not applied in time. */
const REPEATS = 3;
/** The callers take turns. Each of them has enough points for this many requests, however fast they are sent. */
const REQUESTS_OF_A_CALLER = 50;
const CALLERS = Math.max(8, Math.ceil(REQUESTS / REQUESTS_OF_A_CALLER));

/** A request and response that were checked. */
interface Record {
  readonly plan: Plan;
  readonly sent: Sent;
  readonly received: Received;
  readonly faults: readonly string[];
}

let world: FacadeWorld;
let sluice: Sluice;
let document: OpenApiDocument;
let records: readonly Record[];

async function makeTokens(): Promise<Tokens> {
  const groups = ['mine'];
  const good = Array.from({ length: CALLERS }, (_, i) => world.issuer.token({ sub: `ada-${i}`, groups }));
  const expired = world.issuer.token({ sub: 'ada-0', groups }, { expiresInSeconds: -600 });
  return { good: await Promise.all(good), expired: await expired };
}

/** Messages about stored data, which the document does not describe. */
const ABOUT_THE_STORED = /or null to remove it|there is no stored value for this header/;

/**
 * Returns whether a response is a 422 with a field. Without a field, it refers to existing data, such as a seventeenth
 * key.
 */
function isRefusedByRule({ status, text }: Received): boolean {
  return status === 422 && text.includes('"errors"') && !ABOUT_THE_STORED.test(text);
}

/** Returns whether the route's schemas accept the request. Some rules can only be described as text in JSON Schema. */
function isTaken({ operation, query }: Plan, { json }: Sent): boolean {
  const route = ROUTES.find(each => each.operation === operation.operationId);
  const body = route?.body === undefined || json === undefined || route.body.safeParse(json).success;
  return body && (route?.query === undefined || route.query.safeParse(query).success);
}

async function run(): Promise<Record[]> {
  const families = Array.from({ length: FAMILIES }, (_, i) =>
    makeSpecimens(world, sluice, 'mine', { name: `mine-${i}`, pushed: i % 2 === 1 }),
  );
  const [foreign, ...mine] = await Promise.all([makeSpecimens(world, sluice, 'theirs'), ...families]);
  const ids = createIdPool(FAMILIES, mine[0]?.ids);
  for (const each of mine) ids.add('mine', ...Object.values(each.ids));
  ids.add('mine', ...(await readInvitationTokens(world, (FAMILIES + 1) * INVITATIONS)));
  ids.add('foreign', ...Object.values((foreign as Specimens).ids));
  const tokens = await makeTokens();
  const judge = createJudge(document);
  const exchanger = createExchanger(sluice.facadeUrl, AT_ONCE);
  const plans = planRequests(document, REQUESTS, SEED).values();
  const made: Record[] = [];
  let turns = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const plan of plans) {
        const sent = renderRequest({ ...plan, caller: turns++ }, ids, tokens);
        let received = await exchanger.send(sent);
        // A busy machine may not apply a change within 5 s, so this depends on time. No other failure is repeated.
        for (let repeats = 0; codeOf(received) === '503 not_in_force' && repeats < REPEATS; repeats++) {
          await delay(1_000);
          received = await exchanger.send(sent);
        }
        const faults = judge.faultsOf(plan, sent, received);
        if (plan.aim === 'damaged body' && received.status < 300 && !judge.takesBody(plan, sent.json)) {
          faults.push('a body that the document does not take was taken');
        }
        if (plan.aim === 'valid' && plan.coherent && isRefusedByRule(received) && isTaken(plan, sent)) {
          faults.push('refused, though valid');
        }
        if (plan.token !== 'good' && received.status < 400) faults.push('answered without a good token');
        if (received.status < 300 && received.text !== '') ids.harvest(JSON.parse(received.text));
        made.push({ plan, sent, received, faults });
      }
    }),
  );
  exchanger.close();
  return made;
}

beforeAll(async () => {
  world = await openFacadeWorld();
  sluice = await world.start();
  document = (await (await fetch(`${sluice.facadeUrl}/openapi.json`)).json()) as OpenApiDocument;
  const startedMs = performance.now();
  records = await run();
  const perSecond = (REQUESTS / (performance.now() - startedMs)) * 1_000;
  console.log(
    `facade: ${REQUESTS} requests, ${perSecond.toFixed(0)} per second; SEED=${SEED} REQUESTS=${REQUESTS} repeats them`,
  );
  await report();
}, 3_600_000);
afterAll(() => world?.stop());

/** Writes each request and its response to the file in REPORT, for debugging a run. */
async function report(): Promise<void> {
  const file = process.env['REPORT'];
  if (file === undefined || file === '') return;
  const lines = records.map(({ plan, sent, received, faults }) =>
    JSON.stringify({
      aim: plan.aim,
      operation: plan.operation.operationId,
      method: sent.method,
      target: sent.target.slice(0, 300),
      body: sent.body?.toString('utf8').slice(0, 500),
      status: received.status,
      tookMs: Math.round(received.tookMs),
      text: received.text.slice(0, 500),
      faults,
    }),
  );
  await writeFile(file, lines.join('\n'));
}

/** Returns the status and the code of a response for the first line of a failure. */
function codeOf({ status, text }: Received): string {
  return `${status} ${/"code":"(\w+)"/.exec(text)?.[1] ?? ''}`.trim();
}

function describeRecord({ plan, sent, received, faults }: Record): string {
  const body = sent.body === undefined ? '' : ` ${sent.body.toString().slice(0, 300)}`;
  const { authorization: _secret, ...headers } = sent.headers;
  return `${faults.join('; ')}\n  ${plan.aim}: ${sent.method} ${sent.target.slice(0, 200)} ${JSON.stringify(headers).slice(0, 200)}${body}\n  ${received.status} ${received.text.slice(0, 300)}`;
}

test('every response matches the document, and there are no server errors', () => {
  const faulty = records.filter(({ faults }) => faults.length > 0);
  const reported = faulty.slice(0, 20).map(describeRecord).join('\n');
  const kinds = Map.groupBy(faulty, ({ received }) => codeOf(received));
  const counts = [...kinds].map(([kind, each]) => `${each.length} × ${kind}`).join(', ');
  expect(faulty.length, `SEED=${SEED}, ${faulty.length} of ${records.length}: ${counts}\n${reported}`).toBe(0);
});

test('no call is limited, because the response would not test the route', () => {
  expect(records.filter(({ received }) => received.status === 429).map(describeRecord)).toEqual([]);
});

test('every operation succeeds at least once and is refused at least once', () => {
  const of = (wanted: (record: Record) => boolean) =>
    new Set(records.filter(wanted).map(({ plan }) => plan.operation.operationId));
  const names = operationsOf(document).map(({ operation }) => operation.operationId);
  const succeeded = of(({ plan, received }) => plan.aim === 'valid' && received.status < 300);
  const refused = of(({ received }) => received.status >= 400);
  expect(names.filter(name => !succeeded.has(name))).toEqual([]);
  expect(names.filter(name => !refused.has(name))).toEqual([]);
});

test('each kind of fault is tested', () => {
  const aims = Map.groupBy(records, ({ plan }) => plan.aim);
  const wanted: Aim[] = [
    'valid',
    'other ids',
    'damaged body',
    'strange body',
    'strange content type',
    'strange query',
    'strange path',
    'strange header',
    'strange token',
    'other method',
  ];
  expect(wanted.filter(aim => (aims.get(aim)?.length ?? 0) < REQUESTS / 200)).toEqual([]);
});

test('refused calls do not write secrets to the log, and the process continues to run', async () => {
  expect(sluice.running()).toBe(true);
  const lines = JSON.stringify(await sluice.logLines());
  expect(lines).not.toMatch(/eyJ[\w-]+\.[\w-]+\.[\w-]+/);
  expect(lines).not.toContain('call failed');
});
