import type { Role } from '../../../src/config/config.ts';

/** The Redis permissions of a user. Keys and channels are glob patterns. Frequently used patterns come first. */
export interface RedisRights {
  /** The commands that are sent or used by scripts. Each text contains several commands. */
  readonly commands: readonly string[];
  /** Keys to read and write. */
  readonly writes: readonly string[];
  /** Keys to write, but not to read. */
  readonly removes?: readonly string[];
  /** Keys to read. */
  readonly reads: readonly string[];
  /** Channels for the publish and subscribe commands in `commands`. */
  readonly channels: readonly string[];
}

/** The users of Redis: the pods by component, and the Job for uninstalling. */
export type RedisUser = Role | 'all' | 'uninstall';

/**
 * The commands of each connection: `INFO` and `TIME` are sent at the start, `CLUSTER` and `CLIENT` only to a Redis
 * Cluster, `ASKING` while it moves a slot, and `SELECT` only after using Sentinel.
 */
const CONNECTION = 'info time select cluster|slots cluster|info client|setname asking';

/** The command that all roles except for dispatchers send if `SLUICE_REDIS_WAIT_REPLICAS` is set. */
const REPLICAS = 'ping wait';

/**
 * The key names in a part of a stream have different first letters (see `partKeys` in `src/part/keys.ts`). Each
 * additional pattern makes every command slower, so patterns combine these letters.
 */
const PART = {
  all: '{q:*}:*',
  /** All keys except for the event bodies. */
  withoutBodies: '{q:*}:[^b]*',
  bodies: '{q:*}:b*',
  /**
   * All keys except for `keys`, `subs`, and `ends`, which only the controller writes. Also excludes `skip` and
   * `skipped`.
   */
  withoutControl: '{q:*}:[^kse]*',
  skips: '{q:*}:sk*',
  /** `keys`, `subs`, `ends`, `skip` and `skipped`. */
  control: '{q:*}:[kse]*',
  /** `control` and `health`. */
  controlAndHealth: '{q:*}:[kseh]*',
  /**
   * Accepts and routes events: `meta`, `log`, `body`, `pos`, `late`, `cl`, `lane`, `pend`, `wait`, `n`, `in`, `id`,
   * `why`.
   */
  routing: '{q:*}:[mlbpcwni]*',
  /** The waiting lanes: `turn`, `retry`, and `ready`. */
  waiting: '{q:*}:[tr][eu][tar]*',
  /** `meta`, `n`, `fin`, `off`, `cl`, `try` and `turn`. */
  inbox: '{q:*}:[mnfoct]*',
  /** `lane`, `pend` and `wait`. */
  lanes: '{q:*}:[lpw][ae][ni]*',
  /** `rp`, `rpl`, `rec` and `retry`. */
  replays: '{q:*}:r[pe][tcl:]*',
  /** The keys which show whether a part is empty: `meta`, `log`, `pos`, `pend`, `cl`, `subs`, `drop`. */
  rest: '{q:*}:[mlpcsd]*',
  pushes: '{q:*}:push:*',
} as const;

const SANDBOX = '{s:*}:*';
const DUE = { accounts: '{a:[0-9]*}:due', sandbox: '{s:[0-9]*}:due' } as const;
const INSTALLATION = '{c}:*';
const ROOT_KEYS = '{c}:rootKeys';
const ALARM = 'sluice:alarm';
const PARTS_CHANGED = '{c}:parts:changed';

const SEPARATE: Readonly<Record<Role, RedisRights>> = {
  controller: {
    commands: [
      CONNECTION,
      REPLICAS,
      // Once after each start of Redis.
      'bgrewriteaof',
      'del exists hdel hget hgetall hexists hincrby hlen hmget hscan hset hsetnx hvals persist pexpire sadd sismember smembers srem unlink',
      'xinfo|stream xlen xrange xrevrange zadd zcard zcount zlexcount zrange zrangebylex zrangebyscore zrem',
      'zremrangebyscore zscore publish spublish subscribe',
    ],
    writes: [PART.withoutBodies, '{t:*}:*', '{i:*}:*', '{a:*}:*', INSTALLATION],
    // For removing deleted streams.
    removes: [PART.bodies],
    reads: [DUE.sandbox],
    channels: [PART.pushes, PARTS_CHANGED, ALARM],
  },
  facade: {
    commands: [
      CONNECTION,
      REPLICAS,
      'del exists hdel hexists hget hgetall hincrby hlen hmget hscan hset hvals pexpire xinfo|stream xrange',
      'zadd zcard zcount zlexcount zmscore zrange zrangebylex zrangebyscore zrem zremrangebyscore zrevrangebylex zscore',
      'publish spublish',
    ],
    writes: [PART.inbox, PART.lanes, PART.replays, '{a:*}:*', '{o:*}:*', ROOT_KEYS],
    reads: [PART.all, '{t:*}:[mist]*', '{i:*}:[ma]*', INSTALLATION, DUE.sandbox],
    channels: [PART.pushes, 'sluice:a:*', ALARM],
  },
  ingress: {
    commands: [
      CONNECTION,
      REPLICAS,
      'exists hdel hexists hget hgetall hincrby hkeys hlen hmget hscan hset hsetnx hstrlen hvals persist pexpireat pexpiretime',
      'sismember xadd xinfo|stream xrange zadd zcard zcount zmscore zrange zrangebylex zrangebyscore zrem zscore',
      'publish spublish',
    ],
    writes: [PART.routing, PART.waiting, SANDBOX, '{a:*}:space'],
    reads: [PART.controlAndHealth, '{t:*}:[mkis]*', '{i:*}:meta', INSTALLATION, DUE.accounts],
    channels: [PART.pushes, SANDBOX, 'sluice:s:*', ALARM],
  },
  dispatcher: {
    commands: [
      CONNECTION,
      'exists hdel hexists hget hgetall hincrby hkeys hlen hmget hscan hset hsetnx hstrlen hvals persist pexpire pexpireat',
      'pexpiretime sismember unlink xadd xinfo|stream xrange xtrim zadd zcard zcount zlexcount zmscore zrange zrangebylex',
      'zrangebyscore zrem zremrangebyscore zrevrangebylex zscore publish spublish subscribe ssubscribe sunsubscribe',
    ],
    writes: [
      PART.withoutControl,
      PART.skips,
      SANDBOX,
      '{a:*}:*',
      '{t:*}:traf:*',
      '{c}:members',
      '{c}:stored',
      ROOT_KEYS,
    ],
    reads: [PART.control, '{t:*}:[mis]*', '{i:*}:[ms]*', INSTALLATION],
    channels: [PART.pushes, SANDBOX, PARTS_CHANGED, 'sluice:*'],
  },
};

/** The permissions by component of the pods. Everything else is denied. */
export const REDIS_RIGHTS: Readonly<Record<RedisUser, RedisRights>> = {
  ...SEPARATE,
  all: {
    commands: Object.values(SEPARATE).flatMap(({ commands }) => commands),
    writes: [PART.all, SANDBOX, '{t:*}:*', '{i:*}:*', '{a:*}:*', '{o:*}:*', INSTALLATION],
    reads: [],
    channels: [PART.pushes, SANDBOX, PARTS_CHANGED, 'sluice:*'],
  },
  uninstall: {
    commands: [
      CONNECTION,
      'exists hexists hget hgetall hlen hmget hscan smembers xinfo|stream xlen xrange zcard zlexcount zrange',
    ],
    writes: [],
    reads: [INSTALLATION, '{t:*}:index', PART.rest],
    channels: [],
  },
};
