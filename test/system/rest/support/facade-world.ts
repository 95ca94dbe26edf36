import { tenantId } from '../../../../src/core/ids/ids.ts';
import { type Issuer, startIssuer } from '../../../support/issuer.ts';
import type { Sluice, SluiceOptions } from '../../../support/sluice.ts';
import { type Installation, install } from '../../support/installation.ts';
import { createRestClient, type RestClient } from '../../support/rest-client.ts';
import { apply, type Manifest, tenant } from '../../support/world.ts';

/** An installation whose facade accepts the tokens of an issuer that is also running. */
export interface FacadeWorld {
  readonly installation: Installation;
  readonly issuer: Issuer;
  /** Starts an additional process with the issuer's settings. */
  readonly start: (options?: Partial<SluiceOptions>) => Promise<Sluice>;
  /** Starts a separate process for each role. They can be used like a single process. */
  readonly startRoles: Installation['startRoles'];
  /** Returns a client for the calls of a person (`sub`), using a process's facade. */
  readonly as: (sluice: Sluice, sub: string) => Promise<RestClient>;
  readonly stop: () => Promise<void>;
}

/** @param options.clusterPool address of the pool of clusters. Defaults to the pool of the test project */
export async function openFacadeWorld(options: { readonly clusterPool?: string } = {}): Promise<FacadeWorld> {
  const [installation, issuer] = await Promise.all([install(options), startIssuer()]);
  return {
    installation,
    issuer,
    start: (options = {}) => installation.start({ ...options, env: { ...issuer.env, ...options.env } }),
    startRoles: (options = {}) => installation.startRoles({ ...options, env: { ...issuer.env, ...options.env } }),
    as: async (sluice, sub) => createRestClient(sluice.facadeUrl, await issuer.token({ sub })),
    stop: async () => {
      await installation.stop();
      await issuer.close();
    },
  };
}

/** Returns a tenant whose account is owned by a single person. */
export function ownedTenant(
  issuer: Issuer,
  name: string,
  sub: string,
  account: object = { plan: 'Metered' },
): Manifest[] {
  return tenant(name, { ...account, owners: [{ issuer: issuer.url, subject: sub, role: 'Owner' }] });
}

/** Applies workspaces. Returns their public ids. */
export async function makeTenants(
  { installation, issuer }: FacadeWorld,
  owners: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const names = Object.entries(owners);
  await apply(
    installation.cluster,
    names.flatMap(([name, sub]) => ownedTenant(issuer, name, sub)),
  );
  return Object.fromEntries(names.map(([name]) => [name, tenantId(name)]));
}
