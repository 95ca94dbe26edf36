import type { EndpointHeader } from '../../../api/endpoint.ts';
import type { SubscriptionSpec } from '../../../api/kinds/subscription.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { sealedWith } from '../../../core/delivery/seal.ts';
import { ownedPart } from '../../../kube/managed-fields.ts';
import { sleep } from '../../../time/clock.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import { sealsOf } from './subscription-request.ts';

/** The interval between two passes over all subscriptions, in milliseconds, with up to 100 % jitter. */
const PASS_EVERY_MS = 5_000;
/** The interval between two writes, in milliseconds. For example, 10,000 subscriptions take 17 minutes. */
const WRITE_EVERY_MS = 100;
/** The number of subscriptions to check before other calls are processed. */
const OPENED_AT_ONCE = 50;
/** The delay before a subscription that could not be written is tried again. */
const RETRY_AFTER_MS = 600_000;
/**
 * After this time, the subscription has a salt. Before this time, only values encrypted with a different root key are
 * re-encrypted.
 */
const SETTLED_AFTER_MS = 300_000;

type Deps = Pick<Facade, 'caches' | 'writer' | 'headerSeals' | 'keys' | 'clock' | 'wallMs' | 'log'>;

/**
 * Re-encrypts the header values of all subscriptions that were encrypted with a root key older than the first key so
 * that no value depends on older keys. Values of new subscriptions are bound to their salt in the same way. Replicas do
 * this independently of each other and write the same values. If a replica detects a new first key later than other
 * replicas, it does not change their values.
 */
export function createResealing({ caches, writer, headerSeals, keys, clock, wallMs, log }: Deps) {
  /** Endpoints that don't need to be checked before the given time unless the keys change. */
  const checked = new WeakMap<object, { readonly state: object; readonly untilMs: number }>();

  /** Returns the headers to store. Values that can't be decrypted are not changed. */
  function resealed({ metadata, spec, status }: Cached<'Subscription'>): readonly EndpointHeader[] {
    const { headers = [], url = '' } = spec.endpoint ?? {};
    const seals = sealsOf(headerSeals, metadata, { metadata, status }, url);
    const age = wallMs() - Date.parse(metadata.creationTimestamp ?? '');
    return headers.map(header => {
      const { name, valueSealed } = header;
      if (valueSealed === undefined) return header;
      const by = sealedWith(valueSealed);
      if (age < SETTLED_AFTER_MS && by === keys.first().id) return header;
      const all = keys.all();
      if (all.findIndex(({ id }) => id === by) > all.indexOf(keys.first())) return header;
      const value = seals.open(name, valueSealed);
      return value === undefined ? header : { ...header, valueSealed: seals.seal(name, value) };
    });
  }

  function isOutdated(subscription: Cached<'Subscription'>): boolean {
    const { headers } = subscription.spec.endpoint ?? {};
    if (headers === undefined || subscription.metadata.deletionTimestamp !== undefined) return false;
    const now = resealed(subscription);
    return headers.some(({ valueSealed }, i) => valueSealed !== now[i]?.valueSealed);
  }

  /** Values written by another field manager are not changed. */
  async function reseal({ namespace, name }: Cached<'Subscription'>['metadata']): Promise<void> {
    await writer.edit(async () => {
      const before = await caches.live('Subscription', { namespace, name });
      if (before === undefined || !isOutdated(before)) return;
      const manager = FIELD_MANAGER.facade;
      const own: Partial<SubscriptionSpec> = ownedPart(before, manager);
      if (own.endpoint?.headers === undefined) return;
      const spec = { ...own, endpoint: { ...own.endpoint, headers: [...resealed(before)] } };
      await writer.apply('Subscription', before.metadata, { manager, before, concern: [], exactly: true, spec });
    });
  }

  /** Checks all subscriptions once. */
  async function pass(signal: AbortSignal): Promise<void> {
    let opened = 0;
    for (const subscription of caches.reflector('Subscription').store.values()) {
      if (signal.aborted) return;
      const { endpoint } = subscription.spec;
      if (endpoint?.headers === undefined) continue;
      const known = checked.get(endpoint);
      if (known?.state === keys.state() && wallMs() < known.untilMs) continue;
      const settledMs = Date.parse(subscription.metadata.creationTimestamp ?? '') + SETTLED_AFTER_MS;
      if (++opened % OPENED_AT_ONCE === 0) await sleep(clock, 0, signal);
      let untilMs = wallMs() < settledMs ? settledMs : Number.POSITIVE_INFINITY;
      if (isOutdated(subscription)) {
        const { namespace, name } = subscription.metadata;
        untilMs = wallMs() + RETRY_AFTER_MS;
        await reseal(subscription.metadata).catch(error =>
          log.info({ err: error, namespace, name }, 'failed to re-encrypt header values, retrying later'),
        );
        await sleep(clock, WRITE_EVERY_MS, signal);
      }
      checked.set(endpoint, { state: keys.state(), untilMs });
    }
  }

  return {
    pass,
    /** Repeats these passes until the signal is aborted. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await sleep(clock, PASS_EVERY_MS * (1 + Math.random()), signal);
        await pass(signal);
      }
    },
  };
}
