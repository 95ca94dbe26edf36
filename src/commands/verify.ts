import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunReport } from '../api/sandbox.ts';
import { ConfigError } from '../config/config.ts';
import { tenantId } from '../core/ids/ids.ts';
import { isFieldValue } from '../core/ids/ingress-key.ts';
import { type Command, parseCommandLine, print } from './command-line.ts';

const USAGE =
  'sluice verify --url <URL of ingress> --workspace <name> --stream <name> --key-file <path> [--timeout <seconds>]';

/** Seconds to wait for a delivery. New custom resources may not be in force yet. */
const TIMEOUT = '120';
const TRY_EVERY_MS = 1_000;
/** The timeout for each request, and for the end of a run. */
const REQUEST_MS = 10_000;

const GROUP_KEY = 'verify';

/**
 * Publishes events in the sandbox until one of them has been delivered to a subscription of the stream. The
 * subscription needs an open activation with the group key `verify`. Returns 1 if no event is delivered in time.
 *
 * The command tests ingress, routing, delivery, and Redis. Only the request to the endpoint is simulated.
 */
export const verify: Command = async argv => {
  const text = { type: 'string' } as const;
  const known = { url: text, workspace: text, stream: text, 'key-file': text, timeout: { ...text, default: TIMEOUT } };
  const { url, workspace, stream, 'key-file': keyFile, timeout } = parseCommandLine(argv, known, USAGE);
  if (!url || !workspace || !stream || !keyFile || !(Number(timeout) > 0)) throw new ConfigError(`usage: ${USAGE}`);
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw new ConfigError('--url must be the URL of ingress, e.g. https://events.example.com');
  }
  const key = await readKey(keyFile);
  const sandbox = new URL(`/events/sandbox/${tenantId(workspace)}/`, url).href;
  const headers = { authorization: `Bearer ${key}` };
  const endMs = performance.now() + Number(timeout) * 1_000;
  for (;;) {
    const problem = await publishOnce(sandbox, stream, headers).catch((error: unknown) => reasonOf(error));
    if (problem === undefined) {
      print([`An event of ${workspace}/${stream} was accepted by ${url} and delivered in the sandbox.`]);
      return 0;
    }
    if (performance.now() >= endMs) {
      print([`No event was delivered within ${timeout} seconds. ${problem}`]);
      return 1;
    }
    await delay(TRY_EVERY_MS);
  }
};

/**
 * Publishes a single event in a separate run. Returns the reason if the event was not delivered, or undefined
 * otherwise.
 */
async function publishOnce(sandbox: string, stream: string, headers: Readonly<Record<string, string>>) {
  const run = `verify-${randomUUID()}`;
  const accepted = await fetch(`${sandbox}${stream}?runId=${run}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'x-sluice-group-key': GROUP_KEY },
    body: '{}',
    signal: AbortSignal.timeout(REQUEST_MS),
  });
  const answer = await accepted.text();
  if (accepted.status !== 202) return `Ingress responds with ${accepted.status}: ${answer}`;
  let last = '';
  for (const endMs = performance.now() + REQUEST_MS; performance.now() < endMs; await delay(100)) {
    const response = await fetch(`${sandbox}runs/${run}`, { headers, signal: AbortSignal.timeout(REQUEST_MS) });
    last = await response.text();
    if (response.status !== 200) continue;
    const { data } = JSON.parse(last) as RunReport;
    const verdicts = data.flatMap(({ integrations }) => integrations);
    if (verdicts.some(({ delivery }) => delivery?.state === 'delivered')) return undefined;
    // Within a run, the verdict does not change anymore.
    if (verdicts.length > 0 && verdicts.every(({ verdict }) => verdict === 'not_routed')) break;
  }
  return `The event was accepted, but not delivered: ${last}`;
}

/**
 * Reads an ingress key from a file, without spaces and newlines around it. Keys are compared byte by byte.
 *
 * @throws ConfigError if the key can't be sent. Without this check, the error message of `fetch` would contain the key
 */
async function readKey(path: string): Promise<string> {
  const key = (await readFile(path, 'latin1')).replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  if (isFieldValue(Buffer.from(key, 'latin1'))) return key;
  throw new ConfigError(`--key-file: ${path} must contain a single ingress key`);
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return `Ingress cannot be reached: ${cause instanceof Error ? cause.message : message}`;
}
