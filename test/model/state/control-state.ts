import { generationOf, tenantId } from '../../../src/core/ids/ids.ts';
import { integrationKeys, queueKeys, tenantKeys } from '../../../src/redis/keys.ts';
import { type Definition, integrationId, subscriptionId } from './definition.ts';
import type { RedisDump } from './redis-dump.ts';

/**
 * The control state of one tenant as far as a rebuild has to make it again: routes, gates, keys, whatever is open. Left
 * out: what remembers a history (`since`, generations of writers, marks), what the data plane writes, and what no
 * object owns any more as long as it is closed.
 */
export interface ControlState {
  readonly queues: Readonly<Record<string, string>>;
  readonly integrations: Readonly<Record<string, string>>;
  /** `integration/subscription` → route, send and the rest of its configuration. */
  readonly subscriptions: Readonly<Record<string, string>>;
  /** queue → integration → subscription, as the router asks it. */
  readonly subscribers: Readonly<Record<string, string>>;
  readonly activations: readonly string[];
  readonly gates: readonly string[];
  readonly rest: string;
}

const CONTROL_FIELDS = {
  queue: ['ready', 'gen', 'state', 'retentionMs', 'maxBytes', 'source', 'eventTypes', 'contextHeaders', 'cfgv'],
  subscription: ['inc', 'tenant', 'queue', 'gen', 'route', 'send', 'onUnblock', 'cap', 'unordered', 'endpoint', 'cfgv'],
};

/** What a tenant is called outside of Redis. */
export interface TenantNames {
  /** Name of the workspace, and of its partners' namespace. */
  readonly name: string;
  readonly partner: string;
  readonly integrations: readonly string[];
  readonly streams: readonly string[];
}

function pick(hash: Readonly<Record<string, string>>, fields: readonly string[]): string {
  return fields.map(field => `${field}=${hash[field] ?? ''}`).join(' ');
}

function sortedRecord(entries: readonly (readonly [string, string])[]): Record<string, string> {
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Closed, and owned by no object: only the memory that it existed differs from a rebuild. */
const isClosed = (hash: Readonly<Record<string, string>>) => hash.route === 'closed' && hash.send === 'held';

export function readControlState(dump: RedisDump, names: TenantNames, defined: Definition): ControlState {
  const tenant = tenantId(names.name);
  const t = tenantKeys(tenant);
  const living = new Set([...defined.subscriptions.values()].map(({ uid }) => generationOf(uid)));
  const queues: [string, string][] = [];
  const subscribers: [string, string][] = [];
  for (const stream of names.streams) {
    const meta = dump.hashes.get(queueKeys(tenant, stream).meta);
    const owned = meta !== undefined && meta.gen === generationOf(defined.streams.get(stream)?.uid ?? '');
    // With a fence alone it has no owner any more: its stream was removed while a pause held the rest of its deletion.
    if (meta !== undefined && (owned || !['closing', undefined].includes(meta.state))) {
      queues.push([stream, pick(meta, CONTROL_FIELDS.queue)]);
    }
    const asked = Object.entries(dump.hashes.get(t.subs(stream)) ?? {});
    if (asked.length > 0) subscribers.push([stream, JSON.stringify(sortedRecord(asked))]);
  }
  const integrations: [string, string][] = [];
  const subscriptions: [string, string][] = [];
  const activations: string[] = [];
  for (const name of names.integrations) {
    const i = integrationKeys(integrationId(tenantName(names), name));
    const meta = dump.hashes.get(i.meta);
    if (meta !== undefined && (defined.integrations.has(name) || !['closed', undefined].includes(meta.state))) {
      integrations.push([name, pick(meta, ['ready', 'state'])]);
    }
    for (const groupKey of Object.keys(dump.hashes.get(i.act) ?? {})) activations.push(`${name}/${groupKey}`);
    for (const [key, hash] of dump.hashes) {
      if (!key.startsWith(i.sub('')) || hash.inc === undefined) continue;
      if (isClosed(hash)) continue;
      const known = living.has(hash.inc) ? key.slice(i.sub('').length) : `nobody's ${key}`;
      subscriptions.push([`${name}/${known}`, pick(hash, CONTROL_FIELDS.subscription)]);
    }
  }
  const meta = dump.hashes.get(t.meta) ?? {};
  return {
    queues: sortedRecord(queues),
    integrations: sortedRecord(integrations),
    subscriptions: sortedRecord(subscriptions),
    subscribers: sortedRecord(subscribers),
    activations: activations.toSorted(),
    gates: Object.keys(dump.sorted.get(t.gates) ?? {}).toSorted(),
    rest: `${pick(meta, ['ready', 'payer', 'plan'])} ${JSON.stringify(dump.hashes.get(t.keys) ?? {})}`,
  };
}

const tenantName = ({ name }: TenantNames) => name;

/** The part of the control state that the definition decides. */
export interface DecidedState {
  readonly queues: Readonly<Record<string, string>>;
  readonly integrations: Readonly<Record<string, string>>;
  readonly routes: Readonly<Record<string, string>>;
  readonly subscribers: Readonly<Record<string, string>>;
  readonly activations: readonly string[];
  readonly gates: readonly string[];
}

const field = (text: string, name: string) => new RegExp(`(?:^| )${name}=(\\S*)`).exec(text)?.[1] ?? '';

export function decidedOf(state: ControlState): DecidedState {
  const map = (record: Readonly<Record<string, string>>, to: (text: string) => string) =>
    Object.fromEntries(Object.entries(record).map(([key, text]) => [key, to(text)]));
  return {
    queues: map(state.queues, text => `${field(text, 'gen')} ${field(text, 'state')} ready ${field(text, 'ready')}`),
    integrations: map(state.integrations, text => `${field(text, 'state')} ready ${field(text, 'ready')}`),
    routes: map(state.subscriptions, text => `${field(text, 'inc')} ${field(text, 'route')} ${field(text, 'send')}`),
    subscribers: state.subscribers,
    activations: state.activations,
    gates: state.gates,
  };
}

/** The same, from the definition alone: live exactly when wanted and not covered (invariant 3). */
export function decidedBy(defined: Definition, names: TenantNames): DecidedState {
  const wanted = [...defined.subscriptions.values()].filter(({ route }) => route !== 'closed');
  const idOf = ({ name }: { name: string }) => subscriptionId(names.partner, name);
  const gates = [...defined.gates].map(pair => {
    const slash = pair.indexOf('/');
    return `${pair.slice(slash + 1)}\0${integrationId(names.name, pair.slice(0, slash))}`;
  });
  const byStream = Map.groupBy(wanted, ({ stream }) => stream);
  return {
    queues: sortedRecord(
      [...defined.streams].map(([stream, { uid, takesEvents }]) => [
        stream,
        `${generationOf(uid)} ${takesEvents ? 'open' : 'closing'} ready 1`,
      ]),
    ),
    integrations: sortedRecord([...defined.integrations].map(([name, state]) => [name, `${state} ready 1`])),
    routes: sortedRecord(
      wanted.map(each => [
        `${each.integration}/${idOf(each)}`,
        `${generationOf(each.uid)} ${each.route} ${each.sends ? 'open' : 'held'}`,
      ]),
    ),
    subscribers: sortedRecord(
      [...byStream].map(([stream, each]) => [
        stream,
        JSON.stringify(
          sortedRecord(
            each.map(one => [integrationId(names.name, one.integration), `${idOf(one)}.${generationOf(one.uid)}`]),
          ),
        ),
      ]),
    ),
    activations: [...defined.gates].toSorted(),
    gates: gates.toSorted(),
  };
}

type Part = string | readonly string[] | Readonly<Record<string, string>>;

/** What two equal parts do not have in common, one after the other; empty when they are equal. */
export function differencesOf(is: Part, should: Part): string {
  const entriesOf = (part: Part) => (typeof part === 'string' ? [part] : Object.entries(part).map(String));
  const entries = (part: Part) => (Array.isArray(part) ? part : entriesOf(part));
  const only = (a: Part, b: Part) => entries(a).filter(entry => !entries(b).includes(entry));
  const [first, second] = [only(is, should), only(should, is)];
  return first.length + second.length === 0
    ? ''
    : `${first.join('; ') || 'nothing'} <> ${second.join('; ') || 'nothing'}`;
}
