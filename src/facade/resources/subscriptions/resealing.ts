import type { EndpointHeader } from '../../../api/endpoint.ts';
import type { SubscriptionSpec } from '../../../api/kinds/subscription.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { sealedWith } from '../../../core/delivery/seal.ts';
import { ownedPart } from '../../../kube/managed-fields.ts';
import { sleep } from '../../../time/clock.ts';
import type { Cached } from '../../objects/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import { sealsOf } from './subscription-request.ts';

/** Time between two passes over all subscriptions, in milliseconds, with up to 100 % jitter. */
const PASS_EVERY_MS = 5_000;
/** Time between two writes, in milliseconds: 10,000 subscriptions take 17 minutes. */
const WRITE_EVERY_MS = 100;
/** Subscriptions to check before calls get their turn. */
const OPENED_AT_ONCE = 50;
/** Time until a subscription is tried again that could not be written. */
const RETRY_AFTER_MS = 600_000;
/** By then a subscription has its salt. Earlier, only values of another root key are encrypted again. */
const SETTLED_AFTER_MS = 300_000;

type Deps = Pick<Facade, 'caches' | 'writer' | 'headerSeals' | 'keys' | 'clock' | 'wallMs' | 'log'>;

/**
 * Encrypts the header values of all subscriptions again that were encrypted with a root key older than the first one, so
 * that no value depends on the older ones anymore. Values of new subscriptions are bound to their salt in the same way.
 * Replicas do this independently of each other, and write the same values. A replica that learns of a new first key
 * later than others leaves their values as they are.
 */
export function createResealing({ caches, writer, headerSeals, keys, clock, wallMs, log }: Deps) {
  /** Endpoints that need no check until the given time, as long as the keys stay the same. */
  const checked = new WeakMap<object, { readonly state: object; readonly untilMs: number }>();

  /** Returns the headers as they should be stored. Values that can't be decrypted are left as they are. */
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

  /** Values that another field manager has written stay as they are. */
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
          log.info({ err: error, namespace, name }, 'header values could not be encrypted again, retrying later'),
        );
        await sleep(clock, WRITE_EVERY_MS, signal);
      }
      checked.set(endpoint, { state: keys.state(), untilMs });
    }
  }

  return {
    pass,
    /** Repeats passes until the signal is aborted. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await sleep(clock, PASS_EVERY_MS * (1 + Math.random()), signal);
        await pass(signal);
      }
    },
  };
}
