import type { LookupAddress } from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';

/** ResolverConfig holds the machine's name resolution settings. */
export interface ResolverConfig {
  /** The name servers to use, in the same format as in `dns.Resolver.setServers`. Defaults to those in resolv.conf. */
  readonly nameServers?: readonly string[];
  /** The domains that should be appended to a name if it does not have an address, in order. */
  readonly searchDomains: readonly string[];
  /** The addresses of each name. All names must be in lower case. */
  readonly hosts: ReadonlyMap<string, readonly LookupAddress[]>;
  readonly prefersIpv6: boolean;
}

/** Parses the lines of a hosts(5) file. Each line consists of an address and its names. */
export function parseHosts(text: string): Map<string, LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names.map(each => each.toLowerCase())) {
      hosts.set(name, [...(hosts.get(name) ?? []), { address, family }]);
    }
  }
  return hosts;
}

/**
 * Returns the search domains from a resolv.conf(5) file. If there is more than one line with domains, the last one is
 * used.
 */
export function parseSearchDomains(text: string): string[] {
  const last = [...text.matchAll(/^(?:search|domain)[ \t]+(.*)$/gm)].at(-1)?.[1] ?? '';
  return last
    .split(/\s+/)
    .map(domain => domain.replace(/\.$/, ''))
    .filter(domain => domain !== '');
}

/**
 * Returns true if IPv6 addresses should be tried first (RFC 6724), i.e. if the machine has a global IPv6 address
 * (2000::/3).
 */
export function prefersIpv6(interfaces: NodeJS.Dict<NetworkInterfaceInfo[]>): boolean {
  return Object.values(interfaces).some(addresses =>
    addresses?.some(({ address }) => /^[23][\da-f]{3}:/.test(address)),
  );
}

function readIfPresent(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

export function readResolverConfig(): ResolverConfig {
  return {
    searchDomains: parseSearchDomains(readIfPresent('/etc/resolv.conf')),
    hosts: parseHosts(readIfPresent('/etc/hosts')),
    prefersIpv6: prefersIpv6(networkInterfaces()),
  };
}
