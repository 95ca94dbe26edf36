import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

type Index = { readonly manifests: readonly { readonly digest: string; readonly mediaType: string }[] };

export type Registry = {
  /** Address and port. */
  readonly host: string;
  /** The number of requests for manifests and blobs. containerd only requests missing content. */
  readonly requests: () => number;
  readonly stop: () => void;
};

/**
 * Serves the first image of an OCI layout using any name and tag. It implements the part of the distribution API used
 * for pulling.
 */
export async function startRegistry(layout: string, address: string): Promise<Registry> {
  const index = JSON.parse(await readFile(join(layout, 'index.json'), 'utf8')) as Index;
  const [image] = index.manifests;
  if (image === undefined) throw new Error(`${layout} has no image`);
  let requests = 0;
  const server = createServer((request, response) => {
    const [, kind, asked = ''] = /\/(manifests|blobs)\/([^/]+)$/.exec(request.url ?? '') ?? [];
    if (kind === undefined) return void response.end();
    const digest = asked.startsWith('sha256:') ? asked : image.digest;
    const type = digest === image.digest ? image.mediaType : 'application/octet-stream';
    const body = readFileSync(join(layout, 'blobs', 'sha256', digest.slice('sha256:'.length)));
    const length = body.byteLength;
    response.writeHead(200, { 'content-type': type, 'content-length': length, 'docker-content-digest': digest });
    requests += 1;
    response.end(request.method === 'HEAD' ? undefined : body);
  });
  await new Promise<void>(resolve => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  return { host: `${address}:${port}`, requests: () => requests, stop: () => server.close() };
}
