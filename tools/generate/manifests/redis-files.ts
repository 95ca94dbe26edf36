import type { ENVIRONMENT } from '../../../src/config/environment.ts';
import type { Target } from './target.ts';

type Variable = keyof typeof ENVIRONMENT;

interface RedisFiles {
  /** Name of the volume. */
  readonly name: string;
  /** Value with the name of the Secret. */
  readonly value: string;
  /** Keys of the Secret, by variable. */
  readonly files: Readonly<Partial<Record<Variable, string>>>;
}

/** Secrets for the connection to Redis. Kubernetes updates the mounted files when a Secret changes. */
export const REDIS_FILES: readonly RedisFiles[] = [
  { name: 'redis-password', value: 'redis.passwordSecret', files: { SLUICE_REDIS_PASSWORD_FILE: 'password' } },
  { name: 'redis-ca', value: 'redis.tls.caSecret', files: { SLUICE_REDIS_CA_FILE: 'ca.crt' } },
  {
    name: 'redis-client',
    value: 'redis.tls.clientSecret',
    files: { SLUICE_REDIS_CERT_FILE: 'tls.crt', SLUICE_REDIS_KEY_FILE: 'tls.key' },
  },
  {
    name: 'sentinel-password',
    value: 'redis.sentinel.passwordSecret',
    files: { SLUICE_REDIS_SENTINEL_PASSWORD_FILE: 'password' },
  },
];

const folderOf = ({ name }: RedisFiles): string => `/etc/sluice/${name}`;

/** Returns the variables with the paths of the files. */
export function redisFileVariables(target: Target): readonly unknown[] {
  return REDIS_FILES.flatMap(each =>
    target.itemsWhen(
      each.value,
      Object.entries(each.files).map(([name, key]) => ({ name, value: `${folderOf(each)}/${key}` })),
    ),
  );
}

export function redisFileMounts(target: Target): readonly unknown[] {
  return REDIS_FILES.flatMap(each =>
    target.itemsWhen(each.value, [{ name: each.name, mountPath: folderOf(each), readOnly: true }]),
  );
}

/** @param more fields of each Secret, e.g. whether it is optional */
export function redisFileVolumes(target: Target, more: object = {}): readonly unknown[] {
  return REDIS_FILES.flatMap(({ name, value }) =>
    target.itemsWhen(value, [{ name, secret: { secretName: target.value(value), ...more } }]),
  );
}
