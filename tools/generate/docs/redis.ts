import { type Row, table } from '../markdown.ts';
import { ACL_FILE, REDIS_USERS, redisUserOf } from '../redis/acl.ts';
import { REDIS_RIGHTS } from '../redis/rights.ts';

const SETTINGS: Row[] = [
  ['`maxmemory-policy noeviction`', 'With any other policy, Redis removes gates and events when its memory is full.'],
  ['`appendonly yes`, `appendfsync always`', 'Required for accepted events to survive a restart or a power failure.'],
  [
    '`lazyfree-lazy-expire yes`, `lazyfree-lazy-server-del yes`',
    'Without these settings, Redis may block for several seconds when freeing expired keys because some keys have millions of fields.',
  ],
  [
    '`maxmemory <bytes>`',
    'Set this to 75 % of the memory of the machine or the container, so that ingress can reject events before Redis runs out of memory. When 70 % of `maxmemory` is in use, ingress rejects events of accounts that store more than their share with `429`. When 82 % is in use, it rejects all events with `503`. For more information, see [Limits](limits.md#memory).',
  ],
];

const MODES: Row[] = [
  [
    'Single server',
    '`redis://redis:6379`',
    'The server at this address (even if its DNS name changes to another address).',
  ],
  [
    'Redis Cluster',
    '`redis://node-0:6379,redis://node-1:6379`',
    'All masters, which Sluice discovers automatically using these nodes.',
  ],
  [
    'Sentinel',
    '`redis+sentinel://sentinel-0:26379,sentinel-1:26379/mymaster`',
    'The current master with this name. After a failover, Sluice automatically reconnects to the new master.',
  ],
];

/** Returns patterns as code, separated by line breaks. */
const patterns = (list: readonly string[]) => list.map(each => `\`${each}\``).join(', ') || 'none';

const USERS: Row[] = REDIS_USERS.map(user => {
  const { writes, removes = [], reads, channels } = REDIS_RIGHTS[user];
  return [`\`${redisUserOf(user)}\``, patterns([...writes, ...removes]), patterns(reads), patterns(channels)];
});

/** The rules for a user that can only look up the master. */
const SENTINEL_RULES =
  'on >password resetchannels -@all +ping +info +subscribe +sentinel|get-master-addr-by-name +sentinel|sentinels &+switch-master';

/** The commands that create the users, and a password file for each user. */
export const LOAD_USERS = [
  `grep '^user' ${ACL_FILE} | sed 's/^user/ACL SETUSER/' | redis-cli`,
  'for role in controller facade ingress dispatcher uninstall; do',
  '  openssl rand -hex 32 > $role',
  '  redis-cli ACL SETUSER sluice-$role ">$(cat $role)"',
  'done',
  'redis-cli ACL SAVE',
];

function usersSection(): string[] {
  return [
    '### Users',
    `To limit the impact of a compromised role, you can create a Redis user for each role. For example, ingress then can't read balances, change gates, or run commands such as \`CONFIG\` or \`FLUSHALL\` (not even in scripts). You can find the rules in \`${ACL_FILE}\` in \`aclfile\` format. By default, all roles use the same Redis user, which needs at least the permissions of \`sluice-all\`.`,
    table(['User', 'Writes keys', 'Only reads keys', 'Channels'], USERS),
    '`sluice-all` is for pods that run all roles. `sluice-uninstall` is for the Job that [uninstalls](install.md#uninstall) Sluice. The file contains no passwords. To create the users with random passwords, use these commands. Since Redis does not replicate users, you need to run them on every node of a Redis Cluster and on all replicas with the same passwords. `ACL SAVE` requires an `aclfile`. If the users are stored in `redis.conf`, run `CONFIG REWRITE` instead:',
    `\`\`\`sh\n${LOAD_USERS.join('\n')}\n\`\`\``,
    'After that, set `SLUICE_REDIS_USERNAME` and `SLUICE_REDIS_PASSWORD_FILE` for each role or use [`redis.usersSecret`](install.md#redis-users) in the chart. You should restrict the default user as well.',
    'You can also use the first command to update existing users, which keeps their passwords. If the changelog says that the rules have changed, run it before an upgrade. If a user lacks a permission, the role reports `RedisAccessDenied` for one minute. You can find the command or key in `ACL LOG`.',
    "Roles are not allowed to use `CONFIG`, so they can't check the Redis [settings](#settings) and log a warning when they start. `ACL LOG` contains these attempts, `client|setinfo` with Redis 7.2 or later, and `readonly` and `readwrite` in a Redis Cluster with replicas. All of them are harmless.",
    `Sentinels have their own users. You need to set \`SLUICE_REDIS_SENTINEL_USERNAME\` because without it, each role uses its Redis user for Sentinels as well. These rules are sufficient: \`${SENTINEL_RULES}\`.`,
    'Checking the rules takes about 0.2 µs of CPU time for each command (including those in scripts).',
  ];
}

/** Renders the section of docs/configuration.md about Redis. */
export function renderRedisSection(): string[] {
  return [
    '## Redis',
    'You need Redis 7.0 or later. To choose how Sluice connects to it, use `SLUICE_REDIS_URL`:',
    table(['Mode', 'Example', 'Connects to'], MODES),
    '### Failover',
    'Roles repeat commands that fail during a failover. By default, a new master may not have the most recently accepted events since Redis replication is asynchronous (see [Limits](limits.md)). You have two options:',
    [
      '**No loss**: Set `SLUICE_REDIS_WAIT_REPLICAS` to the number of replicas of each master since any of them may become the new master. Ingress then only responds with `202` after this number of replicas has confirmed the write (`WAIT`). The controller also waits for this confirmation before it reports a change as applied. Each event takes one more round trip. Deliveries are not affected.',
      '**Less loss**: With `min-replicas-to-write 1` and `min-replicas-max-lag 1`, Redis rejects writes if no replica is up to date.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
    'If a write is not confirmed within one second (for example while a replica restarts), ingress responds with `503` and roles report `RedisNotReplicated` (see [Telemetry](telemetry.md#health-and-shutdown)). Since the event may have been stored, resend it using the same id. If it was stored, it is detected as a duplicate. If you use a lower number, writes continue while a replica is unavailable. Note that these writes may be lost during a failover to a replica that is behind. Redis prefers the replica with the most data.',
    '### TLS',
    'To enable TLS, use `rediss://` or `rediss+sentinel://`. TLS is then also used for connections to Sentinels. If Redis requires a client certificate, set `SLUICE_REDIS_CERT_FILE` and `SLUICE_REDIS_KEY_FILE`.',
    'Make sure that certificates are signed by a public certificate authority (or by one in `SLUICE_REDIS_CA_FILE`) and valid for the host name of the connection. The nodes of a Redis Cluster and Sentinels announce IP addresses by default. You can include these addresses in the certificates, configure Redis to announce host names (`cluster-announce-hostname` and `cluster-preferred-endpoint-type hostname`, or `sentinel announce-hostnames yes`), or set `SLUICE_REDIS_SERVER_NAME` to a name that is included in all certificates.',
    '### Passwords',
    'You should store the password in a file (such as a mounted Secret) and set `SLUICE_REDIS_PASSWORD_FILE`. You can also include it in the URL, where it must be percent-encoded. To use a user other than `default`, set it in the URL or using `SLUICE_REDIS_USERNAME`. All nodes of a Redis Cluster must have the same user and password. The same applies to Sentinels unless you set `SLUICE_REDIS_SENTINEL_USERNAME` or `SLUICE_REDIS_SENTINEL_PASSWORD_FILE`. If your Sentinels require no password but Redis has its own user, set `SLUICE_REDIS_SENTINEL_USERNAME` to `default`.',
    'The password and the certificates are read again for each new connection. To rotate a password without downtime, add the new one to the Redis user (`ACL SETUSER sluice >new`), replace the file, and remove the old one when all pods have the new file. If Redis denies access, roles report `RedisAccessDenied` and log the variable to correct once a minute.',
    ...usersSection(),
    '### Settings',
    'You need to configure these settings on every node (including replicas):',
    table(['Setting', 'Why'], SETTINGS),
    'Roles check these settings when they start, after each reconnect, and once a minute:',
    [
      '**`maxmemory-policy`**: If any master has a different policy, or a single server is a replica, roles are not ready. A role that has already started stays ready and reports `RedisUnsuitable`.',
      '**Lazy freeing**: Sluice itself enables it using `CONFIG SET`. Note that Redis forgets these settings when it restarts. If you use a managed service that does not allow `CONFIG SET`, enable both settings yourself, because roles are not ready without them.',
      '**`appendonly` and `appendfsync`**: If they have a different value, roles only log a warning.',
      "**`CONFIG`**: If Redis does not allow it at all, roles can't check the settings. They log a warning when they start.",
    ]
      .map(line => `- ${line}`)
      .join('\n'),
    'If Redis is killed in the middle of a write, a part of this write can take effect when Redis is started for the second time (see [Limits](limits.md)). The controller prevents this by running `BGREWRITEAOF` on each master that uses `appendonly yes` and has not rewritten its file since it started. In a Redis Cluster, it does so up to a minute after a restarted node has been used again. For a moment, Redis needs more memory and disk space, as with its automatic rewrites. If `BGREWRITEAOF` is not allowed, the controller logs a warning.',
  ];
}
