import { isKubeError, isStale } from '../../kube/kube-error.ts';
import type { AnyObject } from '../../kube/object.ts';
import { SECRETS } from '../../kube/resource.ts';
import type { Caches } from '../caches/caches.ts';
import type { Context } from '../context/context.ts';
import { type KeySource, keysFrom } from '../engine/keyed-controller.ts';

/** The reason why the API server has rejected a Secret, with a message on how to fix this. */
export interface SecretRefusal {
  readonly reason: 'NameTaken' | 'Refused';
  readonly message: string;
}

/**
 * Status codes returned by the API server when it rejects a Secret, e.g. due to a validation rule, a quota, a policy,
 * or a missing permission.
 */
const REFUSALS = [400, 403, 409, 422];

/**
 * Returns the reason why a Secret could not be written, or undefined for an error other than a rejection. For a Secret
 * not managed by Sluice, we only read the type.
 *
 * @param secret.type the type that the Secret should have
 * @param secret.content what the Secret should contain, for the message
 */
export async function refusalOf(
  { client }: Pick<Context, 'client'>,
  { type, content, ...target }: { namespace: string; name: string; type: string; content: string },
  error: unknown,
): Promise<SecretRefusal | undefined> {
  if (!isKubeError(error) || isStale(error) || !REFUSALS.includes(error.status)) return undefined;
  const found = await client
    .get<AnyObject & { readonly type?: string }>(SECRETS, target)
    .catch((cause: unknown) => (isKubeError(cause, 403) ? 'forbidden' : Promise.reject(cause)));
  if (found === 'forbidden') {
    const message = `the controller is not allowed to read or write the Secret ${target.name}: ${error.message}`;
    return { reason: 'Refused', message };
  }
  if (found !== undefined && found.type !== type) {
    const message = `a Secret ${target.name} of type ${found.type ?? 'Opaque'} already exists. Delete or rename it so that the controller can write the ${content}`;
    return { reason: 'NameTaken', message };
  }
  const message = `the API server rejected the Secret ${target.name}. Check the quotas and policies of the namespace: ${error.message}`;
  return { reason: 'Refused', message };
}

/**
 * Maps a deleted Secret of another type to the object whose Secret has the same name.
 *
 * @param nameOf returns the name of the Secret for the name of an object
 */
export function fromFreedNames(
  caches: Pick<Caches, 'headerSecrets' | 'Integration' | 'Subscription'>,
  kind: 'Integration' | 'Subscription',
  nameOf: (name: string) => string,
): KeySource {
  const ending = nameOf('');
  return keysFrom(caches.headerSecrets, (old, current) => {
    if (old === undefined || current !== undefined || !old.key.endsWith(ending)) return [];
    const key = old.key.slice(0, -ending.length);
    return caches[kind].store.get(key) === undefined ? [] : [key];
  });
}
