import { z } from 'zod';
import { checkRedisSettings, type RedisSettings, readRedisSecrets } from '../redis/connection/redis-settings.ts';
import { parseRedisUrl } from '../redis/connection/redis-url.ts';

const file = () => z.string().min(1).optional();

/** The variables used to configure the connection to Redis. */
export const REDIS_ENVIRONMENT = {
  SLUICE_REDIS_URL: z
    .string()
    .superRefine((text, issues) => {
      try {
        parseRedisUrl(text);
      } catch (error) {
        issues.addIssue({ code: 'custom', message: (error as Error).message });
      }
    })
    .default('redis://127.0.0.1:6379')
    .describe(
      'The Redis URL, e.g. redis://[user:password@]host:port, or rediss:// for TLS. Requires Redis 7 or later. Multiple comma-separated URLs may be specified when using Redis Cluster. For Sentinel, use redis+sentinel://[user:password@]host:port,host:port/<master name>[/<database>] with the Sentinel addresses, or rediss+sentinel:// for TLS.',
    ),
  SLUICE_REDIS_USERNAME: z
    .string()
    .min(1)
    .optional()
    .describe(
      'The Redis user name, e.g. sluice-ingress. You can set this variable instead of including the user name in SLUICE_REDIS_URL, so that roles with different users can share the same URL. Requires a password.',
    ),
  SLUICE_REDIS_PASSWORD_FILE: file().describe(
    'The path to a file containing the Redis password. You can set this variable instead of including the password in SLUICE_REDIS_URL. Like all other files for Redis, this file is read again for each new connection. A line break at the end of the file is ignored.',
  ),
  SLUICE_REDIS_CA_FILE: file().describe(
    'The path to a PEM file with the certificate authorities to trust for Redis certificates. These authorities replace the public ones. Requires rediss://.',
  ),
  SLUICE_REDIS_CERT_FILE: file().describe(
    'The path to a PEM file with the client certificate for Redis, followed by any intermediate certificates. Requires rediss://.',
  ),
  SLUICE_REDIS_KEY_FILE: file().describe(
    'The path to a PEM file with the private key of the client certificate, without a passphrase.',
  ),
  SLUICE_REDIS_SERVER_NAME: z
    .string()
    .regex(/^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?$/, 'must be a DNS name, such as redis.example.com')
    .optional()
    .describe(
      'The DNS name that must be included in the certificate of every Redis node and Sentinel. Defaults to the host name used for the connection. You can use this setting if a Redis Cluster or Sentinel announces IP addresses which are not included in the certificates.',
    ),
  SLUICE_REDIS_WAIT_REPLICAS: z.coerce
    .number()
    .int()
    .min(0)
    .max(5)
    .default(0)
    .describe(
      'The number of Redis replicas that must confirm each write, so that accepted events and applied changes survive the failover of a master. Set it to the number of replicas of each master. If a write is not confirmed within one second, ingress responds with 503 and the controller repeats its change. Sluice does not wait for replicas when it writes the result of a delivery. If such a result is lost, it resends the event. By default (0), it never waits, so a failover may lose the most recent writes.',
    ),
  SLUICE_REDIS_SENTINEL_USERNAME: z
    .string()
    .min(1)
    .optional()
    .describe(
      'The user name used to connect to the Sentinels. Defaults to the Redis user, or to the default user if SLUICE_REDIS_SENTINEL_PASSWORD_FILE is set.',
    ),
  SLUICE_REDIS_SENTINEL_PASSWORD_FILE: file().describe(
    'The path to a file containing the password used to connect to the Sentinels. Defaults to the Redis password.',
  ),
} as const;

type Values = z.output<z.ZodObject<typeof REDIS_ENVIRONMENT>>;

/**
 * Reads the settings to use for Redis. If there is an error, the required change will be added to `problems`. The files
 * must be valid at startup.
 */
export function readRedis(data: Values, problems: string[]): RedisSettings {
  const settings = Object.freeze({
    url: data.SLUICE_REDIS_URL,
    username: data.SLUICE_REDIS_USERNAME,
    passwordFile: data.SLUICE_REDIS_PASSWORD_FILE,
    caFile: data.SLUICE_REDIS_CA_FILE,
    certFile: data.SLUICE_REDIS_CERT_FILE,
    keyFile: data.SLUICE_REDIS_KEY_FILE,
    serverName: data.SLUICE_REDIS_SERVER_NAME,
    waitReplicas: data.SLUICE_REDIS_WAIT_REPLICAS,
    sentinelUsername: data.SLUICE_REDIS_SENTINEL_USERNAME,
    sentinelPasswordFile: data.SLUICE_REDIS_SENTINEL_PASSWORD_FILE,
  });
  checkRedisSettings(settings, problems);
  readRedisSecrets(settings, problems);
  return settings;
}
