import { headersWithSecret } from '../../../api/endpoint.ts';
import { NEVER_SENT_SECRET_TYPES } from '../../../api/well-known.ts';
import { type HeaderField, readHeaderField } from '../../../core/delivery/header-field.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { isKubeError, NO_ANSWER } from '../../../kube/kube-error.ts';
import { SECRETS } from '../../../kube/resource.ts';
import type { Logger } from '../../../telemetry/log.ts';
import { runFewAtOnce } from '../../../time/few-at-once.ts';
import type { Cached, Caches } from '../../caches/caches.ts';
import type { SecretObject } from '../../caches/secret-caches.ts';
import type { SecretAccess } from '../../context/secret-access.ts';

interface Known {
  readonly resourceVersion: string;
  /** The values in the Secret, by key. Only includes keys used by a header. */
  readonly fields: ReadonlyMap<string, HeaderField>;
}

/** The maximum number of parallel reads. A new leader will hit this limit while reading all Secrets. */
const READS_AT_ONCE = 16;

/** The version of a Secret that could not be read. Other versions are never empty, so the next sync will read it again. */
const UNREAD = '';

/** The time limit for each read, in milliseconds. The other changes of a workspace wait for its reads. */
const READ_WITHIN_MS = 10_000;

/** The delay before reading a Secret again after a failure, in milliseconds. */
export const READ_AGAIN_MS = 5_000;

/** Provides endpoint header values stored in Secrets. */
export interface HeaderSecrets {
  /**
   * Reads all Secrets used by subscriptions to a workspace, if they have changed since the last time. The returned
   * promise never rejects even if a read fails.
   */
  readonly read: (tenant: string) => Promise<void>;
  /** Returns the values in the same order as the headers. Returns undefined if none of the headers uses a Secret. */
  readonly fieldsOf: (subscription: Cached<'Subscription'>) => readonly HeaderField[] | undefined;
}

/** Keeps the fields of the Secrets that have been read. */
function createKnownSecrets(caches: Pick<Caches, 'Subscription' | 'headerSecrets'>) {
  const known = new Map<string, Known>();
  return {
    isOutdated(secret: string): boolean {
      const now = caches.headerSecrets.store.get(secret);
      if (now === undefined) return false;
      const { resourceVersion, fields } = known.get(secret) ?? {};
      return resourceVersion !== now.resourceVersion || [...keysNamed(caches, secret)].some(key => !fields?.has(key));
    },
    /**
     * Keeps the content that was read, unless another read for a different workspace has returned the current version
     * since.
     */
    keep(secret: string, found: Known | undefined): void {
      const had = known.get(secret)?.resourceVersion;
      const isCurrent = had !== undefined && had === caches.headerSecrets.store.get(secret)?.resourceVersion;
      if (isCurrent && had !== found?.resourceVersion) return;
      if (found === undefined) known.delete(secret);
      else known.set(secret, found);
    },
    /** Keeps the previous values of a Secret that could not be read. */
    keepUnread(secret: string, error?: unknown): void {
      if ((known.get(secret)?.resourceVersion ?? UNREAD) !== UNREAD) return;
      const why = isKubeError(error) ? { why: `Sluice cannot read the Secret: ${error.message}. It keeps trying` } : {};
      const unread = { fault: 'secret_unread', ...why } as const;
      const fields = new Map([...keysNamed(caches, secret)].map(key => [key, unread]));
      known.set(secret, { resourceVersion: UNREAD, fields });
    },
    forgetUnused(): void {
      for (const secret of known.keys()) {
        const used = caches.Subscription.store.byIndex('secret', secret).length > 0;
        if (!used || caches.headerSecrets.store.get(secret) === undefined) known.delete(secret);
      }
    },
    /** Returns the fields of an existing Secret. Values from a deleted Secret must not be used. */
    fieldsOf: (secret: string) =>
      caches.headerSecrets.store.get(secret) === undefined ? undefined : known.get(secret)?.fields,
  };
}

/**
 * Reads header values from Secrets. Since the caches only contain the name and version of each Secret, the controller
 * only keeps the keys used by headers in memory.
 */
export function createHeaderSecrets(deps: {
  readonly caches: Pick<Caches, 'Subscription' | 'headerSecrets'>;
  readonly client: Pick<KubeClient, 'get'>;
  /** Returns why a namespace's Secrets are not in the caches, or undefined if they are. */
  readonly unread: SecretAccess['unread'];
  /** Enqueues the tenant after the given delay. */
  readonly enqueueAfter: (tenant: string, delayMs: number) => void;
  readonly log: Logger;
}): HeaderSecrets {
  const { caches } = deps;
  const known = createKnownSecrets(caches);

  /**
   * Reads a Secret.
   * @param silent the namespaces for which a read has received no response in time, which are skipped
   */
  async function readOne(secret: string, silent: Set<string>): Promise<'read' | 'unread'> {
    const namespace = secret.slice(0, secret.indexOf('/'));
    if (silent.has(namespace)) {
      known.keepUnread(secret);
      return 'unread';
    }
    try {
      known.keep(secret, await readSecret(deps.client, secret, () => keysNamed(caches, secret)));
      return 'read';
    } catch (error) {
      deps.log.warn({ err: error, secret }, 'failed to read an endpoint Secret');
      if (isKubeError(error, NO_ANSWER) && error.reason === 'Timeout') silent.add(namespace);
      known.keepUnread(secret, error);
      return 'unread';
    }
  }

  return {
    async read(tenant) {
      // Thousands of subscriptions may use the same Secret. We only need to read it once.
      const outdated = [...secretsNamed(caches, tenant)].filter(secret => known.isOutdated(secret));
      if (outdated.length === 0) return;
      known.forgetUnused();
      const silent = new Set<string>();
      await runFewAtOnce(outdated, READS_AT_ONCE, async secret => {
        if ((await readOne(secret, silent)) === 'unread') deps.enqueueAfter(tenant, READ_AGAIN_MS);
      });
    },
    fieldsOf({ metadata, spec }) {
      const headers = headersWithSecret(spec.endpoint?.headers);
      if (headers.length === 0) return undefined;
      return headers.map(({ secret }) => {
        const namespace = metadata.namespace as string;
        const unread = deps.unread(namespace);
        if (unread !== undefined) return { fault: 'secret_unread', ...unread };
        const present = known.fieldsOf(`${namespace}/${secret.name}`);
        if (present === undefined) return { fault: 'secret_missing' };
        return present.get(secret.key) ?? { fault: 'secret_unread' };
      });
    },
  };
}

/** Returns all header Secrets used by the subscriptions to a workspace, in the format `namespace/name`. */
function secretsNamed({ Subscription }: Pick<Caches, 'Subscription'>, tenant: string): Set<string> {
  const named = new Set<string>();
  for (const { metadata, spec } of Subscription.store.byIndex('secretFor', tenant)) {
    for (const { secret } of headersWithSecret(spec.endpoint?.headers))
      named.add(`${metadata.namespace}/${secret.name}`);
  }
  return named;
}

/** Returns the keys of a Secret used for headers. */
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
 * Reads those keys from a Secret that are used when it has been read. Returns undefined if the Secret does not exist,
 * or if its type is not allowed.
 */
async function readSecret(
  client: Pick<KubeClient, 'get'>,
  secret: string,
  keys: () => ReadonlySet<string>,
): Promise<Known | undefined> {
  const [namespace = '', name = ''] = secret.split('/');
  const object = await client.get<SecretObject>(SECRETS, { namespace, name }, { timeoutMs: READ_WITHIN_MS });
  if (object === undefined || NEVER_SENT_SECRET_TYPES.includes(object.type ?? '')) return undefined;
  const fields = new Map([...keys()].map(key => [key, readHeaderField(object.data?.[key])]));
  return { resourceVersion: object.metadata.resourceVersion, fields };
}
