import { type Row, table } from '../markdown.ts';
import { ACL_FILE, REDIS_USERS, redisUserOf } from '../redis/acl.ts';
import { REDIS_RIGHTS } from '../redis/rights.ts';

const SETTINGS: Row[] = [
  ['`maxmemory-policy noeviction`', 'With any other policy, Redis removes gates and events when its memory is full.'],
  ['`appendonly yes`, `appendfsync always`', 'Required for acknowledged events to survive a restart or power failure.'],
  [
    '`lazyfree-lazy-expire yes`, `lazyfree-lazy-server-del yes`',
    'Otherwise, Redis may block for several seconds when freeing expired keys because some keys have millions of fields.',
  ],
  [
    '`maxmemory <bytes>`',
    'Optional. When this is set, ingress starts rejecting events before Redis runs out of memory: at 70 %, events of accounts that store more than their share are rejected with `429`, and at 82 %, all events are rejected with `503`. For more information, see [Limits](limits.md#memory).',
  ],
];

const MODES: Row[] = [
  [
    'Single server',
    '`redis://redis:6379`',
    'The server at this address even if its DNS name changes to another address.',
  ],
  [
    'Redis Cluster',
    '`redis://node-0:6379,redis://node-1:6379`',
    'All masters, which are automatically discovered using these nodes.',
  ],
  [
    'Sentinel',
    '`redis+sentinel://sentinel-0:26379,sentinel-1:26379/mymaster`',
    'The current master with this name. Sluice automatically reconnects to the new master after a failover.',
  ],
];

/** Returns patterns as code, separated by line breaks. */
const patterns = (list: readonly string[]) => list.map(each => `\`${each}\``).join('<br>') || 'none';

const USERS: Row[] = REDIS_USERS.map(user => {
  const { writes, removes = [], reads, channels } = REDIS_RIGHTS[user];
  return [`\`${redisUserOf(user)}\``, patterns([...writes, ...removes]), patterns(reads), patterns(channels)];
});

/** Rules for a user that can only look up the master. */
const SENTINEL_RULES =
  'on >password resetchannels -@all +ping +info +subscribe +sentinel|get-master-addr-by-name +sentinel|sentinels &+switch-master';

/** Commands that create the users, and a password file for each user. */
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
    `By default, all roles use the same Redis user, which requires at least the permissions of \`sluice-all\` below. To limit the impact of a compromised role, you can create a separate user for each role. The file \`${ACL_FILE}\` contains the rules in \`aclfile\` format. For example, ingress can't read balances, change gates, or run administrative commands such as \`CONFIG\` or \`FLUSHALL\`. These rules also apply to commands in scripts.`,
    table(['User', 'Writes keys', 'Only reads keys', 'Channels'], USERS),
    'Use `sluice-all` for pods that run all roles, and `sluice-uninstall` for the Job that [uninstalls](install.md#uninstall) Sluice. This file does not contain any passwords. You need to add passwords before you can log in as one of these users. Run the following commands to create the users with random passwords. Since Redis does not replicate users, you need to repeat these commands on every node of a Redis Cluster and on all replicas, using the same passwords. `ACL SAVE` requires an `aclfile`. If the users are stored in `redis.conf`, run `CONFIG REWRITE` instead:',
    `\`\`\`sh\n${LOAD_USERS.join('\n')}\n\`\`\``,
    'After that, set `SLUICE_REDIS_USERNAME` and `SLUICE_REDIS_PASSWORD_FILE` for each role or use [`redis.usersSecret`](install.md#redis-users) in the chart. When using a separate user for each role, you should also restrict the default user.',
    'You can also use the first command to update existing users. Their passwords are not changed. If a new version changes the rules, this is mentioned in the changelog, and you should run this command before upgrading. If a user does not have a required permission, the role reports `RedisAccessDenied` in `/readyz` for one minute, and `ACL LOG` contains the command or key.',
    "Since roles are not allowed to use `CONFIG`, Sluice can't check the Redis [settings](#settings), and each role logs a warning when it starts. These attempts are also included in `ACL LOG`, as well as `client|setinfo` when using Redis 7.2 or later. Both are harmless.",
    `Sentinels have their own users. You should set \`SLUICE_REDIS_SENTINEL_USERNAME\` because otherwise each role uses its Redis user for Sentinels as well. These rules are sufficient: \`${SENTINEL_RULES}\`.`,
    'Redis checks the rules for each command, including commands in scripts. This requires about 0.2 µs of CPU time per command.',
  ];
}

/** Renders the section of docs/configuration.md about Redis. */
export function renderRedisSection(): string[] {
  return [
    '## Redis',
    'Redis 7.0 or later is required. `SLUICE_REDIS_URL` determines how Sluice connects to it:',
    table(['Mode', 'Example', 'Connects to'], MODES),
    '### Failover',
    'Commands that fail during a failover are automatically repeated by the role. Since Redis replication is asynchronous, the most recently acknowledged events may be missing on the new master by default (see [Limits](limits.md)).',
    'To prevent this, set `SLUICE_REDIS_WAIT_REPLICAS` to the number of replicas of each master because any of these replicas may become the new master. When using this setting, ingress only responds with `202`, and the controller only reports a change as applied, after the write has been confirmed by this number of replicas using `WAIT`. This adds one round trip to the replicas for each event, but deliveries are not affected. If the write is not confirmed within one second, e.g. because a replica is being restarted, ingress responds with `503`, and roles report `RedisNotReplicated` in `/readyz`. In this case, the event may have been stored, so you should use the same id when sending it again. It will then be detected as a duplicate. If you use a lower number, writes continue while a replica is unavailable, but a failover to a replica that is behind may lose these writes. During a failover, Redis prefers the replica with the most data.',
    'Alternatively, when using `min-replicas-to-write 1` and `min-replicas-max-lag 1`, Redis rejects writes if there is no replica that is up to date. This limits the amount of lost data, but does not prevent data loss.',
    '### TLS',
    'To enable TLS, use `rediss://` or `rediss+sentinel://`, which also applies to connections to Sentinels. Certificates must be signed by a public certificate authority or an authority in `SLUICE_REDIS_CA_FILE` and are verified using the host name of the connection. This includes nodes announced by a Redis Cluster or by Sentinels, which announce IP addresses by default. You can either include these addresses in the certificates, configure Redis to announce host names (`cluster-announce-hostname` and `cluster-preferred-endpoint-type hostname`, or `sentinel announce-hostnames yes`), or set `SLUICE_REDIS_SERVER_NAME` to a name that is included in all certificates. If Redis requires a client certificate, set `SLUICE_REDIS_CERT_FILE` and `SLUICE_REDIS_KEY_FILE`.',
    '### Passwords',
    'The user (if it is not `default`) can be specified in the URL or using `SLUICE_REDIS_USERNAME`. We recommend storing the password in a file, such as a mounted Secret, and setting `SLUICE_REDIS_PASSWORD_FILE`. A password in the URL must be percent-encoded. When using a Redis Cluster, make sure that all nodes use the same user and password. The same applies to Sentinels unless you set `SLUICE_REDIS_SENTINEL_USERNAME` or `SLUICE_REDIS_SENTINEL_PASSWORD_FILE`. If your Sentinels do not require a password, but Redis uses its own user, set `SLUICE_REDIS_SENTINEL_USERNAME` to `default`.',
    'The password and the certificates are read again for each new connection, so you can rotate them without a restart. To rotate a password without downtime, add the new password to the Redis user (`ACL SETUSER sluice >new`), replace the file, and remove the old password when all pods have received the new file. If Redis denies access, roles report `RedisAccessDenied` in `/readyz`, and once a minute, they log the variable that needs to be corrected.',
    ...usersSection(),
    '### Settings',
    'You need to configure the following settings on every node, including replicas:',
    table(['Setting', 'Why'], SETTINGS),
    "If any master has a different `maxmemory-policy`, roles are not ready. Lazy freeing is enabled by Sluice itself using `CONFIG SET`, but this doesn't persist when Redis restarts. On managed services that do not allow `CONFIG SET`, you'll need to enable both lazy freeing settings yourself before a role becomes ready. If `CONFIG` isn't allowed at all, the settings cannot be checked, and a warning will be logged on startup.",
  ];
}
