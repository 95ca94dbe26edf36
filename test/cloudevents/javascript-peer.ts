import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { CloudEvent, type Headers, HTTP } from 'cloudevents';
import { request } from 'undici';
import type { Data, Described, Order, Peer, Produced, Reading } from './peers.ts';

function eventOf({ attributes, extensions = {}, data }: Described): CloudEvent<unknown> {
  const described: Record<string, unknown> = { ...attributes };
  for (const [name, { value }] of Object.entries(extensions)) described[name] = value;
  if (data !== undefined) {
    if ('json' in data) described['data'] = data.json;
    else described['data'] = 'text' in data ? data.text : new Uint8Array(Buffer.from(data.base64, 'base64'));
  }
  return new CloudEvent(described as Partial<CloudEvent<unknown>>);
}

function messageOf({ event, mode }: Order): { headers: Headers; body: unknown } {
  const made = eventOf(event);
  if (mode === 'binary') return HTTP.binary(made);
  if (mode === 'structured') return HTTP.structured(made);
  // The SDK does not support batches. A batch is a JSON array of events.
  return {
    headers: { 'content-type': 'application/cloudevents-batch+json' },
    body: JSON.stringify([made.toJSON(), made.toJSON()]),
  };
}

async function produce(order: Order): Promise<Produced> {
  const { headers, body } = messageOf(order);
  const sent = Object.entries({ ...headers, ...order.headers }).map(([name, value]) => [name, String(value)]);
  try {
    const answer = await request(order.url, {
      method: 'POST',
      headers: Object.fromEntries(sent) as Record<string, string>,
      body: (body ?? null) as string | Uint8Array | null,
    });
    return { status: answer.statusCode, body: await answer.body.text() };
  } catch (error) {
    if ((error as { code?: string }).code !== 'UND_ERR_INVALID_ARG') throw error;
    return { unsendable: String(error) };
  }
}

function dataOf(value: unknown): Data | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return { text: value };
  // The SDK converts `data_base64` to an array of numbers, with one number for each byte.
  if (ArrayBuffer.isView(value)) return { base64: Buffer.from(Array.from(value as Uint32Array)).toString('base64') };
  return { json: value };
}

function read(headers: IncomingHttpHeaders, body: Buffer): Reading {
  // Like Express: bytes for a binary content type, and text otherwise.
  const isBytes = headers['content-type'] === 'application/octet-stream';
  try {
    const event = HTTP.toEvent({ headers, body: isBytes ? body : body.toString('utf8') });
    if (!(event instanceof CloudEvent)) return { error: 'more or less than one event' };
    event.validate();
    const { data, data_base64: _, ...attributes } = event as unknown as Record<string, unknown>;
    const texts = Object.entries(attributes).filter(([, value]) => value !== undefined && value !== null);
    // In the SDK, the time is a getter of the class.
    if (event.time !== undefined) texts.push(['time', event.time]);
    return {
      attributes: Object.fromEntries(texts.map(([name, value]) => [name, String(value)])),
      data: dataOf(data),
    };
  } catch (error) {
    return { error: String(error) };
  }
}

/** Starts a peer with the official SDK for JavaScript, in this process. */
export async function startJavaScript(): Promise<Peer> {
  const readings = new Map<string, Reading>();
  const server = createServer((incoming, response) => {
    void buffer(incoming).then(body => {
      readings.set(String(incoming.headers['webhook-id']), read(incoming.headers, body));
      response.writeHead(204).end();
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/receive`,
    produce,
    read: async id => readings.get(id),
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
