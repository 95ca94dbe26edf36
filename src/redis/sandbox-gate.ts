import { parseEndpointHealth } from '../core/delivery/endpoint-health.ts';
import type { RedisClient } from './client.ts';
import { SUBSCRIPTION_FIELDS } from './control-plan.ts';
import { type InboxRef, inboxMember } from './inbox-store.ts';
import { inboxKeys, integrationKeys, sandboxKeys } from './keys.ts';
import type { InboxGate, PlacedInbox, SandboxSource } from './sandbox-source.ts';
import { writeRun } from './sandbox-store.ts';

/** What a run takes over of an integration and of a subscription; all else in those hashes is production's own progress. */
const INTEGRATION_FIELDS = ['ready', 'state', 'since'];
const GATE_FIELDS = [...new Set([...SUBSCRIPTION_FIELDS, 'since', 'skipTo', 'enabled'])];
/** What the scripts keep in the run's copy of a subscription: its own progress. */
const PROGRESS = /^(last|epoch|n:.*)$/;

/** An inbox of a run, and the queue whose events it takes. */
export interface RunInbox {
  readonly inbox: InboxRef;
  readonly queue: string;
}

/** The gate as a run finds it: a copy of what production says now, in the run's own slot. */
export interface SandboxGate {
  /**
   * Brings what production says of an inbox's integration, its subscription and these group keys into the run, and returns
   * it. Production is only read. `siblings`: every inbox of the run that is of the same integration.
   */
  readonly copy: (
    inbox: Omit<PlacedInbox, 'tenant'>,
    groupKeys: Iterable<string>,
    siblings: readonly InboxRef[],
  ) => Promise<InboxGate>;
  /** Notes inboxes, so that they are found again; before anything is put into them. */
  readonly note: (inboxes: readonly RunInbox[]) => Promise<void>;
}

/** @param ofRun client of the run, as `createSandboxClient` makes it */
export function createSandboxGate(options: {
  readonly source: SandboxSource;
  readonly ofRun: RedisClient;
  readonly tenant: string;
  readonly run: string;
  readonly nowMs: () => number;
}): SandboxGate {
  const { source, ofRun, tenant, nowMs } = options;
  const s = sandboxKeys(tenant, options.run);

  async function copyFields(inbox: InboxRef, { integration, subscription }: InboxGate): Promise<void> {
    const i = integrationKeys(inbox.integration);
    const sub = i.sub(inbox.sub);
    const had = await Promise.all([ofRun.readHash(i.meta), ofRun.readHash(sub)]);
    const changes = [
      ...difference(i.meta, had[0], pick(integration, INTEGRATION_FIELDS), /^fence$/),
      ...difference(sub, had[1], gateOf(subscription), PROGRESS),
    ];
    if (changes.length > 0) await writeRun(ofRun, s.meta, changes);
  }

  async function readActivations(integration: string): Promise<ReadonlyMap<string, string>> {
    const flat = (await ofRun.run('fields', [integrationKeys(integration).act], [])) as string[];
    const had = new Map<string, string>();
    for (let at = 0; at < flat.length; at += 2) had.set(flat[at] as string, flat[at + 1] as string);
    return had;
  }

  async function copyActivations(
    inbox: InboxRef,
    had: ReadonlyMap<string, string>,
    wanted: readonly string[],
    { activations }: InboxGate,
    siblings: readonly InboxRef[],
  ) {
    const i = integrationKeys(inbox.integration);
    const inboxes = siblings.map(each => inboxKeys(each.integration, each.sub, each.inc));
    const keys = [i.meta, i.act, ...inboxes.flatMap(x => [x.pending, x.due, x.tries, x.claims])];
    for (const groupKey of wanted) {
      const now = activations.get(groupKey) ?? '';
      const before = had.get(groupKey) ?? '';
      // Streams of one integration may differ in when: the latest is nearest to when it was.
      if (now === before || (now !== '' && Number(now) < Number(before))) continue;
      if (before !== '') await ofRun.run('act', keys, [0, nowMs(), groupKey, '']);
      if (now !== '') await ofRun.run('act', keys, [0, nowMs(), groupKey, now]);
    }
  }

  return {
    async copy({ inbox, queue }, groupKeys, siblings) {
      const had = await readActivations(inbox.integration);
      const wanted = [...new Set([...had.keys(), ...groupKeys])];
      const gate = await source.readGate({ tenant, queue, inbox }, wanted);
      await copyFields(inbox, gate);
      await copyActivations(inbox, had, wanted, gate, siblings);
      return gate;
    },
    async note(inboxes) {
      const fields = inboxes.flatMap(({ inbox, queue }) => [inboxMember(inbox), queue]);
      if (fields.length > 0) await writeRun(ofRun, s.meta, [['HSET', s.inboxes, ...fields]]);
    },
  };
}

type Fields = Readonly<Record<string, string>>;

/**
 * What holds for the run, too. Not the limit of attempts a second, nor how the endpoint fared so far: it is not called, and
 * what the run simulates says nothing of it. That it is disabled holds.
 */
function gateOf(subscription: Fields): Fields {
  const { cap, ...rest } = pick(subscription, GATE_FIELDS);
  const { health } = subscription;
  return {
    ...rest,
    ...(cap === undefined ? {} : { cap: cap.replace(/ .*$/, '') }),
    ...(health !== undefined && isDisabled(health) ? { health } : {}),
  };
}

/** Whether the field `health` of a subscription says that its endpoint is disabled. */
export function isDisabled(health: string | undefined): boolean {
  return parseEndpointHealth(health)?.disabled !== undefined;
}

function pick(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(names.flatMap(name => (fields[name] === undefined ? [] : [[name, fields[name]]])));
}

/** What makes `had` into `want`; fields that `kept` names stay. */
function difference(key: string, had: Fields, want: Fields, kept: RegExp): [string, string, ...string[]][] {
  const set = Object.entries(want).filter(([name, value]) => had[name] !== value);
  const drop = Object.keys(had).filter(name => want[name] === undefined && !kept.test(name));
  const ops: [string, string, ...string[]][] = [];
  if (set.length > 0) ops.push(['HSET', key, ...set.flat()]);
  if (drop.length > 0) ops.push(['HDEL', key, ...drop]);
  return ops;
}
