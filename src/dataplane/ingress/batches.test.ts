import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { harness, item } from './testing/batches-harness.ts';
import { QUEUE } from './testing/memory-store.ts';

test('events of one turn share a call, and events during a call share the next one', async () => {
  const { calls, settled, submit } = harness();
  submit(item('a'));
  submit(item('b'));
  expect(calls).toHaveLength(0);
  await turn();
  submit(item('c'));
  submit(item('d'));
  await turn();
  expect(calls.map(call => call.ids)).toEqual([['a', 'b']]);
  calls[0]?.finish([{ answer: 'OK', ref: '1', id: 'a' }, { answer: 'FULL' }]);
  await turn();
  expect(settled).toEqual(['a OK', 'b FULL']);
  expect(calls.map(call => call.ids)).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
});

test('a call contains at most 64 events and 1 MiB of bodies', async () => {
  const { calls, submit } = harness();
  for (let index = 0; index < 70; index++) submit(item(`n${index}`));
  for (let index = 0; index < 5; index++) submit(item(`b${index}`, 256 * 1024), 'big');
  await turn();
  expect(calls.map(call => call.ids.length)).toEqual([64, 4]);
});

test('events that the store returns for the next call are stored before events that arrived in the meantime', async () => {
  const { batches, calls, settled, submit } = harness({ heldBytesPerQueue: 6 * 1024 });
  for (const id of ['a', 'b', 'c', 'd']) submit(item(id));
  await turn();
  submit(item('e'));
  calls[0]?.finishFirst(1);
  await turn();
  expect(settled).toEqual(['a OK']);
  submit(item('f'));
  // The returned events are still held.
  expect([submit(item('g')), submit(item('h'))]).toEqual([true, false]);
  calls[1]?.finish();
  await turn();
  calls[2]?.finish();
  await batches.idle();
  expect(calls.map(call => call.ids)).toEqual([
    ['a', 'b', 'c', 'd'],
    ['b', 'c'],
    ['d', 'e', 'f', 'g'],
  ]);
  expect(settled).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(id => `${id} OK`));
});

test('events are unavailable if the store does not accept any', async () => {
  const { batches, calls, settled, submit } = harness();
  submit(item('a'));
  await turn();
  calls[0]?.finishFirst(0);
  await batches.idle();
  expect(calls).toHaveLength(1);
  expect(settled).toEqual(['a UNAVAILABLE']);
});

test('events extracted using different configurations are never in the same call', async () => {
  const { calls, submit } = harness();
  submit(item('a'));
  submit(item('b'), 'q', { ...QUEUE, cfgv: '2' });
  submit(item('c'), 'q', { ...QUEUE, cfgv: '2', gen: 'g2' });
  await turn();
  calls[0]?.finish();
  await turn();
  calls[1]?.finish();
  await turn();
  expect(calls.map(call => [call.cfgv, call.ids])).toEqual([
    ['1', ['a']],
    ['2', ['b']],
    ['2', ['c']],
  ]);
});

test('a slow stream does not delay others, and refuses events if it holds too many', async () => {
  const { calls, settled, submit } = harness({ heldBytesPerQueue: 4 * 1024 });
  expect(submit(item('a', 1024), 'slow')).toBe(true);
  await turn();
  expect(submit(item('b', 1024), 'slow')).toBe(true);
  expect(submit(item('c', 1024), 'slow')).toBe(false);
  expect(submit(item('d', 1024), 'quick')).toBe(true);
  await turn();
  calls.find(call => call.queue === 'quick')?.finish();
  await turn();
  expect(settled).toEqual(['d OK']);
  // Responses release capacity, even while the stream is busy.
  calls.find(call => call.queue === 'slow')?.finish();
  expect(submit(item('e', 1024), 'slow')).toBe(false);
  await turn();
  expect(submit(item('f', 1024), 'slow')).toBe(true);
  await turn();
  calls.at(-1)?.finish();
  submit(item('g', 1024), 'slow');
  await turn();
  expect(submit(item('h', 1024), 'slow')).toBe(true);
});

test('a lost, late, or short reply makes its events unavailable, and the stream continues', async () => {
  const { batches, calls, settled, failures, submit } = harness({ ingestTimeoutMs: 5 });
  submit(item('a'));
  await turn();
  calls[0]?.finish(new Error('connection lost'));
  submit(item('b'));
  submit(item('c'));
  await turn();
  calls[1]?.finish([{ answer: 'OK', ref: '1', id: 'b' }]);
  await turn();
  submit(item('d'));
  await batches.idle();
  expect(settled).toEqual(['a UNAVAILABLE', 'b OK', 'c UNAVAILABLE', 'd UNAVAILABLE']);
  expect(failures).toEqual(['ingest', 'ingest']);
});

test('a listener that throws does not keep others from receiving their responses', async () => {
  const { batches, calls, settled, failures, submit } = harness();
  batches.submit('t', 'q', QUEUE, item('a'), () => {
    throw new Error('cannot answer');
  });
  submit(item('b'));
  await turn();
  calls[0]?.finish();
  await batches.idle();
  await turn();
  expect(settled).toEqual(['b OK']);
  expect(failures).toEqual(['answer']);
});

test('the responses of a call that partly failed are returned, and the failure is reported', async () => {
  const { calls, settled, failures, submit } = harness();
  submit(item('a'));
  submit(item('b'));
  await turn();
  calls[0]?.finish([{ answer: 'OK', ref: '1', id: 'a' }, { answer: 'UNAVAILABLE' }], new Error('unavailable'));
  await turn();
  expect(settled).toEqual(['a OK', 'b UNAVAILABLE']);
  expect(failures).toEqual(['space']);
});
