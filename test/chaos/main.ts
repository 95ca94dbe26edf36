import { createRandom } from '../support/random.ts';
import { CLUSTER_FAULTS, type ClusterFault } from './cluster-faults.ts';
import { FAULTS, type Fault } from './faults.ts';
import { FAKETIME_PACKAGE, hasFaketime } from './redis-clock.ts';
import { formatReport, runFault } from './run.ts';

/**
 * Injects faults into the data plane, one after another (`make test-chaos`). Usage: `main.ts <seconds> <fault, or all>
 * <seed>`
 */

const [seconds = 120, , seed = Date.now() % 1_000_000] = process.argv.slice(2).map(each => Number(each) || undefined);
const wanted = process.argv[3] || undefined;
const names = [...Object.keys(FAULTS), ...Object.keys(CLUSTER_FAULTS)] as (Fault | ClusterFault)[];
const unknown = wanted?.split(',').filter(name => !(names as string[]).includes(name)) ?? [];
if (unknown.length > 0) {
  console.error(`unknown fault ${unknown.join(', ')}; use ${names.join(', ')}`);
  process.exit(2);
}
console.log(`SEED=${seed}`);
let failed = 0;
for (const fault of names) {
  if (wanted !== undefined && !wanted.split(',').includes(fault)) continue;
  if ((fault === 'clock' || fault === 'mixed') && !hasFaketime()) {
    const skipped = fault === 'clock' ? 'clock: SKIPPED' : 'mixed: SKIPPED in part, without clock';
    console.log(`${skipped}. The clock of Redis cannot be set: install Debian's package ${FAKETIME_PACKAGE}`);
    if (fault === 'clock') continue;
  }
  const quietMs = Math.min(15_000, 7_000 + seconds * 100);
  const faults = [fault] as [Fault] | [ClusterFault];
  const options = { faults, faultMs: seconds * 1_000, quietMs, random: createRandom(seed), onDisk: true };
  try {
    const report = await runFault(options);
    if (report.problems.length > 0) failed++;
    console.log(formatReport(report));
  } catch (error) {
    failed++;
    console.log(`${fault}: FAILED`, error);
  }
}
console.log(failed === 0 ? 'ok' : `${failed} FAILED; again with SEED=${seed}`);
process.exitCode = failed > 0 ? 1 : 0;
