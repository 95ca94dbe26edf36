import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { turnsOf } from '../../test/support/event-loop-turns.ts';
import { createManualClock, type ManualClock } from '../../test/support/manual-clock.ts';
import { createLogger, type Logger } from '../telemetry/log.ts';
import type { KubeClient } from './client.ts';
import { errorFromStatus } from './kube-error.ts';
import type { AnyObject } from './object.ts';
import { createReflected } from './reflected.ts';
import { createReflector } from './reflector.ts';
import type { Resource } from './resource.ts';
import type { WatchEvent } from './watch-stream.ts';

const THINGS: Resource = { group: 'x', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true };
const log = createLogger({ level: 'silent' });

type Thing = AnyObject & { readonly value: string };
const thing = (name: string, version: number, value = 'v'): Thing => ({
  metadata: { name, namespace: 'ns', uid: name, resourceVersion: `${version}` },
  value,
});

/** A minimal API server with a list, and a watch whose events are sent by the test. */
function createServer() {
  let state: { items: Thing[]; resourceVersion: string } = { items: [], resourceVersion: '1' };
  let listFailures: unknown[] = [];
  let end: ((how: unknown) => void) | undefined;
  let push: ((event: WatchEvent<Thing>) => void) | undefined;
  const watchedFrom: (string | undefined)[] = [];
  let lists = 0;

  const client = {
    list: async (_resource: Resource, project: (object: never) => unknown) => {
      lists++;
      const failure = listFailures.shift();
      if (failure !== undefined) throw failure;
      return { items: state.items.map(item => project(item as never)), resourceVersion: state.resourceVersion };
    },
    watch: async function* (_resource: Resource, options: Parameters<KubeClient['watch']>[1]) {
      watchedFrom.push(options.resourceVersion);
      const events: WatchEvent<Thing>[] = [];
      let wake = () => {};
      let ended: { how: unknown } | undefined;
      push = event => {
        events.push(event);
        wake();
      };
      end = how => {
        ended = { how };
        wake();
      };
      options.signal?.addEventListener('abort', () => end?.(options.signal?.reason));
      for (;;) {
        while (events.length > 0) yield events.shift() as never;
        if (ended !== undefined) {
          if (ended.how === undefined) return;
          throw ended.how;
        }
        await new Promise<void>(resolve => {
          wake = resolve;
        });
      }
    },
  } as Pick<KubeClient, 'list' | 'watch'>;

  return {
    client,
    set: (items: Thing[], resourceVersion: number) => {
      state = { items, resourceVersion: `${resourceVersion}` };
    },
    failLists: (...failures: unknown[]) => {
      listFailures = failures;
    },
    push: (type: WatchEvent<Thing>['type'], object: Thing) => push?.({ type, object }),
    endWatch: (how?: unknown) => end?.(how),
    lists: () => lists,
    watchedFrom,
  };
}

async function start(
  server: ReturnType<typeof createServer>,
  clock: ManualClock,
  options: { project?: (object: Thing) => string | undefined; relistEveryMs?: number; log?: Logger } = {},
) {
  const changes: string[] = [];
  const stop = new AbortController();
  const reflector = createReflector<Thing, string>({
    client: server.client,
    resource: THINGS,
    project: options.project ?? (object => object.value),
    onChange: (change, key, old, current) => changes.push(`${change} ${key} ${old}→${current}`),
    clock,
    log: options.log ?? log,
    random: () => 0.5,
    ...(options.relistEveryMs === undefined ? {} : { relistEveryMs: options.relistEveryMs }),
  });
  const running = reflector.run(stop.signal);
  await clock.advance(0);
  return { reflector, changes, stop, running };
}

describe('reflector', () => {
  it('lists, and then watches from this version', async () => {
    const server = createServer();
    const clock = createManualClock();
    server.set([thing('a', 5)], 7);
    const { reflector, changes } = await start(server, clock);
    expect(reflector.hasSynced()).toBe(true);
    expect(server.watchedFrom).toEqual(['7']);
    server.push('ADDED', thing('b', 8));
    server.push('MODIFIED', thing('a', 9, 'w'));
    server.push('DELETED', thing('b', 10));
    await clock.advance(0);
    expect(changes).toEqual([
      'added ns/a undefined→v',
      'added ns/b undefined→v',
      'updated ns/a v→w',
      'deleted ns/b v→undefined',
    ]);
  });

  it('lets the event loop turn while it applies a large list', async () => {
    const server = createServer();
    server.set(
      Array.from({ length: 50_000 }, (_, i) => thing(`t${i}`, 5)),
      7,
    );
    // A slice has about 1,000 pieces with this clock, however fast the machine is.
    let ms = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (ms += 0.01));
    onTestFinished(() => void vi.restoreAllMocks());
    const { reflector, changes, stop, running } = await start(server, createManualClock());
    expect(await turnsOf(reflector.synced)).toBeGreaterThan(40);
    expect([reflector.store.size(), changes.length, server.watchedFrom]).toEqual([50_000, 50_000, ['7']]);
    stop.abort();
    await running;
  });

  it('never replaces objects with older ones', async () => {
    const server = createServer();
    const clock = createManualClock();
    server.set([thing('a', 5)], 7);
    const { reflector } = await start(server, clock);
    server.push('MODIFIED', thing('a', 12, 'new'));
    server.push('MODIFIED', thing('a', 9, 'old'));
    server.push('ADDED', thing('ghost', 10));
    server.push('BOOKMARK', thing('', 11));
    await clock.advance(0);
    expect(reflector.store.get('ns/a')).toBe('new');
    expect(reflector.store.get('ns/ghost')).toBeUndefined();
    server.endWatch(new Error('cut'));
    await clock.advance(1_000);
    expect(server.watchedFrom).toEqual(['7', '12']);
  });

  it('moves its position with bookmarks', async () => {
    const server = createServer();
    const clock = createManualClock();
    const { reflector } = await start(server, clock);
    await clock.advance(60_000);
    server.push('BOOKMARK', thing('', 100));
    await clock.advance(0);
    expect(reflector.lastHeardMs()).toBe(60_000);
    server.endWatch();
    await clock.advance(0);
    expect(server.watchedFrom).toEqual(['1', '100']);
    expect(server.lists()).toBe(1);
  });

  it('lists again after its version was compacted, and only reports differences', async () => {
    const server = createServer();
    const clock = createManualClock();
    server.set([thing('a', 5), thing('b', 5)], 7);
    const { changes } = await start(server, clock);
    changes.length = 0;
    server.set([thing('a', 5), thing('c', 20)], 30);
    server.endWatch(errorFromStatus('WATCH', 410, undefined));
    await clock.advance(1_000);
    expect(changes).toEqual(['added ns/c undefined→v', 'deleted ns/b v→undefined']);
    expect(server.watchedFrom).toEqual(['7', '30']);
  });

  it('reuses known objects of a list, so that nothing is stored in memory twice', async () => {
    const server = createServer();
    const clock = createManualClock();
    const projected: string[] = [];
    server.set([thing('a', 5), thing('b', 6)], 7);
    const project = ({ metadata, value }: Thing) => {
      projected.push(metadata.name);
      return value;
    };
    const { reflector } = await start(server, clock, { project });
    server.set([thing('a', 5), thing('b', 20), thing('c', 21)], 30);
    server.endWatch(errorFromStatus('WATCH', 410, undefined));
    await clock.advance(1_000);
    expect(projected).toEqual(['a', 'b', 'b', 'c']);
    expect(reflector.store.size()).toBe(3);
  });

  it('retries after every failure of the list, with increasing delays', async () => {
    const server = createServer();
    const clock = createManualClock();
    const unauthorized = errorFromStatus('GET', 401, undefined);
    server.failLists(...Array.from({ length: 20 }, () => unauthorized));
    const { reflector } = await start(server, clock);
    await clock.advance(2_999);
    expect(server.lists()).toBe(4);
    expect(reflector.hasSynced()).toBe(false);
    await clock.advance(300_000);
    expect(reflector.hasSynced()).toBe(true);
  });

  it('logs lasting failures once a minute, with their cause but without a stack', async () => {
    const server = createServer();
    const clock = createManualClock();
    const refused = errorFromStatus('GET /apis/x/v1/things', 403, {
      kind: 'Status',
      reason: 'Forbidden',
      message: 'cannot list resource "things"',
    });
    server.failLists(...Array.from({ length: 500 }, () => refused));
    const lines: Record<string, unknown>[] = [];
    const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
    const { stop, running } = await start(server, clock, { log: createLogger({ level: 'info' }, { write }) });
    for (let second = 0; second < 170; second++) await clock.advance(1_000);
    stop.abort();
    await running;
    expect(server.lists()).toBeGreaterThan(15);
    expect(lines.map(({ level, resource, detail }) => [level, resource, detail])).toEqual(
      Array.from({ length: 3 }, () => ['warn', '/apis/x/v1/things', refused.message]),
    );
    expect(lines[1]?.['suppressed']).toBeGreaterThan(3);
    expect(JSON.stringify(lines)).not.toContain('stack');
  });

  it('does not trust its position after watches without any events', async () => {
    const server = createServer();
    const clock = createManualClock();
    await start(server, clock);
    for (let i = 0; i < 4; i++) {
      server.endWatch(new Error('malformed'));
      await clock.advance(10_000);
    }
    expect(server.lists()).toBe(2);
  });

  it('accepts an older list only if the server does not return a newer one', async () => {
    const server = createServer();
    const clock = createManualClock();
    server.set([thing('a', 50)], 70);
    const { reflector } = await start(server, clock);
    server.set([], 30);
    server.endWatch(errorFromStatus('WATCH', 410, undefined));
    await clock.advance(500);
    expect(reflector.store.get('ns/a')).toBe('v');
    await clock.advance(30_000);
    expect(reflector.store.get('ns/a')).toBeUndefined();
    expect(server.watchedFrom.at(-1)).toBe('30');
  });

  it('replaces all objects of a restored server, even with the same versions', async () => {
    const server = createServer();
    const clock = createManualClock();
    server.set([thing('a', 50, 'before'), thing('b', 40, 'same')], 70);
    const { reflector, changes } = await start(server, clock);
    changes.length = 0;
    // Version 50 was written after the backup.
    server.set([thing('a', 50, 'restored'), thing('b', 40, 'same')], 60);
    server.endWatch(errorFromStatus('WATCH', 410, undefined));
    await clock.advance(30_000);
    expect(reflector.store.get('ns/a')).toBe('restored');
    // Everything derived from an object may be lost as well, so each of them is reconciled again.
    expect(changes).toEqual(['updated ns/a before→restored', 'updated ns/b same→same']);
  });

  it('uses the uid to distinguish objects with the same name and version', async () => {
    const server = createServer();
    const clock = createManualClock();
    server.set([thing('a', 50, 'first')], 70);
    const { reflector } = await start(server, clock);
    const second = thing('a', 50, 'second');
    server.set([{ ...second, metadata: { ...second.metadata, uid: 'another' } }], 80);
    server.endWatch(errorFromStatus('WATCH', 410, undefined));
    await clock.advance(1_000);
    expect(reflector.store.get('ns/a')).toBe('second');
  });

  it('continues if objects cannot be read', async () => {
    const server = createServer();
    const clock = createManualClock();
    server.set([thing('bad', 1), thing('good', 2)], 7);
    const project = (object: Thing) => {
      if (object.metadata.name === 'bad') throw new Error('cannot be read');
      return object.value;
    };
    const { reflector } = await start(server, clock, { project });
    expect([...reflector.store.keys()]).toEqual(['ns/good']);
  });

  it('does not store objects that the projection excludes', async () => {
    const server = createServer();
    const clock = createManualClock();
    server.set([thing('a', 1, 'yes')], 7);
    const project = (object: Thing) => (object.value === 'yes' ? 'kept' : undefined);
    const { reflector, changes } = await start(server, clock, { project });
    server.push('MODIFIED', thing('a', 8, 'no'));
    await clock.advance(0);
    expect(reflector.store.size()).toBe(0);
    expect(changes).toEqual(['added ns/a undefined→kept', 'deleted ns/a kept→undefined']);
  });

  it('lists again at intervals when a watch ends', async () => {
    const server = createServer();
    const clock = createManualClock();
    await start(server, clock, { relistEveryMs: 60_000 });
    await clock.advance(61_000);
    server.endWatch();
    await clock.advance(0);
    expect(server.lists()).toBe(2);
  });

  it('responds to a relist with a list that was started afterwards', async () => {
    const server = createServer();
    const clock = createManualClock();
    const { reflector } = await start(server, clock);
    server.set([thing('late', 9)], 9);
    const relisted = reflector.relist();
    await clock.advance(0);
    await relisted;
    expect(reflector.store.get('ns/late')).toBe('v');
  });

  it('ends with its signal, and then refuses to list again', async () => {
    const server = createServer();
    const clock = createManualClock();
    const { reflector, stop, running } = await start(server, clock);
    stop.abort();
    await running;
    await expect(reflector.relist()).rejects.toThrow('has ended');
    expect(clock.pendingTimers()).toBe(0);
  });

  it('reaches the state of the server after any failures', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('put' as const), name: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ do: fc.constant('remove' as const), name: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ do: fc.constantFrom('end', 'break', 'expire', 'failList', 'miss') }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async steps => {
        const server = createServer();
        const clock = createManualClock();
        const { reflector, stop, running } = await start(server, clock);
        const truth = new Map<string, Thing>();
        let version = 1;
        for (const action of steps) {
          version++;
          const name = 'name' in action ? action.name : '';
          if (action.do === 'put') truth.set(name, thing(name, version, `${version}`));
          if (action.do === 'remove') truth.delete(name);
          server.set([...truth.values()], version);
          if (action.do === 'put') server.push('MODIFIED', thing(name, version, `${version}`));
          if (action.do === 'remove') server.push('DELETED', thing(name, version));
          if (action.do === 'end') server.endWatch();
          if (action.do === 'break') server.endWatch(new Error('cut'));
          if (action.do === 'expire') server.endWatch(errorFromStatus('WATCH', 410, undefined));
          if (action.do === 'failList') server.failLists(new Error('500'));
          // Without this pause, events would be sent before the watch starts, so only a list would contain them.
          await clock.advance(20_000);
        }
        server.endWatch(errorFromStatus('WATCH', 410, undefined));
        await clock.advance(60_000);
        expect(Object.fromEntries([...reflector.store.keys()].map(key => [key, reflector.store.get(key)]))).toEqual(
          Object.fromEntries([...truth].map(([name, { value }]) => [`ns/${name}`, value])),
        );
        stop.abort();
        await running;
      }),
      { numRuns: 40 },
    );
  });
});

it('a watch only continues from a list that was applied completely', () => {
  const reflected = createReflected<string>({ project: object => (object as Thing).value, log });
  const entries = [thing('a', 3), thing('b', 4)].map(reflected.project);
  const steps = reflected.replace(entries, '9');
  while (reflected.store.get('ns/a') === undefined) steps.next();
  expect(reflected.cursor()).toBeUndefined();
  while (!steps.next().done);
  expect(reflected.cursor()).toBe('9');
});
