import { afterAll, beforeAll, expect, test } from 'vitest';
import { type MistakesWorld, openMistakesWorld } from './world.ts';

let at: MistakesWorld;
beforeAll(async () => {
  at = await openMistakesWorld();
});
afterAll(() => at?.world.stop());

/** Placeholders such as `{ten}` are replaced with the ids of the world. */
const fill = (text: string) =>
  text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => at.specimens.ids[`${name}_`] ?? whole);

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';
const STREAM = { producerTenantPublicId: '{ten}', name: 'Orders', isPublic: true };
const RANGE = '/waas/integrations/{int}/replay';
const EVENTS = '/waas/integrations/{int}/events?subscription={sub}';
const SINCE = { subscription: '{sub}', since: '2026-01-31T12:00:00Z' };
const ACTIVATION = { producerTenantPublicId: '{ten}', integrationPublicId: '{int}', groupKey: 'a' };

test.each<[Method, string, unknown, number, RegExp]>([
  ['PUT', '/waas/streams', { ...STREAM, name: undefined }, 422, /\/name.*is required/],
  ['PUT', '/waas/streams', { ...STREAM, name: 7 }, 422, /must be a string, in double quotes/],
  ['PUT', '/waas/streams', { ...STREAM, name: '' }, 422, /must have 1 to 128 characters/],
  ['PUT', '/waas/streams', { ...STREAM, isPublic: 'true' }, 422, /must be true or false/],
  ['PUT', '/waas/streams', { ...STREAM, eventTypes: 'a' }, 422, /must be a list/],
  ['PUT', '/waas/streams', { ...STREAM, eventType: ['a'] }, 422, /did you mean eventTypes/],
  ['PUT', '/waas/streams', { ...STREAM, producerTenantPublicId: 'mine-shop' }, 422, /ten_ followed by 20 characters/],
  ['PUT', '/waas/streams', [STREAM], 422, /must be an object/],
  ['PUT', '/waas/streams', undefined, 422, /Send a JSON body/],
  ['POST', '/waas/streams', STREAM, 405, /Allow header/],
  ['GET', '/waas/workspaces/', undefined, 404, /remove the last slash/],
  ['GET', '/waas/producer/mine-shop/catalog', undefined, 400, /ten_ followed by 20 characters/],
  ['GET', '/waas/producer/ten_0123456789abcdefghjk/catalog', undefined, 403, /owner of the workspace/],
  ['GET', '/waas/producer/{ten}/catalog?limits=1', undefined, 422, /did you mean limit/],
  ['GET', '/waas/producer/{ten}/catalog?limit=0', undefined, 422, /limit/],
  ['GET', '/waas/producer/{ten}/catalog?cursor=x', undefined, 400, /nextCursor/],
  ['GET', '/waas/producer/{ten}/catalogue', undefined, 404, /openapi\.json/],
  ['GET', '/waas/producer/{ten}/events/none', undefined, 404, /Check the id/],
  ['GET', '/waas/producer/{ten}/explain', undefined, 422, /stream.*is required/],
  ['GET', '/waas/producer/{ten}/explain?stream=none', undefined, 404, /stream with this key.*list the catalog/],
  ['GET', '/waas/producer/{ten}/metrics/series?history=1y', undefined, 422, /history/],
  ['POST', '/waas/integrations', { producerTenantPublicId: '{ten}', email: 'ada' }, 422, /such as ada@example\.com/],
  ['POST', '/waas/integrations', { producerTenantPublicId: '{ten}', mail: 'a@example.com' }, 422, /did you mean email/],
  ['POST', '/waas/activations', { ...ACTIVATION, groupKey: undefined }, 422, /groupKey.*is required/],
  ['POST', '/waas/activations', { ...ACTIVATION, groupKey: ' a' }, 422, /without leading or trailing spaces/],
  ['POST', '/waas/activations', { ...ACTIVATION, groupKeys: ['a'] }, 422, /did you mean groupKey/],
  ['GET', '/waas/producer/{ten}/activations/act_0123456789abcdefghjk', undefined, 404, /activation\. Check the id/],
  [
    'GET',
    '/waas/integrations/{int}/subscriptions/sub_0123456789abcdefghjk',
    undefined,
    404,
    /subscription\. Check the id/,
  ],
  ['GET', '/waas/integrations?access_token=a', undefined, 400, /Send the token in the Authorization header/],
  ['POST', RANGE, { subscription: '{sub}' }, 422, /\/since.*is required; .*2026-01-31T12:00:00Z/],
  ['POST', RANGE, { ...SINCE, since: '2026-11-22' }, 422, /RFC 3339 date and time such as 2026-01-31T12:00:00Z/],
  ['POST', RANGE, { ...SINCE, until: '2026-01-30T12:00:00Z' }, 422, /\/until.*must not be before since/],
  ['GET', `${EVENTS}&since=2026-11-22T12:00:00+01:00`, undefined, 422, /since.*write \+ as %2B/],
  ['GET', `${EVENTS}&since=2026-11-22T12:00:00Z&until=2026-11-22T11:59:59Z`, undefined, 422, /until.*before since/],
  ['GET', '/waas/integrations/{int}/events/evt_1', undefined, 400, /35 for an event/],
  ['POST', RANGE, { ...SINCE, dryRun: 'true' }, 422, /must be true or false/],
  ['POST', RANGE, { ...SINCE, states: ['lost'] }, 422, /must be one of/],
  ['POST', RANGE, { ...SINCE, dry_run: true }, 422, /did you mean dryRun/],
  [
    'POST',
    '/waas/integrations/{int}/events/{evt}/replay',
    { dryRun: true },
    422,
    /POST \/waas\/integrations\/\{integration\}\/replay/,
  ],
  ['POST', '/waas/integrations/{int}/subscriptions', {}, 422, /is required/],
  ['POST', '/waas/invitations/accept', {}, 422, /\/token.*is required/],
  ['POST', '/waas/invitations/accept', { token: 'wrong' }, 422, /copy the token from the invitation/],
])(
  '%s %s with %j: the response says what to change, and nothing is changed',
  async (method, path, body, status, words) => {
    const before = await at.state();
    const sent: unknown = body === undefined ? undefined : JSON.parse(fill(JSON.stringify(body)));
    const answer = await at.ada.call<object>(method, fill(path), sent);
    expect([answer.status, JSON.stringify(answer.body)]).toEqual([status, expect.stringMatching(words)]);
    expect(JSON.stringify(answer.body)).not.toMatch(/expected \w+, received|undefined/);
    expect(await at.state()).toBe(before);
  },
);
