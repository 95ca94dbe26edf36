import { afterAll, beforeAll, expect, test } from 'vitest';
import { type MistakesWorld, openMistakesWorld } from './world.ts';

let at: MistakesWorld;
beforeAll(async () => {
  at = await openMistakesWorld();
});
afterAll(() => at?.world.stop());

const accepted = () => at.sluice.metric('sluice_ingress_events_total');

interface Mistake {
  readonly path?: string;
  readonly method?: string;
  readonly port?: 'facade';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** `{ten}`, `{key}`, and `{jwt}` are replaced with the values of the world. */
function fill(text: string): string {
  return text
    .replace('{ten}', at.specimens.ids['ten_'] as string)
    .replace('{int}', at.specimens.ids['int_'] as string)
    .replace('{key}', at.key)
    .replace('{jwt}', at.token);
}

async function send({ path = '/events/{ten}/parcels', method = 'POST', port, headers = {}, body }: Mistake) {
  const base = port === 'facade' ? at.sluice.facadeUrl : at.sluice.ingressUrl;
  const sent = { 'x-api-key': '{key}', 'x-sluice-group-key': 'store-17', ...headers };
  const response = await fetch(`${base}${fill(path)}`, {
    method,
    headers: Object.fromEntries(Object.entries(sent).map(([name, value]) => [name, fill(value)])),
    ...(method === 'GET' ? {} : { body: body ?? '{}' }),
  });
  return { status: response.status, text: await response.text() };
}

test.each<[string, Mistake, number, RegExp]>([
  ['no key', { headers: { 'x-api-key': '' } }, 401, /POST \/waas\/producer\/\{tenant\}\/ingress-keys/],
  ['a wrong key', { headers: { 'x-api-key': 'guessed' } }, 401, /Secret of type sluice\.dev\/ingress-key/],
  [
    'a token of a person',
    { headers: { 'x-api-key': '{jwt}' } },
    401,
    /of an identity provider are only accepted by \/waas/,
  ],
  ['the key of another workspace', { path: '/events/ten_0123456789abcdefghjk/parcels' }, 401, /key of this workspace/],
  ['a name for a workspace', { path: '/events/mine-shop/parcels' }, 404, /ten_.* and 20 lowercase.*ingressPath/],
  ['an unknown stream', { path: '/events/{ten}/parcel' }, 404, /create it first/],
  ['a stream in capitals', { path: '/events/{ten}/Parcels' }, 404, /lowercase letters/],
  ['the id of a stream', { path: '/events/{ten}/{cat}' }, 404, /key of the stream, not its id/],
  ['a slash too many', { path: '/events/{ten}/parcels/' }, 404, /Remove the slash/],
  ['an event to the facade', { port: 'facade' }, 404, /Send events to the address of ingress/],
  ['a call of /waas to ingress', { path: '/waas/workspaces', method: 'GET' }, 404, /to the address of the REST API/],
  ['GET of a queue', { method: 'GET' }, 405, /Allow header/],
  ['PUT of an event', { method: 'PUT' }, 405, /Allow header/],
  ['x-sluice-groupkey', { headers: { 'x-sluice-groupkey': 'a' } }, 422, /did you mean x-sluice-group-key/],
  ['x-sluice-event', { headers: { 'x-sluice-event': 'a' } }, 422, /known: x-sluice-event-type/],
  ['an empty group key', { headers: { 'x-sluice-group-key': '' } }, 422, /omit it/],
  ['a long group key', { headers: { 'x-sluice-group-key': 'k'.repeat(257) } }, 422, /longer than 256 bytes/],
  ['a type with a blank', { headers: { 'x-sluice-event-type': 'a b' } }, 422, /without spaces/],
  ['a long id', { headers: { 'webhook-id': 'i'.repeat(257) } }, 422, /longer than 256 characters/],
  ['too large a body', { body: 'x'.repeat(262_145) }, 413, /262,144 bytes/],
  ['a sandbox parameter in production', { path: '/events/{ten}/parcels?sb_fail_code=503' }, 400, /events\/sandbox/],
  ['?sbfail=1', { path: '/events/sandbox/{ten}/parcels?sbfail=1' }, 422, /known: sb_fail_code/],
  ['?sb_fail_codes=503', { path: '/events/sandbox/{ten}/parcels?sb_fail_codes=503' }, 422, /did you mean sb_fail_code/],
  ['?sb_fail_code=200', { path: '/events/sandbox/{ten}/parcels?sb_fail_code=200' }, 422, /300 to 599/],
  ['?runId=a/b', { path: '/events/sandbox/{ten}/parcels?runId=a/b' }, 422, /letters, digits/],
  ['an unknown run', { path: '/events/sandbox/{ten}/runs/none', method: 'GET' }, 404, /Check the runId/],
  ['?page=2 of a run', { path: '/events/sandbox/{ten}/runs/none?page=2', method: 'GET' }, 422, /known: limit, cursor/],
])('%s: the response says what to change, and nothing is stored', async (_what, mistake, status, words) => {
  const before = await accepted();
  const answer = await send(mistake);
  expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(words)]);
  expect(answer.text).not.toContain(at.key);
  expect(await accepted()).toBe(before);
});
