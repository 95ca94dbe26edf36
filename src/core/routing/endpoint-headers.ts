import type { Endpoint } from '../../api/endpoint.ts';
import type { HeaderField } from '../delivery/header-field.ts';
import type { HeaderSeals } from '../delivery/header-seal.ts';
import type { KeyRing } from '../delivery/key-ring.ts';
import type { RoutesMade } from './routes-made.ts';
import type { SubscriptionSnapshot } from './snapshot.ts';

/** A custom header for an endpoint. If it does not have a value, this contains the reason. */
export interface ResolvedHeader {
  readonly name: string;
  readonly field: HeaderField;
  /** The source of the value, as used in messages. */
  readonly about: string;
}

/**
 * Returns an endpoint's headers, in the same order.
 *
 * @param fromSecrets values of the headers that use a Secret, in order. Absent if the Secrets weren't read yet
 * @param openSealed decrypts a sealed value. Returns undefined if this is not possible
 */
function resolveHeaders(
  { headers = [] }: Endpoint,
  fromSecrets: readonly HeaderField[] = [],
  openSealed: (header: string, sealed: string) => string | undefined,
): readonly ResolvedHeader[] {
  const secrets = fromSecrets.values();
  return headers.map(({ name, value, valueSealed, valueFrom }): ResolvedHeader => {
    const about = `header ${name}`;
    if (valueFrom !== undefined) {
      const { name: secret, key } = valueFrom.secretKeyRef;
      const field = secrets.next().value ?? ({ fault: 'secret_missing' } as const);
      return { name, field, about: `${about}, Secret ${secret}, key ${key}` };
    }
    const opened = valueSealed === undefined ? value : openSealed(name, valueSealed);
    return { name, field: opened === undefined ? { fault: 'seal_not_opened' } : { value: opened }, about };
  });
}

const NO_HEADERS: readonly ResolvedHeader[] = [];

/**
 * Returns the headers for the given subscription (`sub_…`). Values are only decrypted once, because decrypting them
 * would slow down every change.
 */
export function headersOf(
  { spec: { endpoint }, headerFields, salt, createdMs }: SubscriptionSnapshot,
  id: string,
  made: Pick<RoutesMade, 'headers'>,
  { openHeader, keys }: { readonly openHeader: HeaderSeals['open']; readonly keys: Pick<KeyRing, 'state'> },
): readonly ResolvedHeader[] {
  if (endpoint?.headers === undefined) return NO_HEADERS;
  const fields = (headerFields ?? []).flatMap(Object.values);
  const owner = { subscription: id, salt, createdMs, url: endpoint.url };
  return made.headers(endpoint, [id, salt, keys.state(), ...fields], () =>
    resolveHeaders(endpoint, headerFields, (header, sealed) => openHeader(owner, header, sealed)),
  );
}

/** Returns the value for each name. Headers without a value are not included. */
export function headerValues(headers: readonly ResolvedHeader[]): Record<string, string> {
  return Object.fromEntries(headers.flatMap(({ name, field }) => ('value' in field ? [[name, field.value]] : [])));
}
