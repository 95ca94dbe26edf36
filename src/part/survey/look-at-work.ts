import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const SURVEY = readNamedScript(new URL('survey.lua', import.meta.url));

/** What there is to do in a part; times in ms of the part's clock. */
export interface WorkOfPart {
  readonly nowMs: number;
  /** Deliveries that wait or are under way, also those of subscriptions to which nothing is sent at the moment. */
  readonly open: number;
  /** Something may be sent, now or later. */
  readonly isWaiting: boolean;
  /** Something could be sent, and since then no dispatcher works on the part. 0: nobody knows since when. */
  readonly idleSinceMs: number | undefined;
  /** There are events, which retention removes some day. */
  readonly hasEvents: boolean;
  /** Where routing on stands that has to go on: the same text twice means that nobody does it. */
  readonly routing: string | undefined;
  /** The oldest event, if it should have been removed by now, and since when it should. */
  readonly expired: { readonly id: string; readonly sinceMs: number } | undefined;
}

/** Reads what there is to do in a part, or undefined of one that is gone. */
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
