import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const SURVEY = readNamedScript(new URL('survey.lua', import.meta.url));

/** The pending work of a part. All times are in milliseconds of the part's clock. */
export interface WorkOfPart {
  readonly nowMs: number;
  /** The number of deliveries that are waiting or in progress. Includes subscriptions that are paused. */
  readonly open: number;
  /** Something may be sent, now or later. */
  readonly isWaiting: boolean;
  /** The time since which events could be sent but no dispatcher works on the part. 0 if unknown. */
  readonly idleSinceMs: number | undefined;
  /** True if there are any events that will expire. */
  readonly hasEvents: boolean;
  /**
   * The position of routing that has not been finished. If it is the same for two reads, there is no dispatcher that is
   * routing.
   */
  readonly routing: string | undefined;
  /** The oldest event, if it should have been removed by now, and since when it should. */
  readonly expired: { readonly id: string; readonly sinceMs: number } | undefined;
}

/** Reads the pending work of a part. If it was removed, this returns undefined. */
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
