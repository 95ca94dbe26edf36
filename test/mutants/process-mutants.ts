import { type Mutant, mutantsWithTest } from './mutant.ts';

const HTTP = 'src/http/';
const TELEMETRY = 'src/telemetry/';

/** Mutants of the code that all roles have in common: HTTP, logs, metrics, and traces. */
export const PROCESS_MUTANTS: readonly Mutant[] = [
  ...mutantsWithTest(`${HTTP}traced-requests.ts`, `${HTTP}traced-requests.test.ts`, [
    ['an aborted request has a status', "if (!writableFinished) return span.end({ error: 'aborted' });", ''],
    ['a refused request is an error in traces', 'statusCode >= 500 ?', 'statusCode >= 400 ?'],
    ['spans contain the paths of requests', "{ 'http.route': url }", "{ 'http.route': request.url }"],
  ]),
  ...mutantsWithTest(`${HTTP}client-address.ts`, `${HTTP}client-address.test.ts`, [
    ['an address is trusted because of the other family', 'network.family === family && ', ''],
    ['any number of bytes is kept for an address', ' || text.length > LONGEST', ''],
  ]),
  ...mutantsWithTest(`${TELEMETRY}audit-destination.ts`, `${TELEMETRY}audit-destination.test.ts`, [
    ['late audit lines are not reported', 'sinceMs !== undefined && nowMs() - sinceMs > LATE_MS', 'false'],
    ['lost audit lines are reported forever', ' && nowMs() - lostAtMs < REPORT_LOST_MS', ''],
    [
      'each lost audit line is logged',
      '      if (loggedMs !== undefined && lostAtMs - loggedMs < LOG_EVERY_MS) return;\n',
      '',
    ],
  ]),
  ...mutantsWithTest(`${HTTP}problem-answers.ts`, `${HTTP}problem-answers.test.ts`, [
    [
      'a refusal has a shorter Retry-After than it asked for',
      '      ...facts.headers,\n',
      "      ...facts.headers,\n      ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),\n",
    ],
    ['a problem can be cached', "      'cache-control': 'no-store',\n    },\n    document", '    },\n    document'],
  ]),
  ...mutantsWithTest(`${TELEMETRY}log.ts`, `${TELEMETRY}log.test.ts`, [
    ['keys are logged', "        '*.key',\n", ''],
    ['passwords are logged', "        '*.password',\n", ''],
    ['addresses of invitations are logged', "        '*.invitedEmail',\n", ''],
    ['bodies of failed responses are logged', "        'err.body',\n", ''],
  ]),
  ...mutantsWithTest(`${TELEMETRY}ops-server.ts`, `${TELEMETRY}ops-server.test.ts`, [
    ['metrics that cannot be collected are empty', "answer(500, 'cannot collect metrics\\n')", "answer(200, '')"],
  ]),
  ...mutantsWithTest(`${TELEMETRY}process-metrics.ts`, `${TELEMETRY}process-metrics.test.ts`, [
    ['an impairment that is over is still reported', 'reasons.has(reason) ? 1 : 0', '1'],
    ['each role is reported as ready', 'state().ready ? 1 : 0', '1'],
  ]),
  ...mutantsWithTest(`${TELEMETRY}audit-destination.ts`, `${TELEMETRY}audit-destination.test.ts`, [
    ['everyone can read the audit file', '0o600', '0o644'],
    ['audit lines of several processes are mixed', 'BATCH_BYTES = 4_096', 'BATCH_BYTES = 65_536'],
  ]),
  ...mutantsWithTest(`${TELEMETRY}failure-log.ts`, `${TELEMETRY}failure-log.test.ts`, [
    ['each failure is logged with its stack', 'causes.has(cause) || ', ''],
    ['messages that contain names cause any number of stacks', ' || causes.size === CAUSES.most', ''],
    ['a cause is logged with its stack only once', '      causes.clear();\n', ''],
  ]),
  ...mutantsWithTest(`${HTTP}server.ts`, 'src/facade/misdirected-calls.test.ts', [
    [
      '405 is sent for a path that no route can have',
      'pathPattern.test(path) ? allowed.find(path) : undefined',
      'allowed.find(path)',
    ],
  ]),
];
