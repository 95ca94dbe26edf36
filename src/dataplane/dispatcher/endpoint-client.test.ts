import { describe, expect, onTestFinished, test } from 'vitest';
import { createEndpointClient, RESPONSE_BODY_MAX } from './endpoint-client.ts';
import { headerLines } from './http/request-head.ts';
import { answer, startScriptedEndpoint } from './testing/scripted-endpoint.ts';

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0);

async function serve(...[script]: Parameters<typeof startScriptedEndpoint>) {
  const endpoint = await startScriptedEndpoint(script);
  const client = createEndpointClient({ allowedNetworks: ['127.0.0.0/8'], nowMs: () => NOW });
  onTestFinished(endpoint.close);
  onTestFinished(client.close);
  const attempt = (body = Buffer.from('{}'), headers: string[] = []) =>
    client.attempt({ url: endpoint.url, headers: headerLines(headers), body, timeoutMs: 5000 });
  return { endpoint, client, attempt };
}

describe('the meaning of a status', () => {
  test.each([
    [200, 'delivered', 'http_2xx'],
    [202, 'delivered', 'http_2xx'],
    [204, 'delivered', 'http_2xx'],
    [299, 'delivered', 'http_2xx'],
    [300, 'failed', 'redirect'],
    [304, 'failed', 'redirect'],
    [400, 'failed', 'http_4xx'],
    [404, 'failed', 'http_4xx'],
    [410, 'disabled', 'gone'],
    [429, 'failed', 'http_4xx'],
    [500, 'failed', 'http_5xx'],
    [503, 'failed', 'http_5xx'],
    [599, 'failed', 'http_5xx'],
    [600, 'failed', 'invalid_response'],
    [999, 'failed', 'invalid_response'],
  ])('%i is %s (%s)', async (status, outcome, reason) => {
    const { attempt } = await serve(socket => socket.write(answer(status)));
    const result = await attempt();
    expect(result).toMatchObject({ outcome, reason, status, truncated: false });
    expect(result.responseBody).toHaveLength(0);
    expect(result.latencyMs).toBeGreaterThan(0);
  });

  test('a redirect is not followed', async () => {
    const trap = await serve(socket => socket.write(answer(200)));
    const { attempt } = await serve(socket => socket.write(answer(307, [`location: ${trap.endpoint.url}`])));
    expect(await attempt()).toMatchObject({ outcome: 'failed', reason: 'redirect', status: 307 });
    expect(trap.endpoint.connections()).toBe(0);
  });
});

describe('the request', () => {
  test('contains POST, the path with its query, the headers, and the body byte by byte', async () => {
    const { endpoint, client } = await serve(socket => socket.write(answer(200)));
    const body = Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28, 0x0d, 0x0a, 0x80]);
    const url = `${endpoint.url}/a%20b?x=1&y=%C3%A4`;
    await client.attempt({ url, headers: 'webhook-id: evt_1\r\nx-latin: caf\u00e9\r\n', body });
    const [request] = endpoint.requests;
    expect(request?.head.split('\r\n')).toEqual([
      'POST /hook/a%20b?x=1&y=%C3%A4 HTTP/1.1',
      `host: 127.0.0.1:${endpoint.port}`,
      'connection: keep-alive',
      'webhook-id: evt_1',
      'x-latin: caf\u00e9',
      'content-length: 8',
    ]);
    expect(request?.body).toEqual(body);
  });

  test('contains the length of an empty body', async () => {
    const { endpoint, attempt } = await serve(socket => socket.write(answer(200)));
    await attempt(Buffer.alloc(0));
    expect(endpoint.requests[0]?.head).toContain('content-length: 0');
  });

  test('contains a complete body of 256 KiB', async () => {
    const { endpoint, attempt } = await serve(socket => socket.write(answer(200)));
    const body = Buffer.alloc(256 * 1024, 'abcdefghij');
    expect(await attempt(body)).toMatchObject({ outcome: 'delivered' });
    expect(endpoint.requests[0]?.body.equals(body)).toBe(true);
  });

  test('fails without throwing if a header is invalid in HTTP', async () => {
    const { endpoint, attempt } = await serve(socket => socket.write(answer(200)));
    expect(await attempt(Buffer.from('{}'), ['x', 'a\r\nhost: other'])).toMatchObject({
      outcome: 'failed',
      reason: 'invalid_request',
    });
    expect(endpoint.requests).toHaveLength(0);
    expect(await attempt()).toMatchObject({ outcome: 'delivered' });
  });
});

describe('Retry-After', () => {
  test.each([
    ['120', 120_000],
    ['Sat, 21 Nov 2026 12:01:00 GMT', 60_000],
    ['999999999', 36_000_000],
    ['soon', undefined],
  ])('%s is %s ms', async (value, expected) => {
    const { attempt } = await serve(socket => socket.write(answer(503, [`retry-after: ${value}`])));
    expect((await attempt()).retryAfterMs).toBe(expected);
  });

  test('the first of several headers is used, and ignored for a success', async () => {
    const twice = await serve(socket => socket.write(answer(429, ['retry-after: 7', 'retry-after: 9'])));
    expect((await twice.attempt()).retryAfterMs).toBe(7000);
    const success = await serve(socket => socket.write(answer(200, ['retry-after: 7'])));
    expect((await success.attempt()).retryAfterMs).toBeUndefined();
  });
});

describe('the body of a response', () => {
  test('is stored, with or without chunks', async () => {
    const { attempt } = await serve((socket, { nth }) =>
      socket.write(
        nth === 1
          ? answer(500, [], 'it broke')
          : 'HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n3\r\nit \r\n5\r\nbroke\r\n0\r\n\r\n',
      ),
    );
    expect((await attempt()).responseBody.toString()).toBe('it broke');
    expect((await attempt()).responseBody.toString()).toBe('it broke');
  });

  test('of exactly 16 KiB is stored completely and the connection is reused; one more byte is cut off and closes it', async () => {
    let size = RESPONSE_BODY_MAX;
    const { endpoint, attempt } = await serve(socket => socket.write(answer(500, [], 'x'.repeat(size))));
    const whole = await attempt();
    expect(whole).toMatchObject({ reason: 'http_5xx', truncated: false });
    expect(whole.responseBody).toHaveLength(RESPONSE_BODY_MAX);
    size += 1;
    const cut = await attempt();
    expect(cut).toMatchObject({ reason: 'http_5xx', truncated: true });
    expect(cut.responseBody).toHaveLength(RESPONSE_BODY_MAX);
    expect(endpoint.connections()).toBe(1);
    await endpoint.lastConnectionEnded();
    await attempt();
    expect(endpoint.connections()).toBe(2);
  });
});

describe('connections', () => {
  test('are reused, and shared by the paths of an origin', async () => {
    const { endpoint, client, attempt } = await serve(socket => socket.write(answer(200, [], 'ok')));
    for (let i = 0; i < 5; i++) await attempt();
    await client.attempt({ url: `${endpoint.url}/other`, headers: '', body: Buffer.alloc(1) });
    expect(endpoint.connections()).toBe(1);
    expect(endpoint.requests).toHaveLength(6);
  });

  test('are not delayed by a slow response of another connection', async () => {
    const held: (() => void)[] = [];
    const { endpoint, attempt } = await serve((socket, request) => {
      if (request.body.toString() === 'slow') held.push(() => socket.write(answer(200)));
      else socket.write(answer(200));
    });
    const slow = attempt(Buffer.from('slow'));
    expect(await Promise.all([attempt(), attempt(), attempt()])).toHaveLength(3);
    held[0]?.();
    expect(await slow).toMatchObject({ outcome: 'delivered' });
    expect(endpoint.connections()).toBe(4);
  });

  test('are not reused if the endpoint closes them', async () => {
    const { endpoint, attempt } = await serve(socket => socket.end(answer(200, ['connection: close'])));
    expect(await attempt()).toMatchObject({ outcome: 'delivered' });
    await endpoint.lastConnectionEnded();
    expect(await attempt()).toMatchObject({ outcome: 'delivered' });
    expect(endpoint.connections()).toBe(2);
  });

  test('are aborted on close, including later attempts', async () => {
    const arrived = Promise.withResolvers<void>();
    const { client, attempt } = await serve(() => arrived.resolve());
    const hanging = attempt();
    await arrived.promise;
    await client.close();
    expect(await hanging).toMatchObject({ outcome: 'failed', reason: 'aborted' });
    expect(await attempt()).toMatchObject({ outcome: 'failed', reason: 'aborted' });
  });
});
