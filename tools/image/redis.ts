import { copyWithTarget, type System } from './debian/system.ts';

/** The folder for the data, in which the image expects a writable volume. */
export const DATA = '/data';

/** The path of `redis-server` in the image. */
export const REDIS_SERVER = '/usr/bin/redis-server';

/** The contents of the Redis image. */
export const REDIS_SYSTEM: System = {
  packages: [
    'base-files',
    'gcc-12-base',
    'libatomic1',
    'libc6',
    'libcap2',
    'libgcc-s1',
    'libgcrypt20',
    'libgpg-error0',
    'libjemalloc2',
    'liblz4-1',
    'liblzf1',
    'liblzma5',
    'libssl3',
    'libstdc++6',
    'libsystemd0',
    'libzstd1',
    'redis-server',
    'redis-tools',
  ],
  folders: [DATA.slice(1)],
  program: REDIS_SERVER.slice(1),
  // In Debian, this is a link to redis-check-rdb, which selects its function by the name of the link.
  addFiles: (root, unpacked) => copyWithTarget(unpacked, root, REDIS_SERVER.slice(1)),
};
