import type { LookupAddress } from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';

/** What the machine says of resolving names. */
export interface ResolverConfig {
  /** As `dns.Resolver.setServers` takes them; those of resolv.conf when absent. */
  readonly nameServers?: readonly string[];
  /** What is put behind a name that has no address itself, in this order. */
  readonly searchDomains: readonly string[];
  /** Addresses by name in lower case. */
  readonly hosts: ReadonlyMap<string, readonly LookupAddress[]>;
  readonly prefersIpv6: boolean;
}

/** The lines of hosts(5): an address and its names. */
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

/** The search domains of resolv.conf(5): the last of the lines that name any. */
export function parseSearchDomains(text: string): string[] {
  const last = [...text.matchAll(/^(?:search|domain)[ \t]+(.*)$/gm)].at(-1)?.[1] ?? '';
  return last
    .split(/\s+/)
    .map(domain => domain.replace(/\.$/, ''))
    .filter(domain => domain !== '');
}

/** Whether an IPv6 address is called first (RFC 6724): where the machine has a global one (2000::/3) to call from. */
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
