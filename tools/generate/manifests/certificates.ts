import { labelsOf } from './metadata.ts';
import { tlsSecretOf } from './served-files.ts';
import type { Target } from './target.ts';

const CERTIFICATE = { apiVersion: 'cert-manager.io/v1', kind: 'Certificate' };

/** Returns the Certificate of cert-manager for a role that serves requests. */
export function servedCertificate(role: 'ingress' | 'facade', target: Target): object {
  const service = `${target.prefix}-${role}`;
  const host = `${role}.expose.host`;
  return {
    ...CERTIFICATE,
    metadata: { name: service, namespace: target.namespace, labels: labelsOf(target, role) },
    spec: {
      secretName: target.value(tlsSecretOf(role)),
      dnsNames: [
        service,
        `${service}.${target.namespace}`,
        `${service}.${target.namespace}.svc`,
        ...target.itemsWhen(host, [target.value(host) as object]),
      ],
      usages: ['digital signature', 'server auth'],
      privateKey: { rotationPolicy: 'Always' },
      issuerRef: target.tree(`${role}.tls.issuerRef`),
    },
  };
}

/** Returns the cert-manager Certificate used by all roles as Redis clients. */
export function redisClientCertificate(target: Target): object {
  return {
    ...CERTIFICATE,
    metadata: { name: `${target.prefix}-redis-client`, namespace: target.namespace, labels: labelsOf(target) },
    spec: {
      secretName: target.value('redis.tls.clientSecret'),
      commonName: target.prefix,
      usages: ['digital signature', 'client auth'],
      privateKey: { rotationPolicy: 'Always' },
      issuerRef: target.tree('redis.tls.clientIssuerRef'),
    },
  };
}
