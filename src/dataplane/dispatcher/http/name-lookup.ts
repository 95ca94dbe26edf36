import { promises as dns, type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { callbackify } from 'node:util';
import { type NetworkPolicy, permitsAddress } from '../../../core/delivery/network.ts';
import { createExpiringMap } from '../../../time/expiring-map.ts';
import { type ResolverConfig, readResolverConfig } from './resolver-config.ts';

/**
 * There is about one second for each attempt, so that all of them will end within the 5 s in which a connection must be
 * opened. We prefer several short attempts here because c-ares ignores late answers to earlier attempts, and shortens
 * longer timeouts when most answers are fast (nodejs/node#57839).
 */
const QUERY = { timeout: 1_000, maxTimeout: 1_000, tries: 4 };
/**
 * The maximum time for all name servers and search domains of a name. Without this limit, each of them would add its
 * own 4 s. The attempt would then end with `connect_timeout` before the lookup has failed.
 */
const LOOKUP_MS = 4_500;
/** The time to wait for the other address family once there are addresses of the preferred one (RFC 8305, 3). */
const OTHER_FAMILY_MS = 500;
const CONFIG_MS = 10_000;
/** Must be shorter than the delay of the first retry. */
const FAILURE_MS = 3_000;
const FAILURES_MAX = 10_000;

type Resolved = (error: Error | null, addresses: LookupAddress[]) => void;

/**
 * Resolves a name to a list of all its addresses. By default, this is `createNameResolver`. You can replace it in
 * tests.
 */
export type ResolveName = (hostname: string, options: LookupOptions & { all: true }, done: Resolved) => void;

const LOOKUP_ERRORS = {
  ENODATA: 'the name has no address',
  EAI_AGAIN: 'its name servers do not answer',
  SLUICE_ADDRESS_REFUSED: 'the name has no permitted address',
} as const;

/** NameLookupError is thrown if a name has no address, has no allowed address, or can't be resolved. */
export class NameLookupError extends Error {
  readonly code: keyof typeof LOOKUP_ERRORS;

  constructor(code: NameLookupError['code'], cause?: unknown) {
    super(LOOKUP_ERRORS[code], { cause });
    this.name = 'NameLookupError';
    this.code = code;
  }
}

/** Name servers and local configuration of the machine. */
interface Machine {
  readonly resolver: dns.Resolver;
  readonly config: ResolverConfig;
}

/**
 * Returns all addresses of a name. The list is empty if the name servers report that there are none; if they don't
 * answer, an error is thrown. Some name servers never answer for IPv6. In this case, the IPv4 addresses are used soon.
 */
async function ask({ resolver, config }: Machine, name: string): Promise<LookupAddress[]> {
  const found: LookupAddress[] = [];
  let unknown: unknown;
  const take = (family: 4 | 6, answer: Promise<string[]>) =>
    answer.then(
      addresses => found.push(...addresses.map(address => ({ address, family }))),
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOTFOUND' && error.code !== 'ENODATA') unknown = error;
      },
    );
  const both = [take(4, resolver.resolve4(name)), take(6, resolver.resolve6(name))] as const;
  await both[config.prefersIpv6 ? 1 : 0];
  const all = Promise.all(both);
  await (found.length === 0 ? all : Promise.race([all, delay(OTHER_FAMILY_MS, undefined, { ref: false })]));
  if (found.length === 0 && unknown !== undefined) throw new NameLookupError('EAI_AGAIN', unknown);
  return [...found];
}

/**
 * Returns the addresses that are listed for a name in the hosts file. For names not listed there, we ask the name
 * servers, first for the name itself and then with each search domain appended.
 */
async function resolveBy(machine: Machine, hostname: string): Promise<LookupAddress[]> {
  const { config } = machine;
  const inOrder = (addresses: readonly LookupAddress[]) =>
    addresses.toSorted((a, b) => (config.prefersIpv6 ? b.family - a.family : a.family - b.family));

  const listed = config.hosts.get(hostname);
  if (listed !== undefined) return inOrder(listed);
  const domains = hostname.endsWith('.') ? [] : config.searchDomains;
  for (const name of [hostname, ...domains.map(domain => `${hostname}.${domain}`)]) {
    const addresses = await ask(machine, name);
    if (addresses.length > 0) return inOrder(addresses);
  }
  throw new NameLookupError('ENODATA');
}

async function withinTime<T>(lookup: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new NameLookupError('EAI_AGAIN')), LOOKUP_MS).unref();
  });
  return await Promise.race([lookup, tooLate]).finally(() => clearTimeout(timer));
}

/**
 * Creates a resolver which does not need any threads. If a name server is not responding, `dns.lookup` will block one
 * of the four threads in the pool, so the names of a single partner could delay all of the others. For the same reason
 * we can't use it as a fallback for unknown names: their name servers might stop answering as well. The hosts file, the
 * search domains, and the order of address families are used in the same way as in `dns.lookup`. However, we always try
 * the name without a search domain first, regardless of the value of `ndots`. If a lookup fails, this is cached for 3
 * s. The addresses are never cached.
 *
 * @param readConfig returns the machine configuration. Called no more than once every 10 s, after which the name
 *   servers are updated as well
 * @param monotonicMs monotonic clock
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
      return await withinTime(resolveBy(readMachine(), hostname));
    } catch (error) {
      failures.set(hostname, { error });
      throw error;
    }
  });
  return (hostname, _options, done) => resolve(hostname, (error, addresses) => done(error, error ? [] : addresses));
}

/**
 * Creates a `lookup` function that can be used for `net.connect`. The function only returns addresses that the policy
 * allows. Concurrent lookups for the same name share one request. Since we don't cache addresses, a change to the
 * address of an endpoint takes effect immediately.
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
