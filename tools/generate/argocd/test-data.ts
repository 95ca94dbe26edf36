import { CONDITION_MEANING } from '../../../src/api/condition-reasons.ts';
import { NEW_STATUS } from '../../../src/api/conditions.ts';
import { API_VERSION } from '../../../src/api/group-version.ts';
import { KINDS, type KindName } from '../../../src/api/kinds/kinds.ts';
import { PAUSED_ANNOTATION } from '../../../src/api/well-known.ts';
import type { Health, Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';

/** An object and its expected health. */
export interface TestCase {
  /** The file name without the extension. */
  readonly name: string;
  readonly object: Readonly<Record<string, unknown>>;
  readonly health: { readonly status: Health; readonly message: string };
}

const GENERATION = 3;

/** The minimum valid spec of each kind. */
const SPECS: Record<KindName, object> = {
  Account: { owners: [{ issuer: 'https://login.example.com', subject: 'ada', role: 'Owner' }] },
  Workspace: { account: 'acme' },
  CatalogStream: { public: true },
  Package: { streams: ['orders'] },
  Integration: { workspace: 'globex' },
  Activation: { integration: 'globex', groupKey: 'customer-42' },
  Block: { integration: 'globex', target: { kind: 'CatalogStream', name: 'orders' } },
  Subscription: { producer: 'acme', integration: 'globex', stream: 'orders' },
};

function objectOf(kind: KindName, metadata: object, status?: object): TestCase['object'] {
  const name = { name: 'test', ...(KINDS[kind].scope === 'Namespaced' && { namespace: 'acme' }) };
  const more = status === undefined ? {} : { status };
  return {
    apiVersion: API_VERSION,
    kind,
    metadata: { ...name, generation: GENERATION, ...metadata },
    spec: SPECS[kind],
    ...more,
  };
}

/** Returns the description of the reason, without the statuses at the start. */
function messageOf(kind: KindName, type: string, reason: string): string {
  const meanings: Readonly<Record<string, Readonly<Record<string, string>>>> = CONDITION_MEANING[kind];
  const meaning = meanings[type]?.[reason];
  if (meaning === undefined) throw new Error(`${kind} has no reason ${reason} for ${type}`);
  return meaning.replace(/^(True|False|Unknown)(, (True|False|Unknown))*: /, '');
}

function conditionsOf(kind: KindName, scenario: Scenario) {
  return Object.entries<string>(scenario.conditions).map(([type, condition]) => {
    const [status = '', reason = ''] = condition.split(' ');
    const message = messageOf(kind, type, reason);
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    return { type, status, reason, message, observedGeneration: GENERATION, lastTransitionTime };
  });
}

function caseOf(kind: KindName, scenario: Scenario): TestCase {
  const { name, paused, health: status, by = ['Ready'] } = scenario;
  const metadata = paused === undefined ? {} : { annotations: { [PAUSED_ANNOTATION]: paused } };
  const conditions = conditionsOf(kind, scenario);
  const quoted = conditions.filter(({ type }) => by.some(named => named === type));
  const message = scenario.message ?? quoted.map(({ reason, message }) => `${reason}: ${message}`).join('; ');
  return {
    name,
    object: objectOf(kind, metadata, { observedGeneration: GENERATION, conditions }),
    health: { status, message },
  };
}

/** The health of an object whose generation is newer than its status. */
export const STALE: TestCase['health'] = {
  status: 'Progressing',
  message: 'the controller has not reconciled this generation yet',
};

/**
 * The health of an object that is being deleted, as returned by the script. Argo CD reports this health without running
 * the script.
 */
export const DELETING: TestCase['health'] = { status: 'Progressing', message: 'the object is being deleted' };

/** Returns the same object after a change that the controller has not processed. */
export function staleOf({ name, object }: TestCase): TestCase {
  const metadata = { ...(object.metadata as object), generation: GENERATION + 1 };
  return { name: `${name}-stale`, object: { ...object, metadata }, health: STALE };
}

/** Returns the same object after it was deleted. */
export function deletingOf({ name, object }: TestCase): TestCase {
  const metadata = { ...(object.metadata as object), deletionTimestamp: '2026-01-02T00:00:00Z' };
  return { name: `${name}-deleting`, object: { ...object, metadata }, health: DELETING };
}

/** Returns a case for each scenario of a kind, and the cases that don't depend on reasons. */
export function testCases(kind: KindName): readonly TestCase[] {
  const scenarios: readonly Scenario[] = SCENARIOS[kind] as readonly Scenario[];
  const cases = scenarios.map(scenario => caseOf(kind, scenario));
  const healthy = scenarios.find(({ health }) => health === 'Healthy');
  const ready = cases.find(({ health }) => health.status === 'Healthy');
  if (healthy === undefined || ready === undefined) throw new Error(`${kind} has no scenario that is Healthy`);
  const reconciling: Scenario = {
    name: 'ready-and-reconciling',
    health: 'Progressing',
    by: ['Reconciling'],
    conditions: { ...healthy.conditions, Reconciling: 'True Progressing' },
  };
  return [
    ...cases,
    caseOf(kind, reconciling),
    { name: 'without-status', object: objectOf(kind, {}), health: STALE },
    // The default in the CRD, for an object that the controller has not processed.
    { name: 'new', object: objectOf(kind, { generation: 1 }, NEW_STATUS), health: STALE },
    { ...staleOf(ready), name: 'stale' },
    { ...deletingOf(ready), name: 'deleting' },
  ];
}
