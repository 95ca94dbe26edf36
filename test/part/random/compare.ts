import { cutOf, type Dump, endingOf, failedBytesOf, openBytesOf } from './dump.ts';
import { healthOf } from './reference/health.ts';
import { type Delivery, flightOf, hold, isClaimed, isTest, type Reference, same } from './reference/reference.ts';
import { lateCost } from './reference/routing.ts';

const sorted = (of: Iterable<string>) => [...of].sort();

function sameMap<T>(what: string, actual: ReadonlyMap<string, T>, expected: ReadonlyMap<string, T>): void {
  for (const key of new Set([...actual.keys(), ...expected.keys()])) {
    same(`${what} of ${JSON.stringify(key)}`, actual.get(key), expected.get(key));
  }
}

function mapOf<T, V>(of: Iterable<T>, entry: (each: T) => readonly [string, V]): Map<string, V> {
  return new Map(Array.from(of, entry));
}

function compareOpen(of: Reference, dump: Dump): void {
  const waiting = [...of.open.values()].filter(each => !isClaimed(of, each));
  same('what waits', sorted(dump.pending.keys()), sorted(waiting.map(({ entry }) => entry)));
  const claims = mapOf(dump.claims, ([lane, text]) => [
    lane,
    `${text.slice(1)}${text.startsWith('x') ? ' ended' : ''}`,
  ]);
  const held = mapOf(of.claims.values(), ({ delivery: { lane, ref }, by, ended }) => [
    lane,
    `${ref}${by}${ended ? ' ended' : ''}`,
  ]);
  sameMap('claim', claims, held);
  const tries = mapOf(dump.tries, ([entry, text]) => {
    const [head = '', ...failed] = text.split(',');
    return [entry, `${head}, ${failed.length} failed`];
  });
  const tried = [...of.open.values()].filter(each => each.tried);
  const expected = mapOf(tried, ({ entry, attempts, earlier, lapses, dueMs, failed, recovered }) => [
    entry,
    `${attempts} ${lapses} ${dueMs}${recovered ? `*${earlier}` : ''}, ${failed} failed`,
  ]);
  sameMap('tries', tries, expected);
}

function compareLog(of: Reference, dump: Dump): void {
  const log = dump.log.map(({ ref, groupKey, cost, slots }) => [
    ref,
    groupKey,
    cost,
    sorted([...slots, ...(dump.late.get(ref) ?? [])]),
  ]);
  const events = [...of.events.values()].sort((a, b) => (a.ref < b.ref ? -1 : 1));
  same(
    'log',
    log,
    events.map(({ ref, groupKey, cost, slots }) => [ref, groupKey, cost, sorted(slots)]),
  );
  same(
    'bodies',
    sorted(dump.bodies),
    events.map(({ ref }) => ref),
  );
  hold(
    [...dump.late.keys()].every(ref => of.events.has(ref)),
    () => 'P:late has an event that is gone',
  );
  const failedBytes = failedBytesOf(dump);
  same('bytes of failed deliveries', dump.failedBytes, failedBytes);
  let bytes = failedBytes + openBytesOf(dump) + 115 * of.idRefs.size;
  for (const { ref, cost } of dump.log) bytes += cost + lateCost(dump.late.get(ref)?.length ?? 0);
  same('bytes', Number(dump.meta.get('bytes') ?? 0), bytes);
  const oldest = events[0]?.ref ?? 'g';
  // Lists are pruned in the first call that removes a slice, and events are removed in the last call.
  const cut = cutOf(dump);
  for (const slot of of.subs.keys()) {
    const since = (refs: readonly string[] | undefined) => (refs ?? []).filter(ref => ref >= oldest && ref > cut);
    same(`list of ${slot}`, since(dump.lists.get(slot)), since(of.lists.get(slot)));
  }
}

/** Returns the sums of all minutes of a text (`lib/traffic.lua`). */
function sumsOf(text = ''): readonly number[] {
  const sums = [0, 0, 0];
  for (const minute of text.split(';').slice(1)) {
    for (const [i, count] of minute.split(' ').slice(1).entries()) sums[i] = (sums[i] ?? 0) + Number(count);
  }
  return sums;
}

function compareTraffic({ traffic, used }: Reference, { meta }: Dump): void {
  const { events, bytes, delivered, failed } = traffic;
  same('events, bytes, and tokens', sumsOf(meta.get('in')), [events, bytes, used]);
  same('deliveries and failures', sumsOf(meta.get('out')).slice(0, 2), [delivered, failed]);
}

function compareMeta(of: Reference, dump: Dump): void {
  const { meta } = dump;
  same('used', Number(meta.get('used') ?? 0), of.used);
  const live = [...of.subs].filter(([slot, { route }]) => route === 'open' && !of.positions.has(slot)).length;
  same('live subscriptions', Number(meta.get('live') ?? live), live);
  same('tail', meta.get('tail') ?? '0'.repeat(15), of.tail);
  same('hold', [meta.get('hold'), meta.get('pos')], [of.hold, of.position]);
  sameMap('position', dump.positions, of.positions);
  const active = new Map<string, string>();
  for (const [field, text] of dump.keys) {
    const groupKey = field.split('\0')[0] as string;
    if (field === '') continue;
    for (let at = 0; at + 23 <= text.length; at += 23) {
      const slot = text.slice(at, at + 8);
      hold(!active.has(slot + groupKey), () => `${groupKey} is active for ${slot} twice`);
      active.set(slot + groupKey, text.slice(at + 8, at + 23));
    }
  }
  sameMap('activation', active, of.active);
  const ready = mapOf(of.ready, ([name, r]) => [
    name,
    [r.untilMs, r.limit, r.held, r.pushed, r.room, r.bytes, r.number].join(' '),
  ]);
  sameMap('dispatcher', dump.ready, ready);
}

function compareCounts(of: Reference, dump: Dump): void {
  for (const slot of of.subs.keys()) {
    const [flight = 0, routed = 0, , delivered = 0, dead = 0, expired = 0, skipped = 0, replayed = 0] = (
      dump.counts.get(slot) ?? ''
    )
      .split(' ')
      .map(Number);
    const is = { flight, routed, delivered, dead, expired, skipped, replayed };
    const none = { routed: 0, delivered: 0, dead: 0, expired: 0, skipped: 0, replayed: 0 };
    same(`counts of ${slot}`, is, { flight: flightOf(of, slot), ...none, ...of.counts.get(slot) });
    same(`how attempts of ${slot} end`, endingOf(dump, slot), of.endings.get(slot));
    const deaths = of.deaths.get(slot);
    same(
      `dead letters of ${slot}`,
      dump.deadLetters.get(slot),
      deaths && `${deaths.ms} ${deaths.first} ${deaths.youngest}`,
    );
    // Invariant 13: every routed or replayed delivery is either open or has a record.
    const open = [...of.open.values()].filter(each => each.slot === slot && !isTest(each)).length;
    same(`conservation of ${slot}`, routed + replayed, open + delivered + dead + expired + skipped);
  }
}

function recordText(
  of: Pick<NonNullable<Delivery['record']>, 'outcome' | 'attempts' | 'endedMs' | 'reason'>,
  failed: number,
  recovered: boolean,
): string {
  return `${of.outcome}${recovered ? ' again' : ''} (${of.reason}) after ${of.attempts} attempts, ${failed} kept, at ${of.endedMs}`;
}

function compareRecords(of: Reference, dump: Dump): void {
  const isKnown = (name: string) => of.subs.has(name.slice(0, 8));
  const records = new Map<string, string>();
  for (const [name, all] of dump.records) {
    const text = all.map(each => recordText(each, each.failed.length, each.recovered === true)).join(' and ');
    if (isKnown(name) && all.length > 0) records.set(name, text);
  }
  const ended = [...of.deliveries.values()].filter(
    each => each.record !== undefined && !each.forgotten && isKnown(each.name),
  );
  const expected = mapOf(ended, each => [
    each.name,
    recordText(
      each.record as NonNullable<Delivery['record']>,
      each.failed,
      each.recovered && each.record?.outcome === 'dead',
    ),
  ]);
  sameMap('record', records, expected);
  const final = ended.filter(each => each.record?.outcome !== 'delivered').map(({ name }) => name);
  same('dead, skipped and expired', sorted([...dump.final.keys()].filter(isKnown)), sorted(final));
}

function compareHealth(of: Reference, dump: Dump): void {
  for (const slot of of.subs.keys()) {
    const h = healthOf(of, slot);
    const text = dump.health.get(slot);
    // Data before an endpoint was enabled is forgotten when it is read the next time.
    if (h === undefined && text !== undefined) {
      const [since = '0', , , , disabled = '-'] = text.split(' ');
      const began = disabled === '-' ? Number(since) : Number.parseInt(disabled, 10);
      hold((of.subs.get(slot)?.enabledMs ?? 0) > began, () => `health of ${slot}: is ${text}, should be nothing`);
      continue;
    }
    const expected = h && `${h.since} ${h.failures} ${h.next} ${h.pause} ${h.disabled} ${h.probe}`;
    same(`health of ${slot}`, text, expected);
  }
}

/** Compares the visible state of a part with the expected state. */
export function compareParts(of: Reference, dump: Dump): void {
  compareMeta(of, dump);
  compareTraffic(of, dump);
  compareLog(of, dump);
  compareOpen(of, dump);
  compareCounts(of, dump);
  compareRecords(of, dump);
  compareHealth(of, dump);
}
