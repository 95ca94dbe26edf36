import { promises as dns, type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import { type NetworkPolicy, permitsAddress } from '../../core/delivery/network.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import { type ResolverConfig, readResolverConfig } from './resolver-config.ts';

/**
 * Each try has about a second, so that all of them end before an attempt's 5 s for connecting do. Several short ones,
 * because c-ares takes no late answer to an earlier try, and shortens longer timeouts where answers mostly come fast
 * (nodejs/node#57839).
 */
const QUERY = { timeout: 1_000, maxTimeout: 1_000, tries: 4 };
const CONFIG_MS = 10_000;
/** Shorter than the first wait of a retry. */
const FAILURE_MS = 3_000;
const FAILURES_MAX = 10_000;

type Resolved = (error: Error | null, addresses: LookupAddress[]) => void;

/** Resolves a name to all its addresses; `createNameResolver` unless a test gives another. */
export type ResolveName = (hostname: string, options: LookupOptions & { all: true }, done: Resolved) => void;

const LOOKUP_ERRORS = {
  ENODATA: 'the name has no address',
  EAI_AGAIN: 'its name servers do not answer',
  SLUICE_ADDRESS_REFUSED: 'the name has no permitted address',
} as const;

/** A name without any address, with none that may be connected to, or of which nobody knows. */
export class NameLookupError extends Error {
  readonly code: keyof typeof LOOKUP_ERRORS;

  constructor(code: NameLookupError['code'], cause?: unknown) {
    super(LOOKUP_ERRORS[code], { cause });
    this.name = 'NameLookupError';
    this.code = code;
  }
}

/** Whom to ask, and what the machine knows itself. */
interface Machine {
  readonly resolver: dns.Resolver;
  readonly config: ResolverConfig;
}

/** All addresses of a name; none when the name servers say so. Throws when they do not say. */
async function ask(resolver: dns.Resolver, name: string): Promise<LookupAddress[]> {
  const found: LookupAddress[] = [];
  let unknown: unknown;
  const take = (family: 4 | 6, answer: Promise<string[]>) =>
    answer.then(
      addresses => found.push(...addresses.map(address => ({ address, family }))),
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOTFOUND' && error.code !== 'ENODATA') unknown = error;
      },
    );
  await Promise.all([take(4, resolver.resolve4(name)), take(6, resolver.resolve6(name))]);
  if (found.length === 0 && unknown !== undefined) throw new NameLookupError('EAI_AGAIN', unknown);
  return found;
}

/** The name's addresses as the hosts file lists them, or else as name servers do: its own, or with a search domain. */
async function resolveBy({ resolver, config }: Machine, hostname: string): Promise<LookupAddress[]> {
  const inOrder = (addresses: readonly LookupAddress[]) =>
    addresses.toSorted((a, b) => (config.prefersIpv6 ? b.family - a.family : a.family - b.family));

  const listed = config.hosts.get(hostname);
  if (listed !== undefined) return inOrder(listed);
  const domains = hostname.endsWith('.') ? [] : config.searchDomains;
  for (const name of [hostname, ...domains.map(domain => `${hostname}.${domain}`)]) {
    const addresses = await ask(resolver, name);
    if (addresses.length > 0) return inOrder(addresses);
  }
  throw new NameLookupError('ENODATA');
}

/**
 * Resolves names without a thread. `dns.lookup` keeps one of the pool's four for as long as a name server is silent, so
 * that one partner's names would hold up all others'. It is no fallback for a name that DNS denies either: the name's
 * owner can deny it and then be silent. So what it heeds is heeded here: the hosts file, search domains (after the
 * name itself, whatever `ndots` says) and the order of families. A failure is kept for 3 s; what is found is not kept.
 *
 * @param readConfig what the machine says; read again after 10 s, and the name servers with it
 * @param monotonicMs a monotonic clock
 */
export function createNameResolver(
  options: { readConfig?: () => ResolverConfig; monotonicMs?: () => number } = {},
): ResolveName {
  const { readConfig = readResolverConfig, monotonicMs = () => performance.now() } = options;
  const failures = createExpiringMap<{ readonly error: unknown }>({
    ttlMs: FAILURE_MS,
    entries: FAILURES_MAX,
    nowMs: monotonicMs,
  });
  let machine: (Machine & { readonly untilMs: number }) | undefined;

  const readMachine = (): Machine => {
    if (machine !== undefined && monotonicMs() < machine.untilMs) return machine;
    const config = readConfig();
    const resolver = new dns.Resolver(QUERY);
    if (config.nameServers !== undefined) resolver.setServers(config.nameServers);
    machine = { resolver, config, untilMs: monotonicMs() + CONFIG_MS };
    return machine;
  };

  const resolve = callbackify(async (hostname: string) => {
    const failure = failures.get(hostname);
    if (failure !== undefined) throw failure.error;
    try {
      return await resolveBy(readMachine(), hostname);
    } catch (error) {
      failures.set(hostname, { error });
      throw error;
    }
  });
  return (hostname, _options, done) => resolve(hostname, (error, addresses) => done(error, error ? [] : addresses));
}

/**
 * A `lookup` for `net.connect` that leaves of a name's addresses those that the policy permits. It asks once for all
 * connections that want a name at the same moment; no address is remembered afterwards, so that an endpoint's move is
 * followed at once.
 */
export function createNameLookup(policy: NetworkPolicy, resolveName = createNameResolver()): LookupFunction {
  const waiting = new Map<string, Resolved[]>();

  const resolveShared = (hostname: string, done: Resolved) => {
    const others = waiting.get(hostname);
    if (others !== undefined) {
      others.push(done);
      return;
    }
    const all = [done];
    waiting.set(hostname, all);
    resolveName(hostname, { all: true }, (error, addresses) => {
      waiting.delete(hostname);
      for (const each of all) each(error, addresses);
    });
  };

  return (hostname, options, done) => {
    resolveShared(hostname, (error, addresses) => {
      if (error) return done(error, []);
      const permitted = addresses.filter(({ address }) => permitsAddress(policy, address));
      const [first] = permitted;
      if (first === undefined) {
        return done(new NameLookupError(addresses.length === 0 ? 'ENODATA' : 'SLUICE_ADDRESS_REFUSED'), []);
      }
      return options.all ? done(null, permitted) : done(null, first.address, first.family);
    });
  };
}
