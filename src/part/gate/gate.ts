import type { Argument } from '../../redis/client.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';
import { rowText, type SubscriptionRow } from './subscription-row.ts';

const GATE = readNamedScript(new URL('gate.lua', import.meta.url));

/** The fields in the meta of a part that are owned by the controller. If the value is `''`, the field is removed. */
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

/** A single change to a part's control data. */
export type GateChange =
  /** Starts a new generation. Must be the first of the changes. */
  | { readonly kind: 'begin' }
  | { readonly kind: 'meta'; readonly field: MetaField; readonly value: string }
  /** The activations are complete and can be used for routing. */
  | { readonly kind: 'marker' }
  /** The activations are not complete. Events accepted from now on are held back. */
  | { readonly kind: 'unmark' }
  /** Removes a field of `keys` that is damaged. */
  | { readonly kind: 'clear'; readonly field: string }
  /** The progress that should be restored after `meta` has been lost. If this is '', it is removed. */
  | { readonly kind: 'progress'; readonly field: 'hold' | 'pos' | 'ids' | 'was'; readonly value: string }
  | {
      readonly kind: 'row';
      readonly slot: string;
      readonly row: SubscriptionRow;
      /**
       * The position at which the subscription opens: the previous position, or the end of the log for a new one
       * (default), the tail until it has caught up, or the end of the log, skipping earlier events.
       */
      readonly how?: 'behind' | 'skip';
    }
  /** An endpoint's data, which is sealed. If this is '', it is removed. */
  | { readonly kind: 'endpoint'; readonly slot: string; readonly sealed: string }
  /**
   * `how`: if this is set, events which are waiting are removed immediately and not at the end of their retention
   * period. `inbox`: the result of `inboxMember`. Absent if unknown, in which case its events can't be looked up any
   * more.
   */
  | { readonly kind: 'drop'; readonly slot: string; readonly how?: 'delete'; readonly inbox?: string }
  /** `since`: absent for now; else a position. */
  | { readonly kind: 'on'; readonly slot: string; readonly groupKey: string; readonly since?: string }
  | { readonly kind: 'off'; readonly slot: string; readonly groupKey: string }
  /** Continues with the lanes that are still parked after an activation, because it was not repeated. */
  | { readonly kind: 'unpark'; readonly slot: string; readonly groupKey: string };

export type GateAnswer =
  | {
      readonly answer: 'OK';
      /** The number of changes that have been made. Values that were already set don't count. */
      readonly changes: number;
      /** The ref of the last event for which this was not in force. */
      readonly tail: string;
      /** There are still lanes of the activated key which are parked. You need to call this again. */
      readonly more: boolean;
    }
  | { readonly answer: 'FENCED' | 'GONE' };

/**
 * Writes all of the changes to a part in a single step. Once this returns, they are in force for routing and claims.
 */
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
      return [change.kind, change.slot, change.how ?? '', change.inbox ?? ''];
    case 'on':
      return [change.kind, change.slot, change.groupKey, change.since ?? ''];
    case 'off':
    case 'unpark':
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
