import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Sends 100 Continue to a client that waits for it (`Expect: 100-continue`) when something begins to read the body, but
 * not if the body is discarded. Node closes the connection with a response without it, because the client may or may
 * not send the body afterwards (RFC 9110, 10.1.1).
 */
export function continueWhenRead(request: IncomingMessage, response: ServerResponse): void {
  request.on('newListener', function listen(event: string) {
    if (event !== 'data' && event !== 'readable') return;
    request.removeListener('newListener', listen);
    if (!response.headersSent) response.writeContinue();
  });
}
