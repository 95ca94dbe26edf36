import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { parseNetwork } from './core/network.ts';
import { LOG_LEVELS } from './telemetry/log.ts';

export const ROLES = ['controller', 'ingress', 'router', 'dispatcher'] as const;
export type Role = (typeof ROLES)[number];

const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);

function isNetwork(text: string): boolean {
  try {
    parseNetwork(text);
    return true;
  } catch {
    return false;
  }
}

const list = z.string().transform(text =>
  text
    .split(',')
    .map(each => each.trim())
    .filter(each => each !== ''),
);

/** Every environment variable of Sluice: name, meaning, default. The reference page is made from this table. */
export const ENVIRONMENT = {
  SLUICE_REDIS_URL: z
    .string()
    .refine(text => text.split(',').every(each => /^rediss?:\/\/[^/\s]+\/?$/.test(each.trim())), {
      message: 'has to be redis://[user:password@]host:port (rediss:// for TLS), several separated by commas',
    })
    .default('redis://127.0.0.1:6379')
    .describe(
      'Redis 7 or newer: redis://[user:password@]host:port, rediss:// for TLS; several separated by commas for a Cluster.',
    ),
  SLUICE_INGRESS_PORT: port(8080).describe('TCP port of the ingress role; 0 takes a free one.'),
  SLUICE_OPS_PORT: port(9090).describe('TCP port of /metrics, /healthz and /readyz; 0 takes a free one.'),
  SLUICE_ROOT_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('File with the root key, 32 bytes or more. Controller and dispatcher do not start without it.'),
  SLUICE_ALLOWED_NETWORKS: list
    .refine(networks => networks.every(isNetwork), {
      message: 'has to be CIDR networks separated by commas, as 10.0.0.0/8',
    })
    .prefault('')
    .describe('CIDR networks, separated by commas, that endpoints may use besides public addresses. Default: none.'),
  SLUICE_LOG_LEVEL: z
    .enum(LOG_LEVELS)
    .default('info')
    .describe(`Least level that is logged: ${LOG_LEVELS.join(', ')}.`),
  SLUICE_QUEUE_MAX_BYTES: z.coerce
    .number()
    .int()
    .min(1_048_576)
    .default(1_073_741_824)
    .describe('Bytes of stored events that one queue may hold; beyond it ingress answers 429. Default 1 GiB.'),
  SLUICE_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .default('sluice-system')
    .describe("Namespace of the controller's Lease."),
} as const;

const Environment = z.object(ENVIRONMENT);

export interface Config {
  readonly roles: readonly Role[];
  readonly redisUrl: string;
  readonly ingressPort: number;
  readonly opsPort: number;
  /** The key itself; undefined when no role needs it. */
  readonly rootKey: Uint8Array | undefined;
  readonly allowedNetworks: readonly string[];
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly queueMaxBytes: number;
  readonly namespace: string;
  /** Path of a kubeconfig; undefined: in-cluster or the client's own default. */
  readonly kubeconfig: string | undefined;
}

/** A configuration that cannot be used; the message names each variable and says what to change. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const NEEDS_ROOT_KEY: readonly Role[] = ['controller', 'dispatcher'];

/**
 * Reads `argv` (one role, or `all`) and the environment; the only place that does. Unknown SLUICE_* variables are an
 * error, because a misspelt one would silently leave a default in force.
 */
export function readConfig(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const [word, ...rest] = argv;
  const roles = word === 'all' ? ROLES : ROLES.filter(role => role === word);
  if (roles.length === 0 || rest.length > 0) problems.push(`usage: sluice ${ROLES.join('|')}|all`);
  const given = Object.keys(env).filter(name => name.startsWith('SLUICE_'));
  for (const name of given) {
    if (!(name in ENVIRONMENT)) problems.push(`${name}: no such variable${suggestion(name)}`);
  }
  const parsed = Environment.safeParse(Object.fromEntries(given.map(name => [name, env[name]])));
  if (!parsed.success) {
    for (const issue of parsed.error.issues) problems.push(`${issue.path.join('.')}: ${issue.message}`);
  }
  let rootKey: Uint8Array | undefined;
  if (parsed.success && roles.some(role => NEEDS_ROOT_KEY.includes(role))) {
    rootKey = readRootKey(parsed.data.SLUICE_ROOT_KEY_FILE, problems);
  }
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems.join('\n'));
  const { data } = parsed;
  return Object.freeze({
    roles,
    redisUrl: data.SLUICE_REDIS_URL,
    ingressPort: data.SLUICE_INGRESS_PORT,
    opsPort: data.SLUICE_OPS_PORT,
    rootKey,
    allowedNetworks: data.SLUICE_ALLOWED_NETWORKS,
    logLevel: data.SLUICE_LOG_LEVEL,
    queueMaxBytes: data.SLUICE_QUEUE_MAX_BYTES,
    namespace: data.SLUICE_NAMESPACE,
    kubeconfig: env.KUBECONFIG,
  });
}

function readRootKey(file: string | undefined, problems: string[]): Uint8Array | undefined {
  if (file === undefined) {
    problems.push(
      'SLUICE_ROOT_KEY_FILE: needed, a file with 32 random bytes or more (for example: head -c 32 /dev/urandom > root.key)',
    );
    return undefined;
  }
  try {
    const key = readFileSync(file);
    if (key.length >= 32) return key;
    problems.push(`SLUICE_ROOT_KEY_FILE: ${file} has ${key.length} bytes, 32 or more are needed`);
  } catch (error) {
    problems.push(`SLUICE_ROOT_KEY_FILE: ${(error as NodeJS.ErrnoException).code ?? 'cannot be read'}: ${file}`);
  }
  return undefined;
}

/** The variable that was probably meant: the one with the fewest differing letters, if they are few. */
function suggestion(name: string): string {
  let best: string | undefined;
  let fewest = 4;
  for (const known of Object.keys(ENVIRONMENT)) {
    const distance = editDistance(name, known);
    if (distance < fewest) [best, fewest] = [known, distance];
  }
  return best === undefined ? '' : `; did you mean ${best}?`;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, substitution));
    }
    row = next;
  }
  return row[b.length] as number;
}
