import { hold } from '../../state/violation.ts';
import { countsOf, entryOf, type Part, readWaitMember, slotOf } from '../part/part.ts';

/** Checks that each routed event is charged once, and is either open, claimed, or ended. */
function checkConservation(part: Part): void {
  let charged = 0;
  const routed: Record<string, number> = {};
  for (const { ref, groupKey, cost, routed: slots } of part.log) {
    const all = [...slots, ...(part.late[ref] ?? [])];
    hold(13, new Set(all).size === all.length, () => `${ref} is routed twice to one of ${all.join()}`);
    charged += cost * all.length;
    for (const slot of all) {
      const lane = slot + groupKey;
      routed[slot] = (routed[slot] ?? 0) + 1;
      const claimed = part.claims[lane]?.ref === ref ? 1 : 0;
      const pending = part.pend[lane]?.filter(other => other === ref).length ?? 0;
      const ended = part.records[entryOf(lane, ref)] === undefined ? 0 : 1;
      // If the event of a claim was ended in another way, the claim holds its lane until the attempt is over.
      const places = pending + Math.max(claimed, ended);
      hold(13, places === 1, () => `${ref} is in ${places} places of ${lane}`);
    }
  }
  hold(19, part.meta.used === charged, () => `${part.meta.used} tokens are charged, and ${charged} routed`);
  for (const slot of Object.keys(part.subs)) {
    const counts = countsOf(part, slot);
    const records = Object.entries(part.records).filter(([entry]) => slotOf(entry) === slot);
    const delivered = records.filter(([, outcome]) => outcome === 'delivered').length;
    hold(13, counts.routed === (routed[slot] ?? 0), () => `${slot} counts ${counts.routed} routed`);
    hold(13, counts.delivered === delivered, () => `${slot} counts ${counts.delivered} delivered`);
    hold(13, counts.failed === records.length - delivered, () => `${slot} counts ${counts.failed} failed`);
  }
}

function checkLane(part: Part, lane: string): void {
  const claimed = part.claims[lane];
  const state = part.lanes[lane];
  const pending = part.pend[lane] !== undefined;
  if (claimed !== undefined) {
    hold(13, state === undefined, () => `${lane} is claimed, and ${state} as well`);
    if (claimed.flag === ' ') hold(13, !pending, () => `${lane} says that nothing is behind its claim`);
    if (claimed.flag === '+') hold(13, pending, () => `${lane} says that more is behind its claim`);
    return;
  }
  hold(13, pending === (state !== undefined), () => `${lane} is ${state ?? 'idle'} with ${part.pend[lane]}`);
  if (state === 'r') {
    hold(18, part.retry[lane] !== undefined, () => `${lane} retries without a time`);
    const failed = (part.tries[entryOf(lane, part.pend[lane]?.[0] ?? 0)]?.attempts ?? 0) > 0;
    hold(18, failed, () => `${lane} waits for a retry, and its head has not failed`);
  }
  if (state !== 'w' || part.off[lane]) return;
  const listed = part.wait.some(member => readWaitMember(member).lane === lane);
  hold(13, listed, () => `${lane} waits, and nobody would find it`);
}

/**
 * Checks that waiting events are always found: their slot has its turn, or returns when one of its claims is completed.
 */
function checkTurn(part: Part, slot: string): void {
  const waits = part.wait
    .map(readWaitMember)
    .some(({ lane }) => slotOf(lane) === slot && part.lanes[lane] === 'w' && !part.off[lane]);
  if (!waits) return;
  const { claims, waiting } = countsOf(part, slot);
  hold(18, waiting, () => `lanes of ${slot} wait, and newcomers would pass them`);
  if (part.subs[slot]?.open !== true || claims > 0) return;
  hold(13, part.turn[slot] !== undefined, () => `lanes of ${slot} wait, and its turn does not come`);
}

/** The invariants for every state of a part. */
export function checkPart(part: Part): void {
  checkConservation(part);
  const lanes = new Set([...Object.keys(part.claims), ...Object.keys(part.lanes), ...Object.keys(part.pend)]);
  for (const lane of lanes) checkLane(part, lane);
  for (const slot of Object.keys(part.subs)) {
    const claims = Object.keys(part.claims).filter(lane => slotOf(lane) === slot);
    const again = claims.filter(lane => part.claims[lane]?.again === true);
    const counts = countsOf(part, slot);
    hold(13, counts.claims === claims.length, () => `${slot} counts ${counts.claims} claims of ${claims.length}`);
    hold(13, counts.again === again.length, () => `${slot} counts ${counts.again} retries of ${again.length}`);
    checkTurn(part, slot);
  }
}
