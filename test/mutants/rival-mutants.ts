import type { Mutant } from './mutant.ts';

const ELECTION = 'src/controller/election.test.ts';
const ELECTOR = 'src/controller/engine/elector.test.ts';
const RIVALS = 'src/controller/rivals.kube.test.ts';

/** Mutants which cause two installations with the same name to lead, or neither of them. */
export const RIVAL_MUTANTS: readonly Mutant[] = [
  {
    name: 'a deleted Lease is created again without a check',
    file: 'src/kube/lease.ts',
    from: ', uid, resourceVersion }',
    to: ', resourceVersion }',
    test: RIVALS,
  },
  {
    name: 'a Lease forgets its Redis before the next leader knows it',
    file: 'src/kube/lease.ts',
    from: 'marks.store(transitions) ?? last',
    to: 'marks.store(transitions)',
    test: 'src/kube/lease.test.ts',
  },
  {
    name: 'a Lease contains the Redis of an earlier term',
    file: 'src/controller/term.ts',
    from: 'current?.term.transitions === transitions ? current?.store : undefined',
    to: 'current?.store',
    test: 'src/controller/term.test.ts',
  },
  {
    name: 'all installations count as rivals',
    file: 'src/kube/lease.ts',
    from: 'metadata.labels?.[INSTANCE_LABEL] === instance',
    to: 'metadata.labels !== undefined',
    test: ELECTION,
  },
  {
    name: 'a Lease edited by hand is held for an hour',
    file: 'src/kube/lease.ts',
    from: 'Math.min(leaseDurationSeconds, LONGEST_LEASE_SECONDS)',
    to: 'leaseDurationSeconds',
    test: ELECTOR,
  },
  {
    name: 'a silent holder of the Lease is not reported',
    file: 'src/controller/election.ts',
    from: 'if (silentMs() < SILENT_MS) return [];',
    to: 'return [];',
    test: ELECTION,
  },
  {
    name: 'there is no check after the write',
    file: 'src/controller/engine/lease-hold.ts',
    from: "return await isAdmitted('after', signal);",
    to: 'return true;',
    test: ELECTOR,
  },
  {
    name: 'a refused process keeps its Lease',
    file: 'src/controller/engine/lease-hold.ts',
    from: 'if (!answer) await release().catch(() => {});',
    to: '',
    test: ELECTOR,
  },
  {
    name: 'any installation can acquire a released Lease',
    file: 'src/controller/rivals.ts',
    from: 'released.length === 0',
    to: 'true',
    test: ELECTION,
  },
  {
    name: 'both installations wait for each other',
    file: 'src/controller/rivals.ts',
    from: "if (when === 'before' || found.namespace < namespace) nextMs",
    to: 'nextMs',
    test: ELECTION,
  },
  {
    name: 'the Leases are listed for each attempt',
    file: 'src/controller/rivals.ts',
    from: 'if (clock.nowMs() < nextMs) return false;',
    to: '',
    test: ELECTION,
  },
  {
    name: 'a replica leads without a check after its Lease was deleted',
    file: 'src/controller/engine/lease-hold.ts',
    from: 'if (!leads || holder() !== identity) {',
    to: 'if (!leads) {',
    test: ELECTOR,
  },
  {
    name: 'a replica that cannot list the Leases keeps its Lease',
    file: 'src/controller/engine/lease-hold.ts',
    from: 'if (!signal.aborted) await release().catch(() => {});',
    to: '',
    test: ELECTOR,
  },
];
