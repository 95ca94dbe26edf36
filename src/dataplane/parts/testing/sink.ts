import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Arrival {
  readonly id: string;
  readonly groupKey: string;
  readonly body: Buffer;
  readonly headers: IncomingHttpHeaders;
}

/** Responds to a request. The default response is 200. */
export type Script = (arrival: Arrival, response: ServerResponse) => void;

/** Starts an endpoint that records the requests it receives. */
export async function startSink(script: Script = (_arrival, response) => response.end()) {
  const arrivals: Arrival[] = [];
  const control = { script, inFlight: 0, most: 0 };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', chunk => chunks.push(chunk as Buffer));
    request.on('end', () => {
      const { headers } = request;
      const text = (name: string) => String(headers[name] ?? '');
      const arrival = {
        id: text('webhook-id'),
        groupKey: text('x-sluice-group-key'),
        body: Buffer.concat(chunks),
        headers,
      };
      arrivals.push(arrival);
      control.most = Math.max(control.most, ++control.inFlight);
      response.on('close', () => control.inFlight--);
      control.script(arrival, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    arrivals,
    control,
    bodies: () => arrivals.map(({ body }) => body.toString()),
    of: (groupKey: string) => arrivals.filter(each => each.groupKey === groupKey).map(({ body }) => body.toString()),
  };
}

export type Sink = Awaited<ReturnType<typeof startSink>>;
