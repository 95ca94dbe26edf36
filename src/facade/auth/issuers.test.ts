import { getEventListeners } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { startIssuer, type TestIssuer } from '../../../test/support/facade/issuer.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createIssuers } from './issuers.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function issue(): Promise<TestIssuer> {
  const issuer = await startIssuer();
  closers.push(() => issuer.stop().catch(() => {}));
  return issuer;
}

/** Issuers that are watched using a manual clock. `pass` waits until the requests of this time have ended. */
function watch(...issuers: readonly TestIssuer[]) {
  const clock = createManualClock();
  const created = createIssuers({
    issuers: issuers.map(({ url }) => url),
    nowMs: clock.nowMs,
    log: createLogger({ level: 'silent' }),
  });
  const stop = new AbortController();
  const watching = created.watch(clock, stop.signal);
  closers.unshift(() => {
    stop.abort();
    return watching;
  });
  const untilPass = async () => {
    while (clock.pendingTimers() === 0) await new Promise(resolve => setImmediate(resolve));
  };
  return {
    ...created,
    untilPass,
    listeners: () => getEventListeners(stop.signal, 'abort').length,
    pass: async (ms: number) => {
      await clock.advance(ms);
      await untilPass();
    },
  };
}

const causes = (issuers: ReturnType<typeof watch>) => [true, false].map(alone => issuers.impairments(alone)[0]?.cause);

test('the keys are read at the start, and not again for the first token', async () => {
  const issuer = await issue();
  const issuers = watch(issuer);
  expect(issuers.impairments(true)).toMatchObject([
    { cause: 'dependency', message: expect.stringMatching('not read yet') },
  ]);
  await issuers.untilPass();
  expect(issuers.impairments(true)).toEqual([]);
  expect(await issuers.keysOf(issuer.url)?.find('first')).toMatchObject({ keys: [{ kid: 'first' }] });
  await issuers.pass(60_000);
  expect(issuer.reads()).toBe(2);
});

test('watching for a long time does not need more memory', async () => {
  const issuers = watch(await issue());
  await issuers.untilPass();
  const before = issuers.listeners();
  for (let n = 0; n < 3; n++) await issuers.pass(5_000);
  expect(issuers.listeners()).toBe(before);
});

test('an unavailable issuer is reported until its keys have been read', async () => {
  const issuer = await issue();
  await issuer.stop();
  const issuers = watch(issuer);
  await issuers.untilPass();
  expect(issuers.impairments(true)).toMatchObject([
    { message: expect.stringContaining(`${issuer.url}: connect ECONNREFUSED`) },
  ]);
  expect(causes(issuers)).toEqual(['dependency', 'partial']);
  await issuer.restart();
  await issuers.pass(5_000);
  expect(issuers.impairments(true)).toEqual([]);
});

test('the role is able to work with one of two issuers', async () => {
  const [available, unavailable] = [await issue(), await issue()];
  await unavailable.stop();
  const issuers = watch(available, unavailable);
  await issuers.untilPass();
  expect(causes(issuers)).toEqual(['partial', 'partial']);
  expect(issuers.impairments(true)[0]?.message).not.toContain(available.url);
});

test('an issuer that becomes unavailable is reported when its keys are not trusted any more', async () => {
  const issuer = await issue();
  const issuers = watch(issuer);
  await issuers.untilPass();
  await issuer.stop();
  await issuers.pass(59 * 60_000);
  await issuers.keysOf(issuer.url)?.find('first');
  expect(issuers.impairments(true)).toEqual([]);
  await issuers.pass(60_000);
  expect(causes(issuers)).toEqual(['dependency', 'partial']);
  await issuer.restart();
  await issuers.pass(5_000);
  expect(issuers.impairments(true)).toEqual([]);
});
