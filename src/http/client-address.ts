import type { IncomingMessage } from 'node:http';
import { parseNetwork } from '../core/delivery/network.ts';
import { createRecentMap } from '../time/recent-map.ts';

/**
 * Returns a request's client, as a key for limits: the IPv4 address, or the /64 of the IPv6 address. An IPv4 address
 * mapped to IPv6 has the same key as the IPv4 address.
 */
export type ClientAddress = (request: Pick<IncomingMessage, 'socket' | 'headers'>) => string;

/** An address that a request came through. */
interface Hop {
  readonly key: string;
  readonly isTrusted: boolean;
}

/** The number of addresses whose keys are kept in memory. */
const ENTRIES = 10_000;
/** Most items of X-Forwarded-For that are read, from the right. */
const MOST_HOPS = 16;
/** Longer than any address with a port and a zone. */
const LONGEST = 80;
/** Represents a socket that is no longer connected. */
const NOWHERE: Hop = { key: '', isTrusted: false };

/**
 * Returns a connection's client, in the same format as `ClientAddress`. Undefined for a trusted proxy because its
 * connections are shared by many clients.
 */
export type ConnectionAddress = (socket: Pick<IncomingMessage['socket'], 'remoteAddress'>) => string | undefined;

/** Creates the function that reads an address. @throws RangeError if a network is not in CIDR notation */
function createHops(trusted: readonly string[]): (text: string) => Hop | undefined {
  const networks = trusted.map(parseNetwork);
  const hops = createRecentMap<Hop>(ENTRIES);

  function parse(text: string): Hop | undefined {
    const address = addressIn(text);
    if (address === undefined) return undefined;
    const { family, value } = address;
    const isTrusted = networks.some(
      network => network.family === family && value >= network.first && value <= network.last,
    );
    return { key: family === 4 ? value.toString(16) : `${(value >> 64n).toString(16)}/64`, isTrusted };
  }

  return text => {
    const known = hops.get(text);
    if (known !== undefined || text.length > LONGEST) return known;
    const hop = parse(text);
    // Store a copy of the text. The text itself is a slice, which would keep the whole header in memory.
    if (hop !== undefined) hops.set(Buffer.from(text, 'latin1').toString('latin1'), hop);
    return hop;
  };
}

/** Creates the function that returns a connection's client. @throws RangeError as `createClientAddress` */
export function createConnectionAddress(trusted: readonly string[]): ConnectionAddress {
  const hopOf = createHops(trusted);
  return ({ remoteAddress = '' }) => {
    const { key, isTrusted } = hopOf(remoteAddress) ?? NOWHERE;
    return isTrusted ? undefined : key;
  };
}

/**
 * Creates the function that returns a request's client: the connection's address unless it is in one of the `trusted`
 * networks (CIDR). Then, the rightmost address in X-Forwarded-For that isn't trusted either counts. Addresses to the
 * left of it can't be trusted, because any client could have added them.
 * @throws RangeError if a network is not in CIDR notation
 */
export function createClientAddress(trusted: readonly string[]): ClientAddress {
  const hopOf = createHops(trusted);
  return ({ socket, headers }) => {
    let client = hopOf(socket.remoteAddress ?? '') ?? NOWHERE;
    const forwarded = headers['x-forwarded-for'];
    if (typeof forwarded !== 'string') return client.key;
    let end = forwarded.length;
    for (let count = 0; client.isTrusted && end > 0 && count < MOST_HOPS; count++) {
      const comma = forwarded.lastIndexOf(',', end - 1);
      const hop = hopOf(forwarded.slice(comma + 1, end).trim());
      if (hop === undefined) break;
      client = hop;
      end = comma;
    }
    return client.key;
  };
}

/**
 * Returns the network of a client in CIDR notation: the /24 of an IPv4 address, or the /64 of an IPv6 address.
 * Undefined for a connection without an address.
 */
export function networkOf(key: string): string | undefined {
  if (key === '') return undefined;
  if (!key.endsWith('/64')) {
    const value = Number.parseInt(key, 16);
    return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.0/24`;
  }
  const words = key.slice(0, -3).padStart(16, '0').match(/.{4}/g) ?? [];
  return `${words.map(word => word.replace(/^0{1,3}/, '')).join(':')}::/64`;
}

/** Returns the address in an item of X-Forwarded-For, to which some proxies add a port. Mapped IPv4 counts as IPv4. */
function addressIn(text: string): { readonly family: 4 | 6; readonly value: bigint } | undefined {
  const bare = text.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1').replace(/^\[([^\]]*)\](?::\d+)?$/, '$1');
  try {
    const { family, first } = parseNetwork(withoutZone(bare));
    const isMapped = family === 6 && first >> 32n === 0xffffn;
    return isMapped ? { family: 4, value: first & 0xffff_ffffn } : { family, value: first };
  } catch {
    return undefined;
  }
}

/** Removes the zone of a link-local address, e.g. `%eth0`, and any suffix that would turn it into a network. */
function withoutZone(address: string): string {
  return address.includes('/') ? '' : address.replace(/%.*$/s, '');
}
