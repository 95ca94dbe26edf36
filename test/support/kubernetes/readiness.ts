import { request } from 'node:https';

/**
 * Status of a GET with a bearer token, within 2 s. The certificate is not checked: this asks only whether a server of
 * ours, on a loopback port, is up, before its authority's certificate exists. @throws when there is no answer
 */
export function httpsStatus(url: string, token: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const call = request(url, { headers, rejectUnauthorized: false, agent: false, timeout: 2_000 }, response => {
      response.resume();
      resolve(response.statusCode);
    });
    call.on('timeout', () => call.destroy(new Error('no answer within 2 s')));
    call.on('error', reject);
    call.end();
  });
}
