import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { OpenApiDocument } from '../../src/facade/openapi.ts';
import { openPreparedPool } from '../support/setup-clusters.ts';
import { stopOnSignal } from '../support/stop-signal.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { localDocument } from '../system/rest/contract/local-document.ts';
import { INVITATIONS, makeSpecimens, readInvitationTokens } from '../system/rest/contract/specimens.ts';
import { openFacadeWorld } from '../system/rest/support/facade-world.ts';

/**
 * Starts Sluice and runs schemathesis on `/waas` with the OpenAPI document that it serves. Fails for every response
 * that is not documented, and for every 5xx. The argument is the path of schemathesis. EXAMPLES (defaults to 100) is
 * the number of requests for each operation in each phase. SEED repeats a run.
 */
const [program = 'schemathesis'] = process.argv.slice(2);
const EXAMPLES = process.env['EXAMPLES'] || '100';
const SEED = process.env['SEED'] || '1';

/**
 * Checks that do not apply. Deleted objects can be deleted again, and lists may be outdated. Access depends on the
 * owner of an object, and not only on the token. JSON Schema cannot express some rules (such as the number of bytes in
 * a group key), so a request may be refused even though it is valid.
 */
const LEFT_OUT = [
  'use_after_free',
  'ensure_resource_availability',
  'object_level_authorization',
  'positive_data_acceptance',
];

/**
 * The responses that refuse an invalid request: schemathesis's default, and 414, because the path and the query are
 * refused by their length before they are parsed.
 */
const REFUSED = ['400', '401', '403', '404', '405', '406', '409', '414', '415', '422', '428', '429', '5xx'];

const folder = await temporaryFolder('schemathesis');
const pool = await openPreparedPool();
const world = await openFacadeWorld({ clusterPool: pool.url });
const stop = stopOnSignal(async () => {
  await world.stop();
  await pool.stop();
  await folder.remove();
});
try {
  const sluice = await world.start();
  const { ids } = await makeSpecimens(world, sluice, 'mine');
  const [token = ''] = await readInvitationTokens(world, INVITATIONS);
  const bearer = await world.issuer.token({ sub: 'ada', groups: ['mine'] }, { expiresInSeconds: 86_400 });
  const document = (await (await fetch(`${sluice.facadeUrl}/openapi.json`)).json()) as OpenApiDocument;
  const file = join(folder.path, 'openapi.json');
  await writeFile(file, JSON.stringify(localDocument(document, { ...ids, sinv_: token })));
  const config = join(folder.path, 'schemathesis.toml');
  await writeFile(config, `[checks]\nnegative_data_rejection.expected-statuses = ${JSON.stringify(REFUSED)}\n`);
  const args = [
    ['--config-file', config, 'run', file, '--url', sluice.facadeUrl, '--header', `Authorization: Bearer ${bearer}`],
    ['--checks', 'all', '--exclude-checks', LEFT_OUT.join()],
    ['--max-examples', EXAMPLES, '--seed', SEED, '--rate-limit', 'auto'],
    // The longest poll takes 30 s. Uses one worker because parsing in several threads sometimes fails with Python 3.11.
    ['--workers', '1', '--request-timeout', '45', '--max-response-time', '40'],
    ['--suppress-health-check', 'all', '--warnings', 'off', '--no-color'],
  ].flat();
  const child = spawn(program, args, { stdio: 'inherit', cwd: folder.path });
  process.exitCode = await new Promise<number>(resolve => {
    child.once('error', error => {
      console.error(error.message);
      resolve(127);
    });
    child.once('exit', code => resolve(code ?? 128));
  });
} finally {
  await stop();
}
process.exit();
