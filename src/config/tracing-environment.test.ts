import { expect, test } from 'vitest';
import { readTracing } from './tracing-environment.ts';

function read(env: Record<string, string>, roles: readonly string[] = ['ingress']) {
  const problems: string[] = [];
  return { config: readTracing(env, roles, problems), problems };
}

const AT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

test.each([
  {},
  { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
  { ...AT, OTEL_SDK_DISABLED: 'true' },
  { ...AT, OTEL_TRACES_EXPORTER: 'none' },
  // Without an endpoint, the other variables are not checked.
  { OTEL_TRACES_SAMPLER: 'nonsense', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
])('%j: tracing is disabled without an error', env => {
  expect(read(env)).toEqual({ config: undefined, problems: [] });
});

test('an endpoint is sufficient', () => {
  expect(read({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' }).config).toEqual({
    url: 'http://collector:4318/v1/traces',
    protocol: 'http/protobuf',
    headers: {},
    timeoutMs: 10_000,
    delayMs: 5_000,
    sampler: { parentBased: true, ratio: 1 },
    attributes: { 'service.name': 'sluice-ingress' },
  });
  expect(read(AT, ['controller', 'dispatcher']).config?.attributes).toEqual({ 'service.name': 'sluice' });
});

test('reads every variable; variables that only apply to traces take precedence', () => {
  const env = {
    ...AT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/custom',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc, x-team = one',
    OTEL_EXPORTER_OTLP_TIMEOUT: '2000',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.05',
    OTEL_SERVICE_NAME: 'events',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=other',
  };
  expect(read(env)).toEqual({
    config: {
      url: 'https://traces.example/custom',
      protocol: 'http/json',
      headers: { authorization: 'Bearer abc', 'x-team': 'one' },
      timeoutMs: 2_000,
      delayMs: 100,
      sampler: { parentBased: true, ratio: 0.05 },
      attributes: { 'deployment.environment.name': 'test', 'service.name': 'events' },
    },
    problems: [],
  });
});

test.each([
  ['always_on', { parentBased: false, ratio: 1 }],
  ['always_off', { parentBased: false, ratio: 0 }],
  ['parentbased_always_off', { parentBased: true, ratio: 0 }],
  ['traceidratio', { parentBased: false, ratio: 1 }],
])('the sampler %s', (name, sampler) => {
  expect(read({ ...AT, OTEL_TRACES_SAMPLER: name }).config?.sampler).toEqual(sampler);
});

test.each([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, 'OTEL_EXPORTER_OTLP_ENDPOINT: must be an http'],
  [{ ...AT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf'],
  [{ ...AT, OTEL_EXPORTER_OTLP_TIMEOUT: 'soon' }, 'OTEL_EXPORTER_OTLP_TIMEOUT: '],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'a:1' }, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: must be an http'],
  [{ ...AT, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: must be http/protobuf'],
  [{ ...AT, OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a' }, 'OTEL_EXPORTER_OTLP_TRACES_HEADERS: '],
  [{ ...AT, OTEL_EXPORTER_OTLP_TIMEOUT: '3000000000' }, 'OTEL_EXPORTER_OTLP_TIMEOUT: must be a number of milliseconds'],
  [{ ...AT, OTEL_BSP_SCHEDULE_DELAY: 'Infinity' }, 'OTEL_BSP_SCHEDULE_DELAY: '],
  [{ ...AT, OTEL_BSP_SCHEDULE_DELAY: '0' }, 'OTEL_BSP_SCHEDULE_DELAY: '],
  [{ ...AT, OTEL_EXPORTER_OTLP_HEADERS: 'authorization' }, 'OTEL_EXPORTER_OTLP_HEADERS: '],
  [{ ...AT, OTEL_RESOURCE_ATTRIBUTES: 'a=%' }, 'OTEL_RESOURCE_ATTRIBUTES: '],
  [{ ...AT, OTEL_TRACES_SAMPLER: 'jaeger_remote' }, 'OTEL_TRACES_SAMPLER: must be one of always_on'],
  [{ ...AT, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '5' }, 'OTEL_TRACES_SAMPLER_ARG: '],
])('refuses %j with the reason', (env, message) => {
  const { config, problems } = read(env);
  expect(config).toBeUndefined();
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(message);
});
