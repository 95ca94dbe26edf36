import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface Delivery {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A partner endpoint that stores all requests. */
export type Receiver = {
  readonly url: string;
  /** Returns the deliveries of an event by its id. */
  readonly deliveriesOf: (id: string) => readonly Delivery[];
  readonly stop: () => void;
};

/** Starts an endpoint on a free port. @param address of this machine */
export async function startReceiver(address: string): Promise<Receiver> {
  const deliveries: Delivery[] = [];
  const server = createServer((request, response) => {
    void text(request).then(body => {
      deliveries.push({ headers: request.headers, body });
      response.writeHead(204).end();
    });
  });
  await once(server.listen(0, address), 'listening');
  return {
    url: `http://${address}:${(server.address() as AddressInfo).port}/hooks/orders`,
    deliveriesOf: id => deliveries.filter(({ headers }) => headers['webhook-id'] === id),
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Returns the expected signature of a delivery. @param secret `whsec_<base64>` */
export function signatureFor({ headers, body }: Delivery, secret: string): string {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
}
