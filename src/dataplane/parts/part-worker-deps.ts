import type { ScriptClient } from '../../part/call.ts';
import { type Advance, createAdvance } from '../../part/catchup/advance.ts';
import { createExchange, type Exchange } from '../../part/claims/exchange.ts';
import { createEvict, createReadOwnClaims, type Evict, type ReadOwnClaims } from '../../part/claims/held-claims.ts';
import { createLookAtPart, type LookAtPart } from '../../part/claims/look.ts';
import type { Part } from '../../part/keys.ts';
import { createReadClaimedBodies, type ReadClaimedBodies } from '../../part/log/claimed-bodies.ts';
import type { DeliveryNews } from '../../plane/delivery-news.ts';
import type { PushConnection } from '../../redis/connection/push-connection.ts';
import type { PacedStarts } from '../../time/paced-starts.ts';
import type { DeliverDeps } from '../dispatcher/deliver.ts';
import type { SlotOpening } from './claims/opened-slots.ts';
import type { PartTally } from './part-metrics.ts';
import type { Room } from './room.ts';
import type { Activity } from './upkeep.ts';

/** The scripts that a part's worker will call. */
interface PartCalls {
  readonly exchange: Exchange;
  readonly readOwnClaims: ReadOwnClaims;
  readonly evict: Evict;
  readonly advance: Advance;
  readonly look: LookAtPart;
  readonly readBodies: ReadClaimedBodies;
}

/** Creates the calls that a worker makes on a connection. */
export function createPartCalls(redis: ScriptClient): PartCalls {
  return {
    exchange: createExchange(redis),
    readOwnClaims: createReadOwnClaims(redis),
    evict: createEvict(redis),
    advance: createAdvance(redis),
    look: createLookAtPart(redis),
    readBodies: createReadClaimedBodies(redis),
  };
}

/** The dependencies that are shared by the workers for all parts of a process. */
export interface PartWorkerDeps extends SlotOpening, PartCalls, Omit<DeliverDeps, 'nowMs'> {
  /** The name of this process, without blanks. No other process may ever use it because claims belong to this name. */
  readonly name: string;
  readonly pushes: Pick<PushConnection, 'listen' | 'fence' | 'isListening' | 'leave'>;
  /** Used for the calls after a lost connection. If it is not set, the calls are made at once. */
  readonly paced?: PacedStarts;
  readonly room: Room;
  /** The memory that this process may use for large bodies during attempts, in bytes. */
  readonly bodyRoom: Room;
  /** Reports activity in the part. */
  readonly onActivity?: (seen: Activity) => void;
  /** Called if an endpoint was disabled because of its response. */
  readonly onDisabled: (part: Part, slot: string) => void;
  /** Called if the state of a subscription's deliveries has changed. */
  readonly onDelivery: (part: Part, slot: string, news: DeliveryNews) => void;
  /** The counts for this part. */
  readonly tally?: PartTally;
  /** Control data of a part are missing. */
  readonly onClosed: (part: Part) => void;
}
