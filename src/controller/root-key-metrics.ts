import type { SubscriptionSpec, SubscriptionStatus } from '../api/kinds/subscription.ts';
import type { KeyRing } from '../core/delivery/key-ring.ts';
import { sealedWith } from '../core/delivery/seal.ts';
import { ROTATION_OVERLAP_MS } from '../core/delivery/signing-secret.ts';
import { Gauge, type Registry, registerGauge } from '../telemetry/metrics.ts';

/** The part of a Subscription that depends on root keys. */
export interface KeyUser {
  readonly spec: Pick<SubscriptionSpec, 'endpoint'>;
  readonly status?: Pick<SubscriptionStatus, 'signing'> | undefined;
}

/** The purpose of a root key, as used in the `use` label. */
const USES = ['signing', 'header'] as const;
type Use = (typeof USES)[number];

/** Label for keys that are used but missing. */
const MISSING = 'missing';

function usesOf({ spec, status }: KeyUser, nowMs: number): readonly (readonly [Use, string | undefined])[] {
  const uses: [Use, string | undefined][] = [];
  const { salt, version = 1, key, previousKey, rotatedAt } = status?.signing ?? {};
  // If an endpoint is added again, it uses the same signing secret.
  if (salt !== undefined) uses.push(['signing', key]);
  const overlaps = version > 1 && nowMs < (Date.parse(rotatedAt ?? '') || 0) + ROTATION_OVERLAP_MS;
  if (salt !== undefined && overlaps && previousKey !== key) uses.push(['signing', previousKey]);
  for (const { valueSealed } of spec.endpoint?.headers ?? []) {
    if (valueSealed !== undefined) uses.push(['header', sealedWith(valueSealed) ?? '']);
  }
  return uses;
}

/** Counts the uses of each root key by file name, with 0 for unused keys. */
export function countKeyUses(
  subscriptions: Iterable<KeyUser>,
  keys: Pick<KeyRing, 'all' | 'key'>,
  nowMs: number,
): ReadonlyMap<string, Readonly<Record<Use, number>>> {
  const none = () => ({ signing: 0, header: 0 });
  const counts = new Map<string, Record<Use, number>>(
    [...keys.all().map(({ name }) => name), MISSING].map(name => [name, none()]),
  );
  for (const subscription of subscriptions) {
    for (const [use, id] of usesOf(subscription, nowMs)) {
      const count = counts.get(keys.key(id)?.name ?? MISSING);
      if (count !== undefined) count[use]++;
    }
  }
  return counts;
}

/** Registers metrics for the use of root keys. Only the leader reports them. */
export function registerRootKeyMetrics(
  registry: Registry,
  deps: {
    readonly keys: Pick<KeyRing, 'all' | 'key' | 'first'>;
    readonly caches: { readonly Subscription: { readonly store: { readonly values: () => Iterable<KeyUser> } } };
    readonly waitingFor: () => number;
    readonly nowMs: () => number;
  },
): void {
  new Gauge({
    name: 'sluice_controller_root_key_uses',
    help: 'The number of uses of each root key, by file name and use: subscriptions with a signing secret derived from this key (signing), and header values encrypted with this key (header). The key `missing` stands for root keys that were removed or retired too early.',
    labelNames: ['key', 'use'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const [key, count] of countKeyUses(deps.caches.Subscription.store.values(), deps.keys, deps.nowMs())) {
        for (const use of USES) this.set({ key, use }, count[use]);
      }
    },
  });
  new Gauge({
    name: 'sluice_controller_root_key_first',
    help: '1 if the root key is used to sign and encrypt new values, and 0 otherwise. The label contains the name of its file.',
    labelNames: ['key'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const key of deps.keys.all()) this.set({ key: key.name }, key === deps.keys.first() ? 1 : 0);
    },
  });
  registerGauge(
    registry,
    'sluice_controller_root_key_missing_replicas',
    'The number of replicas that have not loaded the newest root key yet. The leader starts using the key after all replicas have loaded it. Only the leader reports it.',
    deps.waitingFor,
  );
}
