import { createServer } from 'node:http';

/** JSON in, JSON out. */
export type Command = (input: never) => unknown;

/** Serves commands of a process of the bench on loopback: `POST /<name>` with JSON. 500 carries the error's text. */
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

/** Asks a process of the bench. @throws what the command threw, as text */
export async function sendCommand<T>(port: number, name: string, input: unknown = {}): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}/${name}`, { method: 'POST', body: JSON.stringify(input) });
  if (!response.ok) throw new Error(`${name}: ${await response.text()}`);
  return (await response.json()) as T;
}
