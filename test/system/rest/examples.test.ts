import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OpenApiDocument } from '../../../src/facade/openapi.ts';
import { browserRefusal, withPage } from '../../support/browser/browser.ts';
import type { Sluice } from '../../support/sluice.ts';
import { createRestClient } from '../support/rest-client.ts';
import { createExchanger, renderRequest, type Tokens } from './contract/exchange.ts';
import { createIdPool } from './contract/id-pool.ts';
import { createJudge } from './contract/judge.ts';
import { localise } from './contract/local-document.ts';
import { exampleOf, type Operation, operationsOf, type Plan } from './contract/requests.ts';
import { INVITATIONS, makeSpecimens, readInvitationTokens } from './contract/specimens.ts';
import { type FacadeWorld, openFacadeWorld } from './support/facade-world.ts';

/** Operations that depend on each other, in this order. They are called before all other operations. */
const FIRST = [
  'pullEvents',
  'acknowledgeEvents',
  'replayEvent',
  'replayEvents',
  'getReplay',
  'changeSubscription',
  'subscribe',
];
/** Operations after which their resources are less useful, in this order. They are called at the end. */
const LAST = ['blocks', 'DELETE', 'archive', 'revoke', 'decline'];

let world: FacadeWorld;
let sluice: Sluice;
beforeAll(async () => {
  world = await openFacadeWorld();
  sluice = await world.start();
});
afterAll(() => world?.stop());

const noBrowser = await browserRefusal();
if (noBrowser !== undefined) console.warn(`SKIPPED: the page of the reference; ${noBrowser}`);

function rankOf({ method, template, operation }: Operation): number {
  const last = LAST.findIndex(word =>
    word === 'blocks'
      ? method === 'POST' && template.includes('/blocks/')
      : method === word || template.endsWith(`/${word}`),
  );
  const first = FIRST.indexOf(operation.operationId);
  if (first >= 0) return first - 100;
  // An invitation can only be answered once. Resources are created before they are read.
  if (operation.operationId === 'acceptInvitation') return LAST.length + 1;
  return last >= 0 ? last + 1 : method === 'GET' ? 0 : -1;
}

test('every example of the reference works unchanged', async () => {
  const document = (await (await fetch(`${sluice.facadeUrl}/openapi.json`)).json()) as OpenApiDocument;
  const { ids } = await makeSpecimens(world, sluice, 'mine');
  const invitations = (await readInvitationTokens(world, INVITATIONS)).values();
  const [acknowledged = '', ...others] = await eventsOf(sluice, ids);
  const events = others.values();
  const made: Record<string, string> = {};
  const bearer = await world.issuer.token({ sub: 'ada', groups: ['mine'] });
  const tokens: Tokens = { good: [bearer], expired: bearer };
  const judge = createJudge(document);
  const exchanger = createExchanger(sluice.facadeUrl, 1);
  const outcomes: string[] = [];
  for (const operation of operationsOf(document).toSorted((a, b) => rankOf(a) - rankOf(b))) {
    const plan = exampleOf(operation);
    const answering = operation.template.startsWith('/waas/invitations/');
    const local = {
      ...ids,
      ...made,
      evt_: FIRST.includes(operation.operation.operationId) ? acknowledged : (events.next().value ?? 'none is left'),
      ...(answering ? invitationIn(plan.json, invitations.next().value) : {}),
    };
    const [path, query, json] = [plan.path, plan.query, plan.json].map(each => localise(each, local));
    const here = { ...plan, path, query, json } as Plan;
    const sent = renderRequest(here, createIdPool(), tokens);
    const received = await exchanger.send(sent);
    const faults = judge.faultsOf(here, sent, received);
    if (received.status >= 300) faults.push(received.text);
    const replay = /"(rpl_[^"]+)"/.exec(received.text)?.[1];
    if (replay !== undefined) made['rpl_'] = replay;
    if (faults.length > 0) outcomes.push(`${sent.method} ${sent.target} ${String(sent.body)}: ${faults.join('; ')}`);
  }
  exchanger.close();
  expect(outcomes).toEqual([]);
});

test.skipIf(noBrowser !== undefined)('the page of the reference calls the API', async () => {
  await withPage(`${sluice.facadeUrl}/docs`, async page => {
    const click = (selector: string) => page.locator(selector).click();
    expect(await page.title()).toBe('Sluice REST API');
    await click('.btn.authorize');
    await click('.modal-ux input');
    await page.keyboard.sendCharacter(await world.issuer.token({ sub: 'zoe' }));
    await click('.modal-btn.authorize');
    await click('.btn-done');
    await click('#operations-Workspaces-listWorkspaces .opblock-summary-control');
    await click('#operations-Workspaces-listWorkspaces .try-out__btn');
    await click('#operations-Workspaces-listWorkspaces .execute');
    const answer = await page.waitForSelector('.live-responses-table .response');
    expect(await answer?.evaluate(({ textContent }) => textContent)).toMatch(/^200.*"data": \[\]/s);
    expect(await page.$$('.topbar'), 'an address bar for other documents, and a foreign logo').toEqual([]);
  });
});

/** The ids of events in the partner's inbox because each example with an event uses a separate event. */
async function eventsOf(sluice: Sluice, ids: Readonly<Record<string, string>>): Promise<string[]> {
  const client = createRestClient(sluice.facadeUrl, await world.issuer.token({ sub: 'ada', groups: ['mine'] }));
  const path = `/waas/integrations/${ids['int_']}/events?subscription=${ids['sub_']}&limit=250`;
  const { body } = await client.get<{ data: { id: string }[] }>(path);
  return body.data.map(({ id }) => id);
}

/** The token in an example is replaced with the token that the partner has received. */
function invitationIn(json: unknown, token: string | undefined): Readonly<Record<string, string>> {
  const { token: placeholder } = json as { readonly token: string };
  return { [placeholder]: token ?? 'none is left' };
}
