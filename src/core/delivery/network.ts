import { BlockList, isIP } from 'node:net';
import { REFUSED_IPV4, REFUSED_IPV6 } from './network-ranges.ts';

type Family = 4 | 6;

/** The first and last address of a network, as numbers with 32 or 128 bits. */
interface Span {
  family: Family;
  first: bigint;
  last: bigint;
}

/** Policy for endpoint addresses. When connecting, a socket uses `refused` (`net.connect({blockList})`). */
export interface NetworkPolicy {
  readonly refused: BlockList;
  readonly allowed: BlockList;
  /** The ports that endpoints are allowed to use. If empty, they can use any port. */
  readonly ports: ReadonlySet<number>;
}

/** The operator's settings for endpoints. All networks are in CIDR notation. */
export interface EndpointNetworks {
  /** Networks that endpoints can use in addition to public addresses. */
  readonly allowedNetworks: readonly string[];
  /** Networks that endpoints can never use even if they are public or included in an allowed network. */
  readonly refusedNetworks?: readonly string[];
  readonly allowedPorts?: readonly number[];
}

function ipv4Number(address: string): bigint {
  return address.split('.').reduce((sum, octet) => sum * 256n + BigInt(octet), 0n);
}

function ipv6Number(address: string): bigint {
  // A trailing IPv4 address, e.g. `::ffff:10.0.0.1`, is used for the last two groups (RFC 4291, 2.2).
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address);
  if (dotted) {
    const tail = ipv4Number(dotted[2] ?? '');
    return ipv6Number(`${dotted[1]}${(tail >> 16n).toString(16)}:${(tail & 0xffffn).toString(16)}`);
  }
  const [head = '', rest] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = rest === undefined || rest === '' ? [] : rest.split(':');
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...zeros, ...right].reduce((sum, group) => (sum << 16n) + BigInt(`0x${group}`), 0n);
}

function addressOf(family: Family, value: bigint): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map(shift => String((value >> shift) & 255n)).join('.');
  return Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16)).join(':');
}

/**
 * Returns the range of addresses for a network in CIDR notation (RFC 4632, RFC 4291, 2.3). Any host bits are ignored. A
 * single address is treated as a network containing only this address.
 * @throws RangeError with the text
 */
export function parseNetwork(cidr: string): Span {
  const [address = '', prefix, ...more] = cidr.split('/');
  const version = address.includes('%') ? 0 : isIP(address);
  const bits = version === 4 ? 32 : 128;
  const prefixLength = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1;
  if (version === 0 || more.length > 0 || prefixLength < 0 || prefixLength > bits) {
    throw new RangeError(`not a network in CIDR notation: ${JSON.stringify(cidr)}`);
  }
  const family: Family = version === 4 ? 4 : 6;
  const size = 1n << BigInt(bits - prefixLength);
  const value = family === 4 ? ipv4Number(address) : ipv6Number(address);
  const first = value - (value % size);
  return { family, first, last: first + size - 1n };
}

function subtract(from: Span, hole: Span): Span[] {
  if (hole.family !== from.family || hole.last < from.first || hole.first > from.last) return [from];
  const left = { ...from, last: hole.first - 1n };
  const right = { ...from, first: hole.last + 1n };
  return [left, right].filter(span => span.first <= span.last);
}

function blockListOf(spans: Span[]): BlockList {
  const list = new BlockList();
  for (const span of spans) {
    list.addRange(addressOf(span.family, span.first), addressOf(span.family, span.last), `ipv${span.family}`);
  }
  return list;
}

/** Removes networks from other networks. Required because BlockList does not support exceptions. */
function without(spans: readonly Span[], holes: readonly Span[]): Span[] {
  return holes.reduce<Span[]>((left, hole) => left.flatMap(span => subtract(span, hole)), [...spans]);
}

/**
 * Creates the policy, using the public addresses and the operator settings.
 * @throws RangeError if a network is not in CIDR notation
 */
export function createNetworkPolicy(networks: EndpointNetworks): NetworkPolicy {
  const { allowedNetworks, refusedNetworks = [], allowedPorts = [] } = networks;
  const allowed = allowedNetworks.map(parseNetwork);
  const never = refusedNetworks.map(parseNetwork);
  const special = [...REFUSED_IPV4, ...REFUSED_IPV6].map(range => parseNetwork(range.cidr));
  return {
    refused: blockListOf([...without(special, allowed), ...never]),
    allowed: blockListOf(allowed),
    ports: new Set(allowedPorts),
  };
}

/**
 * Returns true if connections to `address` are allowed. The address should come from DNS or from the URL parser.
 * Invalid addresses are rejected.
 */
export function permitsAddress(policy: NetworkPolicy, address: string): boolean {
  // Addresses with a zone (e.g. `fe80::1%eth0`) are link-local, and BlockList is unable to parse them.
  const version = address.includes('%') ? 0 : isIP(address);
  return version !== 0 && !policy.refused.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

/** The reason why an endpoint is rejected before resolving its name. */
type EndpointRefusal =
  | 'invalid_url'
  | 'scheme_refused'
  | 'userinfo_refused'
  | 'port_refused'
  | 'plain_http_refused'
  | 'address_refused';

/** Returns the port of a URL. The parser leaves out the default port of the scheme. */
function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}

/**
 * Checks the endpoint URL. The host name is not resolved. Addresses will be re-checked whenever a connection is
 * opened. If the URL starts with `https:`, it can contain a host name or an allowed address. A URL starting with
 * `http:` can only contain an address in the operator's networks, because an unencrypted endpoint can't prove its
 * identity.
 */
export function judgeEndpoint(url: string, policy: NetworkPolicy): 'ok' | EndpointRefusal {
  const parsed = URL.parse(url);
  // The parser strips tabs and newlines (WHATWG URL, 4.4), so the parsed URL may differ from the original text.
  if (parsed === null || parsed.hostname === '' || /[\s\p{Cc}]/u.test(url)) return 'invalid_url';
  if (parsed.protocol !== 'https:' && parsed.protocol !== 'http:') return 'scheme_refused';
  if (parsed.username !== '' || parsed.password !== '') return 'userinfo_refused';
  if (policy.ports.size > 0 && !policy.ports.has(portOf(parsed))) return 'port_refused';
  const host = parsed.hostname.startsWith('[') ? parsed.hostname.slice(1, -1) : parsed.hostname;
  const version = isIP(host);
  if (parsed.protocol === 'http:') {
    if (version === 0) return 'plain_http_refused';
    const named = policy.allowed.check(host, version === 4 ? 'ipv4' : 'ipv6');
    if (!named) return permitsAddress(policy, host) ? 'plain_http_refused' : 'address_refused';
  }
  return version === 0 || permitsAddress(policy, host) ? 'ok' : 'address_refused';
}
