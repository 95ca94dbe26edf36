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
  | 'granted';

/** One change of a part's control data. */
export type GateChange =
  /** A generation begins; only as the first. */
  | { readonly kind: 'begin' }
  | { readonly kind: 'meta'; readonly field: MetaField; readonly value: string }
  /** The activations are whole: they may be routed by. */
  | { readonly kind: 'marker' }
  /** They are not whole: what is accepted from now on is held back. */
  | { readonly kind: 'unmark' }
  /** A damaged field of `keys` goes. */
  | { readonly kind: 'clear'; readonly field: string }
  /** Progress that is set again after `meta` was lost; '' removes it. */
  | { readonly kind: 'progress'; readonly field: 'hold' | 'pos' | 'ids' | 'was'; readonly value: string }
  | {
      readonly kind: 'row';
      readonly slot: string;
      readonly row: SubscriptionRow;
      /**
       * Where it opens: goes on where it was, or from now on if it is new (default); stands at the tail, and opens when it
       * is caught up; or leaves out what came before.
       */
      readonly how?: 'behind' | 'skip';
    }
  /** What an endpoint needs, sealed; '' removes it. */
  | { readonly kind: 'endpoint'; readonly slot: string; readonly sealed: string }
  /** `how`: what waits for it is removed at once, not only when retention is over. */
  | { readonly kind: 'drop'; readonly slot: string; readonly how?: 'delete' }
  /** `since`: absent for now; else a position. */
  | { readonly kind: 'on'; readonly slot: string; readonly groupKey: string; readonly since?: string }
  | { readonly kind: 'off'; readonly slot: string; readonly groupKey: string };

export type GateAnswer =
  | {
      readonly answer: 'OK';
      /** Changes that were made: what stands already is none. */
      readonly changes: number;
      /** Ref of the last event that this was not in force for. */
      readonly tail: string;
      /** Lanes of an activated key are still parked: repeat the call. */
      readonly more: boolean;
    }
  | { readonly answer: 'FENCED' | 'GONE' };

/** Writes changes to a part, all of them in one step. They are in force, for routing and claims, when this answered. */
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
