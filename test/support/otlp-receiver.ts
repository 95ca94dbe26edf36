import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

type Value = { stringValue?: string; intValue?: number | string; boolValue?: boolean; doubleValue?: number };
type Attribute = { readonly key: string; readonly value: Value };

/** A received span. */
export interface ReceivedSpan {
  readonly service: string | undefined;
  readonly name: string;
  /** The kind according to the protocol: 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly attributes: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly failed: boolean;
  readonly startNs: bigint;
  readonly endNs: bigint;
}

export interface OtlpReceiver {
  /** The value for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string;
  /** The spans of JSON requests. */
  readonly spans: readonly ReceivedSpan[];
  readonly requests: readonly { path: string; headers: IncomingHttpHeaders; body: Buffer }[];
  readonly close: () => Promise<void>;
}

interface Exported {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly ExportedSpan[] }[];
  }[];
}

interface ExportedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly Attribute[];
  readonly status?: { readonly code?: number };
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

function plain(attributes: readonly Attribute[]): ReceivedSpan['attributes'] {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const number = value.intValue ?? value.doubleValue;
      return [key, value.stringValue ?? value.boolValue ?? (number === undefined ? undefined : Number(number))];
    }),
  );
}

/** Starts a collector on loopback for traces over OTLP/HTTP. It uses TLS if there is a certificate in PEM. */
export async function startOtlpReceiver(certificate?: {
  readonly cert: string;
  readonly key: string;
}): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: { path: string; headers: IncomingHttpHeaders; body: Buffer }[] = [];

  function read(body: Buffer): void {
    for (const { resource, scopeSpans } of (JSON.parse(body.toString()) as Exported).resourceSpans) {
      const service = plain(resource.attributes)['service.name'] as string | undefined;
      for (const span of scopeSpans.flatMap(scope => scope.spans)) {
        spans.push({
          service,
          name: span.name,
          kind: span.kind,
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId || undefined,
          attributes: plain(span.attributes),
          failed: span.status?.code === 2,
          startNs: BigInt(span.startTimeUnixNano),
          endNs: BigInt(span.endTimeUnixNano),
        });
      }
    }
  }

  const answer: RequestListener = (request, response) => {
    void buffer(request).then(body => {
      const json = request.headers['content-type'] === 'application/json';
      requests.push({ path: request.url ?? '', headers: request.headers, body });
      if (json) read(body);
      response.writeHead(200, { 'content-type': request.headers['content-type'] ?? '' }).end(json ? '{}' : '');
    });
  };
  const server = certificate === undefined ? createServer(answer) : createTlsServer(certificate, answer);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
