import { generationOf } from '../../../src/core/ids/ids.ts';
import { slotOf } from '../../../src/part/keys.ts';
import { type Definition, subscriptionId } from './definition.ts';
import type { WorldDump } from './world-dump.ts';

/** The name of a tenant outside of Redis. */
export interface TenantNames {
  /** The name of the workspace, and of the namespace of its partners. */
  readonly name: string;
  readonly partner: string;
  readonly integrations: readonly string[];
  readonly streams: readonly string[];
}

/** The control data in the parts of a tenant, which determines the disposition of its events. */
export interface ControlState {
  /** The generation and state, by stream. */
  readonly parts: Readonly<Record<string, string>>;
  /** The route and send states of slots that are not closed, by `stream/slot`. */
  readonly rows: Readonly<Record<string, string>>;
  /** The active keys of those slots, as `stream/slot key`. */
  readonly active: readonly string[];
  /** All other data written there by the controller. */
  readonly rest: Readonly<Record<string, string>>;
}

const META = ['state', 'cfgv', 'retentionMs', 'maxBytes', 'source', 'eventTypes', 'contextHeaders', 'payer', 'plan'];
const ENTRY = /([0-9a-v]{8})[0-9a-f]{15}/g;
const WORDS: Readonly<Record<string, string>> = { o: 'open', p: 'paused', h: 'held' };

function sortedRecord(entries: readonly (readonly [string, string])[]): Record<string, string> {
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Returns the current state. A part that does not accept events and has no stream is removed by the garbage collector.
 */
export function readControlState(
  dump: WorldDump,
  tenant: string,
  names: TenantNames,
  { streams }: Pick<Definition, 'streams'>,
): ControlState {
  const parts: [string, string][] = [];
  const rows: [string, string][] = [];
  const rest: [string, string][] = [];
  const active: string[] = [];
  for (const stream of names.streams) {
    const part = dump.parts.get(`${tenant}:${stream}`);
    if (part === undefined) continue;
    const { meta, subs, keys, endpoints } = part;
    const isOwned = part.part.gen === generationOf(streams.get(stream)?.uid ?? '');
    if (!isOwned && meta.get('state') === 'closing') continue;
    const isWhole = meta.get('ready') === '1' && keys.has('');
    parts.push([stream, `${part.part.gen} ${meta.get('state')} ${isWhole ? 'whole' : 'not whole'}`]);
    rest.push([stream, META.map(field => `${field}=${meta.get(field) ?? ''}`).join(' ')]);
    const open = new Set<string>();
    for (const [slot, row] of subs) {
      if (row.startsWith('c')) continue;
      open.add(slot);
      rows.push([`${stream}/${slot}`, `${WORDS[row[0] as string]} ${WORDS[row[1] as string]}`]);
      rest.push([`${stream}/${slot}`, `${row} ${endpoints.get(slot) ?? ''}`]);
    }
    for (const [groupKey, list] of keys) {
      if (groupKey === '') continue;
      for (const [, slot = ''] of list.matchAll(ENTRY))
        if (open.has(slot)) active.push(`${stream}/${slot} ${groupKey}`);
    }
  }
  return { parts: sortedRecord(parts), rows: sortedRecord(rows), active: active.toSorted(), rest: sortedRecord(rest) };
}

/**
 * Returns the expected state from the definition alone: a subscription is live if and only if it is wanted and not
 * blocked (invariant 3).
 */
export function controlStateBy(defined: Definition, names: TenantNames): Omit<ControlState, 'rest'> {
  const wanted = [...defined.subscriptions.values()]
    .filter(({ route }) => route !== 'closed')
    .map(each => {
      const slot = slotOf(subscriptionId(names.partner, each.name), generationOf(each.uid));
      return { ...each, place: `${each.stream}/${slot}` };
    });
  const gates = [...defined.gates].map(pair => pair.split('/') as [string, string]);
  return {
    parts: sortedRecord(
      [...defined.streams].map(([stream, { uid, takesEvents }]) => [
        stream,
        `${generationOf(uid)} ${takesEvents ? 'open' : 'closing'} whole`,
      ]),
    ),
    rows: sortedRecord(wanted.map(({ place, route, sends }) => [place, `${route} ${sends ? 'open' : 'held'}`])),
    active: wanted
      .flatMap(({ place, integration }) =>
        gates.filter(([of]) => of === integration).map(([, groupKey]) => `${place} ${groupKey}`),
      )
      .toSorted(),
  };
}

type Piece = readonly string[] | Readonly<Record<string, string>>;

/** Returns the differences between two values, one after another. Empty if they are equal. */
export function differencesOf(is: Piece, should: Piece): string {
  const entries = (of: Piece): readonly string[] => (Array.isArray(of) ? of : Object.entries(of).map(String));
  const only = (a: Piece, b: Piece) => entries(a).filter(entry => !entries(b).includes(entry));
  const [first, second] = [only(is, should), only(should, is)];
  return first.length + second.length === 0
    ? ''
    : `${first.join('; ') || 'nothing'} <> ${second.join('; ') || 'nothing'}`;
}
