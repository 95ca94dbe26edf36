import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { connect } from 'node:tls';

/** Returns the first message of a TLS client (`ClientHello`). */
export async function readClientHello(): Promise<Buffer> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }).on('error', () => {});
  const [socket] = (await once(server, 'connection')) as [Socket];
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  for (const each of [socket, client]) each.destroy();
  server.close();
  return bytes;
}
