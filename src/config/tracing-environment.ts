import type { SamplerConfig, TracingConfig } from '../telemetry/tracing-config.ts';

/** OpenTelemetry variables read by Sluice, as listed in docs/configuration.md. */
export const TRACING_ENVIRONMENT: Readonly<Record<string, { readonly fallback: string; readonly meaning: string }>> = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    fallback: '',
    meaning:
      'The collector that receives spans over OTLP/HTTP, e.g. http://collector:4318. The path /v1/traces is appended automatically. To enable tracing, set this variable or the next one.',
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    fallback: '',
    meaning: 'The full URL to export traces to. Sluice uses it without changes.',
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    fallback: 'http/protobuf',
    meaning: 'The export protocol, which is either http/protobuf or http/json. Sluice does not support grpc.',
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    fallback: '',
    meaning:
      'The headers to send to the collector, as a comma-separated list of name=value pairs with percent-encoded values.',
  },
  OTEL_EXPORTER_OTLP_TIMEOUT: { fallback: '10000', meaning: 'The export timeout in milliseconds.' },
  OTEL_TRACES_SAMPLER: {
    fallback: 'parentbased_always_on',
    meaning:
      'The sampler to use: always_on, always_off, or traceidratio. To use the sampling decision of the parent span (if there is one), add the prefix parentbased_.',
  },
  OTEL_TRACES_SAMPLER_ARG: {
    fallback: '1',
    meaning: 'The proportion of traces to record when using a ratio sampler, from 0 to 1.',
  },
  OTEL_BSP_SCHEDULE_DELAY: { fallback: '5000', meaning: 'The delay between span exports in milliseconds.' },
  OTEL_SERVICE_NAME: {
    fallback: '',
    meaning: 'The service name in traces. Defaults to sluice-<role>, or sluice for processes with more than one role.',
  },
  OTEL_RESOURCE_ATTRIBUTES: {
    fallback: '',
    meaning: 'Additional attributes of the service, as a comma-separated list of name=value pairs.',
  },
  OTEL_TRACES_EXPORTER: { fallback: 'otlp', meaning: 'Set to none to disable tracing.' },
  OTEL_SDK_DISABLED: { fallback: 'false', meaning: 'Set to true to disable tracing.' },
};

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the OpenTelemetry variables. Invalid values are added to `problems`. If tracing is disabled, this returns
 * undefined without checking the other variables.
 */
export function readTracing(env: Environment, roles: readonly string[], problems: string[]): TracingConfig | undefined {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER'] === 'none') return undefined;
  const url = readUrl(env);
  if (url === undefined) return undefined;
  const found: string[] = [];
  if (!URL.canParse(url.value) || !/^https?:$/.test(new URL(url.value).protocol)) {
    found.push(`${url.variable}: must be an http or https URL, such as http://collector:4318`);
  }
  const { variable: protocolVariable, value: protocol = 'http/protobuf' } = ofTraces(env, 'PROTOCOL');
  if (!isProtocol(protocol)) found.push(`${protocolVariable}: must be http/protobuf or http/json`);
  const timeoutMs = readMs(ofTraces(env, 'TIMEOUT'), 10_000, found);
  const delay = { variable: 'OTEL_BSP_SCHEDULE_DELAY', value: given(env['OTEL_BSP_SCHEDULE_DELAY']) };
  const delayMs = readMs(delay, 5_000, found);
  const headerText = ofTraces(env, 'HEADERS');
  const headers = parsePairs(headerText.value);
  if (headers === undefined) found.push(`${headerText.variable}: must be name=value, separated by commas`);
  const attributes = parsePairs(env['OTEL_RESOURCE_ATTRIBUTES']);
  if (attributes === undefined) found.push('OTEL_RESOURCE_ATTRIBUTES: must be name=value, separated by commas');
  const sampler = readSampler(env, found);
  problems.push(...found);
  if (found.length > 0 || !isProtocol(protocol) || headers === undefined || sampler === undefined) return undefined;
  const name = roles.length === 1 ? `sluice-${roles[0]}` : 'sluice';
  const service = { 'service.name': given(env['OTEL_SERVICE_NAME']) ?? attributes?.['service.name'] ?? name };
  return Object.freeze({
    url: url.value,
    protocol,
    headers,
    timeoutMs,
    delayMs,
    sampler,
    attributes: { ...attributes, ...service },
  });
}

function given(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === '' ? undefined : value.trim();
}

/** A variable, and its value if it has one. */
interface Given {
  readonly variable: string;
  readonly value: string | undefined;
}

/** Reads a variable of the exporter. The one specific to traces takes precedence. */
function ofTraces(env: Environment, name: string): Given {
  const [own, shared] = [`OTEL_EXPORTER_OTLP_TRACES_${name}`, `OTEL_EXPORTER_OTLP_${name}`];
  const value = given(env[own]);
  return value === undefined ? { variable: shared, value: given(env[shared]) } : { variable: own, value };
}

function readUrl(env: Environment): { readonly variable: string; readonly value: string } | undefined {
  const { variable, value } = ofTraces(env, 'ENDPOINT');
  if (value === undefined) return undefined;
  const isFull = variable.includes('TRACES');
  return { variable, value: isFull ? value : `${value.replace(/\/+$/, '')}/v1/traces` };
}

/** Timers with a longer time would end immediately. */
const MOST_MS = 2 ** 31 - 1;

function readMs({ variable, value }: Given, fallback: number, problems: string[]): number {
  const ms = Number(value ?? fallback);
  if (ms > 0 && ms <= MOST_MS) return ms;
  problems.push(`${variable}: must be a number of milliseconds above 0, and at most ${MOST_MS}`);
  return fallback;
}

function isProtocol(text: string): text is TracingConfig['protocol'] {
  return text === 'http/protobuf' || text === 'http/json';
}

/** Parses W3C Baggage without properties. Required by the OpenTelemetry specification. */
function parsePairs(text: string | undefined): Record<string, string> | undefined {
  const pairs: Record<string, string> = {};
  for (const pair of (text ?? '').split(',')) {
    if (pair.trim() === '') continue;
    const [, name = '', value = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    if (name === '') return undefined;
    try {
      pairs[decodeURIComponent(name)] = decodeURIComponent(value);
    } catch {
      return undefined;
    }
  }
  return pairs;
}

const RATIOS: Readonly<Record<string, number | undefined>> = { always_on: 1, always_off: 0, traceidratio: undefined };

function readSampler(env: Environment, problems: string[]): SamplerConfig | undefined {
  const name = given(env['OTEL_TRACES_SAMPLER']) ?? 'parentbased_always_on';
  const kind = name.replace(/^parentbased_/, '');
  if (!Object.hasOwn(RATIOS, kind)) {
    problems.push(
      `OTEL_TRACES_SAMPLER: must be one of ${Object.keys(RATIOS).join(', ')}, with or without the prefix parentbased_`,
    );
    return undefined;
  }
  const ratio = RATIOS[kind] ?? Number(given(env['OTEL_TRACES_SAMPLER_ARG']) ?? 1);
  if (!(ratio >= 0 && ratio <= 1)) {
    problems.push('OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1');
    return undefined;
  }
  return { parentBased: kind !== name, ratio };
}
