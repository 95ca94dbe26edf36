import { type Message, WAITING } from './ingest.ts';
import { letWait } from './lanes.ts';
import { type Context, countsOf, type Draft, groupKeyOf, inOrder, type Subscription, slotOf, tailOf } from './part.ts';

export type GateCall = { readonly step: 'gate'; readonly slot: string } & (
  | { readonly op: 'activate' | 'deactivate'; readonly groupKey: string }
  /** `skip` opens a slot that is paused or behind, at the tail. */
  | { readonly op: 'pause' | 'resume' | 'skip' }
);

export type GateReply = 'OK' | 'SAME' | 'GONE';

function activate(part: Draft, lane: string, { now, defect }: Context): [GateReply, (Message | undefined)?] {
  const [slot, groupKey] = [slotOf(lane), groupKeyOf(lane)];
  const list = part.keys[groupKey] ?? {};
  if (list[slot] !== undefined) return ['SAME'];
  // This uses the ref of the tail instead of a time, so setting a clock back does not open anything.
  const since = defect === 'since by the clock' ? now * 100 : tailOf(part);
  part.keys[groupKey] = inOrder({ ...list, [slot]: since });
  const claimed = part.claims[lane];
  delete part.off[lane];
  if (claimed?.flag === '-') {
    part.claims[lane] = { ...claimed, flag: part.pend[lane] === undefined ? ' ' : '+' };
  }
  // Retries wait until they are due.
  if (claimed !== undefined || part.lanes[lane] !== 'w') return ['OK'];
  letWait(part, lane, now);
  return ['OK', WAITING];
}

function deactivate(part: Draft, lane: string, { defect }: Context): [GateReply, (Message | undefined)?] {
  const [slot, groupKey] = [slotOf(lane), groupKeyOf(lane)];
  const { [slot]: since, ...list } = part.keys[groupKey] ?? {};
  if (since === undefined) return ['SAME'];
  part.keys[groupKey] = list;
  const claimed = part.claims[lane];
  if (claimed !== undefined) {
    if (defect !== 'deactivate does not mark a claimed lane') part.claims[lane] = { ...claimed, flag: '-' };
  } else if (part.lanes[lane] !== undefined) part.off[lane] = true;
  return ['OK'];
}

function open(part: Draft, slot: string, sub: Subscription): [GateReply, (Message | undefined)?] {
  part.subs[slot] = { ...sub, open: true };
  if (countsOf(part, slot).waiting) part.turn[slot] ??= 0;
  return ['OK', WAITING];
}

/**
 * Sets the state of a subscription, or of one of its keys, as requested by the controller. It is exact from this step
 * on, for routing and claims.
 */
export function gate(part: Draft, call: GateCall, context: Context): [GateReply, (Message | undefined)?] {
  const { slot } = call;
  const { defect } = context;
  const sub = part.subs[slot];
  if (sub === undefined) return ['GONE'];
  const { hold, pos } = part.meta;
  switch (call.op) {
    case 'activate':
      return activate(part, slot + call.groupKey, context);
    case 'deactivate':
      return deactivate(part, slot + call.groupKey, context);
    case 'pause':
      if (!sub.open) return ['SAME'];
      part.subs[slot] = { ...sub, open: false };
      // During a hold, the position is that of the part, and not the tail.
      if (defect !== 'pause keeps no position') {
        part.pos[slot] ??= hold === '' || defect === 'pause in a hold at the tail' ? tailOf(part) : pos;
      }
      return ['OK'];
    case 'resume':
      return sub.open ? ['SAME'] : open(part, slot, sub);
    case 'skip':
      if (sub.open && part.pos[slot] === undefined) return ['SAME'];
      // During a hold, a slot without a position would use the part's position, which is before the tail.
      if (hold === '' || defect === 'skip in a hold removes the position') delete part.pos[slot];
      else part.pos[slot] = tailOf(part);
      return open(part, slot, sub);
    default:
      throw new Error('this gate does not exist');
  }
}
