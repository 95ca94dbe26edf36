import { request } from 'node:https';

/**
 * Returns the status of a GET request with a bearer token, within 2 s. The certificate is not verified because this
 * only checks whether our own server on a loopback port is running, before the certificate of its authority exists.
 * @throws if there is no response
 */
export function httpsStatus(url: string, token: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const call = request(url, { headers, rejectUnauthorized: false, agent: false, timeout: 2_000 }, response => {
      response.resume();
      resolve(response.statusCode);
    });
    call.on('timeout', () => call.destroy(new Error('no response within 2 s')));
    call.on('error', reject);
    call.end();
  });
}
