import { createServer } from 'node:http';

/** Takes and returns JSON. */
export type Command = (input: never) => unknown;

/**
 * Serves the commands of a benchmark process on loopback, as `POST /<name>` with JSON. A 500 contains the error
 * message.
 */
export function serveCommands(port: number, commands: Readonly<Record<string, Command>>): void {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      runCommand(commands, request.url?.slice(1) ?? '', Buffer.concat(chunks).toString()).then(
        result => response.end(JSON.stringify(result ?? null)),
        (error: unknown) => response.writeHead(500).end(error instanceof Error ? error.stack : String(error)),
      );
    });
  });
  server.requestTimeout = 0;
  server.listen(port, '127.0.0.1');
}

async function runCommand(commands: Readonly<Record<string, Command>>, name: string, input: string): Promise<unknown> {
  const command = commands[name];
  if (command === undefined) throw new Error(`there is no command ${name}`);
  return command(JSON.parse(input) as never);
}

/** Sends a command to a benchmark process. @throws Error with the message of the error thrown by the command */
export async function sendCommand<T>(port: number, name: string, input: unknown = {}): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}/${name}`, { method: 'POST', body: JSON.stringify(input) });
  if (!response.ok) throw new Error(`${name}: ${await response.text()}`);
  return (await response.json()) as T;
}
