import { type Mutant, mutantsWithTest } from '../mutant.ts';

const SANDBOX = 'src/dataplane/sandbox/';

const sandboxMutantsOf = (file: string, test: string, changes: Parameters<typeof mutantsWithTest>[2]) =>
  mutantsWithTest(`${SANDBOX}${file}`, `${SANDBOX}${test}`, changes);

/** Mutants of sandbox runs and their reports. */
export const SANDBOX_MUTANTS: readonly Mutant[] = [
  ...sandboxMutantsOf('desk.ts', 'desk.redis.test.ts', [
    ['a duplicate does not wake its sandbox run', " || outcome.answer === 'DUP'", ''],
    ['an event does not wake its sandbox run', "outcome.answer === 'OK' || ", ''],
    [
      'the report of a run that waits for a gate does not wake it',
      'waits || report.totals.pending > 0',
      'report.totals.pending > 0',
    ],
    ['the report of an open run does not wake it', ' || report.totals.pending > 0', ''],
    [
      'the limits of sandbox runs are ignored',
      'createSandboxStore(redis, nowMs, deps.limits)',
      'createSandboxStore(redis, nowMs)',
    ],
    [
      'the report of a run uses other limits',
      'createRunReports(redis, nowMs, deps.limits)',
      'createRunReports(redis, nowMs)',
    ],
  ]),
  ...sandboxMutantsOf('run-driver.ts', 'run-driver.redis.test.ts', [
    [
      'a run is not tried again if a stream cannot be read',
      '        soonest = Math.min(soonest, nowMs() + RETRY_MS);\n',
      '',
    ],
    ['a stream of a run that cannot be read is not repaired', '        options.alarm(`q:${tenant}:${queue}`);\n', ''],
    [
      'a run is driven after its end',
      'if (soonest >= known.endsMs) return null',
      'if (soonest === Infinity) return null',
    ],
    ['each retry of a run is made on its own', 'Math.max(soonest, nowMs() + TOGETHER_MS)', 'soonest'],
    ['attempts of a run are made although its stream cannot be read', 'of readable)', 'of view.queues)'],
  ]),
  ...sandboxMutantsOf('run-report.ts', 'run-report.redis.test.ts', [
    ['pages of a report have another size by default', 'DEFAULT_LIMIT = 50', 'DEFAULT_LIMIT = 500'],
    ['a report reads any number of names', 'Number(names) <= NAMES', 'true'],
    [
      'a report uses the current subscriptions instead of those of the run',
      '{ ...subscribers, ...noted }',
      '{ ...noted, ...subscribers }',
    ],
    ['integrations of a report are not sorted', 'others.toSorted()', 'others'],
    ['a pending integration counts as closed in a report', " || state === 'pending' ? state", ' ? state'],
    ['an integration without a subscription is reported as not activated', ' && subscribed;', ';'],
    ['every waiting event of a run is reported as beyond the limit', "full ? 'run_full' : null", "'run_full'"],
    ['the last page of a report has a cursor', ' && listed.length > page.length', ''],
    ['a report does not contain the requested status', 'failCode: simulation.failCode ?? null', 'failCode: null'],
    [
      'a report does not contain the requested number of failures',
      'failCount: simulation.failCount ?? null',
      'failCount: null',
    ],
    ['a report contains the wrong end of its run', 'endsAt: new Date(known.endsMs)', 'endsAt: new Date(known.begunMs)'],
  ]),
  ...sandboxMutantsOf('run-report.ts', 'desk.redis.test.ts', [
    ['a run that has made all of its deliveries is not reported as full', '(tenant, run)) <= 0', '(tenant, run)) < 0'],
  ]),
  ...sandboxMutantsOf('delivery-report.ts', 'delivery-report.test.ts', [
    [
      'an ended delivery of a run is reported as held',
      'OPEN.includes(progress.state) ? heldBy(facts.production) : null',
      'heldBy(facts.production)',
    ],
    ['a retry of a run is not reported as held', ", 'retrying'];", '];'],
    [
      'the report of an attempt does not contain how long it has waited',
      'atMs - (progress.history[i - 1]?.atMs ?? atMs)',
      '0',
    ],
    ['a missing endpoint is not reported', ' || production?.hasEndpoint !== true', ''],
    ['a held endpoint is not reported', "  if (row.send !== 'open') return 'endpoint_held';\n", ''],
    ['the price of a large event is not reported', 'tokensOf(facts.bytes)', '1'],
    ['the expected delays have no jitter', 'runJitter(run, delivery)', '() => 0'],
  ]),
];
