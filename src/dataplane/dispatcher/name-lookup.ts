import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type NetworkPolicy, permitsAddress } from '../../core/network.ts';

type Resolved = (error: Error | null, addresses: LookupAddress[]) => void;

/** Resolves a name to all its addresses; `dns.lookup` unless a test gives another. */
export type ResolveName = (hostname: string, options: LookupOptions & { all: true }, done: Resolved) => void;

/** A name without any address, or with none that may be connected to. */
export class NameLookupError extends Error {
  readonly code: 'ENODATA' | 'SLUICE_ADDRESS_REFUSED';

  constructor(code: NameLookupError['code']) {
    super(code === 'ENODATA' ? 'the name has no address' : 'the name has no permitted address');
    this.name = 'NameLookupError';
    this.code = code;
  }
}

/**
 * A `lookup` for `net.connect` that leaves of a name's addresses those that the policy permits. It asks once for all
 * connections that want a name at the same moment: `dns.lookup` occupies a thread of the pool, of which there are few,
 * and nothing is remembered afterwards, so that an endpoint's move is followed at once.
 */
export function createNameLookup(policy: NetworkPolicy, resolveName: ResolveName = systemLookup): LookupFunction {
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
