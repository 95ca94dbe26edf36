import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const SURVEY = readNamedScript(new URL('survey.lua', import.meta.url));

/** Pending work of a part. Times are in ms of the part's clock. */
export interface WorkOfPart {
  readonly nowMs: number;
  /** Deliveries that are waiting or in progress, including those of paused subscriptions. */
  readonly open: number;
  /** Something may be sent, now or later. */
  readonly isWaiting: boolean;
  /** Time since which events could be sent but no dispatcher works on the part. 0 if unknown. */
  readonly idleSinceMs: number | undefined;
  /** Whether there are events that will expire. */
  readonly hasEvents: boolean;
  /** Position of unfinished routing. If it doesn't change between two reads, no dispatcher is routing. */
  readonly routing: string | undefined;
  /** The oldest event, if it should have been removed by now, and since when it should. */
  readonly expired: { readonly id: string; readonly sinceMs: number } | undefined;
}

/** Reads the pending work of a part, or undefined if it was removed. */
export type LookAtWork = (part: Part) => Promise<WorkOfPart | undefined>;

export function createLookAtWork(redis: ScriptClient): LookAtWork {
  return async function lookAtWork(part) {
    const [word, ...rest] = await callScript(redis, SURVEY, { keys: partKeys(part), args: { gen: part.gen } });
    if (word !== 'OK') return undefined;
    const [nowMs, open, isWaiting, idleSince, hasEvents, routing, expired, expiredMs] = rest;
    return {
      nowMs: nowMs as number,
      open: open as number,
      isWaiting: isWaiting === 1,
      idleSinceMs: idleSince === '' ? undefined : Number(idleSince),
      hasEvents: hasEvents === 1,
      routing: routing === '' ? undefined : (routing as string),
      expired: expired === '' ? undefined : { id: expired as string, sinceMs: expiredMs as number },
    };
  };
}
