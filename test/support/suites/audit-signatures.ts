import { execFile } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { judgeSignatures } from './signatures.ts';

/**
 * Checks the registry's signatures for the packages of package-lock.json, which requires the registry and Sigstore's
 * list of trusted keys. The exit code is 1 if a signature is invalid. If one of them can't be reached within
 * a minute, the check is skipped, and the reason is printed.
 */

const ROOT = join(import.meta.dirname, '..', '..', '..');
const PATIENCE_MS = Number(process.env['AUDIT_MS'] || 60_000);

const env = {
  ...process.env,
  PATH: [join(ROOT, 'bin'), process.env['PATH']].join(delimiter),
  npm_config_fetch_retries: '1',
  npm_config_fetch_retry_mintimeout: '1000',
};
const options = { cwd: ROOT, timeout: PATIENCE_MS, maxBuffer: 64 * 2 ** 20, env };
execFile('npm', ['audit', 'signatures', '--json'], options, (error, printed) => {
  const failure = error?.killed === true ? `it took longer than ${PATIENCE_MS / 1_000} s` : error?.message;
  const { lines, passed } = judgeSignatures(printed, failure);
  console.log(lines.map(line => `npm audit signatures: ${line}`).join('\n'));
  process.exitCode = passed ? 0 : 1;
});
