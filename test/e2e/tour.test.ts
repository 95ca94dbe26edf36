import { expect, onTestFinished, test } from 'vitest';
import { WRONG } from '../support/tour/narrator.ts';
import { MAKE_RUN, processesOf, startTour, type TourProcess } from '../support/tour/process.ts';

async function start(...options: Parameters<typeof startTour>): Promise<TourProcess> {
  const tour = await startTour(...options);
  onTestFinished(tour.remove);
  return tour;
}

test('completes the tour without leaving any processes or files behind', async () => {
  const tour = await start(['--once']);
  const code = await tour.exited;
  const output = tour.output();
  expect(output).not.toContain(WRONG);
  for (const line of [
    /Redis answers at redis:\/\/127\.0\.0\.1:\d+/,
    /the Kubernetes API answers at https:\/\/127\.0\.0\.1:\d+/,
    /sluice is ready/,
    /applied config\/samples: 10 objects/,
    /8 of them became Ready within /,
    /published order\.created of customer-42: 202 id evt_\w{26} after \d+ ms/,
    /delivered to globex \d+ ms after it was accepted; its signature is valid; answered 200/,
    /order-2 twice: 202 id order-2 \(duplicate: false\), then 202 id order-2 \(duplicate: true\)/,
    /not_routed_total\{reason="not_activated"\} went from 0 to 1; globex got nothing/,
    /with a wrong key: 401 unauthenticated/,
    /does not declare: 422 unknown_event_type/,
    // The schedule contains 1 s and 2 s. A busy machine needs more time.
    /event 1 of 3 answered 503, \d+\.\d\d s later/,
    /event 1 of 3 answered 200, \d+\.\d\d s later/,
    /3 of 3 delivered, after 5 attempts/,
    /patched to revoked: true; Effective=false \(Revoked\)/,
    /patched to revoked: false; Effective=true \(Routing\)/,
    /the story ends: all as expected/,
  ]) {
    expect(output).toMatch(line);
  }
  expect(code).toBe(0);
  const first = /\[ *([\d.]+) s\] the first delivery came/.exec(output);
  console.log(`the first delivery came after ${first?.[1]} s`);
  expect(first).not.toBeNull();
  expect(await tour.leftovers()).toEqual([]);
});

test('Ctrl-C during startup leaves no processes or files behind', async () => {
  const tour = await start();
  await tour.waitForLine(/Redis answers/, 60_000);
  // Makes sure that processesOf finds running processes.
  expect(await processesOf(tour.folder)).not.toEqual([]);
  tour.kill('SIGINT');
  expect(await tour.exited).toBe(130);
  expect(await tour.leftovers()).toEqual([]);
});

test('make run prints a link for each interface, supports paths with spaces, and stops in order after Ctrl-C', async () => {
  const tour = await start([], MAKE_RUN, 'sluice tour of ');
  await tour.waitForLine(/What globex receives is shown here/, 120_000);
  for (const line of [
    /http:\S+\/events\/ten_\w+\/orders$/,
    /http:\S+\/events\/sandbox\/ten_\w+\/orders$/,
    /http:\S+\/docs$/,
    /http:\S+\/openid-configuration$/,
    /http:\S+\/metrics$/,
    /http:\S+\/readyz$/,
    /http:\S+\/received$/,
  ])
    await tour.waitForLine(line, 60_000);
  const running = await processesOf(tour.folder);
  for (const program of ['redis-server', 'etcd', 'kube-apiserver', 'src/sluice.ts all'])
    expect(running.join('\n')).toContain(program);
  const program = running.find(each => each.includes('test/support/run.ts'));
  process.kill(Number(/^process (\d+)/.exec(program ?? '')?.[1]), 'SIGINT');
  expect(await tour.exited).toBe(0);
  expect(tour.output()).not.toMatch(/Error|WRONG|could not be ended|sluice ended by itself/);
  expect(await tour.leftovers()).toEqual([]);
});

test('a crash leaves no processes or files behind', async () => {
  const tour = await start();
  await tour.waitForLine(/sluice is ready/, 60_000);
  tour.kill('SIGKILL');
  expect(await tour.exited).toBe('SIGKILL');
  expect(await tour.leftovers()).toEqual([]);
});

test('a signal that is only sent to make ends all processes', async () => {
  const tour = await start([], MAKE_RUN);
  await tour.waitForLine(/sluice is ready/, 120_000);
  tour.kill('SIGTERM');
  await tour.exited;
  expect(await tour.leftovers()).toEqual([]);
});

test('if sluice ends, its log is printed and all processes end', async () => {
  const tour = await start();
  await tour.waitForLine(/Everything runs/, 120_000);
  const line = (await processesOf(tour.folder)).find(each => each.includes('src/sluice.ts all'));
  const pid = Number(/^process (\d+)/.exec(line ?? '')?.[1]);
  process.kill(pid, 'SIGKILL');
  expect(await tour.exited).toBe(1);
  expect(tour.output()).toContain('sluice ended by itself');
  expect(tour.output()).toContain("the end of sluice's log:");
  expect(await tour.leftovers()).toEqual([]);
});
