import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CASES, type Case } from './cases.ts';
import { startJavaScript } from './javascript-peer.ts';
import { endToEnd, type Message, send, startTap, type Tap } from './messages.ts';
import {
  type Data,
  type Mode,
  missing,
  type Peer,
  PROGRAMS,
  type ProgramName,
  type Reading,
  startProgram,
} from './peers.ts';
import { INGRESS_KEY, type Pipeline, startPipeline } from './pipeline.ts';

/**
 * Every event of the matrix, sent by each official SDK in each mode through a real ingress and dispatcher to a receiver
 * with each official SDK. The result is compared with the same event without Sluice: both the event read by the
 * receiver and the transmitted data must be the same.
 */
const SDKS = ['JavaScript', ...(Object.keys(PROGRAMS) as ProgramName[])] as const;
type Sdk = (typeof SDKS)[number];

const reasonOf = (sdk: Sdk) => (sdk === 'JavaScript' ? undefined : missing(sdk));
const present = SDKS.filter(sdk => reasonOf(sdk) === undefined);
for (const sdk of SDKS) {
  if (reasonOf(sdk) !== undefined)
    console.warn(`CloudEvents with the SDK for ${sdk} are NOT tested: ${reasonOf(sdk)}.`);
}

const GROUP_KEY = 'shop-7';
const peers = new Map<Sdk, Peer>();
let pipeline: Pipeline;
/** Requests sent by producers to ingress. */
let outgoing: Tap;
/** Requests received by a partner, as transmitted. */
let incoming: Tap;

beforeAll(async () => {
  for (const sdk of present) peers.set(sdk, sdk === 'JavaScript' ? await startJavaScript() : await startProgram(sdk));
  incoming = await startTap();
  const endpoints = Object.fromEntries([...peers].map(([sdk, { url }]) => [sdk.toLowerCase(), url]));
  pipeline = await startPipeline({ ...endpoints, tap: incoming.url }, [GROUP_KEY]);
  outgoing = await startTap(pipeline.eventsUrl);
}, 120_000);
afterAll(async () => {
  await outgoing?.close();
  await pipeline?.close();
  await incoming?.close();
  for (const peer of peers.values()) await peer.close();
});

const header = ({ headers }: Message, wanted: string) => headers.find(([name]) => name === wanted)?.[1];
const attributesIn = ({ headers }: Message) =>
  headers
    .filter(([name]) => name.startsWith('ce-'))
    .map(([name, value]) => `${name}: ${value}`)
    .toSorted();

async function poll<T>(look: () => Promise<T | undefined> | T | undefined, what: string): Promise<T> {
  await expect.poll(look, { timeout: 20_000, interval: 5, message: what }).toBeDefined();
  return (await look()) as T;
}

/**
 * Sends the event, and returns the request created by the SDK, or undefined if its HTTP client refuses to send the
 * request.
 */
async function produce(producer: Sdk, mode: Mode, event: Case['event'], id: string): Promise<Message | undefined> {
  const produced = await (peers.get(producer) as Peer).produce({
    url: outgoing.url,
    headers: { 'x-api-key': INGRESS_KEY },
    mode,
    event: {
      ...event,
      attributes: { ...event.attributes, id },
      extensions: { ...event.extensions, partitionkey: { type: 'string', value: GROUP_KEY } },
    },
  });
  if ('unsendable' in produced) return undefined;
  expect(produced).toEqual({ status: 202, body: JSON.stringify({ id, duplicate: false, groupKey: GROUP_KEY }) });
  return outgoing.messages.at(-1);
}

/** The event that the SDK reads from a message sent directly by its producer. */
async function readDirectly(receiver: Peer, sent: Message, id: string): Promise<Reading> {
  const headers = endToEnd(sent).filter(([name]) => name !== 'x-api-key');
  expect(await send(receiver.url, [...headers, ['webhook-id', id]], sent.body)).toMatchObject({ status: 204 });
  return poll(() => receiver.read(id), 'the event was received without Sluice');
}

function bytesOf(data: Data | null): Buffer | undefined {
  if (data === null || 'json' in data) return undefined;
  return 'text' in data ? Buffer.from(data.text) : Buffer.from(data.base64, 'base64');
}

/** Removes a time that was not sent. The JavaScript SDK adds the current time in this case. */
function comparable(reading: Reading, { attributes }: Case['event']): unknown {
  if ('error' in reading || attributes['time'] !== undefined) return reading;
  const { time: _, ...others } = reading.attributes;
  return { ...reading, attributes: others };
}

/** Compares the event read by an SDK with the event's description. */
function expectMeant(reading: Reading, { attributes, extensions = {}, data }: Case['event'], id: string): void {
  if ('error' in reading) throw new Error(reading.error);
  const { time, datacontenttype, ...texts } = attributes;
  const wanted: Record<string, string> = { ...texts, id, specversion: '1.0', partitionkey: GROUP_KEY };
  for (const [name, { type, value }] of Object.entries(extensions)) {
    if (type === 'timestamp') expect(Date.parse(reading.attributes[name] ?? '')).toBe(Date.parse(String(value)));
    // The SDK for Python writes True.
    else if (type === 'boolean') expect(reading.attributes[name]?.toLowerCase()).toBe(String(value));
    else wanted[name] = String(value);
  }
  expect(reading.attributes).toMatchObject(wanted);
  if (time !== undefined) expect(Date.parse(reading.attributes['time'] ?? '')).toBe(Date.parse(time));
  if (datacontenttype !== undefined) expect(reading.attributes['datacontenttype']).toMatch(datacontenttype);
  if (data === undefined) return;
  if ('json' in data) {
    const read = reading.data;
    expect(read !== null && 'json' in read ? read.json : JSON.parse(String(bytesOf(read)))).toEqual(data.json);
  } else expect(bytesOf(reading.data)).toEqual(bytesOf(data));
}

describe.each(SDKS)('CloudEvents with the SDK for %s', producer => {
  const reason = reasonOf(producer);
  const title = reason === undefined ? 'arrive as they were sent' : `are NOT TESTED: ${reason}`;
  describe.skipIf(reason !== undefined)(`${title}`, () => {
    for (const mode of ['binary', 'structured'] as const) {
      test.each(CASES)(`are unchanged in ${mode} mode: $what`, async ({ what, event, plain = true }) => {
        const id = `${producer}-${mode}-${CASES.findIndex(each => each.what === what)}`;
        const sent = await produce(producer, mode, event, id);
        if (sent === undefined) return expect([producer, mode, plain]).toEqual(['JavaScript', 'binary', false]);
        const got = await poll(
          () => incoming.messages.find(each => header(each, 'webhook-id') === id),
          'the tap received the event',
        );
        expect(got.body.equals(sent.body)).toBe(true);
        expect(header(got, 'content-type')).toBe(header(sent, 'content-type'));
        expect(attributesIn(got)).toEqual(attributesIn(sent));
        expect(attributesIn(got).length > 0).toBe(mode === 'binary');
        expect(header(got, 'x-sluice-group-key')).toBe(GROUP_KEY);
        for (const [name, receiver] of peers) {
          const reading = await poll(
            () => receiver.read(id),
            `the receiver with the SDK for ${name} received the event`,
          );
          const direct = await readDirectly(receiver, sent, `direct-${id}`);
          expect(comparable(reading, event), name).toEqual(comparable(direct, event));
          if (plain) expectMeant(reading, event, id);
        }
      });
    }

    test('in a batch are refused with 415, which explains what to send instead', async () => {
      const order = { url: pipeline.eventsUrl, headers: { 'x-api-key': INGRESS_KEY }, mode: 'batch' as const };
      const event = { attributes: { ...(CASES[0] as Case).event.attributes, id: `${producer}-batch` } };
      const answer = await (peers.get(producer) as Peer).produce({ ...order, event });
      expect(answer).toMatchObject({ status: 415, body: expect.stringContaining('in a separate request') });
    });
  });
});
