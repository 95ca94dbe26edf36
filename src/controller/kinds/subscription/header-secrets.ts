import { headersWithSecret } from '../../../api/endpoint.ts';
import { NEVER_SENT_SECRET_TYPES } from '../../../api/well-known.ts';
import { type HeaderField, readHeaderField } from '../../../core/delivery/header-field.ts';
import type { KubeClient } from '../../../kube/client.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { SECRETS } from '../../../kube/resource.ts';
import type { Logger } from '../../../telemetry/log.ts';
import type { Cached, World } from '../../caches/caches.ts';

type SecretObject = AnyObject & {
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
};

interface Known {
  readonly resourceVersion: string;
  /** By key of the Secret: those that some header names, no others. */
  readonly fields: ReadonlyMap<string, HeaderField>;
}

/** Secrets that are read at once, when a new leader reads all of them. */
const READS_AT_ONCE = 16;

/** How long until a Secret is read again that the API server did not hand out. */
export const READ_AGAIN_MS = 5_000;

/** Values of the headers that endpoints take from Secrets. */
export interface HeaderSecrets {
  /** Reads those that subscriptions to the workspace name, as far as they changed since they were read. Never rejects. */
  readonly read: (tenant: string) => Promise<void>;
  /** In the order of the headers; undefined when none names a Secret. */
  readonly fieldsOf: (subscription: Cached<'Subscription'>) => readonly HeaderField[] | undefined;
}

/**
 * Values that are read from Secrets. The caches know of each Secret only that it is there and in which version, so the
 * controller holds in memory the fields that headers name, and nothing else of the cluster's Secrets.
 */
export function createHeaderSecrets(deps: {
  readonly world: Pick<World, 'Subscription' | 'headerSecrets'>;
  readonly client: Pick<KubeClient, 'get'>;
  /** The tenant is to be looked at again. */
  readonly enqueueAfter: (tenant: string, delayMs: number) => void;
  readonly log: Logger;
}): HeaderSecrets {
  const { world, client, log } = deps;
  const known = new Map<string, Known>();

  /** Keys within the Secret that anybody's header names. */
  function wantedOf(secret: string): Set<string> {
    const wanted = new Set<string>();
    for (const { metadata, spec } of world.Subscription.store.byIndex('secret', secret)) {
      for (const { secret: named } of headersWithSecret(spec.endpoint?.headers)) {
        if (`${metadata.namespace}/${named.name}` === secret) wanted.add(named.key);
      }
    }
    return wanted;
  }

  function isOutdated(secret: string): boolean {
    const now = world.headerSecrets.store.get(secret);
    if (now === undefined) return false;
    const { resourceVersion, fields } = known.get(secret) ?? {};
    return resourceVersion !== now.resourceVersion || [...wantedOf(secret)].some(key => !fields?.has(key));
  }

  async function readOne(secret: string, tenant: string): Promise<void> {
    const [namespace = '', name = ''] = secret.split('/');
    const wanted = [...wantedOf(secret)];
    try {
      const object = await client.get<SecretObject>(SECRETS, { namespace, name });
      if (object === undefined || NEVER_SENT_SECRET_TYPES.includes(object.type ?? '')) {
        known.delete(secret);
        return;
      }
      const fields = new Map(wanted.map(key => [key, readHeaderField(object.data?.[key])]));
      known.set(secret, { resourceVersion: object.metadata.resourceVersion, fields });
    } catch (error) {
      log.warn({ err: error, secret }, 'a Secret of an endpoint cannot be read');
      // What was read before goes on; the next look finds the version outdated still.
      if (!known.has(secret)) {
        known.set(secret, {
          resourceVersion: '',
          fields: new Map(wanted.map(key => [key, { fault: 'secret_unread' }])),
        });
      }
      deps.enqueueAfter(tenant, READ_AGAIN_MS);
    }
  }

  function forgetUnused(): void {
    for (const secret of known.keys()) {
      const used = world.Subscription.store.byIndex('secret', secret).length > 0;
      if (!used || world.headerSecrets.store.get(secret) === undefined) known.delete(secret);
    }
  }

  return {
    async read(tenant) {
      const named = new Set<string>();
      for (const { metadata, spec } of world.Subscription.store.byIndex('secretFor', tenant)) {
        for (const { secret } of headersWithSecret(spec.endpoint?.headers)) {
          named.add(`${metadata.namespace}/${secret.name}`);
        }
      }
      // Each once: thousands of subscriptions may name the same.
      const outdated = [...named].filter(isOutdated);
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
        // A Secret that is gone is not gone on with, whatever it held.
        const present = world.headerSecrets.store.get(key) === undefined ? undefined : known.get(key);
        if (present === undefined) return { fault: 'secret_missing' };
        return present.fields.get(secret.key) ?? { fault: 'secret_unread' };
      });
    },
  };
}
