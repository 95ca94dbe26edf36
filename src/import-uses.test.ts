import { expect, test } from 'vitest';
import { files, importsOf, textOf } from './testing/source-files.ts';

test('the facade reads the data plane, and only changes inboxes', () => {
  const used = files
    .filter(file => file.startsWith('facade/'))
    .flatMap(importsOf)
    .flatMap(name => /\/((?:redis|plane|hints|accounts|series|record)\/[\w/-]+)\.ts$/.exec(name)?.[1] ?? []);
  const reads = [
    'plane/inbox-reader',
    'plane/inbox-ref',
    'plane/replay-prices',
    'plane/routing-reader',
    'plane/traffic-reader',
    'record/gate-reader',
    'record/mail-reader',
  ];
  const writes = ['accounts/replays', 'plane/inbox-operations', 'plane/inbox-recovery'];
  expect([...new Set(used)].toSorted()).toEqual([...reads, ...writes].toSorted());
});

test('OpenTelemetry is only loaded by main.ts, and only if tracing is enabled', () => {
  const users = files.filter(file => importsOf(file).some(name => name.startsWith('@opentelemetry/')));
  expect(users).toEqual(['telemetry/tracing-sdk.ts']);
  const mentions = files.filter(file => textOf(file).includes('tracing-sdk.ts'));
  expect(mentions).toEqual(['main.ts']);
  const main = textOf('main.ts');
  expect(main).not.toMatch(/from '[^']*tracing-sdk/);
  expect(main).toMatch(/config\.tracing &&\s+\(await \(await import\('\.\/telemetry\/tracing-sdk\.ts'/);
});

test('every dynamic import contains the name of its module, so that the import rules can check it', () => {
  for (const file of files) {
    const text = textOf(file).replaceAll(/^ *(?:\/\/|\/?\*).*$/gm, '');
    const named = [...text.matchAll(/\bimport\(\s*['"][^'"]+['"]\s*[,)]/g)];
    expect(named, file).toHaveLength([...text.matchAll(/\bimport\s*\(|\brequire\s*\(|\bcreateRequire\b/g)].length);
  }
});

test('only config.ts reads the environment', () => {
  const readers = files.filter(file => /process\.env\b/.test(textOf(file)));
  // The entry point reads NODE_OPTIONS, which belongs to Node.
  expect(readers).toEqual(['main.ts', 'sluice.ts']);
});
