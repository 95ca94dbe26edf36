import type { ENVIRONMENT } from '../../../src/config/environment.ts';
import type { Workload } from '../roles.ts';
import type { Target } from './target.ts';

type Variable = keyof typeof ENVIRONMENT;

/** The variables for the certificate files of roles that serve requests. */
const VARIABLES: Readonly<Record<string, readonly [cert: Variable, key: Variable]>> = {
  ingress: ['SLUICE_INGRESS_CERT_FILE', 'SLUICE_INGRESS_KEY_FILE'],
  facade: ['SLUICE_FACADE_CERT_FILE', 'SLUICE_FACADE_KEY_FILE'],
};

export const SERVED_FILES: readonly Variable[] = Object.values(VARIABLES).flat();

/** The name of the value that contains the Secret. */
export const tlsSecretOf = (role: string): string => `${role}.tls.secretName`;

const volumeOf = (role: string): string => `${role}-tls`;
const folderOf = (role: string): string => `/etc/sluice/${volumeOf(role)}`;

/** Returns the roles of a workload that serve requests and may have a certificate. */
function servingRoles({ name }: Pick<Workload, 'name'>): readonly string[] {
  return Object.keys(VARIABLES).filter(role => name === role || name === 'all');
}

/** Returns the variables for the file paths. Kubernetes updates the files when the Secret changes. */
export function servedFileVariables(workload: Workload, target: Target): readonly unknown[] {
  return servingRoles(workload).flatMap(role =>
    target.itemsWhen(
      tlsSecretOf(role),
      (VARIABLES[role] ?? []).map((name, i) => ({
        name,
        value: `${folderOf(role)}/${i === 0 ? 'tls.crt' : 'tls.key'}`,
      })),
    ),
  );
}

export function servedFileMounts(workload: Workload, target: Target): readonly unknown[] {
  return servingRoles(workload).flatMap(role =>
    target.itemsWhen(tlsSecretOf(role), [{ name: volumeOf(role), mountPath: folderOf(role), readOnly: true }]),
  );
}

export function servedFileVolumes(workload: Workload, target: Target): readonly unknown[] {
  return servingRoles(workload).flatMap(role =>
    target.itemsWhen(tlsSecretOf(role), [
      { name: volumeOf(role), secret: { secretName: target.value(tlsSecretOf(role)) } },
    ]),
  );
}

const TRUST = 'trust.configMap';
const TRUST_FOLDER = '/etc/sluice/trust';

/**
 * Returns the variable with which Node trusts additional authorities. Node only reads the file when a process starts.
 */
export function trustVariables(target: Target): readonly unknown[] {
  return target.itemsWhen(TRUST, [{ name: 'NODE_EXTRA_CA_CERTS', value: `${TRUST_FOLDER}/ca.crt` }]);
}

export function trustMounts(target: Target): readonly unknown[] {
  return target.itemsWhen(TRUST, [{ name: 'trust', mountPath: TRUST_FOLDER, readOnly: true }]);
}

/**
 * Returns the volume. If the ConfigMap does not contain this key, the pod does not start. Otherwise, Node would only
 * print a warning.
 * @param more fields of the ConfigMap, e.g. whether it is optional
 */
export function trustVolumes(target: Target, more: object = {}): readonly unknown[] {
  const items = [{ key: 'ca.crt', path: 'ca.crt' }];
  return target.itemsWhen(TRUST, [{ name: 'trust', configMap: { name: target.value(TRUST), items, ...more } }]);
}
