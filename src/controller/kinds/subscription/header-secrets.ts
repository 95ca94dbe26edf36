import { headersWithSecret } from '../../../api/endpoint.ts';
import { NEVER_SENT_SECRET_TYPES } from '../../../api/well-known.ts';
import { type HeaderField, readHeaderField } from '../../../core/delivery/header-field.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { SECRETS } from '../../../kube/resource.ts';
import type { Logger } from '../../../telemetry/log.ts';
import type { Cached, Caches } from '../../caches/caches.ts';

type SecretObject = AnyObject & {
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
};

interface Known {
  readonly resourceVersion: string;
  /** The values of the Secret by key. Only keys that are used by a header are included. */
  readonly fields: ReadonlyMap<string, HeaderField>;
}

/** The maximum number of parallel reads. This limit is reached when a new leader reads all Secrets. */
const READS_AT_ONCE = 16;

/** The retry interval for a Secret that could not be read, in milliseconds. */
export const READ_AGAIN_MS = 5_000;

/** Provides the values of endpoint headers that are stored in Secrets. */
export interface HeaderSecrets {
  /**
   * Reads the Secrets for the subscriptions to a workspace if they have changed since the last read. The returned
   * promise is not rejected if a read fails.
   */
  readonly read: (tenant: string) => Promise<void>;
  /** Returns the values in the same order as the headers. Returns undefined if the headers do not use a Secret. */
  readonly fieldsOf: (subscription: Cached<'Subscription'>) => readonly HeaderField[] | undefined;
}

/**
 * Reads header values from Secrets. The caches only contain the name and the version of each Secret. The controller
 * therefore only keeps the keys that are used by headers in memory.
 */
export function createHeaderSecrets(deps: {
  readonly caches: Pick<Caches, 'Subscription' | 'headerSecrets'>;
  readonly client: Pick<KubeClient, 'get'>;
  /** Enqueues the tenant after the given delay. */
  readonly enqueueAfter: (tenant: string, delayMs: number) => void;
  readonly log: Logger;
}): HeaderSecrets {
  const { caches } = deps;
  const known = new Map<string, Known>();

  function isOutdated(secret: string): boolean {
    const now = caches.headerSecrets.store.get(secret);
    if (now === undefined) return false;
    const { resourceVersion, fields } = known.get(secret) ?? {};
    return resourceVersion !== now.resourceVersion || [...keysNamed(caches, secret)].some(key => !fields?.has(key));
  }

  /** Reads a Secret. If this fails, the values of the last read are kept. */
  async function readOne(secret: string, tenant: string): Promise<void> {
    const keys = [...keysNamed(caches, secret)];
    try {
      const found = await readSecret(deps.client, secret, keys);
      if (found === undefined) known.delete(secret);
      else known.set(secret, found);
    } catch (error) {
      deps.log.warn({ err: error, secret }, 'a Secret of an endpoint cannot be read');
      // The version of a Secret cannot be empty, so this ensures that the Secret is read again by the next sync.
      const unread = new Map(keys.map(key => [key, { fault: 'secret_unread' } as const]));
      if (!known.has(secret)) known.set(secret, { resourceVersion: '', fields: unread });
      deps.enqueueAfter(tenant, READ_AGAIN_MS);
    }
  }

  function forgetUnused(): void {
    for (const secret of known.keys()) {
      const used = caches.Subscription.store.byIndex('secret', secret).length > 0;
      if (!used || caches.headerSecrets.store.get(secret) === undefined) known.delete(secret);
    }
  }

  return {
    async read(tenant) {
      // The same Secret may be used by thousands of subscriptions, so we only read it once.
      const outdated = [...secretsNamed(caches, tenant)].filter(isOutdated);
      if (outdated.length === 0) return;
      forgetUnused();
      const waiting = outdated.values();
      const readers = Array.from({ length: Math.min(READS_AT_ONCE, outdated.length) }, async () => {
        for (const secret of waiting) await readOne(secret, tenant);
      });
      await Promise.all(readers);
    },
    fieldsOf({ metadata, spec }) {
      const headers = headersWithSecret(spec.endpoint?.headers);
      if (headers.length === 0) return undefined;
      return headers.map(({ secret }) => {
        const key = `${metadata.namespace}/${secret.name}`;
        // We check the cache here so that the values of a deleted Secret are not used.
        const present = caches.headerSecrets.store.get(key) === undefined ? undefined : known.get(key);
        if (present === undefined) return { fault: 'secret_missing' };
        return present.fields.get(secret.key) ?? { fault: 'secret_unread' };
      });
    },
  };
}

/** Returns the Secrets that are used by headers of the subscriptions to a workspace, in the form `namespace/name`. */
function secretsNamed({ Subscription }: Pick<Caches, 'Subscription'>, tenant: string): Set<string> {
  const named = new Set<string>();
  for (const { metadata, spec } of Subscription.store.byIndex('secretFor', tenant)) {
    for (const { secret } of headersWithSecret(spec.endpoint?.headers))
      named.add(`${metadata.namespace}/${secret.name}`);
  }
  return named;
}

/** Returns the keys of a Secret that are used by headers. */
function keysNamed({ Subscription }: Pick<Caches, 'Subscription'>, secret: string): Set<string> {
  const keys = new Set<string>();
  for (const { metadata, spec } of Subscription.store.byIndex('secret', secret)) {
    for (const { secret: named } of headersWithSecret(spec.endpoint?.headers)) {
      if (`${metadata.namespace}/${named.name}` === secret) keys.add(named.key);
    }
  }
  return keys;
}

/**
 * Reads the given keys of a Secret. Returns undefined if the Secret does not exist or has a type that is not allowed.
 */
async function readSecret(
  client: Pick<KubeClient, 'get'>,
  secret: string,
  keys: readonly string[],
): Promise<Known | undefined> {
  const [namespace = '', name = ''] = secret.split('/');
  const object = await client.get<SecretObject>(SECRETS, { namespace, name });
  if (object === undefined || NEVER_SENT_SECRET_TYPES.includes(object.type ?? '')) return undefined;
  const fields = new Map(keys.map(key => [key, readHeaderField(object.data?.[key])]));
  return { resourceVersion: object.metadata.resourceVersion, fields };
}
