import { resourceOf, SECRETS } from '../resource.ts';
import type { PolicyProbe } from './policy-watch.ts';

const NAME = 'sluice-admission-check';
const OWNERS = [{ issuer: 'https://issuer.example', subject: NAME, role: 'Owner' }];

/** The policy `sluice-controller-secrets` should deny Secrets whose type does not belong to Sluice. */
export function controllerProbe(namespace: string): PolicyProbe {
  return { resource: SECRETS, name: { namespace, name: NAME }, body: { type: 'Opaque' } };
}

/** The policy `sluice-facade-accounts` should deny accounts with a plan other than Free. */
export function facadeProbe(): PolicyProbe {
  return {
    resource: resourceOf('Account'),
    name: { name: NAME },
    body: { spec: { plan: 'Metered', owners: OWNERS } },
  };
}
