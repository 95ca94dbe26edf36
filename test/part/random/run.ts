import type { RedisClient } from '../../../src/redis/client.ts';
import type { Operation } from './operation.ts';
import { playOperation } from './play.ts';
import { Violation } from './reference/reference.ts';
import { createWorld, type World } from './world.ts';

export interface Failure {
  readonly wrong: string;
  /** The operations up to and including the one that failed. */
  readonly history: readonly Operation[];
  readonly story: readonly string[];
}

const firstLine = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Plays a history in a separate part. Returns the violation, or undefined if there is none. */
export async function runHistory(
  redis: RedisClient,
  url: string,
  history: readonly Operation[],
  finish: (world: World) => Promise<void> = async () => {},
): Promise<Failure | undefined> {
  const story: string[] = [];
  let at = 0;
  const world = await createWorld(redis, url);
  try {
    for (; at < history.length; at++) {
      const operation = history[at] as Operation;
      await playOperation(world, operation).finally(() => {
        story.push(`${String(at).padStart(3)} ${world.t.clock.ms % 1e8} ${operation.kind} ${world.notes.join(' → ')}`);
      });
    }
    world.notes.length = 0;
    await finish(world);
    return undefined;
  } catch (error) {
    if (at === history.length) story.push(`rest ${world.notes.slice(-3).join(' → ')}`);
    const stack = error instanceof Error && !(error instanceof Violation) ? `\n${error.stack}` : '';
    return { wrong: firstLine(error) + stack, history: history.slice(0, at + 1), story };
  } finally {
    world.close();
    const keys = Object.values(world.t.keys).filter(key => typeof key === 'string') as string[];
    for (const key of keys) await redis.call('unlink', key);
  }
}

const kindOf = (wrong: string) => wrong.replaceAll(/[0-9a-f]{8,}|\d+/g, '#').slice(0, 24);

/** Omits operations as long as the history still fails in the same way. */
export async function shrink(
  redis: RedisClient,
  url: string,
  failure: Failure,
  finish: (world: World) => Promise<void>,
  mostMs = 20_000,
): Promise<Failure> {
  const untilMs = Date.now() + mostMs;
  let best = failure;
  for (let size = Math.ceil(best.history.length / 2); size >= 1; ) {
    let shorter = false;
    for (let at = 0; at < best.history.length && Date.now() < untilMs; ) {
      const rest = [...best.history.slice(0, at), ...best.history.slice(at + size)];
      const next = await runHistory(redis, url, rest, finish);
      if (next !== undefined && kindOf(next.wrong) === kindOf(failure.wrong)) {
        best = next;
        shorter = true;
      } else at += size;
    }
    if (Date.now() >= untilMs) break;
    if (size > 1) size = Math.ceil(size / 2);
    else if (!shorter) break;
  }
  return best;
}

export function tell({ wrong, story, history }: Failure): string {
  return `${wrong}\n\n${story.join('\n')}\n\nHISTORY='${JSON.stringify(history.map(({ kind, x }) => [kind, x]))}'`;
}
