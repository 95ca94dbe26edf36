import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { readWatch, type WatchEvent } from './watch-stream.ts';

const added = (name: string, resourceVersion = '1') => ({
  type: 'ADDED',
  object: { metadata: { name, resourceVersion } },
});

async function collect(body: Readable): Promise<WatchEvent<unknown>[]> {
  const events: WatchEvent<unknown>[] = [];
  const options = { call: 'WATCH /x', clock: createManualClock(), inactivityMs: 1_000 };
  for await (const event of readWatch<unknown>(body, options)) events.push(event);
  return events;
}

describe('watch stream', () => {
  it('reads the same events for any split of the bytes', async () => {
    const events = [added('ä€😀'), added('b', '2'), added('c\\n', '3')];
    const bytes = Buffer.from(events.map(event => `${JSON.stringify(event)}\n`).join(''));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 8 }), async cuts => {
        const points = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const chunks = points.slice(1).map((end, i) => bytes.subarray(points[i], end));
        expect(await collect(Readable.from(chunks.filter(chunk => chunk.length > 0)))).toEqual(events);
      }),
      { numRuns: 50 },
    );
  });

  it('does not block the event loop while it reads a large chunk', async () => {
    const lines = Array.from({ length: 1_000 }, (_, i) => `${JSON.stringify(added(`a${i}`))}\n`);
    let turns = 0;
    let ended = false;
    setImmediate(function next() {
      turns++;
      if (!ended) setImmediate(next);
    });
    expect(await collect(Readable.from([Buffer.from(lines.join(''))]))).toHaveLength(1_000);
    ended = true;
    expect(turns).toBeGreaterThan(15);
  });

  it('reads a large object in many chunks in a time proportional to its size', async () => {
    const line = Buffer.from(`${JSON.stringify(added('a'.repeat(4 * 1024 * 1024)))}\n`);
    const chunks = Array.from({ length: Math.ceil(line.length / 1_024) }, (_, i) =>
      line.subarray(i * 1_024, (i + 1) * 1_024),
    );
    const beganMs = performance.now();
    expect(await collect(Readable.from(chunks))).toHaveLength(1);
    // It takes about 30 ms, or several seconds if each chunk copies all chunks before it.
    expect(performance.now() - beganMs).toBeLessThan(1_500);
  });

  it.each([
    ['not JSON', '{"type":\n'],
    ['an unknown type', `${JSON.stringify({ ...added('a'), type: 'NEWS' })}\n`],
    ['no resourceVersion', '{"type":"ADDED","object":{}}\n'],
    ['null', 'null\n'],
    ['cut off', JSON.stringify(added('a')).slice(0, -3)],
  ])('rejects a line that is %s', async (_what, line) => {
    await expect(collect(Readable.from([Buffer.from(line)]))).rejects.toMatchObject({ reason: 'MalformedAnswer' });
  });

  it('throws the error of an ERROR event', async () => {
    const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' };
    const line = `${JSON.stringify({ type: 'ERROR', object: status })}\n`;
    await expect(collect(Readable.from([Buffer.from(line)]))).rejects.toMatchObject({ status: 410 });
  });

  it('closes a connection only if it is silent', async () => {
    const clock = createManualClock();
    const body = new Readable({ read() {} });
    const watch = readWatch<unknown>(body, { call: 'WATCH /x', clock, inactivityMs: 1_000 });
    const first = watch.next();
    await clock.advance(900);
    body.push(`${JSON.stringify(added('a'))}\n`);
    expect((await first).value).toEqual(added('a'));
    const second = watch.next().then(
      () => 'event',
      (error: { reason: string }) => error.reason,
    );
    await clock.advance(999);
    expect(body.destroyed).toBe(false);
    await clock.advance(1);
    expect(await second).toBe('Timeout');
    expect(clock.pendingTimers()).toBe(0);
  });
});
