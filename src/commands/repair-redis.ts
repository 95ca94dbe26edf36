import { ConfigError } from '../config/config.ts';
import { repairAppendOnlyFile } from './append-only-file.ts';
import { type Command, print } from './command-line.ts';

/**
 * Repairs the append-only file of a Redis that is not running, which may have been killed in the middle of a write. The
 * chart runs this before it starts its Redis.
 */
export const repairRedis: Command = async argv => {
  const [folder, ...rest] = argv;
  if (folder === undefined || folder.startsWith('-') || rest.length > 0) {
    throw new ConfigError('usage: sluice repair-redis <data folder of Redis>');
  }
  const repair = repairAppendOnlyFile(folder);
  if (repair === undefined) print([`${folder} contains no append-only file`]);
  else if (repair.keptBytes === repair.bytes) print([`${repair.file} is complete`]);
  else
    print([`removed an incomplete write of ${repair.bytes - repair.keptBytes} bytes from the end of ${repair.file}`]);
  return 0;
};
