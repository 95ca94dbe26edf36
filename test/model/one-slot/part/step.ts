import { type AdvanceCall, type AdvanceReply, advance } from './advance.ts';
import {
  type EvictCall,
  type EvictReply,
  evict,
  type GrantCall,
  grant,
  type MineCall,
  type MineReply,
  mine,
  type SweepCall,
  sweep,
} from './evict.ts';
import { type ExchangeCall, type ExchangeReply, exchange } from './exchange.ts';
import { type GateCall, type GateReply, gate } from './gate.ts';
import { type IngestCall, type IngestReply, ingest, type Message } from './ingest.ts';
import { type Context, type Draft, draftOf, type Part, partOf } from './part.ts';

export interface Steps {
  readonly ingest: readonly [IngestCall, IngestReply];
  readonly exchange: readonly [ExchangeCall, ExchangeReply];
  readonly advance: readonly [AdvanceCall, AdvanceReply];
  readonly gate: readonly [GateCall, GateReply];
  readonly evict: readonly [EvictCall, EvictReply];
  readonly mine: readonly [MineCall, MineReply];
  readonly sweep: readonly [SweepCall, null];
  readonly grant: readonly [GrantCall, null];
}

export type StepName = keyof Steps;
/** The arguments of a script. */
export type Call<K extends StepName = StepName> = { [N in K]: Steps[N][0] }[K];

export interface Stepped<K extends StepName = StepName> {
  readonly part: Part;
  readonly reply: Steps[K][1];
  /** The published messages. */
  readonly message: Message | undefined;
}

type Runs<K extends StepName> = (
  part: Draft,
  call: Steps[K][0],
  context: Context,
) => [Steps[K][1], (Message | undefined)?];

const STEPS: { readonly [K in StepName]: Runs<K> } = { ingest, exchange, advance, gate, evict, mine, sweep, grant };

/** Runs a script, which is a pure function of the part and the call. */
export function runStep<K extends StepName>(
  part: Part,
  call: Steps[K][0] & { readonly step: K },
  context: Context,
): Stepped<K> {
  const draft = draftOf(part);
  const runs = STEPS[call.step] as Runs<K>;
  const [reply, message] = runs(draft, call, context);
  return { part: partOf(draft), reply, message };
}
