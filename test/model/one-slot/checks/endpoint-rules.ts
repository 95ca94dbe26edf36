import { hold } from '../../state/violation.ts';
import { AGE, groupKeyOf, slotOf } from '../part/part.ts';
import { cameTo, type Held, idOf, type Setup, type World } from '../world/world.ts';

/**
 * Checks the start of an attempt: its gate may only be closed for as long as a claim can wait, and the endpoint has
 * capacity for it.
 */
export function checkStart(world: World, setup: Setup, claim: Held): void {
  const { lane } = claim;
  const slot = slotOf(lane);
  const { open, active, closedAt } = world.gates;
  if (open[slot] !== true || active[lane] === undefined) {
    const since = Math.max(closedAt[slot] ?? 0, closedAt[lane] ?? 0);
    hold(
      2,
      world.now - since <= AGE,
      () => `${lane} is sent though its gate was closed ${world.now - since} ticks ago`,
    );
  }
  // Attempts with expired claims are not counted, because they can't be ended.
  const running = world.dispatchers.flatMap(({ held }) =>
    held.filter(other => slotOf(other.lane) === slot && other.state === 'sent' && !other.lapsedNow),
  );
  const cap = setup.caps[slot] ?? 1;
  hold(13, running.length < cap, () => `${slot} has ${running.length + 1} attempts at once, its cap is ${cap}`);
}

/** Records a 2xx response of an endpoint. */
export function checkHit(world: World, { lane, ref, id }: Held): void {
  const { part, history } = world;
  const entry = cameTo(lane, id ?? '');
  const hits = (history.hits[entry] ?? 0) + 1;
  history.hits[entry] = hits;
  const most = 1 + (history.lapses[entry] ?? 0) + history.failovers;
  hold(16, hits <= most, () => `${entry} has ${hits} answers 2xx, ${most - 1} crashes or lapses aside`);
  // Events lost in a failover may still be in progress and are not ordered with later events.
  if (hits > 1 || idOf(world, ref) !== id) return;
  const newest = history.newest[lane] ?? 0;
  hold(15, ref > newest, () => `${groupKeyOf(lane)}: ${ref} comes to ${slotOf(lane)} after ${newest}`);
  history.newest[lane] = ref;
  for (const earlier of part.log) {
    if (earlier.ref >= ref || earlier.groupKey !== groupKeyOf(lane)) continue;
    const open = part.pend[lane]?.includes(earlier.ref) === true || part.claims[lane]?.ref === earlier.ref;
    if (!open) continue;
    const came = (history.hits[cameTo(lane, earlier.id)] ?? 0) > 0;
    hold(15, came, () => `${ref} comes to ${lane} before ${earlier.ref}`);
  }
}
