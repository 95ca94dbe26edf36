import { hostname } from 'node:os';
import type { Role } from '../config/config.ts';
import type { RootKeySource } from '../config/root-key-file.ts';
import { readRootKeys } from '../config/root-key-file.ts';
import { createKeyRing, type KeyRing } from '../core/delivery/key-ring.ts';
import { createRootKeyReport } from '../record/root-key-reports.ts';
import { logOfRole } from '../telemetry/log.ts';
import type { Parts } from './parts.ts';

/** A role's root keys, which are updated from their files. */
export interface FollowedKeys {
  readonly keys: KeyRing;
  /** The name under which this replica reports its keys. */
  readonly replica: string;
  /** Reads the files again and reports their keys. If the files are not valid, the current keys remain in use. */
  readonly refresh: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** Creates a role's root keys. `refresh` should be called every few seconds. */
export function followRootKeys(parts: Pick<Parts, 'config' | 'log' | 'redis' | 'nowMs'>, role: Role): FollowedKeys {
  const { file, keys: files } = parts.config.rootKeys as RootKeySource;
  const log = logOfRole(parts.log, role);
  const keys = createKeyRing(files);
  const replica = `${role}/${hostname()}/${process.pid}`;
  const report = createRootKeyReport(parts.redis, replica, keys, parts.nowMs);
  let problem = '';

  return {
    keys,
    replica,
    async refresh() {
      const problems: string[] = [];
      const next = readRootKeys(file, problems);
      const found = problems.join('; ');
      if (found !== '' && found !== problem) {
        log.error(
          { detail: found },
          'the root keys have changed but cannot be used, so the previous keys are still in use',
        );
      }
      problem = found;
      const before = keys.state();
      if (next !== undefined) keys.replace(next);
      if (keys.state() !== before)
        log.info(
          { keys: keys.all().map(({ name, id }) => `${name} ${id}`), ...retiredIn(keys) },
          'root keys have changed',
        );
      await report.write();
    },
    stop: report.withdraw,
  };
}

/** Returns the name of the oldest key if it only names objects. */
function retiredIn(keys: KeyRing): { readonly retired?: string } {
  const { id, name } = keys.oldest();
  return keys.key(id) === undefined ? { retired: name } : {};
}
