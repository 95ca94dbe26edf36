import type { TenantRoutes } from '../core/routing/routes.ts';
import type { RedisClient } from './client.ts';
import type { Fields } from './control-plan.ts';
import { createHashReader, partsOf, readRoutes, type TenantReading } from './control-reader.ts';
import { accountKeys, CLUSTER_KEYS, integrationKeys, tenantKeys } from './keys.ts';

/** Open group keys that are expected: where the gate is asked (by integration), or in a tenant's index of gates. */
export type Probe =
  | { readonly integration: string; readonly groupKeys: readonly string[] }
  | { readonly tenant: string; readonly gates: readonly string[] };

export interface Probed {
  /** How many group keys (or gates) it holds, expected or not. */
  readonly size: number;
  /** Of those asked for. */
  readonly missing: readonly string[];
}

export interface AccountPlan {
  readonly plan: string | undefined;
  readonly included: string | undefined;
}

/** Something that a part holds otherwise than its routes and activations say. */
export interface PartDifference {
  readonly queue: string;
  readonly what: 'part' | 'part-row' | 'part-endpoint' | 'part-activation' | 'part-list';
  /** What would have to be written; the same at each look. */
  readonly detail: string;
  /** Of a group key that is active and must not be (`removes`), or must be and is not; of which integration, if that is known. */
  readonly activation?: {
    readonly integration: string | undefined;
    readonly groupKey: string;
    readonly removes: boolean;
  };
}

/** A part of a stream, as the list of all parts names it. */
export interface ListedPart {
  readonly tenant: string;
  readonly queue: string;
  readonly gen: string;
  readonly number: number;
}

/** Looks at the parts of streams, where events are kept in parts. */
export interface PartAudit {
  /**
   * Compares the parts of a tenant with its routes, one after another.
   *
   * @param openKeys open group keys by integration (`int_…`)
   */
  readonly compare: (
    routes: TenantRoutes,
    openKeys: ReadonlyMap<string, readonly { readonly groupKey: string; readonly sinceMs: number }[]>,
  ) => AsyncGenerator<readonly PartDifference[]>;
  /** Reads the list of all parts a page at a time. Some may come twice. */
  readonly scan: () => AsyncGenerator<readonly ListedPart[]>;
}

/** Looks at the control state, and writes nothing. */
export interface ControlAudit {
  readonly readRoutes: (tenant: string, known: readonly TenantRoutes[]) => Promise<TenantReading>;
  /** The names of everything that each tenant has, as its index has them. */
  readonly readIndexes: (tenants: readonly string[]) => Promise<ReadonlyMap<string, Fields>>;
  /** Tenants (`ten_…`) that are listed as having control state. */
  readonly readTenants: () => Promise<ReadonlySet<string>>;
  /** In the order of `accounts`. */
  readonly readAccounts: (accounts: readonly string[]) => Promise<AccountPlan[]>;
  /** In the order of `probes`; together they hold 2,000 names at most. */
  readonly probe: (probes: readonly Probe[]) => Promise<Probed[]>;
  /** Every open group key of an integration, some of them perhaps twice. */
  readonly scanActivations: (integration: string) => AsyncGenerator<string[], void, undefined>;
  /** `group key\0integration` of every open gate, some of them perhaps twice. */
  readonly scanGates: (tenant: string) => AsyncGenerator<string[], void, undefined>;
  /** Only where events are kept in parts. */
  readonly parts?: PartAudit;
}

const SCAN_COUNT = 1_000;
/** Keys of one probe. */
const PROBES_AT_ONCE = 50;

/** @param pace awaited before each command */
export function createControlAudit(redis: RedisClient, pace: () => Promise<void>): ControlAudit {
  const read = createHashReader(redis, pace);

  async function* scan(command: 'hscan' | 'zscan', key: string): AsyncGenerator<string[], void, undefined> {
    let cursor = '0';
    do {
      await pace();
      const [next, flat] = (await redis.call(command, key, cursor, 'COUNT', SCAN_COUNT)) as [string, string[]];
      cursor = next;
      const names = flat.filter((_value, i) => i % 2 === 0);
      if (names.length > 0) yield names;
    } while (cursor !== '0');
  }

  return {
    readRoutes: (tenant, known) => readRoutes(read, tenant, known),

    async readIndexes(tenants) {
      const hashes = await read(tenants.map(tenant => tenantKeys(tenant).index));
      return new Map(tenants.map(tenant => [tenant, hashes.get(tenantKeys(tenant).index) ?? {}]));
    },

    async readTenants() {
      await pace();
      return new Set((await redis.call('smembers', CLUSTER_KEYS.tenants)) as string[]);
    },

    async readAccounts(accounts) {
      const keys = accounts.map(account => accountKeys(account).meta);
      const hashes = await read(keys);
      return keys.map(key => {
        const { plan, included } = hashes.get(key) ?? {};
        return { plan, included };
      });
    },

    async probe(probes) {
      const found = new Map<Probe, Probed>();
      for (const part of partsOf(redis, probes, keyOf, PROBES_AT_ONCE)) {
        await pace();
        const args = part.flatMap(probe => [
          'groupKeys' in probe ? 'h' : 'z',
          namesOf(probe).length,
          ...namesOf(probe),
        ]);
        const replies = (await redis.run('probe', part.map(keyOf), args)) as number[][];
        for (const [i, probe] of part.entries()) {
          const [size = 0, ...missing] = replies[i] as number[];
          found.set(probe, { size, missing: missing.map(at => namesOf(probe)[at - 1] as string) });
        }
      }
      return probes.map(probe => found.get(probe) as Probed);
    },

    scanActivations: integration => scan('hscan', integrationKeys(integration).act),
    scanGates: tenant => scan('zscan', tenantKeys(tenant).gates),
  };
}

function keyOf(probe: Probe): string {
  return 'groupKeys' in probe ? integrationKeys(probe.integration).act : tenantKeys(probe.tenant).gates;
}

function namesOf(probe: Probe): readonly string[] {
  return 'groupKeys' in probe ? probe.groupKeys : probe.gates;
}
