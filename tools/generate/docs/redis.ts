import { type Row, table } from '../markdown.ts';
import { ACL_FILE, REDIS_USERS, redisUserOf } from '../redis/acl.ts';
import { REDIS_RIGHTS } from '../redis/rights.ts';

const SETTINGS: Row[] = [
  [
    '`maxmemory-policy noeviction`',
    'If you use any other policy, Redis will remove gates and events when it has no memory left.',
  ],
  ['`appendonly yes`, `appendfsync always`', 'Required for acknowledged events to survive a restart or power failure.'],
  [
    '`lazyfree-lazy-expire yes`, `lazyfree-lazy-server-del yes`',
    'Without these, Redis may block for several seconds when it frees expired keys, because some keys have millions of fields.',
  ],
  [
    '`maxmemory <bytes>`',
    'Optional. If set, ingress rejects events before Redis runs out of memory: with `429` from 70 % on, only those of accounts that store more than their share, and with `503` at 82 %. See [Limits](limits.md#memory).',
  ],
];

const MODES: Row[] = [
  ['Single server', '`redis://redis:6379`', 'The server at this address, including after its DNS name has moved.'],
  ['Redis Cluster', '`redis://node-0:6379,redis://node-1:6379`', 'All masters, which are discovered from these nodes.'],
  [
    'Sentinel',
    '`redis+sentinel://sentinel-0:26379,sentinel-1:26379/mymaster`',
    'The current master with this name. After a failover, Sluice reconnects to the new master.',
  ],
];

/** Returns patterns as code, with line breaks between them. */
const patterns = (list: readonly string[]) => list.map(each => `\`${each}\``).join('<br>') || 'none';

const USERS: Row[] = REDIS_USERS.map(user => {
  const { writes, removes = [], reads, channels } = REDIS_RIGHTS[user];
  return [`\`${redisUserOf(user)}\``, patterns([...writes, ...removes]), patterns(reads), patterns(channels)];
});

/** Rules for a user that can only look up the master. */
const SENTINEL_RULES =
  'on >password resetchannels -@all +ping +info +subscribe +sentinel|get-master-addr-by-name +sentinel|sentinels &+switch-master';

/** Commands that create the users, and a file with the password of each of them. */
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
    `By default, all roles connect with the same user, who needs at least the rights of \`sluice-all\` below. To limit what a compromised role can do, give each role its own user. The file \`${ACL_FILE}\` has the rules in the format of \`aclfile\`. For example, ingress can't read balances, change gates, or run administrative commands such as \`CONFIG\` or \`FLUSHALL\`. The same rules are used for commands in scripts.`,
    table(['User', 'Writes keys', 'Only reads keys', 'Channels'], USERS),
    '`sluice-all` is for pods that run all roles, and `sluice-uninstall` for the Job that [uninstalls](install.md#uninstall) Sluice. This file does not contain any passwords. You need to add them before it is possible to log in as one of these users. To create the users with random passwords, run the following commands. Repeat them on every node of a Redis Cluster and on all replicas with the same passwords, since Redis does not replicate users. `ACL SAVE` requires an `aclfile`; if the users are in `redis.conf`, run `CONFIG REWRITE` instead:',
    `\`\`\`sh\n${LOAD_USERS.join('\n')}\n\`\`\``,
    'Then set `SLUICE_REDIS_USERNAME` and `SLUICE_REDIS_PASSWORD_FILE` for each role, or use [the value `redis.usersSecret`](install.md#redis-users) of the chart. When each role has its own user, you should restrict the default user.',
    'You can also use the first command to update existing users. Their passwords will not be changed. Run it before you upgrade to a version that changes the rules, which will be listed in the changelog. If a user lacks a right, the role reports `RedisAccessDenied` in `/readyz` for a minute, and `ACL LOG` shows the command or key.',
    'Since no role may use `CONFIG`, Sluice cannot check the [settings](#settings) of Redis, and each role logs a warning at its start. `ACL LOG` also shows these attempts, as well as `client|setinfo` in Redis 7.2 or later. Both are harmless.',
    `Sentinels use their own users. Set \`SLUICE_REDIS_SENTINEL_USERNAME\`, because otherwise each role uses its Redis user for Sentinels as well. These rules are sufficient: \`${SENTINEL_RULES}\`.`,
    'Redis checks the rules for each command, including those in scripts. This takes about 0.2 µs of CPU time per command.',
  ];
}

/** Renders the section of docs/configuration.md about Redis. */
export function renderRedisSection(): string[] {
  return [
    '## Redis',
    'Redis 7.0 or later is required. `SLUICE_REDIS_URL` determines how Sluice connects to it:',
    table(['Mode', 'Example', 'Connects to'], MODES),
    '### Failover',
    'Commands in progress fail during a failover and are repeated by their role. Redis replicates asynchronously, so by default, the new master may lack the last events that were acknowledged (see [Limits](limits.md)).',
    'To prevent this, set `SLUICE_REDIS_WAIT_REPLICAS` to the number of replicas that each master has, because any of them may become its successor. Ingress then responds with `202`, and the controller reports a change as applied, only once this many replicas have confirmed it using `WAIT`. This adds a round trip to the replicas to each event, but does not slow down deliveries. If too few replicas confirm a write within a second, e.g. while one of them is restarting, ingress responds with `503`, and roles report `RedisNotReplicated` in `/readyz`. The event may already be stored: when you send it again, use the same id, so that it is recognized as a duplicate. With a lower number, writes continue while a replica is away, and the failover to a replica that is behind may lose them. Redis prefers the replica with the most data.',
    'Alternatively, `min-replicas-to-write 1` and `min-replicas-max-lag 1` make Redis refuse writes while it has no replica that is up to date. This limits the loss, but does not prevent it.',
    '### TLS',
    'To enable TLS, use `rediss://` or `rediss+sentinel://`, which also applies to connections to Sentinels. Certificates must be signed by a public authority or by one in `SLUICE_REDIS_CA_FILE`, and are checked against the host that Sluice connects to. This includes nodes announced by a Redis Cluster or by Sentinels, which announce IP addresses by default. You can either include these addresses in the certificates, have Redis announce host names (`cluster-announce-hostname` and `cluster-preferred-endpoint-type hostname`, or `sentinel announce-hostnames yes`), or set `SLUICE_REDIS_SERVER_NAME` to a name that all certificates have in common. If Redis requires a client certificate, set `SLUICE_REDIS_CERT_FILE` and `SLUICE_REDIS_KEY_FILE`.',
    '### Passwords',
    'The user (if not `default`) is part of the URL, or in `SLUICE_REDIS_USERNAME`. We recommend storing the password in a file, such as a mounted Secret, and setting `SLUICE_REDIS_PASSWORD_FILE`. If the URL contains a password, you need to percent-encode it. If you are using a Redis Cluster, make sure that all nodes have the same user and the same password. The same applies to Sentinels, unless you set `SLUICE_REDIS_SENTINEL_USERNAME` or `SLUICE_REDIS_SENTINEL_PASSWORD_FILE`. If your Sentinels do not require a password while Redis has its own user, set `SLUICE_REDIS_SENTINEL_USERNAME` to `default`.',
    'The password and the certificates are read again for each new connection, so they can be rotated without a restart. To rotate a password without interruption, add the new password to the user in Redis (`ACL SETUSER sluice >new`), replace the file, and remove the old password once all pods have the new file. If Redis denies access, roles report `RedisAccessDenied` in `/readyz`, and log the variable to correct once a minute.',
    ...usersSection(),
    '### Settings',
    'The following settings must be configured on every node, including replicas:',
    table(['Setting', 'Why'], SETTINGS),
    "Roles won't be ready if any master has a different `maxmemory-policy`. Lazy freeing is enabled by Sluice itself using `CONFIG SET`, but this doesn't persist when Redis restarts. On managed services that do not allow `CONFIG SET`, you'll need to enable both lazy freeing settings yourself before a role becomes ready. If `CONFIG` isn't allowed at all, the settings cannot be checked, and a warning will be logged on startup.",
  ];
}
