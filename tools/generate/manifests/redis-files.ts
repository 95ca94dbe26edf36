import type { ENVIRONMENT } from '../../../src/config/environment.ts';
import { redisUserOf } from '../redis/acl.ts';
import type { RedisUser } from '../redis/rights.ts';
import type { Target } from './target.ts';

type Variable = keyof typeof ENVIRONMENT;

interface RedisFiles {
  /** The name of the volume. */
  readonly name: string;
  /** The value that contains the Secret's name. */
  readonly value: string;
  /** The Secret's keys, by variable. */
  readonly files: Readonly<Partial<Record<Variable, string>>>;
}

/** The Secrets for connecting to Redis. Kubernetes updates the mounted files when a Secret changes. */
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

/** The Secret with the password of each user. A pod only receives the password of its own user. */
const USERS = { name: 'redis-user', value: 'redis.usersSecret', file: 'password' } as const;

const folderOf = ({ name }: { readonly name: string }): string => `/etc/sluice/${name}`;

/** Returns the variables for the file paths, and for the user of a component if it has its own user. */
export function redisFileVariables(component: RedisUser, target: Target): readonly unknown[] {
  const files = REDIS_FILES.flatMap(each =>
    target.itemsWhen(
      each.value,
      Object.entries(each.files).map(([name, key]) => ({ name, value: `${folderOf(each)}/${key}` })),
    ),
  );
  const user = target.itemsWhen(USERS.value, [
    { name: 'SLUICE_REDIS_USERNAME', value: redisUserOf(component) },
    { name: 'SLUICE_REDIS_PASSWORD_FILE', value: `${folderOf(USERS)}/${USERS.file}` },
  ]);
  return [...files, ...user];
}

export function redisFileMounts(target: Target): readonly unknown[] {
  return [...REDIS_FILES, USERS].flatMap(each =>
    target.itemsWhen(each.value, [{ name: each.name, mountPath: folderOf(each), readOnly: true }]),
  );
}

/** @param more fields of each Secret, e.g. whether it is optional */
export function redisFileVolumes(component: RedisUser, target: Target, more: object = {}): readonly unknown[] {
  const volume = (name: string, value: string, fields: object) =>
    target.itemsWhen(value, [{ name, secret: { secretName: target.value(value), ...fields, ...more } }]);
  return [
    ...REDIS_FILES.flatMap(({ name, value }) => volume(name, value, {})),
    ...volume(USERS.name, USERS.value, { items: [{ key: component, path: USERS.file }] }),
  ];
}
