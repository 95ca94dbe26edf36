import { instanceFields } from '../../../src/api/instance.ts';
import { EVENTS, NAMESPACES, SECRETS } from '../../../src/kube/resource.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';
import { type Listed, lineOf, list, OURS } from './listed.ts';
import type { Receiver } from './receiver.ts';
import { activation, ingressKey, integration, type Manifest, stream, subscription } from './world.ts';

/** The installations of the cluster: the default installation, and a named installation. */
export type Instance = '' | 'blue';
const NAMES = { '': 'plain', blue: 'blue' } as const;
export const shopOf = (instance: Instance) => `${NAMES[instance]}-shop`;
export const partnerOf = (instance: Instance) => `${NAMES[instance]}-partner`;
export const keyOf = (instance: Instance) => `an-ingress-key-of-${shopOf(instance)}`;

/** Returns an account and a workspace, both owned by Ada of the issuer. The controller creates the namespace. */
export function workspaceOf(
  instance: Instance,
  issuer: { readonly url: string },
  name: string,
  account = name,
): Manifest[] {
  const { apiVersion } = stream('', '');
  const owners = [{ issuer: issuer.url, subject: 'ada', role: 'Owner' }];
  const more = instanceFields(instance);
  return [
    { apiVersion, kind: 'Account', metadata: { name: account }, spec: { owners, plan: 'Metered', ...more } },
    { apiVersion, kind: 'Workspace', metadata: { name }, spec: { account, ...more } },
  ];
}

/** Returns the objects in the two workspaces of an installation. */
export function goodsOf(instance: Instance, receiver: Pick<Receiver, 'urlOf'>): Manifest[] {
  const [shop, partner] = [shopOf(instance), partnerOf(instance)];
  return [
    stream(shop, 'orders'),
    ingressKey(shop, keyOf(instance)),
    integration(shop, partner),
    subscription(partner, shop, 'orders', { url: receiver.urlOf(partner) }),
    activation(shop, partner, 'key'),
  ];
}

interface Reported extends Listed {
  /** Only in an Event. */
  readonly involvedObject?: { readonly name: string };
}

/**
 * Returns the versions of all objects of an installation's tenants, including Events and Secrets. Each write changes
 * one of them.
 */
export async function versionsOf(cluster: Cluster, instance: Instance): Promise<Record<string, string>> {
  const isTheirs = ({ metadata, involvedObject }: Reported) =>
    [metadata.name, metadata.namespace, involvedObject?.name].some(
      name => name === shopOf(instance) || name === partnerOf(instance),
    );
  const items = (await list<Reported>(cluster, [...OURS, SECRETS, NAMESPACES, EVENTS])).filter(isTheirs);
  return Object.fromEntries(items.map(object => [lineOf(object), object.metadata.resourceVersion]));
}
