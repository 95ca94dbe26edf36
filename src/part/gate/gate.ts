import type { Argument } from '../../redis/client.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';
import { rowText, type SubscriptionRow } from './subscription-row.ts';

const GATE = readNamedScript(new URL('gate.lua', import.meta.url));

/** Fields of a part's meta that the controller owns; `''` removes one. */
export type MetaField =
  | 'ready'
  | 'cfgv'
  | 'state'
  | 'maxBytes'
  | 'retentionMs'
  | 'source'
  | 'eventTypes'
  | 'contextHeaders'
  | 'payer'
  | 'plan'
  | 'eventsPerSecond'
  | 'storedMax'
  | 'granted';

/** One change of a part's control data. */
export type GateChange =
  /** Starts a generation. Must be the first change. */
  | { readonly kind: 'begin' }
  | { readonly kind: 'meta'; readonly field: MetaField; readonly value: string }
  /** The activations are whole: they may be routed by. */
  | { readonly kind: 'marker' }
  /** The activations are incomplete. Events accepted from now on are held back. */
  | { readonly kind: 'unmark' }
  /** Removes a damaged field of `keys`. */
  | { readonly kind: 'clear'; readonly field: string }
  /** Progress to restore after `meta` was lost. '' removes it. */
  | { readonly kind: 'progress'; readonly field: 'hold' | 'pos' | 'ids' | 'was'; readonly value: string }
  | {
      readonly kind: 'row';
      readonly slot: string;
      readonly row: SubscriptionRow;
      /**
       * Position at which the subscription opens: the previous position, or the end of the log for a new one (default),
       * the tail until it has caught up, or the end of the log, skipping earlier events.
       */
      readonly how?: 'behind' | 'skip';
    }
  /** What an endpoint needs, sealed; '' removes it. */
  | { readonly kind: 'endpoint'; readonly slot: string; readonly sealed: string }
  /** `how`: waiting events are removed immediately instead of at the end of their retention period. */
  | { readonly kind: 'drop'; readonly slot: string; readonly how?: 'delete' }
  /** `since`: absent for now; else a position. */
  | { readonly kind: 'on'; readonly slot: string; readonly groupKey: string; readonly since?: string }
  | { readonly kind: 'off'; readonly slot: string; readonly groupKey: string };

export type GateAnswer =
  | {
      readonly answer: 'OK';
      /** Number of changes made. Values that were already set don't count. */
      readonly changes: number;
      /** Ref of the last event that this was not in force for. */
      readonly tail: string;
      /** Lanes of an activated key are still parked: repeat the call. */
      readonly more: boolean;
    }
  | { readonly answer: 'FENCED' | 'GONE' };

/** Writes all changes to a part in one step. Once this returns, they are in force for routing and claims. */
export type Gate = (part: Part, fence: number, changes: readonly GateChange[]) => Promise<GateAnswer>;

function argumentsOf(change: GateChange): [string, string, string, string] {
  switch (change.kind) {
    case 'begin':
    case 'marker':
    case 'unmark':
      return [change.kind, '', '', ''];
    case 'clear':
      return [change.kind, change.field, '', ''];
    case 'progress':
      return ['meta', change.field, change.value, ''];
    case 'meta':
      return [change.kind, change.field, change.value, ''];
    case 'row':
      return [change.kind, change.slot, rowText(change.row), change.how ?? ''];
    case 'endpoint':
      return [change.kind, change.slot, change.sealed, ''];
    case 'drop':
      return [change.kind, change.slot, change.how ?? '', ''];
    case 'on':
      return [change.kind, change.slot, change.groupKey, change.since ?? ''];
    case 'off':
      return [change.kind, change.slot, change.groupKey, ''];
  }
}

export function createGate(redis: ScriptClient): Gate {
  return async function gate(part, fence, changes) {
    const more: Argument[] = changes.flatMap(argumentsOf);
    const call = { keys: partKeys(part), args: { fence, gen: part.gen }, more };
    const [answer, count, tail, unparked] = await callScript(redis, GATE, call);
    if (answer !== 'OK') return { answer: answer as 'FENCED' };
    return { answer, changes: count as number, tail: tail as string, more: unparked === 1 };
  };
}
